//! What must never be done for what is seen, and patterns of bits that say for which observations that is.
//!
//! A pattern looks at some bits and leaves the others free, so that one rule covers all observations that show the same there.
//! The bytes of a pattern that looks at every bit are those of the observation alone, as they were before there were others.
//! Must not know what bits mean or who forbids. Clauses: VM-17, SCC-5; decision D-275.

use crate::encode::{DecodeError, Reader, Writer};
use crate::environment::{Bits, OBSERVATION_WORDS};
use crate::limits::{ACTIONS_MAX, OBSERVATION_BITS_MAX};

/// Set in the number of an action behind whose pattern the bits follow that it looks at.
const MASKED: u16 = 1 << 15;

const _: () = assert!(ACTIONS_MAX <= MASKED as usize);

/// Observations that have these values in the bits that are looked at. Invariant: a bit that is free is zero in the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// The bits that are looked at; all of them, also those that no world shows, where one observation is meant.
    mask: Bits,
    value: Bits,
}

fn both(one: &Bits, other: &Bits) -> Bits {
    Bits(core::array::from_fn(|word| one.0[word] & other.0[word]))
}

impl Pattern {
    /// Every observation.
    pub const ANY: Pattern = Pattern { mask: Bits::ZERO, value: Bits::ZERO };

    /// This observation alone.
    pub const fn whole(observation: Bits) -> Pattern {
        Pattern { mask: Bits([u64::MAX; OBSERVATION_WORDS]), value: observation }
    }

    /// The observations that have the values of this one in the bits of the mask.
    pub fn new(mask: Bits, observation: Bits) -> Pattern {
        Pattern { mask, value: both(&mask, &observation) }
    }

    /// The same with one bit more that must have a value.
    #[must_use]
    pub fn with(mut self, bit: usize, value: bool) -> Pattern {
        self.mask.set(bit, true);
        self.value.set(bit, value);
        self
    }

    /// The same where so many bits are seen: one that looks at all of them means one observation.
    #[must_use]
    pub fn within(self, width: usize) -> Pattern {
        let is_whole = (0..width).all(|bit| self.mask.get(bit));
        if is_whole { Pattern::whole(self.value) } else { self }
    }

    /// Whether it is of worlds that show so many bits, and in its one form there.
    pub fn fits(&self, width: usize) -> bool {
        let past = if self.is_whole() { self.value } else { self.mask };
        (width..OBSERVATION_BITS_MAX).all(|bit| !past.get(bit)) && self.within(width) == *self
    }

    /// Whether it means one observation.
    pub fn is_whole(&self) -> bool {
        self.mask == Bits([u64::MAX; OBSERVATION_WORDS])
    }

    /// The observation, where it means one.
    pub fn only(&self) -> Option<Bits> {
        self.is_whole().then_some(self.value)
    }

    /// What a bit must be; nothing where it is free.
    pub fn bit(&self, bit: usize) -> Option<bool> {
        self.mask.get(bit).then(|| self.value.get(bit))
    }

    /// Whether this observation is meant.
    #[inline]
    pub fn covers(&self, observation: &Bits) -> bool {
        both(&self.mask, observation) == self.value
    }

    /// Whether some observation is meant by both.
    pub fn meets(&self, other: &Pattern) -> bool {
        both(&other.mask, &self.value) == both(&self.mask, &other.value)
    }

    /// Whether it means everything that the other one means.
    fn contains(&self, other: &Pattern) -> bool {
        both(&self.mask, &other.mask) == self.mask && self.meets(other)
    }

    /// As text: a zero, a one or a dash for a bit that is free, bit 0 first.
    pub fn to_text(&self, width: usize) -> String {
        let letter = |bit: usize| self.bit(bit).map_or('-', |value| if value { '1' } else { '0' });
        (0..width).map(letter).collect()
    }

    /// Reads text of one letter for every bit that is seen.
    pub fn from_text(text: &str) -> Option<Pattern> {
        if OBSERVATION_BITS_MAX < text.len() {
            return None;
        }
        let mut pattern = Pattern::ANY;
        for (bit, letter) in text.bytes().enumerate() {
            match letter {
                b'0' | b'1' => pattern = pattern.with(bit, letter == b'1'),
                b'-' => {}
                _ => return None,
            }
        }
        Some(pattern.within(text.len()))
    }

    /// Those of a list in rising order of their patterns that mean this observation, in order. Cost: two binary searches for
    /// every set of bits that some pattern looks at.
    pub fn covering<'l, T>(
        list: &'l [T],
        observation: Bits,
        pattern: impl Fn(&T) -> Pattern + Copy + 'l,
    ) -> impl Iterator<Item = &'l T> {
        let mut rest = list;
        let next = move || {
            let mask = pattern(rest.first()?).mask;
            let (alike, others) = rest.split_at(rest.partition_point(|one| pattern(one).mask <= mask));
            rest = others;
            let wanted = Pattern::new(mask, observation);
            let first = alike.partition_point(|one| pattern(one) < wanted);
            let count = alike[first..].partition_point(|one| pattern(one) == wanted);
            Some(&alike[first..first + count])
        };
        core::iter::from_fn(next).flatten()
    }
}

/// An action that must never be taken for what is seen: the user says so before anything is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forbidden {
    /// What is seen.
    pub seen: Pattern,
    /// What must not be done then.
    pub action: u16,
}

/// Why what is forbidden cannot be kept to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkept {
    /// Every action is forbidden where this is seen.
    NothingLeft(Pattern),
    /// It takes more rules than are allowed.
    TooMany,
}

impl Forbidden {
    /// The fewest bytes that one of them takes.
    pub const BYTES: usize = 8 * OBSERVATION_WORDS + 2;

    /// An action that is forbidden for one observation.
    pub fn whole(observation: Bits, action: u16) -> Forbidden {
        Forbidden { seen: Pattern::whole(observation), action }
    }

    /// The actions of those of a list that mean this observation.
    fn of(forbidden: &[Forbidden], observation: Bits) -> impl Iterator<Item = u16> {
        Pattern::covering(forbidden, observation, |pair| pair.seen).map(|pair| pair.action)
    }

    /// Whether an action is forbidden for what is seen; what is forbidden must be in rising order.
    pub fn forbids(forbidden: &[Forbidden], observation: Bits, action: u16) -> bool {
        Forbidden::of(forbidden, observation).any(|other| other == action)
    }

    /// The actions that are left for what is seen, in rising order; what is forbidden must be in rising order too.
    pub fn left(
        forbidden: &[Forbidden],
        observation: Bits,
        actions: u16,
    ) -> impl Iterator<Item = u16> + Clone {
        others(actions, Forbidden::of(forbidden, observation))
    }

    /// Every one with the lowest action that may be taken in its place wherever it holds, in worlds that show so many bits. Where
    /// no single action may, a pattern is divided by a bit that another one looks at.
    pub fn with_instead(
        forbidden: &[Forbidden],
        (width, actions): (usize, u16),
        most: usize,
    ) -> Result<Vec<(Forbidden, u16)>, Unkept> {
        let mut found = Vec::new();
        for pair in forbidden {
            let mut open = vec![pair.seen];
            while let Some(seen) = open.pop() {
                if most <= found.len() + open.len() {
                    return Err(Unkept::TooMany);
                }
                let instead = match seen.only() {
                    Some(observation) => Forbidden::left(forbidden, observation, actions).next(),
                    None => others(actions, meeting(forbidden, seen).map(|other| other.action)).next(),
                };
                match instead {
                    Some(instead) => found.push((Forbidden { seen, action: pair.action }, instead)),
                    None => {
                        let bit = divider(forbidden, seen, actions).ok_or(Unkept::NothingLeft(seen))?;
                        open.extend([true, false].map(|value| seen.with(bit, value).within(width)));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        let Forbidden { seen, action } = self;
        seen.value.0.iter().for_each(|word| writer.u64(*word));
        writer.u16(if seen.is_whole() { *action } else { action | MASKED });
        if !seen.is_whole() {
            seen.mask.0.iter().for_each(|word| writer.u64(*word));
        }
    }

    /// Reads canonical bytes back; whether there is such an action is for the reader to say.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Forbidden, DecodeError> {
        let value = bits(reader)?;
        let action = reader.u16()?;
        if action & MASKED == 0 {
            return Ok(Forbidden::whole(value, action));
        }
        let malformed = reader.error("a pattern that is not in its one form");
        let seen = Pattern::new(bits(reader)?, value);
        if seen.is_whole() || seen.value != value {
            return Err(malformed);
        }
        Ok(Forbidden { seen, action: action & !MASKED })
    }
}

fn bits(reader: &mut Reader<'_>) -> Result<Bits, DecodeError> {
    let mut bits = Bits::ZERO;
    for word in &mut bits.0 {
        *word = reader.u64()?;
    }
    Ok(bits)
}

/// The actions besides these, in rising order.
pub fn others(actions: u16, taken: impl Iterator<Item = u16>) -> impl Iterator<Item = u16> + Clone {
    let mut set = [0u64; ACTIONS_MAX / 64];
    taken
        .filter(|action| usize::from(*action) < ACTIONS_MAX)
        .for_each(|action| set[usize::from(action) / 64] |= 1 << (action % 64));
    let is_taken = move |action: u16| {
        set.get(usize::from(action) / 64).is_some_and(|word| word >> (action % 64) & 1 == 1)
    };
    (0..actions).filter(move |action| !is_taken(*action))
}

fn meeting(forbidden: &[Forbidden], seen: Pattern) -> impl Iterator<Item = &Forbidden> {
    forbidden.iter().filter(move |other| other.seen.meets(&seen))
}

/// A bit that tells where an action is forbidden that is not forbidden wherever this is seen: of the action with the fewest
/// patterns. Nothing where all are forbidden everywhere.
fn divider(forbidden: &[Forbidden], seen: Pattern, actions: u16) -> Option<usize> {
    let everywhere =
        meeting(forbidden, seen).filter(|other| other.seen.contains(&seen)).map(|other| other.action);
    let partly = others(actions, everywhere);
    let of = |action: u16| meeting(forbidden, seen).filter(move |other| other.action == action);
    let action = partly.min_by_key(|action| of(*action).count())?;
    let other = of(action).next()?;
    (0..OBSERVATION_BITS_MAX).find(|bit| other.seen.mask.get(*bit) && !seen.mask.get(*bit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Prng;

    const WIDTH: usize = 5;
    const ACTIONS: u16 = 3;

    fn pattern(text: &str) -> Pattern {
        Pattern::from_text(text).unwrap()
    }

    fn seen() -> impl Iterator<Item = Bits> {
        (0..1u64 << WIDTH).map(|number| Bits([number, 0, 0, 0]))
    }

    fn drawn(prng: &mut Prng, count: u64) -> Vec<Forbidden> {
        let mut one = || {
            let letter = |_| ['0', '1', '-', '-'][prng.below(4) as usize];
            let text: String = (0..WIDTH).map(letter).collect();
            Forbidden { seen: pattern(&text), action: prng.below(u64::from(ACTIONS)) as u16 }
        };
        let mut list: Vec<Forbidden> = (0..count).map(|_| one()).collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    #[test]
    fn patterns_mean_what_their_text_says() {
        let some = pattern("1-0--");
        assert_eq!((some.bit(0), some.bit(1), some.bit(2)), (Some(true), None, Some(false)));
        assert_eq!(seen().filter(|bits| some.covers(bits)).count(), 8);
        assert_eq!(some.to_text(WIDTH), "1-0--");
        assert_eq!(pattern("10110"), Pattern::whole(Bits([0b01101, 0, 0, 0])));
        assert!(some.fits(5) && some.fits(6) && !some.fits(2) && !pattern("10110").fits(3));
        // One that looks at every bit there is has another form: it means one observation.
        assert!(!Pattern::ANY.with(0, true).with(1, true).fits(2) && Pattern::ANY.fits(1));
        assert_eq!(Pattern::ANY.within(0), Pattern::whole(Bits::ZERO));
        for wrong in ["2", "0 1", &"0".repeat(257)] {
            assert_eq!(Pattern::from_text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_list_says_of_every_observation_what_its_patterns_say() {
        let mut prng = Prng::stream(3, "forbidden");
        for round in 0..200 {
            let list = drawn(&mut prng, 1 + round % 12);
            for observation in seen() {
                let plain = |action: &u16| {
                    list.iter().any(|pair| pair.action == *action && pair.seen.covers(&observation))
                };
                let (taken, left): (Vec<u16>, Vec<u16>) = (0..ACTIONS).partition(plain);
                assert!(taken.iter().all(|action| Forbidden::forbids(&list, observation, *action)));
                assert_eq!(Forbidden::left(&list, observation, ACTIONS).collect::<Vec<_>>(), left);
            }
            for (one, other) in list.iter().zip(list.iter().skip(1)) {
                let both = seen().any(|bits| one.seen.covers(&bits) && other.seen.covers(&bits));
                assert_eq!(one.seen.meets(&other.seen), both);
            }
        }
    }

    #[test]
    fn what_is_done_instead_is_allowed_wherever_a_rule_holds_or_nothing_is_left() {
        let mut prng = Prng::stream(4, "forbidden");
        let (mut kept, mut divided, mut refused) = (0, 0, 0);
        for round in 0..400 {
            let list = drawn(&mut prng, 1 + round % 8);
            let is_left = |bits: Bits| Forbidden::left(&list, bits, ACTIONS).next().is_some();
            match Forbidden::with_instead(&list, (WIDTH, ACTIONS), 1_000) {
                Ok(rules) => {
                    kept += 1;
                    divided += usize::from(list.len() < rules.len());
                    assert!(seen().all(is_left) && rules.iter().all(|(rule, _)| rule.seen.fits(WIDTH)));
                    for bits in seen() {
                        let here: Vec<_> = rules.iter().filter(|(rule, _)| rule.seen.covers(&bits)).collect();
                        assert!(here.iter().all(|(_, instead)| !Forbidden::forbids(&list, bits, *instead)));
                        for action in 0..ACTIONS {
                            let is_ruled = here.iter().any(|(rule, _)| rule.action == action);
                            assert_eq!(is_ruled, Forbidden::forbids(&list, bits, action));
                        }
                    }
                }
                Err(Unkept::NothingLeft(pattern)) => {
                    refused += 1;
                    assert!(seen().filter(|bits| pattern.covers(bits)).all(|bits| !is_left(bits)));
                }
                Err(Unkept::TooMany) => panic!("there are few"),
            }
        }
        assert!(50 < kept && 10 < divided && 50 < refused, "{kept} {divided} {refused}");
        let two = drawn(&mut prng, 2);
        assert_eq!(Forbidden::with_instead(&two, (WIDTH, ACTIONS), 1), Err(Unkept::TooMany));
    }

    #[test]
    fn bytes_of_whole_observations_are_what_they_were_and_patterns_have_one_spelling() {
        let write = |pair: &Forbidden| {
            let mut writer = Writer::new();
            pair.encode(&mut writer);
            writer.into_bytes()
        };
        let mut old = Writer::new();
        [5u64, 0, 0, 1 << 63].iter().for_each(|word| old.u64(*word));
        old.u16(7);
        let whole = Forbidden::whole(Bits([5, 0, 0, 1 << 63]), 7);
        assert_eq!((write(&whole), write(&whole).len()), (old.into_bytes(), Forbidden::BYTES));
        for pair in [whole, Forbidden { seen: pattern("1-0--"), action: 1_023 }] {
            let bytes = write(&pair);
            assert_eq!(Forbidden::decode(&mut Reader::new(&bytes)), Ok(pair));
            for place in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[place / 8] ^= 1 << (place % 8);
                let mut reader = Reader::new(&damaged);
                if let Ok(found) = Forbidden::decode(&mut reader)
                    && reader.finish().is_ok()
                {
                    assert_eq!(write(&found), damaged);
                }
            }
        }
    }
}
