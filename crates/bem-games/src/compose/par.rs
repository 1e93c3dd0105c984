//! PAR: two parts at the same time.
//!
//! Horizon: the greater. Observation: one bit per part that is set while it runs, then both regions. Action: first
//! part's action plus its count times the second part's. Reward: the sum; a part that is over pays nothing and
//! ignores its action. Done: when both are over. BAD: when either raises it. Values: sums. Clauses: GLE-3.

use super::operator::{
    Extent, Operator, Plays, copy_bits, join_fields, joined_bits, region_lows, run_seed, sum_values,
};
use crate::game::{Game, GameError, Oracle, Parameter, Settings, Steps, Value};
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use std::sync::Arc;

/// The operator `par`.
pub struct Par;

impl Operator for Par {
    fn name(&self) -> &'static str {
        "par"
    }

    fn about(&self) -> &'static str {
        "Plays two parts at the same time; an action is a pair of actions."
    }

    fn arity(&self) -> usize {
        2
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn build(&self, parts: Vec<Arc<dyn Game>>, _settings: &Settings) -> Result<Arc<dyn Game>, GameError> {
        let sum = |side: fn(&Shape) -> i64| parts.iter().map(|part| side(part.shape())).sum::<i64>();
        // Once a part is over it pays nothing.
        let least = |shape: &Shape| i64::from(shape.reward_min).min(0);
        let most = |shape: &Shape| i64::from(shape.reward_max).max(0);
        let mut fields = join_fields(2, &parts);
        fields.splice(0..1, [Field { low: 0, width: 1 }, Field { low: 1, width: 1 }]);
        let extent = Extent {
            observation_bits: joined_bits(2, &parts),
            actions: parts.iter().map(|part| u64::from(part.shape().actions)).product(),
            horizon: parts.iter().map(|part| u64::from(part.shape().horizon)).max().unwrap_or(1),
            rewards: (sum(least), sum(most)),
            returns: (sum(|shape| shape.return_min), sum(|shape| shape.return_max)),
            fields,
        };
        let shape = extent.to_shape(self.name())?;
        let lows = region_lows(2, &parts);
        Ok(Arc::new(Both(Arc::new(Table { parts, shape, lows }))))
    }
}

/// The parts, and where what is seen of each begins in the joint observation.
struct Table {
    parts: Vec<Arc<dyn Game>>,
    shape: Shape,
    lows: Vec<usize>,
}

impl Table {
    /// The action of each part in a joint action.
    fn split(&self, action: u16) -> [u16; 2] {
        let first = self.parts[0].shape().actions;
        [action % first, action / first]
    }

    fn join(&self, actions: [u16; 2]) -> u16 {
        actions[0] + actions[1] * self.parts[0].shape().actions
    }
}

/// The game made of both parts.
struct Both(Arc<Table>);

impl Both {
    fn episode(&self) -> Episode {
        let worlds = self.0.parts.iter().map(|part| part.start()).collect();
        Episode { table: Arc::clone(&self.0), worlds, running: [false; 2], observation: Bits::ZERO }
    }
}

impl Game for Both {
    fn shape(&self) -> &Shape {
        &self.0.shape
    }

    fn start(&self) -> Box<dyn Environment + Send> {
        Box::new(self.episode())
    }

    fn optimum(&self) -> Value {
        sum_values(&self.0.parts, &[Plays::ONCE; 2], |part| part.optimum())
    }

    fn random(&self) -> Value {
        sum_values(&self.0.parts, &[Plays::ONCE; 2], |part| part.random())
    }

    fn steps(&self) -> Steps {
        // The mean of a maximum follows from the means only when both are the longest there can be.
        let longest = |part: &Arc<dyn Game>| {
            let horizon = bem_base::fixed::Fixed::from_int(part.shape().horizon as i32);
            part.steps() == Steps::Drawn(horizon)
        };
        let whole = bem_base::fixed::Fixed::from_int(self.0.shape.horizon as i32);
        if self.0.parts.iter().all(longest) { Steps::Drawn(whole) } else { Steps::ByPolicy }
    }

    fn oracle(&self) -> Box<dyn Oracle> {
        let oracles = self.0.parts.iter().map(|part| part.oracle()).collect();
        Box::new(BothOracle { shadow: self.episode(), oracles })
    }
}

/// The running world: those of both parts, seen side by side.
struct Episode {
    table: Arc<Table>,
    worlds: Vec<Box<dyn Environment + Send>>,
    running: [bool; 2],
    observation: Bits,
}

impl Episode {
    fn show(&mut self) {
        self.observation = Bits::ZERO;
        for (index, world) in self.worlds.iter().enumerate().filter(|(index, _)| self.running[*index]) {
            self.observation.set(index, true);
            let width = usize::from(world.shape().observation_bits);
            copy_bits(&mut self.observation, self.table.lows[index], world.observation(), width);
        }
    }

    /// A step, with what each part that was still running answered.
    fn step_parts(&mut self, action: u16) -> Result<(Outcome, [Option<Outcome>; 2]), EnvironmentError> {
        let actions = self.table.shape.actions;
        if actions <= action {
            return Err(EnvironmentError::ActionOutOfRange { action, last: actions - 1 });
        }
        if self.running == [false; 2] {
            return Err(EnvironmentError::EpisodeOver);
        }
        let mut outcomes = [None; 2];
        for (index, action) in self.table.split(action).into_iter().enumerate() {
            if self.running[index] {
                let outcome = self.worlds[index].step(action)?;
                self.running[index] = !outcome.done;
                outcomes[index] = Some(outcome);
            }
        }
        self.show();
        let answered = || outcomes.iter().flatten();
        let whole = Outcome {
            reward: answered().map(|outcome| outcome.reward).sum(),
            done: self.running == [false; 2],
            bad: answered().any(|outcome| outcome.bad),
        };
        Ok((whole, outcomes))
    }
}

impl Environment for Episode {
    fn shape(&self) -> &Shape {
        &self.table.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        for (index, world) in self.worlds.iter_mut().enumerate() {
            world.reset(run_seed(seed, index))?;
        }
        self.running = [true; 2];
        self.show();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        self.step_parts(action).map(|(whole, _)| whole)
    }
}

struct BothOracle {
    shadow: Episode,
    oracles: Vec<Box<dyn Oracle>>,
}

impl Oracle for BothOracle {
    fn begin(&mut self, seed: u64) {
        self.shadow.reset(seed).expect("games made of parts reset as their parts do");
        for (index, oracle) in self.oracles.iter_mut().enumerate() {
            oracle.begin(run_seed(seed, index));
        }
    }

    fn act(&mut self, _observation: &Bits) -> u16 {
        let mut actions = [0; 2];
        for (index, oracle) in self.oracles.iter_mut().enumerate() {
            if self.shadow.running[index] {
                actions[index] = oracle.act(self.shadow.worlds[index].observation());
            }
        }
        self.shadow.table.join(actions)
    }

    fn see(&mut self, action: u16, _outcome: &Outcome) {
        let (_, outcomes) = self.shadow.step_parts(action).expect("the shadow follows the real episode");
        let actions = self.shadow.table.split(action);
        for (index, outcome) in outcomes.iter().enumerate() {
            if let Some(outcome) = outcome {
                self.oracles[index].see(actions[index], outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compose::tree::tests::{check, play};
    use expect_test::expect;

    #[test]
    fn values_and_contract_follow_from_the_parts() {
        check("par(compare{bits=3},distance{n=3,cap=2})");
        check("par(add{bits=4},safety_grid{size=3,bad=1})");
    }

    #[test]
    fn a_part_that_is_over_waits_for_the_other() {
        let want = expect![[r#"
            1 1 00 00 1 1 -> 0: 2000
            0 1 00 00 1 0 -> 0: 1000
            0 1 00 00 1 1 -> 2: 1000 done
        "#]];
        want.assert_eq(&play("par(compare{bits=2},add{bits=4})", 2));
    }
}
