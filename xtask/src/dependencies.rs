//! Who may use whom. An edge between our crates that is not in this table fails the build.

use crate::output;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// Every crate with the crates of ours it may use, for building and for tests alike.
const ALLOWED: &[(&str, &[&str])] = &[
    ("bem-base", &[]),
    ("bem-circuit", &["bem-base"]),
    ("bem-learn", &["bem-base"]),
    ("bem-games", &["bem-base"]),
    ("bem-checker", &["bem-base"]),
    ("bem-machine", &["bem-base", "bem-circuit", "bem-learn"]),
    ("bem-isa", &["bem-base", "bem-circuit", "bem-learn", "bem-machine", "bem-checker", "bem-prover"]),
    ("bem-teacher", &["bem-base", "bem-games", "bem-learn"]),
    ("bem-prover", &["bem-base", "bem-circuit", "bem-checker"]),
    ("bem-synth", &["bem-base", "bem-circuit", "bem-learn", "bem-checker", "bem-prover"]),
    ("bem-ledger", &["bem-base", "bem-checker"]),
];

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

/// Compares the real edges with the table.
pub fn check() -> Result<()> {
    let edges = edges()?;
    for (name, allowed) in ALLOWED {
        let Some(used) = edges.get(*name) else {
            bail!("the crate {name} is in the table but not in the workspace")
        };
        for other in used {
            if !allowed.contains(&other.as_str()) {
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
    fn the_crates_that_learn_do_not_see_the_games() {
        super::check().unwrap();
    }
}
