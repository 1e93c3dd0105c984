//! Words of the sources: which type names have more than one meaning, words that nobody outside would know, and the lists of
//! files in CONTRIBUTING.md that a newcomer follows.
//!
//! `cargo xtask words` writes docs/words.md from the first sentence above each type; lint fails when the page is not the one
//! that would be written, when two types of one name have the same sentence, when a private word is back, or when a list names
//! other files than those in which its example is.

use crate::tidy::files;
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// How words begin that say less than the words of the field: planner, fitted values, finite-state memory, incumbent, posterior
/// draw, repeated action, invalid.
const PRIVATE: [&str; 9] = [
    "prosp\u{65}ct",
    "outl\u{6f}ok",
    "foresi\u{67}ht",
    "fores\u{65}e",
    "fores\u{61}w",
    "recoll\u{65}ct",
    "ling\u{65}r",
    "wil\u{64}",
    "fl\u{79}",
];
/// A word of the field that begins like one of them.
const PLAIN: &str = "wil\u{64}card";
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

/// Sources with their names below the root.
fn all_sources(root: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for path in files(root, &[".rs"])? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if name.starts_with("crates/") || name.starts_with("xtask/") {
            found.push((name, std::fs::read_to_string(&path)?));
        }
    }
    Ok(found)
}

/// Those that are no tests.
fn sources(root: &Path) -> Result<Vec<(String, String)>> {
    let is_test =
        |name: &str| name.contains("/tests/") || name.ends_with("tests.rs") || name.ends_with("testing.rs");
    Ok(all_sources(root)?.into_iter().filter(|(name, _)| !is_test(name)).collect())
}

/// The name that a text begins with, if it is one of a type.
fn type_name(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
    let name = &text[..end];
    name.starts_with(|letter: char| letter.is_ascii_uppercase()).then_some(name)
}

/// The name of the type that a line begins to define: a structure, an enumeration, a trait, another name of a type (those of
/// an `impl` are indented and have no meaning of their own), or an enumeration that a macro makes of `Name, "what it is", {`.
fn defined(line: &str) -> Option<&str> {
    let (is_indented, line) = (line.starts_with(' '), line.trim_start());
    if let Some(name) = type_name(line)
        && line[name.len()..].starts_with(", \"")
        && line.ends_with("\", {")
    {
        return Some(name);
    }
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let words: &[&str] =
        if is_indented { &["struct ", "enum ", "trait "] } else { &["struct ", "enum ", "trait ", "type "] };
    type_name(words.iter().find_map(|word| line.strip_prefix(word))?)
}

/// The first sentence at the head of a file: what it is for.
fn head(lines: &[&str]) -> String {
    let comment: Vec<&str> = lines.iter().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    first_sentence(&comment.join(" "))
}

/// A text up to its first stop.
fn first_sentence(text: &str) -> String {
    let end = text.find(". ").or_else(|| text.find("; ")).unwrap_or(text.len());
    text[..end].trim_end_matches('.').replace('|', "\\|")
}

/// The first sentence of the comment that ends above this line; attributes may stand between, in several lines too.
fn sentence(lines: &[&str], line: usize) -> String {
    let (mut comment, mut is_within) = (Vec::new(), false);
    for above in lines[..line].iter().rev().map(|line| line.trim()) {
        let is_attribute = above.starts_with("#[");
        if !is_within && let Some(said) = above.strip_prefix("///") {
            comment.push(said.trim());
        } else if is_attribute || is_within || above.ends_with(")]") {
            is_within = !is_attribute;
        } else {
            break;
        }
    }
    comment.reverse();
    first_sentence(&comment.join(" "))
}

/// All type names that are defined more than once, with what each is.
fn ambiguous(root: &Path) -> Result<BTreeMap<String, Vec<Meaning>>> {
    let mut types: BTreeMap<String, Vec<Meaning>> = BTreeMap::new();
    for (place, text) in sources(root)? {
        let lines: Vec<&str> = text.lines().collect();
        // What stands below the mark of tests belongs to them.
        let end = lines.iter().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(lines.len());
        for (number, line) in lines[..end].iter().enumerate() {
            if let Some(name) = defined(line) {
                let sentence = match sentence(&lines, number) {
                    none if none.is_empty() => format!("of: {}", head(&lines)),
                    sentence => sentence,
                };
                let meaning = Meaning { place: place.clone(), sentence };
                types.entry(name.to_string()).or_default().push(meaning);
            }
        }
    }
    types.retain(|_, meanings| 1 < meanings.len());
    Ok(types)
}

/// The first name that has the same sentence twice, with the sentence and both places: such a row tells nobody which is which.
fn repeated(types: &BTreeMap<String, Vec<Meaning>>) -> Option<String> {
    types.iter().find_map(|(name, meanings)| {
        let mut seen = BTreeMap::new();
        meanings.iter().find_map(|Meaning { place, sentence }| {
            let other = seen.insert(sentence, place)?;
            Some(format!("type {name} is {sentence:?} both in {other} and in {place}: say what each is of"))
        })
    })
}

/// The page of all type names that are defined more than once.
fn page(types: &BTreeMap<String, Vec<Meaning>>) -> Result<String> {
    let mut text = String::from(
        "# Type names with more than one meaning\n\n\
         Written by `cargo xtask words` from the sentence above each definition; lint fails when it is out of date. Where a type\n\
         has no sentence of its own, the row says `of:` and what its file is for. Most of these types are private to one file,\n\
         such as the state of one game or the row of one table, and are named by the plain word: the path tells them apart. A\n\
         file that needs two of one name writes one of them with its path, or renames it where it is imported.\n\
         [The glossary](glossary.md) has the words of the whole project.\n\n\
         | name | where | what it is there |\n|---|---|---|\n",
    );
    for (name, meanings) in types {
        for Meaning { place, sentence } in meanings {
            writeln!(text, "| {name} | `{place}` | {sentence} |")?;
        }
    }
    Ok(text)
}

/// Writes the page.
pub fn write(root: &Path) -> Result<()> {
    std::fs::write(root.join(PAGE), page(&ambiguous(root)?)?)?;
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
    let mut found = Vec::new();
    for (name, text) in all_sources(root)?.iter().chain(&pages) {
        for (place, line) in text.lines().enumerate() {
            if let Some(word) = private_in(line) {
                found.push(format!("{name}:{}: {word:?}", place + 1));
            }
        }
    }
    ensure!(
        found.is_empty(),
        "private words, for which docs/glossary.md has the field's:\n  {}",
        found.join("\n  ")
    );
    Ok(())
}

/// A private word of a line, in any form of it. The names of random streams are part of every history and stay as they are.
fn private_in(line: &str) -> Option<String> {
    if line.contains("Prng::stream") {
        return None;
    }
    let is_private = |word: &String| word != PLAIN && PRIVATE.iter().any(|stem| word.starts_with(stem));
    parts(line).into_iter().find(is_private)
}

/// Whether a file is about an example: one of the example's spellings stands in it as a word, or is the file's own name. What stands
/// below the mark of tests does not count.
fn is_named(name: &str, text: &str, spellings: &[&str]) -> bool {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    spellings.iter().any(|spelling| stem == *spelling || has_word(text, spelling))
}

/// Every list of CONTRIBUTING.md names just the files in which its example stands as a word, in any of the spellings that the
/// heading gives: "Files that name `One` or `one_more`, its example: ...".
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
        let (example, rest) =
            block.split_once("`, its example:").context("an example ends with \"its example:\"")?;
        let spellings: Vec<&str> = example.split('`').step_by(2).collect();
        let list = rest.split("\n\n").next().unwrap_or_default();
        let listed: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
        let found: BTreeSet<&str> = known
            .iter()
            .filter(|(name, text)| is_named(name, text, &spellings))
            .map(|(name, _)| name.as_str())
            .collect();
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
    let types = ambiguous(root)?;
    if let Some(repeated) = repeated(&types) {
        bail!("{repeated}");
    }
    let page = page(&types)?;
    let is_current = std::fs::read_to_string(root.join(PAGE)).is_ok_and(|text| text == page);
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
        let lines = [
            "/// A gate.",
            "#[command(after_help = \"Gates.\\n\\",
            "    /// More gates.\")]",
            "#[derive(Debug)]",
            "struct Gate;",
        ];
        assert_eq!(sentence(&lines, 4), "A gate");
        assert_eq!(sentence(&["/// Another.", "}", "struct Gate;"], 2), "");
        assert_eq!(defined("    let structure = 1;"), None);
        assert_eq!(defined("pub fn trait_of() {"), None);
        assert_eq!(defined("pub type Place = (u16, u16);"), Some("Place"));
        assert_eq!(defined("    type Item = u16;"), None);
        assert_eq!(defined("    EntryStatus, \"status of an entry\", {"), Some("EntryStatus"));
        assert_eq!(defined("    Split => \"SPLIT\", {"), None);
        assert_eq!(head(&["//! What it is. More", "//! of it.", "use x;"]), "What it is");
        assert!(parts("OldWord and other_word").is_superset(&parts("old word other")));
        assert!(has_word("use Gate;", "Gate") && !has_word("Gateway", "Gate"));
        let of_a_gate = |name, text| is_named(name, text, &["Kind::Gate", "Gate = 1", "gate"]);
        assert!(
            of_a_gate("a/gate.rs", "")
                && of_a_gate("a/b.rs", "    Gate = 1,")
                && of_a_gate("b.rs", "Kind::Gate")
        );
        assert!(!of_a_gate("a/b.rs", "Gate::new()\n#[cfg(test)]\nmod tests { Kind::Gate }"));
    }

    #[test]
    fn two_types_of_one_name_and_one_sentence_are_named() {
        let types = |sentences: &[&str]| {
            let meaning = |(number, sentence): (usize, &&str)| Meaning {
                place: format!("{number}.rs"),
                sentence: sentence.to_string(),
            };
            BTreeMap::from([("Rule".to_string(), sentences.iter().enumerate().map(meaning).collect())])
        };
        assert_eq!(repeated(&types(&["One rule", "One rule of a list"])), None);
        let found = repeated(&types(&["One rule", "One rule of a list", "One rule"])).unwrap();
        assert!(found.contains("Rule") && found.contains("0.rs") && found.contains("2.rs"), "{found}");
    }

    #[test]
    fn private_words_are_found_in_every_form_but_not_in_the_names_of_streams() {
        let forms = ["ing", "ed", "S_MAX"].map(|end| format!("{}{end}", PRIVATE[6]));
        assert!(forms.iter().all(|form| private_in(&format!("let old_{form} = 1;")).is_some()));
        assert!(
            private_in(&format!("struct {}{};", PRIVATE[6][..1].to_uppercase(), &PRIVATE[6][1..])).is_some()
        );
        assert_eq!(private_in(&format!("Prng::stream(1, \"{}\")", PRIVATE[0])), None);
        assert_eq!(private_in(&format!("a {PLAIN} matches all")), None);
    }
}
