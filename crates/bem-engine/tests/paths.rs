//! Fast, mid and slow path are units of their own: whoever takes a step neither searches nor proves in it.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

use bem_engine::learner::{Event, Learner, Settings, Tally};
use bem_games::catalog;
use bem_machine::config::{SchedulerKind, Word};
use std::collections::BTreeMap;

/// Runs a learner unit by unit, compares what each of them counted with what it said it was, and returns the last tally.
fn check_units(family: &str, params: &[(&str, &str)], pacing: SchedulerKind) -> Tally {
    let texts: BTreeMap<String, String> =
        params.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let family = catalog::family(family).unwrap();
    let game = catalog::build(family, &catalog::settings(family, &texts).unwrap(), 3).unwrap();
    let mut world = game.start();
    let settings = Settings { budget: 1_200, ..Settings::new(4) }.with(|config| config.scheduler = pacing);
    let mut learner = Learner::new(world.shape(), settings).unwrap();
    loop {
        let before = *learner.tally();
        let event = learner.advance(world.as_mut(), &mut ()).unwrap();
        let after = *learner.tally();
        let is_step = matches!(event, Event::Stepped | Event::EpisodeEnded);
        assert_eq!(after.steps - before.steps, u64::from(is_step), "{event:?}");
        assert_eq!(after.episodes - before.episodes, u64::from(event == Event::EpisodeEnded), "{event:?}");
        // A scheduler may search in the unit in which it chooses; no unit of acting or judging ever does.
        let may_search = matches!(event, Event::Searched | Event::RoundEnded);
        assert!(may_search || after.work == before.work, "{event:?} searched");
        assert!(event == Event::Judged || may_search || after.proofs == before.proofs, "{event:?} proved");
        if event == Event::Over {
            return after;
        }
    }
}

#[test]
fn a_unit_takes_a_step_or_searches_or_proves_and_never_two_of_them() {
    let dyck = [("types", "1"), ("depth", "2"), ("length", "8")];
    for pacing in SchedulerKind::ALL.iter().copied() {
        for (family, params) in [("parity", &[("n", "8")][..]), ("dyck", &dyck), ("safety_grid", &[])] {
            let tally = check_units(family, params, pacing);
            assert!(0 < tally.steps && 0 < tally.work && 0 < tally.proofs, "{family} {pacing:?}: {tally:?}");
        }
    }
}
