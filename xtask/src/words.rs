//! Words of the sources: which type names have more than one meaning, words that nobody outside would know, and the lists of
//! files in CONTRIBUTING.md that a newcomer follows.
//!
//! `cargo xtask words` writes docs/words.md from the first sentence above each type; lint fails when the page is not the one
//! that would be written, when a private word is back, or when a list names other files than those in which its example is.

use crate::tidy::files;
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Words that say less than the words of the field: planner, fitted values, finite-state memory, incumbent, posterior draw.
const PRIVATE: [&str; 7] = [
    "prosp\u{65}ct",
    "outl\u{6f}ok",
    "foresi\u{67}ht",
    "recoll\u{65}ct",
    "ling\u{65}ring",
    "wil\u{64}",
    "fl\u{79}",
];
/// A word that has its plain use in sentences, and must not be the name of a type.
const PRIVATE_TYPE: &str = "han\u{64}";
/// How the heading of a checked list in CONTRIBUTING.md begins.
const LIST: &str = "Files that name `";
/// Where the page is kept.
const PAGE: &str = "docs/words.md";

/// Where a type is made, and what the sentence above it says.
struct Meaning {
    place: String,
    sentence: String,
}

/// Sources that are no tests, with their names below the root.
fn sources(root: &Path) -> Result<Vec<(String, String)>> {
    let is_test =
        |name: &str| name.contains("/tests/") || name.ends_with("tests.rs") || name.ends_with("testing.rs");
    let mut found = Vec::new();
    for path in files(root, &[".rs"])? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if !is_test(&name) && (name.starts_with("crates/") || name.starts_with("xtask/")) {
            found.push((name, std::fs::read_to_string(&path)?));
        }
    }
    Ok(found)
}

/// The name of the type that a line begins to define.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let rest = ["struct ", "enum ", "trait "].iter().find_map(|word| line.strip_prefix(word))?;
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let name = &rest[..end];
    name.starts_with(|letter: char| letter.is_ascii_uppercase()).then_some(name)
}

/// The first sentence of the comment that ends above this line.
fn sentence(lines: &[&str], line: usize) -> String {
    let above = lines[..line].iter().rev().map(|line| line.trim_start());
    let mut comment: Vec<&str> = above
        .take_while(|line| line.starts_with("///") || line.starts_with("#["))
        .filter_map(|line| line.strip_prefix("///"))
        .collect();
    comment.reverse();
    let text = comment.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let end = text.find(". ").or_else(|| text.find("; ")).unwrap_or(text.len());
    text[..end].trim_end_matches('.').replace('|', "\\|")
}

/// The page of all type names that are defined more than once.
fn page(root: &Path) -> Result<String> {
    let mut types: BTreeMap<String, Vec<Meaning>> = BTreeMap::new();
    for (place, text) in sources(root)? {
        let lines: Vec<&str> = text.lines().collect();
        // What stands below the mark of tests belongs to them.
        let end = lines.iter().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(lines.len());
        for (number, line) in lines[..end].iter().enumerate() {
            if let Some(name) = defined(line) {
                let meaning = Meaning { place: place.clone(), sentence: sentence(&lines, number) };
                types.entry(name.to_string()).or_default().push(meaning);
            }
        }
    }
    types.retain(|_, meanings| 1 < meanings.len());
    let mut text = String::from(
        "# Type names with more than one meaning\n\n\
         Written by `cargo xtask words` from the sentence above each definition; lint fails when it is out of date. A name\n\
         alone is that of its room: two rooms may use the same plain word of the field, and no file imports both. Types\n\
         without a sentence are seen in their own file only. [The glossary](glossary.md) has the words of the whole project.\n\n\
         | name | where | what it is there |\n|---|---|---|\n",
    );
    for (name, meanings) in &types {
        for Meaning { place, sentence } in meanings {
            writeln!(text, "| {name} | `{place}` | {sentence} |")?;
        }
    }
    Ok(text)
}

/// Writes the page.
pub fn write(root: &Path) -> Result<()> {
    std::fs::write(root.join(PAGE), page(root)?)?;
    println!("{PAGE}");
    Ok(())
}

/// The words of a text, in lower case; a name such as `old_word` or `OldWord` is several.
fn parts(text: &str) -> BTreeSet<String> {
    let mut spaced = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii_uppercase() {
            spaced.push(' ');
        }
        spaced.push(letter.to_ascii_lowercase());
    }
    spaced.split(|letter: char| !letter.is_ascii_lowercase()).map(str::to_string).collect()
}

/// Pages that are read: those of docs and of the root.
fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for path in files(root, &[".md"])? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if name.starts_with("docs/") || !name.contains('/') {
            found.push((name, std::fs::read_to_string(&path)?));
        }
    }
    Ok(found)
}

fn check_private(root: &Path) -> Result<()> {
    let (sources, pages) = (sources(root)?, pages(root)?);
    ensure!(20 < pages.len(), "{} pages were found to be read", pages.len());
    for (name, text) in &sources {
        let types = text.lines().filter_map(defined);
        if let Some(found) = types.into_iter().find(|name| parts(name).contains(PRIVATE_TYPE)) {
            bail!(
                "{name}: type {found}: {PRIVATE_TYPE:?} is a private word: docs/glossary.md has the field's"
            );
        }
    }
    for (name, text) in sources.iter().chain(&pages) {
        let known = parts(text);
        if let Some(word) = PRIVATE.iter().find(|word| known.contains(**word)) {
            // The names of random streams are part of every history and stay as they are.
            let is_stream = |line: &str| line.contains("Prng::stream");
            let place = text.lines().position(|line| parts(line).contains(*word) && !is_stream(line));
            if let Some(place) = place {
                bail!("{name}:{}: {word:?} is a private word: docs/glossary.md has the field's", place + 1);
            }
        }
    }
    Ok(())
}

/// Every list of CONTRIBUTING.md names just the files in which its example stands as a word.
fn check_lists(root: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md"))?;
    let mut known = sources(root)?;
    for path in files(root, &[".jsonl", ".txt"])? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if name.starts_with("crates/") || name.starts_with("golden/") {
            known.push((name, std::fs::read_to_string(&path).unwrap_or_default()));
        }
    }
    let mut lists = 0;
    for block in text.split(LIST).skip(1) {
        let (example, rest) = block.split_once('`').context("an example ends with a back quote")?;
        let list = rest.split("\n\n").next().unwrap_or_default();
        let listed: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
        let found: BTreeSet<&str> =
            known.iter().filter(|(_, text)| has_word(text, example)).map(|(name, _)| name.as_str()).collect();
        let missing: Vec<_> = found.difference(&listed).collect();
        let stale: Vec<_> = listed.difference(&found).collect();
        ensure!(
            missing.is_empty() && stale.is_empty(),
            "CONTRIBUTING.md, files that name {example}: not listed {missing:?}, listed and not found {stale:?}"
        );
        lists += 1;
    }
    ensure!(4 < lists, "CONTRIBUTING.md has {lists} lists of files, and five things are added often");
    Ok(lists)
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(place, _)| {
        !text[..place].ends_with(is_part) && !text[place + word.len()..].starts_with(is_part)
    })
}

/// Names the first breach.
pub fn check(root: &Path) -> Result<()> {
    check_private(root)?;
    let lists = check_lists(root)?;
    let is_current =
        std::fs::read_to_string(root.join(PAGE)).is_ok_and(|text| text == page(root).unwrap_or_default());
    ensure!(is_current, "{PAGE} is not what `cargo xtask words` writes");
    println!("words: {lists} lists of files, {PAGE} is current");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contributing_lists_is_where_the_examples_are_and_no_private_word_is_back() {
        check(&crate::root()).unwrap();
    }

    #[test]
    fn definitions_and_their_sentences_are_found() {
        let lines =
            ["/// A gate. It has", "/// two inputs.", "#[derive(Debug)]", "pub(crate) struct Gate<'a> {"];
        assert_eq!(defined(lines[3]), Some("Gate"));
        assert_eq!(sentence(&lines, 3), "A gate");
        assert_eq!(defined("    let structure = 1;"), None);
        assert_eq!(defined("pub fn trait_of() {"), None);
        assert!(parts("OldWord and other_word").is_superset(&parts("old word other")));
        assert!(has_word("use Gate;", "Gate") && !has_word("Gateway", "Gate"));
    }
}
