//! `bem verify`: audits a run from its files alone.
//!
//! The work is done by `bem_ledger::audit`, which knows nothing of the engine, and by the engine's `RunConditions`, which
//! says what the patches of a run had to prove. Files beside the ledger that the history names are compared here.

use super::pipeline::{PLAN, machine_folders};
use super::{Answer, ledger_directory, serve};
use crate::file_store::FileStore;
use crate::files;
use bem_base::words::quantity;

use anyhow::Context as _;
use bem_base::digest::hash;
use bem_engine::journal::RunConditions;
use bem_ledger::audit::{AuditReport, AuditVerdict, audit};
use bem_ledger::checkpoint::SignedCheckpoint;
use bem_ledger::entry::KIND_NAMES;
use bem_ledger::recover::read_checkpoint as read_newest;
use bem_runtime::conditions::ServiceConditions;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Audit a run: chain, tree, roots, conditions, proofs, signatures, snapshots, report.
#[derive(Args)]
#[command(after_help = "Example: bem verify runs/first --checkpoint kept-elsewhere.txt\n\n\
    The verdict is `ok` when the history extends the checkpoint given, `unanchored`\n\
    when everything fits but no checkpoint from outside was given (a rollback could\n\
    not be seen), and `broken` with the entry and the reason otherwise. Only\n\
    `broken` exits with 1; a checkpoint that is none is bad input and exits with 2.")]
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
    if arguments.directory.join(PLAN).is_file() {
        return run_pipeline(arguments);
    }
    let anchor = arguments.checkpoint.as_deref().map(read_checkpoint).transpose()?;
    let report = audit_folder(&arguments.directory, anchor.as_ref())?;
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

/// Audits one history.
fn audit_folder(directory: &Path, anchor: Option<&SignedCheckpoint>) -> anyhow::Result<AuditReport> {
    let mut store = ledger_directory::open(directory)?;
    let mut report = audit_served(&mut store, anchor)?;
    if !matches!(report.verdict, AuditVerdict::Broken { .. })
        && let Some(reason) = changed_artefact(directory, &report)
    {
        report.verdict = AuditVerdict::Broken { entry: report.entries - 1, reason };
    }
    Ok(report)
}

/// Audits the folder of a server that runs, against the text of a checkpoint if there is one; its report as JSON.
pub(super) fn audit_server(directory: &Path, checkpoint: Option<&str>) -> anyhow::Result<serde_json::Value> {
    let anchor = checkpoint.map(|text| SignedCheckpoint::parse(text.as_bytes())).transpose();
    let anchor = anchor.context("this is no checkpoint")?;
    Ok(to_json(&audit_folder(directory, anchor.as_ref())?))
}

/// Audits the history of every machine of a pipeline; the whole is broken where one is.
fn run_pipeline(arguments: &VerifyArguments) -> anyhow::Result<Answer> {
    let folders = machine_folders(&arguments.directory);
    if arguments.checkpoint.is_some() {
        anyhow::bail!(
            "--checkpoint goes with one history: name the folder of a machine, such as {}/main/1",
            arguments.directory.display()
        );
    }
    if folders.is_empty() {
        anyhow::bail!(
            "{} holds no history yet: its pipeline was cut off before it stopped",
            arguments.directory.display()
        );
    }
    let (mut machines, mut is_broken) = (serde_json::Map::new(), false);
    for folder in folders {
        let report = audit_folder(&folder, None)?;
        let name = folder.strip_prefix(&arguments.directory).unwrap_or(&folder).display().to_string();
        is_broken |= matches!(report.verdict, AuditVerdict::Broken { .. });
        if !arguments.json {
            say!("{name}");
            print(&report);
        }
        machines.insert(name, to_json(&report));
    }
    if arguments.json {
        let verdict = if is_broken { "broken" } else { "unanchored" };
        say!("{}", json!({ "verdict": verdict, "machines": machines }));
    }
    Ok(if is_broken { Answer::No } else { Answer::Yes })
}

/// Audits a history. While a server writes it, its own or one of its pipeline, a snapshot may be thinned out between two looks: what
/// is broken is looked at again if the history has gone on meanwhile.
fn audit_served(store: &mut FileStore, anchor: Option<&SignedCheckpoint>) -> anyhow::Result<AuditReport> {
    let is_service = serve::is_service(store);
    loop {
        let before = read_newest(store).ok().map(|newest| newest.checkpoint.size);
        let report = match is_service {
            true => audit(store, anchor, &mut ServiceConditions::new())?,
            false => audit(store, anchor, &mut RunConditions::new())?,
        };
        let is_broken = matches!(report.verdict, AuditVerdict::Broken { .. });
        if !is_broken || read_newest(store).ok().map(|newest| newest.checkpoint.size) == before {
            return Ok(report);
        }
    }
}

/// A checkpoint that somebody has kept. What cannot be read as one says nothing about the run.
fn read_checkpoint(path: &Path) -> anyhow::Result<SignedCheckpoint> {
    let bytes = files::read_bytes(path)?;
    SignedCheckpoint::parse(&bytes).with_context(|| format!("{} is no checkpoint", path.display()))
}

/// The first file that the history names and the run's folder does not hold as it was named. One that was being put into
/// its place when the run was cut off still lies beside it. Of a ledger alone nothing more is asked.
fn changed_artefact(folder: &Path, report: &AuditReport) -> Option<String> {
    if !folder.join("ledger").is_dir() {
        return None;
    }
    report.artefacts.iter().find_map(|(name, digest)| {
        let is_named =
            |name: &str| std::fs::read(folder.join(name)).is_ok_and(|bytes| hash(&bytes) == *digest);
        let is_there = is_named(name) || is_named(&format!("{name}.tmp"));
        (!is_there).then(|| format!("{name} is not the file that the history names"))
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
        "conditions": report.conditions,
        "artefacts": report.artefacts.iter().map(|(name, digest)| (name.clone(), json!(digest.to_hex()))).collect::<serde_json::Map<_, _>>(),
        "snapshots": report.snapshots,
        "blobs": report.blobs,
        "steps": report.steps,
        "tail_bytes": report.tail_bytes,
        "bytes": bytes_json(report),
        "archived": report.archived.map(|(first, end)| json!({ "first": first, "end": end })),
    })
}

/// Bytes of what was played, of patches and of their certificates, and each of them over the steps.
fn bytes_json(report: &AuditReport) -> serde_json::Value {
    let sizes = &report.sizes;
    let kinds: serde_json::Map<_, _> = KIND_NAMES
        .iter()
        .zip(sizes.entries)
        .filter(|(_, size)| 0 < *size)
        .map(|(name, size)| ((*name).to_owned(), json!(size)))
        .collect();
    json!({
        "entries": kinds,
        "payloads": sizes.payloads,
        "certificates": sizes.certificates,
        "blobs": sizes.blobs,
        "snapshots": sizes.snapshots,
        "history": sizes.history(),
        "history_per_step": per_step(report, sizes.history()),
        "steps_per_step": per_step(report, entry_bytes(report, "play")),
        "patches_per_step": per_step(report, entry_bytes(report, "patch") + sizes.payloads),
        "certificates_per_step": per_step(report, sizes.certificates),
    })
}

/// Bytes of the entries of one kind.
fn entry_bytes(report: &AuditReport, kind: &str) -> u64 {
    let kinds = KIND_NAMES.iter().zip(report.sizes.entries);
    kinds.filter(|(name, _)| **name == kind).map(|(_, bytes)| bytes).sum()
}

/// Bytes a step; none where nothing was played.
fn per_step(report: &AuditReport, bytes: u64) -> Option<f64> {
    (0 < report.steps).then(|| bytes as f64 / report.steps as f64)
}

fn print(report: &AuditReport) {
    match &report.verdict {
        AuditVerdict::Ok => say!(
            "ok: {} entries, the first {} of them under the checkpoint given",
            report.entries,
            report.anchored_entries
        ),
        AuditVerdict::Unanchored => {
            say!("unanchored: {} entries fit together;", report.entries);
            say!("  give a checkpoint kept elsewhere to exclude a rollback");
        }
        AuditVerdict::Broken { entry, reason } => say!("broken at entry {entry}, because {reason}"),
    }
    if let Some((first, end)) = report.archived {
        say!("  entries {first} to {} are archived; what follows them was audited", end - 1);
    }
    say!("  head {}", report.head);
    say!("  root {}", report.root);
    say!(
        "  {} rebuilt, {} checked again, {}, {}",
        quantity(report.conditions, "condition"),
        quantity(report.certificates, "certificate"),
        quantity(report.snapshots, "snapshot"),
        quantity(report.blobs, "blob")
    );
    let sizes = &report.sizes;
    if let Some(all) = per_step(report, sizes.history()) {
        let part = |bytes: u64| per_step(report, bytes).unwrap_or_default();
        say!(
            "  {all:.1} bytes a step: {:.1} of play, {:.1} of patches, {:.1} of certificates",
            part(entry_bytes(report, "play")),
            part(entry_bytes(report, "patch") + sizes.payloads),
            part(sizes.certificates)
        );
    }
    if 0 < report.tail_bytes {
        say!("  {} bytes after the newest checkpoint were never acknowledged", report.tail_bytes);
    }
}
