//! Payloads as deterministic CBOR: one spelling for every value (RFC 8949, section 4.2.1).
//!
//! Integers and lengths are shortest, lengths are definite, keys of a map are whole numbers from 0 or text, in order and
//! different. There are no floats: a real number travels as decimal text. A reader decodes, bounded in depth and number of
//! items, writes again what it understood, and takes only bytes that are the same. Must not know what payloads mean.
//! Clauses: TOOL-13; decision D-71.

use crate::limits::{DEPTH_MAX, ITEMS_MAX};
use minicbor::data::Type;
use minicbor::{Decoder, Encoder};
use std::collections::BTreeMap;

/// A key of a map. The order is that of the encoded bytes: numbers first, then text, shorter first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A number, in the layer's own payloads.
    Number(u64),
    /// Text, in payloads of users' tools.
    Text(String),
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> core::cmp::Ordering {
        match (self, other) {
            (Key::Number(a), Key::Number(b)) => a.cmp(b),
            (Key::Number(_), Key::Text(_)) => core::cmp::Ordering::Less,
            (Key::Text(_), Key::Number(_)) => core::cmp::Ordering::Greater,
            (Key::Text(a), Key::Text(b)) => (a.len(), a.as_bytes()).cmp(&(b.len(), b.as_bytes())),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Item>),
    /// Values by key.
    Map(BTreeMap<Key, Item>),
}

/// Why bytes are no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload is no deterministic CBOR: {reason}")]
pub struct CborError {
    /// What is wrong.
    pub reason: &'static str,
}

const fn wrong<T>(reason: &'static str) -> Result<T, CborError> {
    Err(CborError { reason })
}

impl Item {
    /// The one spelling of this value.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new());
        self.write(&mut encoder);
        encoder.into_writer()
    }

    fn write(&self, encoder: &mut Encoder<Vec<u8>>) {
        // Writing to a vector cannot fail.
        let done = match self {
            Item::Null => encoder.null().map(drop),
            Item::Bool(value) => encoder.bool(*value).map(drop),
            Item::Int(value) => encoder.i64(*value).map(drop),
            Item::Bytes(bytes) => encoder.bytes(bytes).map(drop),
            Item::Text(text) => encoder.str(text).map(drop),
            Item::List(items) => encoder.array(items.len() as u64).map(drop),
            Item::Map(items) => encoder.map(items.len() as u64).map(drop),
        };
        debug_assert!(done.is_ok(), "a vector takes everything");
        match self {
            Item::List(items) => items.iter().for_each(|item| item.write(encoder)),
            Item::Map(items) => {
                for (key, item) in items {
                    let done = match key {
                        Key::Number(number) => encoder.u64(*number).map(drop),
                        Key::Text(text) => encoder.str(text).map(drop),
                    };
                    debug_assert!(done.is_ok(), "a vector takes everything");
                    item.write(encoder);
                }
            }
            _ => {}
        }
    }

    /// Reads the one value that these bytes spell.
    pub fn from_bytes(bytes: &[u8]) -> Result<Item, CborError> {
        let mut decoder = Decoder::new(bytes);
        let mut left = ITEMS_MAX;
        let item = read(&mut decoder, 0, &mut left)?;
        if decoder.position() != bytes.len() {
            return wrong("something follows the value");
        }
        if item.to_bytes() != bytes {
            return wrong("it is not the shortest spelling, or keys are out of order");
        }
        Ok(item)
    }

    /// A map with whole numbers as keys.
    pub fn fields(fields: impl IntoIterator<Item = (u64, Item)>) -> Item {
        Item::Map(fields.into_iter().map(|(key, item)| (Key::Number(key), item)).collect())
    }

    /// The field of this number.
    pub fn field(&self, key: u64) -> Option<&Item> {
        match self {
            Item::Map(items) => items.get(&Key::Number(key)),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn int(&self) -> Option<i64> {
        match self {
            Item::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if they are.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Item::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn list(&self) -> Option<&[Item]> {
        match self {
            Item::List(items) => Some(items),
            _ => None,
        }
    }
}

fn read(decoder: &mut Decoder<'_>, depth: usize, left: &mut usize) -> Result<Item, CborError> {
    *left = match left.checked_sub(1) {
        Some(left) => left,
        None => return wrong("it has too many items"),
    };
    if DEPTH_MAX < depth {
        return wrong("it is nested too deep");
    }
    let cut = |_| CborError { reason: "it is cut off or a value is out of range" };
    match decoder.datatype().map_err(cut)? {
        Type::Null => decoder.null().map(|()| Item::Null).map_err(cut),
        Type::Bool => decoder.bool().map(Item::Bool).map_err(cut),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::I8 | Type::I16 | Type::I32 | Type::I64 => {
            decoder.i64().map(Item::Int).map_err(cut)
        }
        Type::Bytes => decoder.bytes().map(|bytes| Item::Bytes(bytes.to_vec())).map_err(cut),
        Type::String => decoder.str().map(|text| Item::Text(text.to_string())).map_err(cut),
        Type::Array => {
            let Some(count) = decoder.array().map_err(cut)? else { return wrong("a length is open") };
            let mut items = Vec::new();
            for _ in 0..count {
                items.push(read(decoder, depth + 1, left)?);
            }
            Ok(Item::List(items))
        }
        Type::Map => {
            let Some(count) = decoder.map().map_err(cut)? else { return wrong("a length is open") };
            let mut items = BTreeMap::new();
            for _ in 0..count {
                let key = match decoder.datatype().map_err(cut)? {
                    Type::U8 | Type::U16 | Type::U32 | Type::U64 => Key::Number(decoder.u64().map_err(cut)?),
                    Type::String => Key::Text(decoder.str().map_err(cut)?.to_string()),
                    _ => return wrong("a key is neither a number from 0 nor text"),
                };
                if items.insert(key, read(decoder, depth + 1, left)?).is_some() {
                    return wrong("a key comes twice");
                }
            }
            Ok(Item::Map(items))
        }
        _ => wrong(
            "it has a value of another type: null, bool, whole number, bytes, text, list and map are allowed",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items() -> impl Strategy<Value = Item> {
        let leaf = prop_oneof![
            Just(Item::Null),
            any::<bool>().prop_map(Item::Bool),
            any::<i64>().prop_map(Item::Int),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Item::Bytes),
            "[a-zé]{0,30}".prop_map(Item::Text),
        ];
        let key = prop_oneof![any::<u64>().prop_map(Key::Number), "[a-z]{0,9}".prop_map(Key::Text)];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Item::List),
                proptest::collection::btree_map(key.clone(), inner, 0..6).prop_map(Item::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_come_back(item in items()) {
            prop_assert_eq!(Item::from_bytes(&item.to_bytes()), Ok(item));
        }

        #[test]
        fn bytes_are_refused_or_are_the_one_spelling(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(item) = Item::from_bytes(&bytes) {
                prop_assert_eq!(item.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        let check = |bytes: &[u8], reason: &str| {
            let error = Item::from_bytes(bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{bytes:02x?}: {error}");
        };
        check(&[0x18, 0x05], "shortest");
        check(&[0x1B, 0, 0, 0, 0, 0, 0, 0x10, 0], "shortest");
        check(&[0x05, 0x00], "follows");
        check(&[0xA2, 0x01, 0x00, 0x00, 0x00], "order");
        check(&[0xA2, 0x01, 0x00, 0x01, 0x00], "twice");
        check(&[0xA2, 0x61, b'z', 0x00, 0x61, b'b', 0x00], "order");
        check(&[0xA1, 0x20, 0x00], "neither");
        check(&[0x9F, 0xFF], "another type");
        check(&[0xF9, 0x3C, 0x00], "another type");
        check(&[0x9B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "cut");
        check(&[0x5B, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "cut");
        check(&[0x3B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "another type");
        check(&[0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "out of range");
        check(&[0x81; 4_000], "deep");
        assert_eq!(
            Item::from_bytes(&[0xA2, 0x61, b'b', 0x00, 0x62, b'a', b'a', 0x00])
                .map(|item| item.to_bytes().len()),
            Ok(8),
            "shorter text first"
        );
    }
}
