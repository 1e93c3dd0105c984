//! One served world: its decisions that wait for their outcome, its open episodes, and both halves of its learner.
//!
//! An outcome may come in any order, or never. A decision is known for as many later decisions of its world as the world says;
//! then it is forgotten. In an episode of several steps that is over, a reward that never came is taken for the mean of those that
//! came at the same step; everything else that waits for it is lost, and nothing is learned from it. Rounds of learning are in
//! `rounds.rs`, its bytes in `codec.rs`. Must not know the ledger. Clauses: VM-13, LOG-5; decisions D-18, D-67, D-111, D-160 to
//! D-165.

mod codec;
mod rounds;

pub(crate) use codec::{decode_complete, encode_complete};

use crate::delays::Delays;
use crate::frozen::Shared;
use crate::input::{FloorSpec, WorldSpec};
use crate::known::{Known, KnownDecisions};
use crate::people::standing::Standing;
use crate::round::{Complete, bytes_of};
use crate::service::{Refusal, RefusalKind};
use crate::statistics::Statistics;
use bem_base::environment::{Bits, Outcome, Shape};
use bem_engine::chronicle::PatchNote;
use bem_engine::serving::{Acting, Begun, Choice, Round, Searching, Settled};
use bem_engine::start::Start;
use bem_machine::machine::PastStep;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An episode that has begun and is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    name: String,
    begun: Begun,
    /// Its decisions in order.
    decisions: Vec<u64>,
    /// Its last step was taken.
    is_over: bool,
}

/// An episode that goes on, for whoever follows a history from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoingOn<'w> {
    /// Its first decision.
    pub(crate) first: u64,
    /// Which decision of the world that was.
    pub(crate) place: u64,
    /// What clients call it.
    pub(crate) name: &'w str,
    /// Steps that were taken.
    pub(crate) steps: usize,
}

/// A decision about a patch, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    /// The input with which it was published.
    pub number: u64,
    /// What it changes, by stored number.
    pub kind: u8,
    /// Whether it was let in.
    pub accepted: bool,
    /// The change in words.
    pub words: String,
    /// Why it was not let in; empty if it was.
    pub reason: String,
    /// Proofs that the checker accepted.
    pub proofs: u32,
}

/// A world that is served.
#[derive(Debug)]
pub struct World {
    pub(crate) spec: WorldSpec,
    pub(crate) acting: Acting,
    /// At work elsewhere while it is missing.
    pub(crate) searching: Option<Box<Searching>>,
    /// The searching half as bytes, as it came back last.
    pub(crate) searching_bytes: Shared,
    known: KnownDecisions,
    open: BTreeMap<u64, Open>,
    by_name: BTreeMap<String, u64>,
    /// Open episodes whose last step was taken: the place of that step, and the first decision.
    over: BTreeSet<(u64, u64)>,
    /// How late rewards come, in worlds of several steps.
    delays: Delays,
    /// Complete episodes that were not handed in yet.
    pub(crate) waiting: Vec<Complete>,
    pub(crate) waiting_steps: u64,
    pub(crate) statistics: Statistics,
    /// Number and sum of the rewards that came at each step of an episode, in worlds of several steps.
    by_step: Vec<(u64, i64)>,
    /// The latest decisions about patches, oldest first.
    patched: VecDeque<Patched>,
    /// What people have to do with it.
    pub(crate) standing: Standing,
}

impl World {
    pub(crate) fn new(
        spec: WorldSpec,
        searching: Searching,
        round: Round,
        number: u64,
    ) -> (World, Vec<PatchNote>) {
        let statistics = Statistics::new(spec.shape.actions);
        let acting = match spec.floor {
            Some(FloorSpec { action, risk }) => round.acting.with_baseline(action, risk),
            None => round.acting,
        };
        let searching_bytes = bytes_of(&searching);
        let mut world = World {
            spec,
            acting,
            searching: Some(Box::new(searching)),
            searching_bytes,
            known: KnownDecisions::default(),
            open: BTreeMap::new(),
            by_name: BTreeMap::new(),
            over: BTreeSet::new(),
            delays: Delays::default(),
            waiting: Vec::new(),
            waiting_steps: 0,
            statistics,
            by_step: Vec::new(),
            patched: VecDeque::new(),
            standing: Standing::default(),
        };
        world.count_patches(&round.patches, number);
        (world, round.patches)
    }

    /// Begins with what others have learned or played; nothing may have been asked yet.
    pub(crate) fn begin_with(&mut self, start: Start) -> Result<(), &'static str> {
        let fitting = start.clone().fitting(&self.spec.shape);
        if 0 < self.statistics.decisions || fitting != start || start.baseline.is_some() {
            return Err("a start that does not fit its world");
        }
        let searching = self.searching.as_mut().ok_or("a start in a round")?;
        searching.begin_with(start);
        self.searching_bytes = bytes_of(searching);
        Ok(())
    }

    /// Whether a patch is on trial, between two rounds.
    #[cfg(test)]
    pub(crate) fn is_on_trial(&self) -> bool {
        self.searching.as_ref().is_some_and(|searching| searching.is_measuring())
    }

    /// What it is.
    pub fn spec(&self) -> &WorldSpec {
        &self.spec
    }

    /// What it earned.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The half that decides.
    pub fn acting(&self) -> &Acting {
        &self.acting
    }

    /// The latest decisions about patches, oldest first.
    pub fn patched(&self) -> &VecDeque<Patched> {
        &self.patched
    }

    /// What people have to do with it.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// A decision that is still known: what was seen, done and said, the first decision of its episode, and which step of it.
    pub fn decision(&self, number: u64) -> Option<(PastStep, u64, u32)> {
        let known = self.known.get(number)?;
        let open = self.open.get(&known.episode);
        let step = open.and_then(|open| open.decisions.iter().position(|known| *known == number));
        Some((known.step, known.episode, step.unwrap_or(0) as u32))
    }

    /// The latest decisions whose outcome came, newest first: what was seen, done and brought.
    pub fn latest(&self) -> impl Iterator<Item = (Bits, u16, Outcome)> {
        let rewarded = |known: &Known| Some((known.step.observation, known.step.action, known.step.outcome?));
        self.known.latest().filter_map(rewarded)
    }

    /// Decisions that wait for their outcome.
    pub fn waiting_decisions(&self) -> usize {
        self.known.waiting()
    }

    /// Steps of complete episodes that no round has taken yet.
    pub fn waiting_steps(&self) -> u64 {
        self.waiting_steps
    }

    /// Episodes that have begun and are not complete.
    pub fn open_episodes(&self) -> usize {
        match self.spec.shape.horizon {
            1 => self.waiting_decisions(),
            _ => self.open.len(),
        }
    }

    /// Episodes that go on: their next decision is known by their name.
    pub(crate) fn going_on(&self) -> impl Iterator<Item = GoingOn<'_>> {
        self.by_name.iter().filter_map(|(name, first)| {
            let (place, steps) = (self.known.get(*first)?.place, self.open.get(first)?.decisions.len());
            Some(GoingOn { first: *first, place, name, steps })
        })
    }

    /// Whether the names fit: episodes are named where they have more than one step.
    pub(crate) fn check_episode(&self, episode: &str) -> Result<(), Refusal> {
        let has_episodes = 1 < self.spec.shape.horizon;
        let refuse =
            |message: &str| Err(Refusal::new(RefusalKind::Bad, "episode", "bad_field", message.to_string()));
        match (has_episodes, episode.is_empty()) {
            (true, true) => refuse("episode is missing: this world has a horizon above 1"),
            (false, false) => refuse("episode is not allowed: an episode of this world is one decision"),
            _ => Ok(()),
        }
    }

    /// Decides. The names must have been checked.
    pub(crate) fn decide(&mut self, number: u64, observation: Bits, name: &str) -> (Begun, Choice) {
        self.expire();
        self.give_up();
        let horizon = self.spec.shape.horizon as usize;
        let going_on = self.by_name.get(name).copied().filter(|_| 1 < horizon);
        let (episode, begun, choice) = match going_on {
            Some(episode) => {
                let open = &self.open[&episode];
                let past: Vec<PastStep> =
                    open.decisions.iter().filter_map(|number| Some(self.known.get(*number)?.step)).collect();
                (episode, open.begun, self.acting.go_on(number, open.begun, &past, &observation))
            }
            None => {
                let (begun, choice) = self.acting.begin(number, &observation);
                (number, begun, choice)
            }
        };
        if 1 < horizon {
            let new = || Open { name: name.to_string(), begun, decisions: Vec::new(), is_over: false };
            let open = self.open.entry(episode).or_insert_with(new);
            open.decisions.push(number);
            open.is_over = open.decisions.len() == horizon;
            match open.is_over {
                true => {
                    self.over.insert((self.statistics.decisions + 1, episode));
                    self.by_name.remove(name);
                }
                false => drop(self.by_name.insert(name.to_string(), episode)),
            }
        }
        self.statistics.decisions += 1;
        self.statistics.drawn += u64::from(choice.odds.drawn_from().is_some());
        let step = PastStep { observation, action: choice.action, outcome: None };
        let place = self.statistics.decisions;
        let odds = choice.odds;
        self.known.push(Known { number, place, step, odds, begun, episode, is_given_up: false });
        (begun, choice)
    }

    /// The latest decision of an episode that goes on, by the episode's name.
    pub fn latest_of(&self, episode: &str) -> Option<u64> {
        self.open.get(self.by_name.get(episode)?)?.decisions.last().copied()
    }

    /// What was seen when the decision after this one was asked for, while its episode is open.
    pub fn seen_after(&self, decision: u64) -> Option<Bits> {
        let decisions = &self.open.get(&self.known.get(decision)?.episode)?.decisions;
        let place = decisions.iter().position(|known| *known == decision)?;
        Some(self.known.get(*decisions.get(place + 1)?)?.step.observation)
    }

    /// Whether a step can still be found to be BAD: its outcome came without that, and its episode is not complete.
    pub(crate) fn is_to_be_bad(&self, decision: u64) -> bool {
        let known = self.known.get(decision).filter(|known| self.open.contains_key(&known.episode));
        known.and_then(|known| known.step.outcome).is_some_and(|outcome| !outcome.bad)
    }

    /// A step whose outcome came is BAD after all; whether that could still be said.
    pub(crate) fn find_bad(&mut self, decision: u64) -> bool {
        let is_found = self.is_to_be_bad(decision) && self.known.find_bad(decision);
        if is_found {
            self.statistics.bad += 1;
            self.tell();
        }
        is_found
    }

    /// What a reward would be: nothing new, something new, or refused.
    pub(crate) fn check_reward(&self, decision: u64, outcome: Outcome) -> Result<bool, Refusal> {
        let range = self.spec.shape.reward_min..=self.spec.shape.reward_max;
        if !range.contains(&outcome.reward) {
            let allowed = format!("{} to {}", range.start(), range.end());
            let message = format!("reward {} is out of range: this world takes {allowed}", outcome.reward);
            return Err(Refusal::new(RefusalKind::Bad, "reward", "out_of_range", message));
        }
        let gone = || {
            let message = format!("decision {decision} is unknown in this world, or too old to be rewarded");
            Refusal::new(RefusalKind::Missing, "decision", "unknown_decision", message)
        };
        let known = self.known.get(decision).ok_or_else(gone)?;
        match known.step.outcome {
            None if known.is_given_up => Ok(true),
            None if known.is_lost(&self.open, self.spec.shape.horizon) => Err(gone()),
            None if self.is_beyond(known.episode, outcome) => {
                let Shape { return_min, return_max, .. } = self.spec.shape;
                let message = format!(
                    "reward {} would bring the episode beyond return_range: this world takes {return_min} to {return_max}",
                    outcome.reward
                );
                Err(Refusal::new(RefusalKind::Bad, "reward", "out_of_range", message))
            }
            None if outcome.done && !self.may_end(known, decision) => {
                let message =
                    "done is not allowed here: a later decision of this episode was asked for".to_string();
                Err(Refusal::new(RefusalKind::Conflict, "done", "not_last", message))
            }
            None => Ok(true),
            Some(said) if said == outcome => Ok(false),
            Some(_) => {
                let message = format!("decision {decision} has another outcome already");
                Err(Refusal::new(RefusalKind::Conflict, "reward", "other_outcome", message))
            }
        }
    }

    /// Whether this reward would bring its episode beyond the range of returns, whatever the steps bring that wait for theirs.
    fn is_beyond(&self, episode: u64, outcome: Outcome) -> bool {
        let Shape { horizon, reward_min, reward_max, return_min, return_max, .. } = self.spec.shape;
        let Some(open) = self.open.get(&episode) else { return false };
        let said = open.decisions.iter().filter_map(|number| self.known.get(*number)?.step.outcome);
        let (told, sum) = said.fold((1, i64::from(outcome.reward)), |(told, sum), said| {
            (told + 1, sum + i64::from(said.reward))
        });
        let is_over = open.is_over || outcome.done;
        let steps = if is_over { open.decisions.len() } else { horizon as usize } as i64 - told;
        // An episode that is not over may end before the steps that are left.
        let least = if is_over { i64::from(reward_min) } else { i64::from(reward_min).min(0) };
        let most = if is_over { i64::from(reward_max) } else { i64::from(reward_max).max(0) };
        return_max < sum + steps * least || sum + steps * most < return_min
    }

    /// Whether an episode may end with this decision: it is the last one so far.
    fn may_end(&self, known: &Known, decision: u64) -> bool {
        self.spec.shape.horizon == 1
            || self.open.get(&known.episode).is_some_and(|open| open.decisions.last() == Some(&decision))
    }

    /// Books an outcome that was checked.
    pub(crate) fn reward(&mut self, decision: u64, outcome: Outcome) {
        let Some(known) = self.known.settle(decision, outcome) else { return };
        let (episode, action, is_drawn) =
            (known.episode, known.step.action, known.odds.drawn_from().is_some());
        let (place, begun, alone) = (known.place, known.begun, settled(known, true));
        self.statistics.rewards += 1;
        self.statistics.bad += u64::from(outcome.bad);
        if outcome.bad {
            self.tell();
        }
        if is_drawn && let Some(moments) = self.statistics.by_action.get_mut(usize::from(action)) {
            moments.book(i64::from(outcome.reward));
        }
        if self.spec.shape.horizon == 1 {
            return self.complete(decision, begun, alone.into_iter().collect());
        }
        self.delays.note(self.statistics.decisions - place);
        let Some(open) = self.open.get_mut(&episode) else { return };
        if outcome.done && !open.is_over {
            open.is_over = true;
            self.over.insert((place, episode));
            self.by_name.remove(&open.name);
        }
        if !open.is_over {
            return;
        }
        let last = open.decisions.len() - 1;
        let steps: Option<Vec<Settled>> = (0..)
            .zip(&open.decisions)
            .map(|(place, number)| settled(self.known.get(*number)?, place == last))
            .collect();
        if let Some(steps) = steps {
            let begun = open.begun;
            self.close(episode);
            for (place, step) in steps.iter().enumerate() {
                self.note_step(place, step.outcome.reward);
            }
            self.complete(episode, begun, steps);
        }
    }

    fn complete(&mut self, first: u64, begun: Begun, steps: Vec<Settled>) {
        let episode = Complete { begun, steps, place: self.statistics.returns.count + 1 };
        let total = episode.steps.iter().map(|step| i64::from(step.outcome.reward)).sum();
        let is_random = episode.steps.iter().all(|step| step.odds.drawn_from().is_some());
        self.statistics.book_return(total, is_random);
        self.acting.settle(episode.begun, &episode.steps);
        let seen = episode.steps.first().map_or(Bits::ZERO, |step| step.observation);
        self.acting.earn(episode.begun, &seen, total);
        self.waiting_steps += episode.steps.len() as u64;
        self.standing.remember(first, &episode);
        self.waiting.push(episode);
    }

    /// Forgets decisions that are too old. An episode that is over and waits for one of them is complete without it; any other
    /// episode of it is lost.
    fn expire(&mut self) {
        let keep = u64::from(self.spec.expire_after);
        while let Some(known) = self.known.first() {
            if self.statistics.decisions < known.place + keep {
                return;
            }
            let episode = known.episode;
            if self.open.get(&episode).is_some_and(|open| open.is_over) {
                self.complete_without(episode);
            }
            let Some(known) = self.known.forget_first() else { return };
            if known.step.outcome.is_none() {
                self.statistics.lost += 1;
            }
            if let Some(open) = self.close(known.episode)
                && self.by_name.get(&open.name) == Some(&known.episode)
            {
                self.by_name.remove(&open.name);
            }
        }
    }

    /// An episode is not open any more.
    fn close(&mut self, episode: u64) -> Option<Open> {
        let open = self.open.remove(&episode)?;
        let last = open.decisions.last().and_then(|number| self.known.get(*number));
        if let Some(last) = last.filter(|_| open.is_over) {
            self.over.remove(&(last.place, episode));
        }
        Some(open)
    }

    /// Episodes that are over and have waited longer than rewards take are complete without those that have not come. What comes
    /// after all is counted.
    fn give_up(&mut self) {
        let Some(patience) = self.delays.patience() else { return };
        while let Some((place, episode)) = self.over.first().copied() {
            if self.statistics.decisions <= place + patience {
                return;
            }
            for number in self.open.get(&episode).map_or(&[][..], |open| &open.decisions) {
                self.known.give_up(*number);
            }
            self.complete_without(episode);
            self.over.remove(&(place, episode));
        }
    }

    /// A reward came at this step of an episode.
    fn note_step(&mut self, place: usize, reward: i32) {
        if self.by_step.len() <= place {
            self.by_step.resize(place + 1, (0, 0));
        }
        let (count, sum) = &mut self.by_step[place];
        (*count, *sum) = (*count + 1, *sum + i64::from(reward));
    }

    /// What a reward is taken for that never came: the mean of those that came at the same step, or zero before the first.
    fn expected(&self, place: usize) -> Outcome {
        let (count, sum) = self.by_step.get(place).copied().unwrap_or_default();
        let mean = if count == 0 { 0 } else { sum.div_euclid(count as i64) };
        let (low, high) = (self.spec.shape.reward_min, self.spec.shape.reward_max);
        Outcome { reward: mean.clamp(low.into(), high.into()) as i32, done: false, bad: false }
    }

    /// An episode that is over is complete: rewards that never came are taken for the mean of those that came.
    fn complete_without(&mut self, episode: u64) {
        let Some(open) = self.close(episode) else { return };
        let came = |number: &u64| self.known.get(*number).and_then(|known| known.step.outcome);
        let came: Vec<Option<Outcome>> = open.decisions.iter().map(came).collect();
        for (place, outcome) in came.iter().enumerate() {
            outcome.iter().for_each(|outcome| self.note_step(place, outcome.reward));
        }
        let last = open.decisions.len() - 1;
        let steps: Option<Vec<Settled>> = (0..)
            .zip(&open.decisions)
            .map(|(place, number)| {
                let known = self.known.get(*number)?;
                let outcome = known.step.outcome.or(Some(self.expected(place)));
                let step = settled(
                    &Known { step: PastStep { outcome, ..known.step }, ..known.clone() },
                    place == last,
                )?;
                Some(Settled { is_told: known.step.outcome.is_some(), ..step })
            })
            .collect();
        // What cannot be kept within is lost like an episode whose end was never said.
        if let Some(mut steps) = steps
            && self.keep_within(&mut steps)
        {
            self.complete(episode, open.begun, steps);
        }
    }

    /// Takes rewards that never came for as much less or more as keeps the return within its range; whether that is possible.
    fn keep_within(&self, steps: &mut [Settled]) -> bool {
        let Shape { reward_min, reward_max, return_min, return_max, .. } = self.spec.shape;
        let mut total: i64 = steps.iter().map(|step| i64::from(step.outcome.reward)).sum();
        for step in steps.iter_mut().filter(|step| !step.is_told) {
            let reward = i64::from(step.outcome.reward);
            let wanted = (reward + total.clamp(return_min, return_max) - total)
                .clamp(i64::from(reward_min), i64::from(reward_max));
            total += wanted - reward;
            step.outcome.reward = wanted as i32;
        }
        (return_min..=return_max).contains(&total)
    }
}

impl Known {
    /// Whether the episode of this decision was lost with another one of its decisions.
    fn is_lost(&self, open: &BTreeMap<u64, Open>, horizon: u32) -> bool {
        1 < horizon && !open.contains_key(&self.episode)
    }
}

/// A decision with its outcome; the last one of an episode ends it.
fn settled(known: &Known, is_last: bool) -> Option<Settled> {
    let PastStep { observation, action, outcome } = known.step;
    let outcome = Outcome { done: is_last, ..outcome? };
    Some(Settled { observation, action, odds: known.odds, outcome, is_told: true })
}
