//! `docs/conformance.md` maps every clause to the module that serves it and the tests that show it.
//!
//! The map is checked, not trusted: a module or test that does not exist fails, and so does a clause cited in
//! code that the map does not know. The same goes for the tests that `docs/findings.md` names.

use crate::tidy::files;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One row of the map.
struct Row {
    clause: String,
    modules: Vec<String>,
    tests: Vec<String>,
}

/// Words in back quotes, in order.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

fn rows(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let is_clause = cells[0].split_once('-').is_some_and(|(area, number)| {
            area.bytes().all(|byte| byte.is_ascii_uppercase())
                && number.parse::<u32>().is_ok()
                && !area.is_empty()
        });
        if !line.starts_with('|') || !is_clause {
            continue;
        }
        let [clause, _, modules, tests] = cells.as_slice() else {
            bail!("docs/conformance.md:{}: a row has four cells: clause, what, modules, tests", number + 1);
        };
        rows.push(Row { clause: (*clause).to_string(), modules: quoted(modules), tests: quoted(tests) });
    }
    Ok(rows)
}

/// All test functions, by name, with the files they are in.
fn tests_in_sources(root: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(root, &[".rs"])? {
        let text = std::fs::read_to_string(&path)?;
        let place = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[test]") {
                marked = true;
            } else if marked && line.starts_with("fn ") {
                let name = line[3..].split('(').next().unwrap_or_default();
                tests.entry(name.to_string()).or_default().push(place.clone());
                marked = false;
            }
        }
    }
    Ok(tests)
}

/// What may be said about the use of a clause.
const USES: [&str; 5] = ["every run", "by parameter", "by command", "library", "not built"];

/// The clauses of a cell: single ones, and ranges as in `VM-4 to VM-6`.
fn clauses(cell: &str) -> Result<Vec<String>> {
    let mut clauses = Vec::new();
    for part in cell.split(", ") {
        let (first, last) = part.split_once(" to ").unwrap_or((part, part));
        let number = |clause: &str| -> Option<(String, u32)> {
            let (area, number) = clause.split_once('-')?;
            Some((area.to_string(), number.parse().ok()?))
        };
        let (Some((area, low)), Some((other, high))) = (number(first), number(last)) else {
            bail!("docs/conformance.md: {part} is neither a clause nor a range of clauses");
        };
        if area != other || high < low {
            bail!("docs/conformance.md: {part} is no range of clauses");
        }
        clauses.extend((low..=high).map(|number| format!("{area}-{number}")));
    }
    Ok(clauses)
}

/// Every clause must stand once in the table of uses, and what has no test is not used.
fn check_uses(text: &str, rows: &[Row]) -> Result<()> {
    let mut uses: BTreeMap<String, &str> = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let Some(used) = USES.iter().find(|used| line.starts_with('|') && cells[0] == **used) else {
            continue;
        };
        for clause in clauses(cells.get(1).copied().unwrap_or_default())? {
            if uses.insert(clause.clone(), used).is_some() {
                bail!("docs/conformance.md: two rows say where {clause} is used");
            }
        }
    }
    for row in rows {
        match uses.remove(&row.clause) {
            None => bail!("docs/conformance.md: no row says where {} is used", row.clause),
            Some("not built") if !row.tests.is_empty() => {
                bail!("docs/conformance.md: {} has tests and is called not built", row.clause)
            }
            Some(used) if used != "not built" && row.tests.is_empty() => {
                bail!("docs/conformance.md: {} has no test and is called used: {used}", row.clause)
            }
            Some(_) => {}
        }
    }
    match uses.pop_first() {
        Some((clause, _)) => bail!("docs/conformance.md: {clause} is used and not mapped"),
        None => Ok(()),
    }
}

/// One row of the findings of new users.
pub struct Finding {
    /// What was found; rows without words of their own are about the finding above.
    pub finding: String,
    /// The test that keeps it mended.
    pub test: String,
    /// What the test's failure must say with the program in which it was found.
    pub words: String,
}

/// The findings of new users: a row for every test.
pub fn findings(text: &str) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = Vec::new();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    for line in rows.skip_while(|line| !line.starts_with("|---")).skip(1) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [finding, test, words] = cells.as_slice() else {
            bail!("docs/findings.md: a row is a finding, a test and words of its failure: {line}");
        };
        let (tests, words) = (quoted(test), quoted(words));
        let ([test], [words]) = (tests.as_slice(), words.as_slice()) else {
            bail!("docs/findings.md: a row names one test and one text in back quotes: {line}");
        };
        let finding = match findings.last() {
            Some(above) if finding.is_empty() => above.finding.clone(),
            _ => (*finding).to_string(),
        };
        if finding.is_empty() || words.trim().len() < 5 {
            bail!("docs/findings.md: a row says what was found and words that tell the failure: {line}");
        }
        findings.push(Finding { finding, test: test.clone(), words: words.clone() });
    }
    if findings.is_empty() {
        bail!("docs/findings.md: there is no table of findings");
    }
    Ok(findings)
}

/// Every finding of new users must name tests that there are.
fn check_findings(text: &str, tests: &BTreeMap<String, Vec<String>>) -> Result<()> {
    match findings(text)?.into_iter().find(|row| !tests.contains_key(&row.test)) {
        Some(missing) => bail!("docs/findings.md: {} is no test", missing.test),
        None => Ok(()),
    }
}

/// Compares the map with the sources.
pub fn check(root: &Path) -> Result<()> {
    let text = std::fs::read_to_string(root.join("docs/conformance.md"))?;
    let rows = rows(&text)?;
    check_uses(&text, &rows)?;
    let tests = tests_in_sources(root)?;
    check_findings(&std::fs::read_to_string(root.join("docs/findings.md"))?, &tests)?;
    let mut known = BTreeSet::new();
    let mut open = 0;
    for row in &rows {
        if !known.insert(row.clause.clone()) {
            bail!("docs/conformance.md: {} stands twice", row.clause);
        }
        for module in &row.modules {
            if !root.join(module).exists() {
                bail!("docs/conformance.md: {} names {module}, which does not exist", row.clause);
            }
        }
        for test in &row.tests {
            if !tests.contains_key(test) {
                bail!("docs/conformance.md: {} names the test {test}, which does not exist", row.clause);
            }
        }
        open += usize::from(row.tests.is_empty());
    }
    for path in files(root, &[".rs"])? {
        let text = std::fs::read_to_string(&path)?;
        for line in text.lines().filter(|line| line.trim_start().starts_with("//")) {
            let Some((_, cited)) = line.split_once("Clauses: ").or_else(|| line.split_once("Clause: "))
            else {
                continue;
            };
            for word in cited.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-') {
                let Some((area, number)) = word.split_once('-') else { continue };
                let is_clause = area.len() >= 2 && area.bytes().all(|byte| byte.is_ascii_uppercase());
                if is_clause && number.parse::<u32>().is_ok() && !known.contains(word) {
                    bail!("{}: cites {word}, which docs/conformance.md does not know", path.display());
                }
            }
        }
    }
    println!("conformance: {} clauses, {} of them without a test yet", rows.len(), open);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_clause_is_said_to_be_used_in_one_place() {
        let map = |uses: &str| {
            let text =
                format!("{uses}\n| VM-1 | a | `m` | `t` |\n| VM-2 | b | `m` | `t` |\n| HUM-1 | c | | |");
            check_uses(&text, &rows(&text).unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(map("| every run | VM-1 to VM-2 | |\n| not built | HUM-1 | |"), Ok(()));
        for (uses, reason) in [
            ("| every run | VM-1 | |\n| not built | HUM-1 | |", "no row says where VM-2 is used"),
            ("| every run | VM-1 to VM-2, VM-2 | |\n| not built | HUM-1 | |", "two rows say where VM-2"),
            ("| every run | VM-1 to VM-2, HUM-1 | |", "HUM-1 has no test and is called used: every run"),
            (
                "| every run | VM-1 | |\n| not built | VM-2, HUM-1 | |",
                "VM-2 has tests and is called not built",
            ),
            ("| every run | VM-1 to VM-3 | |\n| not built | HUM-1 | |", "VM-3 is used and not mapped"),
            ("| every run | VM-2 to VM-1 | |", "VM-2 to VM-1 is no range"),
        ] {
            assert!(map(uses).is_err_and(|error| error.contains(reason)), "{uses}: {:?}", map(uses));
        }
    }

    #[test]
    fn a_finding_without_a_test_or_the_words_of_its_failure_is_refused() {
        let tests = BTreeMap::from([("known".to_string(), Vec::new())]);
        let page = |rows: &str| format!("| finding | test | words |\n|---|---|---|\n{rows}\n\nMore words.\n");
        let check = |rows: &str| check_findings(&page(rows), &tests).map_err(|error| error.to_string());
        assert_eq!(check("| 1. Something hid. | `known` | `it hid` |\n| | `known` | `again` |"), Ok(()));
        let two = findings(&page("| 1. It hid. | `known` | `it hid` |\n| | `known` | `again` |")).unwrap();
        assert_eq!((two[1].finding.as_str(), two[1].words.as_str()), ("1. It hid.", "again"));
        for (rows, reason) in [
            ("| 1. Something hid. | `unknown` | `it hid` |", "unknown is no test"),
            ("| 1. Something hid. | | `it hid` |", "names one test"),
            ("| 1. Something hid. | `known`, `known` | `it hid` |", "names one test"),
            ("| 1. Something hid. | `known` | |", "one text in back quotes"),
            ("| 1. Something hid. | `known` | `it` |", "words that tell the failure"),
            ("| 1. Something hid. | `known` |", "a row is a finding"),
            ("| | `known` | `it hid` |", "says what was found"),
            ("", "no table"),
        ] {
            assert!(check(rows).is_err_and(|error| error.contains(reason)), "{rows}: {:?}", check(rows));
        }
    }

    #[test]
    fn every_mapped_module_and_test_exists() {
        check(&crate::root()).unwrap();
    }

    #[test]
    fn a_row_is_read_with_its_modules_and_tests() {
        let rows = rows("| VM-1 | what | `a.rs`, `b.rs` | `one`, `two` |\n| not | a | row | here |").unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].modules, ["a.rs", "b.rs"]);
        assert_eq!(rows[0].tests, ["one", "two"]);
    }
}
