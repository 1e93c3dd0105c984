//! A running server's tools and questions for any client of the Model Context Protocol, over standard input and output.
//!
//! Every operation of every kind on the server's bus is a tool of the protocol, with the JSON schema that the server gives for
//! it; the queue of people is six more ([`questions`]), and a seventh asks the person at the client ([`asking`]). A call is one HTTP request with the caller's token, so that roles,
//! limits and the history are the server's own. Must not know catalogs, buses or how anything is learned: it reads what
//! `GET /v1/tools` says. Decision D-116.

mod asking;
mod form;
mod offer;
mod questions;
mod server;

pub use offer::{Offer, Target};
pub use server::Server;

use anyhow::{Context as _, Result};
use rmcp::ServiceExt as _;
use rmcp::transport::io::stdio_pipes;

/// Serves a client on standard input and output until it leaves.
pub fn serve(server: Server) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = server.serve(stdio_pipes()).await.context("the client does not speak the protocol")?;
        running.waiting().await.context("the connection to the client broke")?;
        Ok(())
    })
}
