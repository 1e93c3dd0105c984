//! Units as messages: whoever works on them, the history is the same, and damaged messages are refused. Clauses: PIPE-4, SCC-15.

use bem_engine::climb::message::{Order, answer, read_answer};
use bem_engine::climb::{Climb, ClimbConfig, ClimbError, Unit, Worked};
use bem_engine::worlds::Catalog;
use bem_machine::config::GenesisConfig;
use std::collections::BTreeSet;
use std::sync::Arc;

fn climb() -> Climb {
    let families = ["parity", "dyck", "bandit"].map(str::to_string).to_vec();
    let parameters = Arc::new(GenesisConfig::default());
    Climb::new(ClimbConfig { seed: 3, stages: 3, unit_steps: 3_000, families, parameters })
        .expect("families of the catalog")
}

fn order(climb: &Climb, unit: &Unit, put_away: Option<Vec<u8>>) -> Vec<u8> {
    Order { assignment: climb.assign(unit), files: Vec::new(), put_away }.to_bytes()
}

#[test]
fn a_climb_over_messages_has_the_history_of_one_without() {
    let (mut here, mut there) = (climb(), climb());
    for _ in 0..8 {
        let unit = here.next(&BTreeSet::new()).unwrap();
        here.take(&here.work(&unit, &mut || true).unwrap().unwrap());
        let bytes = order(&there, &unit, None);
        let sent = Order::from_bytes(&bytes).unwrap();
        assert_eq!(sent.to_bytes(), bytes);
        let answered = sent.work(&Catalog, &mut || true);
        let parameters = &there.config().parameters;
        let Ok(Worked::Done(result)) = read_answer(&unit, parameters, &answered).unwrap() else {
            panic!("the unit is worked out");
        };
        assert_eq!(answer(&Ok(Worked::Done(result.clone()))), answered);
        there.take(&result);
        assert_eq!(here.head(), there.head());
        assert_eq!(here.snapshot(), there.snapshot());
    }
}

#[test]
fn a_unit_that_was_put_away_goes_on_elsewhere_to_the_same_answer() {
    let climb = climb();
    let unit = climb.next(&BTreeSet::new()).unwrap();
    let whole = Order::from_bytes(&order(&climb, &unit, None)).unwrap().work(&Catalog, &mut || true);
    let mut looks = 0;
    let cut = Order::from_bytes(&order(&climb, &unit, None)).unwrap().work(&Catalog, &mut || {
        looks += 1;
        looks < 2
    });
    let Ok(Worked::PutAway(bytes)) = read_answer(&unit, &climb.config().parameters, &cut).unwrap() else {
        panic!("the unit is put away");
    };
    let rest = Order::from_bytes(&order(&climb, &unit, Some(bytes))).unwrap();
    assert_eq!(rest.work(&Catalog, &mut || true), whole);
}

#[test]
fn answers_to_other_units_damaged_and_cut_messages_are_refused_without_a_panic() {
    let climb = climb();
    let unit = climb.next(&BTreeSet::new()).unwrap();
    let sent = order(&climb, &unit, None);
    let parameters = Arc::clone(&climb.config().parameters);
    let answered = Order::from_bytes(&sent).unwrap().work(&Catalog, &mut || true);
    let other = Unit { number: 7, ..unit.clone() };
    assert!(read_answer(&other, &parameters, &answered).unwrap_err().to_string().contains("another unit"));
    for cut in (0..sent.len()).step_by(7) {
        assert!(Order::from_bytes(&sent[..cut]).is_err());
    }
    for cut in (0..answered.len()).step_by(97) {
        assert!(read_answer(&unit, &parameters, &answered[..cut]).is_err());
    }
    let mut prng = bem_base::prng::Prng::stream(5, "message/damage");
    for _ in 0..300 {
        let mut damaged = answered.clone();
        let place = prng.below(damaged.len() as u64) as usize;
        damaged[place] ^= 1 << prng.below(8);
        if let Ok(Ok(Worked::Done(result))) = read_answer(&unit, &parameters, &damaged) {
            assert_eq!(answer(&Ok(Worked::Done(result))), damaged);
        }
    }
    let failed = answer(&Err(ClimbError::Elsewhere("no such game".to_string())));
    let error = read_answer(&unit, &parameters, &failed).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "no such game");
}
