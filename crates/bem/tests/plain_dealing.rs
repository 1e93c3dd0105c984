//! What a new user stumbled over: options without effect, words from the inside, silent losses. Each is answered in one
//! clear line, or does what it says.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
    command.current_dir(folder).env("XDG_STATE_HOME", folder.join("state"));
    command
}

fn bem(folder: &Path, arguments: &[&str]) -> Output {
    program(folder).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one line of a refusal.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = bem(folder, arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    assert!(output.stdout.is_empty() && error.lines().count() == 1, "{arguments:?}: {output:?}");
    error
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

#[test]
fn options_that_would_have_no_effect_are_refused() {
    let folder = folder();
    let folder = folder.path();
    assert!(bem(folder, &["run", "--families", "parity", "--steps", "1", "--out", "kept"]).status.success());
    for option in ["--seed", "--stages", "--unit-steps"] {
        let line = refusal(folder, &["run", "--resume", "kept", "--steps", "1", option, "7"]);
        assert!(line.contains(&format!("{option} has no effect on --resume kept")), "{line}");
    }
    assert!(bem(folder, &["run", "--resume", "kept", "--steps", "1"]).status.success());
    let line = refusal(folder, &["solve", "parity", "--key", "k"]);
    assert!(line.contains("--key k has no effect without --out DIR"), "{line}");
    assert!(!folder.join("k").exists());
    // The episodes of parity take one step: there is nothing to count.
    let line = refusal(folder, &["solve", "parity", "--stationary"]);
    assert!(line.contains("--stationary has no effect on parity"), "{line}");
    let line = refusal(folder, &["solve", "parity", "--env-timeout", "3"]);
    assert!(line.contains("--env-timeout 3 has no effect without --env-cmd CMD"), "{line}");
    refuse_what_a_task_does_not_take_again(folder);
    refuse_what_a_task_of_tools_does_not_take(folder);
    refuse_what_a_table_does_not_read();
}

/// Every command is refused in one line with these words.
fn refuse_all(folder: &Path, command: &[&str], cases: &[(&[&str], &str)]) {
    for (words, wanted) in cases {
        let line = refusal(folder, &[command, words].concat());
        assert!(line.contains(wanted), "{command:?} {words:?}: {line}");
    }
}

/// A run over a program goes on with what it was given when it began.
fn refuse_what_a_task_does_not_take_again(folder: &Path) {
    let command = world("[0,1000]", r#"{"obs":"0","reward":1000,"done":true}"#, "");
    let task = ["solve", "--env-cmd", &command, "--budget", "40", "--eval-episodes", "0", "--out", "task"];
    assert!(bem(folder, &task).status.success());
    std::fs::write(folder.join("other.toml"), "episode_steps_max = 4\n").expect("a file");
    let other = "other.toml: episode_steps_max is ";
    refuse_all(
        folder,
        &["run", "--resume", "task"],
        &[
            (
                &["--minutes", "1"],
                "--minutes has no effect on --resume task: a run over one task ends with its budget",
            ),
            (
                &["--steps", "10"],
                "--steps has no effect on --resume task: a run over one task ends with its budget",
            ),
            (
                &["--threads", "1"],
                "--threads has no effect on --resume task: one task is learned on one thread",
            ),
            (&["--segment-bytes", "65536"], "--segment-bytes has no effect on --resume task"),
            (&["--stages", "3"], "--stages has no effect on --resume task: it was fixed when the run began"),
            (&["--config", "other.toml"], other),
            (&[], "task is finished"),
        ],
    );
    refuse_all(
        folder,
        &["solve", "--resume", "task"],
        &[
            (
                &["--stationary"],
                "--stationary has no effect on --resume task: it was fixed when the run began",
            ),
            (&["--no-replay"], "--no-replay has no effect on --resume task: no run on such terms is kept"),
            (&["--delay-rewards", "3"], "--delay-rewards has no effect on --resume task"),
            (&["--conservative", "0.05"], "cannot be used with '--conservative <EPSILON>'"),
            (&["--env-timeout", "0", "--budget", "50"], "--env-timeout 0 is out of range: 1 to 86400"),
            (&["--config", "other.toml"], other),
        ],
    );
    // A run that was killed has its configuration beside the answers; this world says its first line and then nothing.
    let silent = command.replace("case $line", "while read line; do :; done; case $line");
    let begun = ["solve", "--env-cmd", &silent, "--env-timeout", "600", "--out", "cut"];
    let mut killed = program(folder).args(begun).stderr(Stdio::null()).spawn().expect("it starts");
    while !folder.join("cut/answers.bin").exists() {
        assert!(killed.try_wait().expect("it can be asked").is_none(), "it ended before it could be killed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    killed.kill().expect("it is killed");
    killed.wait().expect("it ends");
    refuse_all(folder, &["solve", "--resume", "cut", "--config", "other.toml"], &[(&[], other)]);
    refuse_all(folder, &["run", "--resume", "cut", "--config", "other.toml"], &[(&[], other)]);
}

/// What a task of tools is stands in its file and its catalog.
fn refuse_what_a_task_of_tools_does_not_take(folder: &Path) {
    let file = example("tools/counting.toml");
    let timed = "the catalog of its tools says how long they may take";
    let cases: [(&[&str], &str); 2] = [
        (&["--env-timeout", "3"], &format!("--env-timeout 3 has no effect on --tool-task {file}: {timed}")),
        (&["--param", "x=1"], &format!("--param x=1 has no effect on --tool-task {file}: ")),
    ];
    refuse_all(folder, &["solve", "--tool-task", &file], &cases);
    let task = ["solve", "--tool-task", &file, "--budget", "40", "--eval-episodes", "0", "--out", "tools"];
    assert!(bem(folder, &task).status.success());
    let resume = ["solve", "--resume", "tools", "--budget", "80"];
    refuse_all(folder, &resume, &[(&["--env-timeout", "3"], &format!("has no effect on tools: {timed}"))]);
}

/// Options of one table beside another, which reads nothing of them.
fn refuse_what_a_table_does_not_read() {
    let folder = folder();
    let unmeasured = "were not provided: --measure";
    let beside = "cannot be used with";
    refuse_all(
        folder.path(),
        &["ladder"],
        &[
            (&["--seeds", "3", "--budget", "7"], unmeasured),
            (&["--budget", "7"], unmeasured),
            (&["--seed", "7"], "were not provided: <--measure|--bandit>"),
            (&["--seed", "7", "--measured", "f"], "were not provided: <--measure|--bandit>"),
            (&["--seeds", "3", "--measured", "f"], beside),
            (&["--save", "f", "--measured", "f"], beside),
            (&["--bandit", "--measure"], beside),
            (&["--bandit", "--measured", "f"], beside),
            (&["--bandit", "--families", "parity"], beside),
            (&["--bandit", "--stages", "5"], beside),
            (&["--bandit", "--tried"], beside),
            (&["--bandit", "--budget", "7"], beside),
            (&["--bandit", "--seeds", "3"], beside),
            (&["--bandit", "--save", "f"], beside),
        ],
    );
    // Without Q-learning there is none to be given steps; to ask for none is no contradiction.
    let peers = "--peer-steps 7 has no effect on --";
    refuse_all(
        folder.path(),
        &["table"],
        &[
            (&["--online", "--peer-steps", "7"], peers),
            (&["--controls", "--peer-steps", "7"], peers),
            (&["--generated", "--peer-steps", "0"], beside),
            (&["--online", "--peer-steps", "0", "--families", "none"], "no row has such a name"),
            (&["--online", "--budget", "7"], beside),
            (&["--controls", "--first-seed", "7"], beside),
            (&["--controls", "--scramble", "bits"], beside),
        ],
    );
    let others: [&[&str]; 6] = [
        &["--seeds", "3"],
        &["--first-seed", "7"],
        &["--scramble", "bits"],
        &["--several-steps"],
        &["--no-replay"],
        &["--delay-rewards", "3"],
    ];
    others.iter().for_each(|words| refuse_all(folder.path(), &["table", "--generated"], &[(words, beside)]));
    let drawn: [&[&str]; 6] = [
        &["--worlds", "3"],
        &["--salt", "7"],
        &["--sources", "x"],
        &["--ablate"],
        &["--served"],
        &["--http"],
    ];
    for words in drawn {
        refuse_all(folder.path(), &["table"], &[(words, "were not provided: --generated")]);
        for instead in ["--online", "--controls", "--held-out"] {
            refuse_all(folder.path(), &["table", instead], &[(words, beside)]);
        }
    }
    refuse_all(folder.path(), &["table", "--generated", "--ablate", "--http"], &[(&[], beside)]);
}

#[test]
fn games_show_and_play_offer_only_what_they_take() {
    let folder = folder();
    for command in ["show", "play"] {
        let help = text(&bem(folder.path(), &["games", command, "--help"]).stdout);
        assert!(!help.contains("env-cmd") && help.contains("--game"), "{help}");
        let line = refusal(folder.path(), &["games", command]);
        assert!(line.contains("a task is needed: a name such as parity, or --game FILE"), "{line}");
    }
    let line = refusal(folder.path(), &["solve"]);
    assert!(
        line.contains("a task is needed: a name such as parity, --game FILE, --env-cmd CMD or --tool-task"),
        "{line}"
    );
}

#[test]
fn a_table_that_is_wrong_is_told_what_would_be_right() {
    let folder = folder();
    let table = |transition: &str, observe: &str| {
        let rest = "[0,1,0,1,1000,true]";
        let text = format!(
            r#"{{"states":1,"actions":2,"horizon":3,"start":[[0,1]],"transitions":[{transition},{rest}],"observe":{observe}}}"#
        );
        std::fs::write(folder.path().join("t.json"), text).expect("a file");
        refusal(folder.path(), &["solve", "--game", "t.json"])
    };
    for (transition, wanted) in [
        (
            "[0,0,0,1,0.5,true]",
            "the reward 0.5 of [0,0,0,1,0.5,true] must be a whole number of milli-units: 0.5 is written 500",
        ),
        ("[0,0,0,1,-1.25,true]", "-1.25 is written -1250"),
        ("[0,0,0,1]", "this one has 4 entries: [0,0,0,1]"),
        ("[0,0,0,1,5,\"yes\"]", "the done \"yes\" of "),
        ("7", "a transition has the form [state,action,next,weight,reward,done]"),
    ] {
        let line = table(transition, "\"state\"");
        assert!(line.contains(wanted) && !line.contains("untagged"), "{line}");
    }
    let line = table("[0,0,0,1,5,true]", "7");
    assert!(line.contains("\"observe\" must be \"state\" or a list of zeros and ones"), "{line}");
}

/// A world that pays what it is told, and then does as it is told.
fn world(range: &str, answer: &str, end: &str) -> String {
    format!(
        "echo '{{\"hello\":1,\"obs_bits\":1,\"actions\":2,\"horizon\":1,\"reward_range\":{range}}}'; \
         while read line; do case $line in *reset*) echo '{{\"obs\":\"0\"}}';; *) {end} echo '{answer}';; esac; done"
    )
}

#[test]
fn rewards_that_look_like_units_get_a_hint() {
    let folder = folder();
    let command = world("[0,1]", r#"{"obs":"0","reward":0.5,"done":true}"#, "");
    let line = refusal(folder.path(), &["solve", "--env-cmd", &command, "--budget", "10"]);
    let wanted = "\"reward\" is 0.5; it must be a whole number of milli-units: 0.5 is written 500";
    assert!(line.contains(wanted), "{line}");
    for (range, reward, wanted) in
        [("[0,1]", 1, "if 1 was meant as one unit, write 1000"), ("[0,1000]", 1000, "")]
    {
        let command = world(range, &format!(r#"{{"obs":"0","reward":{reward},"done":true}}"#), "");
        let output = bem(folder.path(), &["solve", "--env-cmd", &command, "--budget", "10", "--json"]);
        let error = text(&output.stderr);
        assert!(output.status.success() && error.contains(wanted), "{output:?}");
        assert_eq!(error.is_empty(), wanted.is_empty(), "{error}");
    }
}

#[test]
fn a_dead_program_leaves_its_exit_status() {
    let folder = folder();
    let line = refusal(folder.path(), &["solve", "--env-cmd", "exit 7"]);
    assert!(line.contains("the program has ended with exit status 7"), "{line}");
    let command = world("[0,1000]", r#"{"obs":"0","reward":0,"done":true}"#, "kill -9 $$;");
    let line = refusal(folder.path(), &["solve", "--env-cmd", &command, "--budget", "10"]);
    assert!(line.contains("the program has ended by signal 9"), "{line}");
}

#[test]
fn nobody_listening_is_no_reason_to_panic() {
    let folder = folder();
    for arguments in
        [&["solve", "nothing"][..], &["games", "list"], &["--help"], &["solve", "parity", "--param", "n=3"]]
    {
        // Both outputs end in a pipe whose reader is gone before anything is written.
        let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().expect("true starts");
        let pipe = reader.stdin.take().expect("a pipe");
        reader.wait().expect("it ends");
        let other = pipe.as_fd_clone();
        let status =
            program(folder.path()).args(arguments).stdout(pipe).stderr(other).status().expect("it starts");
        assert!(matches!(status.code(), Some(0 | 2)), "{arguments:?}: {status:?}");
    }
}

trait Twice {
    fn as_fd_clone(&self) -> Stdio;
}

impl Twice for std::process::ChildStdin {
    fn as_fd_clone(&self) -> Stdio {
        use std::os::fd::AsFd as _;
        self.as_fd().try_clone_to_owned().expect("a second handle").into()
    }
}

#[test]
fn a_full_output_device_is_an_error() {
    let folder = folder();
    for arguments in [&["games", "list"][..], &["--help"], &["solve", "parity", "--param", "n=3", "--json"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let output = program(folder.path()).args(arguments).stdout(full).stderr(Stdio::piped()).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(
            text(&output.stderr).contains("standard output cannot be written: No space left"),
            "{output:?}"
        );
    }
}

#[test]
fn a_disk_that_is_full_does_not_cost_the_result() {
    let folder = folder();
    // No file may grow, as on a full disk; what goes through the pipe is not counted.
    let command = format!(
        "trap '' XFSZ; ulimit -f 0; exec {} solve parity --param n=3 --out kept --json",
        env!("CARGO_BIN_EXE_bem")
    );
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder.path())
        .env("XDG_STATE_HOME", folder.path().join("state"))
        .output()
        .expect("a shell");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the result");
    assert_eq!(result["solved"], true);
    assert!(text(&output.stderr).contains("the run cannot be kept in kept: "), "{output:?}");
}

#[test]
fn a_program_that_cannot_be_checked_is_told_why() {
    let folder = folder();
    for (name, program, want) in [
        ("middle.basm", ".node n\nli x1, 1\na: jmp a\n", "begin one there with .node NAME"),
        // A call is said before what would not help against it.
        (
            "called.basm",
            ".node n\na: jal x30, b\njmp a\nb: ret x30\n",
            "put what is called in its place, as a .macro",
        ),
    ] {
        std::fs::write(folder.path().join(name), program).expect("a file");
        let line = refusal(folder.path(), &["hoare", name]);
        assert!(line.contains(&format!("{name} cannot be checked: ")) && line.contains(want), "{line}");
    }
    // Of the programs that are shipped, one reads addresses that nothing bounds: its text says so, and so does the answer.
    for name in ["sum", "nim", "teach_and_log", "read_config"] {
        let file = example(&format!("programs/{name}.basm"));
        let checked = bem(folder.path(), &["hoare", &file]);
        let said = text(&checked.stdout);
        let is_bounded = name != "read_config";
        assert_eq!(checked.status.code(), Some(if is_bounded { 0 } else { 1 }), "{name}: {said}");
        assert_eq!(said.contains("an access may leave memory: "), !is_bounded, "{name}: {said}");
        let words = std::fs::read_to_string(&file).expect("a program");
        assert_eq!(words.contains("accesses of this program that may leave memory"), !is_bounded, "{name}");
    }
}

#[test]
fn too_few_seeds_for_the_curriculum_are_said_to_be_too_few() {
    let folder = folder();
    let one = bem(folder.path(), &["curriculum", "run", "--seeds", "42"]);
    assert_eq!(one.status.code(), Some(1));
    let error = text(&one.stderr);
    let told = "1 of at least 3 seeds: a run with so few cannot pass";
    assert!(error.contains(told), "one seed is not said to be too few: {error:?}");
}

#[test]
fn a_snapshot_is_not_overwritten_unasked() {
    let folder = folder();
    let folder = folder.path();
    assert!(bem(folder, &["solve", "parity", "--param", "n=3", "--out", "kept"]).status.success());
    std::fs::write(folder.join("kept.bem-snapshot"), "mine").expect("a file");
    let line = refusal(folder, &["snapshot", "kept"]);
    assert!(line.contains("kept.bem-snapshot is there already") && line.contains("--force"), "{line}");
    assert_eq!(std::fs::read(folder.join("kept.bem-snapshot")).expect("it is there"), b"mine");
    assert!(bem(folder, &["snapshot", "kept", "--force"]).status.success());
    assert!(bem(folder, &["restore", "kept.bem-snapshot", "--out", "again"]).status.success());
}

#[test]
fn runs_of_one_user_share_one_secret_and_have_keys_of_their_own() {
    let folder = folder();
    let folder = folder.path();
    for name in ["first", "second", "third"] {
        assert!(
            bem(folder, &["run", "--families", "parity", "--steps", "1", "--out", name]).status.success()
        );
    }
    let files = walk(&folder.join("state"));
    assert_eq!(files.len(), 1, "{files:?}");
    let secret = std::fs::read(&files[0]).expect("the secret");
    for file in walk(&folder.join("first")) {
        let bytes = std::fs::read(&file).expect("a file of the run");
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{file:?} holds the secret");
    }
    let key = |name: &str| {
        let checkpoint =
            std::fs::read_to_string(folder.join(name).join("ledger/checkpoint")).expect("a checkpoint");
        checkpoint.lines().next().expect("its origin").to_string()
    };
    assert_ne!(key("first"), key("second"));
    // Every one of them goes on; without the secret none does.
    assert!(bem(folder, &["run", "--resume", "second", "--steps", "1"]).status.success());
    std::fs::remove_file(&files[0]).expect("it is removed");
    let line = refusal(folder, &["run", "--resume", "first", "--steps", "1"]);
    assert!(line.contains("the signing key of this run is not here"), "{line}");
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn doctor_says_what_is_there_and_what_would_be_missing() {
    let folder = folder();
    let object: serde_json::Value =
        serde_json::from_slice(&bem(folder.path(), &["doctor", "--json"]).stdout).expect("JSON");
    let keys = [
        "avx2",
        "names",
        "cxx",
        "cc",
        "rustc",
        "node",
        "iverilog",
        "postgresql_client",
        "postgresql_server",
        "chromium",
        "skopeo",
        "runc",
        "python",
        "numpy",
        "gymnasium",
        "ray",
        "valgrind",
    ];
    for key in keys {
        let entry = &object["machine"][key];
        assert_eq!(entry["found"].as_bool(), Some(!entry["version"].is_null()), "{key}: {object}");
    }
    // With nothing in the path, nothing but the processor is found, and every line says what is lost.
    let bare = program(folder.path()).arg("doctor").env("PATH", "/nowhere").output().expect("it starts");
    let lines = text(&bare.stdout);
    assert!(
        bare.status.success() && lines.contains("Python             missing: no Gymnasium worlds"),
        "{lines}"
    );
    let offers = lines.lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!(offers, 1 + keys.len(), "{lines}");
}
