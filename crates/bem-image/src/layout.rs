//! A layout: blobs under their digests and an index of tags, each written aside, synced and renamed, the index last.
//!
//! Whatever is cut off, the index on disk is whole and everything that it names is there; blobs that nothing names are collected
//! later. The index carries a digest of itself, because nothing else vouches for it: an index that BEM wrote is accepted byte for
//! byte as it would be written. One that another program wrote carries none and is read strictly. One writer at a time; whoever
//! supplies the store holds the lock. Clauses: IMG-2, IMG-4, IMG-6; decision D-86.

use crate::ImageError;
use crate::layer::{LayerFiles, Packed, StoreReader, Taker, pack, unpack};
use crate::limits::{JSON_BYTES_MAX, LAYERS_MAX, MANIFESTS_MAX};
use crate::model::{
    Annotations, CONFIG_TYPE, Descriptor, INDEX_TYPE, ImageConfig, Index, LAYER_TYPE, Listed, MANIFEST_TYPE,
    Manifest, PLAIN_LAYER_TYPE, REF_NAME,
};
use bem_base::digest::{Digest, hash};
use bem_ledger::StoreError;
use bem_ledger::store::Store;

const MARKER_NAME: &str = "oci-layout";
const MARKER: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
const INDEX_NAME: &str = "index.json";
const LAYER_ASIDE: &str = "layer.tmp";
/// The annotation of an index that holds its digest.
const INDEX_DIGEST: &str = "bem.index.sha256";

/// The name of a blob's file.
pub fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{digest}")
}

/// A digest as OCI spells it.
pub fn spell(digest: &Digest) -> String {
    format!("sha256:{digest}")
}

/// Reads a digest as OCI spells it.
pub fn read_digest(text: &str) -> Option<Digest> {
    Digest::from_hex(text.strip_prefix("sha256:")?)
}

/// Canonical JSON: keys of structs in their order, of maps sorted, no spaces.
pub fn to_json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs with text keys are JSON")
}

/// A layout over a store.
pub struct Layout<S> {
    store: S,
    index: Index,
}

/// An image whose manifest and configuration were read and have their digests; its layers were not looked at yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Digest of the manifest.
    pub digest: Digest,
    /// The manifest.
    pub manifest: Manifest,
    /// The configuration.
    pub config: ImageConfig,
}

impl<S: Store> Layout<S> {
    /// Opens a layout for reading.
    pub fn open(mut store: S) -> Result<Layout<S>, ImageError> {
        let marker = match store.read_all(MARKER_NAME, 4_096) {
            Err(StoreError::Missing { .. }) => {
                return Err(ImageError::NotALayout("there is no oci-layout file".to_string()));
            }
            other => other?,
        };
        let parsed: Option<serde_json::Value> = serde_json::from_slice(&marker).ok();
        let version = parsed.as_ref().and_then(|value| value.as_object()).filter(|object| object.len() == 1);
        if version.and_then(|object| object.get("imageLayoutVersion")).and_then(|value| value.as_str())
            != Some("1.0.0")
        {
            return Err(ImageError::NotALayout("oci-layout does not say version 1.0.0".to_string()));
        }
        let index = read_index(&mut store)?;
        // Ours are written in one way only; a marker with spaces beside an index of ours was changed.
        if index.annotations.contains_key(INDEX_DIGEST) && marker != MARKER {
            return Err(ImageError::damaged(MARKER_NAME, "it is not as it was written"));
        }
        Ok(Layout { store, index })
    }

    /// Opens a layout for writing and makes it if it is not there; leftovers of a crash are removed.
    pub fn open_or_create(mut store: S) -> Result<Layout<S>, ImageError> {
        let names = store.list()?;
        let has = |name: &str| names.iter().any(|found| found == name);
        for name in names.iter().filter(|name| name.ends_with(".tmp")) {
            store.remove(name)?;
        }
        if !has(INDEX_NAME) {
            let is_foreign = |name: &String| {
                !name.ends_with(".tmp") && name != MARKER_NAME && !name.starts_with("blobs/sha256/")
            };
            if let Some(other) = names.iter().find(|name| is_foreign(name)) {
                let reason = format!("the folder holds {other} and no index.json");
                return Err(ImageError::NotALayout(reason));
            }
            let empty = Index {
                schema_version: 2,
                media_type: Some(INDEX_TYPE.to_string()),
                manifests: Vec::new(),
                annotations: Annotations::new(),
            };
            put_aside(&mut store, MARKER_NAME, MARKER)?;
            // A layout has its marker before it has an index, also after a loss of power.
            store.sync_directory()?;
            put_aside(&mut store, INDEX_NAME, &index_bytes(&empty))?;
            store.sync_directory()?;
        }
        Layout::open(store)
    }

    /// What the layout holds.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The store underneath.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Gives the store back.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Replaces the index in one step; everything that it names is durable before.
    pub fn publish(&mut self, mut index: Index) -> Result<(), ImageError> {
        if MANIFESTS_MAX < index.manifests.len() {
            let reason =
                format!("a layout holds at most {MANIFESTS_MAX} manifests: bem image prune removes old ones");
            return Err(ImageError::Refused(reason));
        }
        index.annotations.remove(INDEX_DIGEST);
        index.media_type = Some(INDEX_TYPE.to_string());
        self.store.sync_directory()?;
        put_aside(&mut self.store, INDEX_NAME, &index_bytes(&index))?;
        self.store.sync_directory()?;
        self.index = read_index(&mut self.store)?;
        Ok(())
    }

    /// Gives a manifest a tag, or several entries of an index at once: an entry of the same tag is replaced.
    pub fn list(&mut self, entries: Vec<Listed>) -> Result<(), ImageError> {
        let mut index = self.index.clone();
        for entry in entries {
            index.manifests.retain(|listed| {
                let same_tag = entry.tag().is_some() && listed.tag() == entry.tag();
                let same_untagged =
                    entry.tag().is_none() && listed.tag().is_none() && listed.digest == entry.digest;
                !same_tag && !same_untagged
            });
            index.manifests.push(entry);
        }
        index.manifests.sort_by(|left, right| (left.tag(), &left.digest).cmp(&(right.tag(), &right.digest)));
        self.publish(index)
    }

    /// Stores bytes under their digest. A blob that is there and whole is left alone.
    pub fn put(&mut self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, ImageError> {
        let digest = hash(bytes);
        let name = blob_name(&digest);
        if self.store.read_all(&name, bytes.len() as u64).ok().as_deref() != Some(bytes) {
            put_aside(&mut self.store, &name, bytes)?;
        } else {
            // It may be seen and yet not be durable, if whoever wrote it was cut off.
            self.store.sync_file(&name)?;
        }
        Ok(descriptor(media_type, &digest, bytes.len() as u64))
    }

    /// Packs files into a layer and stores it; its descriptor and the digest of the plain archive.
    pub fn put_layer(&mut self, files: LayerFiles<'_>) -> Result<(Descriptor, Digest), ImageError> {
        let Packed { digest, size, diff_id } = pack(&mut self.store, LAYER_ASIDE, files)?;
        self.store.sync_file(LAYER_ASIDE)?;
        self.store.rename(LAYER_ASIDE, &blob_name(&digest))?;
        Ok((descriptor(LAYER_TYPE, &digest, size), diff_id))
    }

    /// Stores a blob that is read from elsewhere, if it has this digest and size.
    pub fn put_stream(
        &mut self,
        wanted: &Descriptor,
        from: &mut dyn std::io::Read,
    ) -> Result<(), ImageError> {
        let digest = digest_of(wanted)?;
        let aside = LAYER_ASIDE;
        let mut writer =
            crate::layer::Counted::new(crate::layer::StoreWriter::create(&mut self.store, aside)?);
        let fail =
            |error: std::io::Error| ImageError::Pack { what: spell(&digest), reason: error.to_string() };
        std::io::copy(from, &mut writer).map_err(fail)?;
        std::io::Write::flush(&mut writer).map_err(fail)?;
        let (_, found, size) = writer.finish();
        if (found, size) != (digest, wanted.size) {
            return Err(ImageError::damaged(spell(&digest), "the content does not have this digest"));
        }
        self.store.sync_file(aside)?;
        Ok(self.store.rename(aside, &blob_name(&digest))?)
    }

    /// The entry of the index that a reference names: a tag, the part of one behind its colon where that is clear, or a digest.
    pub fn resolve(&self, reference: &str) -> Result<&Listed, ImageError> {
        let all = || self.index.manifests.iter();
        let missing = || ImageError::Missing(reference.to_string());
        if let Some(found) = all().find(|listed| listed.tag() == Some(reference)) {
            return Ok(found);
        }
        if let Some(found) = all().find(|listed| listed.digest == reference) {
            return Ok(found);
        }
        let behind = |listed: &&Listed| {
            let tag = listed.tag().and_then(|tag| tag.split_once(':'));
            tag.is_some_and(|(_, behind)| behind == reference)
        };
        let mut found = all().filter(behind);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(missing()),
        }
    }

    /// Reads the manifest and configuration that an entry names.
    pub fn read(&mut self, listed: &Listed) -> Result<Found, ImageError> {
        if listed.media_type != MANIFEST_TYPE {
            let reason = format!("of media type {}, not {MANIFEST_TYPE}", listed.media_type);
            return Err(ImageError::damaged(&listed.digest, reason));
        }
        let named = Descriptor {
            media_type: listed.media_type.clone(),
            digest: listed.digest.clone(),
            size: listed.size,
            annotations: Annotations::new(),
        };
        let manifest: Manifest = self.read_json(&named)?;
        if manifest.schema_version != 2 || LAYERS_MAX < manifest.layers.len() {
            return Err(ImageError::damaged(
                &listed.digest,
                "not a manifest of version 2 with at most 127 layers",
            ));
        }
        if manifest.config.media_type != CONFIG_TYPE {
            let reason = format!("its configuration is of media type {}", manifest.config.media_type);
            return Err(ImageError::damaged(&listed.digest, reason));
        }
        let config: ImageConfig = self.read_json(&manifest.config)?;
        if config.rootfs.diff_ids.len() != manifest.layers.len() {
            return Err(ImageError::damaged(
                &listed.digest,
                "manifest and configuration have other numbers of layers",
            ));
        }
        Ok(Found { digest: digest_of(&named)?, manifest, config })
    }

    /// A small blob, with its digest and size checked.
    pub fn read_blob(&mut self, named: &Descriptor) -> Result<Vec<u8>, ImageError> {
        let digest = digest_of(named)?;
        let name = blob_name(&digest);
        let bytes = match self.store.read_all(&name, JSON_BYTES_MAX) {
            Err(StoreError::Missing { .. }) => return Err(ImageError::damaged(name, "the blob is missing")),
            other => other?,
        };
        if bytes.len() as u64 != named.size {
            let reason = format!("{} bytes, {} are announced", bytes.len(), named.size);
            return Err(ImageError::damaged(name, reason));
        }
        match hash(&bytes) == digest {
            true => Ok(bytes),
            false => Err(ImageError::damaged(name, "the content does not have this digest")),
        }
    }

    fn read_json<T: serde::de::DeserializeOwned>(&mut self, named: &Descriptor) -> Result<T, ImageError> {
        let bytes = self.read_blob(named)?;
        serde_json::from_slice(&bytes).map_err(|error| ImageError::damaged(&named.digest, error.to_string()))
    }

    fn layer_reader(&mut self, named: &Descriptor, name: &str) -> Result<StoreReader<'_, S>, ImageError> {
        let reader = match StoreReader::open(&mut self.store, name) {
            Err(ImageError::Store(StoreError::Missing { .. })) => {
                return Err(ImageError::damaged(name, "the blob is missing"));
            }
            other => other?,
        };
        match reader.length() == named.size {
            true => Ok(reader),
            false => {
                let reason = format!("{} bytes, {} are announced", reader.length(), named.size);
                Err(ImageError::damaged(name, reason))
            }
        }
    }

    /// Checks the digests of all layers as they are stored, before anything of them is unpacked.
    pub fn check_layers(&mut self, found: &Found) -> Result<(), ImageError> {
        for named in &found.manifest.layers {
            let digest = digest_of(named)?;
            let name = blob_name(&digest);
            let mut counted = crate::layer::Counted::new(std::io::sink());
            let copied = std::io::copy(&mut self.layer_reader(named, &name)?, &mut counted);
            copied.map_err(|error| ImageError::Pack { what: name.clone(), reason: error.to_string() })?;
            if counted.finish().1 != digest {
                return Err(ImageError::damaged(name, "the content does not have this digest"));
            }
        }
        Ok(())
    }

    /// Reads one layer of an image to its end and checks both of its digests.
    pub fn unpack_layer(
        &mut self,
        found: &Found,
        place: usize,
        taker: &mut dyn Taker,
    ) -> Result<(), ImageError> {
        let named = &found.manifest.layers[place];
        let digest = digest_of(named)?;
        let is_gzipped = match named.media_type.as_str() {
            LAYER_TYPE => true,
            PLAIN_LAYER_TYPE => false,
            other => {
                return Err(ImageError::damaged(&named.digest, format!("a layer of media type {other}")));
            }
        };
        let name = blob_name(&digest);
        let mut reader = self.layer_reader(named, &name)?;
        let packed = unpack(&mut reader, is_gzipped, taker)?;
        if packed.digest != digest {
            return Err(ImageError::damaged(name, "the content does not have this digest"));
        }
        if Some(packed.diff_id) != read_digest(&found.config.rootfs.diff_ids[place]) {
            return Err(ImageError::damaged(
                name,
                "its archive does not have the digest that the configuration names",
            ));
        }
        Ok(())
    }
}

/// A descriptor.
pub fn descriptor(media_type: &str, digest: &Digest, size: u64) -> Descriptor {
    Descriptor {
        media_type: media_type.to_string(),
        digest: spell(digest),
        size,
        annotations: Annotations::new(),
    }
}

/// The digest that a descriptor names.
pub fn digest_of(named: &Descriptor) -> Result<Digest, ImageError> {
    read_digest(&named.digest).ok_or_else(|| ImageError::damaged(&named.digest, "no digest of SHA-256"))
}

/// An entry of an index for this manifest.
pub fn listed(manifest: &Descriptor, tag: Option<&str>, artifact_type: Option<&str>) -> Listed {
    let annotations = tag.map(|tag| (REF_NAME.to_string(), tag.to_string())).into_iter().collect();
    Listed {
        media_type: MANIFEST_TYPE.to_string(),
        digest: manifest.digest.clone(),
        size: manifest.size,
        artifact_type: artifact_type.map(str::to_string),
        annotations,
        platform: None,
    }
}

fn put_aside<S: Store>(store: &mut S, name: &str, bytes: &[u8]) -> Result<(), ImageError> {
    let aside = format!("{}.tmp", name.rsplit('/').next().unwrap_or(name));
    store.create(&aside)?;
    store.write(&aside, 0, bytes)?;
    store.sync_file(&aside)?;
    Ok(store.rename(&aside, name)?)
}

/// The bytes of an index with its digest in it.
fn index_bytes(index: &Index) -> Vec<u8> {
    let mut index = index.clone();
    index.annotations.remove(INDEX_DIGEST);
    let digest = hash(&to_json(&index)).to_hex();
    index.annotations.insert(INDEX_DIGEST.to_string(), digest);
    to_json(&index)
}

fn read_index<S: Store>(store: &mut S) -> Result<Index, ImageError> {
    let bytes = match store.read_all(INDEX_NAME, JSON_BYTES_MAX) {
        Err(StoreError::Missing { .. }) => {
            return Err(ImageError::NotALayout("there is no index.json".to_string()));
        }
        other => other?,
    };
    let damaged = |reason: String| ImageError::damaged(INDEX_NAME, reason);
    let index: Index = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if index.schema_version != 2 || MANIFESTS_MAX < index.manifests.len() {
        return Err(damaged(format!("not version 2, or more than {MANIFESTS_MAX} manifests")));
    }
    match index.annotations.is_empty() {
        false if index_bytes(&index) == bytes => Ok(index),
        false => Err(damaged(
            "it does not have the digest that it carries: it is damaged, or another program has written it"
                .to_string(),
        )),
        // Another program's index carries no digest; nothing that it says besides tags and digests is used.
        true => Ok(index),
    }
}
