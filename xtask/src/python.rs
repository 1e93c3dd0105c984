//! The Python package: an environment of its own under the target folder, the package built into it, and its tests.
//!
//! Where Python, its venv module or the packages cannot be had, that is said and nothing fails: the rest of the project needs
//! Rust and a C++ compiler alone.

use crate::{build, root, target};
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What the tests and the build of the package need.
const PACKAGES: &[&str] = &[
    "maturin>=1.9,<2",
    "numpy",
    "gymnasium[toy-text]",
    "pytest",
    "tqdm",
    "nbclient",
    "ipykernel",
    "mcp>=2,<3",
];

/// What is tried and may be missing.
const RAY: &str = "ray";

fn home() -> PathBuf {
    target().join("venv")
}

fn program(name: &str) -> String {
    home().join("bin").join(name).display().to_string()
}

/// Whether a command succeeds; what it says is shown if it does not.
fn succeeds(name: &str, arguments: &[&str]) -> Result<(), String> {
    let done = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    match done {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).trim().to_string();
            Err(text.lines().last().unwrap_or("it failed without a word").to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The environment with what is needed; the reason if it cannot be had.
fn prepare() -> Result<(), String> {
    if succeeds(&program("python"), &["--version"]).is_err() {
        succeeds("python3", &["-c", "import sys; sys.exit(sys.version_info < (3, 10))"])
            .map_err(|reason| format!("Python 3.10 or later is not there ({reason})"))?;
        succeeds("python3", &["-m", "venv", &home().display().to_string()])
            .map_err(|reason| format!("a venv cannot be made ({reason})"))?;
    }
    let modules = "import maturin, numpy, gymnasium, pygame, pytest, tqdm, nbclient, ipykernel, mcp";
    if succeeds(&program("python"), &["-c", modules]).is_err() {
        let mut arguments = vec!["-m", "pip", "install", "--quiet"];
        arguments.extend_from_slice(PACKAGES);
        succeeds(&program("python"), &arguments)
            .map_err(|reason| format!("packages cannot be installed ({reason})"))?;
    }
    // Ray has no build for every Python and processor; without it `test_ray.py` is skipped, which pytest says.
    let has_ray = succeeds(&program("python"), &["-c", "import ray"]).is_ok();
    if !has_ray && let Err(reason) = succeeds(&program("python"), &["-m", "pip", "install", "--quiet", RAY]) {
        println!("python: {RAY} cannot be installed, its tests are skipped: {reason}");
    }
    Ok(())
}

/// Builds the package and runs its tests, or says why not.
pub fn test(rest: &[&str]) -> Result<()> {
    test_with(rest, &[])
}

/// The same, with what the tests are told by the environment.
pub fn test_with(rest: &[&str], told: &[(&str, String)]) -> Result<()> {
    if let Err(reason) = prepare() {
        println!("python: its tests are left out: {reason}");
        return Ok(());
    }
    build(&["--bin", "bem"])?;
    let python = root().join("python");
    develop()?;
    println!("$ pytest {} (in python)", rest.join(" "));
    let tested = Command::new(program("python"))
        .args(["-m", "pytest", "-q"])
        .args(rest)
        .env("BEM_PROGRAM", target().join("release/bem"))
        .envs(told.iter().map(|(name, value)| (name, value)))
        .current_dir(&python)
        .status()
        .context("pytest could not be started")?;
    anyhow::ensure!(tested.success(), "tests of the Python package failed");
    Ok(())
}

/// Builds the package into its environment.
fn develop() -> Result<()> {
    println!("$ maturin develop --release (in python)");
    let built = Command::new(program("maturin"))
        .args(["develop", "--release", "--quiet"])
        .env("VIRTUAL_ENV", home())
        .current_dir(root().join("python"))
        .status()
        .context("maturin could not be started")?;
    anyhow::ensure!(built.success(), "the Python package could not be built");
    Ok(())
}

/// The page of the peers: what can be had of them is installed beside the package, then every row is measured. The words go to
/// `bench/peers/run.py`.
pub fn peers(rest: &[&str]) -> Result<()> {
    if let Err(reason) = prepare() {
        bail!("the peers need the environment of the Python package: {reason}");
    }
    let listed = "bench/peers/requirements.txt";
    let text = std::fs::read_to_string(root().join(listed)).context(listed)?;
    // One after the other: a peer that cannot be had here costs its own rows, which the page says.
    for package in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Err(reason) = succeeds(&program("python"), &["-m", "pip", "install", "--quiet", package]) {
            println!("peers: {package} cannot be installed, its rows are left out: {reason}");
        }
    }
    develop()?;
    let words = ["bench/peers/run.py", "--out", "docs/results/peers.md"];
    crate::run(&program("python"), &[&words[..], rest].concat())
}
