//! The shipped program's images: killed and out of room while it saves, promotes, prunes and migrates, restored from a server at
//! work, and turned over bit by bit.
//!
//! After every disturbance the layout loads, `stable` is restored whole, and every tag that was there before is there, but for what a prune
//! may remove. Clauses: IMG-2, IMG-4, IMG-6.

mod points;

use super::{Draw, scratch};
use crate::{build, root, run, target};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The simulated disk; then real kills, at every call and at random moments, 100 x N together; a full disk at every call; images of a
/// server at work: 20 x N; and flipped bits of a real image: 2,000 x N in memory, of which 20 x N more go through the program.
pub fn images(scale: u64) -> Result<()> {
    let scratch = scratch("images")?;
    prepare(&scratch)?;
    // What takes the least comes first.
    flips(&scratch, 2_000 * scale, 20 * scale)?;
    let salts = format!("BEM_IMAGE_SALTS={}", 8 * scale);
    run("env", &[&salts, "cargo", "test", "--release", "--workspace", "--test", "images"])?;
    let killed = at_every_call(&scratch, "signal=SIGKILL:when=", "")?;
    println!(
        "{killed} commands killed at their first, second, third ... call: nothing lost, stable whole after each"
    );
    let full = at_every_call(&scratch, "error=ENOSPC:when=", "+")?;
    println!(
        "{full} commands with a disk that is full from some call on: nothing lost, stable whole after each"
    );
    kills(&scratch, (100 * scale).saturating_sub(killed))?;
    points::points(&scratch, 20 * scale)
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

/// A solved task as the state, a promoted image of it, and a folder that an older learner left.
fn prepare(folder: &Path) -> Result<()> {
    must(folder, &["solve", "parity", "--param", "n=4", "--out", "run", "--key", "key"])?;
    must(folder, &["image", "snapshot", "--state", "run", "--layout", "L"])?;
    let tag = tags(folder)?.into_iter().find(|tag| tag.starts_with("bem-brain:")).context("no image")?;
    must(folder, &["image", "promote", &tag, "--layout", "L"])?;
    reset(folder)
}

/// Both folders are as migrations find them: one of the first format whose history goes on, and one whose learner is older.
fn reset(folder: &Path) -> Result<()> {
    let _ = std::fs::remove_file(folder.join("run/format"));
    let _ = std::fs::remove_dir_all(folder.join("old"));
    std::fs::create_dir(folder.join("old"))?;
    let golden = root().join("golden/state-1-learner-6");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(golden.join("served-ledger"))
        .arg(folder.join("old/ledger"))
        .status()?;
    ensure!(copied.success(), "the old folder is not copied");
    Ok(())
}

fn tags(folder: &Path) -> Result<Vec<String>> {
    let listed = must(folder, &["image", "list", "--layout", "L", "--json"])?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    let images = listed["images"].as_array().cloned().unwrap_or_default();
    Ok(images.iter().filter_map(|image| image["tag"].as_str().map(str::to_string)).collect())
}

/// What is done to images, by turns.
const COMMANDS: [&[&str]; 5] = [
    &["image", "snapshot", "--state", "run", "--layout", "L", "--force"],
    &["image", "promote", "stable", "--layout", "L"],
    &["image", "prune", "--layout", "L", "--daily", "1", "--weekly", "0"],
    &["image", "migrate", "--state", "run", "--layout", "L"],
    &["image", "migrate", "--state", "old", "--layout", "L"],
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
    blobs_are_there(&folder.join("L"))?;
    must(folder, &["image", "restore", "stable", "--layout", "L", "--out", "R"])?;
    std::fs::remove_dir_all(folder.join("R"))?;
    if words[1] == "migrate" {
        migrated(folder, words[3])?;
    }
    Ok(())
}

/// A folder whose migration was cut off has the old history or the new one, whole; asked for again, the migration ends.
fn migrated(folder: &Path, state: &str) -> Result<()> {
    must(folder, &["image", "migrate", "--state", state, "--layout", "L"])?;
    let format = std::fs::read_to_string(folder.join(state).join("format"))?;
    ensure!(format == "bem state 3\n", "{state}: format {format:?}");
    for left in ["migration", "ledger-next", "format.next"] {
        ensure!(!folder.join(state).join(left).exists(), "{state}: {left} is left");
    }
    must(folder, &["verify", state])?;
    if state == "old" {
        must(folder, &["replay", state])?;
        must(folder, &["verify", "old/ledger-origin"])?;
    }
    Ok(())
}

/// Everything that the index names is there with its size: manifests, and the configurations and layers that they name.
fn blobs_are_there(layout: &Path) -> Result<()> {
    let read =
        |path: &Path| -> Result<serde_json::Value> { Ok(serde_json::from_slice(&std::fs::read(path)?)?) };
    let place = |one: &serde_json::Value| -> Result<PathBuf> {
        let digest = one["digest"].as_str().context("a blob without a digest")?;
        let path = layout.join("blobs/sha256").join(&digest[7..]);
        let length = std::fs::metadata(&path).with_context(|| format!("{digest}, which a tag needs"))?.len();
        ensure!(one["size"].as_u64() == Some(length), "{digest} has {length} bytes: {one}");
        Ok(path)
    };
    for entry in read(&layout.join("index.json"))?["manifests"].as_array().context("no manifests")? {
        let manifest = read(&place(entry)?)?;
        place(&manifest["config"])?;
        for layer in manifest["layers"].as_array().context("no layers")? {
            place(layer)?;
        }
    }
    Ok(())
}

fn kills(folder: &Path, count: u64) -> Result<()> {
    let mut draw = Draw::new();
    let (mut killed, mut finished) = (0, 0);
    // Moments are drawn from the time that each command takes here.
    let mut takes = [Duration::ZERO; COMMANDS.len()];
    for (words, takes) in COMMANDS.iter().zip(&mut takes) {
        reset(folder)?;
        let began = Instant::now();
        must(folder, words)?;
        *takes = began.elapsed();
    }
    for trial in 0.. {
        if killed == count {
            break;
        }
        ensure!(trial < 20 * count + 100, "nearly nothing is killed in time: {killed} of {trial}");
        let before = tags(folder)?;
        reset(folder)?;
        let words = COMMANDS[trial as usize % COMMANDS.len()];
        let mut child = bem(folder, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let longest = takes[trial as usize % COMMANDS.len()].as_micros() as u64;
        std::thread::sleep(Duration::from_micros(draw.below(longest + longest / 8)));
        let _ = child.kill();
        match child.wait()?.success() {
            true => finished += 1,
            false => killed += 1,
        }
        check(folder, words, &before).with_context(|| format!("trial {trial}, {words:?}"))?;
    }
    println!(
        "{killed} kills at random moments and {finished} commands that were done before: nothing lost, stable whole after each"
    );
    Ok(())
}

/// System calls that change files or make their contents durable.
const CALLS: &str = "write,pwrite64,fsync,fdatasync,rename,unlink,mkdir,ftruncate";

/// Every command is disturbed at its first, second, third ... call until it is done before that; how often that was.
fn at_every_call(folder: &Path, what: &str, and_later: &str) -> Result<u64> {
    let mut trials = 0;
    for words in COMMANDS {
        for call in 1.. {
            let before = tags(folder)?;
            reset(folder)?;
            let injection = format!("inject={CALLS}:{what}{call}{and_later}");
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
            check(folder, words, &before).with_context(|| format!("{what}{call}, {words:?}"))?;
            if status.success() {
                break;
            }
            trials += 1;
        }
    }
    Ok(trials)
}

/// Bits turned over in memory, held against what a restore checks; and a sample of them on disk, through the program.
fn flips(folder: &Path, count: u64, through: u64) -> Result<()> {
    build(&["--bin", "bem-sim"])?;
    let simulator = target().join("release/bem-sim").display().to_string();
    let layout = folder.join("L").display().to_string();
    run(&simulator, &["image-flips", &layout, "bem-brain:stable", &count.to_string(), "1"])?;
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
    for trial in 0..through {
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
    std::fs::remove_dir_all(folder.join("R"))?;
    println!(
        "{through} flipped bits of an image of {} bytes, index included, through the program: all refused",
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
