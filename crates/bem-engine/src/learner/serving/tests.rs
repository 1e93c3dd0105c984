//! Both halves of a served world: what they learn, how likely they choose, and that they come back from their bytes.

use super::*;
use crate::payload::Payload;
use bem_base::environment::Field;

const ONE_STEP: u32 = 1;

fn shape(bits: u16, actions: u16, horizon: u32) -> Shape {
    Shape {
        observation_bits: bits,
        actions,
        fields: (0..bits).map(|low| Field { low, width: 1 }).collect(),
        horizon,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000 * i64::from(horizon),
    }
}

fn open(shape: &Shape, floor: Fixed) -> (Searching, Acting) {
    let settings = settings_of(&GenesisConfig::default(), 7, shape);
    let (searching, round) = Searching::open(shape, settings, floor, &[]).unwrap();
    (searching, round.acting)
}

/// Serves a contextual bandit with four contexts and four actions, rewards late by `delay` decisions; returns what was earned
/// in the last thousand decisions, and the rounds.
fn serve(decisions: u64, delay: usize) -> (i64, Vec<Round>, Acting) {
    let shape = shape(4, 4, ONE_STEP);
    let (mut searching, mut acting) = open(&shape, Fixed::ZERO);
    let mut world = Prng::stream(3, "served");
    let (mut open, mut complete) = (std::collections::VecDeque::new(), Vec::new());
    let (mut earned, mut rounds) = (0, Vec::new());
    for number in 1..=decisions {
        let observation = Bits([world.below(16), 0, 0, 0]);
        let (turn, choice) = acting.begin(number, &observation);
        let best = (observation.0[0] & 3) as u16;
        let chance = if choice.action == best { 80 } else { 20 };
        let reward = if world.below(100) < chance { 1_000 } else { 0 };
        earned += if decisions - 1_000 < number { i64::from(reward) } else { 0 };
        let outcome = Outcome { reward, done: true, bad: false };
        open.push_back((
            turn,
            Settled { observation, action: choice.action, drawn_from: choice.drawn_from, outcome },
        ));
        if delay < open.len() {
            let (turn, step) = open.pop_front().unwrap();
            acting.settle(turn, &[step]);
            complete.push((turn, step));
        }
        if searching.is_due(complete.len() as u64) {
            for (turn, step) in complete.drain(..) {
                searching.take(turn, &[step]);
            }
            let round = searching.work();
            acting.replace(round.acting.clone());
            rounds.push(round);
        }
    }
    (earned, rounds, acting)
}

#[test]
fn a_contextual_bandit_is_learned_from_late_rewards_by_patches() {
    for delay in [0, 100] {
        let (earned, rounds, acting) = serve(6_000, delay);
        // Drawing earns 350, the best 800 of a thousand.
        assert!(700_000 < earned, "{earned} at delay {delay}");
        let applied = rounds.iter().flat_map(|round| &round.patches).filter(|note| note.accepted).count();
        assert!(2 <= applied, "{applied} patches");
        assert_eq!(acting.in_force().contexts, 4);
        let (again, ..) = serve(6_000, delay);
        assert_eq!(again, earned);
    }
}

#[test]
fn propensities_are_the_shares_with_which_actions_are_chosen() {
    let (_, _, acting) = serve(3_000, 0);
    let observation = Bits([5, 0, 0, 0]);
    for floor in [Fixed::ZERO, Fixed::from_ratio(1, 20)] {
        let mut counts = [0i64; 4];
        let mut stated = [None; 4];
        for number in 0..40_000u64 {
            let mut copy = Acting { floor, ..acting.clone() };
            let (_, choice) = copy.begin(1_000_000 + number, &observation);
            counts[usize::from(choice.action)] += 1;
            let known = stated[usize::from(choice.action)].get_or_insert(choice.propensity);
            assert_eq!(*known, choice.propensity);
        }
        for (count, stated) in counts.iter().zip(stated) {
            let expected = stated.map_or(0, |chance| (chance.to_raw() * 40_000) >> 32);
            assert!((count - expected).abs() < 500, "{counts:?}, {stated:?}");
            assert!(stated.is_some_and(|chance| floor <= chance) || floor == Fixed::ZERO);
        }
    }
}

#[test]
fn both_halves_come_back_from_their_bytes_and_go_on_alike() {
    let shape = shape(4, 4, ONE_STEP);
    let (mut searching, mut acting) = open(&shape, Fixed::from_ratio(1, 100));
    let step = |acting: &mut Acting, number: u64| {
        let observation = Bits([number % 16, 0, 0, 0]);
        let (turn, choice) = acting.begin(number, &observation);
        let outcome =
            Outcome { reward: 250 * i32::from(choice.action), done: true, bad: number.is_multiple_of(7) };
        let settled = Settled { observation, action: choice.action, drawn_from: choice.drawn_from, outcome };
        acting.settle(turn, &[settled]);
        (turn, settled)
    };
    for number in 0..400 {
        let (turn, settled) = step(&mut acting, number);
        searching.take(turn, &[settled]);
    }
    acting.replace(searching.work().acting);
    let mut writer = Writer::new();
    acting.encode(&mut writer);
    searching.encode(&mut writer);
    let bytes = writer.into_bytes();
    let mut reader = Reader::new(&bytes);
    let mut read = Acting::decode(&shape, &mut reader).unwrap();
    let mut searched = Searching::decode(&shape, &mut reader).unwrap();
    for number in 400..900 {
        let (turn, settled) = step(&mut acting, number);
        assert_eq!(step(&mut read, number), (turn, settled));
        searching.take(turn, &[settled]);
        searched.take(turn, &[settled]);
    }
    let (one, other) = (searching.work(), searched.work());
    assert_eq!((one.chain, one.patches), (other.chain, other.patches));
    (0..bytes.len().min(4_000)).step_by(7).for_each(|cut| {
        assert!(Acting::decode(&shape, &mut Reader::new(&bytes[..cut])).is_err());
    });
}

#[test]
fn what_is_forbidden_is_never_done_not_even_by_the_floor() {
    let shape = shape(1, 3, ONE_STEP);
    let forbidden = [Forbidden { observation: Bits([1, 0, 0, 0]), action: 2 }];
    let settings = settings_of(&GenesisConfig::default(), 7, &shape);
    let (_, round) = Searching::open(&shape, settings, Fixed::from_ratio(1, 10), &forbidden).unwrap();
    assert_eq!(round.patches.len(), 1);
    let mut acting = round.acting;
    let seen: Vec<u16> =
        (0..2_000).map(|number| acting.begin(number, &Bits([1, 0, 0, 0])).1.action).collect();
    assert!(seen.contains(&0) && seen.contains(&1) && !seen.contains(&2));
}

#[test]
fn an_episode_of_many_steps_goes_on_while_others_are_open() {
    let shape = shape(3, 4, 4);
    let (mut searching, mut acting) = open(&shape, Fixed::ZERO);
    let mut open: Vec<(Turn, Vec<PastStep>, Vec<Settled>)> = Vec::new();
    let (mut number, mut rounds, mut reasons) = (0, 0, Vec::new());
    // Two hundred episodes are open at once; what pays is to repeat the observation.
    for _ in 0..20 {
        for _ in 0..200 {
            let observation = Bits([number % 4, 0, 0, 0]);
            let (turn, choice) = acting.begin(number, &observation);
            open.push((turn, Vec::new(), vec![settled(observation, choice, false)]));
            number += 1;
        }
        for place in 1..4u64 {
            for (turn, past, steps) in &mut open {
                let last = *steps.last().unwrap();
                let outcome = Some(last.outcome);
                past.push(PastStep { observation: last.observation, action: last.action, outcome });
                let observation = Bits([(number + place) % 4, 0, 0, 0]);
                let choice = acting.go_on(number, *turn, past, &observation);
                steps.push(settled(observation, choice, place == 3));
                number += 1;
            }
        }
        for (turn, _, steps) in open.drain(..) {
            acting.settle(turn, &steps);
            searching.take(turn, &steps);
        }
        if searching.is_due(0) {
            let round = searching.work();
            rounds += 1;
            let refused = round.patches.iter().filter(|note| !note.accepted);
            reasons.extend(refused.map(|note| Payload::from_bytes(&note.payload).unwrap().reason));
            acting.replace(round.acting);
        }
    }
    // Nobody plays pairs here: what only they could judge is turned down, and says why.
    let mut past = Vec::new();
    for place in 0..4u64 {
        let observation = Bits([place, 0, 0, 0]);
        let choice = acting.go_on(number + place, Turn::DRAW, &past, &observation);
        assert_eq!((choice.drawn_from, choice.propensity), (Some(4), Fixed::from_ratio(1, 4)));
        let step = settled(observation, choice, false);
        past.push(PastStep { observation, action: step.action, outcome: Some(step.outcome) });
    }
    assert!(0 < rounds && reasons.iter().all(|reason| reason == UNPAIRED), "{rounds}, {reasons:?}");
}

fn settled(observation: Bits, choice: Choice, done: bool) -> Settled {
    let reward = if u64::from(choice.action) == observation.0[0] { 1_000 } else { 0 };
    let outcome = Outcome { reward, done, bad: false };
    Settled { observation, action: choice.action, drawn_from: choice.drawn_from, outcome }
}
