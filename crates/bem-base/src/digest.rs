//! SHA-256 digests with domain separation: one hash for the whole project (decision D-16).
//!
//! A digest of parts is the hash of a domain name and of each part behind its length, so that no two
//! different lists of parts share an input. Clauses: LOG-2, LOG-3.

use crate::encode::{DecodeError, Reader};
use core::fmt;
use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

/// 32 bytes of SHA-256.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// A digest from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// Reads the 32 bytes that a writer put down as they are.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Digest, DecodeError> {
        Ok(Digest(reader.raw(32)?.try_into().expect("raw returns the count asked for")))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Lower-case hexadecimal.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads 64 hexadecimal digits, lower case only, so that a digest has one spelling.
    pub fn from_hex(text: &str) -> Option<Digest> {
        let text = text.as_bytes();
        if text.len() != 64 {
            return None;
        }
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({})", self.to_hex())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_hex())
    }
}

/// Plain SHA-256 of these bytes.
pub fn hash(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// Plain SHA-256 of one byte followed by these bytes, which are not copied: for hashes with a one-byte prefix, as
/// RFC 6962 has them.
pub fn hash_prefixed(prefix: u8, bytes: &[u8]) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update([prefix]);
    hasher.update(bytes);
    Digest(hasher.finalize().into())
}

/// State of SHA-256 before the first block.
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Plain SHA-256 of one byte followed by two digests: the node of a Merkle tree, the link of a chain.
///
/// The message always has 65 bytes, so both blocks are laid out here and the general machinery for messages of any
/// length is left out; it costs as much as half the hashing at this size.
pub fn hash_pair(prefix: u8, left: &Digest, right: &Digest) -> Digest {
    let mut blocks = [[0; 64]; 2];
    blocks[0][0] = prefix;
    blocks[0][1..33].copy_from_slice(&left.0);
    blocks[0][33..].copy_from_slice(&right.0[..31]);
    blocks[1][0] = right.0[31];
    blocks[1][1] = 0x80;
    blocks[1][56..].copy_from_slice(&(65u64 * 8).to_be_bytes());
    let mut state = INITIAL;
    compress256(&mut state, &blocks);
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(state) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    Digest(bytes)
}

/// SHA-256 of a domain name and of every part, each behind its length.
pub fn hash_parts(domain: &str, parts: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    for part in core::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Digest(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha_256() {
        let want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(b"abc").to_hex(), want);
    }

    #[test]
    fn a_prefixed_hash_is_the_hash_of_the_prefix_and_the_rest() {
        assert_eq!(hash_prefixed(b'a', b"bc"), hash(b"abc"));
    }

    #[test]
    fn a_pair_hashes_like_its_65_bytes() {
        for seed in 0..200u8 {
            let (left, right) = (hash(&[seed]), hash(&[seed, 1]));
            let bytes = [&[seed][..], left.as_bytes(), right.as_bytes()].concat();
            assert_eq!(hash_pair(seed, &left, &right), hash(&bytes));
        }
    }

    #[test]
    fn moving_a_byte_between_parts_changes_the_digest() {
        assert_ne!(hash_parts("d", &[b"ab", b"c"]), hash_parts("d", &[b"a", b"bc"]));
        assert_ne!(hash_parts("d", &[b"a"]), hash_parts("e", &[b"a"]));
    }

    #[test]
    fn hexadecimal_has_one_spelling() {
        let digest = hash(b"x");
        assert_eq!(Digest::from_hex(&digest.to_hex()), Some(digest));
        assert_eq!(Digest::from_hex(&digest.to_hex().to_uppercase()), None);
        assert_eq!(Digest::from_hex("00"), None);
    }
}
