//! Rules over named features: comparisons are drawn together and fields are said in the features' own words.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use bem_circuit::netlist::{Builder, Signal};
use bem_data::{Code, Decimal, Encoder, Feature};
use bem_explain::{Words, action_of, explain};
use bem_synth::policy::Policy;

fn encoder() -> Encoder {
    let features = r#"[{"name":"age","kind":"number","min":0,"max":99},{"name":"temp","kind":"number","min":0,"max":40},
        {"name":"mode","kind":"choice","of":["off","eco","on"]}]"#;
    let numbers = |texts: &[&str]| texts.iter().map(|text| Decimal::parse(text).unwrap()).collect();
    let codes =
        [Code::Steps(numbers(&["30", "55"])), Code::Level(numbers(&["18", "20.5", "23"])), Code::Index];
    Encoder::new(Feature::list(features).unwrap().into_iter().zip(codes).collect()).unwrap()
}

fn said(build: impl Fn(&mut Builder) -> Signal) -> Vec<String> {
    let encoder = encoder();
    let mut builder = Builder::new(encoder.bits());
    let action = build(&mut builder);
    let policy = Policy::close(builder, encoder.bits(), 2, &[action], &[]).unwrap();
    let fields = encoder.fields();
    let list = explain(&policy, &fields, Some(&encoder)).action;
    assert!(list.is_exact(), "{list:?}");
    let words = Words::of(&policy, &fields, Some(&encoder));
    let mut lines: Vec<String> = (list.rules.iter())
        .map(|rule| format!("{} -> {}", words.conditions(&rule.when), action_of(&rule.then)))
        .collect();
    lines.push(format!("-> {}", action_of(&list.otherwise)));
    lines
}

#[test]
fn rules_speak_of_features_with_their_thresholds() {
    // Bits 0 and 1 are age >= 30 and age >= 55: in between is one comparison with two ends.
    let between = said(|builder| {
        let (low, high) = (builder.input(0), builder.input(1));
        builder.and_not(low, high)
    });
    assert_eq!(between, ["30 <= age < 55 -> 1", "-> 0"]);
    // Bits 2 and 3 count the thresholds that temp reaches; two or more is 20.5 or above.
    assert_eq!(said(|builder| builder.input(3)), ["temp >= 20.5 -> 1", "-> 0"]);
    // Bits 4 and 5 are the place of the mode.
    let on = said(|builder| {
        let (first, second) = (builder.input(4), builder.input(5));
        builder.and_not(second, first)
    });
    assert_eq!(on, ["mode = on -> 1", "-> 0"]);
}
