//! Identifiers of 32 bits: class, six check bits, and a 20-bit address.
//!
//! Layout, high to low: `class 6 | check 6 | payload 20`. The check bits are the Hsiao (32, 26) code over
//! class and payload: every error of one, two or three bits is found. Nothing is ever corrected, because
//! correcting would silently mend three-bit errors into other identifiers (decision D-9).
//! Clauses: ID-1, ID-2, ID-3, ID-5.

/// What an identifier points to. The numbers are stored and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the specification's own")]
pub enum ObjectClass {
    Expert = 0,
    TaskFamily = 1,
    TaskTemplate = 2,
    Patch = 3,
    EnvInstance = 4,
    BaseProblem = 5,
    CfgFragment = 6,
    TaskInstance = 7,
    CfgNode = 8,
    Variable = 9,
    Hypothesis = 10,
    Macro = 11,
    FsNode = 12,
    DbConn = 13,
    ToolKind = 14,
    EnvTask = 15,
    HinlTask = 16,
    Episode = 17,
    Cnf = 18,
    Proof = 19,
}

impl ObjectClass {
    /// All classes, in order of their numbers.
    pub const ALL: [ObjectClass; 20] = [
        ObjectClass::Expert,
        ObjectClass::TaskFamily,
        ObjectClass::TaskTemplate,
        ObjectClass::Patch,
        ObjectClass::EnvInstance,
        ObjectClass::BaseProblem,
        ObjectClass::CfgFragment,
        ObjectClass::TaskInstance,
        ObjectClass::CfgNode,
        ObjectClass::Variable,
        ObjectClass::Hypothesis,
        ObjectClass::Macro,
        ObjectClass::FsNode,
        ObjectClass::DbConn,
        ObjectClass::ToolKind,
        ObjectClass::EnvTask,
        ObjectClass::HinlTask,
        ObjectClass::Episode,
        ObjectClass::Cnf,
        ObjectClass::Proof,
    ];
}

/// Why a 32-bit word is not an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The check bits do not fit: the word was damaged.
    #[error("identifier {word:#010x} is damaged: check bits {found:#04x}, expected {expected:#04x}")]
    Damaged {
        /// The word as read.
        word: u32,
        /// Its check bits.
        found: u8,
        /// The check bits its data calls for.
        expected: u8,
    },
    /// The class number is not in the table.
    #[error("identifier {word:#010x} has unknown class {class}: known are 0 to 19")]
    UnknownClass {
        /// The word as read.
        word: u32,
        /// The number found.
        class: u8,
    },
}

/// A checked identifier. Invariant: the check bits fit and the class is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "U")]
pub struct ObjectId(u32);

const PAYLOAD_BITS: u32 = 20;
const PAYLOAD_MASK: u32 = (1 << PAYLOAD_BITS) - 1;

/// The 26 data columns of the code: all odd-weight columns of six bits with weight three or five. The six
/// of weight one belong to the check bits themselves.
const COLUMNS: [u8; 26] = {
    let mut columns = [0; 26];
    let mut count = 0;
    let mut column = 0u8;
    while column < 64 {
        if column.count_ones() == 3 || column.count_ones() == 5 {
            columns[count] = column;
            count += 1;
        }
        column += 1;
    }
    assert!(count == 26);
    columns
};

const fn check_bits(data: u32) -> u8 {
    let mut check = 0;
    let mut bit = 0;
    while bit < 26 {
        if data >> bit & 1 == 1 {
            check ^= COLUMNS[bit];
        }
        bit += 1;
    }
    check
}

impl ObjectId {
    /// The identifier with this class and 20-bit payload.
    pub const fn new(class: ObjectClass, payload: u32) -> ObjectId {
        assert!(payload <= PAYLOAD_MASK);
        let data = (class as u32) << PAYLOAD_BITS | payload;
        ObjectId((class as u32) << 26 | (check_bits(data) as u32) << PAYLOAD_BITS | payload)
    }

    /// An expert's identifier: ten bits of bucket, ten of place.
    pub const fn expert(bucket: u16, local: u16) -> ObjectId {
        assert!(bucket < 1 << 10 && local < 1 << 10);
        ObjectId::new(ObjectClass::Expert, (bucket as u32) << 10 | local as u32)
    }

    /// Any other identifier: six bits of shard, fourteen of place.
    pub const fn sharded(class: ObjectClass, shard: u8, local: u16) -> ObjectId {
        assert!(!matches!(class, ObjectClass::Expert), "experts are addressed by bucket");
        assert!(shard < 1 << 6 && local < 1 << 14);
        ObjectId::new(class, (shard as u32) << 14 | local as u32)
    }

    /// Checks a word that came from outside.
    pub fn from_word(word: u32) -> Result<ObjectId, IdError> {
        let class = (word >> 26) as u8;
        let found = (word >> PAYLOAD_BITS & 0x3F) as u8;
        let expected = check_bits(u32::from(class) << PAYLOAD_BITS | word & PAYLOAD_MASK);
        if found != expected {
            return Err(IdError::Damaged { word, found, expected });
        }
        if ObjectClass::ALL.len() <= usize::from(class) {
            return Err(IdError::UnknownClass { word, class });
        }
        Ok(ObjectId(word))
    }

    /// The 32 bits.
    pub const fn to_word(self) -> u32 {
        self.0
    }

    /// The class.
    pub fn class(self) -> ObjectClass {
        ObjectClass::ALL[(self.0 >> 26) as usize]
    }

    /// The 20 address bits.
    pub const fn payload(self) -> u32 {
        self.0 & PAYLOAD_MASK
    }

    /// Bucket and place, for experts.
    pub fn bucket_and_local(self) -> (u16, u16) {
        assert!(self.class() == ObjectClass::Expert);
        ((self.payload() >> 10) as u16, (self.payload() & 0x3FF) as u16)
    }

    /// Shard and place, for everything else.
    pub fn shard_and_local(self) -> (u8, u16) {
        assert!(self.class() != ObjectClass::Expert);
        ((self.payload() >> 14) as u8, (self.payload() & 0x3FFF) as u16)
    }

    /// The 26 data bits: class and payload without the check bits.
    pub const fn data(self) -> u32 {
        (self.0 >> 26) << PAYLOAD_BITS | self.0 & PAYLOAD_MASK
    }
}

impl core::fmt::Debug for ObjectId {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{:?}#{}", self.class(), self.payload())
    }
}

/// The reflected binary code: neighbours differ in one bit.
pub const fn gray(value: u32) -> u32 {
    value ^ (value >> 1)
}

/// Undoes [`gray`].
pub const fn gray_inverse(code: u32) -> u32 {
    let mut value = code;
    let mut shift = 1;
    while shift < 32 {
        value ^= value >> shift;
        shift *= 2;
    }
    value
}

/// How many of the 26 data bits agree in Gray code: 26 for equal identifiers. Check bits do not count.
#[doc(alias = "sim")]
pub const fn similarity(first: ObjectId, second: ObjectId) -> u32 {
    26 - (gray(first.data()) ^ gray(second.data())).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_come_back_from_their_words() {
        for class in ObjectClass::ALL {
            for payload in [0, 1, 0x5_5555, PAYLOAD_MASK] {
                let id = ObjectId::new(class, payload);
                assert_eq!(ObjectId::from_word(id.to_word()), Ok(id));
                assert_eq!((id.class(), id.payload()), (class, payload));
            }
        }
    }

    #[test]
    fn every_flip_of_one_two_or_three_bits_is_found() {
        // The code is linear, so one identifier stands for all; two are tried to be sure of the wiring.
        for id in [ObjectId::expert(3, 5), ObjectId::new(ObjectClass::Proof, 0xF_0F0F)] {
            let word = id.to_word();
            let damaged =
                |flips: u32| matches!(ObjectId::from_word(word ^ flips), Err(IdError::Damaged { .. }));
            for a in 0..32 {
                assert!(damaged(1 << a));
                for b in 0..a {
                    assert!(damaged(1 << a | 1 << b));
                    for c in 0..b {
                        assert!(damaged(1 << a | 1 << b | 1 << c));
                    }
                }
            }
        }
    }

    #[test]
    fn an_unknown_class_is_named() {
        let data = 20u32 << PAYLOAD_BITS | 7;
        let word = 20 << 26 | u32::from(check_bits(data)) << PAYLOAD_BITS | 7;
        let error = ObjectId::from_word(word).unwrap_err();
        assert!(error.to_string().ends_with("has unknown class 20: known are 0 to 19"), "{error}");
    }

    #[test]
    fn both_views_of_the_address_agree_with_the_payload() {
        assert_eq!(ObjectId::expert(1_023, 1_022).bucket_and_local(), (1_023, 1_022));
        assert_eq!(ObjectId::sharded(ObjectClass::Macro, 63, 16_383).shard_and_local(), (63, 16_383));
    }

    #[test]
    fn gray_neighbours_differ_in_one_bit() {
        for value in 0..1_000u32 {
            assert_eq!(gray_inverse(gray(value)), value);
            assert_eq!((gray(value) ^ gray(value + 1)).count_ones(), 1);
        }
        let id = ObjectId::expert(0, 0);
        assert_eq!(similarity(id, id), 26);
        assert_eq!(similarity(id, ObjectId::expert(0, 1)), 25);
    }
}
