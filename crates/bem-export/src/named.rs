//! Named features in exported programs: from numbers, words and flags to the bits that the circuit reads.
//!
//! Python compares decimals, as the encoder does. C, Rust and JavaScript compare doubles, each of which stands for the
//! shortest decimal that reads as it: what is written for a threshold tells doubles apart exactly as the threshold tells these
//! decimals apart, however many digits it has. Must not know where the encoder comes from. Clauses: GLE-9.

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

/// Words that are no names in Rust.
const RESERVED_IN_RUST: &str = " abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait \
    true try type typeof unsafe unsized use virtual where while yield ";

/// A name for every feature, all different.
fn names(encoder: &Encoder, is_reserved: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (place, column) in encoder.columns().iter().enumerate() {
        let name = identifier(&column.feature.name);
        let is_taken = names.contains(&name) || is_reserved(&name);
        names.push(if is_taken { format!("{name}_{place}") } else { name });
    }
    names
}

/// The fields of the struct in C.
pub(crate) fn names_in_c(encoder: &Encoder) -> Vec<String> {
    names(encoder, |name| RESERVED.contains(&name))
}

/// The fields of the structure in Rust.
pub(crate) fn names_in_rust(encoder: &Encoder) -> Vec<String> {
    names(encoder, |name| RESERVED_IN_RUST.contains(&format!(" {name} ")))
}

pub(crate) fn words(column: &Column) -> &[String] {
    match &column.feature.kind {
        FeatureKind::Choice(words) => words,
        _ => &[],
    }
}

/// The words of a choice with their places, for a comment.
fn listed(column: &Column) -> String {
    let one = |(place, word): (usize, &String)| format!("{place} {}", crate::plain(word));
    words(column).iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

/// How a double is compared with a threshold, and with which double.
///
/// The double nearest to the threshold stands for a decimal at the threshold, above it or below it; in the last case, such
/// as for `temp > 30`, which is a threshold just above 30, only larger doubles reach it.
fn comparison(threshold: &Decimal) -> (&'static str, String) {
    let text = threshold.to_string();
    let nearest = text.parse::<f64>().map_or(text.clone(), |double| double.to_string());
    let is_below = Decimal::parse(&nearest).is_ok_and(|nearest| nearest < *threshold);
    let point = if nearest.contains('.') { "" } else { ".0" };
    (if is_below { ">" } else { ">=" }, nearest + point)
}

/// Whether a double reaches a threshold, in C. The cast drops the excess precision that literals have on some machines.
fn reaches(value: &str, threshold: &Decimal) -> String {
    let (sign, double) = comparison(threshold);
    format!("{value} {sign} (double){double}")
}

/// The same in Rust and in JavaScript.
fn reaches_plainly(value: &str, threshold: &Decimal) -> String {
    let (sign, double) = comparison(threshold);
    format!("{value} {sign} {double}")
}

fn comparisons(value: &str, thresholds: &[Decimal]) -> String {
    let each: Vec<String> =
        thresholds.iter().map(|threshold| format!("({})", reaches(value, threshold))).collect();
    if each.is_empty() { "0".to_string() } else { each.join(" + ") }
}

/// A struct of the features, its encoding, and a decision over it.
pub(crate) fn c(encoder: &Encoder) -> String {
    let names = names_in_c(encoder);
    let mut fields = String::new();
    let mut body = String::new();
    let mut refused = String::new();
    for (column, name) in encoder.columns().iter().zip(&names) {
        let kind = if matches!(column.feature.kind, FeatureKind::Number { .. }) { "double" } else { "int" };
        let _ = write!(fields, "    {kind} {name};");
        let listed = listed(column);
        fields.push_str(&if listed.is_empty() { "\n".to_string() } else { format!(" /* {listed} */\n") });
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

/// A structure of the features with its encoding, and a decision over it, in Rust.
pub(crate) fn rust(encoder: &Encoder, observation_bits: usize) -> String {
    let (mut fields, mut body, mut allowed) = (String::new(), String::new(), Vec::new());
    for (column, name) in encoder.columns().iter().zip(names_in_rust(encoder)) {
        let (value, low) = (format!("self.{name}"), usize::from(column.low));
        let listed = listed(column);
        let (kind, says) = match &column.feature.kind {
            FeatureKind::Number { min, max } => {
                let (least, above) = (reaches_plainly(&value, min), reaches_plainly(&value, &max.next_up()));
                allowed.push(format!("{least} && !({above})"));
                ("f64", format!("from {min} to {max}"))
            }
            FeatureKind::Choice(words) => {
                allowed.push(format!("{value} < {}", words.len()));
                ("u16", format!("the place of its word: {listed}"))
            }
            FeatureKind::Bit => ("bool", "yes or no".to_string()),
        };
        let title = crate::plain(&column.feature.name);
        let _ = write!(fields, "    /// {title}, {says}.\n    pub {name}: {kind},\n");
        let mut put = |bit: usize, text: &str| {
            let _ = writeln!(body, "        obs[{}] = {text};", low + bit);
        };
        match &column.code {
            Code::Steps(thresholds) => {
                for (bit, threshold) in thresholds.iter().enumerate() {
                    put(bit, &reaches_plainly(&value, threshold));
                }
            }
            Code::Words(places) => {
                places.iter().enumerate().for_each(|(bit, place)| put(bit, &format!("{value} == {place}")));
            }
            Code::Unread => {}
            Code::Bit => put(0, &value),
            Code::Level(thresholds) => {
                let each = thresholds.iter().map(|it| format!("({}) as u16", reaches_plainly(&value, it)));
                let level = each.collect::<Vec<_>>().join(" + ");
                let level = if level.is_empty() { "0".to_string() } else { level };
                (0..usize::from(column.width))
                    .for_each(|bit| put(bit, &format!("({level}) >> {bit} & 1 == 1")));
            }
            Code::Index => {
                (0..usize::from(column.width))
                    .for_each(|bit| put(bit, &format!("{value} >> {bit} & 1 == 1")));
            }
        }
    }
    let allowed = if allowed.is_empty() { "true".to_string() } else { allowed.join("\n            && ") };
    format!(
        "\n/// The observation as named values.\n#[derive(Clone, Copy, Debug, PartialEq)]\n\
         #[allow(dead_code, non_snake_case)]\npub struct Features {{\n{fields}}}\n\n\
         #[allow(dead_code, unused_mut, clippy::all)]\nimpl Features {{\n    \
         /// Whether every value is one that the world declares; of others the policy was never shown any.\n    \
         pub fn is_valid(&self) -> bool {{\n        {allowed}\n    }}\n\n    \
         /// The bits of the observation.\n    pub fn encode(&self) -> [bool; {observation_bits}] {{\n        \
         let mut obs = [false; {observation_bits}];\n{body}        obs\n    }}\n}}\n\n\
         #[allow(dead_code)]\nimpl Policy {{\n    /// The action for named values, and one step of memory.\n    \
         pub fn decide_features(&mut self, values: &Features) -> u16 {{\n        \
         self.decide(&values.encode())\n    }}\n}}\n"
    )
}

/// The encoding of an object of named values, and a decision over it, in JavaScript.
pub(crate) fn javascript(encoder: &Encoder) -> String {
    let quoted = |text: &String| literal_text(text);
    let mut rows = String::new();
    for column in encoder.columns() {
        let thresholds = match &column.code {
            Code::Steps(thresholds) | Code::Level(thresholds) => thresholds.as_slice(),
            _ => &[],
        };
        let reached: Vec<String> = thresholds
            .iter()
            .map(|threshold| format!("(v) => {}", reaches_plainly("v", threshold)))
            .collect();
        let code = match &column.code {
            Code::Steps(_) => format!("code: \"steps\", reached: [{}]", reached.join(", ")),
            Code::Level(_) => format!("code: \"level\", reached: [{}]", reached.join(", ")),
            Code::Index => "code: \"index\"".to_string(),
            Code::Words(places) => {
                let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                format!("code: \"words\", places: [{}]", places.join(", "))
            }
            Code::Bit => "code: \"bit\"".to_string(),
            Code::Unread => continue,
        };
        let allowed = match &column.feature.kind {
            FeatureKind::Number { min, max } => {
                let (least, above) = (reaches_plainly("v", min), reaches_plainly("v", &max.next_up()));
                format!("allowed: (v) => {least} && !({above}), says: \"a number from {min} to {max}\"")
            }
            FeatureKind::Choice(words) => {
                format!("words: [{}]", words.iter().map(quoted).collect::<Vec<_>>().join(", "))
            }
            FeatureKind::Bit => "words: [\"0\", \"1\", \"false\", \"true\"]".to_string(),
        };
        let name = quoted(&column.feature.name);
        let _ = writeln!(
            rows,
            "  {{ name: {name}, low: {}, width: {}, {code}, {allowed} }},",
            column.low, column.width
        );
    }
    format!("\nconst FEATURES = [\n{rows}];\n{NAMED_IN_JAVASCRIPT}")
}

const NAMED_IN_JAVASCRIPT: &str = r#"
/**
 * The observation bits of an object of named values: numbers as numbers, choices as their words, bits as 0, 1, true or false.
 * A value that is missing, or that the world does not declare, is a RangeError.
 */
export function encode(values) {
  const obs = new Uint8Array(OBS_BITS);
  for (const feature of FEATURES) {
    const value = values[feature.name];
    const isNumber = feature.code === "steps" || feature.code === "level";
    const text = typeof value === "string" ? value.trim() : String(value);
    const place = isNumber ? 0 : feature.words.indexOf(text);
    if (isNumber ? !(typeof value === "number" && feature.allowed(value)) : place < 0) {
      const says = isNumber ? feature.says : `one of ${feature.words.join(", ")}`;
      throw new RangeError(`the feature ${JSON.stringify(feature.name)} is ${text}; it must be ${says}`);
    }
    const reached = isNumber ? feature.reached.map((reaches) => (reaches(value) ? 1 : 0)) : [];
    const level = isNumber ? reached.reduce((sum, one) => sum + one, 0) : place;
    for (let bit = 0; bit < feature.width; bit += 1) {
      let shown = (level >> bit) & 1;
      if (feature.code === "steps") shown = reached[bit];
      if (feature.code === "words") shown = feature.places[bit] === place ? 1 : 0;
      obs[feature.low + bit] = shown;
    }
  }
  return obs;
}

/** The action of a Policy for an object of named values. */
export function decideFeatures(policy, values) {
  return policy.decide(encode(values));
}
"#;

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

/// A string literal of Python and of JavaScript.
pub(crate) fn literal_text(text: &str) -> String {
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


def decide_batch_features(rows, memory=None):
    """decide_batch for many dictionaries of named values, with numpy; a wrong value is a ValueError that names its row."""
    import numpy

    bits = []
    for number, values in enumerate(rows):
        try:
            bits.append(encode(values))
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from None
    return decide_batch(numpy.array(bits, dtype=numpy.int64).reshape(len(bits), OBS_BITS), memory)
"#;
