//! The native part of the Python package `bem`: what is fast, and what must be the same machine as on the command line.
//!
//! Spaces, wrappers, files and everything that a Python reader would look for is in `python/src/bem`; here are numbers,
//! bits and arrays. A reader of Python never sees a panic: bad values are refused here with the words of the command line.
//! Must not know Gymnasium. Clauses: GLE-9, VM-15; decisions D-81 to D-84.

mod bandit;
mod blocks;
mod circuit;
mod game;
mod lanes;
mod pack;
mod rules;
mod session;
mod unit;
mod world;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

// Pickles name an exception by its module: the one where readers find it.
create_exception!(bem, BemError, PyValueError, "What BEM refuses, with the words of its command line.");

/// An error with these words.
fn refused(words: impl std::fmt::Display) -> PyErr {
    BemError::new_err(words.to_string())
}

/// The native part of the package `bem`.
#[pymodule]
fn _bem(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("BemError", module.py().get_type::<BemError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("OBSERVATION_BITS_MAX", bem_base::limits::OBSERVATION_BITS_MAX)?;
    module.add("ACTIONS_MAX", bem_base::limits::ACTIONS_MAX)?;
    module.add_class::<game::Game>()?;
    module.add_class::<game::Episode>()?;
    module.add_class::<lanes::Lanes>()?;
    module.add_class::<circuit::Circuit>()?;
    module.add_class::<rules::Rules>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<bandit::Bandit>()?;
    module.add_function(wrap_pyfunction!(game::families, module)?)?;
    module.add_function(wrap_pyfunction!(pack::pack_rows, module)?)?;
    module.add_function(wrap_pyfunction!(session::thresholds, module)?)?;
    module.add_function(wrap_pyfunction!(unit::work_unit, module)?)?;
    Ok(())
}
