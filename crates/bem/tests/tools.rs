//! The tool bus from outside: commands, a server with tools that is killed and played again, workers of both languages, a
//! program of the control core, and a database as a world. Clauses: TOOL-1 to TOOL-4, TOOL-6, TOOL-7, TOOL-9 to TOOL-11, ISA-4.

mod guide;
mod server;

use guide::{commands, shell};
use serde_json::{Value, json};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

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
    assert!(text(&stopped).contains("is sensitive"), "{}", text(&stopped));
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
    let page = std::fs::read_to_string(format!("{ROOT}/docs/tools.md")).expect("the page");
    let script = format!("export PYTHONPATH={ROOT}/python\n{}", commands(&page));
    let output = shell(folder.path(), &script);
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

/// Workers of both languages that are killed at random: every request ends once, and no transaction happens twice.
#[test]
fn workers_that_are_killed_at_random_cost_no_request_and_repeat_no_write() {
    use bem_base::prng::Prng;
    use bem_tools::bus::{Request, key};
    use bem_tools::cbor::Item;
    use bem_tools::operation::db_flag;
    use bem_workers::catalog_file::CatalogFile;
    use bem_workers::host::{Host, HostOptions};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    let (writes, echoes, kills) = (150u64, 1_500u64, 24);
    let folder = folder();
    let path = folder.path();
    let catalog = Arc::new(CatalogFile::load(&path.join("catalog.toml")).expect("a catalog"));
    let socket = path.join("bus.sock");
    let options =
        HostOptions { socket: Some(socket.clone()), has_threads: false, has_commands: false, lease: 400 };
    let mut host = Host::start(Arc::clone(&catalog), &options).expect("a bus");
    let start = |place: usize| {
        let mut command = match place {
            0 | 1 => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
                command.args(["worker", "--kind", "db", "--no-sandbox", "--bus"]).arg(&socket);
                command
            }
            _ => {
                let mut command = Command::new("python3");
                command.args(["-m", "bem_worker"]).env("BEM_KIND", "echo").env("BEM_BUS", &socket);
                command
            }
        };
        command.env("PYTHONPATH", format!("{ROOT}/python")).stderr(Stdio::null()).spawn().expect("a worker")
    };
    let mut workers: Vec<Child> = (0..4).map(start).collect();
    let (database, echo) =
        (catalog.catalog.find("db").expect("a kind"), catalog.catalog.find("echo").expect("a kind"));
    let stock = catalog.catalog.find("stock").expect("a database");
    let mut prng = Prng::stream(9, "tools/kills");
    let (mut next, mut ended, mut killed) = (0, BTreeMap::new(), 0);
    let all = writes + echoes;
    while (ended.len() as u64) < all {
        while next < all {
            let is_write = next % (all / writes) == 0;
            let (kind, resource, flags, payload) = if is_write {
                let text = Item::Text("INSERT INTO item (name) VALUES (?1)".to_string());
                let bound = Item::List(vec![Item::Text(next.to_string())]);
                (database, stock, db_flag::TRANSACTIONAL, Item::fields([(0, text), (3, bound)]).to_bytes())
            } else {
                (echo, echo, 0, Item::Int(next as i64).to_bytes())
            };
            let request = Request {
                operation: 0,
                flags,
                resource,
                payload: &payload,
                capacity: 4_096,
                number: next,
                key: key(next, &payload),
                is_idempotent: true,
                lease: 0,
                patience: 0,
            };
            if host.enqueue(kind, &request).is_err() {
                break;
            }
            next += 1;
        }
        for done in host.poll(64) {
            if done.error.is_none() && done.kind == echo {
                assert_eq!(
                    done.response,
                    Item::Int(done.number as i64).to_bytes(),
                    "an answer of another request"
                );
            }
            assert!(ended.insert(done.number, (done.kind, done.error)).is_none(), "a request ends once");
            if killed < kills && prng.below(all / kills) == 0 {
                let place = prng.below(4) as usize;
                workers[place].kill().expect("it runs");
                workers[place].wait().expect("it ends");
                workers[place] = start(place);
                killed += 1;
            }
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    let done = |kind| ended.values().filter(|(of, error)| *of == kind && error.is_none()).count() as u64;
    assert!(echoes * 9 / 10 < done(echo) && writes / 2 < done(database), "{} {}", done(echo), done(database));
    assert!(kills / 2 < killed, "{killed} workers were killed");
    let count = "{\"text\":\"SELECT count(*), count(DISTINCT name) FROM item\"}";
    let kept = json_of(&bem(path, &["tools", "call", "db", "query", "stock", count]));
    let rows = &kept["response"]["rows"][0];
    assert_eq!(rows[0], rows[1], "no write has happened twice");
    assert!(done(database) <= rows[0].as_u64().expect("a count") && rows[0].as_u64() <= Some(writes));
    drop(host);
    for mut worker in workers {
        let _ = worker.kill();
        let _ = worker.wait();
    }
}
