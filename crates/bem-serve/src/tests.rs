//! Who may come in: every route of the table with every role and every wrong header, asked through the router itself.

mod asked;
mod explained;
mod told;

use super::*;
use crate::attempts::{self, Peer};
use crate::tokens::Role;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, Method, Request, StatusCode, header};
use bem_ledger::checkpoint::Signer;
use bem_ledger::log::LogOptions;
use bem_ledger::store::MemoryStore;
use bem_runtime::history;
use bem_runtime::service::ServiceConfig;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tower::ServiceExt as _;

const ADMIN: &str = "admin-admin-admin-admin-admin-admin";

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7_420);

fn options(rate: u32, behind_proxy: bool, state: &std::path::Path) -> ServeOptions {
    ServeOptions {
        listen: LISTEN,
        state: state.to_path_buf(),
        admin: ADMIN.to_string(),
        hosts: Vec::new(),
        behind_proxy,
        rate,
        has_empty: false,
        starts: None,
        lease: people::LEASE_LASTS,
        webhooks: Vec::new(),
        auditing: None,
        logs: None,
        domains: None,
    }
}

/// A service in memory with a token for every role.
struct Bench {
    router: Router,
    table: Vec<Route>,
    tokens: Vec<(Role, String)>,
    handle: Handle,
    threads: Option<Threads>,
    /// Every request comes from another address, so that wrong tokens of one are not those of another.
    peers: AtomicU32,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(rate: u32) -> Bench {
        Bench::behind(rate, false)
    }

    fn behind(rate: u32, behind_proxy: bool) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let tokens: Vec<(Role, String)> = Role::ALL
            .iter()
            .map(|role| (*role, tokens::add(folder.path(), role.name(), *role).unwrap()))
            .collect();
        let config = ServiceConfig { seed: 1, parameters: Arc::default() };
        let store = MemoryStore::new();
        let opened =
            history::create(store, Signer::from_seed(&[1; 32]), "test", config, LogOptions::default())
                .unwrap();
        let options = options(rate, behind_proxy, folder.path());
        let (handle, threads) = start(opened, &options, None).unwrap();
        let app = app(handle.clone(), &options, options.listen).unwrap();
        let (router, table) = http::application(&app, all_routes());
        let peers = AtomicU32::new(1 << 24);
        Bench { router, table, tokens, handle, threads: Some(threads), peers, _folder: folder }
    }

    async fn ask(
        &self,
        method: &Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: &str,
    ) -> (StatusCode, String) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let from = Ipv4Addr::from_bits(self.peers.fetch_add(1, Ordering::Relaxed));
        let request = request.extension(Peer::new(from.into()));
        let response =
            self.router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
        let status = response.status();
        if response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
            return (status, String::new());
        }
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let (handle, threads) = (self.handle.clone(), self.threads.take());
        if let Some(threads) = threads {
            std::thread::spawn(move || drop(handle.stop(threads))).join().unwrap();
        }
    }
}

fn run_async<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A path of the table with a name in it.
fn filled(path: &str) -> String {
    path.replace("{name}", "nothing").replace("{id}", "1")
}

const HOST: (HeaderName, &str) = (header::HOST, "127.0.0.1:7420");
const JSON: (HeaderName, &str) = (header::CONTENT_TYPE, "application/json");

#[test]
fn every_route_is_closed_to_whoever_has_not_its_role() {
    let bench = Bench::new(1_000_000);
    run_async(async {
        let mut denied = 0;
        for route in &bench.table {
            let path = filled(route.path);
            let Some(needed) = route.role else {
                assert!(
                    ["/healthz", "/readyz", "/login", "/style.css", "/app.js", "/queue.js"]
                        .contains(&route.path),
                    "{route:?} is open"
                );
                continue;
            };
            let (status, _) = bench.ask(&route.method, &path, &[HOST], "").await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{route:?}");
            for wrong in ["Bearer x", "Bearer ", "bearer x", "Basic YTpi", ADMIN] {
                let (status, body) =
                    bench.ask(&route.method, &path, &[HOST, (header::AUTHORIZATION, wrong)], "").await;
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{route:?} {wrong}: {body}");
                denied += 1;
            }
            // A token in the query is none.
            let in_query = format!("{path}?token={ADMIN}&access_token={ADMIN}");
            assert_eq!(bench.ask(&route.method, &in_query, &[HOST], "").await.0, StatusCode::UNAUTHORIZED);
            for (role, token) in &bench.tokens {
                let shown = format!("Bearer {token}");
                let headers = [HOST, (header::AUTHORIZATION, shown.as_str())];
                let (status, body) = bench.ask(&route.method, &path, &headers, "").await;
                let is_denied = status == StatusCode::FORBIDDEN || status == StatusCode::UNAUTHORIZED;
                assert_eq!(is_denied, *role < needed, "{route:?} as {role:?}: {status} {body}");
                denied += usize::from(is_denied);
            }
        }
        assert!(80 < denied, "{denied}");
    });
}

#[test]
fn other_hosts_and_origins_are_turned_away_from_every_route() {
    let bench = Bench::new(1_000_000);
    let token = format!("Bearer {ADMIN}");
    let mut hosts: Vec<String> = [
        "",
        "localhost",
        "127.0.0.1",
        "localhost.evil.com:7420",
        "127.0.0.1.nip.io:7420",
        "evil.com",
        "[::1]x:7420",
        "localhost:7420.",
        "localhost.:7420",
        "user@localhost:7420",
        "LOCALHOST:7420",
        "localhost:07420",
        " localhost:7420x",
        "0.0.0.0:7420",
        "127.1:7420",
        "2130706433:7420",
        "localhost:7421",
        "localhost:7420,evil.com",
        "127.0.0.1:7420/",
    ]
    .map(String::from)
    .to_vec();
    for number in 0..981 {
        hosts.push(match number % 3 {
            0 => format!("host{number}.localhost:7420"),
            1 => format!("127.0.{}.{}:7420", number % 256, 2 + number % 250),
            _ => format!("localhost:{}", 8_000 + number),
        });
    }
    run_async(async {
        for (place, host) in hosts.iter().enumerate() {
            let route = &bench.table[place % bench.table.len()];
            let headers = [(header::HOST, host.as_str()), (header::AUTHORIZATION, token.as_str())];
            let (status, body) = bench.ask(&route.method, &filled(route.path), &headers, "").await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{host:?} {route:?}: {body}");
        }
        for route in &bench.table {
            let path = filled(route.path);
            let authorized = (header::AUTHORIZATION, token.as_str());
            let (status, _) = bench.ask(&route.method, &path, std::slice::from_ref(&authorized), "").await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{route:?} without a host");
            let twice = [HOST, HOST, authorized.clone()];
            assert_eq!(bench.ask(&route.method, &path, &twice, "").await.0, StatusCode::BAD_REQUEST);
            for origin in [
                "null",
                "http://evil.com",
                "https://127.0.0.1:7420",
                "http://127.0.0.1:7421",
                "http://localhost:7420",
            ] {
                let headers = [HOST, authorized.clone(), (header::ORIGIN, origin)];
                let (status, _) = bench.ask(&route.method, &path, &headers, "").await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{route:?} from {origin}");
            }
            for site in ["cross-site", "same-site", "no-cors"] {
                let headers = [HOST, authorized.clone(), (HeaderName::from_static("sec-fetch-site"), site)];
                let (status, _) = bench.ask(&route.method, &path, &headers, "").await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{route:?} from {site}");
            }
            // Forms and plain text are what other sites can send.
            if route.method == Method::POST {
                for kind in
                    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
                {
                    let headers = [HOST, authorized.clone(), (header::CONTENT_TYPE, kind)];
                    let (status, _) = bench.ask(&route.method, &path, &headers, "{}").await;
                    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{route:?} as {kind}");
                }
            }
        }
    });
}

#[test]
fn a_session_writes_only_with_its_header_and_from_its_own_pages() {
    let bench = Bench::new(1_000_000);
    run_async(async {
        let body = format!("{{\"token\":\"{ADMIN}\"}}");
        let request =
            Request::builder().method("POST").uri("/login").header(HOST.0, HOST.1).header(JSON.0, JSON.1);
        let response = bench.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap().to_string();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let bytes = axum::body::to_bytes(response.into_body(), 4_096).await.unwrap();
        let csrf = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()["csrf"]
            .as_str()
            .unwrap()
            .to_string();
        let cookie = cookie.split(';').next().unwrap().to_string();
        let shown = (header::COOKIE, cookie.as_str());
        let origin = (header::ORIGIN, "http://127.0.0.1:7420");
        assert_eq!(bench.ask(&Method::GET, "/", &[HOST, shown.clone()], "").await.0, StatusCode::OK);
        let world = r#"{"name":"ads","obs_bits":2,"actions":2,"reward_range":[0,1]}"#;
        let refused =
            bench.ask(&Method::POST, "/v1/worlds", &[HOST, JSON, shown.clone(), origin.clone()], world).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN, "{}", refused.1);
        let header = (http::CSRF, csrf.as_str());
        let refused =
            bench.ask(&Method::POST, "/v1/worlds", &[HOST, JSON, shown.clone(), header.clone()], world).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN, "{}", refused.1);
        let made = bench
            .ask(
                &Method::POST,
                "/v1/worlds",
                &[HOST, JSON, shown.clone(), header.clone(), origin.clone()],
                world,
            )
            .await;
        assert_eq!(made.0, StatusCode::CREATED, "{}", made.1);
        assert_eq!(
            bench.ask(&Method::POST, "/logout", &[HOST, shown.clone(), header, origin], "").await.0,
            StatusCode::OK
        );
        assert_eq!(
            bench.ask(&Method::GET, "/", &[HOST, shown.clone()], "").await.0,
            StatusCode::UNAUTHORIZED
        );
        let browser = (header::ACCEPT, "text/html,*/*;q=0.8");
        assert_eq!(bench.ask(&Method::GET, "/", &[HOST, shown, browser], "").await.0, StatusCode::SEE_OTHER);
        let wrong = bench.ask(&Method::POST, "/login", &[HOST, JSON], r#"{"token":"x"}"#).await;
        assert_eq!(wrong.0, StatusCode::UNAUTHORIZED);
        assert!(!wrong.1.contains(ADMIN));
    });
}

#[test]
fn the_document_describes_every_route_for_programs() {
    use utoipa::OpenApi as _;
    let document = serde_json::to_value(api::Document::openapi()).unwrap();
    for route in table() {
        let is_page = [
            "/",
            "/worlds/{name}",
            "/login",
            "/style.css",
            "/app.js",
            "/queue",
            "/queue.js",
            "/patches",
            "/history",
            "/tools",
        ]
        .contains(&route.path);
        if is_page && route.method == Method::GET {
            continue;
        }
        let method = route.method.as_str().to_lowercase();
        assert!(document["paths"][route.path][&method].is_object(), "{route:?} is not in the document");
    }
}

#[test]
fn whoever_asks_too_fast_is_told_to_come_back() {
    let bench = Bench::new(5);
    let token = format!("Bearer {ADMIN}");
    run_async(async {
        let headers = [HOST, (header::AUTHORIZATION, token.as_str())];
        let mut slow = 0;
        for _ in 0..50 {
            let request = Request::builder().uri("/v1/worlds");
            let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
            let response = bench.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            if response.status() == StatusCode::TOO_MANY_REQUESTS {
                assert_eq!(response.headers()[header::RETRY_AFTER], "1");
                slow += 1;
            }
        }
        assert!(40 <= slow, "{slow}");
    });
}

/// Status and seconds to wait of a request from this address: a login, or a look at the worlds.
async fn try_token(bench: &Bench, from: &str, is_login: bool, token: &str) -> (StatusCode, Option<u64>) {
    let (method, path) = if is_login { ("POST", "/login") } else { ("GET", "/v1/worlds") };
    let request = Request::builder().method(method).uri(path).header(HOST.0, HOST.1).header(JSON.0, JSON.1);
    let request = match is_login {
        true => request.body(Body::from(format!("{{\"token\":\"{token}\"}}"))),
        false => request.header(header::AUTHORIZATION, format!("Bearer {token}")).body(Body::empty()),
    };
    let mut request = request.unwrap();
    request.extensions_mut().insert(Peer::new(from.parse().unwrap()));
    let response = bench.router.clone().oneshot(request).await.unwrap();
    let wait =
        response.headers().get(header::RETRY_AFTER).map(|wait| wait.to_str().unwrap().parse().unwrap());
    (response.status(), wait)
}

#[test]
fn wrong_tokens_of_one_address_are_limited_at_the_login_and_at_the_interface() {
    for is_login in [true, false] {
        let bench = Bench::new(1_000_000);
        let (viewer, annotator) = (bench.tokens[0].1.clone(), bench.tokens[1].1.clone());
        run_async(async {
            assert_eq!(try_token(&bench, "10.0.0.1", is_login, &viewer).await.0, StatusCode::OK);
            let (mut wrong, mut refused) = (0, 0);
            for _ in 0..10 * attempts::WRONG_MAX {
                match try_token(&bench, "10.0.0.1", is_login, "guess").await {
                    (StatusCode::UNAUTHORIZED, None) => wrong += 1,
                    (StatusCode::TOO_MANY_REQUESTS, Some(wait)) => {
                        assert!((1..=attempts::REGAINED_EVERY.as_secs()).contains(&wait), "{wait}");
                        refused += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            // On a slow machine some are regained between the first and the last.
            assert!(attempts::WRONG_MAX <= wrong && 0 < refused, "{wrong} wrong, {refused} refused");
            // The other door is closed as well, other addresses are open, and whoever was let in stays in.
            let mut is_closed = false;
            for _ in 0..attempts::WRONG_MAX {
                let (status, _) = try_token(&bench, "10.0.0.1", !is_login, "guess").await;
                is_closed |= status == StatusCode::TOO_MANY_REQUESTS;
            }
            assert!(is_closed);
            assert_eq!(try_token(&bench, "10.0.0.1", !is_login, &viewer).await.0, StatusCode::OK);
            assert_eq!(try_token(&bench, "10.0.0.2", is_login, &annotator).await.0, StatusCode::OK);
            assert_eq!(try_token(&bench, "10.0.0.2", is_login, "guess").await.0, StatusCode::UNAUTHORIZED);
        });
    }
}

#[test]
fn behind_a_proxy_the_address_is_the_one_that_the_proxy_wrote() {
    let ask = |behind_proxy: bool, forwarded: &str| {
        let bench = Bench::behind(1_000_000, behind_proxy);
        let app = app(bench.handle.clone(), &options(1, behind_proxy, bench._folder.path()), LISTEN).unwrap();
        let request = Request::builder().header("x-forwarded-for", forwarded);
        let request = request.extension(Peer::new([127, 0, 0, 1].into())).body(()).unwrap();
        http::peer_of(&app, &request)
    };
    let [proxy, client] = ["127.0.0.1", "10.0.0.9"].map(|text| Peer::new(text.parse().unwrap()));
    assert_eq!(ask(false, "10.0.0.9"), proxy, "nobody may say so of himself");
    assert_eq!(ask(true, "10.0.0.7, 10.0.0.9"), client, "only the last one is the proxy's");
    assert_eq!(ask(true, "unknown"), proxy);
}

#[test]
fn pages_escape_what_came_from_outside_and_tell_no_secret() {
    assert_eq!(page::escaped("<b a='\"&"), "&lt;b a=&#39;&quot;&amp;");
    let bench = Bench::new(1_000_000);
    let token = format!("Bearer {ADMIN}");
    run_async(async {
        let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
        let world = r#"{"name":"ads","features":[{"name":"<script>alert(1)</script>","kind":"bit"}],"actions":2,"reward_range":[0,1]}"#;
        let (status, body) = bench.ask(&Method::POST, "/v1/worlds", &headers, world).await;
        assert!(status == StatusCode::CREATED || status == StatusCode::BAD_REQUEST, "{body}");
        let world = r#"{"name":"plain","obs_bits":2,"actions":2,"reward_range":[0,1]}"#;
        assert_eq!(bench.ask(&Method::POST, "/v1/worlds", &headers, world).await.0, StatusCode::CREATED);
        for path in [
            "/",
            "/worlds/ads",
            "/worlds/plain",
            "/v1/worlds",
            "/v1/tools",
            "/tools",
            "/metrics",
            "/v1/patches",
            "/openapi.json",
        ] {
            let (_, body) = bench.ask(&Method::GET, path, &headers, "").await;
            assert!(!body.contains("<script>alert") && !body.contains(ADMIN), "{path}: {body}");
        }
        let (status, body) = bench.ask(&Method::GET, "/worlds/plain", &headers, "").await;
        assert!(status == StatusCode::OK && body.contains("always action 0"), "{status} {body}");
    });
}

#[test]
fn named_features_and_episodes_are_decided_on() {
    let bench = Bench::new(1_000_000);
    let token = format!("Bearer {ADMIN}");
    run_async(async {
        let headers = [HOST, JSON, (header::AUTHORIZATION, token.as_str())];
        let world = r#"{"name":"house","features":[{"name":"temp","kind":"number","min":-40,"max":60},{"name":"mode","kind":"choice","of":4},
            {"name":"door","kind":"bit"}],"actions":3,"reward_range":[-100,100],"horizon":5,"min_propensity":0.05}"#;
        let (status, body) = bench.ask(&Method::POST, "/v1/worlds", &headers, world).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        let decide = r#"{"obs":{"temp":21.5,"mode":2,"door":true},"episode":"monday"}"#;
        let mut decisions = Vec::new();
        for _ in 0..3 {
            let (status, body) = bench.ask(&Method::POST, "/v1/worlds/house/decide", &headers, decide).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert!(answer["propensity"].as_f64().is_some_and(|chance| 0.05 <= chance), "{answer}");
            decisions.push(answer["decision"].as_str().unwrap().to_string());
        }
        for (place, decision) in decisions.iter().enumerate() {
            let body = format!("{{\"decision\":\"{decision}\",\"reward\":-5,\"done\":{}}}", place == 2);
            let (status, body) = bench.ask(&Method::POST, "/v1/worlds/house/reward", &headers, &body).await;
            assert_eq!(status, StatusCode::OK, "{body}");
        }
        let (_, body) = bench.ask(&Method::GET, "/v1/worlds/house", &headers, "").await;
        let shown: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(shown["online_mean"], serde_json::json!(-15.0), "{shown}");
        for wrong in [
            r#"{"obs":{"temp":21.5,"mode":2},"episode":"a"}"#,
            r#"{"obs":{"temp":21.5,"mode":9,"door":true},"episode":"a"}"#,
            r#"{"obs":{"temp":21.5,"mode":2,"door":true}}"#,
            r#"{"obs":"01","episode":"a"}"#,
        ] {
            let (status, body) = bench.ask(&Method::POST, "/v1/worlds/house/decide", &headers, wrong).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}: {body}");
        }
    });
}
