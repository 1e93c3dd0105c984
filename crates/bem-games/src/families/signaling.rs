//! A signaling game: a sender names one of several states, a noisy channel carries the word, a receiver acts.
//!
//! As sender or receiver, the other side follows a secret code that never changes. In both roles the player
//! first sends and then receives its own word; remembering the state is allowed there, so noise costs the best
//! player nothing. Clauses: GLE-1.

use crate::draw::Draw;
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
        let word = bits_for(u64::from(states));
        let shape = match role {
            Role::Both => rules::answer_shape(&[1, word], usize::from(states), 2, 1),
            _ => rules::answer_shape(&[word], usize::from(states), 1, 1),
        };
        Ok(Arc::new(RuleGame::new(Talk { code, noise, role, shape })))
    }
}

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

#[derive(Clone)]
struct State {
    topic: u16,
    /// What came through the channel; before anything was sent, nothing.
    received: Option<u16>,
}

impl Talk {
    fn transmit<D: Draw>(&self, word: u16, draw: &mut D) -> u16 {
        if u64::from(draw.below(100)) < self.noise { draw.below(self.code.len() as u32) as u16 } else { word }
    }

    fn meaning(&self, word: u16) -> u16 {
        self.code.iter().position(|code| *code == word).expect("the code is a permutation") as u16
    }
}

impl Rules for Talk {
    type State = State;

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn begin<D: Draw>(&self, draw: &mut D) -> State {
        let topic = draw.below(self.code.len() as u32) as u16;
        let received =
            (self.role == Role::Receiver).then(|| self.transmit(self.code[usize::from(topic)], draw));
        State { topic, received }
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
                state.received = Some(self.transmit(action, draw));
                rules::pass(false)
            }
            (Role::Sender, _) => {
                let heard = self.transmit(action, draw);
                rules::answer(self.meaning(heard) == state.topic, true)
            }
            _ => rules::answer(action == state.topic, true),
        }
    }

    fn best(&self, state: &State) -> u16 {
        match (self.role, state.received) {
            (Role::Receiver, Some(word)) => self.meaning(word),
            (Role::Sender, _) => self.code[usize::from(state.topic)],
            // In both roles the player has seen the topic itself.
            _ => state.topic,
        }
    }

    fn optimum(&self) -> Value {
        let states = self.code.len() as i128;
        let noise = i128::from(self.noise);
        match self.role {
            Role::Both => Expectation::from_int(i64::from(RIGHT)).to_value(),
            // The word arrives, or it is replaced and happens to be the same.
            _ => {
                let right = i128::from(RIGHT) * ((100 - noise) * states + noise);
                Expectation::from_ratio(right, 100 * states).to_value()
            }
        }
    }

    fn random(&self) -> Value {
        Expectation::from_ratio(i128::from(RIGHT), self.code.len() as i128).to_value()
    }

    fn steps(&self) -> Steps {
        Steps::Drawn(Fixed::from_int(self.shape.horizon as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn noise_lowers_the_optimum_by_what_it_garbles() {
        let game = testing::build(&Signaling, &[("states", "8"), ("noise", "10")], 1);
        assert_eq!(game.optimum().mean, Fixed::from_ratio(9125, 10));
        assert_eq!(game.random().mean, Fixed::from_int(125));
    }

    #[test]
    fn stated_values_are_what_play_gives_in_every_role() {
        for role in ["receiver", "sender", "both"] {
            let texts = [("states", "5"), ("noise", "30"), ("role", role)];
            testing::check_values(&*testing::build(&Signaling, &texts, 2), 15);
        }
    }
}
