//! Bad patches by the thousand: a small laboratory, good patches of every kind, and ways to spoil them.
//!
//! Every spoiled patch is wrong by construction or by an evaluation that shares no code with the conditions, so
//! that an accepted one is a hole in a condition. [`run`] takes any number of them. Clauses: SCC-2, SCC-3, SCC-4.

use crate::apply::Tables;
use crate::condition::circuits::{body_of, compose};
use crate::condition::{BadPair, Context, Rejection, SafetyDemand};
use crate::patch::{Body, Change, Example, ExampleStep, ExpectedEffects, Member, Patch, PatchKind};
use crate::propose::{merge_by_bit, patch};
use crate::score::PoxState;
use crate::verify::{Improvement, accept, verify};
use bem_base::digest::Digest;
use bem_base::environment::{Bits, Field, Shape};
use bem_base::fixed::Fixed;
use bem_base::ids::{ObjectClass, ObjectId};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Gate, Netlist, Op, Signal};
use bem_circuit::simplify::simplify;
use bem_machine::config::GenesisConfig;
use bem_machine::family::Family;
use bem_machine::route::directory::RouteInput;
use bem_synth::function::build_word_table;
use bem_synth::policy::{Player, Policy};
use std::collections::BTreeMap;

/// Bits that can be seen in the laboratory.
const OBSERVATION_BITS: u16 = 6;
/// Actions there; not a power of two, so that a code can be out of range.
const ACTIONS: u16 = 3;

/// How a good patch is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// One gate of the circuit computes something else, or the result of a split is another one.
    Flipped,
    /// A number is past its bound, or a place is named that does not exist.
    BoundExceeded,
    /// The safety tag is gone.
    SafetyDropped,
    /// It was made against other tables.
    WrongParent,
    /// Its serial was applied before.
    Replayed,
    /// The action's code is no action.
    ActionOutOfRange,
    /// An action that the table says is BAD is taken.
    BadAction,
    /// A trace constraint, a domain or a sequence is not the one that the circuit was made for.
    WrongLabel,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 8] = [
        Fault::Flipped,
        Fault::BoundExceeded,
        Fault::SafetyDropped,
        Fault::WrongParent,
        Fault::Replayed,
        Fault::ActionOutOfRange,
        Fault::BadAction,
        Fault::WrongLabel,
    ];
}

/// Tables with a few experts and a BAD table, and good patches against them.
#[derive(Clone, Debug)]
pub struct Laboratory {
    config: GenesisConfig,
    tables: Tables,
    bad: Vec<BadPair>,
}

impl Default for Laboratory {
    fn default() -> Laboratory {
        Laboratory::new()
    }
}

impl Laboratory {
    /// A family with four experts, after one applied patch.
    pub fn new() -> Laboratory {
        let config = GenesisConfig::default();
        let shape = Shape {
            observation_bits: OBSERVATION_BITS,
            actions: ACTIONS,
            horizon: 16,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 16_000,
            fields: vec![Field { low: 0, width: OBSERVATION_BITS }],
        };
        let mut family = Family::new(&config, shape).expect("the laboratory's world is small");
        for number in 0..4u32 {
            let body = expert(number);
            let id = ObjectId::new(ObjectClass::Expert, number + 1);
            family.install(&config, id, body.to_parts(0)).expect("the laboratory's experts are small");
        }
        let pair = |seen: u64, action| {
            let mut observation = Bits::ZERO;
            observation.set_field(0, usize::from(OBSERVATION_BITS), seen);
            BadPair { observation, action }
        };
        let bad = vec![pair(5, 1), pair(9, 2), pair(33, 0)];
        let mut laboratory = Laboratory { tables: Tables::new(vec![family]), config, bad };
        // One patch is applied, so that there is a serial that can be replayed.
        let first = laboratory.smaller(4, 7);
        let verified = verify(first, &laboratory.context()).expect("the laboratory's first patch is right");
        let pox = PoxState::new(&laboratory.config);
        let accepted = accept(verified, Improvement::Static, Fixed::ZERO, &pox).expect("it saves gates");
        laboratory.tables.apply(&laboratory.config, accepted).expect("nothing has changed since");
        laboratory
    }

    /// What patches are judged against.
    pub fn context(&self) -> Context<'_> {
        Context { config: &self.config, tables: &self.tables, bad: &self.bad, safety: SafetyDemand::Required }
    }

    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The configuration.
    pub fn config(&self) -> &GenesisConfig {
        &self.config
    }

    /// The only family.
    pub fn family(&self) -> &Family {
        self.tables.family(0).expect("the laboratory has one family")
    }

    fn make(&self, serial: u64, change: Change) -> Patch {
        patch(&self.tables, serial, 0, change, ExpectedEffects::default()).expect("the family exists")
    }

    fn smaller(&self, slot: u8, serial: u64) -> Patch {
        let circuit = simplify(self.circuit(slot));
        self.make(serial, Change::Superoptimize { slot, circuit })
    }

    fn circuit(&self, slot: u8) -> &Netlist {
        self.family().expert(usize::from(slot)).expect("the slot is taken").placed().circuit()
    }

    fn body(&self, slot: u8) -> Body {
        body_of(self.family().expert(usize::from(slot)).expect("the slot is taken"))
            .expect("it uses STATE only")
    }

    /// A patch of this kind that is right.
    pub fn good_patch(&self, kind: PatchKind, prng: &mut Prng) -> Patch {
        let serial = 8 + prng.below(1_000);
        let bit = prng.below(u64::from(OBSERVATION_BITS)) as u16;
        let change = match kind {
            PatchKind::Retire => Change::Retire { slot: 1 + prng.below(4) as u8 },
            PatchKind::Reset => Change::Reset { bucket: 0 },
            PatchKind::Split => {
                let by = vec![RouteInput::State(bit)];
                let mut after = self.family().directory().clone();
                after.split(0, &by).expect("the first bucket is not divided yet");
                Change::Split { bucket: 0, by, after }
            }
            PatchKind::Merge => {
                let body = merge_by_bit(&self.body(1), &self.body(2), bit).expect("both write the action");
                let member = |slot, value| Member { slot, domain: vec![(bit, value)] };
                Change::Merge { members: vec![member(1, false), member(2, true)], body }
            }
            PatchKind::Superoptimize => return self.smaller(3, serial),
            PatchKind::TeachEdit => {
                let tree =
                    format!("repeat{{times={}}}(parity{{n={}}})", 1 + prng.below(8), 2 + prng.below(12));
                let difficulty = bem_teacher::template::measure(&tree).expect("the tree is right").difficulty;
                Change::TeachEdit { template: 0, tree, difficulty }
            }
            PatchKind::Macro => {
                let body = compose(&[self.body(1), self.body(2)]).expect("both use STATE only");
                Change::Macro { sequence: vec![1, 2], body }
            }
            PatchKind::Synthesize => self.synthesized(prng, false),
        };
        self.make(serial, change)
    }

    /// A random table as a policy, with or without one bit of memory, and what it does as its examples.
    fn synthesized(&self, prng: &mut Prng, take_bad: bool) -> Change {
        let memory_bits = prng.below(2) as usize;
        let seen = usize::from(OBSERVATION_BITS);
        let rows = 1u64 << (seen + memory_bits);
        let is_bad = |row: u64, action: u64| {
            let pair = |pair: &&BadPair| pair.observation.field(0, seen) == row & 63;
            self.bad.iter().filter(pair).any(|pair| u64::from(pair.action) == action)
        };
        let mut actions = BTreeMap::new();
        for row in 0..rows {
            let free: Vec<u64> = (0..u64::from(ACTIONS)).filter(|action| !is_bad(row, *action)).collect();
            actions.insert(row, free[prng.below(free.len() as u64) as usize]);
        }
        if take_bad {
            let pair = self.bad[prng.below(self.bad.len() as u64) as usize];
            let memory = prng.below(1 << memory_bits) << seen;
            actions.insert(pair.observation.field(0, seen) | memory, u64::from(pair.action));
        }
        let next: BTreeMap<u64, u64> = (0..rows).map(|row| (row, prng.below(2))).collect();
        let mut builder = Builder::new(seen + memory_bits);
        let inputs: Vec<Signal> = (0..seen + memory_bits).map(Signal::input).collect();
        let action = build_word_table(&mut builder, &inputs, &actions, 2);
        let memory = build_word_table(&mut builder, &inputs, &next, memory_bits);
        let policy = Policy::close(builder, seen, ACTIONS, &action, &memory).expect("the table is small");
        let examples = if take_bad { Vec::new() } else { examples_of(&policy, memory_bits, prng) };
        Change::Synthesize { policy, safe: true, examples }
    }

    /// A spoiled patch; none if this kind cannot be spoiled this way, or if it would still be right.
    pub fn bad_patch(&self, kind: PatchKind, fault: Fault, prng: &mut Prng) -> Option<Patch> {
        let mut patch = self.good_patch(kind, prng);
        match fault {
            Fault::WrongParent => {
                let mut bytes = *patch.parent.as_bytes();
                bytes[prng.below(32) as usize] ^= 1 << prng.below(8);
                patch.parent = Digest::from_bytes(bytes);
            }
            Fault::Replayed => patch.serial = prng.below(8),
            Fault::Flipped => self.flip(&mut patch.change, prng)?,
            Fault::BoundExceeded => self.exceed(&mut patch.change, prng),
            Fault::SafetyDropped => match &mut patch.change {
                Change::Synthesize { safe, .. } => *safe = false,
                Change::Merge { body, .. } | Change::Macro { body, .. } => body.safe = false,
                _ => return None,
            },
            Fault::ActionOutOfRange => {
                let Change::Synthesize { policy, examples, .. } = &mut patch.change else { return None };
                // Both bits of the code are one input: the code is 0 or 3.
                let mut outputs = policy.circuit().outputs().to_vec();
                outputs[..2].fill(Signal::input(prng.below(policy.reads().len() as u64) as usize));
                let circuit =
                    Netlist::new(policy.circuit().inputs(), policy.circuit().gates().to_vec(), outputs);
                *policy = Policy::new(circuit.ok()?, policy.reads().to_vec(), policy.memory_bits(), ACTIONS)?;
                examples.clear();
            }
            Fault::BadAction => {
                if kind != PatchKind::Synthesize {
                    return None;
                }
                patch.change = self.synthesized(prng, true);
            }
            Fault::WrongLabel => self.mislabel(&mut patch.change, prng)?,
        }
        Some(patch)
    }

    fn flip(&self, change: &mut Change, prng: &mut Prng) -> Option<()> {
        match change {
            Change::Split { bucket, by, after } => {
                // The result of dividing by another bit.
                let RouteInput::State(bit) = by[0] else { return None };
                let other = (bit + 1 + prng.below(u64::from(OBSERVATION_BITS) - 1) as u16) % OBSERVATION_BITS;
                *after = self.family().directory().clone();
                after.split(*bucket, &[RouteInput::State(other)]).ok()?;
            }
            Change::Merge { body, .. } | Change::Macro { body, .. } => {
                let flipped = flip_gate(&body.circuit, prng)?;
                body.circuit = differs(&body.circuit, &flipped).then_some(flipped)?;
            }
            Change::Superoptimize { circuit, .. } => {
                let flipped = flip_gate(circuit, prng)?;
                *circuit = differs(circuit, &flipped).then_some(flipped)?;
            }
            Change::TeachEdit { difficulty, .. } => *difficulty = difficulty.plus(Fixed::from_raw(1)),
            Change::Synthesize { policy, examples, .. } => {
                let circuit = flip_gate(policy.circuit(), prng)?;
                let flipped = Policy::new(circuit, policy.reads().to_vec(), policy.memory_bits(), ACTIONS)?;
                let breaks = |example: &Example| {
                    let mut player = Player::new(&flipped);
                    example.steps.iter().any(|step| {
                        let action = player.act(&step.observation);
                        step.wanted.is_some_and(|wanted| wanted != action)
                    })
                };
                *policy = examples.iter().any(breaks).then_some(flipped)?;
            }
            Change::Retire { .. } | Change::Reset { .. } => return None,
        }
        Some(())
    }

    fn exceed(&self, change: &mut Change, prng: &mut Prng) {
        match change {
            Change::Retire { slot } => *slot = [0, 5 + prng.below(251) as u8][prng.below(2) as usize],
            Change::Reset { bucket } => *bucket = 1 + prng.below(65_535) as u16,
            Change::Split { bucket, by, .. } => match prng.below(3) {
                0 => *bucket = 1 + prng.below(65_535) as u16,
                1 => by[0] = RouteInput::State(512 + prng.below(60_000) as u16),
                _ => by.clear(),
            },
            Change::Merge { body, members } => match prng.below(4) {
                0 => spoil_places(body, prng),
                1 => members.truncate(1),
                2 => members[1].slot = members[0].slot,
                _ => members[0].slot = 5 + prng.below(251) as u8,
            },
            // Not smaller than what it replaces.
            Change::Superoptimize { slot, circuit } => match prng.below(2) {
                0 => *circuit = self.circuit(*slot).clone(),
                _ => *slot = 5 + prng.below(251) as u8,
            },
            Change::TeachEdit { tree, difficulty, .. } => {
                *tree = match prng.below(3) {
                    0 => "repeat{times=2}(".repeat(7) + "compare" + &")".repeat(7),
                    1 => format!("parity{{n={}}}", 300 + prng.below(1_000)),
                    _ => format!("repeat{{times={}}}(parity)", 65 + prng.below(1_000)),
                };
                if let Ok(measure) = bem_teacher::template::measure(tree) {
                    *difficulty = measure.difficulty;
                }
            }
            Change::Macro { sequence, body } => match prng.below(3) {
                0 => spoil_places(body, prng),
                1 => sequence.truncate(1),
                _ => sequence[0] = 5 + prng.below(251) as u8,
            },
            Change::Synthesize { policy, .. } => {
                let (circuit, memory) = (policy.circuit().clone(), policy.memory_bits());
                let reads: Vec<u16> = policy.reads().iter().map(|bit| bit + OBSERVATION_BITS).collect();
                let spoiled = match prng.below(2) {
                    0 => Policy::new(circuit, reads, memory, ACTIONS),
                    _ => Policy::new(circuit, policy.reads().to_vec(), memory, ACTIONS + 1),
                };
                *policy = spoiled.expect("the parts still fit each other");
            }
        }
    }

    fn mislabel(&self, change: &mut Change, prng: &mut Prng) -> Option<()> {
        match change {
            Change::Synthesize { examples, .. } => {
                let count = examples.len() as u64;
                let example = &mut examples[prng.below(count) as usize];
                let count = example.steps.len() as u64;
                let step = &mut example.steps[prng.below(count) as usize];
                step.wanted = Some((step.wanted? + 1 + prng.below(u64::from(ACTIONS) - 1) as u16) % ACTIONS);
            }
            Change::Merge { members, .. } => {
                let bit = members[0].domain[0].0;
                match prng.below(3) {
                    // A domain that is empty.
                    0 => members[0].domain.push((bit, true)),
                    // Domains that leave states out.
                    1 => members[1].domain.push(((bit + 1) % OBSERVATION_BITS, true)),
                    // The wrong expert for each side.
                    _ => {
                        members[0].slot = 2;
                        members[1].slot = 1;
                        differs_somewhere(&self.body(1), &self.body(2), bit).then_some(())?;
                    }
                }
            }
            Change::Macro { sequence, body } => {
                sequence.reverse();
                let other = compose(&[self.body(2), self.body(1)]).ok()?;
                (other.reads != body.reads || differs(&other.circuit, &body.circuit)).then_some(())?;
            }
            Change::Superoptimize { slot, circuit } => {
                // The circuit of one expert offered for another.
                *slot = 1 + prng.below(2) as u8;
                let old = self.circuit(*slot);
                (old.inputs() != circuit.inputs() || differs(old, circuit)).then_some(())?;
            }
            _ => return None,
        }
        Some(())
    }
}

/// The laboratory's experts: two safe ones that read and rewrite the action, two that are larger than needed.
fn expert(number: u32) -> Body {
    let mut list: Vec<Gate> = Vec::new();
    let reads: Vec<u16> = (0..OBSERVATION_BITS + 2).collect();
    let input = |index: usize| Signal::input(index);
    let mut gate = |op, a, b| {
        list.push(Gate { op, a, b });
        Signal::from_index(2 + reads.len() + list.len() - 1)
    };
    let outputs = match number {
        0 => {
            let first = gate(Op::And, input(0), input(1));
            let second = gate(Op::Xor, input(2), input(6));
            vec![gate(Op::Or, first, second), gate(Op::AndNot, input(3), input(7))]
        }
        1 => {
            let first = gate(Op::Xor, input(4), input(7));
            let second = gate(Op::Implies, input(5), input(6));
            vec![gate(Op::And, first, second), gate(Op::Nor, input(1), second)]
        }
        _ => {
            let twice = gate(Op::And, input(number as usize), input(0));
            let again = gate(Op::And, input(0), input(number as usize));
            let same = gate(Op::Or, twice, again);
            vec![gate(Op::Xor, same, input(4)), gate(Op::And, again, input(1))]
        }
    };
    let circuit = Netlist::new(reads.len(), list, outputs).expect("the laboratory's experts are small");
    let writes = vec![OBSERVATION_BITS, OBSERVATION_BITS + 1];
    Body { reads, writes, circuit, sticky: false, safe: number < 2 }
}

/// Every observation once, or walks through memory, with what the policy does.
fn examples_of(policy: &Policy, memory_bits: usize, prng: &mut Prng) -> Vec<Example> {
    let episodes: Vec<Vec<u64>> = if memory_bits == 0 {
        (0..64).map(|seen| vec![seen]).collect()
    } else {
        (0..12).map(|_| (0..8).map(|_| prng.below(64)).collect()).collect()
    };
    let example = |episode: Vec<u64>| {
        let mut player = Player::new(policy);
        player.begin();
        let steps = episode.into_iter().map(|seen| {
            let mut observation = Bits::ZERO;
            observation.set_field(0, usize::from(OBSERVATION_BITS), seen);
            ExampleStep { observation, wanted: Some(player.act(&observation)) }
        });
        Example { steps: steps.collect() }
    };
    episodes.into_iter().map(example).collect()
}

fn flip_gate(circuit: &Netlist, prng: &mut Prng) -> Option<Netlist> {
    let mut gates = circuit.gates().to_vec();
    if gates.is_empty() {
        return None;
    }
    let gate = &mut gates[prng.below(circuit.gates().len() as u64) as usize];
    gate.op = Op::ALL[(gate.op as usize + 1 + prng.below(7) as usize) % 8];
    Netlist::new(circuit.inputs(), gates, circuit.outputs().to_vec()).ok()
}

fn rows(inputs: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1u64 << inputs).map(move |row| (0..inputs).map(|input| row >> input & 1 == 1).collect())
}

/// Whether two circuits of one shape differ in some row; rows are tried one by one.
fn differs(one: &Netlist, other: &Netlist) -> bool {
    one.inputs() != other.inputs() || rows(one.inputs()).any(|row| one.evaluate(&row) != other.evaluate(&row))
}

/// Whether two experts that read the same bits differ on both sides of a bit.
fn differs_somewhere(one: &Body, other: &Body, bit: u16) -> bool {
    let place = one.reads.iter().position(|read| *read == bit);
    let side = |value: bool| {
        rows(one.circuit.inputs()).any(|row| {
            place.is_none_or(|place| row[place] == value)
                && one.circuit.evaluate(&row) != other.circuit.evaluate(&row)
        })
    };
    one.reads == other.reads && side(false) && side(true)
}

/// A write that belongs to the world, or a read that does not exist.
fn spoil_places(body: &mut Body, prng: &mut Prng) {
    if prng.bit() || body.reads.is_empty() {
        body.writes[0] = prng.below(u64::from(OBSERVATION_BITS)) as u16;
    } else {
        let last = body.reads.len() - 1;
        body.reads[last] = 512 + prng.below(60_000) as u16;
    }
}

/// What a battery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bad patches tried, by kind and fault.
    pub tried: BTreeMap<(PatchKind, Fault), u32>,
    /// Bad patches that passed their condition: each is a hole.
    pub passed: Vec<(PatchKind, Fault, Patch)>,
    /// Counterexamples that a solver or a table found, by condition.
    pub refuted: BTreeMap<&'static str, u32>,
}

/// Tries this many bad patches of all kinds in turn.
pub fn run(seed: u64, count: usize) -> Report {
    let laboratory = Laboratory::new();
    let mut prng = Prng::stream(seed, "bad patches");
    let mut report = Report::default();
    let mut tried = 0;
    while tried < count {
        let kind = PatchKind::ALL[tried % PatchKind::ALL.len()];
        let fault = Fault::ALL[prng.below(Fault::ALL.len() as u64) as usize];
        let Some(patch) = laboratory.bad_patch(kind, fault, &mut prng) else { continue };
        tried += 1;
        *report.tried.entry((kind, fault)).or_default() += 1;
        match verify(patch.clone(), &laboratory.context()) {
            Ok(_) => report.passed.push((kind, fault, patch)),
            Err(Rejection::Refuted { condition, .. }) => *report.refuted.entry(condition).or_default() += 1,
            Err(_) => {}
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_patches_of_every_kind_pass() {
        let laboratory = Laboratory::new();
        let mut prng = Prng::stream(1, "good patches");
        for kind in PatchKind::ALL {
            for _ in 0..8 {
                let patch = laboratory.good_patch(kind, &mut prng);
                let verified = verify(patch, &laboratory.context());
                assert!(verified.is_ok(), "{kind:?}: {:?}", verified.err());
            }
        }
    }

    #[test]
    fn of_twelve_thousand_bad_patches_none_passes() {
        let report = run(1, 12_000);
        assert!(report.passed.is_empty(), "{:?}", report.passed[0]);
        // Every kind is spoiled in at least three ways, and every way occurs.
        for kind in PatchKind::ALL {
            assert!(3 <= report.tried.keys().filter(|(of, _)| *of == kind).count(), "{kind:?}");
        }
        for fault in Fault::ALL {
            assert!(report.tried.keys().any(|(_, by)| *by == fault), "{fault:?}");
        }
        // Each condition that clauses or tables decide has caught some, so none of them is idle.
        let conditions = [
            "BAD avoidance",
            "action range",
            "agreement on a domain",
            "composition",
            "domains cover all states",
            "equivalence",
            "halves of the bucket",
            "trace constraints",
        ];
        assert!(
            conditions.iter().all(|condition| report.refuted.contains_key(condition)),
            "{:?}",
            report.refuted
        );
    }
}
