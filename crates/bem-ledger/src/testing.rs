//! Random entries and ready-made ledgers for tests and for the simulator.

use crate::checkpoint::Signer;
use crate::entry::{
    Certificate, Entry, Genesis, HumanPhase, InputSource, PatchEvent, PatchKind, PatchStatus, ResetCause,
    StepBlock, Table, TableEdit, ToolPhase, Verdict,
};
use crate::step::{Experience, StepRecord};
use bem_base::digest::{Digest, hash};
use bem_base::environment::Bits;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_base::prng::Prng;

/// A key for tests; its secret is public.
pub fn signer() -> Signer {
    Signer::from_seed(&[42; 32])
}

/// A genesis that goes with [`signer`].
pub fn genesis(seed: u64) -> Genesis {
    Genesis {
        instance: hash(&seed.to_le_bytes()),
        configuration: hash(b"configuration"),
        code: "test 1".to_owned(),
        public_key: signer().public_key(),
    }
}

fn digest(prng: &mut Prng) -> Digest {
    hash(&prng.next_u64().to_le_bytes())
}

fn bytes(prng: &mut Prng, count_max: u64) -> Vec<u8> {
    (0..prng.below(count_max + 1)).map(|_| prng.next_u64() as u8).collect()
}

fn one_of<T: Copy>(prng: &mut Prng, items: &[T]) -> T {
    items[prng.below(items.len() as u64) as usize]
}

/// A random record of the fast path.
pub fn step_record(prng: &mut Prng) -> StepRecord {
    let (offset, task) = (prng.next_u64() as u32, prng.next_u64() as u32);
    if prng.bit() {
        let (arm, bucket, action) = (prng.next_u64() as u16, prng.next_u64() as u16, prng.next_u64() as u16);
        StepRecord::Step { offset, task, arm, bucket, action, uniform: prng.bit() }
    } else {
        let (cost, reward) = (prng.next_u64() as u16, prng.next_u64() as i32);
        StepRecord::Reward { offset, task, cost, reward, done: prng.bit(), bad: prng.bit() }
    }
}

fn experience(prng: &mut Prng) -> Experience {
    let width = prng.below(257) as u16;
    let mut observation = Bits::ZERO;
    (0..usize::from(width)).for_each(|bit| observation.set(bit, prng.bit()));
    Experience {
        offset: prng.next_u64() as u32,
        done: prng.bit(),
        bad: prng.bit(),
        uniform: prng.bit(),
        action: prng.next_u64() as u16,
        reward: prng.next_u64() as i32,
        propensity: prng.next_u64() as u32,
        width,
        observation,
    }
}

fn edits(prng: &mut Prng) -> Vec<TableEdit> {
    let mut edits: Vec<TableEdit> = Vec::new();
    for &table in Table::ALL {
        let mut slot = 0;
        for _ in 0..prng.below(3) {
            slot += 1 + prng.below(20) as u32;
            edits.push(TableEdit { table, slot, leaf: digest(prng) });
        }
    }
    edits
}

fn patch(prng: &mut Prng) -> Entry {
    let status = one_of(prng, PatchStatus::ALL);
    let changes = matches!(status, PatchStatus::Applied | PatchStatus::RolledBack);
    let roots_before = [digest(prng), digest(prng), digest(prng), digest(prng)];
    let certificates = (0..prng.below(3)).map(|_| {
        let verdict = one_of(prng, Verdict::ALL);
        let proof = if verdict == Verdict::Undecided { Digest::default() } else { digest(prng) };
        Certificate { verdict, cnf: digest(prng), proof }
    });
    let certificates = certificates.collect();
    Entry::Patch(PatchEvent {
        serial: prng.next_u64(),
        step: prng.next_u64(),
        kind: one_of(prng, PatchKind::ALL),
        status,
        target: ObjectId::expert(prng.below(1_024) as u16, prng.below(1_024) as u16),
        score: prng.next_u64() as i64,
        payload: digest(prng),
        certificates,
        edits: if changes { edits(prng) } else { Vec::new() },
        roots_before,
        roots_after: if changes { [digest(prng); 4] } else { roots_before },
    })
}

/// A random entry of any kind but genesis. Its parts are well formed and mean nothing.
pub fn entry(prng: &mut Prng) -> Entry {
    let step = prng.next_u64();
    match prng.below(10) {
        0 => Entry::StepBlock(StepBlock {
            first_step: step,
            records: (0..prng.below(20)).map(|_| step_record(prng)).collect(),
            experience: (0..prng.below(4)).map(|_| experience(prng)).collect(),
        }),
        1 => Entry::Episode {
            episode: prng.next_u64(),
            task: prng.next_u64(),
            step,
            length: prng.next_u64() as u32,
            total_return: prng.next_u64() as i64,
            regret: prng.next_u64() as i64,
            discarded: prng.bit(),
        },
        2 => patch(prng),
        3 => Entry::Reset {
            step,
            family: ObjectId::new(ObjectClass::TaskFamily, prng.below(1 << 20) as u32),
            bucket: prng.next_u64() as u32,
            cause: one_of(prng, ResetCause::ALL),
        },
        4 => Entry::Tables { step, edits: edits(prng), roots: [digest(prng); 4] },
        5 => Entry::Snapshot { step, manifest: digest(prng), size_bytes: prng.next_u64() },
        6 => Entry::ToolCall {
            request: prng.next_u64(),
            step,
            tool: ObjectId::new(ObjectClass::ToolKind, prng.below(1 << 20) as u32),
            operation: prng.next_u64() as u16,
            phase: one_of(prng, ToolPhase::ALL),
            status: prng.next_u64() as u8,
            request_digest: digest(prng),
            response_digest: digest(prng),
        },
        7 => Entry::HumanTask {
            question: prng.next_u64(),
            step,
            kind: prng.next_u64() as u8,
            phase: one_of(prng, HumanPhase::ALL),
            payload: digest(prng),
        },
        8 => Entry::Input { step, source: one_of(prng, InputSource::ALL), payload: bytes(prng, 40) },
        _ => Entry::Event {
            step,
            code: prng.next_u64() as u16,
            values: (0..prng.below(17)).map(|_| prng.next_u64() as i64).collect(),
            payload: bytes(prng, 40),
        },
    }
}
