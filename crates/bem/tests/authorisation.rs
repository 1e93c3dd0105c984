//! Who may do what: the matrix of `docs/security.md` is made from the router, and a server that runs keeps to it for every route and
//! every role. Clauses: GLE-9, HUM-12; decision D-215.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its server has failed")]

mod server;

use bem_serve::attempts::WRONG_MAX;
use bem_serve::http::Route;
use bem_serve::tokens::Role;
use server::Server;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The roles, the least first, as `bem token add` names them.
const ROLES: [(&str, Role); 4] = [
    ("viewer", Role::Viewer),
    ("annotator", Role::Annotator),
    ("approver", Role::Approver),
    ("admin", Role::Admin),
];
const BEGIN: &str = "<!-- made from the router by cargo xtask golden -->\n";
const END: &str = "<!-- end -->";

/// The routes in the order of their paths.
fn routes() -> Vec<Route> {
    let mut routes = bem_serve::table();
    routes.sort_by(|one, other| (one.path, one.method.as_str()).cmp(&(other.path, other.method.as_str())));
    routes
}

fn may(route: &Route, role: Role) -> bool {
    route.role.is_none_or(|needed| needed <= role)
}

fn matrix() -> String {
    let mut text = String::from("| route | nobody |");
    ROLES.iter().for_each(|(name, _)| {
        let _ = write!(text, " {name} |");
    });
    text.push_str("\n|---|---|---|---|---|---|\n");
    let mark = |may: bool| if may { "yes" } else { "-" };
    for route in routes() {
        let _ = write!(text, "| `{} {}` | {} |", route.method, route.path, mark(route.role.is_none()));
        ROLES.iter().for_each(|(_, role)| {
            let _ = write!(text, " {} |", mark(may(&route, *role)));
        });
        text.push('\n');
    }
    text
}

#[test]
fn golden_matrix_of_roles_is_that_of_the_router() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the page has a place for the matrix");
    let (_, tail) = rest.split_once(END).expect("the matrix ends");
    let wanted = format!("{head}{BEGIN}\n{}\n{END}{tail}", matrix());
    if std::env::var("BEM_GOLDEN").as_deref() == Ok("renew") {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == wanted, "cargo xtask golden renews docs/security.md");
}

/// The status of a request; what follows it may never end.
fn status(address: &str, method: &str, path: &str, token: Option<&str>) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let body = if method == "GET" { "" } else { "{}" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

#[test]
fn a_server_that_runs_keeps_to_the_matrix_for_every_route_and_every_role() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "served", &[]);
    let token = |role: &str| {
        let made = Command::new(env!("CARGO_BIN_EXE_bem"))
            .args(["token", "add", role, "--role", role, "--state", "served"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&made.stdout).trim().to_string()
    };
    let tokens = ROLES.map(|(name, role)| {
        let token = if name == "admin" { server.token.clone() } else { token(name) };
        (token, role)
    });
    let (mut opened, mut closed, mut unknown, mut limited) = (0, 0, 0, 0);
    for route in routes() {
        let path = route.path.replace("{name}", "nothing").replace("{id}", "1");
        let ask = |token: Option<&str>| status(&server.address, route.method.as_str(), &path, token);
        // Without a token nothing is reached but what anybody may see; a wrong token is no token, and many of them are not
        // looked at any more. That locks nobody out who was let in from the same address.
        if route.role.is_some() {
            assert_eq!(ask(None), 401, "{route:?}");
            match ask(Some("wrong")) {
                401 => unknown += 1,
                429 => limited += 1,
                other => panic!("{route:?}: {other}"),
            }
        }
        for (token, role) in &tokens {
            let (found, may) = (ask(Some(token)), may(&route, *role));
            assert_eq!(
                found != 403 && (found != 401 || route.path == "/login"),
                may,
                "{route:?} {role:?}: {found}"
            );
            if may { opened += 1 } else { closed += 1 }
        }
    }
    assert!(WRONG_MAX <= unknown, "{unknown} unknown, {limited} limited");
    assert!(20 <= closed && 60 <= opened, "{opened} opened, {closed} closed");
    server.stop();
}
