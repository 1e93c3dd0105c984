//! Images from elsewhere: archives that `docker save`, `podman save` and skopeo write, and registries, which skopeo speaks to.
//!
//! Whatever comes is brought into a layout of its own first and read from there like every other, with every digest checked.
//! skopeo takes its login from the standard auth file; BEM sees no password. Clauses: IMG-2, IMG-4; decision D-86.

use super::{open_layout, open_layout_locked};
use anyhow::{Context, Result, bail};
use bem_base::digest::{Digest, hash};
use bem_image::layer::is_inside;
use bem_image::layout::{descriptor, listed, spell, to_json};
use bem_image::model::{CONFIG_TYPE, ImageConfig, MANIFEST_TYPE, Manifest, PLAIN_LAYER_TYPE};
use bem_image::statement::{Statement, promotions, signature_tag, signatures};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tag or digest in a layout.
    Layout(PathBuf, String),
    /// An archive.
    Archive(PathBuf),
    /// A registry, as skopeo spells it: `docker://host/name:tag`.
    Registry(String),
}

impl Source {
    /// Reads a reference; a plain one is a tag in the given layout.
    pub fn parse(reference: &str, layout: &Path) -> Result<Source> {
        if let Some(rest) = reference.strip_prefix("oci:") {
            let (path, tag) = rest.split_once(':').context("oci: needs a folder and a tag: oci:DIR:TAG")?;
            return Ok(Source::Layout(PathBuf::from(path), tag.to_string()));
        }
        for start in ["docker-archive:", "oci-archive:"] {
            if let Some(rest) = reference.strip_prefix(start) {
                return Ok(Source::Archive(PathBuf::from(rest.split(':').next().unwrap_or(rest))));
            }
        }
        if reference.starts_with("docker://") {
            return Ok(Source::Registry(reference.to_string()));
        }
        if reference.ends_with(".tar") || reference.ends_with(".tar.gz") {
            return Ok(Source::Archive(PathBuf::from(reference)));
        }
        Ok(Source::Layout(layout.to_path_buf(), reference.to_string()))
    }
}

/// Runs skopeo; what it says on standard error is part of the error.
pub fn skopeo(arguments: &[&str]) -> Result<String> {
    let missing = "skopeo is needed for registries and is not here (Debian: apt-get install skopeo)";
    let output = Command::new("skopeo").args(arguments).output().context(missing)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "skopeo {}: {}",
            arguments.first().unwrap_or(&""),
            said.trim().lines().last().unwrap_or("failed")
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a copy by skopeo is told besides the two ends.
pub fn copy_arguments(plain_http: bool, side: &str) -> Vec<String> {
    let mut words = vec!["copy".to_string(), "--quiet".to_string(), "--insecure-policy".to_string()];
    if plain_http {
        words.push(format!("--{side}-tls-verify=false"));
    }
    words
}

/// Fetches from a registry into a new layout; the tag there.
pub fn fetch(reference: &str, plain_http: bool, into: &Path) -> Result<String> {
    let tag = reference.rsplit('/').next().unwrap_or(reference).to_string();
    let tag = if tag.contains(':') { tag } else { format!("{tag}:latest") };
    copy(reference, &format!("oci:{}:{tag}", into.display()), plain_http, "src")?;
    Ok(tag)
}

/// Copies one image by skopeo.
pub fn copy(from: &str, to: &str, plain_http: bool, side: &str) -> Result<()> {
    let mut words = copy_arguments(plain_http, side);
    words.extend([from.to_string(), to.to_string()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    skopeo(&words).map(drop)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ArchiveEntry {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// Unpacks an archive beside and makes a layout of it; the tag or digest of its image.
pub fn open_archive(archive: &Path, into: &Path) -> Result<(PathBuf, String)> {
    let said = || archive.display().to_string();
    let folder = into.join("archive");
    unpack_archive(archive, &folder).with_context(said)?;
    if folder.join("oci-layout").exists() {
        let layout = open_layout(&folder)?;
        let [entry] = &layout.index().manifests[..] else {
            bail!("{} holds {} images, one is needed", archive.display(), layout.index().manifests.len())
        };
        let reference = entry.digest.clone();
        return Ok((folder, reference));
    }
    let manifest = folder.join("manifest.json");
    let bytes =
        std::fs::read(&manifest).with_context(|| format!("{}: no manifest.json in it", archive.display()))?;
    let entries: Vec<ArchiveEntry> = serde_json::from_slice(&bytes).with_context(said)?;
    let [entry] = &entries[..] else {
        bail!("{} holds {} images, one is needed", archive.display(), entries.len())
    };
    let tag = entry.repo_tags.iter().flatten().next().cloned();
    from_docker(&folder, entry, &into.join("layout"), tag.as_deref()).with_context(said)
}

fn inside(folder: &Path, name: &str) -> Result<PathBuf> {
    if !is_inside(name) {
        bail!("{name:?} leads out of the archive");
    }
    Ok(folder.join(name))
}

fn unpack_archive(archive: &Path, folder: &Path) -> Result<()> {
    let mut reader = tar::Archive::new(std::io::BufReader::new(std::fs::File::open(archive)?));
    for entry in reader.entries()? {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        // Links only give old names to layers that are there under their digest.
        if entry.header().entry_type() != tar::EntryType::Regular {
            continue;
        }
        let path = inside(folder, name.trim_start_matches("./"))?;
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::io::copy(&mut entry, &mut std::fs::File::create(path)?)?;
    }
    Ok(())
}

/// Makes a layout of an unpacked docker archive: layers stay plain, and what the labels say becomes annotations again.
fn from_docker(
    folder: &Path,
    entry: &ArchiveEntry,
    into: &Path,
    tag: Option<&str>,
) -> Result<(PathBuf, String)> {
    let bytes = std::fs::read(inside(folder, &entry.config)?).context("the configuration")?;
    let named = entry.config.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
    if Digest::from_hex(named) != Some(hash(&bytes)) {
        bail!("the configuration does not have the digest that it is named by");
    }
    let config: ImageConfig = serde_json::from_slice(&bytes).context("the configuration")?;
    if config.rootfs.diff_ids.len() != entry.layers.len() {
        bail!("manifest and configuration have other numbers of layers");
    }
    let mut layout = open_layout_locked(into)?;
    let mut layers = Vec::new();
    for (name, diff_id) in entry.layers.iter().zip(&config.rootfs.diff_ids) {
        let path = inside(folder, name)?;
        let mut file = std::fs::File::open(&path).with_context(|| name.clone())?;
        let digest = bem_image::layout::read_digest(diff_id).context("no digest of SHA-256")?;
        let wanted = descriptor(PLAIN_LAYER_TYPE, &digest, file.metadata()?.len());
        layout.put_stream(&wanted, &mut file)?;
        layers.push(wanted);
    }
    let manifest = Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST_TYPE.to_string()),
        artifact_type: None,
        config: layout.put(CONFIG_TYPE, &bytes)?,
        layers,
        subject: None,
        annotations: config.config.labels.clone(),
    };
    let manifest = layout.put(MANIFEST_TYPE, &to_json(&manifest))?;
    layout.list(vec![listed(&manifest, tag, None)])?;
    Ok((into.to_path_buf(), manifest.digest))
}

/// Copies an image with its statements from one layout into another; the digest.
pub fn import(from: &Path, reference: &str, into: &Path, tag: &str) -> Result<Digest> {
    let mut source = open_layout(from)?;
    let entry = source.resolve(reference)?.clone();
    let found = super::verify_image(&mut source, &entry)?;
    let mut layout = open_layout_locked(into)?;
    for layer in &found.manifest.layers {
        copy_blob(&mut source, &mut layout, layer)?;
    }
    copy_blob(&mut source, &mut layout, &found.manifest.config)?;
    let manifest = descriptor(MANIFEST_TYPE, &found.digest, entry.size);
    copy_blob(&mut source, &mut layout, &manifest)?;
    layout.list(vec![listed(&manifest, Some(tag), None)])?;
    Ok(found.digest)
}

/// Copies statements about an image from one layout into another; their signatures are checked.
pub fn import_statements(from: &Path, into: &Path, about: &Digest) -> Result<()> {
    let (mut source, mut layout) = (open_layout(from)?, open_layout_locked(into)?);
    promotions(&mut source)?;
    signatures(&mut source)?;
    for entry in source.index().manifests.clone() {
        let found = source.read(&entry)?;
        let Some(kind) = found.manifest.artifact_type.clone() else { continue };
        let is_about = found.manifest.subject.as_ref().is_some_and(|subject| subject.digest == spell(about));
        let Some(layer) = found.manifest.layers.first().filter(|_| is_about) else { continue };
        let statement = Statement::from_signed(&source.read_blob(layer)?)?;
        let tag = match statement.serial {
            Some(serial) => format!("promotion-{serial}"),
            None => signature_tag(about),
        };
        for blob in found.manifest.layers.iter().chain([&found.manifest.config]) {
            copy_blob(&mut source, &mut layout, blob)?;
        }
        let manifest = descriptor(MANIFEST_TYPE, &found.digest, entry.size);
        copy_blob(&mut source, &mut layout, &manifest)?;
        layout.list(vec![listed(&manifest, Some(&tag), Some(&kind))])?;
    }
    Ok(())
}

fn copy_blob(
    source: &mut bem_image::layout::Layout<crate::file_store::FileStore>,
    layout: &mut bem_image::layout::Layout<crate::file_store::FileStore>,
    wanted: &bem_image::model::Descriptor,
) -> Result<()> {
    let digest = bem_image::layout::digest_of(wanted)?;
    let name = bem_image::layout::blob_name(&digest);
    let mut reader = bem_image::layer::StoreReader::open(source.store_mut(), &name)?;
    layout.put_stream(wanted, &mut reader).with_context(|| spell(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_say_where_an_image_is() {
        let parse = |text: &str| Source::parse(text, Path::new("images")).unwrap();
        assert_eq!(parse("stable"), Source::Layout("images".into(), "stable".to_string()));
        assert_eq!(parse("oci:dir:a:b"), Source::Layout("dir".into(), "a:b".to_string()));
        assert_eq!(parse("docker-archive:x.tar:a:b"), Source::Archive("x.tar".into()));
        assert_eq!(parse("saved.tar"), Source::Archive("saved.tar".into()));
        assert_eq!(parse("docker://h/n:t"), Source::Registry("docker://h/n:t".to_string()));
        assert!(Source::parse("oci:dir", Path::new("images")).is_err());
    }
}
