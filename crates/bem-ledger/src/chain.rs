//! The hash chain over entries: each head commits to everything before it.
//!
//! A link takes the entry's leaf hash, so an entry is hashed once for chain and tree and the two cannot be made to
//! commit to different bytes. Clauses: LOG-2; decisions D-16, D-17.

use bem_base::digest::{Digest, hash, hash_pair};
use std::sync::LazyLock;

const LINK_PREFIX: u8 = 2;

static START: LazyLock<Digest> = LazyLock::new(|| hash(b"bem/ledger/chain/1"));

/// The head of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "H_k")]
pub struct ChainHead(Digest);

impl ChainHead {
    /// The head before any entry.
    pub fn start() -> ChainHead {
        ChainHead(*START)
    }

    /// The head of this digest, for comparison with one that was derived.
    pub fn from_digest(digest: Digest) -> ChainHead {
        ChainHead(digest)
    }

    /// The 32 bytes.
    pub fn digest(&self) -> Digest {
        self.0
    }

    /// Links one more entry, given its leaf hash. Cost: two SHA-256 blocks.
    #[must_use]
    pub fn link(self, leaf: &Digest) -> ChainHead {
        ChainHead(hash_pair(LINK_PREFIX, &self.0, leaf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_number_of_links_change_the_head() {
        let (a, b) = (hash(b"a"), hash(b"b"));
        let start = ChainHead::start();
        assert_ne!(start.link(&a).link(&b), start.link(&b).link(&a));
        assert_ne!(start.link(&a), start.link(&a).link(&a));
    }

    #[test]
    fn a_link_is_what_the_format_page_says() {
        let leaf = hash(b"leaf");
        let start = hash(b"bem/ledger/chain/1");
        let want = hash(&[&[2][..], start.as_bytes(), leaf.as_bytes()].concat());
        assert_eq!(ChainHead::start().link(&leaf).digest(), want);
    }
}
