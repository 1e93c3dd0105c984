//! What requests of the built-in tools say, read with bounds: fields by number, unknown fields refused.
//!
//! Must not know how a tool works. Clauses: TOOL-4, TOOL-6, TOOL-13.

use crate::cbor::{Item, Key};
use crate::error::ErrorCode;
use crate::limits::PAYLOAD_MAX;
use crate::operation::{Field, Operation};
use crate::worker::Failure;

/// The fields of a request, each taken once.
pub struct Fields<'a> {
    item: Item,
    known: &'a [Field],
}

fn bad(words: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::BAD_PAYLOAD, words)
}

impl<'a> Fields<'a> {
    /// Reads a payload; no bytes at all are no fields.
    pub fn read(operation: &Operation, payload: &[u8]) -> Result<Fields<'a>, Failure> {
        let item = match payload {
            [] => Item::fields([]),
            bytes => Item::from_bytes(bytes).map_err(|error| bad(error.to_string()))?,
        };
        let Item::Map(fields) = &item else { return Err(bad("the payload must be a map of fields")) };
        let is_known = |key: &Key| matches!(key, Key::Number(key) if operation.request.iter().any(|(known, _)| known == key));
        if !fields.keys().all(is_known) {
            let names: Vec<&str> = operation.request.iter().map(|(_, name)| *name).collect();
            return Err(bad(format!("the payload has an unknown field: known are {}", names.join(", "))));
        }
        Ok(Fields { item, known: operation.request })
    }

    fn name(&self, key: u64) -> &'a str {
        self.known.iter().find(|(known, _)| *known == key).map_or("?", |(_, name)| name)
    }

    /// A field that is there and not null.
    pub fn get(&self, key: u64) -> Option<&Item> {
        self.item.field(key).filter(|item| **item != Item::Null)
    }

    /// A whole number in a range, or what holds without it.
    pub fn int(&self, key: u64, range: core::ops::RangeInclusive<i64>, default: i64) -> Result<i64, Failure> {
        let Some(item) = self.get(key) else { return Ok(default) };
        let value = item.int().filter(|value| range.contains(value));
        value.ok_or_else(|| {
            bad(format!(
                "{} must be a whole number from {} to {}",
                self.name(key),
                range.start(),
                range.end()
            ))
        })
    }

    /// Text, if it is there.
    pub fn text(&self, key: u64) -> Result<Option<&str>, Failure> {
        let Some(item) = self.get(key) else { return Ok(None) };
        item.text().map(Some).ok_or_else(|| bad(format!("{} must be text", self.name(key))))
    }

    /// Bytes, or text as its bytes.
    pub fn bytes(&self, key: u64) -> Result<&[u8], Failure> {
        let bytes = match self.get(key) {
            Some(Item::Bytes(bytes)) => bytes.as_slice(),
            Some(Item::Text(text)) => text.as_bytes(),
            _ => return Err(bad(format!("{} must be bytes or text", self.name(key)))),
        };
        Ok(bytes)
    }

    /// Yes or no; no without it.
    pub fn flag(&self, key: u64) -> Result<bool, Failure> {
        match self.get(key) {
            None => Ok(false),
            Some(Item::Bool(value)) => Ok(*value),
            Some(_) => Err(bad(format!("{} must be true or false", self.name(key)))),
        }
    }

    /// A list; empty without it.
    pub fn list(&self, key: u64) -> Result<&[Item], Failure> {
        match self.get(key) {
            None => Ok(&[]),
            Some(item) => item.list().ok_or_else(|| bad(format!("{} must be a list", self.name(key)))),
        }
    }
}

/// Offset and length of a read; without a length, as much as there is room for.
pub fn read_range(fields: &Fields<'_>) -> Result<(u64, usize), Failure> {
    let offset = fields.int(0, 0..=i64::MAX, 0)?;
    let length = fields.int(1, 0..=PAYLOAD_MAX as i64, PAYLOAD_MAX as i64)?;
    Ok((offset as u64, length as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Role, by_name};

    #[test]
    fn fields_are_read_by_number_and_others_are_refused_by_name() {
        let read = by_name(Role::Files, "read").unwrap();
        let payload = Item::fields([(0, Item::Int(5)), (1, Item::Int(7))]).to_bytes();
        assert_eq!(read_range(&Fields::read(read, &payload).unwrap()), Ok((5, 7)));
        assert_eq!(read_range(&Fields::read(read, &[]).unwrap()), Ok((0, PAYLOAD_MAX)));
        let check = |item: Item, words: &str| {
            let failure =
                Fields::read(read, &item.to_bytes()).and_then(|fields| read_range(&fields)).unwrap_err();
            assert!(failure.words.contains(words), "{failure:?}");
            assert_eq!(failure.code, ErrorCode::BAD_PAYLOAD);
        };
        check(Item::fields([(9, Item::Int(5))]), "known are offset, length");
        check(Item::fields([(0, Item::Int(-1))]), "offset must be a whole number from 0");
        check(Item::fields([(1, Item::Text("x".to_string()))]), "length must be");
        check(Item::Int(1), "a map of fields");
    }
}
