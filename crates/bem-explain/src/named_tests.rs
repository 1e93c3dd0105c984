//! Rules and reasons over named features, held against every observation that can occur.

use super::*;
use crate::observations::{Observations, Unit};
use crate::points::Points;
use crate::reason::Nearest;
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Netlist};
use bem_circuit::testing::random_dense_netlist;
use bem_data::{Code, Decimal, Encoder, Feature};
use std::collections::BTreeSet;

const FEATURES: &str = r#"[{"name":"age","kind":"number","min":0,"max":90},
    {"name":"temp","kind":"number","min":0,"max":10},
    {"name":"mode","kind":"choice","of":["off","eco","on"]},
    {"name":"day","kind":"choice","of":["mo","tu","we","th"]},{"name":"door","kind":"bit"}]"#;

/// Three steps for an age, a binary field of six levels for a temperature, a field for a mode, two words of four, one bit.
fn encoder() -> Encoder {
    let numbers = |texts: &[&str]| texts.iter().map(|text| Decimal::parse(text).unwrap()).collect();
    let codes = [
        Code::Steps(numbers(&["19", "32", "57"])),
        Code::Level(numbers(&["1", "2.5", "4", "6", "8"])),
        Code::Index,
        Code::Words(vec![1, 3]),
        Code::Bit,
    ];
    Encoder::new(Feature::list(FEATURES).unwrap().into_iter().zip(codes).collect()).unwrap()
}

/// Every row of values and its bits.
fn rows(encoder: &Encoder) -> Vec<(Vec<usize>, Vec<bool>)> {
    let mut rows = vec![(Vec::new(), Vec::new())];
    for column in encoder.columns() {
        let with = |(values, bits): &(Vec<usize>, Vec<bool>), value: usize| {
            let shown = (0..usize::from(column.width)).map(|bit| column.shows(value, bit));
            let values = values.iter().copied().chain([value]).collect();
            (values, bits.iter().copied().chain(shown).collect())
        };
        rows = rows
            .iter()
            .flat_map(|row| column.values().into_iter().map(move |value| with(row, value)))
            .collect();
    }
    rows
}

fn random_policy(prng: &mut Prng, bits: usize, gates: usize) -> Policy {
    let circuit: Netlist = random_dense_netlist(prng, bits, gates, 2);
    Policy::new(circuit, (0..bits as u16).collect(), 0, 4).unwrap()
}

#[test]
fn only_what_features_can_show_is_looked_at() {
    let encoder = encoder();
    let (bits, all) = (encoder.bits(), rows(&encoder));
    let reads: Vec<u16> = (0..bits as u16).collect();
    let known: BTreeSet<Vec<bool>> = all.iter().map(|(_, bits)| bits.clone()).collect();
    let fields = encoder.fields();
    let words = Words::seen(&reads, &fields, Some(&encoder), 4);
    let observations = Observations::new(&words, &(0..bits).collect::<Vec<_>>());
    assert_eq!((observations.count(), known.len()), (4 * 6 * 3 * 3 * 2, 4 * 6 * 3 * 3 * 2));
    let mut builder = Builder::new(bits);
    let valid = observations.valid(&mut builder);
    let identity: Vec<_> = (0..bits).map(|place| builder.input(place)).collect();
    let valid = builder.finish(&[vec![valid], identity].concat()).unwrap();
    for row in 0..1u32 << bits {
        let input: Vec<bool> = (0..bits).map(|bit| row >> bit & 1 == 1).collect();
        assert_eq!(valid.evaluate(&input)[0], known.contains(&input), "{input:?}");
    }
    // The sample, and what is drawn beside a counterexample.
    let mut points = Points::new(bits, observations);
    let mut prng = Prng::stream(1, "named");
    points.add_random(500, &mut prng);
    points.add_counterexample(&all[7].1, &mut prng);
    let shown = points.evaluate(&valid);
    let mut lanes = points.mask().into_iter().zip(&shown[0]);
    assert!(lanes.all(|(mask, valid)| mask & !valid == 0), "every point can occur");
}

#[test]
fn rules_over_features_agree_as_often_as_they_say_and_say_nothing_impossible() {
    let encoder = encoder();
    let (bits, all) = (encoder.bits(), rows(&encoder));
    let fields = encoder.fields();
    let mut prng = Prng::stream(2, "named");
    let mut exact = 0;
    for round in 0..40 {
        let policy = random_policy(&mut prng, bits, 6 + round);
        let words = Words::of(&policy, &fields, Some(&encoder));
        let list = explain(&policy, &fields, Some(&encoder)).action;
        let circuit = list.circuit(bits).unwrap();
        // What the circuit cannot tell apart is one observation.
        let support = policy.circuit().cone(&[0, 1]).support();
        let seen = |(_, input): &(Vec<usize>, Vec<bool>)| -> Vec<bool> {
            (0..bits).map(|place| support.contains(&place) && input[place]).collect()
        };
        let all_seen: BTreeSet<Vec<bool>> = all.iter().map(seen).collect();
        let same = |input: &&Vec<bool>| policy.circuit().evaluate(input) == circuit.evaluate(input);
        let (agreed, count) = (all_seen.iter().filter(same).count() as u64, all_seen.len() as u64);
        match list.agreement {
            Agreement::Summary { agreed: said, tried, .. } => {
                assert_eq!((said, tried), (agreed, count), "{list:?}");
            }
            _ => {
                assert_eq!(agreed, count, "{list:?}");
                exact += 1;
            }
        }
        for rule in &list.rules {
            let applies = |(_, input): &(Vec<usize>, Vec<bool>)| {
                rule.when
                    .iter()
                    .all(|condition| condition.fact.holds(&|place| input[place]) == condition.holds)
            };
            let said = words.conditions(&rule.when);
            assert!(all.iter().any(applies), "can never hold: {said}");
            assert!(!said.contains("impossible") && !said.contains("anything"), "{said}");
            assert!(!said.contains("bit ") && !said.contains("field "), "{said}");
            // What is said of a feature is said once.
            for name in ["age", "temp", "mode", "door"] {
                let parts = words.parts(&rule.when);
                assert!(parts.iter().filter(|part| part.contains(name)).count() <= 1, "{said}");
            }
        }
    }
    assert!(20 < exact, "{exact} of 40 are exact");
}

#[test]
fn comparisons_of_one_number_are_one_range() {
    let encoder = encoder();
    let fields = encoder.fields();
    let reads: Vec<u16> = (0..encoder.bits() as u16).collect();
    let words = Words::seen(&reads, &fields, Some(&encoder), 4);
    let bit = |place: usize, holds: bool| Condition { fact: Fact::Bit(place), holds };
    let said = |conditions: &[Condition]| words.conditions(conditions);
    assert_eq!(said(&[bit(2, false), bit(0, true), bit(1, false)]), "19 <= age < 32");
    assert_eq!(said(&[bit(1, false), bit(10, true), bit(2, false)]), "age < 32 and door = 1");
    // The highest bit of six levels, its middle bit, and both.
    assert_eq!(said(&[bit(5, true)]), "temp >= 6");
    assert_eq!(said(&[bit(4, true)]), "2.5 <= temp < 6");
    assert_eq!(said(&[bit(5, false), bit(4, false)]), "temp < 2.5");
    assert_eq!(said(&[bit(6, false), bit(7, false)]), "mode = off");
    assert_eq!(said(&[bit(8, false)]), "day != tu");
}

#[test]
fn reasons_over_features_hold_on_every_observation_and_cannot_be_smaller() {
    let encoder = encoder();
    let (bits, all) = (encoder.bits(), rows(&encoder));
    let fields = encoder.fields();
    let mut prng = Prng::stream(3, "named");
    let (mut changes, mut ranges) = (0, 0);
    for round in 0..60 {
        let policy = random_policy(&mut prng, bits, 10 + round / 2);
        let act = |input: &[bool]| action_of(&policy.circuit().evaluate(input));
        let (own, input) = &all[prng.below(all.len() as u64) as usize];
        let words = Words::of(&policy, &fields, Some(&encoder));
        let reason = reason(&policy, &words, input);
        assert!(reason.is_minimal && reason.of_features && reason.action == act(input));
        let allows = |finding: &Finding, values: &[usize], shown: &[bool]| match finding {
            Finding::Input { place, value } => shown[*place] == *value,
            Finding::Group { topic: Topic::Column { column, .. }, values: allowed } => {
                allowed.contains(&values[*column])
            }
            other => panic!("{other:?}"),
        };
        let forces = |findings: &[&Finding]| {
            let fits = |(values, shown): &&(Vec<usize>, Vec<bool>)| {
                findings.iter().all(|finding| allows(finding, values, shown))
            };
            all.iter().filter(fits).all(|(_, shown)| act(shown) == reason.action)
        };
        let found: Vec<&Finding> = reason.forced_by.iter().collect();
        assert!(forces(&found) && found.iter().all(|finding| allows(finding, own, input)));
        for left_out in &found {
            let fewer: Vec<&Finding> = found.iter().copied().filter(|other| other != left_out).collect();
            assert!(!forces(&fewer), "{left_out:?} is not needed");
        }
        ranges += found
            .iter()
            .filter(|finding| matches!(finding, Finding::Group { values, .. } if 1 < values.len()))
            .count();
        // Values that the circuit cannot tell apart are no change.
        let seen = Observations::new(&words, &policy.circuit().cone(&[0, 1]).support());
        let distance = |shown: &[bool]| {
            seen.units().iter().filter(|unit| unit.state(shown) != unit.state(input)).count()
        };
        let least = all
            .iter()
            .filter(|(_, shown)| act(shown) != reason.action)
            .map(|(_, shown)| distance(shown))
            .min();
        match (&reason.nearest, least) {
            (Nearest::Never, None) => {}
            (Nearest::Change { to, action, is_nearest }, Some(least)) => {
                assert!(*is_nearest && to.len() == least && *action != reason.action);
                // Whatever of the change is taken, with all else as it is.
                let is_changed = |unit: &Unit| match unit {
                    Unit::Free(place) => to
                        .iter()
                        .any(|one| matches!(one, Finding::Input { place: other, .. } if other == place)),
                    Unit::Feature(feature) => to
                        .iter()
                        .any(|one| matches!(one, Finding::Group { topic, .. } if *topic == feature.topic)),
                };
                let fits = |(values, shown): &&(Vec<usize>, Vec<bool>)| {
                    to.iter().all(|finding| allows(finding, values, shown))
                        && seen
                            .units()
                            .iter()
                            .all(|unit| is_changed(unit) || unit.state(shown) == unit.state(input))
                };
                assert!(all.iter().any(|row| fits(&row)));
                assert!(all.iter().filter(fits).all(|(_, shown)| act(shown) == *action), "{to:?}");
                changes += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(30 < changes && 10 < ranges, "{changes} changes, {ranges} ranges");
}

#[test]
fn the_nearest_change_is_a_comparison_that_a_person_would_say() {
    let encoder = encoder();
    let bits = encoder.bits();
    // On at six degrees and above, or where the door is open below one degree.
    let temp = |value: u64, builder: &mut Builder| {
        let number = facts::Number { places: (3..6).collect(), field: 3, back: 0, skipped: 0 };
        Fact::AtLeast(number, value).build(builder)
    };
    let mut builder = Builder::new(bits);
    let (warm, cool) = (temp(4, &mut builder), temp(1, &mut builder));
    let door = builder.input(10);
    let open = builder.and_not(door, cool);
    let on = builder.or(warm, open);
    let policy = Policy::close(builder, bits, 2, &[on], &[]).unwrap();
    let fields = encoder.fields();
    let words = Words::of(&policy, &fields, Some(&encoder));
    let why = |temp: &str, door: u8| {
        let text = format!(r#"{{"age":20,"temp":{temp},"mode":"eco","day":"mo","door":{door}}}"#);
        let seen = encoder.encode_json(&text).unwrap();
        let input: Vec<bool> = policy.reads().iter().map(|bit| seen.get(usize::from(*bit))).collect();
        let reason = reason(&policy, &words, &input);
        let Nearest::Change { to, .. } = &reason.nearest else { panic!("{reason:?}") };
        (words.findings(&reason.forced_by), words.findings(to))
    };
    let texts = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(why("9", 0), (texts(&["temp >= 6"]), texts(&["temp < 6"])));
    assert_eq!(why("3", 0), (texts(&["1 <= temp < 6"]), texts(&["temp >= 6"])));
    assert_eq!(why("0.5", 1).0, texts(&["temp < 1", "door = 1"]));
}
