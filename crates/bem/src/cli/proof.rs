//! `bem proof`: shows that an entry is in a history, or that one history is the beginning of another.
//!
//! Proofs are RFC 6962 audit paths over the ledger's entries; any transparency-log tool can check them.

use super::{Answer, ledger_directory};
use crate::files;
use anyhow::{Context, bail};
use bem_base::digest::Digest;
use bem_ledger::merkle::{Tree, leaf_hash, verify_consistency, verify_inclusion};
use bem_ledger::reader::EntryReader;
use bem_ledger::recover::read_checkpoint;
use bem_ledger::store::Store;
use bem_ledger::witness::WitnessRequest;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Inclusion and consistency proofs over a ledger.
#[derive(Args)]
#[command(after_help = "Example: bem proof inclusion runs/first --entry 12 > proof.json\n         \
    bem proof check proof.json")]
pub struct ProofArguments {
    #[command(subcommand)]
    command: ProofCommand,
}

#[derive(Subcommand)]
enum ProofCommand {
    /// Show that an entry is among the first SIZE entries
    #[command(after_help = "Example: bem proof inclusion runs/1 --entry 12 > proof.json")]
    Inclusion {
        /// The run, or its ledger directory
        directory: PathBuf,
        /// Index of the entry
        #[arg(long)]
        entry: u64,
        /// Size of the tree; the newest checkpoint's if not given
        #[arg(long)]
        size: Option<u64>,
    },
    /// Show that the first OLD entries are the beginning of the first NEW
    #[command(after_help = "Example: bem proof consistency runs/1 --old 10 > proof.json")]
    Consistency {
        /// The run, or its ledger directory
        directory: PathBuf,
        /// Size of the older tree
        #[arg(long)]
        old: u64,
        /// Size of the newer tree; the newest checkpoint's if not given
        #[arg(long)]
        new: Option<u64>,
    },
    /// Print the request that makes a witness sign the newest checkpoint
    #[command(after_help = "Example: bem proof request runs/1 > request.txt")]
    Request {
        /// The run, or its ledger directory
        directory: PathBuf,
        /// Size of the checkpoint the witness signed last
        #[arg(long, default_value_t = 0)]
        old: u64,
    },
    /// Check a proof printed by `inclusion` or `consistency`
    #[command(after_help = "Example: bem proof check proof.json")]
    Check {
        /// The file
        file: PathBuf,
    },
}

/// Makes or checks a proof.
pub fn run(arguments: &ProofArguments) -> anyhow::Result<Answer> {
    match &arguments.command {
        ProofCommand::Inclusion { directory, entry, size } => inclusion(directory, *entry, *size),
        ProofCommand::Consistency { directory, old, new } => consistency(directory, *old, *new),
        ProofCommand::Request { directory, old } => {
            say_text!("{}", request(&mut ledger_directory::open(directory)?, *old)?.to_text());
            Ok(Answer::Yes)
        }
        ProofCommand::Check { file } => check(file),
    }
}

/// The tree over the acknowledged entries, derived from the entries.
fn derive_tree<S: Store>(store: &mut S) -> anyhow::Result<Tree> {
    let mut reader = EntryReader::open(store)?;
    let mut leaves = Vec::new();
    while let Some(entry) = reader.next(store)? {
        leaves.push(leaf_hash(entry));
    }
    let tree = Tree::from_leaves(leaves);
    if tree.root() != read_checkpoint(store)?.checkpoint.root {
        bail!("the entries do not hash to the checkpoint: run `bem verify`");
    }
    Ok(tree)
}

/// The request that shows a witness how the log grew since the size it signed last.
pub fn request<S: Store>(store: &mut S, old_size: u64) -> anyhow::Result<WitnessRequest> {
    let checkpoint = read_checkpoint(store)?;
    let tree = derive_tree(store)?;
    within("old", old_size, 0, tree.size())?;
    Ok(WitnessRequest { old_size, proof: tree.prove_consistency(old_size, tree.size()), checkpoint })
}

fn within(name: &str, value: u64, low: u64, high: u64) -> anyhow::Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    bail!("{name} {value} is out of range: allowed is {low} to {high}")
}

fn hexadecimal(hashes: &[Digest]) -> Vec<String> {
    hashes.iter().map(Digest::to_hex).collect()
}

fn inclusion(directory: &Path, entry: u64, size: Option<u64>) -> anyhow::Result<Answer> {
    let mut store = ledger_directory::open(directory)?;
    let tree = derive_tree(&mut store)?;
    let size = size.unwrap_or(tree.size());
    within("size", size, 1, tree.size())?;
    within("entry", entry, 0, size - 1)?;
    let mut reader = EntryReader::open(&mut store)?;
    while reader.position() < entry {
        reader.next(&mut store)?;
    }
    let leaf = reader.next(&mut store)?.map(leaf_hash).context("the entry was counted a moment ago")?;
    let proof = hexadecimal(&tree.prove_inclusion(entry, size));
    say!(
        "{}",
        json!({ "kind": "inclusion", "entry": entry, "size": size, "leaf": leaf.to_hex(),
            "root": tree.root_at(size).to_hex(), "proof": proof })
    );
    Ok(Answer::Yes)
}

fn consistency(directory: &Path, old: u64, new: Option<u64>) -> anyhow::Result<Answer> {
    let tree = derive_tree(&mut ledger_directory::open(directory)?)?;
    let new = new.unwrap_or(tree.size());
    within("new", new, 0, tree.size())?;
    within("old", old, 0, new)?;
    let proof = hexadecimal(&tree.prove_consistency(old, new));
    say!(
        "{}",
        json!({ "kind": "consistency", "old": old, "new": new, "old_root": tree.root_at(old).to_hex(),
            "new_root": tree.root_at(new).to_hex(), "proof": proof })
    );
    Ok(Answer::Yes)
}

fn check(file: &Path) -> anyhow::Result<Answer> {
    let text = files::read_text(file)?;
    let value: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
    let number = |key: &str| value[key].as_u64().with_context(|| format!("{key:?} must be a whole number"));
    let parse = |key: &str, value: &Value| {
        let digest = value.as_str().and_then(Digest::from_hex);
        digest.with_context(|| format!("{key:?} must be 64 lower-case hexadecimal digits"))
    };
    let digest = |key: &str| parse(key, &value[key]);
    let proof = value["proof"].as_array().context("\"proof\" must be a list")?;
    let proof = proof.iter().map(|hash| parse("proof", hash)).collect::<anyhow::Result<Vec<_>>>()?;
    let holds = match value["kind"].as_str() {
        Some("inclusion") => {
            verify_inclusion(&digest("leaf")?, number("entry")?, number("size")?, &digest("root")?, &proof)
        }
        Some("consistency") => verify_consistency(
            number("old")?,
            number("new")?,
            &digest("old_root")?,
            &digest("new_root")?,
            &proof,
        ),
        _ => bail!("\"kind\" must be \"inclusion\" or \"consistency\""),
    };
    say!("{}", if holds { "the proof holds" } else { "the proof does not hold" });
    Ok(if holds { Answer::Yes } else { Answer::No })
}
