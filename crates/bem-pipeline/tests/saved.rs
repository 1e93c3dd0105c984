//! A pipeline that is saved after every round goes on as if it had not been, without an end too; damaged bytes are refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its pipeline has failed")]

mod kit;

use bem_engine::climb::UnitResult;
use bem_machine::config::{GenesisConfig, SchedulerKind};
use bem_pipeline::pipeline::{Phase, Pipeline, Plan};
use kit::{small_plan, work};
use std::sync::Arc;

/// A configuration in which Algorithm D gives out the time.
fn linear() -> GenesisConfig {
    GenesisConfig { scheduler: SchedulerKind::Linear, ..GenesisConfig::default() }
}

fn plan() -> Plan {
    Plan { unit_steps: 300, endless: true, main: Arc::new(linear()), ..small_plan("games") }
}

#[test]
fn a_pipeline_without_an_end_goes_on_from_its_bytes_takes_in_a_domain_and_keeps_two_generations() {
    let mut whole = Pipeline::new(plan()).unwrap();
    let mut saved = whole.clone();
    let (mut renewed, mut largest) = (0, 0);
    let mut first_renewed = None;
    for round in 0..80 {
        if whole.learned() == 2 && 3 <= renewed {
            break;
        }
        if round == 12 {
            whole.take_in("stack").unwrap();
            saved.take_in("stack").unwrap();
            assert!(whole.take_in("stack").unwrap_err().to_string().contains("twice"));
            assert!(whole.take_in("chess").unwrap_err().to_string().contains("aggregation"));
        }
        let jobs = whole.jobs();
        assert!(!jobs.is_empty() && whole.phase() != Phase::Over, "it has no end");
        assert_eq!(saved.jobs(), jobs, "round {round}");
        let results: Vec<UnitResult> = jobs.iter().map(|job| work(&whole, job)).collect();
        let before = whole.volumes_kept().last().copied();
        whole.take(&jobs, &results).unwrap();
        saved.take(&jobs, &results).unwrap();
        let bytes = saved.to_bytes();
        saved = Pipeline::from_bytes(plan(), &bytes).unwrap();
        assert_eq!(saved.to_bytes(), bytes, "round {round}");
        assert_eq!(saved.head(), whole.head());
        if before < whole.volumes_kept().last().copied() && whole.is_beyond_its_plan() {
            renewed += 1;
            first_renewed.get_or_insert(bytes.len());
            largest = largest.max(bytes.len());
        }
        // The present volumes and those that they came from: one more while a domain comes in.
        assert!(whole.volumes_kept().len() <= 3, "{:?}", whole.volumes_kept());
    }
    assert_eq!(whole.domains(), ["games", "stack"]);
    assert!(3 <= renewed, "{renewed} volumes were begun for the same settings");
    assert!(whole.summary(false).unwrap().kept_least.is_none_or(|least| bem_pipeline::pool::KEPT <= least));
    // A state behind a renewal has the settings and machines of its domains, not the history of all rounds.
    assert!(largest < 8 * first_renewed.unwrap(), "{largest} bytes against {first_renewed:?}");
    let bytes = saved.to_bytes();
    for cut in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        assert!(Pipeline::from_bytes(plan(), &bytes[..cut]).is_err(), "{cut}");
    }
    for place in (0..bytes.len()).step_by(bytes.len() / 64) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        assert!(Pipeline::from_bytes(plan(), &damaged).is_err(), "{place}");
    }
    let another = Plan { seed: 2, ..plan() };
    assert!(Pipeline::from_bytes(another, &bytes).err().unwrap().to_string().contains("another plan"));
}
