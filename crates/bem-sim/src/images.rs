//! Images and archives on a disk that fails: a layout's whole life, cut off at every operation, by power loss, kill or a full disk.
//!
//! After each the layout loads, every image that a tag names is whole, `stable` is what the newest promotion says, and the index is
//! that before or after the step that was cut off. Then the life goes on to the undisturbed end. Clauses: IMG-4, IMG-6, LOG-1.

use crate::disk::Disk;
use crate::store::{Failure, Plan, SimStore};
use bem_base::digest::hash;
use bem_base::prng::Prng;
use bem_image::ImageError;
use bem_image::image::{Facts, put_base, put_state};
use bem_image::layer::{Content, LayerFile, LayerFiles, Nothing};
use bem_image::layout::{Layout, listed};
use bem_image::model::{Descriptor, Index, RunConfig};
use bem_image::retain::{Retention, prune, reachable};
use bem_image::statement::{check_promoted, promote, sign};
use bem_image::tag::{Minute, brain_tag};
use bem_ledger::archive::Archived;
use bem_ledger::chain::ChainHead;
use bem_ledger::checkpoint::Checkpoint;
use bem_ledger::entry::Entry;
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::{Log, LogOptions};
use bem_ledger::reader::EntryReader;
use bem_ledger::snapshot::{Part, latest_snapshot};
use bem_ledger::store::{MemoryStore, Store};
use bem_ledger::testing::{self, Workload};

const BASE: &str = "bem-core:0.0.1";
const STABLE: &str = "bem-brain:stable";

/// One step of a layout's life.
#[derive(Clone, Copy, Debug)]
enum Step {
    Base,
    /// The state of this number becomes an image.
    Snapshot(u64),
    Promote(u64),
    Sign(u64),
    Prune,
}

const LIFE: [Step; 12] = [
    Step::Base,
    Step::Snapshot(1),
    Step::Promote(1),
    Step::Snapshot(2),
    Step::Snapshot(3),
    Step::Sign(3),
    Step::Prune,
    Step::Snapshot(4),
    Step::Promote(4),
    Step::Snapshot(5),
    Step::Snapshot(6),
    Step::Prune,
];

fn file(bytes: Vec<u8>) -> LayerFile<'static> {
    LayerFile { mode: 0o600, owner: 0, content: Content::Bytes(bytes) }
}

/// The tag of a state; two of them fall on one day.
fn tag_of(state: u64) -> String {
    brain_tag(Minute::of(state * 43_200), 0)
}

fn facts(state: u64) -> Facts {
    let checkpoint = Checkpoint {
        instance: hash(b"instance"),
        size: state,
        root: hash(&state.to_le_bytes()),
        head: ChainHead::from_digest(hash(&[state as u8])),
    };
    Facts {
        kind: "run".to_owned(),
        format: 2,
        code: "test".to_owned(),
        gate: "open".to_owned(),
        checkpoint: testing::signer().sign(checkpoint).to_text(),
        origin: None,
    }
}

fn find<S: Store>(layout: &Layout<S>, tag: &str) -> Result<Descriptor, ImageError> {
    let entry = layout.resolve(tag)?;
    Ok(Descriptor {
        media_type: entry.media_type.clone(),
        digest: entry.digest.clone(),
        size: entry.size,
        annotations: Default::default(),
    })
}

fn take<S: Store>(layout: &mut Layout<S>, step: Step) -> Result<(), ImageError> {
    let signer = testing::signer();
    match step {
        Step::Base => {
            let files = LayerFiles::from([("usr/bin/bem".to_owned(), file(vec![7; 3_000]))]);
            put_base(layout, vec![files], "amd64", RunConfig::default(), (BASE, "test")).map(drop)
        }
        Step::Snapshot(state) => {
            let base = layout.resolve(BASE)?.clone();
            let base = layout.read(&base)?;
            let bytes: Vec<u8> = (0..700u64).map(|byte| (byte * state) as u8).collect();
            let files = LayerFiles::from([("var/lib/bem/ledger/checkpoint".to_owned(), file(bytes))]);
            let manifest = put_state(layout, &base, BASE, files, &facts(state))?;
            layout.list(vec![listed(&manifest, Some(&tag_of(state)), None)])
        }
        Step::Promote(state) => {
            let about = find(layout, &tag_of(state))?;
            // A step that took effect and was not acknowledged is not done twice.
            if find(layout, STABLE).is_ok_and(|stable| stable.digest == about.digest) {
                return Ok(());
            }
            promote(layout, &about, STABLE, &signer).map(drop)
        }
        Step::Sign(state) => {
            let about = find(layout, &tag_of(state))?;
            sign(layout, &about, &signer)
        }
        Step::Prune => prune(layout, Retention { daily: 2, weekly: 0 }).map(drop),
    }
}

/// A layout in memory with a promoted and signed image, and a blob that nothing names.
pub fn promoted() -> Result<MemoryStore, String> {
    let mut layout = Layout::open_or_create(MemoryStore::new()).map_err(|error| error.to_string())?;
    for step in [Step::Base, Step::Snapshot(1), Step::Promote(1), Step::Sign(1)] {
        take(&mut layout, step).map_err(|error| error.to_string())?;
    }
    let mut store = layout.into_store();
    store.files.insert("blobs/sha256/unread".to_owned(), vec![1; 10]);
    Ok(store)
}

/// Everything that an index names is there and whole, and `stable` is what the newest promotion says.
fn check<S: Store>(layout: &mut Layout<S>) -> Result<(), String> {
    let said = |error: ImageError| error.to_string();
    for entry in layout.index().manifests.clone() {
        let found = layout.read(&entry).map_err(said)?;
        let is_image = entry.artifact_type.is_none();
        for place in (0..found.manifest.layers.len()).filter(|_| is_image) {
            layout.unpack_layer(&found, place, &mut Nothing).map_err(said)?;
        }
    }
    reachable(layout).map_err(said)?;
    if let Ok(entry) = layout.resolve(STABLE).cloned() {
        let found = layout.read(&entry).map_err(said)?;
        check_promoted(layout, STABLE, &found.digest, |_| 0).map_err(said)?;
    }
    Ok(())
}

/// What an undisturbed life leaves after every step, and how many operations of the disk it takes.
pub struct Undisturbed {
    indices: Vec<Index>,
    /// Operations that change something.
    pub operations: u64,
}

impl Undisturbed {
    /// Lives it.
    pub fn live() -> Result<Undisturbed, String> {
        let store = SimStore::new(Disk::new(), Plan::default(), Prng::stream(1, "images"));
        let mut layout = Layout::open_or_create(store.clone()).map_err(|error| error.to_string())?;
        let mut indices = vec![layout.index().clone()];
        for step in LIFE {
            take(&mut layout, step).map_err(|error| format!("{step:?}: {error}"))?;
            check(&mut layout)?;
            indices.push(layout.index().clone());
        }
        Ok(Undisturbed { indices, operations: store.happened().operations })
    }
}

/// How a life is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Power is lost: of what was not synced an arbitrary part survives.
    PowerLoss,
    /// The process is killed: what it wrote is seen.
    Kill,
    /// The disk is full for one operation.
    Full,
}

/// Lives once more, disturbed at one operation, and goes on to the end.
pub fn disturbed(wanted: &Undisturbed, at: u64, how: Disturbance, salt: u64) -> Result<(), String> {
    let mut prng = Prng::stream(at * 64 + salt, "disturbed images");
    let plan = match how {
        Disturbance::Full => Plan { fail_at: Some((at, Failure::Full, false)), ..Plan::default() },
        _ => Plan { crash_at: Some(at), ..Plan::default() },
    };
    let mut store = SimStore::new(Disk::new(), plan, Prng::stream(salt, "faults"));
    let mut done = 0;
    let mut lives = 0;
    loop {
        lives += 1;
        if 4 < lives {
            return Err("it does not come to an end".to_owned());
        }
        let lived = live_from(store.clone(), wanted, &mut done);
        match lived {
            Ok(()) => return Ok(()),
            Err(reason) if reason.starts_with("promise: ") => return Err(reason),
            Err(_) if how == Disturbance::Full => {}
            Err(_) => {
                let mut disk = store.disk();
                if how == Disturbance::PowerLoss {
                    disk.lose_power(&mut prng);
                }
                store = SimStore::new(disk, Plan::default(), Prng::stream(salt, "faults"));
            }
        }
    }
}

fn live_from(store: SimStore, wanted: &Undisturbed, done: &mut usize) -> Result<(), String> {
    let mut layout = Layout::open_or_create(store).map_err(|error| error.to_string())?;
    let found = layout.index();
    let is_known = [*done, *done + 1].iter().any(|place| wanted.indices.get(*place) == Some(found));
    if !is_known {
        return Err(format!(
            "promise: after {done} steps the index is neither that before nor that after the next"
        ));
    }
    check(&mut layout).map_err(|reason| format!("promise: {reason}"))?;
    for (place, step) in LIFE.iter().enumerate().skip(*done) {
        take(&mut layout, *step).map_err(|error| error.to_string())?;
        *done = place + 1;
        if *layout.index() != wanted.indices[*done] {
            return Err(format!("promise: {step:?} leads elsewhere"));
        }
    }
    check(&mut layout).map_err(|reason| format!("promise: {reason}"))
}

/// A ledger that archives, cut off at every operation of that: it opens, and what is gone is named. How many operations there were.
pub fn archives(salts: u64) -> Result<u64, String> {
    let options = LogOptions { segment_bytes: 1_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
    let prepared = || -> Result<(Disk, u64), String> {
        let store = SimStore::new(Disk::new(), Plan::default(), Prng::stream(1, "archives"));
        let said = |error: bem_ledger::LedgerError| error.to_string();
        let mut log =
            Log::create(store.clone(), testing::signer(), &testing::genesis(1), options).map_err(said)?;
        let mut workload = Workload::new(1);
        for round in 0..80 {
            Workload::apply(&workload.next_operation(), &mut log).map_err(said)?;
            if round % 20 == 19 {
                let part = Part { name: "state".to_owned(), bytes: vec![round as u8; 50] };
                log.write_snapshot(round, vec![part], 2).map_err(said)?;
            }
        }
        log.commit().map_err(said)?;
        Ok((store.disk(), log.size()))
    };
    let (disk, limit) = prepared()?;
    let archive = |store: SimStore| -> Result<Option<Archived>, String> {
        let (mut log, _) = Log::open(store, testing::signer(), options).map_err(|error| error.to_string())?;
        log.archive(1, limit, b"state", "image").map_err(|error| error.to_string())
    };
    let counted = SimStore::new(disk.clone(), Plan::default(), Prng::stream(1, "count"));
    if archive(counted.clone())?.is_none() {
        return Err("nothing was archived".to_owned());
    }
    let operations = counted.happened().operations;
    for at in 0..operations {
        for salt in 0..salts {
            let plan = Plan { crash_at: Some(at), ..Plan::default() };
            let store = SimStore::new(disk.clone(), plan, Prng::stream(salt, "faults"));
            let _ = archive(store.clone());
            let mut after = store.disk();
            after.lose_power(&mut Prng::stream(at * 64 + salt, "power"));
            let mut store = SimStore::new(after, Plan::default(), Prng::stream(salt, "faults"));
            sound(&mut store, options).map_err(|reason| format!("operation {at}, salt {salt}: {reason}"))?;
        }
    }
    Ok(operations)
}

fn sound(store: &mut SimStore, options: LogOptions) -> Result<(), String> {
    let said = |error: bem_ledger::LedgerError| error.to_string();
    Log::open(store.clone(), testing::signer(), options).map_err(said)?;
    // A gap that no entry names is an error here.
    if latest_snapshot(store).map_err(said)?.snapshot.is_none() {
        return Err("no snapshot is left".to_owned());
    }
    let mut reader = EntryReader::open(store).map_err(said)?;
    while let Some(bytes) = reader.next(store).map_err(said)? {
        Entry::from_bytes(bytes).map_err(|error| error.to_string())?;
    }
    Ok(())
}
