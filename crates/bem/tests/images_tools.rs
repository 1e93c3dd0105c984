//! Images in the hands of other programs: skopeo, umoci, runc, bwrap, podman and a registry. Where one is missing, its test fails and says
//! what to install. The page docs/operate.md runs from its first to its last command. Clauses: IMG-1, IMG-2, IMG-4.

mod guide;
mod images_kit;

use guide::{commands, needed, shell};
use images_kit::{Server, bem, bem_json, head, lived, need, save, text, tool};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn skopeo_umoci_and_podman_accept_the_images_and_archives_come_back() {
    need(&["skopeo", "podman", "umoci"]);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 30);
    let tag = save(folder, "S", "L");
    let wanted = head(folder, "S");
    let seen = tool(folder, "skopeo", &["inspect", &format!("oci:L:{tag}")]);
    let seen: Value = serde_json::from_str(&seen).expect("JSON");
    assert_eq!(seen["Labels"]["bem.chain.head"].as_str(), Some(wanted.as_str()));
    let raw = tool(folder, "skopeo", &["inspect", "--raw", &format!("oci:L:{tag}")]);
    let raw: Value = serde_json::from_str(&raw).expect("JSON");
    let verdict = raw["annotations"]["bem.gate.verdict"].as_str();
    assert!(matches!(verdict, Some("open" | "forced")), "{raw}");
    for (kind, file) in [("docker-archive", "saved.tar"), ("oci-archive", "saved-oci.tar")] {
        tool(folder, "skopeo", &["copy", "-q", &format!("oci:L:{tag}"), &format!("{kind}:{file}:{tag}")]);
        let out = format!("from-{kind}");
        let reference = format!("{kind}:{file}");
        let restored =
            bem_json(folder, &["image", "restore", &reference, "--out", &out, "--key", "key", "--json"]);
        assert_eq!(restored["head"].as_str(), Some(wanted.as_str()), "{kind}");
    }
    // A layout that another program has written is read as well.
    tool(folder, "skopeo", &["copy", "-q", &format!("oci:L:{tag}"), "oci:theirs:some:tag"]);
    bem_json(folder, &["image", "restore", "oci:theirs:some:tag", "--out", "T", "--key", "key", "--json"]);
    let store = ["--root", "podman", "--runroot", "podman-run", "--storage-driver", "vfs"];
    let loaded = tool(folder, "podman", &[&store[..], &["load", "-i", "saved.tar"]].concat());
    assert!(loaded.contains("Loaded image"), "{loaded}");
    tool(folder, "umoci", &["stat", "--image", &format!("L:{tag}")]);
    unpack(folder, &tag);
    assert!(folder.join("bundle/rootfs/var/lib/bem/ledger/checkpoint").exists());
    assert!(folder.join("bundle/rootfs/usr/share/doc/bem/LICENSE").exists());
}

/// Unpacks an image into a bundle.
fn unpack(folder: &Path, tag: &str) {
    tool(folder, "umoci", &["unpack", "--rootless", "--image", &format!("L:{tag}"), "bundle"]);
}

fn bwrap(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("bwrap");
    command.current_dir(folder).args(["--bind", "bundle/rootfs", "/", "--proc", "/proc", "--dev", "/dev"]);
    // As in the image: nobody in particular, and never root.
    command.args(["--unshare-user", "--uid", "65532", "--gid", "65532"]);
    command.args([
        "--die-with-parent",
        "--unshare-pid",
        "--unshare-ipc",
        "--clearenv",
        "--setenv",
        "PATH",
        "/usr/bin",
    ]);
    command.args(["--setenv", "XDG_STATE_HOME", "/var/lib/bem-keys"]).args(words);
    command
}

#[test]
fn inside_the_image_it_proves_resolves_a_name_and_resumes() {
    need(&["bwrap", "umoci"]);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 60);
    let origin = head(folder, "S");
    let tag = save(folder, "S", "L");
    unpack(folder, &tag);
    proves_and_resolves(folder);
    let words = ["/usr/bin/bem-engine", "--resume", "--listen", "127.0.0.1:0"];
    let server = Server::of(bwrap(folder, &words), &folder.join("bundle/rootfs/var/lib/bem/token"));
    assert_eq!(server.ask("GET", "/v1/worlds", &Value::Null).0, 200);
    server.drive(60..64, false);
    drop(server);
    let state = "bundle/rootfs/var/lib/bem";
    let audited = bem_json(folder, &["verify", state, "--json"]);
    assert_eq!(audited["verdict"], json!("unanchored"));
    let named = std::fs::read(folder.join(state).join("ledger/segment-00000000.log")).expect("a segment");
    assert!(
        named.windows(64).any(|window| window == origin.as_bytes()),
        "the new history names the old head"
    );
}

#[test]
fn inside_the_image_the_settings_under_etc_are_read() {
    need(&["bwrap", "umoci"]);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    bem_json(folder, &["image", "base", "--layout", "L", "--json"]);
    unpack(folder, "bem-core:0.0.1");
    let settings = folder.join("bundle/rootfs/etc/bem");
    assert!(settings.join("config.toml").exists(), "the image has a default configuration");
    std::fs::write(settings.join("config.toml"), "experience_steps = 4096\n").expect("settings");
    std::fs::create_dir_all(folder.join("bundle/rootfs/tmp/shared")).expect("a folder");
    let catalog = "[[root]]\nname = \"config\"\npath = \"/tmp/shared\"\nalias = \"CONFIG_ROOT\"\n";
    std::fs::write(settings.join("catalog.toml"), catalog).expect("settings");
    let words = ["/usr/bin/bem-engine", "--listen", "127.0.0.1:0"];
    let server = Server::of(bwrap(folder, &words), &folder.join("bundle/rootfs/var/lib/bem/token"));
    server.make_world();
    let (status, tools) = server.ask("GET", "/v1/tools", &Value::Null);
    assert!(status == 200 && tools.to_string().contains("config"), "{tools}");
    drop(server);
    assert!(folder.join("bundle/rootfs/var/log/bem/bem.log").exists(), "logs are in their place");
    // The history began with what stood under /etc/bem.
    std::fs::write(folder.join("other.toml"), "").expect("a file");
    let key = "bundle/rootfs/var/lib/bem-keys/bem/key";
    let state = "bundle/rootfs/var/lib/bem";
    let refused = bem(folder, &["serve", "--state", state, "--key", key, "--config", "other.toml"]);
    assert!(text(&refused).contains("experience_steps is 4096 in this run"), "{}", text(&refused));
}

/// What a program inside the image does: it refutes a formula, with a proof that the checker accepts, and resolves a name.
fn proves_and_resolves(folder: &Path) {
    std::fs::write(folder.join("bundle/rootfs/tmp/no.cnf"), "p cnf 1 2\n1 0\n-1 0\n").expect("a file");
    let proven = bwrap(folder, &["/usr/bin/bem", "prove", "sat", "/tmp/no.cnf"]).output().expect("bwrap");
    assert!(text(&proven).to_lowercase().contains("unsat"), "{}", text(&proven));
    let doctor = bwrap(folder, &["/usr/bin/bem", "doctor"]).output().expect("bwrap");
    let said = text(&doctor);
    let names = said.lines().find(|line| line.starts_with("name resolution"));
    assert!(names.is_some_and(|line| line.contains("127.0.0.1") || line.contains("::1")), "{said}");
}

#[test]
#[ignore = "cargo xtask static builds the program that this is about, and runs this test"]
fn a_program_without_shared_libraries_brings_none_and_works_alone() {
    need(&["bwrap", "umoci"]);
    let program =
        std::env::var("BEM_STATIC_PROGRAM").expect("the path of a program without shared libraries");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let built = tool(folder, &program, &["image", "base", "--layout", "L", "--json"]);
    let built: Value = serde_json::from_str(&built).expect("JSON");
    assert_eq!(built["libraries"], json!([]), "{built}");
    assert!(built["bytes"].as_u64().is_some_and(|bytes| bytes < 30_000_000), "{built}");
    unpack(folder, "bem-core:0.0.1");
    for libraries in ["lib", "lib64", "usr/lib"] {
        assert!(!folder.join("bundle/rootfs").join(libraries).exists(), "{libraries}");
    }
    proves_and_resolves(folder);
}

/// Why runc cannot start containers here, if it cannot: it needs root, and control groups that it may write.
fn runc_cannot(folder: &Path, tag: &str) -> Option<String> {
    let is_root = Command::new("sh").args(["-c", "test \"$(id -u)\" = 0"]).status();
    if !is_root.is_ok_and(|status| status.success()) {
        return Some("it needs root".to_string());
    }
    tool(folder, "umoci", &["unpack", "--image", &format!("L:{tag}"), "bundle"]);
    let path = folder.join("bundle/config.json");
    let kept = std::fs::read(&path).expect("a file");
    let mut config: Value = serde_json::from_slice(&kept).expect("JSON");
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(["bem", "--version"]);
    std::fs::write(&path, config.to_string()).expect("a file");
    let name = format!("bem-try-{}", std::process::id());
    let tried =
        Command::new("runc").args(["run", "-b", "bundle", &name]).current_dir(folder).output().expect("runc");
    std::fs::write(&path, kept).expect("a file");
    (!tried.status.success()).then(|| text(&tried))
}

#[test]
fn runc_starts_the_image_as_nobody_in_particular_or_bwrap_where_runc_cannot() {
    need(&["runc", "bwrap", "umoci"]);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    lived(folder, 20);
    let tag = save(folder, "S", "L");
    if let Some(reason) = runc_cannot(folder, &tag) {
        eprintln!("runc cannot start containers here, bwrap does: {reason}");
        let _ = std::fs::remove_dir_all(folder.join("bundle"));
        unpack(folder, &tag);
        let words = ["/usr/bin/bem-engine", "--resume", "--listen", "127.0.0.1:0"];
        let server = Server::of(bwrap(folder, &words), &folder.join("bundle/rootfs/var/lib/bem/token"));
        server.drive(20..23, false);
        assert!(folder.join("bundle/rootfs/var/log/bem/bem.log").exists(), "logs are in their place");
        return;
    }
    for name in ["keys-volume", "logs-volume"] {
        std::fs::create_dir(folder.join(name)).expect("a folder");
        tool(folder, "chown", &["65532:65532", name]);
    }
    let path = folder.join("bundle/config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
    assert_eq!(config["process"]["args"], json!(["bem-engine", "--resume"]));
    assert_eq!(config["process"]["user"]["uid"], json!(65_532));
    // Volumes and the network are the caller's; the words of the image stay.
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(["bem-engine", "--resume", "--listen", "127.0.0.1:0"]);
    let namespaces = config["linux"]["namespaces"].as_array().expect("namespaces").clone();
    config["linux"]["namespaces"] =
        namespaces.into_iter().filter(|one| one["type"] != json!("network")).collect();
    let mounts = config["mounts"].as_array().expect("mounts").clone();
    let is_volume = |one: &Value| {
        ["/var/lib/bem-keys", "/var/log/bem"].iter().any(|path| one["destination"] == json!(path))
    };
    let mut mounts: Vec<Value> = mounts.into_iter().filter(|one| !is_volume(one)).collect();
    for (name, place) in [("keys-volume", "/var/lib/bem-keys"), ("logs-volume", "/var/log/bem")] {
        mounts.push(json!({ "destination": place, "type": "bind", "source": folder.join(name), "options": ["rbind", "rw"] }));
    }
    config["mounts"] = mounts.into();
    std::fs::write(&path, config.to_string()).expect("a file");
    let name = format!("bem-test-{}", std::process::id());
    let mut command = Command::new("runc");
    command.args(["run", "-b", "bundle", &name]).current_dir(folder).stdin(Stdio::null());
    let server = Server::of(command, &folder.join("bundle/rootfs/var/lib/bem/token"));
    server.drive(20..23, false);
    tool(folder, "runc", &["kill", &name, "TERM"]);
    drop(server);
    assert!(folder.join("logs-volume/bem.log").exists(), "logs are in their volume");
    assert!(folder.join("keys-volume/bem/key").exists(), "the new key is in its volume");
}

/// A registry that is stopped when it goes out of scope.
struct Registry(std::process::Child);

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_image_goes_through_a_registry_with_its_signature_and_its_promotion() {
    need(&["docker-registry", "skopeo"]);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let config = format!(
        "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: {free}}}\n",
        folder.join("registry").display()
    );
    std::fs::write(folder.join("registry.yml"), config).expect("a file");
    let mut command = Command::new("docker-registry");
    command.args(["serve", "registry.yml"]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let _registry = Registry(command.spawn().expect("a registry"));
    for _ in 0..100 {
        if std::net::TcpStream::connect(free).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    lived(folder, 15);
    let wanted = head(folder, "S");
    let tag = save(folder, "S", "L");
    let promoted = bem_json(folder, &["image", "promote", &tag, "--layout", "L", "--json"]);
    assert!(bem(folder, &["image", "sign", &tag, "--layout", "L"]).status.success());
    let there = format!("docker://{free}/bem-brain:stable");
    let pushed = bem(folder, &["image", "push", "stable", &there, "--layout", "L", "--plain-http"]);
    assert!(pushed.status.success(), "{}", text(&pushed));
    let pulled = bem(folder, &["image", "pull", &there, "--layout", "P", "--plain-http"]);
    assert!(pulled.status.success(), "{}", text(&pulled));
    let listed = bem_json(folder, &["image", "list", "--layout", "P", "--json"]);
    let image = &listed["images"][0];
    assert_eq!((&image["digest"], &image["promotions"]), (&promoted["digest"], &json!([1])), "{listed}");
    assert_eq!(image["signed_by"][0], promoted["key"]);
    let key = promoted["key"].as_str().expect("a key");
    let words =
        ["image", "restore", &there, "--out", "R", "--key", "key", "--plain-http", "--signer", key, "--json"];
    assert_eq!(bem_json(folder, &words)["head"].as_str(), Some(wanted.as_str()));
}

#[test]
fn the_page_on_operating_runs_from_its_first_to_its_last_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/operate.md")).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(root.join("python/bem_client.py"), folder.path().join("bem_client.py"))
        .expect("the client");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let script = commands(&page).replace("127.0.0.1:7420", &free.to_string());
    assert!(12 <= script.matches("bem ").count(), "{script}");
    // Whatever fails, the server ends: else its output would stay open.
    let script = format!("trap 'kill $server 2>/dev/null || true' EXIT\n{script}");
    let followed = shell(folder.path(), &needed(&page), &script);
    assert!(followed.status.success(), "{}", text(&followed));
    let said = text(&followed);
    assert!(said.contains("the same history goes on") && said.contains("promotion 1"), "{said}");
}
