//! The best action for every state and number of steps left, by dynamic programming.
//!
//! With few steps left another action may be best than with many, so a plan knows how many are left. Pairs that were
//! hardly tried count as the attitude says: careful plans leave them out, curious ones expect the most of them,
//! and those by analogy expect what others brought.

use super::chance::{Dynamics, Row, VALUE_BITS};

/// Numbers of steps left that are told apart at most; with more left the plan is that of this many.
pub const STEPS_MAX: usize = 256;

/// Imagined tries of every pair that bring what analogies say.
const IMAGINED: i64 = 2;

/// How to value what was hardly tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attitude<'w> {
    /// What was never tried cannot be done.
    Careful,
    /// What was never tried cannot be done, and what was tried seldom is worth less than it brought: this many milli-units
    /// for one try, half of it for four. Where most pairs were tried seldom, the best of many would else be one that was
    /// lucky.
    Cautious {
        /// What one try may mislead by.
        doubt: i64,
    },
    /// What was tried fewer times than this brings the ceiling, in milli-units.
    Curious {
        /// Tries from which on a pair is taken as counted.
        known_at: i64,
        /// What an unknown pair is worth.
        ceiling: i64,
    },
    /// What was tried fewer times than this was tried once more, and brought the ceiling then: what was tried least is looked
    /// at first, wherever it is, and what pays by the counts goes before what was tried a few times in vain.
    Hopeful {
        /// Tries from which on a pair is taken as counted.
        known_at: i64,
        /// What an unknown pair is worth.
        ceiling: i64,
    },
    /// Every pair was tried twice more than it was, and brought what it should be worth by others.
    Analogous {
        /// What pairs should be worth, at `state * actions + action`, with the bits of a value.
        worths: &'w [i64],
        /// What one may hope for beyond that where nothing was tried, in milli-units; half of it after three tries.
        hope: i64,
    },
}

impl Attitude<'_> {
    /// Tries below which a pair is worth the ceiling, whatever it brought.
    fn patience(&self) -> i64 {
        if matches!(self, Attitude::Hopeful { .. }) { 1 } else { i64::MAX }
    }

    /// What a pair is chosen by and what it is worth, if this lies ahead and so many steps are left after it; none where
    /// it cannot be done.
    fn rate(&self, row: &Row, pair: usize, ahead: &[i64], left: usize) -> Option<(i64, i64)> {
        let root = |tries: i64| tries.unsigned_abs().isqrt() as i64;
        match *self {
            Attitude::Curious { known_at, ceiling } | Attitude::Hopeful { known_at, ceiling }
                if row.tries < known_at.min(self.patience()) =>
            {
                // The least tried first, so that none is tried again and again, and rather now than later, so that
                // steps are left to see what follows.
                let value = (ceiling << VALUE_BITS) - row.tries + 16 * left as i64;
                Some((value, value))
            }
            Attitude::Hopeful { known_at, ceiling } if 0 < row.tries && row.tries < known_at => {
                let (value, ceiling) = (row.value(ahead), ceiling << VALUE_BITS);
                let mean = (i128::from(value) * i128::from(row.tries) + i128::from(ceiling.max(value)))
                    / i128::from(row.tries + 1);
                Some((mean as i64, mean as i64))
            }
            Attitude::Analogous { worths, hope } => {
                let sum = i128::from(row.value(ahead)) * i128::from(row.tries)
                    + i128::from(worths[pair]) * i128::from(IMAGINED);
                let mean = (sum / i128::from(row.tries + IMAGINED)) as i64;
                let value = mean + (hope << VALUE_BITS) / root(1 + row.tries);
                Some((value, value))
            }
            _ if row.tries == 0 => None,
            Attitude::Cautious { doubt } => {
                // Doubt is about this choice, and not about all that follow.
                let value = row.value(ahead);
                Some((value - (doubt << VALUE_BITS) / root(row.tries), value))
            }
            Attitude::Careful | Attitude::Curious { .. } | Attitude::Hopeful { .. } => {
                let value = row.value(ahead);
                Some((value, value))
            }
        }
    }
}

/// A plan over the states of a model.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Per number of steps left less one, per state: the action.
    pub actions: Vec<Vec<u16>>,
    /// The value of every state with all steps left.
    pub values: Vec<i64>,
    /// Per state the action with the number of steps left from which on more steps change nothing: where time is to
    /// spare, the action that comes to the point.
    pub direct: Vec<u16>,
}

impl Plan {
    /// The best plan for this many steps.
    pub fn best(dynamics: &Dynamics, horizon: u32, attitude: Attitude<'_>) -> Plan {
        let states = dynamics.states();
        let mut plan = Plan { actions: Vec::new(), values: vec![0; states], direct: vec![0; states] };
        for left in 0..(horizon as usize).min(STEPS_MAX) {
            let mut values = vec![0; states];
            let mut actions = vec![0; states];
            for state in 0..states {
                let mut top: Option<(i64, i64, u16)> = None;
                for (action, row) in dynamics.of(state).iter().enumerate() {
                    let pair = state * dynamics.actions + action;
                    let Some((rank, value)) = attitude.rate(row, pair, &plan.values, left) else { continue };
                    if top.is_none_or(|held| held.0 < rank) {
                        top = Some((rank, value, action as u16));
                    }
                }
                (values[state], actions[state]) = top.map_or((0, 0), |(_, value, action)| (value, action));
                if left == 0 || values[state] != plan.values[state] {
                    plan.direct[state] = actions[state];
                }
            }
            plan.values = values;
            plan.actions.push(actions);
        }
        plan
    }

    /// The plan in which the action with the most steps left is kept wherever it costs at most the tolerance.
    pub fn steadied(&self, dynamics: &Dynamics, tolerance: i64) -> Plan {
        let Some(steady) = self.actions.last() else { return self.clone() };
        let (actions, values, direct) = (Vec::new(), vec![0; self.values.len()], self.direct.clone());
        let mut plan = Plan { actions, values, direct };
        for best in &self.actions {
            let mut values = vec![0; self.values.len()];
            let mut actions = best.clone();
            for state in 0..values.len() {
                let value = |action: u16| match &dynamics.of(state)[usize::from(action)] {
                    row if row.tries == 0 => i64::MIN,
                    row => row.value(&plan.values),
                };
                if value(best[state]) <= value(steady[state]).saturating_add(tolerance) {
                    actions[state] = steady[state];
                }
                values[state] = value(actions[state]).max(-(1 << 50));
            }
            plan.values = values;
            plan.actions.push(actions);
        }
        plan
    }

    /// The better of two plans that do not look at the clock, with its value from the start: what is best with the most
    /// steps left, or what comes to the point. With the most steps left all ways that arrive in time are equally good,
    /// and one that only ever puts it off is among them.
    pub fn stationary(&self, dynamics: &Dynamics) -> (Plan, i64) {
        let patient = self.actions.last().cloned().unwrap_or_default();
        let plan = |steady: Vec<u16>| {
            let actions = vec![steady; self.actions.len()];
            let plan = Plan { actions, values: self.values.clone(), direct: self.direct.clone() };
            let values = plan.evaluate(dynamics);
            let value = dynamics.from_start(|state| values[state]);
            (plan, value)
        };
        let (patient, direct) = (plan(patient), plan(self.direct.clone()));
        if direct.1 < patient.1 { patient } else { direct }
    }

    /// The action in a state with this many steps left.
    pub fn action(&self, state: u32, left: usize) -> u16 {
        let row = left.clamp(1, self.actions.len().max(1)) - 1;
        self.actions.get(row).map_or(0, |row| row[state as usize])
    }

    /// The values of all states when these actions are taken.
    pub fn evaluate(&self, dynamics: &Dynamics) -> Vec<i64> {
        let mut values = vec![0; dynamics.states()];
        for actions in &self.actions {
            let next = |(state, action): (usize, &u16)| match &dynamics.of(state)[usize::from(*action)] {
                row if row.tries == 0 => 0,
                row => row.value(&values),
            };
            values = actions.iter().enumerate().map(next).collect();
        }
        values
    }
}

/// The values of all states under actions drawn with equal chance, among those that were tried.
pub fn evaluate_uniform(dynamics: &Dynamics, horizon: u32) -> Vec<i64> {
    let mut values = vec![0i64; dynamics.states()];
    for _ in 0..(horizon as usize).min(STEPS_MAX) {
        let mean = |state: usize| {
            let tried: Vec<i64> =
                dynamics.of(state).iter().filter(|row| 0 < row.tries).map(|row| row.value(&values)).collect();
            tried.iter().sum::<i64>() / (tried.len() as i64).max(1)
        };
        values = (0..values.len()).map(mean).collect();
    }
    values
}
