//! `bem mcp`: a running server's tools and questions for a client of the Model Context Protocol.
//!
//! Standard output belongs to the protocol; what goes wrong before the client speaks is said on standard error.
//! Decision D-116.

use super::Answer;
use anyhow::{Context as _, Result, anyhow};
use bem_mcp::Server;
use clap::Args;
use std::path::PathBuf;

/// A running server's tools and questions for a client of the Model Context Protocol, over standard input and output.
#[derive(Args)]
#[command(after_help = "Example: bem mcp --url http://127.0.0.1:7420 --token-file bem-state/token\n\
    A client starts this command itself; its configuration names it with these\n\
    arguments.")]
pub struct McpArguments {
    /// The server
    #[arg(long, default_value = "http://127.0.0.1:7420", value_name = "URL")]
    url: String,
    /// The file of the token to show: an admin's for tools, an annotator's for questions
    #[arg(long, default_value = "./bem-state/token", value_name = "FILE")]
    token_file: PathBuf,
}

/// `bem mcp`
pub fn run(arguments: &McpArguments) -> Result<Answer> {
    let token = std::fs::read_to_string(&arguments.token_file).with_context(|| {
        format!("{} cannot be read: --token-file names the file of a token", arguments.token_file.display())
    })?;
    let server = Server::new(&arguments.url, &token);
    server.look().map_err(|reason| anyhow!("{reason}"))?;
    bem_mcp::serve(server)?;
    Ok(Answer::Yes)
}
