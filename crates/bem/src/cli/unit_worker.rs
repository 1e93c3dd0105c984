//! `bem unit-worker`: works on units that come as messages over standard input, and answers over standard output.
//!
//! What a frame is says `crew.rs`; what a message is says `bem_engine::climb::message`. Clauses: PIPE-4, SCC-15.

use super::Answer;
use crate::crew::{Frame, read_frame, write_frame};
use crate::interrupt;
use anyhow::{Context as _, Result};
use bem_engine::climb::message;
use clap::Args;

/// Work on units that come over standard input.
#[derive(Args)]
#[command(after_help = "Example: bem pipeline run --engine processes starts one for every core")]
pub struct UnitWorkerArguments {}

/// Works until standard input ends.
pub fn run(_: &UnitWorkerArguments) -> Result<Answer> {
    interrupt::listen();
    let (mut orders, mut answers) = (std::io::stdin().lock(), std::io::stdout().lock());
    while let Some(Frame { number, order }) = read_frame(&mut orders).context("standard input")? {
        let answer = message::work(&order, &mut || !interrupt::is_asked());
        write_frame(&mut answers, number, order.machine, &answer).context("standard output")?;
    }
    Ok(Answer::Yes)
}
