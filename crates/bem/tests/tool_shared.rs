//! A service's SHARED beside its bus, read by a routine of the control core; and a simulator of a catalog as a task by its name.
//! Clauses: TOOL-1, TOOL-2, TOOL-8, TOOL-10, TOOL-11, ISA-4; decisions D-200, D-201, D-205.

mod server;

use serde_json::{Value, json};
use server::{Server, bem, text};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const READ_CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/programs/read_config.basm");

/// A folder with a file below CONFIG_ROOT, a database and a simulator.
fn folder(flags: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::create_dir(path.join("config")).expect("a folder");
    std::fs::write(path.join("config/env.txt"), "gain=3\n").expect("a file");
    let make = "import sqlite3; b = sqlite3.connect('stock.db'); b.execute('CREATE TABLE item (id INTEGER)'); b.commit()";
    let made = Command::new("python3").args(["-c", make]).current_dir(path).status().expect("python");
    assert!(made.success());
    let catalog = format!(
        "[[root]]\nname = \"config\"\npath = \"config\"\nalias = \"CONFIG_ROOT\"\nflags = [{flags}]\n\
         [[database]]\nname = \"stock\"\nsqlite = \"stock.db\"\n\
         [[environment]]\nname = \"counting\"\ncommand = \"python3 count_env.py\"\n"
    );
    std::fs::write(path.join("catalog.toml"), catalog).expect("a file");
    std::fs::copy(format!("{ROOT}/examples/count_env.py"), path.join("count_env.py")).expect("a copy");
    folder
}

fn serve(folder: &Path, routine: &str) -> Server {
    Server::start(folder, "served", &["--tools", "catalog.toml", "--routine", routine])
}

/// What the service shows when its routine has run so often.
fn shown(server: &Server, runs: u64) -> Value {
    let mut client = server.connect();
    for _ in 0..2_400 {
        let (status, listed) = client.ask("GET", "/v1/tools", &Value::Null);
        assert_eq!(status, 200, "{listed}");
        if listed["routine"]["runs"].as_u64() == Some(runs) {
            return listed;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("the routine does not run {runs} times");
}

#[test]
fn a_routine_of_a_service_finds_a_file_in_the_catalog_and_reads_it_over_the_bus() {
    let folder = folder("");
    let path = folder.path();
    let server = serve(path, READ_CONFIG);
    // The first run asks; the barrier at which the answer came is the second.
    let listed = shown(&server, 2);
    let x = &listed["routine"]["x"];
    assert_eq!((&x[11], &x[12]), (&json!("0x2"), &json!("0x0")), "status done, no error: {listed}");
    let first = u64::from_le_bytes(*b"\xa2\x00\x47gain=");
    assert_eq!((&x[13], &x[14]), (&json!("0xc"), &json!(format!("{first:#x}"))), "{listed}");
    assert_eq!(listed["routine"]["trap"], Value::Null);
    // SHARED has every table, and the slot as the barrier left it.
    let shared = &listed["shared"];
    let tables = ["fs_nodes", "db_conns", "tool_kinds", "env_tasks"].map(|table| shared[table].as_u64());
    assert_eq!(tables, [Some(2), Some(1), Some(6), Some(1)], "{shared}");
    assert_eq!((&shared["fs_aliases"][3], &shared["version"]), (&json!("config"), &json!(1)), "{shared}");
    assert_eq!((&shared["ended"], &shared["failed"]), (&json!(1), &json!(0)), "{shared}");
    let mut client = server.connect();
    let (_, sent) =
        client.ask("POST", "/v1/tools", &json!({ "kind": "fs", "op": "stat", "resource": "config/env.txt" }));
    assert_eq!(sent["status"], "done", "{sent}");
    server.stop();
    // The request is in the history like one by hand, and is played again without the program and without the file.
    let calls = text(&bem(path, &["inspect", "served"]));
    assert!(calls.contains("tool"), "{calls}");
    std::fs::remove_dir_all(path.join("config")).expect("removed");
    let replayed = bem(path, &["replay", "served"]);
    assert!(text(&replayed).contains("4 inputs played again, all of them"), "{}", text(&replayed));
    assert!(text(&bem(path, &["verify", "served"])).starts_with("unanchored: "));
}

#[test]
fn a_routine_changes_neither_what_is_outside_nor_what_it_is_shown() {
    let program = std::fs::read_to_string(READ_CONFIG).expect("the program");
    let writes =
        program.replace("li x9, 1\n    st x9, [sb_env + 8]     ; read", "li x9, 2\n    st x9, [sb_env + 8]");
    assert_ne!(writes, program);
    let scribbles = "ld x2, [sb_work + 8]\n    st x2, [x2 + 0]\n".to_string();
    for (flags, routine, code, trap) in [
        ("", writes, Some(-11i64), false),
        ("\"sensitive\"", program, Some(-12), false),
        ("", scribbles, None, true),
    ] {
        let folder = folder(flags);
        let path = folder.path();
        std::fs::write(path.join("routine.basm"), routine).expect("a file");
        let server = serve(path, "routine.basm");
        let listed = shown(&server, 1);
        if let Some(code) = code {
            assert_eq!(listed["routine"]["x"][10], json!(format!("{code:#x}")), "{listed}");
        }
        assert_eq!(listed["routine"]["trap"].is_string(), trap, "{listed}");
        // The service goes on.
        let mut client = server.connect();
        let call = json!({ "kind": "fs", "op": "stat", "resource": "config" });
        assert_eq!(client.ask("POST", "/v1/tools", &call).1["status"], "done");
        server.stop();
    }
}

#[test]
fn a_simulator_of_a_catalog_is_a_task_by_its_name() {
    let folder = folder("");
    let path = folder.path();
    std::fs::write(path.join("task.toml"), "catalog = \"catalog.toml\"\nenvironment = \"counting\"\n")
        .expect("a file");
    let words = ["solve", "--tool-task", "task.toml", "--budget", "4000", "--out", "run", "--json"];
    // Commands of a catalog begin where it lies, wherever bem is called from.
    let solved = bem(path, &words);
    assert!(solved.status.success(), "{}", text(&solved));
    let score: Value = serde_json::from_slice(&solved.stdout).expect("JSON");
    let by_command = bem(path, &["solve", "--env-cmd", "python3 count_env.py", "--budget", "4000", "--json"]);
    let same: Value = serde_json::from_slice(&by_command.stdout).expect("JSON");
    assert_eq!(
        score["trace_head"], same["trace_head"],
        "by its name and by its command it is the same world"
    );
    // It is played again and audited without the simulator and the catalog.
    for gone in ["catalog.toml", "count_env.py", "task.toml"] {
        std::fs::remove_file(path.join(gone)).expect("removed");
    }
    let replayed = bem(path, &["replay", "run"]);
    assert!(replayed.status.success(), "{}", text(&replayed));
    let verified = bem(path, &["verify", "run"]);
    assert!(text(&verified).starts_with("unanchored: "), "{}", text(&verified));
}

#[test]
fn a_task_that_names_no_simulator_is_told_which_there_are() {
    let folder = folder("");
    let path = folder.path();
    for (text_of, words) in [
        ("catalog = \"catalog.toml\"\nenvironment = \"walk\"\n", "known are counting"),
        (
            "catalog = \"catalog.toml\"\nenvironment = \"counting\"\nhorizon = 3\n",
            "task.toml:3: unknown field",
        ),
    ] {
        std::fs::write(path.join("task.toml"), text_of).expect("a file");
        let refused = bem(path, &["solve", "--tool-task", "task.toml"]);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains(words), "{}", text(&refused));
    }
}
