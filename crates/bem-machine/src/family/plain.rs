//! How a family that stands for a world chooses among plain actions, and what it books.
//!
//! The rule of the configuration holds here as it does in pools: the lowest index, a draw by softmax over the indices, or
//! Tsallis-INF with sums of its own, one set a bucket. A rule that draws leaves out what is forbidden, so that the chance it
//! states is the chance of what is done. Tsallis-INF counts what it drew itself and what was drawn with equal chance, each by
//! its chance; what was done for certain says nothing about the others and is left out. Must not know whose turn it is.
//! Clauses: VM-9, VM-10; decisions D-4, D-5, D-170.

use super::Family;
use super::choice::Draw;
use super::world::reward_range;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::loss::Loss;
use bem_learn::tsallis_inf::Chance;
use bem_learn::wide_draw::{WideTsallisInf, softmax, softmax_chance};

/// A step that is counted from a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// What was done.
    pub action: u16,
    /// What it brought.
    pub reward: i32,
    /// The chance that it had, if it was drawn.
    pub chance: Option<Chance>,
}

impl Family {
    /// Whether plain actions are drawn with chances that hold against adversaries.
    pub fn weighs_by_chance(&self) -> bool {
        self.draw == Draw::TsallisInf
    }

    /// A plain action of a bucket by the rule of the configuration, and the chance that it had if it was drawn. Cost: one load
    /// for the lowest index, all actions for rules that draw.
    #[inline]
    pub(crate) fn choose_plain(
        &self,
        bucket: u16,
        observation: &Bits,
        prng: &mut Prng,
    ) -> (u16, Option<Chance>) {
        match self.draw {
            Draw::Lowest => {
                let plain = &self.statistics.plain[usize::from(bucket)];
                let (chosen, held) = (plain.choose() as u16, self.held_plainly(bucket));
                let stays = |held: &u16| {
                    let one_in = if chosen == *held { 1 } else { plain.followed_one_in(usize::from(*held)) };
                    1 < one_in && prng.below(one_in) != 0
                };
                (held.filter(stays).unwrap_or(chosen), None)
            }
            _ => self.draw_plain(bucket, observation, prng),
        }
    }

    /// The plain action that is held in a bucket, where episodes are drawn besides: with nothing to see, the index is all that
    /// explores.
    fn held_plainly(&self, bucket: u16) -> Option<u16> {
        let is_drawn_besides = self.shape.horizon == 1 && 0 < self.shape.observation_bits;
        let held = self.held.actions.get(usize::from(bucket)).copied();
        held.filter(|_| is_drawn_besides && self.held.member().is_none())
    }

    #[cold]
    fn draw_plain(&self, bucket: u16, observation: &Bits, prng: &mut Prng) -> (u16, Option<Chance>) {
        let bucket = usize::from(bucket);
        let may = |action: usize| self.is_allowed(observation, action as u16);
        let (action, chance) = match self.draw {
            Draw::Softmax(temperature, kept) => {
                softmax(&self.statistics.plain[bucket], (temperature, kept), may, prng)
            }
            _ => self.statistics.weighed[bucket].draw(may, prng),
        };
        (action as u16, Some(chance))
    }

    /// The chance with which the rule of the configuration takes this plain action where this is seen; nothing where the rule
    /// does not draw.
    pub fn plain_chance(&self, observation: &Bits, action: u16) -> Option<Fixed> {
        let bucket = usize::from(self.bucket_of(observation));
        let may = |action: usize| self.is_allowed(observation, action as u16);
        let chance = match self.draw {
            Draw::Lowest => return None,
            Draw::Softmax(temperature, kept) => {
                let rule = (temperature, kept);
                softmax_chance(&self.statistics.plain[bucket], rule, may, usize::from(action))
            }
            Draw::TsallisInf => self.statistics.weighed[bucket].chance(may, usize::from(action)),
        };
        Some(chance.map_or(Fixed::ZERO, |chance| match chance {
            Chance::CERTAIN => Fixed::ONE,
            drawn => Fixed::from_raw(i64::from(drawn.to_raw())),
        }))
    }

    fn is_allowed(&self, observation: &Bits, action: u16) -> bool {
        self.guard.pass(observation, action) == action
    }

    /// Books what a plain action brought in a bucket; the chance that it had, if it was drawn.
    #[inline]
    pub(crate) fn credit_plain(&mut self, bucket: u16, action: u16, reward: i32, chance: Option<Chance>) {
        let (loss, parameters) = (self.reward_range().exact_loss(i64::from(reward)), self.plain_parameters());
        let place = usize::from(bucket);
        if let Some(statistics) = self.statistics.plain.get_mut(place) {
            statistics.update(&parameters, usize::from(action), loss);
        }
        if let (Some(weighed), Some(chance)) = (self.statistics.weighed.get_mut(place), chance) {
            weighed.update(usize::from(action), loss, chance);
        }
    }

    /// Puts statistics that were counted elsewhere into every bucket of plain actions: those of the log.
    pub fn count_anew<'s>(&mut self, counted: impl Iterator<Item = &'s [Counted]>) {
        let (range, parameters) = (self.reward_range(), self.plain_parameters());
        let blank = self.unknown_bucket();
        for (place, (statistics, steps)) in self.statistics.plain.iter_mut().zip(counted).enumerate() {
            *statistics = blank.clone();
            let mut weighed = self.statistics.weighed.get_mut(place);
            if let Some(weighed) = &mut weighed {
                **weighed = WideTsallisInf::new(usize::from(self.shape.actions));
            }
            for Counted { action, reward, chance } in steps {
                let (action, loss) = (usize::from(*action), range.exact_loss(i64::from(*reward)));
                statistics.record(action, loss);
                if let (Some(weighed), Some(chance)) = (&mut weighed, chance) {
                    weighed.record(action, loss, *chance);
                }
            }
            statistics.refresh(&parameters);
            if let Some(weighed) = weighed {
                weighed.refresh();
            }
        }
    }

    /// Every bucket is as if nothing had been booked.
    pub(super) fn forget_plain(&mut self) {
        let (blank, buckets) = (self.unknown_bucket(), self.directory.bucket_count());
        self.statistics.plain = vec![blank; buckets];
        let weighed = if self.weighs_by_chance() { buckets } else { 0 };
        self.statistics.weighed = vec![WideTsallisInf::new(usize::from(self.shape.actions)); weighed];
    }

    /// The new half of a bucket that was divided begins with what the whole has seen.
    pub(super) fn divide_plain(&mut self, bucket: usize) {
        let half = self.statistics.plain[bucket].clone();
        self.statistics.plain.push(half);
        let half = self.statistics.weighed.get(bucket).cloned();
        self.statistics.weighed.extend(half);
    }

    /// A bucket is a part of another one from now on.
    pub(super) fn join_plain(&mut self, bucket: usize) {
        self.statistics.plain.remove(bucket);
        if bucket < self.statistics.weighed.len() {
            self.statistics.weighed.remove(bucket);
        }
    }

    /// The world has paid beyond its range, and this will be the wider one: what plain actions brought so far, what is imagined
    /// of them because other tasks brought it, and sums of Tsallis-INF are brought onto it.
    pub(super) fn cover_plain(&mut self, shape: &Shape) {
        if !self.is_world() {
            return;
        }
        let (before, blank) = (self.reward_range(), self.unknown_bucket());
        let mut wider = self.shape.clone();
        wider.cover(shape);
        let after = reward_range(&wider);
        if after == before {
            return;
        }
        let (widening, whole) = (before.widening_to(&after), Loss::ONE.to_raw());
        for loss in &mut self.statistics.imagined {
            *loss = Loss::from_raw(widening.apply(loss.to_raw(), whole));
        }
        let blanks = (&blank, &self.unknown_bucket());
        let parameters = self.plain_parameters();
        for statistics in &mut self.statistics.plain {
            statistics.rescale(&parameters, widening, blanks);
        }
        self.statistics.weighed.iter_mut().for_each(|weighed| weighed.rescale(widening));
    }

    pub(super) fn encode_weighed(&self, writer: &mut Writer) {
        self.statistics.weighed.iter().for_each(|weighed| weighed.encode(writer));
    }

    pub(super) fn decode_weighed(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let buckets = if self.weighs_by_chance() { self.directory.bucket_count() } else { 0 };
        let actions = usize::from(self.shape.actions);
        self.statistics.weighed =
            (0..buckets).map(|_| WideTsallisInf::decode(actions, reader)).collect::<Result<_, _>>()?;
        Ok(())
    }
}
