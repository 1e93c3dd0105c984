//! What is said of a learned policy: return with an interval, baselines on the same episodes, warnings, and a report that
//! begins with them; for games and for worlds of one's own. Clauses: SCC-8, GLE-9.

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

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    format!("python3 {}", path.display())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// A program that writes down how often it was stepped.
fn counted(folder: &Path) -> String {
    let script = r#"
import json, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "obs_bits": 1, "actions": 2, "horizon": 5, "reward_range": [0, 1000]})
steps = 0
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        left, bit = 5, message["reset"] % 2
        say({"obs": str(bit)})
    else:
        steps += 1
        open("steps", "w").write(str(steps))
        reward = 1000 if message["act"] == bit else 0
        left, bit = left - 1, (bit + left) % 2
        say({"obs": str(bit), "reward": reward, "done": left == 0, "bad": False})
"#;
    std::fs::write(folder.join("world.py"), script).expect("a file");
    "python3 world.py".to_string()
}

#[test]
fn a_game_and_a_program_have_intervals_and_baselines() {
    let folder = folder();
    let tasks = [
        vec!["parity".to_string(), "--param".to_string(), "n=6".to_string()],
        ["--env-cmd", &counted(folder.path()), "--env-timeout", "600"].map(str::to_string).to_vec(),
    ];
    for task in &tasks {
        let task: Vec<&str> = task.iter().map(String::as_str).collect();
        let said =
            json(&bem(folder.path(), &[&["solve"], &task[..], &["--budget", "4000", "--json"]].concat()));
        let interval = said["interval95"].as_array().expect("an interval");
        let mean = number(&said["return_mean"]);
        assert!(number(&interval[0]) <= mean && mean <= number(&interval[1]), "{said}");
        for name in ["random", "best_fixed", "first"] {
            let low = number(&said["baselines"]["interval95"][name][0]);
            let high = number(&said["baselines"]["interval95"][name][1]);
            let baseline = number(&said["baselines"][name]);
            assert!(low <= baseline && baseline <= high, "{name}: {said}");
            // Both worlds can be played without a mistake, which none of these does.
            assert!(high < number(&interval[0]), "{name}: {said}");
            // The difference in the episodes that both played.
            let gain = &said["baselines"]["gain"][name];
            assert_eq!(gain["episodes"], said["baselines"]["episodes"], "{said}");
            let (low, high) = (number(&gain["interval95"][0]), number(&gain["interval95"][1]));
            assert!(0.0 < low && low <= number(&gain["mean"]) && number(&gain["mean"]) <= high, "{said}");
        }
        assert!(number(&said["baselines"]["random"]) <= number(&said["baselines"]["best_fixed"]) + 0.5);
    }
}

#[test]
fn the_evaluation_of_a_program_is_bounded_announced_and_not_part_of_the_budget() {
    let folder = folder();
    let command = counted(folder.path());
    let steps = || -> u64 {
        std::fs::read_to_string(folder.path().join("steps")).expect("steps").parse().expect("a number")
    };
    let task = ["solve", "--env-cmd", &command, "--budget", "500", "--env-timeout", "600"];
    let none = json(&bem(folder.path(), &[&task[..], &["--eval-episodes", "0", "--json"]].concat()));
    assert_eq!(number(&none["steps"]) as u64, steps(), "nothing but learning: {none}");
    assert!(none["return_mean"].is_null() && none["interval95"].is_null() && none["baselines"].is_null());
    let few = bem(folder.path(), &[&task[..], &["--eval-episodes", "10"]].concat());
    let said = text(&few.stderr);
    // Ten episodes of the policy; of random play, of the first policy, of either action and once more of the best.
    assert!(said.contains("10 episodes of the policy, 50 of baselines; not counted in the budget"), "{said}");
    assert_eq!(steps(), number(&none["steps"]) as u64 + 60 * 5);
    let whole = json(&bem(folder.path(), &[&task[..], &["--json"]].concat()));
    assert_eq!((&whole["evaluation_episodes"], &whole["steps"]), (&Value::from(1_000), &none["steps"]));
    assert!(steps() <= number(&none["steps"]) as u64 + 5 * (1_000 + 5 * 200));
}

#[test]
fn what_is_learned_is_judged_by_the_difference_in_the_same_episodes() {
    let folder = folder();
    let command = counted(folder.path());
    let task = ["solve", "--env-cmd", &command, "--budget", "4000", "--env-timeout", "600", "--out", "kept"];
    let said = text(&bem(folder.path(), &task).stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "(95 % interval of the difference in the same 200 episodes): it earns more";
    assert!(said.contains(" over the best baseline, ") && said.contains(words), "{said}");
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    let words = "95 % interval of the difference in the 200 episodes that both played";
    assert!(page.contains(words) && !page.contains("intervals do not overlap"), "{page}");
}

#[test]
fn a_run_over_families_has_them_too() {
    let folder = folder();
    let words =
        ["run", "--families", "parity,bandit", "--steps", "3000", "--stages", "2", "--out", "kept", "--json"];
    let said = json(&bem(folder.path(), &words));
    for family in said["families"].as_array().expect("families") {
        let rungs = family["climbed"].as_array().expect("tries");
        for rung in rungs {
            let interval = rung["interval95"].as_array().expect("an interval");
            let mean = number(&rung["return_mean"]);
            assert!(number(&interval[0]) <= mean && mean <= number(&interval[1]), "{rung}");
        }
        let shown = rungs.iter().filter(|rung| !rung["baselines"].is_null()).count();
        assert_eq!(shown, 1, "{family}");
    }
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    assert!(page.contains("best fixed action"), "{page}");
    let figures = std::fs::read_to_string(folder.path().join("kept/evaluation.json")).expect("figures");
    assert!(figures.contains("\"best_fixed\""), "{figures}");
    // The history names the figures: one changed digit is noticed.
    assert!(bem(folder.path(), &["verify", "kept"]).status.success());
    let forged = figures.replacen("\"episodes\":1000", "\"episodes\":2000", 1);
    assert_ne!(forged, figures);
    std::fs::write(folder.path().join("kept/evaluation.json"), forged).expect("a file");
    let broken = bem(folder.path(), &["verify", "kept"]);
    assert_eq!(broken.status.code(), Some(1), "{broken:?}");
}

#[test]
fn the_report_of_an_own_world_begins_with_its_return_and_says_that_the_optimum_is_unknown() {
    let folder = folder();
    let command = example("inventory_env.py");
    let words =
        ["solve", "--env-cmd", &command, "--env-timeout", "600", "--budget", "30000", "--out", "kept"];
    let said = text(&bem(folder.path(), &words).stdout);
    assert!(said.contains("optimum      unknown") && said.contains("best fixed action ("), "{said}");
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    assert!(!page.contains("no better than random"), "{page}");
    let place = |word: &str| page.find(word).unwrap_or_else(|| panic!("{word} is not in {page}"));
    let order = [
        "mean return, 95 % interval",
        "optimum unknown",
        "random play",
        "Learning curve",
        "as rules",
        "Not proven",
        "Evidence",
    ];
    assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{page}");
    // The same on the scoreboard of a run that goes on, and where the policy is taken elsewhere.
    let header = text(&bem(folder.path(), &["export", "kept", "--format", "c"]).stdout);
    assert!(
        header.contains("95 % interval, 1000 episodes") && header.contains("baselines: random play"),
        "{header}"
    );
}

#[test]
fn a_policy_that_counts_steps_is_marked_everywhere() {
    let folder = folder();
    assert!(bem(folder.path(), &["init", "--from", "json", "."]).status.success());
    let words = ["solve", "--game", "world.json", "--budget", "30000", "--out", "kept"];
    let said = text(&bem(folder.path(), &words).stdout);
    assert!(said.contains("warning      the policy counts steps"), "{said}");
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    assert!(page.contains("<b>Warning:</b> the policy counts steps"), "{page}");
    for format in ["c", "python", "verilog"] {
        let program = text(&bem(folder.path(), &["export", "kept", "--format", format]).stdout);
        assert!(program.contains("counts steps"), "{format}: {program}");
    }
    let bundle = text(&bem(folder.path(), &["export", "kept", "--format", "bundle"]).stdout);
    assert!(bundle.contains("counts steps"), "{bundle}");
    let counting =
        json(&bem(folder.path(), &["solve", "--game", "world.json", "--budget", "30000", "--json"]));
    assert_eq!(counting["counts_steps"], true);
    let plain = json(&bem(folder.path(), &["solve", "parity", "--param", "n=4", "--json"]));
    assert_eq!(plain["counts_steps"], false);
}

#[test]
fn what_is_printed_fits_eighty_columns() {
    let folder = folder();
    let command = example("inventory_env.py");
    for words in [
        &["solve", "dyck", "--budget", "3000", "--out", "one"][..],
        &["solve", "--env-cmd", &command, "--budget", "9000", "--env-timeout", "600"],
        &["run", "--families", "parity,small_sat,dyck", "--steps", "4000", "--out", "two"],
        &["explain", "one"],
        &["verify", "one"],
        &["replay", "one"],
        &["export", "one", "--format", "c", "--out", "policy.h"],
        &["init", "--from", "log", "."],
        &["learn", "log.csv", "--action", "shown", "--reward", "click", "--out", "ads.policy"],
        &["evaluate", "ads.policy", "--log", "log.csv", "--action", "shown", "--reward", "click"],
    ] {
        let said = text(&bem(folder.path(), words).stdout);
        for line in said.lines() {
            // A path, a digest or a command to copy cannot be broken.
            let longest = line.split_whitespace().map(str::len).max().unwrap_or(0);
            let is_command = line.starts_with("  bem ");
            assert!(line.chars().count() <= 80 || 60 < longest || is_command, "{words:?}: {line}");
        }
        assert!(!said.is_empty(), "{words:?}");
    }
}
