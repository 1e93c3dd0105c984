//! What tests of the guide and of READMEs share: the shell blocks of a page, what the page says it needs, and a shell that
//! has nothing else. It knows no page by name.
//!
//! The shell begins with an empty environment. Its path is one folder with links to `sh`, the shell in which a reader types,
//! and to the programs that the page names; its home is empty. A page that leaves out what its commands need fails, on the
//! machine of whoever has it too. Clauses: GLE-9.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What comes with a program in every distribution and is looked up in the path by it.
const COMES_WITH: &[(&str, &[&str])] = &[("gcc", &["as", "ld"])];
/// What the shell says when it has come to the end of its script.
const END: &str = "the last command was reached";

/// Runs lines of a shell in a folder, with these programs and no others; the first line that fails ends it, and an
/// end before the last line is a failure.
pub fn shell(folder: &Path, programs: &[String], script: &str) -> Output {
    let place = tempfile::tempdir().expect("a folder for programs and home");
    let (path, home) = (place.path().join("bin"), place.path().join("home"));
    for made in [&path, &home] {
        std::fs::create_dir(made).expect("a folder");
    }
    link(Path::new("/bin/sh"), &path.join("sh"));
    for program in programs {
        let with = COMES_WITH.iter().find(|(name, _)| name == program).map_or(&[][..], |(_, others)| others);
        for name in [program.as_str()].iter().chain(with) {
            link(&installed(name), &path.join(name));
        }
    }
    let output = Command::new("/bin/sh")
        .args(["-e", "-c", &format!("{script}\necho '{END}'\n")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", &path)
        .env("HOME", &home)
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    let is_through = said.lines().any(|line| line == END);
    assert_eq!(is_through, output.status.success(), "the script ends early: {output:?}");
    output
}

/// The shell blocks of a page, in order. A command stands in a block of kind `sh`; where the page cannot have what it needs, the
/// kind names that in parentheses, and the block is not run.
pub fn commands(page: &str) -> String {
    let mut script = String::new();
    let mut block: Option<&str> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(kind), None) => block = Some(kind),
            (Some(_), Some(_)) => block = None,
            (None, Some("sh")) => script += &format!("{line}\n"),
            (None, Some(kind)) if kind.starts_with("sh (") => {}
            (None, Some(_)) => {
                assert!(!line.starts_with("bem "), "a command outside of a shell block: {line}")
            }
            (None, None) => {}
        }
    }
    assert!(block.is_none(), "a block of the page does not end");
    script
}

/// The programs that a page says its reader needs: those of its paragraph that begins with "You need".
pub fn needed(page: &str) -> Vec<String> {
    let mut lines = page.lines().skip_while(|line| !line.starts_with("You need "));
    let paragraph: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let programs: Vec<String> =
        paragraph.join(" ").split('`').skip(1).step_by(2).map(|name| name.to_string()).collect();
    assert!(programs.iter().any(|name| name == "bem"), "the page does not say what its reader needs");
    programs
}

/// Where a program is installed: `bem` is the one under test. A program proper goes before a script of its name, such as
/// those by which version managers look into the environment.
fn installed(name: &str) -> PathBuf {
    if name == "bem" {
        return PathBuf::from(env!("CARGO_BIN_EXE_bem"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut found: Vec<PathBuf> = found.filter(|file| file.is_file()).collect();
    found.sort_by_key(|file| std::fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"#!")));
    found
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("{name} is not installed; `cargo xtask test` installs what tests need"))
}

/// A link whose target is followed to its end: a program finds its own parts from where it lies.
fn link(program: &Path, name: &Path) {
    let program = program.canonicalize().expect("a program");
    std::os::unix::fs::symlink(program, name).expect("a link");
}
