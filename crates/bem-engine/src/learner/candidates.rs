//! Candidates: who waits for a decision, who was measured when, and when the log is searched again.
//!
//! The patches themselves wait in the machine's queue; this holds the hypotheses behind them, by serial. Must not know worlds,
//! the log or the machine. Clauses: SCC-2, SCC-15.

use crate::codec::{
    decode_hypothesis, decode_list, decode_option, encode_hypothesis, encode_list, encode_option,
};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_synth::hypothesis::Hypothesis;
use bem_synth::policy::Policy;
use std::collections::BTreeMap;

/// The first search happens after this many steps.
const FIRST_SEARCH: u64 = 32;
/// Word operations of searching that every step of experience pays for: where searching brings nothing, it takes no
/// more time than in proportion to what was seen.
const WORK_PER_STEP: u64 = 1_000_000;
/// Candidates that nothing speaks against and not enough speaks for, at most.
const UNDECIDED_MAX: usize = 8;
/// Steps and counts that no run reaches, far below what would overflow a sum.
const COUNT_MAX: u64 = 1 << 48;

/// Those who wait and those who were measured.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// The candidates behind the patches that wait, by serial.
    waiting: BTreeMap<u64, Hypothesis>,
    /// Found by a search, not measured yet: nothing in the log speaks against them, and not enough for them. Oldest first.
    undecided: Vec<Hypothesis>,
    /// Candidates that were measured, and at which step.
    tested: BTreeMap<Digest, u64>,
    /// How many candidates had been tested when the waiting ones were found; none if they are the library's.
    tested_before: Option<u64>,
    /// Rounds in a row that brought nothing to measure while a circuit acted.
    fruitless: u64,
    /// The step of the next search.
    next_search: u64,
    /// The step at which the world last changed; zero if it never did.
    changed_at: u64,
}

impl Candidates {
    /// Nobody yet.
    pub(super) fn new() -> Candidates {
        Candidates {
            waiting: BTreeMap::new(),
            undecided: Vec::new(),
            tested: BTreeMap::new(),
            tested_before: None,
            fruitless: 0,
            next_search: FIRST_SEARCH,
            changed_at: 0,
        }
    }

    /// A candidate waits for the decision about the patch of this serial.
    pub(super) fn wait(&mut self, serial: u64, candidate: Hypothesis) {
        self.waiting.insert(serial, candidate);
    }

    /// Who waits behind the patch of this serial.
    pub(super) fn waiting(&self, serial: u64) -> Option<&Hypothesis> {
        self.waiting.get(&serial)
    }

    /// Whether somebody waits who does the same.
    pub(super) fn is_waiting(&self, policy: &Policy) -> bool {
        self.waiting.values().any(|waiting| waiting.policy == *policy)
    }

    /// The patch of this serial is decided: who was behind it has been tested.
    pub(super) fn decide(&mut self, serial: u64, steps: u64) -> Option<Hypothesis> {
        let candidate = self.waiting.remove(&serial)?;
        self.tested.insert(candidate.policy.digest(), steps);
        Some(candidate)
    }

    /// Takes all who wait.
    pub(super) fn take_waiting(&mut self) -> Vec<Hypothesis> {
        core::mem::take(&mut self.waiting).into_values().collect()
    }

    /// Takes those whom an earlier search has found and the log could not decide about.
    pub(super) fn take_undecided(&mut self) -> Vec<Hypothesis> {
        core::mem::take(&mut self.undecided)
    }

    /// The log cannot decide about one yet; where there are too many, the oldest goes.
    pub(super) fn put_off(&mut self, candidate: Hypothesis) {
        if self.undecided.iter().any(|known| known.policy == candidate.policy) {
            return;
        }
        if self.undecided.len() == UNDECIDED_MAX {
            self.undecided.remove(0);
        }
        self.undecided.push(candidate);
    }

    /// The step at which one was last measured.
    pub(super) fn tested_at(&self, policy: &Policy) -> Option<u64> {
        self.tested.get(&policy.digest()).copied()
    }

    /// One is measured from this step on.
    pub(super) fn test(&mut self, policy: &Policy, steps: u64) {
        self.tested.insert(policy.digest(), steps);
    }

    /// One may be proposed and measured again.
    pub(super) fn forgive(&mut self, policy: &Policy) {
        self.tested.remove(&policy.digest());
    }

    /// The world has changed: what was measured may be right now, and what was found may be wrong.
    pub(super) fn forget(&mut self) {
        self.tested.clear();
        self.undecided.clear();
    }

    /// A round of decisions begins about what a search has found.
    pub(super) fn open_round(&mut self) {
        self.tested_before = Some(self.tested.len() as u64);
    }

    /// Whether what is decided was found by a search, and not brought along.
    pub(super) fn is_searched(&self) -> bool {
        self.tested_before.is_some()
    }

    /// A round ends; whether nobody new was tested in it. None where what was decided had been brought along.
    pub(super) fn close_round(&mut self) -> Option<bool> {
        Some(self.tested_before.take()? == self.tested.len() as u64)
    }

    /// Counts a round: fruitless where a circuit acts and there was nobody new to test.
    pub(super) fn note_round(&mut self, is_fruitless: bool) {
        self.fruitless = if is_fruitless { self.fruitless + 1 } else { 0 };
    }

    /// Whether a circuit acts and the last rounds brought nothing to measure.
    pub(super) fn is_fruitless(&self) -> bool {
        0 < self.fruitless
    }

    /// The step of the next search.
    pub(super) fn next_search(&self) -> u64 {
        self.next_search
    }

    /// The next search comes after a while: a search costs more on more data, so that later ones are farther apart, and
    /// where searching keeps bringing nothing new it happens less and less often.
    pub(super) fn pause(&mut self, steps: u64, work: u64) {
        // After a change of the world they are as close as at the start.
        let age = steps.saturating_sub(self.changed_at);
        let share = if age < 4_000 { 4 } else { 2 };
        let next = steps + (age / share).max(16) * self.fruitless.clamp(1, 8);
        self.next_search = next.max(work / WORK_PER_STEP);
    }

    /// The world has changed: the log is searched at once, and often again.
    pub(super) fn hurry(&mut self, steps: u64) {
        (self.next_search, self.changed_at, self.fruitless) = (steps, steps, 0);
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.length(self.waiting.len());
        for (serial, candidate) in &self.waiting {
            writer.u64(*serial);
            encode_hypothesis(candidate, writer);
        }
        encode_list(writer, self.undecided.iter(), encode_hypothesis);
        writer.length(self.tested.len());
        for (digest, steps) in &self.tested {
            writer.raw(digest.as_bytes());
            writer.u64(*steps);
        }
        encode_option(writer, self.tested_before.as_ref(), |before, writer| writer.u64(*before));
        writer.u64(self.fruitless);
        writer.u64(self.next_search);
        writer.u64(self.changed_at);
    }

    /// Reads canonical bytes back.
    pub(super) fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Candidates, DecodeError> {
        let unsorted = reader.error("waiting candidates out of order");
        let waiting = decode_list(reader, |reader| Ok((reader.u64()?, decode_hypothesis(shape, reader)?)))?;
        if !waiting.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(unsorted);
        }
        let many = reader.error("more undecided candidates than are kept");
        let undecided = decode_list(reader, |reader| decode_hypothesis(shape, reader))?;
        if UNDECIDED_MAX < undecided.len() {
            return Err(many);
        }
        let unsorted = reader.error("tested candidates out of order");
        let tested = decode_list(reader, |reader| Ok((Digest::decode(reader)?, reader.u64()?)))?;
        let is_sorted = tested.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !is_sorted || tested.iter().any(|(_, steps)| COUNT_MAX <= *steps) {
            return Err(unsorted);
        }
        let malformed = reader.error("searches that no run can have made");
        let tested_before = decode_option(reader, Reader::u64)?;
        let (fruitless, next_search, changed_at) = (reader.u64()?, reader.u64()?, reader.u64()?);
        if [fruitless, next_search, changed_at].iter().any(|count| COUNT_MAX <= *count) {
            return Err(malformed);
        }
        let (waiting, tested) = (waiting.into_iter().collect(), tested.into_iter().collect());
        Ok(Candidates { waiting, undecided, tested, tested_before, fruitless, next_search, changed_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_search_waits_until_steps_have_paid_for_those_before() {
        let next = |steps: u64, work: u64, fruitless: u64| {
            let mut candidates = Candidates { fruitless, ..Candidates::new() };
            candidates.pause(steps, work);
            candidates.next_search()
        };
        assert_eq!(next(1_000, 0, 0), 1_250);
        assert_eq!(next(8_000, 0, 0), 12_000);
        assert_eq!(next(1_000, 5_000_000_000, 0), 5_000);
        assert_eq!(next(1_000, 0, 3), 1_750);
    }

    /// A candidate that always takes this action.
    fn always(action: u16) -> Hypothesis {
        Hypothesis {
            policy: Policy::constant(16, action),
            statement: None,
            words: format!("always {action}"),
            description_length: 1,
            exact: true,
            predicted: None,
            provenance: Digest::default(),
            machine: None,
        }
    }

    #[test]
    fn who_is_undecided_is_kept_once_and_the_oldest_goes_first() {
        let mut candidates = Candidates::new();
        (0..10).chain([9]).for_each(|action| candidates.put_off(always(action)));
        let mut writer = Writer::new();
        candidates.encode(&mut writer);
        let shape = Shape {
            observation_bits: 1,
            actions: 16,
            horizon: 1,
            reward_min: 0,
            reward_max: 1,
            return_min: 0,
            return_max: 1,
            fields: Vec::new(),
        };
        let mut again = Candidates::decode(&shape, &mut Reader::new(writer.as_bytes())).unwrap();
        let words =
            |candidates: Vec<Hypothesis>| candidates.into_iter().map(|one| one.words).collect::<Vec<_>>();
        let kept: Vec<String> = (2..10).map(|action| format!("always {action}")).collect();
        assert_eq!(words(again.take_undecided()), kept);
        assert!(again.take_undecided().is_empty());
    }

    #[test]
    fn a_round_without_anybody_new_is_told_from_one_with_and_from_the_library() {
        let mut candidates = Candidates::new();
        assert_eq!(candidates.close_round(), None);
        candidates.open_round();
        assert!(candidates.is_searched());
        assert_eq!(candidates.close_round(), Some(true));
        candidates.open_round();
        candidates.tested.insert(Digest::default(), 7);
        assert_eq!(candidates.close_round(), Some(false));
    }
}
