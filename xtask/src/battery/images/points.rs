//! Images of a server in the middle of its work, each restored with its key and without.
//!
//! Ten clients ask for decisions, one asks tools and two people answer while an image is saved at a random moment, also while the
//! server's own agent takes a snapshot and archives. With the key the restored history has the head that the image names and
//! plays again to it; without it a new history names that head. Clauses: IMG-4, LOG-4.

use super::super::soak::Living;
use super::{Draw, ask, must};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Duration;

/// Restores at this many random points.
pub fn points(folder: &Path, count: u64) -> Result<()> {
    let words = ["--key", "S-key", "--image-every", "3s", "--segment-bytes", "65536"];
    let living = Living::start(folder, &words)?;
    let mut draw = Draw::new();
    for point in 0..count {
        std::thread::sleep(Duration::from_millis(draw.below(1_500)));
        one(folder).with_context(|| format!("point {point}"))?;
    }
    living.stop()?;
    let archived = std::fs::read_to_string(folder.join("S/log/bem.log"))?.matches("\"archived\"").count();
    println!(
        "{count} images of a server at work, {archived} archives meanwhile: all restored, with the key to the same head and without \
         it to a new history that names it"
    );
    Ok(())
}

fn one(folder: &Path) -> Result<()> {
    let json = |words: &[&str]| -> Result<serde_json::Value> {
        Ok(serde_json::from_str(must(folder, words)?.lines().next().context("no answer")?)?)
    };
    for out in ["same", "new", "P"] {
        let _ = std::fs::remove_dir_all(folder.join(out));
    }
    let taken = json(&["image", "snapshot", "--state", "S", "--layout", "P", "--force", "--json"])?;
    let tag = taken["tag"].as_str().context("no tag")?;
    let head = |restored: &serde_json::Value, name: &str| restored[name].as_str().map(str::to_string);
    let restore = |out: &str, more: &[&str]| {
        json(&[&["image", "restore", tag, "--layout", "P", "--out", out, "--json"][..], more].concat())
    };
    let same = restore("same", &["--key", "S-key"])?;
    let new = restore("new", &[])?;
    ensure!(head(&same, "head").is_some() && head(&same, "origin").is_none(), "{same}");
    ensure!(head(&new, "origin") == head(&same, "head"), "{new} does not name {same}");
    ensure!(head(&new, "head") != head(&same, "head"), "a new history has the head of the old one");
    for (out, restored) in [("same", &same), ("new", &new)] {
        let replayed = ask(folder, &["replay", out])?;
        let said = String::from_utf8_lossy(&replayed.stdout).into_owned();
        ensure!(replayed.status.success(), "replay {out}: {said}");
        ensure!(head(restored, "head").is_some_and(|head| said.contains(&head)), "{out}: {said} {restored}");
    }
    Ok(())
}
