//! Reasons of a policy that was learned: `retry.net` came out of examples/retry_env.py, remembers two steps, and reads the
//! bits of a number's binary code one by one.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use bem_circuit::formats::read;
use bem_data::{Encoder, Feature, NumberCode};
use bem_explain::{Explainable, GivenObservation, Meaning, html, text};
use bem_synth::policy::{Policy, action_bits};

const FEATURES: &str = r#"[{"name":"attempts","kind":"choice","of":5},
    {"name":"last","kind":"choice","of":["none","error","timeout","refused"]},
    {"name":"left","kind":"number","min":0,"max":4000}]"#;

fn policy() -> Policy {
    let model = read(include_bytes!("retry.net")).unwrap();
    let reads = model.input_names()[..model.free_inputs()].iter().map(|name| {
        let number = name.strip_prefix("observation_").unwrap();
        number.parse().unwrap()
    });
    Policy::new(model.circuit().clone(), reads.collect(), model.memory(), 5).unwrap()
}

/// Attempts so far, how the last one ended, what is left: steps of episodes as that world has them.
const EPISODES: [&[(u8, &str, u16)]; 4] = [
    &[(0, "none", 4000), (1, "error", 3400), (2, "timeout", 2700), (3, "error", 2000)],
    &[(0, "none", 4000), (1, "refused", 3980), (2, "timeout", 3080), (3, "timeout", 2180)],
    &[(0, "none", 4000), (1, "timeout", 3400), (2, "timeout", 2700), (3, "timeout", 2000)],
    &[(0, "none", 4000), (1, "error", 3950), (2, "error", 3800), (3, "refused", 3680)],
];

#[test]
fn a_learned_policy_with_memory_gives_reasons_of_single_ranges_and_real_actions() {
    let policy = policy();
    let encoder = Encoder::for_world(Feature::list(FEATURES).unwrap(), NumberCode::Binary, 21, &[]).unwrap();
    let fields = encoder.fields();
    let subject = Explainable {
        policy: &policy,
        observation_bits: encoder.bits(),
        fields: &fields,
        names: Some(&encoder),
        actions: &[],
        horizon: Some(4),
    };
    assert_eq!(encoder.bits(), 10, "the bits that it was learned with");
    let words = subject.words();
    assert!(!words.places.iter().any(|place| matches!(place, Meaning::Kept(_))), "{:?}", words.places);
    // What nobody met it may answer by a code beyond the last action, and remembers that: reasons say what they are about.
    assert!(words.holds_codes_beyond, "then the reasons below claim less than they could");
    let mut ranges = 0;
    for episode in EPISODES {
        let mut memory = vec![false; policy.memory_bits()];
        for (attempts, last, left) in episode {
            let seen = format!("attempts={attempts},last={last},left={left}");
            let mut input = subject.input(&GivenObservation::Text(&seen), None).unwrap();
            let observed = policy.reads().len();
            input[observed..].copy_from_slice(&memory);
            memory.copy_from_slice(&policy.circuit().evaluate(&input)[action_bits(5)..]);
            let reason = subject.reason(&input, 100_000);
            assert!(reason.of_features && reason.is_minimal, "{seen}");
            let [why, claim, nearest] = text::reason(&subject, &reason);
            assert_eq!(claim.contains("one of the actions"), reason.of_actions, "{claim}");
            for said in [&why, &nearest] {
                assert!(!said.contains(" or ") && !said.contains("0 as "), "{seen}: {said}");
                ranges += said.matches("<= left").count();
            }
            assert!(1 < *attempts || !why.contains("2 steps ago"), "there was no such step: {seen}: {why}");
            // At the first step there is nothing to remember, and nothing is said of it.
            assert!(0 < *attempts || !why.contains("ago)"), "{seen}: {why}");
        }
    }
    assert!(8 < ranges, "{ranges} ranges");
    let page = html::states(&subject, &subject.explain(), None);
    assert!(page.contains("It holds how many steps there were before, action (1 step ago)"), "{page}");
    assert!(!page.contains("becomes of every"), "{page}");
}
