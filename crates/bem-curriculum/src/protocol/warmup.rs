//! The first phase: the easy grid, until three probes in a row find the gate crossed stably.
//!
//! Clauses: CUR-4, CUR-5.

use super::Run;
use crate::episode::{EpisodeReport, competence_milli};
use crate::fraction::VARIANCE_START;
use bem_ledger::entry::event_code;

/// One probe of the first phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the value of what its name says")]
pub struct Probe {
    pub episode: u32,
    pub variance: i64,
    pub variance_window_max: i64,
    pub threshold: i64,
    pub competence_milli: i64,
    pub committed_mean: u32,
    pub hold_rate_milli: i64,
    pub covered: bool,
    pub passed: bool,
}

/// How the first phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmupEnd {
    /// Three probes passed in a row.
    Converged,
    /// The variance was still above the gate at the registered episode.
    NotElicited {
        /// The episode of the probe that aborted.
        episode: u32,
    },
    /// The budget ran out; this conjunct failed last.
    NotStable {
        /// Variance, competence or coverage.
        failed: &'static str,
    },
}

/// The first phase, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warmup {
    /// How it ended.
    pub end: WarmupEnd,
    /// Episodes played.
    pub episodes: u32,
    /// Every probe.
    pub probes: Vec<Probe>,
    /// Running variance at the end of every episode.
    pub variance_curve: Vec<i64>,
}

impl Run {
    /// The first phase: the easy grid, learning on.
    pub fn warm_up(&mut self) -> Warmup {
        let config = self.config.clone();
        self.trace.phase("P0", &[self.agent.gate().config.threshold]);
        let (budget, every) = (config.budgets.0, config.probe_every);
        let mut warmup = Warmup {
            end: WarmupEnd::NotStable { failed: "probes" },
            episodes: 0,
            probes: Vec::new(),
            variance_curve: Vec::new(),
        };
        let mut window: Vec<EpisodeReport> = Vec::new();
        let mut passed = 0;
        for episode in 1..=budget {
            let report = self.episode(&config.easy_grid, 0, episode, &mut ());
            warmup.variance_curve.push(report.variance_end);
            warmup.episodes = episode;
            window.push(report);
            if !episode.is_multiple_of(every) && episode != budget {
                continue;
            }
            let mut probe = self.probe(episode, &window);
            window.clear();
            let values =
                [i64::from(episode), probe.variance, probe.variance_window_max, probe.competence_milli];
            self.trace.event(event_code::PROBE, &values, "");
            if config.abort_episode(budget) <= episode && probe.threshold <= probe.variance {
                warmup.probes.push(probe);
                self.trace.event(
                    event_code::ABORT,
                    &[i64::from(episode), probe.variance],
                    "commitment_not_elicited",
                );
                warmup.end = WarmupEnd::NotElicited { episode };
                return warmup;
            }
            let failed = self.failed_conjunct(&probe);
            probe.passed = failed.is_none();
            warmup.probes.push(probe);
            passed = if probe.passed { passed + 1 } else { 0 };
            if passed == config.stable_probes {
                warmup.end = WarmupEnd::Converged;
                self.trace.phase("P0 converged", &[i64::from(episode)]);
                return warmup;
            }
            warmup.end = WarmupEnd::NotStable { failed: failed.unwrap_or("three probes in a row") };
        }
        self.trace.event(event_code::ABORT, &[i64::from(budget)], "not_stable");
        warmup
    }

    fn probe(&self, episode: u32, window: &[EpisodeReport]) -> Probe {
        let count = window.len() as u32;
        Probe {
            episode,
            variance: self.agent.gate().variance(),
            variance_window_max: window
                .iter()
                .map(|report| report.variance_max)
                .max()
                .unwrap_or(VARIANCE_START),
            threshold: self.agent.gate().config.threshold,
            competence_milli: competence_milli(window),
            committed_mean: window.iter().map(|report| report.committed_steps).sum::<u32>() / count.max(1),
            hold_rate_milli: window.iter().map(EpisodeReport::hold_rate_milli).sum::<i64>()
                / i64::from(count.max(1)),
            covered: self.agent.is_covered(),
            passed: false,
        }
    }

    fn failed_conjunct(&self, probe: &Probe) -> Option<&'static str> {
        if probe.threshold <= probe.variance_window_max {
            Some("variance")
        } else if probe.competence_milli < self.config.competence_floor_milli {
            Some("competence")
        } else if !probe.covered {
            Some("coverage")
        } else {
            None
        }
    }
}
