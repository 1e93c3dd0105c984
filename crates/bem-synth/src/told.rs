//! What people said: labelled steps as a dataset of their own, beside the log of what was measured.
//!
//! A label says which action is right where something is seen. It is evidence of another kind than a reward: it says at once
//! what drawing every action would show only after long, and it may be wrong. So it is used where being wrong is cheap: it
//! makes candidates, which the gate measures like all others, and it says what an exploring episode tries. Nothing here counts
//! as a measurement. Must not know who said it. Clauses: HUM-5, HUM-13; decision D-126.

use crate::experience::{Episode, Experience, Step};
use crate::function::build_word_table;
use crate::hypothesis::{Hypothesis, Stated, build};
use crate::policy::{Player, Policy, action_bits};
use crate::propose::{self, Settings};
use crate::statement::Choice;
use bem_base::digest::{self, Digest};
use bem_base::encode::Writer;
use bem_base::environment::{Bits, Shape};
use bem_circuit::netlist::Signal;
use std::collections::{BTreeMap, BTreeSet};

/// Labels that are kept at most.
pub const TOLD_MAX: usize = 4_096;
/// Labels given so many steps after the earliest of their observation count like it.
const EARLY: u32 = 2;
/// Rows of a table that corrects what acts, at most.
pub const ROWS_MAX: usize = 256;
/// Bits that its rows are told apart by, at most.
const KEY_BITS_MAX: usize = 16;
/// The part of a whole search's work that explaining labels may take.
const WORK_SHARE: u64 = 8;
/// What people said is looked at again when there are this many more labels, or a part more than last time.
const NEWS_MIN: usize = 4;
const NEWS_SHARE: usize = 5;
/// See [`Told::weight`].
const NEW_COUNTS: usize = 3;

/// One label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// What was seen.
    pub observation: Bits,
    /// The action that is said to be right.
    pub right: u16,
    /// Steps of its episode before it.
    pub time: u32,
}

/// All labels in force, oldest first, and what they amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    labels: Vec<Label>,
    /// Per observation what was called right, and when.
    votes: BTreeMap<Bits, Vec<(u32, u16)>>,
}

impl Told {
    /// These labels; the latest where there are too many.
    pub fn new(labels: impl IntoIterator<Item = Label>) -> Told {
        let mut labels: Vec<Label> = labels.into_iter().collect();
        labels.drain(..labels.len().saturating_sub(TOLD_MAX));
        let mut votes: BTreeMap<Bits, Vec<(u32, u16)>> = BTreeMap::new();
        for Label { observation, right, time } in &labels {
            votes.entry(*observation).or_default().push((*time, *right));
        }
        Told { labels, votes }
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// How much was said: a label counts once, and the first one of an observation [`NEW_COUNTS`] times more.
    pub fn weight(&self) -> usize {
        self.labels.len() + NEW_COUNTS * self.votes.len()
    }

    /// Whether nobody said anything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// What most labels call right where this is seen; nothing where nothing was said, or as much for another action. What was
    /// said early in an episode counts: later, what is right may be to give up.
    pub fn verdict(&self, observation: &Bits) -> Option<u16> {
        let votes = self.votes.get(observation)?;
        let latest = self.latest(observation)?;
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        for (_, right) in votes.iter().filter(|(time, _)| *time <= latest) {
            *counts.entry(*right).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let mut best = counts.iter().filter(|(_, count)| **count == most).map(|(action, _)| *action);
        let verdict = best.next()?;
        best.next().is_none().then_some(verdict)
    }

    /// The time up to which what was said of an observation counts.
    fn latest(&self, observation: &Bits) -> Option<u32> {
        let earliest = self.votes.get(observation)?.iter().map(|(time, _)| *time).min()?;
        Some(earliest.saturating_add(EARLY))
    }

    /// The labels that count: those that were given about as early in an episode as the earliest of their observation.
    fn counted(&self) -> impl Iterator<Item = &Label> {
        let counts =
            |label: &&Label| self.latest(&label.observation).is_some_and(|latest| label.time <= latest);
        self.labels.iter().filter(counts)
    }

    /// The step of an episode that is most worth asking about, if so much was answered about each of these observations and the
    /// earliest of it then: the first that nothing was said about as early as here, of those whose observation was skipped least
    /// often; else the one that least was said about. `skipped` says how often the observation was skipped, and nothing where
    /// this very step of an episode was: what makes no difference now may make one later.
    pub fn worth_asking(
        seen: &[Bits],
        asked: impl Fn(&Bits) -> Option<(usize, u32)>,
        skipped: impl Fn(&Bits, u32) -> Option<usize>,
    ) -> Option<usize> {
        let places = || seen.iter().zip(0u32..);
        let is_new = |(observation, time): (&Bits, u32)| {
            asked(observation).is_none_or(|(_, earliest)| time + EARLY < earliest)
        };
        let new = places().filter(|place| is_new(*place));
        let new = new.filter_map(|(observation, time)| Some((skipped(observation, time)?, time)));
        let is_early = |(observation, time): &(&Bits, u32)| {
            asked(observation).is_some_and(|(_, earliest)| *time <= earliest + EARLY)
        };
        let early =
            places().filter(is_early).filter(|(observation, time)| skipped(observation, *time).is_some());
        let least = || early.min_by_key(|(seen, _)| asked(seen).map_or(0, |(count, _)| count));
        new.min().map(|(_, time)| time).or_else(|| least().map(|(_, time)| time)).map(|time| time as usize)
    }

    /// How much was said where this is seen.
    pub fn said(&self, observation: &Bits) -> usize {
        self.votes.get(observation).map_or(0, Vec::len)
    }

    /// Names what was said.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        for Label { observation, right, time } in &self.labels {
            writer.u32(*time);
            observation.0.iter().for_each(|word| writer.u64(*word));
            writer.u16(*right);
        }
        digest::hash_parts("bem/told", &[writer.as_bytes()])
    }

    /// Labels that a policy agrees with and another does not, and the other way round. Both are asked as if an episode began.
    pub fn compare(&self, candidate: &Policy, incumbent: &Policy) -> (usize, usize) {
        let (mut candidate, mut incumbent) = (Player::new(candidate), Player::new(incumbent));
        let (mut wins, mut losses) = (0, 0);
        for Label { observation, right, .. } in self.counted() {
            candidate.begin();
            incumbent.begin();
            let (theirs, ours) = (candidate.act(observation), incumbent.act(observation));
            wins += usize::from(theirs == *right && ours != *right);
            losses += usize::from(theirs != *right && ours == *right);
        }
        (wins, losses)
    }

    /// Labels that a policy agrees with, asked as if an episode began.
    pub fn agreed(&self, policy: &Policy) -> usize {
        let mut player = Player::new(policy);
        let mut agrees = |label: &Label| {
            player.begin();
            player.act(&label.observation) == label.right
        };
        self.counted().filter(|label| agrees(label)).count()
    }

    /// What people's labels suggest: what acts, corrected where something was said, and what explains the labels.
    pub fn propose(
        &self,
        shape: &Shape,
        (seen, incumbent): (&[&Episode], &Policy),
        settings: &Settings,
    ) -> Vec<Hypothesis> {
        let mut list: Vec<Hypothesis> = Vec::new();
        let mut player = Player::new(incumbent);
        let acts = |observation: &Bits| {
            player.begin();
            Some(player.act(observation))
        };
        list.extend(self.completed(shape, seen, acts));
        for mut hypothesis in self.explain(shape, settings) {
            hypothesis.words = format!("{}, by {} labels", hypothesis.words, self.len());
            hypothesis.provenance = self.digest();
            // Labels are no rewards: what explains them explains nothing that was measured.
            (hypothesis.exact, hypothesis.predicted) = (false, None);
            list.push(hypothesis);
        }
        list
    }

    fn hypothesis(&self, stated: Stated, description_length: u32, words: String) -> Hypothesis {
        let Stated { policy, statement } = stated;
        Hypothesis {
            policy,
            statement: Some(statement),
            words,
            description_length,
            exact: false,
            predicted: None,
            provenance: self.digest(),
            machine: None,
        }
    }

    /// A table over what was seen: what people call right, and where they said nothing what somebody else would do; the first
    /// action where nobody says anything. Nothing where too much was seen for a table.
    pub fn completed(
        &self,
        shape: &Shape,
        seen: &[&Episode],
        mut otherwise: impl FnMut(&Bits) -> Option<u16>,
    ) -> Option<Hypothesis> {
        let mut observations: BTreeSet<Bits> = self.votes.keys().copied().collect();
        for step in seen.iter().flat_map(|episode| &episode.steps) {
            observations.insert(step.observation);
            if ROWS_MAX < observations.len() {
                return None;
            }
        }
        let bits = telling_bits(shape, &observations);
        if KEY_BITS_MAX < bits.len() {
            return None;
        }
        let mut corrected = 0;
        let mut rows = BTreeMap::new();
        for observation in &observations {
            let verdict = self.verdict(observation);
            corrected += usize::from(verdict.is_some());
            let action = verdict.or_else(|| otherwise(observation)).unwrap_or(0);
            rows.insert(key(&bits, observation), u64::from(action));
        }
        let code_bits = action_bits(shape.actions);
        let choice = Choice::Rows { bits: bits.clone(), rows: rows.clone() };
        let stated = build(shape, None, choice, |builder, row| {
            let bits: Vec<Signal> = bits.iter().map(|bit| row[usize::from(*bit)]).collect();
            build_word_table(builder, &bits, &rows, code_bits)
        })?;
        let words = format!("what people call right in {corrected} of {} rows", rows.len());
        Some(self.hypothesis(stated, (rows.len() * code_bits) as u32, words))
    }

    /// What explains the labels as functions of what was seen: every label is a step of its own that earned everything.
    fn explain(&self, shape: &Shape, settings: &Settings) -> Vec<Hypothesis> {
        let shape =
            Shape { horizon: 1, return_min: 0, return_max: 1, reward_min: 0, reward_max: 1, ..shape.clone() };
        let mut rows = Experience::new(TOLD_MAX);
        for (serial, Label { observation, right, .. }) in (1..).zip(self.counted()) {
            let step = Step {
                observation: *observation,
                action: *right,
                reward: 1,
                done: true,
                bad: false,
                uniform: true,
                propensity: u16::MAX / shape.actions.max(1),
            };
            rows.push(Episode { serial, steps: vec![step] });
        }
        propose::explain_alone(&shape, &rows, settings.work / WORK_SHARE, settings.queries)
    }
}

/// How many labels must be new for another look after this many.
pub fn news_needed(looked: usize) -> usize {
    NEWS_MIN.max(looked / NEWS_SHARE)
}

fn key(bits: &[u16], seen: &Bits) -> u64 {
    bits.iter().zip(0..).fold(0, |key, (bit, place)| key | u64::from(seen.get(usize::from(*bit))) << place)
}

/// The bits in which these observations differ at all.
fn telling_bits(shape: &Shape, observations: &BTreeSet<Bits>) -> Vec<u16> {
    let Some(first) = observations.first() else { return Vec::new() };
    let differs = |bit: &u16| {
        let bit = usize::from(*bit);
        observations.iter().any(|other| other.get(bit) != first.get(bit))
    };
    (0..shape.observation_bits).filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            observation_bits: 6,
            actions: 3,
            horizon: 24,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
            fields: Vec::new(),
        }
    }

    fn seen(place: u64) -> Bits {
        Bits([place, 0, 0, 0])
    }

    fn label(place: u64, right: u16) -> Label {
        Label { observation: seen(place), right, time: 0 }
    }

    #[test]
    fn the_majority_speaks_and_a_tie_is_silence() {
        let told = Told::new([label(1, 2), label(1, 2), label(1, 0), label(2, 1), label(2, 0)]);
        assert_eq!(told.verdict(&seen(1)), Some(2));
        assert_eq!(told.verdict(&seen(2)), None);
        assert_eq!(told.verdict(&seen(3)), None);
        assert_eq!((told.said(&seen(1)), told.said(&seen(3))), (3, 0));
    }

    #[test]
    fn what_was_said_early_in_an_episode_outranks_what_was_said_late() {
        let late = |time: u32| Label { time, ..label(1, 0) };
        let told = Told::new([late(9), late(12), Label { time: 4, ..label(1, 2) }]);
        assert_eq!(told.verdict(&seen(1)), Some(2));
    }

    #[test]
    fn questions_go_where_nothing_was_asked_as_early() {
        let episode = [seen(0), seen(1), seen(2), seen(1)];
        let asked = |known: &'static [(u64, usize, u32)]| {
            move |observation: &Bits| {
                known
                    .iter()
                    .find(|(place, ..)| seen(*place) == *observation)
                    .map(|(_, count, time)| (*count, *time))
            }
        };
        let never = |_: &Bits, _: u32| Some(0);
        assert_eq!(Told::worth_asking(&episode, asked(&[]), never), Some(0));
        assert_eq!(Told::worth_asking(&episode, asked(&[(0, 1, 0)]), never), Some(1));
        assert_eq!(Told::worth_asking(&episode, asked(&[(0, 1, 0), (1, 1, 9)]), never), Some(1));
        assert_eq!(Told::worth_asking(&episode, asked(&[(0, 2, 0), (1, 1, 1), (2, 2, 2)]), never), Some(1));
        assert_eq!(Told::worth_asking(&[], asked(&[]), never), None);
        // What was skipped is asked about at another time, and after what was not.
        let once = |observation: &Bits, time: u32| match *observation == seen(1) {
            true => (time != 1).then_some(1),
            false => Some(0),
        };
        assert_eq!(Told::worth_asking(&episode, asked(&[(0, 1, 0)]), once), Some(2));
        assert_eq!(Told::worth_asking(&episode, asked(&[(0, 1, 0), (2, 1, 2)]), once), Some(3));
    }

    #[test]
    fn what_acts_is_corrected_where_something_was_said_and_nowhere_else() {
        let incumbent = Policy::constant(3, 1);
        let step = |place: u64| Step {
            observation: seen(place),
            action: 0,
            reward: 0,
            done: false,
            bad: false,
            uniform: true,
            propensity: u16::MAX,
        };
        let log = Episode { serial: 1, steps: (0..20).map(step).collect() };
        let told = Told::new((0..10).map(|place| label(place, (place % 3) as u16)));
        let list = told.propose(&shape(), (&[&log], &incumbent), &Settings::default());
        let corrected = &list[0];
        let mut player = Player::new(&corrected.policy);
        for place in 0..20 {
            let wanted = if place < 10 { (place % 3) as u16 } else { 1 };
            player.begin();
            assert_eq!(player.act(&seen(place)), wanted, "{place}");
        }
        // Three of the ten labels call right what is done anyway.
        assert_eq!(told.compare(&corrected.policy, &incumbent), (7, 0));
        assert_eq!(told.compare(&incumbent, &corrected.policy), (0, 7));
        assert!(!corrected.exact);
    }

    #[test]
    fn labels_of_a_function_are_explained_by_it() {
        // The answer is the parity of bits 1 and 4: forty labels of 64 rows say it for all of them.
        let shape = Shape { actions: 2, ..shape() };
        let parity = |word: u64| ((word >> 1 ^ word >> 4) & 1) as u16;
        let told = Told::new((0..40).map(|turn| turn * 29 % 64).map(|word| label(word, parity(word))));
        let list = told.propose(&shape, (&[], &Policy::constant(2, 0)), &Settings::default());
        let is_right = |hypothesis: &Hypothesis| {
            let mut player = Player::new(&hypothesis.policy);
            (0..64).all(|word| {
                player.begin();
                player.act(&seen(word)) == parity(word)
            })
        };
        assert!(list.iter().any(is_right), "{:?}", list.iter().map(|found| &found.words).collect::<Vec<_>>());
    }

    #[test]
    fn another_look_comes_when_a_fifth_more_was_said() {
        assert_eq!([0, 4, 20, 100].map(news_needed), [4, 4, 4, 20]);
    }
}
