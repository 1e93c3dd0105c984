//! TOOL_DB on a real PostgreSQL server: the same payloads as with SQLite, bound parameters, limits, effects that happen once,
//! and a password that is found nowhere. Where there is no PostgreSQL, the tests say so. Clauses: TOOL-6, TOOL-9, TOOL-10;
//! decision D-117.

mod server;

use bem_base::ids::ObjectId;
use bem_tools::bus::{Channel, Request, key};
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::operation::{Role, by_name, db_flag};
use bem_tools::word::AtomicU64;
use bem_tools::worker::{Port, serve_one};
use bem_workers::catalog_file::CatalogFile;
use bem_workers::database::Databases;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The password; it must be found nowhere afterwards.
const SECRET: &str = "CANARY-pg-5518";

/// Where PostgreSQL's programs are.
fn programs() -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let all = ["initdb", "postgres", "psql"];
    folders.into_iter().find(|folder| all.iter().all(|program| folder.join(program).exists()))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// A program as the user that PostgreSQL wants: it does not run as root.
fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

/// A server of its own, on a socket in its folder.
struct Postgres {
    child: Child,
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Postgres {
    fn start() -> Option<Postgres> {
        let Some(programs) = programs() else {
            eprintln!("PostgreSQL is not installed: its tests are left out (cargo xtask tools installs it)");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::write(path.join("password"), SECRET).expect("a file");
        if is_root() {
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(path).status().expect("chown");
            assert!(owned.success());
        }
        let made = as_user(&programs.join("initdb"))
            .args([
                "--no-sync",
                "--username=bem",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--pgdata",
            ])
            .arg(path.join("data"))
            .arg("--pwfile")
            .arg(path.join("password"))
            .output()
            .expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let child = as_user(&programs.join("postgres"))
            .arg("-D")
            .arg(path.join("data"))
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-k"])
            .arg(path)
            .stderr(Stdio::null())
            .spawn()
            .expect("postgres");
        let server = Postgres { child, folder, programs };
        for _ in 0..600 {
            if server.psql("SELECT 1").status.success() {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("PostgreSQL does not start");
    }

    fn psql(&self, text: &str) -> Output {
        Command::new(self.programs.join("psql"))
            .args([
                "--no-psqlrc",
                "-v",
                "ON_ERROR_STOP=1",
                "-At",
                "-U",
                "bem",
                "-d",
                "postgres",
                "-c",
                text,
                "-h",
            ])
            .arg(self.folder.path())
            .env("PGPASSWORD", SECRET)
            .output()
            .expect("psql")
    }

    fn must(&self, text: &str) -> String {
        let done = self.psql(text);
        assert!(done.status.success(), "{text}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_string()
    }

    /// A catalog that names it as `s`.
    fn catalog(&self, more: &str) -> String {
        format!(
            "[[database]]\nname = \"s\"\npostgres = \"host={} user=bem dbname=postgres\"\n\
             password_file = \"password\"\ntimeout_ms = 3000\n{more}\n\
             [database.operations]\nprice = \"SELECT price FROM item WHERE id = $1\"\n",
            self.folder.path().display()
        )
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An interrupt ends it at once, with all that it started.
        let data =
            std::fs::read_to_string(self.folder.path().join("data/postmaster.pid")).unwrap_or_default();
        if let Some(pid) = data.lines().next() {
            let _ = Command::new("kill").args(["-INT", pid]).status();
        }
        let _ = self.child.wait();
    }
}

/// A worker's tool with requests given by hand.
struct Bench {
    catalog: Arc<CatalogFile>,
    databases: Databases,
    number: u64,
}

type Answered = Result<Item, (ErrorCode, String)>;

impl Bench {
    fn new(postgres: &Postgres, more: &str) -> Bench {
        let folder = postgres.folder.path().to_path_buf();
        let catalog = CatalogFile::parse("c.toml", postgres.catalog(more), folder, None).expect("a catalog");
        let catalog = Arc::new(catalog);
        Bench { databases: Databases::new(Arc::clone(&catalog)), catalog, number: 0 }
    }

    fn call_as(&mut self, number: u64, op: &str, fields: Vec<(u64, Item)>, flags: u16) -> Answered {
        let memory: Arc<Vec<AtomicU64>> = Arc::new(bem_tools::layout::private());
        let found = |name: &str| -> ObjectId { self.catalog.catalog.find(name).expect("it is there") };
        let mut channel = Channel::new(found("db"), Arc::clone(&memory));
        let payload = Item::fields(fields).to_bytes();
        let request = Request {
            operation: by_name(Role::Database, op).expect("an operation").code,
            flags,
            resource: found("s"),
            payload: &payload,
            capacity: PAYLOAD_MAX as u32,
            number,
            key: key(number, &payload),
            is_idempotent: true,
            lease: 100,
            patience: 0,
        };
        channel.enqueue(&request, 0).expect("room");
        let mut port = Port::open(memory, 1).expect("a mapping");
        assert!(serve_one(&mut port, &mut self.databases));
        let mut done = Vec::new();
        channel.poll(0, 1, &mut done);
        match done[0].error {
            None => Ok(Item::from_bytes(&done[0].response).expect("CBOR")),
            Some(code) => Err((code, String::from_utf8_lossy(&done[0].response).into_owned())),
        }
    }

    fn query(&mut self, text: &str, parameters: Vec<Item>, flags: u16) -> Answered {
        self.number += 1;
        let fields = vec![(0, Item::Text(text.to_string())), (3, Item::List(parameters))];
        self.call_as(self.number, "query", fields, flags)
    }

    fn rows(&mut self, text: &str, parameters: Vec<Item>) -> Item {
        let answer = self.query(text, parameters, db_flag::READ_ONLY).expect("rows");
        answer.field(1).expect("rows").clone()
    }

    fn refused(&mut self, text: &str, flags: u16) -> (ErrorCode, String) {
        self.query(text, Vec::new(), flags).expect_err(text)
    }
}

fn item(text: &str) -> Item {
    Item::Text(text.to_string())
}

#[test]
fn statements_are_bound_bounded_and_happen_once() {
    let Some(postgres) = Postgres::start() else { return };
    postgres.must(
        "CREATE TABLE item (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(10,2), weight FLOAT8, picture BYTEA, \
         fresh BOOL, made DATE); INSERT INTO item VALUES (1, 'nail', 0.10, 0.5, '\\x00ff', true, '2026-01-02'), \
         (2, 'it''s', 2.50, 1e300, NULL, false, NULL)",
    );
    let mut bench = Bench::new(&postgres, "");
    values_travel_as_with_sqlite(&mut bench);
    parameters_are_never_pasted(&mut bench, &postgres);
    statements_are_bounded(&mut bench, &postgres);
    a_transaction_happens_once(&mut bench, &postgres);
    let mut fixed = Bench::new(&postgres, "flags = [\"read_only\"]");
    assert_eq!(fixed.refused("DELETE FROM item", 0).0, ErrorCode::NOT_ALLOWED);
    let hidden = "WITH gone AS (DELETE FROM item RETURNING id) SELECT count(*) FROM gone";
    assert_eq!(fixed.refused(hidden, 0).0, ErrorCode::NOT_ALLOWED, "the server refuses what is hidden");
    assert_eq!(fixed.refused(hidden, db_flag::TRANSACTIONAL).0, ErrorCode::NOT_ALLOWED);
    assert_eq!(postgres.must("SELECT count(*) FROM item WHERE id < 100"), "2");
    let mut wrong = Bench::new(&postgres, "");
    std::fs::write(postgres.folder.path().join("password"), "not the password").expect("a file");
    let (code, words) = wrong.refused("SELECT 1", 0);
    assert!(code == ErrorCode::OUTCOME_UNKNOWN || code == ErrorCode::UNAVAILABLE, "{code:?}");
    assert!(!words.contains("not the password"), "{words}");
}

fn values_travel_as_with_sqlite(bench: &mut Bench) {
    let all = bench.rows("SELECT id, name, price, weight, picture, fresh FROM item ORDER BY id", Vec::new());
    let first =
        [Item::Int(1), item("nail"), item("0.10"), item("0.5"), Item::Bytes(vec![0, 255]), Item::Bool(true)];
    let second = [Item::Int(2), item("it's"), item("2.50"), item("1e300"), Item::Null, Item::Bool(false)];
    assert_eq!(all, Item::List(vec![Item::List(first.to_vec()), Item::List(second.to_vec())]));
    let sum =
        bench.rows("SELECT sum(id), -0.005::numeric, 12000000::numeric, 1::smallint FROM item", Vec::new());
    let expected = vec![item("3"), item("-0.005"), item("12000000"), Item::Int(1)];
    assert_eq!(sum, Item::List(vec![Item::List(expected)]));
    let answer = bench.query("SELECT id FROM item WHERE id = $1", vec![Item::Int(2)], 0).expect("rows");
    let field = |number: u64| answer.field(number).cloned();
    assert_eq!(field(0), Some(Item::List(vec![item("id")])));
    assert_eq!(
        (field(2), field(3), field(7)),
        (Some(Item::Int(1)), Some(Item::Int(0)), Some(Item::Bool(false)))
    );
    assert!(matches!(field(5), Some(Item::Int(1..))), "what the planner says it costs: {:?}", field(5));
    let (code, words) = bench.refused("SELECT made FROM item", 0);
    assert_eq!(code, ErrorCode::BAD_QUERY);
    assert!(words.contains("made::text"), "{words}");
    let prepared = bench
        .call_as(900, "prepare", vec![(0, item("SELECT name FROM item WHERE id = $1"))], 0)
        .expect("one");
    assert_eq!((prepared.field(1), prepared.field(2)), (Some(&Item::Int(1)), Some(&Item::Int(1))));
    let by_number =
        vec![(1, prepared.field(0).expect("a number").clone()), (3, Item::List(vec![Item::Int(1)]))];
    let named = bench.call_as(901, "query", by_number, 0).expect("rows");
    assert_eq!(named.field(1), Some(&Item::List(vec![Item::List(vec![item("nail")])])));
    let by_name = vec![(2, item("price")), (3, Item::List(vec![Item::Int(2)]))];
    assert_eq!(
        bench.call_as(902, "query", by_name, 0).expect("rows").field(1),
        Some(&Item::List(vec![Item::List(vec![item("2.50")])]))
    );
    let meta = bench.call_as(903, "meta", Vec::new(), 0).expect("tables");
    let tables = meta.field(0).and_then(Item::list).expect("rows").to_vec();
    assert!(
        tables.contains(&Item::List(vec![item("public.item"), item("name"), item("text")])),
        "{tables:?}"
    );
    let limited = vec![(0, item("SELECT generate_series(1, 1000)")), (4, Item::Int(10)), (6, Item::Int(5))];
    let part = bench.call_as(904, "query", limited, db_flag::READ_ONLY).expect("rows");
    assert_eq!((part.field(2), part.field(7)), (Some(&Item::Int(10)), Some(&Item::Bool(true))));
    let further =
        vec![(0, part.field(6).expect("a result").clone()), (1, Item::Int(990)), (2, Item::Int(50))];
    let rest = bench.call_as(905, "fetch", further, 0).expect("rows");
    assert_eq!((rest.field(2), rest.field(7)), (Some(&Item::Int(10)), Some(&Item::Bool(false))));
}

fn parameters_are_never_pasted(bench: &mut Bench, postgres: &Postgres) {
    for evil in ["'; DROP TABLE item; --", "1 OR 1=1", "$1", "\\'; SELECT 1", "nail' OR 'a'='a"] {
        let found = bench.rows("SELECT id FROM item WHERE name = $1", vec![item(evil)]);
        assert_eq!(found, Item::List(Vec::new()), "{evil}");
    }
    let (code, _) =
        bench.query("SELECT id FROM item WHERE id = $1", vec![item("1 OR 1=1")], 0).expect_err("no number");
    assert_eq!(code, ErrorCode::BAD_QUERY);
    for text in [
        "SELECT 1; DROP TABLE item",
        "DROP TABLE item",
        "COPY item TO PROGRAM 'cat'",
        "COMMIT",
        "SET ROLE bem",
    ] {
        let (code, _) = bench.refused(text, 0);
        assert!([ErrorCode::BAD_QUERY, ErrorCode::NOT_ALLOWED].contains(&code), "{text}: {code:?}");
    }
    let (code, _) = bench.query("SELECT $1::int", Vec::new(), 0).expect_err("too few");
    assert_eq!(code, ErrorCode::BAD_PAYLOAD);
    assert_eq!(postgres.must("SELECT count(*) FROM item"), "2");
}

fn statements_are_bounded(bench: &mut Bench, postgres: &Postgres) {
    let endless = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    assert_eq!(bench.refused(endless, 0).0, ErrorCode::TOO_EXPENSIVE);
    assert_eq!(bench.refused("SELECT pg_sleep(60)::text", db_flag::READ_ONLY).0, ErrorCode::TOO_EXPENSIVE);
    // What a statement sets for its session is gone with the next request, the time limit too.
    bench.query("SELECT set_config('statement_timeout', '0', false)", Vec::new(), 0).expect("it may");
    assert_eq!(bench.refused("SELECT pg_sleep(60)::text", 0).0, ErrorCode::TOO_EXPENSIVE);
    let (code, _) = bench.refused("SELECT repeat('x', 30000000)", db_flag::READ_ONLY);
    // On a machine with much else to do the time is over before the bytes are.
    assert!([ErrorCode::TOO_LONG, ErrorCode::TOO_EXPENSIVE].contains(&code), "{code:?}");
    let long = bench.query("SELECT repeat('x', 1000) FROM generate_series(1, 100000)", Vec::new(), 0);
    assert_eq!(
        long.expect("some rows").field(7),
        Some(&Item::Bool(true)),
        "rows are cut off where room ends"
    );
    assert_eq!(postgres.must("SELECT count(*) FROM item"), "2", "and it goes on");
}

fn a_transaction_happens_once(bench: &mut Bench, postgres: &Postgres) {
    let insert = || {
        let text = "INSERT INTO item (id, name) VALUES ($1, $2) RETURNING id";
        vec![(0, item(text)), (3, Item::List(vec![Item::Int(7), item("axe")]))]
    };
    let first = bench.call_as(77, "query", insert(), db_flag::TRANSACTIONAL).expect("it happens");
    assert_eq!(first.field(3), Some(&Item::Int(1)));
    let again = bench.call_as(77, "query", insert(), db_flag::TRANSACTIONAL).expect("it has happened");
    assert_eq!(first, again, "byte for byte, its time included");
    let mut other = Bench::new(postgres, "");
    assert_eq!(
        other.call_as(77, "query", insert(), db_flag::TRANSACTIONAL),
        Ok(first),
        "another worker finds it, too"
    );
    assert_eq!(postgres.must("SELECT count(*) FROM item WHERE id = 7"), "1");
    assert_eq!(bench.refused("SELECT * FROM bem_tool_keys", 0).0, ErrorCode::NOT_ALLOWED);
    // A connection that was cut off before is opened again.
    postgres.must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'bem'");
    let counter = || vec![(0, item("UPDATE item SET id = id + 100 WHERE id = 7"))];
    let moved = bench.call_as(78, "query", counter(), db_flag::TRANSACTIONAL).expect("it happens");
    assert_eq!(moved.field(3), Some(&Item::Int(1)));
    // A statement that fails leaves no key behind.
    let clash = || vec![(0, item("INSERT INTO item (id) VALUES (1)"))];
    assert_eq!(
        bench.call_as(79, "query", clash(), db_flag::TRANSACTIONAL).expect_err("taken").0,
        ErrorCode::BAD_QUERY
    );
    assert_eq!(postgres.must("SELECT count(*) FROM bem_tool_keys"), "2");
}

/// Whether some file below a folder holds these bytes.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(folder).expect("a folder").flatten().any(|entry| {
        let path = entry.path();
        match (path.is_dir(), path.is_file()) {
            (true, _) => holds(&path, bytes),
            (_, true) => {
                std::fs::read(&path).expect("a file").windows(bytes.len()).any(|window| window == bytes)
            }
            _ => false,
        }
    })
}

#[test]
fn a_server_uses_it_through_a_sandboxed_worker_and_the_password_is_found_nowhere() {
    let Some(postgres) = Postgres::start() else { return };
    postgres.must("CREATE TABLE item (id BIGINT PRIMARY KEY, name TEXT)");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let text =
        postgres.catalog("").replace("password_file = \"password\"", "password_env = \"BEM_TEST_PASSWORD\"");
    std::fs::write(path.join("catalog.toml"), text).expect("a file");
    let mut command = server::command(path, "served", &["--tools", "catalog.toml"]);
    let log = std::fs::File::create(path.join("server.log")).expect("a file");
    command.env("BEM_TEST_PASSWORD", SECRET).stderr(log);
    let served = server::Server::of(command, &path.join("served/token"));
    let worker_log = std::fs::File::create(path.join("worker.log")).expect("a file");
    let mut worker = Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(["worker", "--bus", "served/bus.sock", "--kind", "db"])
        .current_dir(path)
        .env("BEM_TEST_PASSWORD", SECRET)
        .stderr(worker_log)
        .spawn()
        .expect("a worker");
    let url = format!("http://{}", served.address);
    let call = |request: &Value, flag: &str| -> Value {
        let request = request.to_string();
        let mut words = vec![
            "tools",
            "call",
            "db",
            "query",
            "s",
            &request,
            "--url",
            &url,
            "--token-file",
            "served/token",
        ];
        words.extend(if flag.is_empty() { vec![] } else { vec!["--flag", flag] });
        let done = Command::new(env!("CARGO_BIN_EXE_bem"))
            .args(&words)
            .current_dir(path)
            .output()
            .expect("bem runs");
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
    };
    for number in 0..6 {
        let insert = json!({ "text": "INSERT INTO item VALUES ($1, $2)", "parameters": [number, "a"] });
        let written = call(&insert, "transactional");
        assert_eq!(written["response"]["changed"], 1, "{written}");
    }
    let counted = call(&json!({ "text": "SELECT count(*) FROM item" }), "read_only");
    assert_eq!(counted["response"]["rows"], json!([[6]]));
    let wrong = call(&json!({ "text": "SELECT * FROM nothing" }), "");
    assert_eq!(wrong["error"], "BAD_QUERY", "{wrong}");
    served.stop();
    assert!(worker.wait().expect("it leaves").success());
    assert!(!holds(path, SECRET.as_bytes()), "no trace, snapshot, log or catalog holds the password");
    // Without the database and its password, the history is played again and audited.
    drop(postgres);
    let replayed =
        Command::new(env!("CARGO_BIN_EXE_bem")).args(["replay", "served"]).current_dir(path).output();
    assert!(replayed.expect("bem runs").status.success());
}

#[test]
fn a_catalog_with_a_password_in_it_or_a_wrong_server_is_refused_by_line() {
    let check = |lines: &str, words: &str| {
        let text = format!("[[database]]\nname = \"s\"\n{lines}\n");
        let error =
            CatalogFile::parse("c.toml", text, std::env::temp_dir(), None).expect_err(lines).to_string();
        assert!(error.starts_with("c.toml:") && error.contains(words), "{error}");
        assert!(!error.contains("hunter2"), "what may be a password is not repeated: {error}");
    };
    check("postgres = \"host=a user=b password=hunter2\"", "name password_env or password_file");
    check("postgres = \"postgres://b:hunter2@a/c\"", "name password_env or password_file");
    check("postgres = \"hunter2\"", "postgres must be");
    check("postgres = \"user=b\"", "postgres must be");
    check("postgres = \"host=a user=b\"\nsteps_max = 5", "timeout_ms bounds");
    check("postgres = \"host=a user=b\"\ntimeout_ms = 0", "timeout_ms 0 is out of range: 1 to 8000");
    check("postgres = \"host=a user=b\"\nsqlite = \"x\"", "needs one of sqlite");
    check("postgres = \"host=a user=b\"\npassword_env = \"A\"\npassword_file = \"b\"", "not both");
}
