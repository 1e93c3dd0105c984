//! Rows of named values for self-tests: what the encoder shows for them and the policy's own circuit answers, one line a step.
//!
//! ```text
//! RESET VALUE ... VALUE OBSERVATION ACTION
//! ```
//!
//! VALUES are those of the features in order: a number as decimal text, a choice as the place of its word, a bit as a digit;
//! the rest is as in [`crate::vectors()`]. Every threshold is met, and the doubles just below and just above it; so is every word of
//! a choice. [`Replay`] is the part of a self-test that plays them. Clauses: GLE-9.

use crate::named::{literal_text, names_in_c, names_in_rust, words};
use crate::vectors::RESET_ONE_IN;
use crate::{FileNames, Program};
use bem_base::prng::Prng;
use bem_data::{Code, Column, Decimal, Encoder, FeatureKind};
use bem_synth::policy::Player;
use std::fmt::Write as _;

/// The rows; none where features have no names. The same for the same policy.
pub fn rows(program: &Program<'_>) -> Option<String> {
    let encoder = program.encoder?;
    let columns = encoder.columns();
    let telling: Vec<Vec<String>> = columns.iter().map(telling).collect();
    let mut prng = Prng::stream(0, "export/rows");
    let mut player = Player::new(program.policy);
    let mut text = String::new();
    let turns = telling.iter().enumerate().flat_map(|(place, texts)| texts.iter().map(move |it| (place, it)));
    for (number, (place, told)) in turns.enumerate() {
        let values: Vec<&String> = telling
            .iter()
            .enumerate()
            .map(|(other, texts)| match other == place {
                true => told,
                false => &texts[prng.below(texts.len() as u64) as usize],
            })
            .collect();
        let is_start = number == 0 || prng.below(RESET_ONE_IN) == 0;
        if is_start {
            player.begin();
        }
        let seen = encoder.encode(|name| {
            let place = columns.iter().position(|column| column.feature.name == name)?;
            let value = values[place].as_str();
            Some(match words(&columns[place]) {
                [] => value,
                words => words[value.parse::<usize>().ok()?].as_str(),
            })
        });
        let seen = seen.expect("every value is one that its feature takes");
        let _ = write!(text, "{} ", u8::from(is_start));
        values.iter().for_each(|value| {
            let _ = write!(text, "{value} ");
        });
        let shown = seen.to_text(program.observation_bits.max(1));
        let _ = writeln!(text, "{shown} {}", player.act(&seen));
    }
    Some(text)
}

/// Values that tell, of which there is always one: of a number its bounds, every threshold and the doubles around it.
fn telling(column: &Column) -> Vec<String> {
    let count = |count: usize| (0..count).map(|place| place.to_string()).collect();
    let (min, max) = match &column.feature.kind {
        FeatureKind::Number { min, max } => (*min, *max),
        FeatureKind::Choice(words) => return count(words.len()),
        FeatureKind::Bit => return count(2),
    };
    let thresholds: &[Decimal] = match &column.code {
        Code::Steps(thresholds) | Code::Level(thresholds) => thresholds,
        _ => &[],
    };
    let mut texts: Vec<String> = Vec::new();
    for place in [min, max].iter().chain(thresholds) {
        let Ok(double) = place.to_string().parse::<f64>() else { continue };
        let around = [double.next_down(), double, double.next_up()];
        texts.extend(around.iter().map(f64::to_string));
    }
    // A bound that is no double may lie beside all of them: then what lies between them is tried.
    texts.retain(|text| column.feature.value(text).is_ok());
    texts.sort();
    texts.dedup();
    if texts.is_empty() {
        texts.push(Decimal::between(min, max).to_string());
    }
    texts
}

/// What a self-test needs of named values: nothing where there are none.
pub(crate) struct Replay<'p> {
    program: &'p Program<'p>,
    files: &'p FileNames,
}

impl<'p> Replay<'p> {
    pub(crate) fn new(program: &'p Program<'p>, files: &'p FileNames) -> Replay<'p> {
        Replay { program, files }
    }

    /// A template with what every language names alike.
    fn filled(&self, template: &str, named: impl Fn(&Encoder) -> Vec<(&'static str, String)>) -> String {
        let Some(encoder) = self.program.encoder else { return String::new() };
        let bits = self.program.observation_bits;
        let shared = [
            ("@rows@", self.files.rows.clone()),
            ("@program@", self.files.program.clone()),
            ("@bits@", bits.to_string()),
            ("@shown@", bits.max(1).to_string()),
            ("@columns@", encoder.columns().len().to_string()),
        ];
        let all = shared.into_iter().chain(named(encoder));
        all.fold(template.to_string(), |text, (sign, put)| text.replace(sign, &put))
    }

    /// A function of C that plays the rows: how many they were, or a number below zero.
    pub(crate) fn c(&self) -> String {
        self.filled(IN_C, |encoder| {
            let names = names_in_c(encoder);
            let is_number = |column: &&Column| matches!(column.feature.kind, FeatureKind::Number { .. });
            let form = |column: &Column| if is_number(&column) { "%lf " } else { "%d " };
            vec![
                ("@form@", encoder.columns().iter().map(form).collect()),
                ("@fields@", names.iter().map(|name| format!("&v.{name}, ")).collect()),
                ("@read@", (names.len() + 3).to_string()),
            ]
        })
    }

    /// A function of Rust that plays the rows and says how many they were.
    pub(crate) fn rust(&self) -> String {
        self.filled(IN_RUST, |encoder| {
            let field = |(place, (column, name)): (usize, (&Column, String))| match column.feature.kind {
                FeatureKind::Bit => format!("{name}: words[{}] == \"1\", ", place + 1),
                _ => format!("{name}: words[{}].parse().unwrap(), ", place + 1),
            };
            let fields = encoder.columns().iter().zip(names_in_rust(encoder)).enumerate().map(field);
            vec![("@fields@", fields.collect())]
        })
    }

    /// The same in Python, and in JavaScript with its own template.
    pub(crate) fn python(&self) -> String {
        self.filled(IN_PYTHON, |encoder| vec![("@listed@", listed(encoder, ["None", "True", "(", ")"]))])
    }

    pub(crate) fn javascript(&self) -> String {
        self.filled(IN_JAVASCRIPT, |encoder| vec![("@listed@", listed(encoder, ["null", "true", "[", "]"]))])
    }
}

/// Every feature's name with its words, with nothing for a number and with a yes for a bit.
fn listed(encoder: &Encoder, [number, bit, open, close]: [&str; 4]) -> String {
    let one = |column: &Column| {
        let says = match &column.feature.kind {
            FeatureKind::Number { .. } => number.to_string(),
            FeatureKind::Bit => bit.to_string(),
            FeatureKind::Choice(words) => {
                format!("[{}]", words.iter().map(|word| literal_text(word)).collect::<Vec<_>>().join(", "))
            }
        };
        format!("    {open}{}, {says}{close},\n", literal_text(&column.feature.name))
    };
    encoder.columns().iter().map(one).collect()
}

const IN_C: &str = r#"
/* Plays named values: how many rows there were, or -1. */
static long play_rows(const char *name)
{
    FILE *file = fopen(name, "r");
    char text[@shown@ + 2];
    uint8_t obs[@shown@];
    int reset, action;
    long rows = 0;
    bem_state state;
    bem_features v;
    bem_reset(&state);
    if (!file) { perror(name); return -1; }
    while (fscanf(file, "%d @form@%@shown@s %d", &reset, @fields@text, &action) == @read@) {
        memset(obs, 0, sizeof obs);
        bem_encode(&v, obs);
        for (int bit = 0; bit < @bits@; bit++) {
            if (obs[bit] == text[bit] - '0') continue;
            printf("row %ld: bit %d is %d instead of %c\n", rows, bit, obs[bit], text[bit]);
            return -1;
        }
        if (!bem_features_valid(&v)) { printf("row %ld: refused instead of taken\n", rows); return -1; }
        if (reset) bem_reset(&state);
        const int got = bem_decide_features(&state, &v);
        if (got != action) { printf("row %ld: action %d instead of %d\n", rows, got, action); return -1; }
        rows++;
    }
    fclose(file);
    if (!rows) printf("no row to compare\n");
    return rows ? rows : -1;
}
"#;

const IN_RUST: &str = r#"
/// Plays named values and says how many rows there were.
fn play_rows() -> usize {
    let mut policy = policy::Policy::new();
    let mut rows = 0;
    for line in include_str!("@rows@").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let values = policy::Features { @fields@};
        let shown: String = values.encode().iter().map(|bit| if *bit { '1' } else { '0' }).collect();
        if shown != words[@columns@ + 1][..shown.len()] {
            println!("row {rows}: {shown} instead of {}", words[@columns@ + 1]);
            std::process::exit(1);
        }
        if !values.is_valid() {
            println!("row {rows}: refused instead of taken");
            std::process::exit(1);
        }
        if words[0] == "1" {
            policy.reset();
        }
        let got = policy.decide_features(&values);
        if got.to_string() != words[@columns@ + 2] {
            println!("row {rows}: action {got} instead of {}", words[@columns@ + 2]);
            std::process::exit(1);
        }
        rows += 1;
    }
    rows
}
"#;

const IN_PYTHON: &str = r#"
NAMED = [
@listed@]


def value_of(says, text):
    """A number, a word or a flag."""
    if says is None:
        return float(text)
    return text == "1" if says is True else says[int(text)]


policy.reset()
named, named_memories, named_wanted = [], [], []
for line in (here / "@rows@").read_text().splitlines():
    reset, *texts, shown, action = line.split(" ")
    if reset == "1":
        policy.reset()
    values = {name: value_of(says, text) for (name, says), text in zip(NAMED, texts)}
    bits = "".join(map(str, exported.encode(values)))
    if bits != shown[:@bits@]:
        sys.exit(f"row {len(named)}: {bits} instead of {shown}")
    named.append(values)
    named_memories.append(list(policy.memory))
    named_wanted.append(int(action))
    got = exported.decide_features(policy, values)
    if got != named_wanted[-1]:
        sys.exit(f"row {len(named) - 1}: action {got} instead of {action}")
if not named:
    sys.exit("no row to compare")
try:
    import numpy
except ImportError:
    pass
else:
    if exported.decide_batch_features(named, named_memories)[0].tolist() != named_wanted:
        sys.exit("many rows of named values at once: other actions instead of these")
"#;

const IN_JAVASCRIPT: &str = r#"
import { decideFeatures, encode } from "./@program@";

const NAMED = [
@listed@];
let rows = 0;
policy.reset();
for (const line of readFileSync(new URL("./@rows@", import.meta.url), "utf8").split("\n")) {
  if (line === "") continue;
  const [reset, ...texts] = line.split(" ");
  const [shown, action] = texts.splice(NAMED.length);
  const values = {};
  NAMED.forEach(([name, says], place) => {
    const text = texts[place];
    if (says === null) values[name] = Number(text);
    else values[name] = says === true ? text === "1" : says[Number(text)];
  });
  const bits = Array.from(encode(values)).join("");
  if (reset === "1") policy.reset();
  const got = decideFeatures(policy, values);
  if (bits !== shown.slice(0, OBS_BITS) || got !== Number(action)) {
    console.log(`row ${rows}: ${bits}, action ${got} instead of ${shown}, action ${action}`);
    process.exit(1);
  }
  rows += 1;
}
if (rows === 0) {
  console.log("no row to compare");
  process.exit(1);
}
"#;
