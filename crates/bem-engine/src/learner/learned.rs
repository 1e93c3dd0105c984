//! What a finished run leaves, as canonical bytes: it may have been worked out in another process.
//!
//! Clauses: SCC-15, PIPE-4; decision D-132.

use super::{Barriers, Learned, Scheduled, Shortfall, Tally};
use crate::agent::Agent;
use crate::codec::{decode_option, encode_option};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::fixed::Fixed;
use bem_synth::library::Machine;

impl Learned {
    /// Writes the canonical bytes. Steps since a high score are for whoever looks at a run, not for its history, and stay out.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        self.agent.encode(writer);
        writer.text(&self.words);
        encode_option(writer, self.machine.as_ref(), Machine::encode);
        writer.u64(self.tally.steps_by_machine);
        self.tally.encode(writer);
        for situation in [&self.counterexample, &self.contradiction] {
            encode_option(writer, situation.as_ref(), |bits, writer| {
                bits.0.iter().for_each(|word| writer.u64(*word));
            });
        }
        encode_option(writer, self.shortfall.as_ref(), |shortfall, writer| {
            writer.u32(shortfall.contexts);
            writer.u32(shortfall.compared);
            writer.i64(shortfall.mean.to_raw());
        });
        let Scheduled { units, alarms } = self.scheduled;
        let Barriers { passed, moved } = self.barriers;
        units.into_iter().chain([alarms, passed, moved]).for_each(|count| writer.u64(count));
        writer.raw(self.chain_head.as_bytes());
    }

    /// Reads canonical bytes back.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Learned, DecodeError> {
        let agent = Agent::decode(reader)?;
        let words = reader.text()?.to_string();
        let machine = decode_option(reader, Machine::decode)?;
        let steps_by_machine = reader.u64()?;
        let tally = Tally::decode(steps_by_machine, true, reader)?;
        let mut situation = || {
            decode_option(reader, |reader| {
                let mut bits = Bits::ZERO;
                for word in &mut bits.0 {
                    *word = reader.u64()?;
                }
                Ok(bits)
            })
        };
        let (counterexample, contradiction) = (situation()?, situation()?);
        let shortfall = decode_option(reader, |reader| {
            let (contexts, compared) = (reader.u32()?, reader.u32()?);
            Ok(Shortfall { contexts, compared, mean: Fixed::from_raw(reader.i64()?) })
        })?;
        let mut count = || reader.u64();
        let scheduled = Scheduled { units: [count()?, count()?, count()?], alarms: count()? };
        let barriers = Barriers { passed: count()?, moved: count()? };
        let chain_head = Digest::decode(reader)?;
        Ok(Learned {
            agent,
            words,
            machine,
            tally,
            counterexample,
            contradiction,
            shortfall,
            steps_since_high_score: None,
            scheduled,
            barriers,
            chain_head,
        })
    }
}
