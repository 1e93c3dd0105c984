//! What the report shows of every try at a rung; kept beside the ledger so that a resumed run has its whole report.
//!
//! One line of JSON for every try, written before the ledger acknowledges it: a run that was killed loses no curve of
//! what it keeps. A line that was cut off is dropped, and its try is played and written again.

use crate::cli::solve::unexplained;
use crate::measured::{Compared, Measured};
use anyhow::{Context, Result};
use bem_engine::chronicle::Happening;
use bem_engine::climb::{Climbed, Purpose, UnitResult};
use bem_engine::learner::{Decision, Shortfall};
use bem_engine::online::{Online, Sums};
use bem_engine::solve::{Point, Solution};
use bem_evolve::patch::PatchKind;
use bem_evolve::verify::RETURN_TOLERANCE;
use bem_ledger::play::PlayBlock;
use bem_tables::figures::to_float;
use bem_tables::losses::Losses;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// One try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Steps and mean return, one point for every change of the acting policy.
    pub points: Vec<(u64, f64)>,
    /// Steps and mean return of the episodes as they were played until then, exploration included.
    #[serde(default)]
    pub played: Vec<(u64, f64)>,
    /// Sums over all episodes up to some steps, exploration and measurements included.
    #[serde(default)]
    pub online: Vec<Earned>,
    /// What best play earns more in the same episodes, in milli-units, where it is known: on the same seeds, or in the mean.
    #[serde(default)]
    pub regret: Option<f64>,
    /// What the best policy earns, where it is known.
    pub optimum: Option<f64>,
    /// What random play earns, where it is known.
    pub random: Option<f64>,
    /// What the model cannot represent, where acting surely earns less than was predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<Unexplained>,
    /// Steps since the score of an applied patch stood out; none in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_since_high_score: Option<u64>,
    /// The seed of the instance.
    #[serde(default)]
    pub seed: u64,
    /// The final evaluation; baselines beside it where they were played.
    #[serde(default)]
    pub measured: Option<Measured>,
    /// All decisions of the gate.
    pub patches: Vec<Patch>,
}

/// What was earned up to some step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earned {
    /// Steps taken.
    pub steps: u64,
    /// Episodes played.
    pub episodes: u64,
    /// Their returns, in milli-units.
    pub earned: i64,
    /// Steps whose action was not what the frozen machine would have done.
    pub strayed: u64,
    /// What best play earns more on the same seeds, in milli-units, where it was played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<i64>,
}

/// Contexts in which acting earns less than was predicted, of so many, and how much less a step, on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unexplained {
    pub contexts: u32,
    pub compared: u32,
    pub mean: f64,
}

impl Unexplained {
    fn of(short: &Shortfall) -> Unexplained {
        let Shortfall { contexts, compared, mean } = *short;
        Unexplained { contexts, compared, mean: to_float(mean) / 1e3 }
    }

    /// In words.
    pub fn text(&self) -> String {
        unexplained(self.contexts, self.compared, self.mean)
    }
}

/// One decision of the gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What kind of evidence there is, by stored number.
    #[serde(default)]
    pub basis: u8,
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

impl Curve {
    /// What there is to gain; nothing where it is not known.
    pub fn span(&self) -> f64 {
        self.optimum.zip(self.random).map_or(0.0, |(optimum, random)| optimum - random)
    }
}

/// A patch may lower the mean return by this share of what there is to gain, and not more.
pub fn tolerance() -> f64 {
    to_float(RETURN_TOLERANCE)
}

/// All curves of a run, by task and try, and the file that they are kept in.
#[derive(Debug)]
pub struct Curves {
    by_try: BTreeMap<String, Curve>,
    file: File,
    path: PathBuf,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Task and try.
    of: String,
    curve: Curve,
}

const CURVES: &str = "curves.jsonl";

impl Curves {
    /// Those of an earlier part of the run, and the file to go on with. A damaged line is an error, so that somebody
    /// looks at it; only the last one may be cut off.
    pub fn open(directory: &Path) -> Result<Curves> {
        let path = directory.join(CURVES);
        let named = || path.display().to_string();
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let mut file = options.open(&path).with_context(named)?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(named)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).with_context(named)?;
        }
        let mut by_try = BTreeMap::new();
        for (line, number) in text[..whole].lines().zip(1..) {
            let Line { of, curve } = serde_json::from_str(line).with_context(|| {
                format!("{} is damaged in line {number}: mend it or move it away", named())
            })?;
            by_try.insert(of, curve);
        }
        Ok(Curves { by_try, file, path })
    }

    /// Adds a try at a rung and writes it down; of practice only the counts are shown. `written` is what was played as far as the
    /// ledger holds it already, if it holds some of it.
    pub fn add(
        &mut self,
        result: &UnitResult,
        measured: Option<&Measured>,
        losses: Option<&Losses>,
        written: Option<Played>,
    ) -> Result<()> {
        let Purpose::Rung { attempt, .. } = result.unit.purpose else { return Ok(()) };
        let solution = &result.solution;
        let yardstick = solution.yardstick;
        let optimum = yardstick.map(|yardstick| to_float(yardstick.optimum));
        let mut played = written.unwrap_or_else(|| Played::of(solution.chronicle.end()));
        for happening in solution.chronicle.unwritten() {
            if let Happening::Play(block) = happening {
                played.take(block);
            }
        }
        let (played, regret) = played.finish(optimum);
        let curve = Curve {
            points: solution.curve.iter().map(|point| (point.steps, to_float(point.mean))).collect(),
            played,
            online: earned(&solution.online, losses),
            regret: losses.map(|losses| losses.now().lost as f64).or(regret),
            optimum,
            random: yardstick.map(|yardstick| to_float(yardstick.random)),
            unexplained: solution.learned.shortfall.as_ref().map(Unexplained::of),
            steps_since_high_score: solution.learned.steps_since_high_score,
            seed: result.seed,
            measured: measured.copied().or_else(|| Measured::of(&solution.evaluation, yardstick)),
            patches: solution.decisions.iter().map(|decision| patch(decision, solution)).collect(),
        };
        let line = Line { of: format!("{}#{attempt}", result.unit.task), curve };
        // A try that is played again after a crash may have its line already.
        if self.by_try.get(&line.of) != Some(&line.curve) {
            let text = serde_json::to_string(&line)? + "\n";
            self.file.write_all(text.as_bytes()).with_context(|| self.path.display().to_string())?;
            self.by_try.insert(line.of, line.curve);
        }
        Ok(())
    }

    /// Adds the baselines of a try, for the page; they are not written down.
    pub fn compare(&mut self, climbed: &Climbed, compared: Option<Compared>) {
        if let Some(curve) = self.by_try.get_mut(&format!("{}#{}", climbed.task, climbed.attempt))
            && let Some(measured) = &mut curve.measured
        {
            measured.baselines = measured.baselines.or(compared);
        }
    }

    /// The run that they are of.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The curve of this try.
    pub fn of(&self, climbed: &Climbed) -> Option<&Curve> {
        self.by_try.get(&format!("{}#{}", climbed.task, climbed.attempt))
    }
}

/// Points of the curve of what was played at most.
const PLAYED_POINTS: usize = 48;

/// The sums at steps of about equal distance, from zero to the end.
fn earned(online: &Online, losses: Option<&Losses>) -> Vec<Earned> {
    let last = online.now().steps;
    let mut points: Vec<Earned> = Vec::new();
    for place in 0..=PLAYED_POINTS as u64 {
        let Sums { steps, episodes, earned, strayed, .. } = match place == PLAYED_POINTS as u64 {
            true => *online.now(),
            false => online.at(last * place / PLAYED_POINTS as u64),
        };
        let narrow = |wide: i128| wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        let lost = losses.map(|losses| match place == PLAYED_POINTS as u64 {
            true => narrow(losses.now().lost),
            false => narrow(losses.at(steps).lost),
        });
        if points.last().is_none_or(|point| point.steps < steps) {
            points.push(Earned { steps, episodes, earned: narrow(earned), strayed, lost });
        }
    }
    points
}

/// The mean return of what was played, in parts of about equal length, and the regret against the optimum. What was played is
/// taken block by block, so that none of it needs to be kept.
#[derive(Clone, Debug)]
pub struct Played {
    /// Steps of a part.
    width: u64,
    points: Vec<(u64, f64)>,
    /// The part that is under way: steps at its end, episodes and their returns.
    part: (u64, u64, i64),
    episodes: u64,
    total: i64,
}

impl Played {
    /// Of a unit in which so many steps were played.
    pub fn of(steps: u64) -> Played {
        let width = steps.div_ceil(PLAYED_POINTS as u64).max(1);
        Played { width, points: Vec::new(), part: (0, 0, 0), episodes: 0, total: 0 }
    }

    /// The next block.
    pub fn take(&mut self, block: &PlayBlock) {
        let mut steps = block.first_step;
        for episode in block.episodes() {
            steps += episode.steps.len() as u64;
            let earned = episode.steps.iter().map(|step| i64::from(step.reward)).sum::<i64>();
            let (end, count, _) = self.part;
            if 0 < count && (steps - 1) / self.width != (end - 1) / self.width {
                self.end_part();
            }
            self.part = (steps, self.part.1 + 1, self.part.2 + earned);
            (self.episodes, self.total) = (self.episodes + 1, self.total + earned);
        }
    }

    fn end_part(&mut self) {
        let (end, count, earned) = core::mem::take(&mut self.part);
        if 0 < count {
            self.points.push((end, (earned as f64 / count as f64 * 1e3).round() / 1e3));
        }
    }

    /// Points of the curve, and the regret.
    fn finish(mut self, optimum: Option<f64>) -> (Vec<(u64, f64)>, Option<f64>) {
        self.end_part();
        let regret = optimum.map(|optimum| optimum * self.episodes as f64 - self.total as f64);
        (self.points, regret.map(|regret| (regret * 1e3).round() / 1e3))
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
        basis: decision.basis as u8,
        proofs: decision.proofs,
        returns: if decision.accepted { returns_around(decision.steps, &solution.curve) } else { None },
    }
}

/// The evaluation before a change at this step, and the one that the change brought about. What the same episodes gave
/// goes before what two evaluations gave. Where what acts stayed the same there was none, and the return is what it was.
fn returns_around(steps: u64, curve: &[Point]) -> Option<(f64, f64)> {
    let before = curve.iter().rev().find(|point| point.steps < steps)?;
    let Some(after) = curve.iter().find(|point| point.steps == steps) else {
        return Some((to_float(before.mean), to_float(before.mean)));
    };
    let mean = after.gain.map_or(after.mean, |gain| before.mean.plus_saturating(gain));
    Some((to_float(before.mean), to_float(mean)))
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
        PatchKind::Hold => "HOLD",
        PatchKind::Guard => "GUARD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::fixed::Fixed;

    #[test]
    fn a_patch_stands_between_the_evaluation_before_and_the_one_after_it() {
        let point = |steps, mean| Point { steps, mean: Fixed::from_int(mean), gain: None };
        let compared = Point { gain: Some(Fixed::from_int(20)), ..point(130, 850) };
        let curve = [point(0, 100), point(40, 300), point(90, 900), point(120, 900), compared];
        assert_eq!(returns_around(40, &curve), Some((100.0, 300.0)));
        assert_eq!(returns_around(90, &curve), Some((300.0, 900.0)));
        assert_eq!(returns_around(60, &curve), Some((300.0, 300.0)));
        assert_eq!(returns_around(130, &curve), Some((900.0, 920.0)));
        assert_eq!(returns_around(0, &curve), None);
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
            basis: 1,
            proofs: 0,
            returns: Some((500.0, after)),
        };
        assert!(!patch(500.0 - 1000.0 / 64.0).lowers(1000.0));
        assert!(patch(484.0).lowers(1000.0));
    }
}
