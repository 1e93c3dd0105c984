//! Exports as a user meets them: programs whose self-tests pass, provenance, and clear words where nothing can be had.

mod support;

use bem_base::digest::hash_parts;
use std::path::Path;
use std::process::{Command, Output};
use support::{bem, solved, text};

/// The line with which a command is refused: exit code 2, nothing on standard output.
fn refusal(output: &Output) -> String {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty() && error.lines().count() == 1, "{output:?}");
    error
}

#[test]
fn programs_in_five_languages_pass_their_self_tests_and_say_where_they_come_from() {
    let folder = solved(&["dyck", "--param", "depth=2", "--param", "length=8"]);
    let header = bem(folder.path(), &["export", "kept", "--format", "c"]);
    assert!(header.status.success(), "{header:?}");
    let header = text(&header.stdout);
    let parts = ["bem_decide(", "bem_reset(", "run: seed 1, history "];
    let missing: Vec<&str> = parts.into_iter().filter(|part| !header.contains(part)).collect();
    assert!(missing.is_empty(), "the exported C has no {}", missing.join(", no "));
    for (format, name) in [
        ("c", "policy.h"),
        ("rust", "policy.rs"),
        ("python", "policy.py"),
        ("javascript", "policy.mjs"),
        ("verilog", "policy.v"),
    ] {
        let said =
            bem(folder.path(), &["export", "kept", "--format", format, "--out", name, "--vectors", "100000"]);
        assert!(said.status.success(), "{said:?}");
        let said = text(&said.stdout);
        let command = said.lines().skip_while(|line| *line != "check it in its folder with").nth(1);
        let command = command.expect("it says how to check it").trim();
        let tool = command.split(' ').next().expect("a command");
        let there = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().expect("a shell");
        assert!(
            there.status.success(),
            "{tool} is not installed; `cargo xtask test` installs what tests need"
        );
        let tested =
            Command::new("sh").args(["-c", command]).current_dir(folder.path()).output().expect("a shell");
        assert!(
            tested.status.success() && text(&tested.stdout).starts_with("100000 steps"),
            "{format}: {tested:?}"
        );
        let program = std::fs::read_to_string(folder.path().join(name)).expect("the program");
        let head: String = program.lines().take(9).collect::<Vec<_>>().join("\n");
        for wanted in [
            "BEM policy dyck",
            "task: dyck{depth=2,length=8}",
            "run: seed 1, history ",
            "circuit: ",
            "measured: mean return 1.000",
            "warning: learned in episodes of at most ",
            "call bem_reset at the start of each",
        ] {
            assert!(head.contains(wanted), "{format}: {wanted} is not in\n{head}");
        }
    }
    // To standard output goes the program alone.
    let printed = bem(folder.path(), &["export", "kept", "--format", "python"]);
    assert_eq!(text(&printed.stdout), std::fs::read_to_string(folder.path().join("policy.py")).expect("it"));
}

#[test]
fn a_program_takes_all_observation_bits_of_its_world_in_their_order() {
    let folder = solved(&["parity", "--param", "n=12", "--param", "relevant=3"]);
    let said = bem(folder.path(), &["export", "kept", "--format", "c", "--out", "policy.h"]);
    assert!(said.status.success(), "{said:?}");
    let program = std::fs::read_to_string(folder.path().join("policy.h")).expect("the program");
    assert!(
        program.contains("#define BEM_OBS_BITS 12") && program.contains("reads 3 of 12 observation bits")
    );
}

#[test]
fn snapshots_and_circuits_are_exported_as_well() {
    let folder = solved(&["dyck", "--param", "depth=2", "--param", "length=8"]);
    assert!(bem(folder.path(), &["snapshot", "kept", "--out", "saved"]).status.success());
    for format in ["c", "net"] {
        let of = |source: &str| bem(folder.path(), &["export", source, "--format", format]).stdout;
        // The figures are in the run's folder; a snapshot has the score alone.
        let is_figure = |line: &&str| line.contains("measured: ") || line.contains("baselines: ");
        let without = |text: String| {
            text.lines().filter(|line| !is_figure(line)).map(str::to_string).collect::<Vec<_>>()
        };
        assert_eq!(without(text(&of("saved"))), without(text(&of("kept"))));
    }
    let net = bem(folder.path(), &["export", "kept", "--format", "net", "--out", "policy.net"]);
    assert!(net.status.success(), "{net:?}");
    let code = |source: &str| {
        let program = text(&bem(folder.path(), &["export", source, "--format", "c"]).stdout);
        program.split("bem_decide(bem_state").nth(1).expect("a function").to_string()
    };
    assert_eq!(code("policy.net"), code("kept"));
    // What AIGER says of itself does not keep it from being read.
    for format in ["aiger", "aiger-ascii", "blif"] {
        let out = format!("policy.{format}");
        assert!(bem(folder.path(), &["export", "kept", "--format", format, "--out", &out]).status.success());
        let equal = bem(folder.path(), &["prove", "equiv", &out, "policy.net"]);
        assert!(equal.status.success(), "{format}: {equal:?}");
    }
}

#[test]
fn what_is_missing_is_said_in_one_line_and_never_passed_over() {
    let folder = solved(&["parity", "--param", "n=4"]);
    // The newest snapshot holds the circuit; the first one is of before anything was learned.
    let ledger = folder.path().join("kept/ledger");
    let names = || std::fs::read_dir(&ledger).expect("a ledger").map(|entry| entry.expect("an entry").path());
    let mut snapshots: Vec<_> =
        names().filter(|path| path.extension().is_some_and(|ending| ending == "snap")).collect();
    snapshots.sort();
    let newest = snapshots.last().expect("a snapshot");
    let bytes = std::fs::read(newest).expect("its bytes");
    std::fs::remove_file(newest).expect("it is removed");
    let line = refusal(&bem(folder.path(), &["export", "kept", "--format", "c"]));
    assert!(line.contains("the newest snapshot (snapshot-") && line.contains("is missing"), "{line}");
    std::fs::write(newest, bytes).expect("it is put back");
    assert!(bem(folder.path(), &["export", "kept", "--format", "c"]).status.success());

    let game = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/games/gridworld.json");
    let own = solved(&["--game", game.to_str().expect("text"), "--budget", "2000"]);
    let blobs: Vec<_> = std::fs::read_dir(own.path().join("kept/ledger")).expect("a ledger").collect();
    for blob in blobs {
        let path = blob.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("blob-")) {
            std::fs::remove_file(path).expect("it is removed");
        }
    }
    let line = refusal(&bem(own.path(), &["export", "kept"]));
    assert!(line.contains("the world's file "), "{line}");

    let empty = tempfile::tempdir().expect("a folder");
    let nothing =
        bem(empty.path(), &["run", "--families", "parity", "--steps", "0", "--out", "kept", "--json"]);
    assert!(nothing.status.success(), "{nothing:?}");
    let line = refusal(&bem(empty.path(), &["export", "kept"]));
    assert!(line.contains("there is no learned circuit"), "{line}");

    // What a log taught has no history of a run; what to do instead is said.
    let data = "a,offer\n".to_string() + &"0,no\n9,yes\n".repeat(60);
    std::fs::write(empty.path().join("data.csv"), data).expect("a table");
    let learned = bem(empty.path(), &["learn", "data.csv", "--label", "offer", "--out", "offer.policy"]);
    assert!(learned.status.success(), "{learned:?}");
    let line = refusal(&bem(empty.path(), &["export", "offer.policy", "--format", "bundle"]));
    assert!(line.contains("no history of a run") && line.contains("self-test"), "{line}");

    // Several experts are listed; a file is of one.
    let several = ["run", "--families", "parity,bandit", "--steps", "3000", "--stages", "2", "--out", "two"];
    assert!(bem(empty.path(), &several).status.success());
    let listed = text(&bem(empty.path(), &["export", "two"]).stdout);
    assert!(1 < listed.lines().count(), "{listed}");
    let line = refusal(&bem(empty.path(), &["export", "two", "--format", "c", "--out", "policy.h"]));
    let names = listed.lines().filter_map(|one| one.split_whitespace().next());
    assert!(line.contains("--expert") && names.into_iter().all(|name| line.contains(name)), "{line}");
    assert!(!empty.path().join("policy.h").exists());
}

#[test]
fn binary_aiger_does_not_go_to_a_terminal() {
    let folder = solved(&["parity", "--param", "n=4"]);
    let command = format!("{} export kept --format aiger", env!("CARGO_BIN_EXE_bem"));
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(folder.path())
        .output()
        .expect("script (util-linux) gives a command a terminal; install bsdutils");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(shown.contains("binary AIGER is not written to a terminal"), "{shown}");
    let piped = bem(folder.path(), &["export", "kept", "--format", "aiger"]);
    assert!(piped.stdout.starts_with(b"aig "), "{piped:?}");
}

/// A world that asks for a bit it showed before and pays by chance, and writes down what it sees.
const RECORDING_WORLD: &str = r#"
import json, random, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "obs_bits": 2, "actions": 2, "horizon": 2, "reward_range": [0, 1000]})
log = open("played", "w")
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        draw = random.Random(message["reset"])
        bit, pays, step = draw.randrange(2), draw.random() < 0.9, 0
        obs = "0%d" % bit
        log.write("reset\n")
        say({"obs": obs})
    else:
        reward = 1000 if step == 1 and message["act"] == bit and pays else 0
        log.write("%s %d %d\n" % (obs, message["act"], reward))
        log.flush()
        step, obs = step + 1, "10"
        say({"obs": obs, "reward": reward, "done": step == 2, "bad": False})
"#;

/// Says where in the record so many episodes in a row earned what was measured and were played, step by step, as the exported
/// program plays; and in how many episodes of the whole record it would have done something else.
const RECORD_JUDGE: &str = r#"
import sys
from policy import Policy
mean, size = float(sys.argv[1]), int(sys.argv[2])
parts = open("played").read().split("reset\n")[1:]
episodes = [[line.split() for line in part.splitlines()] for part in parts]
policy = Policy()
def agrees(episode):
    policy.reset()
    return [policy.decide(obs) for obs, _, _ in episode] == [int(act) for _, act, _ in episode]
agreed = [agrees(episode) for episode in episodes]
earned = [sum(int(reward) for _, _, reward in episode) for episode in episodes]
def is_measured(at):
    return all(agreed[at:at + size]) and sum(earned[at:at + size]) == round(1000 * mean * size)
print(sum(map(is_measured, range(len(episodes) - size + 1))), agreed.count(False))
"#;

/// Exported code = frozen circuit = what was measured: the world outside is witness, the history names the same circuit.
#[test]
fn the_exported_program_is_the_frozen_machine_that_was_measured_step_by_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).expect("a file");
    write("world.py", RECORDING_WORLD.as_bytes());
    write("judge.py", RECORD_JUDGE.as_bytes());
    let solve = ["solve", "--env-cmd", "python3 world.py", "--budget", "3000", "--out", "kept", "--json"];
    let solved: serde_json::Value =
        serde_json::from_slice(&bem(folder.path(), &solve).stdout).expect("a solution");
    assert!(0 < solved["state_bits"].as_u64().expect("a number"), "{solved}");
    let program = bem(folder.path(), &["export", "kept", "--format", "python"]).stdout;
    write("policy.py", &program);
    let (mean, size) = (solved["return_mean"].to_string(), solved["evaluation_episodes"].to_string());
    let judged = Command::new("python3").args(["judge.py", &mean, &size]).current_dir(folder.path()).output();
    let judged = text(&judged.expect("python3").stdout);
    let (found, other) = judged.trim().split_once(' ').expect("two numbers");
    assert_ne!(found, "0", "no {size} episodes in a row are the exported program's with a mean of {mean}");
    // While it was learned something else was done as well: the comparison can fail.
    assert_ne!(other, "0");
    // The circuit that the program names is the one that the audited history names, and what other formats hold.
    let program = text(&program);
    let circuit = program.lines().find_map(|line| line.strip_prefix("# circuit: ")).expect("its circuit");
    let digest = circuit.split(',').next().expect("a digest");
    let files = std::fs::read_dir(folder.path().join("kept/ledger")).expect("a ledger");
    let is_it = |path: &Path| {
        let bytes = std::fs::read(path).expect("a file of the ledger");
        hash_parts("bem/policy", &[&bytes]).to_hex() == digest
    };
    assert!(files.into_iter().any(|file| is_it(&file.expect("a file").path())), "{circuit}");
    assert!(text(&bem(folder.path(), &["export", "kept", "--format", "net"]).stdout).contains(circuit));
    assert!(bem(folder.path(), &["verify", "kept", "--json"]).status.success());
}
