//! Reasons of policies with memory: one range around what is seen whatever bits are read, no codes that cannot be
//! remembered, and what is remembered given by name.

use super::*;
use crate::reason::Nearest;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::{Feature, NumberCode};

const FEATURES: &str = r#"[{"name":"last","kind":"choice","of":["none","error","timeout","refused"]},
    {"name":"left","kind":"number","min":0,"max":4000}]"#;

/// A choice of two bits and twenty-one levels in five.
fn encoder() -> Encoder {
    Encoder::for_world(Feature::list(FEATURES).unwrap(), NumberCode::Binary, 21, &[]).unwrap()
}

/// Five actions, kept for two steps with what was seen. Action 1 where the second bit of what was left a step ago is 1 or
/// the second bit of what is left now is not; action 2 where both are otherwise and a step ago action 4 was not done; then 4.
fn retrying(encoder: &Encoder) -> Policy {
    let bits = encoder.bits();
    let kept = 1 + bits + 3;
    let mut builder = Builder::new(bits + 2 * kept);
    let now = Signal::input(3);
    let before = Signal::input(bits + 1 + 3);
    let fourth = Signal::input(bits + 1 + bits + 2);
    let not_now = builder.not(now);
    let first = builder.or(before, not_now);
    let last = builder.and_not(fourth, first);
    let either = builder.or(first, last);
    let second = builder.not(either);
    let action = [first, second, last];
    let mut next = vec![Signal::TRUE];
    next.extend((0..bits).map(Signal::input));
    next.extend(action);
    next.extend((bits..bits + kept).map(Signal::input));
    Policy::close(builder, bits, 5, &action, &next).unwrap()
}

fn with<R>(check: impl Fn(&Explainable<'_>) -> R) -> R {
    let encoder = encoder();
    let policy = retrying(&encoder);
    let fields = encoder.fields();
    check(&Explainable {
        policy: &policy,
        observation_bits: encoder.bits(),
        fields: &fields,
        names: Some(&encoder),
        actions: &[],
        horizon: Some(4),
    })
}

#[test]
fn a_reason_is_one_range_around_what_is_seen_and_names_no_code_that_cannot_be_remembered() {
    with(|subject| {
        let mut told = 0;
        for left in (0..=4000).step_by(200) {
            for before in [0, 400, 1000, 2600, 3800] {
                for action in 0..5 {
                    let given = format!(
                        "last=error,left={left},left (1 step ago)={before},action (1 step ago)={action}"
                    );
                    let input = subject.input(&GivenObservation::Text(&given), None).unwrap();
                    let reason = subject.reason(&input, 10_000);
                    let [why, _, nearest] = text::reason(subject, &reason);
                    for said in [&why, &nearest] {
                        assert!(!said.contains(" or ") && !said.contains(" as "), "{given}: {said}");
                    }
                    // What is said holds of what is given.
                    for finding in &reason.forced_by {
                        if let Finding::Group { topic: Topic::Column { column: 1, back }, values } = finding {
                            let shown = [left, before][*back] / 200;
                            assert!(values.contains(&shown), "{given}: {why}");
                            told += 1;
                        }
                    }
                    assert!(matches!(reason.nearest, Nearest::Change { .. } | Nearest::Never), "{reason:?}");
                }
            }
        }
        assert!(300 < told, "{told} ranges");
        let why = |given: &str| {
            let input = subject.input(&GivenObservation::Text(given), None).unwrap();
            text::reason(subject, &subject.reason(&input, 10_000))
        };
        // The second of the bits of a level is 1 in two levels of four.
        let [why, _, nearest] = why("last=none,left=1300,left (1 step ago)=2500,action (1 step ago)=4");
        assert_eq!(
            why,
            "Action 4 because 1200 <= left < 1600 and 2400 <= left (1 step ago) < 2800 and action (1 step ago) = 4"
        );
        assert!(nearest.starts_with("Action 1 instead with 800 <= left < 1200"), "{nearest}");
    });
}

#[test]
fn what_is_remembered_is_given_by_the_names_of_the_rules() {
    with(|subject| {
        let input = |seen: &str, memory: Option<&str>| subject.input(&GivenObservation::Text(seen), memory);
        let seen = "last=refused,left=900";
        let beside =
            input("last=refused,left=900,left (2 steps ago)=3900,action (1 step ago)=3", None).unwrap();
        let for_itself = input(seen, Some("left (2 steps ago)=3900, action (1 step ago)=3")).unwrap();
        assert_eq!(beside, for_itself);
        // What was two steps ago says that there were two.
        assert_eq!(
            subject.remembered(&beside, None).as_deref(),
            Some(
                "steps so far >= 2 and last (1 step ago) = none and left (1 step ago) < 200 and action (1 step ago) = 3 \
                 and last (2 steps ago) = none and 3800 <= left (2 steps ago) < 4000 and action (2 steps ago) = 0"
            )
        );
        // The same as bits, which cannot be given as well.
        let bits = subject::digits(&beside[subject.policy.reads().len()..]);
        assert_eq!(input(seen, Some(&bits)).unwrap(), beside);
        let start = input("last=none,left=4000", None).unwrap();
        assert_eq!(start, input("last=none,left=4000,steps so far=0", None).unwrap());
        assert_eq!(subject.remembered(&start, None).as_deref(), Some("steps so far = 0"));
        for (seen, memory, refused) in [
            (
                "last=none,left=1,steps so far=1,left (2 steps ago)=3",
                None,
                "obs cannot be: something 2 steps ago",
            ),
            ("last=none,left=1,steps so far=5", None, "obs steps so far=5: the value must be"),
            ("last=none,left=1,action (1 step ago)=5", None, "the value must be a whole number of at most 4"),
            ("last=none,left=1,left (1 step ago)=4001", None, "obs left (1 step ago): "),
            ("last=none,left=1,left (3 steps ago)=1", None, "remembered are steps so far, last (1 step ago)"),
            ("last=none,left=1", Some("left=1"), "memory \"left\" is not remembered: steps so far"),
            ("last=none,left=1", Some("01"), "or NAME=VALUE,... of steps so far, "),
            ("last=none,left=1,steps so far=2", Some(&bits), "memory is given twice"),
        ] {
            let said = input(seen, memory).unwrap_err().to_string();
            assert!(said.contains(refused), "{said}");
        }
    });
}

#[test]
fn without_a_diagram_the_page_says_what_memory_holds_and_promises_no_rules_for_it() {
    with(|subject| {
        assert!(subject.diagram().is_none());
        let page = html::states(subject, &subject.explain(), None);
        assert!(page.contains("22 memory bits: too many states or inputs for a diagram."), "{page}");
        assert!(page.contains("It holds how many steps there were before, last (1 step ago)"), "{page}");
        assert!(!page.contains("every remembered bit"), "{page}");
    });
}
