//! The three phases: learn on the easy grid until the gate is crossed stably, ratchet up to the target, evaluate.
//!
//! The harness decides nothing the agent could see. The threshold may be raised once, from 0.40 to 0.45, on the
//! easiest grid only, and that is a checked invariant: a second request is an error. Clauses: CUR-4, CUR-5, CUR-7.

use crate::agent::{Agent, AgentConfig};
use crate::episode::{EpisodeReport, Onlooker, competence_milli, play};
use crate::fraction::{THRESHOLD, THRESHOLD_STEP, VARIANCE_START};
use crate::trace::Trace;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::prng::mix;
use bem_games::rulegrid::config::{ConfigError, DIFFICULTY_MAX, GridConfig};
use bem_games::rulegrid::world::World;
use bem_ledger::entry::event_code;

/// Budgets and bars, registered before anything runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolConfig {
    /// Episodes of the first, second and third phase.
    pub budgets: (u32, u32, u32),
    /// Episodes between probes.
    pub probe_every: u32,
    /// Share of a budget after which a missing commitment aborts, in thousandths.
    pub abort_at_milli: u32,
    /// Probes that must pass in a row.
    pub stable_probes: u32,
    /// Competence below which no probe passes, in thousandths.
    pub competence_floor_milli: i64,
    /// Median committed steps that the ratchet asks for.
    pub ratchet_committed: u32,
    /// Episodes the ratchet looks back on.
    pub ratchet_episodes: usize,
    /// Ticks after the first phase from which each difficulty may begin.
    pub introduction: [u64; DIFFICULTY_MAX + 1],
    /// Whether the one threshold step is allowed.
    pub allow_step: bool,
    /// The easy grid, if not the registered one (used to look for grids on which the gate fails).
    pub easy_grid: GridConfig,
}

impl Default for ProtocolConfig {
    fn default() -> ProtocolConfig {
        ProtocolConfig {
            budgets: (40, 100, 50),
            probe_every: 4,
            abort_at_milli: 600,
            stable_probes: 3,
            competence_floor_milli: 500,
            ratchet_committed: 100,
            ratchet_episodes: 5,
            introduction: [0, 2_000, 4_000, 6_000, 8_000],
            allow_step: true,
            easy_grid: GridConfig::of_difficulty(0),
        }
    }
}

impl ProtocolConfig {
    /// Checks every field.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.easy_grid.check()?;
        let (first, second, third) = self.budgets;
        for (field, value) in [("budgets.0", first), ("budgets.1", second), ("budgets.2", third)] {
            if !(1..=100_000).contains(&value) {
                return Err(ConfigError::refused(field, value, "1 to 100000 episodes"));
            }
        }
        if self.probe_every == 0 || first < self.probe_every {
            return Err(ConfigError::refused("probe_every", self.probe_every, "1 up to the first budget"));
        }
        if 1_000 < self.abort_at_milli {
            return Err(ConfigError::refused("abort_at_milli", self.abort_at_milli, "0 to 1000"));
        }
        Ok(())
    }

    fn abort_episode(&self, budget: u32) -> u32 {
        (budget * self.abort_at_milli).div_ceil(1_000)
    }
}

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

/// How the second phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsolidateEnd {
    /// The ratchet holds on the target.
    Emerged,
    /// Commitment was lost.
    NotElicited {
        /// The episode that aborted.
        episode: u32,
    },
    /// The budget ran out below the target.
    NotConsolidated,
}

/// One step of the ratchet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the value of what its name says")]
pub struct RatchetStep {
    pub difficulty: usize,
    pub episode: u32,
    pub global_step: u64,
}

/// The second phase, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consolidate {
    /// How it ended.
    pub end: ConsolidateEnd,
    /// Episodes played.
    pub episodes: u32,
    /// The difficulty reached.
    pub difficulty: usize,
    /// When each difficulty began.
    pub ladder: Vec<RatchetStep>,
    /// Running variance at the end of every episode.
    pub variance_curve: Vec<i64>,
}

/// Why the threshold was not raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// It was raised before.
    #[error("the threshold was already raised once; a second step is not allowed")]
    Used,
    /// Not the registered step.
    #[error("the threshold can only be raised from 0.40 to 0.45")]
    Unregistered,
    /// Not on the easiest grid.
    #[error("the threshold can only be raised on the easiest grid, before the second phase")]
    NotEasiest,
}

/// The state of a run between episodes: everything that decides what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Bars and budgets.
    pub config: ProtocolConfig,
    /// The agent.
    pub agent: Agent,
    /// What happened.
    pub trace: Trace,
    seed: u64,
    global_step: u64,
    steps_used: u32,
    consolidation: Option<Consolidation>,
}

/// Where the second phase stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Consolidation {
    begun_at: u64,
    difficulty: usize,
    episode: u32,
    ladder: Vec<RatchetStep>,
    variance_curve: Vec<i64>,
    /// Committed steps, greatest variance, contacts and attempts of the latest episodes at this difficulty.
    recent: Vec<(u32, i64, u32, u32)>,
}

/// Seeds of episodes: all arms of a run see the same grids in the same phase.
pub fn episode_seed(seed: u64, phase: u64, episode: u32) -> u64 {
    mix(mix(seed ^ phase << 56) ^ u64::from(episode))
}

/// The median; the lower one of two in the middle.
pub fn median(values: impl IntoIterator<Item = u32>) -> u32 {
    let mut values: Vec<u32> = values.into_iter().collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

impl Run {
    /// A run before its first episode.
    pub fn new(config: ProtocolConfig, agent: AgentConfig, seed: u64) -> Result<Run, ConfigError> {
        config.check()?;
        let agent = Agent::new(agent, seed);
        Ok(Run {
            config,
            agent,
            trace: Trace::default(),
            seed,
            global_step: 0,
            steps_used: 0,
            consolidation: None,
        })
    }

    /// Whether the threshold was raised.
    pub fn threshold_step_used(&self) -> bool {
        0 < self.steps_used
    }

    /// Ticks over all episodes.
    pub fn global_step(&self) -> u64 {
        self.global_step
    }

    fn episode(
        &mut self,
        grid: &GridConfig,
        phase: u64,
        episode: u32,
        onlooker: &mut impl Onlooker,
    ) -> EpisodeReport {
        let mut world = World::new(grid.clone());
        let seed = episode_seed(self.seed, phase, episode);
        let report = play(&mut world, &mut self.agent, seed, self.global_step, &mut self.trace, onlooker);
        self.global_step += u64::from(report.length);
        report
    }

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

    /// The one step: a fresh agent with the same seed and the real gate at 0.45.
    pub fn raise_threshold(&mut self, to: i64) -> Result<(), StepError> {
        if 0 < self.steps_used {
            return Err(StepError::Used);
        }
        if to != THRESHOLD_STEP || self.agent.gate().config.threshold != THRESHOLD {
            return Err(StepError::Unregistered);
        }
        if self.consolidation.is_some() {
            return Err(StepError::NotEasiest);
        }
        self.steps_used = 1;
        let mut agent = Agent::new(self.agent.config, self.seed);
        agent.set_threshold(to);
        self.agent = agent;
        self.trace.event(event_code::THRESH_STEP, &[THRESHOLD, to], "");
        Ok(())
    }

    /// The second phase up to its end, or `episodes_max` more episodes (then `None`: call again to go on).
    pub fn consolidate(&mut self, episodes_max: u32) -> Option<Consolidate> {
        if self.consolidation.is_none() {
            self.trace.phase("P1", &[]);
            let first = RatchetStep { difficulty: 0, episode: 0, global_step: self.global_step };
            self.consolidation = Some(Consolidation {
                begun_at: self.global_step,
                difficulty: 0,
                episode: 0,
                ladder: vec![first],
                variance_curve: Vec::new(),
                recent: Vec::new(),
            });
        }
        for _ in 0..episodes_max {
            if let Some(end) = self.consolidate_episode() {
                let state = self.consolidation.clone().expect("the phase has begun");
                return Some(Consolidate {
                    end,
                    episodes: state.episode,
                    difficulty: state.difficulty,
                    ladder: state.ladder,
                    variance_curve: state.variance_curve,
                });
            }
        }
        None
    }

    fn consolidate_episode(&mut self) -> Option<ConsolidateEnd> {
        let mut state = self.consolidation.take().expect("the phase has begun");
        state.episode += 1;
        let grid = if state.difficulty == 0 {
            self.config.easy_grid.clone()
        } else {
            GridConfig::of_difficulty(state.difficulty)
        };
        let report = self.episode(&grid, 1, state.episode, &mut ());
        state.variance_curve.push(report.variance_end);
        let attempts = report.counts.contacts + report.counts.misses + report.counts.out_of_order;
        state.recent.push((report.committed_steps, report.variance_max, report.counts.contacts, attempts));
        let back = self.config.ratchet_episodes;
        if back < state.recent.len() {
            state.recent.remove(0);
        }
        let holds = self.ratchet_holds(&state);
        let committed = median(state.recent.iter().map(|entry| entry.0));
        let budget = self.config.budgets.1;
        let mut end = None;
        if holds && state.difficulty == DIFFICULTY_MAX {
            end = Some(ConsolidateEnd::Emerged);
        } else if self.config.abort_episode(budget) <= state.episode
            && back <= state.recent.len()
            && committed < 1
        {
            self.trace.event(event_code::ABORT, &[i64::from(state.episode)], "commitment_not_elicited");
            end = Some(ConsolidateEnd::NotElicited { episode: state.episode });
        } else if budget <= state.episode {
            end = Some(ConsolidateEnd::NotConsolidated);
        } else if holds {
            let next = state.difficulty + 1;
            if self.config.introduction[next] <= self.global_step - state.begun_at {
                state.difficulty = next;
                state.recent.clear();
                state.ladder.push(RatchetStep {
                    difficulty: next,
                    episode: state.episode,
                    global_step: self.global_step,
                });
                self.trace.event(event_code::RATCHET, &[next as i64, i64::from(state.episode)], "");
            }
        }
        self.consolidation = Some(state);
        end
    }

    fn ratchet_holds(&self, state: &Consolidation) -> bool {
        let contacts: u32 = state.recent.iter().map(|entry| entry.2).sum();
        let attempts: u32 = state.recent.iter().map(|entry| entry.3).sum();
        self.config.ratchet_episodes <= state.recent.len()
            && self.config.ratchet_committed <= median(state.recent.iter().map(|entry| entry.0))
            && state.recent.iter().all(|entry| entry.1 < self.agent.gate().config.threshold)
            && self.config.competence_floor_milli * i64::from(attempts) <= i64::from(contacts) * 1_000
    }

    /// The third phase: everything frozen but the measurement of the variance.
    pub fn evaluate(
        &mut self,
        grid: &GridConfig,
        episodes: u32,
        onlooker: &mut impl Onlooker,
    ) -> Vec<EpisodeReport> {
        self.trace.phase("P2", &[i64::from(episodes)]);
        self.agent.set_learning(false);
        (1..=episodes).map(|episode| self.episode(grid, 2, episode, onlooker)).collect()
    }

    /// A copy for an arm: the same agent under another set-up, with a trace of its own.
    #[must_use]
    pub fn arm(&self, config: AgentConfig) -> Run {
        let mut arm = self.clone();
        arm.agent = self.agent.cloned_into(config);
        arm.trace = Trace::default();
        arm
    }

    /// Everything that decides the next episode, as canonical bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text("bem curriculum run 1");
        writer.u64(self.seed);
        writer.u64(self.global_step);
        writer.u32(self.steps_used);
        writer.raw(self.trace.head().as_bytes());
        writer.u64(self.trace.step());
        self.agent.encode(&mut writer);
        writer.bool(self.consolidation.is_some());
        if let Some(state) = &self.consolidation {
            writer.u64(state.begun_at);
            writer.u32(state.difficulty as u32);
            writer.u32(state.episode);
            writer.length(state.ladder.len());
            for step in &state.ladder {
                writer.u32(step.difficulty as u32);
                writer.u32(step.episode);
                writer.u64(step.global_step);
            }
            writer.length(state.variance_curve.len());
            state.variance_curve.iter().for_each(|variance| writer.i64(*variance));
            writer.length(state.recent.len());
            for (committed, variance, contacts, attempts) in &state.recent {
                writer.u32(*committed);
                writer.i64(*variance);
                writer.u32(*contacts);
                writer.u32(*attempts);
            }
        }
        writer.into_bytes()
    }

    /// Continues from a snapshot under the same set-up.
    pub fn restore(config: ProtocolConfig, agent: AgentConfig, bytes: &[u8]) -> Result<Run, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a snapshot of a curriculum run");
        if reader.text()? != "bem curriculum run 1" {
            return Err(foreign);
        }
        let (seed, global_step, steps_used) = (reader.u64()?, reader.u64()?, reader.u32()?);
        let head = Digest::decode(&mut reader)?;
        let trace = Trace::resumed(head, reader.u64()?);
        let agent = Agent::decode(agent, &mut reader)?;
        let mut consolidation = None;
        if reader.bool()? {
            let (begun_at, difficulty, episode) = (reader.u64()?, reader.u32()? as usize, reader.u32()?);
            let wild = reader.error("a difficulty over 4");
            if DIFFICULTY_MAX < difficulty {
                return Err(wild);
            }
            let mut state = Consolidation {
                begun_at,
                difficulty,
                episode,
                ladder: Vec::new(),
                variance_curve: Vec::new(),
                recent: Vec::new(),
            };
            for _ in 0..reader.length(16)? {
                let (difficulty, episode) = (reader.u32()? as usize, reader.u32()?);
                state.ladder.push(RatchetStep { difficulty, episode, global_step: reader.u64()? });
            }
            for _ in 0..reader.length(8)? {
                state.variance_curve.push(reader.i64()?);
            }
            for _ in 0..reader.length(20)? {
                state.recent.push((reader.u32()?, reader.i64()?, reader.u32()?, reader.u32()?));
            }
            consolidation = Some(state);
        }
        reader.finish()?;
        Ok(Run { config, agent, trace, seed, global_step, steps_used, consolidation })
    }
}
