//! Thresholds cut anew where values lie, for numbers whose declared bounds are far wider than what is seen of them.
//!
//! A grid over the bounds alone has one or two places where the values of such a number lie, so that no rule among them can be
//! found. Before anything is learned, such a number may be cut where a few values were seen; from then on its places stay. The
//! number takes as many bits as before, and part of the grid stays for values that were not seen yet.
//! Must not know worlds or who shows the values. Clauses: GLE-9; decision D-317.

use crate::declared::Declared;
use crate::encoder::{Code, Column, Encoder};
use crate::feature::{FeatureKind, Value};
use crate::grid::{places, quantiles};
use crate::{Decimal, Rule};

/// A number is crowded where all values seen of it lie in less than this part of its levels.
const PART_MAX: usize = 8;

/// Values that lie in so many levels at most are hardly told apart.
const BLURRED_MAX: usize = 2;

/// Of the places of a crowded number, this part stays on the grid of its bounds.
const GRID_PART: usize = 4;

impl Declared {
    /// Whether it names a number: what is cut by places.
    pub fn has_numbers(&self) -> bool {
        self.encoder.columns().iter().any(Column::is_number)
    }

    /// The numbers of which different values that were seen cannot be told apart although most of their levels show nothing.
    pub fn crowded(&self, rows: &[Vec<Value>]) -> Vec<&str> {
        let columns = self.encoder.columns().iter().enumerate();
        let crowded = columns.filter(|(place, column)| is_crowded(column, &seen(rows, *place)));
        crowded.map(|(_, column)| column.feature.name.as_str()).collect()
    }

    /// The numbers of which more values were seen than the one or two levels that show them, each in words with these levels.
    pub fn blurred(&self, rows: &[Vec<Value>]) -> Vec<(&str, String)> {
        let blurred = |(place, column): (usize, &'_ Column)| {
            let Code::Level(thresholds) = &column.code else { return None };
            let (values, levels) = told_apart(thresholds, &seen(rows, place));
            (levels.len() < values && levels.len() <= BLURRED_MAX).then(|| column.among(&levels))
        };
        let columns = self.encoder.columns().iter().enumerate();
        columns.filter_map(|one| Some((one.1.feature.name.as_str(), blurred(one)?))).collect()
    }

    /// The same with every crowded number cut where its values lie; nothing where none is, or where what is forbidden would take
    /// too many patterns then.
    pub fn cut_at(&self, rows: &[Vec<Value>], actions: u16, horizon: u32) -> Option<Declared> {
        let code = |(place, column): (usize, &Column)| {
            let seen = seen(rows, place);
            let code = match (&column.feature.kind, is_crowded(column, &seen)) {
                (FeatureKind::Number { min, max }, true) => {
                    let own = self.rules().flat_map(|rule| rule.thresholds(place));
                    let own = own.filter(|threshold| min < threshold && threshold <= max).collect();
                    finer((*min, *max, horizon), usize::from(column.width), own, &seen)
                }
                _ => column.code.clone(),
            };
            (column.feature.clone(), code)
        };
        let parts = self.encoder.columns().iter().enumerate().map(code).collect();
        let encoder = Encoder::new(parts).ok()?;
        (encoder != self.encoder && encoder.fields() == self.encoder.fields())
            .then(|| self.coded(encoder, actions).ok())
            .flatten()
    }

    fn rules(&self) -> impl Iterator<Item = &Rule> {
        let (bad, forbid) = self.lists();
        bad.iter().chain(forbid)
    }
}

/// The numbers in one place of the rows.
fn seen(rows: &[Vec<Value>], place: usize) -> Vec<Decimal> {
    let number = |row: &Vec<Value>| match row.get(place) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    rows.iter().filter_map(number).collect()
}

/// Whether different values share a level while nearly all levels show nothing.
fn is_crowded(column: &Column, seen: &[Decimal]) -> bool {
    let Code::Level(thresholds) = &column.code else { return false };
    let (values, levels) = told_apart(thresholds, seen);
    levels.len() < values && PART_MAX * levels.len() <= thresholds.len()
}

/// How many values there are, and the levels that they show, rising.
fn told_apart(thresholds: &[Decimal], seen: &[Decimal]) -> (usize, Vec<usize>) {
    let mut values = seen.to_vec();
    values.sort_unstable();
    values.dedup();
    let level = |value: &Decimal| thresholds.partition_point(|threshold| threshold <= value);
    let mut levels: Vec<usize> = values.iter().map(level).collect();
    levels.dedup();
    (values.len(), levels)
}

/// Places for a number of so many bits: those of rules, those that part the values seen evenly, and a grid over the bounds.
fn finer(
    (min, max, horizon): (Decimal, Decimal, u32),
    width: usize,
    own: Vec<Decimal>,
    seen: &[Decimal],
) -> Code {
    let room = ((1usize << width) - 1).saturating_sub(own.len());
    let mut cut = quantiles(seen, (room - room / GRID_PART).max(1));
    let rest = room.saturating_sub(cut.len());
    if 0 < rest {
        cut.extend(places(min, max, rest, horizon));
    }
    cut.extend(own);
    cut.retain(|place| min < *place && *place <= max);
    cut.sort_unstable();
    cut.dedup();
    Code::Level(cut)
}

#[cfg(test)]
mod tests {
    use crate::declared::{Declared, Texts};
    use crate::feature::Value;
    use crate::{Code, Decimal};

    fn declared(min: &str, max: &str, forbid: Option<&str>) -> Declared {
        let features = format!(r#"[{{"name":"p","kind":"number","min":{min},"max":{max}}}]"#);
        let texts = Texts { features: Some(&features), bad_if: None, forbid };
        Declared::read(&texts, 2, 1).unwrap().unwrap()
    }

    fn rows(values: impl Iterator<Item = i32>) -> Vec<Vec<Value>> {
        values.map(|tenths| vec![Value::Number(Decimal::parse(&format!("{tenths}e-1")).unwrap())]).collect()
    }

    fn level(of: &Declared, value: &str) -> u64 {
        let bits = of.encoder.encode_json(&format!("{{\"p\":{value}}}")).unwrap();
        bits.field(0, of.encoder.bits())
    }

    #[test]
    fn a_number_is_cut_where_its_values_lie_when_its_bounds_are_far_wider() {
        let wide = declared("0", "10000", Some(r#"[{"if":{"p":">= 5020.25"},"action":1}]"#));
        let seen = rows((50_000..50_400).step_by(2));
        assert_eq!(level(&wide, "5012.8"), level(&wide, "5013"));
        assert_eq!(wide.crowded(&seen), ["p"]);
        let fine = wide.cut_at(&seen, 2, 1).unwrap();
        assert!(level(&fine, "5012.6") < level(&fine, "5013.2"));
        // The bits are as many, what was not seen has levels of its own, and what is forbidden is exact.
        assert_eq!(fine.encoder.fields(), wide.encoder.fields());
        assert!(level(&fine, "1000") < level(&fine, "4000") && level(&fine, "6000") < level(&fine, "9000"));
        assert!(level(&fine, "5020.2") < level(&fine, "5020.25"));
        assert!(!fine.forbidden.is_empty());
        let Code::Level(places) = &fine.encoder.columns()[0].code else { panic!("a level") };
        assert!(places.contains(&Decimal::parse("5020.25").unwrap()) && places.len() <= 255);
        assert!(fine.crowded(&seen).is_empty() && fine.cut_at(&seen, 2, 1).is_none());
        assert_eq!(wide.blurred(&seen), [("p", "5000 <= p < 5050".to_string())]);
        assert!(fine.blurred(&seen).is_empty());
    }

    #[test]
    fn few_values_in_one_cell_are_told_apart_one_by_one() {
        let wide = declared("-1000000", "1000000", None);
        let seen = rows([500_000, 500_010, 500_020, -70].into_iter());
        let fine = wide.cut_at(&seen, 2, 1).unwrap();
        let levels = ["-7", "50000", "50001", "50002"].map(|value| level(&fine, value));
        assert!(levels.is_sorted_by(|one, other| one < other), "{levels:?}");
    }

    #[test]
    fn numbers_that_use_their_grid_and_values_that_it_tells_apart_stay_as_they_are() {
        let number = declared("0", "100", None);
        for seen in [
            rows(0..1_000),
            rows(100..300),
            rows([0, 500].into_iter()),
            rows(0..0),
            rows([500; 9].into_iter()),
        ] {
            assert_eq!(number.cut_at(&seen, 2, 1), None);
            assert!(number.crowded(&seen).is_empty());
        }
    }
}
