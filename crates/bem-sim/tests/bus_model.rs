//! A sample of the schedules of the tool bus; `cargo xtask battery bus` runs more of them. Clauses: TOOL-2, TOOL-3, TOOL-9.

use bem_sim::bus::model::Slip;
use bem_sim::bus::{Totals, run_bus};

#[test]
fn the_bus_does_what_its_model_says_with_slow_dead_late_lying_and_double_workers() {
    let mut totals = Totals::default();
    for seed in 0..60 {
        run_bus(seed, None, &mut totals).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
    }
    for name in [
        "requests",
        "done",
        "answers after the lease",
        "answers twice or from the dead",
        "deaths",
        "lies",
        "refused by a full bus",
        "with an outcome unknown",
        "given up after every attempt",
        "out of time",
        "with a bad answer",
        "ended after another attempt",
    ] {
        assert!(10 <= totals.of(name), "{name} happened {} times: {totals}", totals.of(name));
    }
}

#[test]
fn a_model_with_one_wrong_rule_is_found_to_differ() {
    for slip in Slip::ALL {
        let found = (0..200).any(|seed| run_bus(seed, Some(slip), &mut Totals::default()).is_err());
        assert!(found, "{slip:?} is not noticed");
    }
}
