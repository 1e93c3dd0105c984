//! Which rows of a log are about the same case, and how rows are split without tearing cases apart.
//!
//! A row that is held out says how a policy does with what it has not seen. It does not say so where rows with the same
//! observation were learned from: a log that shows every case twelve times would make any policy look right. So rows that
//! show the same are one case, learned from or held out as a whole. Where the log has seen at least half of all that its
//! features could show together, what comes next is mostly known already, and every row is a case of its own.
//! Must not know actions or rewards. Clauses: GLE-9.

use crate::log::Log;
use bem_base::prng::Prng;
use bem_data::feature::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Parts that rows are split into; each is held out once.
pub const FOLDS: usize = 5;

/// The cases of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cases {
    /// For every row its case.
    of: Vec<u32>,
}

impl Cases {
    /// The cases of a log.
    pub fn new(log: &Log) -> Cases {
        let mut known: BTreeMap<&[Value], u32> = BTreeMap::new();
        let mut of = Vec::with_capacity(log.rows.len());
        for (row, values) in log.rows.iter().enumerate() {
            of.push(*known.entry(values).or_insert(row as u32));
        }
        let different =
            |place: usize| log.rows.iter().map(|values| values[place]).collect::<BTreeSet<_>>().len();
        let possible =
            (0..log.features.len()).fold(1usize, |all, place| all.saturating_mul(different(place)));
        if possible / 2 <= known.len() {
            return Cases { of: (0..log.rows.len() as u32).collect() };
        }
        Cases { of }
    }

    /// The case of a row.
    pub fn of(&self, row: u32) -> u32 {
        self.of[row as usize]
    }

    /// All rows, case by case, the cases in an order drawn from the seed.
    pub fn shuffled(&self, seed: u64) -> Vec<u32> {
        let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        self.of.iter().enumerate().for_each(|(row, case)| rows.entry(*case).or_default().push(row as u32));
        let mut cases: Vec<Vec<u32>> = rows.into_values().collect();
        Prng::stream(seed, "logs/order").shuffle(&mut cases);
        cases.concat()
    }

    /// Splits rows that stand case by case: whole cases first, until there are at least so many rows.
    pub fn split<'a>(&self, order: &'a [u32], least: usize) -> (&'a [u32], &'a [u32]) {
        let is_end = |at: usize| at == order.len() || at == 0 || self.of(order[at - 1]) != self.of(order[at]);
        let at = (least..=order.len()).find(|at| is_end(*at)).unwrap_or(order.len());
        order.split_at(at)
    }

    /// One part of rows that stand case by case, and the others.
    pub fn fold(&self, order: &[u32], fold: usize) -> (Vec<u32>, Vec<u32>) {
        let (mut held, mut rest) = (Vec::new(), Vec::new());
        let (mut number, mut last) = (0, None);
        for row in order {
            let case = self.of(*row);
            number += usize::from(last.is_some_and(|last| last != case));
            last = Some(case);
            if number % FOLDS == fold { held.push(*row) } else { rest.push(*row) }
        }
        (held, rest)
    }
}

/// One term for every case from terms of rows, with the same mean: rows of one case are no evidence apart.
pub fn by_case(cases: &[u32], terms: &[i128]) -> Vec<i128> {
    let mut sums: BTreeMap<u32, i128> = BTreeMap::new();
    cases.iter().zip(terms).for_each(|(case, term)| *sums.entry(*case).or_default() += term);
    if sums.len() == terms.len() {
        return terms.to_vec();
    }
    let (count, rows) = (sums.len() as i128, terms.len() as i128);
    sums.into_values().map(|sum| sum.saturating_mul(count) / rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_data::Table;

    fn cases(text: &str) -> Cases {
        let table = Table::from_csv(text).unwrap();
        let roles = crate::Roles {
            features: vec!["x".to_string(), "y".to_string()],
            label: Some("a".to_string()),
            ..crate::Roles::default()
        };
        Cases::new(&Log::new(&table, &roles, None).unwrap())
    }

    #[test]
    fn rows_that_show_the_same_stay_together() {
        let rows: Vec<String> =
            (0..60).map(|row| format!("{},{},{}", row % 20, row % 20 * 3, row % 2)).collect();
        let cases = cases(&format!("x,y,a\n{}\n", rows.join("\n")));
        let order = cases.shuffled(1);
        assert_eq!(order.len(), 60);
        let (aside, members) = cases.split(&order, 10);
        assert_eq!((aside.len(), members.len()), (12, 48), "three rows a case");
        for fold in 0..FOLDS {
            let (held, rest) = cases.fold(members, fold);
            assert_eq!(held.len() + rest.len(), 48);
            assert!(held.iter().all(|row| rest.iter().all(|other| cases.of(*row) != cases.of(*other))));
        }
    }

    #[test]
    fn where_all_that_can_be_seen_was_seen_every_row_is_its_own_case() {
        let rows: Vec<String> =
            (0..60).map(|row| format!("{},{},{}", row % 4, row / 4 % 2, row % 2)).collect();
        let cases = cases(&format!("x,y,a\n{}\n", rows.join("\n")));
        assert!((0..60).all(|row| cases.of(row) == row));
    }

    #[test]
    fn terms_of_one_case_become_one_with_the_same_mean() {
        assert_eq!(by_case(&[0, 1, 2], &[5, 6, 7]), [5, 6, 7]);
        let terms = by_case(&[0, 0, 0, 9], &[60, 60, 60, 100]);
        assert_eq!((terms.as_slice(), terms.iter().sum::<i128>() / 2), (&[90, 50][..], 70));
    }
}
