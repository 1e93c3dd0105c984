//! Every kind of patch from end to end: a machine plays, its log proposes, the condition is shown, the gate measures, the
//! tables change; and for every kind a patch that the gate refuses.

use super::*;
use crate::localize::{TracedEpisode, TracedStep};
use crate::patch::{Body, Change, ExpectedEffects};
use crate::propose::{Sources, propose_all};
use crate::rollout::RolloutStep;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Environment, EnvironmentError, Field, Outcome, Shape};
use bem_base::prng::{Prng, mix};
use bem_circuit::netlist::{Builder, Gate, Netlist, Op, Signal};
use bem_games::compose::{NoPrograms, TaskTree};
use bem_machine::boot::{self, BootExpert};
use bem_machine::expert::ExpertParts;
use bem_machine::machine::Machine;
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::trace::TraceEvent;
use bem_synth::policy::{Player, Policy};
use bem_synth::statement::{self, Statement};
use bem_teacher::ladder::Domain;
use bem_teacher::mutate::{TeachEdit, Transformation};
use bem_teacher::template::{TemplateId, structural_difficulty};

const FAMILY: FamilyIndex = FamilyIndex(0);

/// Eight steps an episode; four random bits are seen, and one action is right for them.
struct World {
    shape: Shape,
    right: fn(u64) -> u16,
    seed: u64,
    time: u32,
    observation: Bits,
}

impl World {
    fn new(actions: u16, right: fn(u64) -> u16) -> World {
        let shape = Shape {
            observation_bits: 4,
            actions,
            horizon: 8,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 8_000,
            fields: vec![Field { low: 0, width: 4 }],
        };
        World { shape, right, seed: 0, time: 0, observation: Bits::ZERO }
    }

    fn show(&mut self) {
        self.observation.set_field(0, 4, mix(self.seed ^ mix(u64::from(self.time))) & 15);
    }
}

impl Environment for World {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn reset(&mut self, seed: u64) -> Result<(), EnvironmentError> {
        (self.seed, self.time) = (seed, 0);
        self.show();
        Ok(())
    }

    fn observation(&self) -> &Bits {
        &self.observation
    }

    fn step(&mut self, action: u16) -> Result<Outcome, EnvironmentError> {
        let is_right = (self.right)(self.observation.field(0, 4)) == action;
        self.time += 1;
        self.show();
        Ok(Outcome { reward: 1_000 * i32::from(is_right), done: self.time == 8, bad: false })
    }
}

/// A machine in a world, with its way of changing structure and its log.
struct Bench {
    world: World,
    machine: Machine,
    evolution: Evolution,
    log: Vec<TracedEpisode>,
    seeds: Prng,
    steps: u64,
}

impl Bench {
    fn new(world: World, experts: Vec<ExpertParts>) -> Bench {
        Bench::with_config(GenesisConfig::default(), world, experts)
    }

    fn with_config(config: GenesisConfig, world: World, experts: Vec<ExpertParts>) -> Bench {
        let mut machine = Machine::new(config.clone(), 1);
        machine.add_family(world.shape.clone()).unwrap();
        for parts in experts {
            machine.install(FAMILY, parts).unwrap();
        }
        let evolution = Evolution::new(config, vec![machine.family(FAMILY).unwrap().clone()]);
        Bench { world, machine, evolution, log: Vec::new(), seeds: Prng::stream(1, "bench"), steps: 0 }
    }

    /// ACT: the machine plays and learns, step by step through the fast path.
    fn play(&mut self, episodes: usize) {
        for _ in 0..episodes {
            self.world.reset(self.seeds.next_u64()).unwrap();
            self.machine.begin(FAMILY, TaskSerial(self.steps)).unwrap();
            let mut episode = Vec::new();
            loop {
                let observation = *self.world.observation();
                let action = self.machine.act(&observation).unwrap();
                let record = *self.machine.trace().records().last().unwrap();
                let Some(TraceEvent::Step { bucket, arm: slot, .. }) = TraceEvent::from_record(record) else {
                    panic!("the step's record comes last")
                };
                let outcome = self.world.step(action).unwrap();
                self.machine.learn(&outcome).unwrap();
                self.machine.trace_mut().drain(|_| ());
                self.steps += 1;
                let loss = Fixed::from_ratio(1_000 - i64::from(outcome.reward), 1_000);
                episode.push(TracedStep { bucket, slot, loss, observation });
                if outcome.done {
                    break;
                }
            }
            self.log.push(episode);
        }
        self.evolution.renew(0, self.machine.family(FAMILY).unwrap()).unwrap();
    }

    fn proposals(&mut self, edits: &[TeachEdit]) -> Vec<Proposal> {
        let family = self.machine.family(FAMILY).unwrap();
        let pox = self.evolution.pox().clone();
        let sources = Sources { family, episodes: &self.log, edits };
        propose_all(&sources, &pox, self.evolution.notebook_mut())
    }

    /// SYNTH and VERIFY for one proposal: taken in, shown, measured if it must be, decided.
    fn judge(&mut self, proposal: Proposal) -> Record {
        self.evolution.submit(0, proposal).unwrap();
        let surroundings =
            Surroundings { bad: &[], safety: SafetyDemand::Optional, step: self.steps, span: None };
        let record = match self.evolution.advance(&surroundings) {
            Advance::Decided(record) => *record,
            Advance::Measuring => self.measure(),
            Advance::Idle => panic!("a patch waits"),
        };
        // The barrier: what was applied is in force from the next step on.
        *self.machine.family_mut(FAMILY).unwrap() = self.evolution.family(0).unwrap().clone();
        record
    }

    fn measure(&mut self) -> Record {
        let mut duel = self.evolution.duel().unwrap();
        loop {
            let seed = self.seeds.next_u64();
            let new = duel.new.play(&mut self.world, seed).unwrap();
            let old = duel.old.play(&mut self.world, seed).unwrap();
            self.steps += (new.steps.len() + old.steps.len()) as u64;
            if let Some(record) = self.evolution.book_pair(&new, &old, self.steps) {
                return record;
            }
        }
    }

    /// Watches the latest change until the watch ends; a record if it was taken back.
    fn watch(&mut self) -> Option<Record> {
        while let Some(mut duel) = self.evolution.watch_duel() {
            let seed = self.seeds.next_u64();
            let new = duel.new.play(&mut self.world, seed).unwrap();
            let old = duel.old.play(&mut self.world, seed).unwrap();
            if let Some(record) = self.evolution.book_watch(&new, &old, self.steps) {
                *self.machine.family_mut(FAMILY).unwrap() = self.evolution.family(0).unwrap().clone();
                return Some(record);
            }
        }
        None
    }

    /// Judges proposals of one kind, as long as the log suggests any, until one is applied.
    fn evolve(&mut self, kind: PatchKind) -> Record {
        for _ in 0..8 {
            let proposals = self.proposals(&[]);
            for proposal in proposals.into_iter().filter(|proposal| proposal.kind() == kind) {
                let record = self.judge(proposal);
                if record.is_applied() {
                    return record;
                }
            }
        }
        panic!("no {kind:?} patch was applied")
    }

    /// Mean return of the frozen machine, in milli-units a step.
    fn mean_reward(&mut self) -> i64 {
        let family = self.evolution.family(0).unwrap();
        let mut performer = Performer::frozen(self.evolution.config(), family);
        let seeds: Vec<u64> = (0..100).map(|_| self.seeds.next_u64()).collect();
        let totals = seeds.iter().map(|seed| performer.play(&mut self.world, *seed).unwrap().total());
        totals.sum::<i64>() / 800
    }
}

fn constants(shape: &Shape, actions: &[u16]) -> Vec<ExpertParts> {
    let layout = bem_machine::layout::StateLayout::new(&GenesisConfig::default(), shape).unwrap();
    actions.iter().map(|action| boot::parts(&layout, BootExpert::Constant(*action)).unwrap()).collect()
}

fn body(reads: &[u16], circuit: Netlist) -> ExpertParts {
    let body = Body { reads: reads.to_vec(), writes: vec![4], circuit, sticky: false, safe: false };
    body.to_parts(0)
}

/// Action 1 is right where bit 2 is set, and there is an expert for each action.
fn divided() -> Bench {
    let world = World::new(2, |seen| (seen >> 2 & 1) as u16);
    let experts = constants(&world.shape, &[0, 1]);
    let mut bench = Bench::new(world, experts);
    bench.play(250);
    bench
}

fn proposal(change: Change, improvement: Option<Improvement>) -> Proposal {
    Proposal { change, improvement, effects: ExpectedEffects::default(), words: "by hand".to_string() }
}

#[track_caller]
fn assert_refused(record: &Record, part: &str) {
    let Verdict::Refused { reason, .. } = &record.verdict else { panic!("it was let in: {record:?}") };
    assert!(reason.contains(part), "{reason}");
}

#[test]
fn a_split_is_proposed_from_the_log_and_doubles_the_reward() {
    let mut bench = divided();
    assert!(bench.mean_reward() < 600);
    let record = bench.evolve(PatchKind::Split);
    assert!(matches!(&record.verdict, Verdict::Applied { accepted, .. } if 0 < accepted.verified().proofs()));
    bench.play(150);
    assert!(980 < bench.mean_reward());
    assert_eq!(bench.watch(), None);
    let guard = bench.evolution.guards()[0];
    assert!(guard.holds() && guard.basis == Basis::Watch && guard.return_before < guard.return_after);
}

#[test]
fn a_split_without_a_gain_in_the_log_is_refused() {
    let mut bench = divided();
    let good = bench.proposals(&[]).into_iter().find(|proposal| proposal.kind() == PatchKind::Split).unwrap();
    let Change::Split { bucket, .. } = good.change else { panic!("a split was asked for") };
    let by = vec![bem_machine::route::directory::RouteInput::State(0)];
    let mut after = bench.evolution.family(0).unwrap().directory().clone();
    after.split(bucket, &by).unwrap();
    let change = Change::Split { bucket, by, after };
    let logged = Improvement::Logged { lower_bound: Fixed::from_ratio(-1, 100), steps: 2_000 };
    assert_refused(&bench.judge(proposal(change.clone(), Some(logged))), "return may fall");
    // Rollouts say the same: nothing is gained.
    assert_refused(&bench.judge(proposal(change, None)), "");
}

#[test]
fn a_merge_of_two_experts_that_are_right_on_the_sides_of_a_bit_is_measured_and_applied() {
    let mut bench = divided();
    let record = bench.evolve(PatchKind::Merge);
    let Verdict::Applied { accepted, .. } = &record.verdict else { panic!("it was turned down: {record:?}") };
    let Improvement::Rollouts(evidence) = accepted.improvement() else {
        panic!("a merge is measured by rollouts")
    };
    assert!(Fixed::ZERO <= evidence.lower_bound && Fixed::from_ratio(1, 4) < evidence.mean);
    assert!(3 <= accepted.verified().proofs());
    // The members are gone, the one expert is there, and its rollouts count for it.
    let family = bench.evolution.family(0).unwrap();
    assert_eq!(family.occupied().count(), 2);
    assert!(980 < bench.mean_reward());
    let guard = bench.evolution.guards()[0];
    assert!(guard.holds() && guard.basis == Basis::Gate && guard.pairs == evidence.pairs);
}

#[test]
fn a_merge_that_the_world_no_longer_rewards_is_refused() {
    let mut bench = divided();
    let merges = |proposal: &Proposal| proposal.kind() == PatchKind::Merge;
    let merge = bench.proposals(&[]).into_iter().find(merges).unwrap();
    bench.world.right = |_| 0;
    bench.log.clear();
    bench.play(100);
    assert_refused(&bench.judge(merge), "return may fall");
    assert_eq!(bench.evolution.family(0).unwrap().occupied().count(), 3);
}

/// In five of eight cases the opposite of bit 0 is right; one expert copies the bit, another turns the last action round.
fn in_sequence() -> Bench {
    let world = World::new(2, |seen| (seen & 1 ^ u64::from(seen >> 1 < 5)) as u16);
    let copy = Netlist::new(1, Vec::new(), vec![Signal::input(0)]).unwrap();
    let mut builder = Builder::new(1);
    let turned = builder.not(Signal::input(0));
    let turn = builder.finish(&[turned]).unwrap();
    let experts = vec![body(&[0], copy), body(&[4], turn)];
    let mut bench = Bench::new(world, experts);
    bench.play(1_500);
    bench
}

#[test]
fn a_macro_of_two_experts_that_follow_each_other_does_what_neither_can() {
    let mut bench = in_sequence();
    assert!(bench.mean_reward() < 560);
    let record = bench.evolve(PatchKind::Macro);
    assert!(record.is_applied());
    let family = bench.evolution.family(0).unwrap();
    let (_, expert) = family.occupied().last().unwrap();
    assert_ne!(expert.routing().macro_tag, 0);
    assert!(590 < bench.mean_reward());
}

#[test]
fn a_macro_that_brings_nothing_is_refused_and_not_proposed_again() {
    let mut bench = in_sequence();
    bench.world.right = |_| 0;
    let macros = |proposal: &Proposal| proposal.kind() == PatchKind::Macro;
    let proposals: Vec<Proposal> = bench.proposals(&[]).into_iter().filter(macros).collect();
    assert!(!proposals.is_empty());
    for proposal in proposals.clone() {
        assert_refused(&bench.judge(proposal), "");
    }
    assert!(bench.proposals(&[]).iter().all(|again| !proposals.contains(again)));
}

#[test]
fn an_expert_that_is_dominated_is_retired() {
    let world = World::new(4, |_| 1);
    let experts = constants(&world.shape, &[0, 1, 2, 3]);
    let mut bench = Bench::new(world, experts);
    bench.play(400);
    let before = bench.mean_reward();
    let record = bench.evolve(PatchKind::Retire);
    assert!(record.words.starts_with("slot"));
    assert_eq!(bench.evolution.family(0).unwrap().occupied().count(), 4);
    assert_eq!((before, bench.mean_reward()), (1_000, 1_000));
}

#[test]
fn the_best_expert_cannot_be_retired() {
    let world = World::new(4, |_| 1);
    let experts = constants(&world.shape, &[0, 1, 2, 3]);
    let mut bench = Bench::new(world, experts);
    bench.play(400);
    assert_refused(&bench.judge(proposal(Change::Retire { slot: 2 }, None)), "return may fall");
    assert_refused(&bench.judge(proposal(Change::Retire { slot: 0 }, None)), "slot 0");
}

/// A world in which the right action has become another one, and a machine whose own detector is asleep.
fn changed() -> Bench {
    let config = GenesisConfig { change_threshold: Fixed::from_int(1_000), ..GenesisConfig::default() };
    let world = World::new(2, |_| 0);
    let experts = constants(&world.shape, &[0, 1]);
    let mut bench = Bench::with_config(config, world, experts);
    bench.play(300);
    bench.world.right = |_| 1;
    bench
}

#[test]
fn statistics_that_the_world_contradicts_are_reset_and_learned_again() {
    let mut bench = changed();
    bench.play(120);
    let record = bench.evolve(PatchKind::Reset);
    assert!(record.is_applied());
    let forgotten = bench.machine.family(FAMILY).unwrap().buckets()[0].selections_total();
    assert_eq!(forgotten, 0);
    bench.play(60);
    assert_eq!((bench.mean_reward(), bench.watch()), (1_000, None));
    assert!(bench.evolution.guards().iter().all(Guard::holds));
}

#[test]
fn a_reset_without_a_reason_in_the_statistics_is_refused() {
    let mut bench = divided();
    assert!(bench.proposals(&[]).iter().all(|proposal| proposal.kind() != PatchKind::Reset));
    let nothing = Improvement::Logged { lower_bound: Fixed::ZERO, steps: 2_000 };
    let reset = Change::Reset { bucket: 0 };
    assert_refused(&bench.judge(proposal(reset.clone(), Some(nothing))), "return may fall");
    assert_refused(&bench.judge(proposal(reset, None)), "comes with its evidence");
}

/// An expert that is right, with four gates where one is enough.
fn clumsy(config: GenesisConfig) -> Bench {
    let world = World::new(2, |seen| (seen & 1 & (seen >> 1)) as u16);
    let gate = |op, a, b| Gate { op, a, b };
    let (a, b) = (Signal::input(0), Signal::input(1));
    let nth = |place: usize| Signal::from_index(4 + place);
    let gates = vec![
        gate(Op::Nand, a, b),
        gate(Op::Nand, b, a),
        gate(Op::And, nth(0), nth(1)),
        gate(Op::Nor, nth(2), nth(2)),
    ];
    let circuit = Netlist::new(2, gates, vec![nth(3)]).unwrap();
    let mut bench = Bench::with_config(config, world, vec![body(&[0, 1], circuit)]);
    bench.play(20);
    bench
}

#[test]
fn the_circuit_that_acts_most_is_made_smaller_and_stays_the_same() {
    let mut bench = clumsy(GenesisConfig::default());
    let record = bench.evolve(PatchKind::Superoptimize);
    assert_eq!(record.words, "slot 1 with 1 gates in place of 4");
    let family = bench.machine.family(FAMILY).unwrap();
    assert_eq!(family.expert(1).unwrap().placed().circuit().gates().len(), 1);
    // Statistics stay with the slot, and there is nothing to watch.
    assert!(64 < family.buckets()[0].statistics(1).visits);
    assert!(bench.evolution.watch_duel().is_none());
    assert_eq!(bench.evolution.guards()[0].basis, Basis::Proven);
    assert!(bench.proposals(&[]).iter().all(|proposal| proposal.kind() != PatchKind::Superoptimize));
}

#[test]
fn a_few_gates_are_not_worth_it_where_the_threshold_is_high() {
    let config = GenesisConfig { improvement_threshold: Fixed::HALF, ..GenesisConfig::default() };
    let mut bench = clumsy(config);
    let smaller = |proposal: &Proposal| proposal.kind() == PatchKind::Superoptimize;
    let proposal = bench.proposals(&[]).into_iter().find(smaller).unwrap();
    assert_refused(&bench.judge(proposal), "below the threshold");
}

#[test]
fn what_the_teacher_suggests_becomes_a_template_once() {
    let tree = TaskTree::parse("mask{percent=10,bits=1}(parity{n=4})").unwrap();
    let difficulty = structural_difficulty(&tree, &NoPrograms).unwrap();
    let (parent, transformation, domain) = (TemplateId(0), Transformation::Mask, Domain(0));
    let edits = [TeachEdit { parent, transformation, tree, domain, difficulty }];
    let mut bench = divided();
    let teach = |proposal: &Proposal| proposal.kind() == PatchKind::TeachEdit;
    let edit = bench.proposals(&edits).into_iter().find(teach).unwrap();
    assert!(bench.judge(edit.clone()).is_applied());
    assert_eq!(bench.evolution.tables().templates(), ["mask{bits=1,percent=10}(parity{n=4})"]);
    assert_refused(&bench.judge(edit), "exists already");
}

fn synthesis(build: impl Fn(&mut Builder) -> Signal) -> Proposal {
    let mut builder = Builder::new(4);
    let action = build(&mut builder);
    let policy = Policy::close(builder, 4, 2, &[action], &[]).unwrap();
    let effects = ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() };
    // A function of four bits is said row by row.
    let row = |seen: u64| (seen, u64::from(Player::new(&policy).act(&Bits([seen, 0, 0, 0]))));
    let rows = (0..16).map(row).collect();
    let statement = Statement::of(statement::Choice::Rows { bits: vec![0, 1, 2, 3], rows });
    let change = Change::Synthesize { policy, statement, safe: false, examples: Vec::new(), exceptions: 0 };
    Proposal { effects, ..proposal(change, None) }
}

#[test]
fn a_synthesised_expert_is_applied_when_it_is_better_and_refused_when_it_is_not() {
    let mut bench = divided();
    assert_refused(&bench.judge(synthesis(|_| Signal::input(1))), "return may fall");
    assert!(bench.judge(synthesis(|_| Signal::input(2))).is_applied());
    assert!(980 < bench.mean_reward());
}

#[test]
fn a_patch_whose_promise_is_broken_is_taken_back_and_its_proposer_is_trusted_less() {
    let mut bench = divided();
    let before = bench.evolution.family(0).unwrap().clone();
    let merged = bench.evolve(PatchKind::Merge);
    let trusted = bench.evolution.pox().record(PatchKind::Merge).trust();
    assert_eq!(merged.pox.trust, trusted);
    // From now on the other side of the bit is right: everything that the patch promised is false.
    bench.world.right = |seen| 1 - (seen >> 2 & 1) as u16;
    let record = bench.watch().expect("the watch notices");
    let Verdict::RolledBack { reason } = record.verdict else { panic!("it was taken back") };
    assert!(Fixed::from_ratio(1, 4) < reason.mean_loss && reason.pairs < WATCH_PAIRS_MAX);
    assert_eq!((record.serial, record.kind), (merged.serial, PatchKind::Merge));
    assert!(record.pox.trust < trusted.div_count_floor(2));
    let structure = crate::apply::structure_digest;
    assert_eq!(structure(bench.machine.family(FAMILY).unwrap()), structure(&before));
    let guard = bench.evolution.guards()[0];
    assert!(guard.rolled_back && guard.holds());
    // The machine goes on with what it had, and nothing is left to watch.
    bench.play(10);
    assert_eq!(bench.watch(), None);
}

#[test]
fn a_division_of_contexts_in_between_does_not_change_what_is_watched() {
    let mut bench = divided();
    let merged = bench.evolve(PatchKind::Merge);
    let after = crate::contexts::ContextTree::from_places(&[Some(2), None, None]).unwrap();
    let evidence = Improvement::Logged { lower_bound: Fixed::HALF, steps: 1_000 };
    let surroundings =
        Surroundings { bad: &[], safety: SafetyDemand::Optional, step: bench.steps, span: None };
    let division = proposal(Change::Divide { after }, Some(evidence));
    let record = bench.evolution.decide_at_once(0, division, &surroundings).unwrap();
    assert!(record.is_applied());
    assert_eq!(bench.evolution.guards().last().unwrap().serial, record.serial);
    assert_eq!(bench.evolution.watched_guard().unwrap().serial, merged.serial);
}

#[test]
fn averages_and_threshold_move_with_every_decision_and_are_written_down() {
    let mut bench = divided();
    let start = bench.evolution.pox().clone();
    let refused = bench.judge(synthesis(|_| Signal::input(1)));
    let applied = bench.judge(synthesis(|_| Signal::input(2)));
    assert!(refused.pox.yield_average < start.yield_average());
    assert!(refused.pox.yield_average < applied.pox.yield_average);
    assert!(refused.pox.score_average < applied.pox.score_average);
    let bytes = |record: &Record| {
        let mut writer = Writer::new();
        record.encode(&mut writer);
        writer.into_bytes()
    };
    let mut moved = applied.clone();
    moved.pox.threshold = moved.pox.threshold.plus(Fixed::from_raw(1));
    assert_ne!(bytes(&applied), bytes(&moved));
    // Templates of no return keep passing: the share of what passes rises, and the threshold with it.
    let mut threshold = applied.pox.threshold;
    for n in 2..42 {
        let tree = format!("repeat{{times={}}}(parity{{n={}}})", 1 + n % 8, n);
        let difficulty = bem_teacher::template::measure(&tree).unwrap().difficulty;
        let change = Change::TeachEdit { template: 0, tree, difficulty };
        let effects = ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() };
        let record = bench.judge(Proposal { effects, ..proposal(change, Some(Improvement::Static)) });
        threshold = record.pox.threshold;
    }
    assert!(applied.pox.threshold < threshold);
}

#[test]
fn what_waits_for_tables_that_have_changed_is_obsolete() {
    let mut bench = divided();
    let split = bench.proposals(&[]).into_iter().find(|found| found.kind() == PatchKind::Split).unwrap();
    for change in [split.clone(), split] {
        bench.evolution.submit(0, change).unwrap();
    }
    let surroundings = Surroundings { bad: &[], safety: SafetyDemand::Optional, step: 0, span: None };
    assert!(
        matches!(bench.evolution.advance(&surroundings), Advance::Decided(record) if record.is_applied())
    );
    assert_eq!(bench.evolution.advance(&surroundings), Advance::Idle);
    assert_eq!((bench.evolution.queue_counts().obsolete, bench.evolution.backlog()), (1, 0));
}

#[test]
fn what_is_read_from_bytes_goes_on_the_same_even_in_the_middle_of_a_trial() {
    let bytes_of = |evolution: &Evolution| {
        let mut writer = Writer::new();
        evolution.encode(&mut writer);
        writer.into_bytes()
    };
    let mut bench = divided();
    bench.play(200);
    let proposals = bench.proposals(&[]);
    for proposal in proposals.into_iter().filter(|proposal| proposal.kind() == PatchKind::Merge) {
        bench.evolution.submit(0, proposal).unwrap();
    }
    let mut seen_in_trial = 0;
    for _ in 0..200 {
        let surroundings = Surroundings { bad: &[], safety: SafetyDemand::Optional, step: 9, span: None };
        let bytes = bytes_of(&bench.evolution);
        let mut reader = Reader::new(&bytes);
        let mut copy = Evolution::decode(bench.evolution.config().clone(), &mut reader).unwrap();
        assert_eq!(reader.finish(), Ok(()));
        assert!(bytes_of(&copy) == bytes);
        seen_in_trial += u32::from(copy.trial().is_some());
        if let Some(mut duel) = bench.evolution.duel() {
            let seed = u64::from(seen_in_trial);
            let new = duel.new.play(&mut bench.world, seed).unwrap();
            let old = duel.old.play(&mut bench.world, seed).unwrap();
            assert_eq!(copy.book_pair(&new, &old, 5), bench.evolution.book_pair(&new, &old, 5));
        } else {
            assert_eq!(copy.advance(&surroundings), bench.evolution.advance(&surroundings));
        }
    }
    assert!(3 < seen_in_trial, "{seen_in_trial}");
    let bytes = bytes_of(&bench.evolution);
    for cut in (0..bytes.len()).step_by(1 + bytes.len() / 300) {
        assert!(
            Evolution::decode(bench.evolution.config().clone(), &mut Reader::new(&bytes[..cut])).is_err()
        );
    }
}

#[test]
fn a_loss_beyond_all_that_was_seen_starts_the_test_anew() {
    let mut bench = divided();
    bench.play(200);
    let merge = bench.proposals(&[]).into_iter().find(|found| found.kind() == PatchKind::Merge).unwrap();
    bench.evolution.submit(0, merge).unwrap();
    let surroundings = Surroundings { bad: &[], safety: SafetyDemand::Optional, step: 0, span: Some(1_000) };
    assert_eq!(bench.evolution.advance(&surroundings), Advance::Measuring);
    let paid = |reward: i32| {
        let outcome = Outcome { reward, done: true, bad: false };
        Rollout { steps: vec![RolloutStep { bucket: 0, slot: 0, observation: Bits::ZERO, outcome }] }
    };
    let state = |bench: &Bench| {
        let trial = bench.evolution.trial.as_ref().unwrap();
        (trial.guard.span, trial.test.pairs(), bench.evolution.trials.tested())
    };
    let tested = state(&bench).2;
    assert_eq!(bench.evolution.book_pair(&paid(700), &paid(0), 1), None);
    assert_eq!(state(&bench), (1_000, 1, tested));
    // A gain beyond the range counts as one of the whole range; a loss beyond it says that the range was wrong.
    assert_eq!(bench.evolution.book_pair(&paid(3_000), &paid(0), 2), None);
    assert_eq!(state(&bench), (1_000, 2, tested));
    assert_eq!(bench.evolution.book_pair(&paid(0), &paid(3_000), 3), None);
    assert_eq!(state(&bench), (3_000, 1, tested + 1));
}

#[test]
fn what_must_not_happen_is_not_forgotten_when_the_test_starts_anew() {
    let mut bench = divided();
    let synthesized = synthesis(|_| Signal::TRUE);
    bench.evolution.submit(0, synthesized).unwrap();
    let surroundings = Surroundings { bad: &[], safety: SafetyDemand::Optional, step: 0, span: Some(1_000) };
    assert_eq!(bench.evolution.advance(&surroundings), Advance::Measuring);
    let paid = |reward: i32, bad: bool| {
        let outcome = Outcome { reward, done: true, bad };
        Rollout { steps: vec![RolloutStep { bucket: 0, slot: 0, observation: Bits::ZERO, outcome }] }
    };
    // Every BAD episode of the candidate costs more than all before it, so that each of them begins another test.
    for loss in [1_500, 2_500] {
        assert_eq!(bench.evolution.book_pair(&paid(0, true), &paid(loss, false), 1), None);
        let mut writer = Writer::new();
        bench.evolution.encode(&mut writer);
        let config = bench.evolution.config().clone();
        bench.evolution = Evolution::decode(config, &mut Reader::new(writer.as_bytes())).unwrap();
    }
    let record = bench.evolution.book_pair(&paid(0, true), &paid(3_500, false), 2).unwrap();
    assert_refused(&record, "3 more BAD episodes than the incumbent");
}
