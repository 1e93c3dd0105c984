//! A model is asked for candidates before a task is learned: they are tried first, each through the gate.
//!
//! What can be read of the answer becomes part of what the run begins with, which its genesis names: a replay needs no model.
//! Clauses: TOOL-8; decisions D-130, D-131.

use anyhow::{Context as _, Result, anyhow};
use bem_base::environment::{Bits, Shape};
use bem_serve::core::{Advisor, said};
use bem_serve::proposals::{self, Read};
use bem_tools::bus::{Request, key};
use bem_tools::limits::PAYLOAD_MAX;
use bem_workers::catalog_file::CatalogFile;
use bem_workers::host::{Host, HostOptions, PATIENCE};
use std::path::Path;
use std::sync::Arc;

/// What a model of a catalog proposes for a world of this shape, of which these steps are known.
pub fn propose(
    catalog: &Path,
    model: &str,
    (shape, features): (&Shape, &str),
    known: &[(Bits, u16, i32)],
) -> Result<Read> {
    let file = Arc::new(CatalogFile::load(catalog)?);
    let advisor = Advisor::of(&file, model)?;
    let named = advisor.question(&proposals::question(shape, features, known));
    let options = HostOptions { has_commands: false, ..HostOptions::default() };
    let mut host = Host::start(Arc::clone(&file), &options)?;
    let asked = Request {
        operation: named.code,
        flags: named.flags,
        resource: named.resource,
        payload: &named.payload,
        capacity: PAYLOAD_MAX as u32,
        number: 1,
        key: key(1, &named.payload),
        is_idempotent: true,
        lease: 0,
        patience: PATIENCE,
    };
    let done = host.call(named.kind, &asked).map_err(|refused| anyhow!("{refused}"))?;
    if let Some(error) = done.error {
        let words = String::from_utf8_lossy(&done.response).into_owned();
        return Err(anyhow!("{}: {words}", error.name()).context(format!("model {model} gives no answer")));
    }
    let text = said(&done.response).with_context(|| format!("model {model} answers without text"))?;
    Ok(proposals::read(&text, shape, &advisor.source()))
}
