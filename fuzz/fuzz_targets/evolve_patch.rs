//! Any bytes as a patch: refused, or the one spelling of what they say.
#![no_main]

use bem_base::encode::{Reader, Writer};
use bem_evolve::patch::Patch;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    let Ok(patch) = Patch::decode(&mut reader) else { return };
    let read = bytes.len() - reader.remaining();
    let mut writer = Writer::new();
    patch.encode(&mut writer);
    assert_eq!(writer.as_bytes(), &bytes[..read]);
    assert_eq!(patch.kind(), patch.change.kind());
});
