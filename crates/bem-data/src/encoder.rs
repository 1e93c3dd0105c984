//! How a row of named values becomes observation bits, and what every bit is called.
//!
//! A number is compared with thresholds: one bit for each (`temp >= 21.5`), or the count of those it reaches as a binary
//! field. A choice is a binary field, or one bit for each word that is asked for. Nothing is rounded: the same text gives
//! the same bits in every reader. Clauses: GLE-9.

use crate::feature::{Object, Value, plain};
use crate::grid::{self, THRESHOLDS_MAX, quantiles};
use crate::{DataError, Decimal, Feature, FeatureKind, Rule};
use bem_base::environment::{Bits, Field, Pattern};
use bem_base::limits::OBSERVATION_BITS_MAX;
use serde_json::value::RawValue;

/// Levels of a number in a world whose states are all known.
const STATE_LEVELS: usize = 64;

/// How numbers are encoded in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberCode {
    /// One bit for every threshold.
    Thermometer,
    /// The count of thresholds reached, as a binary field.
    Binary,
}

/// How one feature is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// One bit for every threshold: whether the number is at least that. Thresholds rise.
    Steps(Vec<Decimal>),
    /// The count of thresholds that the number reaches, as a binary field. Thresholds rise.
    Level(Vec<Decimal>),
    /// The place of the word, as a binary field.
    Index,
    /// One bit for every one of these words: whether it is that.
    Words(Vec<u16>),
    /// One bit.
    Bit,
    /// No bit: nobody looks at it.
    Unread,
}

/// One feature and where its bits are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What is encoded.
    pub feature: Feature,
    /// How.
    pub code: Code,
    /// Its first bit.
    pub low: u16,
    /// How many bits; none where a learned policy does not look at the feature.
    pub width: u16,
}

/// How rows become bits. Invariant: columns fill the bits from zero on, each code fits its feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoder {
    columns: Vec<Column>,
}

fn width_for(levels: usize) -> usize {
    levels.max(1).next_power_of_two().ilog2() as usize
}

impl Code {
    fn width(&self, feature: &Feature) -> usize {
        match (self, &feature.kind) {
            (Code::Steps(thresholds), _) => thresholds.len(),
            (Code::Level(thresholds), _) => width_for(thresholds.len() + 1),
            (Code::Index, FeatureKind::Choice(words)) => width_for(words.len()),
            (Code::Words(words), _) => words.len(),
            (Code::Unread, _) => 0,
            _ => 1,
        }
    }

    fn fits(&self, feature: &Feature) -> bool {
        let rises = |thresholds: &[Decimal]| {
            thresholds.len() <= THRESHOLDS_MAX && thresholds.windows(2).all(|pair| pair[0] < pair[1])
        };
        match (self, &feature.kind) {
            (Code::Steps(thresholds) | Code::Level(thresholds), FeatureKind::Number { .. }) => {
                rises(thresholds)
            }
            (Code::Index, FeatureKind::Choice(_)) | (Code::Bit, FeatureKind::Bit) | (Code::Unread, _) => true,
            (Code::Words(places), FeatureKind::Choice(words)) => {
                places.iter().all(|place| usize::from(*place) < words.len())
                    && places.windows(2).all(|pair| pair[0] < pair[1])
            }
            _ => false,
        }
    }
}

impl Encoder {
    /// The encoder of these features, each with its code.
    pub fn new(parts: Vec<(Feature, Code)>) -> Result<Encoder, DataError> {
        let mut low = 0usize;
        let mut columns = Vec::with_capacity(parts.len());
        for (feature, code) in parts {
            if !code.fits(&feature) {
                return Err(DataError(format!(
                    "feature {:?} has a code that does not fit its kind",
                    feature.name
                )));
            }
            let width = code.width(&feature);
            if OBSERVATION_BITS_MAX < low + width {
                return Err(DataError(format!(
                    "the features take more than {OBSERVATION_BITS_MAX} bits; {:?} does not fit any more",
                    feature.name
                )));
            }
            columns.push(Column { feature, code, low: low as u16, width: width as u16 });
            low += width;
        }
        Ok(Encoder { columns })
    }

    /// The encoder that reads rows and shows nothing of them.
    pub fn unread(features: Vec<Feature>) -> Result<Encoder, DataError> {
        Encoder::new(features.into_iter().map(|feature| (feature, Code::Unread)).collect())
    }

    /// The encoder of a world of which only the bounds are known, with so many levels of every number at round places.
    pub fn for_world(
        features: Vec<Feature>,
        numbers: NumberCode,
        levels: usize,
        rules: &[Rule],
    ) -> Result<Encoder, DataError> {
        Encoder::cut_by(features, numbers, |min, max| grid::uniform(min, max, levels - 1), rules)
    }

    /// The same with numbers cut between their bounds by a function. The thresholds of these rules are among its own, so that every
    /// observation says whether a rule holds.
    pub(crate) fn cut_by(
        features: Vec<Feature>,
        numbers: NumberCode,
        cut: impl Fn(Decimal, Decimal) -> Vec<Decimal>,
        rules: &[Rule],
    ) -> Result<Encoder, DataError> {
        let code = |(place, feature): (usize, &Feature)| match &feature.kind {
            FeatureKind::Number { min, max } => {
                let mut thresholds = cut(*min, *max);
                thresholds.extend(rules.iter().flat_map(|rule| rule.thresholds(place)));
                thresholds.retain(|threshold| min < threshold && threshold <= max);
                thresholds.sort_unstable();
                thresholds.dedup();
                match numbers {
                    NumberCode::Thermometer => Code::Steps(thresholds),
                    NumberCode::Binary => Code::Level(thresholds),
                }
            }
            FeatureKind::Choice(_) => Code::Index,
            FeatureKind::Bit => Code::Bit,
        };
        let codes: Vec<Code> = features.iter().enumerate().map(code).collect();
        Encoder::new(features.into_iter().zip(codes).collect())
    }

    /// The encoder of a world whose states are all known, as values of every feature: numbers get thresholds between the
    /// values that occur, as binary fields.
    pub fn for_states(
        features: Vec<Feature>,
        rows: &[Vec<Value>],
        rules: &[Rule],
    ) -> Result<Encoder, DataError> {
        let code = |(place, feature): (usize, &Feature)| match &feature.kind {
            FeatureKind::Number { .. } => {
                let number = |row: &Vec<Value>| match row[place] {
                    Value::Number(number) => Some(number),
                    _ => None,
                };
                let numbers: Vec<Decimal> = rows.iter().filter_map(number).collect();
                let mut thresholds = quantiles(&numbers, STATE_LEVELS - 1);
                thresholds.extend(rules.iter().flat_map(|rule| rule.thresholds(place)));
                thresholds.sort_unstable();
                thresholds.dedup();
                Code::Level(thresholds)
            }
            FeatureKind::Choice(_) => Code::Index,
            FeatureKind::Bit => Code::Bit,
        };
        let codes: Vec<Code> = features.iter().enumerate().map(code).collect();
        Encoder::new(features.into_iter().zip(codes).collect())
    }

    /// The columns in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many bits a row becomes.
    pub fn bits(&self) -> usize {
        self.columns.last().map_or(0, |column| usize::from(column.low + column.width))
    }

    /// How the bits belong together: a binary field is one group, any other bit stands alone.
    pub fn fields(&self) -> Vec<Field> {
        let of = |column: &Column| match column.code {
            Code::Level(_) | Code::Index if 0 < column.width => {
                vec![Field { low: column.low, width: column.width }]
            }
            _ => (0..column.width).map(|bit| Field { low: column.low + bit, width: 1 }).collect(),
        };
        self.columns.iter().flat_map(of).collect()
    }

    /// The bits of a row; `text` says the value of a feature.
    pub fn encode<'t>(&self, text: impl Fn(&str) -> Option<&'t str>) -> Result<Bits, DataError> {
        self.values(text).map(|values| self.encode_values(&values))
    }

    fn values<'t>(&self, text: impl Fn(&str) -> Option<&'t str>) -> Result<Vec<Value>, DataError> {
        let value = |column: &Column| {
            let name = &column.feature.name;
            let text = text(name).ok_or_else(|| {
                DataError(format!("{name:?} is missing; it must be {}", column.feature.allowed()))
            })?;
            column.feature.value(text)
        };
        self.columns.iter().map(value).collect()
    }

    /// The bits of a row of values, one for every feature in order.
    pub fn encode_values(&self, values: &[Value]) -> Bits {
        let mut bits = Bits::ZERO;
        self.columns.iter().zip(values).for_each(|(column, value)| column.put(*value, &mut bits));
        bits
    }

    /// One value for every feature that shows these bits: the lowest of a number's level. What a feature does not show, or
    /// bits that no value shows, say nothing.
    pub fn values_of(&self, bits: &Bits) -> Vec<Value> {
        self.columns.iter().map(|column| column.value_of(bits)).collect()
    }

    /// The bits of a row given as a JSON object; a name that is not a feature's is refused.
    pub fn encode_json(&self, text: &str) -> Result<Bits, DataError> {
        self.values_json(text).map(|values| self.encode_values(&values))
    }

    /// The values of a row given as a JSON object.
    pub fn values_json(&self, text: &str) -> Result<Vec<Value>, DataError> {
        let object: Object = serde_json::from_str(text).map_err(|_| {
            DataError(format!("an observation is an object of named values: {}", self.example()))
        })?;
        let is_known = |name: &&String| self.columns.iter().any(|column| column.feature.name == **name);
        if let Some(name) = object.keys().find(|name| !is_known(name)) {
            let known: Vec<&str> = self.columns.iter().map(|column| column.feature.name.as_str()).collect();
            return Err(DataError(format!("{name:?} is no feature; there are {}", known.join(", "))));
        }
        let plain: Vec<(&String, String)> = object.iter().map(|(name, raw)| (name, plain(raw))).collect();
        self.values(|name| plain.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str()))
    }

    fn example(&self) -> String {
        let value = |column: &Column| match &column.feature.kind {
            FeatureKind::Number { min, .. } => format!("\"{}\":{min}", column.feature.name),
            FeatureKind::Choice(words) => format!("\"{}\":\"{}\"", column.feature.name, words[0]),
            FeatureKind::Bit => format!("\"{}\":0", column.feature.name),
        };
        let values: Vec<String> = self.columns.iter().take(3).map(value).collect();
        format!("{{{}}}", values.join(","))
    }

    /// The column that a bit belongs to.
    pub fn column_of(&self, bit: usize) -> Option<&Column> {
        self.columns.iter().find(|column| (column.low..column.low + column.width).contains(&(bit as u16)))
    }

    /// What it means that a bit has this value; nothing for a bit in a binary field, which means little alone.
    pub fn fact(&self, bit: usize, value: bool) -> Option<String> {
        let column = self.column_of(bit)?;
        let in_field = matches!(column.code, Code::Level(_) | Code::Index) && 1 < column.width;
        (!in_field).then(|| self.bit_is(column, bit, value))
    }

    /// What it means that a bit of a feature has this value, in values of the feature.
    pub fn bit_is(&self, column: &Column, bit: usize, value: bool) -> String {
        let place = bit - usize::from(column.low);
        let shows = |of: &usize| column.shows(*of, place) == value;
        column.among(&column.values().into_iter().filter(shows).collect::<Vec<_>>())
    }

    /// What a pattern says of the features whose bits it looks at.
    pub fn pattern_is(&self, pattern: &Pattern) -> String {
        let said = |column: &Column| {
            let bit = |place: usize| pattern.bit(usize::from(column.low) + place);
            let bits = || (0..usize::from(column.width)).filter_map(|place| Some((place, bit(place)?)));
            bits().next()?;
            let shows = |value: &usize| bits().all(|(place, wanted)| column.shows(*value, place) == wanted);
            Some(column.among(&column.values().into_iter().filter(shows).collect::<Vec<_>>()))
        };
        let said: Vec<String> = self.columns.iter().filter_map(said).collect();
        if said.is_empty() { "anything is seen".to_string() } else { said.join(" and ") }
    }

    /// One line for every feature: its bits and what they compare with.
    pub fn lines(&self) -> Vec<String> {
        let line = |column: &Column| {
            let bits = match column.width {
                0 => "not read".to_string(),
                1 => format!("bit {}", column.low),
                width => format!("bits {}-{}", column.low, column.low + width - 1),
            };
            let what = match (&column.code, &column.feature.kind) {
                _ if column.width == 0 => String::new(),
                (Code::Steps(thresholds), _) => format!(": at least {}", grid::words(thresholds)),
                (Code::Level(thresholds), _) => {
                    format!(": how many of {} it reaches", grid::words(thresholds))
                }
                (Code::Index, FeatureKind::Choice(words)) => format!(": place among {}", words.join(" ")),
                (Code::Words(places), FeatureKind::Choice(words)) => {
                    let names: Vec<&str> =
                        places.iter().map(|place| words[usize::from(*place)].as_str()).collect();
                    format!(": is {}", names.join(" "))
                }
                _ => String::new(),
            };
            format!("feature {}: {bits}{what}", column.feature.name)
        };
        self.columns.iter().map(line).collect()
    }

    /// The encoder as JSON: the features, each with its code.
    pub fn to_json(&self) -> String {
        let texts =
            |thresholds: &[Decimal]| thresholds.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let part = |column: &Column| {
            let feature = column.feature.to_json();
            let code = match &column.code {
                Code::Steps(thresholds) => format!("\"steps\":[{}]", texts(thresholds)),
                Code::Level(thresholds) => format!("\"levels\":[{}]", texts(thresholds)),
                Code::Index => "\"index\":true".to_string(),
                Code::Words(places) => {
                    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                    format!("\"words\":[{}]", places.join(","))
                }
                Code::Bit => "\"bit\":true".to_string(),
                Code::Unread => "\"unread\":true".to_string(),
            };
            format!("{},{code}}}", &feature[..feature.len() - 1])
        };
        format!("[{}]", self.columns.iter().map(part).collect::<Vec<_>>().join(","))
    }

    /// Reads an encoder back.
    pub fn from_json(text: &str) -> Result<Encoder, DataError> {
        let objects: Vec<Object> = serde_json::from_str(text)
            .map_err(|_| DataError::new("an encoder is a list of features with codes"))?;
        let mut codes = Vec::new();
        let mut plain_objects = Vec::new();
        for (place, mut object) in objects.into_iter().enumerate() {
            codes.push(
                code(&mut object)
                    .ok_or_else(|| DataError(format!("feature {place} has no readable code")))?,
            );
            plain_objects.push(object);
        }
        let features = serde_json::to_string(&plain_objects)
            .map_err(|_| DataError::new("an encoder whose features cannot be written"))?;
        Encoder::new(Feature::list(&features)?.into_iter().zip(codes).collect())
    }
}

/// Takes the code out of a feature's object; a feature has exactly one.
fn code(object: &mut Object) -> Option<Code> {
    let numbers = |raw: &RawValue| {
        let texts: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        texts.iter().map(|text| Decimal::parse(text.get()).ok()).collect::<Option<Vec<Decimal>>>()
    };
    let (steps, levels) = (object.remove("steps"), object.remove("levels"));
    let (index, words) = (object.remove("index"), object.remove("words"));
    let flags = (object.remove("bit").is_some(), object.remove("unread").is_some());
    match (steps, levels, index, words, flags) {
        (Some(raw), None, None, None, (false, false)) => numbers(&raw).map(Code::Steps),
        (None, Some(raw), None, None, (false, false)) => numbers(&raw).map(Code::Level),
        (None, None, Some(_), None, (false, false)) => Some(Code::Index),
        (None, None, None, Some(raw), (false, false)) => {
            serde_json::from_str(raw.get()).ok().map(Code::Words)
        }
        (None, None, None, None, (true, false)) => Some(Code::Bit),
        (None, None, None, None, (false, true)) => Some(Code::Unread),
        _ => None,
    }
}

impl Column {
    /// The bits with this value in its place.
    pub fn with(&self, mut bits: Bits, value: Value) -> Bits {
        self.put(value, &mut bits);
        bits
    }

    fn value_of(&self, bits: &Bits) -> Value {
        let (low, width) = (usize::from(self.low), usize::from(self.width));
        let number = |thresholds: &[Decimal], min: Decimal, level: usize| {
            let reached = level.min(thresholds.len()).checked_sub(1);
            Value::Number(reached.map_or(min, |place| thresholds[place].max(min)))
        };
        match (&self.code, &self.feature.kind) {
            (Code::Steps(thresholds), FeatureKind::Number { min, .. }) => {
                let level = (0..width).rposition(|bit| bits.get(low + bit)).map_or(0, |last| last + 1);
                number(thresholds, *min, level)
            }
            (Code::Level(thresholds), FeatureKind::Number { min, .. }) => {
                number(thresholds, *min, bits.field(low, width) as usize)
            }
            (Code::Words(places), _) => {
                let shown = places.iter().zip(0..).find(|(_, bit)| bits.get(low + bit));
                Value::Choice(shown.map_or(u16::MAX, |(place, _)| *place))
            }
            (Code::Index, _) => Value::Choice(bits.field(low, width) as u16),
            (_, FeatureKind::Number { min, .. }) => Value::Number(*min),
            (_, FeatureKind::Choice(_)) => Value::Choice(u16::MAX),
            (_, FeatureKind::Bit) => Value::Bit(0 < width && bits.get(low)),
        }
    }

    fn put(&self, value: Value, bits: &mut Bits) {
        let low = usize::from(self.low);
        match (&self.code, value) {
            (Code::Steps(thresholds), Value::Number(number)) => {
                for (place, threshold) in thresholds.iter().enumerate() {
                    bits.set(low + place, *threshold <= number);
                }
            }
            (Code::Level(thresholds), Value::Number(number)) => {
                let level = thresholds.partition_point(|threshold| *threshold <= number);
                bits.set_field(low, usize::from(self.width), level as u64);
            }
            (Code::Index, Value::Choice(place)) => {
                bits.set_field(low, usize::from(self.width), u64::from(place));
            }
            (Code::Words(places), Value::Choice(word)) => {
                places.iter().enumerate().for_each(|(place, known)| bits.set(low + place, *known == word));
            }
            (Code::Bit, Value::Bit(value)) => bits.set(low, value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEATURES: &str = r#"[{"name":"temp","kind":"number","min":15,"max":25},
        {"name":"mode","kind":"choice","of":["off","eco","on"]},{"name":"door","kind":"bit"}]"#;

    fn encoder(numbers: NumberCode) -> Encoder {
        Encoder::for_world(Feature::list(FEATURES).unwrap(), numbers, 32, &[]).unwrap()
    }

    #[test]
    fn the_same_row_has_the_same_meaning_in_both_codes() {
        for numbers in [NumberCode::Thermometer, NumberCode::Binary] {
            let encoder = encoder(numbers);
            let bits = encoder.encode_json(r#"{"temp":20.25,"door":true,"mode":"eco"}"#).unwrap();
            let column = &encoder.columns()[0];
            let (Code::Steps(thresholds) | Code::Level(thresholds)) = &column.code else {
                panic!("a number")
            };
            let reached =
                thresholds.iter().filter(|threshold| **threshold <= Decimal::parse("20.25").unwrap()).count();
            let level = match numbers {
                NumberCode::Thermometer => {
                    (0..column.width).filter(|bit| bits.get(usize::from(column.low + bit))).count()
                }
                NumberCode::Binary => bits.field(usize::from(column.low), usize::from(column.width)) as usize,
            };
            assert_eq!(level, reached);
            assert_eq!(bits.field(usize::from(encoder.columns()[1].low), 2), 1);
            assert!(bits.get(encoder.bits() - 1));
            assert_eq!(Encoder::from_json(&encoder.to_json()).unwrap(), encoder);
            let covered: u16 = encoder.fields().iter().map(|field| field.width).sum();
            assert_eq!(usize::from(covered), encoder.bits());
        }
    }

    #[test]
    fn wrong_rows_name_the_field() {
        let encoder = encoder(NumberCode::Binary);
        for (text, want) in [
            (r#"{"temp":30,"mode":"on","door":0}"#, "\"temp\" is \"30\"; it must be a number from 15 to 25"),
            (r#"{"temp":20,"mode":"on"}"#, "\"door\" is missing; it must be 0, 1, true or false"),
            (r#"{"temp":20,"mode":"on","door":0,"x":1}"#, "\"x\" is no feature; there are temp, mode, door"),
            (r#"{"temp":20,"mode":3,"door":0}"#, "\"mode\" is \"3\"; it must be one of off, eco, on"),
            (
                "\"01\"",
                "an observation is an object of named values: {\"temp\":15,\"mode\":\"off\",\"door\":0}",
            ),
        ] {
            assert_eq!(encoder.encode_json(text).unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn bits_and_levels_are_named() {
        let steps = encoder(NumberCode::Thermometer);
        assert_eq!(steps.fact(0, true).unwrap(), "temp >= 15.5");
        assert_eq!(steps.fact(0, false).unwrap(), "temp < 15.5");
        assert_eq!(steps.fact(steps.bits() - 1, true).unwrap(), "door = 1");
        let levels = encoder(NumberCode::Binary);
        let temp = &levels.columns()[0];
        let highest = usize::from(temp.low + temp.width) - 1;
        assert_eq!(levels.bit_is(temp, highest, true), "temp >= 23");
        assert_eq!(levels.fact(0, true), None);
        assert_eq!(steps.lines()[2], format!("feature door: bit {}", steps.bits() - 1));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_an_encoder_panic(text in "\\PC{0,60}", at in 0usize..200, letter in proptest::char::any()) {
            let good = encoder(NumberCode::Binary).to_json();
            let damaged: String = good.chars().enumerate().map(|(place, old)| if place == at { letter } else { old }).collect();
            let _ = Encoder::from_json(&text);
            if let Ok(read) = Encoder::from_json(&damaged) {
                let _ = read.encode_json(r#"{"temp":20,"mode":"on","door":0}"#);
                proptest::prop_assert_eq!(Encoder::from_json(&read.to_json()).unwrap(), read);
            }
        }
    }
}
