//! How a family chooses among its experts and books what came of it.
//!
//! The rule of the configuration holds for single steps and for whole episodes alike. Rules that take the lowest
//! index read a cached arm; rules that draw take their randomness from the register they are handed. Whatever the
//! rule, the plain statistics are kept, because structure, evaluation and reports read them.
//! Clauses: VM-9, VM-10, VM-11, VM-12, VM-17, D-2, D-4, D-5, D-32.

use super::{Family, STEP_BY_STEP, Statistics};
use crate::config::{ChoiceRule, GenesisConfig};
use bem_base::environment::{Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::bucket::Batch;
use bem_learn::change::Change;
use bem_learn::index::{ChangeParameters, IndexRule, Parameters};
use bem_learn::loss::{Loss, Widening};
use bem_learn::softmax::{self, Temperature};
use bem_learn::tsallis_inf::{Chance, TsallisInf};

/// Every arm is a candidate.
pub const ALL_ARMS: u16 = u16::MAX;

/// How an arm comes out of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draw {
    /// The lowest index, whose formula the parameters name.
    Lowest,
    /// The best of so many draws by softmax over the indices.
    Softmax(Temperature, u32),
    /// A draw that holds against adversaries.
    TsallisInf,
}

impl Draw {
    pub(super) fn new(config: &GenesisConfig) -> Draw {
        match config.choice_rule {
            ChoiceRule::UcbV | ChoiceRule::AsPrinted => Draw::Lowest,
            ChoiceRule::Softmax => {
                Draw::Softmax(Temperature::Falling(config.temperature), config.candidates_kept)
            }
            ChoiceRule::TsallisInf => Draw::TsallisInf,
        }
    }
}

/// An arm that was chosen, and the chance it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The arm.
    pub arm: u8,
    /// Its chance; certain for rules that do not weigh by it.
    pub chance: Chance,
}

impl Pick {
    /// An arm that was not drawn.
    #[inline]
    pub const fn certain(arm: usize) -> Pick {
        Pick { arm: arm as u8, chance: Chance::CERTAIN }
    }
}

/// The learning parameters that a configuration asks for.
pub fn learning_parameters(config: &GenesisConfig) -> Parameters {
    let change = ChangeParameters { drift: config.change_tolerance, threshold: config.change_threshold };
    Parameters {
        rule: match config.choice_rule {
            ChoiceRule::UcbV | ChoiceRule::Softmax | ChoiceRule::TsallisInf => IndexRule::UcbV,
            ChoiceRule::AsPrinted => IndexRule::AsPrinted,
        },
        exploration: config.expert_exploration,
        prior_weight: config.expert_prior,
        prior_rate: config.expert_prior_rate,
        prior_min: config.prior_min,
        prior_max: config.prior_max,
        loss_reference: config.loss_reference,
        // Tsallis-INF answers for any sequence of losses; an adversary must not be able to make it forget.
        change: (config.choice_rule != ChoiceRule::TsallisInf).then_some(change),
    }
}

/// The sums that Tsallis-INF keeps beside the statistics: one set per bucket, one for whole episodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Samplers {
    pub(super) buckets: Vec<TsallisInf>,
    pub(super) episode: Option<TsallisInf>,
}

impl Samplers {
    /// Samplers over the live arms of a family, if its rule needs them.
    pub(super) fn new(family: &Family) -> Samplers {
        if family.draw != Draw::TsallisInf {
            return Samplers::default();
        }
        Samplers {
            buckets: family.statistics.buckets.iter().map(|bucket| TsallisInf::new(bucket.live())).collect(),
            episode: Some(TsallisInf::new(family.statistics.episode.live())),
        }
    }

    /// A slot of the family holds another circuit now.
    pub(super) fn admit(&mut self, slot: usize, sticky: bool) {
        match sticky {
            true => self.episode.iter_mut().for_each(|sampler| sampler.admit(slot)),
            false => self.buckets.iter_mut().for_each(|sampler| sampler.admit(slot)),
        }
    }

    /// A slot of the family is empty now; the family has made sure that another arm lives.
    pub(super) fn retire(&mut self, slot: usize, sticky: bool) {
        let retire = |sampler: &mut TsallisInf| {
            let retired = sampler.retire(slot);
            assert!(retired, "the statistics had another live arm, and so has the sampler");
        };
        match sticky {
            true => self.episode.iter_mut().for_each(retire),
            false => self.buckets.iter_mut().for_each(retire),
        }
    }

    /// A bucket was split: the new one starts with what the parent has seen.
    pub(super) fn split(&mut self, bucket: u16) {
        if let Some(parent) = self.buckets.get(usize::from(bucket)).cloned() {
            self.buckets.push(parent);
        }
    }

    /// A bucket is a part of another one from now on.
    pub(super) fn join(&mut self, bucket: usize) {
        if bucket < self.buckets.len() {
            self.buckets.remove(bucket);
        }
    }
}

impl Family {
    /// Whether a choice is the cached best arm of a bucket and nothing else has to be asked.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether the rule draws its arms.
    #[inline]
    pub fn draws(&self) -> bool {
        self.draw != Draw::Lowest
    }

    /// Chooses an arm of a bucket among the candidates, one bit each.
    ///
    /// Cost: one load for index rules when all arms are candidates, at most sixteen weights otherwise.
    #[doc(alias = "BANDIT_CHOOSE")]
    pub fn choose(&self, bucket: u16, candidates: u16, prng: &mut Prng) -> Pick {
        let statistics = &self.statistics.buckets[usize::from(bucket)];
        match self.draw {
            Draw::Lowest => Pick::certain(statistics.choose_among(candidates)),
            Draw::Softmax(temperature, kept) => {
                Pick::certain(softmax::choose_best_of(statistics, (temperature, kept), candidates, prng))
            }
            Draw::TsallisInf => {
                let (arm, chance) =
                    self.statistics.samplers.buckets[usize::from(bucket)].draw(candidates, prng);
                Pick { arm: arm as u8, chance }
            }
        }
    }

    /// Chooses an arm for a whole episode; [`STEP_BY_STEP`] is one of them.
    pub fn choose_episode(&self, prng: &mut Prng) -> Pick {
        if !self.has_sticky() {
            return Pick::certain(STEP_BY_STEP);
        }
        match (self.draw, &self.statistics.samplers.episode) {
            (Draw::TsallisInf, Some(sampler)) => {
                let (arm, chance) = sampler.draw(ALL_ARMS, prng);
                Pick { arm: arm as u8, chance }
            }
            (Draw::Softmax(temperature, kept), _) => {
                let rule = (temperature, kept);
                Pick::certain(softmax::choose_best_of(&self.statistics.episode, rule, ALL_ARMS, prng))
            }
            _ => Pick::certain(self.statistics.episode.choose()),
        }
    }

    /// Books the outcome of one step for the expert that acted; a raised alarm is returned.
    #[inline]
    #[doc(alias = "BANDIT_UPDATE_STEP")]
    pub fn credit(&mut self, bucket: u16, arm: usize, outcome: &Outcome) -> Option<Change> {
        self.credit_pick(bucket, Pick::certain(arm), outcome)
    }

    /// The same for an arm that may have been drawn.
    #[inline]
    pub fn credit_pick(&mut self, bucket: u16, pick: Pick, outcome: &Outcome) -> Option<Change> {
        self.notice(outcome);
        let arm = usize::from(pick.arm);
        let loss = self.statistics.payoff.step_loss(outcome, self.facts[arm].penalty);
        if let Some(sampler) = self.statistics.samplers.buckets.get_mut(usize::from(bucket)) {
            sampler.update(arm, loss, pick.chance);
        }
        self.statistics.buckets[usize::from(bucket)].update(&self.parameters, arm, loss)
    }

    /// Books many outcomes of one bucket at once; what its sampler recorded since counts from now on.
    pub(crate) fn credit_batch(&mut self, bucket: usize, batch: &Batch) -> Option<Change> {
        if let Some(sampler) = self.statistics.samplers.buckets.get_mut(bucket) {
            sampler.refresh();
        }
        self.statistics.buckets[bucket].apply(&self.parameters, batch)
    }

    /// Tells a bucket's sampler of a loss that its statistics will hear of in a batch.
    pub(crate) fn record_pick(&mut self, bucket: usize, pick: Pick, loss: Loss) {
        if let Some(sampler) = self.statistics.samplers.buckets.get_mut(bucket) {
            sampler.record(usize::from(pick.arm), loss, pick.chance);
        }
    }

    /// Books a whole episode for the arm that was chosen at its start.
    pub fn credit_episode(&mut self, pick: Pick, payoff_sum: i64) -> Option<Change> {
        let loss: Loss = self.statistics.payoff.episode_loss(payoff_sum);
        if let Some(sampler) = &mut self.statistics.samplers.episode {
            sampler.update(usize::from(pick.arm), loss, pick.chance);
        }
        self.statistics.episode.update(&self.parameters, usize::from(pick.arm), loss)
    }

    /// Books many episodes at once.
    pub(crate) fn credit_episodes(&mut self, batch: &Batch) -> Option<Change> {
        if let Some(sampler) = &mut self.statistics.samplers.episode {
            sampler.refresh();
        }
        self.statistics.episode.apply(&self.parameters, batch)
    }

    /// Tells the episodes' sampler of a loss that the statistics will hear of in a batch.
    pub(crate) fn record_episode(&mut self, pick: Pick, loss: Loss) {
        if let Some(sampler) = &mut self.statistics.samplers.episode {
            sampler.record(usize::from(pick.arm), loss, pick.chance);
        }
    }

    /// Takes notice of an outcome that is credited later or to a whole episode.
    #[inline]
    pub fn notice(&mut self, outcome: &Outcome) {
        if self.statistics.payoff.must_widen(outcome) {
            self.widen();
        }
    }

    /// The first BAD step: losses so far are on a scale that did not cover it, and are brought onto the wider one.
    #[cold]
    fn widen(&mut self) {
        let (step, episode) = self.statistics.payoff.widen();
        self.rescale(Some(step), Some(episode));
    }

    /// The world has paid beyond its range: the family's becomes wider, and losses so far are brought onto it.
    pub fn cover(&mut self, shape: &Shape) {
        self.cover_plain(shape);
        self.shape.cover(shape);
        let (step, episode) = self.statistics.payoff.cover(shape);
        self.rescale(step, episode);
    }

    /// Losses of steps and of episodes are measured on wider ranges from now on, where these have changed.
    fn rescale(&mut self, step: Option<Widening>, episode: Option<Widening>) {
        self.revision += 1;
        let Statistics { buckets, episode: of_episodes, samplers, .. } = &mut self.statistics;
        if let Some(episode) = episode {
            samplers.episode.iter_mut().for_each(|sampler| sampler.rescale(episode));
            of_episodes.rescale(&self.parameters, episode);
        }
        if let Some(step) = step {
            samplers.buckets.iter_mut().for_each(|sampler| sampler.rescale(step));
            buckets.iter_mut().for_each(|bucket| bucket.rescale(&self.parameters, step));
        }
    }

    /// Moves the prior of an expert in every bucket that keeps statistics of it.
    #[doc(alias = "GRPO_LITE_UPDATE")]
    pub fn adjust_prior(&mut self, slot: usize, change: Fixed) {
        self.revision += 1;
        if self.is_sticky(slot) {
            self.statistics.episode.adjust_prior(&self.parameters, slot, change);
        } else {
            for bucket in &mut self.statistics.buckets {
                bucket.adjust_prior(&self.parameters, slot, change);
            }
        }
    }

    /// From now on the arm with the best lower confidence bound of its payoff is chosen: for frozen evaluation.
    ///
    /// The plain mean would favour arms nobody has tried; the pessimist trusts what has been seen most, and draws
    /// nothing.
    pub fn make_pessimistic(&mut self) {
        self.revision += 1;
        self.draw = Draw::Lowest;
        self.plain = self.search.is_none();
        self.parameters.rule = IndexRule::AsPrinted;
        self.parameters.prior_weight = Fixed::ZERO;
        self.statistics.episode.refresh(&self.parameters);
        for bucket in &mut self.statistics.buckets {
            bucket.refresh(&self.parameters);
        }
    }
}
