//! House rules that no other tool checks: every file says first what it is, none grows without end, nothing
//! unfinished stays, and every page that a page names is there.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Words that mark unfinished work or speak of something other than the project.
const UNWANTED: &[&str] =
    &["TO\u{44}O", "FIX\u{4d}E", "XX\u{58}:", "HAC\u{4b}:", "/wor\u{6b}/", "crates.io/ap\u{69}"];

/// The aim is 400 lines; beyond this a file has more than one subject and is split.
const LINES_MAX: usize = 700;

/// Files below `folder` that git knows and that end like this.
pub fn files(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let listed = crate::output("git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    let wanted = |name: &&str| endings.iter().any(|ending| name.ends_with(ending));
    Ok(listed.lines().filter(wanted).map(|name| folder.join(name)).filter(|path| path.exists()).collect())
}

/// Reads every source file once and names the first breach.
pub fn check(root: &Path) -> Result<()> {
    let sources = files(root, &[".rs"])?;
    for path in &sources {
        let text = std::fs::read_to_string(path)?;
        let name = path.strip_prefix(root).unwrap_or(path).display();
        if !text.starts_with("//!") && !text.starts_with("#!") {
            bail!("{name}: a file starts with `//!` and says what it is");
        }
        let lines = text.lines().count();
        if LINES_MAX < lines {
            bail!("{name}: {lines} lines; beyond {LINES_MAX} a file is split by subject");
        }
    }
    for path in files(root, &[".rs", ".md", ".toml", ".py", ".sh"])? {
        let text = std::fs::read_to_string(&path)?;
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = UNWANTED.iter().find(|word| line.contains(**word)) {
                let name = path.strip_prefix(root).unwrap_or(&path).display();
                bail!("{name}:{}: {word:?} does not belong here", number + 1);
            }
        }
    }
    for path in files(root, &[".md"])? {
        let text = std::fs::read_to_string(&path)?;
        if let Some(link) = links(&text).find(|link| !path.with_file_name(link).exists()) {
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            bail!("{name}: the link to {link:?} leads nowhere");
        }
    }
    let text = std::fs::read_to_string(root.join(MAP))?;
    if let Some((line, path)) = strayed_paths(&text, &|path| root.join(path).exists()).first() {
        bail!("{MAP}:{line}: `{path}` leads nowhere");
    }
    println!("tidy: {} source files", sources.len());
    Ok(())
}

/// The page whose paths lead a newcomer.
const MAP: &str = "ARCHITECTURE.md";

/// The paths in back quotes that are not there, with their lines. A path begins at the root or under `crates/`, or lies beside the
/// one before it in its row or paragraph.
fn strayed_paths<'t>(text: &'t str, exists: &dyn Fn(&str) -> bool) -> Vec<(usize, &'t str)> {
    let (mut before, mut is_code, mut strayed) = (String::new(), false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.starts_with("```");
        if line.is_empty() || line.starts_with('|') {
            before.clear();
        }
        for path in line.split('`').skip(1).step_by(2).filter(|path| !is_code && is_path(path)) {
            let folder = before.rsplit_once('/').map_or("", |(folder, _)| folder);
            let places = [path.to_string(), format!("crates/{path}"), format!("{folder}/{path}")];
            match places.into_iter().find(|place| !place.starts_with('/') && exists(place)) {
                Some(place) => before = place.trim_end_matches('/').to_string(),
                None => strayed.push((number + 1, path)),
            }
        }
    }
    strayed
}

/// Whether something in back quotes is a path: a file of sources, or a folder. Capitals stand for a name.
fn is_path(text: &str) -> bool {
    let is_plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-./".contains(letter);
    text.chars().all(is_plain) && (text.contains('/') || text.ends_with(".rs"))
}

/// The files that a page links to, without what stands behind `#`; addresses elsewhere are left out.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains(':') && !file.contains(' '))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_keeps_the_house_rules() {
        super::check(&crate::root()).unwrap();
    }

    #[test]
    fn paths_of_the_map_lie_at_the_root_under_crates_or_beside_the_one_before() {
        let there =
            ["docs/a.md", "crates/x/src/one.rs", "crates/x/src/two/three.rs", "crates/x/src/two/four.rs"];
        let strayed = |text| super::strayed_paths(text, &|path| there.contains(&path));
        assert_eq!(
            strayed("| `docs/a.md` |\n| `x/src/one.rs`, `two/three.rs`, `four.rs`, `call()`, `NAME.rs` |"),
            []
        );
        assert_eq!(
            strayed("`x/src/one.rs`\n\n`one.rs`, `x/src/none.rs`"),
            [(3, "one.rs"), (3, "x/src/none.rs")]
        );
    }

    #[test]
    fn links_are_the_files_that_a_page_names() {
        let text = "[a](one.md) and [b](two.md#part), [c](#here), [d](https://e.org/x.md), `f[0](x, y)`";
        assert_eq!(super::links(text).collect::<Vec<_>>(), ["one.md", "two.md"]);
    }
}
