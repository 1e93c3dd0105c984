//! The user's own games from outside: files, programs and compositions, whole and broken. Clauses: GLE-3, GLE-9.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn example(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

fn bem(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem")).args(arguments).output().expect("bem starts")
}

fn solve(arguments: &[&str]) -> Output {
    bem(&[&["solve"], arguments].concat())
}

fn solved(arguments: &[&str]) -> Value {
    let output = solve(&[arguments, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

/// The one line on standard error; the exit code must be 2.
fn refused(arguments: &[&str]) -> String {
    let output = solve(arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// One step: the temperature lies between 10 and 26, of a declared range of 100, and 18.3 decides.
const NARROW: &str = r#"
import json, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "actions": 2, "horizon": 1, "reward_range": [0, 1000],
     "features": [{"name": "temp", "kind": "number", "min": -40, "max": 60}, {"name": "mode", "kind": "choice", "of": 4}]})
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        number = message["reset"] * 2654435761 % 2**32 >> 8
        temp, mode = 100 + number % 161, number % 4
    seen = {"temp": temp / 10, "mode": mode}
    paid = {"reward": 1000 if message.get("act") == (temp >= 183) else 0, "done": True}
    say({"obs": seen} if "reset" in message else {"obs": seen, **paid})
"#;

#[test]
fn a_threshold_is_found_in_a_small_part_of_the_declared_range() {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = folder.path().join("narrow.py");
    std::fs::write(&program, NARROW).expect("the program is written");
    let command = format!("python3 {}", program.display());
    let answer = solved(&["--env-cmd", &command, "--budget", "10000", "--eval-episodes", "2000"]);
    // 18.3 lies between two of the thresholds, half a degree apart.
    let mean = answer["return_mean"].as_f64().expect("a mean return");
    assert!(0.95 <= mean, "{answer}");
}

/// One step: amounts of every size up to a million, and 137 decides.
const WIDE: &str = r#"
import json, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "actions": 2, "horizon": 1, "reward_range": [0, 1000],
     "features": [{"name": "amount", "kind": "number", "min": 0, "max": 1000000}, {"name": "door", "kind": "bit"}]})
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        number = message["reset"] * 2654435761 % 2**32 >> 8
        amount, door = int(10 ** (6 * (number % 10007) / 10007)), number % 2
    seen = {"amount": amount, "door": door}
    paid = {"reward": 1000 if message.get("act") == (amount >= 137) else 0, "done": True}
    say({"obs": seen} if "reset" in message else {"obs": seen, **paid})
"#;

#[test]
fn a_small_threshold_is_found_in_a_range_of_a_million() {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let program = folder.path().join("wide.py");
    std::fs::write(&program, WIDE).expect("the program is written");
    let command = format!("python3 {}", program.display());
    let answer = solved(&["--env-cmd", &command, "--budget", "10000", "--eval-episodes", "2000"]);
    // An even grid begins with 5,000: of the amounts two in three lie below, and play there earned 0.73 at best.
    let mean = answer["return_mean"].as_f64().expect("a mean return");
    assert!(0.97 <= mean, "{answer}");
}

#[test]
fn compositions_are_tasks() {
    let answer = solved(&["seq(parity{n=4},majority{n=5})", "--budget", "40000"]);
    assert_eq!(answer["optimum"], 2.0);
    assert_eq!(answer["random"], 1.0);
    assert_eq!(answer["task"], "seq(parity{n=4},majority{n=5})");
    assert!(refused(&["seq(parity{n=4})"]).contains("column 17: seq takes 2 parts; 1 were given"));
    assert!(refused(&["seq(parity{n=400},majority)"]).contains("parameter n cannot be \"400\""));
}

#[test]
fn compositions_and_files_can_be_looked_at() {
    let show = |arguments: &[&str]| {
        let all = [&["games", "show"], arguments, &["--json"]].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_bem")).args(all).output().expect("bem starts");
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
    };
    assert_eq!(show(&["repeat{times=3}(compare{bits=2})"])["optimum"], 3.0);
    assert_eq!(show(&["repeat(compare{bits=2})", "--param", "times=4"])["optimum"], 4.0);
    let kuhn = show(&["--game", &example("games/kuhn_poker.efg")]);
    assert_eq!((&kuhn["optimum"], &kuhn["horizon"]), (&Value::from(0.5), &Value::from(2)));
}

#[test]
fn game_files_are_played_and_their_values_known() {
    for (file, optimum, random) in [
        ("games/centipede.efg", 1.5, 1.125),
        ("games/matching_pennies.nfg", 0.0, 0.0),
        ("games/kuhn_poker.efg", 0.5, 0.125),
    ] {
        let answer = solved(&["--game", &example(file), "--budget", "20000"]);
        assert_eq!(
            (answer["optimum"].as_f64(), answer["random"].as_f64()),
            (Some(optimum), Some(random)),
            "{file}"
        );
    }
}

#[test]
fn opponents_and_seats_are_parameters() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = directory.path().join("coin.json");
    std::fs::write(&policy, r#"{"1":{"1":[3,1]}}"#).expect("a file");
    let opponent = format!("opponent={}", policy.display());
    let game = example("games/matching_pennies.nfg");
    let answer = solved(&["--game", &game, "--param", &opponent, "--param", "player=2", "--budget", "5000"]);
    assert_eq!(answer["optimum"], 0.5);
    assert!(
        refused(&["--game", &game, "--param", "player=3"]).contains("player 3 does not exist: there are 2")
    );
    assert!(refused(&["--game", &game, "--param", "n=3"]).contains("there is no parameter called \"n\""));
    assert!(refused(&["--game", "nothing.efg"]).contains("nothing.efg"));
    assert!(refused(&["--game", "game.txt"]).contains("the name must end in .nfg, .efg or .json"));
}

#[test]
fn a_program_is_learned_over_pipes() {
    let command = format!("python3 {}", example("count_env.py"));
    let output = solve(&["--env-cmd", &command, "--budget", "20000", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["optimum"], Value::Null);
    assert_eq!(answer["score"], Value::Null);
    assert!(4.95 <= answer["return_mean"].as_f64().expect("a return"), "{answer}");
}

#[test]
fn a_range_that_is_widened_after_a_patch_leaves_a_history_that_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let world = r#"
import json, random, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "obs_bits": 2, "actions": 2, "horizon": 1, "reward_range": [0, 1000], "fields": [[0, 2]]})
seen, steps = "00", 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        seen = random.Random(message["reset"]).choice(["00", "01", "10", "11"])
        say({"obs": seen})
    else:
        steps += 1
        paid = 1500 if 1500 < steps else 1000
        right = message["act"] == (seen[0] != seen[1])
        say({"obs": seen, "reward": paid if right else 0, "done": True, "bad": False})
"#;
    let (program, run) = (folder.path().join("world.py"), folder.path().join("run").display().to_string());
    std::fs::write(&program, world).expect("a file");
    let command = format!("python3 {}", program.display());
    let learned = solved(&["--env-cmd", &command, "--online", "--budget", "3000", "--out", &run]);
    assert!(0 < learned["range_widened"].as_u64().expect("a count"), "{learned}");
    assert!(0 < learned["patches_applied"].as_u64().expect("a count"), "{learned}");
    for look in ["verify", "replay"] {
        let looked = bem(&[look, &run]);
        assert!(looked.status.success(), "{look}: {looked:?}");
    }
}

#[test]
fn broken_programs_give_one_clear_line() {
    assert!(refused(&["--env-cmd", "echo hi"]).contains("line 1: column 1: expected value"));
    assert!(refused(&["--env-cmd", "true"]).contains("line 1: the program has ended"));
    assert!(
        refused(&["--env-cmd", "sleep 60", "--env-timeout", "1"]).contains("line 1: no answer within 1 s")
    );
    let liar = r#"echo '{"hello":1,"obs_bits":1,"actions":2,"horizon":1,"reward_range":[0,1]}';
        while read x; do echo '{"obs":"1"}'; read x; echo '{"obs":"1","reward":900000000,"done":true}'; done"#;
    assert!(
        refused(&["--env-cmd", liar])
            .contains("line 3: \"reward\" is 900000000; allowed is -250000000 to 250000000")
    );
}

#[test]
fn when_a_program_dies_what_it_taught_is_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept = folder.path().join("kept").display().to_string();
    let key = folder.path().join("key").display().to_string();
    // The example, but for a program that dies when it has said 3,000 lines.
    let source = std::fs::read_to_string(example("count_env.py")).expect("the example is there");
    let mortal = source.replace(
        "def say(message):\n",
        "said = []\n\ndef say(message):\n    said.append(1)\n    if len(said) > 3000: sys.exit(3)\n",
    );
    assert_ne!(mortal, source);
    let script = folder.path().join("mortal.py");
    std::fs::write(&script, mortal).expect("the folder can be written");
    let command = format!("python3 {}", script.display());
    let message = refused(&["--env-cmd", &command, "--out", &kept, "--key", &key]);
    assert!(message.contains("the program has ended"), "{message}");
    assert!(message.contains("what was learned in 2") && message.contains(&kept), "{message}");
    assert!(bem(&["verify", &kept]).status.success());
    // It is played again up to where it died.
    let replay = bem(&["replay", &kept]);
    assert!(replay.status.success(), "{replay:?}");
    let circuit = bem(&["export", &kept, "--format", "verilog"]);
    assert!(circuit.status.success() && 100 < circuit.stdout.len());
}

/// Keeps a task, audits it and plays it again; then the same with the file that its world is made of changed.
fn kept_and_played_again(name: &str, arguments: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let [run, key] = [name, "key"].map(|name| folder.path().join(name).display().to_string());
    let output = solve(&[arguments, &["--budget", "1500", "--out", &run, "--key", &key]].concat());
    assert!(output.status.code() < Some(2), "{output:?}");
    let verify = bem(&["verify", &run]);
    assert!(verify.status.success(), "{verify:?}");
    let replay = bem(&["replay", &run]);
    let text = String::from_utf8_lossy(&replay.stdout).to_string();
    assert!(replay.status.success() && text.contains("1 units played again"), "{name}: {replay:?}");
    // The second slot of CFG names the file; the first one the configuration.
    let ledger = folder.path().join(name).join("ledger");
    let mut worlds = Vec::new();
    for entry in std::fs::read_dir(&ledger).expect("a ledger") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        if bytes.get(4..15) == Some(b"bem world 1") || bytes.get(4..15) == Some(b"bem climb 7") {
            worlds.push((path, bytes));
        }
    }
    assert_eq!(worlds.iter().filter(|(path, _)| path.to_string_lossy().contains("blob-")).count(), 2);
    for (path, honest) in worlds {
        std::fs::remove_file(&path).expect("it was there");
        let missing = bem(&["verify", &run]);
        assert_eq!(missing.status.code(), Some(1), "{name}: {} went unnoticed", path.display());
        let mut changed = honest.clone();
        *changed.last_mut().expect("it is not empty") ^= 1;
        std::fs::write(&path, &changed).expect("a file");
        assert_eq!(bem(&["verify", &run]).status.code(), Some(1), "{name}: {}", path.display());
        assert_ne!(bem(&["replay", &run]).status.code(), Some(0), "{name}: {}", path.display());
        std::fs::write(&path, honest).expect("a file");
    }
    assert!(bem(&["verify", &run]).status.success());
}

#[test]
fn games_from_files_and_programs_are_kept_and_played_again() {
    let kuhn = example("games/kuhn_poker.efg");
    kept_and_played_again("kuhn", &["--game", &kuhn, "--param", "player=2"]);
    kept_and_played_again("grid", &["--game", &example("games/gridworld.json")]);
    kept_and_played_again("nim", &["seq(isa{fragment=nim},parity{n=3})"]);
}

#[test]
fn a_program_outside_is_played_again_from_what_it_answered() {
    let command = format!("python3 {}", example("count_env.py"));
    kept_and_played_again("count", &["--env-cmd", &command]);
}

/// Starts a task in a folder of its own and stops it with Ctrl-C in the middle; what it said, and the folder.
///
/// The moment is up to the machine: too early nobody listens yet, too late the task is learned.
fn interrupted(folder: &std::path::Path, arguments: &[&str]) -> (Output, String) {
    let key = folder.join("key").display().to_string();
    for pause in [400, 900, 1_800, 200, 3_600, 100] {
        let cut = folder.join(format!("cut-{pause}")).display().to_string();
        let child = Command::new(env!("CARGO_BIN_EXE_bem"))
            .args([&["solve"], arguments, &["--json", "--out", &cut, "--key", &key]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("bem starts");
        std::thread::sleep(Duration::from_millis(pause));
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.expect("kill starts").success());
        let output = child.wait_with_output().expect("it ends");
        if String::from_utf8_lossy(&output.stderr).contains("bem: interrupted after ") {
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            return (output, cut);
        }
    }
    panic!("the task was never under way");
}

#[test]
fn a_program_outside_that_ctrl_c_stops_is_played_again_up_to_the_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = format!("python3 {}", example("inventory_env.py"));
    let (output, cut) = interrupted(folder.path(), &["--env-cmd", &command]);
    let said: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(said["kept"], Value::from(cut.clone()));
    assert!(bem(&["verify", &cut]).status.success());
    let replay = bem(&["replay", &cut]);
    let text = String::from_utf8_lossy(&replay.stdout).to_string();
    assert!(replay.status.success() && text.contains(&format!(" {} steps", said["steps"])), "{replay:?}");
}

#[test]
fn a_game_from_a_file_that_ctrl_c_cuts_short_goes_on_from_its_folder_and_from_a_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key").display().to_string();
    let game = example("games/gridworld.json");
    let words = ["--game", game.as_str(), "--budget", "30000"];
    let whole = folder.path().join("whole").display().to_string();
    assert!(solve(&[&words[..], &["--out", &whole, "--key", &key]].concat()).status.code() < Some(2));
    let circuit = |run: &str| {
        let output = bem(&["export", run, "--format", "net"]);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let (_, cut) = interrupted(folder.path(), &words);
    // A snapshot takes the game along, so that it needs the folder no more.
    let [saved, restored] = ["saved", "restored"].map(|name| folder.path().join(name).display().to_string());
    assert!(bem(&["snapshot", &cut, "--out", &saved]).status.success());
    let resume = |run: &str| bem(&["run", "--resume", run, "--minutes", "10", "--key", &key, "--json"]);
    assert!(resume(&cut).status.success());
    std::fs::remove_dir_all(&cut).expect("it is there");
    let restore = bem(&["restore", &saved, "--out", &restored, "--key", &key]);
    assert!(restore.status.success(), "{restore:?}");
    assert!(resume(&restored).status.success());
    assert_eq!(circuit(&restored), circuit(&whole));
    let replay = bem(&["replay", &restored]);
    assert!(replay.status.success(), "{replay:?}");
    // The snapshot as it lies in the folder has the game beside it, not in it.
    let inside = std::fs::read_dir(folder.path().join("whole/ledger")).expect("a ledger");
    let inside = inside.map(|entry| entry.expect("an entry").path());
    let snapshot = inside.filter(|path| path.extension().is_some_and(|end| end == "snap")).max();
    let snapshot = snapshot.expect("a snapshot").display().to_string();
    let bare = bem(&["restore", &snapshot, "--out", &cut, "--key", &key]);
    assert_eq!(bare.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bare.stderr).contains("copy it with bem snapshot DIR"), "{bare:?}");
}

fn gymnasium(world: &str) -> String {
    let installed =
        Command::new("python3").args(["-c", "import gymnasium"]).output().is_ok_and(|it| it.status.success());
    assert!(installed, "the Python package gymnasium is missing: run `cargo xtask test`, which installs it");
    format!("python3 {} {world}", example("gymnasium_env.py"))
}

#[test]
fn a_gymnasium_world_is_learned_for_real() {
    // Random play reaches the goal in about one of 70 episodes; the best way is certain to.
    let lake = solved(&["--env-cmd", &gymnasium("FrozenLake"), "--budget", "4000"]);
    assert_eq!(lake["return_mean"], 1.0, "{lake}");
    assert!(1 <= lake["patches_applied"].as_u64().expect("a count"), "{lake}");
}

/// Work pays 0.1 a step. Three steps lead to a sale that pays 0.8, after which nothing does: best is to leave work late.
const LATE_SALE: &str = r#"{"states": 4, "actions": 2, "horizon": 12, "start": [[0, 1]], "observe": "state",
 "transitions": [[0, 0, 0, 1, 100, false], [0, 1, 1, 1, 0, false], [1, 0, 1, 1, 0, false], [1, 1, 2, 1, 0, false],
  [2, 0, 2, 1, 0, false], [2, 1, 3, 1, 800, false], [3, 0, 3, 1, 0, false], [3, 1, 3, 1, 0, false]]}"#;

#[test]
fn a_policy_counts_steps_where_that_is_best_and_is_marked_unless_a_stationary_one_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder for the table");
    let table = folder.path().join("sale.json");
    std::fs::write(&table, LATE_SALE).expect("the table is written");
    let table = table.display().to_string();
    let told = ["--game", &table, "--budget", "15000"];
    // Nine steps of work and the sale pay 1.7; without a clock there is either work for ever, 1.2, or the sale at once.
    let counting = solved(&told);
    assert_eq!(counting["counts_steps"], true, "{counting}");
    assert_eq!((counting["solved"].as_bool(), counting["return_mean"].as_f64()), (Some(true), Some(1.7)));
    let said = String::from_utf8(solve(&told).stdout).expect("words");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("warning the policy counts steps since the start of an episode"), "{said}");
    let stationary = solved(&[&told[..], &["--stationary"]].concat());
    assert_eq!(stationary["counts_steps"], false, "{stationary}");
    assert_eq!(stationary["return_mean"].as_f64(), Some(1.2), "{stationary}");
    assert!(!stationary["hypothesis"].as_str().unwrap_or_default().contains("steps left"), "{stationary}");
}
