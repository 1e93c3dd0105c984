//! Many episodes at once in one machine: each is its turn and its steps so far, kept by the owner.
//!
//! [`Machine::act_apart`] brings the lane in step with one of them and chooses its next action by the one choice function;
//! nothing of it stays in the lane, so that any number of episodes can wait for their outcomes. What an action brought is
//! booked whenever it comes ([`Machine::book_apart`]). Must not know why outcomes come late. Clauses: VM-13, VM-15;
//! decisions D-18, D-41, D-67.

use super::{Machine, MachineError};
use crate::memory::context::{FamilyIndex, TaskSerial};
use crate::turn::{Odds, Plan, Turn};
use bem_base::environment::{Bits, Outcome};
use bem_learn::wide::Advice;

/// A step of an episode that is kept elsewhere: what was seen and done, and what it brought as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastStep {
    /// What was seen.
    pub observation: Bits,
    /// What was done.
    pub action: u16,
    /// What it brought, if that has come.
    pub outcome: Option<Outcome>,
}

impl<P> Machine<P> {
    /// The action for what is seen in an episode of this turn with these steps behind it, and how chance took part in it. The lane is idle afterwards and the trace is left as it was.
    /// Cost: one call of the acting circuit for every step behind it.
    pub fn act_apart(
        &mut self,
        family: FamilyIndex,
        turn: Turn,
        past: &[PastStep],
        observation: &Bits,
        plan: &dyn Plan,
    ) -> Result<(u16, Odds), MachineError> {
        self.begin_turn(family, TaskSerial(0), turn)?;
        let (lane, mut around) = self.surroundings(usize::from(family.0));
        for step in past {
            lane.live_again(&mut around, step);
        }
        let acted = self.act_with(observation, plan);
        let odds = self.odds();
        self.lane.pending.clear();
        self.lane.progress.running = false;
        self.trace.drain(|_| {});
        Ok((acted?, odds))
    }

    /// Books what an action brought that was chosen apart, with the chance that it had if it was drawn: for the plain action of
    /// its bucket, and whether it was BAD.
    pub fn book_apart(
        &mut self,
        family: FamilyIndex,
        observation: &Bits,
        (action, odds): (u16, Odds),
        outcome: &Outcome,
    ) -> Result<(), MachineError> {
        self.family(family)?;
        let family = &mut self.families[usize::from(family.0)];
        let bucket = family.bucket_of(observation);
        family.suspect(observation, action, outcome.bad);
        family.notice(outcome);
        family.credit_plain(bucket, action, outcome.reward, odds.chance());
        Ok(())
    }

    /// Adds what people said of a plain action where this is seen, or takes it back; whether it fits. `index` is the cached
    /// index to restore, if nothing was booked in between. Cost: one index, one path of the tournament.
    pub fn advise_apart(
        &mut self,
        family: FamilyIndex,
        (observation, action): (&Bits, u16),
        advice: &Advice,
        adds: bool,
        index: Option<i32>,
    ) -> Result<bool, MachineError> {
        self.family(family)?;
        Ok(self.families[usize::from(family.0)].advise(observation, action, advice, adds, index))
    }

    /// Forgets everything that people said.
    pub fn clear_advice(&mut self, family: FamilyIndex) -> Result<(), MachineError> {
        self.family(family)?;
        self.families[usize::from(family.0)].clear_advice();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GenesisConfig;
    use bem_base::environment::Shape;
    use bem_base::prng::Prng;

    fn shape() -> Shape {
        Shape {
            observation_bits: 3,
            actions: 4,
            fields: Vec::new(),
            horizon: 8,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 8_000,
        }
    }

    #[test]
    fn episodes_apart_do_what_they_would_have_done_alone() {
        let mut machine = Machine::new(GenesisConfig::default(), 1);
        let family = machine.take_up(&shape()).unwrap();
        let mut alone = machine.clone();
        // The index in one episode that runs, and the same episode lived through apart.
        alone.begin_turn(family, TaskSerial(1), Turn::INDEX).unwrap();
        let mut past = Vec::new();
        for number in 0..8u64 {
            let observation = Bits([number % 5, 0, 0, 0]);
            let outcome = Outcome { reward: 100 * number as i32, done: number == 7, bad: false };
            let action = alone.act(&observation).unwrap();
            alone.learn(&outcome).unwrap();
            alone.trace_mut().drain(|_| {});
            let (apart, odds) = machine.act_apart(family, Turn::INDEX, &past, &observation, &()).unwrap();
            machine.book_apart(family, &observation, (apart, odds), &outcome).unwrap();
            assert_eq!((apart, odds), (action, Odds::CERTAIN));
            past.push(PastStep { observation, action: apart, outcome: Some(outcome) });
        }
        assert!(!machine.progress().running);
    }

    #[test]
    fn draws_follow_the_stated_chances() {
        let mut machine = Machine::new(GenesisConfig::default(), 1);
        let index = machine.take_up(&shape()).unwrap();
        let (seen, bad) = (Bits([3, 0, 0, 0]), Outcome { reward: 0, done: true, bad: true });
        machine.book_apart(index, &seen, (2, Odds::CERTAIN), &bad).unwrap();
        let family = machine.family(index).unwrap().clone();
        let chances: Vec<_> = (0..4).map(|action| family.draw_chance(&seen, action)).collect();
        assert_eq!(chances[2].to_raw(), (1i64 << 32) / 32);
        let total: i64 = chances.iter().map(|chance| chance.to_raw()).sum();
        assert!((total - (1i64 << 32)).abs() < 8, "{total}");
        let mut prng = Prng::stream(1, "draws");
        let mut counts = [0i64; 4];
        (0..64_000).for_each(|_| counts[usize::from(family.draw(&seen, &mut prng).0)] += 1);
        for (count, chance) in counts.iter().zip(&chances) {
            let expected = (chance.to_raw() * 64_000) >> 32;
            assert!((count - expected).abs() < 600, "{counts:?}");
        }
    }
}
