//! A signaling game: a sender names one of several states, a noisy channel carries the word, a receiver acts.
//!
//! As sender or receiver, the other side follows a secret code that never changes. In both roles the player first
//! names every state once, in a random order; its words go into a pool, and then words drawn from the pool come back
//! over the channel. Every state is in the pool once and every draw is a fresh one, so that nothing the player may
//! remember of the episode says which state a word stands for: only a code that it keeps to does. Clauses: GLE-1.

use crate::draw::{Chance, Draw};
use crate::exact::Expectation;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings, Steps, Value};
use crate::rules::{self, RIGHT, RuleGame, Rules, bits_for};
use bem_base::environment::{Bits, Outcome, Shape};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use std::sync::Arc;

/// The family `signaling`.
pub struct Signaling;

impl Family for Signaling {
    fn name(&self) -> &'static str {
        "signaling"
    }

    fn about(&self) -> &'static str {
        "Agree with a partner on what each word means, over a channel that sometimes garbles."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "states",
                about: "how many states there are to talk about",
                range: Range::Number { min: 2, max: 64, default: 4 },
            },
            Parameter {
                name: "noise",
                about: "percent of words the channel replaces by a random one; rewards stay as they are",
                range: Range::Number { min: 0, max: 90, default: 10 },
            },
            Parameter {
                name: "role",
                about: "which side the player takes",
                range: Range::Choice { words: &["receiver", "sender", "both"] },
            },
        ];
        PARAMETERS
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let states = settings.number("states") as u16;
        let noise = settings.number("noise") as u64;
        let role = [Role::Receiver, Role::Sender, Role::Both][settings.choice("role")];
        let mut code: Vec<u16> = (0..states).collect();
        Prng::stream(instance_seed, "signaling").shuffle(&mut code);
        let shape = Talk::shape_of(states, role);
        Ok(Arc::new(RuleGame::new(Talk { code, noise, role, shape })))
    }
}

/// Whose part the learner plays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Receiver,
    Sender,
    Both,
}

struct Talk {
    /// The word for each state, as the other side understands it.
    code: Vec<u16>,
    noise: u64,
    role: Role,
    shape: Shape,
}

/// Where an exchange of words stands.
#[derive(Clone)]
struct State {
    /// What is to be named, or what the word that came stands for.
    topic: u16,
    /// What came through the channel; nothing while the player speaks.
    received: Option<u16>,
    /// The player's words by topic; none for what it has not named yet. Empty unless it plays both roles.
    pool: Vec<Option<u16>>,
    /// Words still to come after this one.
    left: u16,
}

impl Talk {
    fn shape_of(states: u16, role: Role) -> Shape {
        let word = bits_for(u64::from(states));
        let words = u32::from(states);
        match role {
            Role::Both => rules::answer_shape(&[1, word], usize::from(states), 2 * words, words),
            _ => rules::answer_shape(&[word], usize::from(states), 1, 1),
        }
    }

    fn states(&self) -> u32 {
        self.code.len() as u32
    }

    fn transmit<D: Draw>(&self, word: u16, draw: &mut D) -> u16 {
        if draw.chance(Chance::ratio(self.noise, 100)) { draw.below(self.states()) as u16 } else { word }
    }

    fn meaning(&self, word: u16) -> u16 {
        self.code.iter().position(|code| *code == word).expect("the code is a permutation") as u16
    }

    /// Goes on to a state that was not named yet, or to a word from the pool once all are in it.
    fn next_in_both_roles<D: Draw>(&self, state: &mut State, draw: &mut D) {
        if state.pool.contains(&None) {
            state.topic = draw.pick(self.states(), |topic| state.pool[topic as usize].is_none()) as u16;
            return;
        }
        state.topic = draw.below(self.states()) as u16;
        let word = state.pool[usize::from(state.topic)].expect("every state was named");
        state.received = Some(self.transmit(word, draw));
    }
}

impl Rules for Talk {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let topic = draw.below(self.states()) as u16;
        let received =
            (self.role == Role::Receiver).then(|| self.transmit(self.code[usize::from(topic)], draw));
        let (pool, left) = match self.role {
            Role::Both => (vec![None; self.code.len()], self.states() as u16),
            _ => (Vec::new(), 0),
        };
        State { topic, received, pool, left }
    }

    fn observe(&self, state: &State) -> Bits {
        let mut bits = Bits::ZERO;
        let word = u64::from(state.received.unwrap_or(state.topic));
        match self.role {
            Role::Both => {
                bits.set(0, state.received.is_some());
                bits.set_field(1, usize::from(self.shape.observation_bits) - 1, word);
            }
            _ => bits.set_field(0, usize::from(self.shape.observation_bits), word),
        }
        bits
    }

    fn play<D: Draw>(&self, state: &mut State, action: u16, draw: &mut D) -> Outcome {
        match (self.role, state.received) {
            (Role::Both, None) => {
                state.pool[usize::from(state.topic)] = Some(action);
                self.next_in_both_roles(state, draw);
                rules::pass(false)
            }
            (Role::Both, Some(_)) => {
                let right = action == state.topic;
                state.left -= 1;
                if 0 < state.left {
                    self.next_in_both_roles(state, draw);
                }
                rules::answer(right, state.left == 0)
            }
            (Role::Sender, _) => {
                let heard = self.transmit(action, draw);
                rules::answer(self.meaning(heard) == state.topic, true)
            }
            (Role::Receiver, _) => rules::answer(action == state.topic, true),
        }
    }

    fn best(&self, state: &State) -> u16 {
        match (self.role, state.received) {
            (Role::Receiver, Some(word)) => self.meaning(word),
            (Role::Sender, _) => self.code[usize::from(state.topic)],
            // Every code is as good as any other as long as it is kept to: each state is its own word.
            (_, received) => received.unwrap_or(state.topic),
        }
    }

    fn optimum(&self) -> Value {
        let states = i128::from(self.states());
        let noise = i128::from(self.noise);
        let words = if self.role == Role::Both { states } else { 1 };
        // The word arrives, or it is replaced and happens to be the same.
        let right = i128::from(RIGHT) * ((100 - noise) * states + noise);
        Expectation::from_ratio(words * right, 100 * states).to_value()
    }

    fn random(&self) -> Value {
        let words = if self.role == Role::Both { i128::from(self.states()) } else { 1 };
        Expectation::from_ratio(words * i128::from(RIGHT), i128::from(self.states())).to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.shape.horizon as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::conformance::check_exactly;

    #[test]
    fn noise_lowers_the_optimum_by_what_it_garbles() {
        let game = testing::build(&Signaling, &[("states", "8"), ("noise", "10")], 1);
        assert_eq!(game.optimum().mean, Fixed::from_ratio(9125, 10));
        assert_eq!(game.random().mean, Fixed::from_int(125));
    }

    #[test]
    fn stated_values_are_what_play_gives_in_every_role() {
        for (role, tolerance) in [("receiver", 15), ("sender", 15), ("both", 40)] {
            let texts = [("states", "5"), ("noise", "30"), ("role", role)];
            testing::check_values(&*testing::build(&Signaling, &texts, 2), tolerance);
        }
    }

    #[test]
    fn no_memory_of_the_episode_beats_a_code_that_is_kept_to() {
        // The enumeration lets a policy remember everything it saw and did.
        for role in [Role::Receiver, Role::Sender, Role::Both] {
            for noise in [0, 50] {
                let shape = Talk::shape_of(2, role);
                let game = RuleGame::new(Talk { code: vec![1, 0], noise, role, shape });
                check_exactly(&game, 1_000_000).unwrap();
            }
        }
    }

    #[test]
    fn what_comes_back_is_what_the_player_said() {
        let game = testing::build(&Signaling, &[("states", "4"), ("noise", "0"), ("role", "both")], 1);
        let mut world = game.start();
        for seed in 0..50 {
            world.reset(seed).unwrap();
            let mut named = [false; 4];
            // The code is the state backwards.
            for _ in 0..4 {
                let topic = world.observation().field(1, 2);
                assert!(!world.observation().get(0) && !core::mem::replace(&mut named[topic as usize], true));
                world.step(3 - topic as u16).unwrap();
            }
            for answer in 0..4 {
                assert!(world.observation().get(0));
                let word = world.observation().field(1, 2);
                let outcome = world.step(3 - word as u16).unwrap();
                assert_eq!((outcome.reward, outcome.done), (RIGHT, answer == 3));
            }
        }
    }
}
