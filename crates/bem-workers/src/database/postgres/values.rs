//! Values of PostgreSQL and items of a payload.
//!
//! Parameters go as text, which the server reads as the type that it has worked out for them; so every type can be given.
//! Results come in the server's binary form. Decimal numbers become the decimal text that the server itself would print.

use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::worker::Failure;
use bytes::BytesMut;
use std::error::Error;
use std::fmt::Write as _;
use tokio_postgres::Row;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};

/// PostgreSQL's text has no zero bytes.
pub const ZERO: &str = "text must not hold a zero byte";

/// A parameter.
#[derive(Debug)]
pub struct Bound<'a>(pub &'a Item);

impl ToSql for Bound<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            Item::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Item::Int(value) => write!(out, "{value}")?,
            Item::Text(text) if text.contains('\0') => return Err(ZERO.into()),
            Item::Text(text) => out.extend_from_slice(text.as_bytes()),
            Item::Bytes(bytes) => {
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(crate::json::to_hex(bytes).as_bytes());
            }
            Item::Null | Item::List(_) | Item::Map(_) => return Ok(IsNull::Yes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// The bytes of a column, whatever its type; none for NULL.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn is_text(kind: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::UNKNOWN, Type::JSON, Type::XML].contains(kind)
}

/// Whether values of a type can be shown.
pub fn is_known(kind: &Type) -> bool {
    let others = [
        Type::BOOL,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::OID,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::NUMERIC,
        Type::BYTEA,
        Type::JSONB,
        Type::UUID,
    ];
    is_text(kind) || others.contains(kind)
}

/// Text of a column that is known to be text.
pub fn text<'a>(row: &'a Row, place: usize) -> &'a str {
    let raw = row.try_get::<_, Option<Raw<'a>>>(place).ok().flatten();
    raw.and_then(|raw| core::str::from_utf8(raw.0).ok()).unwrap_or_default()
}

/// A value of a row.
pub fn show(row: &Row, place: usize) -> Result<Item, Failure> {
    let kind = row.columns()[place].type_();
    let unread = || Failure::new(ErrorCode::BAD_QUERY, format!("a value of type {kind} cannot be read"));
    let raw = row.try_get::<_, Option<Raw<'_>>>(place).map_err(|_| unread())?;
    match raw {
        None => Ok(Item::Null),
        Some(Raw(bytes)) => read(kind, bytes).ok_or_else(unread),
    }
}

fn read(kind: &Type, bytes: &[u8]) -> Option<Item> {
    Some(match *kind {
        Type::BOOL => Item::Bool(*bytes.first()? != 0),
        Type::INT2 => Item::Int(i16::from_be_bytes(bytes.try_into().ok()?).into()),
        Type::INT4 => Item::Int(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        Type::INT8 => Item::Int(i64::from_be_bytes(bytes.try_into().ok()?)),
        Type::OID => Item::Int(u32::from_be_bytes(bytes.try_into().ok()?).into()),
        // The shortest decimal text that reads back as the same number.
        Type::FLOAT4 => Item::Text(format!("{:?}", f32::from_be_bytes(bytes.try_into().ok()?))),
        Type::FLOAT8 => Item::Text(format!("{:?}", f64::from_be_bytes(bytes.try_into().ok()?))),
        Type::NUMERIC => Item::Text(decimal(bytes)?),
        Type::BYTEA => Item::Bytes(bytes.to_vec()),
        Type::UUID => {
            let digits = crate::json::to_hex(bytes);
            let part = |range| digits.get(range);
            let parts = [part(0..8)?, part(8..12)?, part(12..16)?, part(16..20)?, part(20..32)?];
            Item::Text(parts.join("-"))
        }
        // A version comes before the text.
        Type::JSONB => Item::Text(String::from_utf8(bytes.get(1..)?.to_vec()).ok()?),
        _ if is_text(kind) => Item::Text(String::from_utf8(bytes.to_vec()).ok()?),
        _ => return None,
    })
}

/// NUMERIC: count of digits, weight of the first, sign and decimals, then digits to the base 10,000.
fn decimal(bytes: &[u8]) -> Option<String> {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: Vec<u16> = words.iter().map(|word| u16::from_be_bytes(*word)).collect();
    let [count, weight, sign, decimals, digits @ ..] = words.as_slice() else { return None };
    if digits.len() != usize::from(*count) || !rest.is_empty() {
        return None;
    }
    let (weight, decimals) = (i32::from(*weight as i16), usize::from(*decimals));
    let mut text = match sign {
        0x0000 => String::new(),
        0x4000 => "-".to_string(),
        0xC000 => return Some("NaN".to_string()),
        0xD000 => return Some("Infinity".to_string()),
        0xF000 => return Some("-Infinity".to_string()),
        _ => return None,
    };
    let digit =
        |place: i32| usize::try_from(place).ok().and_then(|place| digits.get(place)).copied().unwrap_or(0);
    let whole: String = (0..=weight).map(|place| format!("{:04}", digit(place))).collect();
    let whole = whole.trim_start_matches('0');
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if 0 < decimals {
        // A number below one has zeros before its first digit.
        let mut after = "0000".repeat((-1 - weight).max(0) as usize);
        let mut place = (weight + 1).max(0);
        while after.len() < decimals {
            let _ = write!(after, "{:04}", digit(place));
            place += 1;
        }
        after.truncate(decimals);
        text.push('.');
        text.push_str(&after);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[u16], expected: Option<&str>) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(decimal(&bytes).as_deref(), expected, "{words:?}");
    }

    #[test]
    fn decimal_numbers_are_read_as_the_server_prints_them() {
        check(&[0, 0, 0, 0], Some("0"));
        check(&[1, 0, 0, 0, 7], Some("7"));
        check(&[2, 1, 0, 0, 12, 34], Some("120034"));
        check(&[1, 1, 0, 0, 12], Some("120000"));
        check(&[2, 0, 0x4000, 2, 1, 2500], Some("-1.25"));
        check(&[1, 0xFFFF, 0, 3, 50], Some("0.005"));
        check(&[1, 0xFFFE, 0, 6, 1200], Some("0.000012"));
        check(&[0, 0, 0xC000, 0], Some("NaN"));
        check(&[2, 0, 0, 0, 1], None);
        check(&[1, 2], None);
    }
}
