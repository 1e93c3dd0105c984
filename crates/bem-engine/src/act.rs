//! Acting: one episode in flight, step by step, and what is remembered of it.
//!
//! An episode in flight is its seed and the actions so far: worlds repeat themselves, so that this is all that has to
//! be saved. How an action was chosen is written beside it, because a log without it could not be weighed.
//! Clauses: SCC-2, VM-16; decisions D-32 to D-34.

use crate::learner::{Event, Learner, Phase, Witness};
use crate::machinery::{Hand, Machinery};
use bem_base::encode::Writer;
use bem_base::environment::{Bits, Environment, EnvironmentError, Outcome};
use bem_base::prng::Prng;
use bem_synth::experience::{Episode, Step};
use bem_synth::policy::{Policy, PolicyState};
use std::collections::BTreeSet;
use std::sync::Arc;

/// At first all actions are drawn with equal chance, so that the first labels favour none.
const UNIFORM_STEPS: u64 = 160;

/// How the actions of an episode are chosen. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// With equal chance, all of them.
    Uniform = 0,
    /// By the incumbent, with uniform steps in between; by the index while the choice itself acts.
    Mixed = 1,
    /// By the incumbent alone.
    Incumbent = 2,
    /// Along a plan that looks for what could still be best, with few uniform steps.
    Curious = 3,
    /// By the candidate that is measured.
    Candidate = 4,
    /// By the incumbent before, which the present one is watched against.
    Previous = 5,
}

impl Mode {
    /// All modes, in order of their numbers.
    pub(crate) const ALL: [Mode; 6] =
        [Mode::Uniform, Mode::Mixed, Mode::Incumbent, Mode::Curious, Mode::Candidate, Mode::Previous];
}

/// An episode that has begun and is not over.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) seed: u64,
    pub(crate) mode: Mode,
    pub(crate) policy: Arc<Policy>,
    pub(crate) state: PolicyState,
    pub(crate) steps: Vec<Step>,
}

/// Pairs that the shield holds; later ones are not shielded from.
const SHIELD_MAX: usize = 4_096;

/// An action drawn with equal chance from those that were not BAD for this observation, and how many these are.
///
/// Where every action was BAD there is nothing to avoid, and all are drawn from.
fn draw_allowed(
    draw: &mut Prng,
    actions: u16,
    shield: &BTreeSet<(Bits, u16)>,
    observation: &Bits,
) -> (u16, u16) {
    let shielded = shield.range((*observation, 0)..=(*observation, u16::MAX)).count() as u16;
    if shielded == 0 || shielded == actions {
        return (draw.below(u64::from(actions)) as u16, actions);
    }
    let place = draw.below(u64::from(actions - shielded)) as usize;
    let mut allowed = (0..actions).filter(|action| !shield.contains(&(*observation, *action)));
    (allowed.nth(place).expect("as many are allowed as were counted"), actions - shielded)
}

/// A step for the log; `drawn_from` is the number of actions if this one was drawn with equal chance.
pub(crate) fn step_taken(observation: Bits, action: u16, outcome: Outcome, drawn_from: Option<u16>) -> Step {
    let Outcome { reward, done, bad } = outcome;
    let propensity = drawn_from.map_or(u16::MAX, |actions| u16::MAX / actions);
    Step { observation, action, reward, done, bad, uniform: drawn_from.is_some(), propensity }
}

impl Learner {
    /// Begins the next episode for experience, or does the search that is due.
    pub(crate) fn collect(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        let until = self.workload.as_ref().map_or(self.next_search, |workload| workload.act_until);
        if until.min(self.settings.budget) <= self.tally.steps || self.is_done() {
            let is_paced = self.workload.is_none();
            return Ok(if is_paced { self.search(witness) } else { self.next_unit(witness) });
        }
        let mode = match self.draw.below(10) {
            _ if self.tally.steps < UNIFORM_STEPS => Mode::Uniform,
            // With nothing to see there is nothing to explain, and every step may go to the choice.
            0..=4 if self.shape.observation_bits == 0 && self.shape.horizon == 1 => Mode::Mixed,
            0..=4 => Mode::Uniform,
            5..=7 => Mode::Mixed,
            _ => Mode::Incumbent,
        };
        let mode = match &mut self.explorer {
            // Mixed play serves the choice among contexts, which knows nothing of what follows.
            Some(explorer) if mode != Mode::Incumbent && self.draw.below(8) != 0 => {
                explorer.prepare(&mut self.draw);
                Mode::Curious
            }
            _ => mode,
        };
        let is_alarmed = self.workload.as_ref().is_some_and(|workload| workload.safety.is_alarmed());
        let mode = if is_alarmed { Mode::Incumbent } else { mode };
        let seed = self.play_seeds.next_seed();
        self.begin(world, seed, mode)
    }

    /// Begins an episode.
    pub(crate) fn begin(
        &mut self,
        world: &mut dyn Environment,
        seed: u64,
        mode: Mode,
    ) -> Result<Event, EnvironmentError> {
        world.reset(seed)?;
        let policy = self.policy_of(mode).expect("a mode is chosen where its policy is");
        let state = PolicyState::new(&policy);
        let hand = self.hand(mode);
        if let Some(machinery) = &mut self.machinery {
            machinery.begin(self.serial + 1, hand);
        }
        self.flight = Some(Flight { seed, mode, policy, state, steps: Vec::new() });
        Ok(Event::EpisodeBegan)
    }

    /// The policy that acts in this mode, if there is one now.
    pub(crate) fn policy_of(&self, mode: Mode) -> Option<Arc<Policy>> {
        match mode {
            Mode::Uniform | Mode::Mixed | Mode::Incumbent => Some(Arc::clone(&self.incumbent.policy)),
            // The explorer acts by its plan; the circuit behind it is not asked.
            Mode::Curious => self.explorer.as_ref().map(|_| Arc::clone(&self.incumbent.policy)),
            Mode::Candidate => match &self.phase {
                Phase::Measure(gate) => Some(Arc::clone(&gate.policy)),
                _ => None,
            },
            Mode::Previous => self.previous.as_ref().map(|previous| Arc::clone(&previous.policy)),
        }
    }

    /// Who acts in this mode. Where a circuit is the incumbent it acts through the machine, and in episodes for
    /// experience the machine chooses, unless it has turned away from what is watched; everybody else is its guest.
    pub(crate) fn hand(&self, mode: Mode) -> Hand {
        let through_machine = self.machinery.is_some() && !self.incumbent.is_choice;
        match mode {
            Mode::Mixed if through_machine => Hand::Incumbent,
            Mode::Incumbent if through_machine && matches!(self.phase, Phase::Measure(_)) => Hand::Incumbent,
            Mode::Incumbent if through_machine && self.is_played_by_name() => Hand::Incumbent,
            Mode::Incumbent if through_machine => Hand::Machine,
            _ => Hand::Guest,
        }
    }

    /// Whether the bandit's index chooses in this mode: among plain actions it explores, a circuit acts as it is.
    pub(crate) fn is_by_index(&self, mode: Mode) -> bool {
        mode == Mode::Mixed && self.incumbent.is_choice && !self.incumbent.looks_ahead
    }

    /// Takes one step of the episode in flight.
    pub(crate) fn fly(
        &mut self,
        world: &mut dyn Environment,
        witness: &mut dyn Witness,
    ) -> Result<Event, EnvironmentError> {
        let mode = self.flight.as_ref().expect("the caller has looked").mode;
        let (by_index, hand) = (self.is_by_index(mode), self.hand(mode));
        let flight = self.flight.as_mut().expect("the caller has looked");
        let observation = *world.observation();
        let curious = match (&self.explorer, mode) {
            (Some(explorer), Mode::Curious) => explorer.act(&flight.steps, &observation),
            _ => None,
        };
        let own = self.machinery.as_mut().map(|machinery| machinery.act(&observation));
        let wanted = match (own, mode) {
            (Some(own), _) if hand != Hand::Guest => own,
            (_, Mode::Uniform) => 0,
            (_, Mode::Curious) => curious.unwrap_or(0),
            (_, Mode::Mixed) if by_index => self.bandit.choose(&observation),
            _ => flight.state.act(&flight.policy, &observation),
        };
        let uniform = match mode {
            Mode::Uniform => true,
            Mode::Mixed => !by_index && self.draw.below(4) == 0,
            Mode::Curious => curious.is_none() || self.draw.below(16) == 0,
            Mode::Incumbent | Mode::Candidate | Mode::Previous => false,
        };
        let (action, drawn_from) = if uniform {
            let (action, count) =
                draw_allowed(&mut self.draw, self.shape.actions, &self.shield, &observation);
            (action, Some(count))
        } else {
            (wanted, None)
        };
        if let Some(machinery) = self.machinery.as_mut().filter(|_| uniform || hand == Hand::Guest) {
            machinery.overrule(action);
        }
        let outcome = world.step(action)?;
        if let Some(machinery) = &mut self.machinery {
            machinery.learn(&outcome);
        }
        if outcome.bad && self.settings.config.shield && self.shield.len() < SHIELD_MAX {
            self.shield.insert((observation, action));
        }
        self.tally.steps += 1;
        self.bandit.record(&observation, action, outcome.reward);
        flight.steps.push(step_taken(observation, action, outcome, drawn_from));
        if self.machinery.as_ref().is_some_and(Machinery::has_block) {
            self.seal(witness);
        }
        if !outcome.done {
            return Ok(Event::Stepped);
        }
        if let Some(Flight { seed, mode, steps, .. }) = self.flight.take() {
            self.tally.episodes += 1;
            self.serial += 1;
            self.land((seed, mode), Episode { serial: self.serial, steps }, witness);
        }
        Ok(Event::EpisodeEnded)
    }

    /// Puts an episode to the use it was played for.
    fn land(&mut self, (seed, mode): (u64, Mode), episode: Episode, witness: &mut dyn Witness) {
        if matches!(self.phase, Phase::Measure(_)) {
            return self.take_rollout(seed, mode, episode, witness);
        }
        let total = episode.total();
        if let Some(workload) = &mut self.workload {
            workload.book_return(total, (self.shape.return_min, self.shape.return_max));
        }
        let is_incumbents = mode == Mode::Incumbent && self.is_incumbents(&episode);
        if mode == Mode::Incumbent {
            self.note_choice(is_incumbents && self.hand(mode) == Hand::Machine);
        }
        if let Some(workload) = self.workload.as_mut().filter(|_| is_incumbents) {
            workload.safety.book(episode.steps.iter().any(|step| step.bad));
        }
        self.remember(episode, witness);
        if is_incumbents {
            self.realised.book(total);
            self.streak = if total == self.shape.return_max { self.streak + 1 } else { 0 };
            self.observe_return(total);
        }
    }

    /// Whether the incumbent did, or would have done, what was done: the machine may have chosen another expert.
    pub(crate) fn is_incumbents(&self, episode: &Episode) -> bool {
        let acted = episode.steps.iter().map(|step| step.action);
        self.incumbent.policy.replay([episode])[0].iter().copied().eq(acted)
    }

    /// Closes a block of records: its digest goes into the chain, and the witness gets it.
    pub(crate) fn seal(&mut self, witness: &mut dyn Witness) {
        let records = self.machinery.as_mut().map(Machinery::take_records).unwrap_or_default();
        if records.is_empty() {
            return;
        }
        let mut writer = Writer::new();
        records.iter().flat_map(|record| record.0).for_each(|word| writer.u64(word));
        self.link("bem/chain/records", writer.as_bytes());
        witness.records(&records, &self.chain);
    }

    /// Puts an episode into the log and its digest into the chain.
    pub(crate) fn remember(&mut self, episode: Episode, witness: &mut dyn Witness) {
        let mut writer = Writer::new();
        episode.encode(&mut writer);
        self.link("bem/chain/episode", writer.as_bytes());
        witness.played(&episode, &self.chain);
        if let Some(explorer) = &mut self.explorer {
            explorer.learn(&episode);
        }
        self.experience.push(episode);
    }
}
