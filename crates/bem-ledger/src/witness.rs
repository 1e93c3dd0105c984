//! A witness keeps the last checkpoint of each log it has seen and refuses every other past.
//!
//! It runs under its own key and keeps its own state; the log's owner cannot make it forget. It signs a checkpoint only
//! if a proof shows that the last one it signed is its beginning, and its state is durable before its signature leaves.
//! A thief of both keys wins; a thief of the log's key alone is seen. Decision D-17; threats T4, T5.

use crate::checkpoint::{SignedCheckpoint, Signer};
use crate::error::{LedgerError, StoreError};
use crate::limits::CHECKPOINT_BYTES_MAX;
use crate::merkle::verify_consistency;
use crate::store::Store;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bem_base::digest::Digest;

const STATE_TITLE: &str = "bem witness 1";
const PROOF_HASHES_MAX: usize = 63;

/// A request to a witness, as C2SP tlog-witness has it: the size it signed last, a proof, and the new checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessRequest {
    /// Size of the checkpoint the witness is expected to have; 0 at first contact.
    pub old_size: u64,
    /// Proof that the old tree is the beginning of the new one.
    pub proof: Vec<Digest>,
    /// The new checkpoint.
    pub checkpoint: SignedCheckpoint,
}

impl WitnessRequest {
    /// The text of the request.
    pub fn to_text(&self) -> String {
        let mut text = format!("old {}\n", self.old_size);
        for hash in &self.proof {
            text.push_str(&STANDARD.encode(hash.as_bytes()));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.checkpoint.to_text());
        text
    }

    /// Reads a request; it must be spelled as [`WitnessRequest::to_text`] spells it.
    pub fn parse(bytes: &[u8]) -> Result<WitnessRequest, LedgerError> {
        let refused = |reason: &str| LedgerError::Refused(format!("the request {reason}"));
        if CHECKPOINT_BYTES_MAX < bytes.len() {
            return Err(refused("is too long"));
        }
        let text = core::str::from_utf8(bytes).map_err(|_| refused("is not UTF-8"))?;
        let (head, note) = text.split_once("\n\n").ok_or_else(|| refused("has no empty line"))?;
        let mut lines = head.lines();
        let old_size = lines.next().and_then(|line| line.strip_prefix("old ")?.parse().ok());
        let old_size = old_size.ok_or_else(|| refused("does not start with `old SIZE`"))?;
        let mut proof = Vec::new();
        for line in lines {
            let bytes = STANDARD.decode(line).ok().and_then(|bytes| bytes.try_into().ok());
            proof.push(Digest::from_bytes(bytes.ok_or_else(|| refused("has a line that is no hash"))?));
        }
        if PROOF_HASHES_MAX < proof.len() {
            return Err(refused("has more than 63 hashes"));
        }
        let request =
            WitnessRequest { old_size, proof, checkpoint: SignedCheckpoint::parse(note.as_bytes())? };
        if request.to_text() != text {
            return Err(refused("is not in canonical form"));
        }
        Ok(request)
    }
}

/// What a witness remembers of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessState {
    /// The key the log must sign with, pinned at first contact.
    pub public_key: [u8; 32],
    /// Seconds since 1970 of the last cosignature.
    pub seconds: u64,
    /// The last checkpoint signed.
    pub checkpoint: SignedCheckpoint,
}

/// A witness over its own store.
#[derive(Debug)]
pub struct Witness<S> {
    store: S,
    name: String,
    signer: Signer,
}

fn state_name(instance: &Digest) -> String {
    format!("log-{instance}")
}

impl<S: Store> Witness<S> {
    /// A witness with this name and key. The store is its own, not the log's.
    pub fn new(store: S, name: String, signer: Signer) -> Witness<S> {
        Witness { store, name, signer }
    }

    /// What it remembers of a log, if it ever saw it.
    pub fn state(&mut self, instance: &Digest) -> Result<Option<WitnessState>, LedgerError> {
        let name = state_name(instance);
        let bytes = match self.store.read_all(&name, CHECKPOINT_BYTES_MAX as u64) {
            Err(StoreError::Missing { .. }) => return Ok(None),
            other => other?,
        };
        let damaged = || LedgerError::Refused(format!("{name} in the witness's own state is damaged"));
        let text = core::str::from_utf8(&bytes).map_err(|_| damaged())?;
        let mut parts = text.splitn(4, '\n');
        let mut part = || parts.next().ok_or_else(damaged);
        if part()? != STATE_TITLE {
            return Err(damaged());
        }
        let public_key = *Digest::from_hex(part()?).ok_or_else(damaged)?.as_bytes();
        let seconds = part()?.parse().map_err(|_| damaged())?;
        let checkpoint = SignedCheckpoint::parse(part()?.as_bytes()).map_err(|_| damaged())?;
        if checkpoint.verify(&public_key).is_err() || checkpoint.checkpoint.instance != *instance {
            return Err(damaged());
        }
        Ok(Some(WitnessState { public_key, seconds, checkpoint }))
    }

    /// Checks a request and returns the checkpoint with this witness's signature added.
    ///
    /// `public_key` pins the log's key at first contact and must be the pinned one later. `seconds` is the time now.
    pub fn cosign(
        &mut self,
        request: &WitnessRequest,
        public_key: &[u8; 32],
        seconds: u64,
    ) -> Result<SignedCheckpoint, LedgerError> {
        let refused = |reason: String| LedgerError::Refused(reason);
        let new = &request.checkpoint.checkpoint;
        request.checkpoint.verify(public_key)?;
        let state = self.state(&new.instance)?;
        let old_size = state.as_ref().map_or(0, |state| state.checkpoint.checkpoint.size);
        if new.size < old_size {
            let reason = format!("a rollback: {old_size} entries were signed, {} are offered", new.size);
            return Err(refused(reason));
        }
        if request.old_size != old_size {
            return Err(refused(format!(
                "the proof starts at {}, the last one signed has {old_size}",
                request.old_size
            )));
        }
        if let Some(state) = &state {
            if state.public_key != *public_key {
                return Err(refused("the key is not the one this log was first seen with".to_owned()));
            }
            if seconds < state.seconds {
                return Err(refused("the clock is behind the last signature".to_owned()));
            }
            let old = &state.checkpoint.checkpoint;
            let same = old.size == new.size && old != new;
            if same || !verify_consistency(old.size, new.size, &old.root, &new.root, &request.proof) {
                return Err(refused(format!(
                    "a fork: it does not extend the {old_size} entries signed before"
                )));
            }
        }
        let mut own = request.checkpoint.clone();
        own.signatures.retain(|line| line.name == crate::checkpoint::origin(&new.instance));
        self.remember(&WitnessState { public_key: *public_key, seconds, checkpoint: own.clone() })?;
        own.signatures.push(self.signer.cosign(&self.name, new, seconds));
        Ok(own)
    }

    /// Makes the new state durable; only then may a signature leave.
    fn remember(&mut self, state: &WitnessState) -> Result<(), LedgerError> {
        let name = state_name(&state.checkpoint.checkpoint.instance);
        let aside = format!("{name}.tmp");
        let key = Digest::from_bytes(state.public_key);
        let text = format!("{STATE_TITLE}\n{key}\n{}\n{}", state.seconds, state.checkpoint.to_text());
        self.store.create(&aside)?;
        self.store.write(&aside, 0, text.as_bytes())?;
        self.store.sync_file(&aside)?;
        self.store.rename(&aside, &name)?;
        self.store.sync_directory()?;
        Ok(())
    }

    /// Gives the store back.
    pub fn into_store(self) -> S {
        self.store
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainHead;
    use crate::checkpoint::Checkpoint;
    use crate::merkle::{Tree, leaf_hash};
    use crate::store::MemoryStore;
    use crate::testing;
    use bem_base::digest::hash;

    fn tree(size: u64, salt: u64) -> Tree {
        Tree::from_leaves((0..size).map(|index| leaf_hash(&(index + salt).to_le_bytes())).collect())
    }

    fn request(tree: &Tree, old_size: u64, size: u64) -> WitnessRequest {
        let checkpoint = Checkpoint {
            instance: hash(b"log"),
            size,
            root: tree.root_at(size),
            head: ChainHead::from_digest(tree.root_at(size)),
        };
        let proof = tree.prove_consistency(old_size, size);
        WitnessRequest { old_size, proof, checkpoint: testing::signer().sign(checkpoint) }
    }

    fn witness() -> Witness<MemoryStore> {
        Witness::new(MemoryStore::new(), "witness.example".to_owned(), Signer::from_seed(&[9; 32]))
    }

    fn key() -> [u8; 32] {
        testing::signer().public_key()
    }

    #[test]
    fn a_growing_log_is_signed_and_the_text_of_a_request_comes_back() {
        let (mut witness, tree) = (witness(), tree(60, 0));
        let mut old = 0;
        for (seconds, size) in [(1, 3), (2, 3), (3, 20), (4, 60)] {
            let request = request(&tree, old, size);
            assert_eq!(WitnessRequest::parse(request.to_text().as_bytes()).unwrap(), request);
            let signed = witness.cosign(&request, &key(), seconds).unwrap();
            let witness_key = Signer::from_seed(&[9; 32]).public_key();
            assert_eq!(signed.verify_cosignature("witness.example", &witness_key), Ok(seconds));
            old = size;
        }
    }

    #[test]
    fn rollbacks_forks_foreign_keys_and_clocks_that_run_back_are_refused_also_after_a_restart() {
        let honest = tree(60, 0);
        let mut witness = witness();
        witness.cosign(&request(&honest, 0, 20), &key(), 10).unwrap();
        let mut witness =
            Witness::new(witness.into_store(), "witness.example".to_owned(), Signer::from_seed(&[9; 32]));
        let before = witness.state(&hash(b"log")).unwrap();
        let mut refused = |request: &WitnessRequest, key: &[u8; 32], seconds, words: &str| {
            let error = witness.cosign(request, key, seconds).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert_eq!(witness.state(&hash(b"log")).unwrap(), before);
        };
        refused(&request(&honest, 0, 10), &key(), 11, "a rollback");
        refused(&request(&tree(60, 7), 20, 30), &key(), 11, "a fork");
        refused(&request(&tree(60, 7), 20, 20), &key(), 11, "a fork");
        refused(&request(&honest, 19, 30), &key(), 11, "the proof starts at 19");
        refused(&request(&honest, 20, 30), &key(), 9, "the clock is behind");
        let thief = Signer::from_seed(&[3; 32]);
        let mut stolen = request(&honest, 20, 30);
        stolen.checkpoint = thief.sign(stolen.checkpoint.checkpoint);
        refused(&stolen, &thief.public_key(), 11, "not the one this log was first seen with");
        refused(&stolen, &key(), 11, "no signature by the key");
        witness.cosign(&request(&honest, 20, 30), &key(), 11).unwrap();
    }
}
