//! Say a sequence again in its own order. Clause: GLE-1.

use crate::families::sequence::{Order, PARAMETERS, SequenceRules};
use crate::game::{Family, Game, GameError, Parameter, Settings};
use crate::rules::RuleGame;
use std::sync::Arc;

/// The family.
pub struct Copy;

impl Family for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn about(&self) -> &'static str {
        "See values one by one, then answer them in the same order."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let length = settings.number("length") as u32;
        let order = Order::Same;
        let value_bits = settings.number("value_bits") as u32;
        Ok(Arc::new(RuleGame::new(SequenceRules { length, value_bits, order })))
    }
}
