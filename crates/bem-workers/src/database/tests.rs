//! Databases through the tool: bound parameters, bounded statements, effects that happen once.

use super::*;
use bem_tools::bus::{Channel, Request, key};
use bem_tools::cbor::Key;
use bem_tools::operation::by_name;
use bem_tools::word::AtomicU64;
use bem_tools::worker::Port;
use rusqlite::Connection;

struct Bench {
    folder: tempfile::TempDir,
    catalog: Arc<CatalogFile>,
    databases: Databases,
    number: u64,
}

fn bench(flags: &str) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let connection = Connection::open(folder.path().join("s.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, picture BLOB);
             INSERT INTO item VALUES (1, 'nail', 0.1, x'00ff'), (2, 'it''s', 2.5, NULL), (3, 'saw', 12, NULL);
             CREATE TABLE secret (word TEXT); INSERT INTO secret VALUES ('SECRET');",
        )
        .unwrap();
    let text = format!(
        "[[database]]\nname = \"s\"\nsqlite = \"s.db\"\nsteps_max = 200000\n{flags}\n[database.operations]\nprice = \"SELECT price FROM item WHERE id = ?1\"\n"
    );
    let catalog = CatalogFile::parse("c.toml", text, folder.path().to_path_buf(), None).unwrap();
    let catalog = Arc::new(catalog);
    Bench { databases: Databases::new(Arc::clone(&catalog)), folder, catalog, number: 0 }
}

impl Bench {
    fn call(
        &mut self,
        op: &str,
        fields: Vec<(u64, Item)>,
        flags: u16,
        capacity: u32,
    ) -> Result<Item, (ErrorCode, String)> {
        self.number += 1;
        self.call_as(self.number, op, fields, flags, capacity)
    }

    fn call_as(
        &mut self,
        number: u64,
        op: &str,
        fields: Vec<(u64, Item)>,
        flags: u16,
        capacity: u32,
    ) -> Result<Item, (ErrorCode, String)> {
        let memory: Arc<Vec<AtomicU64>> = Arc::new(bem_tools::layout::private());
        let kind = self.catalog.catalog.find("db").unwrap();
        let mut channel = Channel::new(kind, Arc::clone(&memory));
        let payload = Item::fields(fields).to_bytes();
        let request = Request {
            operation: by_name(Role::Database, op).unwrap().code,
            flags,
            resource: self.catalog.catalog.find("s").unwrap(),
            payload: &payload,
            capacity,
            number,
            key: key(number, &payload),
            is_idempotent: true,
            lease: 100,
            patience: 0,
        };
        channel.enqueue(&request, 0).unwrap();
        let mut port = Port::open(memory, 1).unwrap();
        assert!(bem_tools::worker::serve_one(&mut port, &mut self.databases));
        let mut done = Vec::new();
        channel.poll(1, 1, &mut done);
        match done[0].error {
            Some(code) => Err((code, String::from_utf8_lossy(&done[0].response).into_owned())),
            None => Ok(Item::from_bytes(&done[0].response).unwrap()),
        }
    }

    fn query(&mut self, text: &str, parameters: Vec<Item>) -> Result<Vec<Item>, ErrorCode> {
        let fields = vec![(0, Item::Text(text.to_string())), (3, Item::List(parameters))];
        let answer = self.call("query", fields, 0, 1 << 16).map_err(|(code, _)| code)?;
        Ok(answer.field(1).unwrap().list().unwrap().to_vec())
    }

    fn count(&self, text: &str) -> i64 {
        let connection = Connection::open(self.folder.path().join("s.db")).unwrap();
        connection.query_row(text, [], |row| row.get(0)).unwrap()
    }
}

fn text(word: &str) -> Item {
    Item::Text(word.to_string())
}

#[test]
fn rows_come_in_one_form_with_count_time_and_cost() {
    let mut bench = bench("");
    let rows = bench.query("SELECT * FROM item WHERE id = ?1", vec![Item::Int(1)]).unwrap();
    assert_eq!(rows, [Item::List(vec![Item::Int(1), text("nail"), text("0.1"), Item::Bytes(vec![0, 255])])]);
    let fields = vec![(2, text("price")), (3, Item::List(vec![Item::Int(2)]))];
    let answer = bench.call("query", fields, 0, 1 << 16).unwrap();
    assert_eq!(answer.field(1), Some(&Item::List(vec![Item::List(vec![text("2.5")])])));
    assert_eq!(answer.field(2), Some(&Item::Int(1)));
    assert!(0 < answer.field(5).unwrap().int().unwrap() && answer.field(4).unwrap().int().is_some());
    let fields =
        vec![(0, text("SELECT * FROM item")), (4, Item::Int(2)), (5, Item::List(vec![text("name")]))];
    let answer = bench.call("query", fields, db_flag::READ_ONLY, 1 << 16).unwrap();
    assert_eq!(answer.field(0), Some(&Item::List(vec![text("name")])));
    assert_eq!((answer.field(2), answer.field(7)), (Some(&Item::Int(2)), Some(&Item::Bool(true))));
    let rest = bench
        .call("fetch", vec![(0, answer.field(6).unwrap().clone()), (1, Item::Int(2))], 0, 1 << 16)
        .unwrap();
    assert_eq!(rest.field(1), Some(&Item::List(vec![Item::List(vec![text("saw")])])), "its columns alone");
    let prepared =
        bench.call("prepare", vec![(0, text("SELECT name FROM item WHERE id = ?1"))], 0, 1 << 16).unwrap();
    assert_eq!(prepared.field(1), Some(&Item::Int(1)));
    let fields = vec![(1, prepared.field(0).unwrap().clone()), (3, Item::List(vec![Item::Int(3)]))];
    let answer = bench.call("query", fields, 0, 1 << 16).unwrap();
    assert_eq!(answer.field(1), Some(&Item::List(vec![Item::List(vec![text("saw")])])));
    let meta = bench.call("meta", Vec::new(), 0, 1 << 16).unwrap();
    assert_eq!(meta.field(0).unwrap().list().unwrap().len(), 5);
}

#[test]
fn the_number_of_a_prepared_statement_means_the_same_to_every_worker_or_nothing() {
    let mut bench = bench("");
    let prepare = |bench: &mut Bench, words: &str| {
        bench.call("prepare", vec![(0, text(words))], 0, 1 << 16).unwrap().field(0).unwrap().clone()
    };
    let names = prepare(&mut bench, "SELECT name FROM item WHERE id = 1");
    let words = prepare(&mut bench, "SELECT word FROM secret");
    assert_ne!(names, words);
    // Another worker has prepared the other statement only.
    bench.databases = Databases::new(Arc::clone(&bench.catalog));
    assert_eq!(prepare(&mut bench, "SELECT word FROM secret"), words);
    let lost = bench.call("query", vec![(1, names.clone())], 0, 1 << 16).unwrap_err();
    assert_eq!(lost.0, ErrorCode::NOT_FOUND, "{}", lost.1);
    assert_eq!(prepare(&mut bench, "SELECT name FROM item WHERE id = 1"), names);
    let answer = bench.call("query", vec![(1, names)], 0, 1 << 16).unwrap();
    assert_eq!(answer.field(1), Some(&Item::List(vec![Item::List(vec![text("nail")])])));
}

#[test]
fn parameters_are_bound_and_never_pasted() {
    let mut bench = bench("");
    let injected = "x' UNION SELECT word, 1, 1, 1 FROM secret --";
    let rows = bench.query("SELECT * FROM item WHERE name = ?1", vec![text(injected)]).unwrap();
    assert!(rows.is_empty());
    let rows = bench.query("SELECT id FROM item WHERE name = ?1", vec![text("it's")]).unwrap();
    assert_eq!(rows.len(), 1);
    bench.query("UPDATE item SET name = ?1 WHERE id = 1", vec![text("'; DROP TABLE item; --")]).unwrap();
    assert_eq!(bench.count("SELECT count(*) FROM item"), 3);
    assert_eq!(bench.query("SELECT 1 WHERE 1 = ?1", vec![]), Err(ErrorCode::BAD_PAYLOAD));
    assert_eq!(bench.query("SELECT ?1", vec![Item::List(vec![])]), Err(ErrorCode::BAD_PAYLOAD));
}

#[test]
fn what_a_statement_may_do_is_decided_before_it_runs() {
    let mut bench = bench("");
    for forbidden in [
        "DROP TABLE item",
        "CREATE TABLE x (y)",
        "ATTACH 'other.db' AS o",
        "PRAGMA journal_mode = OFF",
        "PRAGMA user_version",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')",
        "CREATE TRIGGER t AFTER INSERT ON item BEGIN DELETE FROM item; END",
        "SELECT * FROM bem_tool_keys",
        "BEGIN",
        "SELECT 1; DELETE FROM item",
        "DELETE FROM item; SELECT 1",
        "",
        "nonsense",
        "SELECT * FROM pragma_database_list",
    ] {
        let answer = bench.query(forbidden, vec![]);
        assert!(
            matches!(answer, Err(ErrorCode::NOT_ALLOWED | ErrorCode::BAD_QUERY)),
            "{forbidden}: {answer:?}"
        );
    }
    assert_eq!(bench.count("SELECT count(*) FROM item"), 3);
    let mut fixed = self::bench("flags = [\"read_only\"]");
    for forbidden in ["DELETE FROM item", "INSERT INTO item (id) VALUES (9)", "UPDATE item SET price = 0"] {
        assert_eq!(fixed.query(forbidden, vec![]), Err(ErrorCode::NOT_ALLOWED), "{forbidden}");
    }
    let fields = vec![(0, text("DELETE FROM item"))];
    assert_eq!(bench.call("query", fields, db_flag::READ_ONLY, 99).unwrap_err().0, ErrorCode::NOT_ALLOWED);
}

#[test]
fn endless_statements_and_large_results_end() {
    let mut bench = bench("");
    let endless = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    assert_eq!(bench.query(endless, vec![]), Err(ErrorCode::TOO_EXPENSIVE));
    let many =
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, hex(zeroblob(50)) FROM c";
    let fields = vec![(0, text(many)), (4, Item::Int(10_000))];
    let answer = bench.call("query", fields, 0, 8_192).unwrap();
    assert_eq!(answer.field(7), Some(&Item::Bool(true)));
    assert!(answer.field(2).unwrap().int().unwrap() < 100);
    assert_eq!(bench.query("SELECT zeroblob(100000000)", vec![]), Err(ErrorCode::BAD_QUERY));
    assert_eq!(bench.query("SELECT 1", vec![]).unwrap().len(), 1, "it goes on after that");
}

#[test]
fn a_transaction_that_is_tried_again_happens_once() {
    let mut bench = bench("");
    let insert = || vec![(0, text("INSERT INTO item (name) VALUES ('new')"))];
    let first = bench.call_as(77, "query", insert(), db_flag::TRANSACTIONAL, 4_096).unwrap();
    // A worker that was killed between effect and answer: the next one is another process.
    bench.databases = Databases::new(Arc::clone(&bench.catalog));
    let again = bench.call_as(77, "query", insert(), db_flag::TRANSACTIONAL, 4_096).unwrap();
    assert_eq!(first, again, "the same answer");
    assert_eq!(bench.count("SELECT count(*) FROM item"), 4);
    bench.call_as(78, "query", insert(), db_flag::TRANSACTIONAL, 4_096).unwrap();
    assert_eq!(bench.count("SELECT count(*) FROM item"), 5, "another request is another effect");
    let failing = vec![(0, text("INSERT INTO item (id) VALUES (1)"))];
    assert_eq!(
        bench.call("query", failing, db_flag::TRANSACTIONAL, 4_096).unwrap_err().0,
        ErrorCode::BAD_QUERY
    );
    assert_eq!(bench.count("SELECT count(*) FROM bem_tool_keys"), 2, "what failed has no key");
}

#[test]
fn payloads_out_of_form_are_errors() {
    let mut bench = bench("");
    let malformed = |bench: &mut Bench, fields| bench.call("query", fields, 0, 99).unwrap_err().0;
    assert_eq!(malformed(&mut bench, vec![]), ErrorCode::BAD_PAYLOAD);
    assert_eq!(
        malformed(&mut bench, vec![(0, text("SELECT 1")), (2, text("price"))]),
        ErrorCode::BAD_PAYLOAD
    );
    assert_eq!(malformed(&mut bench, vec![(2, text("nothing"))]), ErrorCode::BAD_PAYLOAD);
    assert_eq!(malformed(&mut bench, vec![(1, Item::Int(55))]), ErrorCode::NOT_FOUND);
    assert_eq!(malformed(&mut bench, vec![(0, text("SELECT 1")), (4, Item::Int(0))]), ErrorCode::BAD_PAYLOAD);
    assert_eq!(
        malformed(&mut bench, vec![(0, text("SELECT 1 AS a")), (5, Item::List(vec![text("b")]))]),
        ErrorCode::BAD_PAYLOAD
    );
    let named = Item::Map([(Key::Text("text".into()), text("SELECT 1"))].into());
    assert!(Fields::read(by_name(Role::Database, "query").unwrap(), &named.to_bytes()).is_err());
}
