//! The grammar of functions: one file a class, one list of all of them.
//!
//! A class fits rows and labels and says how many bits it took to describe what it found. The shortest
//! description that explains the samples and is short against them wins (Occam's rule below). To add a class,
//! write its file and add one line to [`PORTFOLIO`]. No class may know a game. Clauses: SCC-2; see
//! `docs/grammar.md`.

pub mod affine;
pub mod arithmetic;
pub mod decision;
pub mod facts;
pub mod focus;
pub mod literal;
pub mod minimal;
pub mod multiplexer;
pub mod order;
pub mod pick;
pub mod polynomial;
pub mod relation;
pub mod scan;
pub mod sides;
pub mod symmetric;
pub mod table;
pub mod threshold;
pub mod tree;

use crate::function::Function;
use crate::samples::{Samples, Work};

/// One class of Boolean functions.
pub trait FunctionClass: Sync {
    /// Its name in reports and provenance.
    fn name(&self) -> &'static str;
    /// A function of this class that explains the samples within their tolerance: the shortest it finds, exceptions counted.
    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function>;
}

/// All classes in tiers: a later tier is asked only when no earlier one explains the samples.
pub const PORTFOLIO: &[&[&dyn FunctionClass]] = &[
    &[&literal::Literal],
    &[&pick::Pick],
    &[&affine::Affine, &symmetric::Symmetric, &scan::Scan, &relation::Relation, &multiplexer::Multiplexer],
    &[
        &symmetric::RankedSymmetric,
        &focus::Focus,
        &order::Order,
        &arithmetic::Arithmetic,
        &facts::Facts,
        &threshold::Threshold,
        &polynomial::Polynomial,
        &decision::Decision,
        &tree::Tree,
        &table::Table,
    ],
    &[&sides::Sides],
];

/// Samples before exceptions are considered at all.
const EXCEPTIONS_FROM: usize = 64;

/// A class may spend one part in as many of the work that is left.
const SHARE: u64 = 8;

/// Whether a description of this length is short against this many samples.
///
/// The rule is `0.7 length + 3 <= 0.6 samples`: a function picked among `2^length` fits `samples` coin flips
/// with a chance below `2^(length - samples)`.
pub fn is_short(description_length: u32, samples: usize) -> bool {
    7 * u64::from(description_length) + 30 <= 6 * samples as u64
}

/// The longest description that is short against this many samples.
pub fn longest_for(samples: usize) -> u32 {
    ((6 * samples as u64).saturating_sub(30) / 7) as u32
}

/// The shortest function of the whole portfolio that explains the samples, or none.
pub fn fit(samples: &Samples, work: &mut Work) -> Option<Function> {
    fit_like(samples, None, work).map(|found| found.function)
}

/// A function and the class that it is of.
#[derive(Clone)]
pub struct Found {
    /// What explains the samples.
    pub function: Function,
    class: &'static dyn FunctionClass,
}

/// The same for samples that have a sibling: another function of the same rows, already found.
///
/// Siblings are mostly of one kind. What explains these samples in the same way, and takes not much longer to say, is
/// taken; only otherwise the whole portfolio is asked, which costs a hundred times as much where the class is a late one.
pub fn fit_like(samples: &Samples, sibling: Option<&Found>, work: &mut Work) -> Option<Found> {
    if samples.is_empty() || samples.errors_allowed().is_none() {
        return None;
    }
    if 0 < samples.tolerance && samples.observations < EXCEPTIONS_FROM {
        return None;
    }
    if let Some(sibling) = sibling
        && let Some(function) = fit_class(sibling.class, samples, work)
        && 4 * function.description_length <= 5 * sibling.function.description_length
    {
        return Some(Found { function, class: sibling.class });
    }
    fit_tiers(PORTFOLIO, samples, work)
}

/// The shortest function of the first of these tiers that explains the samples.
fn fit_tiers(
    tiers: &[&'static [&'static dyn FunctionClass]],
    samples: &Samples,
    work: &mut Work,
) -> Option<Found> {
    for tier in tiers {
        let mut best: Option<(u32, Found)> = None;
        for class in *tier {
            let Some(function) = fit_class(*class, samples, work) else { continue };
            let length = function.length_with_exceptions(samples);
            if best.as_ref().is_none_or(|(held, _)| length < *held) {
                best = Some((length, Found { function, class: *class }));
            }
        }
        if let Some((_, found)) = best {
            return Some(found);
        }
    }
    None
}

/// What one class finds, if it is short against the samples.
fn fit_class(class: &dyn FunctionClass, samples: &Samples, work: &mut Work) -> Option<Function> {
    // One class that finds nothing must not leave the others without means.
    let mut share = work.share(SHARE);
    let found = class.fit(samples, &mut share);
    work.spend(work.left() / SHARE - share.left());
    let function = found?;
    debug_assert!(function.explains(samples), "{} fits {}", class.name(), function.words);
    // With exceptions allowed a sample says less.
    let counted = if samples.tolerance == 0 { samples.observations } else { samples.observations / 2 };
    is_short(function.description_length, counted).then_some(function)
}

#[cfg(test)]
pub(crate) mod testing {
    //! Random samples of a given function, for the tests of the classes.

    use crate::samples::{Row, Samples};
    use bem_base::environment::Field;
    use bem_base::prng::Prng;

    /// `count` random rows of fields with these widths, labelled by `wanted`.
    pub fn sample(widths: &[u16], count: usize, seed: u64, wanted: impl Fn(&Row) -> bool) -> Samples {
        let mut prng = Prng::stream(seed, "samples");
        let mut low = 0;
        let groups: Vec<Field> = widths
            .iter()
            .map(|width| {
                let field = Field { low, width: *width };
                low += width;
                field
            })
            .collect();
        let width = usize::from(low);
        let list: Vec<(Row, bool)> = (0..count)
            .map(|_| {
                let mut row = Row::default();
                (0..width).for_each(|index| row.set(index, prng.bit()));
                (row, wanted(&row))
            })
            .collect();
        Samples::new(width, groups, list, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::sample;
    use super::*;

    /// The portfolio must learn `wanted` from `count` rows and be right on new ones.
    fn check(
        widths: &[u16],
        count: usize,
        class: &str,
        wanted: impl Fn(&crate::samples::Row) -> bool + Copy,
    ) {
        let train = sample(widths, count, 1, wanted);
        let function = fit(&train, &mut Work::new(1 << 32)).expect(class);
        assert!(function.words.starts_with(class), "{class}: {}", function.words);
        let fresh = sample(widths, 500, 2, wanted);
        let errors = function.errors(&fresh);
        assert!(errors <= 5, "{class}: {errors} errors in 500, {}", function.words);
        // What is said about it is what its circuit does, in rows like those and in others.
        for row in &fresh.rows {
            let read: Vec<bool> = (0..fresh.width).map(|index| row.get(index)).collect();
            assert_eq!(
                function.statement.holds(&read),
                Some(function.answer(row)),
                "{:?}",
                function.statement
            );
        }
    }

    #[test]
    fn each_kind_of_regularity_is_found_from_few_samples() {
        let bits = |row: &crate::samples::Row, low: usize, width: usize| {
            (0..width).fold(0u32, |sum, index| sum | u32::from(row.get(low + index)) << index)
        };
        check(&[8], 30, "bit", |row| row.get(5));
        check(&[32], 46, "xor", |row| bits(row, 0, 32).count_ones() % 2 == 1);
        check(&[15], 60, "count", |row| 8 <= bits(row, 0, 15).count_ones());
        check(&[12, 12], 80, "count", |row| 6 <= (bits(row, 0, 12) ^ bits(row, 12, 12)).count_ones());
        check(&[8, 8], 60, "relations", |row| bits(row, 0, 8) < bits(row, 8, 8));
        check(&[8, 8, 3], 150, "scan", |row| {
            (bits(row, 0, 8) + bits(row, 8, 8)) >> bits(row, 16, 3) & 1 == 1
        });
        check(&[16, 4], 600, "choose", |row| row.get((bits(row, 16, 4) * 7 % 16) as usize));
        check(&[12], 1_000, "choose by the count", |row| {
            row.0[0].count_ones().checked_sub(1).is_some_and(|place| row.get(place as usize))
        });
        // Three clauses are as short as the smallest circuit: either will do.
        check(&[24], 140, "", |row| (row.get(5) ^ row.get(21)) && (row.get(9) || row.get(2)));
        check(&[6, 3, 3], 400, "", |row| row.get(1) && row.get(7) || row.get(3) && !row.get(9));
        check(&[8, 2], 160, "scan", |row| row.get(3 - bits(row, 8, 2) as usize));
        check(&[5, 5, 5], 400, "xor of 3 bits of facts", |row| {
            (0..3).filter(|field| 3 <= bits(row, 5 * field, 5).count_ones()).count() % 2 == 1
        });
        // A hidden majority where the first bit is set, else a hidden parity.
        check(&[1, 12, 20], 600, "by bit 0: count", |row| match row.get(0) {
            true => 3 <= (bits(row, 1, 12) & 0x4D2).count_ones(),
            false => (bits(row, 13, 20) & 0x5_A3C6).count_ones() % 2 == 1,
        });
        check(&[16], 2_000, "count", |row| (bits(row, 0, 16) & 0xB6D2).count_ones() % 5 == 2);
        check(&[32], 2_000, "count", |row| 6 <= (bits(row, 0, 32) & 0x00C3_F0A8 ^ 0x0003_0000).count_ones());
    }

    #[test]
    fn a_sibling_of_the_same_kind_is_found_for_a_small_part_of_the_work() {
        let clauses = |shift: usize| {
            move |row: &crate::samples::Row| {
                (0..4).all(|clause| (0..3).any(|bit| row.get((6 * clause + 2 * bit + shift) % 24)))
            }
        };
        let first = fit_like(&sample(&[24], 600, 1, clauses(0)), None, &mut Work::new(1 << 32)).unwrap();
        let samples = sample(&[24], 600, 2, clauses(1));
        let spent = |sibling: Option<&Found>| {
            let mut work = Work::new(1 << 32);
            let found = fit_like(&samples, sibling, &mut work).unwrap();
            assert!(found.function.words.starts_with("decision"), "{}", found.function.words);
            (1 << 32) - work.left()
        };
        assert!(4 * spent(Some(&first)) < spent(None));
        // What is of another kind is found all the same.
        let parity = sample(&[24], 60, 3, |row| row.0[0].count_ones() % 2 == 1);
        let found = fit_like(&parity, Some(&first), &mut Work::new(1 << 32)).unwrap();
        assert!(found.function.words.starts_with("xor"), "{}", found.function.words);
    }

    #[test]
    fn coin_flips_are_not_explained() {
        for seed in 0..20 {
            let mut prng = bem_base::prng::Prng::stream(seed, "coins");
            let coins: Vec<bool> = (0..200).map(|_| prng.bit()).collect();
            let next = std::cell::Cell::new(0);
            let samples = sample(&[8, 8, 4], 200, seed, |_| {
                next.set(next.get() + 1);
                coins[next.get() - 1]
            });
            let found = fit(&samples, &mut Work::new(1 << 32));
            assert!(found.is_none(), "{}", found.map(|function| function.words).unwrap_or_default());
        }
    }
}
