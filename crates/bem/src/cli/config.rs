//! `bem config`: the frozen parameters of a run, their defaults, and whether a file is fit to start with.
//!
//! [`ConfigFile`] is the argument of every command that starts a run. Clauses: MEM-3.

use super::Answer;
use super::fit::{WIDTH, wrapped};
use crate::files;
use anyhow::{Context, Result, bail};
use bem_engine::parameters;
use bem_machine::config::{Entry, GenesisConfig};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configuration of a run.
#[derive(Args)]
#[command(after_help = "Example: bem config show > bem.toml && bem config check bem.toml\n\
    Then: bem solve parity --config bem.toml")]
pub struct ConfigArguments {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Subcommand)]
enum ConfigAction {
    /// Print every parameter in force with meaning, range and default, as a file that can be edited and read back.
    #[command(after_help = "Example: bem config show > bem.toml\n\
        Example: bem config show --config bem.toml --json")]
    Show {
        #[command(flatten)]
        file: ConfigFile,
        /// Print one JSON object and nothing else.
        #[arg(long, conflicts_with = "markdown")]
        json: bool,
        /// Print the reference of docs/config.md.
        #[arg(long, hide = true)]
        markdown: bool,
    },
    /// Say whether a file can start a run, and its digest.
    #[command(after_help = "Example: bem config check bem.toml")]
    Check {
        /// The file to check.
        file: PathBuf,
    },
}

/// The configuration that a run is started with.
#[derive(Args, Clone, Debug, Default)]
pub struct ConfigFile {
    /// The parameters of the run; what the file does not name keeps its default (bem config show)
    #[arg(long = "config", value_name = "FILE")]
    path: Option<PathBuf>,
}

impl ConfigFile {
    /// Whether a file is named.
    pub fn is_named(&self) -> bool {
        self.path.is_some()
    }

    /// The configuration in force: the file's, or the defaults.
    pub fn load(&self) -> Result<Arc<GenesisConfig>> {
        match &self.path {
            Some(path) => load(path).map(Arc::new),
            None => Ok(Arc::default()),
        }
    }

    /// The same; where no file is named, the one that a server's owner has set.
    pub fn load_or(&self, set: Option<&Path>) -> Result<Arc<GenesisConfig>> {
        match set.filter(|_| self.path.is_none()) {
            Some(path) => load(path).map(Arc::new),
            None => self.load(),
        }
    }

    /// What the file that a server's owner has set says otherwise than a history that is there already, in words.
    pub fn difference_from(&self, set: Option<&Path>, recorded: &GenesisConfig) -> Result<Option<String>> {
        let Some(path) = set.filter(|_| self.path.is_none()) else { return Ok(None) };
        let difference = recorded.first_difference(&load(path)?);
        Ok(difference.map(|(name, was, wanted)| {
            format!(
                "{}: {name} is {wanted} there; this history began with {was} and keeps it",
                path.display()
            )
        }))
    }

    /// A run keeps the configuration that it began with: a file that says otherwise is refused.
    pub fn check_against(&self, recorded: &GenesisConfig) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some((name, was, wanted)) = recorded.first_difference(&load(path)?) {
            bail!(
                "--config {}: {name} is {was} in this run and {wanted} in the file; a run keeps the configuration that it \
                 began with",
                path.display()
            );
        }
        Ok(())
    }
}

/// Runs `bem config`.
pub fn run(arguments: &ConfigArguments) -> Result<Answer> {
    match &arguments.action {
        ConfigAction::Show { file, json: true, .. } => say!("{}", to_json(&*file.load()?)),
        ConfigAction::Show { file, markdown: true, .. } => say_text!("{}", to_markdown(&*file.load()?)),
        ConfigAction::Show { file, .. } => say_text!("{}", fitted(&file.load()?.to_toml())),
        ConfigAction::Check { file } => say!("ok, digest {}", load(file)?.digest()),
    }
    Ok(Answer::Yes)
}

/// The same file with comments that fit a terminal.
fn fitted(toml: &str) -> String {
    let comment = |line: &str| match line.strip_prefix("# ") {
        Some(words) => wrapped(words, WIDTH - 2).iter().map(|part| format!("# {part}\n")).collect::<String>(),
        None => format!("{line}\n"),
    };
    toml.lines().map(comment).collect()
}

/// Reads and checks a configuration file; what no run does is refused.
fn load(file: &Path) -> Result<GenesisConfig> {
    parameters::read(&files::read_text(file)?).with_context(|| format!("configuration {}", file.display()))
}

fn to_json(config: &GenesisConfig) -> Value {
    let parameter = |entry: Entry| {
        json!({ "name": entry.name, "value": literal(&entry.value), "default": literal(&entry.default),
            "allowed": entry.allowed, "meaning": entry.meaning, "section": entry.section,
            "specification": entry.specification })
    };
    let parameters: Vec<Value> = config.entries().into_iter().map(parameter).collect();
    json!({ "digest": config.digest().to_hex(), "parameters": parameters })
}

/// A value as JSON: what a file holds for it is JSON as well.
fn literal(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// The reference that stands in docs/config.md.
fn to_markdown(config: &GenesisConfig) -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         Every parameter that a run freezes at its start. `bem config show > bem.toml` writes them as a file; a file needs to \
         name\nonly what differs, and `bem run`, `bem solve` and `bem table` take it with `--config FILE`. The values in force \
         are\ncommitted in the first entries of a run's ledger, and `--resume` and `bem replay` use the run's own. For each \
         parameter\na test shows a run, or a part of the machine, that it changes (`every_parameter_matters`). `cargo xtask \
         golden` renews\nthis page.\n",
    );
    let mut section = "";
    for entry in config.entries() {
        if section != entry.section {
            section = entry.section;
            text.push_str(&format!(
                "\n## {section}\n\n| parameter | default | allowed | meaning | specification |\n|---|---|---|---|---|\n"
            ));
        }
        let Entry { name, default, allowed, meaning, specification, .. } = entry;
        text.push_str(&format!("| `{name}` | `{default}` | {allowed} | {meaning} | {specification} |\n"));
    }
    text
}
