//! The values of a feature as far as its code tells them apart, which bits each of them shows, and sets of them in words.
//!
//! A value is a number from zero on: how many thresholds a number reaches, the place of a word, or the bit itself. Only
//! values that the feature can take are listed, so that whoever asks sees nothing that cannot occur. Must not know
//! circuits. Clauses: GLE-9.

use crate::feature::FeatureKind;
use crate::{Code, Column, Decimal};

impl Column {
    /// The values that can occur, rising. A feature that nobody looks at has one.
    pub fn values(&self) -> Vec<usize> {
        match (&self.code, &self.feature.kind) {
            (Code::Steps(thresholds) | Code::Level(thresholds), FeatureKind::Number { min, max }) => {
                let is_taken = |level: &usize| {
                    let low = level.checked_sub(1).map_or(*min, |below| thresholds[below].max(*min));
                    low <= *max && thresholds.get(*level).is_none_or(|high| low < *high)
                };
                (0..=thresholds.len()).filter(is_taken).collect()
            }
            (Code::Index | Code::Words(_), FeatureKind::Choice(words)) => (0..words.len()).collect(),
            (Code::Bit, _) => vec![0, 1],
            _ => vec![0],
        }
    }

    /// Whether a value sets this bit of the feature's own, counted from its first.
    pub fn shows(&self, value: usize, bit: usize) -> bool {
        match &self.code {
            Code::Steps(_) => bit < value,
            Code::Level(_) | Code::Index => value >> bit & 1 == 1,
            Code::Words(places) => places.get(bit).is_some_and(|word| usize::from(*word) == value),
            Code::Bit => value == 1,
            Code::Unread => false,
        }
    }

    /// Whether neighbouring values are neighbours in meaning.
    pub fn is_number(&self) -> bool {
        matches!(self.code, Code::Steps(_) | Code::Level(_))
    }

    /// What it means that the value is one of these, which rise: a comparison, a range, or words.
    pub fn among(&self, chosen: &[usize]) -> String {
        self.among_of(&self.values(), chosen)
    }

    /// The same where only these values matter, which rise too: what is said may hold of others or not.
    pub fn among_of(&self, all: &[usize], chosen: &[usize]) -> String {
        let name = &self.feature.name;
        if chosen.is_empty() {
            return format!("{name} is impossible");
        }
        if chosen.len() == all.len() {
            return format!("{name} is anything");
        }
        match (&self.code, &self.feature.kind) {
            (Code::Steps(thresholds) | Code::Level(thresholds), _) => {
                let ranges: Vec<String> = (runs(all, chosen).into_iter())
                    .map(|(first, last)| self.range(thresholds, all, first, last))
                    .collect();
                match ranges.as_slice() {
                    [one] => one.clone(),
                    several => format!("({})", several.join(" or ")),
                }
            }
            (_, FeatureKind::Choice(words)) => {
                let named = |values: &mut dyn Iterator<Item = usize>| -> Vec<&str> {
                    values.filter_map(|value| words.get(value).map(String::as_str)).collect()
                };
                let those = named(&mut chosen.iter().copied());
                let others = named(&mut all.iter().copied().filter(|value| !chosen.contains(value)));
                match (those.as_slice(), others.as_slice()) {
                    ([one], _) => format!("{name} = {one}"),
                    (_, [one]) => format!("{name} != {one}"),
                    (those, others) if those.len() <= others.len() => {
                        format!("{name} in {{{}}}", those.join(", "))
                    }
                    (_, others) => format!("{name} not in {{{}}}", others.join(", ")),
                }
            }
            _ => format!("{name} = {}", chosen[0]),
        }
    }

    /// The values from one to another, both counted, as a comparison.
    fn range(&self, thresholds: &[Decimal], all: &[usize], first: usize, last: usize) -> String {
        let name = &self.feature.name;
        let low = (Some(&first) != all.first()).then(|| thresholds[first - 1]);
        let high = (Some(&last) != all.last()).then(|| thresholds[last]);
        match (low, high) {
            (Some(low), Some(high)) => format!("{low} <= {name} < {high}"),
            (Some(low), None) => format!("{name} >= {low}"),
            (None, Some(high)) => format!("{name} < {high}"),
            (None, None) => format!("{name} is anything"),
        }
    }
}

/// Neighbours among the chosen values, drawn together: the first and the last of each run. `all` are the values that
/// there are; both rise.
pub fn runs(all: &[usize], chosen: &[usize]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut is_open = false;
    for value in all {
        match (chosen.binary_search(value).is_ok(), runs.last_mut()) {
            (true, Some((_, last))) if is_open => *last = *value,
            (true, _) => {
                runs.push((*value, *value));
                is_open = true;
            }
            (false, _) => is_open = false,
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use crate::feature::Value;
    use crate::{Code, Decimal, Encoder, Feature, NumberCode};

    const FEATURES: &str = r#"[{"name":"temp","kind":"number","min":0,"max":10},
        {"name":"mode","kind":"choice","of":["off","eco","on"]},{"name":"door","kind":"bit"}]"#;

    #[test]
    fn a_value_shows_the_bits_that_the_encoder_writes() {
        for numbers in [NumberCode::Thermometer, NumberCode::Binary] {
            let encoder = Encoder::for_world(Feature::list(FEATURES).unwrap(), numbers, 32, &[]).unwrap();
            for tenth in 0..=100 {
                let number = Decimal::parse(&format!("{}.{}", tenth / 10, tenth % 10)).unwrap();
                let row =
                    [Value::Number(number), Value::Choice(tenth as u16 % 3), Value::Bit(tenth % 2 == 1)];
                let bits = encoder.encode_values(&row);
                for column in encoder.columns() {
                    let shown = |value: &usize| {
                        (0..usize::from(column.width))
                            .all(|bit| column.shows(*value, bit) == bits.get(usize::from(column.low) + bit))
                    };
                    let values = column.values();
                    assert_eq!(values.iter().filter(|value| shown(value)).count(), 1, "{column:?}");
                }
            }
        }
    }

    #[test]
    fn sets_of_values_are_said_as_a_person_would() {
        let features = Feature::list(FEATURES).unwrap();
        let number = |text: &str| Decimal::parse(text).unwrap();
        // Of these thresholds the first is always reached and the last never is.
        let thresholds = ["0", "2", "5.5", "8", "11"].map(number).to_vec();
        let codes = [Code::Steps(thresholds), Code::Index, Code::Bit];
        let encoder = Encoder::new(features.into_iter().zip(codes).collect()).unwrap();
        let [temp, mode, door] = encoder.columns() else { panic!("three columns") };
        assert_eq!(temp.values(), [1, 2, 3, 4]);
        for (column, values, words) in [
            (temp, &[1][..], "temp < 2"),
            (temp, &[2, 3], "2 <= temp < 8"),
            (temp, &[3, 4], "temp >= 5.5"),
            (temp, &[1, 4], "(temp < 2 or temp >= 8)"),
            (temp, &[1, 2, 3, 4], "temp is anything"),
            (temp, &[], "temp is impossible"),
            (mode, &[1], "mode = eco"),
            (mode, &[0, 2], "mode != eco"),
            (door, &[0], "door = 0"),
        ] {
            assert_eq!(column.among(values), words);
        }
        // Where 2 <= temp < 5.5 does not matter, one comparison tells the others apart.
        assert_eq!(temp.among_of(&[1, 3, 4], &[3, 4]), "temp >= 5.5");
        assert_eq!(temp.among_of(&[1, 3, 4], &[1]), "temp < 2");
    }
}
