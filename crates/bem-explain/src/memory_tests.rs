//! What memory holds is called by its name, and only what can occur is looked at: clocks, delay lines, copies of actions.

use super::*;
use crate::observations::Observations;
use bem_base::environment::Bits;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::{Feature, NumberCode};

const FEATURES: &str = r#"[{"name":"last","kind":"choice","of":["none","error","timeout","refused"]},
    {"name":"left","kind":"number","min":0,"max":8}]"#;

fn encoder() -> Encoder {
    Encoder::for_world(Feature::list(FEATURES).unwrap(), NumberCode::Binary, 8, &[]).unwrap()
}

/// Three actions; memory holds whether there was a step before, and what was seen and done then, and the step before that.
/// Action 2 where the last two attempts were refused, else 1 where `left` was lower, else what was done before.
fn remembering(encoder: &Encoder) -> Policy {
    let bits = encoder.bits();
    let kept = 1 + bits + 2;
    let mut builder = Builder::new(bits + 2 * kept);
    let input = |place: usize| Signal::input(place);
    let refused = |builder: &mut Builder, low: usize| builder.and(input(low), input(low + 1));
    // One step back begins behind the observation: the flag, then the observation, then the action.
    let (now, before) = (refused(&mut builder, 0), refused(&mut builder, bits + 1));
    let both = builder.and(now, before);
    let low = input(bits - 1);
    let begun = input(bits);
    let waits = builder.and_not(begun, low);
    let done = input(bits + 1 + bits);
    let one = builder.or(waits, done);
    let action = [builder.and_not(one, both), both];
    let mut next = vec![Signal::TRUE];
    next.extend((0..bits).map(input));
    next.extend(action);
    next.extend((bits..bits + kept).map(input));
    Policy::close(builder, bits, 3, &action, &next).unwrap()
}

#[test]
fn what_was_seen_and_done_some_steps_ago_is_called_so() {
    let encoder = encoder();
    let policy = remembering(&encoder);
    let fields = encoder.fields();
    let words = Words::of(&policy, &fields, Some(&encoder));
    let kept = &words.places[policy.reads().len()..];
    assert!(!kept.iter().any(|kept| matches!(kept, Meaning::Kept(_))), "{kept:?}");
    assert_eq!(kept[0], Meaning::Begun(1));
    assert_eq!(kept.last(), Some(&Meaning::Acted { digit: 1, back: 2 }));
    let whole = explain(&policy, &fields, Some(&encoder));
    assert!(whole.is_exact(), "{whole:?}");
    let subject = Explainable {
        policy: &policy,
        observation_bits: encoder.bits(),
        fields: &fields,
        names: Some(&encoder),
        actions: &[],
        horizon: None,
    };
    let text = text::policy(&subject, &whole, None);
    for wanted in
        ["last (1 step ago) = refused", "steps so far = 0", "action (1 step ago)", "last (2 steps ago)"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("remembered "), "{text}");
    // Refused twice: the reason says so in the same words.
    let mut input = vec![false; policy.circuit().inputs()];
    let set = |input: &mut Vec<bool>, wanted: Meaning| {
        let place = words.places.iter().position(|meaning| *meaning == wanted).expect("it is kept");
        input[place] = true;
    };
    for (bit, back) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        set(&mut input, Meaning::Seen { bit, back });
    }
    set(&mut input, Meaning::Begun(1));
    let [why, ..] = text::reason(&subject, &subject.reason(&input, 10_000));
    assert_eq!(why, "Action 2 because last = refused and last (1 step ago) = refused");
}

#[test]
fn nothing_is_kept_of_a_step_that_there_was_not() {
    let encoder = encoder();
    let policy = remembering(&encoder);
    let fields = encoder.fields();
    let words = Words::of(&policy, &fields, Some(&encoder));
    let code: Vec<usize> = (0..action_bits(policy.actions())).collect();
    let support = policy.circuit().cone(&code).support();
    let observations = Observations::new(&words, &support);
    let mut builder = Builder::new(policy.circuit().inputs());
    let valid = observations.valid(&mut builder);
    let valid = builder.finish(&[valid]).unwrap();
    let begun = words.places.iter().position(|meaning| *meaning == Meaning::Begun(1)).unwrap();
    let mut count = 0;
    for row in 0..1u64 << support.len() {
        let mut input = vec![false; policy.circuit().inputs()];
        support.iter().enumerate().for_each(|(bit, place)| input[*place] = row >> bit & 1 == 1);
        let is_before = |place: &&usize| words.places[**place].back() == 1 && input[**place];
        let is_empty = support.iter().find(is_before).is_none();
        let can_occur = valid.evaluate(&input)[0];
        assert!(!can_occur || input[begun] || is_empty, "{input:?}");
        assert_eq!(can_occur, observations.can_occur(&input), "{input:?}");
        count += u64::from(can_occur);
    }
    assert_eq!(count, observations.count());
}

/// Five bits that count steps; action 1 at steps 21 to 27, and from 28 on where bit 0 of what is seen is 1.
fn clocked() -> Policy {
    let mut builder = Builder::new(6);
    let number = facts::Number { places: (1..6).collect(), field: 1, back: 0, skipped: 0 };
    let late = Fact::AtLeast(number.clone(), 21).build(&mut builder);
    let end = Fact::AtLeast(number, 28).build(&mut builder);
    let seen = builder.input(0);
    let middle = builder.and_not(late, end);
    let both = builder.and(end, seen);
    let action = builder.or(middle, both);
    let (mut next, mut carry) = (Vec::new(), Signal::TRUE);
    for place in 1..6 {
        let bit = builder.input(place);
        next.push(builder.xor(bit, carry));
        carry = builder.and(bit, carry);
    }
    Policy::close(builder, 1, 2, &[action], &next).unwrap()
}

#[test]
fn a_clock_is_said_in_steps_in_rules_and_reasons_and_only_as_far_as_episodes_go() {
    let (policy, fields) = (clocked(), [Field { low: 0, width: 1 }]);
    let said = |horizon: Option<u32>| {
        let subject = Explainable {
            policy: &policy,
            observation_bits: 1,
            fields: &fields,
            names: None,
            actions: &[],
            horizon,
        };
        let whole = subject.explain();
        assert!(whole.is_exact(), "{whole:?}");
        let mut input = vec![false; 6];
        // Step 22, lowest bit first.
        [2, 3, 5].iter().for_each(|place| input[*place] = true);
        let [why, ..] = text::reason(&subject, &subject.reason(&input, 10_000));
        (text::policy(&subject, &whole, None), why)
    };
    let (text, why) = said(None);
    assert!(!text.contains("remembered 4 =") && text.contains("steps so far"), "{text}");
    assert_eq!(why, "Action 1 because 21 <= steps so far <= 27");
    let (text, why) = said(Some(25));
    assert!(text.contains("on all 50 inputs that can occur"), "{text}");
    assert!(text.contains("   1. if steps so far >= 21: action 1\n   2. otherwise: action 0\n"), "{text}");
    assert!(text.contains("for episodes of at most 25 steps"), "{text}");
    assert_eq!(why, "Action 1 because steps so far >= 21");
}

#[test]
fn a_table_of_a_few_thousand_inputs_is_exact_and_only_its_beginning_is_printed_where_that_is_asked_for() {
    let features =
        r#"[{"name":"temp","kind":"number","min":0,"max":32},{"name":"hour","kind":"choice","of":24}]"#;
    let names = Encoder::for_world(Feature::list(features).unwrap(), NumberCode::Binary, 32, &[]).unwrap();
    let fields = names.fields();
    // Chance for every value of both, which no short list is.
    let mut builder = Builder::new(names.bits());
    let mut prng = bem_base::prng::Prng::stream(9, "table");
    let mut column: Vec<Signal> = (0..256).map(|_| Signal::constant(prng.bit())).collect();
    for place in [0, 1, 2, 3, 4, 5, 6, 7] {
        let choose = builder.input(place);
        column = column.chunks(2).map(|pair| builder.mux(choose, pair[1], pair[0])).collect();
    }
    let action = column[0];
    let policy = Policy::close(builder, names.bits(), 2, &[action], &[]).unwrap();
    let subject = Explainable {
        policy: &policy,
        observation_bits: names.bits(),
        fields: &fields,
        names: Some(&names),
        actions: &[],
        horizon: None,
    };
    let whole = subject.explain();
    // Of the last of 24 places only eight are told apart, and of 32 levels those up to 16, which is as far as 32 degrees go.
    assert!(matches!(whole.action.agreement, Agreement::Exhaustive { .. }), "{:?}", whole.action);
    // Two features decide: a row for each of the eight kinds of hours, and ranges of the other in it.
    assert!(whole.action.group.is_some() && whole.action.rows() == 8, "{:?}", whole.action);
    let all = text::policy(&subject, &whole, None);
    assert!(all.contains("   1. if hour in {0, 8, 16}: ") && all.contains("; otherwise action "), "{all}");
    let short = text::policy_within(&subject, &whole, None, 5);
    assert!(short.contains("... and 3 more rules") && !all.contains("more rules"), "{short}");
    // What the table says is what the policy does.
    for hour in 0..24 {
        for temp in 0..=32 {
            let text = format!("temp={temp},hour={hour}");
            let input = subject.input(&GivenObservation::Text(&text), None).unwrap();
            let (rule, then) = whole.action.deciding(&input);
            assert_eq!(then, policy.circuit().evaluate(&input), "{text}");
            assert!(whole.action.is_row_of(&whole.action.rules[rule], &input), "{text}");
        }
    }
}

#[test]
fn a_summary_is_about_recorded_steps_where_there_are_some_and_says_both_shares() {
    let fields: Vec<Field> = (0..20).map(|low| Field { low, width: 1 }).collect();
    let mut prng = bem_base::prng::Prng::stream(10, "summary");
    let circuit = bem_circuit::testing::random_dense_netlist(&mut prng, 20, 600, 2);
    let policy = Policy::new(circuit, (0..20).collect(), 0, 4).unwrap();
    let subject = Explainable {
        policy: &policy,
        observation_bits: 20,
        fields: &fields,
        names: None,
        actions: &[],
        horizon: None,
    };
    let mut episode: Vec<Bits> = Vec::new();
    for number in 0..30u64 {
        let mut bits = Bits::ZERO;
        bits.set_field(0, 20, number * 34_567 % (1 << 20));
        episode.push(bits);
    }
    let whole = subject.explain_met(&[episode]);
    let Agreement::Summary { agreed, tried, met } = whole.action.agreement else { panic!("{whole:?}") };
    assert!(agreed < tried, "{agreed} of {tried}");
    assert_eq!(met, Some((30, 30)), "a summary is right where it was made for");
    let text = text::policy(&subject, &whole, None);
    assert!(
        text.contains("a summary: agrees with the circuit at 100.0 % of 30 steps of recorded episodes"),
        "{text}"
    );
    assert!(text.contains("not the whole policy"), "{text}");
}
