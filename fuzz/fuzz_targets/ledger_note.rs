//! Any bytes as a checkpoint or as a request to a witness: refused, or the one spelling of what they say.
#![no_main]

use bem_ledger::checkpoint::SignedCheckpoint;
use bem_ledger::testing;
use bem_ledger::witness::WitnessRequest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(note) = SignedCheckpoint::parse(data) {
        assert_eq!(note.to_text().as_bytes(), data);
        // Nobody signs what a fuzzer writes.
        assert!(note.verify(&testing::signer().public_key()).is_err());
    }
    if let Ok(request) = WitnessRequest::parse(data) {
        assert_eq!(request.to_text().as_bytes(), data);
    }
});
