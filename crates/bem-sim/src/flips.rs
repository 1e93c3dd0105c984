//! Bits of a real image turned over in memory, each held against what a restore checks before it believes anything.
//!
//! Half of the bits lie anywhere by size, half in a file that is drawn first, so that small files are hit as well. Every one must be refused.
//! Clauses: IMG-2, IMG-4.

use bem_base::prng::Prng;
use bem_image::ImageError;
use bem_image::image::find_whole;
use bem_image::layout::{Layout, blob_name, read_digest};
use bem_image::statement::{check_promoted, promotions, signatures};
use bem_ledger::store::MemoryStore;

/// What was turned over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flipped {
    /// Bits.
    pub flips: u64,
    /// Files that they lay in.
    pub files: usize,
    /// Bytes of these files.
    pub bytes: usize,
}

/// What a restore of a promoted image checks before anything is unpacked: index, manifest, configuration, all layers, statements.
fn accepted(store: &mut MemoryStore, tag: &str) -> Result<(), ImageError> {
    let mut layout = Layout::open(store)?;
    let (_, found, _) = find_whole(&mut layout, tag)?;
    check_promoted(&mut layout, tag, &found.digest, |_| 0)?;
    promotions(&mut layout)?;
    signatures(&mut layout).map(drop)
}

/// The files that a restore of this image reads.
fn read_by_restore(store: &mut MemoryStore, tag: &str) -> Result<Vec<String>, ImageError> {
    let mut layout = Layout::open(store)?;
    let (entry, ..) = find_whole(&mut layout, tag)?;
    let statements = layout.index().manifests.iter().filter(|one| one.artifact_type.is_some()).cloned();
    let mut entries: Vec<_> = statements.collect();
    entries.push(entry);
    let mut names = vec!["index.json".to_owned(), "oci-layout".to_owned()];
    for entry in entries {
        let found = layout.read(&entry)?;
        let layers = found.manifest.layers.iter().map(|layer| layer.digest.clone());
        let digests = layers.chain([entry.digest.clone(), found.manifest.config.digest.clone()]);
        names.extend(digests.filter_map(|digest| Some(blob_name(&read_digest(&digest)?))));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Turns over so many bits of a promoted image, one after the other.
pub fn flips(store: &mut MemoryStore, tag: &str, count: u64, seed: u64) -> Result<Flipped, String> {
    let said = |error: ImageError| error.to_string();
    accepted(store, tag).map_err(said)?;
    let names = read_by_restore(store, tag).map_err(said)?;
    let sizes: Vec<u64> = names.iter().map(|name| store.files[name].len() as u64).collect();
    let mut prng = Prng::stream(seed, "flips of an image");
    for trial in 0..count {
        let place = match trial % 2 {
            0 => prng.below(names.len() as u64) as usize,
            _ => by_size(&sizes, &mut prng),
        };
        let (byte, bit) = (prng.below(sizes[place]) as usize, prng.below(8));
        let name = &names[place];
        let turn = |store: &mut MemoryStore| {
            let file = store.files.get_mut(name).expect("the image has this file");
            file[byte] ^= 1 << bit;
        };
        turn(store);
        let is_accepted = accepted(store, tag).is_ok();
        turn(store);
        if is_accepted {
            return Err(format!("{name}, byte {byte}, bit {bit} is not noticed"));
        }
    }
    accepted(store, tag).map_err(said)?;
    Ok(Flipped { flips: count, files: names.len(), bytes: sizes.iter().sum::<u64>() as usize })
}

fn by_size(sizes: &[u64], prng: &mut Prng) -> usize {
    let mut left = prng.below(sizes.iter().sum());
    for (place, size) in sizes.iter().enumerate() {
        if left < *size {
            return place;
        }
        left -= size;
    }
    0
}
