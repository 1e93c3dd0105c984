//! The second phase: a ratchet over the difficulties, each begun when the one before is held and its time has come.
//!
//! Clauses: CUR-4, CUR-5.

use super::{Run, median};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_games::rulegrid::config::{DIFFICULTY_MAX, GridConfig};
use bem_ledger::entry::event_code;

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

/// Where the second phase stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Consolidation {
    /// Ticks over all episodes when the phase began.
    begun_at: u64,
    difficulty: usize,
    episode: u32,
    ladder: Vec<RatchetStep>,
    variance_curve: Vec<i64>,
    /// The latest episodes at this difficulty, oldest first.
    recent: Vec<RecentEpisode>,
}

/// What the ratchet looks at in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecentEpisode {
    committed_steps: u32,
    variance_max: i64,
    contacts: u32,
    attempts: u32,
}

impl Consolidation {
    fn begin(global_step: u64) -> Consolidation {
        Consolidation {
            begun_at: global_step,
            difficulty: 0,
            episode: 0,
            ladder: vec![RatchetStep { difficulty: 0, episode: 0, global_step }],
            variance_curve: Vec::new(),
            recent: Vec::new(),
        }
    }

    /// Half of the recent episodes committed for at least this many steps.
    fn committed_median(&self) -> u32 {
        median(self.recent.iter().map(|episode| episode.committed_steps))
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        writer.u64(self.begun_at);
        writer.u32(self.difficulty as u32);
        writer.u32(self.episode);
        writer.length(self.ladder.len());
        for step in &self.ladder {
            writer.u32(step.difficulty as u32);
            writer.u32(step.episode);
            writer.u64(step.global_step);
        }
        writer.length(self.variance_curve.len());
        self.variance_curve.iter().for_each(|variance| writer.i64(*variance));
        writer.length(self.recent.len());
        for episode in &self.recent {
            writer.u32(episode.committed_steps);
            writer.i64(episode.variance_max);
            writer.u32(episode.contacts);
            writer.u32(episode.attempts);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Consolidation, DecodeError> {
        let (begun_at, difficulty, episode) = (reader.u64()?, reader.u32()? as usize, reader.u32()?);
        if DIFFICULTY_MAX < difficulty {
            return Err(reader.error("a difficulty over 4"));
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
            state.recent.push(RecentEpisode {
                committed_steps: reader.u32()?,
                variance_max: reader.i64()?,
                contacts: reader.u32()?,
                attempts: reader.u32()?,
            });
        }
        Ok(state)
    }
}

impl Run {
    /// The second phase up to its end, or `episodes_max` more episodes (then `None`: call again to go on).
    pub fn consolidate(&mut self, episodes_max: u32) -> Option<Consolidate> {
        if self.consolidation.is_none() {
            self.trace.phase("P1", &[]);
            self.consolidation = Some(Consolidation::begin(self.global_step));
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
        state.recent.push(RecentEpisode {
            committed_steps: report.committed_steps,
            variance_max: report.variance_max,
            contacts: report.counts.contacts,
            attempts: report.counts.contacts + report.counts.misses + report.counts.out_of_order,
        });
        let back = self.config.ratchet_episodes;
        if back < state.recent.len() {
            state.recent.remove(0);
        }
        let holds = self.ratchet_holds(&state);
        let budget = self.config.budgets.1;
        let mut end = None;
        if holds && state.difficulty == DIFFICULTY_MAX {
            end = Some(ConsolidateEnd::Emerged);
        } else if self.config.abort_episode(budget) <= state.episode
            && back <= state.recent.len()
            && state.committed_median() == 0
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

    /// Committed, calm and competent over the whole window.
    fn ratchet_holds(&self, state: &Consolidation) -> bool {
        let contacts: u32 = state.recent.iter().map(|episode| episode.contacts).sum();
        let attempts: u32 = state.recent.iter().map(|episode| episode.attempts).sum();
        self.config.ratchet_episodes <= state.recent.len()
            && self.config.ratchet_committed <= state.committed_median()
            && state.recent.iter().all(|episode| episode.variance_max < self.agent.gate().config.threshold)
            && self.config.competence_floor_milli * i64::from(attempts) <= i64::from(contacts) * 1_000
    }
}
