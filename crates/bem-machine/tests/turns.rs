//! Turns in a world: who acts, what is drawn, what is masked, and that the frozen circuit does what the held turn does.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod support;

use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Pattern};
use bem_base::prng::Prng;
use bem_machine::config::{ChoiceRule, GenesisConfig, Word as _};
use bem_machine::expert::ExpertParts;
use bem_machine::family::Family;
use bem_machine::guard::{Guard, Rule};
use bem_machine::held::Adaptation;
use bem_machine::machine::{Edit, Machine, MachineError, Open};
use bem_machine::memory::context::{FamilyIndex, TaskSerial};
use bem_machine::route::directory::RouteInput;
use bem_machine::trace::TraceEvent;
use bem_machine::turn::{Plan, Turn, member};
use support::{Noise, random_expert};

const FAMILY: FamilyIndex = FamilyIndex(0);

fn machine(world: &Noise, seed: u64) -> Machine {
    machine_with(world, seed, ChoiceRule::UcbV)
}

fn machine_with(world: &Noise, seed: u64, choice_rule: ChoiceRule) -> Machine {
    let config = GenesisConfig { state_bits: 128, choice_rule, ..GenesisConfig::default() };
    let mut machine = Machine::new(config, seed);
    assert_eq!(machine.take_up(&world.shape), Ok(FAMILY));
    machine
}

/// An expert that reads what is seen and its memory and writes its action and its memory, as policies do.
fn policy_parts(machine: &Machine, prng: &mut Prng, sticky: bool) -> ExpertParts {
    let layout = machine.family(FAMILY).unwrap().layout().clone();
    let mut parts = random_expert(prng, machine.config(), &layout, sticky, false);
    let memory = if sticky { 3 } else { 0 };
    let kept = layout.memory().take(memory);
    let reads: Vec<u16> = layout.observation().chain(kept.clone()).map(|bit| bit as u16).collect();
    let writes = layout.action().chain(kept);
    let outputs = layout.action().len() + memory;
    parts.circuit = bem_circuit::testing::random_dense_netlist(prng, reads.len(), 40, outputs);
    parts.read.state_bits = reads;
    parts.read.shared.clear();
    parts.write.outputs = writes.map(|bit| bem_machine::expert::OutputUse::State(bit as u16)).collect();
    parts.write.integers.clear();
    parts.profile.sticky = sticky;
    parts
}

/// Plays one episode; what was seen and done.
fn play(machine: &mut Machine, world: &mut Noise, turn: Turn, plan: &dyn Plan) -> Vec<(Bits, u16, u8)> {
    world.reset();
    machine.begin_turn(FAMILY, TaskSerial(1), turn).unwrap();
    let mut steps = Vec::new();
    loop {
        let seen = world.observation;
        let action = machine.act_with(&seen, plan).unwrap();
        let outcome = world.step(action);
        machine.learn(&outcome).unwrap();
        let arm = machine.trace_mut().drain(|records| TraceEvent::from_record(records[0]).unwrap());
        let TraceEvent::Step { arm, action: recorded, .. } = arm else { panic!("a step comes first") };
        assert_eq!(recorded, action);
        steps.push((seen, action, arm));
        if outcome.done {
            return steps;
        }
    }
}

/// What the frozen circuit does for the same observations.
fn frozen_actions(family: &Family, steps: &[(Bits, u16, u8)]) -> Vec<u16> {
    let frozen = family.freeze().unwrap();
    let width = family.layout().action().len();
    let mut memory = vec![false; frozen.memory_bits];
    let mut actions = Vec::new();
    for (seen, _, _) in steps {
        let mut inputs: Vec<bool> = frozen.reads.iter().map(|bit| seen.get(usize::from(*bit))).collect();
        inputs.extend(&memory);
        let outputs = frozen.circuit.evaluate(&inputs);
        let code = outputs[..width].iter().rev().fold(0u16, |code, bit| code << 1 | u16::from(*bit));
        memory = outputs[width..].to_vec();
        actions.push(if code < family.shape().actions { code } else { 0 });
    }
    actions
}

#[test]
fn the_frozen_circuit_does_what_the_held_turn_does() {
    let mut prng = Prng::stream(1, "turns");
    for round in 0..60u64 {
        let actions = 4 + 4 * (round % 2) as u16;
        let mut world = Noise::new(round, 6, actions, 12, 0);
        let mut machine = machine(&world, round);
        for _ in 0..prng.below(8) {
            let bucket = prng.below(machine.family(FAMILY).unwrap().directory().bucket_count() as u64) as u16;
            let by = vec![RouteInput::State(prng.below(6) as u16), RouteInput::State(prng.below(6) as u16)];
            let _ = machine.edit(FAMILY, Edit::Split { cuts: vec![(bucket, by)] });
        }
        let count = machine.family(FAMILY).unwrap().directory().bucket_count();
        let held = (0..count).map(|_| prng.below(u64::from(actions)) as u16).collect();
        machine.edit(FAMILY, Edit::Hold { actions: held, rule: Adaptation::Fixed }).unwrap();
        if round % 3 != 0 {
            let parts = policy_parts(&machine, &mut prng, round % 3 == 2);
            machine.edit(FAMILY, Edit::Install(Box::new(parts))).unwrap();
        }
        // Whole observations, and patterns that look at some of the six bits.
        let seen = |number: u64| match round % 2 {
            0 => Pattern::whole(Bits([2 * number, 0, 0, 0])),
            _ => Pattern::new(Bits([number | 1 << (number % 6), 0, 0, 0]), Bits([2 * number, 0, 0, 0])),
        };
        let mut rules: Vec<Rule> = (0..prng.below(30))
            .map(|number| Rule { seen: seen(number).within(6), forbidden: 1, instead: 3 })
            .collect();
        rules.sort_unstable();
        rules.dedup();
        let guard = Guard::new(rules.clone(), actions).unwrap();
        machine.edit(FAMILY, Edit::Guard(guard)).unwrap();
        for _ in 0..20 {
            let steps = play(&mut machine, &mut world, Turn::HELD, &());
            let done: Vec<u16> = steps.iter().map(|(_, action, _)| *action).collect();
            assert_eq!(frozen_actions(machine.family(FAMILY).unwrap(), &steps), done, "round {round}");
            let drawn = play(&mut machine, &mut world, Turn::DRAW, &());
            for (seen, action, arm) in steps.iter().chain(&drawn) {
                let is_forbidden =
                    rules.iter().any(|rule| rule.seen.covers(seen) && rule.forbidden == *action);
                assert!(!is_forbidden && (*arm == member::DRAWN) == drawn.contains(&(*seen, *action, *arm)));
            }
        }
    }
}

struct Always(Option<u16>);

impl Plan for Always {
    fn advise(&self, _: &Bits) -> Option<u16> {
        self.0
    }
}

#[test]
fn every_turn_says_who_acted_and_counts_for_the_action_taken() {
    let mut world = Noise::new(5, 4, 3, 400, 0);
    let mut machine = machine(&world, 5);
    let mut prng = Prng::stream(5, "turns");
    let visits = |machine: &Machine| -> u64 {
        machine.family(FAMILY).unwrap().plain().iter().map(|bucket| bucket.selections_total()).sum()
    };
    let parts = policy_parts(&machine, &mut prng, false);
    machine.try_on(FAMILY, parts).unwrap();
    let count = |steps: &[(Bits, u16, u8)], arm: u8| steps.iter().filter(|step| step.2 == arm).count();
    for (turn, plan, wanted) in [
        (Turn::INDEX, None, member::ACTION),
        (Turn::SEAT, None, member::SEAT),
        (Turn::DRAW, None, member::DRAWN),
        (Turn::PLAN, None, member::DRAWN),
    ] {
        let before = visits(&machine);
        let steps = play(&mut machine, &mut world, turn, &Always(plan));
        assert_eq!(count(&steps, wanted), steps.len(), "{turn:?}");
        assert_eq!(visits(&machine), before + steps.len() as u64);
    }
    let advised = play(&mut machine, &mut world, Turn::PLAN, &Always(Some(2)));
    let drawn = count(&advised, member::DRAWN);
    assert!(0 < drawn && drawn < advised.len() / 4);
    assert!(advised.iter().all(|(_, action, arm)| *arm == member::DRAWN || *action == 2));
    let mixed = play(&mut machine, &mut world, Turn::PERTURBED, &());
    let drawn = count(&mixed, member::DRAWN);
    assert!(mixed.len() / 8 < drawn && drawn < mixed.len() / 2);
    machine.vacate(FAMILY).unwrap();
    assert_eq!(machine.begin_turn(FAMILY, TaskSerial(1), Turn::SEAT), Err(MachineError::NobodySeated));
}

#[test]
fn an_edit_is_taken_back_without_what_was_learned_since() {
    let mut world = Noise::new(7, 4, 4, 8, 0);
    let mut machine = machine(&world, 7);
    let mut prng = Prng::stream(7, "turns");
    let frozen = |machine: &Machine| machine.family(FAMILY).unwrap().freeze().unwrap();
    let by = vec![RouteInput::State(1)];
    machine.edit(FAMILY, Edit::Split { cuts: vec![(0, by)] }).unwrap();
    machine.edit(FAMILY, Edit::Hold { actions: vec![2, 1], rule: Adaptation::Fixed }).unwrap();
    let before = frozen(&machine);
    let first = policy_parts(&machine, &mut prng, true);
    let undo_first = machine.edit(FAMILY, Edit::Install(Box::new(first))).unwrap().unwrap();
    let with_first = frozen(&machine);
    let second = policy_parts(&machine, &mut prng, false);
    let undo = machine.edit(FAMILY, Edit::Install(Box::new(second))).unwrap().unwrap();
    assert_eq!(
        machine.edit(FAMILY, Edit::Retire { slot: undo.slot() as u8 }).err(),
        Some(MachineError::NotApplicable)
    );
    play(&mut machine, &mut world, Turn::HELD, &());
    let learned = machine.family(FAMILY).unwrap().plain()[0].clone();
    let mut writer = Writer::new();
    undo.encode(&mut writer);
    let undo =
        bem_machine::machine::Undo::decode(machine.config(), &mut Reader::new(writer.as_bytes())).unwrap();
    machine.undo(undo.clone()).unwrap();
    assert_eq!(frozen(&machine), with_first);
    assert_eq!(machine.family(FAMILY).unwrap().plain()[0], learned);
    assert_eq!(machine.undo(undo), Err(MachineError::NotApplicable));
    machine.undo(undo_first).unwrap();
    assert_eq!(frozen(&machine), before);
}

#[test]
fn a_world_comes_back_from_its_bytes_in_the_middle_of_an_episode() {
    ChoiceRule::ALL.iter().for_each(|rule| check_bytes(*rule));
}

fn check_bytes(rule: ChoiceRule) {
    let mut world = Noise::new(9, 6, 5, 300, 0);
    let mut machine = machine_with(&world, 9, rule);
    let by = vec![RouteInput::State(2)];
    machine.edit(FAMILY, Edit::Split { cuts: vec![(0, by)] }).unwrap();
    world.reset();
    machine.begin_turn(FAMILY, TaskSerial(1), Turn::INDEX).unwrap();
    let mut twin = None;
    for step in 0..200 {
        let action = machine.act(&world.observation).unwrap();
        if let Some(twin) = &mut twin {
            let twin: &mut Machine = twin;
            assert_eq!(twin.act(&world.observation).unwrap(), action);
        }
        let outcome = world.step(action);
        machine.learn(&outcome).unwrap();
        machine.trace_mut().drain(|_| ());
        if let Some(twin) = &mut twin {
            twin.learn(&outcome).unwrap();
            twin.trace_mut().drain(|_| ());
        }
        if step == 90 {
            let mut writer = Writer::new();
            machine.encode(&mut writer);
            twin = Some(Machine::<Open>::decode(&mut Reader::new(writer.as_bytes())).unwrap());
        }
    }
}

#[test]
fn the_rule_of_the_configuration_chooses_plain_actions_and_leaves_out_what_is_forbidden() {
    for rule in ChoiceRule::ALL.iter().copied() {
        let mut world = Noise::new(11, 1, 6, 400, 0);
        let mut machine = machine_with(&world, 11, rule);
        let rules = [Rule { seen: Pattern::ANY, forbidden: 2, instead: 3 }];
        let guard = Guard::new(rules.to_vec(), 6).unwrap();
        machine.edit(FAMILY, Edit::Guard(guard)).unwrap();
        let steps = play(&mut machine, &mut world, Turn::INDEX, &());
        assert!(steps.iter().all(|(_, action, arm)| *action != 2 && *arm == member::ACTION), "{rule:?}");
        let family = machine.family(FAMILY).unwrap();
        let seen = Bits([1, 0, 0, 0]);
        let chances: Vec<_> = (0..6).map(|action| family.plain_chance(&seen, action)).collect();
        let draws = [ChoiceRule::Softmax, ChoiceRule::TsallisInf].contains(&rule);
        assert!(chances.iter().all(|chance| chance.is_some() == draws), "{rule:?}");
        if draws {
            let total: i64 = chances.iter().flatten().map(|chance| chance.to_raw()).sum();
            assert!((total - (1i64 << 32)).abs() < 16 && chances[2].unwrap().to_raw() == 0, "{chances:?}");
        }
    }
}

#[test]
fn sums_by_chance_follow_wider_ranges_and_divided_contexts() {
    let mut world = Noise::new(13, 2, 4, 400, 0);
    let mut machine = machine_with(&world, 13, ChoiceRule::TsallisInf);
    (0..20).for_each(|_| drop(play(&mut machine, &mut world, Turn::INDEX, &())));
    let chances = |machine: &Machine, seen: u64| -> Vec<i64> {
        let family = machine.family(FAMILY).unwrap();
        (0..4).map(|action| family.plain_chance(&Bits([seen, 0, 0, 0]), action).unwrap().to_raw()).collect()
    };
    let before = chances(&machine, 0);
    machine.edit(FAMILY, Edit::Split { cuts: vec![(0, vec![RouteInput::State(0)])] }).unwrap();
    assert_eq!((chances(&machine, 0), chances(&machine, 1)), (before.clone(), before.clone()));
    // Twice the range: what one arm is ahead of another halves, and all come closer to equal.
    let mut wider = world.shape.clone();
    wider.cover_reward(2 * wider.reward_max - wider.reward_min);
    machine.cover(FAMILY, &wider).unwrap();
    let after = chances(&machine, 0);
    let spread =
        |chances: &[i64]| chances.iter().max().zip(chances.iter().min()).map(|(most, least)| most - least);
    assert!(spread(&after) < spread(&before), "{before:?} {after:?}");
    let mut writer = Writer::new();
    machine.encode(&mut writer);
    let again = Machine::<Open>::decode(&mut Reader::new(writer.as_bytes())).unwrap();
    assert_eq!(chances(&again, 1), chances(&machine, 1));
}
