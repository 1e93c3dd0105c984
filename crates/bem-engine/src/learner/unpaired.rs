//! Worlds that cannot be repeated: who says so, how it is found out, and how candidates are measured there.
//!
//! A world declares that a seed brings nothing back, or a pair shows it: while both did the same, both must have seen the
//! same. One mismatch voids all pairs. From then on a fair coin says after the first observation who plays an episode; every
//! episode is played to its end, counts as steps and is remembered. With one step, an observation for which both do the same
//! is left to whoever plays for experience. An episode in flight is lost with the world that it was
//! played in. Clauses: SCC-8, SCC-9; decisions D-23, D-60.

use super::gate::{Contest, SPAN_EPISODES};
use super::{Event, Learner, Phase, Tally, Witness};
use bem_base::environment::{Bits, Environment, EnvironmentError};
use bem_evolve::improvement::interleaved::{Earlier, Played, Side};
use bem_evolve::patch::Change;
use bem_machine::turn::Turn;
use bem_synth::experience::Episode;
use bem_synth::policy::{Policy, PolicyState};

/// Episodes without a single difference after which a candidate is given up.
const EQUAL_EPISODES_MAX: usize = 80;
/// Episodes of usual length that a candidate may play in one trial, and one part in so many of all steps so far besides.
const CANDIDATE_EPISODES: u64 = 24;
const CANDIDATE_SHARE: u64 = 4;
/// The latest episodes that the first baseline is the mean of.
const BASELINE_EPISODES: usize = 256;

/// Whether a world brings an episode back by its seed. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Repetition {
    /// The world says so, and every pair so far has agreed.
    #[default]
    Claimed = 0,
    /// The world says that it does not.
    Denied = 1,
    /// The world said so, and a pair has shown that it does not.
    Refuted = 2,
}

impl Repetition {
    /// All of them, in order of their numbers.
    pub(super) const ALL: [Repetition; 3] = [Repetition::Claimed, Repetition::Denied, Repetition::Refuted];
}

/// The first step at which two episodes of one seed disagree although the same was done until then. What is paid late may
/// depend on what was done later.
fn mismatch(first: &Episode, second: &Episode, compares_rewards: bool) -> Option<usize> {
    for (place, (one, other)) in first.steps.iter().zip(&second.steps).enumerate() {
        if one.observation != other.observation {
            return Some(place);
        }
        if one.action != other.action {
            return None;
        }
        let is_paid_alike = !compares_rewards || one.reward == other.reward;
        if !is_paid_alike || (one.done, one.bad) != (other.done, other.bad) {
            return Some(place);
        }
    }
    None
}

impl Learner {
    /// Whether candidates are measured by pairs.
    pub(super) fn repeats(&self) -> bool {
        self.tally.repetition == Repetition::Claimed
    }

    /// Takes the world at its word.
    pub(super) fn ask_repetition(&mut self, world: &dyn Environment) {
        if !world.repeats() && self.repeats() {
            self.tally.repetition = Repetition::Denied;
        }
    }

    /// Where there are no pairs: what is known of the returns.
    pub(super) fn unpaired(&self) -> Option<Earlier> {
        if self.repeats() {
            return None;
        }
        let totals = || self.experience.episodes().map(Episode::total);
        let (count, sum) = totals()
            .rev()
            .take(BASELINE_EPISODES)
            .fold((0, 0), |(count, sum), total| (count + 1, sum + i128::from(total)));
        let (low, high) = (self.shape.return_min, self.shape.return_max);
        let mean = if count == 0 { i128::midpoint(low.into(), high.into()) } else { sum / count };
        let (mut seen_low, mut seen_high) = (low, high);
        if SPAN_EPISODES <= self.experience.episode_count() {
            (seen_low, seen_high) =
                totals().fold((i64::MAX, i64::MIN), |(low, high), total| (low.min(total), high.max(total)));
            // Returns that were all equal so far need not stay so: the range is at least what one step may bring.
            let step = i64::from(self.shape.reward_max) - i64::from(self.shape.reward_min);
            if seen_high - seen_low < step {
                seen_high = high.min(seen_low.saturating_add(step));
                seen_low = low.max(seen_high.saturating_sub(step));
            }
        }
        if self.is_served() {
            return Some(self.served_range(mean as i64, (seen_low, seen_high)));
        }
        // What is compared is what is paid from some step on, which may be nothing.
        Some(Earlier { low: seen_low.min(0), high: seen_high.max(0), mean: mean as i64 })
    }

    /// Begins an episode of the gate where there are no pairs: the coin is thrown after the first observation.
    pub(super) fn measure_unpaired(
        &mut self,
        world: &mut dyn Environment,
    ) -> Result<Event, EnvironmentError> {
        let Phase::Measure(gate) = &self.phase else { unreachable!("only a gate measures") };
        let turns = match (gate.contest(), self.machinery.turn_before()) {
            (Contest::Trial, _) => [Turn::SEAT, Turn::HELD],
            (Contest::Watch, Some(before)) => [before, Turn::HELD],
            // Nothing is left that could be taken back.
            (Contest::Watch, None) => {
                self.phase = Phase::Collect;
                return Ok(Event::Judged);
            }
        };
        let is_trial = gate.contest() == Contest::Trial;
        let seed = self.gate_seeds.next_seed();
        self.reset(world, seed)?;
        if is_trial && self.shape.horizon == 1 && !self.would_differ(world.observation()) {
            let turn = self.next_turn();
            self.take_off(seed, turn);
            self.flight.iter_mut().for_each(|flight| flight.is_aside = true);
            return Ok(Event::EpisodeBegan);
        }
        let side = Side::of(self.machinery.prng_mut().bit());
        self.take_off(seed, turns[usize::from(side == Side::Incumbent)]);
        Ok(Event::EpisodeBegan)
    }

    /// Whether candidate and incumbent do different things at once for what is seen.
    pub(super) fn would_differ(&self, observation: &Bits) -> bool {
        let Phase::Measure(gate) = &self.phase else { return true };
        if self.agent().adapts() {
            return true;
        }
        let guard = self.machinery.family().guard();
        let action = |policy: &Policy| PolicyState::new(policy).act(policy, observation);
        guard.pass(observation, action(gate.policy())) != action(self.machinery.frozen())
    }

    /// Books in the open trial that an episode was left to others, because both would have done the same.
    pub(super) fn pass_unpaired(&mut self, witness: &mut dyn Witness) {
        let (steps, acting) = (self.tally.steps, self.machinery.acting_digest());
        if let Some(record) = self.machinery.pass_episode(steps) {
            let streak = self.end_contest();
            return self.conclude(record, streak, acting, witness);
        }
        self.look_at_trial(witness);
    }

    /// Books an episode of the gate where there are no pairs.
    pub(super) fn take_unpaired(&mut self, turn: Turn, episode: Episode, witness: &mut dyn Witness) {
        let Phase::Measure(gate) = &mut self.phase else { unreachable!("only a gate plays rollouts") };
        gate.count(turn, &episode, self.shape.return_max);
        let contest = gate.contest();
        if turn == Turn::HELD {
            self.standing.book_rollout(episode.total());
        }
        let side = Side::of(turn != Turn::HELD);
        let apart = if contest == Contest::Watch { Some(0) } else { self.tells_apart(side, &episode) };
        let played = Played {
            side,
            total: episode.total(),
            since: self.paid_apart(&episode, apart.unwrap_or(episode.steps.len())),
            is_bad: episode.steps.iter().any(|step| step.bad),
            differs: apart.is_some(),
        };
        self.remember(turn, episode, witness);
        let (steps, acting) = (self.tally.steps, self.machinery.acting_digest());
        if contest == Contest::Watch {
            let earlier = self.unpaired().expect("there are no pairs here");
            let record = self.machinery.book_watch_episode(&played, earlier, steps);
            return self.end_watch(record, acting, witness);
        }
        if let Some(record) = self.machinery.book_episode(&played, steps) {
            let streak = self.end_contest();
            return self.conclude(record, streak, acting, witness);
        }
        self.look_at_trial(witness);
    }

    /// Gives the open trial up where it leads nowhere.
    fn look_at_trial(&mut self, witness: &mut dyn Witness) {
        let (steps, evolution) = (self.tally.steps, self.machinery.evolution());
        let Phase::Measure(gate) = &self.phase else { return };
        let spent = gate.spent();
        // What saves gates may live by doing the same; everybody else must do something else.
        let may_be_equal =
            evolution.trial().is_some_and(|shown| matches!(shown.patch().change, Change::Play { .. }));
        if !may_be_equal && evolution.trial_never_differed(EQUAL_EPISODES_MAX) {
            self.give_up("it never does anything else", witness);
        } else if self.is_spent() {
            self.run_out(witness);
        } else if self.candidate_steps_max() < spent {
            let policy = gate.policy().clone();
            self.give_up("its gain is too small to be shown by now", witness);
            // It may come again when twice as many steps are taken.
            self.candidates.test(&policy, steps / 2);
        }
    }

    /// Steps that a candidate may take in one trial.
    fn candidate_steps_max(&self) -> u64 {
        let Tally { steps, episodes, .. } = self.tally;
        CANDIDATE_EPISODES * steps.div_ceil(episodes.max(1)) + steps / CANDIDATE_SHARE
    }

    /// The first step of an episode at which the other would have done something else. Both sides are asked the same question,
    /// and up to the first difference both see the same: leaving episodes out where they do not differ favours nobody. A step
    /// that was drawn is the same for both.
    fn tells_apart(&self, side: Side, episode: &Episode) -> Option<usize> {
        // What adapts within an episode cannot be asked afterwards.
        if self.agent().adapts() {
            return Some(0);
        }
        let Phase::Measure(gate) = &self.phase else { return Some(0) };
        let guard = self.machinery.family().guard();
        let (wanted, is_candidate) = match side {
            Side::Candidate => (&self.machinery.frozen().replay([episode])[0], false),
            Side::Incumbent => (&gate.policy().replay([episode])[0], true),
        };
        // What is held has the guard in it.
        let other = |observation: &Bits, action: u16| match is_candidate {
            true => guard.pass(observation, action),
            false => action,
        };
        let mut steps = episode.steps.iter().zip(wanted);
        steps.position(|(step, action)| !step.uniform && other(&step.observation, *action) != step.action)
    }

    /// Holds the halves of a pair against each other. If they disagree although the same was done, all pairs are void: the
    /// candidate under trial is measured again without them. Whether that is so.
    pub(super) fn voids_pairs(&mut self, halves: [&Episode; 2], witness: &mut dyn Witness) -> bool {
        let [first, second] = halves;
        if mismatch(first, second, self.tally.late == 0).is_none() {
            return false;
        }
        self.tally.repetition = Repetition::Refuted;
        self.history.link("bem/chain/not-repeated", &first.serial.to_le_bytes());
        let Phase::Measure(gate) = &self.phase else { return true };
        if gate.contest() == Contest::Trial {
            let serial = self.machinery.evolution().trial().map(|shown| shown.patch().serial);
            let candidate = serial.and_then(|serial| self.candidates.waiting(serial)).cloned();
            self.give_up("the world does not repeat an episode by its seed", witness);
            if let Some(candidate) = candidate {
                self.candidates.forgive(&candidate.policy);
                self.submit(vec![candidate], self.candidates.is_searched());
            }
        }
        true
    }

    /// Whether the episode in flight can be played again up to where it stands.
    pub(super) fn may_resume(&self, world: &dyn Environment) -> bool {
        self.repeats() && world.repeats()
    }

    /// Gives the episode in flight up: its world has lost it, or cannot bring it back.
    pub(super) fn abandon(&mut self) -> Event {
        self.flight = None;
        self.machinery.abandon();
        self.tally.abandoned += 1;
        self.history.link("bem/chain/abandoned", &self.history.next_serial().to_le_bytes());
        Event::EpisodeLost
    }
}

#[cfg(test)]
mod tests;
