//! Proofs and checkpoints, honest and damaged, for the verifier in another language.

use bem_base::digest::{Digest, hash};
use bem_base::prng::Prng;
use bem_ledger::checkpoint::{Checkpoint, SignedCheckpoint};
use bem_ledger::merkle::{Tree, leaf_hash, verify_consistency, verify_inclusion};
use bem_ledger::testing;

/// One case for the other implementation, with this implementation's answer.
#[derive(Clone, Debug)]
pub struct Case {
    /// One JSON object, as `python/tlog_verify.py cases` reads it.
    pub line: String,
    /// This implementation's answer.
    pub holds: bool,
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn list(hashes: &[Digest]) -> String {
    let quoted: Vec<String> = hashes.iter().map(|hash| format!("\"{hash}\"")).collect();
    format!("[{}]", quoted.join(","))
}

/// Another value close to this one, or the same.
fn nudge(prng: &mut Prng, value: u64) -> u64 {
    value.wrapping_add_signed(prng.between(-1, 1)).min(1 << 40)
}

fn damage(prng: &mut Prng, proof: &mut Vec<Digest>) {
    match prng.below(4) {
        0 => proof.push(hash(b"one more")),
        1 => drop(proof.pop()),
        2 if 1 < proof.len() => proof.swap(0, 1),
        _ => {
            if let Some(first) = proof.first_mut() {
                *first = hash(first.as_bytes());
            }
        }
    }
}

fn inclusion_case(prng: &mut Prng, tree: &Tree, leaves: &[Digest], honest: bool) -> Case {
    let mut size = 1 + prng.below(tree.size());
    let mut entry = prng.below(size);
    let (leaf, root) = (leaves[entry as usize], tree.root_at(size));
    let mut proof = tree.prove_inclusion(entry, size);
    if !honest {
        entry = nudge(prng, entry);
        size = nudge(prng, size);
        damage(prng, &mut proof);
    }
    let line = format!(
        "{{\"kind\":\"inclusion\",\"entry\":{entry},\"size\":{size},\"leaf\":\"{leaf}\",\"root\":\"{root}\",\"proof\":{}}}",
        list(&proof)
    );
    Case { line, holds: verify_inclusion(&leaf, entry, size, &root, &proof) }
}

fn consistency_case(prng: &mut Prng, tree: &Tree, honest: bool) -> Case {
    let mut new = 1 + prng.below(tree.size());
    let mut old = prng.below(new + 1);
    let (old_root, new_root) = (tree.root_at(old), tree.root_at(new));
    let mut proof = tree.prove_consistency(old, new);
    if !honest {
        old = nudge(prng, old);
        new = nudge(prng, new);
        damage(prng, &mut proof);
    }
    let line = format!(
        "{{\"kind\":\"consistency\",\"old\":{old},\"new\":{new},\"old_root\":\"{old_root}\",\
         \"new_root\":\"{new_root}\",\"proof\":{}}}",
        list(&proof)
    );
    Case { line, holds: verify_consistency(old, new, &old_root, &new_root, &proof) }
}

fn checkpoint_case(prng: &mut Prng, tree: &Tree, honest: bool) -> Case {
    let size = prng.below(tree.size() + 1);
    let checkpoint = Checkpoint {
        instance: hash(&size.to_le_bytes()),
        size,
        root: tree.root_at(size),
        head: bem_ledger::chain::ChainHead::from_digest(hash(b"head")),
    };
    let mut bytes = testing::signer().sign(checkpoint).to_text().into_bytes();
    if !honest {
        let bit = prng.below(bytes.len() as u64 * 8) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    let key = testing::signer().public_key();
    let holds = SignedCheckpoint::parse(&bytes).and_then(|note| note.verify(&key)).is_ok();
    let (note, key) = (hexadecimal(&bytes), hexadecimal(&key));
    Case { line: format!("{{\"kind\":\"checkpoint\",\"note\":\"{note}\",\"key\":\"{key}\"}}"), holds }
}

/// So many honest and so many damaged cases: inclusion and consistency proofs `proofs` times each, checkpoints
/// `checkpoints` times.
pub fn cases(seed: u64, proofs: u64, checkpoints: u64) -> Vec<Case> {
    let leaves: Vec<Digest> = (0..700u64).map(|index| leaf_hash(&index.to_le_bytes())).collect();
    let tree = Tree::from_leaves(leaves.clone());
    let mut prng = Prng::stream(seed, "cases");
    let mut cases = Vec::new();
    for honest in [true, false] {
        for _ in 0..proofs {
            cases.push(inclusion_case(&mut prng, &tree, &leaves, honest));
            cases.push(consistency_case(&mut prng, &tree, honest));
        }
        for _ in 0..checkpoints {
            cases.push(checkpoint_case(&mut prng, &tree, honest));
        }
    }
    cases
}
