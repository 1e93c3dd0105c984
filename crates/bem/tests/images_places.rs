//! Where the files of a server lie, and who may serve them. Clause: IMG-1.

mod images_kit;

use images_kit::{Server, bem, text};
use serde_json::Value;
use std::process::Command;

#[test]
fn settings_beside_the_state_are_read_and_the_folder_of_the_system_is_not_served_as_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir_all(folder.join("S/etc")).expect("a folder");
    std::fs::create_dir(folder.join("shared")).expect("a folder");
    std::fs::write(folder.join("S/etc/config.toml"), "experience_steps = 4096\n").expect("settings");
    let catalog = format!(
        "[[root]]\nname = \"config\"\npath = \"{}\"\nalias = \"CONFIG_ROOT\"\n",
        folder.join("shared").display()
    );
    std::fs::write(folder.join("S/etc/catalog.toml"), catalog).expect("settings");
    let server = Server::start(folder, "S", &["--key", "key", "--image-every", "never"]);
    server.make_world();
    let (status, tools) = server.ask("GET", "/v1/tools", &Value::Null);
    assert!(status == 200 && tools.to_string().contains("config"), "{tools}");
    server.stop();
    assert!(folder.join("S/log/bem.log").exists());
    // A file that is named must fit what the history began with; one that lies beside is said and passed over.
    std::fs::write(folder.join("other.toml"), "").expect("a file");
    let refused = bem(folder, &["serve", "--state", "S", "--key", "key", "--config", "other.toml"]);
    assert!(text(&refused).contains("experience_steps is 4096 in this run"), "{}", text(&refused));
    std::fs::write(folder.join("S/etc/config.toml"), "experience_steps = 8192\n").expect("settings");
    let server = Server::start(folder, "S", &["--key", "key", "--image-every", "never"]);
    server.drive(0..3, false);
    server.stop();
    // Root inside a namespace of its own is root for this.
    let program = env!("CARGO_BIN_EXE_bem");
    let words = ["--map-root-user", program, "serve", "--state", "/var/lib/bem", "--listen", "127.0.0.1:0"];
    let refused = Command::new("unshare")
        .args(words)
        .env("XDG_STATE_HOME", folder.join("keys"))
        .output()
        .expect("unshare");
    assert!(text(&refused).contains("/var/lib/bem is not served as root"), "{}", text(&refused));
}
