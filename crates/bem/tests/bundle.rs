//! Policies that carry their proof: both checkers accept what is exported and refuse what was changed. Clauses: SCC-4, LOG-3.

mod mutants;

use bem_ledger::checkpoint::Signer;
use mutants::{Count, Court, PARTS, try_part};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn bem(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .expect("the program starts")
}

/// The bundle of a task's policy; the folder has the run's key.
fn exported(folder: &Path, name: &str, task: &[&str]) -> Value {
    let kept = ["--out", name, "--key", "key", "--json"];
    let output = bem(folder, &[&["solve"], task, &kept].concat());
    assert!(output.status.code() < Some(2), "{output:?}");
    let file = format!("{name}.bundle");
    let words = ["export", name, "--format", "bundle", "--out", &file, "--key", "key"];
    let output = bem(folder, &words);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(folder.join(file)).expect("a bundle");
    serde_json::from_str(&text).expect("JSON")
}

fn signer(folder: &Path) -> Signer {
    let seed = std::fs::read(folder.join("key")).expect("the key");
    Signer::from_seed(&seed.try_into().expect("32 bytes"))
}

#[test]
fn both_checkers_accept_policies_of_every_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut court = Court::new(env!("CARGO_BIN_EXE_bem"), folder.path());
    let tasks: [(&str, &[&str], bool); 6] = [
        ("parity", &["parity", "--param", "n=8"], true),
        ("dyck", &["dyck", "--param", "depth=2", "--param", "length=8"], true),
        ("grid", &["safety_grid", "--budget", "20000"], true),
        ("add", &["add", "--param", "bits=4", "--budget", "4000"], true),
        ("bandit", &["bandit", "--budget", "2000"], true),
        ("sat", &["small_sat", "--param", "vars=4", "--param", "clauses=6", "--budget", "3000"], false),
    ];
    for (name, task, is_stated) in tasks {
        let bundle = exported(folder.path(), name, task);
        assert!(court.accept(&(bundle.to_string() + "\n")), "{name}");
        assert_eq!(!bundle["body"]["statement"].is_null(), is_stated, "{name}");
        assert!(bundle["body"]["measured"]["policy"]["episodes"].as_u64() >= Some(1_000), "{name}");
        if name == "grid" {
            assert!(!bundle["body"]["forbidden"].as_array().expect("pairs").is_empty(), "{bundle}");
        }
    }
}

#[test]
fn of_the_mutants_of_every_part_none_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut court = Court::new(env!("CARGO_BIN_EXE_bem"), folder.path());
    let table = format!("{}/../../examples/games/repair.json", env!("CARGO_MANIFEST_DIR"));
    for (name, task) in [
        ("stream", &["parity_stream", "--param", "n=4"][..]),
        ("grid", &["safety_grid", "--budget", "20000"]),
        ("table", &["--game", &table, "--budget", "6000"]),
        ("warm", &["--env-cmd", &warm(), "--env-timeout", "120", "--budget", "6000"]),
    ] {
        let bundle = exported(folder.path(), name, task);
        for part in PARTS {
            let count = try_part(&mut court, &bundle, part, 25, &signer(folder.path()), 1);
            assert_eq!(count.refused, 25, "{name}, {part}: {count:?}");
            if part != "signature" {
                assert_eq!(count.signed_refused + count.signed_true, 25, "{name}, {part}: {count:?}");
            }
        }
        // A statement that is another one is refused by its proof alone, whoever signs it.
        let count = try_part(&mut court, &bundle, "statement", 40, &signer(folder.path()), 2);
        assert!(10 < count.signed_refused, "{count:?}");
        assert_ne!(count, Count::default());
    }
}

/// A world in which one of five features forbids an action.
fn warm() -> String {
    format!("python3 {}/tests/worlds/warm.py", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn what_a_pattern_leaves_free_is_claimed_for_every_value_and_mutants_of_it_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut court = Court::new(env!("CARGO_BIN_EXE_bem"), folder.path());
    let task = ["--env-cmd", &warm(), "--env-timeout", "120", "--budget", "6000"];
    let bundle = exported(folder.path(), "warm", &task);
    assert_eq!(bundle["body"]["format"], "bem-bundle-4", "{bundle}");
    let signer = signer(folder.path());
    let mut accepts = |body: &dyn Fn(&mut Value)| {
        let mut other = bundle.clone();
        body(&mut other["body"]);
        court.accept(&(mutants::signed(other, &signer).to_string() + "\n"))
    };
    assert!(accepts(&|_| {}), "as it is");
    for format in ["bem-bundle-1", "bem-bundle-2", "bem-bundle-3", "bem-bundle-5"] {
        assert!(!accepts(&|body| body["format"] = format.into()), "{format}");
    }
    // A claim that looks at no bit at all says that the action is never taken, which is a lie; so is any other letter.
    let of = bundle["body"]["forbidden"][0]["observation"].as_str().expect("a pattern").to_string();
    let any = "-".repeat(of.len());
    assert!(!accepts(&|body| body["forbidden"][0]["observation"] = any.clone().into()));
    for wrong in [of.replacen('-', "2", 1), of.clone() + "-", of[1..].to_string(), of.replace('-', " ")] {
        assert!(!accepts(&|body| body["forbidden"][0]["observation"] = wrong.clone().into()), "{wrong}");
    }
    // Without any free bit fewer observations are claimed, of which every case is tried.
    assert!(accepts(&|body| {
        for pair in body["forbidden"].as_array_mut().expect("pairs") {
            pair["observation"] = pair["observation"].as_str().expect("a pattern").replace('-', "0").into();
        }
        for certificate in body["certificates"]["forbidden"].as_array_mut().expect("certificates") {
            *certificate = serde_json::json!({ "kind": "exhaustive", "proof": "" });
        }
    }));
}

/// What somebody alters in a body.
type Change<'a> = &'a dyn Fn(&mut Value);

#[test]
fn seed_warnings_and_features_are_those_that_the_history_names_whoever_signs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut court = Court::new(env!("CARGO_BIN_EXE_bem"), folder.path());
    let table = format!("{}/../../examples/games/repair.json", env!("CARGO_MANIFEST_DIR"));
    let bundle = exported(folder.path(), "table", &["--game", &table, "--budget", "6000"]);
    assert!(!bundle["body"]["provenance"]["warnings"].as_array().expect("a list").is_empty(), "{bundle}");
    let signer = signer(folder.path());
    let changes: [(&str, Change); 8] = [
        ("seed", &|body| body["provenance"]["seed"] = 2.into()),
        ("warnings", &|body| body["provenance"]["warnings"] = serde_json::json!([])),
        ("warnings", &|body| body["provenance"]["warnings"][0] = "solved".into()),
        ("features", &|body| body["features"][0]["name"] = "age".into()),
        ("features", &|body| body["features"].as_array_mut().expect("a list").reverse()),
        ("features", &|body| drop(body.as_object_mut().expect("a body").remove("features"))),
        ("format", &|body| body["format"] = "bem-bundle-2".into()),
        ("come together", &|body| {
            for part in ["/measured", "/evaluation", "/provenance/evaluation"] {
                *body.pointer_mut(part).expect("a part") = Value::Null;
            }
        }),
    ];
    for (word, change) in changes {
        let mut other = bundle.clone();
        change(&mut other["body"]);
        let text = mutants::signed(other, &signer).to_string() + "\n";
        assert!(!court.accept(&text), "{word}");
        std::fs::write(folder.path().join("other.bundle"), text).expect("a file");
        let said = bem(folder.path(), &["check", "other.bundle"]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.starts_with("refused: ") && said.contains(word), "{word}: {said}");
    }
}

#[test]
fn bundles_of_earlier_versions_are_accepted_and_said_to_have_signed_parts_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut court = Court::new(env!("CARGO_BIN_EXE_bem"), folder.path());
    for format in [1, 3] {
        let path = format!("{}/tests/bundles/format-{format}.bundle", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a bundle");
        assert!(court.accept(&text), "format {format}");
        let said = bem(folder.path(), &["check", &path]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let only = format!("features are only signed in the format bem-bundle-{format}");
        assert!(words.contains(&only), "{said}");
        // A format that nobody knows is named beside those that are known.
        let unknown = text.replace(&format!("bem-bundle-{format}"), "bem-bundle-9");
        std::fs::write(folder.path().join("unknown.bundle"), unknown).expect("a file");
        let said = bem(folder.path(), &["check", "unknown.bundle"]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("bem-bundle-9") && said.contains("bem-bundle-4"), "{said}");
    }
}

#[test]
fn a_bundle_says_what_its_bits_mean_and_forbidden_pairs_are_said_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = format!("{}/../../examples/games/repair.json", env!("CARGO_MANIFEST_DIR"));
    let bundle = exported(folder.path(), "table", &["--game", &table, "--budget", "6000"]);
    let body = &bundle["body"];
    assert_eq!(body["format"], "bem-bundle-4", "{body}");
    let names: Vec<&Value> =
        body["features"].as_array().expect("features").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["wear", "orders"], "{body}");
    let said = bem(folder.path(), &["check", "table.bundle"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("features   wear (a number from 0 to 9), orders (one of 0, 1, 2)"), "{said}");
    assert!(said.contains("never action 0 where wear >= 9 and orders = 0"), "{said}");
}

#[test]
fn a_bundle_needs_the_key_of_its_run_and_check_asks_for_the_key_it_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = exported(folder.path(), "kept", &["parity", "--param", "n=3"]);
    let key = bundle["body"]["provenance"]["public_key"].as_str().expect("a key");
    assert!(bem(folder.path(), &["check", "kept.bundle", "--public-key", key]).status.success());
    let other = "0".repeat(64);
    let refused = bem(folder.path(), &["check", "kept.bundle", "--public-key", &other]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stdout).contains("refused: signed by the key"), "{refused:?}");
    let wrong = bem(folder.path(), &["check", "kept.bundle", "--public-key", "abc"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    std::fs::remove_file(folder.path().join("key")).expect("it was there");
    let unsigned = bem(folder.path(), &["export", "kept", "--format", "bundle"]);
    assert_eq!(unsigned.status.code(), Some(2), "{unsigned:?}");
    assert!(String::from_utf8_lossy(&unsigned.stderr).contains("signing key"), "{unsigned:?}");
}
