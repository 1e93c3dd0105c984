//! Three public tables against scikit-learn, as supervised and as bandit problems. `xtask/tables.py` does the work and judges.

use super::{commit, results, text};
use crate::{run, target, tools};
use anyhow::Result;

/// One five-fold cross-validation for every unit of scale.
pub fn tables(scale: u64) -> Result<()> {
    tools::install_python(&[("scikit-learn", "sklearn"), ("numpy", "numpy")])?;
    let bem = target().join("release").join("bem").display().to_string();
    let page = results("tables.md")?;
    run("python3", &["xtask/tables.py", &bem, &commit()?, &scale.to_string(), text(&page)?])
}
