//! Images, archives and migrations on failing disks: a sample of `cargo xtask battery images`. Clauses: IMG-4 to IMG-6.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_ledger::store::MemoryStore;
use bem_sim::flips::flips;
use bem_sim::images::{Disturbance, Undisturbed, archives, disturbed, promoted};
use bem_sim::migrate::{Extent, migrations};

/// Draws of what survives a loss of power; the battery asks for more.
fn salts() -> u64 {
    std::env::var_os("BEM_IMAGE_SALTS").and_then(|text| text.to_str()?.parse().ok()).unwrap_or(3)
}

#[test]
fn a_layout_that_is_cut_off_at_any_operation_loads_and_loses_no_image_that_a_tag_names() {
    let wanted = Undisturbed::live().unwrap();
    assert!(100 < wanted.operations, "{}", wanted.operations);
    for at in 0..wanted.operations {
        for (how, salts) in
            [(Disturbance::PowerLoss, salts()), (Disturbance::Kill, 1), (Disturbance::Full, 1)]
        {
            for salt in 0..salts {
                disturbed(&wanted, at, how, salt)
                    .unwrap_or_else(|reason| panic!("operation {at}, {how:?}, {salt}: {reason}"));
            }
        }
    }
}

#[test]
fn an_archive_that_is_cut_off_at_any_operation_leaves_a_history_whose_gap_is_named() {
    assert!(10 < archives(salts() + 1).unwrap());
}

#[test]
fn a_migration_that_is_cut_off_at_any_operation_has_happened_or_not() {
    for (extent, operations) in [(Extent::Files, 12), (Extent::Ledger, 30)] {
        let found = migrations(extent, salts() + 1).unwrap();
        assert!(operations <= found, "{extent:?}: {found}");
    }
}

#[test]
fn flipped_bits_of_a_promoted_image_in_memory_are_refused() {
    let mut store: MemoryStore = promoted().unwrap();
    let whole = store.clone();
    let flipped = flips(&mut store, "bem-brain:stable", 3_000, 1).unwrap();
    assert!(flipped.flips == 3_000 && 8 <= flipped.files, "{flipped:?}");
    assert_eq!(store, whole);
    // The control: a file that no restore reads may change.
    let unread = store.files.keys().find(|name| name.contains("unread")).unwrap().clone();
    store.files.get_mut(&unread).unwrap()[0] ^= 1;
    assert!(flips(&mut store, "bem-brain:stable", 1, 1).is_ok());
}
