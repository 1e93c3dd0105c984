//! Conditions where the solver and not a table decides, and where a base is empty.

use super::*;
use crate::battery::Laboratory;
use crate::patch::{Change, Example, ExampleStep, ExpectedEffects, Patch};
use crate::propose::patch;
use crate::verify::verify;
use bem_base::environment::{Bits, Field, Shape};
use bem_base::prng::Prng;
use bem_circuit::netlist::{Builder, Op, Signal};
use bem_machine::family::Family;
use bem_synth::policy::{Player, Policy};
use bem_synth::statement::{self, Statement};

/// A family that sees 40 bits, with one expert: the parity of all of them, added from the left.
fn wide() -> (GenesisConfig, Family) {
    let config = GenesisConfig::default();
    let shape = Shape {
        observation_bits: 40,
        actions: 2,
        horizon: 16,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 16_000,
        fields: vec![Field { low: 0, width: 40 }],
    };
    let mut family = Family::for_world(&config, shape).unwrap();
    let gates = (1..40)
        .map(|place| {
            let so_far = if place == 1 { Signal::input(0) } else { Signal::from_index(2 + 40 + place - 2) };
            bem_circuit::netlist::Gate { op: Op::Xor, a: so_far, b: Signal::input(place) }
        })
        .chain([bem_circuit::netlist::Gate {
            op: Op::Xor,
            a: Signal::from_index(2 + 40 + 38),
            b: Signal::FALSE,
        }]);
    let circuit = Netlist::new(40, gates.collect(), vec![Signal::from_index(2 + 40 + 39)]).unwrap();
    let body = crate::patch::Body { reads: (0..40).collect(), writes: vec![40], circuit, sticky: false };
    family.install(&config, bem_base::ids::ObjectId::expert(0, 1), body.to_parts(0)).unwrap();
    (config, family)
}

fn make(family: &Family, change: Change) -> Patch {
    patch(&Tables::default(), Some(family), 1, 0, change, ExpectedEffects::default()).unwrap()
}

fn context<'a>(config: &'a GenesisConfig, tables: &'a Tables, family: &'a Family) -> Context<'a> {
    Context { config, tables, family: Some(family) }
}

#[test]
fn forty_inputs_are_compared_by_proof_whatever_the_order_of_the_sums() {
    let ((config, family), tables) = (wide(), Tables::default());
    let context = context(&config, &tables, &family);
    let mut order: Vec<usize> = (0..40).collect();
    Prng::stream(1, "order").shuffle(&mut order);
    let parity = |order: &[usize]| {
        let mut builder = Builder::new(40);
        let signals: Vec<Signal> = order.iter().map(|place| Signal::input(*place)).collect();
        let sum = builder.xor_all(&signals);
        builder.finish(&[sum]).unwrap()
    };
    let right = make(&family, Change::Superoptimize { slot: 1, circuit: parity(&order) });
    let verified = verify(right, &context).unwrap();
    assert_eq!((verified.proofs(), verified.gates_saved()), (1, 1));
    let wrong = make(&family, Change::Superoptimize { slot: 1, circuit: parity(&order[1..]) });
    let Err(Rejection::Refuted { counterexample, .. }) = verify(wrong, &context) else {
        panic!("one input is missing");
    };
    assert!(counterexample[order[0]]);
}

#[test]
fn exceptions_among_the_rows_of_the_log_are_counted_along_the_walks_of_a_policy_with_memory() {
    let ((config, family), tables) = (wide(), Tables::default());
    let context = context(&config, &tables, &family);
    // The parity of bit 7 over time, in one bit of memory.
    let mut builder = Builder::new(41);
    let sum = builder.xor(Signal::input(7), Signal::input(40));
    let policy = Policy::close(builder, 40, 2, &[sum], &[sum]).unwrap();
    let mut prng = Prng::stream(2, "walks");
    let mut examples: Vec<Example> = Vec::new();
    for _ in 0..20 {
        let mut player = Player::new(&policy);
        let steps = (0..10).map(|_| {
            let mut observation = Bits::ZERO;
            observation.set_field(0, 40, prng.below(1 << 40));
            ExampleStep { observation, wanted: Some(player.act(&observation)) }
        });
        examples.push(Example { steps: steps.collect() });
    }
    let synthesize = |examples: &[Example], exceptions: u32| {
        // The bit as it is after the step is shown behind the forty bits and itself as it was.
        let choice = statement::Choice::Bits(vec![statement::Formula::literal(41, false)]);
        let memory = Some(statement::Memory::Toggle(vec![(7, true)]));
        let statement = Statement::Acts { memory, choice };
        let (policy, examples) = (policy.clone(), examples.to_vec());
        let change = Change::Synthesize { policy, statement, examples, exceptions };
        verify(make(&family, change), &context)
    };
    assert!(synthesize(&examples, 0).is_ok());
    let wanted = &mut examples[13].steps[6].wanted;
    *wanted = wanted.map(|action| 1 - action);
    let refused = synthesize(&examples, 0).unwrap_err();
    assert_eq!(refused.to_string(), "1 of 200 rows of the log are exceptions, the patch says 0");
    assert!(synthesize(&examples, 1).is_ok());
}

#[test]
fn a_domain_that_nothing_satisfies_proves_nothing() {
    let laboratory = Laboratory::new();
    let mut patch = laboratory.good_patch(crate::patch::Form::Merge, &mut Prng::stream(1, "empty"));
    let Change::Merge { members, .. } = &mut patch.change else { panic!("a merge was asked for") };
    let (bit, value) = members[0].domain[0];
    members[0].domain.push((bit, !value));
    let vacuous = Rejection::Vacuous { condition: "agreement on a domain" };
    assert_eq!(verify(patch, &laboratory.context()).unwrap_err(), vacuous);
}

/// Whether more than half of 24 inputs are true, counted in this order.
fn majority(order: &[usize]) -> Netlist {
    let mut builder = Builder::new(24);
    let mut count = [Signal::FALSE; 5];
    for place in order {
        let mut carry = Signal::input(*place);
        for digit in &mut count {
            let next = builder.and(*digit, carry);
            *digit = builder.xor(*digit, carry);
            carry = next;
        }
    }
    // Above 12: 16 and more, or 8 and 4 and one of the lower digits.
    let lower = builder.or(count[0], count[1]);
    let above = builder.and_all(&[count[3], count[2], lower]);
    let output = builder.or(count[4], above);
    builder.finish(&[output]).unwrap()
}

#[test]
fn a_budget_that_runs_out_is_a_rejection() {
    let mut order: Vec<usize> = (0..24).collect();
    let straight = majority(&order);
    Prng::stream(3, "order").shuffle(&mut order);
    let shuffled = majority(&order);
    let undecided = prove_same("equivalence", &straight, &shuffled, Budget::conflicts(1));
    assert!(matches!(undecided, Err(Rejection::Undecided { why: Why::Budget, .. })), "{undecided:?}");
}
