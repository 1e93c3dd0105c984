//! Episode seeds from disjoint domains: playing, measuring improvement, and evaluation never share one.
//!
//! The two highest bits of a seed name its domain, so that overlap is impossible and not just unlikely.
//! Clauses: SCC-8.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::prng::Prng;

/// What an episode is played for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Domain {
    /// To act and to gather experience.
    Play = 0,
    /// To measure a candidate against the incumbent.
    Improvement = 1,
    /// To report, after which nothing changes.
    Evaluation = 2,
}

/// A stream of fresh seeds of one domain.
#[derive(Clone, Debug)]
pub struct Seeds {
    domain: Domain,
    prng: Prng,
}

impl Seeds {
    /// The stream of this run's seed and domain.
    pub fn new(run_seed: u64, domain: Domain) -> Seeds {
        let name = match domain {
            Domain::Play => "engine/play",
            Domain::Improvement => "engine/improvement",
            Domain::Evaluation => "engine/evaluation",
        };
        Seeds { domain, prng: Prng::stream(run_seed, name) }
    }

    /// The stream for a trial that is made for people: of those that measure improvement, and none of the learner's own.
    pub(crate) fn for_people(run_seed: u64, trial: u32) -> Seeds {
        let prng = Prng::stream(run_seed ^ bem_base::prng::mix(u64::from(trial)), "engine/people");
        Seeds { domain: Domain::Improvement, prng }
    }

    /// A seed not used before.
    pub fn next_seed(&mut self) -> u64 {
        self.prng.next_u64() >> 2 | (self.domain as u64) << 62
    }

    /// Writes where the stream stands.
    pub fn encode(&self, writer: &mut Writer) {
        self.prng.encode(writer);
    }

    /// Reads where a stream of this domain stood.
    pub fn decode(domain: Domain, reader: &mut Reader<'_>) -> Result<Seeds, DecodeError> {
        Ok(Seeds { domain, prng: Prng::decode(reader)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn domains_never_share_a_seed() {
        let mut seen = BTreeSet::new();
        for domain in [Domain::Play, Domain::Improvement, Domain::Evaluation] {
            let mut seeds = Seeds::new(7, domain);
            for _ in 0..1_000 {
                let seed = seeds.next_seed();
                assert_eq!(seed >> 62, domain as u64);
                assert!(seen.insert(seed));
            }
        }
    }
}
