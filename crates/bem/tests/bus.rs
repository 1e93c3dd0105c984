//! Workers in processes of their own that die or scribble: every request ends once, with its own answer or an error, no write
//! happens twice, and no other kind is disturbed. `cargo xtask battery bus` runs both at length. Clauses: TOOL-2, TOOL-3,
//! TOOL-9.

use bem_base::ids::ObjectId;
use bem_base::prng::Prng;
use bem_tools::bus::{Request, key};
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::operation::db_flag;
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const CATALOG: &str = "[[database]]\nname = \"stock\"\nsqlite = \"stock.db\"\n\
    [[tool]]\nname = \"echo\"\noperations = [{ name = \"echo\", idempotent = true }]\n\
    [[tool]]\nname = \"evil\"\noperations = [{ name = \"echo\", idempotent = true }]\n\
    [[tool]]\nname = \"dying\"\noperations = [{ name = \"once\" }, { name = \"again\", idempotent = true }]\n";
/// Has its effect, one line of a file, and dies before it can say so; a later attempt answers.
const DYING: &str = "import os, signal\n\
    from bem_worker import serve\n\
    def work(request, job):\n\
    \x20   with open(os.environ['EFFECTS'], 'a') as effects: effects.write(f'{job.number} {job.attempt}\\n')\n\
    \x20   if job.attempt == 0: os.kill(os.getpid(), signal.SIGKILL)\n\
    \x20   return 'done'\n\
    serve({'once': work, 'again': work})\n";
/// Writes on all that it maps, in pieces of up to 4 KiB, and on single words of the header, the slots and their sides.
const SCRIBBLE: &str = "import os, random, time\n\
    from bem_worker import Worker\n\
    worker, draw = Worker(), random.Random(5)\n\
    memory = worker.mapping.memory\n\
    end = time.time() + float(os.environ['SECONDS'])\n\
    while time.time() < end:\n\
    \x20   for _ in range(200):\n\
    \x20       size = draw.choice([1, 8, 64, 4096])\n\
    \x20       reach = draw.choice([512, 9216, worker.mapping.size])\n\
    \x20       at = draw.randrange(max(1, reach - size))\n\
    \x20       memory[at:at + size] = os.urandom(size)\n\
    \x20   if draw.random() < 0.2:\n\
    \x20       try:\n\
    \x20           job = worker.claim()\n\
    \x20           if job: worker.finish(job, os.urandom(8))\n\
    \x20       except Exception:\n\
    \x20           pass  # Its own scribbles, read back.\n";
/// How long the hostile worker may take to start on a busy machine, besides its time.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much of something a battery asks for.
fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn python(socket: &Path, kind: &str, words: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(words).env("BEM_KIND", kind).env("BEM_BUS", socket);
    command.env("PYTHONPATH", format!("{ROOT}/python")).stderr(Stdio::null());
    command
}

/// A bus without workers of its own, in a folder with a database.
struct Bench {
    folder: tempfile::TempDir,
    catalog: Arc<CatalogFile>,
    host: Host,
}

impl Bench {
    fn new(lease: u64) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let made = Command::new("python3")
            .args(["-c", "import sqlite3; b = sqlite3.connect('stock.db'); b.execute('CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)'); b.commit()"])
            .current_dir(path)
            .status()
            .expect("python");
        assert!(made.success());
        std::fs::write(path.join("catalog.toml"), CATALOG).expect("a file");
        let catalog = Arc::new(CatalogFile::load(&path.join("catalog.toml")).expect("a catalog"));
        let socket = Some(path.join("bus.sock"));
        let options = HostOptions { socket, has_threads: false, has_commands: false, lease };
        let host = Host::start(Arc::clone(&catalog), &options).expect("a bus");
        Bench { folder, catalog, host }
    }

    fn found(&self, name: &str) -> ObjectId {
        self.catalog.catalog.find(name).expect("it is there")
    }
}

fn request(number: u64, flags: u16, resource: ObjectId, payload: &[u8]) -> Request<'_> {
    Request {
        operation: 0,
        flags,
        resource,
        payload,
        capacity: 4_096,
        number,
        key: key(number, payload),
        is_idempotent: true,
        lease: 0,
        patience: 0,
    }
}

fn end(workers: Vec<Child>) {
    for mut worker in workers {
        let _ = worker.kill();
        let _ = worker.wait();
    }
}

#[test]
fn workers_that_are_killed_at_random_cost_no_request_and_repeat_no_write() {
    let (all, kills) = (asked("BEM_BUS_REQUESTS", 1_650), asked("BEM_BUS_KILLS", 24));
    let mut bench = Bench::new(400);
    let socket = bench.folder.path().join("bus.sock");
    let start = |place: usize| {
        let mut command = match place {
            0 | 1 => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_bem"));
                command.args(["worker", "--kind", "db", "--no-sandbox", "--bus"]).arg(&socket);
                command.stderr(Stdio::null());
                command
            }
            _ => python(&socket, "echo", &["-m", "bem_worker"]),
        };
        command.spawn().expect("a worker")
    };
    let mut workers: Vec<Child> = (0..4).map(start).collect();
    let (database, echo, stock) = (bench.found("db"), bench.found("echo"), bench.found("stock"));
    let mut prng = Prng::stream(9, "tools/kills");
    let (mut next, mut ended, mut killed) = (0, BTreeMap::new(), 0);
    // Two writes in 22 requests.
    let is_write = |number: u64| number.is_multiple_of(11);
    while (ended.len() as u64) < all {
        while next < all {
            let (kind, resource, flags, payload) = if is_write(next) {
                let text = Item::Text("INSERT INTO item (name) VALUES (?1)".to_string());
                let bound = Item::List(vec![Item::Text(next.to_string())]);
                (database, stock, db_flag::TRANSACTIONAL, Item::fields([(0, text), (3, bound)]).to_bytes())
            } else {
                (echo, echo, 0, Item::Int(next as i64).to_bytes())
            };
            if bench.host.enqueue(kind, &request(next, flags, resource, &payload)).is_err() {
                break;
            }
            next += 1;
        }
        for done in bench.host.poll(64) {
            if done.error.is_none() && done.kind == echo {
                let own = Item::Int(done.number as i64).to_bytes();
                assert_eq!(done.response, own, "an answer of another request");
            }
            assert!(ended.insert(done.number, (done.kind, done.error)).is_none(), "a request ends once");
            // All kills come, spread over what is left.
            let left = all - ended.len() as u64;
            if killed < kills && prng.below((left / (kills - killed)).max(1)) == 0 {
                let place = prng.below(4) as usize;
                workers[place].kill().expect("it runs");
                workers[place].wait().expect("it ends");
                workers[place] = start(place);
                killed += 1;
            }
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let done = |kind| ended.values().filter(|(of, error)| *of == kind && error.is_none()).count() as u64;
    let writes = (0..all).filter(|number| is_write(*number)).count() as u64;
    let base = rusqlite_counts(&bench.folder.path().join("stock.db"));
    println!(
        "{all} requests, {killed} kills: {} echoes of {} and {} writes of {writes} done, {} rows",
        done(echo),
        all - writes,
        done(database),
        base.0
    );
    assert!((all - writes) * 9 / 10 < done(echo) && writes / 2 < done(database), "most are done");
    assert_eq!(killed, kills, "workers were killed");
    assert_eq!(base.0, base.1, "no write has happened twice");
    assert!(done(database) <= base.0 && base.0 <= writes, "every write that is done has happened");
    drop(bench);
    end(workers);
}

/// Rows of the table, and different names in it.
fn rusqlite_counts(path: &Path) -> (u64, u64) {
    let ask = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('SELECT count(*), count(DISTINCT name) FROM item').fetchone())";
    let printed = Command::new("python3").args(["-c", ask]).arg(path).output().expect("python");
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let mut numbers = text.split_whitespace().map(|word| word.parse().expect("a number"));
    (numbers.next().expect("rows"), numbers.next().expect("names"))
}

#[test]
fn a_hostile_worker_that_scribbles_on_all_it_maps_disturbs_no_other_kind() {
    let seconds = asked("BEM_BUS_SCRIBBLE_SECONDS", 3);
    let mut bench = Bench::new(50);
    let socket = bench.folder.path().join("bus.sock");
    let mut hostile = python(&socket, "evil", &["-c", SCRIBBLE]);
    hostile.env("SECONDS", seconds.to_string());
    let mut hostile = hostile.spawn().expect("a worker");
    let honest_worker = python(&socket, "echo", &["-m", "bem_worker"]).spawn().expect("a worker");
    let (echo, evil) = (bench.found("echo"), bench.found("evil"));
    let began = Instant::now();
    let (mut next, mut waiting) = (0u64, BTreeMap::new());
    let (mut honest, mut bad, mut wrong) = (0u64, 0u64, 0u64);
    let mut settle = |done: bem_tools::bus::Completed, waiting: &mut BTreeMap<u64, ObjectId>| {
        assert_eq!(waiting.remove(&done.number), Some(done.kind), "a request ends once, as what it was");
        let own = Item::Int(done.number as i64).to_bytes();
        if done.kind == echo {
            assert_eq!((done.error, &done.response), (None, &own), "another kind is disturbed");
            honest += 1;
        } else if done.error.is_some() {
            bad += 1;
        } else {
            wrong += 1;
        }
    };
    // It ends by itself when its time is over.
    while matches!(hostile.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(seconds) + PATIENCE
    {
        for kind in [echo, evil] {
            let payload = Item::Int(next as i64).to_bytes();
            let asked =
                Request { patience: if kind == evil { 300 } else { 0 }, ..request(next, 0, kind, &payload) };
            if bench.host.enqueue(kind, &asked).is_ok() {
                waiting.insert(next, kind);
                next += 1;
            }
        }
        bench.host.poll(64).into_iter().for_each(|done| settle(done, &mut waiting));
        std::thread::sleep(Duration::from_micros(500));
    }
    // Nobody works for the scribbled kind any more: what is claimed in name ends by its lease, the rest is not taken.
    let late = Instant::now();
    while waiting.values().any(|kind| *kind == echo) && late.elapsed() < Duration::from_secs(60) {
        bench.host.poll(64).into_iter().for_each(|done| settle(done, &mut waiting));
        std::thread::sleep(Duration::from_millis(1));
    }
    println!(
        "{seconds} s of scribbling: {honest} honest answers, {bad} errors and {wrong} other answers of the scribbled kind"
    );
    assert!(waiting.values().all(|kind| *kind != echo), "every request of the other kind has ended");
    assert!(hostile.wait().expect("it ends").success(), "it has scribbled for all of its time");
    assert!(100 < honest && 0 < bad, "{honest} {bad}");
    drop(bench);
    end(vec![honest_worker]);
}

#[test]
fn what_a_worker_did_before_it_died_is_unknown_and_not_repeated_unless_it_may_be() {
    let mut bench = Bench::new(400);
    let (socket, effects) = (bench.folder.path().join("bus.sock"), bench.folder.path().join("effects"));
    let start = || {
        let mut command = python(&socket, "dying", &["-c", DYING]);
        command.env("EFFECTS", &effects).spawn().expect("a worker")
    };
    let dying = bench.found("dying");
    let payload = Item::Null.to_bytes();
    // Operation 0 must not be repeated, operation 1 may be.
    for (number, operation) in [(1, 0), (2, 1)] {
        let mut workers = vec![start()];
        let asked =
            Request { operation, is_idempotent: operation == 1, ..request(number, 0, dying, &payload) };
        bench.host.enqueue(dying, &asked).expect("room");
        assert!(!workers[0].wait().expect("it ends").success(), "it has had its effect and died");
        workers.push(start());
        let began = Instant::now();
        let done = loop {
            assert!(began.elapsed() < PATIENCE, "request {number} does not end");
            if let Some(done) = bench.host.poll(64).pop() {
                break done;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // Whoever works now is given time to do it again.
        std::thread::sleep(Duration::from_millis(1_200));
        assert!(bench.host.poll(64).is_empty(), "a request ends once");
        let kept = std::fs::read_to_string(&effects).expect("a file");
        let own: Vec<&str> = kept.lines().filter(|line| line.starts_with(&format!("{number} "))).collect();
        match operation {
            0 => {
                assert_eq!(done.error, Some(ErrorCode::OUTCOME_UNKNOWN));
                assert_eq!(own, ["1 0"], "it is never tried again");
            }
            _ => {
                assert_eq!((done.error, done.attempts), (None, 2));
                assert_eq!(own, ["2 0", "2 1"], "it is tried again under its key");
            }
        }
        end(workers);
    }
}

#[test]
fn unknown_kinds_operations_and_versions_are_errors_with_numbers() {
    let mut bench = Bench::new(2_000);
    let socket = bench.folder.path().join("bus.sock");
    let worker = python(&socket, "echo", &["-m", "bem_worker"]).spawn().expect("a worker");
    let (echo, payload) = (bench.found("echo"), Item::Int(1).to_bytes());
    let nobody = ObjectId::new(bem_base::ids::ObjectClass::ToolKind, 77);
    assert!(
        bench.host.enqueue(nobody, &request(1, 0, nobody, &payload)).is_err(),
        "an unknown kind is refused"
    );
    let mut ask = |number, operation, payload: &[u8]| {
        let asked = Request { operation, ..request(number, 0, echo, payload) };
        let done = bench.host.call(echo, &asked).expect("room");
        done.error.map(|error| error.name())
    };
    assert_eq!(ask(2, 9, &payload), Some(ErrorCode::UNKNOWN_OPERATION.name()));
    assert_eq!(ask(3, 0, b"\xbf\xff"), Some(ErrorCode::BAD_PAYLOAD.name()), "malformed CBOR");
    assert_eq!(ask(4, 0, &payload), None, "and the worker goes on");
    // Another version is told so on the socket, and gets no mapping.
    let said = "import json, os, socket\n\
        s = socket.socket(socket.AF_UNIX)\n\
        s.connect(os.environ['BEM_BUS'])\n\
        s.sendall(json.dumps({'kind': 'echo', 'version': '9.9.9'}).encode() + b'\\n')\n\
        line, files, _, _ = socket.recv_fds(s, 65536, 1)\n\
        welcome = json.loads(line)\n\
        assert not welcome['ok'] and 'version' in welcome['error'] and not files, welcome\n";
    assert!(python(&socket, "echo", &["-c", said]).status().expect("python").success());
    drop(bench);
    end(vec![worker]);
}
