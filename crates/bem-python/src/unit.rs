//! A unit of work as messages, for workers that a Python engine places on other machines. Clauses: PIPE-4.

use bem_engine::climb::message;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Works on a unit that came as a message, and answers with one. What goes wrong is in the answer.
#[pyfunction]
pub fn work_unit<'py>(py: Python<'py>, order: &[u8]) -> Bound<'py, PyBytes> {
    let order = order.to_vec();
    let answer = py.detach(|| message::work(&order, &mut || true));
    PyBytes::new(py, &answer)
}
