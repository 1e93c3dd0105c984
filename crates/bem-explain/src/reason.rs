//! Why this action: the facts that force it, and the nearest change of what is seen that would change it.
//!
//! Both are questions to the prover, about observations that can occur. What forces the action is found by leaving out one
//! feature (or input, where features have no names) after the other and asking whether any other action is still possible;
//! what is left cannot be made smaller. Then every number that is left is given as wide a range as still forces the action:
//! one range around what is seen, whatever bits of its code the circuit reads; several only where the inputs do not tell which
//! of them is seen. The nearest change is asked for with one feature, then with two, and so on.

use crate::observations::{Feature, Observations, Unit};
use crate::{Meaning, Topic, Words, action_of};
use bem_circuit::netlist::Netlist;
use bem_data::values::runs;
use bem_prover::encode::{Wire, encode_circuit, fresh_inputs};
use bem_prover::solver::Profile;
use bem_prover::{Budget, Cnf, Literal, Outcome, Solver};
use bem_synth::policy::{Policy, action_bits};
use std::collections::BTreeSet;

/// Conflicts that one question may take.
pub const CONFLICTS: u32 = 100_000;
/// More changes than this are no near ones.
const CHANGES_MAX: usize = 16;
/// Observations that are looked at to say how far a change may go.
const TRIED_MAX: usize = 4_096;

/// Something about the observation or the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// An input has this value.
    Input {
        /// Its place.
        place: usize,
        /// What it is.
        value: bool,
    },
    /// A named feature, an earlier action or the number of steps has one of these values.
    Group {
        /// What it is.
        topic: Topic,
        /// The values, rising.
        values: Vec<usize>,
    },
}

/// Why a policy acts as it does on one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The action.
    pub action: u16,
    /// What forces it: no other action is possible whatever all else is.
    pub forced_by: Vec<Finding>,
    /// Whether none of them can be left out; false where the prover's budget ran out on one of them.
    pub is_minimal: bool,
    /// The nearest change.
    pub nearest: Nearest,
    /// Whether this is said of named features and of what they can show.
    pub of_features: bool,
    /// Whether this is said of memory that holds actions, and it is not proven that it holds no other codes: what nobody met
    /// may be answered by a code beyond the last action, which is done and remembered as it is.
    pub of_actions: bool,
}

/// The nearest change of the observation that changes the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nearest {
    /// With these instead the action is another.
    Change {
        /// What changes; whatever of it is taken, the action is the one below.
        to: Vec<Finding>,
        /// The action then.
        action: u16,
        /// Whether no change of fewer features (or inputs) alters the action; false where the prover's budget ran out.
        is_nearest: bool,
    },
    /// With what is remembered now, no observation changes the action.
    Never,
    /// Nothing within the bounds of the search.
    NotFound,
}

/// The reason for the policy's action on this input: the observation bits that it reads, then its memory. An input that the
/// named features cannot show is explained bit by bit.
pub fn reason(policy: &Policy, words: &Words<'_>, input: &[bool]) -> Reason {
    reason_within(policy, words, input, CONFLICTS)
}

/// The same, where every question to the prover may take so many conflicts.
pub fn reason_within(policy: &Policy, words: &Words<'_>, input: &[bool], conflicts: u32) -> Reason {
    let code: Vec<usize> = (0..action_bits(policy.actions())).collect();
    let circuit = policy.circuit().cone(&code);
    let (mut support, answer) = (circuit.support(), circuit.evaluate(input));
    // Whether there was a step says that nothing is kept of it, whoever reads that.
    if support.iter().any(|place| 0 < words.places[*place].back()) {
        let is_begun = |place: &usize| matches!(words.places[*place], Meaning::Begun(_));
        support.extend((0..words.places.len()).filter(is_begun));
        support.sort_unstable();
        support.dedup();
    }
    let mut observations = Observations::new(words, &support);
    let mut can_occur = observations.can_occur(input);
    // Where the actions that are remembered here are actions, reasons are about such memory alone.
    let plain = Words { holds_codes_beyond: false, ..words.clone() };
    let is_action = |unit: &Unit| matches!(unit.topic(), Some(Topic::Action { .. }));
    let mut of_actions = false;
    if words.holds_codes_beyond && observations.units().iter().any(is_action) {
        let narrower = Observations::new(&plain, &support);
        if narrower.can_occur(input) {
            (observations, can_occur, of_actions) = (narrower, true, true);
        }
    }
    let words = if of_actions { &plain } else { words };
    if !can_occur {
        observations = Observations::free(&support);
    }
    let homes = observations.units().iter().map(|unit| homes(words, unit, input)).collect();
    let case =
        Case { circuit: &circuit, observations: &observations, input, answer: &answer, homes, conflicts };
    let (forced_by, is_minimal) = case.forcing();
    let nearest = case.nearest(policy.reads().len());
    let of_features = words.names.is_some() && can_occur;
    Reason { action: action_of(&answer), forced_by, is_minimal, nearest, of_features, of_actions }
}

/// One input of a circuit and its answer.
struct Case<'a> {
    circuit: &'a Netlist,
    observations: &'a Observations,
    input: &'a [bool],
    answer: &'a [bool],
    /// For every unit that is a feature, the values that all inputs about it allow, those that the action does not read too.
    homes: Vec<Vec<usize>>,
    conflicts: u32,
}

/// A solver that knows the circuit and what can occur.
struct Question {
    solver: Solver,
    inputs: Vec<Literal>,
    /// Says "another answer".
    differs: Literal,
    /// For every unit that is a feature, one literal a class: at least one of them holds, and one that holds says what the
    /// feature's inputs are.
    classes: Vec<Vec<Literal>>,
}

impl Case<'_> {
    /// The question about another answer, as a formula that more can be added to.
    fn formula(&self) -> (Cnf, Vec<Literal>, Literal, Vec<Vec<Literal>>) {
        let mut cnf = Cnf::new(0);
        let wires = fresh_inputs(&mut cnf, self.circuit.inputs());
        let literal = |wire: &Wire| match wire {
            Wire::Literal(literal) => Some(*literal),
            Wire::Constant(_) => None,
        };
        let inputs: Vec<Literal> = wires.iter().filter_map(literal).collect();
        let outputs = encode_circuit(&mut cnf, self.circuit, &wires);
        let differs = cnf.fresh();
        // A constant output is what it is on this input too, so that it never differs.
        let wrong = outputs.iter().zip(self.answer).filter_map(|(wire, bit)| Some(literal(wire)?.xor(*bit)));
        let clause: Vec<Literal> = std::iter::once(!differs).chain(wrong).collect();
        cnf.add(&clause);
        let mut classes = Vec::with_capacity(self.observations.units().len());
        for unit in self.observations.units() {
            let Unit::Feature(feature) = unit else {
                classes.push(Vec::new());
                continue;
            };
            let own: Vec<Literal> = feature.classes.iter().map(|_| cnf.fresh()).collect();
            for (class, literal) in feature.classes.iter().zip(&own) {
                for (place, bit) in feature.places.iter().zip(&class.bits) {
                    cnf.add(&[!*literal, inputs[*place].xor(!bit)]);
                }
            }
            cnf.add(&own);
            classes.push(own);
        }
        // Nothing is kept of a step that there was not.
        for (places, needed) in self.observations.dependent() {
            places.iter().for_each(|place| cnf.add(&[inputs[needed], !inputs[*place]]));
        }
        (cnf, inputs, differs, classes)
    }

    fn question(&self) -> Question {
        let (cnf, inputs, differs, classes) = self.formula();
        let mut solver = Solver::new(Profile::Fast);
        solver.add_all(&cnf);
        Question { solver, inputs, differs, classes }
    }

    /// What every unit is in this case.
    fn state(&self, unit: usize) -> usize {
        self.observations.units()[unit].state(self.input).unwrap_or(0)
    }

    /// A value of a feature in this case.
    fn home(&self, unit: usize) -> usize {
        self.homes[unit].first().copied().unwrap_or(0)
    }

    /// What forces the answer, and whether nothing of it can be left out.
    fn forcing(&self) -> (Vec<Finding>, bool) {
        let mut ask = self.question();
        let units = self.observations.units();
        // What every unit is allowed to be; nothing is said of one that is left out.
        let mut allowed: Vec<Option<BTreeSet<usize>>> =
            (0..units.len()).map(|unit| Some(BTreeSet::from([self.state(unit)]))).collect();
        let mut is_minimal = true;
        // What was before the first step is left out first: the number of steps says it all.
        let steps = (0..units.len()).find(|unit| units[*unit].topic() == Some(Topic::Begun));
        let steps = steps.and_then(|unit| self.homes[unit].last().copied()).unwrap_or(usize::MAX);
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.sort_by_key(|unit| units[*unit].topic().is_none_or(|topic| topic.back() <= steps));
        for unit in order {
            let kept = allowed[unit].take();
            match self.is_forced(&mut ask, &allowed) {
                Some(true) => {}
                other => {
                    is_minimal &= other.is_some();
                    allowed[unit] = kept;
                }
            }
        }
        for unit in 0..units.len() {
            if let (Unit::Feature(feature), true) = (&units[unit], allowed[unit].is_some()) {
                self.widen(&mut ask, &mut allowed, unit, feature);
            }
        }
        let found = |unit: usize| Some(around(&units[unit], allowed[unit].as_ref()?, &self.homes[unit]));
        ((0..units.len()).filter_map(found).collect(), is_minimal)
    }

    /// Whether the answer is the only one where every unit is as allowed; nothing where the budget ran out.
    fn is_forced(&self, ask: &mut Question, allowed: &[Option<BTreeSet<usize>>]) -> Option<bool> {
        let mut assumed = vec![ask.differs];
        for (place, (unit, allowed)) in self.observations.units().iter().zip(allowed).enumerate() {
            let Some(allowed) = allowed else { continue };
            match unit {
                Unit::Free(input) => assumed.push(ask.inputs[*input].xor(!allowed.contains(&1))),
                Unit::Feature(feature) => {
                    let excluded = (0..feature.classes.len()).filter(|class| !allowed.contains(class));
                    assumed.extend(excluded.map(|class| !ask.classes[place][class]));
                }
            }
        }
        match ask.solver.solve(&assumed, Budget::conflicts(self.conflicts)) {
            Outcome::Unsatisfiable { .. } => Some(true),
            Outcome::Satisfiable { .. } => Some(false),
            Outcome::Undecided(_) => None,
        }
    }

    /// Lets a feature be as much as still forces the answer: a number in both directions, a choice word by word.
    fn widen(
        &self,
        ask: &mut Question,
        allowed: &mut [Option<BTreeSet<usize>>],
        unit: usize,
        feature: &Feature,
    ) {
        for way in ways(feature, self.home(unit)) {
            let before = allowed[unit].clone().unwrap_or_default();
            // A number's range ends somewhere in one direction, which is found by halving; every word is asked for.
            if feature.is_number {
                let (mut good, mut bad) = (0, way.len() + 1);
                while good + 1 < bad {
                    let middle = usize::midpoint(good, bad);
                    allowed[unit] = Some(before.iter().chain(&way[..middle]).copied().collect());
                    match self.is_forced(ask, allowed) {
                        Some(true) => good = middle,
                        _ => bad = middle,
                    }
                }
                allowed[unit] = Some(before.iter().chain(&way[..good]).copied().collect());
                continue;
            }
            for class in way {
                let before = allowed[unit].clone().unwrap_or_default();
                allowed[unit] = Some(before.iter().copied().chain([class]).collect());
                if self.is_forced(ask, allowed) != Some(true) {
                    allowed[unit] = Some(before);
                }
            }
        }
    }

    /// The nearest change of what is seen; what is remembered stays.
    fn nearest(&self, observed: usize) -> Nearest {
        let units = self.observations.units();
        let is_seen = |unit: &Unit| match unit {
            Unit::Free(place) => *place < observed,
            Unit::Feature(feature) => feature.topic.is_seen(),
        };
        let seen: Vec<usize> = (0..units.len()).filter(|unit| is_seen(&units[*unit])).collect();
        let bound = seen.len().min(CHANGES_MAX);
        let (mut cnf, inputs, differs, _) = self.formula();
        let fixed: Vec<Literal> = (units.iter().filter(|unit| !is_seen(unit)))
            .flat_map(Unit::places)
            .map(|place| inputs[place].xor(!self.input[place]))
            .collect();
        // The number of changed units is counted in unary: the literal at place n follows from more than n changes.
        let mut more: Vec<Literal> = (0..=bound).map(|_| cnf.fresh()).collect();
        more.iter().for_each(|literal| cnf.add(&[!*literal]));
        for unit in &seen {
            let changed = cnf.fresh();
            for place in units[*unit].places() {
                cnf.add(&[inputs[place].xor(!self.input[place]), changed]);
            }
            let next: Vec<Literal> = (0..=bound).map(|_| cnf.fresh()).collect();
            cnf.add(&[!changed, next[0]]);
            for count in 0..=bound {
                cnf.add(&[!more[count], next[count]]);
                if count < bound {
                    cnf.add(&[!more[count], !changed, next[count + 1]]);
                }
            }
            more = next;
        }
        let mut solver = Solver::new(Profile::Fast);
        solver.add_all(&cnf);
        let budget = Budget::conflicts(self.conflicts);
        let assume = |literals: &[Literal]| -> Vec<Literal> {
            std::iter::once(differs).chain(fixed.iter().copied()).chain(literals.iter().copied()).collect()
        };
        match solver.solve(&assume(&[]), budget) {
            Outcome::Unsatisfiable { .. } => return Nearest::Never,
            Outcome::Undecided(_) => return Nearest::NotFound,
            Outcome::Satisfiable { .. } => {}
        }
        let mut is_nearest = true;
        // First with one change, then with more.
        for more in more.iter().take(bound + 1).skip(1) {
            match solver.solve(&assume(&[!*more]), budget) {
                Outcome::Unsatisfiable { .. } => {}
                Outcome::Undecided(_) => is_nearest = false,
                Outcome::Satisfiable { model } => {
                    return self.change(&seen, &model[..self.circuit.inputs()], is_nearest);
                }
            }
        }
        Nearest::NotFound
    }

    /// A change that alters the answer, made as small as it can be feature by feature, and then as wide as it may be.
    fn change(&self, seen: &[usize], model: &[bool], is_nearest: bool) -> Nearest {
        let units = self.observations.units();
        let to = |unit: &usize| units[*unit].state(model).unwrap_or(0);
        let mut changes: Vec<(usize, usize)> = (seen.iter())
            .filter(|unit| to(unit) != self.state(**unit))
            .map(|unit| (*unit, to(unit)))
            .collect();
        // Of a feature, the nearest value that does it.
        let mut targets: Vec<usize> = vec![0; changes.len()];
        for place in 0..changes.len() {
            let (unit, class) = changes[place];
            let Unit::Feature(feature) = &units[unit] else { continue };
            let alters = |value: &usize| {
                let mut tried = changes.clone();
                tried[place].1 = feature.class_of(*value);
                self.evaluate(&tried) != self.answer
            };
            let nearest = nearest_first(feature, self.home(unit)).into_iter().find(alters);
            targets[place] = nearest.unwrap_or(feature.classes[class].values[0]);
            changes[place].1 = feature.class_of(targets[place]);
        }
        let answer = self.evaluate(&changes);
        let mut allowed: Vec<BTreeSet<usize>> =
            changes.iter().map(|(_, state)| BTreeSet::from([*state])).collect();
        for place in 0..changes.len() {
            let Unit::Feature(feature) = &units[changes[place].0] else { continue };
            for way in ways(feature, targets[place]) {
                for class in way {
                    if class == self.state(changes[place].0) {
                        if feature.is_number {
                            break;
                        }
                        continue;
                    }
                    let mut wider = allowed.clone();
                    wider[place] = BTreeSet::from([class]);
                    if self.all_give(&changes, &wider, &answer) {
                        allowed[place].insert(class);
                    } else if feature.is_number {
                        break;
                    }
                }
            }
        }
        let said = |place: usize| around(&units[changes[place].0], &allowed[place], &[targets[place]]);
        let to = (0..changes.len()).map(said).collect();
        Nearest::Change { to, action: action_of(&answer), is_nearest }
    }

    /// Whether every way to be what is allowed gives this answer; false where there are too many to try.
    fn all_give(&self, changes: &[(usize, usize)], allowed: &[BTreeSet<usize>], answer: &[bool]) -> bool {
        let count = allowed.iter().fold(1usize, |count, states| count.saturating_mul(states.len()));
        let gives = |number: usize| {
            let mut rest = number;
            let digit = |((unit, _), states): (&(usize, usize), &BTreeSet<usize>)| {
                let state = states.iter().nth(rest % states.len()).copied().unwrap_or(0);
                rest /= states.len();
                (*unit, state)
            };
            let tried: Vec<(usize, usize)> = changes.iter().zip(allowed).map(digit).collect();
            self.evaluate(&tried) == answer
        };
        count <= TRIED_MAX && (0..count).all(gives)
    }

    /// The answer where these units are changed.
    fn evaluate(&self, changes: &[(usize, usize)]) -> Vec<bool> {
        let mut input = self.input.to_vec();
        for (unit, state) in changes {
            let inputs = self.observations.units()[*unit].inputs(*state);
            inputs.into_iter().for_each(|(place, bit)| input[place] = bit);
        }
        self.circuit.evaluate(&input)
    }
}

/// What is said of a unit that is one of these.
pub(crate) fn finding(unit: &Unit, allowed: &BTreeSet<usize>) -> Finding {
    match unit {
        Unit::Free(place) => Finding::Input { place: *place, value: allowed.contains(&1) },
        Unit::Feature(feature) => {
            let mut values: Vec<usize> =
                allowed.iter().flat_map(|class| feature.classes[*class].values.iter().copied()).collect();
            values.sort_unstable();
            Finding::Group { topic: feature.topic, values }
        }
    }
}

/// The same; of a number only the ranges around these values, which are the one that is meant wherever that is known.
fn around(unit: &Unit, allowed: &BTreeSet<usize>, homes: &[usize]) -> Finding {
    match (unit, finding(unit, allowed)) {
        (Unit::Feature(feature), Finding::Group { topic, values }) if feature.is_number => {
            let mut ranges = runs(feature.values(), &values);
            ranges.retain(|(low, high)| homes.iter().any(|home| (*low..=*high).contains(home)));
            let is_meant = |value: &usize| ranges.iter().any(|(low, high)| (*low..=*high).contains(value));
            Finding::Group { topic, values: values.into_iter().filter(is_meant).collect() }
        }
        (_, finding) => finding,
    }
}

/// The values of a feature that all inputs about it allow.
fn homes(words: &Words<'_>, unit: &Unit, input: &[bool]) -> Vec<usize> {
    let Unit::Feature(feature) = unit else { return Vec::new() };
    let own: Vec<usize> =
        (0..words.places.len()).filter(|place| words.topic(*place) == Some(feature.topic)).collect();
    let is_shown =
        |value: &usize| own.iter().all(|place| words.shows(feature.topic, *value, *place) == input[*place]);
    let homes: Vec<usize> = feature.values().iter().copied().filter(is_shown).collect();
    match (homes.is_empty(), feature.shown(input)) {
        (true, Some(class)) => feature.classes[class].values.clone(),
        _ => homes,
    }
}

/// The classes of a feature other than that of a value, in the order in which a range around it grows: a number's upwards and
/// downwards, a choice's all together.
fn ways(feature: &Feature, home: usize) -> Vec<Vec<usize>> {
    let values = feature.values();
    let class = |value: &usize| feature.class_of(*value);
    let state = class(&home);
    if !feature.is_number {
        return vec![(0..feature.classes.len()).filter(|class| *class != state).collect()];
    }
    let own = values.iter().position(|value| *value == home).unwrap_or(0);
    let once = |classes: Vec<usize>| {
        let mut known: Vec<usize> = vec![state];
        for class in classes {
            if !known.contains(&class) {
                known.push(class);
            }
        }
        known.split_off(1)
    };
    vec![
        once(values[own..].iter().map(class).collect()),
        once(values[..own].iter().rev().map(class).collect()),
    ]
}

/// The values of a feature other than one: a number's nearest first, a choice's as they come.
fn nearest_first(feature: &Feature, home: usize) -> Vec<usize> {
    let mut values: Vec<usize> = feature.values().iter().copied().filter(|value| *value != home).collect();
    if feature.is_number {
        values.sort_by_key(|value| (value.abs_diff(home), *value < home));
    }
    values
}
