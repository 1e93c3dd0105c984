//! The door of the decision service from outside: requests that are slow, huge, many or doubled, and a secret that must stay where
//! it was put. Clauses: GLE-9, VM-13; decision D-70; threats T9 and T11.

mod server;

use serde_json::{Value, json};
use server::{Client, Server, command};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ADS: &str = r#"{"name":"ads","obs_bits":4,"actions":4,"reward_range":[0,1000]}"#;
const DECIDE: &str = "/v1/worlds/ads/decide";

fn ads(client: &mut Client) {
    let world: Value = serde_json::from_str(ADS).expect("JSON");
    assert_eq!(client.ask("POST", "/v1/worlds", &world).0, 201);
}

/// The status lines among everything that a connection says until it is closed, or silent for a while.
fn statuses(mut stream: &TcpStream, wanted: usize) -> Vec<u16> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 1 << 16]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let found: Vec<u16> =
            text.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.get(..3)?.parse().ok()).collect();
        if wanted <= found.len() {
            return found;
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return found,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

#[test]
fn requests_that_are_huge_slow_or_many_are_bounded_and_others_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(folder.path(), "served", &[]);
    let mut client = server.connect();
    ads(&mut client);
    // Heads: one line of a megabyte, and a thousand lines.
    let long = "x".repeat(1 << 20);
    let many: String = (0..1_000).map(|line| format!("X-{line}: y\r\n")).collect();
    for extra in [format!("X-Long: {long}\r\n"), many, format!("Cookie: {long}\r\n")] {
        let request = format!("GET /v1/worlds HTTP/1.1\r\nHost: {}\r\n{extra}\r\n", server.address);
        let stranger = server.connect();
        // The server may hang up before it has read everything.
        let _ = (&stranger.stream).write_all(request.as_bytes());
        let found = statuses(&stranger.stream, 1);
        assert!(found.iter().all(|status| (400..500).contains(status)), "{found:?}");
    }
    // Bodies: said to be ten gigabytes, and a megabyte without a length.
    let head = |client: &Client, more: &str| {
        let request = client.request("POST", DECIDE, "{}");
        let head = request.split("Content-Length").next().expect("a head").to_string();
        format!("{head}{more}\r\n\r\n")
    };
    let mut stranger = server.connect();
    let request = head(&stranger, "Content-Length: 10000000000");
    let (status, body) = stranger.raw(request.as_bytes()).expect("an answer");
    assert!(status == 413 && body.contains("\"error\""), "{status} {body}");
    let stranger = server.connect();
    let chunk = format!("10000\r\n{}\r\n", "y".repeat(1 << 16)).repeat(16);
    let _ = (&stranger.stream).write_all((head(&stranger, "Transfer-Encoding: chunked") + &chunk).as_bytes());
    assert_eq!(statuses(&stranger.stream, 1), [413]);
    // Both lengths at once are how requests are smuggled.
    let stranger = server.connect();
    let both = head(&stranger, "Content-Length: 3\r\nTransfer-Encoding: chunked") + "0\r\n\r\n";
    let _ = (&stranger.stream).write_all(both.as_bytes());
    let found = statuses(&stranger.stream, 1);
    assert!(found.iter().all(|status| (400..500).contains(status)), "{found:?}");
    // Requests one behind the other without waiting are answered in order.
    let request = client.request("POST", DECIDE, r#"{"obs":"0101"}"#);
    (&client.stream).write_all(request.repeat(64).as_bytes()).expect("they are sent");
    assert_eq!(statuses(&client.stream, 64), [200; 64]);
    // Hundreds of connections that say nothing, or stop in the middle, keep nobody out.
    let idle: Vec<Client> = (0..400).map(|_| server.connect()).collect();
    for (place, stranger) in idle.iter().enumerate() {
        let whole = stranger.request("POST", DECIDE, r#"{"obs":"0101"}"#);
        let _ = (&stranger.stream).write_all(&whole.as_bytes()[..whole.len() * (place % 10) / 10]);
    }
    let mut late = server.connect();
    for _ in 0..50 {
        assert_eq!(late.ask("POST", DECIDE, &json!({ "obs": "0101" })).0, 200);
    }
    drop(idle);
    server.stop();
}

#[test]
fn a_request_that_never_ends_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = command(folder.path(), "served", &[]);
    command.env("BEM_SERVE_BODY_MS", "200");
    let server = Server::of(command, &folder.path().join("served/token"));
    let client = server.connect();
    let whole = client.request("POST", "/v1/worlds", ADS);
    (&client.stream).write_all(&whole.as_bytes()[..whole.len() - 5]).expect("it is sent");
    assert_eq!(statuses(&client.stream, 1), [408]);
    server.stop();
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            match entry.file_type().expect("a kind").is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found
}

/// A secret as it may be spelled: plain, hexadecimal, base64 at every offset, in a URL, and in two bytes a letter.
fn spellings(secret: &str) -> Vec<Vec<u8>> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hex = |upper: bool| -> String {
        secret.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
    };
    let mut found = vec![secret.as_bytes().to_vec(), hex(false).into_bytes(), hex(true).into_bytes()];
    found.push(secret.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect());
    found.push(secret.bytes().flat_map(|byte| [byte, 0]).collect());
    for offset in 0..3 {
        // The bytes before are unknown: what depends on them is left out.
        let inner = &secret.as_bytes()[(3 - offset) % 3..];
        let whole = &inner[..inner.len() / 3 * 3];
        let encoded = whole.chunks(3).flat_map(|three| {
            let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
            (0..4).rev().map(move |place| LETTERS[(bits >> (6 * place) & 63) as usize])
        });
        found.push(encoded.collect());
    }
    found
}

#[test]
fn a_planted_token_is_found_in_no_log_ledger_snapshot_or_page() {
    let secret = "canary-Zq7vW2xK9pLm4RtY8bNc3HdF6gJs";
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("planted");
    std::fs::write(&token, format!("{secret}\n")).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token, mode).expect("a setting");
    let errors = folder.path().join("errors");
    let mut command = command(folder.path(), "served", &["--token-file", "planted"]);
    command.stderr(std::fs::File::create(&errors).expect("a file"));
    let server = Server::of(command, &token);
    assert_eq!(server.token, secret);
    let mut client = server.connect();
    ads(&mut client);
    // The secret also comes where it has no business: names, bodies, paths, headers.
    let mut said = Vec::new();
    for (method, path, body) in [
        ("POST", "/v1/worlds", json!({ "name": secret })),
        ("POST", DECIDE, json!({ "obs": secret })),
        ("POST", DECIDE, json!({ "obs": "0101", secret: 1 })),
        ("GET", "/v1/worlds/none", Value::Null),
        ("POST", "/login", json!({ "token": secret })),
    ] {
        said.push(client.ask(method, path, &body).1.to_string());
    }
    for _ in 0..50 {
        let (_, answer) = client.ask("POST", DECIDE, &json!({ "obs": "0101" }));
        let reward = json!({ "decision": answer["decision"], "reward": 500 });
        said.push(client.ask("POST", "/v1/worlds/ads/reward", &reward).1.to_string());
    }
    // What names the field that the caller wrote may repeat it to that caller, and to nobody else.
    said.retain(|text| !text.contains("is no field") && !text.contains("is not allowed"));
    for path in [
        "/",
        "/worlds/ads",
        "/patches",
        "/history",
        "/tools",
        "/queue",
        "/metrics",
        "/openapi.json",
        "/v1/history",
    ] {
        said.push(client.ask("GET", path, &Value::Null).1.to_string());
    }
    let pid = server.child.id();
    for name in ["cmdline", "environ"] {
        said.push(
            String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()).into(),
        );
    }
    client.stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a setting");
    server.stop();
    let spelled = spellings(secret);
    let is_in =
        |bytes: &[u8]| spelled.iter().any(|secret| bytes.windows(secret.len()).any(|part| part == secret));
    // The search finds it where it is.
    assert!(is_in(&std::fs::read(&token).expect("a file")));
    let encoded = "AAAY2FuYXJ5LVpxN3ZXMnhLOXBMbTRSdFk4Yk5jM0hkRjZnSnM=";
    assert!(is_in(encoded.as_bytes()));
    said.iter().for_each(|text| assert!(!is_in(text.as_bytes()), "{text}"));
    let mut looked = 0;
    for path in files(folder.path()).into_iter().filter(|path| *path != token) {
        let bytes = std::fs::read(&path).expect("a file");
        assert!(!is_in(&bytes), "{}", path.display());
        looked += 1;
    }
    assert!(5 < looked, "{looked} files");
}
