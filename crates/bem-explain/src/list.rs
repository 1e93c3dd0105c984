//! Ordered rules for a circuit: the first whose conditions all hold says the answer.
//!
//! Sequential covering: of the assignments that no rule covers yet, the next rule takes as many as it can with one
//! answer and few conditions. The list is compared with the circuit by the prover; a counterexample joins the
//! assignments and the list is made anew. Sizes, rounds and rules are bounded. A list that would be too long becomes a summary:
//! of what was met in a world where that is known, else of what can occur. Clauses: GLE-9, SCC-3.

use crate::Words;
use crate::facts::{Fact, facts};
use crate::observations::Observations;
use crate::points::Points;
use crate::table::table;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Netlist, NetlistError, Signal};
use bem_prover::equivalence::{EquivalenceOptions, Evidence, check_equivalence_with};
use bem_prover::{Budget, Equivalence};
use std::collections::BTreeMap;

/// Rules of a list that is right on all inputs that were drawn, where there are too many to look at all of them.
const RULES_MAX: usize = 40;
/// Rules of a list where all inputs that can occur are looked at: a long one can still be looked up.
const ALL_RULES_MAX: usize = 600;
/// Rules of a summary.
const SUMMARY_RULES: usize = 12;
/// Rules of a summary of what was met.
const MET_RULES: usize = 24;
/// How often a list is made anew after a counterexample.
const ROUNDS_MAX: usize = 24;
/// With more conditions to choose from, pairs of them are not tried one by one.
const PAIRED_MAX: usize = 240;
/// Assignments that the agreement of a summary is measured on.
const MEASURED: usize = 4_096;
/// A fact about a number that falls into more ranges than this is used only where nothing else is left.
const RANGES_MAX: usize = 2;
/// How much harder a fact is to read for every range after the first.
const RANGE_WEIGHT: usize = 4;
/// Conflicts that one comparison may take.
const CONFLICTS: u32 = 10_000;

/// A fact that must hold, or must not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about.
    pub fact: Fact,
    /// Whether it must hold.
    pub holds: bool,
}

impl Condition {
    /// Whether it is met on an input.
    pub fn holds_on(&self, input: &[bool]) -> bool {
        self.fact.holds(&|place| input[place]) == self.holds
    }
}

/// One rule of the list that explains a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// All of these.
    pub when: Vec<Condition>,
    /// The outputs then.
    pub then: Vec<bool>,
}

/// How a list of rules and its circuit agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// On every input; so many rows were compared.
    Exhaustive {
        /// All assignments of the inputs that matter.
        rows: u64,
    },
    /// On every input; the checker accepted the prover's certificate.
    Proven,
    /// On so many of the assignments that were tried.
    Summary {
        /// Where both say the same.
        agreed: u64,
        /// All that were tried.
        tried: u64,
        /// The same of steps that were met in the world, where these are known: agreed, and all of them.
        met: Option<(u64, u64)>,
    },
}

/// Ordered rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleList {
    /// In order.
    pub rules: Vec<Rule>,
    /// The outputs where no rule applies.
    pub otherwise: Vec<bool>,
    /// How far it is the circuit.
    pub agreement: Agreement,
    /// Whether that is said of observations that the named features can show, instead of all assignments of bits.
    pub of_features: bool,
    /// The inputs that say the row of a table: neighbouring rules with the same conditions on them are one row.
    pub group: Option<Vec<usize>>,
    /// Where it is a summary of what was met: for every column of the encoder the values that were. Empty elsewhere.
    pub met_values: Vec<Vec<usize>>,
}

/// What was met in episodes of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepsMet {
    /// The inputs of the circuit, step by step.
    pub inputs: Vec<Vec<bool>>,
    /// For every column of the encoder the values that were seen, rising.
    pub values: Vec<Vec<usize>>,
}

impl RuleList {
    /// Whether it is proven equal to its circuit.
    pub fn is_exact(&self) -> bool {
        !matches!(self.agreement, Agreement::Summary { .. })
    }

    /// How many rows a table has; of a list that is none, its rules.
    pub fn rows(&self) -> usize {
        let is_new = |place: &usize| {
            self.group.is_none()
                || *place == 0
                || !self.is_same_row(&self.rules[place - 1], &self.rules[*place])
        };
        (0..self.rules.len()).filter(is_new).count()
    }

    /// Whether two rules are of one row of a table.
    pub fn is_same_row(&self, left: &Rule, right: &Rule) -> bool {
        self.split(left).0 == self.split(right).0
    }

    /// What a rule says of its row, and what of the range in it; the last rule of a row says nothing of that.
    pub fn split<'r>(&self, rule: &'r Rule) -> (&'r [Condition], &'r [Condition]) {
        let places = self.group.as_deref().unwrap_or_default();
        let own = |condition: &&Condition| condition.fact.places().iter().all(|place| places.contains(place));
        rule.when.split_at(rule.when.iter().take_while(own).count())
    }

    /// Whether the row of a rule is the one of this input.
    pub fn is_row_of(&self, rule: &Rule, input: &[bool]) -> bool {
        self.group.is_none() || self.split(rule).0.iter().all(|condition| condition.holds_on(input))
    }

    /// The rule that decides on an input: its place, or the number of rules where none applies; and what it says.
    pub fn deciding(&self, input: &[bool]) -> (usize, &[bool]) {
        let applies = |rule: &Rule| rule.when.iter().all(|condition| condition.holds_on(input));
        match self.rules.iter().position(applies) {
            Some(place) => (place, &self.rules[place].then),
            None => (self.rules.len(), &self.otherwise),
        }
    }

    /// The list as a circuit over so many inputs.
    pub fn circuit(&self, inputs: usize) -> Result<Netlist, NetlistError> {
        let mut builder = Builder::new(inputs);
        let mut outputs: Vec<Signal> = self.otherwise.iter().map(|bit| Signal::constant(*bit)).collect();
        for rule in self.rules.iter().rev() {
            let conditions: Vec<Signal> = (rule.when.iter())
                .map(|condition| {
                    let signal = condition.fact.build(&mut builder);
                    if condition.holds { signal } else { builder.not(signal) }
                })
                .collect();
            let applies = builder.and_all(&conditions);
            for (output, bit) in outputs.iter_mut().zip(&rule.then) {
                *output = builder.mux(applies, Signal::constant(*bit), *output);
            }
        }
        builder.finish(&outputs)
    }
}

/// A circuit and the inputs on which it is asked.
#[derive(Clone, Copy)]
struct Target<'a> {
    circuit: &'a Netlist,
    observations: &'a Observations,
}

/// The rules of a circuit over these facts; every input that matters must be among them as a bit. The rules are held against
/// the circuit on what can occur by these words. `met` is what a summary is about.
pub fn rule_list(target: &Netlist, facts: &[Fact], words: &Words<'_>, met: &StepsMet) -> RuleList {
    let observations = Observations::new(words, &target.support());
    let target = Target { circuit: target, observations: &observations };
    let mut points = Points::new(target.circuit.inputs(), observations.clone());
    let mut prng = Prng::stream(2, "explain/rounds");
    let rules_max = if points.is_all() { ALL_RULES_MAX } else { RULES_MAX };
    for _ in 0..ROUNDS_MAX {
        let Some(mut list) = cover(target, facts, &points, rules_max) else { break };
        match compare(target, &list) {
            Equivalence::Equal(Evidence::Exhaustive { rows }) => {
                let rows = if observations.has_features() { observations.count() } else { rows };
                list.agreement = Agreement::Exhaustive { rows };
                return as_table(target, list);
            }
            Equivalence::Equal(Evidence::Proof { .. }) => {
                list.agreement = Agreement::Proven;
                return list;
            }
            Equivalence::Different { input } => points.add_counterexample(&input, &mut prng),
            Equivalence::Mismatch | Equivalence::Undecided(_) => break,
        }
    }
    match met.inputs.is_empty() {
        true => summary(target, facts, &points),
        false => summary_of_met(target, &points, words, met),
    }
}

/// A long list as a table, where that is shorter and shown to be the circuit too.
fn as_table(target: Target<'_>, list: RuleList) -> RuleList {
    if list.rules.len() <= RULES_MAX {
        return list;
    }
    let made = table(target.circuit, target.observations)
        .filter(|table| table.rows() < list.rules.len() && compare(target, table).is_equal());
    match made {
        Some(made) => RuleList { agreement: list.agreement, ..made },
        None => list,
    }
}

fn compare(target: Target<'_>, list: &RuleList) -> Equivalence {
    let inputs = target.circuit.inputs();
    let Ok(circuit) = list.circuit(inputs) else { return Equivalence::Mismatch };
    let options =
        EquivalenceOptions { budget: Budget::conflicts(CONFLICTS), ..EquivalenceOptions::default() };
    if !target.observations.has_features() {
        return check_equivalence_with(target.circuit, &circuit, options);
    }
    // What cannot occur is made equal in both, so that only what can occur is compared.
    let masked = |circuit: &Netlist| {
        let mut builder = Builder::new(inputs);
        let all: Vec<Signal> = (0..inputs).map(Signal::input).collect();
        let outputs = builder.embed(circuit, &all);
        let valid = target.observations.valid(&mut builder);
        let outputs: Vec<Signal> = outputs.into_iter().map(|output| builder.and(output, valid)).collect();
        builder.finish(&outputs)
    };
    match (masked(target.circuit), masked(&circuit)) {
        (Ok(left), Ok(right)) => check_equivalence_with(&left, &right, options),
        _ => Equivalence::Mismatch,
    }
}

/// The rules that say most, with the share of assignments on which they are right.
fn summary(target: Target<'_>, facts: &[Fact], points: &Points) -> RuleList {
    let list = covered(target, facts, points, SUMMARY_RULES).0;
    let (agreed, tried) = agreed_anywhere(target, &list, points);
    RuleList { agreement: Agreement::Summary { agreed, tried, met: None }, ..list }
}

/// The rules that say most of the steps that were met; what was not met does not count when they are made and said.
fn summary_of_met(target: Target<'_>, points: &Points, words: &Words<'_>, met: &StepsMet) -> RuleList {
    let circuit = target.circuit;
    let words = Words { limits: met.values.clone(), ..words.clone() };
    let observations = Observations::new(&words, &circuit.support());
    let steps = Points::these(circuit.inputs(), observations.clone(), &met.inputs);
    let own = Target { circuit, observations: &observations };
    // A fact that falls into many ranges is no help to a reader, and a summary need not be complete.
    let plain: Vec<Fact> =
        facts(&words, circuit).into_iter().filter(|fact| observations.ranges(fact) <= RANGES_MAX).collect();
    let list = covered(own, &plain, &steps, MET_RULES).0;
    let (agreed, tried) = agreed_anywhere(target, &list, points);
    let met = Some((self::agreed(circuit, &list, &steps), steps.count() as u64));
    RuleList { agreement: Agreement::Summary { agreed, tried, met }, met_values: words.limits, ..list }
}

/// On how many of all assignments, or of fresh ones, a list says what the circuit says.
fn agreed_anywhere(target: Target<'_>, list: &RuleList, points: &Points) -> (u64, u64) {
    let mut fresh = points.clone();
    if !points.is_all() {
        let mut prng = Prng::stream(3, "explain/measured");
        fresh = Points::new(target.circuit.inputs(), target.observations.clone());
        fresh.add_random(MEASURED - fresh.count().min(MEASURED), &mut prng);
    }
    (agreed(target.circuit, list, &fresh), fresh.count() as u64)
}

/// On how many of these points a list says what the circuit says.
fn agreed(circuit: &Netlist, list: &RuleList, points: &Points) -> u64 {
    let want = points.evaluate(circuit);
    let Ok(rules) = list.circuit(circuit.inputs()) else { return 0 };
    let (got, mask) = (points.evaluate(&rules), points.mask());
    let agrees = |word: usize| {
        let differs = want.iter().zip(&got).fold(0, |all, (want, got)| all | (want[word] ^ got[word]));
        u64::from((mask[word] & !differs).count_ones())
    };
    (0..points.words()).map(agrees).sum()
}

/// Rules that are right on all points, or nothing where they would be too many.
fn cover(target: Target<'_>, facts: &[Fact], points: &Points, rules_max: usize) -> Option<RuleList> {
    let (list, is_complete) = covered(target, facts, points, rules_max);
    is_complete.then_some(list)
}

/// Rules over the points, and whether they are right on all of them.
fn covered(target: Target<'_>, facts: &[Fact], points: &Points, rules_max: usize) -> (RuleList, bool) {
    let mut covering = Covering::new(target, facts, points);
    let mut rules = Vec::new();
    while !covering.is_pure() && rules.len() < rules_max {
        let Some((chosen, class)) = covering.best_rule().or_else(|| covering.pinned()) else { break };
        covering.remove(&chosen);
        let when = chosen.iter().map(|literal| covering.condition(*literal)).collect();
        rules.push(Rule { when, then: covering.classes[class].0.clone() });
    }
    let is_complete = covering.is_pure();
    let otherwise = covering.majority();
    let agreement = Agreement::Summary { agreed: 0, tried: 0, met: None };
    let of_features = target.observations.has_features();
    let list =
        turned(RuleList { rules, otherwise, agreement, of_features, group: None, met_values: Vec::new() });
    (tidied(list, target.observations), is_complete)
}

/// The list without conditions that always hold and rules that never apply.
fn tidied(mut list: RuleList, observations: &Observations) -> RuleList {
    list.rules = list.rules.into_iter().filter_map(|rule| observations.tidied(rule)).collect();
    if let Some(always) = list.rules.iter().position(|rule| rule.when.is_empty()) {
        list.otherwise = list.rules.swap_remove(always).then;
        list.rules.truncate(always);
    }
    list
}

/// Where the last rules have one condition each and one answer, their negations together are one rule for the other
/// answer: "if not a: 0, if not b: 0, else 1" is "if a and b: 1, else 0". A single one is turned where it says "not".
fn turned(mut list: RuleList) -> RuleList {
    // The last rule and what else is done may change places, so that it joins the rules before it.
    if let [.., before, last] = list.rules.as_mut_slice()
        && before.when.len() == 1
        && last.when.len() == 1
        && before.then == list.otherwise
    {
        last.when[0].holds = !last.when[0].holds;
        std::mem::swap(&mut last.then, &mut list.otherwise);
    }
    let Some(last) = list.rules.last() else { return list };
    let says_not = last.when.iter().all(|condition| !condition.holds);
    let then = last.then.clone();
    let fits = |rule: &&Rule| rule.when.len() == 1 && rule.then == then;
    let count = list.rules.iter().rev().take_while(fits).count();
    if count == 0 || count == 1 && !says_not || then == list.otherwise {
        return list;
    }
    let tail = list.rules.split_off(list.rules.len() - count);
    let negated = |rule: Rule| rule.when.into_iter().map(|it| Condition { holds: !it.holds, ..it });
    let when = tail.into_iter().flat_map(negated).collect();
    list.rules.push(Rule { when, then: std::mem::replace(&mut list.otherwise, then) });
    list
}

/// A condition by number: twice the fact, plus one where it must not hold.
type Literal = usize;

/// The state of the covering: which points are left, which conditions and answers there are.
struct Covering<'a> {
    facts: &'a [Fact],
    /// For every condition, where it holds.
    columns: Vec<Vec<u64>>,
    /// Every answer that occurs, and where.
    classes: Vec<(Vec<bool>, Vec<u64>)>,
    left: Vec<u64>,
    /// For every fact, how hard it is to read, and whether it is plain enough for a rule that is grown.
    weights: Vec<(usize, bool)>,
}

impl<'a> Covering<'a> {
    fn new(target: Target<'_>, facts: &'a [Fact], points: &Points) -> Covering<'a> {
        let mask = points.mask();
        let answers = points.evaluate(target.circuit);
        let mut places: BTreeMap<Vec<bool>, Vec<u64>> = BTreeMap::new();
        for point in 0..points.count() {
            let answer = answers.iter().map(|column| column[point / 64] >> (point % 64) & 1 == 1).collect();
            let column = places.entry(answer).or_insert_with(|| vec![0; points.words()]);
            column[point / 64] |= 1 << (point % 64);
        }
        let mut columns = Vec::new();
        for fact in facts {
            let mut builder = Builder::new(target.circuit.inputs());
            let signal = fact.build(&mut builder);
            let holds = match builder.finish(&[signal]) {
                Ok(circuit) => points.evaluate(&circuit).swap_remove(0),
                // A fact that is too large for a circuit never holds, so that no rule uses it.
                Err(_) => vec![0; points.words()],
            };
            let fails = holds.iter().zip(&mask).map(|(word, mask)| !word & mask).collect();
            columns.extend([holds, fails]);
        }
        let weight = |fact: &Fact| {
            let ranges = target.observations.ranges(fact);
            (fact.weight() + RANGE_WEIGHT * ranges.saturating_sub(1), ranges <= RANGES_MAX)
        };
        let weights = facts.iter().map(weight).collect();
        Covering { facts, columns, classes: places.into_iter().collect(), left: mask, weights }
    }

    fn condition(&self, literal: Literal) -> Condition {
        Condition { fact: self.facts[literal / 2].clone(), holds: literal.is_multiple_of(2) }
    }

    fn weight(&self, literals: &[Literal]) -> usize {
        literals.iter().map(|literal| 6 + self.weights[literal / 2].0).sum()
    }

    /// The answer of all points in the column, if there is one.
    fn class_of(&self, column: &[u64]) -> Option<usize> {
        let word = column.iter().position(|word| *word != 0)?;
        let bit = column[word] & column[word].wrapping_neg();
        let class = self.classes.iter().position(|(_, points)| points[word] & bit != 0)?;
        let is_pure = column.iter().zip(&self.classes[class].1).all(|(word, own)| word & !own == 0);
        is_pure.then_some(class)
    }

    fn is_pure(&self) -> bool {
        self.left.iter().all(|word| *word == 0) || self.class_of(&self.left).is_some()
    }

    /// The answer of most points that are left, or of most points where none is left.
    fn majority(&self) -> Vec<bool> {
        let size = |points: &[u64]| count(&and(points, &self.left));
        let best = self.classes.iter().rev().max_by_key(|(_, points)| (size(points), count(points)));
        best.map(|(answer, _)| answer.clone()).unwrap_or_default()
    }

    fn remove(&mut self, literals: &[Literal]) {
        let covered = self.covered(literals);
        self.left.iter_mut().zip(covered).for_each(|(left, covered)| *left &= !covered);
    }

    fn covered(&self, literals: &[Literal]) -> Vec<u64> {
        literals.iter().fold(self.left.clone(), |column, literal| and(&column, &self.columns[*literal]))
    }

    /// The conditions of the next rule and its answer: among one condition, two, and those that are grown for an answer,
    /// whatever covers most for its length.
    fn best_rule(&self) -> Option<(Vec<Literal>, usize)> {
        let mut best: Option<(u64, Vec<Literal>, usize)> = None;
        let mut offer = |literals: &[Literal], column: &[u64]| {
            let worth = u64::from(count(column)) * 4_096 / self.weight(literals).max(1) as u64;
            if best.as_ref().is_none_or(|(other, ..)| *other < worth)
                && let Some(class) = self.class_of(column)
            {
                best = Some((worth, literals.to_vec(), class));
            }
        };
        let within: Vec<Vec<u64>> = self.columns.iter().map(|column| and(column, &self.left)).collect();
        for (literal, column) in within.iter().enumerate() {
            offer(&[literal], column);
        }
        if within.len() <= PAIRED_MAX {
            for (first, column) in within.iter().enumerate() {
                for second in first + 1..within.len() {
                    if first / 2 != second / 2 {
                        offer(&[first, second], &and(column, &self.columns[second]));
                    }
                }
            }
        }
        let mut classes: Vec<usize> = (0..self.classes.len()).collect();
        classes.sort_by_key(|class| std::cmp::Reverse(count(&and(&self.classes[*class].1, &self.left))));
        for class in classes.into_iter().take(4) {
            if let Some(literals) = self.grown(class) {
                offer(&literals, &self.covered(&literals));
            }
        }
        best.map(|(_, literals, class)| (literals, class))
    }

    /// Conditions for one answer, added one by one: each time the one that keeps most points of the answer for its share
    /// of others. What proves needless in the end is dropped.
    fn grown(&self, class: usize) -> Option<Vec<Literal>> {
        let own = &self.classes[class].1;
        let mut column = self.left.clone();
        let mut literals: Vec<Literal> = Vec::new();
        while self.class_of(&column) != Some(class) {
            let before = count(&column);
            let gain = |literal: &Literal| {
                let kept = and(&column, &self.columns[*literal]);
                let (right, all) = (u64::from(count(&and(&kept, own))), u64::from(count(&kept)));
                let shrinks = 0 < right && u32::try_from(all).is_ok_and(|all| all < before);
                if shrinks { right * right * 1_024 / all } else { 0 }
            };
            let is_plain = |literal: &Literal| self.weights[literal / 2].1;
            let all = || (0..self.columns.len()).rev();
            let best = all().filter(is_plain).max_by_key(gain).filter(|literal| 0 < gain(literal));
            let best = best.or_else(|| all().max_by_key(gain).filter(|literal| 0 < gain(literal)))?;
            column = and(&column, &self.columns[best]);
            literals.push(best);
        }
        let mut place = 0;
        while place < literals.len() {
            let mut fewer = literals.clone();
            fewer.remove(place);
            if self.class_of(&self.covered(&fewer)) == Some(class) {
                literals = fewer;
            } else {
                place += 1;
            }
        }
        Some(literals)
    }

    /// The first point that is left, by all its bits: a rule, if a long one; nothing where other points with other answers have
    /// these bits too, because not all of them are among the facts.
    fn pinned(&self) -> Option<(Vec<Literal>, usize)> {
        let word = self.left.iter().position(|word| *word != 0).unwrap_or(0);
        let bit = self.left[word] & self.left[word].wrapping_neg();
        let is_bit = |literal: &Literal| matches!(self.facts[literal / 2], Fact::Bit(_));
        let holds = |literal: &Literal| self.columns[*literal][word] & bit != 0;
        let literals: Vec<Literal> =
            (0..self.columns.len()).filter(|literal| is_bit(literal) && holds(literal)).collect();
        let class = self.class_of(&self.covered(&literals))?;
        Some((literals, class))
    }
}

fn and(left: &[u64], right: &[u64]) -> Vec<u64> {
    left.iter().zip(right).map(|(left, right)| left & right).collect()
}

fn count(column: &[u64]) -> u32 {
    column.iter().map(|word| word.count_ones()).sum()
}
