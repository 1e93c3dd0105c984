//! Say a sequence again from its end. Clause: GLE-1.

use crate::families::sequence::{Order, PARAMETERS, SequenceRules};
use crate::game::{Family, Game, GameError, Parameter, Settings};
use crate::rules::RuleGame;
use std::sync::Arc;

/// The family.
pub struct Reverse;

impl Family for Reverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn about(&self) -> &'static str {
        "See values one by one, then answer them in the opposite order."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let length = settings.number("length") as u32;
        let order = Order::Backward;
        let value_bits = settings.number("value_bits") as u32;
        Ok(Arc::new(RuleGame::new(SequenceRules { length, value_bits, order })))
    }
}
