//! What was learned on a lower rung, kept as an abstract machine, so that it can be built again for a higher one.
//!
//! A structure refers to fields and conditions, not to its size; built for a world with longer episodes it gets
//! more cells and keeps its control and its functions. Tried on the next rung before anything is fitted.
//! Must not know games. Clauses: SCC-1, GLE-10.

use crate::function::Function;
use crate::hypothesis::{Hypothesis, assemble};
use crate::memory::Device;
use crate::memory::search::cells_for;
use crate::policy::Policy;
use bem_base::digest::Digest;
use bem_base::environment::{Field, Shape};
use std::sync::Arc;

/// A fitted machine apart from any world's size.
#[derive(Clone, Debug)]
pub struct Machine {
    observation_bits: u16,
    actions: u16,
    fields: Vec<Field>,
    words: String,
    description_length: u32,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// A structure and one function per action bit over what it shows.
    Structure { device: Arc<dyn Device>, bits: Vec<Function> },
    /// A circuit that has no size to change.
    Circuit(Policy),
}

impl Machine {
    /// The machine of a structure with its functions.
    pub fn structure(
        shape: &Shape,
        device: Arc<dyn Device>,
        bits: Vec<Function>,
        about: (String, u32),
    ) -> Machine {
        Machine::new(shape, Body::Structure { device, bits }, about)
    }

    /// The machine of a circuit as it is.
    pub fn circuit(shape: &Shape, policy: Policy, about: (String, u32)) -> Machine {
        Machine::new(shape, Body::Circuit(policy), about)
    }

    fn new(shape: &Shape, body: Body, (words, description_length): (String, u32)) -> Machine {
        Machine {
            observation_bits: shape.observation_bits,
            actions: shape.actions,
            fields: shape.fields.clone(),
            words,
            description_length,
            body,
        }
    }

    /// The machine built for this world; none where the world looks different.
    pub fn instantiate(&self, shape: &Shape) -> Option<Hypothesis> {
        let alike = self.observation_bits == shape.observation_bits
            && self.actions == shape.actions
            && self.fields == shape.fields;
        if !alike {
            return None;
        }
        let policy = match &self.body {
            Body::Structure { device, bits } => {
                let device = device.resized(cells_for(shape));
                assemble(shape, Some(device.as_ref()), bits)?
            }
            Body::Circuit(policy) => policy.clone(),
        };
        Some(Hypothesis {
            policy,
            words: self.words.clone(),
            description_length: self.description_length,
            exact: true,
            foreseen: None,
            provenance: Digest::default(),
            machine: Some(self.clone()),
        })
    }
}
