//! TOOL_ENV: simulators in other programs, stepped line by line.
//!
//! `open` starts the program and gives its first line; `say` sends a line and gives the answer. A step has an effect that
//! cannot be repeated, so that a lost worker ends the request with its outcome unknown. Clauses: TOOL-8, GLE-9.

use crate::catalog_file::CatalogFile;
use crate::process::{LINE_BYTES_MAX, Process};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::operation::{Role, by_code};
use bem_tools::payload::Fields;
use bem_tools::worker::{Failure, Job, Tool};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tool.
pub struct Simulators {
    catalog: Arc<CatalogFile>,
    running: BTreeMap<ObjectId, Process>,
}

impl Simulators {
    /// A tool over the simulators of the catalog; none is started before it is asked for.
    pub fn new(catalog: Arc<CatalogFile>) -> Simulators {
        Simulators { catalog, running: BTreeMap::new() }
    }
}

fn failed(words: String) -> Failure {
    Failure::new(ErrorCode::UNAVAILABLE, words)
}

impl Tool for Simulators {
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        let operation = by_code(Role::Environment, job.operation).ok_or(ErrorCode::UNKNOWN_OPERATION)?;
        let id = job.resource.ok_or(ErrorCode::UNKNOWN_RESOURCE)?;
        if id.class() != ObjectClass::EnvTask {
            return Err(ErrorCode::WRONG_RESOURCE.into());
        }
        let fields = Fields::read(operation, &job.payload)?;
        let line = match operation.name {
            "open" => {
                let simulator = self.catalog.simulators.get(&id).ok_or(ErrorCode::UNKNOWN_RESOURCE)?;
                // Commands of a catalog begin where its paths do.
                let started = Process::start(&simulator.command, &self.catalog.base, simulator.timeout);
                let mut process = started.map_err(failed)?;
                let line = process.receive().map_err(failed)?;
                self.running.insert(id, process);
                line
            }
            "say" => {
                let line = fields.text(0)?.unwrap_or_default();
                if line.contains('\n') || LINE_BYTES_MAX < line.len() {
                    return Err(Failure::new(ErrorCode::BAD_PAYLOAD, "line must be one line"));
                }
                let closed =
                    || Failure::new(ErrorCode::NOT_FOUND, "the simulator is not open: say open first");
                let process = self.running.get_mut(&id).ok_or_else(closed)?;
                process.send(line).and_then(|()| process.receive()).map_err(failed)?
            }
            _ => return Err(ErrorCode::UNKNOWN_OPERATION.into()),
        };
        Ok(Item::fields([(0, Item::Text(line))]).to_bytes())
    }
}
