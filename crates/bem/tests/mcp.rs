//! `bem mcp` with a client that writes JSON-RPC by hand: tools of the bus with their schemas, questions, refusals. The official
//! client drives it in `python/tests/test_mcp.py`. Clauses: TOOL-11, HUM-12; decision D-116.

mod server;

use bem_workers::http;
use serde_json::{Value, json};
use server::Server;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

const CATALOG: &str = "[[root]]\nname = \"box\"\nmemory = true\n[[file]]\nroot = \"box\"\npath = \"note\"\n";

/// A client of the protocol.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start(folder: &Path, url: &str) -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bem"))
            .args(["mcp", "--url", url, "--token-file", "served/token"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bem mcp");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let input = child.stdin.take();
        Client { child, input, output, next: 0 }
    }

    fn say(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(format!("{message}\n").as_bytes()).expect("it reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.read();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
        answer
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": name, "arguments": arguments }));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that asks something itself; what it asks.
    fn begin(&mut self, name: &str, arguments: &Value) -> Value {
        self.next += 1;
        let (id, params) = (self.next, json!({ "name": name, "arguments": arguments }));
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        self.read()
    }

    /// Answers what a tool asked; what comes of the call.
    fn fill(&mut self, asked: &Value, filled: &Value) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": filled }));
        let answer = self.read();
        assert_eq!(answer["id"], json!(self.next), "{answer}");
        answer["result"].clone()
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line:?}"))
    }

    /// Says hello as clients of the protocol's stable versions do.
    fn greet(&mut self) -> Value {
        self.greet_with(&json!({}))
    }

    /// Says hello and what it can do.
    fn greet_with(&mut self, capabilities: &Value) -> Value {
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = self.ask("initialize", &hello);
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    /// Closes its input: it leaves by itself.
    fn leave(mut self) {
        self.input = None;
        assert!(self.child.wait().expect("it ends").success());
    }
}

fn ask(server: &Server, path: &str, body: &Value) -> Value {
    let body = body.to_string();
    let asked = http::Ask {
        method: "POST",
        url: &format!("http://{}{path}", server.address),
        bearer: Some(&server.token),
        headers: &[],
        body: Some(&body),
        answer_max: 1 << 20,
        timeout: Duration::from_secs(60),
    };
    let (status, text) = http::ask(&asked).expect("an answer");
    assert!((200..300).contains(&status), "{status} {text}");
    serde_json::from_str(&text).expect("JSON")
}

fn serve(folder: &Path) -> Server {
    std::fs::write(folder.join("catalog.toml"), CATALOG).expect("a file");
    Server::start(folder, "served", &["--tools", "catalog.toml"])
}

#[test]
fn tools_of_the_bus_are_listed_with_schemas_and_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let mut client = Client::start(folder.path(), &format!("http://{}", server.address));
    let hello = client.greet();
    assert_eq!(hello["serverInfo"]["name"], "bem");
    let listed = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let tools = listed.as_array().expect("a list");
    let find =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}"));
    for name in
        ["fs_stat", "fs_read", "fs_write", "fs_list", "db_query", "prover_unsat", "llm_chat", "env_say"]
    {
        assert_eq!(find(name)["inputSchema"]["type"], "object");
    }
    let write = find("fs_write");
    assert_eq!(write["inputSchema"]["properties"]["resource"]["enum"], json!(["box", "box/note"]));
    assert_eq!(write["inputSchema"]["properties"]["request"]["required"], json!(["data"]));
    assert_eq!(find("fs_read")["annotations"]["readOnlyHint"], true);
    assert_eq!(find("questions_answer")["inputSchema"]["required"], json!(["question", "lease", "answer"]));
    let written = client.call("fs_write", &json!({ "resource": "box/note", "request": { "data": "hello" } }));
    assert_eq!(
        (&written["isError"], &written["structuredContent"]["response"]["written"]),
        (&json!(false), &json!(5))
    );
    let read = client.call("fs_read", &json!({ "resource": "box/note" }));
    assert_eq!(read["structuredContent"]["response"]["data"], "hello");
    let shown: Value =
        serde_json::from_str(read["content"][0]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(shown, read["structuredContent"], "what is shown is what is said");
    // A contradiction, with a proof that the server's checker has accepted.
    let proven = client.call("prover_unsat", &json!({ "request": { "dimacs": "p cnf 1 2\n1 0\n-1 0\n" } }));
    assert_eq!(proven["structuredContent"]["response"]["verdict"], "unsatisfiable");
    // What is wrong is said to whoever called; only an unknown tool is an error of the protocol.
    for (name, arguments, words) in [
        ("fs_read", json!({ "resource": "nothing" }), "resource \"nothing\" is unknown to fs: known are box"),
        (
            "fs_read",
            json!({ "resource": "box/note", "request": { "lenght": 1 } }),
            "known are offset, length",
        ),
        ("fs_read", json!({ "resource": "box/note", "kind": "db" }), "\"kind\" is no field"),
        ("questions_lease", json!({ "question": "99" }), "the server refuses (404)"),
    ] {
        let refused = client.call(name, &arguments);
        assert_eq!(refused["isError"], true, "{refused}");
        let said = refused["content"][0]["text"].as_str().expect("text");
        assert!(said.contains(words), "{said}");
        assert!(!said.contains(&server.token));
    }
    let lost = client.call("db_query", &json!({ "resource": "box" }));
    assert_eq!(lost["isError"], true);
    let unknown = client.ask("tools/call", &json!({ "name": "rm_rf", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    client.leave();
    server.stop();
}

#[test]
fn a_question_is_listed_leased_and_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let world = json!({ "name": "ads", "obs_bits": 4, "actions": 3, "reward_range": [0, 1000], "fields": [[0, 4]], "horizon": 1 });
    ask(&server, "/v1/worlds", &world);
    let decided = ask(&server, "/v1/worlds/ads/decide", &json!({ "obs": "0101" }));
    let decision = &decided["decision"];
    ask(&server, "/v1/worlds/ads/reward", &json!({ "decision": decision, "reward": 300 }));
    let asked =
        ask(&server, "/v1/questions", &json!({ "kind": "label_step", "world": "ads", "decision": decision }));
    let question = asked["question"].as_str().expect("a number").to_string();
    let mut client = Client::start(folder.path(), &format!("http://{}", server.address));
    client.greet();
    let open = client.call("questions_list", &json!({ "state": "pending" }));
    assert_eq!(open["structuredContent"]["questions"][0]["question"], json!(question));
    let leased = client.call("questions_lease", &json!({ "question": question }));
    let lease = leased["structuredContent"]["lease"].clone();
    let answer = json!({ "accept": true });
    let seen = client.call("questions_preview", &json!({ "question": question, "answer": answer }));
    assert_eq!(seen["isError"], false, "{seen}");
    let given =
        client.call("questions_answer", &json!({ "question": question, "lease": lease, "answer": answer }));
    assert!(given["structuredContent"]["answer"].is_string(), "{given}");
    let open = client.call("questions_list", &json!({}));
    assert_eq!(open["structuredContent"]["questions"], json!([]));
    client.leave();
    server.stop();
}

/// A world with one decision that is asked about; the question.
fn asked(server: &Server) -> String {
    let world =
        json!({ "name": "ads", "obs_bits": 4, "actions": 3, "reward_range": [0, 1000], "horizon": 1 });
    ask(server, "/v1/worlds", &world);
    let decided = ask(server, "/v1/worlds/ads/decide", &json!({ "obs": "0101" }));
    let decision = &decided["decision"];
    ask(server, "/v1/worlds/ads/reward", &json!({ "decision": decision, "reward": 300 }));
    let question = json!({ "kind": "label_step", "world": "ads", "decision": decision });
    ask(server, "/v1/questions", &question)["question"].as_str().expect("a number").to_string()
}

#[test]
fn the_person_at_the_client_is_asked_and_the_answer_takes_effect() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path());
    let url = format!("http://{}", server.address);
    let question = asked(&server);
    // A client that shows no forms is told so, and the question stays in the queue.
    let mut plain = Client::start(folder.path(), &url);
    plain.greet();
    let refused = plain.call("questions_ask", &json!({}));
    assert_eq!(refused["isError"], true);
    assert!(refused["content"][0]["text"].as_str().expect("text").contains("shows no forms"), "{refused}");
    let open = plain.call("questions_list", &json!({ "state": "pending" }));
    assert_eq!(open["structuredContent"]["questions"][0]["question"], json!(question));
    plain.leave();
    let mut client = Client::start(folder.path(), &url);
    client.greet_with(&json!({ "elicitation": {} }));
    // Who declines gives the question back.
    let form = client.begin("questions_ask", &json!({ "question": question }));
    assert_eq!(form["method"], "elicitation/create", "{form}");
    let message = form["params"]["message"].as_str().expect("text");
    for words in ["in world ads?", "0101", "300 milli-units", "no deadline", "was right: changes"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let verdict = &form["params"]["requestedSchema"]["properties"]["verdict"];
    assert_eq!(verdict["oneOf"].as_array().map(Vec::len), Some(4), "{verdict}");
    let declined = client.fill(&form, &json!({ "action": "decline" }));
    assert_eq!(declined["structuredContent"]["given_back"], json!(true), "{declined}");
    let open = client.call("questions_list", &json!({ "state": "pending" }));
    assert_eq!(open["structuredContent"]["questions"][0]["question"], json!(question));
    // The most pressing question is asked where none is named; the answer takes effect.
    let form = client.begin("questions_ask", &json!({}));
    let filled = json!({ "action": "accept", "content": { "verdict": "right" } });
    let given = client.fill(&form, &filled);
    assert_eq!(given["structuredContent"]["said"]["accept"], json!(true), "{given}");
    assert!(!given["structuredContent"]["changes"].as_array().expect("a list").is_empty());
    let open = client.call("questions_list", &json!({}));
    assert_eq!(open["structuredContent"]["questions"], json!([]));
    let nothing = client.call("questions_ask", &json!({}));
    assert_eq!(nothing["structuredContent"]["question"], Value::Null, "{nothing}");
    client.leave();
    server.stop();
}

#[test]
fn without_a_server_or_a_token_it_says_so_before_the_protocol_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_bem"))
            .arg("mcp")
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        assert_eq!((done.status.code(), done.stdout.len()), (Some(2), 0));
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    assert!(run(&["--token-file", "nowhere"]).contains("nowhere cannot be read"));
    std::fs::write(folder.path().join("token"), "t\n").expect("a file");
    assert!(
        run(&["--url", "http://127.0.0.1:1", "--token-file", "token"]).contains("the server cannot be asked")
    );
    assert!(run(&["--url", "https://a", "--token-file", "token"]).contains("must begin with http://"));
}
