//! TOOL_HINL: ENQUEUE_TASK, NOTIFY and QUERY_TASKS for whoever asks over the bus.
//!
//! Questions are kept by a server, which sits down at the bus as a [`Desk`]; on a bus without one every request ends as
//! unavailable. What is asked becomes an input of the server's history before it is answered, so that a repetition is not
//! harmless and a lost worker leaves the outcome unknown. Must not know what a question is. Clause: HUM-2; decision D-180.

use crate::json;
use bem_tools::error::ErrorCode;
use bem_tools::operation::{Operation, Role, by_code};
use bem_tools::payload::Fields;
use bem_tools::worker::{Failure, Job, Tool};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Whoever keeps the questions.
pub trait Desk: Send + Sync {
    /// Does what an operation asks for, with fields by name both ways.
    fn serve(&self, operation: &Operation, request: &Value) -> Result<Value, Failure>;
}

/// The tool.
pub struct People {
    desk: Arc<OnceLock<Box<dyn Desk>>>,
}

impl People {
    /// A tool before a desk at which somebody may sit down later.
    pub fn new(desk: Arc<OnceLock<Box<dyn Desk>>>) -> People {
        People { desk }
    }
}

impl Tool for People {
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        let operation = by_code(Role::People, job.operation).ok_or(ErrorCode::UNKNOWN_OPERATION)?;
        Fields::read(operation, &job.payload)?;
        let words = "nobody keeps questions here: they are asked over the bus of bem serve";
        let desk = self.desk.get().ok_or_else(|| Failure::new(ErrorCode::UNAVAILABLE, words))?;
        let request = match job.payload.is_empty() {
            true => Value::Object(serde_json::Map::new()),
            false => json::from_fields(operation.request, &job.payload),
        };
        let answer = desk.serve(operation, &request)?;
        json::to_fields(operation.name, operation.response, &answer)
            .map_err(|error| Failure::new(ErrorCode::BAD_RESPONSE, error.to_string()))
    }
}
