//! The JSON of OCI images, as far as BEM writes and reads it; maps are ordered, so that equal content has equal bytes.
//!
//! An index is read strictly, because no digest vouches for it: unknown keys are refused. Manifests and configurations are named
//! by their digest and may hold more than is read here. Must not know where bytes lie. Clause: IMG-2.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Media type of an index.
pub const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of a configuration.
pub const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a gzipped layer.
pub const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Media type of a plain layer.
pub const PLAIN_LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
/// The annotation of a tag.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation of the base image's manifest.
pub const BASE_DIGEST: &str = "org.opencontainers.image.base.digest";
/// The annotation of the base image's name.
pub const BASE_NAME: &str = "org.opencontainers.image.base.name";

/// Annotations, ordered.
pub type Annotations = BTreeMap<String, String>;

/// What names a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    pub media_type: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Its bytes.
    pub size: u64,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// A manifest in an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Listed {
    /// What it is.
    pub media_type: String,
    /// Its digest.
    pub digest: String,
    /// Its bytes.
    pub size: u64,
    /// What kind of artifact it is, if it is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Its tag and what else is said about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
    /// Which machines it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// Which machines an image is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// The processor.
    pub architecture: String,
    /// The system.
    pub os: String,
}

impl Listed {
    /// Its tag, if it has one.
    pub fn tag(&self) -> Option<&str> {
        self.annotations.get(REF_NAME).map(String::as_str)
    }
}

/// The table of contents of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// The type of an index; some programs leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What the layout holds.
    pub manifests: Vec<Listed>,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// An image or an artifact: its configuration and its layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// The type of a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What kind of artifact it is, if it is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers, the lowest first.
    pub layers: Vec<Descriptor>,
    /// What it is about, if it says something about another manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// How an image is started, and what its layers hash to when they are unpacked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// The processor.
    pub architecture: String,
    /// The system.
    pub os: String,
    /// How it is started.
    #[serde(default)]
    pub config: RunConfig,
    /// Its layers.
    pub rootfs: RootFs,
}

/// How an image is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RunConfig {
    /// Who it runs as.
    pub user: String,
    /// `NAME=value`.
    pub env: Vec<String>,
    /// What runs unless something else is named.
    pub cmd: Vec<String>,
    /// Where it runs.
    pub working_dir: String,
    /// Folders that belong to no image.
    pub volumes: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    /// What stops it.
    pub stop_signal: String,
    /// What is said about it: the same as the manifest's annotations, for forms of images that have none.
    pub labels: Annotations,
}

/// The layers of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of the layers as plain archives.
    pub diff_ids: Vec<String>,
}
