//! Random entries and a meaningful workload for tests and for the simulator.

use crate::audit::{Conditions, Rebuilt};
use crate::checkpoint::Signer;
use crate::entry::{
    Certificate, Entry, Genesis, HumanPhase, HumanStatus, HumanTask, InputSource, PatchEvent, PatchKind,
    PatchStatus, ResetCause, SkipReason, StepBlock, Table, TableEdit, ToolCall, ToolPhase, ToolStatus,
    Verdict,
};
use crate::error::LedgerError;
use crate::experience::Experience;
use crate::log::Log;
use crate::play::{PlayBlock, PlayedEpisode, PlayedStep, Sealer};
use crate::snapshot::Part;
use crate::store::Store;
use crate::tables::Tables;
use bem_base::digest::{Digest, hash};
use bem_base::encode::Writer;
use bem_base::environment::Bits;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_base::prng::Prng;

/// A key for tests; its secret is public.
pub fn signer() -> Signer {
    Signer::from_seed(&[42; 32])
}

/// The blob that the [`genesis`] of tests names.
pub const CONFIGURATION: &[u8] = b"configuration";

/// A genesis that goes with [`signer`].
pub fn genesis(seed: u64) -> Genesis {
    Genesis {
        instance: hash(&seed.to_le_bytes()),
        configuration: hash(CONFIGURATION),
        code: "test 1".to_owned(),
        public_key: signer().public_key(),
    }
}

/// Takes the certificates of a patch for its conditions: for histories that no machine has made.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsCertified;

impl Conditions for AsCertified {
    fn rebuild(
        &mut self,
        entry: &Entry,
        _: &mut dyn FnMut(&Digest) -> Result<Vec<u8>, String>,
    ) -> Result<Rebuilt, String> {
        let Entry::Patch(patch) = entry else { return Ok(Rebuilt::default()) };
        let proven = patch.certificates.iter().filter(|certificate| certificate.verdict == Verdict::Holds);
        Ok(Rebuilt { formulas: proven.map(|certificate| certificate.cnf).collect(), checks: 0 })
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

/// Sixteen random bytes in the place of a record.
pub fn step_record(prng: &mut Prng) -> [u8; 16] {
    (u128::from(prng.next_u64()) << 64 | u128::from(prng.next_u64())).to_le_bytes()
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

/// A block of random episodes, and the episodes themselves.
pub fn play_block(prng: &mut Prng) -> (PlayBlock, Vec<PlayedEpisode>) {
    let mut sealer = Sealer::new(prng.below(1 << 40));
    let mut episodes = Vec::new();
    let mut serial = prng.below(1 << 20);
    for _ in 0..1 + prng.below(4) {
        serial += 1 + prng.below(300);
        let steps = (0..1 + prng.below(6)).map(|_| PlayedStep {
            action: (prng.next_u64() >> (48 + prng.below(16))) as u16,
            reward: (prng.next_u64() as i32) >> prng.below(32),
            uniform: prng.bit(),
            bad: prng.bit(),
        });
        let steps: Vec<PlayedStep> = steps.collect();
        sealer.push(serial, steps.iter().copied(), &digest(prng));
        episodes.push(PlayedEpisode { serial, steps });
    }
    (sealer.seal().expect("a few steps wait"), episodes)
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
    Entry::Patch(Box::new(PatchEvent {
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
    }))
}

fn tool_call(prng: &mut Prng, step: u64) -> ToolCall {
    let phase = one_of(prng, ToolPhase::ALL);
    let status = match phase {
        ToolPhase::Issued => ToolStatus::Pending,
        ToolPhase::Consumed => one_of(prng, &[ToolStatus::Done, ToolStatus::Failed]),
        ToolPhase::Dropped => one_of(prng, ToolStatus::ALL),
    };
    let is_consumed = phase == ToolPhase::Consumed;
    let response_bytes = if is_consumed { prng.next_u64() as u32 } else { 0 };
    ToolCall {
        request: prng.next_u64(),
        step,
        task: prng.next_u64(),
        context: digest(prng),
        tool: ObjectId::new(ObjectClass::ToolKind, prng.below(1 << 20) as u32),
        operation: prng.next_u64() as u16,
        flags: prng.next_u64() as u16,
        resource: ObjectId::new(ObjectClass::TaskFamily, prng.below(1 << 20) as u32),
        slot: prng.next_u64() as u16,
        generation: prng.next_u64() as u32,
        phase,
        status,
        error: if status == ToolStatus::Failed { 1 + prng.below(1_000) as u16 } else { 0 },
        request_digest: digest(prng),
        response_digest: if is_consumed { digest(prng) } else { Digest::default() },
        response_capacity: response_bytes.saturating_add(prng.next_u64() as u16 as u32),
        response_bytes,
        deadline: prng.next_u64(),
    }
}

fn human_task(prng: &mut Prng, step: u64) -> HumanTask {
    let phase = one_of(prng, HumanPhase::ALL);
    let status = match phase {
        HumanPhase::Created => HumanStatus::Pending,
        HumanPhase::Updated => one_of(prng, &[HumanStatus::Pending, HumanStatus::InProgress]),
        HumanPhase::Answered | HumanPhase::Applied => HumanStatus::Done,
        HumanPhase::Skipped => HumanStatus::Skipped,
    };
    let (kind, owner) = (prng.below(5) as u8, prng.below(3) as u32);
    let is_answered = status == HumanStatus::Done;
    let updated = step - step / (1 + prng.below(5));
    HumanTask {
        question: prng.next_u64(),
        step,
        kind,
        target_kind: prng.below(5) as u8,
        target: prng.next_u64(),
        priority: prng.below(4) as u8,
        phase,
        status,
        skipped: if status == HumanStatus::Skipped {
            one_of(prng, &SkipReason::ALL[1..])
        } else {
            SkipReason::None
        },
        decision: if kind == 2 { prng.below(4) as u8 } else { 0 },
        created: updated / 2,
        updated,
        deadline: prng.next_u64(),
        owner,
        lease: if owner == 0 { 0 } else { prng.next_u64() },
        group: prng.below(3),
        undo: prng.next_u64(),
        confirmed: prng.bit(),
        context: digest(prng),
        answer: if is_answered { digest(prng) } else { Digest::default() },
        answer_bytes: if is_answered { prng.next_u64() as u32 } else { 0 },
    }
}

/// A random entry of any kind but genesis. Its parts are well formed and mean nothing.
pub fn entry(prng: &mut Prng) -> Entry {
    let step = prng.next_u64();
    match prng.below(11) {
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
        5 => Entry::Snapshot {
            step,
            manifest: digest(prng),
            size_bytes: prng.next_u64(),
            kept: prng.next_u64() as u8,
        },
        6 => Entry::ToolCall(Box::new(tool_call(prng, step))),
        7 => Entry::HumanTask(Box::new(human_task(prng, step))),
        9 => Entry::Play(play_block(prng).0),
        8 => Entry::Input { step, source: one_of(prng, InputSource::ALL), payload: bytes(prng, 40) },
        _ => Entry::Event {
            step,
            code: prng.next_u64() as u16,
            values: (0..prng.below(17)).map(|_| prng.next_u64() as i64).collect(),
            payload: bytes(prng, 40),
        },
    }
}

/// What a workload does next. Every operation appends exactly one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A plain entry.
    Append(Entry),
    /// A patch and the evidence it names.
    Patch(Vec<Vec<u8>>, Entry),
    /// A snapshot of these parts.
    Snapshot(u64, Vec<Part>),
}

impl Operation {
    /// One word for what it does.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Append(_) => "append",
            Operation::Patch(..) => "patch",
            Operation::Snapshot(..) => "snapshot",
        }
    }
}

/// Snapshots that a workload keeps.
pub const WORKLOAD_SNAPSHOTS_KEPT: u8 = 255;

/// A history that an audit accepts: step blocks, episodes, patches with certificates and table roots, snapshots.
///
/// The operations depend on the seed alone, so a run that was cut off can be continued at any position.
#[derive(Clone, Debug)]
pub struct Workload {
    prng: Prng,
    tables: Tables,
    step: u64,
    serial: u64,
}

impl Workload {
    /// The workload with this seed, at its start.
    pub fn new(seed: u64) -> Workload {
        Workload { prng: Prng::stream(seed, "workload"), tables: Tables::new(), step: 0, serial: 0 }
    }

    /// The workload with this seed after so many operations.
    pub fn at(seed: u64, position: u64) -> Workload {
        let mut workload = Workload::new(seed);
        (0..position).for_each(|_| drop(workload.next_operation()));
        workload
    }

    /// The next operation.
    pub fn next_operation(&mut self) -> Operation {
        self.step += 1 + self.prng.below(100);
        match self.prng.below(16) {
            0..=7 => Operation::Append(Entry::StepBlock(StepBlock {
                first_step: self.step,
                records: (0..self.prng.below(24)).map(|_| step_record(&mut self.prng)).collect(),
                experience: (0..self.prng.below(2)).map(|_| experience(&mut self.prng)).collect(),
            })),
            8 | 9 => Operation::Append(Entry::Episode {
                episode: self.serial,
                task: self.prng.below(9),
                step: self.step,
                length: self.prng.below(100) as u32,
                total_return: self.prng.between(-5_000, 5_000),
                regret: self.prng.between(0, 1 << 40),
                discarded: false,
            }),
            10 => Operation::Append(self.table_change()),
            11 | 12 => self.patch(),
            13 => Operation::Snapshot(self.step, self.parts()),
            14 => Operation::Append(Entry::Input {
                step: self.step,
                source: InputSource::Operator,
                payload: bytes(&mut self.prng, 60),
            }),
            _ => Operation::Append(Entry::Event {
                step: self.step,
                code: crate::entry::event_code::PHASE,
                values: vec![self.prng.between(0, 2)],
                payload: Vec::new(),
            }),
        }
    }

    /// Carries an operation out and returns the index of its entry.
    pub fn apply<S: Store>(operation: &Operation, log: &mut Log<S>) -> Result<u64, LedgerError> {
        match operation {
            Operation::Append(entry) => log.append(entry),
            Operation::Patch(blobs, entry) => {
                for blob in blobs {
                    log.put_blob(blob)?;
                }
                log.append(entry)
            }
            Operation::Snapshot(step, parts) => {
                let index = log.size();
                log.write_snapshot(*step, parts.clone(), WORKLOAD_SNAPSHOTS_KEPT)?;
                Ok(index)
            }
        }
    }

    fn table_edits(&mut self) -> Vec<TableEdit> {
        let mut edits = edits(&mut self.prng);
        // What CFG names must be there as a file, and a workload has no programs.
        edits.retain(|edit| edit.table != Table::Program);
        edits.iter().for_each(|edit| self.tables.set(edit));
        edits
    }

    fn table_change(&mut self) -> Entry {
        let edits = self.table_edits();
        Entry::Tables { step: self.step, edits, roots: self.tables.roots() }
    }

    fn patch(&mut self) -> Operation {
        self.serial += 1;
        let roots_before = self.tables.roots();
        let applied = self.prng.below(3) != 0;
        let (certificate, mut blobs) = certificate(&mut self.prng, applied);
        let payload = bytes(&mut self.prng, 60);
        let edits = if applied { self.table_edits() } else { Vec::new() };
        let entry = Entry::Patch(Box::new(PatchEvent {
            serial: self.serial,
            step: self.step,
            kind: one_of(&mut self.prng, PatchKind::ALL),
            status: if applied { PatchStatus::Applied } else { PatchStatus::Rejected },
            target: ObjectId::expert(self.prng.below(1_024) as u16, self.prng.below(16) as u16),
            score: self.prng.between(0, 1 << 32),
            payload: hash(&payload),
            certificates: vec![certificate],
            edits,
            roots_before,
            roots_after: self.tables.roots(),
        }));
        if applied {
            blobs.push(payload);
        }
        Operation::Patch(blobs, entry)
    }

    fn parts(&mut self) -> Vec<Part> {
        let part = |name: &str, bytes| Part { name: name.to_owned(), bytes };
        vec![part("bandit", bytes(&mut self.prng, 200)), part("state", bytes(&mut self.prng, 400))]
    }
}

/// A certificate that holds (a proof) or refutes (a model), with its two blobs.
fn certificate(prng: &mut Prng, holds: bool) -> (Certificate, Vec<Vec<u8>>) {
    let variable = 1 + prng.below(9);
    let opposite = if holds { "-" } else { "" };
    let cnf = format!("p cnf 9 2\n{variable} 0\n{opposite}{variable} 0\n").into_bytes();
    let proof = if holds {
        let formula = bem_checker::cnf::Cnf::from_dimacs(&cnf).expect("the text above is DIMACS").digest();
        let proof = b"3 0 1 2 0\n".to_vec();
        let mut writer = Writer::new();
        bem_checker::certificate::Certificate { formula, assumptions: Vec::new(), proof }.encode(&mut writer);
        writer.into_bytes()
    } else {
        format!("{variable} 0").into_bytes()
    };
    let verdict = if holds { Verdict::Holds } else { Verdict::Refuted };
    (Certificate { verdict, cnf: hash(&cnf), proof: hash(&proof) }, vec![cnf, proof])
}
