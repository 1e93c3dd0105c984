//! `bem token`: who may do what on a server. A running server reads the file again when it changes. Decision D-70.

use super::Answer;
use anyhow::{Context as _, Result, bail};
use bem_serve::tokens::{self, Role};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

/// Tokens of a server: add one, list them, take one back.
#[derive(Args)]
#[command(after_help = "Example: bem token add ci --role annotator --state ads-state > ci-token")]
pub struct TokenArguments {
    #[command(subcommand)]
    action: TokenAction,
}

#[derive(Subcommand)]
enum TokenAction {
    /// Make a token and print it; it is shown only now.
    #[command(after_help = "Example: bem token add ci --role annotator\n\
        viewer looks, annotator asks and rewards, approver approves, admin does all")]
    Add {
        /// What it is called
        name: String,
        /// viewer, annotator, approver or admin
        #[arg(long)]
        role: String,
        /// The folder of the server
        #[arg(long, default_value = "./bem-state", value_name = "DIR")]
        state: PathBuf,
    },
    /// Show names and roles.
    #[command(after_help = "Example: bem token list --json")]
    List {
        /// The folder of the server
        #[arg(long, default_value = "./bem-state", value_name = "DIR")]
        state: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Take one back; its sessions end with it.
    #[command(after_help = "Example: bem token revoke ci")]
    Revoke {
        /// What it is called
        name: String,
        /// The folder of the server
        #[arg(long, default_value = "./bem-state", value_name = "DIR")]
        state: PathBuf,
    },
}

/// `bem token`
pub fn run(arguments: &TokenArguments) -> Result<Answer> {
    match &arguments.action {
        TokenAction::Add { name, role, state } => {
            let role = Role::from_name(role).with_context(|| {
                format!("--role {role:?} is unknown: viewer, annotator, approver or admin")
            })?;
            say!("{}", tokens::add(state, name, role)?);
            Ok(Answer::Yes)
        }
        TokenAction::List { state, json } => {
            if !state.is_dir() {
                bail!("{} does not exist: --state names the folder of a server", state.display());
            }
            let tokens = tokens::read(state)?;
            if *json {
                let list: Vec<_> = tokens
                    .iter()
                    .map(|token| json!({ "name": token.name, "role": token.role.name() }))
                    .collect();
                say!("{}", json!({ "tokens": list }));
            } else {
                tokens.iter().for_each(|token| say!("{:<24} {}", token.name, token.role.name()));
            }
            Ok(Answer::Yes)
        }
        TokenAction::Revoke { name, state } => {
            if !tokens::revoke(state, name)? {
                bail!("there is no token called {name:?}");
            }
            say!("{name} is revoked");
            Ok(Answer::Yes)
        }
    }
}
