//! `bem explain` as a user meets it: rules, states, reasons, and the same in the report.

mod support;

use serde_json::Value;
use support::{bem, solved, text};

#[test]
fn a_parity_is_one_exact_rule_and_its_reason_is_every_bit() {
    let folder = solved(&["parity", "--param", "n=6"]);
    let explained = bem(folder.path(), &["explain", "kept"]);
    assert!(explained.status.success(), "{explained:?}");
    let said = text(&explained.stdout);
    assert!(said.contains("exact: the same as the circuit on all 64 inputs"), "{said}");
    assert!(said.contains("number of bits 0-5 are 1: action"), "{said}");
    let object: Value =
        serde_json::from_slice(&bem(folder.path(), &["explain", "kept", "--json"]).stdout).expect("JSON");
    assert_eq!(
        (object["exact"].as_bool(), object["action"]["rules"].as_array().map(Vec::len)),
        (Some(true), Some(1))
    );
    let why: Value =
        serde_json::from_slice(&bem(folder.path(), &["explain", "kept", "--obs", "110100", "--json"]).stdout)
            .expect("JSON");
    assert_eq!(why["why"]["because"], serde_json::json!(["field 0 = 11"]), "{why}");
    assert_eq!(why["why"]["nearest"]["change"].as_array().map(Vec::len), Some(1), "{why}");
    assert_ne!(why["why"]["nearest"]["action"], why["why"]["action"]);
    // The same observation by names.
    let named = bem(folder.path(), &["explain", "kept", "--obs", "bit0=1,bit1=1,bit3=1", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&named.stdout).expect("JSON"), why);
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    assert!(page.contains("as rules: exact") && page.contains("number of bits 0-5 are 1"));
}

#[test]
fn a_policy_that_remembers_is_shown_as_states() {
    let folder = solved(&["parity_stream", "--param", "n=4"]);
    let said = text(&bem(folder.path(), &["explain", "kept"]).stdout);
    assert!(said.contains("every episode starts in S0") && said.contains(", then S"), "{said}");
    let dot = text(&bem(folder.path(), &["explain", "kept", "--dot"]).stdout);
    assert!(dot.starts_with("digraph policy {") && dot.contains("start -> s0;"), "{dot}");
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    assert!(page.contains("<svg class=states") && page.contains("Why this action"), "{page}");
}

/// A world of one's own that needs memory: a sign is shown once, and in the next step it must be followed or not.
const SIGNS: &str = r#"
import json, random, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "features": [{"name": "sign", "kind": "bit"}, {"name": "turn", "kind": "bit"}],
     "actions": 2, "horizon": 2, "reward_range": [0, 1000], "return_range": [0, 1000]})
sign, turn, step = 0, 0, 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        draw, step = random.Random(message["reset"]), 0
        sign, turn = draw.randrange(2), draw.randrange(2)
        say({"obs": {"sign": sign, "turn": 0}})
    else:
        step += 1
        right = step == 2 and message["act"] == (sign ^ turn)
        say({"obs": {"sign": 0, "turn": turn}, "reward": 1000 if right else 0, "done": step == 2, "bad": False})
"#;

#[test]
fn the_report_of_an_own_world_draws_its_memory_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("signs.py"), SIGNS).expect("a file");
    let words = ["solve", "--env-cmd", "python3 signs.py", "--budget", "6000", "--out", "kept"];
    let output = bem(folder.path(), &words);
    assert!(output.status.code() < Some(2), "{output:?}");
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    let place = |word: &str| page.find(word).unwrap_or_else(|| panic!("{word} is not in {page}"));
    let order = ["The policy as rules", "<svg class=states", "Every episode starts in S0", "Why this action"];
    assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{page}");
    assert!(page.contains("each was seen in an episode of this world"), "{page}");
    for words in ["<dt>sign = ", " because ", " instead with "] {
        assert!(page.contains(words), "{words:?} is not in {page}");
    }
    // What the page says is what the terminal says.
    let dot = text(&bem(folder.path(), &["explain", "kept", "--dot"]).stdout);
    let states = dot.matches("shape=circle").count();
    assert!(1 < states && page.matches("<circle class=node").count() == states, "{dot}");
    let verified = bem(folder.path(), &["verify", "kept"]);
    assert!(verified.status.code() < Some(2), "{verified:?}");
}

#[test]
fn observations_that_make_no_sense_are_refused_in_one_line() {
    let folder = solved(&["parity", "--param", "n=4"]);
    for (words, wanted) in [
        (&["--obs", "01"][..], "must be 4 zeros and ones"),
        (&["--obs", "bit9=1"], "\"bit9\" is unknown: there are field0 to "),
        (&["--obs", "bit1=2"], "the value must be at most 1"),
        (&["--obs", "bit1=x"], "the value must be a whole number"),
        (&["--obs", "0101", "--memory", "1"], "--memory \"1\" must be 0 zeros and ones"),
        (&["--dot"], "there is no state diagram"),
    ] {
        let output = bem(folder.path(), &[&["explain", "kept"], words].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(error.contains(wanted) && error.lines().count() == 1, "{words:?}: {error}");
    }
}

/// The lines of a command, joined where they were folded.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_rules_of_the_example_worlds_speak_of_their_fields_of_steps_and_of_what_was_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let learned = |name: &str, budget: &str| {
        let path = format!("{}/../../examples/{name}_env.py", env!("CARGO_MANIFEST_DIR"));
        let command = format!("python3 {path}");
        let words =
            ["solve", "--env-cmd", &command, "--budget", budget, "--env-timeout", "600", "--out", name];
        let output = bem(folder.path(), &words);
        assert!(output.status.code() < Some(2), "{output:?}");
        let said = text(&bem(folder.path(), &["explain", name]).stdout);
        let object = bem(folder.path(), &["explain", name, "--json"]).stdout;
        (unfolded(&said), serde_json::from_slice::<Value>(&object).expect("JSON"))
    };
    // A field that is a number of items, and days that are counted.
    let (said, object) = learned("inventory", "20000");
    assert!(said.contains("What it does (exact: ") && said.contains("if stock "), "{said}");
    assert!(said.contains("steps so far < ") && said.contains("for episodes of at most 20 steps"), "{said}");
    assert!(!said.contains("field 0") && !said.contains("remembered 4 ="), "{said}");
    assert_eq!(object["remembers"][4], "steps so far >= 16", "{object}");
    // Two features decide without memory: whatever they are is in the table.
    let (said, object) = learned("thermostat", "60000");
    assert!(said.contains("What it does (exact: the same as the circuit on all 672 inputs"), "{said}");
    assert!(said.contains("if hour ") && said.contains("temp < ") && !said.contains("a summary"), "{said}");
    assert_eq!(
        (object["exact"].as_bool(), object["memory_bits"].as_u64()),
        (Some(true), Some(0)),
        "{object}"
    );
    // Memory of earlier attempts: what was seen and done is called by its name, and a summary says that it is one.
    let (said, object) = learned("retry", "12000");
    assert!(said.contains("(1 step ago)") && !said.contains("if remembered "), "{said}");
    if object["action"]["exact"] == false {
        let agreement = object["action"]["agreement_met"].as_f64().unwrap_or(0.0);
        assert!(said.contains("a summary: agrees with the circuit at ") && 0.8 < agreement, "{said}");
        assert!(said.contains("not the whole policy"), "{said}");
    }
}
