//! Installs the programs that tests compare ours with. What is there already is left alone.

use crate::{run, target};
use anyhow::{Result, bail};
use std::process::{Command, Stdio};

/// Debian packages and a program that shows each is there.
const PACKAGES: &[(&str, &str)] = &[
    ("yosys", "yosys"),
    ("iverilog", "iverilog"),
    ("berkeley-abc", "berkeley-abc"),
    ("graphviz", "dot"),
    ("cadical", "cadical"),
    ("picosat", "picosat"),
    ("minisat", "minisat"),
    ("cryptominisat", "cryptominisat5"),
    ("strace", "strace"),
    ("valgrind", "valgrind"),
    ("nodejs", "node"),
    ("npm", "npm"),
    ("bsdutils", "script"),
    ("skopeo", "skopeo"),
    ("umoci", "umoci"),
    ("runc", "runc"),
    ("bubblewrap", "bwrap"),
    ("podman", "podman"),
    ("docker-registry", "docker-registry"),
    ("systemd", "systemd-analyze"),
    ("curl", "curl"),
    ("postgresql", "/usr/lib/postgresql/*/bin/postgres"),
    ("chromium", "chromium"),
    ("chromium-driver", "chromedriver"),
];

/// Python packages and the module that shows each is there.
const PYTHON_PACKAGES: &[(&str, &str)] = &[
    ("gymnasium[toy-text]", "gymnasium"),
    ("python-sat", "pysat"),
    ("numpy", "numpy"),
    ("scikit-learn", "sklearn"),
];

fn is_there(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Installs everything the tests need.
pub fn install_for_tests() -> Result<()> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, program)| !is_there("sh", &["-c", &format!("command -v {program}")]))
        .map(|(package, _)| *package)
        .collect();
    if !missing.is_empty() {
        if !is_there("sh", &["-c", "command -v apt-get"]) {
            bail!("the tests need {}: install them with your system's package manager", missing.join(", "));
        }
        let sudo = if is_there("sh", &["-c", "test \"$(id -u)\" = 0"]) { "" } else { "sudo " };
        let list = missing.join(" ");
        let install = format!(
            "{sudo}apt-get update -qq && {sudo}apt-get install -y -qq --no-install-recommends {list}"
        );
        run("sh", &["-c", &install])?;
    }
    install_axe()?;
    install_python(PYTHON_PACKAGES)
}

/// The rules that pages are held against in a browser; they lie beside what is built.
fn install_axe() -> Result<()> {
    let folder = target().join("tools/axe");
    if folder.join("node_modules/axe-core/axe.min.js").exists() {
        return Ok(());
    }
    std::fs::create_dir_all(&folder)?;
    let folder = folder.display().to_string();
    run("npm", &["install", "--silent", "--no-audit", "--no-fund", "--prefix", &folder, "axe-core@4.14.0"])
}

/// Installs Python packages, each named with the module that shows it is there.
pub fn install_python(packages: &[(&str, &str)]) -> Result<()> {
    for (package, module) in packages {
        if !is_there("python3", &["-c", &format!("import {module}")]) {
            run("python3", &["-m", "pip", "install", "--quiet", package])?;
        }
    }
    Ok(())
}

/// Licences, sources and duplicate bans. The tool itself is built once, into the target folder.
pub fn cargo_deny() -> Result<()> {
    let home = target().join("tools").display().to_string();
    let program = format!("{home}/bin/cargo-deny");
    if !is_there(&program, &["--version"]) {
        run("cargo", &["install", "--quiet", "--locked", "--root", &home, "cargo-deny@0.20.2"])?;
    }
    run(&program, &["check", "--hide-inclusion-graph", "bans", "licenses", "sources"])
}
