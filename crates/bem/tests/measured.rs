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
    // Without any option that the program of the finding does not know: what the budget does not count is announced.
    let plain = bem(folder.path(), &task);
    assert!(plain.status.code() < Some(2), "{plain:?}");
    let (beyond, said) = (steps().saturating_sub(500), text(&plain.stderr));
    let is_told = said.contains("1000 episodes of the policy") && said.contains("not counted in the budget");
    assert!(is_told, "{beyond} steps beyond a budget of 500, and nothing says so: {said:?}");
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
    // Its stock is shown as bits, so that the program that new users tried learns it as well.
    let command = format!("python3 {}/tests/worlds/shop.py", env!("CARGO_MANIFEST_DIR"));
    let words =
        ["solve", "--env-cmd", &command, "--env-timeout", "600", "--budget", "30000", "--out", "kept"];
    let said = text(&bem(folder.path(), &words).stdout);
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    let resumed = bem(folder.path(), &["run", "--resume", "kept"]);
    let resumed = text(&resumed.stdout) + &text(&resumed.stderr);
    let told = [("report.html", &page), ("bem run --resume", &resumed)];
    let wrong: Vec<_> = told.iter().filter(|(_, said)| said.contains("no better than random")).collect();
    let names: Vec<&str> = wrong.iter().map(|(name, _)| *name).collect();
    assert!(wrong.is_empty(), "{} call it no better than random: {resumed}", names.join(" and "));
    assert!(!resumed.contains("0.000") && resumed.contains("is finished"), "{resumed}");
    assert!(said.contains("optimum      unknown") && said.contains("best fixed action ("), "{said}");
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
    // What `bem init --from json` writes.
    let world = include_str!("../src/cli/init/world.json");
    std::fs::write(folder.path().join("world.json"), world).expect("a file");
    let words = ["solve", "--game", "world.json", "--budget", "30000", "--out", "kept"];
    let said = text(&bem(folder.path(), &words).stdout);
    assert!(said.contains("  circuit "), "it is learned: {said}");
    let warning = "warning      the policy counts steps";
    assert!(said.contains(warning), "no warning that the policy counts steps: {said}");
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
    // Without its role the column of propensities would be a feature, which tells what was done.
    const ROLES: [&str; 6] = ["--action", "shown", "--reward", "click", "--propensity", "p"];
    for words in [
        &["solve", "dyck", "--budget", "3000", "--out", "one"][..],
        &["solve", "--env-cmd", &command, "--budget", "9000", "--env-timeout", "600"],
        &["run", "--families", "parity,small_sat,dyck", "--steps", "4000", "--out", "two"],
        &["explain", "one"],
        &["verify", "one"],
        &["replay", "one"],
        &["export", "one", "--format", "c", "--out", "policy.h"],
        &["init", "--from", "log", "."],
        &[&["learn", "log.csv", "--out", "ads.policy"][..], &ROLES].concat(),
        &[&["evaluate", "ads.policy", "--log", "log.csv"][..], &ROLES].concat(),
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

/// The online keys, by their names in the specification.
const ONLINE: [&str; 7] = [
    "online_mean",
    "online_score",
    "online_score_last_half",
    "regret",
    "regret_exponent",
    "explored_share_last_half",
    "episodes_unplayed",
];

fn has_online_keys(said: &Value) {
    for key in ONLINE {
        assert!(said.get(key).is_some_and(|value| value.is_number() || value.is_null()), "{key}: {said}");
    }
}

/// Best play earns 0.6 of a unit, and after 3,001 episodes a fraction of a unit is left of what it earns on average.
const BANDIT: [&str; 6] = ["solve", "bandit{arms=8,gap=20}", "--online", "--budget", "3001", "--json"];

#[test]
fn regret_is_against_best_play_on_the_same_seeds_and_the_report_draws_it() {
    let folder = folder();
    let said = json(&bem(folder.path(), &BANDIT));
    has_online_keys(&said);
    let (regret, episodes) = (number(&said["regret"]), number(&said["episodes"]));
    assert_eq!(episodes, 3001.0, "{said}");
    // On one seed an arm pays or does not: whole units are lost, none is won, and chance does not hide how they grow.
    assert!(0.0 < regret && regret.fract() == 0.0, "{said}");
    assert!(said["regret_exponent"].is_number(), "{said}");
    let worth = number(&said["optimum"]) - number(&said["random"]);
    let score = number(&said["online_score"]);
    assert!((score - (1.0 - regret / episodes / worth)).abs() < 2e-6, "{said}");
    assert!(score < number(&said["online_score_last_half"]), "{said}");
    assert!(number(&said["online_score_last_half"]) <= 1.0, "{said}");
    let kept = json(&bem(folder.path(), &[&BANDIT[..], &["--out", "kept"]].concat()));
    assert_eq!((&kept["trace_head"], &kept["regret"]), (&said["trace_head"], &said["regret"]));
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    for drawn in ["return over steps", "cumulative regret over steps", "share of explored steps"] {
        assert!(page.contains(drawn), "{drawn} is not in {page}");
    }
    assert!(page.contains(&format!("included; {regret:.3} over all")), "{regret}: {page}");
    let curves = std::fs::read_to_string(folder.path().join("kept/curves.jsonl")).expect("curves");
    let curves: Value = serde_json::from_str(&curves).expect("one line of JSON");
    let last = curves["curve"]["online"].as_array().and_then(|points| points.last());
    assert_eq!(last.map(|last| number(&last["lost"])), Some(1e3 * regret), "{curves}");
}

#[test]
fn rows_that_are_learned_online_have_the_same_keys() {
    let folder = folder();
    let words = ["table", "--online", "--families", "bandit", "--seeds", "2", "--json"];
    let said = json(&bem(folder.path(), &words));
    let rows = said["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{said}");
    for (row, seed) in rows.iter().zip(1..) {
        has_online_keys(row);
        assert!(row["task"].as_str().is_some_and(|task| task.starts_with("bandit ")), "{row}");
        assert_eq!((&row["seed"], number(&row["steps"])), (&Value::from(seed), 100_000.0), "{row}");
        let regret = number(&row["regret"]);
        assert!(0.0 < regret && regret.fract() == 0.0, "{row}");
        assert!(number(&row["online_score"]) < 1.0 && number(&row["online_score_last_half"]) <= 1.0, "{row}");
        assert!(row["regret_exponent"].is_number(), "{row}");
    }
}

#[test]
fn a_policy_in_a_file_is_a_floor_under_what_is_earned_while_learning() {
    let folder = folder();
    let first = ["solve", "bandit{arms=8,gap=20}", "--budget", "6000", "--out", "first", "--json"];
    assert_eq!(json(&bem(folder.path(), &first))["solved"], true);
    assert!(
        bem(folder.path(), &["export", "first", "--format", "net", "--out", "best.net"]).status.success()
    );
    let above = |baseline: &str| {
        json(&bem(
            folder.path(),
            &[&BANDIT[..], &["--baseline", baseline, "--conservative", "0.05"]].concat(),
        ))
    };
    let (free, floored) = (json(&bem(folder.path(), &BANDIT)), above("best.net"));
    assert_eq!(free["episodes_left_to_baseline"], 0, "{free}");
    assert!(0.0 < number(&floored["episodes_left_to_baseline"]), "{floored}");
    assert_ne!(free["trace_head"], floored["trace_head"]);
    // A twentieth of what the best arm earns may be lost against it, and no more.
    let allowed = 0.05 * 0.6 * number(&floored["episodes"]);
    assert!((0.0..=allowed).contains(&number(&floored["regret"])), "{floored}");
    assert_eq!(above("first")["trace_head"], floored["trace_head"], "the run has the same circuit");
    let missing =
        bem(folder.path(), &[&BANDIT[..], &["--baseline", "nothing.net", "--conservative", "0.05"]].concat());
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert!(
        text(&missing.stderr).contains("--baseline nothing.net: must be an action, 0 to 7"),
        "{missing:?}"
    );
    let other = ["solve", "parity{n=4}", "--baseline", "best.net", "--conservative", "0.05"];
    let misfit = bem(folder.path(), &other);
    assert_eq!(misfit.status.code(), Some(2), "{misfit:?}");
    assert!(text(&misfit.stderr).contains("it has 8 actions and this world 2"), "{misfit:?}");
}

#[test]
fn a_game_that_nobody_wants_evaluated_has_no_score_and_learns_the_same() {
    let folder = folder();
    let task = ["solve", "parity", "--param", "n=4", "--budget", "4000"];
    let with = |more: &[&str]| bem(folder.path(), &[&task[..], more].concat());
    let whole = json(&with(&["--json"]));
    assert_eq!((&whole["solved"], &whole["score"]), (&Value::from(true), &Value::from(1.0)));
    for kept in [&[][..], &["--out", "kept"]] {
        let output = with(&[&["--eval-episodes", "0", "--json"], kept].concat());
        let none = json(&output);
        assert_eq!(output.status.code(), Some(0), "what was not asked is no \"no\": {output:?}");
        for key in ["score", "return_mean", "interval95", "baselines", "steps_to_99"] {
            assert!(none[key].is_null() && !whole[key].is_null(), "{key}: {none}");
        }
        assert_eq!((&none["solved"], &none["evaluation_episodes"]), (&Value::from(false), &Value::from(0)));
        for key in ["trace_head", "steps", "optimum", "random", "regret", "online_score"] {
            assert_eq!(none[key], whole[key], "{key}");
        }
    }
    for look in ["verify", "replay"] {
        assert!(bem(folder.path(), &[look, "kept"]).status.success(), "{look}");
    }
    let said = text(&with(&["--eval-episodes", "0"]).stdout);
    for words in ["learned; nothing was evaluated", "return       not measured (--eval-episodes 0)"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    assert!(!said.contains("0.99 not reached") && !said.contains("what helps"), "{said}");
}

#[test]
fn what_the_model_cannot_represent_is_said_with_the_result() {
    // The first action sets a bit that is not shown; the second step looks the same and pays for action 0 if it is set.
    let script = r#"
import json, sys
def say(message): print(json.dumps(message), flush=True)
say({"hello": 1, "obs_bits": 1, "actions": 2, "horizon": 2, "reward_range": [0, 1000], "return_range": [0, 1000]})
for line in sys.stdin:
    message = json.loads(line)
    if "reset" in message:
        first = None
        say({"obs": "0"})
    elif first is None:
        first = message["act"]
        say({"obs": "0", "reward": 0, "done": False})
    else:
        say({"obs": "0", "reward": 1000 if first == 1 and message["act"] == 0 else 0, "done": True})
"#;
    let folder = folder();
    std::fs::write(folder.path().join("world.py"), script).expect("a file");
    std::fs::write(folder.path().join("plain.toml"), "synthesis = false\nmemory_structures = false\n")
        .expect("a file");
    let words = ["solve", "--env-cmd", "python3 world.py", "--config", "plain.toml", "--budget", "3000"];
    let words = [&words[..], &["--online", "--eval-episodes", "0"]].concat();
    let said = text(&bem(folder.path(), &words).stdout);
    let line = said.lines().find(|line| line.trim_start().starts_with("unexplained"));
    let line = line.unwrap_or_else(|| panic!("nothing is unexplained: {said}"));
    assert!(line.contains("earned 0.") && line.contains("less a step than was predicted"), "{line}");
    let short = &json(&bem(folder.path(), &[&words[..], &["--json"]].concat()))["shortfall"];
    assert!(1.0 <= number(&short["contexts"]) && 0.1 <= number(&short["mean"]), "{short}");
}
