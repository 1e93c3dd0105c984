//! Payloads as people and programs write them: JSON with names, and the CBOR that travels.
//!
//! The fields of built-in operations have names here and numbers there; users' tools keep names. Bytes are `{"hex": "..."}`, or
//! text where they are text. Fractions have no place: they are written as text. Clause: TOOL-13.

use anyhow::{Result, bail};
use bem_tools::cbor::{Item, Key};
use bem_tools::limits::DEPTH_MAX;
use bem_tools::operation::{Field, Operation};
use serde_json::{Map, Value, json};

/// The payload of a request.
pub fn to_payload(operation: Option<&Operation>, value: &Value) -> Result<Vec<u8>> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    match operation {
        Some(operation) => to_fields(operation.name, operation.request, value),
        None => Ok(item(value, 0)?.to_bytes()),
    }
}

/// A JSON object as these fields, by number.
pub fn to_fields(operation: &str, known: &[Field], value: &Value) -> Result<Vec<u8>> {
    let Value::Object(fields) = value else { bail!("the request must be a JSON object") };
    let mut items = Vec::new();
    for (name, value) in fields {
        let Some((key, _)) = known.iter().find(|(_, known)| known == name) else {
            let known: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            bail!("{operation} has no field {name:?}: known are {known}");
        };
        items.push((*key, item(value, 0)?));
    }
    Ok(Item::fields(items).to_bytes())
}

fn item(value: &Value, depth: usize) -> Result<Item> {
    if DEPTH_MAX < depth {
        bail!("the request is nested too deep");
    }
    Ok(match value {
        Value::Null => Item::Null,
        Value::Bool(value) => Item::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Item::Int(number),
            None => bail!("{number} is no whole number of 64 bits: write fractions as text"),
        },
        Value::String(text) => Item::Text(text.clone()),
        Value::Array(values) => {
            Item::List(values.iter().map(|value| item(value, depth + 1)).collect::<Result<_>>()?)
        }
        Value::Object(fields) => match fields.get("hex").filter(|_| fields.len() == 1) {
            Some(Value::String(digits)) => Item::Bytes(from_hex(digits)?),
            _ => {
                let field =
                    |(name, value): (&String, &Value)| Ok((Key::Text(name.clone()), item(value, depth + 1)?));
                Item::Map(fields.iter().map(field).collect::<Result<_>>()?)
            }
        },
    })
}

fn from_hex(digits: &str) -> Result<Vec<u8>> {
    let is_hex = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex {
        bail!("hex must have an even number of digits 0 to 9 and a to f");
    }
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or_default();
    Ok((0..digits.len()).step_by(2).map(pair).collect())
}

/// Lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A response for people; what is no CBOR is shown as bytes.
pub fn from_payload(operation: Option<&Operation>, bytes: &[u8]) -> Value {
    from_fields(operation.map_or(&[][..], |operation| operation.response), bytes)
}

/// A payload with the names of these fields.
pub fn from_fields(fields: &[Field], bytes: &[u8]) -> Value {
    match Item::from_bytes(bytes) {
        Ok(item) => value(&item, fields),
        Err(_) if bytes.is_empty() => Value::Null,
        Err(_) => json!({ "hex": to_hex(bytes) }),
    }
}

fn value(item: &Item, fields: &[Field]) -> Value {
    match item {
        Item::Null => Value::Null,
        Item::Bool(value) => json!(value),
        Item::Int(value) => json!(value),
        Item::Bytes(bytes) => match core::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "hex": to_hex(bytes) }),
        },
        Item::Text(text) => json!(text),
        Item::List(items) => items.iter().map(|item| value(item, &[])).collect(),
        Item::Map(items) => {
            let mut named = Map::new();
            for (key, item) in items {
                let name = match key {
                    Key::Text(name) => name.clone(),
                    Key::Number(number) => match fields.iter().find(|(known, _)| known == number) {
                        Some((_, name)) => (*name).to_string(),
                        None => number.to_string(),
                    },
                };
                named.insert(name, value(item, &[]));
            }
            Value::Object(named)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_tools::operation::{Role, by_name};

    #[test]
    fn names_become_numbers_and_back() {
        let read = by_name(Role::Files, "read");
        let payload = to_payload(read, &json!({ "length": 5, "offset": 1 })).unwrap();
        assert_eq!(payload, [0xA2, 0, 1, 1, 5]);
        let answer = Item::fields([(0, Item::Bytes(b"hello".to_vec())), (1, Item::Int(9))]).to_bytes();
        assert_eq!(from_payload(read, &answer), json!({ "data": "hello", "size": 9 }));
        let error = to_payload(read, &json!({ "lenght": 5 })).unwrap_err().to_string();
        assert_eq!(error, "read has no field \"lenght\": known are offset, length");
        assert!(to_payload(None, &json!(0.5)).unwrap_err().to_string().contains("fractions as text"));
        let own = to_payload(None, &json!({ "b": { "hex": "00ff" }, "aa": [null, true] })).unwrap();
        assert_eq!(from_payload(None, &own), json!({ "b": { "hex": "00ff" }, "aa": [null, true] }));
    }
}
