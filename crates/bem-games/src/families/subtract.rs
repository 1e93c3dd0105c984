//! Subtract two numbers; the forms are those of [`super::add`]. Clauses: GLE-1.

use super::add::{self, Operation};
use crate::game::{Family, Game, GameError, Parameter, Settings};
use std::sync::Arc;

/// The family `subtract`.
pub struct Subtract;

impl Family for Subtract {
    fn name(&self) -> &'static str {
        "subtract"
    }

    fn about(&self) -> &'static str {
        "Subtract one number from another, bit after bit or as a word; borrows run out at the top."
    }

    fn parameters(&self) -> &'static [Parameter] {
        add::PARAMETERS
    }

    fn build(&self, settings: &Settings, _instance_seed: u64) -> Result<Arc<dyn Game>, GameError> {
        add::build(Operation::Subtract, settings)
    }
}
