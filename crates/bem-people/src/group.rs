//! Several people who are asked the same: when a group is complete, what it says, and how far people agree.
//!
//! Answers of a group are blind to each other. The category with the most weight wins if it has more than half of all
//! weight; otherwise the conflict goes to somebody who may decide. Agreement is Krippendorff's alpha for nominal categories,
//! exact in integers: every pair of answers counts 840 over one less than the answers of its group. Who agrees with the
//! others more often weighs more. Clauses: HUM-3; decision D-77.

use crate::kinds::QuestionKind;
use crate::table::Person;
use crate::{PEOPLE_MAX, QUORUM_MAX};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use std::collections::BTreeMap;

/// Categories of answers.
const CATEGORIES: usize = 16;
/// A multiple of every number up to eight, so that shares of pairs are whole.
const PAIR: u64 = 840;

/// One answer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// Who answered.
    pub person: Person,
    /// Under which category the answer falls.
    pub category: u8,
    /// The answer.
    pub answer: Vec<u8>,
    /// The input with which it was given, by which it is known.
    pub number: u64,
}

/// A group that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Questions of it that are open or answered.
    pub wanted: u8,
    /// What was answered so far.
    pub answers: Vec<Ballot>,
}

/// What a complete group says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One category has more than half of the weight: the answer of who weighs most in it, which takes effect as theirs.
    Agreed(Ballot),
    /// Nobody has.
    Conflict,
    /// Nobody answered.
    Silent,
}

impl Group {
    /// Whether everybody who is asked has answered.
    pub fn is_complete(&self) -> bool {
        usize::from(self.wanted) <= self.answers.len()
    }
}

/// How somebody has answered in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Answers, alone or in groups.
    pub answers: u64,
    /// Answers in groups with somebody else in them.
    pub compared: u64,
    /// Those that agreed with what the group said.
    pub agreed: u64,
    /// When the last one came.
    pub last: u64,
}

impl Record {
    /// How much an answer weighs: the share of agreement, one half if nothing is known.
    pub fn weight(&self) -> Fixed {
        Fixed::from_ratio(self.agreed as i64 + 1, self.compared as i64 + 2)
    }
}

/// Pairs of answers to the same question, category by category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coincidences {
    pairs: Vec<u64>,
}

impl Default for Coincidences {
    fn default() -> Coincidences {
        Coincidences { pairs: vec![0; CATEGORIES * CATEGORIES] }
    }
}

impl Coincidences {
    /// Books the answers of one group; fewer than two say nothing.
    pub fn book(&mut self, categories: &[u8]) {
        if categories.len() < 2 || usize::from(QUORUM_MAX) < categories.len() {
            return;
        }
        let share = PAIR / (categories.len() as u64 - 1);
        for (place, one) in categories.iter().enumerate() {
            for (other_place, other) in categories.iter().enumerate() {
                if place != other_place {
                    let cell =
                        (usize::from(*one) % CATEGORIES) * CATEGORIES + usize::from(*other) % CATEGORIES;
                    self.pairs[cell] += share;
                }
            }
        }
    }

    /// Krippendorff's alpha: one for perfect agreement, zero for chance; nothing where all answers are of one category or
    /// none was compared.
    pub fn alpha(&self) -> Option<Fixed> {
        let of = |category: usize| -> u128 {
            self.pairs[category * CATEGORIES..][..CATEGORIES].iter().map(|count| u128::from(*count)).sum()
        };
        let totals: Vec<u128> = (0..CATEGORIES).map(of).collect();
        let all: u128 = totals.iter().sum();
        let same: u128 =
            (0..CATEGORIES).map(|category| u128::from(self.pairs[category * (CATEGORIES + 1)])).sum();
        let expected: u128 = all * all - totals.iter().map(|count| count * count).sum::<u128>();
        if expected == 0 {
            return None;
        }
        // Observed over expected disagreement; counts are in parts of PAIR.
        let values = all / u128::from(PAIR);
        let observed = (all - same) * (all - u128::from(PAIR)).max(1);
        debug_assert!(values < 1 << 40);
        let ratio = observed.checked_mul(1 << 32)? / expected;
        Some(Fixed::ONE.minus(Fixed::from_raw(i64::try_from(ratio).ok()?)))
    }

    fn encode(&self, writer: &mut Writer) {
        self.pairs.iter().for_each(|count| writer.u64(*count));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Coincidences, DecodeError> {
        let malformed = reader.error("more pairs of answers than anybody can have given");
        let pairs = (0..CATEGORIES * CATEGORIES).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
        match pairs.iter().all(|count| *count < 1 << 48) {
            true => Ok(Coincidences { pairs }),
            false => Err(malformed),
        }
    }
}

/// Groups that are open, and how people have answered so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    open: BTreeMap<u64, Group>,
    people: BTreeMap<Person, Record>,
    kinds: [Coincidences; 5],
}

impl Groups {
    /// Begins a group under the serial of its first question.
    pub fn begin(&mut self, group: u64, wanted: u8) {
        self.open.insert(group, Group { wanted, answers: Vec::new() });
    }

    /// A group that is open.
    pub fn get(&self, group: u64) -> Option<&Group> {
        self.open.get(&group)
    }

    /// Whether somebody has answered in a group already.
    pub fn has_answered(&self, group: u64, person: Person) -> bool {
        self.open.get(&group).is_some_and(|group| group.answers.iter().any(|ballot| ballot.person == person))
    }

    /// Whether the answer with this number waits for others, who must not see it before they have answered.
    pub fn is_blind(&self, number: u64) -> bool {
        self.open.values().flat_map(|group| &group.answers).any(|ballot| ballot.number == number)
    }

    /// How people have answered.
    pub fn people(&self) -> &BTreeMap<Person, Record> {
        &self.people
    }

    /// Agreement about one kind of question.
    pub fn alpha(&self, kind: QuestionKind) -> Option<Fixed> {
        self.kinds[kind as usize].alpha()
    }

    /// How much a person's answer weighs.
    pub fn weight(&self, person: Person) -> Fixed {
        self.people.get(&person).copied().unwrap_or_default().weight()
    }

    fn record(&mut self, person: Person, step: u64) -> &mut Record {
        if PEOPLE_MAX <= self.people.len() && !self.people.contains_key(&person) {
            let oldest = self.people.iter().min_by_key(|(person, record)| (record.last, **person));
            if let Some(oldest) = oldest.map(|(person, _)| *person) {
                self.people.remove(&oldest);
            }
        }
        let record = self.people.entry(person).or_default();
        record.last = step;
        record
    }

    /// Books that somebody answered.
    pub fn book(&mut self, person: Person, step: u64) {
        self.record(person, step).answers += 1;
    }

    /// Takes an answer into its group; what the group says if it is complete with it.
    pub fn answer(&mut self, kind: QuestionKind, group: u64, ballot: Ballot) -> Option<Verdict> {
        let (open, step) = (self.open.get_mut(&group)?, ballot.number);
        open.answers.push(ballot);
        self.settle(kind, group, step)
    }

    /// One question of a group will not be answered; what the group says if it is complete without it.
    pub fn skip(&mut self, kind: QuestionKind, group: u64, step: u64) -> Option<Verdict> {
        let open = self.open.get_mut(&group)?;
        open.wanted = open.wanted.saturating_sub(1);
        self.settle(kind, group, step)
    }

    fn settle(&mut self, kind: QuestionKind, group: u64, step: u64) -> Option<Verdict> {
        if !self.open.get(&group)?.is_complete() {
            return None;
        }
        let Group { answers, .. } = self.open.remove(&group)?;
        let categories: Vec<u8> = answers.iter().map(|ballot| ballot.category).collect();
        self.kinds[kind as usize].book(&categories);
        let mut weights = BTreeMap::<u8, i128>::new();
        for ballot in &answers {
            *weights.entry(ballot.category).or_default() += i128::from(self.weight(ballot.person).to_raw());
        }
        let all: i128 = weights.values().sum();
        let winner = weights.into_iter().find(|(_, weight)| all < 2 * weight).map(|(category, _)| category);
        if 1 < answers.len() {
            for ballot in &answers {
                let record = self.record(ballot.person, step);
                record.compared += 1;
                record.agreed += u64::from(winner == Some(ballot.category));
            }
        }
        let Some(winner) = winner else {
            return Some(if answers.is_empty() { Verdict::Silent } else { Verdict::Conflict });
        };
        let agreeing = answers.into_iter().filter(|ballot| ballot.category == winner);
        let best =
            agreeing.max_by_key(|ballot| (self.weight(ballot.person), core::cmp::Reverse(ballot.person)));
        best.map(Verdict::Agreed)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.length(self.open.len());
        for (serial, group) in &self.open {
            writer.u64(*serial);
            writer.u8(group.wanted);
            writer.length(group.answers.len());
            for ballot in &group.answers {
                writer.u32(ballot.person);
                writer.u8(ballot.category);
                writer.bytes(&ballot.answer);
                writer.u64(ballot.number);
            }
        }
        writer.length(self.people.len());
        for (person, record) in &self.people {
            writer.u32(*person);
            [record.answers, record.compared, record.agreed, record.last]
                .into_iter()
                .for_each(|count| writer.u64(count));
        }
        self.kinds.iter().for_each(|kind| kind.encode(writer));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Groups, DecodeError> {
        let malformed = reader.error("groups of answers that cannot be");
        let mut groups = Groups::default();
        for _ in 0..reader.length(13)? {
            let (serial, wanted) = (reader.u64()?, reader.u8()?);
            let mut answers = Vec::new();
            for _ in 0..reader.length(17)? {
                let (person, category) = (reader.u32()?, reader.u8()?);
                let (answer, number) = (reader.bytes()?.to_vec(), reader.u64()?);
                answers.push(Ballot { person, category, answer, number });
            }
            if QUORUM_MAX < wanted || usize::from(wanted) <= answers.len() {
                return Err(malformed);
            }
            groups.open.insert(serial, Group { wanted, answers });
        }
        for _ in 0..reader.length(36)? {
            let person = reader.u32()?;
            let record = Record {
                answers: reader.u64()?,
                compared: reader.u64()?,
                agreed: reader.u64()?,
                last: reader.u64()?,
            };
            if record.compared < record.agreed || 1 << 48 < record.compared {
                return Err(malformed);
            }
            groups.people.insert(person, record);
        }
        for kind in &mut groups.kinds {
            *kind = Coincidences::decode(reader)?;
        }
        Ok(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_is_that_of_the_textbook() {
        // Krippendorff's example with four observers and twelve units; nominal alpha is 0.743.
        let units: [&[u8]; 12] = [
            &[1, 1, 1],
            &[2, 2, 3, 2],
            &[3, 3, 3, 3],
            &[3, 3, 3, 3],
            &[2, 2, 2, 2],
            &[1, 2, 3, 4],
            &[4, 4, 4, 4],
            &[1, 1, 2, 1],
            &[2, 2, 2, 2],
            &[5, 5, 5],
            &[1, 1],
            &[3],
        ];
        let mut coincidences = Coincidences::default();
        units.iter().for_each(|unit| coincidences.book(unit));
        let alpha = (coincidences.alpha().unwrap().to_raw() * 1_000) >> 32;
        assert_eq!(alpha, 743);
        assert_eq!(Coincidences::default().alpha(), None);
    }

    #[test]
    fn the_heavier_half_wins_and_a_tie_goes_to_somebody_who_decides() {
        let mut groups = Groups::default();
        let kind = QuestionKind::LabelStep;
        let ballot =
            |person, category: u8, number| Ballot { person, category, answer: vec![category], number };
        let agreed = |person, category, number| Some(Verdict::Agreed(ballot(person, category, number)));
        groups.begin(1, 3);
        assert_eq!(groups.answer(kind, 1, ballot(10, 2, 1)), None);
        assert!(groups.has_answered(1, 10) && !groups.has_answered(1, 11));
        assert_eq!(groups.answer(kind, 1, ballot(11, 5, 2)), None);
        assert!(groups.is_blind(1) && groups.is_blind(2) && !groups.is_blind(3));
        // The answer that wins is of one of those who agree, whoever was last.
        assert_eq!(groups.answer(kind, 1, ballot(12, 2, 3)), agreed(10, 2, 1));
        assert!(!groups.is_blind(1));
        // Who disagreed weighs less than who agreed.
        assert!(groups.weight(11) < groups.weight(10));
        groups.begin(2, 2);
        groups.answer(kind, 2, ballot(10, 1, 4));
        assert_eq!(groups.answer(kind, 2, ballot(12, 3, 5)), Some(Verdict::Conflict));
        groups.begin(3, 2);
        assert_eq!(groups.skip(kind, 3, 6), None);
        assert_eq!(groups.answer(kind, 3, ballot(10, 4, 7)), agreed(10, 4, 7));
        groups.begin(4, 1);
        assert_eq!(groups.skip(kind, 4, 8), Some(Verdict::Silent));
        groups.begin(5, 2);
        groups.answer(kind, 5, ballot(11, 1, 9));
        let mut writer = Writer::new();
        groups.encode(&mut writer);
        assert_eq!(Groups::decode(&mut Reader::new(writer.as_bytes())), Ok(groups));
    }
}
