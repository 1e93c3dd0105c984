//! Any bytes as an entry: refused, or the one spelling of what they say.
#![no_main]

use bem_ledger::entry::Entry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Format and kind come first, so that no input dies at the first byte.
    let Some((kind, body)) = data.split_first() else { return };
    let bytes = [&[1, kind % 12], body].concat();
    if let Ok(entry) = Entry::from_bytes(&bytes) {
        assert_eq!(entry.to_bytes(), bytes);
    }
});
