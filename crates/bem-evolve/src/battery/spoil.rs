//! Ways to spoil a good patch. What comes out is wrong by construction, or by an evaluation that shares no code with
//! the conditions. Clause: SCC-3.

use super::Fault;
use super::laboratory::{ACTIONS, DIVIDED, FREE_SLOT, Laboratory, OBSERVATION_BITS};
use super::play::{Recital, exceed_sequence};
use crate::patch::{Body, Change, Example, Form, Patch};
use bem_base::digest::Digest;
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Netlist, Op, Signal};
use bem_machine::held::Adaptation;
use bem_machine::route::directory::RouteInput;
use bem_synth::policy::{Player, Policy};
use bem_synth::statement::Statement;

impl Laboratory {
    /// A spoiled patch; none if this form cannot be spoiled this way, or if it would still be right.
    pub fn bad_patch(&self, form: Form, fault: Fault, prng: &mut Prng) -> Option<Patch> {
        let mut patch = self.good_patch(form, prng);
        match fault {
            Fault::WrongParent => {
                let mut bytes = *patch.parent.as_bytes();
                bytes[prng.below(32) as usize] ^= 1 << prng.below(8);
                patch.parent = Digest::from_bytes(bytes);
            }
            Fault::Replayed => patch.serial = prng.below(8),
            Fault::Flipped => self.flip(&mut patch.change, prng)?,
            Fault::BoundExceeded => self.exceed(&mut patch.change, prng),
            Fault::ActionOutOfRange => {
                let (Change::Synthesize { policy, .. } | Change::Play { policy, .. }) = &mut patch.change
                else {
                    return None;
                };
                // Both bits of the code are one input: the code is 0 or 3.
                let mut outputs = policy.circuit().outputs().to_vec();
                let inputs = policy.circuit().inputs() as u64;
                outputs[..2].fill(Signal::input(prng.below((0 < inputs).then_some(inputs)?) as usize));
                let circuit =
                    Netlist::new(policy.circuit().inputs(), policy.circuit().gates().to_vec(), outputs);
                *policy = Policy::new(circuit.ok()?, policy.reads().to_vec(), policy.memory_bits(), ACTIONS)?;
                // A macro that claims nothing would be refused for that.
                if let Change::Synthesize { examples, .. } = &mut patch.change {
                    examples.clear();
                }
            }
            Fault::WrongLabel => self.mislabel(&mut patch.change, prng)?,
            Fault::WrongStatement => {
                let Change::Synthesize { statement, .. } = &mut patch.change else { return None };
                misstate(statement, prng)?;
            }
            Fault::WrongExceptions => {
                let Change::Synthesize { exceptions, .. } = &mut patch.change else { return None };
                *exceptions += 1 + prng.below(5_000) as u32;
            }
            // The fault is in the evidence, not in the patch.
            Fault::NotBetter => return None,
        }
        Some(patch)
    }

    fn flip(&self, change: &mut Change, prng: &mut Prng) -> Option<()> {
        match change {
            Change::Split { cuts, after } => {
                // The result of dividing by another bit.
                let RouteInput::State(bit) = cuts[0].1[0] else { return None };
                let other = (0..OBSERVATION_BITS).find(|other| ![bit, DIVIDED].contains(other))?;
                *after = self.divided(&[(cuts[0].0, vec![RouteInput::State(other)])])?;
            }
            Change::Merge { body, .. } => {
                let flipped = flip_gate(&body.circuit, prng)?;
                body.circuit = differs(&body.circuit, &flipped).then_some(flipped)?;
            }
            Change::Superoptimize { circuit, .. } => {
                let flipped = flip_gate(circuit, prng)?;
                *circuit = differs(circuit, &flipped).then_some(flipped)?;
            }
            Change::TeachEdit { difficulty, .. } => *difficulty = difficulty.plus(Fixed::from_raw(1)),
            Change::Synthesize { policy, examples, .. } | Change::Play { policy, examples, .. } => {
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
            // What is done instead of a forbidden action is forbidden too.
            Change::Guard { rules } => rules[0].instead = rules[0].forbidden,
            // A directory in which nothing was joined.
            Change::Join { after, .. } => *after = self.family().directory().clone(),
            Change::Retire { .. } | Change::Reset { .. } | Change::Hold { .. } => return None,
        }
        Some(())
    }

    fn exceed(&self, change: &mut Change, prng: &mut Prng) {
        match change {
            Change::Retire { slot } => *slot = [0, free_slot(prng)][prng.below(2) as usize],
            Change::Reset { bucket, before } => match prng.below(2) {
                0 => *bucket = 2 + prng.below(65_534) as u16,
                // Nothing came before the first step, so that it was forgotten already.
                _ => *before = 0,
            },
            Change::Hold { actions, rule } => match prng.below(4) {
                0 => actions.truncate(1),
                1 => actions.push(0),
                2 => actions[1] = ACTIONS + prng.below(60_000) as u16,
                // What adapts to no context is held where there are two.
                _ => *rule = Adaptation::Index,
            },
            Change::Guard { rules } => {
                let count = rules.len() as u64;
                let rule = &mut rules[prng.below(count) as usize];
                match prng.below(3) {
                    0 => rule.forbidden = ACTIONS + prng.below(60_000) as u16,
                    1 => rule.instead = ACTIONS + prng.below(60_000) as u16,
                    _ => rule.seen = rule.seen.with(usize::from(OBSERVATION_BITS), true),
                }
            }
            Change::Join { pairs, .. } => {
                pairs[0] = [(0, 2 + prng.below(9) as u16), (1, 1)][prng.below(2) as usize];
            }
            Change::Split { cuts, after } => {
                let unseen = OBSERVATION_BITS + prng.below(250) as u16;
                match prng.below(4) {
                    0 => cuts[0].0 = 2 + prng.below(65_534) as u16,
                    1 => cuts[0].1 = vec![RouteInput::State(2_000 + prng.below(60_000) as u16)],
                    2 => cuts[0].1.clear(),
                    // A bit that no world shows, and the directory that really follows.
                    _ => {
                        cuts[0].1 = vec![RouteInput::State(unseen)];
                        *after = self.divided(cuts).unwrap_or_else(|| after.clone());
                    }
                }
            }
            Change::Merge { body, members } => match prng.below(4) {
                0 => spoil_places(body, prng),
                1 => members.truncate(1),
                2 => members[1].slot = members[0].slot,
                _ => members[0].slot = free_slot(prng),
            },
            // Not smaller than what it replaces.
            Change::Superoptimize { slot, circuit } => match prng.below(2) {
                0 => *circuit = self.circuit(*slot).clone(),
                _ => *slot = free_slot(prng),
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
            Change::Play { sequence, .. } if prng.bit() => exceed_sequence(sequence, prng),
            Change::Synthesize { policy, .. } | Change::Play { policy, .. } => {
                let (circuit, memory) = (policy.circuit().clone(), policy.memory_bits());
                let reads: Vec<u16> = policy.reads().iter().map(|bit| bit + OBSERVATION_BITS).collect();
                let spoiled = match prng.below(2) {
                    0 if !reads.is_empty() => Policy::new(circuit, reads, memory, ACTIONS),
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
            Change::Play { .. } => *change = Recital::draw(prng).into_false_change(prng)?,
            // A directory that tests something else.
            Change::Join { after, .. } => {
                after.join(0, 1).ok()?;
                after.split(0, &[RouteInput::State(other_than(DIVIDED, prng))]).ok()?;
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

/// Says something else about one row, or about all: another action, another next memory, another bit, another size.
fn misstate(statement: &mut Statement, prng: &mut Prng) -> Option<()> {
    let Statement::Machine { state_bits, seen, rows } = statement else { return None };
    match prng.below(4) {
        0 => {
            let place = prng.below(rows.len() as u64) as usize;
            let value = rows.values_mut().nth(place)?;
            // Another action that exists, or another next memory.
            match *state_bits {
                1 if prng.bit() => *value ^= 4,
                _ => *value = (*value & !3) | (((*value & 3) + 1 + prng.below(2)) % 3),
            }
        }
        1 => {
            // Two bits change places; a table that does not care about them would say the same.
            let (one, other) = (prng.below(6) as usize, prng.below(6) as usize);
            let swap = |key: u64| {
                let [a, b] = [one, other].map(|bit| key >> (usize::from(*state_bits) + bit) & 1);
                key ^ ((a ^ b) << (usize::from(*state_bits) + one)
                    | (a ^ b) << (usize::from(*state_bits) + other))
            };
            let is_same =
                one == other || rows.iter().all(|(key, value)| rows.get(&swap(*key)) == Some(value));
            (!is_same).then_some(())?;
            seen.swap(one, other);
        }
        2 => *state_bits += 1 + prng.below(3) as u8,
        _ => seen[prng.below(6) as usize] = OBSERVATION_BITS + prng.below(60_000) as u16,
    }
    Some(())
}

/// A slot without an expert.
pub(super) fn free_slot(prng: &mut Prng) -> u8 {
    FREE_SLOT + prng.below(256 - u64::from(FREE_SLOT)) as u8
}

/// A bit of the observation that is not this one.
pub(super) fn other_than(bit: u16, prng: &mut Prng) -> u16 {
    (bit + 1 + prng.below(u64::from(OBSERVATION_BITS) - 1) as u16) % OBSERVATION_BITS
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
