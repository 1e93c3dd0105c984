//! Both halves of a served world: what they learn, how likely they choose, and that they come back from their bytes.

use super::*;
use crate::payload::Payload;
use bem_base::environment::Field;
use bem_machine::config::ChoiceRule;

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
    open_with(&GenesisConfig::default(), shape, floor)
}

fn open_with(config: &GenesisConfig, shape: &Shape, floor: Fixed) -> (Searching, Acting) {
    let settings = settings_of(config, 7);
    let (searching, round) = Searching::open(shape, settings, floor, &[]).unwrap();
    (searching, round.acting)
}

/// Serves a contextual bandit with four contexts and four actions, rewards late by `delay` decisions; returns what was earned
/// in the last thousand decisions, and the rounds.
fn serve(decisions: u64, delay: usize) -> (i64, Vec<Round>, Acting) {
    serve_with(&GenesisConfig::default(), decisions, delay)
}

fn serve_with(config: &GenesisConfig, decisions: u64, delay: usize) -> (i64, Vec<Round>, Acting) {
    let shape = shape(4, 4, ONE_STEP);
    let (mut searching, mut acting) = open_with(config, &shape, Fixed::ZERO);
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
            Settled { observation, action: choice.action, odds: choice.odds, outcome, is_told: true },
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
            if searching.has_work() {
                let round = searching.work();
                acting.replace(round.acting.clone());
                rounds.push(round);
            }
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
    check_propensities(&GenesisConfig::default());
}

#[test]
fn rules_that_draw_state_the_chance_of_what_they_drew() {
    for (choice_rule, candidates_kept) in [(ChoiceRule::Softmax, 3), (ChoiceRule::TsallisInf, 1)] {
        let config = GenesisConfig { choice_rule, candidates_kept, ..GenesisConfig::default() };
        check_propensities(&config);
    }
}

fn check_propensities(config: &GenesisConfig) {
    let (_, _, acting) = serve_with(config, 3_000, 0);
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
        let settled =
            Settled { observation, action: choice.action, odds: choice.odds, outcome, is_told: true };
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
    let forbidden = [Forbidden::whole(Bits([1, 0, 0, 0]), 2)];
    let settings = settings_of(&GenesisConfig::default(), 7);
    let (_, round) = Searching::open(&shape, settings, Fixed::from_ratio(1, 10), &forbidden).unwrap();
    assert_eq!(round.patches.len(), 1);
    let mut acting = round.acting;
    let seen: Vec<u16> =
        (0..2_000).map(|number| acting.begin(number, &Bits([1, 0, 0, 0])).1.action).collect();
    assert!(seen.contains(&0) && seen.contains(&1) && !seen.contains(&2));
}

/// Serves episodes of four steps in which repeating what was seen one step before pays, eighty open at once; what an episode
/// earned on average in each batch, and what was decided about patches.
fn serve_episodes(batches: u64, floor: Fixed) -> (Vec<i64>, Vec<PatchNote>, Searching, Acting) {
    let shape = shape(2, 4, 4);
    let (mut searching, mut acting) = open(&shape, floor);
    let mut world = Prng::stream(5, "episodes");
    let (mut number, mut earned, mut patches) = (0, Vec::new(), Vec::new());
    for _ in 0..batches {
        let mut open: Vec<(Begun, Vec<PastStep>, Vec<Settled>)> = Vec::new();
        for place in 0..4 {
            for episode in 0..80 {
                let observation = Bits([world.below(4), 0, 0, 0]);
                number += 1;
                if place == 0 {
                    let (begun, choice) = acting.begin(number, &observation);
                    open.push((begun, Vec::new(), vec![settled(observation, choice, 0, false)]));
                    continue;
                }
                let (begun, past, steps): &mut (Begun, Vec<PastStep>, Vec<Settled>) = &mut open[episode];
                let Settled { observation: seen, action, outcome, .. } = *steps.last().unwrap();
                past.push(PastStep { observation: seen, action, outcome: Some(outcome) });
                let choice = acting.go_on(number, *begun, past, &observation);
                steps.push(settled(observation, choice, seen.0[0], place == 3));
            }
        }
        let totals = open.iter().flat_map(|(_, _, steps)| steps).map(|step| i64::from(step.outcome.reward));
        earned.push(totals.sum::<i64>() / 80);
        for (begun, _, steps) in open.drain(..) {
            acting.settle(begun, &steps);
            searching.take(begun, &steps);
        }
        if searching.has_work() {
            let round = searching.work();
            patches.extend(round.patches);
            acting.replace(round.acting);
        }
    }
    (earned, patches, searching, acting)
}

fn settled(observation: Bits, choice: Choice, wanted: u64, done: bool) -> Settled {
    let reward = if u64::from(choice.action) == wanted { 1_000 } else { 0 };
    let outcome = Outcome { reward, done, bad: false };
    Settled { observation, action: choice.action, odds: choice.odds, outcome, is_told: true }
}

#[test]
fn a_candidate_is_let_in_by_episodes_that_were_served_and_never_repeated() {
    for floor in [Fixed::ZERO, Fixed::from_ratio(1, 50)] {
        let (earned, patches, ..) = serve_episodes(150, floor);
        let interleaved = patches.iter().filter(|note| {
            // Only what was played interleaved has episodes behind it here.
            note.accepted && 0 < Payload::from_bytes(&note.payload).unwrap().evidence.pairs
        });
        assert!(0 < interleaved.count(), "{patches:?}");
        // The first action is a guess in the dark; drawing earns 1,000 of 4,000.
        let late: i64 = earned.iter().rev().take(20).sum::<i64>() / 20;
        assert!(2_900 < late, "{late}: {earned:?}");
    }
}

#[test]
fn an_episode_counts_in_its_own_contest_only_and_what_is_held_goes_on_after_it() {
    // Up to a batch in which a contest is open.
    let found = (1..150).map(|batches| serve_episodes(batches, Fixed::ZERO));
    let (_, _, mut searching, mut acting) =
        found.into_iter().find(|(_, _, searching, _)| searching.is_measuring()).expect("a contest");
    let seen = Bits([1, 0, 0, 0]);
    let (begun, mut sides) = (acting.begin(1, &seen).0, [0, 0]);
    // So many are under way at once, and the others are played for experience.
    let mut outside = 0;
    for number in 0..400 {
        let (each, _) = acting.begin(number, &seen);
        if each.contest.is_none() {
            outside += 1;
            continue;
        }
        assert_eq!(each.contest, begun.contest);
        sides[usize::from(each.turn == Turn::SEAT)] += 1;
        assert!([Turn::SEAT, Turn::HELD].contains(&each.turn));
        acting.earn(each, &seen, 0);
        acting.earn(Begun::alone(Turn::HELD), &seen, 0);
    }
    assert!(sides.iter().all(|count| 150 < *count) && outside == 0, "{sides:?}, {outside}");
    let more: Vec<Option<u64>> = (0..2_000).map(|number| acting.begin(number, &seen).0.contest).collect();
    let first = more.iter().position(Option::is_none).expect("there is no room for all of them");
    assert!(64 <= first && more[first..].iter().all(Option::is_none), "{first}");
    (0..2_000).for_each(|_| acting.earn(begun, &seen, 0));
    let in_contest = |searching: &Searching| {
        let Phase::Measure(gate) = &searching.learner.phase else { return None };
        Some(gate.spent())
    };
    let step = Settled {
        observation: seen,
        action: 0,
        odds: Odds::CERTAIN,
        outcome: Outcome { reward: 0, done: true, bad: false },
        is_told: true,
    };
    let spent = in_contest(&searching).expect("it is open");
    let other =
        Begun { contest: begun.contest.map(|contest| contest + 2), ..Begun { turn: Turn::SEAT, ..begun } };
    searching.take(other, &[step; 4]);
    searching.take(Begun::alone(Turn::HELD), &[step; 4]);
    assert_eq!(in_contest(&searching), Some(spent));
    searching.take(Begun { turn: Turn::SEAT, ..begun }, &[step; 4]);
    assert_eq!(in_contest(&searching), Some(spent + 4));
    // Halves come back from their bytes while it is open, and play it on.
    let mut writer = Writer::new();
    acting.encode(&mut writer);
    searching.encode(&mut writer);
    let bytes = writer.into_bytes();
    let mut reader = Reader::new(&bytes);
    let shape = shape(2, 4, 4);
    let mut read = Acting::decode(&shape, &mut reader).unwrap();
    let again = Searching::decode(&shape, &mut reader).unwrap();
    assert_eq!(in_contest(&again), Some(spent + 4));
    (900..1_000).for_each(|number| assert_eq!(read.begin(number, &seen), acting.begin(number, &seen)));
    // Given up, the seat is empty: what is held goes on.
    let past = [PastStep { observation: seen, action: 0, outcome: None }];
    acting.forgo();
    let seat = Begun { turn: Turn::SEAT, ..begun };
    let held = Begun::alone(Turn::HELD);
    assert_eq!(acting.go_on(7, seat, &past, &seen), acting.go_on(7, held, &past, &seen));
    assert_eq!(acting.begin(8, &seen).0.contest, None);
}

#[test]
fn a_drawn_turn_draws_every_step_of_an_episode() {
    let (_, _, _, mut acting) = serve_episodes(2, Fixed::ZERO);
    let mut past = Vec::new();
    for place in 0..4u64 {
        let observation = Bits([place, 0, 0, 0]);
        let choice = acting.go_on(place, Begun::alone(Turn::DRAW), &past, &observation);
        assert_eq!((choice.odds, choice.propensity), (Odds::equal(4), Fixed::from_ratio(1, 4)));
        past.push(PastStep { observation, action: choice.action, outcome: None });
    }
}

#[test]
fn with_a_floor_what_is_tried_is_paid_from_what_was_gained_even_when_rewards_come_late() {
    let shape = shape(1, 2, ONE_STEP);
    let (_, acting) = open(&shape, Fixed::ZERO);
    // The baseline earns 600 on average; what is tried brings nothing, and nothing is said of it for 200 decisions.
    let mut acting = acting.with_baseline(1, 50);
    let mut world = Prng::stream(9, "floor");
    let (mut open, mut earned, mut tried) = (std::collections::VecDeque::new(), 0i64, 0u64);
    for number in 1..=20_000u64 {
        let observation = Bits([number & 1, 0, 0, 0]);
        let (begun, choice) = acting.begin(number, &observation);
        let is_baseline = begun.turn == Turn::BASELINE;
        assert!(!is_baseline || choice.action == 1 && choice.propensity == Fixed::ONE);
        let reward = if is_baseline && world.below(1_000) < 600 { 1_000 } else { 0 };
        earned += i64::from(reward);
        tried += u64::from(!is_baseline);
        open.push_back((begun, i64::from(reward)));
        if 200 < open.len() {
            let (begun, total) = open.pop_front().unwrap();
            acting.earn(begun, &Bits::ZERO, total);
        }
    }
    assert!(95 * 600 * 20_000 / 100 <= earned, "{earned}");
    assert!((200..1_100).contains(&tried), "{tried}");
    let mut writer = Writer::new();
    acting.encode(&mut writer);
    let mut read = Acting::decode(&shape, &mut Reader::new(writer.as_bytes())).unwrap();
    for number in 20_001..20_200 {
        let observation = Bits([number & 1, 0, 0, 0]);
        assert_eq!(read.begin(number, &observation), acting.begin(number, &observation));
    }
}

#[test]
fn an_action_that_was_bad_has_an_eighth_of_the_promised_chance_and_all_others_the_whole() {
    let shape = shape(1, 4, ONE_STEP);
    let floor = Fixed::from_ratio(1, 20);
    let (_, mut acting) = open(&shape, floor);
    let seen = Bits([1, 0, 0, 0]);
    let bad = Outcome { reward: 0, done: true, bad: true };
    acting.settle(
        Begun::alone(Turn::DRAW),
        &[Settled { observation: seen, action: 2, odds: Odds::equal(4), outcome: bad, is_told: true }],
    );
    acting.steps = UNIFORM_STEPS;
    acting.explored = 1 << 20;
    acting.episodes = 1 << 20;
    let (mut counts, mut stated) = ([0i64; 4], [None; 4]);
    for number in 0..40_000 {
        let choice = acting.clone().begin(number, &seen).1;
        counts[usize::from(choice.action)] += 1;
        stated[usize::from(choice.action)] = Some(choice.propensity);
    }
    for (action, (count, stated)) in counts.iter().zip(stated).enumerate() {
        let chance = stated.expect("every action is drawn now and then");
        let least = if action == 2 { floor.mul_floor(Fixed::from_ratio(1, 8)) } else { floor };
        assert!(least.to_raw() <= chance.to_raw() + 16, "{action}: {chance:?}");
        assert!((count - ((chance.to_raw() * 40_000) >> 32)).abs() < 400, "{counts:?}");
    }
    assert!(stated[2] < Some(floor), "{stated:?}");
}
