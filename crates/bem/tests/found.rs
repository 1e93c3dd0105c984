//! What new users stumbled over and no other test covers: see docs/findings.md. Clauses: LOG-2, SCC-14.

use std::path::Path;
use std::process::{Command, Output};

fn bem(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bem"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .output()
        .expect("the program starts")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn verify_finds_a_deleted_snapshot_and_a_deleted_blob() {
    let folder = tempfile::tempdir().expect("a folder");
    let solved = bem(folder.path(), &["solve", "parity", "--param", "n=5", "--out", "kept", "--key", "key"]);
    assert!(solved.status.success(), "{solved:?}");
    let verify = || bem(folder.path(), &["verify", "kept"]);
    assert_eq!(verify().status.code(), Some(0), "{}", text(&verify()));
    let ledger = folder.path().join("kept/ledger");
    let names: Vec<_> =
        std::fs::read_dir(&ledger).expect("a ledger").map(|entry| entry.expect("an entry").path()).collect();
    for kind in ["snapshot-", "blob-"] {
        let is_kind = |path: &&std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(kind))
        };
        let deleted = names.iter().filter(is_kind).max().expect("there is one of the kind");
        let bytes = std::fs::read(deleted).expect("its bytes");
        std::fs::remove_file(deleted).expect("it is deleted");
        let said = verify();
        assert_eq!(said.status.code(), Some(1), "{deleted:?}: {}", text(&said));
        assert!(text(&said).starts_with("broken at entry "), "{}", text(&said));
        std::fs::write(deleted, bytes).expect("it is put back");
    }
    assert_eq!(verify().status.code(), Some(0), "{}", text(&verify()));
}

/// The page in a frame of this width: how wide its content is, and whether return, baselines and rules can be seen.
const MEASURE: &str = r#"
<iframe id="page" width="400" height="2000" srcdoc="PAGE"></iframe>
<script>
document.getElementById("page").addEventListener("load", event => {
    const page = event.target.contentDocument, width = page.documentElement.clientWidth;
    const seen = word => [...page.querySelectorAll("body *")].some(part => {
        const box = part.getBoundingClientRect();
        return part.children.length === 0 && part.textContent.includes(word) && 0 < box.width && box.right <= width + 1;
    });
    document.title = [page.documentElement.scrollWidth <= width, seen("mean return"), seen("random play"),
        seen("best fixed action"), seen("What it does")].join(" ");
});
</script>"#;

#[test]
fn the_report_shows_the_standing_in_a_window_of_400_pixels() {
    let folder = tempfile::tempdir().expect("a folder");
    let solved = bem(folder.path(), &["solve", "dyck", "--budget", "3000", "--out", "kept"]);
    assert!(solved.status.code() < Some(2), "{solved:?}");
    let page = std::fs::read_to_string(folder.path().join("kept/report.html")).expect("a report");
    let quoted = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = folder.path().join("frame.html");
    std::fs::write(&frame, MEASURE.replace("PAGE", &quoted)).expect("a page");
    let browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("browser").display()))
        .arg(format!("file://{}", frame.display()))
        .output()
        .expect("chromium starts; `cargo xtask tools` installs it");
    let seen = text(&browser);
    let title = seen.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    assert_eq!(title, Some("true true true true true"), "width, return, random, fixed, rules: {browser:?}");
}
