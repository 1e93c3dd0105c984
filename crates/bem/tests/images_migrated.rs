//! State folders of every older format, as earlier programs left them (`golden/state-*`): migrated, gone on with, refused. The folders
//! are never written again; what a later learner cannot go on with begins anew. Clause: IMG-5.

mod images_kit;

use images_kit::{Server, bem, bem_json, head, text, tool};
use serde_json::{Value, json};
use std::path::Path;

fn golden(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name).display().to_string()
}

/// The served folder of a fixture as `S`, its run as `run`, and its key.
fn first_format(folder: &Path, fixture: &str) {
    std::fs::create_dir_all(folder.join("S")).expect("a folder");
    let from = golden(fixture);
    tool(folder, "cp", &["-r", &format!("{from}/served-ledger"), "S/ledger"]);
    tool(folder, "cp", &["-r", &format!("{from}/run"), "run"]);
    take_key(folder, &from);
}

fn take_key(folder: &Path, from: &str) {
    tool(folder, "cp", &[&format!("{from}/key"), "key"]);
    tool(folder, "chmod", &["600", "key"]);
}

fn migrate(folder: &Path, state: &str) -> String {
    let migrated = bem(folder, &["image", "migrate", "--state", state, "--layout", "L", "--key", "key"]);
    assert!(migrated.status.success(), "{}", text(&migrated));
    let again = bem(folder, &["image", "migrate", "--state", state, "--layout", "L", "--key", "key"]);
    assert!(text(&again).contains("format 3, nothing to do"), "{}", text(&again));
    text(&migrated)
}

/// Asks for decisions and rewards them by one, which is in the range of every world here.
fn play(server: &Server, decisions: u64) {
    for number in 0..decisions {
        let seen = number * 7 % 4;
        let (status, answer) =
            server.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": format!("{seen:02b}") }));
        assert_eq!(status, 200, "{answer}");
        let reward = u64::from(answer["action"].as_u64() == Some(seen % 3));
        let outcome = json!({ "decision": answer["decision"], "reward": reward });
        assert_eq!(server.ask("POST", "/v1/worlds/ads/reward", &outcome).0, 200);
    }
}

/// The history after a migration: the same, or one that names the old head and keeps it beside.
fn goes_on(folder: &Path, before: &str, said: &str) {
    if said.contains("a new one begins") {
        assert!(said.contains(&format!("it names head {before}")), "{said}");
        assert_eq!(head(folder, "S/ledger-origin"), before);
        assert_ne!(head(folder, "S"), before);
    } else {
        assert_eq!(head(folder, "S"), before);
    }
    let server = Server::start(folder, "S", &["--key", "key", "--image-every", "never"]);
    let (status, answer) = server.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": "01" }));
    assert_eq!(status, 200, "{answer}");
    play(&server, 60);
    server.stop();
    assert_eq!(bem(folder, &["replay", "S"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(folder.join("S/format")).expect("a format"), "bem state 3\n");
}

#[test]
fn a_history_of_an_older_learner_begins_anew_with_its_worlds_circuits_and_logs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    first_format(folder, "state-1-learner-6");
    let before = head(folder, "S");
    // A server does not begin anew by itself: it says what to do, and leaves the folder as it was.
    let refused = bem(folder, &["serve", "--listen", "127.0.0.1:0", "--state", "S", "--key", "key"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused);
    assert!(said.contains("by a learner that this program does not have: bem image migrate"), "{said}");
    assert!(!folder.join("S/format").exists());
    let said = migrate(folder, "S");
    assert!(
        said.contains("a new one begins with 1 world, 1 circuit ") && said.contains(" 400 episodes"),
        "{said}"
    );
    let listed = bem_json(folder, &["image", "list", "--layout", "L", "--json"]);
    let formats: Vec<u64> = listed["images"]
        .as_array()
        .expect("images")
        .iter()
        .filter_map(|image| image["format"].as_u64())
        .collect();
    assert_eq!(formats, [1], "the image is of the state before");
    goes_on(folder, &before, &said);
    // An image of it names the old head, and so does what is restored from that.
    let tag = images_kit::save(folder, "S", "M");
    let listed = bem_json(folder, &["image", "list", "--layout", "M", "--json"]);
    let images = listed["images"].as_array().expect("images");
    let found = images.iter().find(|image| image["tag"] == json!(tag)).expect("the image");
    assert_eq!(found["origin"].as_str(), Some(before.as_str()));
    bem_json(folder, &["image", "restore", &tag, "--layout", "M", "--out", "R", "--key", "key", "--json"]);
}

#[test]
fn folders_of_the_first_and_the_second_format_are_migrated_and_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    first_format(folder, "state-1");
    let before = head(folder, "S");
    let said = migrate(folder, "S");
    assert!(said.contains("format 1 is now 3"), "{said}");
    goes_on(folder, &before, &said);
    // The second format: a history that was restored without its key, whose world stands in its saved state alone, and tokens
    // without a version.
    let other = tempfile::tempdir().expect("a folder");
    let folder = other.path();
    let from = golden("state-2");
    tool(folder, "mkdir", &["S"]);
    for name in ["ledger", "format", "key-salt", "tokens.json"] {
        tool(folder, "cp", &["-r", &format!("{from}/{name}"), "S"]);
    }
    tool(folder, "chmod", &["600", "S/tokens.json"]);
    take_key(folder, &from);
    let before = head(folder, "S");
    let refused = bem(folder, &["token", "list", "--state", "S"]);
    assert!(text(&refused).contains("older format"), "{}", text(&refused));
    let said = migrate(folder, "S");
    assert!(said.contains("format 2 is now 3"), "{said}");
    let tokens = bem(folder, &["token", "list", "--state", "S"]);
    assert!(tokens.status.success() && text(&tokens).contains("shop"), "{}", text(&tokens));
    goes_on(folder, &before, &said);
}

#[test]
fn a_server_migrates_a_folder_that_goes_on_and_saves_an_image_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Made here, so that the learner is this one; the marks of the format are those of an older folder.
    images_kit::lived(folder, 20);
    let added = bem(folder, &["token", "add", "shop", "--role", "annotator", "--state", "S"]);
    assert!(added.status.success(), "{}", text(&added));
    let tokens = std::fs::read(folder.join("S/tokens.json")).expect("tokens");
    let tokens: Value = serde_json::from_slice(&tokens).expect("JSON");
    assert_eq!(tokens["version"], json!(1));
    std::fs::write(folder.join("S/tokens.json"), tokens["tokens"].to_string()).expect("tokens");
    std::fs::write(folder.join("S/format"), "bem state 2\n").expect("a format");
    let before = head(folder, "S");
    let server = Server::start(folder, "S", &["--key", "key", "--image-every", "never"]);
    server.drive(20..24, false);
    server.stop();
    let listed = bem_json(folder, &["image", "list", "--layout", "S/images", "--json"]);
    let images = listed["images"].as_array().expect("images");
    let saved = images.iter().find(|image| image["kind"] == json!("service")).expect("an image");
    assert_eq!((saved["gate"].as_str(), saved["format"].as_u64()), (Some("before migration"), Some(2)));
    assert_eq!(saved["head"].as_str(), Some(before.as_str()));
    assert!(bem(folder, &["token", "list", "--state", "S"]).status.success());
    assert_eq!(std::fs::read_to_string(folder.join("S/format")).expect("a format"), "bem state 3\n");
}

#[test]
fn a_migration_that_was_decided_and_cut_off_is_finished_by_whoever_opens_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    images_kit::lived(folder, 20);
    let before = head(folder, "S");
    // As it lies there when power is lost behind the decision: the ledger is half out.
    std::fs::write(folder.join("S/format"), "bem state 2\n").expect("a format");
    tool(folder, "cp", &["-r", "S/ledger", "S/ledger-next"]);
    tool(folder, "mkdir", &["S/ledger-origin"]);
    tool(folder, "mv", &["S/ledger/checkpoint", "S/ledger-origin/checkpoint"]);
    std::fs::write(folder.join("S/format.next"), "bem state 3\n").expect("a format");
    let list = "bem migration 1\nphase 1\nfrom 2\nto 3\nledger\nfile format\n";
    std::fs::write(folder.join("S/migration"), list).expect("a list");
    for words in [&["verify", "S"][..], &["image", "snapshot", "--state", "S", "--layout", "L"]] {
        let refused = bem(folder, words);
        assert!(text(&refused).contains("in the middle of a migration"), "{}", text(&refused));
    }
    let server = Server::start(folder, "S", &["--key", "key", "--image-every", "never"]);
    server.drive(20..24, false);
    server.stop();
    assert!(!folder.join("S/migration").exists() && !folder.join("S/ledger-next").exists());
    assert_eq!(head(folder, "S/ledger-origin"), before);
    assert_eq!(std::fs::read_to_string(folder.join("S/format")).expect("a format"), "bem state 3\n");
}

#[test]
fn what_is_older_begins_anew_by_start_from_and_what_is_newer_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    first_format(folder, "state-1-learner-6");
    // A run that its own learner wrote and this one cannot read says so in one line, and its circuit is there.
    let refused = bem(folder, &["image", "migrate", "--state", "run", "--layout", "L"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("bem solve TASK --start-from run"), "{}", text(&refused));
    let solved = bem(folder, &["solve", "parity", "--param", "n=4", "--start-from", "run", "--out", "new"]);
    assert!(solved.status.success(), "{}", text(&solved));
    assert!(text(&solved).contains("1 circuit, tried first"), "{}", text(&solved));
    // So does a served world.
    let server = Server::start(folder, "T", &["--start-from", "ads=S", "--image-every", "never"]);
    let world = json!({ "name": "ads", "obs_bits": 2, "actions": 3, "reward_range": [0, 1] });
    let (status, made) = server.ask("POST", "/v1/worlds", &world);
    assert_eq!(status, 201, "{made}");
    play(&server, 40);
    server.stop();
    assert_eq!(bem(folder, &["replay", "T"]).status.code(), Some(0));
    let inputs = std::fs::read(folder.join("T/ledger/segment-00000000.log")).expect("a segment");
    assert!(
        4_000 < inputs.len(),
        "the log of the old world is an input of the new one: {} bytes",
        inputs.len()
    );
    let says = |version: &str, arguments: &[&str]| {
        std::fs::write(folder.join("T/format"), format!("bem state {version}\n")).expect("a file");
        let refused = bem(folder, arguments);
        assert_eq!(refused.status.code(), Some(2));
        text(&refused)
    };
    assert!(says("4", &["serve", "--state", "T"]).contains("use a newer bem"));
    assert!(says("4", &["image", "snapshot", "--state", "T", "--layout", "L"]).contains("use a newer bem"));
    assert!(says("0", &["image", "migrate", "--state", "T", "--layout", "L"]).contains("--start-from"));
    assert!(says("0", &["serve", "--state", "T"]).contains("--start-from"));
}
