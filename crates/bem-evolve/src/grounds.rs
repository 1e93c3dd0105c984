//! What a condition is shown against beside the structure: the world's shape and what was BAD in it.
//!
//! It goes into the ledger with the patch, because the clauses of a condition follow from it. Must not know who keeps it.
//! Clauses: SCC-3, SCC-4.

use crate::condition::{BadPair, Context, SafetyDemand};
use crate::patch::{Change, Patch, Subject};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS, Shape};

/// BAD pairs that the grounds of one patch may hold.
pub const BAD_PAIRS_MAX: usize = 65_536;

/// What a condition was shown against beside the structure, so that it can be stated again from the history alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grounds {
    /// The world; none for a template.
    pub shape: Option<Shape>,
    /// Observations and actions that were BAD.
    pub bad: Vec<BadPair>,
    /// Whether a synthesised expert had to carry the safety tag.
    pub safety: SafetyDemand,
}

impl Grounds {
    pub(crate) fn of(patch: &Patch, context: &Context<'_>) -> Grounds {
        let acts = matches!(patch.change, Change::Synthesize { .. } | Change::Play { .. });
        Grounds {
            shape: context
                .family
                .filter(|_| patch.change.subject() != Subject::Templates)
                .map(|it| it.shape().clone()),
            bad: if acts { context.bad.to_vec() } else { Vec::new() },
            safety: if acts { context.safety } else { SafetyDemand::Optional },
        }
    }
    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bool(self.shape.is_some());
        self.shape.iter().for_each(|shape| shape.encode(writer));
        writer.length(self.bad.len());
        for pair in &self.bad {
            pair.observation.0.iter().for_each(|word| writer.u64(*word));
            writer.u16(pair.action);
        }
        writer.bool(self.safety == SafetyDemand::Required);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Grounds, DecodeError> {
        let shape = if reader.bool()? { Some(Shape::decode(reader)?) } else { None };
        let wild = reader.error("more BAD pairs than are ever kept");
        let count = reader.length(8 * OBSERVATION_WORDS + 2)?;
        if BAD_PAIRS_MAX < count {
            return Err(wild);
        }
        let mut bad = Vec::with_capacity(count);
        for _ in 0..count {
            let mut observation = Bits::ZERO;
            for word in &mut observation.0 {
                *word = reader.u64()?;
            }
            bad.push(BadPair { observation, action: reader.u16()? });
        }
        let safety = if reader.bool()? { SafetyDemand::Required } else { SafetyDemand::Optional };
        Ok(Grounds { shape, bad, safety })
    }
}
