//! A snapshot with some of its bytes changed: refused, or written again byte for byte.
//!
//! Plain bytes would die at the manifest's digest, so the input says which bytes of a valid file to change and whether to
//! mend the digest afterwards.
#![no_main]

use bem_base::digest::hash;
use bem_ledger::chain::ChainHead;
use bem_ledger::snapshot::{Part, Snapshot};
use libfuzzer_sys::fuzz_target;

/// Where the manifest of the file below ends.
const MANIFEST_BYTES: usize = 96 + 2 * (4 + 5 + 8 + 32);

fuzz_target!(|data: &[u8]| {
    let part = |name: &str, bytes: &[u8]| Part { name: name.to_owned(), bytes: bytes.to_vec() };
    let snapshot = Snapshot {
        instance: hash(b"instance"),
        entries: 3,
        head: ChainHead::start(),
        step: 5,
        parts: vec![part("first", b"0123456789"), part("later", b"abc")],
    };
    let (mut bytes, _) = snapshot.to_bytes();
    let honest = bytes.clone();
    for change in data.chunks_exact(2) {
        let position = usize::from(change[0]) % bytes.len();
        bytes[position] ^= change[1];
    }
    if data.len() % 2 == 1 {
        let digest = hash(&bytes[..MANIFEST_BYTES]);
        bytes[MANIFEST_BYTES..MANIFEST_BYTES + 32].copy_from_slice(digest.as_bytes());
    }
    match Snapshot::from_bytes(&bytes) {
        Ok((snapshot, _)) => assert_eq!(snapshot.to_bytes().0, bytes),
        Err(_) => assert_ne!(bytes, honest),
    }
    let _ = Snapshot::from_bytes(data);
});
