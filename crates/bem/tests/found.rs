//! What new users stumbled over and no other test covers: see docs/findings.md. Clauses: LOG-2, SCC-14.

mod browser;
mod server;

use browser::{Browser, driver};
use serde_json::{Value, json};
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

/// Runs whose reports are looked at: a game whose optimum is known, the world that `bem init` writes, and one with named
/// features and a memory; each with its folder.
fn reported() -> Vec<(&'static str, tempfile::TempDir)> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let retry = format!("python3 {}", examples.join("retry_env.py").display());
    let tasks: [(&str, Vec<&str>); 3] = [
        ("dyck", vec!["dyck", "--budget", "3000"]),
        ("init", vec!["--env-cmd", "python3 world.py", "--budget", "8000"]),
        ("retry", vec!["--env-cmd", &retry, "--budget", "20000"]),
    ];
    let learned = tasks.into_iter().map(|(name, task)| {
        let folder = tempfile::tempdir().expect("a folder");
        if name == "init" {
            let made = bem(folder.path(), &["init", "."]);
            assert!(made.status.success(), "{made:?}");
        }
        let solved = bem(folder.path(), &[&["solve"], &task[..], &["--out", "kept"]].concat());
        assert!(solved.status.code() < Some(2), "{name}: {solved:?}");
        (name, folder)
    });
    learned.collect()
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
    for (name, folder) in reported() {
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
        let wanted = "true true true true true";
        assert_eq!(title, Some(wanted), "{name}: width, return, random, fixed, rules: {browser:?}");
    }
}

/// Words of the machinery that people should not have to read, and counts of one in the plural.
const PRIVATE: [&str; 8] = [
    " 1 contexts",
    "contexts into",
    "contexts as",
    " slot ",
    " 1 steps",
    " 1 gates",
    "hold the best",
    "reward's variance",
];

/// Learns a task, and what the terminal and the report say of it.
fn learned(folder: &Path, task: &[&str]) -> String {
    let solved = bem(folder, &[&["solve"], task, &["--out", "kept"]].concat());
    assert!(solved.status.code() < Some(2), "{task:?}: {solved:?}");
    let report = std::fs::read_to_string(folder.join("kept/report.html")).expect("a report");
    format!("{}\n{report}", text(&solved))
}

#[test]
fn changes_are_said_in_words_of_the_problem() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let check = |what: &str, said: &str| {
        for private in PRIVATE {
            let place = said.find(private);
            let around = place.map(|place| said[place..].lines().next().unwrap_or_default());
            assert_eq!(place, None, "{what}: {private:?} in {around:?}");
        }
    };
    let place = folder.join("game");
    std::fs::create_dir(&place).expect("a folder");
    let game = learned(&place, &["contextual_bandit", "--param", "context_bits=3", "--budget", "6000"]);
    check("a game", &game);
    let mut told = vec![game];
    for (from, task) in [
        ("python", &["--env-cmd", "python3 world.py", "--budget", "15000"][..]),
        ("json", &["--game", "world.json", "--budget", "12000"]),
    ] {
        let made = bem(folder, &["init", "--from", from, from]);
        assert!(made.status.success(), "{made:?}");
        let place = folder.join(from);
        let said = learned(&place, task);
        check(from, &said);
        let exported = bem(&place, &["export", "kept", "--format", "c"]);
        assert!(exported.status.success(), "{exported:?}");
        check(from, &text(&exported));
        told.push(said);
    }
    // What was found is said, once on the terminal and at least once on the page.
    for said in &told {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let count = said.matches(" situations apart instead of ").count();
        assert!(2 <= count, "{said}");
    }
    // What changes an action does not say that none changes, and an own program is called by its script.
    let all = told.concat();
    assert!(!all.contains("earned most so far: no action changes"), "{all}");
    let header = bem(&folder.join("python"), &["export", "kept", "--format", "c"]);
    assert!(text(&header).starts_with("// BEM policy world/0"), "{header:?}");
}

/// How bright paper and ink are, which texts can hardly be told from what is behind them (a contrast below 4.5, as in WCAG),
/// whether anything is wider than the page, and how many folded parts there are and how many of them show what is in them.
const LEGIBLE: &str = r#"
const parts = text => (text.match(/[\d.]+/g) || []).map(Number);
const bright = rgb => {
    const [r, g, b] = rgb.map(part => part / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = part => {
    for (let one = part; one; one = one.parentElement) {
        const colour = parts(getComputedStyle(one).backgroundColor);
        if (colour.length === 3 || 0 < colour[3]) return colour;
    }
    return [255, 255, 255];
};
const ink = part => parts(part.closest('svg') ? getComputedStyle(part).fill : getComputedStyle(part).color);
const shown = [...document.querySelectorAll('body *')].filter(part => part.children.length === 0
    && part.textContent.trim() && 0 < part.getBoundingClientRect().width);
const contrast = part => {
    const [light, dark] = [bright(ink(part)), bright(behind(part))].sort((one, other) => other - one);
    return (light + 0.05) / (dark + 0.05);
};
const folded = [...document.querySelectorAll('details:not([open])')];
return {
    paper: bright(behind(document.body)), ink: bright(ink(document.body)), shown: shown.length,
    faint: shown.filter(part => contrast(part) < 4.5).map(part => part.textContent.trim().slice(0, 40)),
    wide: document.documentElement.clientWidth < document.documentElement.scrollWidth,
    folded: folded.length,
    unfolded: folded.filter(part => part.lastElementChild.checkVisibility()
        && 0 < part.lastElementChild.getBoundingClientRect().height).length,
};
"#;

#[test]
fn the_report_is_legible_in_the_dark_and_on_paper() {
    let driver = driver().expect("chromium and its driver; `cargo xtask tools` installs them");
    for (name, folder) in reported() {
        let browser = Browser::open(&driver, &folder.path().join("browser"), &[]);
        browser.go(&format!("file://{}", folder.path().join("kept/report.html").display()));
        let seen = |media: &str, scheme: &str, width: u32| -> Value {
            let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
            browser.command("Emulation.setEmulatedMedia", &json!({ "media": media, "features": features }));
            let size = json!({ "width": width, "height": 1100, "deviceScaleFactor": 1, "mobile": false });
            browser.command("Emulation.setDeviceMetricsOverride", &size);
            let seen = browser.run(LEGIBLE);
            assert!(20 < seen["shown"].as_u64().expect("a count"), "{name}: {seen}");
            let faults = (&seen["faint"], &seen["wide"]);
            assert_eq!(faults, (&json!([]), &json!(false)), "{name}, {media}, {scheme}: {seen}");
            seen
        };
        let bright = |seen: &Value, what: &str| seen[what].as_f64().expect("a number");
        let light = seen("screen", "light", 1000);
        assert!(0.8 < bright(&light, "paper") && bright(&light, "ink") < 0.2, "{name}: {light}");
        let dark = seen("screen", "dark", 1000);
        assert!(bright(&dark, "paper") < 0.1 && 0.5 < bright(&dark, "ink"), "{name}: {dark}");
        // On a screen what is folded is folded; nobody can unfold paper.
        let folded = dark["folded"].as_u64().expect("a count");
        assert!(0 < folded && dark["unfolded"] == json!(0), "{name}: {dark}");
        // A sheet of A4 between its margins, printed by someone who reads in the dark.
        for scheme in ["light", "dark"] {
            let paper = seen("print", scheme, 700);
            assert!(bright(&paper, "paper") == 1.0 && bright(&paper, "ink") == 0.0, "{name}: {paper}");
            assert_eq!(paper["unfolded"], json!(folded), "{name}: {paper}");
        }
        let printed = browser.command("Page.printToPDF", &json!({ "printBackground": true }));
        let pages = printed["data"].as_str().expect("a document");
        // The first letters of a PDF, and more than an empty page has.
        assert!(pages.starts_with("JVBERi0") && 20_000 < pages.len(), "{name}: {} letters", pages.len());
    }
}

#[test]
fn reasons_of_a_policy_with_memory_are_ranges_that_a_person_would_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let world = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worlds/gauge.py");
    let world = format!("python3 {}", world.display());
    let said = learned(folder, &["--env-cmd", &world, "--budget", "20000"]);
    let page = &said[said.find("<h3 id=reasons>").expect("reasons are on the page")..];
    let reasons: Vec<&str> =
        page.split("<dd>").skip(1).filter_map(|rest| rest.split("</dd>").next()).collect();
    assert!(reasons.iter().any(|reason| reason.contains(" ago) ")), "it remembers: {reasons:?}");
    for reason in &reasons {
        // A union is left where the inputs do not tell which range is seen: where a bit of the number is not remembered.
        assert!(reason.matches(" or ").count() <= 2, "{reason}");
        assert!(!reason.contains("0 as "), "codes that nobody can remember: {reason}");
    }
    assert!(!said.contains("the rules say what becomes of every remembered bit"), "{said}");
    // No optimum is known, so that what was lost is told by what the final policy earns.
    assert!(
        said.contains("Short of the final policy's return") && !said.contains("Cumulative regret"),
        "{said}"
    );
    // What the reasons speak of can be asked about by the same names.
    let asked = bem(folder, &["explain", "kept", "--obs", "gauge=0,asked=1,gauge (1 step ago)=70"]);
    assert!(asked.status.success() && text(&asked).contains(" because "), "{asked:?}");
    let refused = bem(folder, &["explain", "kept", "--obs", "gauge=0,asked=1,gauge (9 steps ago)=1"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused).contains("remembered are gauge (1 step ago)"), "{refused:?}");
}
