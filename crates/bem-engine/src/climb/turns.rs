//! Who works on what: units handed out ahead of their turn, and results that wait for it.
//!
//! A unit depends on its own chain and, where it borrows, on the openings of all; never on the order in which families take
//! turns. So a second climb, which takes results as they finish, can hand out work, while the one that is written down takes
//! them by key. A long unit holds up nothing but what is written down: the other threads go on with every other family, as far
//! as they like. With a limit in steps nothing is begun that finished results show to lie beyond it. Clauses: SCC-15, LOG-5.

use super::{Assignment, Climb, Unit, UnitKey, UnitResult};
use std::collections::{BTreeMap, BTreeSet};

/// Results that wait for their turn at most; then only the unit that they wait for is begun.
pub const WAITING_MAX: usize = 256;

/// Units under way, and results that wait for their turn.
#[derive(Debug)]
pub struct Turns {
    /// The climb as it is with everything that is finished; none where results are taken as they come.
    ahead: Option<Climb>,
    steps_max: u64,
    /// Families with a unit under way.
    under_way: BTreeSet<usize>,
    finished: BTreeMap<UnitKey, UnitResult>,
}

impl Turns {
    /// Results are taken as they come.
    pub fn as_they_come() -> Turns {
        Turns { ahead: None, steps_max: u64::MAX, under_way: BTreeSet::new(), finished: BTreeMap::new() }
    }

    /// Results are taken by key, until so many steps are reached; `climb` is where it goes on from.
    pub fn in_order(climb: &Climb, steps_max: u64) -> Turns {
        Turns { ahead: Some(climb.clone()), steps_max, ..Turns::as_they_come() }
    }

    /// The unit to work on next, with all that it needs; it counts as begun.
    pub fn begin(&mut self, climb: &Climb) -> Option<Assignment> {
        let Some(ahead) = &self.ahead else {
            let unit = climb.next(&self.under_way)?;
            self.under_way.insert(unit.track);
            return Some(climb.assign(&unit));
        };
        // Without this one nothing can be taken.
        let wanted = climb.next(&BTreeSet::new()).filter(|unit| !self.under_way.contains(&unit.track));
        let unit = if WAITING_MAX <= self.finished.len() {
            wanted?
        } else {
            let next = ahead.next(&self.under_way).filter(|unit| self.may_count(climb, unit));
            next.or(wanted)?
        };
        let assignment = ahead.assign(&unit);
        self.under_way.insert(unit.track);
        Some(assignment)
    }

    /// Whether a unit may come before the limit, for all that is known: what waits and has a smaller key comes before it.
    fn may_count(&self, climb: &Climb, unit: &Unit) -> bool {
        let before = self.finished.range(..unit.key()).map(|(_, result)| result.solution.learned.tally.steps);
        before.fold(climb.steps(), u64::saturating_add) < self.steps_max
    }

    /// A unit was given up.
    pub fn give_up(&mut self, unit: &Unit) {
        self.under_way.remove(&unit.track);
    }

    /// A unit is finished.
    pub fn finish(&mut self, result: UnitResult) {
        self.under_way.remove(&result.unit.track);
        if let Some(ahead) = &mut self.ahead {
            ahead.take(&result);
        }
        self.finished.insert(result.unit.key(), result);
    }

    /// The result that the climb takes in next, if it is there.
    pub fn next(&mut self, climb: &Climb) -> Option<UnitResult> {
        if self.ahead.is_none() {
            return self.finished.pop_first().map(|(_, result)| result);
        }
        let wanted = climb.next(&BTreeSet::new())?;
        self.finished.remove(&wanted.key())
    }
}
