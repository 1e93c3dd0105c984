//! Worlds that speak through a pipe: what they may say and what is refused. Clauses: GLE-9.

use super::*;
use bem_data::{Code, Decimal};
use std::collections::VecDeque;

/// Answers from a list, whatever is sent.
struct Script {
    answers: VecDeque<String>,
    sent: Vec<String>,
}

impl Transport for Script {
    fn send(&mut self, line: &str) -> Result<(), String> {
        self.sent.push(line.to_string());
        Ok(())
    }

    fn receive(&mut self) -> Result<String, String> {
        self.answers.pop_front().ok_or_else(|| "the program has ended".to_string())
    }
}

fn script(lines: &[&str]) -> Script {
    Script { answers: lines.iter().map(|line| line.to_string()).collect(), sent: Vec::new() }
}

const HELLO: &str =
    r#"{"hello":1,"obs_bits":3,"actions":2,"horizon":4,"reward_range":[-5,1000],"fields":[[0,2],[2,1]]}"#;

#[test]
fn an_episode_goes_over_the_pipe() {
    let lines = [
        HELLO,
        r#"{"obs":"010"}"#,
        r#"{"obs":"011","reward":1000,"done":false,"bad":true}"#,
        r#"{"obs":"000","reward":-5,"done":true}"#,
    ];
    let mut world = PipeWorld::open(script(&lines)).unwrap();
    assert_eq!(world.shape().fields, [Field { low: 0, width: 2 }, Field { low: 2, width: 1 }]);
    world.reset(7).unwrap();
    assert_eq!(world.observation().to_text(3), "010");
    assert_eq!(world.step(1), Ok(Outcome { reward: 1000, done: false, bad: true }));
    assert_eq!(world.step(2), Err(EnvironmentError::ActionOutOfRange { action: 2, last: 1 }));
    assert_eq!(world.step(0), Ok(Outcome { reward: -5, done: true, bad: false }));
    assert_eq!(world.step(0), Err(EnvironmentError::EpisodeOver));
    assert_eq!(world.into_transport().sent, [r#"{"reset":7}"#, r#"{"act":1}"#, r#"{"act":0}"#]);
}

#[test]
fn an_endless_episode_ends_at_the_horizon() {
    let mut lines = vec![HELLO, r#"{"obs":"010"}"#];
    lines.extend([r#"{"obs":"000","reward":0,"done":false,"bad":false}"#; 4]);
    let mut world = PipeWorld::open(script(&lines)).unwrap();
    world.reset(1).unwrap();
    let dones: Vec<bool> = (0..4).map(|_| world.step(0).unwrap().done).collect();
    assert_eq!(dones, [false, false, false, true]);
}

/// What one answer pays at once, and what it says of earlier steps.
type Paid = (Option<i32>, Vec<Late>);

/// Plays one episode with the first action: for every step its own reward if it came, and what came late.
fn paid(lines: &[&str]) -> Result<Vec<Paid>, String> {
    let mut all = vec![HELLO, r#"{"obs":"010"}"#];
    all.extend(lines);
    let mut world = PipeWorld::open(script(&all)).unwrap();
    world.reset(1).unwrap();
    let step = |_: &&str| {
        let outcome = world.step(0).map_err(|error| error.to_string())?;
        Ok(((!world.is_awaited()).then_some(outcome.reward), world.late().to_vec()))
    };
    lines.iter().map(step).collect()
}

#[test]
fn rewards_may_come_late_and_out_of_order_and_none_twice() {
    let late = |step, reward| Late { step, reward };
    let found = paid(&[
        r#"{"obs":"010","done":false}"#,
        r#"{"obs":"010","done":false,"late":[]}"#,
        r#"{"obs":"010","reward":7,"done":false,"late":[[1,40],[1,40]]}"#,
        r#"{"obs":"010","done":true,"late":[[3,5],[0,900],[1,40],[2,7]]}"#,
    ]);
    let wanted =
        vec![(None, vec![]), (None, vec![]), (Some(7), vec![late(1, 40)]), (Some(5), vec![late(0, 900)])];
    assert_eq!(found, Ok(wanted));
    let refused = |line: &str| paid(&[r#"{"obs":"010","reward":3,"done":false}"#, line]).unwrap_err();
    let twice = refused(r#"{"obs":"010","done":true,"late":[[0,4]]}"#);
    assert!(twice.starts_with("line 4: \"late\" pays 4 for step 0, which was paid 3"), "{twice}");
    let unknown = refused(r#"{"obs":"010","done":true,"late":[[2,4]]}"#);
    assert!(unknown.contains("\"late\" names step 2; the last step of this episode is 1"), "{unknown}");
    let large = refused(r#"{"obs":"010","done":true,"late":[[1,300000000]]}"#);
    assert!(large.contains("a reward in \"late\" is 300000000; allowed is"), "{large}");
}

#[test]
fn a_world_says_whether_it_repeats_and_how_it_discounts() {
    let hello = |more: &str| HELLO.replace("\"fields\"", &format!("{more},\"fields\""));
    let open = |text: &str| PipeWorld::open(script(&[text]));
    assert!(open(HELLO).unwrap().repeats());
    assert!(!open(&hello("\"replay\":false")).unwrap().repeats());
    let error = open(&hello("\"discount\":0")).err().unwrap().to_string();
    assert!(error.starts_with("line 1: \"discount\" is 0; allowed is 1 to 1000"), "{error}");
    // Nine tenths: episodes of up to four steps end after one with the chance of a tenth, by their seed.
    let mut lines = vec![hello("\"discount\":900")];
    lines.extend((0..500).map(|_| r#"{"obs":"010","reward":1,"done":false}"#.to_string()));
    let mut steps = Vec::new();
    for seed in (0..200).chain(0..200) {
        let mut lines: Vec<&str> = lines[..6].iter().map(String::as_str).collect();
        lines.insert(1, r#"{"obs":"010"}"#);
        let mut world = PipeWorld::open(script(&lines)).unwrap();
        world.reset(seed).unwrap();
        steps.push((1..).find(|_| world.step(0).unwrap().done).unwrap());
    }
    let ended = steps[..200].iter().filter(|steps| **steps == 1).count();
    assert!((8..35).contains(&ended), "{ended}");
    assert!(steps[..200] == steps[200..] && steps.iter().all(|steps| (1..=4).contains(steps)));
}

#[test]
fn every_breach_names_the_line() {
    let open = |line: &str| PipeWorld::open(script(&[line])).err().unwrap().to_string();
    assert!(open("hello").starts_with("line 1: column 1: expected value"), "{}", open("hello"));
    assert!(
        open(&HELLO.replace("\"actions\":2", "\"actions\":0"))
            .starts_with("line 1: \"actions\" is 0; allowed is 1 to 1024")
    );
    assert!(
        open(&HELLO.replace("[2,1]", "[1,2]"))
            .starts_with("line 1: field 1 is [1,2]; it must start at bit 2")
    );
    assert!(open(&HELLO.replace(":3,", ":4,")).starts_with("line 1: the fields end at bit 3"));
    assert!(open(&HELLO.replace("-5", "2000")).starts_with("line 1: \"reward_range\" is [2000,1000]"));
    assert!(
        open(&HELLO.replace("1000]", "250000001]"))
            .starts_with("line 1: \"reward_range\" is [-5,250000001]; allowed is -250000000 to 250000000")
    );
    let answer = |line: &str| {
        let mut world = PipeWorld::open(script(&[HELLO, r#"{"obs":"010"}"#, line])).unwrap();
        world.reset(1).unwrap();
        let error = world.step(0).unwrap_err().to_string();
        assert_eq!(world.step(0), Err(EnvironmentError::EpisodeOver));
        error
    };
    assert!(
        answer(r#"{"obs":"01","reward":0,"done":false}"#)
            .starts_with("line 3: \"obs\" must be 3 zeros and ones")
    );
    assert!(
        answer(r#"{"obs":"010","reward":250000001,"done":false}"#)
            .starts_with("line 3: \"reward\" is 250000001; allowed is -250000000 to 250000000")
    );
    assert!(answer(r#"{"obs":"010"}"#).starts_with("line 3: column 13: missing field `done`"));
    let mut world = PipeWorld::open(script(&[HELLO])).unwrap();
    assert_eq!(world.reset(1).unwrap_err().to_string(), "line 2: the program has ended");
}

#[test]
fn an_episode_that_pays_more_than_can_be_counted_is_refused() {
    let hello = HELLO.replace("[-5,1000]", "[-250000000,250000000]").replace(":4,", ":9,");
    let mut lines = vec![hello, r#"{"obs":"010"}"#.to_string()];
    lines.extend((0..9).map(|_| r#"{"obs":"010","reward":-250000000,"done":false}"#.to_string()));
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut world = PipeWorld::open(script(&texts)).unwrap();
    world.reset(1).unwrap();
    (0..8).for_each(|_| assert!(world.step(0).is_ok()));
    let error = world.step(0).unwrap_err().to_string();
    assert!(error.starts_with("line 11: the episode paid -2250000000; at most 2147483647"), "{error}");
}

#[test]
fn what_is_paid_beyond_the_ranges_widens_them() {
    let narrow = HELLO.replace("\"fields\"", "\"return_range\":[0,1000],\"fields\"");
    let play = |rewards: &[i64]| {
        let mut lines = vec![narrow.clone(), r#"{"obs":"010"}"#.to_string()];
        let last = rewards.len() - 1;
        let answer = |(at, reward)| format!(r#"{{"obs":"010","reward":{reward},"done":{}}}"#, at == last);
        lines.extend(rewards.iter().enumerate().map(answer));
        let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut world = PipeWorld::open(script(&texts)).unwrap();
        assert_eq!((world.shape().return_min, world.shape().return_max), (0, 1_000));
        world.reset(1).unwrap();
        rewards.iter().try_for_each(|_| world.step(0).map(|_| ())).map_err(|error| error.to_string())?;
        let shape = world.shape();
        let (low, high) = (shape.reward_min as i64, shape.reward_max as i64);
        assert!(rewards.iter().all(|reward| (low..=high).contains(reward)), "{shape:?}");
        Ok::<_, String>((shape.return_min, shape.return_max))
    };
    assert_eq!((play(&[1_000, 0]), play(&[-5, 5])), (Ok((0, 1_000)), Ok((0, 1_000))));
    assert_eq!((play(&[1_000, 1_000]), play(&[-5, 0])), (Ok((0, 2_000)), Ok((-5, 1_000))));
    assert_eq!(play(&[-70, 1_500]), Ok((0, 1_430)), "single rewards widen their own range");
    let wide = narrow.replace("[0,1000],\"f", "[0,9000],\"f");
    let refused = PipeWorld::open(script(&[&wide])).err().unwrap().to_string();
    assert!(refused.contains("must lie within [-20,4000]"), "{refused}");
}

const NAMED: &str = r#"{"hello":1,"actions":2,"horizon":4,"reward_range":[-5,1000],
    "features":[{"name":"temp","kind":"number","min":15,"max":25},{"name":"mode","kind":"choice","of":3}],
    "bad_if":[{"if":{"temp":"> 24"}},{"if":{"mode":2},"action":1}],"forbid":[{"if":{"temp":">= 22.25"},"action":1}]}"#;

#[test]
fn named_values_become_bits_and_rules_over_them_are_kept() {
    let lines = [
        NAMED,
        r#"{"obs":{"temp":20.25,"mode":2}}"#,
        r#"{"obs":{"mode":0,"temp":24},"reward":1,"done":false}"#,
        r#"{"obs":{"mode":0,"temp":24.001},"reward":1,"done":false}"#,
        r#"{"obs":{"mode":0,"temp":26},"reward":1,"done":false}"#,
    ];
    let mut world = PipeWorld::open(script(&lines)).unwrap();
    let encoder = world.encoder().unwrap().clone();
    assert_eq!(world.shape().fields.len(), 2);
    world.reset(1).unwrap();
    assert_eq!(*world.observation(), encoder.encode_json(r#"{"temp":20.3,"mode":2}"#).unwrap());
    // Mode 2 and action 1 are BAD; what is seen after it is not.
    assert!(world.step(1).unwrap().bad);
    assert!(world.step(0).unwrap().bad, "above 24 is BAD");
    let error = world.step(0).unwrap_err().to_string();
    assert!(
        error.starts_with("line 5: \"obs\": \"temp\" is \"26\"; it must be a number from 15 to 25"),
        "{error}"
    );
    // From 22.25 on action 1 is forbidden, whatever the mode; and it is with mode 2, where it is BAD.
    let forbids = |text: &str, action: u16| {
        let observation = encoder.encode_json(text).unwrap();
        Forbidden::forbids(world.forbidden(), observation, action)
    };
    assert!(forbids(r#"{"temp":22.25,"mode":0}"#, 1) && forbids(r#"{"temp":25,"mode":1}"#, 1));
    assert!(!forbids(r#"{"temp":22.249,"mode":0}"#, 1) && !forbids(r#"{"temp":25,"mode":1}"#, 0));
    assert!(forbids(r#"{"temp":15,"mode":2}"#, 1));
    assert!(world.forbidden().windows(2).all(|pair| pair[0] < pair[1]));
}

/// The same features with other places for the numbers.
fn replaced(encoder: &Encoder, places: impl Fn(&[Decimal]) -> Vec<Decimal>) -> Encoder {
    let part = |column: &bem_data::Column| match &column.code {
        Code::Level(thresholds) => (column.feature.clone(), Code::Level(places(thresholds))),
        code => (column.feature.clone(), code.clone()),
    };
    Encoder::new(encoder.columns().iter().map(part).collect()).unwrap()
}

#[test]
fn other_places_of_the_same_features_are_taken_with_what_is_forbidden_over_them() {
    let lines = [
        NAMED,
        r#"{"obs":{"temp":20.25,"mode":0}}"#,
        r#"{"obs":{"temp":22.3,"mode":0}}"#,
        r#"{"obs":{"mode":0,"temp":24},"reward":1,"done":false}"#,
    ];
    let mut world = PipeWorld::open(script(&lines)).unwrap();
    let own = world.encoder().unwrap().clone();
    // Ten places fewer take as many bits, and the rest of them mean other levels.
    let other = replaced(&own, |places| places[10..].to_vec());
    assert!(other != own && other.fields() == own.fields());
    world.reset(1).unwrap();
    assert_eq!(world.rows().len(), 1);
    assert!(world.take_encoder(&other));
    assert_eq!((world.encoder(), world.rows().len()), (Some(&other), 0));
    assert_eq!(world.step(0), Err(EnvironmentError::EpisodeOver), "bits of before are not gone on with");
    world.reset(2).unwrap();
    let seen = other.encode_json(r#"{"temp":22.3,"mode":0}"#).unwrap();
    assert_eq!(*world.observation(), seen);
    assert_ne!(seen, own.encode_json(r#"{"temp":22.3,"mode":0}"#).unwrap());
    let forbids = |text: &str| Forbidden::forbids(world.forbidden(), other.encode_json(text).unwrap(), 1);
    assert!(forbids(r#"{"temp":22.25,"mode":0}"#) && forbids(r#"{"temp":15,"mode":2}"#));
    assert!(!forbids(r#"{"temp":22.249,"mode":0}"#) && !forbids(r#"{"temp":15,"mode":1}"#));
    assert_eq!(world.step(0), Ok(Outcome { reward: 1, done: false, bad: false }));
}

#[test]
fn places_that_do_not_fit_are_left_and_the_world_stays_as_it_was() {
    let lines = [NAMED, r#"{"obs":{"temp":20.25,"mode":0}}"#, r#"{"obs":{"mode":0,"temp":16},"done":false}"#];
    let mut world = PipeWorld::open(script(&lines)).unwrap();
    let (own, forbidden) = (world.encoder().unwrap().clone(), world.forbidden().to_vec());
    world.reset(1).unwrap();
    let rule = Decimal::parse("22.25").unwrap();
    // One more place for the rule's: its level holds for 22.3 and not for 22.2.
    let without = |places: &[Decimal]| {
        let mut places: Vec<Decimal> = places.iter().copied().filter(|place| *place != rule).collect();
        places.insert(0, Decimal::parse("15.001").unwrap());
        places
    };
    let lacking = replaced(&own, without);
    assert_eq!(lacking.fields(), own.fields());
    let coarse = replaced(&own, |places| places[100..].to_vec());
    assert_ne!(coarse.fields(), own.fields());
    let renamed = Encoder::from_json(&own.to_json().replace("temp", "heat")).unwrap();
    let wider = Encoder::from_json(&own.to_json().replace("\"max\":25", "\"max\":26")).unwrap();
    for (other, what) in
        [(&lacking, "a rule's threshold"), (&coarse, "bits"), (&renamed, "a name"), (&wider, "bounds")]
    {
        assert!(!world.take_encoder(other), "{what}");
    }
    assert_eq!((world.encoder(), world.forbidden()), (Some(&own), forbidden.as_slice()));
    assert!(world.rows().len() == 1 && world.step(0).is_ok(), "the episode goes on");
    let mut bits = PipeWorld::open(script(&[HELLO])).unwrap();
    assert!(!bits.take_encoder(&own));
}

#[test]
fn the_latest_values_by_which_actions_are_chosen_are_kept() {
    let temp = |number: usize| format!("1{}.{:03}", 5 + number / 1_000, number % 1_000);
    let mut lines = vec![NAMED.to_string()];
    for episode in 0..400 {
        let seen = |step: usize| format!("{{\"temp\":{},\"mode\":0}}", temp(3 * episode + step));
        lines.push(format!("{{\"obs\":{}}}", seen(0)));
        let step = |step: usize, done: bool| format!("{{\"obs\":{},\"done\":{done}}}", seen(step));
        lines.extend([step(1, false), step(2, true)]);
    }
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut world = PipeWorld::open(script(&texts)).unwrap();
    let mut play = |episodes: usize| {
        for seed in 0..episodes {
            world.reset(seed as u64).unwrap();
            assert!(!world.step(0).unwrap().done && world.step(0).unwrap().done);
        }
        let mut seen: Vec<Decimal> = world
            .rows()
            .iter()
            .map(|row| match row[0] {
                Value::Number(number) => number,
                _ => panic!("a number"),
            })
            .collect();
        seen.sort_unstable();
        seen
    };
    let number = |number: usize| Decimal::parse(&temp(number)).unwrap();
    // What is seen when an episode has ended, nobody acts by.
    assert_eq!(play(2), [0, 1, 3, 4].map(number));
    // The latest are kept: 256 episodes of the 400, which show two each.
    let latest: Vec<Decimal> =
        (144..400).flat_map(|episode| [3 * episode, 3 * episode + 1]).map(number).collect();
    assert_eq!(play(398), latest);
    assert_eq!(latest.len(), ROWS_MAX);
    let mut bits = PipeWorld::open(script(&[HELLO, r#"{"obs":"010"}"#])).unwrap();
    bits.reset(1).unwrap();
    assert!(bits.rows().is_empty());
}

#[test]
fn whoever_learns_after_a_look_begins_with_the_declared_ranges() {
    let lines = [
        NAMED,
        r#"{"obs":{"temp":20,"mode":0}}"#,
        r#"{"obs":{"temp":20,"mode":0},"reward":7000,"done":true}"#,
        r#"{"obs":{"temp":20,"mode":0}}"#,
    ];
    let mut world = PipeWorld::open(script(&lines)).unwrap();
    let said = world.shape().clone();
    world.reset(1).unwrap();
    world.step(0).unwrap();
    assert_eq!((world.shape().reward_max, world.shape().return_max), (7_000, 7_000));
    world.reset(2).unwrap();
    world.forget_looks();
    assert_eq!(*world.shape(), said);
    assert_eq!(world.step(0), Err(EnvironmentError::EpisodeOver));
}

#[test]
fn wrong_declarations_name_the_field() {
    let open = |line: &str| PipeWorld::open(script(&[line])).err().unwrap().to_string();
    let starts = |line: &str, want: &str| assert!(open(line).starts_with(want), "{}", open(line));
    starts(&NAMED.replace("\"min\":15,", ""), "line 1: feature 0: \"min\" is missing");
    starts(
        &NAMED.replace("\"actions\"", "\"obs_bits\":3,\"actions\""),
        "line 1: \"features\" stand in place of",
    );
    starts(&HELLO.replace("\"obs_bits\":3,", ""), "line 1: \"obs_bits\" is missing");
    starts(
        &HELLO.replace("\"fields\"", "\"forbid\":[],\"fields\""),
        "line 1: \"bad_if\" and \"forbid\" need \"features\"",
    );
    starts(&NAMED.replace("\"mode\":2}", "\"mode\":3}"), "line 1: \"bad_if\" rule 1: \"mode\" is \"3\"");
    starts(
        &NAMED.replace(",\"action\":1}]}", "}]}"),
        "line 1: \"forbid\" rule 0: \"action\" is missing; it must be 0 to 1 or a list of them",
    );
}

#[test]
fn programs_that_show_bits_list_what_must_never_be_done() {
    let with = |pairs: &str| HELLO.replace("\"fields\"", &format!("\"forbidden\":{pairs},\"fields\""));
    let world =
        PipeWorld::open(script(&[&with(r#"[{"obs":"1-0","action":1},{"obs":"011","action":0}]"#)])).unwrap();
    let forbids =
        |number: u64, action: u16| Forbidden::forbids(world.forbidden(), Bits([number, 0, 0, 0]), action);
    assert!(forbids(0b001, 1) && forbids(0b011, 1) && !forbids(0b101, 1) && forbids(0b110, 0));
    let open = |line: &str| PipeWorld::open(script(&[line])).err().unwrap().to_string();
    for (line, want) in [
        (with(r#"[{"obs":"1-","action":1}]"#), "line 1: \"forbidden\" entry 0: \"obs\" is \"1-\""),
        (with("7"), "line 1: \"forbidden\" must be a list"),
        (
            NAMED.replace("\"actions\"", "\"forbidden\":[],\"actions\""),
            "line 1: \"forbidden\" goes with \"obs_bits\"",
        ),
    ] {
        assert!(open(&line).starts_with(want), "{}", open(&line));
    }
}

proptest::proptest! {
    #[test]
    fn no_traffic_makes_the_world_panic(
        hello in 0usize..HELLO.len(),
        letter in proptest::char::any(),
        answers in proptest::collection::vec("\\PC{0,40}|[{]\"obs\":\"[01]{0,4}\",\"reward\":-?[0-9]{1,12},\"done\":(true|false)[}]", 0..6),
    ) {
        let mutated: String = HELLO.chars().enumerate().map(|(at, old)| if at == hello { letter } else { old }).collect();
        for first in [HELLO, mutated.as_str()] {
            let mut lines = vec![first, r#"{"obs":"010"}"#];
            lines.extend(answers.iter().map(String::as_str));
            if let Ok(mut world) = PipeWorld::open(script(&lines)) {
                let _ = world.reset(1);
                for _ in 0..8 {
                    if let Ok(outcome) = world.step(0) {
                        proptest::prop_assert!(world.shape().reward_min <= outcome.reward);
                    }
                }
            }
        }
    }
}
