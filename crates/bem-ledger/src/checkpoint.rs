//! Signed checkpoints: how many entries, their root and the chain's head, in the format other logs use.
//!
//! A C2SP tlog-checkpoint in a signed note with an ed25519 signature; the chain's head is an extension line. Reading is
//! strict: what is accepted is byte for byte what would be written, so no bit of a checkpoint is without meaning.
//! Clauses: LOG-2; decision D-17.

use crate::chain::ChainHead;
use crate::error::LedgerError;
use crate::limits::CHECKPOINT_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bem_base::digest::{Digest, hash};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

/// Type byte of a plain ed25519 note key.
const KEY_TYPE_ED25519: u8 = 1;
/// Type byte of a key that makes timestamped cosignatures.
const KEY_TYPE_COSIGNATURE: u8 = 4;
const LINES_MAX: usize = 16;

/// The state of a log at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log.
    pub instance: Digest,
    /// Entries.
    pub size: u64,
    /// Root of the tree over them.
    pub root: Digest,
    /// Head of the chain over them.
    pub head: ChainHead,
}

/// One signature line of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureLine {
    /// Name of the key.
    pub name: String,
    /// What follows the key's identifier: a signature, or a time and a signature.
    pub signature: Vec<u8>,
    /// First four bytes of the key's hash.
    pub key_id: [u8; 4],
}

/// A checkpoint with its signature lines, not yet checked against any key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    /// What is claimed.
    pub checkpoint: Checkpoint,
    /// Who signed it, in order.
    pub signatures: Vec<SignatureLine>,
}

/// The name of the log and of its key: `bem.ledger/` and the instance in hexadecimal.
pub fn origin(instance: &Digest) -> String {
    format!("bem.ledger/{instance}")
}

/// Identifier of a key in a note.
fn key_id(name: &str, key_type: u8, public_key: &[u8; 32]) -> [u8; 4] {
    let bytes = [name.as_bytes(), b"\n", &[key_type], public_key].concat();
    let [a, b, c, d, ..] = *hash(&bytes).as_bytes();
    [a, b, c, d]
}

/// A public key in the way a signed note spells it: name, key identifier and key, joined by plus signs.
pub fn verifier_key(name: &str, public_key: &[u8; 32]) -> String {
    let id: String =
        key_id(name, KEY_TYPE_ED25519, public_key).iter().map(|byte| format!("{byte:02x}")).collect();
    let key = STANDARD.encode([&[KEY_TYPE_ED25519][..], public_key].concat());
    format!("{name}+{id}+{key}")
}

/// A secret key that signs checkpoints or cosigns those of others.
#[derive(Clone)]
pub struct Signer {
    key: SigningKey,
}

impl core::fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("Signer(secret)")
    }
}

impl Signer {
    /// The key with this secret seed.
    pub fn from_seed(seed: &[u8; 32]) -> Signer {
        Signer { key: SigningKey::from_bytes(seed) }
    }

    /// The public half.
    pub fn public_key(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }

    /// Signs a checkpoint of this key's own log.
    pub fn sign(&self, checkpoint: Checkpoint) -> SignedCheckpoint {
        let name = origin(&checkpoint.instance);
        let signature = self.key.sign(checkpoint.text().as_bytes()).to_bytes().to_vec();
        let key_id = key_id(&name, KEY_TYPE_ED25519, &self.public_key());
        SignedCheckpoint { checkpoint, signatures: vec![SignatureLine { name, signature, key_id }] }
    }

    /// Signs the body of a bundle: a policy of this key's own run, with its proofs.
    pub fn sign_bundle(&self, body: &[u8]) -> [u8; 64] {
        self.key.sign(&bundle_text(body)).to_bytes()
    }

    /// Signs a statement about an image.
    pub fn sign_statement(&self, statement: &[u8]) -> [u8; 64] {
        self.key.sign(&statement_text(statement)).to_bytes()
    }

    /// A witness's signature with the time it was made, in seconds since 1970.
    pub fn cosign(&self, name: &str, checkpoint: &Checkpoint, seconds: u64) -> SignatureLine {
        let mut signature = seconds.to_be_bytes().to_vec();
        signature.extend(self.key.sign(cosigned_text(checkpoint, seconds).as_bytes()).to_bytes());
        let key_id = key_id(name, KEY_TYPE_COSIGNATURE, &self.public_key());
        SignatureLine { name: name.to_owned(), signature, key_id }
    }
}

/// What is signed of a bundle: no checkpoint begins like this, so that neither can stand for the other.
fn bundle_text(body: &[u8]) -> Vec<u8> {
    [b"bem bundle 1\n", body].concat()
}

/// Checks a bundle's signature.
pub fn verify_bundle(public_key: &[u8; 32], body: &[u8], signature: &[u8]) -> Result<(), LedgerError> {
    verify(public_key, &bundle_text(body), signature)
}

/// What is signed of a statement about an image.
fn statement_text(statement: &[u8]) -> Vec<u8> {
    [b"bem image statement 1\n", statement].concat()
}

/// Checks the signature of a statement about an image.
pub fn verify_statement(
    public_key: &[u8; 32],
    statement: &[u8],
    signature: &[u8],
) -> Result<(), LedgerError> {
    verify(public_key, &statement_text(statement), signature)
}

fn cosigned_text(checkpoint: &Checkpoint, seconds: u64) -> String {
    format!("cosignature/v1\ntime {seconds}\n{}", checkpoint.text())
}

fn refused(reason: impl Into<String>) -> LedgerError {
    LedgerError::Checkpoint(reason.into())
}

fn verify(public_key: &[u8; 32], text: &[u8], signature: &[u8]) -> Result<(), LedgerError> {
    let key = VerifyingKey::from_bytes(public_key).map_err(|_| refused("the public key is not a key"))?;
    let signature = Signature::from_slice(signature).map_err(|_| refused("a signature is not 64 bytes"))?;
    key.verify_strict(text, &signature).map_err(|_| refused("the signature does not hold"))
}

impl Checkpoint {
    /// The signed text.
    pub fn text(&self) -> String {
        let root = STANDARD.encode(self.root.as_bytes());
        let head = STANDARD.encode(self.head.digest().as_bytes());
        format!("{}\n{}\n{root}\nchain {head}\n", origin(&self.instance), self.size)
    }

    fn parse(text: &str) -> Result<Checkpoint, LedgerError> {
        let mut lines = text.lines();
        let mut line = |what: &str| lines.next().ok_or_else(|| refused(format!("the {what} is missing")));
        let instance = line("origin")?
            .strip_prefix("bem.ledger/")
            .and_then(Digest::from_hex)
            .ok_or_else(|| refused("the origin is not bem.ledger/ and 64 hexadecimal digits"))?;
        let size = line("size")?.parse().map_err(|_| refused("the size is not a number"))?;
        let root = decode_digest(line("root")?)?;
        let head = line("chain head")?.strip_prefix("chain ");
        let head = ChainHead::from_digest(decode_digest(head.ok_or_else(|| refused("no chain line"))?)?);
        Ok(Checkpoint { instance, size, root, head })
    }
}

fn decode_digest(text: &str) -> Result<Digest, LedgerError> {
    let bytes = STANDARD.decode(text).map_err(|_| refused("a hash is not base64"))?;
    let bytes = bytes.try_into().map_err(|_| refused("a hash is not 32 bytes"))?;
    Ok(Digest::from_bytes(bytes))
}

impl SignedCheckpoint {
    /// The whole note.
    pub fn to_text(&self) -> String {
        let mut text = self.checkpoint.text();
        text.push('\n');
        for line in &self.signatures {
            let encoded = STANDARD.encode([&line.key_id[..], &line.signature].concat());
            text.push_str(&format!("\u{2014} {} {encoded}\n", line.name));
        }
        text
    }

    /// Reads a note; one that is not spelled exactly as [`SignedCheckpoint::to_text`] spells it is refused.
    pub fn parse(bytes: &[u8]) -> Result<SignedCheckpoint, LedgerError> {
        if CHECKPOINT_BYTES_MAX < bytes.len() {
            return Err(refused(format!("{} bytes, at most {CHECKPOINT_BYTES_MAX}", bytes.len())));
        }
        let text = core::str::from_utf8(bytes).map_err(|_| refused("not UTF-8"))?;
        let (body, lines) = text.split_once("\n\n").ok_or_else(|| refused("no empty line"))?;
        let checkpoint = Checkpoint::parse(body)?;
        let mut signatures = Vec::new();
        for line in lines.lines() {
            if signatures.len() == LINES_MAX {
                return Err(refused("more than 16 signatures"));
            }
            signatures.push(parse_signature(line)?);
        }
        let note = SignedCheckpoint { checkpoint, signatures };
        if note.to_text() != text {
            return Err(refused("not in canonical form"));
        }
        Ok(note)
    }

    /// Checks that the log itself signed this with its key.
    pub fn verify(&self, public_key: &[u8; 32]) -> Result<(), LedgerError> {
        let name = origin(&self.checkpoint.instance);
        let id = key_id(&name, KEY_TYPE_ED25519, public_key);
        let line = self.signatures.iter().find(|line| line.name == name && line.key_id == id);
        let line = line.ok_or_else(|| refused("no signature by the key of this log"))?;
        verify(public_key, self.checkpoint.text().as_bytes(), &line.signature)
    }

    /// Checks a witness's cosignature and returns its time in seconds since 1970.
    pub fn verify_cosignature(&self, name: &str, public_key: &[u8; 32]) -> Result<u64, LedgerError> {
        let id = key_id(name, KEY_TYPE_COSIGNATURE, public_key);
        let line = self.signatures.iter().find(|line| line.name == name && line.key_id == id);
        let line = line.ok_or_else(|| refused(format!("no cosignature by {name}")))?;
        let (seconds, signature) =
            line.signature.split_first_chunk().ok_or_else(|| refused("a cosignature without a time"))?;
        let seconds = u64::from_be_bytes(*seconds);
        verify(public_key, cosigned_text(&self.checkpoint, seconds).as_bytes(), signature)?;
        Ok(seconds)
    }
}

fn parse_signature(line: &str) -> Result<SignatureLine, LedgerError> {
    let rest = line.strip_prefix("\u{2014} ").ok_or_else(|| refused("a line that is no signature"))?;
    let (name, encoded) = rest.split_once(' ').ok_or_else(|| refused("a signature without a name"))?;
    let bytes = STANDARD.decode(encoded).map_err(|_| refused("a signature is not base64"))?;
    let (key_id, signature) = bytes.split_first_chunk().ok_or_else(|| refused("a signature too short"))?;
    if name.is_empty() || signature.is_empty() {
        return Err(refused("a signature without a name or without bytes"));
    }
    Ok(SignatureLine { name: name.to_owned(), signature: signature.to_vec(), key_id: *key_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> SignedCheckpoint {
        let checkpoint = Checkpoint {
            instance: hash(b"instance"),
            size: 42,
            root: hash(b"root"),
            head: ChainHead::from_digest(hash(b"head")),
        };
        Signer::from_seed(&[7; 32]).sign(checkpoint)
    }

    #[test]
    fn a_signed_checkpoint_comes_back_and_its_signature_holds() {
        let note = example();
        let parsed = SignedCheckpoint::parse(note.to_text().as_bytes()).unwrap();
        assert_eq!(parsed, note);
        assert_eq!(parsed.verify(&Signer::from_seed(&[7; 32]).public_key()), Ok(()));
        assert!(parsed.verify(&Signer::from_seed(&[8; 32]).public_key()).is_err());
    }

    #[test]
    fn every_single_bit_flip_is_found() {
        let key = Signer::from_seed(&[7; 32]).public_key();
        let bytes = example().to_text().into_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let accepted = SignedCheckpoint::parse(&flipped).and_then(|note| note.verify(&key));
            assert!(accepted.is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_cosignature_holds_for_its_checkpoint_and_time_only() {
        let witness = Signer::from_seed(&[9; 32]);
        let mut note = example();
        note.signatures.push(witness.cosign("witness.example", &note.checkpoint, 1_700_000_000));
        let note = SignedCheckpoint::parse(note.to_text().as_bytes()).unwrap();
        let check =
            |note: &SignedCheckpoint| note.verify_cosignature("witness.example", &witness.public_key());
        assert_eq!(check(&note), Ok(1_700_000_000));
        let mut other = note.clone();
        other.checkpoint.size += 1;
        assert!(check(&other).is_err());
        let mut other = note.clone();
        other.signatures[1].signature[7] ^= 1;
        assert!(check(&other).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_refused_or_comes_back_unchanged(
            position in 0usize..400,
            replacement in proptest::collection::vec(0u8.., 0..4),
        ) {
            let mut bytes = example().to_text().into_bytes();
            let start = position.min(bytes.len());
            let end = (start + 2).min(bytes.len());
            bytes.splice(start..end, replacement);
            if let Ok(note) = SignedCheckpoint::parse(&bytes) {
                proptest::prop_assert_eq!(note.to_text().into_bytes(), bytes);
            }
        }
    }
}
