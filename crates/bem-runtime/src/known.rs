//! Decisions of a world that are known: they wait for their outcome, or are remembered to know it again.
//!
//! There may be a million of them, and whoever decides must not wait while a state is saved. So they lie in blocks that a saved state
//! shares with what goes on: a block is copied when one of its decisions changes while a state that holds it is being written.
//! Numbers only grow and the oldest decision goes first. Must not know what acts. Clauses: VM-13, LOG-4; decision D-140.

use crate::frozen::Later;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, Outcome};
use bem_base::limits::ACTIONS_MAX;
use bem_engine::serving::Begun;
use bem_machine::machine::PastStep;
use bem_machine::turn::Odds;
use std::collections::VecDeque;
use std::sync::Arc;

/// Decisions of one block.
const BLOCK: usize = 256;
/// The fewest bytes of a decision.
const BYTES_MIN: usize = 60;

/// A decision that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its number.
    pub(crate) number: u64,
    /// Which decision of its world it was.
    pub(crate) place: u64,
    /// What was seen, done and said of it; what was said is kept to know the same again.
    pub(crate) step: PastStep,
    pub(crate) odds: Odds,
    pub(crate) begun: Begun,
    /// The first decision of its episode.
    pub(crate) episode: u64,
    /// Its episode was complete without it: what is said of it counts, and nothing is learned from it.
    pub(crate) is_given_up: bool,
}

/// The decisions of a world that are known, oldest first. A copy shares every block.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownDecisions {
    blocks: VecDeque<Arc<Vec<Known>>>,
    /// Decisions of the first block that are gone.
    gone: usize,
    count: usize,
    /// Decisions of which nothing was said.
    waiting: usize,
    /// The latest block of which everything is gone: the next one is made of it, so that deciding takes no memory.
    spare: Vec<Known>,
}

impl KnownDecisions {
    /// How many wait for their outcome.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Where a decision lies, if it is known.
    fn find(&self, number: u64) -> Option<(usize, usize)> {
        let behind = self.blocks.partition_point(|block| block[0].number <= number);
        let block = behind.checked_sub(1)?;
        let place = self.blocks[block].binary_search_by_key(&number, |known| known.number).ok()?;
        (0 < block || self.gone <= place).then_some((block, place))
    }

    /// A decision by its number.
    pub(crate) fn get(&self, number: u64) -> Option<&Known> {
        let (block, place) = self.find(number)?;
        Some(&self.blocks[block][place])
    }

    /// The oldest.
    pub(crate) fn first(&self) -> Option<&Known> {
        self.blocks.front().map(|block| &block[self.gone])
    }

    /// Adds one whose number is above all others.
    pub(crate) fn push(&mut self, known: Known) {
        self.count += 1;
        self.waiting += usize::from(known.step.outcome.is_none());
        match self.blocks.back_mut().filter(|block| block.len() < BLOCK) {
            Some(block) => Arc::make_mut(block).push(known),
            None => {
                let mut block = core::mem::take(&mut self.spare);
                block.reserve_exact(BLOCK);
                block.push(known);
                self.blocks.push_back(Arc::new(block));
            }
        }
    }

    /// Books what a decision brought; nothing where it is not known or has an outcome already.
    pub(crate) fn settle(&mut self, number: u64, outcome: Outcome) -> Option<&Known> {
        let (block, place) = self.find(number)?;
        if self.blocks[block][place].step.outcome.is_some() {
            return None;
        }
        self.waiting -= 1;
        let known = &mut Arc::make_mut(&mut self.blocks[block])[place];
        known.step.outcome = Some(outcome);
        Some(&*known)
    }

    /// A decision whose outcome came is BAD after all; whether it was known and not BAD before.
    pub(crate) fn find_bad(&mut self, number: u64) -> bool {
        let Some((block, place)) = self.find(number) else { return false };
        if self.blocks[block][place].step.outcome.is_none_or(|outcome| outcome.bad) {
            return false;
        }
        let known = &mut Arc::make_mut(&mut self.blocks[block])[place];
        known.step.outcome.iter_mut().for_each(|outcome| outcome.bad = true);
        true
    }

    /// The episode of a decision is complete without it; nothing where its outcome has come.
    pub(crate) fn give_up(&mut self, number: u64) {
        if let Some((block, place)) = self.find(number)
            && self.blocks[block][place].step.outcome.is_none()
        {
            Arc::make_mut(&mut self.blocks[block])[place].is_given_up = true;
        }
    }

    /// Forgets the oldest.
    pub(crate) fn forget_first(&mut self) -> Option<Known> {
        let known = self.first()?.clone();
        self.count -= 1;
        self.waiting -= usize::from(known.step.outcome.is_none());
        self.gone += 1;
        if self.gone == self.blocks[0].len() {
            self.gone = 0;
            // A block that a saved state holds stays with it.
            if let Some(mut block) = self.blocks.pop_front().and_then(Arc::into_inner) {
                block.clear();
                self.spare = block;
            }
        }
        Some(known)
    }

    /// From the newest to the oldest.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Known> {
        self.blocks.iter().rev().flat_map(|block| block.iter().rev()).take(self.count)
    }

    fn iter(&self) -> impl Iterator<Item = &Known> {
        self.blocks.iter().flat_map(|block| block.iter()).skip(self.gone)
    }

    /// Reads canonical bytes back; `is_sound` says of each decision whether its world can have made it.
    pub(crate) fn decode(
        reader: &mut Reader<'_>,
        is_sound: impl Fn(&Known) -> bool,
    ) -> Result<KnownDecisions, DecodeError> {
        let malformed = reader.error("decisions that this world cannot have made");
        let mut all = KnownDecisions::default();
        let mut last = None;
        for _ in 0..reader.length(BYTES_MIN)? {
            let (number, place) = (reader.u64()?, reader.u64()?);
            let step = decode_step(reader)?;
            let (odds, begun) = (decode_odds(reader)?, Begun::decode(reader)?);
            let (episode, is_given_up) = (reader.u64()?, reader.bool()?);
            let known = Known { number, place, step, odds, begun, episode, is_given_up };
            if !is_sound(&known) || last.is_some_and(|last| number <= last) {
                return Err(malformed);
            }
            last = Some(number);
            all.push(known);
        }
        Ok(all)
    }
}

impl Later for KnownDecisions {
    fn write(&self, writer: &mut Writer) {
        writer.length(self.count);
        for known in self.iter() {
            writer.u64(known.number);
            writer.u64(known.place);
            encode_step(&known.step, writer);
            writer.u16(known.odds.to_raw());
            known.begun.encode(writer);
            writer.u64(known.episode);
            writer.bool(known.is_given_up);
        }
    }
}

pub(crate) fn encode_step(step: &PastStep, writer: &mut Writer) {
    step.observation.0.iter().for_each(|word| writer.u64(*word));
    writer.u16(step.action);
    writer.bool(step.outcome.is_some());
    if let Some(Outcome { reward, done, bad }) = step.outcome {
        writer.i32(reward);
        writer.bool(done);
        writer.bool(bad);
    }
}

pub(crate) fn decode_step(reader: &mut Reader<'_>) -> Result<PastStep, DecodeError> {
    let observation = Bits([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?]);
    let action = reader.u16()?;
    let outcome = match reader.bool()? {
        true => Some(Outcome { reward: reader.i32()?, done: reader.bool()?, bad: reader.bool()? }),
        false => None,
    };
    Ok(PastStep { observation, action, outcome })
}

pub(crate) fn decode_odds(reader: &mut Reader<'_>) -> Result<Odds, DecodeError> {
    let impossible = reader.error("a chance that no action has");
    Odds::from_raw(reader.u16()?, ACTIONS_MAX as u16).ok_or(impossible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_machine::turn::Turn;
    use std::collections::BTreeMap;

    fn known(number: u64) -> Known {
        let step =
            PastStep { observation: Bits([number, 0, 0, 0]), action: (number % 4) as u16, outcome: None };
        let begun = Begun { turn: Turn::DRAW, contest: None, reign: None };
        Known {
            number,
            place: number / 2,
            step,
            odds: Odds::equal(4),
            begun,
            episode: number,
            is_given_up: false,
        }
    }

    fn bytes(all: &KnownDecisions) -> Vec<u8> {
        let mut writer = Writer::new();
        all.write(&mut writer);
        writer.into_bytes()
    }

    #[test]
    fn blocks_do_what_a_map_does() {
        let (mut all, mut map) = (KnownDecisions::default(), BTreeMap::new());
        let mut draw = 1u64;
        let mut below = |bound: u64| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (draw >> 33) % bound
        };
        let mut number = 0;
        for _ in 0..20_000 {
            number += 1 + below(3);
            all.push(known(number));
            map.insert(number, known(number));
            let asked = below(number + 2);
            let outcome = Outcome { reward: asked as i32, done: true, bad: false };
            let settled = map.get_mut(&asked).filter(|known| known.step.outcome.is_none());
            let is_new = settled.is_some();
            settled.into_iter().for_each(|known| known.step.outcome = Some(outcome));
            assert_eq!(all.settle(asked, outcome).is_some(), is_new);
            assert_eq!(all.get(asked), map.get(&asked));
            if 1_000 < map.len() || below(9) == 0 {
                assert_eq!(all.forget_first(), map.pop_first().map(|(_, known)| known));
            }
            assert_eq!(all.first(), map.first_key_value().map(|(_, known)| known));
        }
        let waiting = map.values().filter(|known| known.step.outcome.is_none()).count();
        assert_eq!((all.count, all.waiting()), (map.len(), waiting));
        assert!(all.iter().eq(map.values()));
        let read = KnownDecisions::decode(&mut Reader::new(&bytes(&all)), |_| true).unwrap();
        assert_eq!(bytes(&read), bytes(&all));
    }

    #[test]
    fn a_copy_stays_as_it_was_and_numbers_out_of_order_are_refused() {
        let mut all = KnownDecisions::default();
        (1..1_000).for_each(|number| all.push(known(number)));
        let (kept, before) = (all.clone(), bytes(&all));
        all.settle(500, Outcome { reward: 1, done: true, bad: true });
        all.settle(998, Outcome { reward: 1, done: true, bad: true });
        (0..300).for_each(|_| assert!(all.forget_first().is_some()));
        all.push(known(2_000));
        assert_eq!(bytes(&kept), before);
        assert_ne!(bytes(&all), before);
        let mut twice = KnownDecisions::default();
        [7, 7].into_iter().for_each(|number| twice.push(known(number)));
        assert!(KnownDecisions::decode(&mut Reader::new(&bytes(&twice)), |_| true).is_err());
    }
}
