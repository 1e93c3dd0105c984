//! The main job as a user meets it: a run, its audit, going on, playing again, taking a circuit out.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The program, with keys that go away with the test's own folder.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

fn bem(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn run_json(directory: &Path, rest: &[&str]) -> Value {
    let out = directory.display().to_string();
    let mut arguments = vec!["run", "--out", &out, "--json", "--families", "parity,compare", "--stages", "3"];
    arguments.extend_from_slice(rest);
    let output = bem(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_saves_resumes_replays_and_exports() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let name = first.display().to_string();
    let whole = run_json(&first, &["--steps", "30000", "--threads", "1"]);
    assert!(
        whole["families"].as_array().unwrap().iter().all(|family| family["standing"] == "top"),
        "{whole}"
    );
    // Steps that rungs took have moved their difficulties; run and report show both.
    let all = || whole["families"].as_array().unwrap().iter();
    let rungs = || all().flat_map(|family| family["climbed"].as_array().unwrap());
    let moved = |rung: &&Value| rung["difficulty"]["estimated"] != rung["difficulty"]["re_estimated"];
    assert!(all().all(|family| 0 < family["re_estimated"].as_u64().unwrap()), "{whole}");
    assert!(rungs().all(|rung| rung["difficulty"]["estimated"].is_f64()) && rungs().any(|rung| moved(&rung)));
    let report = std::fs::read_to_string(first.join("report.html")).unwrap();
    assert!(report.contains("<th>expected steps") && report.contains(" → "));

    // Two threads, another folder, another key: the same history.
    let twin = run_json(&folder.path().join("twin"), &["--steps", "30000", "--threads", "2"]);
    assert_eq!(whole["trace_head"], twin["trace_head"]);

    // The audit checks every certificate again.
    let audit: Value = serde_json::from_slice(&bem(&["verify", &name, "--json"]).stdout).unwrap();
    assert_eq!(audit["verdict"], "unanchored");
    assert!(0 < audit["certificates"].as_u64().unwrap(), "{audit}");

    // The key is not in the run's folder, and no file of the folder holds its bytes.
    assert!(!first.join("signing.key").exists());
    let replay = bem(&["replay", &name]);
    assert!(replay.status.success(), "{}", text(&replay.stdout));
    assert!(text(&replay.stdout).contains(whole["trace_head"].as_str().unwrap()));

    let verilog = bem(&["export", &name, "--expert", "parity", "--format", "verilog"]);
    let verilog = text(&verilog.stdout);
    assert!(verilog.starts_with("// BEM policy parity") && verilog.contains("module parity"), "{verilog}");
    let unknown = bem(&["export", &name, "--expert", "chess"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("there are parity/0"), "{}", text(&unknown.stderr));
}

#[test]
fn how_long_no_score_has_stood_out_is_said_of_every_try_and_changes_no_history() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let whole = run_json(&out, &["--steps", "8000"]);
    let curves = std::fs::read_to_string(out.join("curves.jsonl")).unwrap();
    let curves: Vec<Value> = curves.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut stood_out = 0;
    for rung in
        whole["families"].as_array().unwrap().iter().flat_map(|family| family["climbed"].as_array().unwrap())
    {
        let (steps, since) = (rung["steps"].as_u64().unwrap(), rung["steps_since_high_score"].as_u64());
        let since = since.unwrap_or_else(|| panic!("{rung}"));
        let name = format!("{}#{}", rung["task"].as_str().unwrap(), rung["attempt"]);
        let curve =
            &curves.iter().find(|line| line["of"] == name.as_str()).expect("a line for every try")["curve"];
        assert_eq!(curve["steps_since_high_score"], since);
        // It began with a patch that was let in, or with the try.
        let begin = steps - since;
        let is_applied = |patch: &Value| patch["accepted"] == true && patch["steps"] == begin;
        assert!(begin == 0 || curve["patches"].as_array().unwrap().iter().any(is_applied), "{rung}");
        stood_out += u32::from(0 < begin);
    }
    assert!(0 < stood_out, "a patch that solves a task stands out: {whole}");

    // One task says it too, and on a terminal in words.
    let words = ["solve", "parity", "--param", "n=4", "--budget", "4000", "--seed", "1"];
    let solved: Value = serde_json::from_slice(&bem(&[&words[..], &["--json"]].concat()).stdout).unwrap();
    let (steps, since) = (solved["steps"].as_u64().unwrap(), solved["steps_since_high_score"].as_u64());
    let said = text(&bem(&words).stdout);
    let plain = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = format!("score stood out is {} of {steps} steps old", since.unwrap());
    assert!(since.unwrap() < steps && plain.contains(&wanted), "{said}");
}

#[test]
fn one_expert_of_a_run_is_judged_by_a_log_and_the_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    run_json(&out, &["--steps", "30000"]);
    let name = out.display().to_string();
    let saved = |file: &str| folder.path().join(file).display().to_string();
    // A log of random actions; what the expert does is paid.
    let made =
        bem(&["export", &name, "--expert", "parity/0", "--format", "python", "--out", &saved("expert.py")]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let header = bem(&["export", &name, "--expert", "parity/0", "--format", "c"]);
    let header = text(&header.stdout);
    let width = header.split("#define BEM_OBS_BITS ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let width: usize = width.expect("a width").parse().unwrap();
    let write = format!(
        "import expert, random, json\ndraw = random.Random(1)\nfor row in range(2000):\n    \
         seen = [draw.randrange(2) for _ in range({width})]\n    \
         policy, action = expert.Policy(), draw.randrange(2)\n    policy.reset()\n    \
         paid = 1 if action == policy.decide(seen) else 0\n    \
         print(json.dumps({{'obs': ''.join(map(str, seen)), 'a': action, 'r': paid, 'p': 0.5}}))"
    );
    let python = Command::new("python3").args(["-c", &write]).current_dir(folder.path()).output().unwrap();
    assert!(python.status.success(), "{}", text(&python.stderr));
    std::fs::write(folder.path().join("log.jsonl"), &python.stdout).unwrap();
    let log = saved("log.jsonl");
    let judge = |expert: &[&str]| {
        let roles = ["--log", &log, "--action", "a", "--reward", "r", "--propensity", "p", "--json"];
        bem(&[&["evaluate", &name][..], &roles, expert].concat())
    };
    for expert in ["parity/0", "parity"] {
        let judged = judge(&["--expert", expert]);
        // The highest rung of the family may show more bits than the log has.
        if expert == "parity/0" || judged.status.success() {
            let object: Value =
                serde_json::from_slice(&judged.stdout).unwrap_or_else(|_| panic!("{judged:?}"));
            let range = &object["dr"]["interval95"];
            let (low, high) = (range[0].as_f64().unwrap_or(-1.0), range[1].as_f64().unwrap_or(-1.0));
            assert!(object["supported"] == true && low <= 1.01 && 0.99 <= high && 0.9 < low, "{object}");
        } else {
            let said = text(&judged.stderr);
            assert!(judged.status.code() == Some(2) && said.contains("zeros and ones"), "{said}");
        }
    }
    for (expert, wanted) in [
        (&[][..], "the run has several policies: name one with --expert, parity/0"),
        (&["--expert", "chess"], "there is no expert \"chess\" in this run; there are parity/0"),
    ] {
        let refused = judge(expert);
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(wanted), "{said}");
    }
}

#[test]
fn a_run_that_was_cut_short_goes_on_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let (short, long) = (folder.path().join("short"), folder.path().join("long"));
    let whole = run_json(&long, &["--steps", "30000"]);
    let part = run_json(&short, &["--steps", "1"]);
    assert_ne!(whole["trace_head"], part["trace_head"]);
    // A snapshot travels to another folder and continues there.
    let (file, elsewhere) = (folder.path().join("saved"), folder.path().join("elsewhere"));
    let (file, elsewhere) = (file.display().to_string(), elsewhere.display().to_string());
    assert!(bem(&["snapshot", &short.display().to_string(), "--out", &file]).status.success());
    assert!(bem(&["restore", &file, "--out", &elsewhere]).status.success());
    for directory in [short.display().to_string(), elsewhere] {
        let output = bem(&["run", "--resume", &directory, "--steps", "30000", "--json"]);
        let resumed: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
        for name in ["trace_head", "steps_by_machine", "acting_changes", "acting_changes_patched"] {
            assert_eq!(whole[name], resumed[name], "{name}");
        }
        assert!(bem(&["verify", &directory]).status.success());
    }
}

/// Bytes of entries and content that a short run may take for each of its steps. Short runs have most: what is fixed (genesis,
/// tables, configuration) and the patches that come first are spread over few steps.
const BYTES_A_STEP_MAX: f64 = 16.0;

#[test]
fn the_machine_chooses_every_step_every_change_has_a_patch_and_the_ledger_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("five").display().to_string();
    let families = "parity,dyck,bandit,safety_grid,compare";
    let output = bem(&["run", "--out", &name, "--families", families, "--steps", "40000", "--json"]);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(report["steps"], report["steps_by_machine"], "{report}");
    assert_eq!(report["acting_changes"], report["acting_changes_patched"], "{report}");
    assert!(5 <= report["acting_changes"].as_u64().unwrap(), "{report}");

    let audit: Value = serde_json::from_slice(&bem(&["verify", &name, "--json"]).stdout).unwrap();
    let bytes = &audit["bytes"];
    assert_eq!(audit["steps"], report["steps"]);
    let sum = |names: &[&str]| names.iter().map(|name| bytes[*name].as_f64().unwrap()).sum::<f64>();
    assert!(sum(&["certificates", "payloads"]) <= sum(&["blobs"]), "{bytes}");
    assert!(0.0 < sum(&["certificates_per_step"]) && 0.0 < sum(&["steps_per_step"]), "{bytes}");
    assert!(sum(&["history_per_step"]) <= BYTES_A_STEP_MAX, "{bytes}");
}

#[test]
fn the_key_is_kept_outside_the_run_and_needed_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (run, key) = (folder.path().join("run"), folder.path().join("key"));
    let (run, key) = (run.display().to_string(), key.display().to_string());
    let few = ["--steps", "1", "--json", "--families", "parity", "--stages", "2"];
    assert!(bem(&[&["run", "--out", &run, "--key", &key][..], &few].concat()).status.success());
    let secret = std::fs::read(&key).unwrap();
    let mut open = vec![std::path::PathBuf::from(&run)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(32).any(|window| window == secret), "{}", path.display());
        }
    }
    // Another key, or none that can be found, is refused with advice; the right one goes on.
    let without = bem(&["run", "--resume", &run, "--steps", "1"]);
    assert_eq!(without.status.code(), Some(2));
    assert!(text(&without.stderr).contains("name its file with --key FILE"), "{}", text(&without.stderr));
    let with = bem(&["run", "--resume", &run, "--steps", "1", "--key", &key, "--json"]);
    assert!(with.status.success(), "{}", text(&with.stderr));
    // A home that cannot be written is named, and so is the way out.
    let homeless = program()
        .args(["run", "--out", &format!("{run}-2"), "--steps", "1"])
        .env("XDG_STATE_HOME", "/proc/nowhere")
        .output()
        .unwrap();
    assert_eq!(homeless.status.code(), Some(2));
    assert!(text(&homeless.stderr).contains("--key FILE"), "{}", text(&homeless.stderr));
}

/// Waits until a program that was started has made this file.
fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_stops_cleanly_and_leaves_a_run_to_go_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("run").display().to_string();
    let mut child = program()
        .args([
            "run",
            "--out",
            &directory,
            "--minutes",
            "10",
            "--families",
            "rulegrid,sorting,parity",
            "--unit-steps",
            "2000",
            "--json",
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The first snapshot is written before any work: from then on nothing can be lost.
    wait_for(&Path::new(&directory).join("ledger/checkpoint"));
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert!(child.wait().unwrap().success());
    assert!(bem(&["verify", &directory]).status.success());
    assert!(bem(&["run", "--resume", &directory, "--steps", "1", "--json"]).status.success());
}

#[test]
fn what_ctrl_c_puts_away_in_the_middle_of_a_unit_goes_on_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--steps", "20000", "--threads", "2", "--families", "sorting,dyck", "--json"];
    let head = |output: &Output| {
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
        report["trace_head"].clone()
    };
    let whole = folder.path().join("whole").display().to_string();
    let whole = head(&bem(&[&["run", "--out", &whole][..], &words].concat()));
    // The moment is up to the machine; one in which a unit is under way comes soon.
    for pause in [300, 700, 1_500, 100, 3_000] {
        let directory = folder.path().join(format!("cut-{pause}"));
        let name = directory.display().to_string();
        let mut child =
            program().args(["run", "--out", &name]).args(words).stdout(Stdio::null()).spawn().unwrap();
        wait_for(&directory.join("ledger/checkpoint"));
        std::thread::sleep(Duration::from_millis(pause));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        assert!(child.wait().unwrap().success());
        let names = std::fs::read_dir(directory.join("ledger")).unwrap().map(|entry| entry.unwrap().path());
        let newest = names.filter(|name| name.extension().is_some_and(|end| end == "snap")).max().unwrap();
        let parts = text(&bem(&["inspect", &newest.display().to_string()]).stdout);
        let resumed = bem(&["run", "--resume", &name, "--steps", "20000", "--threads", "2", "--json"]);
        assert_eq!(head(&resumed), whole, "cut after {pause} ms");
        assert!(bem(&["verify", &name]).status.success());
        if parts.contains("unit_") {
            return;
        }
    }
    panic!("no unit was ever under way");
}

#[test]
fn nonsense_gets_one_clear_line() {
    for (arguments, wanted) in [
        (
            &["run", "--families", "chess", "--out", "unused"][..],
            "--families: there is no family called \"chess\"",
        ),
        (&["run", "--stages", "1"], "--stages 1 is out of range"),
        (&["run", "--minutes=-1"], "out of range"),
        (&["run", "--resume", "no-such-folder"], "no-such-folder is no run"),
        (&["restore", "no-such-file", "--out", "unused"], "no-such-file does not exist"),
    ] {
        let output = bem(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = text(&output.stderr);
        assert!(message.contains(wanted), "{message}");
    }
    assert!(!Path::new("unused").exists());
}

/// Lines of the file with the curves so far.
fn curves(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("curves.jsonl")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_killed_run_goes_on_to_the_report_of_an_undisturbed_one() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key").display().to_string();
    let families = ["--families", "parity,majority,compare,add", "--unit-steps", "1000"];
    let common = ["--steps", "2000", "--threads", "1", "--key", &key, "--json"];
    let start =
        |words: &[&str]| program().arg("run").args(words).args(common).stdout(Stdio::null()).spawn().unwrap();
    let new =
        |directory: &Path| start(&[&["--out", &directory.display().to_string()][..], &families].concat());
    let whole = folder.path().join("whole");
    assert!(new(&whole).wait().unwrap().success());
    for lines in [1, 5] {
        let cut = folder.path().join(format!("cut-{lines}"));
        let mut child = new(&cut);
        while curves(&cut) < lines && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // A line that was being written when the power went.
        let mut torn = std::fs::read(cut.join("curves.jsonl")).unwrap();
        torn.extend(b"{\"of\":\"par");
        std::fs::write(cut.join("curves.jsonl"), torn).unwrap();
        assert!(start(&["--resume", &cut.display().to_string()]).wait().unwrap().success());
        for name in ["report.html", "curves.jsonl"] {
            let [undisturbed, resumed] = [&whole, &cut].map(|run| std::fs::read_to_string(run.join(name)));
            assert!(undisturbed.unwrap() == resumed.unwrap(), "{name} after a kill at {lines} lines");
        }
    }
}

#[test]
fn one_task_is_kept_audited_exported_and_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept").display().to_string();
    let key = folder.path().join("key").display().to_string();
    let solve = ["solve", "parity", "--param", "n=8", "--seed", "7", "--json", "--out", &kept, "--key", &key];
    let output = bem(&solve);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let solved: Value = serde_json::from_slice(&output.stdout).unwrap();
    let audit: Value = serde_json::from_slice(&bem(&["verify", &kept, "--json"]).stdout).unwrap();
    assert_eq!(audit["verdict"], "unanchored");
    assert!(0 < audit["certificates"].as_u64().unwrap(), "{audit}");
    for format in
        ["verilog", "aiger", "aiger-ascii", "blif", "c", "rust", "python", "javascript", "dot", "net"]
    {
        let circuit = bem(&["export", &kept, "--format", format]);
        assert!(circuit.status.success() && 50 < circuit.stdout.len(), "{format}: {}", text(&circuit.stderr));
    }
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).unwrap();
    assert!(page.contains("Every installed patch") && page.contains("parity{n=8}"));
    // The same task, seed and budget: the same history.
    let replay = bem(&["replay", &kept]);
    assert!(text(&replay.stdout).contains("1 units played again"), "{}", text(&replay.stderr));
    assert_eq!(solved["seed"], 7);
    let again = bem(&solve);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("holds a run already"), "{}", text(&again.stderr));
}

#[test]
fn a_task_that_ctrl_c_cuts_short_goes_on_to_the_same_circuit() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["solve", "sorting", "--param", "keys=4", "--budget", "4000", "--json"];
    let circuit = |directory: &str| {
        let output = bem(&["export", directory, "--format", "net"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        output.stdout
    };
    let whole = folder.path().join("whole").display().to_string();
    bem(&[&words[..], &["--out", &whole]].concat());
    // The moment is up to the machine: too early nobody listens yet, too late the task is learned.
    for pause in [200, 600, 1_200, 100, 2_400, 50] {
        let cut = folder.path().join(format!("cut-{pause}")).display().to_string();
        let child = program()
            .args(words)
            .args(["--out", &cut])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        if !text(&output.stderr).contains("bem: interrupted after ") {
            continue;
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((report["interrupted"].as_bool(), output.status.code()), (Some(true), Some(1)));
        assert!(bem(&["verify", &cut]).status.success());
        assert!(bem(&["run", "--resume", &cut, "--minutes", "10", "--json"]).status.success());
        assert_eq!(circuit(&cut), circuit(&whole), "cut after {pause} ms");
        return;
    }
    panic!("the task was never under way");
}

#[test]
fn a_changed_or_missing_report_is_broken_and_no_checkpoint_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (kept, other, key) = (path("kept"), path("other"), path("key"));
    for (out, n) in [(&kept, "n=3"), (&other, "n=4")] {
        let solved = bem(&["solve", "parity", "--param", n, "--json", "--out", out, "--key", &key]);
        assert!(solved.status.success(), "{}", text(&solved.stderr));
    }
    let says = |arguments: &[&str]| {
        let output = bem(&[&["verify", &kept], arguments].concat());
        (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    assert_eq!(says(&[]).0, Some(0), "{}", says(&[]).1);
    let (page, aside) = (path("kept/report.html"), path("aside"));
    let honest = std::fs::read(&page).unwrap();
    std::fs::rename(&page, &aside).unwrap();
    assert!(says(&[]).1.contains("report.html is not the file that the history names"), "{}", says(&[]).1);
    // One that was named and had not taken its place when the power went.
    std::fs::rename(&aside, path("kept/report.html.tmp")).unwrap();
    assert_eq!(says(&[]).0, Some(0));
    std::fs::remove_file(path("kept/report.html.tmp")).unwrap();
    std::fs::write(&page, [&honest[..], b" "].concat()).unwrap();
    assert_eq!(says(&[]).0, Some(1));
    std::fs::write(&page, honest).unwrap();
    // A file that is no checkpoint says nothing about the run; one of another run says that this is not it.
    std::fs::write(&aside, "hello\n").unwrap();
    for wrong in [aside.as_str(), "nowhere", folder.path().to_str().unwrap()] {
        let (code, said) = says(&["--checkpoint", wrong]);
        assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
    }
    assert_eq!(says(&["--checkpoint", &path("other/ledger/checkpoint")]).0, Some(1));
    assert_eq!(says(&["--checkpoint", &path("kept/ledger/checkpoint")]).0, Some(0));
}
