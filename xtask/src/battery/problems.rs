//! The five problems of `examples/`, from learning to the exported code. `xtask/problems.py` does the work and judges.

use super::{commit, results, text};
use crate::{run, target, tools};
use anyhow::Result;

/// Seeds for every unit of scale.
const SEEDS: u64 = 5;

/// Learns, exports and plays every problem with every seed.
pub fn problems(scale: u64) -> Result<()> {
    tools::install_python(&[("scikit-learn", "sklearn"), ("numpy", "numpy")])?;
    let bem = target().join("release").join("bem").display().to_string();
    let (seeds, page) = ((SEEDS * scale).to_string(), results("problems.md")?);
    run("python3", &["xtask/problems.py", &bem, &commit()?, &seeds, text(&page)?])
}
