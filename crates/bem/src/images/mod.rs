//! Images on real files: what of a state folder goes into one, how one becomes a folder again, and who remembers promotions.
//!
//! The work on layouts is done by `bem-image`; this room has the files, the clock and the key. Clauses: IMG-1 to IMG-6.

pub mod agent;
pub mod base;
mod beside;
pub mod format;
pub mod migrate;
pub mod registry;
pub mod restore;
pub mod secrets;
pub mod serials;
pub mod state;

use crate::file_store::{FileStore, LAYOUT};
use anyhow::{Context, Result, bail};
use bem_image::image::{Facts, free_tag, put_base, put_state};
use bem_image::layer::Nothing;
use bem_image::layout::{Found, Layout, listed};
use bem_image::model::{Descriptor, Listed};
use bem_image::tag::{BASE_NAME, BASE_VERSION, BRAIN_NAME, Minute, STABLE};
use secrets::Secrets;
use state::StateView;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How often a state is looked at again when its writer removed a file between two looks.
const TRIES: u32 = 5;

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The tag of base images of this program.
pub fn base_tag() -> String {
    format!("{BASE_NAME}:{BASE_VERSION}")
}

/// The tag of what was promoted.
pub fn stable_tag() -> String {
    format!("{BRAIN_NAME}:{STABLE}")
}

/// Opens a layout for reading.
pub fn open_layout(path: &Path) -> Result<Layout<FileStore>> {
    let said = || path.display().to_string();
    Layout::open(FileStore::open_for(&LAYOUT, path).with_context(said)?).with_context(said)
}

/// Opens a layout for writing, making it if need be.
pub fn open_layout_locked(path: &Path) -> Result<Layout<FileStore>> {
    let said = || path.display().to_string();
    Layout::open_or_create(FileStore::open_locked_for(&LAYOUT, path).with_context(said)?).with_context(said)
}

/// What `bem image base` did.
pub struct BaseBuilt {
    /// The manifest.
    pub manifest: Descriptor,
    /// Libraries that the program brought along.
    pub libraries: Vec<PathBuf>,
}

/// Builds the base image of the running program.
pub fn build_base(layout: &mut Layout<FileStore>, tag: &str) -> Result<BaseBuilt> {
    let base = base::of_this_program()?;
    let run = base::run_config();
    let named = (tag, env!("CARGO_PKG_VERSION"));
    let manifest = put_base(layout, base.layers, base::architecture(), run, named)?;
    Ok(BaseBuilt { manifest, libraries: base.libraries })
}

/// A snapshot that was taken.
pub struct Taken {
    /// Its tag.
    pub tag: String,
    /// Its manifest.
    pub manifest: Descriptor,
    /// What it says.
    pub facts: Facts,
    /// Images of the same history that it does not go on from.
    pub forks: Vec<String>,
}

/// Takes a snapshot of a state folder as an image.
pub fn snapshot(
    layout: &mut Layout<FileStore>,
    state: &Path,
    gate: &str,
    secrets: &Secrets,
    is_audited: bool,
) -> Result<Taken> {
    let base_tag = base_tag();
    if layout.resolve(&base_tag).is_err() {
        build_base(layout, &base_tag)?;
    }
    let base = layout.resolve(&base_tag)?.clone();
    let base = layout.read(&base)?;
    let mut tries = 0;
    let (view, manifest) = loop {
        tries += 1;
        let view = StateView::read(state, is_audited)?;
        match view
            .files(secrets)
            .and_then(|files| Ok(put_state(layout, &base, &base_tag, files, &view.facts(gate))?))
        {
            Ok(manifest) => break (view, manifest),
            // Whoever writes the folder has thinned out a snapshot meanwhile: the next look sees the newer ones.
            Err(error) if tries < TRIES && is_missing(&error) => {}
            Err(error) => return Err(error),
        }
    };
    let facts = view.facts(gate);
    let forks = forks(layout, &view)?;
    let tag = free_tag(layout, Minute::of(now()), &manifest.digest)?;
    let entry = listed(&manifest, Some(&tag), None);
    // What is written is read back whole before it gets a tag: a segment that nobody has read for weeks may be damaged.
    let found = layout.read(&entry)?;
    restore::read_back(layout, &found, &facts)?;
    layout.list(vec![entry])?;
    Ok(Taken { tag, manifest, facts, forks })
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
    })
}

/// State images of a layout with what they say, in the order of the index.
pub fn states(layout: &mut Layout<FileStore>) -> Result<Vec<(Listed, Found, Facts)>> {
    let mut all = Vec::new();
    for entry in layout.index().manifests.clone() {
        let found = layout.read(&entry)?;
        if let Ok(facts) = Facts::of(&found) {
            all.push((entry, found, facts));
        }
    }
    Ok(all)
}

/// Tags of images of the same history that this state does not go on from.
fn forks(layout: &mut Layout<FileStore>, view: &StateView) -> Result<Vec<String>> {
    let mut forks = Vec::new();
    for (entry, _, facts) in states(layout)? {
        if !view.extends(&facts)? {
            forks.push(entry.tag().unwrap_or(&entry.digest).to_string());
        }
    }
    Ok(forks)
}

/// Checks every digest of an image, its base included.
pub fn verify_image(layout: &mut Layout<FileStore>, entry: &Listed) -> Result<Found> {
    let found = layout.read(entry)?;
    for place in 0..found.manifest.layers.len() {
        layout.unpack_layer(&found, place, &mut Nothing)?;
    }
    if found.manifest.layers.is_empty() {
        bail!("{}: an image without layers", entry.digest);
    }
    Ok(found)
}
