//! Say a sequence again in an order that is hidden in the instance. Clause: GLE-1.

use crate::families::sequence::{Order, PARAMETERS, SequenceRules};
use crate::game::{Family, Game, GameError, Parameter, Settings};
use crate::rules::RuleGame;
use bem_base::prng::Prng;
use std::sync::Arc;

/// The family.
pub struct Permute;

impl Family for Permute {
    fn name(&self) -> &'static str {
        "permute"
    }

    fn about(&self) -> &'static str {
        "See values one by one, then answer them in a hidden order."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn build(&self, settings: &Settings, instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        let length = settings.number("length") as u32;
        let mut order: Vec<u8> = (0..length as u8).collect();
        Prng::stream(instance_seed, "permute").shuffle(&mut order);
        let order = Order::Hidden(order);
        let value_bits = settings.number("value_bits") as u32;
        Ok(Arc::new(RuleGame::new(SequenceRules { length, value_bits, order })))
    }
}
