//! Exclusive ors of a subset of the bits, by elimination over GF(2).
//!
//! With more equations than unknowns a consistent system is no accident: twelve surplus equations hold by
//! chance once in 4,096. Where some labels are wrong, systems from small random draws are tried and the one
//! that most samples agree with is kept, as long as few enough disagree.

use super::FunctionClass;
use crate::function::Function;
use crate::samples::{ROW_WORDS, Row, Samples, Work};
use crate::statement::Formula;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};

/// Equations beyond the rank that must hold before a solution is believed.
const SURPLUS: usize = 12;
/// Random draws under noise.
const DRAWS: usize = 300;

/// Exclusive or of some bits and a constant.
pub struct Affine;

impl FunctionClass for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let allowed = samples.errors_allowed()?;
        let order: Vec<usize> = (0..samples.len()).collect();
        if !work.spend((samples.len() * samples.width * ROW_WORDS) as u64) {
            return None;
        }
        let mut system = System::default();
        let consistent = order.iter().all(|position| system.add(samples, *position));
        if consistent {
            let enough = system.rank() + SURPLUS <= samples.observations;
            return if enough { close(samples, &system.solution(), system.rank()) } else { None };
        }
        if allowed == 0 || samples.len() < 2 * samples.width + SURPLUS {
            return None;
        }
        fit_noisy(samples, order, work)
    }
}

fn fit_noisy(samples: &Samples, mut order: Vec<usize>, work: &mut Work) -> Option<Function> {
    let mut prng = Prng::stream(samples.len() as u64, "synth/affine");
    let mut best: Option<(usize, Row, usize)> = None;
    for _ in 0..DRAWS {
        let units = (samples.width * samples.width * ROW_WORDS + samples.width * samples.len() / 64) as u64;
        if !work.spend(units) {
            break;
        }
        prng.shuffle(&mut order);
        let mut system = System::default();
        // A wrong equation is mostly found out at once by the next few.
        let take = (samples.width + 4).min(order.len());
        if !order[..take].iter().all(|position| system.add(samples, *position)) {
            continue;
        }
        let solution = system.solution();
        let errors = errors(samples, &solution);
        if best.as_ref().is_none_or(|held| errors < held.0) {
            best = Some((errors, solution, system.rank()));
        }
        if samples.accepts(errors) {
            break;
        }
    }
    let (errors, solution, rank) = best?;
    if samples.accepts(errors) { close(samples, &solution, rank) } else { None }
}

fn errors(samples: &Samples, solution: &Row) -> usize {
    let mut answers = vec![if solution.get(CONSTANT) { u64::MAX } else { 0 }; samples.label_words().len()];
    for index in (0..samples.width).filter(|index| solution.get(*index)) {
        for (answer, word) in answers.iter_mut().zip(samples.column(index)) {
            *answer ^= word;
        }
    }
    samples.errors(&answers)
}

fn close(samples: &Samples, solution: &Row, rank: usize) -> Option<Function> {
    let mut builder = Builder::new(samples.width);
    let indices: Vec<usize> = (0..samples.width).filter(|index| solution.get(*index)).collect();
    let bits: Vec<Signal> = indices.iter().copied().map(Signal::input).collect();
    let sum = builder.xor_all(&bits);
    let output = builder.xor(sum, Signal::constant(solution.get(CONSTANT)));
    let words = format!("xor of {} bits", bits.len());
    // All bits of the row, or every coefficient by itself.
    let length = if bits.len() == samples.width { 3 } else { 1 + rank as u32 };
    let bits = indices.into_iter().map(|index| index as u16).collect();
    let statement = Formula::Sum { bits, inverted: solution.get(CONSTANT) };
    Function::close(builder, output, statement, length, words)
}

/// The last bit of a row stands for the constant, the one before it for the label.
const CONSTANT: usize = ROW_WORDS * 64 - 1;
const LABEL: usize = ROW_WORDS * 64 - 2;

/// Equations in echelon form, each with its leading bit.
#[derive(Default)]
struct System {
    equations: Vec<(usize, Row)>,
}

impl System {
    fn rank(&self) -> usize {
        self.equations.len()
    }

    /// Adds one sample's equation; false when it contradicts the others.
    fn add(&mut self, samples: &Samples, position: usize) -> bool {
        let mut equation = samples.rows[position];
        equation.set(CONSTANT, true);
        equation.set(LABEL, samples.labels[position]);
        for (lead, held) in &self.equations {
            if equation.get(*lead) {
                add_into(&mut equation, held);
            }
        }
        let unknowns = (0..samples.width).chain([CONSTANT]);
        match unknowns.into_iter().find(|index| equation.get(*index)) {
            Some(lead) => {
                for (_, held) in &mut self.equations {
                    if held.get(lead) {
                        add_into(held, &equation);
                    }
                }
                self.equations.push((lead, equation));
                true
            }
            None => !equation.get(LABEL),
        }
    }

    /// The solution in which every unknown that is not determined is zero.
    fn solution(&self) -> Row {
        let mut solution = Row::default();
        for (lead, equation) in &self.equations {
            solution.set(*lead, equation.get(LABEL));
        }
        solution
    }
}

fn add_into(target: &mut Row, other: &Row) {
    for (word, other) in target.0.iter_mut().zip(other.0) {
        *word ^= other;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;

    #[test]
    fn a_hidden_parity_is_found_although_some_labels_are_wrong() {
        let hidden = 0x5A5A_F00Fu32;
        let wanted = |row: &Row| (row.0[0] as u32 & hidden).count_ones() % 2 == 1;
        let clean = sample(&[32], 400, 3, wanted);
        let mut prng = Prng::stream(5, "noise");
        let noisy = clean.rows.iter().map(|row| (*row, wanted(row) ^ (prng.below(100) < 5)));
        let samples = Samples::new(32, clean.groups.clone(), noisy.collect::<Vec<_>>(), 12);
        let function = Affine.fit(&samples, &mut Work::new(1 << 32)).unwrap();
        assert_eq!(function.errors(&sample(&[32], 500, 4, wanted)), 0);
    }

    #[test]
    fn fewer_than_twelve_spare_equations_prove_nothing() {
        let wanted = |row: &Row| row.0[0].count_ones() % 2 == 1;
        assert!(Affine.fit(&sample(&[32], 44, 1, wanted), &mut Work::new(1 << 32)).is_none());
        assert!(Affine.fit(&sample(&[32], 46, 1, wanted), &mut Work::new(1 << 32)).is_some());
    }
}
