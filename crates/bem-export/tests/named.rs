//! Named features of exported programs: C, Rust, JavaScript and Python encode and decide as the encoder and the circuit do, on
//! more than a hundred thousand rows with every threshold, its neighbours and the bounds among them. Clauses: GLE-9.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Signal};
use bem_circuit::testing::random_dense_netlist;
use bem_data::{Code, Decimal, Encoder, Feature, FeatureKind};
use bem_export::{FileNames, Language, Program, rows as told_rows, self_test, vectors, write};
use bem_synth::policy::{Player, Policy, action_bits};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Rows whose numbers are doubles: for C, Rust and JavaScript, and for floats of Python.
const DOUBLES: usize = 100_000;
/// Rows whose numbers are text with up to 18 digits behind the point, for Python.
const TEXTS: usize = 20_000;
const MEMORY: usize = 3;
const ACTIONS: u16 = 6;

const FEATURES: &str = r#"[
    {"name":"temp °C","kind":"number","min":-40,"max":60},
    {"name":"int","kind":"choice","of":["off","\"eco\"","back\\slash","tab\there","*/"]},
    {"name":"door","kind":"bit"},
    {"name":"size","kind":"number","min":0,"max":1},
    {"name":"class","kind":"choice","of":["a","b","c","d"]},
    {"name":"big","kind":"number","min":-1000000000000000,"max":1000000000000000},
    {"name":"tiny","kind":"number","min":0,"max":0.000000000000001},
    {"name":"of three","kind":"choice","of":3},
    {"name":"unused","kind":"bit"}]"#;

fn number(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// Thresholds as grids, data and rules make them: short ones, one just above 30 (`temp > 30`), one between two doubles
/// that differ in their last digit, one with more digits than a double has, and both bounds.
fn encoder() -> Encoder {
    let all = |texts: &[&str]| texts.iter().map(|text| number(text)).collect::<Vec<Decimal>>();
    let mut temp = all(&["-40", "-0.7", "0", "0.3", "20.3", "29.999999999999996", "60"]);
    temp.insert(6, number("30").next_up());
    let codes = vec![
        Code::Level(temp),
        Code::Index,
        Code::Bit,
        Code::Steps(all(&["0.1", "0.30000000000000001", "0.333333333333333333", "0.5", "1"])),
        Code::Words(vec![0, 2]),
        Code::Steps(all(&["-999999999999999.5", "-0.1", "123456789.123456789123456789", "1000000000000000"])),
        Code::Level(all(&["0.000000000000000001", "0.000000000000000012", "0.000000000000000123"])),
        Code::Index,
        Code::Unread,
    ];
    let features = Feature::list(FEATURES).unwrap();
    Encoder::new(features.into_iter().zip(codes).collect()).unwrap()
}

fn random_policy(bits: usize) -> Policy {
    let mut prng = Prng::stream(9, "named");
    let inputs = bits + MEMORY;
    let circuit = random_dense_netlist(&mut prng, inputs, 8 * inputs, action_bits(ACTIONS) + MEMORY);
    let mut builder = Builder::new(inputs);
    let all: Vec<Signal> = (0..inputs).map(Signal::input).collect();
    let outputs = builder.embed(&circuit, &all);
    let (action, next) = outputs.split_at(action_bits(ACTIONS));
    Policy::close(builder, bits, ACTIONS, action, next).unwrap()
}

/// Numbers worth trying for a feature, as text: both bounds, and every threshold with what lies just below and just above
/// it: its neighbours among doubles, or those with 18 digits. Each is one that the feature takes.
fn telling(feature: &Feature, thresholds: &[Decimal], are_doubles: bool) -> Vec<String> {
    let FeatureKind::Number { min, max } = &feature.kind else { return Vec::new() };
    let places: Vec<Decimal> = [*min, *max].iter().chain(thresholds).copied().collect();
    let mut texts = Vec::new();
    for place in places {
        if are_doubles {
            let double: f64 = place.to_string().parse().unwrap();
            let (down, up) = (double.next_down(), double.next_up());
            let around = [down.next_down(), down, double, up, up.next_up()];
            texts.extend(around.iter().map(f64::to_string));
        } else {
            let below = place.plus(number("-0.000000000000000001"));
            texts.extend([below, place, place.next_up()].iter().map(ToString::to_string));
        }
    }
    texts.retain(|text| feature.value(text).is_ok());
    texts.sort();
    texts.dedup();
    texts
}

/// Some number that the feature takes.
fn any(prng: &mut Prng, feature: &Feature) -> String {
    let FeatureKind::Number { min, max } = &feature.kind else { return String::new() };
    let text = Decimal::at_share(*min, *max, prng.below(1_000_001) as u32, 1_000_000).to_string();
    text.parse::<f64>().unwrap().to_string()
}

/// Rows as JSON objects for Python and as fields for C, each with the bits and the action that are wanted.
fn rows(encoder: &Encoder, policy: &Policy, count: usize, are_doubles: bool) -> (String, String) {
    let mut prng = Prng::stream(3, "rows");
    let mut player = Player::new(policy);
    let columns = encoder.columns();
    let telling: Vec<Vec<String>> = columns
        .iter()
        .map(|column| match &column.code {
            Code::Steps(thresholds) | Code::Level(thresholds) => {
                telling(&column.feature, thresholds, are_doubles)
            }
            _ => Vec::new(),
        })
        .collect();
    let (mut python, mut c) = (String::new(), String::new());
    for row in 0..count {
        let mut values = Vec::new();
        let mut fields = String::new();
        for (column, texts) in columns.iter().zip(&telling) {
            let (json, field) = match &column.feature.kind {
                FeatureKind::Number { .. } => {
                    let text = match prng.below(4) {
                        0 => any(&mut prng, &column.feature),
                        // Every telling value is met in turn, beside chance values of the others.
                        1 => texts[row % texts.len()].clone(),
                        _ => texts[prng.below(texts.len() as u64) as usize].clone(),
                    };
                    (if are_doubles { text.clone() } else { format!("\" {text} \"") }, text)
                }
                FeatureKind::Choice(words) => {
                    let place = prng.below(words.len() as u64) as usize;
                    // What these words and names have in them is escaped alike in Rust and in JSON.
                    (format!("{:?}", words[place]), place.to_string())
                }
                FeatureKind::Bit => {
                    let forms = [["0", "1"], ["false", "true"], ["\"0\"", "\"1\""]];
                    let value = prng.below(2) as usize;
                    (forms[prng.below(3) as usize][value].to_string(), value.to_string())
                }
            };
            values.push(format!("{:?}:{json}", column.feature.name));
            let _ = write!(fields, "{field} ");
        }
        let object = format!("{{{}}}", values.join(","));
        let bits = encoder.encode_json(&object).unwrap();
        let (shown, action) = (bits.to_text(encoder.bits()), player.act(&bits));
        let _ = writeln!(python, "[{object},\"{shown}\",{action}]");
        let _ = writeln!(c, "{fields}{shown} {action}");
    }
    (python, c)
}

const C_TEST: &str = r#"#include "named.h"
#include <math.h>
#include <stdio.h>

int main(void)
{
    bem_features v, wrong;
    bem_state state;
    char wanted[300];
    int action, rows = 0;
    bem_reset(&state);
    while (scanf("%lf %d %d %lf %d %lf %lf %d %d %299s %d", &v.temp__C, &v.int_1, &v.door, &v.size, &v.class_4,
                 &v.big, &v.tiny, &v.of_three, &v.unused, wanted, &action) == 11) {
        uint8_t obs[BEM_OBS_BITS] = {0};
        bem_encode(&v, obs);
        for (int bit = 0; bit < BEM_OBS_BITS; bit++) {
            if (obs[bit] != wanted[bit] - '0') {
                printf("row %d: bit %d is %d\n", rows, bit, obs[bit]);
                return 1;
            }
        }
        if (!bem_features_valid(&v) || bem_decide_features(&state, &v) != action) {
            printf("row %d: not action %d\n", rows, action);
            return 1;
        }
        rows++;
    }
#define REFUSED(field, value) wrong = v; wrong.field = value; if (bem_features_valid(&wrong)) return 2
    REFUSED(temp__C, 60.00000000000001);
    REFUSED(temp__C, -40.00000000000001);
    REFUSED(temp__C, NAN);
    REFUSED(big, INFINITY);
    REFUSED(int_1, 5);
    REFUSED(int_1, -1);
    REFUSED(of_three, 3);
    REFUSED(door, 2);
    printf("%d rows\n", rows);
    return 0;
}
"#;

const PYTHON_TEST: &str = r#"import json
import sys

import named

for file in sys.argv[1:]:
    policy = named.Policy()
    with open(file, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    memories = []
    for number, (values, wanted, action) in enumerate(rows):
        del values["unused"]
        memories.append(list(policy.memory))
        bits = "".join(map(str, named.encode(values)))
        assert bits == wanted, (number, values, bits, wanted)
        assert named.decide_features(policy, values) == action, (number, values)
    actions, _ = named.decide_batch_features([values for values, _, _ in rows], memories)
    assert actions.tolist() == [action for _, _, action in rows], "many rows at once"
    print(len(rows), "rows")

try:
    named.decide_batch_features([rows[0][0], {**rows[0][0], "door": 2}])
except ValueError as error:
    assert str(error).startswith("row 1: the feature 'door'"), error
else:
    sys.exit("a wrong row is taken")

good = rows[0][0]
for name, value in [
    ("temp °C", 60.00000000000001), ("temp °C", "-40.000000000000000001"), ("temp °C", float("nan")), ("big", "inf"),
    ("temp °C", "warm"), ("int", "on"), ("class", "e"), ("of three", 3), ("door", 2), ("door", "yes"),
]:
    try:
        named.encode({**good, name: value})
    except ValueError as error:
        assert repr(name) in str(error), error
    else:
        sys.exit(f"{name} = {value!r} is taken")
"#;

const RUST_TEST: &str = r#"#[path = "named.rs"]
mod named;

use named::{Features, Policy};

fn main() {
    let mut policy = Policy::new();
    let mut rows = 0;
    let mut last = None;
    for line in include_str!("rows.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words[place].parse::<f64>().unwrap();
        let place = |place: usize| words[place].parse::<u16>().unwrap();
        let bit = |place: usize| words[place] == "1";
        let values = Features {
            temp__C: number(0), int: place(1), door: bit(2), size: number(3), class: place(4), big: number(5),
            tiny: number(6), of_three: place(7), unused: bit(8),
        };
        let shown: String = values.encode().iter().map(|bit| if *bit { '1' } else { '0' }).collect();
        assert_eq!(shown, words[9], "row {rows}");
        assert!(values.is_valid(), "row {rows}");
        assert_eq!(policy.decide_features(&values).to_string(), words[10], "row {rows}");
        last = Some(values);
        rows += 1;
    }
    let good = last.unwrap();
    for wrong in [
        Features { temp__C: 60.00000000000001, ..good },
        Features { temp__C: -40.00000000000001, ..good },
        Features { temp__C: f64::NAN, ..good },
        Features { big: f64::INFINITY, ..good },
        Features { int: 5, ..good },
        Features { of_three: 3, ..good },
    ] {
        assert!(!wrong.is_valid(), "{wrong:?}");
    }
    println!("{rows} rows");
}
"#;

const JAVASCRIPT_TEST: &str = r#"import { readFileSync } from "node:fs";
import { Policy, decideFeatures, encode } from "./named.mjs";

const policy = new Policy();
let rows = 0;
let good = null;
for (const line of readFileSync("doubles.json", "utf8").split("\n")) {
  if (line === "") continue;
  const [values, wanted, action] = JSON.parse(line);
  delete values.unused;
  const bits = Array.from(encode(values)).join("");
  if (bits !== wanted) throw new Error(`row ${rows}: ${bits} instead of ${wanted}`);
  if (decideFeatures(policy, values) !== action) throw new Error(`row ${rows}: not action ${action}`);
  good = values;
  rows += 1;
}
for (const [name, value] of [
  ["temp °C", 60.00000000000001], ["temp °C", -40.00000000000001], ["temp °C", NaN], ["temp °C", "warm"],
  ["temp °C", undefined], ["big", Infinity], ["int", "on"], ["class", "e"], ["of three", 3], ["door", 2], ["door", "yes"],
]) {
  let refused = null;
  try {
    encode({ ...good, [name]: value });
  } catch (error) {
    refused = error;
  }
  if (!(refused instanceof RangeError && refused.message.includes(name))) throw new Error(`${name}: ${refused}`);
}
console.log(`${rows} rows`);
"#;

fn printed(folder: &Path, command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn named_features_are_encoded_and_decided_by_exported_programs_as_they_were_learned() {
    let encoder = encoder();
    let policy = random_policy(encoder.bits());
    let program = Program {
        policy: &policy,
        observation_bits: encoder.bits(),
        horizon: None,
        name: "named",
        encoder: Some(&encoder),
        provenance: &[],
    };
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let (python, c) = rows(&encoder, &policy, DOUBLES, true);
    let (texts, _) = rows(&encoder, &policy, TEXTS, false);
    save("named.h", &write(Language::C, &program));
    save("test.c", C_TEST);
    save("rows.txt", &c);
    save("named.rs", &write(Language::Rust, &program));
    save("test.rs", RUST_TEST);
    save("named.mjs", &write(Language::JavaScript, &program));
    save("test.mjs", JAVASCRIPT_TEST);
    save("named.py", &write(Language::Python, &program));
    save("test.py", PYTHON_TEST);
    save("doubles.json", &python);
    save("texts.json", &texts);
    let flags = "-std=c99 -O1 -Wall -Wextra -Werror -pedantic";
    let mut compilers = vec![format!("cc {flags}"), format!("c++ {}", flags.replace("c99", "c++11"))];
    if cfg!(target_arch = "x86_64") {
        // Literals and operations with excess precision.
        compilers.push(format!("cc {flags} -mfpmath=387"));
    }
    for compiler in compilers {
        let said = printed(folder.path(), &format!("{compiler} test.c -o test && ./test < rows.txt"));
        assert_eq!(said, format!("{DOUBLES} rows\n"), "{compiler}");
    }
    let rust = "rustc --edition 2021 -D warnings -O test.rs -o test_rust && ./test_rust";
    for command in [rust, "node test.mjs"] {
        assert_eq!(printed(folder.path(), command), format!("{DOUBLES} rows\n"), "{command}");
    }
    let said = printed(folder.path(), "python3 test.py doubles.json texts.json");
    assert_eq!(said, format!("{DOUBLES} rows\n{TEXTS} rows\n"));
}

#[test]
fn self_tests_play_named_values_and_find_a_threshold_that_is_another() {
    let encoder = encoder();
    let policy = random_policy(encoder.bits());
    let program = Program {
        policy: &policy,
        observation_bits: encoder.bits(),
        horizon: None,
        name: "named",
        encoder: Some(&encoder),
        provenance: &[],
    };
    let told = told_rows(&program).unwrap();
    // Every threshold is met itself, and so is the double just below it.
    let temps: Vec<&str> = told.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    for wanted in ["-0.7", "-0.7000000000000001", "29.999999999999996", "30", "30.000000000000004", "60"] {
        assert!(temps.contains(&wanted), "{wanted}");
    }
    let count = told.lines().count();
    for language in Language::ALL.into_iter().filter(|language| language.takes_names()) {
        let folder = tempfile::tempdir().unwrap();
        let save = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let files = FileNames::of(language, &format!("named.{}", language.extension()));
        save(&files.program, &write(language, &program));
        save(&files.test, &self_test(language, &program, &files));
        save(&files.vectors, &vectors(&program, 500));
        save(&files.rows, &told);
        let said = printed(folder.path(), &files.command(language));
        assert!(said.starts_with("500 steps") && said.trim_end().ends_with("ok"), "{said}");
        assert!(said.contains(&format!("{count} rows of named values")), "{said}");
        // The bits are right still where one comparison of the shipped file is not: only the rows tell.
        let spoiled = |text: String| match language {
            Language::Python => text.replacen("Decimal(\"20.3\")", "Decimal(\"20.4\")", 1),
            _ => text.replacen(">= (double)20.3", ">= (double)20.4", 1).replacen(">= 20.3", ">= 20.4", 1),
        };
        let (whole, changed) = (write(language, &program), spoiled(write(language, &program)));
        assert_ne!(whole, changed, "{}", language.name());
        save(&files.program, &changed);
        let output =
            Command::new("sh").args(["-c", &files.command(language)]).current_dir(folder.path()).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(" instead of "), "{}: {said}", language.name());
    }
}

#[test]
fn a_module_of_verilog_says_what_its_bits_are_and_that_it_compares_nothing() {
    let encoder = encoder();
    let policy = random_policy(encoder.bits());
    let (provenance, observation_bits) = (&[][..], encoder.bits());
    let encoder = Some(&encoder);
    let program =
        Program { policy: &policy, observation_bits, horizon: None, name: "named", encoder, provenance };
    let module = write(Language::Verilog, &program);
    assert!(
        module.contains("// feature size: bits ") && module.contains("compared outside of it"),
        "{module}"
    );
}

#[test]
fn a_comparison_in_c_tells_doubles_apart_as_the_threshold_tells_their_decimals_apart() {
    let encoder = encoder();
    let policy = random_policy(encoder.bits());
    let program = Program {
        policy: &policy,
        observation_bits: encoder.bits(),
        horizon: None,
        name: "named",
        encoder: Some(&encoder),
        provenance: &[],
    };
    let header = write(Language::C, &program);
    // `temp > 30`, the threshold between 0.3 and 0.30000000000000004, and plain ones.
    for wanted in [
        "values->temp__C > (double)30.0",
        "values->size > (double)0.3;",
        "values->size > (double)0.3333333333333333;",
        "values->size >= (double)0.5;",
    ] {
        assert!(header.contains(wanted), "{wanted}: {header}");
    }
}
