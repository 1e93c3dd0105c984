//! What the report shows of every try at a rung; kept beside the ledger so that a resumed run has its whole report.

use crate::cli::solve::to_float;
use anyhow::{Context, Result};
use bem_engine::climb::{Climbed, Purpose, UnitResult};
use bem_engine::learner::Decision;
use bem_engine::solve::{Point, Solution};
use bem_evolve::patch::PatchKind;
use bem_evolve::verify::RETURN_TOLERANCE;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// One try.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// Steps and mean return, one point for every change of the acting policy.
    pub points: Vec<(u64, f64)>,
    /// What the best policy earns.
    pub optimum: f64,
    /// What random play earns.
    pub random: f64,
    /// All decisions of the gate.
    pub patches: Vec<Patch>,
}

/// One decision of the gate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Patch {
    /// When.
    pub steps: u64,
    /// What it changes.
    #[serde(default)]
    pub kind: String,
    /// The candidate.
    pub words: String,
    /// Its size.
    pub gates: usize,
    /// Whether it was installed.
    pub accepted: bool,
    /// Whether it was in force and was taken back.
    #[serde(default)]
    pub rolled_back: bool,
    /// Why it is not in force.
    #[serde(default)]
    pub reason: String,
    /// Pairs of episodes that were compared.
    pub pairs: u32,
    /// Mean gain as a share of the range of returns.
    pub mean: f64,
    /// What the gain is at least.
    pub lower_bound: f64,
    /// Proofs that the checker accepted.
    #[serde(default)]
    pub proofs: u32,
    /// Mean return before and after on evaluation episodes, where they are known.
    #[serde(default)]
    pub returns: Option<(f64, f64)>,
}

impl Patch {
    /// Whether the measured return fell by more than the tolerance allows.
    pub fn lowers(&self, span: f64) -> bool {
        self.returns.is_some_and(|(before, after)| after < before - tolerance() * span)
    }
}

/// A patch may lower the mean return by this share of what there is to gain, and not more.
pub fn tolerance() -> f64 {
    to_float(RETURN_TOLERANCE)
}

/// All curves of a run, by task and try.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Curves(BTreeMap<String, Curve>);

const CURVES: &str = "curves.json";

impl Curves {
    /// Those of an earlier part of the run. A damaged file is an error: saving would overwrite what it holds.
    pub fn load(directory: &Path) -> Result<Curves> {
        let path = directory.join(CURVES);
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Curves::default()),
            read => serde_json::from_str(&read.with_context(|| path.display().to_string())?)
                .with_context(|| format!("{} is damaged: mend it or move it away", path.display())),
        }
    }

    /// Adds a try at a rung; of practice only the counts are shown.
    pub fn add(&mut self, result: &UnitResult) {
        let Purpose::Rung { attempt, .. } = result.unit.purpose else { return };
        let solution = &result.solution;
        let yardstick = solution.yardstick;
        let curve = Curve {
            points: solution.curve.iter().map(|point| (point.steps, to_float(point.mean))).collect(),
            optimum: yardstick.map_or(0.0, |yardstick| to_float(yardstick.optimum)),
            random: yardstick.map_or(0.0, |yardstick| to_float(yardstick.random)),
            patches: solution.decisions.iter().map(|decision| patch(decision, solution)).collect(),
        };
        self.0.insert(format!("{}#{attempt}", result.unit.task), curve);
    }

    /// Writes them down.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let path = directory.join(CURVES);
        std::fs::write(&path, serde_json::to_string(self)?).with_context(|| path.display().to_string())
    }

    /// The curve of this try.
    pub fn of(&self, climbed: &Climbed) -> Option<&Curve> {
        self.0.get(&format!("{}#{}", climbed.task, climbed.attempt))
    }
}

fn patch(decision: &Decision, solution: &Solution) -> Patch {
    Patch {
        steps: decision.steps,
        kind: kind_name(decision.kind).to_string(),
        words: decision.words.clone(),
        gates: decision.gates,
        accepted: decision.accepted,
        rolled_back: decision.rolled_back,
        reason: decision.reason.clone(),
        pairs: decision.evidence.pairs,
        mean: to_float(decision.evidence.mean),
        lower_bound: to_float(decision.evidence.lower_bound),
        proofs: decision.proofs,
        returns: if decision.accepted { returns_around(decision.steps, &solution.curve) } else { None },
    }
}

/// The evaluation after a change at this step, and the one before it.
fn returns_around(steps: u64, curve: &[Point]) -> Option<(f64, f64)> {
    let after = curve.iter().position(|point| steps <= point.steps)?;
    let before = curve.get(after.checked_sub(1)?)?;
    Some((to_float(before.mean), to_float(curve[after].mean)))
}

/// The kind in the words of the specification.
pub fn kind_name(kind: PatchKind) -> &'static str {
    match kind {
        PatchKind::Retire => "RETIRE",
        PatchKind::Reset => "RESET",
        PatchKind::Split => "SPLIT",
        PatchKind::Merge => "MERGE",
        PatchKind::Superoptimize => "SUPEROPT",
        PatchKind::TeachEdit => "TEACH_EDIT",
        PatchKind::Macro => "MACRO",
        PatchKind::Synthesize => "SYNTH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::fixed::Fixed;

    #[test]
    fn a_patch_stands_between_the_evaluation_before_and_the_one_after_it() {
        let point = |steps, mean| Point { steps, mean: Fixed::from_int(mean) };
        let curve = [point(0, 100), point(40, 300), point(90, 900), point(120, 900)];
        assert_eq!(returns_around(40, &curve), Some((100.0, 300.0)));
        assert_eq!(returns_around(90, &curve), Some((300.0, 900.0)));
        assert_eq!(returns_around(0, &curve), None);
        assert_eq!(returns_around(500, &curve), None);
    }

    #[test]
    fn a_return_may_fall_by_the_tolerance_and_no_more() {
        let patch = |after| Patch {
            steps: 1,
            kind: String::new(),
            words: String::new(),
            gates: 1,
            accepted: true,
            rolled_back: false,
            reason: String::new(),
            pairs: 1,
            mean: 0.0,
            lower_bound: 0.0,
            proofs: 0,
            returns: Some((500.0, after)),
        };
        assert!(!patch(500.0 - 1000.0 / 64.0).lowers(1000.0));
        assert!(patch(484.0).lowers(1000.0));
    }
}
