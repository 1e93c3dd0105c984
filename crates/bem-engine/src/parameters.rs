//! From the configuration in force to what each part of a run is built with.
//!
//! Parameters that nothing has to be built from are read where they are used. Must not decide anything that the configuration leaves
//! open. Clauses: MEM-3, GLE-6, GLE-7, SCC-10, SCC-11.

use bem_base::environment::Shape;
use bem_learn::index::Parameters;
use bem_learn::linear_scheduler::LinearParameters;
use bem_learn::schedule::Scheduler;
use bem_machine::config::{ConfigError, GenesisConfig, RouterKind, SchedulerKind};
use bem_machine::family::{Family, FamilyError, learning_parameters};
use bem_synth::experience::EXPERIENCE_STEPS_MAX;
use bem_synth::propose;
use bem_synth::samples::Queries;
use bem_teacher::controller::{Pace, ReplayShare};
use bem_teacher::ladder::Domain;
use bem_teacher::mutate::MutationRate;
use bem_teacher::teacher::TeacherConfig;

// The configuration names the largest log as a number of its own: its room does not see the log's.
const _: () = assert!(EXPERIENCE_STEPS_MAX == 262_144);

/// Why a text is no configuration of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunConfigError {
    /// No configuration at all.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A router that no run asks.
    #[error(
        "router cannot be \"hamming\" in a run: allowed is \"directory\". Candidates are searched among the experts of a pool, and \
         in the world of a run each turn says who acts, so that a search would change nothing; use router = \"directory\", or leave it \
         out"
    )]
    Router,
}

/// Reads the configuration of a run: every command and every language that starts one reads it here.
pub fn read(text: &str) -> Result<GenesisConfig, RunConfigError> {
    let config = GenesisConfig::from_toml(text)?;
    match config.router {
        RouterKind::Directory => Ok(config),
        RouterKind::Hamming => Err(RunConfigError::Router),
    }
}

/// Whether a machine of this configuration can hold a world of this shape; the error names the bound.
pub fn check_world(config: &GenesisConfig, shape: &Shape) -> Result<(), FamilyError> {
    Family::new(config, shape.clone()).map(drop)
}

/// What a search may use.
pub fn search_settings(config: &GenesisConfig) -> propose::Settings {
    propose::Settings {
        memory: config.memory_structures,
        credit: config.delayed_credit,
        work: u64::from(config.search_work_max),
        steps_max: config.search_steps_max as usize,
        queries: queries(config),
        stationary: config.stationary,
    }
}

/// What one query for a smallest circuit may take.
pub(crate) fn queries(config: &GenesisConfig) -> Queries {
    Queries { conflicts: config.synthesis_conflicts_max, rounds: config.synthesis_rounds_max }
}

/// How the teacher chooses among templates: by the index of the experts, with weights of its own.
fn template_parameters(config: &GenesisConfig) -> Parameters {
    Parameters {
        exploration: config.template_exploration,
        prior_weight: config.template_prior,
        prior_rate: config.template_prior_rate,
        ..learning_parameters(config)
    }
}

/// The teacher of one family: its choices depend on nothing outside the family's chain.
pub fn teacher_config(config: &GenesisConfig, seed: u64, domain: Domain) -> TeacherConfig {
    let half_life = u64::from(config.mutation_half_life);
    TeacherConfig {
        seed,
        domains: vec![domain],
        parameters: template_parameters(config),
        mutation: MutationRate::from_chance(config.mutation_chance, half_life),
        mutation_depth_max: config.mutation_depth_max as usize,
        pace: Pace { replay: ReplayShare::from_fixed(config.replay_share), newest: config.pass_rate_weight },
        bands: config.band_thresholds.clone(),
        templates_max: config.templates_max as usize,
        templates_per_band: config.templates_per_band as usize,
        meta_rewards: (config.meta_reward_min, config.meta_reward_max),
    }
}

/// Who divides the time.
pub fn scheduler(config: &GenesisConfig) -> Scheduler {
    let plain = Parameters {
        exploration: config.activity_exploration,
        prior_weight: config.activity_prior,
        prior_rate: config.activity_prior_rate,
        change: None,
        ..learning_parameters(config)
    };
    let linear = LinearParameters {
        features: config.situation_size as usize,
        exploration: config.linear_exploration,
        sweeps: config.linear_iterations,
        ..LinearParameters::DEFAULT
    };
    match config.scheduler {
        SchedulerKind::Paced => Scheduler::Paced,
        SchedulerKind::Activities => Scheduler::activities(plain),
        SchedulerKind::Linear => Scheduler::linear(linear),
        SchedulerKind::Schedules => Scheduler::schedules(plain, config.schedule_block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The control is the other router; what is wrong with a file itself is said as ever.
    #[test]
    fn a_router_that_no_run_asks_is_refused_where_configurations_of_runs_are_read() {
        let error = read("router = \"hamming\"\n").unwrap_err();
        assert_eq!(error, RunConfigError::Router);
        assert!(error.to_string().contains("allowed is \"directory\""), "{error}");
        assert!(read("router = \"directory\"\n").is_ok());
        assert!(read("nothing = 1\n").unwrap_err().to_string().contains("there is no parameter \"nothing\""));
    }
}
