//! Inputs to look at, 64 a word: all of them where there are few, else a sample that counterexamples are added to. Only what
//! can occur is looked at.

use crate::observations::{Observations, Unit};
use bem_base::prng::Prng;
use bem_circuit::netlist::Netlist;

/// Up to this many inputs that matter, all assignments are looked at.
pub const ALL_INPUTS_MAX: usize = 12;
/// Assignments of a sample.
const SAMPLE: usize = 2_048;
/// Neighbours that come with a counterexample.
const NEIGHBOURS: usize = 31;

/// Assignments, one bit of every word each.
#[derive(Clone, Debug)]
pub struct Points {
    /// For every input of the circuit, one bit an assignment.
    columns: Vec<Vec<u64>>,
    observations: Observations,
    count: usize,
    is_all: bool,
}

impl Points {
    /// All assignments of the inputs that matter, or a sample of them. Inputs that do not matter are zero.
    pub fn new(inputs: usize, observations: Observations) -> Points {
        let units = observations.units().len();
        let all =
            observations.units().iter().fold(1, |all: u64, unit| all.saturating_mul(unit.count() as u64));
        let is_all = all <= 1 << ALL_INPUTS_MAX;
        let mut points = Points { columns: vec![Vec::new(); inputs], observations, count: 0, is_all };
        if is_all {
            for number in 0..all {
                let mut rest = number;
                let digit = |unit: &Unit| {
                    let digit = rest % unit.count() as u64;
                    rest /= unit.count() as u64;
                    digit as usize
                };
                let states: Vec<usize> = points.observations.units().iter().map(digit).collect();
                let mut settled = states.clone();
                points.observations.settle(&mut settled);
                if settled == states {
                    points.add(&states);
                }
            }
        } else {
            let mut prng = Prng::stream(units as u64, "explain/points");
            points.add_random(SAMPLE, &mut prng);
        }
        points
    }

    /// So many assignments by chance: where features have names every value is as likely as any other, else half of them are
    /// even noise, the others with few ones or few zeros.
    pub fn add_random(&mut self, count: usize, prng: &mut Prng) {
        let has_features = self.observations.has_features();
        for number in 0..count {
            let manner = if has_features { 0 } else { number % 4 };
            let all = self.observations.units().len() as u64;
            let rare = 1 + prng.below(4);
            let draw = |unit: &Unit| match manner {
                0 | 1 => unit.drawn(prng),
                _ if 2 < unit.count() => unit.drawn(prng),
                other => usize::from((prng.below(all) < rare) == (other == 2)),
            };
            let mut states: Vec<usize> = self.observations.units().iter().map(draw).collect();
            self.observations.settle(&mut states);
            self.add(&states);
        }
    }

    /// An assignment of all inputs that can occur, and some that differ from it in one or two of what changes as one.
    pub fn add_counterexample(&mut self, input: &[bool], prng: &mut Prng) {
        let states: Option<Vec<usize>> =
            self.observations.units().iter().map(|unit| unit.state(input)).collect();
        let Some(own) = states else { return };
        self.add(&own);
        for _ in 0..NEIGHBOURS {
            let mut near = own.clone();
            for _ in 0..1 + prng.below(2) {
                let place = prng.below(near.len() as u64) as usize;
                near[place] = match &self.observations.units()[place] {
                    Unit::Free(_) => 1 - near[place],
                    feature => feature.drawn(prng),
                };
            }
            self.observations.settle(&mut near);
            self.add(&near);
        }
    }

    /// These assignments and no others, as far as they can occur.
    pub fn these(inputs: usize, observations: Observations, rows: &[Vec<bool>]) -> Points {
        let mut points = Points { columns: vec![Vec::new(); inputs], observations, count: 0, is_all: false };
        for row in rows {
            let states: Option<Vec<usize>> =
                points.observations.units().iter().map(|unit| unit.state(row)).collect();
            if let Some(states) = states {
                points.add(&states);
            }
        }
        points
    }

    /// One assignment, by what every unit is.
    fn add(&mut self, states: &[usize]) {
        let (word, bit) = (self.count / 64, self.count % 64);
        if bit == 0 {
            self.columns.iter_mut().for_each(|column| column.push(0));
        }
        for (unit, state) in self.observations.units().iter().zip(states) {
            for (input, value) in unit.inputs(*state) {
                self.columns[input][word] |= u64::from(value) << bit;
            }
        }
        self.count += 1;
    }

    /// How many assignments there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether these are all there are.
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// Words of a column.
    pub fn words(&self) -> usize {
        self.count.div_ceil(64)
    }

    /// The assignments that exist, as a column.
    pub fn mask(&self) -> Vec<u64> {
        let mut mask = vec![u64::MAX; self.words()];
        if let (Some(last), rest @ 1..) = (mask.last_mut(), self.count % 64) {
            *last = (1 << rest) - 1;
        }
        mask
    }

    /// One column for every output of a circuit over the same inputs.
    pub fn evaluate(&self, circuit: &Netlist) -> Vec<Vec<u64>> {
        let mut columns = vec![Vec::with_capacity(self.words()); circuit.outputs().len()];
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        for word in 0..self.words() {
            let inputs: Vec<u64> = self.columns.iter().map(|column| column[word]).collect();
            circuit.evaluate_words(&inputs, &mut values, &mut outputs);
            columns.iter_mut().zip(&outputs).for_each(|(column, value)| column.push(*value));
        }
        columns
    }
}
