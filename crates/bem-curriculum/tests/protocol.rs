//! The protocol's contract: phases, aborts, the one step, arms, resumption and what the agent may not see.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::digest::hash;
use bem_base::encode::{Reader, Writer};
use bem_curriculum::agent::{Agent, AgentConfig};
use bem_curriculum::episode::play;
use bem_curriculum::experiment::{Arm, Outcome, Trained, contrast, judge, run_seed, starve, train};
use bem_curriculum::fraction::{ONE, THRESHOLD, THRESHOLD_STEP, VARIANCE_START};
use bem_curriculum::protocol::{ConsolidateEnd, ProtocolConfig, Run, StepError, WarmupEnd};
use bem_curriculum::trace::Trace;
use bem_curriculum::world_model::WorldModel;
use bem_games::rulegrid::config::GridConfig;
use bem_games::rulegrid::view::View;
use bem_games::rulegrid::world::World;
use bem_ledger::entry::event_code;

fn run(seed: u64) -> Run {
    Run::new(ProtocolConfig::default(), AgentConfig::default(), seed).unwrap()
}

#[test]
fn the_five_criteria_pass_on_three_seeds_with_nothing_scripted() {
    let results: Vec<_> = (42..45).map(|seed| run_seed(&ProtocolConfig::default(), seed).unwrap()).collect();
    assert!(results.iter().all(|(_, trained)| *trained == Trained::Ready));
    let (outcome, criteria) = judge(&results);
    assert_eq!(outcome, Outcome::Pass, "{criteria:#?}");
    let plain: Vec<_> = results.iter().map(|(result, _)| result.clone()).collect();
    assert_eq!(contrast(&plain), "requires only the committed state");
    for (result, _) in &results {
        let (emergent, forced) = (result.arm(Arm::Emergent).unwrap(), result.arm(Arm::ForcedLow).unwrap());
        assert_eq!(emergent.episodes, forced.episodes, "both arms are evaluated on the same grids");
        assert!(emergent.writes_forced == 0 && 0 < forced.writes_forced);
        assert_eq!(result.arm(Arm::ForcedHigh).unwrap().committed_median, 0);
        assert_eq!(result.foreign_writes, 0);
        assert!(!result.threshold_step_used);
        let (hold, none) = (result.pilot_arm(Arm::Emergent).unwrap(), result.pilot_arm(Arm::NoHold).unwrap());
        assert!(none.success_milli + 200 <= hold.success_milli);
    }
}

#[test]
fn an_untrained_agent_never_commits() {
    let mut run = run(42);
    let reports = run.evaluate(&GridConfig::of_difficulty(4), 5, &mut ());
    assert!(reports.iter().all(|report| report.committed_steps == 0));
    assert!(VARIANCE_START < run.agent.gate().variance(), "an untrained model explains nothing");
}

#[test]
fn starved_controls_abort_at_the_registered_probe() {
    for seed in 42..45 {
        let controls = starve(&ProtocolConfig::default(), seed).unwrap();
        assert_eq!(controls[0].aborted_at, Some(24));
        assert_eq!(controls[1].aborted_at, Some(24));
        assert_eq!((controls[0].variance_milli, controls[1].variance_milli), (1_000, 500));
        assert!(24 <= controls[2].aborted_at.unwrap());
        assert!(controls[3].aborted_at.is_some());
    }
}

#[test]
fn a_starved_control_that_does_not_abort_fails_the_whole_run() {
    let (mut result, trained) = run_seed(&ProtocolConfig::default(), 42).unwrap();
    result.starved[1].as_required = false;
    let (outcome, criteria) = judge(&[(result, trained)]);
    assert_eq!((outcome, outcome.exit_code()), (Outcome::StarvedControlFailed, 5));
    assert!(!criteria[3].passed);
}

#[test]
fn the_threshold_is_raised_once_by_the_registered_step_and_never_again() {
    let mut fresh = run(7);
    assert_eq!(fresh.raise_threshold(THRESHOLD + 1), Err(StepError::Unregistered));
    assert_eq!(fresh.raise_threshold(THRESHOLD_STEP), Ok(()));
    assert_eq!(fresh.agent.gate().config.threshold, THRESHOLD_STEP);
    assert_eq!(fresh.raise_threshold(THRESHOLD_STEP), Err(StepError::Used));
    assert_eq!(fresh.trace.count(event_code::THRESH_STEP), 1);
    let mut later = run(7);
    later.warm_up();
    later.consolidate(1);
    assert_eq!(later.raise_threshold(THRESHOLD_STEP), Err(StepError::NotEasiest));
}

/// Hazards that drift every tick: somewhere the first gate is missed and the second met, beyond that both are.
fn drifting(hazards: u32, chance_milli: u32) -> ProtocolConfig {
    let easy = GridConfig::of_difficulty(0);
    let easy_grid = GridConfig { hazards, drift: (1, chance_milli), ..easy };
    ProtocolConfig { easy_grid, ..ProtocolConfig::default() }
}

#[test]
fn a_noisy_grid_needs_the_step_and_a_noisier_one_escalates() {
    let mut drifting_run = Run::new(drifting(8, 600), AgentConfig::default(), 42).unwrap();
    let (_, consolidate, trained) = train(&mut drifting_run);
    assert_eq!((trained, consolidate), (Trained::Escalate, None));
    assert!(drifting_run.threshold_step_used());
    let stepped = (42..50).any(|seed| {
        let mut noisy = Run::new(drifting(3, 300), AgentConfig::default(), seed).unwrap();
        let first = noisy.warm_up();
        first.end != WarmupEnd::Converged && {
            noisy.raise_threshold(THRESHOLD_STEP).unwrap();
            noisy.warm_up().end == WarmupEnd::Converged
        }
    });
    assert!(stepped, "the band in which the one step helps exists");
}

/// With a scripted error the protocol's own decisions are laid bare.
#[test]
fn a_scripted_error_between_the_gates_takes_the_step_and_one_above_both_escalates() {
    let trained = |error_milli: i64| {
        let agent = AgentConfig { scripted_error: Some(error_milli * ONE / 1_000), ..AgentConfig::default() };
        let mut run = Run::new(ProtocolConfig::default(), agent, 42).unwrap();
        let first = run.warm_up();
        assert_eq!(first.end, WarmupEnd::NotElicited { episode: 24 }, "{error_milli}");
        run.raise_threshold(THRESHOLD_STEP).unwrap();
        let second = run.warm_up();
        assert!(0 < run.agent.gate().provenance().injected);
        second.end
    };
    assert_eq!(trained(420), WarmupEnd::Converged);
    assert_eq!(trained(470), WarmupEnd::NotElicited { episode: 24 });
}

#[test]
fn a_budget_that_ends_before_three_probes_pass_names_what_failed() {
    let config = ProtocolConfig { budgets: (8, 100, 50), ..ProtocolConfig::default() };
    let mut run = Run::new(config, AgentConfig::default(), 42).unwrap();
    let warmup = run.warm_up();
    assert!(matches!(warmup.end, WarmupEnd::NotStable { .. }), "{:?}", warmup.end);
    assert_eq!(warmup.probes.len(), 2);
}

#[test]
fn the_ratchet_waits_for_its_schedule_and_never_goes_back() {
    let mut run = run(43);
    assert_eq!(run.warm_up().end, WarmupEnd::Converged);
    let begun = run.global_step();
    let phase = run.consolidate(u32::MAX).unwrap();
    assert_eq!(phase.end, ConsolidateEnd::Emerged);
    let difficulties: Vec<usize> = phase.ladder.iter().map(|step| step.difficulty).collect();
    assert_eq!(difficulties, [0, 1, 2, 3, 4]);
    let schedule = ProtocolConfig::default().introduction;
    for step in &phase.ladder {
        assert!(schedule[step.difficulty] <= step.global_step - begun);
    }
    assert_eq!(run.trace.count(event_code::RATCHET), 4);
}

/// What the agent has learned about how the world moves, read from its bytes.
fn model(run: &Run) -> WorldModel {
    let mut writer = Writer::new();
    run.agent.encode(&mut writer);
    let bytes = writer.into_bytes();
    let mut reader = Reader::new(&bytes);
    // The seed, the count of looks, whether it learns, and the average error come first.
    let _skipped =
        (reader.u64().unwrap(), reader.u64().unwrap(), reader.bool().unwrap(), reader.i64().unwrap());
    WorldModel::decode(&mut reader).unwrap()
}

#[test]
fn an_evaluation_learns_nothing_and_goes_on_measuring() {
    let mut run = run(43);
    let blank = model(&run);
    run.warm_up();
    assert_ne!(model(&run), blank, "the first phase learns");
    let mut arm = run.arm(AgentConfig::default());
    arm.evaluate(&GridConfig::of_difficulty(4), 3, &mut ());
    assert_eq!(model(&arm), model(&run));
    assert_ne!(arm.agent.gate().variance(), run.agent.gate().variance());
}

#[test]
fn a_snapshot_in_mid_consolidation_continues_bit_for_bit() {
    let mut whole = run(44);
    whole.warm_up();
    assert_eq!(whole.consolidate(17), None);
    let bytes = whole.snapshot();
    let mut resumed = Run::restore(ProtocolConfig::default(), AgentConfig::default(), &bytes).unwrap();
    let same = |a: &Run, b: &Run| hash(&a.snapshot()) == hash(&b.snapshot());
    assert!(same(&whole, &resumed));
    assert_eq!(whole.consolidate(u32::MAX), resumed.consolidate(u32::MAX));
    let target = GridConfig::of_difficulty(4);
    assert_eq!(whole.evaluate(&target, 5, &mut ()), resumed.evaluate(&target, 5, &mut ()));
    assert_eq!(whole.trace.head(), resumed.trace.head());
    assert!(same(&whole, &resumed));
    for length in (0..bytes.len()).step_by(997) {
        assert!(Run::restore(ProtocolConfig::default(), AgentConfig::default(), &bytes[..length]).is_err());
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let head = |seed| {
        let mut run = run(seed);
        run.warm_up();
        run.trace.head()
    };
    assert_eq!(head(45), head(45));
    assert_ne!(head(45), head(46));
}

/// An agent is a function of its views, and views show nothing of what is behind them; that later waypoints look
/// alike is shown beside the grid itself.
#[test]
fn relabelling_the_waypoints_leaves_the_agent_untouched() {
    let config = GridConfig::of_difficulty(4);
    let play_once = || {
        let (mut world, mut agent) = (World::new(config.clone()), Agent::new(AgentConfig::default(), 9));
        let report = play(&mut world, &mut agent, 3, 0, &mut Trace::default(), &mut ());
        (report.variance_end, agent.rule().value().to_vec())
    };
    assert_eq!(play_once(), play_once());
    // Two worlds that differ only in what is behind the view (validity, timers) look the same to the agent.
    let (mut plain, mut shadow) =
        (World::new(config.clone()), World::new(GridConfig { timeout: 500, ..config }));
    plain.reset(5, 0);
    shadow.reset(5, 123_456);
    for action in [0, 3, 1, 2, 4, 4, 3, 3] {
        assert_eq!(View::of(&plain), View::of(&shadow));
        plain.step(action);
        shadow.step(action);
    }
}

#[test]
fn the_trace_of_the_emergent_arm_shows_no_forced_write() {
    let mut run = run(42);
    run.warm_up();
    run.consolidate(u32::MAX);
    let mut arm = run.arm(Arm::Emergent.agent_config());
    arm.evaluate(&GridConfig::of_difficulty(4), 5, &mut ());
    let provenance = arm.agent.gate().provenance();
    assert!(0 < provenance.learner);
    assert_eq!((provenance.forced, provenance.injected), (0, 0));
    assert_eq!(arm.trace.count(event_code::THRESH_STEP), 0);
    assert!(0 < arm.trace.count(event_code::LATCH_ON) && 0 < arm.trace.count(event_code::CLOSURE));
}

#[test]
fn bad_configurations_do_not_start() {
    let refuse =
        |config: ProtocolConfig| Run::new(config, AgentConfig::default(), 1).unwrap_err().to_string();
    let none = GridConfig { waypoints: 0, ..GridConfig::of_difficulty(0) };
    let message = refuse(ProtocolConfig { easy_grid: none, ..ProtocolConfig::default() });
    assert!(message.starts_with("waypoints cannot be 0"), "{message}");
    let message = refuse(ProtocolConfig { probe_every: 0, ..ProtocolConfig::default() });
    assert!(message.starts_with("probe_every cannot be 0"), "{message}");
    assert!(Arm::parse("other").unwrap_err().to_string().contains("emergent, forced_low"));
}
