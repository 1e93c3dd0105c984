//! Bundles with one thing changed, and both checkers asked about them. Shared by the test and the battery.
//!
//! A mutant is a bundle whose circuit, statement, certificate, features, figures, provenance or signature was changed in one
//! place. As it is, neither checker may accept it. Signed anew with the run's own key, as the owner of the run could, circuit,
//! features, figures and provenance, seed and warnings with it, must still be refused, because the history says otherwise; a
//! statement or certificate may be accepted only by both, and only if the rules still are the circuit, which is tried case by
//! case here.

use bem_base::digest::hash;
use bem_base::prng::Prng;
use bem_ledger::checkpoint::Signer;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What is changed.
pub const PARTS: [&str; 7] =
    ["circuit", "statement", "certificate", "features", "figures", "provenance", "signature"];

/// Draws for every mutant that is wanted: most are new, and a short part has few.
const DRAWS: u64 = 32;

/// What came of the mutants of one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Refused by both as they are.
    pub refused: u64,
    /// Signed anew and refused by both.
    pub signed_refused: u64,
    /// Signed anew, accepted by both, and true.
    pub signed_true: u64,
}

/// A checker that answers one line for every file.
struct Checker {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Checker {
    fn start(command: &mut Command) -> Checker {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a checker starts");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Checker { child, answers }
    }

    fn accepts(&mut self, file: &Path) -> (bool, String) {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{}", file.display()).expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        let accepted = line.starts_with("accepted");
        assert!(accepted || line.starts_with("refused: "), "{line:?}");
        (accepted, line)
    }
}

/// Both checkers, and a place for files.
pub struct Court {
    ours: Checker,
    other: Checker,
    file: PathBuf,
}

impl Court {
    /// Starts both.
    pub fn new(bem: &str, folder: &Path) -> Court {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/bundle_check.py");
        Court {
            ours: Checker::start(Command::new(bem).args(["check", "--jobs"])),
            other: Checker::start(Command::new("python3").arg(script).arg("--jobs")),
            file: folder.join("mutant.bundle"),
        }
    }

    /// What both say of a text; they must agree.
    pub fn accept(&mut self, text: &str) -> bool {
        std::fs::write(&self.file, text).expect("a file");
        let (ours, other) = (self.ours.accepts(&self.file), self.other.accepts(&self.file));
        assert_eq!(ours.0, other.0, "the checkers disagree: {} {}", ours.1, other.1);
        ours.0
    }
}

fn spelled(bundle: &Value) -> String {
    bundle.to_string() + "\n"
}

/// The bundle, signed anew.
pub fn signed(mut bundle: Value, signer: &Signer) -> Value {
    let spelling = bundle["body"].to_string();
    bundle["digest"] = json!(hash(spelling.as_bytes()).to_hex());
    let signature = signer.sign_bundle(spelling.as_bytes());
    bundle["signature"] = json!(signature.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    bundle
}

/// The places of all numbers, texts and truth values below a value.
fn leaves(value: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                path.push(key.clone());
                leaves(value, path, found);
                path.pop();
            }
        }
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                path.push(place.to_string());
                leaves(value, path, found);
                path.pop();
            }
        }
        Value::Null => {}
        _ => found.push(format!("/{}", path.join("/"))),
    }
}

/// Lists of which an entry may be left out.
const LISTS: [&str; 2] = ["/body/provenance/warnings", "/body/features"];

/// Changes one place below one of these parts; nothing where there is none.
fn mutated(bundle: &Value, roots: &[&str], prng: &mut Prng) -> Option<Value> {
    let mut found = Vec::new();
    for root in roots {
        let mut path = vec![root.trim_start_matches('/').to_string()];
        leaves(bundle.pointer(root)?, &mut path, &mut found);
    }
    if found.is_empty() {
        return None;
    }
    let mut changed = bundle.clone();
    // A warning is left out or added, a feature left out: no single letter of theirs changes.
    if let Some(root) = roots.iter().find(|root| LISTS.contains(*root)).filter(|_| prng.below(8) == 0) {
        let list = changed.pointer_mut(root)?.as_array_mut()?;
        match list.len() as u64 {
            count if 0 < count && prng.below(2) == 0 => drop(list.remove(prng.below(count) as usize)),
            _ if root.ends_with("/warnings") => list.push(json!(format!("note {}", prng.below(100)))),
            _ => list.clear(),
        }
        return Some(changed);
    }
    let pointer = &found[prng.below(found.len() as u64) as usize];
    let leaf = changed.pointer_mut(pointer)?;
    *leaf = match &*leaf {
        Value::Bool(value) => json!(!value),
        Value::Number(number) => {
            let number = number.as_i64()?;
            let step = [1, -1, 2, 1 << prng.below(12)][prng.below(4) as usize];
            json!(if number + step < 0 { number + 1 } else { number + step })
        }
        // What a forbidden pair looks at: another value, or a bit that was free and is not, or the other way round.
        Value::String(text) if pointer.ends_with("/observation") && prng.below(2) == 0 => {
            let mut letters: Vec<char> = text.chars().collect();
            let place = prng.below(letters.len() as u64) as usize;
            letters[place] = ['0', '1', '-'][prng.below(3) as usize];
            json!(letters.into_iter().collect::<String>())
        }
        Value::String(text) => json!(changed_text(text, prng)),
        _ => return None,
    };
    Some(changed)
}

/// One letter of a text changed, doubled or left out; or, of a proof, a line.
fn changed_text(text: &str, prng: &mut Prng) -> String {
    if text.contains('\n') && prng.below(3) == 0 {
        let mut lines: Vec<&str> = text.lines().collect();
        let place = prng.below(lines.len() as u64) as usize;
        lines.remove(place);
        return lines.iter().map(|line| format!("{line}\n")).collect();
    }
    let mut letters: Vec<char> = text.chars().collect();
    if letters.is_empty() {
        return "1".to_string();
    }
    let place = prng.below(letters.len() as u64) as usize;
    match prng.below(3) {
        0 => drop(letters.remove(place)),
        1 => letters.insert(place, letters[place]),
        _ => letters[place] = if letters[place] == '7' { '3' } else { '7' },
    }
    letters.into_iter().collect()
}

/// Where the mutants of a part are made, and whether signing them anew makes them lies that the history contradicts.
fn roots(part: &str) -> (&'static [&'static str], bool) {
    match part {
        "circuit" => (&["/body/policy"], true),
        "statement" => (&["/body/statement", "/body/forbidden"], false),
        "certificate" => (&["/body/certificates"], false),
        "features" => (&["/body/features", "/body/format"], true),
        "figures" => (&["/body/measured", "/body/evaluation"], true),
        "provenance" => (
            &[
                "/body/provenance/task",
                "/body/provenance/hypothesis",
                "/body/provenance/seed",
                "/body/provenance/steps",
                "/body/provenance/warnings",
                "/body/provenance/public_key",
                "/body/provenance/checkpoint",
                "/body/provenance/genesis",
                "/body/provenance/unit_begin",
                "/body/provenance/unit_end",
                "/body/provenance/evaluation",
            ],
            true,
        ),
        _ => (&["/digest", "/signature"], true),
    }
}

/// Makes so many mutants of a part of a bundle, fewer where it has no more, and asks both checkers about each.
pub fn try_part(
    court: &mut Court,
    honest: &Value,
    part: &str,
    count: u64,
    signer: &Signer,
    seed: u64,
) -> Count {
    let mut prng = Prng::stream(seed, part);
    let (roots, is_bound) = roots(part);
    let roots: Vec<&str> = roots
        .iter()
        .copied()
        .filter(|root| honest.pointer(root).is_some_and(|value| !value.is_null()))
        .collect();
    let mut result = Count::default();
    // A short part has few mutants, so that drawing ends where nothing new comes any more.
    let mut known = BTreeSet::from([honest.to_string()]);
    for _ in 0..DRAWS * count {
        if result.refused == count {
            break;
        }
        let Some(mutant) = mutated(honest, &roots, &mut prng) else { break };
        if !known.insert(mutant.to_string()) {
            continue;
        }
        assert!(!court.accept(&spelled(&mutant)), "{part}: a mutant is accepted: {mutant}");
        result.refused += 1;
        if part == "signature" {
            continue;
        }
        let signed = signed(mutant, signer);
        match court.accept(&spelled(&signed)) {
            false => result.signed_refused += 1,
            true => {
                // How many bits the world shows besides those that are read is only signed.
                let mut like = signed.clone();
                like["body"]["policy"]["observation_bits"] =
                    honest["body"]["policy"]["observation_bits"].clone();
                let is_bound = is_bound && like["body"] != honest["body"];
                assert!(!is_bound, "{part}: signed anew it is accepted: {signed}");
                assert!(is_true(&signed["body"]), "{part}: signed anew a lie is accepted: {signed}");
                result.signed_true += 1;
            }
        }
    }
    result
}

/// Whether the rules are the circuit, by a plain reading of both on many inputs: all of them where there are few.
fn is_true(body: &Value) -> bool {
    let policy = &body["policy"];
    let number = |value: &Value| value.as_u64().expect("a whole number") as usize;
    let inputs = policy["reads"].as_array().expect("bits").len() + number(&policy["memory_bits"]);
    let code = (number(&policy["actions"]) - 1).checked_ilog2().map_or(0, |bits| bits as usize + 1);
    let mut prng = Prng::stream(1, "cases");
    let cases: Vec<u64> =
        if inputs <= 12 { (0..1 << inputs).collect() } else { (0..4_096).map(|_| prng.next_u64()).collect() };
    cases.iter().all(|case| {
        let mut values = vec![false, true];
        values.extend((0..inputs).map(|bit| case >> (bit % 64) & 1 == 1));
        for gate in policy["gates"].as_array().expect("gates") {
            let (a, b) = (values[number(&gate[1])], values[number(&gate[2])]);
            let op = number(&gate[0]);
            let value = [a && b, a || b, a != b, a && !b][op % 4];
            values.push(value != (op > 3));
        }
        let is: Vec<bool> = policy["outputs"]
            .as_array()
            .expect("outputs")
            .iter()
            .map(|place| values[number(place)])
            .collect();
        let seen = &values[2..];
        let taken = is[..code].iter().rev().fold(0, |number, bit| 2 * number + usize::from(*bit));
        if body["forbidden"].as_array().expect("pairs").iter().any(|pair| forbids(pair, policy, seen, taken))
        {
            return false;
        }
        let statement = &body["statement"];
        if statement.is_null() {
            return true;
        }
        let mut said = answer(&statement["action"], seen);
        assert_eq!(said.len(), code);
        statement["memory"]
            .as_array()
            .expect("lists")
            .iter()
            .for_each(|list| said.extend(answer(list, seen)));
        is == said
    })
}

/// Whether a pair forbids what is done where these inputs are seen.
fn forbids(pair: &Value, policy: &Value, seen: &[bool], taken: usize) -> bool {
    let letters = pair["observation"].as_str().expect("a pattern").as_bytes();
    let reads = policy["reads"].as_array().expect("bits").iter().zip(seen);
    let fits = |(bit, value): (&Value, &bool)| {
        let letter = letters[bit.as_u64().expect("a bit") as usize];
        letter == b'-' || (letter == b'1') == *value
    };
    pair["action"].as_u64() == Some(taken as u64) && reads.into_iter().all(fits)
}

fn answer(list: &Value, seen: &[bool]) -> Vec<bool> {
    let bits = |bits: &Value| bits.as_array().expect("bits").iter().map(|bit| *bit == json!(1)).collect();
    let rules = list["rules"].as_array().expect("rules");
    let applies =
        |rule: &&Value| rule["when"].as_array().expect("conditions").iter().all(|it| holds(it, seen));
    rules.iter().find(applies).map_or_else(|| bits(&list["otherwise"]), |rule| bits(&rule["then"]))
}

fn holds(condition: &Value, seen: &[bool]) -> bool {
    let places = |key: &str| -> Vec<bool> {
        let list = condition[key].as_array().expect("inputs");
        list.iter().map(|place| seen[place.as_u64().expect("an input") as usize]).collect()
    };
    let number = |bits: &[bool]| bits.iter().rev().fold(0u64, |number, bit| 2 * number + u64::from(*bit));
    let (of, than, value) = (places("of"), places("than"), condition["value"].as_u64().expect("a number"));
    let ones = of.iter().filter(|bit| **bit).count() as u64;
    // Bits of a value beyond the number's width are not looked at, as the form says.
    let value_within = if of.len() < 64 { value & ((1 << of.len()) - 1) } else { value };
    let fact = match condition["fact"].as_str().expect("a fact") {
        "bit" => of[0],
        "at_least" => value_within <= number(&of),
        "equals" => value_within == number(&of),
        "less" => number(&of) < number(&than),
        "same" => number(&of) == number(&than),
        "odd" => ones % 2 == 1,
        "count" => value <= ones,
        other => panic!("{other}"),
    };
    fact == condition["holds"].as_bool().expect("a truth value")
}
