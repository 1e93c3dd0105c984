//! How finely numbers are told apart where outcomes are counted: as finely as what was played can tell.
//!
//! A field of many bits has more levels than can be tried in every situation. Its lowest bits are left out until every pair of
//! what is seen and action was tried often enough on average, and come back one by one as the log grows. Fields of few bits are
//! always looked at whole. Must not know games. Clauses: SCC-2, GLE-9; decision D-293.

use crate::experience::{Episode, Step};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Field, OBSERVATION_WORDS, Shape};
use std::collections::BTreeSet;

/// Bits of a field that are always looked at, where one or two fields have more, and where more have.
const BITS_FREE: u16 = 5;
const BITS_FREE_OF_MANY: u16 = 4;
/// Fields with more bits that leave room for the larger number.
const FIELDS_FEW: usize = 2;
/// Tries of every pair of what is seen and action, on average, from which on levels are fine enough.
const TRIES_MANY: usize = 32;

fn is_wide(field: &Field) -> bool {
    BITS_FREE < field.width
}

/// The bits of an observation that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain(Bits);

impl Default for Grain {
    fn default() -> Grain {
        Grain::FULL
    }
}

impl Grain {
    /// Everything is looked at.
    pub const FULL: Grain = Grain(Bits([u64::MAX; OBSERVATION_WORDS]));

    /// As finely as these episodes can tell.
    pub fn of(shape: &Shape, episodes: &[&Episode]) -> Grain {
        if !shape.fields.iter().any(is_wide) {
            return Grain::FULL;
        }
        let steps = || episodes.iter().flat_map(|episode| &episode.steps);
        let tries = steps().filter(|step| step.is_told()).count();
        let mut seen: BTreeSet<Bits> = steps().map(|step| step.observation).collect();
        Grain::coarsened(shape, |grain| {
            seen = seen.iter().map(|observation| grain.look(observation)).collect();
            tries < TRIES_MANY * usize::from(shape.actions) * seen.len()
        })
    }

    /// With the bits that are always looked at, and no others of wide fields.
    pub fn coarsest(shape: &Shape) -> Grain {
        Grain::coarsened(shape, |_| true)
    }

    /// Leaves out bits one by one, as long as that is needed.
    fn coarsened(shape: &Shape, mut is_needed: impl FnMut(&Grain) -> bool) -> Grain {
        let mut open: Vec<Field> = shape.fields.iter().filter(|field| is_wide(field)).copied().collect();
        let free = if open.len() <= FIELDS_FEW { BITS_FREE } else { BITS_FREE_OF_MANY };
        let mut grain = Grain::FULL;
        while is_needed(&grain) {
            // The first of the widest loses its lowest bit.
            let widest = open.iter().map(|field| field.width).max().unwrap_or(0);
            let Some(field) = open.iter_mut().find(|field| field.width == widest && free < widest) else {
                break;
            };
            grain.0.set(usize::from(field.low), false);
            (field.low, field.width) = (field.low + 1, field.width - 1);
        }
        grain
    }

    /// Whether everything is looked at.
    pub fn is_full(&self) -> bool {
        *self == Grain::FULL
    }

    /// What is looked at of an observation.
    pub fn look(&self, observation: &Bits) -> Bits {
        let mut seen = *observation;
        seen.0.iter_mut().zip(self.0.0).for_each(|(word, mask)| *word &= mask);
        seen
    }

    /// Hands on episodes as they are looked at.
    pub fn through<T>(&self, episodes: &[&Episode], then: impl FnOnce(&[&Episode]) -> T) -> T {
        if self.is_full() {
            return then(episodes);
        }
        let look = |step: &Step| Step { observation: self.look(&step.observation), ..*step };
        let see = |episode: &&Episode| Episode {
            steps: episode.steps.iter().map(look).collect(),
            ..Episode::clone(episode)
        };
        let seen: Vec<Episode> = episodes.iter().map(see).collect();
        then(&seen.iter().collect::<Vec<_>>())
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        self.0.0.iter().for_each(|word| writer.u64(*word));
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Grain, DecodeError> {
        let malformed = reader.error("a grain that leaves nothing out");
        let mut bits = Bits::ZERO;
        for word in &mut bits.0 {
            *word = reader.u64()?;
        }
        if Grain(bits).is_full() { Err(malformed) } else { Ok(Grain(bits)) }
    }
}
