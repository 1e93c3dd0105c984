//! `bem inspect`: what is in a ledger, a segment, a snapshot, a checkpoint; and all limits of the machine.

use super::fit::hanging;
use super::{Answer, ledger_directory};
use crate::files;
use anyhow::{Context, bail};
use bem_base::limits;
use bem_base::words::quantity;
use bem_ledger::checkpoint::SignedCheckpoint;
use bem_ledger::entry::{Entry, event_code};
use bem_ledger::reader::EntryReader;
use bem_ledger::segment::SegmentHeader;
use bem_ledger::snapshot::Snapshot;
use clap::Args;
use std::path::{Path, PathBuf};

/// Show what is in a run, a segment, a snapshot or a checkpoint, or all limits.
#[derive(Args)]
#[command(after_help = "Example: bem inspect runs/first --from 10 --count 5\n         bem inspect constants")]
pub struct InspectArguments {
    /// A run directory, a file of its ledger, or the word `constants`
    what: PathBuf,
    /// First entry to show
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many entries to show
    #[arg(long, default_value_t = 20)]
    count: u64,
}

/// Prints what was asked for.
pub fn run(arguments: &InspectArguments) -> anyhow::Result<Answer> {
    let what = &arguments.what;
    if what.as_os_str() == "constants" {
        say_text!("{}", constants());
    } else if what.is_dir() {
        print_entries(what, arguments.from, arguments.count)?;
    } else {
        print_file(what)?;
    }
    Ok(Answer::Yes)
}

/// Every limit, one line each, sorted by name within its crate.
fn constants() -> String {
    let base = [
        ("base.observation_bits_max", limits::OBSERVATION_BITS_MAX as u64),
        ("base.actions_max", limits::ACTIONS_MAX as u64),
        ("base.episode_steps_max", u64::from(limits::EPISODE_STEPS_MAX)),
        ("base.lanes", limits::LANES as u64),
        ("base.state_bits_max", limits::STATE_BITS_MAX as u64),
        ("base.circuit_inputs_max", limits::CIRCUIT_INPUTS_MAX as u64),
        ("base.circuit_outputs_max", limits::CIRCUIT_OUTPUTS_MAX as u64),
        ("base.circuit_gates_max", limits::CIRCUIT_GATES_MAX as u64),
        ("base.monomials_max", limits::MONOMIALS_MAX as u64),
        ("base.arms_max", limits::ARMS_MAX as u64),
        ("base.buckets_max", limits::BUCKETS_MAX as u64),
        ("base.visits_halve_at", u64::from(limits::VISITS_HALVE_AT)),
    ];
    base.iter().chain(&bem_ledger::limits::ALL).map(|(name, value)| format!("{name:<32} {value}\n")).collect()
}

fn print_entries(directory: &Path, from: u64, count: u64) -> anyhow::Result<()> {
    let mut store = ledger_directory::open(directory)?;
    let mut reader = EntryReader::open(&mut store)?;
    say!("{}", quantity(reader.size(), "acknowledged entry"));
    let mut shown = 0;
    while shown < count {
        let index = reader.position();
        let Some(bytes) = reader.next(&mut store)? else { break };
        if from <= index {
            let entry = Entry::from_bytes(bytes).with_context(|| format!("entry {index}"))?;
            // A digest on a line of its own fits beside this indent.
            hanging(&format!("{index:>8}  {:<10} {}", entry.kind_name(), describe(&entry)), 12)
                .iter()
                .for_each(|line| say!("{line}"));
            shown += 1;
        }
    }
    Ok(())
}

/// One line about an entry.
fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Genesis(genesis) => format!("instance {} code {:?}", genesis.instance, genesis.code),
        Entry::StepBlock(block) => format!(
            "from step {}, {}, {}",
            block.first_step,
            quantity(block.records.len(), "record"),
            quantity(block.experience.len(), "logged step")
        ),
        Entry::Episode { episode, task, step, length, total_return, .. } => {
            let steps = quantity(length, "step");
            format!("{episode} of task {task} at step {step}, {steps}, return {total_return} milli")
        }
        Entry::Patch(patch) => format!(
            "{} {:?} {:?} at step {}, {}, {}",
            patch.serial,
            patch.kind,
            patch.status,
            patch.step,
            quantity(patch.certificates.len(), "certificate"),
            quantity(patch.edits.len(), "edit")
        ),
        Entry::Reset { step, bucket, cause, .. } => format!("bucket {bucket} at step {step}: {cause:?}"),
        Entry::Tables { step, edits, .. } => format!("at step {step}, {}", quantity(edits.len(), "edit")),
        Entry::Snapshot { step, manifest, size_bytes, kept } => {
            format!("at step {step}, {size_bytes} bytes, {manifest}; the newest {kept} are kept")
        }
        Entry::ToolCall(call) => {
            let error = if call.error == 0 { String::new() } else { format!(", error {}", call.error) };
            let place = format!("request {} {:?} {:?}", call.request, call.phase, call.status);
            format!("{place} at step {}{error}", call.step)
        }
        Entry::HumanTask(task) => {
            format!("question {} {:?} {:?} at step {}", task.question, task.phase, task.status, task.step)
        }
        Entry::Input { step, source, payload } => {
            format!("from {source:?} at step {step}, {} bytes", payload.len())
        }
        Entry::Play(block) => format!(
            "steps {} to {}, {}, chain {}",
            block.first_step,
            block.end(),
            quantity(block.episodes().len(), "episode"),
            block.chain
        ),
        Entry::Event { step, code, values, .. } => match event_code::name(*code) {
            Some(name) => format!("{name} at step {step} {values:?}"),
            None => format!("code {code} at step {step} {values:?}"),
        },
    }
}

fn print_file(path: &Path) -> anyhow::Result<()> {
    let bytes = files::read_bytes(path)?;
    let place = || path.display().to_string();
    if bytes.starts_with(b"BEMSNAP1") {
        let (snapshot, manifest) = Snapshot::from_bytes(&bytes).with_context(place)?;
        say!("snapshot {manifest}");
        say!("  instance {}", snapshot.instance);
        say!("  after {} entries, step {}", snapshot.entries, snapshot.step);
        say!("  chain head {}", snapshot.head.digest());
        for part in &snapshot.parts {
            say!("  {:<24} {} bytes", part.name, part.bytes.len());
        }
    } else if bytes.starts_with(b"BEMSEGM1") {
        let (header, length) = SegmentHeader::decode(&bytes).with_context(place)?;
        say!("segment {} of {}", header.number, header.instance);
        say!("  first entry {}, {} bytes after the header", header.frontier.size(), bytes.len() - length);
    } else if bytes.starts_with(b"bem.ledger/") {
        let signed = SignedCheckpoint::parse(&bytes).with_context(place)?;
        say!("checkpoint of {}", signed.checkpoint.instance);
        say!("  {} entries, root {}", signed.checkpoint.size, signed.checkpoint.root);
        say!("  chain head {}", signed.checkpoint.head.digest());
        for line in &signed.signatures {
            say!("  signed by {}", line.name);
        }
    } else {
        bail!("{}: not a snapshot, segment or checkpoint", place());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_ones_pinned_in_the_golden_file() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/constants.txt");
        let pinned = std::fs::read_to_string(path).expect("golden/constants.txt is in the repository");
        assert_eq!(constants(), pinned, "a changed limit changes formats: say why in the commit");
    }
}
