//! The configuration of a run: every frozen parameter of the specification, read once and never changed.
//!
//! A file names only what differs from the defaults. Whatever is wrong with it, the error names field, value and
//! allowed range, and nothing starts. Must not know how a parameter is used. Clauses: MEM-3, VM-5, D-13.

mod check;
mod table;
mod value;

use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_base::limits::{
    ARMS_MAX, BUCKETS_MAX, CIRCUIT_GATES_MAX, CIRCUIT_INPUTS_MAX, CIRCUIT_OUTPUTS_MAX, EPISODE_STEPS_MAX,
    LANES, MONOMIALS_MAX, STATE_BITS_MAX,
};
use bem_learn::index::Parameters;
use table::parameters;
use value::{Decimals, Value, Word, decimal};

/// Version of the canonical bytes.
const ENCODING_VERSION: u32 = 1;

/// How a bucket chooses among its arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceRule {
    /// Smallest optimistic loss, with the variance in the bonus.
    UcbV,
    /// Random, with a temperature that falls with the visits.
    Softmax,
    /// The formula as the specification prints it: a control, its regret is linear.
    AsPrinted,
    /// Random, by importance-weighted sums of its own: holds against adversaries.
    TsallisInf,
}

impl Word for ChoiceRule {
    const ALL: &'static [ChoiceRule] =
        &[ChoiceRule::UcbV, ChoiceRule::Softmax, ChoiceRule::AsPrinted, ChoiceRule::TsallisInf];

    fn name(self) -> &'static str {
        match self {
            ChoiceRule::UcbV => "ucb_v",
            ChoiceRule::Softmax => "softmax",
            ChoiceRule::AsPrinted => "as_printed",
            ChoiceRule::TsallisInf => "tsallis_inf",
        }
    }
}

/// How a step finds its candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterKind {
    /// An extendible directory over a linear signature.
    Directory,
    /// The nearest descriptors by Hamming distance.
    Hamming,
}

impl Word for RouterKind {
    const ALL: &'static [RouterKind] = &[RouterKind::Directory, RouterKind::Hamming];

    fn name(self) -> &'static str {
        match self {
            RouterKind::Directory => "directory",
            RouterKind::Hamming => "hamming",
        }
    }
}

/// How time is divided among acting, synthesising and verifying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerKind {
    /// A bandit over fixed cyclic schedules, each played for a block of units.
    Schedules,
    /// A bandit over the three activities.
    Activities,
    /// The contextual linear scheduler, Algorithm D.
    Linear,
}

impl Word for SchedulerKind {
    const ALL: &'static [SchedulerKind] =
        &[SchedulerKind::Schedules, SchedulerKind::Activities, SchedulerKind::Linear];

    fn name(self) -> &'static str {
        match self {
            SchedulerKind::Schedules => "schedules",
            SchedulerKind::Activities => "activities",
            SchedulerKind::Linear => "linear",
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Counted from one.
        line: usize,
        /// What the reader says.
        message: String,
    },
    /// No parameter has this name.
    #[error("there is no parameter {field:?}; known are {}", GenesisConfig::NAMES.join(", "))]
    UnknownField {
        /// The name found.
        field: String,
    },
    /// A value outside its range, or of the wrong kind.
    #[error("{field} cannot be {value}: it must be {allowed}")]
    OutOfRange {
        /// Which parameter.
        field: &'static str,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: String,
    },
    /// Two values that are fine alone do not go together.
    #[error("{field} cannot be {value}: {relation}")]
    Relation {
        /// Which parameter.
        field: &'static str,
        /// What was given.
        value: String,
        /// What must hold.
        relation: &'static str,
    },
}

parameters! {
    "State and lanes" {
        /// Bits of STATE in one lane: observation, action, and what experts remember.
        "N_state_bits, N" state_bits: u32 [64..=STATE_BITS_MAX as u32] = 512;
        /// Lanes that run side by side; a multiple of 256.
        "W" lanes: u32 [LANES as u32..=65_536] = 256;
    }
    "Experts" {
        /// Buckets of one family; a power of two.
        "B" buckets: u32 [1..=BUCKETS_MAX as u32] = 1_024;
        /// Expert slots of one bucket, and circuits in one family's pool.
        "K_exp" expert_slots: u32 [2..=ARMS_MAX as u32] = 16;
        /// Experts of the whole machine.
        "S" experts_max: u32 [16..=65_536] = 4_096;
        /// Boolean inputs of one expert.
        "N_in_max" expert_inputs_max: u32 [1..=CIRCUIT_INPUTS_MAX as u32] = CIRCUIT_INPUTS_MAX as u32;
        /// Boolean outputs of one expert.
        "N_out_max" expert_outputs_max: u32 [1..=CIRCUIT_OUTPUTS_MAX as u32] = CIRCUIT_OUTPUTS_MAX as u32;
        /// Gates of one expert.
        "G_gate_max" expert_gates_max: u32 [1..=CIRCUIT_GATES_MAX as u32] = CIRCUIT_GATES_MAX as u32;
        /// Monomials of one output of an expert given in algebraic normal form.
        "M_mono_max" expert_monomials_max: u32 [1..=MONOMIALS_MAX as u32] = MONOMIALS_MAX as u32;
        /// STATE bits one expert may read.
        "R_state_max" read_state_bits_max: u32 [1..=CIRCUIT_INPUTS_MAX as u32] = CIRCUIT_INPUTS_MAX as u32;
        /// SHARED words one expert may read.
        "R_shared_max" read_shared_words_max: u32 [0..=8] = 4;
        /// STATE bits one expert may write.
        "W_state_max" write_state_bits_max: u32 [1..=CIRCUIT_OUTPUTS_MAX as u32] = CIRCUIT_OUTPUTS_MAX as u32;
        /// SHARED words one expert may write.
        "W_shared_max" write_shared_words_max: u32 [0..=16] = 4;
        /// Work units of one expert call: gates, and words read or written.
        "C_expert_max" expert_cost_max: u32 [1..=65_536] = 16_384;
        /// Work units of one step: observing, routing, choosing, the expert, trace records and learning.
        "C_step_max" step_cost_max: u32 [1..=1_048_576] = 65_536;
    }
    "Routing" {
        /// Which router finds the candidates of a step.
        "4.2 and 6.1" router: RouterKind [()] = RouterKind::Directory;
        /// Bits of a routing descriptor.
        "d" feature_bits: u32 [64..=256] = 128;
        /// Candidates of one search.
        "k_large" candidates_max: u32 [1..=64] = 16;
        /// Candidates that survive the choice; only the first acts and is credited.
        "k_small" candidates_kept: u32 [1..=4] = 1;
        /// Rounds of one search.
        "D_max" search_depth_max: u32 [1..=64] = 8;
        /// Descriptors compared in one round of a search.
        "M_max" search_degree_max: u32 [1..=1_024] = 64;
        /// Observations that the context hash covers.
        "h" context_window: u32 [1..=64] = 8;
    }
    "Words of SHARED, segment by segment" {
        /// Words of CONFIG.
        "CONFIG" words_config: u32 [256..=65_536] = 1_024;
        /// Words of BANDIT.
        "BANDIT" words_bandit: u32 [64..=4_194_304] = 131_072;
        /// Words of TEACH.
        "TEACH" words_teach: u32 [64..=4_194_304] = 16_384;
        /// Words of WORK.
        "WORK" words_work: u32 [64..=65_536] = 1_024;
        /// Words of ROUTE_META.
        "ROUTE_META" words_route_meta: u32 [64..=4_194_304] = 16_384;
        /// Words of PATCH_QUEUE.
        "PATCH_QUEUE" words_patch_queue: u32 [64..=4_194_304] = 16_384;
        /// Words of ENV.
        "ENV" words_env: u32 [64..=65_536] = 4_096;
        /// Words of META_BANDIT.
        "META_BANDIT" words_meta_bandit: u32 [64..=65_536] = 8_192;
        /// Words of TRACE_META.
        "TRACE_META" words_trace_meta: u32 [16..=65_536] = 256;
        /// Words of EXPERT.
        "EXPERT" words_expert: u32 [64..=4_194_304] = 65_536;
        /// Words of CFG.
        "CFG" words_program: u32 [64..=4_194_304] = 65_536;
        /// Words of PROOF.
        "PROOF" words_proof: u32 [64..=4_194_304] = 16_384;
        /// Words of the resource catalog.
        "CATALOG" words_catalog: u32 [64..=65_536] = 8_192;
        /// Words of the tool bus.
        "TOOL_BUS" words_tool_bus: u32 [64..=65_536] = 16_384;
        /// Words of the human feedback tables.
        "HUMAN" words_human: u32 [64..=65_536] = 16_384;
    }
    "Tasks and templates" {
        /// Task families known at once.
        "T_tasks_max" families_max: u32 [1..=1_024] = 64;
        /// Templates known at once.
        "S_templates_max" templates_max: u32 [1..=16_384] = 1_024;
        /// Templates in one band of one domain.
        "S_templates_per_band" templates_per_band: u32 [1..=256] = 32;
        /// Steps of one episode.
        "H_episode_max" episode_steps_max: u32 [1..=EPISODE_STEPS_MAX] = EPISODE_STEPS_MAX;
        /// Depth of one task tree.
        "Depth_op_tree_max" tree_depth_max: u32 [1..=16] = 6;
        /// Nodes of one task tree.
        "Size_op_tree_max" tree_nodes_max: u32 [1..=256] = 64;
        /// Depth of task trees that mutation may build.
        "D_task" mutation_depth_max: u32 [1..=16] = 4;
    }
    "Choice among experts" {
        /// Which rule chooses.
        "7.6" choice_rule: ChoiceRule [()] = ChoiceRule::UcbV;
        /// Weight of the exploration bonus.
        "alpha_bandit" expert_exploration: Fixed [Decimals("0.25", "2")] = Parameters::DEFAULT.exploration;
        /// Weight of the prior.
        "beta_bandit" expert_prior: Fixed [Decimals("0", "1")] = Parameters::DEFAULT.prior_weight;
        /// Step size of the self-driven prior; zero leaves the prior to group advantages and people.
        "eta_z" expert_prior_rate: Fixed [Decimals("0", "1")] = decimal("0");
        /// Loss that an arm starts with.
        "l_ref" loss_reference: Fixed [Decimals("0", "1")] = decimal("0.5");
        /// Smallest prior.
        "z_min" prior_min: Fixed [Decimals("-64", "0")] = Parameters::DEFAULT.prior_min;
        /// Largest prior.
        "z_max" prior_max: Fixed [Decimals("0", "63")] = Parameters::DEFAULT.prior_max;
        /// Temperature of the softmax rule at the first visit.
        "T_bandit" temperature: Fixed [Decimals("0.001", "10")] = decimal("0.1");
        /// Drift that change detection tolerates per visit.
        "Page-Hinkley delta" change_tolerance: Fixed [Decimals("0", "1")] = decimal("0.05");
        /// Evidence at which change detection resets a bucket.
        "Page-Hinkley lambda" change_threshold: Fixed [Decimals("1", "1000")] = decimal("50");
        /// Episodes of one advantage group.
        "G" group_size: u32 [2..=64] = 8;
        /// Episodes between two updates from group advantages.
        "T_group" group_period: u32 [1..=65_536] = 64;
        /// Step size of the prior from group advantages.
        "eta_grpo" group_rate: Fixed [Decimals("0", "1")] = decimal("0.1");
        /// Smallest spread that a group's returns are divided by.
        "epsilon" group_spread_min: Fixed [Decimals("0.000001", "1")] = decimal("0.001");
    }
    "Reward" {
        /// Smallest reward of one step, in milli-units.
        "R_min" reward_min: i32 [-250_000_000..=250_000_000] = -1_000_000;
        /// Largest reward of one step, in milli-units.
        "R_max" reward_max: i32 [-250_000_000..=250_000_000] = 1_000_000;
        /// What a BAD step costs, in milli-units.
        "lambda_bad" bad_penalty: i32 [0..=250_000_000] = 1_000;
        /// What one work unit of an expert costs, in milli-units.
        "lambda_cost" cost_penalty: Fixed [Decimals("0", "1000")] = decimal("0");
    }
    "Teacher" {
        /// Weight of the exploration bonus among templates.
        "alpha_teach" template_exploration: Fixed [Decimals("0.25", "2")] = decimal("0.25");
        /// Weight of the prior among templates.
        "beta_teach" template_prior: Fixed [Decimals("0", "1")] = decimal("0.25");
        /// Step size of the templates' prior.
        "eta_z_teach" template_prior_rate: Fixed [Decimals("0", "1")] = decimal("0");
        /// Smallest meta-reward.
        "R_meta_min" meta_reward_min: Fixed [Decimals("-1000", "1000")] = decimal("-1");
        /// Largest meta-reward.
        "R_meta_max" meta_reward_max: Fixed [Decimals("-1000", "1000")] = decimal("1");
        /// Difficulties at which a new band begins, rising.
        "d_0 to d_K_band-1" band_thresholds: Vec<Fixed> [Decimals("0", "1000000")] =
            ["0", "4", "8", "12", "16", "24", "32", "48"].map(decimal).to_vec();
        /// Chance of a mutation at the first selection of a template.
        "p_mut" mutation_chance: Fixed [Decimals("0", "1")] = decimal("0.1");
        /// Selections after which the chance of a mutation has halved.
        "p_mut decay" mutation_half_life: u32 [1..=1_000_000] = 256;
        /// Weight of the newest episode in a pass rate.
        "pass_rate EMA" pass_rate_weight: Fixed [Decimals("0.001", "1")] = decimal("0.05");
        /// Share of tasks that replay lower bands.
        "3.5 replay" replay_share: Fixed [Decimals("0", "1")] = decimal("0.1");
    }
    "Structure" {
        /// Patches that wait at once.
        "K_patch_queue_max" patches_pending_max: u32 [1..=4_096] = 256;
        /// Weight of regret in the improvement score.
        "w_R" regret_weight: Fixed [Decimals("0", "1000")] = decimal("1");
        /// Weight of cost in the improvement score.
        "w_C" cost_weight: Fixed [Decimals("0", "1000")] = decimal("0.01");
        /// Weight of safety in the improvement score.
        "w_S" safety_weight: Fixed [Decimals("0", "1000")] = decimal("1");
        /// Weight of novelty in the improvement score.
        "w_N, w_I" novelty_weight: Fixed [Decimals("0", "1000")] = decimal("0.01");
        /// Improvement score that a patch must reach at the start of a run.
        "D_threshold" improvement_threshold: Fixed [Decimals("0", "1000")] = decimal("0.01");
        /// The threshold never falls below this.
        "D lower bound" improvement_threshold_min: Fixed [Decimals("0", "1000")] = decimal("0.001");
        /// The threshold never rises above this.
        "D upper bound" improvement_threshold_max: Fixed [Decimals("0", "1000")] = decimal("0.5");
        /// Weight of the newest patch in the moving averages of score and yield.
        "PoX EMA" improvement_weight: Fixed [Decimals("0.001", "1")] = decimal("0.05");
        /// Conflicts of one verification.
        "SAT_CHECK budget" verify_conflicts_max: u32 [1..=100_000_000] = 200_000;
        /// Conflicts of one synthesis query.
        "CEGIS budget" synthesis_conflicts_max: u32 [1..=100_000_000] = 50_000;
        /// Rounds of one counterexample-guided synthesis.
        "CEGIS rounds" synthesis_rounds_max: u32 [1..=1_000_000] = 256;
        /// Conflicts of one check of a program's annotations.
        "HOARE_CHECK budget" hoare_conflicts_max: u32 [1..=100_000_000] = 200_000;
        /// Steps kept for synthesis.
        "experience ring" experience_steps: u32 [64..=1_048_576] = 65_536;
    }
    "Scheduler" {
        /// Which scheduler divides the time.
        "5.6 and 10.3" scheduler: SchedulerKind [()] = SchedulerKind::Schedules;
        /// Weight of the exploration bonus among activities.
        "alpha_meta" activity_exploration: Fixed [Decimals("0.25", "2")] = decimal("0.25");
        /// Weight of the prior among activities.
        "beta_meta" activity_prior: Fixed [Decimals("0", "1")] = decimal("0.25");
        /// Step size of the activities' prior.
        "eta_z_meta" activity_prior_rate: Fixed [Decimals("0", "1")] = decimal("0");
        /// Numbers that describe the situation to the linear scheduler.
        "d_ctx" situation_size: u32 [1..=16] = 8;
        /// Weight of the linear scheduler's bonus.
        "c_sched" linear_exploration: Fixed [Decimals("0", "10")] = decimal("0.5");
        /// Iterations of the linear scheduler's solver.
        "Algorithm D iterations" linear_iterations: u32 [1..=64] = 16;
        /// Rate of BAD steps above which synthesis and verification pause.
        "safety_violation_rate threshold" bad_rate_max: Fixed [Decimals("0", "1")] = decimal("0.1");
        /// Units that one schedule is played for.
        "schedule block" schedule_block: u32 [1..=1_024] = 16;
        /// Episodes of one unit of ACT.
        "ACT unit" act_episodes: u32 [1..=65_536] = 64;
        /// Patches that one unit of SYNTH may propose.
        "SYNTH unit" synth_patches: u32 [1..=256] = 4;
        /// Patches that one unit of VERIFY may check.
        "VERIFY unit" verify_patches: u32 [1..=256] = 4;
    }
}

impl GenesisConfig {
    /// Reads a file: what it does not name keeps its default, what nobody knows is refused.
    pub fn from_toml(text: &str) -> Result<GenesisConfig, ConfigError> {
        let line_at = |offset: usize| {
            1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
        };
        let table = toml::de::DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            line: line_at(error.span().map_or(0, |span| span.start)),
            message: error.message().lines().next().unwrap_or("not a table").to_string(),
        })?;
        let mut config = GenesisConfig::default();
        for (field, value) in table.get_ref() {
            config.assign(field.get_ref(), value.get_ref())?;
        }
        config.check()?;
        Ok(config)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(ENCODING_VERSION);
        self.encode_fields(writer);
    }

    /// Reads canonical bytes and checks them like a file.
    pub fn decode(reader: &mut Reader<'_>) -> Result<GenesisConfig, DecodeError> {
        let start = reader.clone();
        if reader.u32()? != ENCODING_VERSION {
            return Err(start.error("an unknown version of the configuration"));
        }
        let config = GenesisConfig::decode_fields(reader)?;
        config.check().map_err(|_| start.error("a configuration outside its ranges"))?;
        Ok(config)
    }

    /// The digest of the canonical bytes: part of a run's identity.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digest::hash_parts("bem/config", &[writer.as_bytes()])
    }
}

#[cfg(test)]
mod tests;
