//! What is shown of policies whose meaning is known: observations as they are written, examples, diagrams and parts of pages.

use super::*;
use crate::drawing::svg;
use crate::examples::examples;
use bem_base::environment::Bits;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::{Feature, NumberCode};

/// Remembers whether bit 0 was ever 1, and does action 1 once it was and bit 1 is 1.
fn latch() -> Policy {
    let mut builder = Builder::new(3);
    let [seen, asked, kept] = [0, 1, 2].map(|place| builder.input(place));
    let action = builder.and(kept, asked);
    let next = builder.or(kept, seen);
    Policy::close(builder, 2, 2, &[action], &[next]).unwrap()
}

fn single_bits(bits: u16) -> Vec<Field> {
    (0..bits).map(|low| Field { low, width: 1 }).collect()
}

fn subject<'a>(policy: &'a Policy, fields: &'a [Field], names: Option<&'a Encoder>) -> Explainable<'a> {
    let observation_bits = fields.iter().map(|field| usize::from(field.low + field.width)).max().unwrap_or(0);
    Explainable { policy, observation_bits, fields, names, actions: &[], horizon: None }
}

#[test]
fn a_diagram_is_drawn_with_every_state_and_every_arrow() {
    let (policy, fields) = (latch(), single_bits(2));
    let subject = subject(&policy, &fields, None);
    let diagram = subject.diagram().unwrap();
    let drawn = svg(&subject, &diagram);
    assert_eq!(drawn, svg(&subject, &diagram), "the same every time");
    assert_eq!(drawn.matches("<circle class=node").count(), 2, "{drawn}");
    for words in ["<title>S0 to S0\n", "<title>S0 to S1\n", "<title>S1 to S1\n", "bit 0 = 1 / action 0"] {
        assert!(drawn.contains(words), "{words:?} is missing: {drawn}");
    }
    assert!(!drawn.contains("<title>S1 to S0\n"), "nothing is forgotten: {drawn}");
    let page = html::states(&subject, &subject.explain(), Some(&diagram));
    assert!(page.contains("<svg class=states") && page.contains("Every episode starts in S0"), "{page}");
    let constant = Policy::constant(2, 1);
    let constant = self::subject(&constant, &[], None);
    assert_eq!(html::states(&constant, &constant.explain(), None), "");
    let evidence = text::evidence(&constant.explain().action);
    assert!(evidence.contains("the only input") && !evidence.contains("all 1 inputs"), "{evidence}");
}

#[test]
fn examples_are_what_was_seen_with_what_the_policy_remembers_then() {
    let (policy, fields) = (latch(), single_bits(2));
    let subject = subject(&policy, &fields, None);
    let whole = subject.explain();
    let episode = ["00", "10", "01", "01"].map(|text| Bits::from_text(text).unwrap()).to_vec();
    let found = examples(&subject, &whole.action, &[episode]);
    assert_eq!(found.iter().map(|example| example.count).sum::<usize>(), 4, "{found:?}");
    let acts = found.iter().find(|example| example.input == [false, true, true]).expect("the third step");
    assert_eq!(
        (acts.count, subject.remembered(&acts.input, None).unwrap().as_str()),
        (2, "with 1 remembered")
    );
    let page = html::reasons(&subject, subject.diagram().as_ref(), &found, "seen");
    assert!(page.contains("<dt>bit 0 = 0 and bit 1 = 1, in S1</dt>"), "{page}");
    assert!(page.contains("Action 1 because bit 1 = 1 and remembered 0 = 1"), "{page}");
    assert!(page.contains("Action 0 instead with bit 1 = 0"), "{page}");
    // Without observations they are drawn, and every rule that can be reached has one.
    let drawn = examples(&subject, &whole.action, &[]);
    assert_eq!(drawn.len(), found.len(), "{drawn:?}");
    let held = html::conditions(&subject, &whole.action, &acts.input, 1);
    assert!(held.contains("<span class=pass>holds</span>") && held.contains("<b>action 1</b>"), "{held}");
}

#[test]
fn observations_are_read_by_bits_numbers_and_names_and_refused_with_what_is_allowed() {
    let features = r#"[{"name":"te'mp","kind":"number","min":0,"max":8},{"name":"door","kind":"choice","of":["open","shut"]}]"#;
    let names = Encoder::for_world(Feature::list(features).unwrap(), NumberCode::Binary, 32, &[]).unwrap();
    let fields = names.fields();
    let bits = names.bits();
    let mut builder = Builder::new(bits);
    let last = builder.input(bits - 1);
    let first: Vec<Signal> = (0..bits - 1).map(|place| builder.input(place)).collect();
    let any = builder.and_all(&first);
    let action = builder.or(last, any);
    let policy = Policy::close(builder, bits, 2, &[action], &[]).unwrap();
    let subject = subject(&policy, &fields, Some(&names));
    let input = subject.input(&GivenObservation::Text("te'mp=8,door=shut"), None).unwrap();
    let named = GivenObservation::Named(vec![("door", "shut"), ("te'mp", "8")]);
    assert_eq!(subject.input(&named, None).as_ref(), Ok(&input));
    assert!(subject.seen(&input).contains("door = shut"), "{}", subject.seen(&input));
    let page = html::why_item(&subject, &subject.reason(&input, 1_000));
    assert!(!page.contains("te'mp"), "{page}");
    for (text, memory, wanted) in [
        ("te'mp=9,door=shut", None, "obs \"te'mp\" is \"9\"; it must be a number from 0 to 8"),
        ("te'mp=1", None, "obs \"door\" is missing; it must be one of open, shut"),
        ("te'mp=1,window=shut", None, "obs \"window\" is no feature: there are te'mp, door"),
        ("01", None, "te'mp (a number from 0 to 8), door (one of open, shut)"),
        ("te'mp=1,door=shut", Some("1"), "memory \"1\" must be 0 zeros and ones"),
    ] {
        let error = subject.input(&GivenObservation::Text(text), memory).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}
