//! `bem worker` as a process under Landlock: what it says of itself, what it cannot open, and that it does not start where it
//! cannot be held. Where the kernel has no Landlock, the tests say so past their own output. Clauses: TOOL-3, TOOL-4; decision
//! D-203.

use bem_tools::bus::{Completed, Request, key};
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::operation::db_flag;
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const CATALOG: &str = "[[root]]\nname = \"config\"\npath = \"config\"\n\
    [[database]]\nname = \"stock\"\nsqlite = \"data/stock.db\"\n";
/// Makes a database that holds one word.
const DATABASE: &str = "import sqlite3, sys\n\
    base = sqlite3.connect(sys.argv[1])\n\
    base.execute('CREATE TABLE item (name TEXT)')\n\
    base.execute('INSERT INTO item VALUES (?)', (sys.argv[2],))\n\
    base.commit()\n";
/// Takes all sixteen layers of rules that the kernel allows a process, each about nothing, and goes on as another program.
const LAYERED: &str = "import ctypes, os, sys\n\
    kernel = ctypes.CDLL(None, use_errno=True)\n\
    kernel.prctl(38, 1, 0, 0, 0)\n\
    handled = ctypes.c_uint64(1 << 11)\n\
    for _ in range(16):\n\
    \x20   rules = kernel.syscall(444, ctypes.byref(handled), ctypes.sizeof(handled), 0)\n\
    \x20   assert 0 <= rules and kernel.syscall(446, rules, 0) == 0\n\
    \x20   os.close(rules)\n\
    os.execv(sys.argv[1], sys.argv[1:])\n";

/// Whether the kernel has Landlock as the workers need it; if not, that is said where everybody sees it.
fn has_landlock() -> bool {
    let asked = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))";
    let output = Command::new("python3").args(["-c", asked]).output().expect("python");
    let version: i64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    if version < 4 {
        let words = "the sandbox of workers: this kernel has no Landlock of version 4";
        let _ = writeln!(std::io::stderr(), "\nNOT TRIED: {words} ({version})\n");
    }
    4 <= version
}

fn python(script: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", script]).args(arguments);
    command
}

/// A bus without workers of its own over a folder with a file and two databases, one of them outside the catalog.
struct Bench {
    folder: tempfile::TempDir,
    catalog: Arc<CatalogFile>,
    host: Host,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for (name, word) in [("data", "INSIDE"), ("outside", "OUTSIDE")] {
            std::fs::create_dir(path.join(name)).expect("a folder");
            let file = path.join(name).join("stock.db");
            let made = python(DATABASE, &[&file.to_string_lossy(), word]).status().expect("python");
            assert!(made.success());
        }
        std::fs::create_dir(path.join("config")).expect("a folder");
        std::fs::write(path.join("catalog.toml"), CATALOG).expect("a file");
        let catalog = Arc::new(CatalogFile::load(&path.join("catalog.toml")).expect("a catalog"));
        let socket = Some(path.join("bus.sock"));
        let options = HostOptions { socket, has_threads: false, has_commands: false, lease: 20_000 };
        let host = Host::start(Arc::clone(&catalog), &options).expect("a bus");
        Bench { folder, catalog, host }
    }

    fn worker(&self, before: &[&str], kind: &str, more: &[&str]) -> Child {
        let socket = self.folder.path().join("bus.sock");
        let (program, first) = match before {
            [] => (env!("CARGO_BIN_EXE_bem"), vec![]),
            [program, rest @ ..] => (*program, [rest, &[env!("CARGO_BIN_EXE_bem")]].concat()),
        };
        let mut command = Command::new(program);
        command.args(first).args(["worker", "--kind", kind, "--bus"]).arg(socket).args(more);
        command.stderr(Stdio::piped()).spawn().expect("a worker")
    }

    /// Waits until this many workers have said what they are held to.
    fn said(&self, count: usize) -> Vec<String> {
        for _ in 0..2_400 {
            let said: Vec<String> =
                self.host.workers().into_iter().filter_map(|(_, worker)| worker.sandbox).collect();
            if said.len() == count {
                return said;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("{count} workers do not come: {:?}", self.host.workers());
    }

    /// What the database of the catalog holds, or why that cannot be read.
    fn read(&mut self, number: u64) -> Completed {
        let payload = Item::fields([(0, Item::Text("SELECT name FROM item".to_string()))]).to_bytes();
        let found = |name: &str| self.catalog.catalog.find(name).expect("it is there");
        let (kind, resource) = (found("db"), found("stock"));
        let asked = Request {
            operation: 0,
            flags: db_flag::READ_ONLY,
            resource,
            payload: &payload,
            capacity: 4_096,
            number,
            key: key(number, &payload),
            is_idempotent: true,
            lease: 0,
            patience: 60_000,
        };
        self.host.call(kind, &asked).expect("a slot")
    }

    /// The folder of the database leads outside from now on.
    fn swap(&self) {
        let path = self.folder.path();
        std::fs::rename(path.join("data"), path.join("away")).expect("renamed");
        symlink(path.join("outside"), path.join("data")).expect("a link");
    }
}

fn end(mut worker: Child) -> String {
    let _ = worker.kill();
    let mut said = String::new();
    worker.stderr.take().expect("its words").read_to_string(&mut said).expect("text");
    let _ = worker.wait();
    said
}

fn holds(done: &Completed, word: &[u8]) -> bool {
    done.response.windows(word.len()).any(|window| window == word)
}

#[test]
fn workers_in_processes_of_their_own_are_fully_enforced_and_say_so() {
    let bench = Bench::new();
    if !has_landlock() {
        // Such a worker does not start, and says how to do without.
        let refused = bench.worker(&[], "fs", &[]).wait_with_output().expect("it ends");
        assert!(!refused.status.success());
        assert!(String::from_utf8_lossy(&refused.stderr).contains("--no-sandbox"), "{refused:?}");
        return;
    }
    let workers = ["fs", "db", "prover"].map(|kind| bench.worker(&[], kind, &[]));
    let mut said = bench.said(3);
    said.sort();
    let words = |places: u32| {
        format!("Landlock fully enforced: {places} places and 0 ports, everything else was tried and refused")
    };
    assert_eq!(said, [words(0), words(1), words(1)]);
    for worker in workers {
        let said = end(worker);
        assert!(said.contains("Landlock fully enforced"), "{said}");
    }
}

#[test]
fn a_worker_cannot_open_what_lies_outside_even_where_its_own_path_leads_there() {
    if !has_landlock() {
        return;
    }
    // As long as nothing is swapped, it reads what it should.
    let mut bench = Bench::new();
    let worker = bench.worker(&[], "db", &[]);
    bench.said(1);
    let inside = bench.read(1);
    assert!(inside.error.is_none() && holds(&inside, b"INSIDE"), "{inside:?}");
    end(worker);
    // A worker that has opened nothing yet finds its path leading outside: the kernel refuses.
    let mut bench = Bench::new();
    let worker = bench.worker(&[], "db", &[]);
    bench.said(1);
    bench.swap();
    let refused = bench.read(1);
    assert_eq!(refused.error, Some(ErrorCode::UNAVAILABLE), "{refused:?}");
    assert!(!holds(&refused, b"OUTSIDE"));
    end(worker);
    // It is the sandbox that refuses: without it the same path is read.
    let mut bench = Bench::new();
    let worker = bench.worker(&[], "db", &["--no-sandbox"]);
    assert_eq!(bench.said(1), ["no sandbox: --no-sandbox"]);
    bench.swap();
    let outside = bench.read(1);
    assert!(outside.error.is_none() && holds(&outside, b"OUTSIDE"), "{outside:?}");
    end(worker);
}

#[test]
fn a_worker_that_cannot_be_held_does_not_start_unless_it_is_told_to() {
    if !has_landlock() {
        return;
    }
    let bench = Bench::new();
    let before = ["python3", "-c", LAYERED];
    for kind in ["fs", "db", "prover"] {
        let refused = bench.worker(&before, kind, &[]).wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{kind}: {said}");
        assert!(said.contains("--no-sandbox"), "{kind}: {said}");
    }
    let mut worker = bench.worker(&before, "fs", &["--no-sandbox"]);
    let mut line = String::new();
    BufReader::new(worker.stderr.take().expect("its words")).read_line(&mut line).expect("text");
    assert!(line.contains("no sandbox: --no-sandbox"), "{line}");
    let _ = worker.kill();
    let _ = worker.wait();
}
