//! Images from outside: a server or a run is saved, restored elsewhere and goes on; gate, secrets, forks, archives, damage.
//! Clauses: IMG-1 to IMG-6, LOG-4, LOG-5.

mod images_kit;

use images_kit::{Server, bem, bem_json, head, lived, need, save, text, tool};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

fn read_log(folder: &Path) -> Vec<Value> {
    let log = std::fs::read_to_string(folder.join("S/log/bem.log")).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect()
}

/// Waits until something is so; five minutes are long enough on a machine with much other work.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what} did not happen");
}

#[test]
fn a_saved_server_goes_on_elsewhere_with_its_key_as_the_same_history_and_without_it_as_a_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 150);
    let tag = save(folder, "S", "L");
    let with_key = bem_json(
        folder,
        &["image", "restore", &tag, "--layout", "L", "--out", "R", "--key", "key", "--json"],
    );
    assert_eq!(
        (with_key["head"].as_str(), &with_key["origin"]),
        (Some(head(folder, "S").as_str()), &Value::Null)
    );
    let new = bem_json(folder, &["image", "restore", &tag, "--layout", "L", "--out", "N", "--json"]);
    assert_eq!(new["origin"].as_str(), Some(head(folder, "S").as_str()));
    assert_eq!(new["head"].as_str(), Some(head(folder, "N").as_str()));
    // What all three do next is the same. Later decisions may differ by when a round of learning takes effect, which is an input.
    let go_on = |state: &str, more: &[&str]| {
        let server = Server::start(folder, state, more);
        let (status, answer) = server.ask("POST", "/v1/worlds/ads/decide", &json!({ "obs": "01" }));
        assert_eq!(status, 200, "{answer}");
        server.drive(150..230, false);
        server.stop();
        answer
    };
    let undisturbed = go_on("S", &["--key", "key"]);
    assert_eq!(go_on("R", &["--key", "key"]), undisturbed);
    assert_eq!(go_on("N", &[]), undisturbed);
    for state in ["R", "N"] {
        assert_eq!(bem(folder, &["replay", state]).status.code(), Some(0), "{state}");
    }
    let wrong =
        bem(folder, &["image", "restore", &tag, "--layout", "L", "--out", "W", "--key", "keys/bem/key"]);
    assert!(text(&wrong).contains("holds the key of another run"), "{}", text(&wrong));
    assert!(!folder.join("W").exists() && !folder.join(".W.restoring").exists());
}

#[test]
fn two_continuations_of_one_image_are_reported_as_a_fork() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 20);
    let tag = save(folder, "S", "L");
    for out in ["A", "B"] {
        bem_json(
            folder,
            &["image", "restore", &tag, "--layout", "L", "--out", out, "--key", "key", "--json"],
        );
    }
    // Both go on under the same key, on different ways.
    for (state, decisions) in [("A", 7), ("B", 9)] {
        let server = Server::start(folder, state, &["--key", "key"]);
        server.drive(0..decisions, false);
        server.stop();
    }
    let first = bem(folder, &["image", "snapshot", "--state", "A", "--layout", "L", "--force"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
    let second = bem(folder, &["image", "snapshot", "--state", "B", "--layout", "L", "--force"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second).contains("fork: bem-brain:"), "{}", text(&second));
    // Without the key both name the same head.
    for out in ["C", "D"] {
        bem_json(folder, &["image", "restore", &tag, "--layout", "L", "--out", out, "--json"]);
        save(folder, out, "M");
    }
    let listed = bem_json(folder, &["image", "list", "--layout", "M", "--json"]);
    assert_eq!(listed["forks"].as_array().expect("a list").len(), 1, "{listed}");
    assert!(listed["forks"][0].as_str().expect("words").contains("both go on from head"), "{listed}");
}

#[test]
fn the_same_state_has_the_same_digest_wherever_it_is_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 10);
    std::fs::create_dir_all(folder.join("far/away")).expect("a folder");
    tool(folder, "cp", &["-a", "S", "far/away/T"]);
    let digests: Vec<String> = [("S", "L"), ("far/away/T", "far/M")]
        .iter()
        .map(|(state, layout)| {
            let tag = save(folder, state, layout);
            let listed = bem_json(folder, &["image", "list", "--layout", layout, "--json"]);
            let images = listed["images"].as_array().expect("images").clone();
            let found = images.iter().find(|image| image["tag"] == json!(tag)).expect("the image").clone();
            assert!(found["bytes"].as_u64().expect("bytes") < 30_000_000, "{found}");
            found["digest"].as_str().expect("a digest").to_string()
        })
        .collect();
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn the_agent_saves_images_while_the_gate_is_open_and_says_why_it_skips() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let server = Server::start(folder, "S", &["--image-every", "1s"]);
    server.make_world();
    server.drive(0..40, false);
    let event = |wanted: &str| read_log(folder).iter().filter(|line| line["event"] == json!(wanted)).count();
    wait_until("an image", || 0 < event("image"));
    let listed = bem_json(folder, &["image", "list", "--layout", "S/images", "--json"]);
    let kinds: Vec<&str> =
        listed["images"].as_array().expect("images").iter().filter_map(|one| one["kind"].as_str()).collect();
    assert!(kinds.contains(&"service") && kinds.contains(&"base"), "{listed}");
    // A BAD outcome closes the gate for as long as the window is.
    server.drive(40..42, true);
    wait_until("ten skips and the alarm", || 0 < event("no_images"));
    let log = read_log(folder);
    let skipped = log.iter().find(|line| line["event"] == json!("image_skipped")).expect("a skip");
    assert!(
        skipped["reasons"][0].as_str().expect("a reason").starts_with("safety_violations_window is "),
        "{skipped}"
    );
    let alarm = log.iter().find(|line| line["event"] == json!("no_images")).expect("an alarm");
    assert_eq!((&alarm["level"], &alarm["skipped"]), (&json!("alarm"), &json!(10)));
    server.stop();
    // By command it is the same gate; a violation is not forgotten by a restart.
    let refused = bem(folder, &["image", "snapshot", "--state", "S", "--layout", "L"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("safety_violations_window is "), "{}", text(&refused));
    std::fs::remove_file(folder.join("S/metrics")).expect("metrics");
    let refused = bem(folder, &["image", "snapshot", "--state", "S", "--layout", "L"]);
    assert!(text(&refused).contains("metrics are missing"), "{}", text(&refused));
    assert!(!folder.join("L").exists());
}

#[test]
fn a_server_with_small_segments_archives_them_and_its_history_stays_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let more = ["--image-every", "1s", "--segment-bytes", "65536", "--key", "key"];
    let server = Server::start(folder, "S", &more);
    server.make_world();
    let archived = || read_log(folder).iter().any(|line| line["event"] == json!("archived"));
    let mut number = 0;
    while !archived() {
        server.drive(number..number + 200, false);
        number += 200;
        assert!(number < 40_000, "nothing was archived");
    }
    server.drive(number..number + 50, false);
    server.kill();
    let server = Server::start(folder, "S", &["--key", "key", "--image-every", "never"]);
    server.drive(number + 50..number + 60, false);
    server.stop();
    let report = bem_json(folder, &["verify", "S", "--json"]);
    assert!(report["archived"]["end"].as_u64().is_some_and(|end| 0 < end), "{report}");
    assert_eq!(report["verdict"], json!("unanchored"));
    let kept = std::fs::copy(folder.join("S/ledger/checkpoint"), folder.join("kept"));
    assert!(kept.is_ok());
    let anchored = bem_json(folder, &["verify", "S", "--checkpoint", "kept", "--json"]);
    assert_eq!(anchored["verdict"], json!("ok"));
    let replayed = bem(folder, &["replay", "S"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed));
    // What is archived is in an image: it is restored and goes on.
    let tag = save(folder, "S", "L");
    bem_json(folder, &["image", "restore", &tag, "--layout", "L", "--out", "R", "--key", "key", "--json"]);
    assert_eq!(head(folder, "R"), head(folder, "S"));
    bem_json(folder, &["image", "restore", &tag, "--layout", "L", "--out", "N", "--json"]);
    assert_eq!(bem(folder, &["replay", "N"]).status.code(), Some(0));
}

#[test]
fn a_segment_that_is_damaged_where_nobody_reads_becomes_no_image_and_is_not_archived() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let server =
        Server::start(folder, "S", &["--image-every", "never", "--segment-bytes", "65536", "--key", "key"]);
    server.make_world();
    let segments = || {
        let names =
            std::fs::read_dir(folder.join("S/ledger")).expect("a ledger").map(|entry| entry.expect("a file"));
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with("segment-")).count()
    };
    let mut number = 0;
    while segments() < 4 {
        server.drive(number..number + 200, false);
        number += 200;
        assert!(number < 40_000, "the segments do not grow");
    }
    server.stop();
    let more =
        ["--image-every", "5s", "--segment-bytes", "65536", "--key", "key", "--gate-score-trend", "-1000"];
    let server = Server::start(folder, "S", &more);
    // The server has read its ledger when it started. From then on it reads the newest segment only.
    let path = folder.join("S/ledger/segment-00000001.log");
    let mut bytes = std::fs::read(&path).expect("a segment");
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    std::fs::write(&path, &bytes).expect("a segment");
    let images_before = read_log(folder).iter().filter(|line| line["event"] == json!("image")).count();
    assert_eq!(
        images_before, 0,
        "an image was saved before the damage: the test is too slow to say anything"
    );
    let skipped = || {
        let log = read_log(folder);
        let found = log.iter().rfind(|line| line["event"] == json!("image_skipped"));
        found.map(|line| (line["in_a_row"].as_u64(), line["reasons"].to_string()))
    };
    wait_until("two skips", || skipped().is_some_and(|(count, _)| Some(2) <= count));
    let (_, reasons) = skipped().expect("a skip");
    assert!(reasons.contains("the state is not whole"), "{reasons}");
    let log = read_log(folder);
    let event = |wanted: &str| log.iter().filter(|line| line["event"] == json!(wanted)).count();
    assert_eq!((event("image"), event("archived")), (0, 0));
    assert!(4 <= segments(), "nothing was removed");
    server.kill();
}

/// Every byte of every blob, gzipped layers unpacked.
fn all_bytes(layout: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(layout.join("blobs/sha256")).expect("blobs") {
        let path = entry.expect("a blob").path();
        all.extend(std::fs::read(&path).expect("bytes"));
        let unpacked = std::process::Command::new("gzip")
            .arg("-dc")
            .stdin(std::fs::File::open(&path).expect("a blob"))
            .output();
        all.extend(unpacked.map(|output| output.stdout).unwrap_or_default());
    }
    all
}

#[test]
fn planted_secrets_are_in_no_image_and_one_that_got_into_the_state_stops_the_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 5);
    let holds = |all: &[u8], needle: &[u8]| all.windows(needle.len()).any(|window| window == needle);
    let token = std::fs::read(folder.join("S/token")).expect("a token");
    let made = bem(folder, &["token", "add", "shop", "--role", "annotator", "--state", "S"]);
    assert!(made.status.success());
    let planted: [&[u8]; 3] =
        [b"PLANTED-in-a-file-of-the-state", b"PLANTED-in-a-catalog", b"PLANTED-in-the-ledger-folder"];
    std::fs::write(folder.join("S/notes.txt"), planted[0]).expect("a file");
    std::fs::write(folder.join("S/catalog.toml"), planted[1]).expect("a file");
    std::fs::write(folder.join("S/ledger/password"), planted[2]).expect("a file");
    save(folder, "S", "L");
    let all = all_bytes(&folder.join("L"));
    assert!(holds(&all, b"bem.chain.head") && holds(&all, b"BEMSEGM1"), "the scan sees what is there");
    let key = std::fs::read(folder.join("key")).expect("a key");
    let secrets = planted.iter().copied().chain([token.trim_ascii(), made.stdout.trim_ascii(), &key]);
    for secret in secrets {
        assert!(!holds(&all, secret), "{}", String::from_utf8_lossy(secret));
    }
    // A secret as the name of a world is in the history: no image is made, and the file is named.
    std::fs::write(folder.join("password"), "planted-as-a-world").expect("a file");
    let server = Server::start(folder, "S", &["--key", "key"]);
    let world =
        json!({ "name": "planted-as-a-world", "obs_bits": 2, "actions": 3, "reward_range": [0, 1000] });
    assert_eq!(server.ask("POST", "/v1/worlds", &world).0, 201);
    server.stop();
    let refused = bem(
        folder,
        &["image", "snapshot", "--state", "S", "--layout", "M", "--force", "--secret", "password"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("the secret of password"), "{}", text(&refused));
}

#[test]
fn an_older_stable_a_wrong_signer_and_damaged_images_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 10);
    let first = save(folder, "S", "L");
    let promoted = bem_json(folder, &["image", "promote", &first, "--layout", "L", "--json"]);
    assert_eq!(promoted["serial"], json!(1));
    tool(folder, "cp", &["-a", "L", "old"]);
    let server = Server::start(folder, "S", &["--key", "key"]);
    server.drive(10..14, false);
    server.stop();
    let second = save(folder, "S", "L");
    bem_json(folder, &["image", "promote", &second, "--layout", "L", "--json"]);
    let restored = bem_json(folder, &["image", "restore", "stable", "--layout", "L", "--out", "R", "--json"]);
    assert_eq!(restored["signed_by"][0], promoted["key"]);
    let refused = bem(folder, &["image", "restore", "stable", "--layout", "old", "--out", "O"]);
    assert!(text(&refused).contains("an older state was put in its place"), "{}", text(&refused));
    let wrong = "0".repeat(64);
    let refused =
        bem(folder, &["image", "restore", &first, "--layout", "L", "--out", "O", "--signer", &wrong]);
    assert!(text(&refused).contains("is not signed by 0000"), "{}", text(&refused));
    let key = promoted["key"].as_str().expect("a key");
    let accepted = bem(folder, &["image", "restore", &first, "--layout", "L", "--out", "K", "--signer", key]);
    assert!(accepted.status.success(), "{}", text(&accepted));
    // One bit of any file of the image, the index included.
    for (number, name) in damaged_places(&folder.join("L")).into_iter().enumerate() {
        let path = folder.join("L").join(&name.0);
        let whole = std::fs::read(&path).expect("a file");
        let mut damaged = whole.clone();
        damaged[name.1] ^= 1 << (number % 8);
        std::fs::write(&path, &damaged).expect("a file");
        let refused = bem(folder, &["image", "restore", &second, "--layout", "L", "--out", "D"]);
        assert_eq!(refused.status.code(), Some(2), "{name:?}: {}", text(&refused));
        assert!(!folder.join("D").exists());
        std::fs::write(&path, &whole).expect("a file");
    }
    let whole = bem(folder, &["image", "restore", &second, "--layout", "L", "--out", "D"]);
    assert!(whole.status.success(), "{}", text(&whole));
}

/// Places in the index, the marker, and the manifest, configuration and layers of the newest image.
fn damaged_places(layout: &Path) -> Vec<(String, usize)> {
    let index: Value =
        serde_json::from_slice(&std::fs::read(layout.join("index.json")).expect("an index")).expect("JSON");
    let stable = index["manifests"].as_array().expect("manifests").iter();
    let stable = stable
        .filter(|one| one["annotations"]["org.opencontainers.image.ref.name"] == json!("bem-brain:stable"))
        .map(|one| one["digest"].as_str().expect("a digest")[7..].to_string());
    let mut stable = stable;
    let manifest = stable.next().expect("stable");
    let blob = |digest: &str| format!("blobs/sha256/{digest}");
    let parsed: Value =
        serde_json::from_slice(&std::fs::read(layout.join(blob(&manifest))).expect("a manifest"))
            .expect("JSON");
    let mut names = vec!["index.json".to_string(), "oci-layout".to_string(), blob(&manifest)];
    names.push(blob(&parsed["config"]["digest"].as_str().expect("a digest")[7..]));
    names.extend(
        parsed["layers"]
            .as_array()
            .expect("layers")
            .iter()
            .map(|one| blob(&one["digest"].as_str().expect("a digest")[7..])),
    );
    let places = |name: String| {
        let length = std::fs::metadata(layout.join(&name)).expect("a file").len() as usize;
        (0..4).map(move |quarter| (name.clone(), (length * (2 * quarter + 1) / 8).min(length - 1)))
    };
    names.into_iter().flat_map(places).collect()
}

#[test]
fn a_run_is_saved_and_restored_with_what_its_history_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let solved = bem(folder, &["solve", "parity", "--param", "n=4", "--out", "run", "--key", "key"]);
    assert!(solved.status.success(), "{}", text(&solved));
    let taken = bem_json(folder, &["image", "snapshot", "--state", "run", "--layout", "L", "--json"]);
    let tag = taken["tag"].as_str().expect("a tag");
    bem_json(folder, &["image", "restore", tag, "--layout", "L", "--out", "same", "--key", "key", "--json"]);
    assert_eq!(head(folder, "same"), head(folder, "run"));
    for name in ["report.html", "evaluation.json"] {
        assert!(folder.join("same").join(name).exists(), "{name}");
    }
    let new = bem_json(folder, &["image", "restore", tag, "--layout", "L", "--out", "new", "--json"]);
    assert_eq!(new["origin"].as_str(), Some(head(folder, "run").as_str()));
    assert_eq!(new["head"].as_str(), Some(head(folder, "new").as_str()));
}

#[test]
fn the_unit_of_the_system_is_accepted() {
    need(&["systemd-analyze"]);
    let folder = tempfile::tempdir().expect("a folder");
    let unit =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/bem.service"));
    // The program stands where this test has it; everything else is as it is installed.
    let unit = unit.expect("the unit").replace("/usr/bin/bem", env!("CARGO_BIN_EXE_bem"));
    std::fs::write(folder.path().join("bem.service"), unit).expect("a file");
    let said = tool(folder.path(), "systemd-analyze", &["verify", "bem.service"]);
    assert!(!said.contains("bem.service"), "{said}");
}
