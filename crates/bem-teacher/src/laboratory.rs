//! A test bed for the choice among templates: sixteen templates with fixed chances of passing.
//!
//! It drives the teacher through its public interface and counts pseudo-regret: how much meta-reward, in expectation,
//! the choices gave away against the best template. Clauses: GLE-6.

use crate::ladder::Domain;
use crate::teacher::{Report, TEMPLATES_PER_BAND_MAX, Teacher, TeacherConfig};
use crate::template::TemplateId;
use bem_base::fixed::{Fixed, log2_count_floor};
use bem_base::prng::Prng;
use bem_games::compose::{NoPrograms, TaskTree};

/// Reports that the default average runs over.
const AVERAGE_OVER: u64 = 8;

/// Pseudo-regret after some number of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Choices made so far.
    pub choices: u64,
    /// Expected meta-reward given away so far.
    pub regret: Fixed,
}

/// The true worth of a template that passes with `percent` and falls short by one minus that.
///
/// The teacher sees a moving average of passes, whose square is larger in the mean than the square of the chance by
/// the variance of the average: one in fifteen of `p (1 - p)` with averages over eight.
fn worth(percent: i64) -> Fixed {
    let spread = Fixed::from_ratio(percent * (100 - percent), 10_000);
    let seen = spread.minus(spread.div_count_floor(2 * AVERAGE_OVER - 1)).mul_int(4);
    seen.mul_int(5).plus(Fixed::from_ratio(3 * (100 - percent), 100)).div_count_floor(10)
}

/// Makes choices and reports to the last of the checkpoints, which must ascend.
pub fn template_regret(seed: u64, checkpoints: &[u64]) -> Vec<Checkpoint> {
    let domain = Domain(0);
    let mut teacher = Teacher::empty(TeacherConfig { domains: vec![domain], ..TeacherConfig::new(seed) });
    let mut world = Prng::stream(seed, "template laboratory");
    let mut percents: Vec<i64> = (0..TEMPLATES_PER_BAND_MAX as i64).map(|index| 35 + 4 * index).collect();
    world.shuffle(&mut percents);
    for index in 0..TEMPLATES_PER_BAND_MAX {
        let tree = TaskTree::parse(&format!("mask{{bits=0,percent={index}}}(parity{{n=2}})"));
        let tree = tree.expect("the text is well formed");
        teacher.admit_tree(tree, &NoPrograms).expect("the cell has room for all of them");
    }
    let best = percents.iter().map(|percent| worth(*percent)).max().unwrap_or(Fixed::ZERO);
    let gaps: Vec<Fixed> = percents.iter().map(|percent| best.minus(worth(*percent))).collect();
    let mut regret = Fixed::ZERO;
    let mut found = Vec::new();
    for choice in 1..=checkpoints.last().copied().unwrap_or(0) {
        let id: TemplateId = teacher.select_template(domain, 0).expect("the cell has templates");
        let place = id.0 as usize;
        regret = regret.plus(gaps[place]);
        let passed = (world.below(100) as i64) < percents[place];
        let shortfall = Fixed::from_ratio(100 - percents[place], 100);
        teacher.report(Report { template: id, passed, regret: shortfall, step: choice, learned: None });
        if checkpoints.contains(&choice) {
            found.push(Checkpoint { choices: choice, regret });
        }
    }
    found
}

/// The exponent with which regret grew between two checkpoints: one is linear, zero is flat.
pub fn exponent(first: Checkpoint, last: Checkpoint) -> Fixed {
    let log2 = |value: Fixed| log2_count_floor((value.to_raw() as u64).max(1));
    let grown = log2(last.regret).minus(log2(first.regret));
    let longer = log2_count_floor(last.choices).minus(log2_count_floor(first.choices));
    grown.max(Fixed::ZERO).div_floor(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regret_over_templates_grows_slower_than_the_root_law_allows() {
        for seed in 1..=3 {
            let points = template_regret(seed, &[10_000, 1_000_000]);
            let found = exponent(points[0], points[1]);
            assert!(found < Fixed::from_ratio(6, 10), "seed {seed}: exponent {found}, {points:?}");
        }
    }
}
