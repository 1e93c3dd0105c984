//! The shipped program's images: killed and out of room while it saves, promotes, prunes and migrates, restored from a server at
//! work, and turned over bit by bit.
//!
//! After every disturbance the layout loads, `stable` is restored whole, and every tag that was there before is there, but for what a prune
//! may remove. Clauses: IMG-2, IMG-4, IMG-6.

mod points;

use super::{Draw, scratch};
use crate::{run, target};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The simulated disk, then real kills: 100 x N, a full disk at every call, images of a server at work: 20 x N, and flipped bits of a real image: 2,000 x N.
pub fn images(scale: u64) -> Result<()> {
    let salts = format!("BEM_IMAGE_SALTS={}", 8 * scale);
    run("env", &[&salts, "cargo", "test", "--release", "--package", "bem-sim", "--test", "images"])?;
    let scratch = scratch("images")?;
    prepare(&scratch)?;
    kills(&scratch, 100 * scale)?;
    full_disk(&scratch)?;
    points::points(&scratch, 20 * scale)?;
    flips(&scratch, 2_000 * scale)
}

fn bem(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(target().join("release/bem"));
    command.args(words).current_dir(folder).env("XDG_STATE_HOME", folder.join("keys"));
    command.stdin(Stdio::null());
    command
}

fn ask(folder: &Path, words: &[&str]) -> Result<Output> {
    bem(folder, words).output().with_context(|| format!("bem {}", words.join(" ")))
}

fn must(folder: &Path, words: &[&str]) -> Result<String> {
    let output = ask(folder, words)?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "bem {}: {said}", words.join(" "));
    Ok(said)
}

/// A solved task as the state, and a promoted image of it.
fn prepare(folder: &Path) -> Result<()> {
    must(folder, &["solve", "parity", "--param", "n=4", "--out", "run", "--key", "key"])?;
    must(folder, &["image", "snapshot", "--state", "run", "--layout", "L"])?;
    let tag = tags(folder)?.into_iter().find(|tag| tag.starts_with("bem-brain:")).context("no image")?;
    must(folder, &["image", "promote", &tag, "--layout", "L"])?;
    Ok(())
}

fn tags(folder: &Path) -> Result<Vec<String>> {
    let listed = must(folder, &["image", "list", "--layout", "L", "--json"])?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    let images = listed["images"].as_array().cloned().unwrap_or_default();
    Ok(images.iter().filter_map(|image| image["tag"].as_str().map(str::to_string)).collect())
}

/// What is done to images, by turns.
const COMMANDS: [&[&str]; 4] = [
    &["image", "snapshot", "--state", "run", "--layout", "L", "--force"],
    &["image", "promote", "stable", "--layout", "L"],
    &["image", "prune", "--layout", "L", "--daily", "1", "--weekly", "0"],
    &["image", "migrate", "--state", "run", "--layout", "L"],
];

/// After a command that was cut off everything that was there is there, but for what a prune may remove; `stable` is restored
/// whole; and a migration has happened or not.
fn check(folder: &Path, words: &[&str], before: &[String]) -> Result<()> {
    let after = tags(folder)?;
    let may_go = words[1] == "prune";
    if let Some(lost) = before.iter().find(|tag| !after.contains(tag) && !may_go) {
        bail!("{lost} is lost");
    }
    ensure!(after.iter().any(|tag| tag == "bem-brain:stable"), "there is no stable any more");
    must(folder, &["image", "restore", "stable", "--layout", "L", "--out", "R"])?;
    std::fs::remove_dir_all(folder.join("R"))?;
    let format = std::fs::read_to_string(folder.join("run/format")).unwrap_or_default();
    ensure!(format.is_empty() || format == "bem state 2\n", "format {format:?}");
    Ok(())
}

fn kills(folder: &Path, count: u64) -> Result<()> {
    let mut draw = Draw::new();
    let (mut killed, mut finished) = (0, 0);
    for trial in 0.. {
        if killed == count {
            break;
        }
        ensure!(trial < 20 * count + 100, "nearly nothing is killed in time: {killed} of {trial}");
        let before = tags(folder)?;
        let _ = std::fs::remove_file(folder.join("run/format"));
        let words = COMMANDS[trial as usize % COMMANDS.len()];
        let mut child = bem(folder, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(Duration::from_micros(draw.below(120_000)));
        let _ = child.kill();
        match child.wait()?.success() {
            true => finished += 1,
            false => killed += 1,
        }
        check(folder, words, &before).with_context(|| format!("trial {trial}, {words:?}"))?;
    }
    println!(
        "{killed} kills and {finished} commands that were done before: nothing lost, stable whole after each"
    );
    Ok(())
}

/// System calls that need room on the disk, or make its contents durable.
const CALLS: &str = "write,pwrite64,fsync,fdatasync,rename";

/// The disk is full from the first, second, third ... call on, until a command is done before that.
fn full_disk(folder: &Path) -> Result<()> {
    let mut trials = 0;
    for words in COMMANDS {
        for call in 1.. {
            let before = tags(folder)?;
            let _ = std::fs::remove_file(folder.join("run/format"));
            let injection = format!("inject={CALLS}:error=ENOSPC:when={call}+");
            let status = Command::new("strace")
                .args(["-f", "-qq", "-o", "/dev/null", "-e", &injection])
                .arg(target().join("release/bem"))
                .args(words)
                .current_dir(folder)
                .env("XDG_STATE_HOME", folder.join("keys"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .context("strace is needed: run `cargo xtask tools`")?;
            check(folder, words, &before).with_context(|| format!("call {call}, {words:?}"))?;
            if status.success() {
                break;
            }
            trials += 1;
        }
    }
    println!(
        "{trials} commands with a disk that is full from some call on: nothing lost, stable whole after each"
    );
    Ok(())
}

fn flips(folder: &Path, count: u64) -> Result<()> {
    let mut draw = Draw::new();
    let mut files = vec!["L/index.json".to_string(), "L/oci-layout".to_string()];
    let manifest = blob(folder, "bem-brain:stable")?;
    let parsed: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join(&manifest))?)?;
    let named = |value: &serde_json::Value| {
        value["digest"].as_str().map(|digest| format!("L/blobs/sha256/{}", &digest[7..]))
    };
    files.push(manifest);
    files.extend(named(&parsed["config"]));
    files.extend(parsed["layers"].as_array().into_iter().flatten().filter_map(named));
    let sizes: Vec<u64> =
        files.iter().map(|file| Ok(std::fs::metadata(folder.join(file))?.len())).collect::<Result<_>>()?;
    for trial in 0..count {
        // Half of them anywhere by size, half in a file drawn first, so that small files are hit as well.
        let place =
            if trial % 2 == 0 { draw.below(files.len() as u64) as usize } else { by_size(&sizes, &mut draw) };
        let path = folder.join(&files[place]);
        let whole = std::fs::read(&path)?;
        let (byte, bit) = (draw.below(whole.len() as u64) as usize, draw.below(8));
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << bit;
        std::fs::write(&path, &damaged)?;
        let refused = ask(folder, &["image", "restore", "stable", "--layout", "L", "--out", "R"])?;
        ensure!(
            !refused.status.success() && !folder.join("R").exists(),
            "{}, byte {byte}, bit {bit}",
            files[place]
        );
        std::fs::write(&path, &whole)?;
    }
    must(folder, &["image", "restore", "stable", "--layout", "L", "--out", "R"])?;
    println!(
        "{count} flipped bits of an image of {} bytes, index included: all refused",
        sizes.iter().sum::<u64>()
    );
    Ok(())
}

fn by_size(sizes: &[u64], draw: &mut Draw) -> usize {
    let mut left = draw.below(sizes.iter().sum());
    for (place, size) in sizes.iter().enumerate() {
        if left < *size {
            return place;
        }
        left -= size;
    }
    0
}

/// The file of the manifest behind a tag.
fn blob(folder: &Path, tag: &str) -> Result<String> {
    let listed = must(folder, &["image", "list", "--layout", "L", "--json"])?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    let images = listed["images"].as_array().cloned().unwrap_or_default();
    let found = images.iter().find(|image| image["tag"].as_str() == Some(tag)).context("no such tag")?;
    let digest = found["digest"].as_str().context("no digest")?;
    Ok(format!("L/blobs/sha256/{}", &digest[7..]))
}
