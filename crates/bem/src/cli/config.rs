//! `bem config`: the frozen parameters of a run, their defaults, and whether a file is fit to start with.

use super::Answer;
use crate::files;
use anyhow::Context;
use bem_machine::config::GenesisConfig;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// The configuration of a run.
#[derive(Args)]
#[command(after_help = "Example: bem config show > bem.toml && bem config check bem.toml")]
pub struct ConfigArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Print every parameter with meaning, range and value, as a file that can be edited and read back.
    #[command(after_help = "Example: bem config show > bem.toml")]
    Show {
        /// Start from this file instead of the defaults.
        file: Option<PathBuf>,
    },
    /// Say whether a file can start a run, and its digest.
    #[command(after_help = "Example: bem config check bem.toml")]
    Check {
        /// The file to check.
        file: PathBuf,
    },
}

/// Runs `bem config`.
pub fn run(arguments: &ConfigArguments) -> anyhow::Result<Answer> {
    match &arguments.action {
        Action::Show { file: None } => say_text!("{}", GenesisConfig::default().to_toml()),
        Action::Show { file: Some(file) } => say_text!("{}", load(file)?.to_toml()),
        Action::Check { file } => say!("ok, digest {}", load(file)?.digest()),
    }
    Ok(Answer::Yes)
}

/// Reads and checks a configuration file.
pub fn load(file: &Path) -> anyhow::Result<GenesisConfig> {
    GenesisConfig::from_toml(&files::read_text(file)?)
        .with_context(|| format!("configuration {}", file.display()))
}
