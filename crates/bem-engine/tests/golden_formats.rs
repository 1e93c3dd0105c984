//! A learner, a unit of work and the payload of a patch as they were written when their format was last changed.
//!
//! This version must still read them. What the learner does may change without anything here; when its bytes do, the version
//! is raised and `cargo xtask golden` writes the files anew. Another version is refused by name.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_engine::chronicle::Happening;
use bem_engine::climb::{Climb, ClimbConfig, Unit};
use bem_engine::learner::state::SavedLearner;
use bem_engine::learner::{Learner, Settings};
use bem_engine::payload::Payload;
use bem_engine::solve::solve;
use bem_engine::worlds::Catalog;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

const RENEW: &str = "the format has changed: raise its version and renew with: cargo xtask golden";

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/formats")).join(name)
}

#[allow(clippy::disallowed_methods, reason = "renewal must be asked for from outside, and only in this test")]
fn renewal_is_asked_for() -> bool {
    std::env::var("BEM_GOLDEN").is_ok_and(|value| value == "renew")
}

/// The stored bytes; written first if they are to be renewed.
fn stored(name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    if renewal_is_asked_for() {
        std::fs::write(file(name), make()).unwrap();
    }
    std::fs::read(file(name)).expect("renew it with: cargo xtask golden")
}

/// The bytes with another version in their first byte.
fn foreign(bytes: &[u8]) -> [Vec<u8>; 2] {
    [bytes[0].wrapping_sub(1), bytes[0].wrapping_add(1)].map(|version| {
        let mut foreign = bytes.to_vec();
        foreign[0] = version;
        foreign
    })
}

#[test]
fn golden_learner_is_read_and_other_versions_are_named() {
    let game = Catalog.game("parity{n=3}", 1).unwrap();
    let bytes = stored("learner.bin", || {
        let mut world = game.start();
        let mut learner =
            Learner::new(world.shape(), Settings { budget: 2_000, ..Settings::new(1) }).unwrap();
        for _ in 0..120 {
            learner.advance(world.as_mut(), &mut ()).unwrap();
        }
        learner.encode()
    });
    let saved = SavedLearner::parse(&bytes, game.shape()).expect(RENEW);
    let learner = saved.restore(game.start().as_mut()).expect(RENEW);
    assert!(learner.encode() == bytes, "{RENEW}");
    for bytes in foreign(&bytes) {
        let error = SavedLearner::parse(&bytes, game.shape()).unwrap_err().to_string();
        assert!(error.contains("written by another version"), "{error}");
    }
}

#[test]
fn golden_unit_is_read_and_other_versions_are_named() {
    let bytes = stored("unit.bin", || {
        let families = vec!["parity".to_string()];
        let climb = Climb::new(ClimbConfig {
            seed: 1,
            stages: 2,
            unit_steps: 2_000,
            families,
            parameters: Arc::default(),
        })
        .unwrap();
        climb.next(&BTreeSet::new()).unwrap().to_bytes()
    });
    assert_eq!(Unit::from_bytes(&bytes).expect(RENEW).to_bytes(), bytes);
    for bytes in foreign(&bytes) {
        assert!(Unit::from_bytes(&bytes).unwrap_err().to_string().contains("written by another version"));
    }
}

#[test]
fn golden_payload_is_read_and_other_versions_are_named() {
    let bytes = stored("payload.bin", || {
        let game = Catalog.game("parity{n=3}", 1).unwrap();
        let solution =
            solve(game.as_ref(), Settings { budget: 3_000, ..Settings::new(1) }, &mut |_| true).unwrap();
        let accepted = solution.chronicle.happenings().iter().find_map(|happening| match happening {
            Happening::Patch(note) if note.accepted => Some(note.payload.clone()),
            _ => None,
        });
        accepted.expect("something is found in 3,000 steps")
    });
    let payload = Payload::from_bytes(&bytes).expect(RENEW);
    assert!(payload.accepted.is_some());
    assert_eq!(payload.to_bytes(), bytes);
    for bytes in foreign(&bytes) {
        assert!(Payload::from_bytes(&bytes).unwrap_err().to_string().contains("written by another version"));
    }
}
