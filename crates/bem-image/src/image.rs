//! Base images and state images: what is in them, how they are started, and what their manifests say.
//!
//! A state image is a base image with one layer more: the ledger up to a signed checkpoint, under `/var/lib/bem`, and the
//! configuration under `/etc/bem`. Head, checkpoint, gate verdict and versions are annotations of the manifest. Must not know
//! where files come from. Clauses: IMG-1, IMG-2; decisions D-19, D-85.

use crate::ImageError;
use crate::layer::LayerFiles;
use crate::layout::{Found, Layout, listed, spell, to_json};
use crate::limits::TAGS_A_MINUTE_MAX;
use crate::model::{
    Annotations, BASE_DIGEST, BASE_NAME, CONFIG_TYPE, Descriptor, ImageConfig, Listed, MANIFEST_TYPE,
    Manifest, RootFs, RunConfig,
};
use crate::tag::{Minute, brain_tag};
use bem_base::digest::Digest;
use bem_ledger::checkpoint::SignedCheckpoint;
use bem_ledger::store::Store;
use std::collections::BTreeMap;

/// Where the state lies in an image.
pub const STATE_PATH: &str = "var/lib/bem";
/// Where the configuration lies in an image.
pub const CONFIG_PATH: &str = "etc/bem";
/// Where logs are written.
pub const LOG_PATH: &str = "var/log/bem";
/// Where keys are mounted; never part of an image.
pub const KEYS_PATH: &str = "var/lib/bem-keys";
/// User and group that an image runs as.
pub const OWNER: u32 = 65_532;

/// What the manifest of a state image says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What the state is of: `service` or `run`.
    pub kind: String,
    /// The version of the state's format.
    pub format: u32,
    /// The version of the program that wrote it.
    pub code: String,
    /// What the gate said: `open`, or `forced`.
    pub gate: String,
    /// The checkpoint of the ledger in it, as text.
    pub checkpoint: String,
    /// The chain head of the history that it was restored from without a key, if it was.
    pub origin: Option<Digest>,
}

impl Facts {
    /// The checkpoint, read.
    pub fn signed(&self) -> Result<SignedCheckpoint, ImageError> {
        Ok(SignedCheckpoint::parse(self.checkpoint.as_bytes())?)
    }

    fn annotations(&self) -> Result<Annotations, ImageError> {
        let checkpoint = self.signed()?.checkpoint;
        let mut said = BTreeMap::from([
            ("bem.state.kind", self.kind.clone()),
            ("bem.state.format", self.format.to_string()),
            ("bem.code.version", self.code.clone()),
            ("bem.gate.verdict", self.gate.clone()),
            ("bem.checkpoint", self.checkpoint.clone()),
            ("bem.chain.instance", checkpoint.instance.to_hex()),
            ("bem.chain.entries", checkpoint.size.to_string()),
            ("bem.chain.head", checkpoint.head.digest().to_hex()),
            ("bem.chain.root", checkpoint.root.to_hex()),
        ]);
        if let Some(origin) = &self.origin {
            said.insert("bem.chain.origin", origin.to_hex());
        }
        Ok(said.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }

    /// Reads what a manifest says; an error where it is no state image, or says two different things.
    pub fn of(found: &Found) -> Result<Facts, ImageError> {
        let said = &found.manifest.annotations;
        let name = spell(&found.digest);
        let get = |key: &str| {
            let missing = || ImageError::damaged(&name, format!("no state image: it does not say {key}"));
            said.get(key).cloned().ok_or_else(missing)
        };
        let format = get("bem.state.format")?;
        let facts = Facts {
            kind: get("bem.state.kind")?,
            format: format.parse().map_err(|_| ImageError::damaged(&name, format!("format {format:?}")))?,
            code: get("bem.code.version")?,
            gate: get("bem.gate.verdict")?,
            checkpoint: get("bem.checkpoint")?,
            origin: said.get("bem.chain.origin").and_then(|text| Digest::from_hex(text)),
        };
        let again = facts.annotations()?;
        match again.iter().all(|(key, value)| said.get(key) == Some(value)) {
            true => Ok(facts),
            false => Err(ImageError::damaged(name, "its annotations contradict its checkpoint")),
        }
    }
}

/// The state image that a reference names, with its manifest, its configuration and every layer checked against their digests before
/// anything of it is unpacked or believed.
pub fn find_whole<S: Store>(
    layout: &mut Layout<S>,
    reference: &str,
) -> Result<(Listed, Found, Facts), ImageError> {
    let entry = layout.resolve(reference)?.clone();
    let found = layout.read(&entry)?;
    let facts = Facts::of(&found)?;
    layout.check_layers(&found)?;
    Ok((entry, found, facts))
}

/// Stores a base image under a tag; its manifest.
pub fn put_base<S: Store>(
    layout: &mut Layout<S>,
    layers: Vec<LayerFiles<'_>>,
    architecture: &str,
    run: RunConfig,
    (tag, code): (&str, &str),
) -> Result<Descriptor, ImageError> {
    let packed = layers.into_iter().map(|files| layout.put_layer(files)).collect::<Result<Vec<_>, _>>()?;
    let said = [
        ("org.opencontainers.image.title", "BEM, the Boolean Expert Machine"),
        ("org.opencontainers.image.licenses", "Apache-2.0"),
        ("bem.code.version", code),
    ];
    let annotations = said.map(|(key, value)| (key.to_string(), value.to_string())).into();
    let (layers, diff_ids): (Vec<Descriptor>, Vec<Digest>) = packed.into_iter().unzip();
    let config = image_config(architecture, run, diff_ids.iter().map(spell).collect());
    let manifest = put_manifest(layout, &config, layers, annotations)?;
    layout.list(vec![listed(&manifest, Some(tag), None)])?;
    Ok(manifest)
}

fn image_config(architecture: &str, run: RunConfig, diff_ids: Vec<String>) -> ImageConfig {
    ImageConfig {
        architecture: architecture.to_string(),
        os: "linux".to_string(),
        config: run,
        rootfs: RootFs { kind: "layers".to_string(), diff_ids },
    }
}

fn put_manifest<S: Store>(
    layout: &mut Layout<S>,
    config: &ImageConfig,
    layers: Vec<Descriptor>,
    annotations: Annotations,
) -> Result<Descriptor, ImageError> {
    let config = layout.put(CONFIG_TYPE, &to_json(config))?;
    let manifest = Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST_TYPE.to_string()),
        artifact_type: None,
        config,
        layers,
        subject: None,
        annotations,
    };
    layout.put(MANIFEST_TYPE, &to_json(&manifest))
}

/// Stores a state image on a base image, without a tag; its manifest. Nothing of it depends on the time or on where files lay.
pub fn put_state<S: Store>(
    layout: &mut Layout<S>,
    base: &Found,
    base_tag: &str,
    files: LayerFiles<'_>,
    facts: &Facts,
) -> Result<Descriptor, ImageError> {
    let mut annotations = facts.annotations()?;
    annotations.insert(BASE_DIGEST.to_string(), spell(&base.digest));
    annotations.insert(BASE_NAME.to_string(), base_tag.to_string());
    let (layer, diff_id) = layout.put_layer(files)?;
    let (mut layers, mut config) = (base.manifest.layers.clone(), base.config.clone());
    layers.push(layer);
    config.rootfs.diff_ids.push(spell(&diff_id));
    config.config.labels = annotations.clone();
    put_manifest(layout, &config, layers, annotations)
}

/// The tag of this minute that comes next, or one that this manifest has already. A number whose image was pruned does not come
/// again: the greater number is always the newer image.
pub fn free_tag<S: Store>(layout: &Layout<S>, minute: Minute, digest: &str) -> Result<String, ImageError> {
    let taken = |tag: &str| layout.index().manifests.iter().find(|listed| listed.tag() == Some(tag));
    let last =
        (0..TAGS_A_MINUTE_MAX).rev().find_map(|count| Some((count, taken(&brain_tag(minute, count))?)));
    match last {
        None => Ok(brain_tag(minute, 0)),
        Some((count, listed)) if listed.digest == digest => Ok(brain_tag(minute, count)),
        Some((count, _)) if count + 1 < TAGS_A_MINUTE_MAX => Ok(brain_tag(minute, count + 1)),
        Some(_) => Err(ImageError::Refused(format!("{TAGS_A_MINUTE_MAX} snapshots in one minute"))),
    }
}
