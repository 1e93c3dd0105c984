//! Layouts from outside: equal content has equal bytes, every flipped bit is refused, promotions and retention. Clauses: IMG-2, IMG-4,
//! IMG-6.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use bem_base::digest::hash;
use bem_image::ImageError;
use bem_image::image::{Facts, free_tag, put_base, put_state};
use bem_image::layer::{Content, LayerFile, LayerFiles, Nothing, Taker};
use bem_image::layout::{Layout, descriptor, listed, read_digest};
use bem_image::model::{Descriptor, Listed, MANIFEST_TYPE, RunConfig};
use bem_image::retain::{Retention, prune, to_remove};
use bem_image::statement::{check_promoted, promote, promotions, sign, signatures};
use bem_image::tag::{Minute, brain_tag};
use bem_ledger::chain::ChainHead;
use bem_ledger::checkpoint::{Checkpoint, Signer};
use bem_ledger::store::MemoryStore;
use bem_ledger::testing;
use std::collections::BTreeMap;
use std::io::Read;

const BASE: &str = "bem-core:0.0.1";
const STABLE: &str = "bem-brain:stable";

fn facts(state: u8) -> Facts {
    let checkpoint = Checkpoint {
        instance: hash(b"instance"),
        size: u64::from(state),
        root: hash(b"root"),
        head: ChainHead::from_digest(hash(&[state])),
    };
    Facts {
        kind: "service".to_string(),
        format: 2,
        code: "0.1.0".to_string(),
        gate: "open".to_string(),
        checkpoint: testing::signer().sign(checkpoint).to_text(),
        origin: None,
    }
}

fn file(bytes: &[u8]) -> LayerFile<'static> {
    LayerFile { mode: 0o600, owner: 5, content: Content::Bytes(bytes.to_vec()) }
}

fn layout() -> Layout<MemoryStore> {
    let mut layout = Layout::open_or_create(MemoryStore::new()).unwrap();
    let files = LayerFiles::from([("usr/bin/bem".to_string(), file(b"program"))]);
    put_base(&mut layout, vec![files], "amd64", RunConfig::default(), (BASE, "0.1.0")).unwrap();
    layout
}

fn snapshot(layout: &mut Layout<MemoryStore>, state: u8, tag: &str) -> Descriptor {
    let base = layout.resolve(BASE).unwrap().clone();
    let base = layout.read(&base).unwrap();
    let bytes: Vec<u8> = (0..300u32).map(|byte| (byte * u32::from(state)) as u8).collect();
    let files = LayerFiles::from([
        ("var/lib/bem/ledger/checkpoint".to_string(), file(&[state; 40])),
        ("var/lib/bem/ledger/segment".to_string(), file(&bytes)),
    ]);
    let manifest = put_state(layout, &base, BASE, files, &facts(state)).unwrap();
    layout.list(vec![listed(&manifest, Some(tag), None)]).unwrap();
    manifest
}

/// Everything that a restore would read, or why it is refused.
fn restored(store: MemoryStore, tag: &str) -> Result<BTreeMap<String, Vec<u8>>, ImageError> {
    struct Kept(BTreeMap<String, Vec<u8>>);
    impl Taker for Kept {
        fn folder(&mut self, _: &str) -> Result<(), String> {
            Ok(())
        }
        fn file(&mut self, path: &str, _: u32, content: &mut dyn Read) -> Result<(), String> {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            self.0.insert(path.to_string(), bytes);
            Ok(())
        }
        fn link(&mut self, _: &str, _: &str) -> Result<(), String> {
            Err("no links here".to_string())
        }
    }
    let mut layout = Layout::open(store)?;
    let entry = layout.resolve(tag)?.clone();
    let found = layout.read(&entry)?;
    Facts::of(&found)?;
    let mut kept = Kept(BTreeMap::new());
    for place in 0..found.manifest.layers.len() {
        layout.unpack_layer(&found, place, &mut kept)?;
    }
    Ok(kept.0)
}

#[test]
fn equal_states_have_equal_digests_and_time_stands_in_the_tag_only() {
    let (mut one, mut other) = (layout(), layout());
    let first = snapshot(&mut one, 3, &brain_tag(Minute::of(60), 0));
    let second = snapshot(&mut other, 3, &brain_tag(Minute::of(999_999), 0));
    assert_eq!(first, second);
    assert_ne!(snapshot(&mut other, 4, "bem-brain:other").digest, second.digest);
    // Of one minute the greater number is the newer image, also after the others are gone.
    let minute = Minute::of(60);
    assert_eq!(free_tag(&one, minute, &first.digest).unwrap(), brain_tag(minute, 0));
    assert_eq!(free_tag(&one, minute, "sha256:another").unwrap(), brain_tag(minute, 1));
    snapshot(&mut one, 5, &brain_tag(minute, 7));
    assert_eq!(free_tag(&one, minute, "sha256:another").unwrap(), brain_tag(minute, 8));
}

#[test]
fn every_single_bit_flip_of_an_image_is_refused() {
    let mut layout = layout();
    let tag = brain_tag(Minute::of(60), 0);
    snapshot(&mut layout, 3, &tag);
    let store = layout.into_store();
    let whole = restored(store.clone(), &tag).unwrap();
    assert_eq!(whole["var/lib/bem/ledger/checkpoint"], [3; 40]);
    let size: usize = store.files.values().map(Vec::len).sum();
    assert!(size <= 65_536, "{size}");
    let base = read_digest(&Layout::open(store.clone()).unwrap().resolve(BASE).unwrap().digest).unwrap();
    let (mut flips, mut spared) = (0u64, 0u64);
    for (name, content) in &store.files {
        // The manifest and configuration of the base alone belong to another image.
        let is_ours = !name.ends_with(&base.to_hex()) && !is_only_of_base(&store, name);
        for bit in 0..content.len() * 8 {
            let mut damaged = store.clone();
            damaged.files.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let refused = restored(damaged, &tag).is_err();
            assert!(refused || !is_ours, "{name}, bit {bit}");
            flips += u64::from(is_ours);
            spared += u64::from(!is_ours);
        }
    }
    assert!(10_000 < flips && spared < flips, "{flips} flips, {spared} spared");
}

/// Whether a blob is the base image's configuration.
fn is_only_of_base(store: &MemoryStore, name: &str) -> bool {
    let mut layout = Layout::open(store.clone()).unwrap();
    let entry = layout.resolve(BASE).unwrap().clone();
    name.ends_with(&layout.read(&entry).unwrap().manifest.config.digest[7..])
}

#[test]
fn an_older_stable_is_refused_and_so_is_one_that_nobody_promoted() {
    let mut layout = layout();
    let first = snapshot(&mut layout, 1, "bem-brain:19700101-0001");
    let second = snapshot(&mut layout, 2, "bem-brain:19700101-0002");
    let signer = testing::signer();
    let digest = |of: &Descriptor| read_digest(&of.digest).unwrap();
    assert_eq!(promote(&mut layout, &first, STABLE, &signer).unwrap(), 1);
    let old = layout.store_mut().clone();
    assert_eq!(promote(&mut layout, &second, STABLE, &signer).unwrap(), 2);
    assert_eq!(layout.resolve(STABLE).unwrap().digest, second.digest);
    let statement = check_promoted(&mut layout, STABLE, &digest(&second), |_| 0).unwrap();
    assert_eq!((statement.serial, statement.tag.as_deref()), (Some(2), Some(STABLE)));
    // The tag is moved back by hand: the newest promotion says otherwise.
    layout.list(vec![listed(&first, Some(STABLE), None)]).unwrap();
    let error = check_promoted(&mut layout, STABLE, &digest(&first), |_| 0).unwrap_err().to_string();
    assert!(error.contains("promotion 2 gave it to"), "{error}");
    // The whole layout is an older one: whoever remembers the serial notices.
    let mut old = Layout::open(old).unwrap();
    assert!(check_promoted(&mut old, STABLE, &digest(&first), |_| 1).is_ok());
    let error = check_promoted(&mut old, STABLE, &digest(&first), |_| 2).unwrap_err().to_string();
    assert!(error.contains("an older state was put in its place"), "{error}");
    let error = check_promoted(&mut old, "bem-brain:other", &digest(&first), |_| 0).unwrap_err().to_string();
    assert!(error.contains("was never promoted"), "{error}");
}

#[test]
fn a_statement_with_one_bit_changed_is_refused() {
    let mut layout = layout();
    let about = snapshot(&mut layout, 1, "bem-brain:19700101-0001");
    sign(&mut layout, &about, &testing::signer()).unwrap();
    promote(&mut layout, &about, STABLE, &Signer::from_seed(&[7; 32])).unwrap();
    assert_eq!((signatures(&mut layout).unwrap().len(), promotions(&mut layout).unwrap().len()), (1, 1));
    let kind =
        layout.index().manifests.iter().find(|entry| entry.tag() == Some("promotion-1")).unwrap().clone();
    let layer = layout.read(&kind).unwrap().manifest.layers[0].clone();
    let signed = layout.read_blob(&layer).unwrap();
    for bit in 0..signed.len() * 8 {
        let mut damaged = signed.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(bem_image::statement::Statement::from_signed(&damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn the_newest_of_each_day_and_week_and_everything_promoted_stays() {
    let entry = |tag: String| listed(&descriptor(MANIFEST_TYPE, &hash(tag.as_bytes()), 1), Some(&tag), None);
    let hours = |hour: u64| brain_tag(Minute::of(hour * 3_600), 0);
    let all: Vec<Listed> = (0..24 * 40).step_by(6).map(|hour| entry(hours(hour))).collect();
    let promoted = all[5].digest.clone();
    let goes = to_remove(&all, Retention { daily: 3, weekly: 3 }, |digest| digest == promoted);
    let stays: Vec<&str> = all.iter().filter_map(Listed::tag).filter(|tag| !goes.contains(*tag)).collect();
    // Three days, of which the last two are also the newest of their weeks; the Sunday before these; the promoted one.
    assert_eq!(
        stays,
        [hours(30), hours(24 * 32 - 6), hours(24 * 38 - 6), hours(24 * 39 - 6), hours(24 * 40 - 6)]
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
    );
}

#[test]
fn pruning_removes_blobs_that_nothing_reaches_and_nothing_else() {
    let mut layout = layout();
    for state in 1..=6u8 {
        snapshot(&mut layout, state, &brain_tag(Minute::of(u64::from(state) * 86_400), 0));
    }
    let oldest = layout.resolve(&brain_tag(Minute::of(86_400), 0)).unwrap().clone();
    let about = descriptor(MANIFEST_TYPE, &read_digest(&oldest.digest).unwrap(), oldest.size);
    promote(&mut layout, &about, STABLE, &testing::signer()).unwrap();
    let second = layout.resolve(&brain_tag(Minute::of(2 * 86_400), 0)).unwrap().clone();
    sign(
        &mut layout,
        &descriptor(MANIFEST_TYPE, &read_digest(&second.digest).unwrap(), second.size),
        &testing::signer(),
    )
    .unwrap();
    let pruned = prune(&mut layout, Retention { daily: 2, weekly: 0 }).unwrap();
    assert_eq!(pruned.tags.len(), 3);
    assert!(9 <= pruned.blobs && 0 < pruned.bytes, "{pruned:?}");
    assert!(signatures(&mut layout).unwrap().is_empty(), "a signature of what is gone goes too");
    for entry in layout.index().manifests.clone().iter().filter(|entry| entry.artifact_type.is_none()) {
        let found = layout.read(entry).unwrap();
        for place in 0..found.manifest.layers.len() {
            layout.unpack_layer(&found, place, &mut Nothing).unwrap();
        }
    }
    let again = prune(&mut layout, Retention { daily: 2, weekly: 0 }).unwrap();
    assert_eq!((again.tags.len(), again.blobs), (0, 0));
}

#[test]
fn layers_that_lead_out_of_the_image_are_refused() {
    for path in ["/etc/passwd", "../etc/passwd", "a/../../b", "a//b", "a/./b", "a\\b", ""] {
        assert!(!bem_image::layer::is_inside(path), "{path}");
    }
    assert!(bem_image::layer::is_inside("var/lib/bem/ledger/segment-00000000.log"));
}
