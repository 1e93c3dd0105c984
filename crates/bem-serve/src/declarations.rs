//! What worlds declare about themselves, read once: named values become bits, and what is seen after a step may make it BAD.
//!
//! Nothing here is kept: what it says of a step is an input of its own, so that a history is played again without it. Must not
//! know HTTP or the learner. Clauses: GLE-9, VM-17, LOG-5; decision D-226.

use bem_base::environment::Bits;
use bem_data::Declared;
use bem_runtime::input::WorldSpec;
use bem_runtime::service::{Refusal, RefusalKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The declarations that were read, by their spelling.
#[derive(Debug, Default)]
pub struct Declarations(BTreeMap<String, Declared>);

fn bad(message: String) -> Refusal {
    Refusal { kind: RefusalKind::Bad, field: "obs", code: "bad_field", message }
}

impl Declarations {
    /// What a world declares. Worlds that declare the same share it: nothing that is asked here depends on their actions.
    fn of(&mut self, spec: &WorldSpec) -> Result<&Declared, Refusal> {
        if !self.0.contains_key(&spec.note) {
            let declared = Declared::from_json(&spec.note, spec.shape.actions)
                .map_err(|error| bad(format!("features: {error}")))?;
            self.0.insert(spec.note.clone(), declared);
        }
        Ok(&self.0[&spec.note])
    }

    /// Turns named values into bits.
    pub fn encode(&mut self, spec: &WorldSpec, values: &Map<String, Value>) -> Result<Bits, Refusal> {
        let text = serde_json::to_string(values).map_err(|error| bad(error.to_string()))?;
        self.of(spec)?.encoder.encode_json(&text).map_err(|error| bad(format!("obs: {error}")))
    }

    /// Whether a world has rules about what is BAD or forbidden.
    pub fn has_rules(spec: &WorldSpec) -> bool {
        spec.note.starts_with('{')
    }

    /// Whether what is seen after a step makes it BAD.
    pub fn is_bad_after(&mut self, spec: &WorldSpec, seen: &Bits) -> bool {
        Declarations::has_rules(spec) && self.of(spec).is_ok_and(|declared| declared.is_bad_after(seen))
    }
}
