//! The table of all parameters: each with its name in the specification, its range, its default, and how it is shown
//! to matter.
//!
//! `tried` is another value, and `on` the run or the part of the machine whose outcome it changes; `given` are lines of the
//! file without which it would not be asked for. A parameter without them does not compile. Must not know how a
//! parameter is used. Clauses: MEM-3.

use super::reference::Reference;
use super::table::parameters;
use super::value::{Decimals, Value, decimal};
use super::words::{ChoiceRule, RouterKind, SchedulerKind};
use super::{ADDED, ConfigError, Entry, Trial, has_parameter};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_base::limits::{
    ACTIONS_MAX, ARMS_MAX, BUCKETS_MAX, CIRCUIT_GATES_MAX, CIRCUIT_INPUTS_MAX, CIRCUIT_OUTPUTS_MAX,
    EPISODE_STEPS_MAX, LANES, MONOMIALS_MAX, OBSERVATION_BITS_MAX, STATE_BITS_MAX,
};
use bem_learn::index::Parameters;

// The widest observation, the widest action and the largest memory that a circuit can write, with both flags.
const _: () = assert!(OBSERVATION_BITS_MAX + ACTIONS_MAX.ilog2() as usize + CIRCUIT_OUTPUTS_MAX + 2 <= 768);

/// No reward may be larger, so that no sum over an episode can overflow.
const REWARD_LIMIT: i32 = 250_000_000;

parameters! {
    "State and lanes" {
        /// Bits of STATE in one lane: observation, action, and what experts remember. The default holds every world with every
        /// memory, and leaves planes for words of SHARED that experts read.
        "N_state_bits, N" state_bits: u32 [64..=STATE_BITS_MAX as u32] = 768,
            tried "64" on Reference::Task { task: "parity{n=64}", steps: 100 };
        /// Lanes of one machine word: what the circuits are compiled for.
        "W" lanes: u32 [LANES as u32..=LANES as u32] = LANES as u32,
            tried "512" on Reference::Refused;
    }
    "Experts" {
        /// Buckets of one family; a power of two.
        "B" buckets: u32 [1..=BUCKETS_MAX as u32] = 1_024,
            tried "1" on Reference::Machine;
        /// Expert slots of one bucket, and circuits in one family's pool.
        "K_exp" expert_slots: u32 [2..=ARMS_MAX as u32] = 16,
            tried "4" on Reference::Machine;
        /// Experts of the whole machine.
        "S" experts_max: u32 [16..=65_536] = 4_096,
            tried "16" on Reference::Machine;
        /// Boolean inputs of one expert.
        "N_in_max" expert_inputs_max: u32 [1..=CIRCUIT_INPUTS_MAX as u32] = CIRCUIT_INPUTS_MAX as u32,
            tried "1" on Reference::Machine;
        /// Boolean outputs of one expert.
        "N_out_max" expert_outputs_max: u32 [1..=CIRCUIT_OUTPUTS_MAX as u32] = CIRCUIT_OUTPUTS_MAX as u32,
            tried "1" on Reference::Machine;
        /// Gates of one expert.
        "G_gate_max" expert_gates_max: u32 [1..=CIRCUIT_GATES_MAX as u32] = CIRCUIT_GATES_MAX as u32,
            tried "1" on Reference::Machine;
        /// Monomials of one output of an expert given in algebraic normal form.
        "M_mono_max" expert_monomials_max: u32 [1..=MONOMIALS_MAX as u32] = MONOMIALS_MAX as u32,
            tried "1" on Reference::Machine;
        /// STATE bits one expert may read.
        "R_state_max" read_state_bits_max: u32 [1..=CIRCUIT_INPUTS_MAX as u32] = CIRCUIT_INPUTS_MAX as u32,
            tried "1" on Reference::Machine;
        /// SHARED words one expert may read.
        "R_shared_max" read_shared_words_max: u32 [0..=8] = 4,
            tried "0" on Reference::Machine;
        /// STATE bits one expert may write.
        "W_state_max" write_state_bits_max: u32 [1..=CIRCUIT_OUTPUTS_MAX as u32] = CIRCUIT_OUTPUTS_MAX as u32,
            tried "1" on Reference::Machine;
        /// SHARED words one expert may write.
        "W_shared_max" write_shared_words_max: u32 [0..=16] = 4,
            tried "0" on Reference::Machine;
        /// Work units of one expert call: gates, and words read or written.
        "C_expert_max" expert_cost_max: u32 [1..=65_536] = 16_384,
            tried "1" on Reference::Machine;
        /// Work units of one step: observing, routing, choosing, the expert, trace records and learning.
        "C_step_max" step_cost_max: u32 [1..=1_048_576] = 65_536,
            tried "690" given "expert_cost_max = 100" on Reference::Machine;
    }
    "Routing" {
        /// Which router finds the candidates of a step.
        "4.2 and 6.1" router: RouterKind [()] = RouterKind::Directory,
            tried "\"hamming\"" on Reference::Machine;
        /// Bits of a routing descriptor.
        "d" feature_bits: u32 [64..=256] = 128,
            tried "64" given "router = \"hamming\"\ncandidates_max = 2" on Reference::Machine;
        /// Candidates of one search.
        "k_large" candidates_max: u32 [1..=64] = 16,
            tried "2" given "router = \"hamming\"" on Reference::Machine;
        /// Candidates that survive the choice; a step may cost as many experts. The best of them acts, and it alone is credited.
        /// The softmax rule draws as many.
        "k_small" candidates_kept: u32 [1..=4] = 1,
            tried "4" given "expert_cost_max = 100\nstep_cost_max = 760" on Reference::Machine;
        /// Rounds of one search.
        "D_max" search_depth_max: u32 [1..=64] = 8,
            tried "1" given "router = \"hamming\"\nsearch_degree_max = 8" on Reference::Refused;
        /// Descriptors compared in one round of a search.
        "M_max" search_degree_max: u32 [1..=1_024] = 64,
            tried "8" given "router = \"hamming\"\nsearch_depth_max = 1" on Reference::Refused;
        /// Observations that the context hash covers.
        "h" context_window: u32 [1..=64] = 8,
            tried "1" given "group_period = 0" on Reference::Machine;
    }
    "Words of SHARED, segment by segment" {
        /// Words of CONFIG.
        "CONFIG" words_config: u32 [256..=65_536] = 1_024,
            tried "2_048" on Reference::Map;
        /// Words of BANDIT.
        "BANDIT" words_bandit: u32 [64..=4_194_304] = 131_072,
            tried "65_000" on Reference::Map;
        /// Words of TEACH.
        "TEACH" words_teach: u32 [64..=4_194_304] = 16_384,
            tried "65_000" on Reference::Map;
        /// Words of WORK.
        "WORK" words_work: u32 [64..=65_536] = 1_024,
            tried "65_000" on Reference::Map;
        /// Words of ROUTE_META.
        "ROUTE_META" words_route_meta: u32 [64..=4_194_304] = 16_384,
            tried "65_000" on Reference::Map;
        /// Words of PATCH_QUEUE.
        "PATCH_QUEUE" words_patch_queue: u32 [64..=4_194_304] = 16_384,
            tried "65_000" on Reference::Map;
        /// Words of ENV.
        "ENV" words_env: u32 [64..=65_536] = 4_096,
            tried "65_000" on Reference::Map;
        /// Words of META_BANDIT.
        "META_BANDIT" words_meta_bandit: u32 [64..=65_536] = 8_192,
            tried "65_000" on Reference::Map;
        /// Words of TRACE_META.
        "TRACE_META" words_trace_meta: u32 [16..=65_536] = 256,
            tried "512" on Reference::Map;
        /// Words of EXPERT.
        "EXPERT" words_expert: u32 [64..=4_194_304] = 65_536,
            tried "65_000" on Reference::Map;
        /// Words of CFG.
        "CFG" words_program: u32 [64..=4_194_304] = 65_536,
            tried "65_000" on Reference::Map;
        /// Words of PROOF.
        "PROOF" words_proof: u32 [64..=4_194_304] = 16_384,
            tried "65_000" on Reference::Map;
        /// Words of the resource catalog.
        "CATALOG" words_catalog: u32 [64..=65_536] = 8_192,
            tried "65_000" on Reference::Map;
        /// Words of the tool bus.
        "TOOL_BUS" words_tool_bus: u32 [64..=65_536] = 16_384,
            tried "65_000" on Reference::Map;
        /// Words of the human feedback tables.
        "HUMAN" words_human: u32 [64..=65_536] = 16_384,
            tried "65_000" on Reference::Map;
    }
    "Tasks and templates" {
        /// Task families known at once.
        "T_tasks_max" families_max: u32 [1..=1_024] = 64,
            tried "1" on Reference::Machine;
        /// Templates known at once.
        "S_templates_max" templates_max: u32 [1..=16_384] = 1_024,
            tried "8" given "templates_per_band = 4" on Reference::Teacher;
        /// Templates in one band of one domain.
        "S_templates_per_band" templates_per_band: u32 [1..=ARMS_MAX as u32] = ARMS_MAX as u32,
            tried "1" on Reference::Teacher;
        /// Steps of one episode.
        "H_episode_max" episode_steps_max: u32 [1..=EPISODE_STEPS_MAX] = EPISODE_STEPS_MAX,
            tried "4" on Reference::Task { task: "dyck", steps: 100 };
        /// Depth of one task tree.
        "Depth_op_tree_max" tree_depth_max: u32 [1..=16] = 6,
            tried "2" given "mutation_depth_max = 2" on Reference::Teacher;
        /// Nodes of one task tree.
        "Size_op_tree_max" tree_nodes_max: u32 [1..=256] = 64,
            tried "2" on Reference::Teacher;
        /// Depth of task trees that mutation may build.
        "D_task" mutation_depth_max: u32 [1..=16] = 6,
            tried "1" on Reference::Teacher;
    }
    "Choice among experts" {
        /// Which rule chooses: plain actions of worlds, experts of pools, templates and activities.
        "7.6" choice_rule: ChoiceRule [()] = ChoiceRule::UcbV,
            tried "\"softmax\"" on Reference::Machine;
        /// Weight of the exploration bonus.
        "alpha_bandit" expert_exploration: Fixed [Decimals("0.25", "2")] = Parameters::DEFAULT.exploration,
            tried "2" on Reference::Machine;
        /// Weight of the prior.
        "beta_bandit" expert_prior: Fixed [Decimals("0", "1")] = Parameters::DEFAULT.prior_weight,
            tried "0.5" given "choice_rule = \"as_printed\"\nexpert_prior_rate = 0.5" on Reference::Machine;
        /// Step size of the self-driven prior; zero leaves the prior to group advantages and people.
        "eta_z" expert_prior_rate: Fixed [Decimals("0", "1")] = decimal("0"),
            tried "0.5" on Reference::Machine;
        /// Loss that an arm starts with.
        "l_ref" loss_reference: Fixed [Decimals("0", "1")] = decimal("0.5"),
            tried "0" on Reference::Machine;
        /// Smallest prior.
        "z_min" prior_min: Fixed [Decimals("-64", "0")] = Parameters::DEFAULT.prior_min,
            tried "-0.01" given "expert_prior_rate = 1" on Reference::Machine;
        /// Largest prior.
        "z_max" prior_max: Fixed [Decimals("0", "63")] = Parameters::DEFAULT.prior_max,
            tried "0.01" given "expert_prior_rate = 1" on Reference::Machine;
        /// Temperature of the softmax rule at the first visit.
        "T_bandit" temperature: Fixed [Decimals("0.001", "10")] = decimal("0.1"),
            tried "5" given "choice_rule = \"softmax\"" on Reference::Machine;
        /// Drift that change detection tolerates per visit.
        "Page-Hinkley delta" change_tolerance: Fixed [Decimals("0", "1")] = decimal("0.05"),
            tried "1" given "change_threshold = 2" on Reference::Machine;
        /// Evidence at which change detection resets a bucket.
        "Page-Hinkley lambda" change_threshold: Fixed [Decimals("1", "1000")] = decimal("50"),
            tried "2" on Reference::Machine;
        /// Episodes of one advantage group.
        "G" group_size: u32 [2..=64] = 8,
            tried "2" given "group_period = 32" on Reference::Machine;
        /// Episodes between two updates from group advantages; zero leaves them out.
        "T_group" group_period: u32 [0..=65_536] = 256,
            tried "32" on Reference::Machine;
        /// Step size of the prior from group advantages.
        "eta_grpo" group_rate: Fixed [Decimals("0", "1")] = decimal("0.1"),
            tried "1" given "group_period = 32" on Reference::Machine;
        /// Smallest spread that a group's returns are divided by.
        "epsilon" group_spread_min: Fixed [Decimals("0.000001", "1")] = decimal("0.001"),
            tried "1" given "group_period = 32" on Reference::Machine;
    }
    "Reward" {
        /// Smallest reward that one step of a world may bring, in milli-units.
        "R_min" reward_min: i32 [-REWARD_LIMIT..=REWARD_LIMIT] = -REWARD_LIMIT,
            tried "0" on Reference::Task { task: "safety_grid", steps: 100 };
        /// Largest reward that one step of a world may bring, in milli-units.
        "R_max" reward_max: i32 [-REWARD_LIMIT..=REWARD_LIMIT] = REWARD_LIMIT,
            tried "500" on Reference::Task { task: "parity", steps: 100 };
        /// What a BAD step costs, in milli-units.
        "lambda_bad" bad_penalty: i32 [0..=250_000_000] = 1_000,
            tried "100_000" on Reference::Machine;
        /// What one work unit of an expert costs, in milli-units.
        "lambda_cost" cost_penalty: Fixed [Decimals("0", "1000")] = decimal("0"),
            tried "10" on Reference::Machine;
    }
    "Teacher" {
        /// Weight of the exploration bonus among templates.
        "alpha_teach" template_exploration: Fixed [Decimals("0.25", "2")] = decimal("0.375"),
            tried "2" on Reference::Teacher;
        /// Weight of the prior among templates, where the rule adds it.
        "beta_teach" template_prior: Fixed [Decimals("0", "1")] = decimal("0"),
            tried "0.5" given "choice_rule = \"as_printed\"\ntemplate_prior_rate = 0.5" on Reference::Teacher;
        /// Step size of the templates' prior.
        "eta_z_teach" template_prior_rate: Fixed [Decimals("0", "1")] = decimal("0"),
            tried "0.5" on Reference::Teacher;
        /// Smallest meta-reward; what is less counts as this.
        "R_meta_min" meta_reward_min: Fixed [Decimals("-1000", "1000")] = decimal("0"),
            tried "-1" on Reference::Teacher;
        /// Largest meta-reward; what is more counts as this.
        "R_meta_max" meta_reward_max: Fixed [Decimals("-1000", "1000")] = decimal("1"),
            tried "2" on Reference::Teacher;
        /// Where the bands of a domain begin, as rising shares of its range of difficulty.
        "d_0 to d_K_band-1" band_thresholds: Vec<Fixed> [Decimals("0", "1")] =
            ["0", "0.125", "0.25", "0.375", "0.5", "0.625", "0.75", "0.875"].map(decimal).to_vec(),
            tried "[0, 0.5]" on Reference::Teacher;
        /// Chance of a mutation at the first selection of a template.
        "p_mut" mutation_chance: Fixed [Decimals("0", "1")] = decimal("0.25"),
            tried "1" on Reference::Teacher;
        /// Selections after which the chance of a mutation has halved.
        "p_mut decay" mutation_half_life: u32 [1..=1_000_000] = 100,
            tried "1" on Reference::Teacher;
        /// Weight of the newest report in a pass rate and in a regret.
        "pass_rate EMA" pass_rate_weight: Fixed [Decimals("0.001", "1")] = decimal("0.125"),
            tried "0.5" on Reference::Teacher;
        /// Share of tasks that replay lower bands.
        "3.5 replay" replay_share: Fixed [Decimals("0", "1")] = decimal("0.1"),
            tried "0.5" on Reference::Teacher;
    }
    "Structure" {
        /// Patches that wait at once.
        "K_patch_queue_max" patches_pending_max: u32 [1..=4_096] = 256,
            tried "1" on Reference::Task { task: "sorting", steps: 1_500 };
        /// Weight of regret in the improvement score.
        "w_R" regret_weight: Fixed [Decimals("0", "1000")] = decimal("1"),
            tried "2" on Reference::Score;
        /// Weight of cost in the improvement score.
        "w_C" cost_weight: Fixed [Decimals("0", "1000")] = decimal("0.01"),
            tried "1" on Reference::Score;
        /// Weight of safety in the improvement score.
        "w_S" safety_weight: Fixed [Decimals("0", "1000")] = decimal("1"),
            tried "0" on Reference::Score;
        /// Weight of novelty in the improvement score.
        "w_N, w_I" novelty_weight: Fixed [Decimals("0", "1000")] = decimal("0.01"),
            tried "1" on Reference::Score;
        /// Improvement score that a patch must reach at the start of a run.
        "D_threshold" improvement_threshold: Fixed [Decimals("0", "1000")] = decimal("0.001"),
            tried "0.5" on Reference::Score;
        /// The threshold never falls below this.
        "D lower bound" improvement_threshold_min: Fixed [Decimals("0", "1000")] = decimal("0.001"),
            tried "0" on Reference::Score;
        /// The threshold never rises above this.
        "D upper bound" improvement_threshold_max: Fixed [Decimals("0", "1000")] = decimal("0.5"),
            tried "0.002" on Reference::Score;
        /// Weight of the newest patch in the moving averages of score and yield.
        "PoX EMA" improvement_weight: Fixed [Decimals("0.001", "1")] = decimal("0.05"),
            tried "1" on Reference::Score;
        /// Conflicts of one verification.
        "SAT_CHECK budget" verify_conflicts_max: u32 [1..=100_000_000] = 200_000,
            tried "1" on Reference::Condition;
        /// Conflicts of one query for a smallest circuit.
        "CEGIS budget" synthesis_conflicts_max: u32 [1..=100_000_000] = 1_500,
            tried "1" on Reference::Search;
        /// Counterexamples of one query for a smallest circuit.
        "CEGIS rounds" synthesis_rounds_max: u32 [1..=1_000_000] = 1_000_000,
            tried "1" on Reference::Search;
        /// Steps kept for synthesis; zero is an ablation.
        "experience ring" experience_steps: u32 [0..=262_144] = 262_144,
            tried "0" on Reference::Task { task: "parity", steps: 500 };
        /// Circuits are synthesised; off is an ablation.
        "SYNTH" synthesis: bool [()] = true,
            tried "false" on Reference::Task { task: "parity", steps: 500 };
        /// Memory structures and state machines are searched for; off is an ablation.
        "SYNTH" memory_structures: bool [()] = true,
            tried "false" on Reference::Task { task: "parity_stream", steps: 1_000 };
        /// Later rewards are credited to the earlier decisions that they are shown to depend on; off is an ablation.
        "SYNTH" delayed_credit: bool [()] = true,
            tried "false" on Reference::Search;
        /// Word operations of one search; its closer looks together take at most twice as many besides.
        "SYNTH budget" search_work_max: u32 [1..=4_000_000_000] = 400_000_000,
            tried "1_000" on Reference::Task { task: "parity", steps: 500 };
        /// The latest steps of the log that a search looks at.
        "SYNTH budget" search_steps_max: u32 [1..=262_144] = 64_000,
            tried "16" on Reference::Task { task: "parity", steps: 100 };
        /// The learner acts until its budget is spent, instead of ending when nothing is left to gain.
        "VM-16" until_budget: bool [()] = false,
            tried "true" on Reference::Task { task: "parity", steps: 3_000 };
        /// Policies that count steps are not proposed: for worlds whose episodes need not end.
        "VM-16" stationary: bool [()] = false,
            tried "true" on Reference::Clock;
        /// Exploring episodes that are free for every action.
        "exploration quota" exploration_episodes: u32 [0..=1_000_000] = 128,
            tried "8" on Reference::Task { task: "parity", steps: 1_000 };
        /// Exploring episodes are also allowed up to the root of actions times episodes; off is an ablation.
        "exploration root" exploration_root: bool [()] = true,
            tried "false" given "exploration_episodes = 0" on Reference::Task { task: "contextual_bandit", steps: 3_000 };
        /// Where actions change what follows, most exploring episodes follow a plan drawn from the counts; off is an ablation.
        "exploration plans" exploration_plans: bool [()] = true,
            tried "false" on Reference::Task { task: "safety_grid", steps: 3_000 };
        /// More is explored while the counts leave open that more can be earned than what acts does; off is an ablation.
        "exploration hope" exploration_hope: bool [()] = true,
            tried "false" given "exploration_episodes = 0" on Reference::Task { task: "safety_grid", steps: 3_000 };
        /// A context whose rewards have changed forgets what came before and is explored again; off is an ablation.
        "exploration alarms" alarms: bool [()] = true,
            tried "false" on Reference::Change;
        /// What is BAD more often than something else is masked; off is an ablation.
        "safety" guard: bool [()] = true,
            tried "false" on Reference::Task { task: "safety_grid", steps: 1_000 };
    }
    "Scheduler" {
        /// Which scheduler divides the time.
        "5.6 and 10.3" scheduler: SchedulerKind [()] = SchedulerKind::Paced,
            tried "\"activities\"" on Reference::Task { task: "safety_grid", steps: 1_000 };
        /// Weight of the exploration bonus among activities.
        "alpha_meta" activity_exploration: Fixed [Decimals("0.25", "2")] = decimal("0.375"),
            tried "2" given "scheduler = \"activities\"" on Reference::Schedule;
        /// Weight of the prior among activities, where the rule adds it.
        "beta_meta" activity_prior: Fixed [Decimals("0", "1")] = decimal("0"),
            tried "0.5" given "scheduler = \"activities\"\nchoice_rule = \"as_printed\"\nactivity_prior_rate = 0.5" on Reference::Schedule;
        /// Step size of the activities' prior.
        "eta_z_meta" activity_prior_rate: Fixed [Decimals("0", "1")] = decimal("0"),
            tried "1" given "scheduler = \"activities\"" on Reference::Schedule;
        /// Numbers that describe the situation to the linear scheduler: a constant, whether patches wait, how new the log is,
        /// and the yield of late.
        "d_ctx" situation_size: u32 [1..=4] = 4,
            tried "1" given "scheduler = \"linear\"" on Reference::Schedule;
        /// Weight of the linear scheduler's bonus.
        "c_sched" linear_exploration: Fixed [Decimals("0", "10")] = decimal("0.5"),
            tried "0" given "scheduler = \"linear\"" on Reference::Schedule;
        /// Iterations of the linear scheduler's solver.
        "Algorithm D iterations" linear_iterations: u32 [1..=64] = 8,
            tried "1" given "scheduler = \"linear\"" on Reference::Schedule;
        /// Rise of the rate of BAD episodes above which a scheduler allows nothing but acting.
        "safety_violation_rate threshold" bad_rate_max: Fixed [Decimals("0", "1")] = decimal("0.125"),
            tried "0" given "scheduler = \"activities\"\nguard = false\nsynthesis = false" on Reference::Task { task: "safety_grid{size=5,noise=50}", steps: 8_000 };
        /// Units that one schedule is played for.
        "schedule block" schedule_block: u32 [1..=1_024] = 8,
            tried "1" given "scheduler = \"schedules\"" on Reference::Schedule;
        /// Circuits that one search may propose as patches.
        "SYNTH unit" synth_patches: u32 [1..=4_096] = 4_096,
            tried "1" on Reference::Task { task: "sorting", steps: 1_500 };
        /// Patches that one unit of VERIFY may decide.
        "VERIFY unit" verify_patches: u32 [1..=256] = 1,
            tried "4" given "scheduler = \"schedules\"" on Reference::Task { task: "sorting", steps: 4_000 };
    }
}
