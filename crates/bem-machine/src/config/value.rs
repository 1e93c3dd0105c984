//! The kinds of value a parameter can have: how each is read, shown, bounded and stored.
//!
//! Decimals are exact: the text of the file goes through [`Fixed::parse_decimal`] and never through a float.
//! Must not know which parameters exist. Clauses: MEM-3.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use core::fmt::Display;
use core::ops::RangeInclusive;
use toml::de::DeValue;

/// A value a parameter can have.
pub(super) trait Value: Sized + Clone {
    /// What may be said about the allowed values: a range for numbers, nothing for words.
    type Bounds;

    /// Reads it from a file; the error is what was found, in a few words.
    fn parse(value: &DeValue<'_>) -> Result<Self, String>;
    /// As it stands in a file; reading it back gives the same value.
    fn show(&self) -> String;
    /// Whether the bounds admit it.
    fn fits(&self, bounds: &Self::Bounds) -> bool;
    /// The allowed values in words.
    fn allowed(bounds: &Self::Bounds) -> String;
    /// The words it takes in the CONFIG segment, which are also its canonical bytes.
    fn words(&self, words: &mut Vec<u64>);
    /// Reads canonical bytes.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
    /// Writes canonical bytes.
    fn encode(&self, writer: &mut Writer) {
        let mut words = Vec::new();
        self.words(&mut words);
        words.into_iter().for_each(|word| writer.u64(word));
    }
}

fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(decimal) => decimal.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        other => format!("a {}", other.type_str()),
    }
}

fn allowed_between(bounds: &RangeInclusive<impl Display>, what: &str) -> String {
    format!("{what} from {} to {}", bounds.start(), bounds.end())
}

impl Value for u32 {
    type Bounds = RangeInclusive<u32>;

    fn parse(value: &DeValue<'_>) -> Result<u32, String> {
        match value {
            DeValue::Integer(integer) => {
                u32::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| kind(value))
            }
            _ => Err(kind(value)),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn fits(&self, bounds: &Self::Bounds) -> bool {
        bounds.contains(self)
    }
    fn allowed(bounds: &Self::Bounds) -> String {
        allowed_between(bounds, "a whole number")
    }
    fn words(&self, words: &mut Vec<u64>) {
        words.push(u64::from(*self));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
        let error = reader.error("a count above 32 bits");
        u32::try_from(reader.u64()?).map_err(|_| error)
    }
}

impl Value for i32 {
    type Bounds = RangeInclusive<i32>;

    fn parse(value: &DeValue<'_>) -> Result<i32, String> {
        match value {
            DeValue::Integer(integer) => {
                i32::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| kind(value))
            }
            _ => Err(kind(value)),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn fits(&self, bounds: &Self::Bounds) -> bool {
        bounds.contains(self)
    }
    fn allowed(bounds: &Self::Bounds) -> String {
        allowed_between(bounds, "a whole number")
    }
    fn words(&self, words: &mut Vec<u64>) {
        words.push(i64::from(*self) as u64);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<i32, DecodeError> {
        let error = reader.error("a signed number above 32 bits");
        i32::try_from(reader.i64()?).map_err(|_| error)
    }
}

impl Value for bool {
    type Bounds = ();

    fn parse(value: &DeValue<'_>) -> Result<bool, String> {
        match value {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(kind(value)),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn fits(&self, (): &()) -> bool {
        true
    }
    fn allowed((): &()) -> String {
        "true or false".to_string()
    }
    fn words(&self, words: &mut Vec<u64>) {
        words.push(u64::from(*self));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
        let error = reader.error("neither true nor false");
        match reader.u64()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(error),
        }
    }
}

/// The bounds of a decimal, as they are written.
pub(super) struct Decimals(pub &'static str, pub &'static str);

/// A decimal that the table of parameters itself contains.
pub(super) fn decimal(text: &str) -> Fixed {
    Fixed::parse_decimal(text).expect("decimals of the table are well formed")
}

/// The shortest decimal of at most nine digits after the point that reads back as this number, if there is one.
fn shortest_decimal(value: Fixed) -> Option<String> {
    let raw = i128::from(value.to_raw());
    (0..=9u32).find_map(|digits| {
        let scale = 10i128.pow(digits);
        // Reading rounds down, so the smallest decimal that is not below the number is the only candidate.
        let scaled = -(-(raw * scale)).div_euclid(1 << FRACTION_BITS);
        if (scaled << FRACTION_BITS).div_euclid(scale) != raw {
            return None;
        }
        let sign = if scaled < 0 { "-" } else { "" };
        let (whole, rest) =
            (scaled.unsigned_abs() / scale.unsigned_abs(), scaled.unsigned_abs() % scale.unsigned_abs());
        Some(match digits {
            0 => format!("{sign}{whole}.0"),
            _ => format!("{sign}{whole}.{rest:0width$}", width = digits as usize),
        })
    })
}

impl Value for Fixed {
    type Bounds = Decimals;

    fn parse(value: &DeValue<'_>) -> Result<Fixed, String> {
        let text = match value {
            DeValue::Float(decimal) => decimal.as_str(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            DeValue::String(text) => text.as_ref(),
            _ => return Err(kind(value)),
        };
        Fixed::parse_decimal(text).ok_or_else(|| kind(value))
    }
    fn show(&self) -> String {
        shortest_decimal(*self).unwrap_or_else(|| self.to_string())
    }
    fn fits(&self, bounds: &Self::Bounds) -> bool {
        decimal(bounds.0) <= *self && *self <= decimal(bounds.1)
    }
    fn allowed(bounds: &Self::Bounds) -> String {
        format!("a decimal from {} to {} with at most nine digits after the point", bounds.0, bounds.1)
    }
    fn words(&self, words: &mut Vec<u64>) {
        words.push(self.to_raw() as u64);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Fixed, DecodeError> {
        let error = reader.error("a number that no decimal of nine digits names");
        let value = Fixed::from_raw(reader.i64()?);
        if shortest_decimal(value).is_some() { Ok(value) } else { Err(error) }
    }
}

/// How many decimals a list may hold.
const LIST_MAX: usize = 64;

impl Value for Vec<Fixed> {
    type Bounds = Decimals;

    fn parse(value: &DeValue<'_>) -> Result<Vec<Fixed>, String> {
        match value {
            DeValue::Array(items) => items.iter().map(|item| Fixed::parse(item.get_ref())).collect(),
            _ => Err(kind(value)),
        }
    }
    fn show(&self) -> String {
        format!("[{}]", self.iter().map(Value::show).collect::<Vec<_>>().join(", "))
    }
    fn fits(&self, bounds: &Self::Bounds) -> bool {
        (1..=LIST_MAX).contains(&self.len())
            && self.is_sorted_by(|a, b| a < b)
            && self.iter().all(|item| item.fits(bounds))
    }
    fn allowed(bounds: &Self::Bounds) -> String {
        format!("a strictly rising list of 1 to {LIST_MAX} decimals from {} to {}", bounds.0, bounds.1)
    }
    fn words(&self, words: &mut Vec<u64>) {
        words.push(self.len() as u64);
        self.iter().for_each(|item| item.words(words));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Vec<Fixed>, DecodeError> {
        let error = reader.error("a list longer than its bound");
        let count = reader.u64()?;
        if LIST_MAX as u64 <= count.saturating_sub(1) {
            return Err(error);
        }
        (0..count).map(|_| Fixed::decode(reader)).collect()
    }
}

/// A value that is one of a few words.
pub trait Word: Sized + Copy + PartialEq + 'static {
    /// All of them, in order of their numbers.
    const ALL: &'static [Self];
    /// The word in the file.
    fn name(self) -> &'static str;
}

impl<W: Word> Value for W {
    type Bounds = ();

    fn parse(value: &DeValue<'_>) -> Result<W, String> {
        match value {
            DeValue::String(text) => {
                W::ALL.iter().copied().find(|word| word.name() == text.as_ref()).ok_or_else(|| kind(value))
            }
            _ => Err(kind(value)),
        }
    }
    fn show(&self) -> String {
        format!("{:?}", self.name())
    }
    fn fits(&self, (): &()) -> bool {
        true
    }
    fn allowed((): &()) -> String {
        format!("one of {}", W::ALL.iter().map(|word| word.show()).collect::<Vec<_>>().join(", "))
    }
    fn words(&self, words: &mut Vec<u64>) {
        words.push(W::ALL.iter().position(|word| word == self).expect("every word is in the list") as u64);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<W, DecodeError> {
        let error = reader.error("an unknown choice");
        usize::try_from(reader.u64()?).ok().and_then(|index| W::ALL.get(index).copied()).ok_or(error)
    }
}
