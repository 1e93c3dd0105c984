//! Signed statements about images: that somebody vouches for one, and that one is now `stable`.
//!
//! A statement names digest and key, a promotion also tag and serial; it is kept as a referrer of the image. The serial grows
//! with every promotion, so that whoever remembers it notices an older `stable`. Must not know where keys lie.
//! Clauses: IMG-4, IMG-6; decision D-87.

use crate::ImageError;
use crate::layout::{Found, Layout, listed, read_digest, spell, to_json};
use crate::model::{CONFIG_TYPE, Descriptor, ImageConfig, MANIFEST_TYPE, Manifest, RootFs, RunConfig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bem_base::digest::{Digest, hash};
use bem_ledger::checkpoint::{Signer, verify_statement};
use bem_ledger::store::Store;
use serde::{Deserialize, Serialize};

/// Artifact type of a signature.
pub const SIGNATURE_TYPE: &str = "application/vnd.bem.signature.v1+json";
/// Artifact type of a promotion.
pub const PROMOTION_TYPE: &str = "application/vnd.bem.promotion.v1+json";

/// What is said about an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The manifest, as OCI spells digests.
    pub digest: String,
    /// The tag that a promotion gives; none in a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The number of the promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The public key, in hexadecimal.
    pub key: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    statement: Statement,
    signature: String,
}

impl Statement {
    /// The key that signed it.
    pub fn public_key(&self) -> Option<[u8; 32]> {
        Digest::from_hex(&self.key).map(|key| *key.as_bytes())
    }

    fn to_signed(&self, signer: &Signer) -> Vec<u8> {
        let signature = STANDARD.encode(signer.sign_statement(&to_json(self)));
        to_json(&Signed { statement: self.clone(), signature })
    }

    /// Reads a statement whose signature holds.
    pub fn from_signed(bytes: &[u8]) -> Result<Statement, ImageError> {
        let damaged = |reason: String| ImageError::damaged("a statement", reason);
        let signed: Signed = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if to_json(&signed) != bytes {
            return Err(damaged("it is not spelled as it would be written".to_string()));
        }
        let key = signed.statement.public_key().ok_or_else(|| damaged("no public key".to_string()))?;
        let signature = STANDARD.decode(&signed.signature).map_err(|error| damaged(error.to_string()))?;
        verify_statement(&key, &to_json(&signed.statement), &signature)?;
        Ok(signed.statement)
    }
}

/// Stores a statement as a referrer; its manifest.
fn put<S: Store>(
    layout: &mut Layout<S>,
    about: &Descriptor,
    kind: &str,
    bytes: &[u8],
) -> Result<Descriptor, ImageError> {
    let layer = layout.put(kind, bytes)?;
    let config = ImageConfig {
        architecture: "amd64".to_string(),
        os: "linux".to_string(),
        config: RunConfig::default(),
        rootfs: RootFs { kind: "layers".to_string(), diff_ids: vec![spell(&hash(bytes))] },
    };
    let manifest = Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST_TYPE.to_string()),
        artifact_type: Some(kind.to_string()),
        config: layout.put(CONFIG_TYPE, &to_json(&config))?,
        layers: vec![layer],
        subject: Some(about.clone()),
        annotations: Default::default(),
    };
    layout.put(MANIFEST_TYPE, &to_json(&manifest))
}

/// The tag under which signatures of an image travel through a registry.
pub fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{digest}.sig")
}

/// Signs an image.
pub fn sign<S: Store>(layout: &mut Layout<S>, about: &Descriptor, signer: &Signer) -> Result<(), ImageError> {
    let key = Digest::from_bytes(signer.public_key()).to_hex();
    let statement = Statement { digest: about.digest.clone(), tag: None, serial: None, key };
    let manifest = put(layout, about, SIGNATURE_TYPE, &statement.to_signed(signer))?;
    let digest = crate::layout::digest_of(about)?;
    layout.list(vec![listed(&manifest, Some(&signature_tag(&digest)), Some(SIGNATURE_TYPE))])
}

/// Makes an image the holder of a tag, under the next serial; the serial. Image, statement and tag change in one step.
pub fn promote<S: Store>(
    layout: &mut Layout<S>,
    about: &Descriptor,
    tag: &str,
    signer: &Signer,
) -> Result<u64, ImageError> {
    let last = promotions(layout)?.iter().filter_map(|statement| statement.serial).max();
    let serial = last.unwrap_or(0) + 1;
    let key = Digest::from_bytes(signer.public_key()).to_hex();
    let statement =
        Statement { digest: about.digest.clone(), tag: Some(tag.to_string()), serial: Some(serial), key };
    let manifest = put(layout, about, PROMOTION_TYPE, &statement.to_signed(signer))?;
    let entries = vec![
        listed(&manifest, Some(&format!("promotion-{serial}")), Some(PROMOTION_TYPE)),
        listed(about, Some(tag), None),
    ];
    layout.list(entries)?;
    Ok(serial)
}

/// Every statement of one kind in a layout; one whose signature does not hold is an error.
fn statements<S: Store>(layout: &mut Layout<S>, kind: &str) -> Result<Vec<Statement>, ImageError> {
    let entries = layout.index().manifests.clone();
    let mut all = Vec::new();
    for entry in entries {
        // A registry keeps the artifact type in the manifest only, so that the manifest is asked where the tag says so.
        let tag = entry.tag().unwrap_or_default();
        let may_be = entry.artifact_type.as_deref() == Some(kind)
            || tag.ends_with(".sig")
            || tag.starts_with("promotion-");
        if !may_be {
            continue;
        }
        let found: Found = layout.read(&entry)?;
        if found.manifest.artifact_type.as_deref() != Some(kind) {
            continue;
        }
        let layer = found.manifest.layers.first();
        let layer = layer.ok_or_else(|| ImageError::damaged(&entry.digest, "a statement without a layer"))?;
        let statement = Statement::from_signed(&layout.read_blob(layer)?)?;
        let about = found.manifest.subject.map(|subject| subject.digest);
        if about.is_some_and(|about| about != statement.digest) {
            return Err(ImageError::damaged(
                &entry.digest,
                "a statement about another image than its subject",
            ));
        }
        all.push(statement);
    }
    Ok(all)
}

/// Every promotion in a layout.
pub fn promotions<S: Store>(layout: &mut Layout<S>) -> Result<Vec<Statement>, ImageError> {
    statements(layout, PROMOTION_TYPE)
}

/// Every signature in a layout.
pub fn signatures<S: Store>(layout: &mut Layout<S>) -> Result<Vec<Statement>, ImageError> {
    statements(layout, SIGNATURE_TYPE)
}

/// The promotion that gave this tag to what holds it now. A tag that holds anything else than the newest promotion says is
/// refused, and so is one with an older serial than was seen before.
pub fn check_promoted<S: Store>(
    layout: &mut Layout<S>,
    tag: &str,
    digest: &Digest,
    seen: impl Fn(&str) -> u64,
) -> Result<Statement, ImageError> {
    let all = promotions(layout)?;
    let newest = all
        .into_iter()
        .filter(|statement| statement.tag.as_deref() == Some(tag))
        .max_by_key(|one| one.serial);
    let newest = newest.ok_or_else(|| {
        ImageError::Refused(format!("{tag} was never promoted: there is no statement about it"))
    })?;
    if read_digest(&newest.digest) != Some(*digest) {
        return Err(ImageError::Refused(format!(
            "{tag} is {}, and promotion {} gave it to {}",
            spell(digest),
            newest.serial.unwrap_or(0),
            newest.digest
        )));
    }
    let (serial, known) = (newest.serial.unwrap_or(0), seen(&newest.key));
    if serial < known {
        return Err(ImageError::Refused(format!(
            "{tag} is promotion {serial}, and promotion {known} of the same key was seen before: an older state was put in its place"
        )));
    }
    Ok(newest)
}
