//! Named features in exported programs: from numbers, words and flags to the bits that the circuit reads.
//!
//! C and Python compare with the same decimal thresholds as the encoder does. A comparison of two doubles says the same as
//! one of the decimals that they were read from, as long as these have at most 15 digits.

use crate::identifier;
use bem_data::{Code, Column, Decimal, Encoder, FeatureKind};
use std::fmt::Write as _;

/// Words that are no names in C.
const RESERVED: &[&str] = &[
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
    "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
    "volatile", "while",
];

/// A name for every feature, all different.
fn names(encoder: &Encoder) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (place, column) in encoder.columns().iter().enumerate() {
        let name = identifier(&column.feature.name);
        let is_taken = names.contains(&name) || RESERVED.contains(&name.as_str());
        names.push(if is_taken { format!("{name}_{place}") } else { name });
    }
    names
}

fn words(column: &Column) -> &[String] {
    match &column.feature.kind {
        FeatureKind::Choice(words) => words,
        _ => &[],
    }
}

/// A threshold as a literal with a decimal point.
fn literal(threshold: &Decimal) -> String {
    let text = threshold.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn comparisons(value: &str, thresholds: &[Decimal]) -> String {
    let each: Vec<String> =
        thresholds.iter().map(|threshold| format!("({value} >= {})", literal(threshold))).collect();
    if each.is_empty() { "0".to_string() } else { each.join(" + ") }
}

/// A struct of the features, its encoding, and a decision over it.
pub(crate) fn c(encoder: &Encoder) -> String {
    let names = names(encoder);
    let mut fields = String::new();
    let mut body = String::new();
    for (column, name) in encoder.columns().iter().zip(&names) {
        let kind = if matches!(column.feature.kind, FeatureKind::Number { .. }) { "double" } else { "int" };
        let _ = write!(fields, "    {kind} {name};");
        let listed: Vec<String> = words(column)
            .iter()
            .enumerate()
            .map(|(place, word)| format!("{place} {}", crate::plain(word)))
            .collect();
        fields.push_str(&if listed.is_empty() {
            "\n".to_string()
        } else {
            format!(" /* {} */\n", listed.join(", "))
        });
        let value = format!("values->{name}");
        let low = column.low;
        match &column.code {
            Code::Steps(thresholds) => {
                for (place, threshold) in thresholds.iter().enumerate() {
                    let _ = writeln!(
                        body,
                        "    obs[{}] = {value} >= {};",
                        usize::from(low) + place,
                        literal(threshold)
                    );
                }
            }
            Code::Words(places) => {
                for (bit, place) in places.iter().enumerate() {
                    let _ = writeln!(body, "    obs[{}] = {value} == {place};", usize::from(low) + bit);
                }
            }
            Code::Unread => {}
            Code::Bit => {
                let _ = writeln!(body, "    obs[{low}] = {value} != 0;");
            }
            Code::Level(_) | Code::Index => {
                let level = match &column.code {
                    Code::Level(thresholds) => comparisons(&value, thresholds),
                    _ => value,
                };
                let _ = writeln!(body, "    level = (unsigned)({level});");
                for bit in 0..column.width {
                    let _ = writeln!(body, "    obs[{}] = level >> {bit} & 1u;", low + bit);
                }
            }
        }
    }
    let bits = encoder.bits().max(1);
    format!(
        "/* The observation as named values; a choice is the place of its word. */\ntypedef struct {{\n{fields}}} bem_features;\n\n\
         static inline void bem_encode(const bem_features *values, uint8_t *obs)\n{{\n    unsigned level = 0;\n    \
         (void)level;\n    (void)values;\n    (void)obs;\n{body}}}\n\n\
         static inline int bem_decide_features(bem_state *state, const bem_features *values)\n{{\n    \
         uint8_t obs[{bits} < BEM_OBS_BITS ? BEM_OBS_BITS : {bits}] = {{0}};\n    bem_encode(values, obs);\n    \
         return bem_decide(state, obs);\n}}\n\n"
    )
}

/// The encoding of a dictionary of named values, exact in decimals.
pub(crate) fn python(encoder: &Encoder) -> String {
    let quoted = literal_text;
    let mut rows = String::new();
    for column in encoder.columns() {
        let name = quoted(&column.feature.name);
        let texts = |thresholds: &[Decimal]| {
            thresholds.iter().map(|threshold| quoted(&threshold.to_string())).collect::<Vec<_>>().join(", ")
        };
        let code = match &column.code {
            Code::Steps(thresholds) => format!("\"steps\", [{}]", texts(thresholds)),
            Code::Level(thresholds) => format!("\"level\", [{}]", texts(thresholds)),
            Code::Index => {
                let all: Vec<String> = words(column).iter().map(|word| quoted(word)).collect();
                format!("\"index\", [{}]", all.join(", "))
            }
            Code::Words(places) => {
                let all: Vec<String> =
                    places.iter().map(|place| quoted(&words(column)[usize::from(*place)])).collect();
                format!("\"words\", [{}]", all.join(", "))
            }
            Code::Unread => continue,
            Code::Bit => "\"bit\", []".to_string(),
        };
        let _ = writeln!(rows, "    ({name}, {}, {}, {code}),", column.low, column.width);
    }
    format!("\n\nFEATURES = [\n{rows}]\n{NAMED}")
}

/// A Python string literal.
fn literal_text(text: &str) -> String {
    let escaped: String = text
        .chars()
        .flat_map(|sign| match sign {
            '"' | '\\' => vec!['\\', sign],
            sign if sign.is_control() => vec![' '],
            sign => vec![sign],
        })
        .collect();
    format!("\"{escaped}\"")
}

const NAMED: &str = r#"

def encode(values):
    """The observation bits of a dictionary of named values. Decimals are compared exactly."""
    from decimal import Decimal

    obs = [0] * OBS_BITS
    for name, low, width, code, listed in FEATURES:
        if name not in values:
            raise ValueError(f"the feature {name!r} is missing")
        value = values[name]
        if code == "steps":
            obs[low:low + width] = [int(Decimal(str(value)) >= Decimal(bound)) for bound in listed]
        elif code == "words":
            obs[low:low + width] = [int(str(value) == word) for word in listed]
        elif code == "bit":
            obs[low] = int(value in (True, 1, "1", "true"))
        else:
            if code == "level":
                level = sum(Decimal(str(value)) >= Decimal(bound) for bound in listed)
            else:
                if str(value) not in listed:
                    raise ValueError(f"the feature {name!r} is {value!r}; it must be one of {listed}")
                level = listed.index(str(value))
            obs[low:low + width] = [level >> bit & 1 for bit in range(width)]
    return obs


def decide_features(policy, values):
    """The action of a Policy for a dictionary of named values."""
    return policy.decide(encode(values))
"#;
