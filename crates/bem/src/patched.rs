//! The circuit that the patches of a run's history amount to, for runs whose own state is of another version of bem.
//!
//! Nothing of the learner is read: the structure is followed from patch to patch, as an audit does it. Clauses: IMG-5, SCC-4; decision
//! D-231.

use crate::cli::ledger_directory;
use crate::learned::{Found, Learned, Listed, NO_STATE};
use anyhow::{Context, Result, bail};
use bem_base::environment::Shape;
use bem_base::ids::ObjectId;
use bem_engine::payload::Payload;
use bem_evolve::patch::PatchKind;
use bem_evolve::rebuild::Twin;
use bem_ledger::entry::{Entry, PatchStatus};
use bem_ledger::log::read_blob;
use bem_ledger::reader::EntryReader;
use bem_machine::config::GenesisConfig;
use bem_synth::policy::Policy;
use std::collections::{BTreeMap, btree_map};
use std::path::Path;

/// What the patches of a run hold in the end, by what they are about.
fn policies(directory: &Path) -> Result<Vec<(ObjectId, Shape, Policy)>> {
    let mut store = ledger_directory::open(directory)?;
    let mut reader = EntryReader::open(&mut store)?;
    let mut twins: BTreeMap<ObjectId, Twin> = BTreeMap::new();
    while let Some(bytes) = reader.next(&mut store)? {
        let Ok(Entry::Patch(event)) = Entry::from_bytes(bytes) else { continue };
        match event.status {
            PatchStatus::Applied => {
                let payload = Payload::from_bytes(&read_blob(&mut store, &event.payload)?)?;
                let Some((patch, shape)) = payload.accepted else { continue };
                let twin = match twins.entry(event.target) {
                    btree_map::Entry::Occupied(twin) => twin.into_mut(),
                    btree_map::Entry::Vacant(room) => {
                        room.insert(Twin::boot(GenesisConfig::default(), &shape)?)
                    }
                };
                if *twin.shape() != shape {
                    twin.begin(&shape)?;
                }
                twin.follow(&patch)?;
            }
            PatchStatus::RolledBack => {
                if let Some(twin) = twins.get_mut(&event.target) {
                    twin.take_back(PatchKind::ALL[event.kind as usize])?;
                }
            }
            _ => {}
        }
    }
    let frozen = |(target, twin): (ObjectId, Twin)| {
        let policy = twin.frozen()?;
        Some((target, twin.shape().clone(), policy))
    };
    Ok(twins.into_iter().filter_map(frozen).collect())
}

/// Opens a run by the patches of its history.
pub fn open(directory: &Path, expert: Option<&str>) -> Result<Found> {
    let named = || format!("{}: the patches of its history", directory.display());
    let mut found = policies(directory).with_context(named)?;
    let name = |target: &ObjectId| format!("{target:?}");
    found.retain(|(target, ..)| expert.is_none_or(|wanted| name(target) == wanted));
    if 1 < found.len() {
        let listed = |(target, shape, policy): &(ObjectId, Shape, Policy)| Listed {
            name: name(target),
            gates: policy.gates(),
            task: format!("{} bits, {} actions", shape.observation_bits, shape.actions),
        };
        return Ok(Found::several_of_a_run(found.iter().map(listed).collect()));
    }
    let Some((target, shape, policy)) = found.pop() else {
        bail!("{}: no patch has brought about a circuit", directory.display());
    };
    Ok(Found::One(Box::new(Learned {
        name: name(&target),
        policy,
        observation_bits: usize::from(shape.observation_bits),
        horizon: Some(shape.horizon),
        fields: shape.fields,
        names: None,
        actions: Vec::new(),
        provenance: vec![format!("from the patches of the history in {}", directory.display())],
        warnings: vec![NO_STATE.to_string()],
    })))
}
