//! Named features in exported programs: from numbers, words and flags to the bits that the circuit reads.
//!
//! Python compares decimals, as the encoder does. C compares doubles, each of which stands for the shortest decimal that
//! reads as it: what is written for a threshold tells doubles apart exactly as the threshold tells these decimals apart,
//! however many digits it has. Must not know where the encoder comes from. Clauses: GLE-9.

use crate::identifier;
use bem_data::{Code, Column, Decimal, Encoder, FeatureKind};
use std::fmt::Write as _;

/// Words that are no names in C, or in C++, which takes the header too.
const RESERVED: &[&str] = &[
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "and",
    "bool",
    "catch",
    "class",
    "delete",
    "explicit",
    "export",
    "false",
    "friend",
    "mutable",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typename",
    "using",
    "virtual",
    "xor",
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

/// Whether a double reaches a threshold, in C.
///
/// The double nearest to the threshold stands for a decimal at the threshold, above it or below it; in the last case, such
/// as for `temp > 30`, which is a threshold just above 30, only larger doubles reach it. The cast drops the excess
/// precision that literals have on some machines.
fn reaches(value: &str, threshold: &Decimal) -> String {
    let text = threshold.to_string();
    let nearest = text.parse::<f64>().map_or(text.clone(), |double| double.to_string());
    let is_below = Decimal::parse(&nearest).is_ok_and(|nearest| nearest < *threshold);
    let point = if nearest.contains('.') { "" } else { ".0" };
    format!("{value} {} (double){nearest}{point}", if is_below { ">" } else { ">=" })
}

fn comparisons(value: &str, thresholds: &[Decimal]) -> String {
    let each: Vec<String> =
        thresholds.iter().map(|threshold| format!("({})", reaches(value, threshold))).collect();
    if each.is_empty() { "0".to_string() } else { each.join(" + ") }
}

/// A struct of the features, its encoding, and a decision over it.
pub(crate) fn c(encoder: &Encoder) -> String {
    let names = names(encoder);
    let mut fields = String::new();
    let mut body = String::new();
    let mut refused = String::new();
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
        let allowed = match &column.feature.kind {
            FeatureKind::Number { min, max } => {
                format!("{} && !({})", reaches(&value, min), reaches(&value, &max.next_up()))
            }
            FeatureKind::Choice(words) => format!("0 <= {value} && {value} < {}", words.len()),
            FeatureKind::Bit => format!("({value} == 0 || {value} == 1)"),
        };
        let _ = writeln!(refused, "    if (!({allowed})) return 0;");
        match &column.code {
            Code::Steps(thresholds) => {
                for (place, threshold) in thresholds.iter().enumerate() {
                    let _ = writeln!(
                        body,
                        "    obs[{}] = {};",
                        usize::from(low) + place,
                        reaches(&value, threshold)
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
         /* Whether every value is one that the world declares; of others the policy was never shown any. */\n\
         static inline int bem_features_valid(const bem_features *values)\n{{\n{refused}    return 1;\n}}\n\n\
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
            thresholds
                .iter()
                .map(|threshold| format!("Decimal(\"{threshold}\")"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let all = || words(column).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
        let allowed = match &column.feature.kind {
            FeatureKind::Number { min, max } => texts(&[*min, *max]),
            _ => all(),
        };
        let code = match &column.code {
            Code::Steps(thresholds) => format!("\"steps\", [{}]", texts(thresholds)),
            Code::Level(thresholds) => format!("\"level\", [{}]", texts(thresholds)),
            Code::Index => format!("\"index\", [{}]", all()),
            Code::Words(places) => {
                let all: Vec<String> =
                    places.iter().map(|place| quoted(&words(column)[usize::from(*place)])).collect();
                format!("\"words\", [{}]", all.join(", "))
            }
            Code::Unread => continue,
            Code::Bit => "\"bit\", []".to_string(),
        };
        let _ = writeln!(rows, "    ({name}, {}, {}, {code}, [{allowed}]),", column.low, column.width);
    }
    format!("\n\nfrom decimal import Decimal, InvalidOperation\n\nFEATURES = [\n{rows}]\n{NAMED}")
}

/// A Python string literal.
fn literal_text(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|sign| match sign {
            '"' | '\\' => format!("\\{sign}"),
            sign if sign.is_control() => format!("\\x{:02x}", u32::from(sign)),
            sign => sign.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

const NAMED: &str = r#"

def _number(name, value, low, high):
    """The value as a decimal: a float stands for the shortest text that reads as it, text for itself."""
    try:
        number = Decimal(str(value))
        if low <= number <= high:
            return number
    except InvalidOperation:
        pass
    raise ValueError(f"the feature {name!r} is {value!r}; it must be a number from {low} to {high}")


def encode(values):
    """The observation bits of a dictionary of named values. Decimals are compared exactly.

    A value that is missing, or that the world does not declare, is a ValueError.
    """
    obs = [0] * OBS_BITS
    for name, low, width, code, listed, allowed in FEATURES:
        if name not in values:
            raise ValueError(f"the feature {name!r} is missing")
        value = values[name]
        if isinstance(value, str):
            value = value.strip()
        if code in ("steps", "level"):
            number = _number(name, value, *allowed)
            reached = [int(number >= threshold) for threshold in listed]
        elif code == "bit":
            if value not in (False, True, "0", "1", "false", "true"):
                raise ValueError(f"the feature {name!r} is {value!r}; it must be 0, 1, true or false")
            reached = [int(value in (True, "1", "true"))]
        elif str(value) not in allowed:
            raise ValueError(f"the feature {name!r} is {value!r}; it must be one of {allowed}")
        else:
            reached = [int(str(value) == word) for word in listed]
        if code == "level":
            reached = [sum(reached) >> bit & 1 for bit in range(width)]
        elif code == "index":
            reached = [reached.index(1) >> bit & 1 for bit in range(width)]
        obs[low:low + width] = reached
    return obs


def decide_features(policy, values):
    """The action of a Policy for a dictionary of named values."""
    return policy.decide(encode(values))
"#;
