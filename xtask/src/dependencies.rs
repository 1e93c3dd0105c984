//! Who may use whom. An edge between our crates that the table in ARCHITECTURE.md does not have fails the build.

use crate::{output, root};
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// These stand on top and may use everything.
const UNBOUND: &[&str] = &["bem", "bem-sim", "xtask"];

/// These must not reach the games or the teacher, not even through others: what learns is blind to what it plays.
const BLIND: &[&str] = &["bem-circuit", "bem-learn", "bem-machine", "bem-isa", "bem-prover", "bem-synth"];
const UNSEEN: &[&str] = &["bem-games", "bem-teacher", "bem-engine", "bem"];

/// Reads the edges between our own crates from cargo itself, those of tests and build scripts included.
fn edges() -> Result<BTreeMap<String, BTreeSet<String>>> {
    let listed = output("cargo", &["metadata", "--format-version", "1", "--no-deps"])?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let items = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let ours = |package: &serde_json::Value| {
        let direct = items(&package["dependencies"]);
        let names = direct.iter().filter(|edge| edge["path"].is_string()).map(|edge| text(&edge["name"]));
        // A crate may name itself to switch on its own helpers for tests.
        names.filter(|name| *name != text(&package["name"])).collect()
    };
    Ok(items(&listed["packages"]).iter().map(|package| (text(&package["name"]), ours(package))).collect())
}

/// The table of ARCHITECTURE.md: every crate with the crates of ours it may use, for building and for tests alike.
fn allowed(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let section = text.split("## Who may use whom").nth(1).unwrap_or_default();
    let rows = section.lines().skip_while(|line| !line.starts_with("| crate |"));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let words = |row: &str| row.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>();
    rows.filter_map(|row| {
        let mut words = words(row).into_iter();
        Some((words.next()?, words.collect()))
    })
    .collect()
}

/// Compares the real edges with the table.
pub fn check() -> Result<()> {
    let edges = edges()?;
    let table = allowed(&std::fs::read_to_string(root().join("ARCHITECTURE.md"))?);
    if let Some(name) = table.keys().find(|name| !edges.contains_key(*name)) {
        bail!("ARCHITECTURE.md names the crate {name}, which is not in the workspace");
    }
    for (name, used) in edges.iter().filter(|(name, _)| !UNBOUND.contains(&name.as_str())) {
        let Some(allowed) = table.get(name) else {
            bail!("ARCHITECTURE.md does not say what {name} may use");
        };
        for other in used {
            if !allowed.contains(other) {
                bail!("{name} uses {other}, which ARCHITECTURE.md does not allow");
            }
        }
    }
    for name in BLIND {
        let mut reached: BTreeSet<String> = BTreeSet::new();
        let mut open = vec![(*name).to_string()];
        while let Some(next) = open.pop() {
            for other in edges.get(&next).into_iter().flatten() {
                if reached.insert(other.clone()) {
                    open.push(other.clone());
                }
            }
        }
        if let Some(seen) = UNSEEN.iter().find(|other| reached.contains(**other)) {
            bail!("{name} reaches {seen}: what learns must not see what it plays");
        }
    }
    println!("dependencies: as in ARCHITECTURE.md");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_read_row_by_row() {
        let text = "## Who may use whom\n| crate | may use |\n|---|---|\n| `a` | |\n| `b` | `a`, `c` (in tests) |\n\n| `d` | `e` |";
        let table = super::allowed(text);
        assert_eq!(table.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(table["b"].iter().collect::<Vec<_>>(), ["a", "c"]);
    }

    #[test]
    fn the_crates_that_learn_do_not_see_the_games() {
        super::check().unwrap();
    }
}
