//! Patches from end to end on a live machine: shown, measured by pairs of turns, put into force, watched and taken back;
//! and for every kind of evidence a patch that is refused.

use super::trial::Test;
use super::*;
use crate::improvement::interleaved::{Played, Side};
use crate::patch::ExpectedEffects;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Field, Outcome, Shape};
use bem_base::prng::{Prng, mix};
use bem_circuit::netlist::{Builder, Signal};
use bem_machine::held::Adaptation;
use bem_machine::machine::Machine;
use bem_machine::memory::context::TaskSerial;
use bem_machine::route::directory::RouteInput;
use bem_machine::turn::Turn;
use bem_synth::policy::Policy;
use bem_synth::statement::{self, Statement};

const FAMILY: FamilyIndex = FamilyIndex(0);

/// Eight steps an episode; four random bits are seen, and one action is right for them.
struct World {
    right: fn(u64) -> u16,
    seed: u64,
    time: u32,
    observation: Bits,
}

impl World {
    fn shape() -> Shape {
        Shape {
            observation_bits: 4,
            actions: 2,
            horizon: 8,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 8_000,
            fields: vec![Field { low: 0, width: 4 }],
        }
    }

    fn reset(&mut self, seed: u64) {
        (self.seed, self.time) = (seed, 0);
        self.show();
    }

    fn show(&mut self) {
        self.observation.set_field(0, 4, mix(self.seed ^ mix(u64::from(self.time))) & 15);
    }

    fn step(&mut self, action: u16) -> Outcome {
        let is_right = (self.right)(self.observation.field(0, 4)) == action;
        self.time += 1;
        self.show();
        Outcome { reward: 1_000 * i32::from(is_right), done: self.time == 8, bad: false }
    }
}

struct Bench {
    world: World,
    machine: Live,
    evolution: Evolution,
    seeds: Prng,
    steps: u64,
}

impl Bench {
    fn new(right: fn(u64) -> u16) -> Bench {
        let defaults = GenesisConfig::default();
        let improvement_threshold = defaults.improvement_threshold_min;
        let config = GenesisConfig { improvement_threshold, ..defaults };
        let mut machine: Live = Machine::sealed(config.clone(), 1);
        machine.take_up(&World::shape()).unwrap();
        let world = World { right, seed: 0, time: 0, observation: Bits::ZERO };
        Bench { world, machine, evolution: Evolution::new(config), seeds: Prng::stream(1, "bench"), steps: 0 }
    }

    fn play(&mut self, seed: u64, turn: Turn) -> Rollout {
        self.world.reset(seed);
        self.machine.begin_turn(FAMILY, TaskSerial(seed), turn).unwrap();
        let mut rollout = Rollout::default();
        loop {
            let action = self.machine.act(&self.world.observation).unwrap();
            let outcome = self.world.step(action);
            self.machine.learn(&outcome).unwrap();
            self.machine.trace_mut().drain(|_| ());
            rollout.total += i64::from(outcome.reward);
            rollout.steps += 1;
            self.steps += 1;
            if outcome.done {
                return rollout;
            }
        }
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings { step: self.steps, span: None, unpaired: None }
    }

    fn judge(&mut self, proposal: Proposal) -> Record {
        self.evolution.submit(&self.machine, FAMILY, proposal).unwrap();
        let surroundings = self.surroundings();
        match self.evolution.advance(&mut self.machine, &surroundings) {
            Advance::Decided(record) => *record,
            Advance::Measuring => self.measure(),
            Advance::Idle => panic!("a patch waits"),
        }
    }

    fn measure(&mut self) -> Record {
        loop {
            let seed = self.seeds.next_u64();
            let (new, old) = (self.play(seed, Turn::SEAT), self.play(seed, Turn::HELD));
            if let Some(record) = self.evolution.book_pair(&mut self.machine, &new, &old, self.steps) {
                return record;
            }
        }
    }

    /// Plays pairs of the watch until it ends; a record if the patch was taken back.
    fn watch(&mut self) -> Option<Record> {
        while let Some(undo) = self.evolution.watched_undo() {
            let before = undo.held().map_or(Turn::PLAIN, |slot| Turn::member(slot as u8));
            let seed = self.seeds.next_u64();
            let (new, old) = (self.play(seed, Turn::HELD), self.play(seed, before));
            let record = self.evolution.book_watch(&mut self.machine, &new, &old, self.steps);
            if record.is_some() {
                return record;
            }
        }
        None
    }

    /// Mean return of what is held, in milli-units a step.
    fn mean_reward(&mut self) -> i64 {
        (0..50)
            .map(|_| self.seeds.next_u64())
            .collect::<Vec<_>>()
            .into_iter()
            .map(|seed| self.play(seed, Turn::HELD).total)
            .sum::<i64>()
            / 400
    }
}

/// The policy whose action is this function of the four bits.
fn policy(build: impl Fn(&mut Builder) -> Signal) -> Policy {
    let mut builder = Builder::new(4);
    let action = build(&mut builder);
    Policy::close(builder, 4, 2, &[action], &[]).unwrap()
}

fn copies(bit: usize) -> Policy {
    policy(|_| Signal::input(bit))
}

fn synthesized(policy: Policy) -> Change {
    let bit = policy.reads()[0];
    let statement =
        Statement::of(statement::Choice::Bits(vec![statement::Formula::literal(usize::from(bit), false)]));
    Change::Synthesize { policy, statement, examples: Vec::new(), exceptions: 0 }
}

fn proposal(change: Change, improvement: Option<Improvement>) -> Proposal {
    let effects = ExpectedEffects { novelty: Fixed::ONE, ..ExpectedEffects::default() };
    Proposal { change, improvement, effects, words: "by hand".to_string() }
}

#[track_caller]
fn assert_refused(record: &Record, part: &str) {
    let Verdict::Refused { reason, .. } = &record.verdict else { panic!("it was let in: {record:?}") };
    assert!(reason.contains(part), "{reason}");
}

#[test]
fn a_synthesised_expert_wins_its_pairs_and_is_held_from_then_on() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    assert!(bench.mean_reward() < 600);
    let record = bench.judge(proposal(synthesized(copies(2)), None));
    let Verdict::Applied { accepted, structure } = &record.verdict else { panic!("turned down: {record:?}") };
    assert!(
        matches!(accepted.improvement(), Improvement::Rollouts(evidence) if Fixed::ZERO < evidence.lower_bound)
    );
    assert_ne!(structure.0, structure.1);
    assert_eq!(structure.1, structure_digest(bench.machine.family(FAMILY).unwrap()));
    assert_eq!(bench.mean_reward(), 1_000);
    assert!(bench.machine.begin_turn(FAMILY, TaskSerial(1), Turn::SEAT).is_err(), "the seat is empty again");
    assert_eq!(bench.watch(), None);
    let guard = bench.evolution.guards()[0];
    assert!(guard.holds() && guard.basis == Basis::Gate && guard.return_before < guard.return_after);
}

const EARLIER: Earlier = Earlier { low: 0, high: 8_000, mean: 4_000 };

impl Bench {
    /// One episode on a seed that never comes again, by whom the coin names; the candidate is whose turn comes first.
    fn toss(&mut self, turns: [Turn; 2]) -> Played {
        let side = Side::of(self.seeds.bit());
        let seed = self.seeds.next_u64();
        let rollout = self.play(seed, turns[usize::from(side == Side::Incumbent)]);
        Played { side, total: rollout.total, since: rollout.total, is_bad: false, differs: true }
    }

    /// Judges a proposal in a world that cannot be repeated.
    fn judge_unpaired(&mut self, proposal: Proposal) -> Record {
        self.evolution.submit(&self.machine, FAMILY, proposal).unwrap();
        let surroundings = Surroundings { unpaired: Some(EARLIER), ..self.surroundings() };
        let advance = self.evolution.advance(&mut self.machine, &surroundings);
        assert_eq!(advance, Advance::Measuring);
        loop {
            let played = self.toss([Turn::SEAT, Turn::HELD]);
            if let Some(record) = self.evolution.book_episode(&mut self.machine, &played, self.steps) {
                return record;
            }
        }
    }
}

#[test]
fn without_pairs_an_expert_is_let_in_by_interleaved_episodes_and_taken_back_by_them() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    assert_refused(&bench.judge_unpaired(proposal(synthesized(copies(1)), None)), "return may fall");
    let record = bench.judge_unpaired(proposal(synthesized(copies(2)), None));
    let Verdict::Applied { accepted, .. } = &record.verdict else { panic!("turned down: {record:?}") };
    assert!(matches!(accepted.improvement(), Improvement::Interleaved(_)));
    assert_eq!((bench.evolution.alpha.entered()[0], bench.mean_reward()), (2, 1_000));
    let guard = bench.evolution.guards()[0];
    assert!(guard.holds() && guard.return_before < guard.return_after);
    bench.world.right = |seen| 1 - (seen >> 2 & 1) as u16;
    let mut taken_back = None;
    while let Some(undo) = bench.evolution.watched_undo() {
        let before = undo.held().map_or(Turn::PLAIN, |slot| Turn::member(slot as u8));
        let played = bench.toss([before, Turn::HELD]);
        taken_back = bench.evolution.book_watch_episode(&mut bench.machine, &played, EARLIER, bench.steps);
    }
    assert!(matches!(taken_back.unwrap().verdict, Verdict::RolledBack { .. }));
    assert!(bench.machine.family(FAMILY).unwrap().held().member().is_none());
}

#[test]
fn what_does_not_win_its_pairs_is_refused_and_nothing_has_changed() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    assert!(bench.judge(proposal(synthesized(copies(2)), None)).is_applied());
    let before = structure_digest(bench.machine.family(FAMILY).unwrap());
    assert_refused(&bench.judge(proposal(synthesized(copies(1)), None)), "return may fall");
    assert_eq!(structure_digest(bench.machine.family(FAMILY).unwrap()), before);
    // Nothing that a proposer says beforehand takes the place of pairs.
    let logged = Improvement::Logged { lower_bound: Fixed::ONE, steps: 1_000 };
    assert_refused(&bench.judge(proposal(synthesized(copies(0)), Some(logged))), "return may fall");
}

#[test]
fn a_patch_that_the_world_no_longer_rewards_is_taken_back_and_what_was_learned_since_stays() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    assert!(bench.judge(proposal(synthesized(copies(2)), None)).is_applied());
    let with_patch = bench.machine.family(FAMILY).unwrap().held().member();
    bench.world.right = |seen| 1 - (seen >> 2 & 1) as u16;
    let visits = |bench: &Bench| bench.machine.family(FAMILY).unwrap().plain()[0].selections_total();
    let before = visits(&bench);
    let record = bench.watch().expect("it fails at every step");
    assert!(matches!(record.verdict, Verdict::RolledBack { .. }));
    assert!(with_patch.is_some() && bench.machine.family(FAMILY).unwrap().held().member().is_none());
    assert!(before < visits(&bench), "the steps of the watch count");
    assert!(bench.evolution.guards()[0].rolled_back && bench.evolution.watched().is_none());
}

#[test]
fn a_plan_may_be_put_into_force_on_counts_and_is_replaced_by_what_wins_pairs() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    let counted = |gain| Some(Improvement::Counted { gain, episodes: 20 });
    assert_refused(&bench.judge(proposal(synthesized(copies(1)), counted(Fixed::ZERO))), "return may fall");
    let record = bench.judge(proposal(synthesized(copies(1)), counted(Fixed::HALF)));
    assert!(record.is_applied() && bench.evolution.watched().is_some());
    assert!(bench.judge(proposal(synthesized(copies(2)), None)).is_applied());
    assert_eq!(bench.mean_reward(), 1_000);
    // The plan is not held any more, so that it can go; what is held cannot.
    let family = bench.machine.family(FAMILY).unwrap();
    let held = family.held().member().unwrap() as u8;
    let idle =
        family.occupied().map(|(slot, _)| slot as u8).find(|slot| *slot != 0 && *slot != held).unwrap();
    let retire = |slot| proposal(Change::Retire { slot }, Some(Improvement::Static));
    assert_refused(&bench.judge(retire(held)), "held");
    assert!(bench.judge(retire(idle)).is_applied());
    assert_refused(&bench.judge(retire(idle)), "empty");
}

#[test]
fn a_plan_on_counts_is_taken_back_where_pairs_speak_against_it() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    assert!(bench.judge(proposal(synthesized(copies(2)), None)).is_applied());
    let counted = Some(Improvement::Counted { gain: Fixed::HALF, episodes: 20 });
    assert!(bench.judge(proposal(synthesized(copies(1)), counted)).is_applied());
    assert!(bench.mean_reward() < 1_000, "the counts were wrong");
    assert!(matches!(bench.watch().unwrap().verdict, Verdict::RolledBack { .. }));
    assert_eq!(bench.mean_reward(), 1_000);
}

#[test]
fn a_smaller_circuit_is_taken_back_together_with_what_it_replaces() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    let clumsy = Policy::new(
        bem_circuit::netlist::Netlist::new(
            1,
            vec![
                bem_circuit::netlist::Gate {
                    op: bem_circuit::netlist::Op::And,
                    a: Signal::input(0),
                    b: Signal::input(0),
                },
                bem_circuit::netlist::Gate {
                    op: bem_circuit::netlist::Op::Or,
                    a: Signal::from_index(3),
                    b: Signal::input(0),
                },
            ],
            vec![Signal::from_index(4)],
        )
        .unwrap(),
        vec![2],
        0,
        2,
    )
    .unwrap();
    assert!(bench.judge(proposal(synthesized(clumsy), None)).is_applied());
    let slot = bench.machine.family(FAMILY).unwrap().held().member().unwrap() as u8;
    let mut notebook = Notebook::default();
    let smaller =
        crate::propose::propose_smaller(bench.machine.family(FAMILY).unwrap(), slot, &mut notebook).unwrap();
    assert!(bench.judge(smaller).is_applied());
    assert_eq!(bench.mean_reward(), 1_000);
    bench.world.right = |seen| 1 - (seen >> 2 & 1) as u16;
    assert!(bench.watch().is_some());
    assert_eq!(bench.machine.family(FAMILY).unwrap().held().member(), None);
}

#[test]
fn buckets_and_plain_actions_change_on_what_the_log_says() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    let cuts = vec![(0, vec![RouteInput::State(2)])];
    let mut after = bench.machine.family(FAMILY).unwrap().directory().clone();
    after.split(0, &cuts[0].1).unwrap();
    let split = |lower_bound| {
        proposal(
            Change::Split { cuts: cuts.clone(), after: after.clone() },
            Some(Improvement::Logged { lower_bound, steps: 100 }),
        )
    };
    assert_refused(&bench.judge(split(Fixed::ZERO)), "return may fall");
    assert!(bench.judge(split(Fixed::HALF)).is_applied());
    let hold = |actions: Vec<u16>| {
        proposal(
            Change::Hold { actions, rule: Adaptation::Fixed },
            Some(Improvement::Means { gain: Fixed::HALF, steps: 100 }),
        )
    };
    assert_refused(&bench.judge(hold(vec![1])), "every bucket");
    assert!(bench.judge(hold(vec![0, 1])).is_applied());
    assert_eq!(bench.mean_reward(), 1_000);
    // Patches about experts do not become obsolete by that, and those about buckets do not by experts.
    let serial = bench.evolution.submit(&bench.machine, FAMILY, hold(vec![1, 1])).unwrap();
    assert!(0 < serial);
}

#[test]
fn the_way_of_patches_goes_on_from_its_bytes_in_the_middle_of_a_trial_and_of_a_watch() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    bench.evolution.submit(&bench.machine, FAMILY, proposal(synthesized(copies(2)), None)).unwrap();
    let surroundings = bench.surroundings();
    assert_eq!(bench.evolution.advance(&mut bench.machine, &surroundings), Advance::Measuring);
    let mut decided = None;
    for round in 0..400 {
        let (mut machine, mut bytes) = (Writer::new(), Writer::new());
        bench.machine.encode(&mut machine);
        bench.evolution.encode(&mut bytes);
        let config = bench.evolution.config().clone();
        bench.machine = Machine::decode(&mut Reader::new(machine.as_bytes())).unwrap();
        let (evolution, claim) = Evolution::parse(config, &mut Reader::new(bytes.as_bytes())).unwrap();
        bench.evolution = evolution;
        if let Some(claim) = claim {
            bench.evolution.prove(&mut bench.machine, claim).unwrap();
        }
        let mut again = Writer::new();
        bench.evolution.encode(&mut again);
        assert_eq!(again.as_bytes(), bytes.as_bytes());
        if decided.is_some() {
            break;
        }
        let seed = mix(round);
        let (new, old) = (bench.play(seed, Turn::SEAT), bench.play(seed, Turn::HELD));
        decided = bench.evolution.book_pair(&mut bench.machine, &new, &old, bench.steps);
    }
    assert!(decided.is_some_and(|record| record.is_applied()) && bench.evolution.watched().is_some());
}

#[test]
fn a_loss_beyond_all_that_was_seen_starts_the_test_anew() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    bench.evolution.submit(&bench.machine, FAMILY, proposal(synthesized(copies(2)), None)).unwrap();
    let surroundings = Surroundings { span: Some(1_000), ..bench.surroundings() };
    assert_eq!(bench.evolution.advance(&mut bench.machine, &surroundings), Advance::Measuring);
    let paid = |total: i64| Rollout { total, is_bad: false, steps: 1 };
    let state = |bench: &Bench| {
        let trial = bench.evolution.trial.as_ref().unwrap();
        let Test::Paired(test) = &trial.test else { panic!("pairs are played") };
        (trial.guard.span, test.pairs(), bench.evolution.alpha.entered()[0])
    };
    let book = |bench: &mut Bench, new: i64, old: i64| {
        let decided = bench.evolution.book_pair(&mut bench.machine, &paid(new), &paid(old), 1);
        assert_eq!(decided, None);
        state(bench)
    };
    let tested = state(&bench).2;
    assert_eq!(book(&mut bench, 700, 0), (1_000, 1, tested));
    // A gain beyond the range counts as one of the whole range; a loss beyond it says that the range was wrong.
    assert_eq!(book(&mut bench, 3_000, 0), (1_000, 2, tested));
    assert_eq!(book(&mut bench, 0, 3_000), (3_000, 1, tested + 1));
}

#[test]
fn what_must_not_happen_is_not_forgotten_when_the_test_starts_anew() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    bench.evolution.submit(&bench.machine, FAMILY, proposal(synthesized(copies(2)), None)).unwrap();
    let surroundings = Surroundings { span: Some(1_000), ..bench.surroundings() };
    assert_eq!(bench.evolution.advance(&mut bench.machine, &surroundings), Advance::Measuring);
    let paid = |total: i64, is_bad: bool| Rollout { total, is_bad, steps: 1 };
    let book = |bench: &mut Bench, loss: i64| {
        bench.evolution.book_pair(&mut bench.machine, &paid(0, true), &paid(loss, false), 1)
    };
    // Every BAD episode of the candidate costs more than all before it, so that each of them begins another test.
    for loss in [1_500, 2_500] {
        assert_eq!(book(&mut bench, loss), None);
    }
    let record = book(&mut bench, 3_500).unwrap();
    assert_refused(&record, "3 more BAD episodes than the incumbent");
}

#[test]
fn averages_and_threshold_move_with_every_decision_and_are_written_down() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    let start = bench.evolution.pox().clone();
    let refused = bench.judge(proposal(synthesized(copies(1)), None));
    let applied = bench.judge(proposal(synthesized(copies(2)), None));
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
        threshold = bench.judge(proposal(change, Some(Improvement::Static))).pox.threshold;
    }
    assert!(applied.pox.threshold < threshold);
}

#[test]
fn what_waits_for_a_structure_that_has_changed_is_obsolete() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    let hold = |action: u16| {
        proposal(
            Change::Hold { actions: vec![action], rule: Adaptation::Fixed },
            Some(Improvement::Means { gain: Fixed::HALF, steps: 100 }),
        )
    };
    for action in [1, 0] {
        bench.evolution.submit(&bench.machine, FAMILY, hold(action)).unwrap();
    }
    let surroundings = bench.surroundings();
    let decided = bench.evolution.advance(&mut bench.machine, &surroundings);
    assert!(matches!(decided, Advance::Decided(record) if record.is_applied()));
    assert_eq!(bench.evolution.advance(&mut bench.machine, &surroundings), Advance::Idle);
    assert_eq!((bench.evolution.queue.counts().obsolete, bench.evolution.backlog()), (1, 0));
}

#[test]
fn what_the_teacher_suggests_becomes_a_template_once() {
    let mut bench = Bench::new(|seen| (seen >> 2 & 1) as u16);
    let tree = "mask{bits=1,percent=10}(parity{n=4})".to_string();
    let difficulty = bem_teacher::template::measure(&tree).unwrap().difficulty;
    let teach = proposal(Change::TeachEdit { template: 0, tree, difficulty }, Some(Improvement::Static));
    assert!(bench.judge(teach.clone()).is_applied());
    assert_eq!(bench.evolution.tables().templates().len(), 1);
    assert_refused(&bench.judge(teach), "exists already");
}
