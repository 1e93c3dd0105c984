//! The guard in a running learner: what is BAD more often than something else becomes a rule, by a patch.
//!
//! A pair of observation and action becomes a rule when it was tried at least three times and an exact test says that it is
//! BAD more often than the alternative that is done in its place; one unlucky try forbids nothing. Rules stay: the guard
//! masks a forbidden action in every turn, so that nothing new is learned about it. Clauses: SCC-5, SCC-11; decision D-45.

use crate::learner::{Learner, Witness};
use bem_base::environment::{Bits, Forbidden, Pattern};
use bem_base::fixed::Fixed;
use bem_evolve::doubt::doubt;
use bem_evolve::improvement::Account;
use bem_evolve::patch::{Change, ExpectedEffects};
use bem_evolve::propose::Proposal;
use bem_evolve::verify::Improvement;
use bem_machine::guard::{RULES_MAX, Rule};
use bem_synth::experience::Episode;
use core::cmp::Reverse;
use std::collections::BTreeMap;

/// Tries of a pair before it can be forbidden.
const TRIES_MIN: u32 = 3;
/// Tries of one pair that are counted: more would say the same, and the test counts combinations.
const TRIES_MAX: u32 = 24;

/// The last words of the patch that puts the user's own rules into force.
pub const USER_RULES_OUT: &str = "that the user rules out";

/// The last words of a patch that forbids what was seen to be BAD.
pub const WERE_BAD: &str = "actions that were BAD";

/// What was seen of one pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tries {
    count: u32,
    bad: u32,
    reward: i64,
}

impl Learner {
    /// Makes rules of what the log shows to be BAD.
    pub(crate) fn tend_guard(&mut self, witness: &mut dyn Witness) {
        let is_bad = |episode: &&Episode| episode.steps.iter().any(|step| step.bad);
        if self.settings.config.guard && self.recent().iter().any(is_bad) {
            let odds = self.machinery.enter_test(Account::Guard);
            if let Some(proposal) = self.new_rules(odds) {
                self.decide_at_once(proposal, witness);
            }
        }
    }

    /// Puts what the user forbids into force before anything is played, in place of what the task before had shown to be BAD;
    /// it needs no evidence, only the proof that nothing forbidden passes. Whether it is in force then.
    pub fn obey(&mut self, forbidden: &[Forbidden], witness: &mut dyn Witness) -> bool {
        if forbidden.is_empty() && self.machinery.family().guard().is_empty() {
            return true;
        }
        let world = (usize::from(self.shape.observation_bits), self.shape.actions);
        let Ok(kept) = Forbidden::with_instead(forbidden, world, RULES_MAX) else { return false };
        let rule =
            |(pair, instead): (Forbidden, u16)| Rule { seen: pair.seen, forbidden: pair.action, instead };
        let mut rules: Vec<Rule> = kept.into_iter().map(rule).collect();
        rules.sort_unstable();
        rules.dedup();
        let are_whole = rules.iter().all(|rule| rule.seen.only().is_some());
        let words = match (rules.len(), are_whole) {
            (0, _) => "forbid nothing any more: another task begins".to_string(),
            (count, true) => format!("forbid {count} pairs of observation and action {USER_RULES_OUT}"),
            (count, false) => format!("forbid {count} patterns of observation and action {USER_RULES_OUT}"),
        };
        let proposal = Proposal {
            change: Change::Guard { rules },
            improvement: Some(Improvement::Given),
            effects: ExpectedEffects::default(),
            words,
        };
        self.decide_at_once(proposal, witness)
    }

    fn new_rules(&self, odds: u128) -> Option<Proposal> {
        let log = self.recent();
        let steps = || log.iter().flat_map(|episode| &episode.steps);
        let mut tries: BTreeMap<Bits, BTreeMap<u16, Tries>> = BTreeMap::new();
        for step in steps().filter(|step| step.bad) {
            tries.entry(step.observation).or_default();
        }
        for step in steps() {
            let Some(actions) = tries.get_mut(&step.observation) else { continue };
            let pair = actions.entry(step.action).or_default();
            if pair.count < TRIES_MAX {
                *pair = Tries {
                    count: pair.count + 1,
                    bad: pair.bad + u32::from(step.bad),
                    reward: pair.reward + i64::from(step.reward),
                };
            }
        }
        // Every pair that was tried often enough is a test, and they share the chance of error.
        let pairs = tries.values().flat_map(BTreeMap::values).filter(|pair| TRIES_MIN <= pair.count);
        let odds = odds.saturating_mul(pairs.count().max(1) as u128);
        let guard = self.machinery.family().guard();
        let mut rules = guard.rules().to_vec();
        let (mut added, mut counted, mut lower_bound) = (0, 0, Fixed::ONE);
        for (observation, actions) in &tries {
            for (forbidden, pair) in actions {
                let is_known = guard.pass(observation, *forbidden) != *forbidden;
                let is_instead =
                    rules.iter().any(|rule| rule.instead == *forbidden && rule.seen.covers(observation));
                if is_known || is_instead || pair.count < TRIES_MIN || RULES_MAX <= rules.len() {
                    continue;
                }
                let allowed = |action: &&u16| {
                    *action != forbidden
                        && !rules
                            .iter()
                            .any(|rule| rule.forbidden == **action && rule.seen.covers(observation))
                };
                let better =
                    actions.keys().filter(allowed).filter(|action| is_worse(*pair, actions[*action], odds));
                let mean = |action: &u16| actions[action].reward / i64::from(actions[action].count.max(1));
                let Some(instead) = better.max_by_key(|action| (mean(action), Reverse(**action))) else {
                    continue;
                };
                rules.push(Rule {
                    seen: Pattern::whole(*observation),
                    forbidden: *forbidden,
                    instead: *instead,
                });
                (added, counted) = (added + 1, counted + pair.count);
                lower_bound = lower_bound.min(surely_worse_by(*pair, actions[instead], odds));
            }
        }
        rules.sort_unstable();
        (0 < added).then(|| Proposal {
            change: Change::Guard { rules },
            improvement: Some(Improvement::Logged { lower_bound, steps: counted }),
            effects: ExpectedEffects { safety_gain: lower_bound, ..ExpectedEffects::default() },
            words: format!("forbid {added} {WERE_BAD}"),
        })
    }
}

/// Whether the first pair is BAD more often than the second, by Fisher's exact test: of all ways to spread the BAD tries
/// over both, at most one in `odds` gives the first pair as many.
fn is_worse(pair: Tries, other: Tries, odds: u128) -> bool {
    let (bad, all) = (pair.bad + other.bad, pair.count + other.count);
    let ways = |first: u32| {
        let second = bad.checked_sub(first)?;
        Some(choose(pair.count, first)? * choose(other.count, second)?)
    };
    let Some(total) = choose(all, bad) else { return false };
    let extreme: u128 = (pair.bad..=pair.count.min(bad)).filter_map(ways).sum();
    extreme.saturating_mul(odds) <= total
}

/// How much more often the first pair is BAD, at least: what Hoeffding's bounds leave of the difference, and more than nothing in
/// any case, as the exact test says.
fn surely_worse_by(pair: Tries, other: Tries, odds: u128) -> Fixed {
    let rate = |tries: Tries| Fixed::from_ratio(i64::from(tries.bad), i64::from(tries.count.max(1)));
    let doubts = doubt(pair.count, odds).plus(doubt(other.count, odds));
    rate(pair).minus(rate(other)).minus(doubts).max(Fixed::from_raw(1))
}

/// How many ways there are to choose; at most 48 things are chosen from.
fn choose(of: u32, count: u32) -> Option<u128> {
    if of < count {
        return None;
    }
    Some((0..u128::from(count)).fold(1, |ways, taken| ways * (u128::from(of) - taken) / (taken + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unlucky_try_forbids_nothing_and_clear_differences_do() {
        let tries = |count, bad| Tries { count, bad, reward: 0 };
        assert_eq!(
            (choose(6, 3), choose(5, 0), choose(2, 3), choose(48, 24)),
            (Some(20), Some(1), None, Some(32_247_603_683_100))
        );
        for (pair, other, worse) in [
            ((1, 1), (24, 0), false),
            ((3, 3), (3, 0), false),
            ((3, 3), (24, 0), true),
            ((6, 6), (6, 0), false),
            ((7, 7), (7, 0), true),
            ((24, 12), (24, 12), false),
            ((24, 20), (24, 4), true),
        ] {
            assert_eq!(
                is_worse(tries(pair.0, pair.1), tries(other.0, other.1), 1_000),
                worse,
                "{pair:?} {other:?}"
            );
        }
        // The bound lies below the difference, and above nothing where the test is sure and the bounds are wide.
        assert_eq!(surely_worse_by(tries(7, 7), tries(7, 0), 1_000), Fixed::from_raw(1));
        let bound = surely_worse_by(tries(24, 24), tries(24, 0), 1_000);
        assert!(Fixed::from_ratio(1, 5) < bound && bound < Fixed::HALF, "{bound}");
    }
}
