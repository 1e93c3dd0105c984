//! Cuts that rows themselves ask for: thresholds between neighbouring values, and words, wherever gains differ most.
//!
//! A grid of quantiles is blind between two of its thresholds. Here every place between two values that occur is tried, as a
//! decision tree does: the part of the rows that promises most is cut next, a bounded number of times. Which cuts are worth
//! their bits is for cross-validation to say. Decision D-316. Must not know folds or policies. Clauses: GLE-9.

use crate::log::{Log, Outcome};
use bem_data::Decimal;
use bem_data::feature::Value;

/// Rows on each side of a cut at least.
const SIDE_ROWS_MIN: usize = 5;
/// Gains are scaled down to so many bits: the square of a sum over all rows of a log, for all of its actions, can be counted.
const GAIN_BITS: u32 = 42;

/// What is asked of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// Whether the number is at least that.
    AtLeast(Decimal),
    /// Whether the choice is this word.
    Is(u16),
    /// Whether the bit is set.
    Set,
}

/// A question about one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// The place of the feature.
    pub feature: usize,
    /// What is asked.
    pub test: Test,
}

impl Cut {
    /// The answer for a row.
    pub fn holds(&self, values: &[Value]) -> bool {
        match (self.test, values[self.feature]) {
            (Test::AtLeast(threshold), Value::Number(number)) => threshold <= number,
            (Test::Is(word), Value::Choice(own)) => word == own,
            (Test::Set, Value::Bit(bit)) => bit,
            _ => false,
        }
    }
}

/// What every action is worth in every row.
#[derive(Clone, Copy, Debug)]
pub enum Gains<'a> {
    /// For every row one number for every action.
    Each(&'a [i64]),
    /// One for the action of the row's outcome, nothing for all others.
    Taken(&'a [Outcome]),
}

/// A part of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// How it was cut, and its parts where the cut does not hold and where it does.
    pub split: Option<(Cut, usize, usize)>,
}

/// Rows in parts, the first of which is all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Every part.
    pub parts: Vec<Part>,
    /// The cuts in the order in which they were made, none twice.
    pub cuts: Vec<Cut>,
}

impl Parts {
    /// The part that a row comes to, which is not cut.
    pub fn leaf(&self, values: &[Value]) -> usize {
        let mut at = 0;
        while let Some((cut, without, with)) = &self.parts[at].split {
            at = if cut.holds(values) { *with } else { *without };
        }
        at
    }
}

/// A part that may be cut further.
struct Open {
    part: usize,
    rows: Vec<u32>,
    best: Option<(i128, Cut)>,
}

/// Cuts these rows into at most so many parts.
pub fn cut(log: &Log, rows: &[u32], gains: Gains<'_>, leaves_max: usize) -> Parts {
    let cutter = Cutter::new(log, gains);
    let mut found = Parts { parts: vec![Part { split: None }], cuts: Vec::new() };
    let mut open = vec![Open { part: 0, best: cutter.best(rows), rows: rows.to_vec() }];
    for _ in 1..leaves_max {
        let promise = |open: &Open| open.best.map_or(0, |(explained, _)| explained);
        let Some(place) = (0..open.len()).rev().max_by_key(|place| promise(&open[*place])) else { break };
        let whole = open.swap_remove(place);
        let Some((_, cut)) = whole.best else { break };
        let (with, without): (Vec<u32>, Vec<u32>) =
            whole.rows.iter().partition(|row| cut.holds(&log.rows[**row as usize]));
        let first = found.parts.len();
        found.parts[whole.part].split = Some((cut, first, first + 1));
        if !found.cuts.contains(&cut) {
            found.cuts.push(cut);
        }
        for rows in [without, with] {
            open.push(Open { part: found.parts.len(), best: cutter.best(&rows), rows });
            found.parts.push(Part { split: None });
        }
    }
    found
}

struct Cutter<'a> {
    log: &'a Log,
    gains: Gains<'a>,
    actions: usize,
    /// Bits that gains are scaled down by.
    scale: u32,
    /// For every feature the place of every row's value among the values that occur, rising.
    ranks: Vec<Vec<u32>>,
}

/// The gains on both sides of a cut, and the sums of their squares over actions.
struct Sides {
    with: Vec<i128>,
    without: Vec<i128>,
    squares: (i128, i128),
    count: usize,
}

impl Sides {
    fn take(&mut self, action: usize, gain: i128) {
        self.squares.0 += gain * (2 * self.with[action] + gain);
        self.squares.1 -= gain * (2 * self.without[action] - gain);
        self.with[action] += gain;
        self.without[action] -= gain;
    }
}

impl<'a> Cutter<'a> {
    fn new(log: &'a Log, gains: Gains<'a>) -> Cutter<'a> {
        let scale = match gains {
            Gains::Taken(_) => 0,
            Gains::Each(all) => {
                let most = all.iter().map(|gain| gain.unsigned_abs()).max().unwrap_or(0);
                (u64::BITS - most.leading_zeros()).saturating_sub(GAIN_BITS)
            }
        };
        let ranks = (0..log.features.len()).map(|place| ranks(log, place)).collect();
        Cutter { log, gains, actions: log.actions.len(), scale, ranks }
    }

    /// Every gain of a row that is not zero.
    fn each(&self, row: u32, mut take: impl FnMut(usize, i128)) {
        match self.gains {
            Gains::Taken(outcomes) => take(usize::from(outcomes[row as usize].action), 1 << 16),
            Gains::Each(all) => {
                let own = &all[row as usize * self.actions..][..self.actions];
                for (action, gain) in own.iter().enumerate().filter(|(_, gain)| **gain != 0) {
                    take(action, i128::from(gain >> self.scale));
                }
            }
        }
    }

    /// The cut that explains most of these rows' gains, if any explains something.
    fn best(&self, rows: &[u32]) -> Option<(i128, Cut)> {
        if rows.len() < 2 * SIDE_ROWS_MIN {
            return None;
        }
        let mut all = vec![0i128; self.actions];
        rows.iter().for_each(|row| self.each(*row, |action, gain| all[action] += gain));
        let square: i128 = all.iter().map(|sum| sum * sum).sum();
        let mut best: Option<(i128, Cut)> = None;
        for feature in 0..self.ranks.len() {
            let found = self.best_of(feature, rows, &all, square);
            if let Some((explained, cut)) = found
                && best.is_none_or(|(most, _)| most < explained)
            {
                best = Some((explained, cut));
            }
        }
        best
    }

    /// The same by one feature.
    fn best_of(&self, feature: usize, rows: &[u32], all: &[i128], square: i128) -> Option<(i128, Cut)> {
        let ranks = &self.ranks[feature];
        // Largest values first: what is taken is at least a threshold.
        let mut order: Vec<u64> =
            rows.iter().map(|row| u64::from(ranks[*row as usize]) << 32 | u64::from(*row)).collect();
        order.sort_unstable_by(|left, right| right.cmp(left));
        let (rank, row) = (|entry: &u64| entry >> 32, |entry: &u64| *entry as u32);
        let is_number = matches!(self.log.rows[rows[0] as usize][feature], Value::Number(_));
        let begin =
            || Sides { with: vec![0; self.actions], without: all.to_vec(), squares: (0, square), count: 0 };
        let mut sides = begin();
        let mut best: Option<(i128, u32, u32)> = None;
        for (place, entry) in order.iter().enumerate() {
            self.each(row(entry), |action, gain| sides.take(action, gain));
            sides.count += 1;
            let next = order.get(place + 1);
            if next.is_some_and(|next| rank(next) == rank(entry)) {
                continue;
            }
            let (count, rest) = (sides.count, order.len() - sides.count);
            if SIDE_ROWS_MIN <= count && SIDE_ROWS_MIN <= rest {
                let explained = sides.squares.0 / count as i128 + sides.squares.1 / rest as i128
                    - square / order.len() as i128;
                if 1 < explained && best.is_none_or(|(most, ..)| most < explained) {
                    best = Some((explained, row(entry), next.map_or(row(entry), row)));
                }
            }
            // Numbers are cut in two, words one from all others.
            if !is_number {
                sides = begin();
            }
        }
        best.map(|(explained, above, below)| (explained, self.between(feature, above, below)))
    }

    /// The cut that holds in one row and not in the other, which is the next one below it.
    fn between(&self, feature: usize, above: u32, below: u32) -> Cut {
        let value = |row: u32| self.log.rows[row as usize][feature];
        let test = match (value(above), value(below)) {
            (Value::Number(above), Value::Number(below)) => Test::AtLeast(Decimal::between(below, above)),
            (Value::Choice(word), _) => Test::Is(word),
            _ => Test::Set,
        };
        Cut { feature, test }
    }
}

/// For every row the place of its value among all that occur.
fn ranks(log: &Log, feature: usize) -> Vec<u32> {
    let number = |values: &Vec<Value>| match values[feature] {
        Value::Number(number) => number,
        Value::Choice(word) => Decimal::from_int(i32::from(word)),
        Value::Bit(bit) => Decimal::from_int(i32::from(bit)),
    };
    let own: Vec<Decimal> = log.rows.iter().map(number).collect();
    let mut different = own.clone();
    different.sort_unstable();
    different.dedup();
    own.iter().map(|number| different.partition_point(|other| other < number) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_data::Table;

    fn log(text: &str) -> Log {
        let table = Table::from_csv(text).unwrap();
        let roles = crate::Roles {
            features: vec!["x".to_string(), "c".to_string(), "b".to_string()],
            label: Some("a".to_string()),
            ..crate::Roles::default()
        };
        Log::new(&table, &roles, None).unwrap()
    }

    #[test]
    fn the_place_where_labels_change_is_found_among_all_values() {
        let rows: Vec<String> = (0..400)
            .map(|row| format!("{},u,{},{}", row * 3, row % 2, u8::from((100..107).contains(&row))))
            .collect();
        let log = log(&format!("x,c,b,a\n{}\n", rows.join("\n")));
        let every: Vec<u32> = (0..400).collect();
        let found = cut(&log, &every, Gains::Taken(&log.outcomes), 8);
        let at = |value: i32| Cut { feature: 0, test: Test::AtLeast(Decimal::from_int(value)) };
        let (first, last) = (Decimal::between(Decimal::from_int(297), Decimal::from_int(300)), 320);
        assert_eq!(found.cuts.len(), 2, "two cuts make all parts pure: {:?}", found.cuts);
        assert!(
            found.cuts.contains(&Cut { feature: 0, test: Test::AtLeast(first) })
                && found.cuts.contains(&at(last))
        );
        // The same by gains that are given row by row.
        let gains: Vec<i64> =
            log.outcomes.iter().flat_map(|one| [i64::from(one.action == 0) << 50, 0]).collect();
        assert_eq!(cut(&log, &every, Gains::Each(&gains), 8), found);
    }

    #[test]
    fn words_and_bits_are_cut_from_all_others_and_few_rows_are_not_cut() {
        let word = |row: u32| ["u", "v", "w"][row as usize % 3];
        let rows: Vec<String> = (0..120)
            .map(|row| format!("1,{},{},{}", word(row), row / 60, u8::from(word(row) == "v" && row < 60)))
            .collect();
        let log = log(&format!("x,c,b,a\n{}\n", rows.join("\n")));
        let every: Vec<u32> = (0..120).collect();
        let found = cut(&log, &every, Gains::Taken(&log.outcomes), 8);
        let (is, set) = (Cut { feature: 1, test: Test::Is(1) }, Cut { feature: 2, test: Test::Set });
        assert_eq!((found.cuts.as_slice(), found.parts.len()), (&[is, set][..], 5));
        assert!(is.holds(&log.rows[1]) && !is.holds(&log.rows[0]) && set.holds(&log.rows[60]));
        assert!(cut(&log, &every[..9], Gains::Taken(&log.outcomes), 8).cuts.is_empty());
    }
}
