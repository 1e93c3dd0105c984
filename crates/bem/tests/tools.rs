//! The tool bus from outside: commands, a server with tools that is killed and played again, workers of both languages, a
//! program of the control core, and a database as a world. Clauses: TOOL-1 to TOOL-4, TOOL-6, TOOL-7, TOOL-9 to TOOL-11, ISA-4.

mod guide;
mod server;

use guide::{commands, needed, shell};
use serde_json::{Value, json};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn bem(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("keys"))
        .env("PYTHONPATH", format!("{ROOT}/python"))
        .output()
        .expect("bem runs")
}

fn json_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text} {}", String::from_utf8_lossy(&output.stderr)))
}

/// A folder with a file, a database, a sensitive file and a Python tool.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::create_dir(path.join("config")).expect("a folder");
    std::fs::write(path.join("config/env.txt"), "gain=3\n").expect("a file");
    std::fs::write(path.join("config/secret.txt"), "CANARY-7291").expect("a file");
    let made = Command::new("python3")
        .args(["-c", "import sqlite3; b = sqlite3.connect('stock.db'); b.execute('CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)'); b.commit()"])
        .current_dir(path)
        .status()
        .expect("python");
    assert!(made.success());
    std::fs::write(
        path.join("catalog.toml"),
        "[[root]]\nname = \"config\"\npath = \"config\"\nalias = \"CONFIG_ROOT\"\n\
         [[file]]\nroot = \"config\"\npath = \"env.txt\"\n\
         [[file]]\nroot = \"config\"\npath = \"secret.txt\"\nflags = [\"sensitive\"]\n\
         [[database]]\nname = \"stock\"\nsqlite = \"stock.db\"\n\
         [[tool]]\nname = \"echo\"\ncommand = \"exec python3 -m bem_worker\"\noperations = [{ name = \"echo\", idempotent = true }]\n",
    )
    .expect("a file");
    folder
}

/// A server with the tools of the folder.
fn serve(folder: &Path) -> Server {
    let mut command = server::command(folder, "served", &["--tools", "catalog.toml"]);
    command.env("PYTHONPATH", format!("{ROOT}/python"));
    Server::of(command, &folder.join("served/token"))
}

impl Server {
    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn call(&self, folder: &Path, arguments: &[&str]) -> Value {
        let (mut all, url) = (vec!["tools", "call"], self.url());
        all.extend(arguments);
        all.extend(["--url", &url, "--token-file", "served/token"]);
        json_of(&bem(folder, &all))
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn head(folder: &Path) -> String {
    let replayed = bem(folder, &["replay", "served"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
    let printed = text(&replayed);
    printed.lines().last().expect("a line").to_string()
}

#[test]
fn a_server_with_tools_is_audited_and_played_again_without_them() {
    let folder = folder();
    let path = folder.path();
    let server = serve(path);
    let read = server.call(path, &["fs", "read", "config/env.txt"]);
    assert_eq!(
        (read["status"].as_str(), read["response"]["data"].as_str()),
        (Some("done"), Some("gain=3\n"))
    );
    let insert = json!({ "text": "INSERT INTO item (name) VALUES (?1)", "parameters": ["saw"] }).to_string();
    let written = server.call(path, &["db", "query", "stock", &insert, "--flag", "transactional"]);
    assert_eq!(written["response"]["changed"], 1);
    let said = server.call(path, &["echo", "echo", "-", "{\"a\":[1,null,\"x\"]}"]);
    assert_eq!(said["response"], json!({ "a": [1, null, "x"] }), "a worker in Python answers");
    let secret = server.call(path, &["fs", "read", "config/secret.txt"]);
    assert_eq!(secret["response"]["data"], "CANARY-7291", "whoever asks gets it");
    let refused = bem(
        path,
        &["tools", "call", "fs", "read", "nothing", "--url", &server.url(), "--token-file", "served/token"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused).contains("resource \"nothing\" is unknown to fs: known are config"),
        "{}",
        text(&refused)
    );
    let listed =
        bem(path, &["tools", "list", "--json", "--url", &server.url(), "--token-file", "served/token"]);
    let listed = json_of(&listed);
    assert_eq!((&listed["kinds"][0]["done"], &listed["kinds"][1]["done"]), (&json!(2), &json!(1)));
    // A worker in a process of its own joins, and leaves with the bus.
    let mut worker = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(["worker", "--bus", "served/bus.sock", "--kind", "db", "--no-sandbox"])
        .current_dir(path)
        .spawn()
        .expect("a worker");
    for _ in 0..20 {
        let counted =
            server.call(path, &["db", "query", "stock", "{\"text\":\"SELECT count(*) FROM item\"}"]);
        assert_eq!(counted["response"]["rows"], json!([[1]]));
    }
    server.stop();
    assert!(worker.wait().expect("it leaves").success());
    let kept = head(path);
    for source in ["config", "stock.db", "catalog.toml"] {
        let gone = path.join(source);
        if gone.is_dir() { std::fs::remove_dir_all(&gone) } else { std::fs::remove_file(&gone) }
            .expect("removed");
    }
    assert_eq!(head(path), kept, "the tools are not needed");
    let verified = bem(path, &["verify", "served"]);
    assert!(text(&verified).contains("unanchored") || verified.status.success(), "{}", text(&verified));
    assert!(
        !holds(&path.join("served/ledger"), b"CANARY-7291"),
        "the history does not hold what is sensitive"
    );
    assert!(holds(&path.join("served/ledger"), b"gain=3"), "and holds what is not");
    assert!(holds(&path.join("served/sensitive"), b"CANARY-7291"));
    // Without the volume an audit is content, and a replay stops by name.
    std::fs::remove_dir_all(path.join("served/sensitive")).expect("removed");
    let verified = bem(path, &["verify", "served"]);
    assert!(text(&verified).contains("unanchored") || verified.status.success(), "{}", text(&verified));
    let stopped = bem(path, &["replay", "served"]);
    assert_eq!(stopped.status.code(), Some(1), "{}", text(&stopped));
    // Three requests and their ends are played, and the fourth request; its answer is what is named.
    let said = text(&stopped);
    assert!(said.contains("served: 7 inputs played again, up to one that is withheld"), "{said}");
    let named =
        "stopped before input 8: the answer to request 7 is sensitive, and served/sensitive/7.response";
    assert!(said.contains(named), "{said}");
    assert!(!said.contains("head"), "what was not played has no head: {said}");
    // One that is asked for up to there is content.
    let before = bem(path, &["replay", "served", "--to", "6"]);
    assert!(before.status.success(), "{}", text(&before));
}

/// Whether some file below a folder holds these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).expect("a folder").flatten().any(|entry| {
        let path: PathBuf = entry.path();
        match path.is_dir() {
            true => holds(&path, bytes),
            false => std::fs::read(&path).expect("a file").windows(bytes.len()).any(|window| window == bytes),
        }
    })
}

#[test]
fn a_server_that_is_killed_goes_on_and_its_history_holds() {
    let folder = folder();
    let path = folder.path();
    let mut server = serve(path);
    server.call(path, &["fs", "read", "config/env.txt"]);
    server.child.kill().expect("it runs");
    server.child.wait().expect("it ends");
    drop(server);
    let server = serve(path);
    let again = server.call(path, &["fs", "stat", "config/env.txt"]);
    assert_eq!(again["response"]["size"], 7);
    server.stop();
    head(path);
}

/// A request that takes its time, asked by a process of its own; it is under way when this returns.
fn slow(server: &Server, folder: &Path, operation: &str) -> std::process::Child {
    let url = server.url();
    let words = [
        "tools",
        "call",
        "echo",
        operation,
        "-",
        "{\"seconds\":6}",
        "--url",
        &url,
        "--token-file",
        "served/token",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
    command
        .args(words)
        .current_dir(folder)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("bem runs");
    let is_out = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        0 < counted(server, folder, "in_flight")
    });
    if !is_out {
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        panic!("the request does not go out");
    }
    child
}

fn counted(server: &Server, folder: &Path, name: &str) -> u64 {
    let words = ["tools", "list", "--json", "--url", &server.url(), "--token-file", "served/token"];
    let listed = json_of(&bem(folder, &words));
    let kinds = listed["kinds"].as_array().expect("kinds").iter();
    kinds.filter(|kind| kind["name"] == "echo").filter_map(|kind| kind[name].as_u64()).sum()
}

#[test]
fn requests_in_flight_are_in_the_snapshot_and_go_out_again_or_end() {
    let folder = folder();
    let path = folder.path();
    let text_of = std::fs::read_to_string(path.join("catalog.toml")).expect("a file");
    let both = "operations = [{ name = \"slow\", idempotent = true }, { name = \"echo\" }]";
    let catalog = text_of.replace("operations = [{ name = \"echo\", idempotent = true }]", both);
    std::fs::write(path.join("catalog.toml"), &catalog).expect("a file");
    // Stopped cleanly: the snapshot has the request, which goes out again under its key and is done.
    let server = serve(path);
    let mut asking = slow(&server, path, "slow");
    // SHARED's TOOL_BUS shows the slot to whoever may look, and the page does too.
    let mut client = server.connect();
    let (_, listed) = client.ask("GET", "/v1/tools", &Value::Null);
    let slot = &listed["slots"][0];
    assert_eq!((&slot["kind"], &slot["status"]), (&json!("echo"), &json!("pending")), "{listed}");
    assert!(slot["number"].as_u64().is_some_and(|number| 0 < number), "{listed}");
    let (status, page) = client.ask("GET", "/tools", &Value::Null);
    assert!(status == 200 && page.as_str().is_some_and(|page| page.contains("<h2>Slots</h2>")), "{page}");
    // A server that stops answers whoever still waits: nobody does.
    asking.kill().expect("it runs");
    let _ = asking.wait();
    server.stop();
    let server = serve(path);
    for round in 0.. {
        assert!(round < 600, "the request of before is done");
        if counted(&server, path, "done") == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // Killed while something is under way that must not be repeated: it ends, and nobody knows how.
    server.stop();
    let once = catalog.replace("name = \"slow\", idempotent = true", "name = \"slow\"");
    std::fs::write(path.join("catalog.toml"), once).expect("a file");
    let server = serve(path);
    let mut asking = slow(&server, path, "slow");
    server.kill();
    let _ = asking.wait();
    std::fs::write(path.join("catalog.toml"), &catalog).expect("a file");
    let server = serve(path);
    assert_eq!(counted(&server, path, "in_flight"), 0, "it does not go out again");
    // Killed, and started without the tool: a history with a kind that nobody knows any more loads, and the request ends.
    let mut asking = slow(&server, path, "slow");
    server.kill();
    let _ = asking.wait();
    let without = catalog.split("[[tool]]").next().expect("what comes before");
    std::fs::write(path.join("catalog.toml"), without).expect("a file");
    let server = serve(path);
    assert_eq!(server.call(path, &["fs", "stat", "config/env.txt"])["response"]["size"], 7);
    server.stop();
    let entries = text(&bem(path, &["verify", "served"]));
    assert!(entries.starts_with("unanchored: "), "{entries}");
    let ended = text(&bem(path, &["inspect", "served"]));
    assert!(ended.contains("error 10"), "OUTCOME_UNKNOWN stands in the history: {ended}");
    head(path);
}

#[test]
fn a_program_of_the_control_core_reads_a_file_through_the_bus() {
    let folder = folder();
    std::fs::remove_file(folder.path().join("config/secret.txt")).expect("removed");
    let program = format!("{ROOT}/examples/programs/read_config.basm");
    let run = json_of(&bem(folder.path(), &["exec", &program, "--tools", "catalog.toml", "--json"]));
    // Status done, no error, and a CBOR map {0: bytes, 1: size}: a2 00 47 "gain=".
    assert_eq!((&run["x"][11], &run["x"][12]), (&json!("0x2"), &json!("0x0")), "{run}");
    assert_eq!(run["x"][13], json!(format!("{:#x}", 3 + 7 + 2)));
    let first = u64::from_le_bytes(*b"\xa2\x00\x47gain=");
    assert_eq!(run["x"][14], json!(format!("{first:#x}")));
    // Without a bus the same program is told so.
    let bare = json_of(&bem(folder.path(), &["exec", &program, "--json"]));
    assert_eq!(bare["trap"], Value::Null);
}

#[test]
fn a_program_of_the_control_core_is_taught_and_logs_into_a_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let program = format!("{ROOT}/examples/programs/teach_and_log.basm");
    let run = json_of(&bem(path, &["exec", &program, "--out", "taught", "--json"]));
    assert_eq!(run["trap"], Value::Null, "{run}");
    let refused = format!("{:#x}", u64::MAX);
    assert_eq!(
        [&run["x"][10], &run["x"][11], &run["x"][12], &run["x"][13]],
        [&json!("0x0"), &json!("0x1"), &json!(refused), &json!("0x0")]
    );
    let tasks = run["tasks"].as_array().expect("tasks");
    assert_eq!((tasks.len(), &tasks[0]["band"], &tasks[1]["context"]), (2, &json!(1), &json!(8)));
    assert_ne!(tasks[0]["seed"], tasks[1]["seed"], "another context, other hidden choices");
    // The task is in the program's memory: its template, and its tree, from which a game is built.
    let tree = tasks[0]["task"].as_str().expect("a tree");
    let mut first = [0; 8];
    first[..tree.len().min(8)].copy_from_slice(&tree.as_bytes()[..tree.len().min(8)]);
    let word = |value: u64| json!(format!("{value:#x}"));
    let template = tasks[0]["template"].as_u64().expect("a template");
    assert_eq!(
        [&run["x"][15], &run["x"][16], &run["x"][17]],
        [&word(template), &word(tree.len() as u64), &word(u64::from_le_bytes(first))]
    );
    let played = bem(path, &["games", "show", tree]);
    assert!(played.status.success(), "{}", text(&played));
    let again = json_of(&bem(path, &["exec", &program, "--json"]));
    assert_eq!(again["tasks"], run["tasks"], "the same program and seed, the same tasks");
    let verified = bem(path, &["verify", "taught"]);
    assert!(text(&verified).contains("unanchored") || verified.status.success(), "{}", text(&verified));
    let shown = text(&bem(path, &["inspect", "taught"]));
    assert!(shown.contains("LOGGED") && shown.contains("TAUGHT"), "{shown}");
    let twice = bem(path, &["exec", &program, "--out", "taught"]);
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice));
    // One bit of what was logged turned over is found.
    let files = std::fs::read_dir(path.join("taught/ledger")).expect("a folder").flatten();
    let is_segment = |path: &PathBuf| path.to_string_lossy().contains("segment");
    let segment = files.map(|entry| entry.path()).find(is_segment).expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("a file");
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    std::fs::write(&segment, bytes).expect("a file");
    assert!(!bem(path, &["verify", "taught"]).status.success());
}

#[test]
fn a_database_is_a_world_that_is_learned_and_played_again_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for name in ["make_shop.py", "catalog.toml", "cheapest.toml", "shop.toml", "tariff.toml"] {
        std::fs::copy(format!("{ROOT}/examples/tools/{name}"), path.join(name)).expect("a copy");
    }
    let made = Command::new("python3").arg("make_shop.py").current_dir(path).status().expect("python");
    assert!(made.success());
    let score = |task: &str, out: &str, budget: &str| {
        json_of(&bem(path, &["solve", "--tool-task", task, "--budget", budget, "--out", out, "--json"]))
    };
    let cheapest = score("cheapest.toml", "cheapest", "6000");
    assert!(0.99 <= cheapest["score"].as_f64().expect("a score"), "{cheapest}");
    assert!(
        cheapest["random"].as_f64().expect("a value") <= 0.3 * cheapest["optimum"].as_f64().expect("a value")
    );
    let known = score("tariff.toml", "known", "4000");
    assert!(0.99 <= known["score"].as_f64().expect("a score"), "{known}");
    let task = std::fs::read_to_string(path.join("tariff.toml")).expect("a file");
    std::fs::write(path.join("blind.toml"), task.replace("enabled = true", "enabled = false"))
        .expect("a file");
    let blind = score("blind.toml", "blind", "4000");
    assert!(
        blind["score"].as_f64().expect("a score") < 0.1,
        "without the lookup nothing can be known: {blind}"
    );
    let shop = score("shop.toml", "shop", "20000");
    assert!(0.99 <= shop["score"].as_f64().expect("a score"), "{shop}");
    std::fs::remove_file(path.join("shop.db")).expect("removed");
    for run in ["cheapest", "known", "blind", "shop"] {
        let replayed = bem(path, &["replay", run]);
        assert!(replayed.status.success(), "{run}: {}", text(&replayed));
        let verified = bem(path, &["verify", run]);
        assert!(text(&verified).contains("unanchored") || verified.status.success(), "{}", text(&verified));
    }
}

#[test]
fn the_commands_of_the_page_work() {
    let folder = tempfile::tempdir().expect("a folder");
    for part in ["tools", "programs"] {
        let (from, to) = (format!("{ROOT}/examples/{part}"), folder.path().join("examples").join(part));
        std::fs::create_dir_all(&to).expect("a folder");
        for entry in std::fs::read_dir(from).expect("a folder").flatten() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
        }
    }
    std::fs::copy(format!("{ROOT}/examples/count_env.py"), folder.path().join("examples/count_env.py"))
        .expect("a copy");
    let page = std::fs::read_to_string(format!("{ROOT}/docs/tools.md")).expect("the page");
    let script = format!("export PYTHONPATH={ROOT}/python\n{}", commands(&page));
    let output = shell(folder.path(), &needed(&page), &script);
    let printed = text(&output);
    assert!(output.status.success(), "{printed}");
    for expected in [
        "gain=3",
        "\"rows\":[[1200]]",
        "\"changed\":1",
        "\"words\":4",
        "x11  0x0000000000000002",
        "every entry as recorded",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}
