//! What a reward says about the action that earned it.
//!
//! The highest reward ever seen means: this action was right for this row. With two actions, a lower reward in
//! a place where answers are asked for means: the other one was. Where answers are asked for is itself
//! learned: it is what all rows with the highest reward have in common. Must not know games.

use crate::samples::{ROW_WORDS, Row, Samples, latest};
use crate::view::{Record, View};
use std::collections::BTreeSet;

/// Rows with the action that was right there.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Row, right action, and whether it belongs to the screening part.
    pub list: Vec<(Row, u16, bool)>,
    /// Position of each record among all, and its right action.
    pub places: Vec<(u32, u16)>,
    /// Whether lower rewards were read as "the other one".
    pub complemented: bool,
}

/// Rows with the highest reward before what they have in common is believed.
const COMMON_MIN: usize = 8;

/// Right answers by the highest reward alone.
pub fn positive(view: &View) -> Answers {
    let top = view.top();
    Answers::gather(view, false, |record| (record.reward == top).then_some(record.action))
}

/// Right answers from both high and low rewards; only two actions leave no doubt which other one.
pub fn complemented(view: &View) -> Option<Answers> {
    if view.actions != 2 {
        return None;
    }
    let asked = Common::of(view)?;
    let top = view.top();
    // A time at which no episode ever got the highest reward asks nothing either.
    let asking: BTreeSet<u32> =
        view.told().filter(|record| record.reward == top).map(|record| record.time).collect();
    Some(Answers::gather(view, true, |record| {
        let right = if record.reward == top { record.action } else { 1 - record.action };
        (asking.contains(&record.time) && asked.holds(&record.row)).then_some(right)
    }))
}

/// The literals that every row with the highest reward shares.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    care: Row,
    value: Row,
}

impl Common {
    /// What the best rewarded rows have in common; none when there are too few.
    pub fn of(view: &View) -> Option<Common> {
        let top = view.top();
        let mut rows = view.told().filter(|record| record.reward == top).map(|record| record.row);
        let first = rows.next()?;
        let mut common = Common { care: Row([u64::MAX; ROW_WORDS]), value: first };
        let mut count = 1;
        for row in rows {
            count += 1;
            for word in 0..ROW_WORDS {
                common.care.0[word] &= !(row.0[word] ^ first.0[word]);
            }
        }
        (COMMON_MIN <= count).then_some(common)
    }

    /// Whether the row shares them.
    pub fn holds(&self, row: &Row) -> bool {
        (0..ROW_WORDS).all(|word| (row.0[word] ^ self.value.0[word]) & self.care.0[word] == 0)
    }
}

impl Answers {
    fn gather(view: &View, complemented: bool, right: impl Fn(&Record) -> Option<u16>) -> Answers {
        let (mut list, mut places) = (Vec::new(), Vec::new());
        for (place, record) in view.records.iter().enumerate() {
            if let Some(action) = right(record).filter(|_| record.is_told) {
                list.push((record.row, action, record.screen));
                places.push((place as u32, action));
            }
        }
        Answers { list, places, complemented }
    }

    /// One bit of the right action as samples; only the part for fitting, or only the part for screening.
    pub fn samples(&self, view: &View, bit: usize, screen: bool, tolerance_percent: usize) -> Samples {
        let part = self.list.iter().rev().filter(|(_, _, held)| *held == screen);
        let labelled = latest(part.map(|(row, action, _)| (*row, action >> bit & 1 == 1)));
        Samples::new(view.width, view.groups.clone(), labelled, tolerance_percent)
    }
}
