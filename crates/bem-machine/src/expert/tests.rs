//! Every bound stops an expert from being built, one by one.

use super::*;
use bem_circuit::netlist::{Gate, Op, Signal};
use expect_test::{Expect, expect};

/// Reads three state bits, writes one, counts one: two gates.
fn parts() -> ExpertParts {
    let gates = vec![
        Gate { op: Op::And, a: Signal::input(0), b: Signal::input(1) },
        Gate { op: Op::Xor, a: Signal::from_index(5), b: Signal::input(2) },
    ];
    let outputs = vec![Signal::from_index(6), Signal::from_index(5)];
    ExpertParts {
        read: ReadSpec { state_bits: vec![0, 1, 2], shared: Vec::new() },
        write: WriteSpec { outputs: vec![OutputUse::State(3), OutputUse::Count], integers: Vec::new() },
        circuit: Netlist::new(3, gates, outputs).unwrap(),
        profile: Profile::default(),
        routing: RoutingMetadata::default(),
    }
}

fn build(config: &GenesisConfig, parts: ExpertParts) -> Result<Expert, ExpertError> {
    Expert::new(config, ObjectId::expert(0, 0), parts)
}

fn check_refused(config: &GenesisConfig, parts: ExpertParts, want: Expect) {
    want.assert_eq(&build(config, parts).unwrap_err().to_string());
}

/// The same expert is built with the bound at `limit` and refused with the bound one lower.
fn check_bound(limit: u32, set: impl Fn(&mut GenesisConfig, u32), want: Expect) {
    let mut config = GenesisConfig::default();
    set(&mut config, limit);
    build(&config, parts()).unwrap();
    set(&mut config, limit - 1);
    check_refused(&config, parts(), want);
}

#[test]
fn an_expert_over_any_bound_cannot_be_built() {
    check_bound(3, |c, n| c.expert_inputs_max = n, expect!["3 inputs exceed the bound of 2 (N_in_max)"]);
    check_bound(2, |c, n| c.expert_outputs_max = n, expect!["2 outputs exceed the bound of 1 (N_out_max)"]);
    check_bound(2, |c, n| c.expert_gates_max = n, expect!["2 gates exceed the bound of 1 (G_gate_max)"]);
    check_bound(
        3,
        |c, n| c.read_state_bits_max = n,
        expect!["3 state bits read exceed the bound of 2 (R_state_max)"],
    );
    check_bound(
        1,
        |c, n| c.write_state_bits_max = n,
        expect!["1 state bits written exceed the bound of 0 (W_state_max)"],
    );
    // Two gates, three words read, two written at two units each.
    check_bound(
        9,
        |c, n| c.expert_cost_max = n,
        expect!["the circuit costs 9 work units, which exceeds the bound of 8 (C_expert_max)"],
    );
}

#[test]
fn an_expert_with_too_many_monomials_cannot_be_built() {
    // One output with two monomials (the exclusive or), one with one.
    let anf = Anf::from_netlist(&parts().circuit).unwrap();
    let mut config = GenesisConfig { expert_monomials_max: 2, ..GenesisConfig::default() };
    let built = build(&config, parts().with_anf(&config, &anf).unwrap()).unwrap();
    for assignment in 0..8u8 {
        let inputs = [0, 1, 2].map(|bit| assignment >> bit & 1 == 1);
        assert_eq!(built.placed().circuit().evaluate(&inputs), parts().circuit.evaluate(&inputs));
    }
    config.expert_monomials_max = 1;
    let refused = parts().with_anf(&config, &anf).unwrap_err().to_string();
    assert_eq!(refused, "2 monomials of one output exceed the bound of 1 (M_mono_max)");
}

#[test]
fn words_of_shared_are_bounded_and_must_be_the_experts_own() {
    let config = GenesisConfig::default();
    let map = SegmentMap::new(&config);
    let (work, env) = (map.base(Segment::Work), map.base(Segment::Env));
    let with_integer = |address: u32, weights: Vec<i32>| {
        let mut parts = parts();
        let mode = IntegerMode::Accumulate;
        parts.write.integers.push(IntegerOutput { address, mode, constant: 0, weights });
        parts
    };
    build(&config, with_integer(work + work_word::EXPERT_FIRST, vec![1])).unwrap();
    for address in [work, work + work_word::EXPERT_FIRST - 1, env, work + map.size(Segment::Work), u32::MAX] {
        let refused = build(&config, with_integer(address, vec![1])).unwrap_err();
        assert_eq!(refused, ExpertError::SharedWord { access: "write", address });
    }
    check_refused(
        &config,
        with_integer(work + 40, vec![1, 2]),
        expect!["an integer output has 2 weights for 1 counted outputs"],
    );
    let narrow = GenesisConfig { write_shared_words_max: 0, ..GenesisConfig::default() };
    check_refused(
        &narrow,
        with_integer(work + 40, vec![1]),
        expect!["1 SHARED words written exceed the bound of 0 (W_shared_max)"],
    );

    let with_read = |address: u32, low: u8| {
        let mut parts = parts();
        parts.read.state_bits.pop();
        parts.read.shared.push(SharedField { address, low, width: 1 });
        parts
    };
    build(&config, with_read(env, 63)).unwrap();
    check_refused(&config, with_read(env, 64), expect!["bits 64 to 65 of a word: a word has 64"]);
    check_refused(&config, with_read(0, 0), expect!["experts may not read word 0 of SHARED"]);
    let narrow = GenesisConfig { read_shared_words_max: 0, ..GenesisConfig::default() };
    check_refused(
        &narrow,
        with_read(env, 0),
        expect!["1 SHARED words read exceed the bound of 0 (R_shared_max)"],
    );
}

#[test]
fn bits_outside_state_are_refused() {
    let config = GenesisConfig { state_bits: 64, ..GenesisConfig::default() };
    let mut reading = parts();
    reading.read.state_bits[1] = 64;
    check_refused(&config, reading, expect!["state bit 64 is out of range: STATE has 64"]);
    let mut writing = parts();
    writing.write.outputs[0] = OutputUse::State(70);
    check_refused(&config, writing, expect!["state bit 70 is out of range: STATE has 64"]);
}

#[test]
fn canonical_bytes_come_back_and_every_cut_is_refused() {
    let config = GenesisConfig::default();
    let mut parts = parts();
    let address = SegmentMap::new(&config).base(Segment::Work) + 50;
    let integer = IntegerOutput { address, mode: IntegerMode::Assign, constant: -3, weights: vec![7] };
    parts.write.integers.push(integer);
    parts.profile.sticky = true;
    parts.routing =
        RoutingMetadata { priority: 3, macro_tag: 9, version: 4, descriptor: Some(Bits([1, 2, 3, 4])) };
    let expert = build(&config, parts).unwrap();
    let mut writer = Writer::new();
    expert.encode(&mut writer);
    let bytes = writer.into_bytes();
    assert_eq!(Expert::decode(&config, &mut Reader::new(&bytes)), Ok(expert));
    for cut in 0..bytes.len() {
        assert!(Expert::decode(&config, &mut Reader::new(&bytes[..cut])).is_err());
    }
    let strict = GenesisConfig { expert_gates_max: 1, ..GenesisConfig::default() };
    assert!(Expert::decode(&strict, &mut Reader::new(&bytes)).is_err());
}
