//! `bem verify`: audits a run from its files alone.
//!
//! The work is done by `bem_ledger::audit`, which knows nothing of the engine.

use super::{Answer, ledger_directory};
use crate::files;

use bem_ledger::audit::{AuditReport, AuditVerdict, audit};
use bem_ledger::entry::KIND_NAMES;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Audit a run: chain, tree, roots, proofs, signatures, snapshots.
#[derive(Args)]
#[command(after_help = "Example: bem verify runs/first --checkpoint kept-elsewhere.txt\n\n\
    The verdict is `ok` when the history extends the checkpoint given, `unanchored` when everything\n\
    fits but no checkpoint from outside was given (a rollback could not be seen), and `broken` with\n\
    the entry and the reason otherwise. Only `broken` exits with 1.")]
pub struct VerifyArguments {
    /// The run, or its ledger directory
    directory: PathBuf,
    /// A checkpoint kept outside the run, with or without a witness's signature
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Audits and prints the verdict.
pub fn run(arguments: &VerifyArguments) -> anyhow::Result<Answer> {
    let mut store = ledger_directory::open(&arguments.directory)?;
    let anchor = match &arguments.checkpoint {
        None => None,
        Some(path) => Some(files::read_bytes(path)?),
    };
    let report = audit(&mut store, anchor.as_deref())?;
    if arguments.json {
        say!("{}", to_json(&report));
    } else {
        print(&report);
    }
    Ok(match report.verdict {
        AuditVerdict::Broken { .. } => Answer::No,
        AuditVerdict::Ok | AuditVerdict::Unanchored => Answer::Yes,
    })
}

fn to_json(report: &AuditReport) -> serde_json::Value {
    let (verdict, entry, reason) = match &report.verdict {
        AuditVerdict::Ok => ("ok", None, None),
        AuditVerdict::Unanchored => ("unanchored", None, None),
        AuditVerdict::Broken { entry, reason } => ("broken", Some(*entry), Some(reason.as_str())),
    };
    let kinds: serde_json::Map<_, _> =
        KIND_NAMES.iter().zip(report.kinds).map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
    json!({
        "verdict": verdict,
        "entry": entry,
        "reason": reason,
        "entries": report.entries,
        "kinds": kinds,
        "head": report.head.to_hex(),
        "root": report.root.to_hex(),
        "instance": report.genesis.as_ref().map(|genesis| genesis.instance.to_hex()),
        "anchored_entries": report.anchored_entries,
        "certificates": report.certificates,
        "snapshots": report.snapshots,
        "blobs": report.blobs,
        "steps": report.steps,
        "tail_bytes": report.tail_bytes,
    })
}

fn print(report: &AuditReport) {
    match &report.verdict {
        AuditVerdict::Ok => say!(
            "ok: {} entries, the first {} of them under the checkpoint given",
            report.entries,
            report.anchored_entries
        ),
        AuditVerdict::Unanchored => say!(
            "unanchored: {} entries fit together; give a checkpoint kept elsewhere to exclude a rollback",
            report.entries
        ),
        AuditVerdict::Broken { entry, reason } => say!("broken at entry {entry}, because {reason}"),
    }
    say!("  head {}", report.head);
    say!("  root {}", report.root);
    say!(
        "  {} certificate{} checked again, {} snapshots, {} blobs",
        report.certificates,
        if report.certificates == 1 { "" } else { "s" },
        report.snapshots,
        report.blobs
    );
    if 0 < report.tail_bytes {
        say!("  {} bytes after the newest checkpoint were never acknowledged", report.tail_bytes);
    }
}
