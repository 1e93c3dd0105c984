//! Inputs to look at, 64 a word: all of them where there are few, else a sample that counterexamples are added to.

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
    support: Vec<usize>,
    count: usize,
    is_all: bool,
}

impl Points {
    /// All assignments of the inputs that matter, or a sample of them. Inputs that do not matter are zero.
    pub fn new(inputs: usize, support: Vec<usize>) -> Points {
        let is_all = support.len() <= ALL_INPUTS_MAX;
        let mut points = Points { columns: vec![Vec::new(); inputs], support, count: 0, is_all };
        if is_all {
            for number in 0..1usize << points.support.len() {
                points.add(|place| number >> place & 1 == 1);
            }
        } else {
            let mut prng = Prng::stream(points.support.len() as u64, "explain/points");
            points.add_random(SAMPLE, &mut prng);
        }
        points
    }

    /// So many assignments by chance: half of them even noise, the others with few ones or few zeros.
    pub fn add_random(&mut self, count: usize, prng: &mut Prng) {
        for number in 0..count {
            let (manner, all) = (number % 4, self.support.len() as u64);
            let rare = 1 + prng.below(4);
            let bits: Vec<bool> = (0..all)
                .map(|_| match manner {
                    0 | 1 => prng.bit(),
                    other => (prng.below(all) < rare) == (other == 2),
                })
                .collect();
            self.add(|place| bits[place]);
        }
    }

    /// An assignment of all inputs, and some that differ from it in one or two of those that matter.
    pub fn add_counterexample(&mut self, input: &[bool], prng: &mut Prng) {
        let own: Vec<bool> = self.support.iter().map(|place| input[*place]).collect();
        self.add(|place| own[place]);
        for _ in 0..NEIGHBOURS {
            let mut near = own.clone();
            for _ in 0..1 + prng.below(2) {
                let place = prng.below(near.len() as u64) as usize;
                near[place] = !near[place];
            }
            self.add(|place| near[place]);
        }
    }

    /// `value` is asked with places in the support.
    fn add(&mut self, value: impl Fn(usize) -> bool) {
        let (word, bit) = (self.count / 64, self.count % 64);
        if bit == 0 {
            self.columns.iter_mut().for_each(|column| column.push(0));
        }
        for (place, input) in self.support.iter().enumerate() {
            self.columns[*input][word] |= u64::from(value(place)) << bit;
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
