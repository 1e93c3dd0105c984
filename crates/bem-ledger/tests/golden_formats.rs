//! An entry of every kind as it was written when its format was last changed: this version must still read it.
//!
//! `cargo xtask golden` writes the file anew; the commit says why. A file of another version is refused by name.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_base::encode::{Reader, Writer};
use bem_base::prng::Prng;
use bem_ledger::entry::{Entry, KINDS};
use bem_ledger::testing;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/formats/ledger_entries.bin");

#[allow(clippy::disallowed_methods, reason = "renewal must be asked for from outside, and only in this test")]
fn renewal_is_asked_for() -> bool {
    std::env::var("BEM_GOLDEN").is_ok_and(|value| value == "renew")
}

/// One entry of every kind.
fn examples() -> Vec<u8> {
    let mut prng = Prng::stream(1, "golden entries");
    let mut kinds: Vec<Option<Entry>> = vec![None; KINDS];
    kinds[0] = Some(Entry::Genesis(testing::genesis(1)));
    while kinds.iter().any(Option::is_none) {
        let entry = testing::entry(&mut prng);
        let place = usize::from(entry.kind());
        kinds[place].get_or_insert(entry);
    }
    let mut writer = Writer::new();
    kinds.iter().flatten().for_each(|entry| writer.bytes(&entry.to_bytes()));
    writer.into_bytes()
}

#[test]
fn golden_entries_of_every_kind_are_read_and_other_versions_are_named() {
    if renewal_is_asked_for() {
        std::fs::write(FILE, examples()).unwrap();
    }
    let bytes = std::fs::read(FILE).expect("renew it with: cargo xtask golden");
    let (mut reader, mut kinds) = (Reader::new(&bytes), Vec::new());
    while 0 < reader.remaining() {
        let stored = reader.bytes().unwrap();
        let entry = Entry::from_bytes(stored)
            .expect("the format has changed: raise ENTRY_FORMAT and renew with: cargo xtask golden");
        assert_eq!(entry.to_bytes(), stored);
        kinds.push(usize::from(entry.kind()));
        for other in [stored[0] - 1, stored[0] + 1] {
            let mut foreign = stored.to_vec();
            foreign[0] = other;
            let error = Entry::from_bytes(&foreign).unwrap_err().to_string();
            assert!(error.contains("written by another version"), "{error}");
        }
    }
    assert!(kinds.into_iter().eq(0..KINDS));
}
