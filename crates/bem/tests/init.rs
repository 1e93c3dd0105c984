//! `bem init` and the guide: what they say is run, from the first command to the last. Clauses: GLE-9.

mod guide;

use guide::{commands, needed, shell};
use std::path::{Path, PathBuf};

/// Compiles every program in C that a page shows beside the header that it includes, which the page's commands have written
/// somewhere below the folder, with all warnings as errors, and runs it; how many there are.
fn compile_programs(folder: &Path, page: &str) -> usize {
    let programs = page.split("\n```c\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default());
    let mut count = 0;
    for program in programs {
        let own = program.lines().find_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
        let own = own.unwrap_or_else(|| panic!("a program without the header of a policy: {program}"));
        let header = below(folder, own).unwrap_or_else(|| panic!("the page's commands write no {own}"));
        let place = header.parent().expect("a file is in a folder");
        std::fs::write(place.join("shown.c"), program).expect("a program");
        let script = "gcc -std=c99 -Wall -Wextra -pedantic -Werror -o shown shown.c\n./shown";
        let ran = shell(place, &["gcc".to_string()], script);
        assert!(ran.status.success(), "{program}\n{ran:?}");
        count += 1;
    }
    count
}

/// The file of a name in a folder or below it.
fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.into_iter().find_map(|path| match path.is_dir() {
        true => below(&path, name),
        false => path.ends_with(name).then_some(path),
    })
}

#[test]
fn what_init_writes_is_learned_as_its_readme_says() {
    for (from, written) in
        [("python", "policy.h"), ("json", "policy.py"), ("csv", "policy.py"), ("log", "ads.policy")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let made = shell(folder.path(), &["bem".to_string()], &format!("bem init --from {from} mine"));
        assert!(made.status.success(), "{made:?}");
        let place = folder.path().join("mine");
        let readme = std::fs::read_to_string(place.join("README.md")).expect("a README");
        let script = commands(&readme);
        assert_eq!(script.lines().filter(|line| line.starts_with("bem ")).count(), 3, "{script}");
        let learned = shell(&place, &needed(&readme), &script);
        assert!(learned.status.success(), "{from}: {learned:?}");
        assert!(place.join(written).exists(), "{from}");
        // What is learned from rows is held against them by the command itself, whose exit code says so.
        if ["csv", "log"].contains(&from) {
            continue;
        }
        assert!(place.join("run/report.html").exists(), "{from}");
        // What it learns is worth more than the best baseline.
        let figures = std::fs::read_to_string(place.join("run/evaluation.json")).expect("figures");
        let figures: serde_json::Value = serde_json::from_str(&figures).expect("JSON");
        let measured = &figures["policies"][0]["measured"];
        let low = measured["policy"]["interval95"][0].as_i64().expect("a number");
        for name in ["random", "best_fixed", "first"] {
            let high = measured["baselines"][name]["interval95"][1].as_i64().expect("a number");
            assert!(high < low, "{from}, {name}: {measured}");
        }
    }
}

#[test]
fn init_replaces_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("world.py"), "mine").expect("a file");
    let refused = shell(folder.path(), &["bem".to_string()], "bem init .");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("world.py is there already: nothing was written"), "{error}");
    assert_eq!(std::fs::read(folder.path().join("world.py")).expect("it is there"), b"mine");
    assert!(!folder.path().join("README.md").exists());
}

#[test]
fn the_pages_of_the_guide_run_from_their_first_to_their_last_command() {
    let guide: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(&guide).expect("the guide").map(|page| page.expect("a page").path()).collect();
    pages.sort();
    assert!(5 <= pages.len(), "{pages:?}");
    // The service's page starts a server, and that of people too; their tests are with the service's. Python's run in Python.
    let elsewhere = ["service.md", "people.md", "python.md"];
    let mut programs = 0;
    for page in pages.iter().filter(|page| !elsewhere.iter().any(|name| page.ends_with(name))) {
        let text = std::fs::read_to_string(page).expect("a page");
        let script = commands(&text);
        assert!(2 <= script.matches("bem ").count(), "{page:?}: {script}");
        let folder = tempfile::tempdir().expect("a folder");
        let followed = shell(folder.path(), &needed(&text), &script);
        assert!(followed.status.success(), "{page:?}: {followed:?}");
        programs += compile_programs(folder.path(), &text);
    }
    assert_eq!(programs, 2, "one program in C that is shown bits, and one that is shown named values");
}

/// What stands in the block of a page that begins with a line of this beginning.
fn block<'p>(page: &'p str, beginning: &str) -> Vec<&'p str> {
    let lines = page.lines().skip_while(|line| !line.starts_with(beginning));
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("```")).collect();
    assert!(!lines.is_empty(), "the page shows nothing that begins with {beginning:?}");
    lines
}

/// What a command printed, without how long it took.
fn timeless(printed: &[u8]) -> Vec<String> {
    let printed = String::from_utf8_lossy(printed);
    let lines =
        printed.lines().map(|line| match line.strip_suffix(" ms").and_then(|line| line.rsplit_once(", ")) {
            Some((rest, time)) if time.bytes().all(|letter| letter.is_ascii_digit()) => rest.to_string(),
            _ => line.trim_end().to_string(),
        });
    lines.collect()
}

/// Whether a page shows what is printed: the same lines, in order; a line of three dots stands for any that are left out.
fn is_shown(shown: &[&str], printed: &[String]) -> bool {
    let mut rest = printed;
    for part in shown.split(|line| line.trim() == "...").filter(|part| !part.is_empty()) {
        let place = rest.windows(part.len()).position(|lines| lines == part);
        let Some(place) = place else { return false };
        rest = &rest[place + part.len()..];
    }
    true
}

/// The result as a page shows it: without the list of changes, and to where it is kept.
fn shortened(printed: &[String], beginning: &str) -> String {
    let is_change = |line: &&String| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|word| word.parse::<u64>().is_ok()) && line.starts_with("   ")
    };
    let result: Vec<&String> = printed.iter().skip_while(|line| !line.starts_with(beginning)).collect();
    let kept = result.iter().find(|line| line.starts_with("  kept in")).map(|line| line.as_str());
    let head = result.iter().take_while(|line| !is_change(line)).map(|line| line.as_str());
    head.chain(["  ..."]).chain(kept).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_first_example_of_the_readme_runs() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let is_asked = readme.lines().any(|line| line == "## Is it for you?");
    assert!(is_asked && readme.contains("It does not fit "), "README.md does not say for whom it is");
    let script = commands(&readme);
    assert!(script.contains("bem solve --env-cmd"), "{script}");
    let folder = tempfile::tempdir().expect("a folder");
    let followed = shell(folder.path(), &needed(&readme), &script);
    assert!(followed.status.success(), "{followed:?}");
    // What it shows is what is printed.
    let beginning = "python3 world.py (seed 1): ";
    let (shown, printed) = (block(&readme, beginning), timeless(&followed.stdout));
    let wanted = shortened(&printed, beginning);
    assert!(is_shown(&shown, &printed), "README.md shows another result; it is now:\n\n{wanted}\n");
    for line in ["  return ", "  baselines ", "  gain ", "  steps ", "  circuit ", "  kept in "] {
        assert!(shown.iter().any(|shown| shown.starts_with(line)), "README.md does not show {line:?}");
    }
    let explained = shell(&folder.path().join("machine"), &needed(&readme), "bem explain run");
    let (shown, printed) = (block(&readme, "What it does ("), timeless(&explained.stdout));
    let rules: Vec<String> =
        printed.into_iter().skip_while(|line| !line.starts_with("What it does (")).collect();
    assert!(is_shown(&shown, &rules), "README.md shows other rules; they are now:\n\n{}\n", rules.join("\n"));
}

#[test]
fn a_page_that_shows_another_number_is_found_out() {
    let printed =
        ["a 1", "  steps  30 in 2 episodes, 812 ms", "   12  install  x", "  kept in  run"].join("\n");
    let printed = timeless(printed.as_bytes());
    assert_eq!(shortened(&printed, "a "), "a 1\n  steps  30 in 2 episodes\n  ...\n  kept in  run");
    for (shown, fits) in [
        (&["a 1", "  steps  30 in 2 episodes"][..], true),
        (&["a 1", "  ...", "  kept in  run"], true),
        (&["a 2", "  ...", "  kept in  run"], false),
        (&["a 1", "  kept in  run"], false),
        (&["  kept in  run", "  ...", "a 1"], false),
    ] {
        assert_eq!(is_shown(shown, &printed), fits, "{shown:?}");
    }
}
