//! The laboratory: tables with a few experts, and patches against them that are right.
//!
//! Clauses: SCC-2, SCC-3.

use super::play::{PLAYERS, Recital, player};
use super::spoil::other_than;
use crate::apply::TablesError;
use crate::apply::{Live, Tables};
use crate::condition::Context;
use crate::condition::circuits::body_of;
use crate::patch::{Body, Change, Example, ExampleStep, ExpectedEffects, Form, Member, Patch};
use crate::propose::{merge_by_bit, patch};
use crate::score::PoxState;
use crate::verify::{AcceptedPatch, accept, verify};
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Field, Pattern, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Gate, Netlist, Op, Signal};
use bem_circuit::simplify::simplify;
use bem_machine::config::GenesisConfig;
use bem_machine::family::Family;
use bem_machine::guard::Rule;
use bem_machine::held::Adaptation;
use bem_machine::machine::{Edit, Machine, Undo};
use bem_machine::memory::context::FamilyIndex;
use bem_machine::route::directory::{Directory, RouteInput};
use bem_synth::function::build_word_table;
use bem_synth::policy::{Player, Policy};
use bem_synth::statement::Statement;
use std::collections::BTreeMap;

/// Bits that can be seen in the laboratory.
pub(super) const OBSERVATION_BITS: u16 = 6;
/// Actions there; not a power of two, so that a code can be out of range.
pub(super) const ACTIONS: u16 = 3;
/// Experts that work on the action that another one left, in the first slots.
pub(super) const EDITORS: u8 = 4;
/// The bit that divides the laboratory's buckets.
pub(super) const DIVIDED: u16 = 3;
/// What its guards forbid: an action for what is seen, of which some bits may be any.
const FORBIDDEN: [(&str, u16); 3] = [("101000", 1), ("1001--", 2), ("--00-1", 0)];
/// The only family.
const FAMILY: FamilyIndex = FamilyIndex(0);
/// The first slot without an expert.
pub(super) const FREE_SLOT: u8 = EDITORS + 1 + PLAYERS;

/// Tables with a few experts, and good patches against them.
#[derive(Clone, Debug)]
pub struct Laboratory {
    config: GenesisConfig,
    tables: Tables,
    machine: Live,
}

impl Default for Laboratory {
    fn default() -> Laboratory {
        Laboratory::new()
    }
}

impl Laboratory {
    /// A family with four experts that edit the action and three that play, after one applied patch for each subject.
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
        let mut open: Machine = Machine::new(config.clone(), 1);
        let index = open.take_up(&shape).expect("the laboratory's world is small");
        let layout = open.family(index).expect("just added").layout().clone();
        let editors = (0..u32::from(EDITORS)).map(expert);
        let players = (0..PLAYERS).map(|number| Body::from_policy(&player(number), &layout));
        for body in editors.chain(players) {
            open.install(index, body.to_parts(0)).expect("the laboratory's experts are small");
        }
        let by = vec![RouteInput::State(DIVIDED)];
        open.edit(index, Edit::Split { cuts: vec![(0, by)] }).expect("the bit can be seen");
        let mut bytes = Writer::new();
        open.encode(&mut bytes);
        let machine = Machine::decode(&mut Reader::new(bytes.as_bytes())).expect("just written");
        let mut laboratory = Laboratory { tables: Tables::default(), machine, config };
        // Patches of both subjects are applied, so that there are serials that can be replayed.
        let first = laboratory.smaller(4, 7);
        laboratory.enforce(first);
        let held = laboratory.make(7, Change::Hold { actions: vec![1, 1], rule: Adaptation::Fixed });
        laboratory.enforce(held);
        laboratory
    }

    /// Puts a patch that is right into force.
    fn enforce(&mut self, patch: Patch) {
        let improvement = super::good_improvement(&patch.change);
        let verified = verify(patch, &self.context()).expect("the laboratory's own patches are right");
        let pox = PoxState::new(&self.config);
        let accepted = accept(verified, improvement, Fixed::ONE, &pox).expect("it has good evidence");
        self.apply(accepted).expect("nothing has changed since");
    }

    /// What patches are judged against.
    pub fn context(&self) -> Context<'_> {
        Context { config: &self.config, tables: &self.tables, family: Some(self.family()) }
    }

    /// Applies an accepted patch.
    pub(crate) fn apply(&mut self, accepted: AcceptedPatch) -> Result<Option<Undo>, TablesError> {
        let patch = accepted.patch();
        self.tables.check_current(patch, self.machine.family(FAMILY).ok())?;
        let undo = match &patch.change {
            Change::TeachEdit { tree, .. } => self.tables.add_template(&self.config, tree).map(|()| None)?,
            _ => self.machine.apply(&accepted)?,
        };
        self.tables.note_applied(patch);
        Ok(undo)
    }

    /// The machine.
    pub fn machine(&self) -> &Live {
        &self.machine
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
        self.machine.family(FAMILY).expect("the laboratory has one family")
    }

    fn make(&self, serial: u64, change: Change) -> Patch {
        patch(&self.tables, Some(self.family()), serial, 0, change, ExpectedEffects::default())
            .expect("the family exists")
    }

    fn smaller(&self, slot: u8, serial: u64) -> Patch {
        let circuit = simplify(self.circuit(slot));
        self.make(serial, Change::Superoptimize { slot, circuit })
    }

    pub(super) fn circuit(&self, slot: u8) -> &Netlist {
        self.family().expert(usize::from(slot)).expect("the slot is taken").placed().circuit()
    }

    pub(super) fn body(&self, slot: u8) -> Body {
        body_of(self.family().expert(usize::from(slot)).expect("the slot is taken"))
            .expect("it uses STATE only")
    }

    /// A patch of this form that is right.
    pub fn good_patch(&self, form: Form, prng: &mut Prng) -> Patch {
        let serial = 8 + prng.below(1_000);
        let bit = prng.below(u64::from(OBSERVATION_BITS)) as u16;
        let change = match form {
            Form::Retire => Change::Retire { slot: 1 + prng.below(u64::from(EDITORS)) as u8 },
            Form::Reset => Change::Reset { bucket: prng.below(2) as u16, before: 1 + prng.below(1_000) },
            Form::Split => {
                let cuts = vec![(prng.below(2) as u16, vec![RouteInput::State(other_than(DIVIDED, prng))])];
                Change::Split { after: self.divided(&cuts).expect("the bit is not tested yet"), cuts }
            }
            Form::Hold => {
                // The first bucket holds action 1 already.
                let actions = vec![2 * prng.below(2) as u16, prng.below(u64::from(ACTIONS)) as u16];
                Change::Hold { actions, rule: Adaptation::Fixed }
            }
            Form::Guard => {
                let rule = |(seen, forbidden): &(&str, u16)| Rule {
                    seen: Pattern::from_text(seen).expect("zeros, ones and dashes"),
                    forbidden: *forbidden,
                    instead: (forbidden + 1) % ACTIONS,
                };
                let count = 1 + prng.below(FORBIDDEN.len() as u64) as usize;
                Change::Guard { rules: FORBIDDEN[..count].iter().map(rule).collect() }
            }
            Form::Merge => {
                let body = merge_by_bit(&self.body(1), &self.body(2), bit).expect("both write the action");
                let member = |slot, value| Member { slot, domain: vec![(bit, value)] };
                Change::Merge { members: vec![member(1, false), member(2, true)], body }
            }
            Form::Join => {
                let mut after = self.family().directory().clone();
                after.join(0, 1).expect("they are the two sides of one test");
                Change::Join { pairs: vec![(0, 1)], after }
            }
            Form::Superoptimize => return self.smaller(3, serial),
            Form::TeachEdit => {
                let tree =
                    format!("repeat{{times={}}}(parity{{n={}}})", 1 + prng.below(8), 2 + prng.below(12));
                let difficulty = bem_teacher::template::measure(&tree).expect("the tree is right").difficulty;
                Change::TeachEdit { template: 0, tree, difficulty }
            }
            Form::Play => Recital::draw(prng).into_change(),
            Form::Synthesize => self.synthesized(prng),
        };
        self.make(serial, change)
    }

    /// The directory after these divisions.
    pub(super) fn divided(&self, cuts: &[(u16, Vec<RouteInput>)]) -> Option<Directory> {
        let mut after = self.family().directory().clone();
        cuts.iter().all(|(bucket, by)| after.split(*bucket, by).is_ok()).then_some(after)
    }

    /// A random table as a policy, with or without one bit of memory, and what it does as its examples.
    pub(crate) fn synthesized(&self, prng: &mut Prng) -> Change {
        let memory_bits = prng.below(2) as usize;
        let seen = usize::from(OBSERVATION_BITS);
        let rows = 1u64 << (seen + memory_bits);
        let actions: BTreeMap<u64, u64> =
            (0..rows).map(|row| (row, prng.below(u64::from(ACTIONS)))).collect();
        let next: BTreeMap<u64, u64> = (0..rows).map(|row| (row, prng.below(2))).collect();
        let mut builder = Builder::new(seen + memory_bits);
        let inputs: Vec<Signal> = (0..seen + memory_bits).map(Signal::input).collect();
        let action = build_word_table(&mut builder, &inputs, &actions, 2);
        let memory = build_word_table(&mut builder, &inputs, &next, memory_bits);
        let policy = Policy::close(builder, seen, ACTIONS, &action, &memory).expect("the table is small");
        let examples = examples_of(&policy, memory_bits, prng);
        // The same table in the words of a statement: below what is seen is what is remembered.
        let key = |row: u64| (row & 63) << memory_bits | row >> seen;
        let said = |row: u64| (key(row), actions[&row] | (next[&row] & ((1 << memory_bits) - 1)) << 2);
        let statement = Statement::Machine {
            state_bits: memory_bits as u8,
            seen: (0..OBSERVATION_BITS).collect(),
            rows: (0..rows).map(said).collect(),
        };
        Change::Synthesize { policy, statement, examples, exceptions: 0 }
    }
}

/// What is seen, from its number.
pub(super) fn observation(seen: u64) -> Bits {
    let mut observation = Bits::ZERO;
    observation.set_field(0, usize::from(OBSERVATION_BITS), seen);
    observation
}

/// The laboratory's experts: two that read and rewrite the action, two that are larger than needed.
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
    Body { reads, writes, circuit, sticky: false }
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
            let observation = observation(seen);
            ExampleStep { observation, wanted: Some(player.act(&observation)) }
        });
        Example { steps: steps.collect() }
    };
    episodes.into_iter().map(example).collect()
}
