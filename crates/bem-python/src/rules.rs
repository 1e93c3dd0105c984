//! Rules of a user over the parts of an observation: what is BAD, and what must never be done.
//!
//! Python says which parts there are and how their values become bits; the rules are those of worlds in programs
//! ([`bem_data::declared`]). Must not know spaces. Clauses: GLE-9, VM-17; decision D-276.

use crate::refused;
use crate::world::bits_of;
use bem_base::environment::{Bits, Forbidden};
use bem_data::{Declared, Encoder, Feature, Rule};
use pyo3::prelude::*;

/// Rules over what is seen.
#[pyclass(module = "bem._bem", frozen)]
pub struct Rules {
    declared: Declared,
    actions: u16,
}

#[pymethods]
impl Rules {
    /// Reads an encoder's text and two lists of rules over its features.
    #[new]
    fn new(features: &str, bad_if: &str, forbid: &str, actions: u16) -> PyResult<Rules> {
        let encoder = Encoder::from_json(features).map_err(refused)?;
        let named: Vec<Feature> = encoder.columns().iter().map(|column| column.feature.clone()).collect();
        let bad = Rule::list("bad_if", bad_if, &named, actions).map_err(refused)?;
        let forbid = Rule::list("forbid", forbid, &named, actions).map_err(refused)?;
        let declared = Declared::new(encoder, bad, forbid, actions).map_err(refused)?;
        Ok(Rules { declared, actions })
    }

    /// The actions that may be taken where this is seen.
    fn left(&self, seen: &Bound<'_, PyAny>) -> PyResult<Vec<u16>> {
        let seen = bits_of(seen, self.declared.encoder.bits())?;
        Ok(Forbidden::left(&self.declared.forbidden, seen, self.actions).collect())
    }
}

impl Rules {
    /// What must never be done.
    pub fn forbidden(&self) -> &[Forbidden] {
        &self.declared.forbidden
    }

    /// How many bits of an observation the rules speak of.
    pub fn bits(&self) -> usize {
        self.declared.encoder.bits()
    }

    /// Whether a step from one observation to another is BAD.
    pub fn is_bad(&self, before: &Bits, action: u16, after: &Bits) -> bool {
        let values = |seen: &Bits| self.declared.encoder.values_of(seen);
        self.declared.bad_if().next().is_some()
            && self.declared.is_bad(&values(before), action, &values(after))
    }
}
