//! The Python package as others install it: a manylinux wheel, and a build from the sources, each tried in a fresh environment.
//!
//! The wheel is linked by Zig against an old C library, so that it runs on systems of many ages. It assumes a processor with
//! AVX2, as everything here does (`.cargo/config.toml`).

use crate::{output, root, run, target};
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};

/// What builds a wheel and looks at it.
const PACKAGES: &[&str] = &["maturin>=1.9,<2", "ziglang", "auditwheel>=6"];

/// What must work where the package was installed: it learns, predicts, and writes a program.
const TRIAL: &str = "import gymnasium, bem
learner = bem.Learner(gymnasium.make('FrozenLake-v1'), seed=1).learn(20_000)
action, state = learner.predict(0)
assert learner.verify()['verdict'] == 'unanchored' and 'static' in learner.export('c')
print(bem.__version__, learner)";

/// Builds the wheel, has it judged, and tries it and the sources; `--wheel` leaves the sources out.
pub fn wheel(rest: &[&str]) -> Result<()> {
    ensure!(rest.is_empty() || rest == ["--wheel"], "cargo xtask wheel takes --wheel or nothing");
    let tools = fresh("builder")?;
    let pip = ["-m", "pip", "install", "--quiet"];
    run(&program(&tools, "python"), &[&pip[..], PACKAGES].concat())?;
    let wheel = build(&tools)?;
    let said = output(&program(&tools, "auditwheel"), &["show", text(&wheel)?])?;
    println!("{}", said.trim());
    let tag = tag_in(&said).context("auditwheel names no platform")?;
    ensure!(tag.starts_with("manylinux"), "the wheel is one for {tag}, and no manylinux wheel");
    try_out("wheel", text(&wheel)?)?;
    println!("{}: {tag}", wheel.display());
    if rest.is_empty() {
        try_out("sources", text(&root().join("python"))?)?;
    }
    Ok(())
}

/// The only wheel in a folder that was empty before.
fn build(tools: &Path) -> Result<PathBuf> {
    let folder = empty("wheels")?;
    let path = format!("PATH={}:{}", tools.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let inside = format!("--chdir={}", root().join("python").display());
    // Zig is found as a module of the Python beside maturin.
    let words = ["maturin", "build", "--release", "--zig", "--out", text(&folder)?];
    run("env", &[&[inside.as_str(), &path][..], &words].concat())?;
    let mut files = std::fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path()));
    files.next().context("maturin wrote no wheel")?.context("a folder that can be read")
}

/// The platform that a wheel is for, by what auditwheel says of it.
fn tag_in(said: &str) -> Option<&str> {
    let rest = said.split_once("consistent with").map_or(said, |(_, rest)| rest);
    rest.split('"').nth(1)
}

/// Installs into a fresh environment and learns something there.
fn try_out(name: &str, what: &str) -> Result<()> {
    let home = fresh(name)?;
    let python = program(&home, "python");
    run(&python, &["-m", "pip", "install", "--quiet", what])?;
    println!("{}", output(&python, &["-c", TRIAL])?.trim());
    Ok(())
}

/// A folder under the target folder that is empty now.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = target().join("wheel").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(std::path::absolute(folder)?)
}

/// An environment with nothing in it.
fn fresh(name: &str) -> Result<PathBuf> {
    let folder = empty(name)?;
    run("python3", &["-m", "venv", text(&folder)?])?;
    Ok(folder)
}

fn program(home: &Path, name: &str) -> String {
    home.join("bin").join(name).display().to_string()
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is text")
}

#[cfg(test)]
mod tests {
    use super::tag_in;

    #[test]
    fn the_platform_of_a_wheel_is_read_from_what_auditwheel_says() {
        let said = "bem.whl\nis consistent with the following platform tag:\n\"manylinux_2_17_x86_64\".\n\nThe wheel references \"libc.so.6\"";
        assert_eq!(tag_in(said), Some("manylinux_2_17_x86_64"));
        assert_eq!(tag_in("nothing"), None);
    }
}
