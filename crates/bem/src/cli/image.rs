//! `bem image`: a machine's state as container images in an OCI layout. The work is done by `images` and `bem-image`.
//!
//! Clauses: IMG-1 to IMG-6.

use super::Answer;
use crate::images::migrate::Migrated;
use crate::images::registry::{self, Source};
use crate::images::restore::{Restoring, restore};
use crate::images::secrets::Secrets;
use crate::images::{self, base_tag, format, open_layout, open_layout_locked, stable_tag, verify_image};
use crate::keys;
use anyhow::{Context, Result, bail};
use bem_base::digest::Digest;
use bem_image::gate::{GateLimits, judge};
use bem_image::layout::{descriptor, read_digest};
use bem_image::model::MANIFEST_TYPE;
use bem_image::retain::{Retention, prune};
use bem_image::statement::{promote, promotions, sign, signatures};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};

/// A machine's state as container images: saved, restored, promoted, pruned, moved.
#[derive(Args)]
#[command(after_help = "Example: bem image snapshot --state ads-state --layout images\n\
    Example: bem image restore bem-brain:stable --layout images --out elsewhere\n\
    A layout is a folder that skopeo, umoci and podman read:\n\
    skopeo inspect oci:images:TAG")]
pub struct ImageArguments {
    #[command(subcommand)]
    action: ImageAction,
}

/// The folder of images.
#[derive(Args)]
struct LayoutFolderArgument {
    /// The OCI layout
    #[arg(long, default_value = "./bem-images", value_name = "DIR")]
    layout: PathBuf,
}

#[derive(Subcommand)]
enum ImageAction {
    /// Build the base image of this program: bem-core:0.0.1.
    #[command(after_help = "Example: bem image base --layout images")]
    Base {
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Save a server's or a run's state as an image, if the gate is open.
    #[command(after_help = "Example: bem image snapshot --state ads-state --layout images\n\
        Exit code 1 when the gate is closed; the reasons are printed.")]
    Snapshot {
        /// The folder of the server or run; it may be running
        #[arg(long, default_value = "./bem-state", value_name = "DIR")]
        state: PathBuf,
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// Whatever the gate says; the image says so too
        #[arg(long)]
        force: bool,
        /// Files of keys and tokens whose content must not be found in the image
        #[arg(long, value_name = "FILE")]
        secret: Vec<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show the images of a layout.
    #[command(after_help = "Example: bem image list --layout images --json")]
    List {
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make a state folder of an image.
    #[command(after_help = "Example: bem image restore bem-brain:stable --layout images --out elsewhere\n\
        Example: bem image restore docker-archive:saved.tar --out elsewhere --key key\n\
        REF is a tag or digest of the layout, oci:DIR:TAG, an archive, or\n\
        docker://HOST/NAME:TAG. With --key the same history goes on; without it a new\n\
        one begins that names the old head.")]
    Restore {
        /// Which image
        reference: String,
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// The folder to be made
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The file of the key that signs its history
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// The public key that must have signed or promoted it, in hexadecimal
        #[arg(long, value_name = "KEY")]
        signer: Option<String>,
        /// The registry has no TLS
        #[arg(long)]
        plain_http: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make an image the stable one, by a signed statement with the next serial.
    #[command(after_help = "Example: bem image promote bem-brain:20261116-1033 --layout images")]
    Promote {
        /// Which image
        reference: String,
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// The file of the key that signs statements; made if it is not there [default: the user's]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove old snapshots; promoted ones stay.
    #[command(after_help = "Example: bem image prune --layout images --daily 7 --weekly 8")]
    Prune {
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// Days of which the newest snapshot stays
        #[arg(long, default_value_t = 7, value_name = "N")]
        daily: usize,
        /// Weeks of which the newest snapshot stays
        #[arg(long, default_value_t = 8, value_name = "M")]
        weekly: usize,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Bring a state folder to this program's format; an image of it is saved before.
    #[command(after_help = "Example: bem image migrate --state old-state --layout images\n\
        A history that this program's learner can go on with goes on. Where it cannot, a\n\
        new one begins with the worlds, circuits and logs of the old one, names its\n\
        head, and keeps it as ledger-origin.")]
    Migrate {
        /// The folder of the server or run; it must not be running
        #[arg(long, default_value = "./bem-state", value_name = "DIR")]
        state: PathBuf,
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// The file of the key that signs a new history, if one must begin [default: one of the user's]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
    /// Sign an image's digest.
    #[command(after_help = "Example: bem image sign bem-brain:20261116-1033 --layout images")]
    Sign {
        /// Which image
        reference: String,
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// The file of the key that signs statements; made if it is not there [default: the user's]
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
    /// Copy an image and its statements to a registry, by skopeo.
    #[command(after_help = "Example: bem image push bem-brain:stable docker://HOST/bem-brain:stable\n\
        The login comes from the standard auth file: skopeo login HOST")]
    Push {
        /// Which image
        reference: String,
        /// Where to: docker://HOST/NAME:TAG
        to: String,
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// The registry has no TLS
        #[arg(long)]
        plain_http: bool,
    },
    /// Copy an image and its statements from a registry, by skopeo.
    #[command(after_help = "Example: bem image pull docker://HOST/bem-brain:stable --layout images")]
    Pull {
        /// Where from: docker://HOST/NAME:TAG, oci:DIR:TAG or an archive
        from: String,
        #[command(flatten)]
        at: LayoutFolderArgument,
        /// The registry has no TLS
        #[arg(long)]
        plain_http: bool,
    },
}

/// `bem image`
pub fn run(arguments: &ImageArguments) -> Result<Answer> {
    match &arguments.action {
        ImageAction::Base { at, json } => build_base(&at.layout, *json),
        ImageAction::Snapshot { state, at, force, secret, json } => {
            take(state, &at.layout, *force, secret, *json)
        }
        ImageAction::List { at, json } => list(&at.layout, *json),
        ImageAction::Restore { reference, at, out, key, signer, plain_http, json } => {
            let signer = signer.as_deref().map(public_key).transpose()?;
            let source = Source::parse(reference, &at.layout)?;
            let restoring = Restoring { source, out, key: key.as_deref(), signer, plain_http: *plain_http };
            bring_back(&restoring, reference, *json)
        }
        ImageAction::Promote { reference, at, key, json } => {
            make_stable(reference, &at.layout, key.as_deref(), *json)
        }
        ImageAction::Prune { at, daily, weekly, json } => {
            remove_old(&at.layout, Retention { daily: *daily, weekly: *weekly }, *json)
        }
        ImageAction::Migrate { state, at, key } => migrate(state, &at.layout, key.as_deref()),
        ImageAction::Sign { reference, at, key } => sign_image(reference, &at.layout, key.as_deref()),
        ImageAction::Push { reference, to, at, plain_http } => push(reference, to, &at.layout, *plain_http),
        ImageAction::Pull { from, at, plain_http } => pull(from, &at.layout, *plain_http),
    }
}

fn public_key(text: &str) -> Result<Digest> {
    Digest::from_hex(text)
        .with_context(|| format!("--signer {text:?} is no public key: 64 hexadecimal digits"))
}

fn build_base(layout: &Path, is_json: bool) -> Result<Answer> {
    let mut layout = open_layout_locked(layout)?;
    let tag = base_tag();
    let built = images::build_base(&mut layout, &tag)?;
    let entry = layout.resolve(&tag)?.clone();
    let found = layout.read(&entry)?;
    let size: u64 = found.manifest.layers.iter().map(|layer| layer.size).sum();
    let libraries: Vec<String> = built.libraries.iter().map(|path| path.display().to_string()).collect();
    if is_json {
        say!(
            "{}",
            json!({ "tag": tag, "digest": built.manifest.digest, "bytes": size, "libraries": libraries })
        );
        return Ok(Answer::Yes);
    }
    say!("{tag}  {}  {size} bytes", built.manifest.digest);
    match libraries.is_empty() {
        true => say!("  the program is linked statically and needs no libraries"),
        false => say!("  the program is linked dynamically; with it: {}", libraries.join(", ")),
    }
    Ok(Answer::Yes)
}

/// Why the gate is closed for this folder; a run has no metrics, its audit is its gate.
fn gate_reasons(state: &Path) -> Vec<String> {
    let path = state.join("metrics");
    let file = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
    judge(file.as_deref().map_err(Clone::clone), images::now(), &GateLimits::default())
}

fn take(state: &Path, layout: &Path, force: bool, secret: &[PathBuf], is_json: bool) -> Result<Answer> {
    let view = images::state::StateView::read(state, true)?;
    let reasons = if view.is_service() { gate_reasons(state) } else { Vec::new() };
    if !reasons.is_empty() && !force {
        match is_json {
            true => say!("{}", json!({ "taken": false, "reasons": reasons })),
            false => {
                say!("skipped: the gate is closed");
                reasons.iter().for_each(|reason| say!("  {reason}"));
                say!("  --force takes the snapshot all the same, and the image says so");
            }
        }
        return Ok(Answer::No);
    }
    let more: Vec<&Path> = secret.iter().map(PathBuf::as_path).collect();
    let secrets = Secrets::of(state, &more)?;
    let gate = if reasons.is_empty() { "open" } else { "forced" };
    let mut layout = open_layout_locked(layout)?;
    let taken = images::snapshot(&mut layout, state, gate, &secrets, true)?;
    let checkpoint = taken.facts.signed()?.checkpoint;
    if is_json {
        say!(
            "{}",
            json!({ "taken": true, "tag": taken.tag, "digest": taken.manifest.digest, "gate": gate,
                "entries": checkpoint.size, "head": checkpoint.head.digest().to_hex(), "forks": taken.forks })
        );
    } else {
        say!("{}  {}", taken.tag, taken.manifest.digest);
        say!("  {} entries, head {}, gate {gate}", checkpoint.size, checkpoint.head.digest());
        for fork in &taken.forks {
            say!("  fork: {fork} is of the same history and this state does not go on from it");
        }
    }
    Ok(if taken.forks.is_empty() { Answer::Yes } else { Answer::No })
}

fn list(layout: &Path, is_json: bool) -> Result<Answer> {
    let mut layout = open_layout(layout)?;
    let promoted = promotions(&mut layout)?;
    let signed = signatures(&mut layout)?;
    let mut rows = Vec::new();
    for entry in layout.index().manifests.clone().into_iter().filter(|entry| entry.artifact_type.is_none()) {
        let found = layout.read(&entry)?;
        let size: u64 = found.manifest.layers.iter().map(|layer| layer.size).sum();
        let facts = bem_image::image::Facts::of(&found).ok();
        let checkpoint = facts.as_ref().and_then(|facts| facts.signed().ok()).map(|signed| signed.checkpoint);
        let serials: Vec<u64> =
            promoted.iter().filter(|one| one.digest == entry.digest).filter_map(|one| one.serial).collect();
        let signers: Vec<&str> =
            signed.iter().filter(|one| one.digest == entry.digest).map(|one| one.key.as_str()).collect();
        rows.push(json!({
            "tag": entry.tag(), "digest": entry.digest, "bytes": size,
            "kind": facts.as_ref().map_or("base", |facts| facts.kind.as_str()),
            "gate": facts.as_ref().map(|facts| &facts.gate),
            "format": facts.as_ref().map(|facts| facts.format),
            "instance": checkpoint.map(|checkpoint| checkpoint.instance.to_hex()),
            "entries": checkpoint.map(|checkpoint| checkpoint.size),
            "head": checkpoint.map(|checkpoint| checkpoint.head.digest().to_hex()),
            "origin": facts.as_ref().and_then(|facts| facts.origin).map(|origin| origin.to_hex()),
            "promotions": serials, "signed_by": signers,
        }));
    }
    let forks = forks_among(&rows);
    if is_json {
        say!("{}", json!({ "images": rows, "forks": forks }));
        return Ok(Answer::Yes);
    }
    for row in &rows {
        let text = |key: &str| row[key].as_str().unwrap_or("").to_string();
        let entries = row["entries"].as_u64().map_or(String::new(), |entries| format!("{entries} entries"));
        let promoted: Vec<String> =
            row["promotions"].as_array().into_iter().flatten().map(|one| one.to_string()).collect();
        let promoted =
            if promoted.is_empty() { String::new() } else { format!("promotion {}", promoted.join(", ")) };
        let digest: String = text("digest").chars().take(19).collect();
        say!(
            "{:<32} {digest}  {:>10}  {:<8} {entries:<16} {promoted}",
            text("tag"),
            row["bytes"],
            text("kind")
        );
    }
    for fork in &forks {
        say!("fork: {fork}");
    }
    Ok(Answer::Yes)
}

/// Histories that went on more than once from the same head, and two heads of one history at the same length.
fn forks_among(rows: &[serde_json::Value]) -> Vec<String> {
    let mut forks = Vec::new();
    for (place, one) in rows.iter().enumerate() {
        for other in &rows[place + 1..] {
            let same = |key: &str| one[key].is_string() && one[key] == other[key];
            let (left, right) = (one["tag"].as_str().unwrap_or("?"), other["tag"].as_str().unwrap_or("?"));
            if same("origin") && one["instance"] != other["instance"] {
                forks.push(format!(
                    "{left} and {right} both go on from head {}",
                    one["origin"].as_str().unwrap_or("?")
                ));
            }
            if same("instance") && one["entries"] == other["entries"] && one["head"] != other["head"] {
                forks.push(format!("{left} and {right} are of one history with different heads"));
            }
        }
    }
    forks
}

fn bring_back(restoring: &Restoring<'_>, reference: &str, is_json: bool) -> Result<Answer> {
    let restored = restore(restoring)?;
    let out = restoring.out.display().to_string();
    if is_json {
        say!(
            "{}",
            json!({ "image": reference, "digest": bem_image::layout::spell(&restored.digest), "out": out,
                "kind": restored.facts.kind, "head": restored.head.to_hex(),
                "origin": restored.origin.map(|origin| origin.to_hex()), "signed_by": restored.signers })
        );
        return Ok(Answer::Yes);
    }
    say!("{out}  from {reference}, {}", bem_image::layout::spell(&restored.digest));
    match restored.origin {
        None => say!("  the same history goes on, head {}", restored.head),
        Some(origin) => say!("  a new history goes on from head {origin}; its head is {}", restored.head),
    }
    match &restored.signers[..] {
        [] => say!("  nobody has signed the image"),
        signers => say!("  signed by {}", signers.join(", ")),
    }
    let key = restoring.key.map_or(String::new(), |key| format!(" --key {}", key.display()));
    match restored.facts.kind.as_str() {
        "service" => say!("go on    bem serve --state {out}{key}"),
        _ => say!("go on    bem run --resume {out}{key}"),
    }
    Ok(Answer::Yes)
}

fn make_stable(reference: &str, layout: &Path, key: Option<&Path>, is_json: bool) -> Result<Answer> {
    let signer = keys::for_images(key)?;
    let mut layout = open_layout_locked(layout)?;
    let entry = layout.resolve(reference)?.clone();
    // Only what is whole, and stands up to an audit, is promoted.
    let found = verify_image(&mut layout, &entry)?;
    let facts = bem_image::image::Facts::of(&found)?;
    images::restore::audit_image(&mut layout, &found, &facts)?;
    let about = descriptor(MANIFEST_TYPE, &found.digest, entry.size);
    let tag = stable_tag();
    let serial = promote(&mut layout, &about, &tag, &signer)?;
    let key = Digest::from_bytes(signer.public_key()).to_hex();
    images::serials::remember(&key, serial)?;
    match is_json {
        true => say!("{}", json!({ "tag": tag, "digest": about.digest, "serial": serial, "key": key })),
        false => say!("{tag}  {}  promotion {serial}, signed by {key}", about.digest),
    }
    Ok(Answer::Yes)
}

fn remove_old(layout: &Path, retention: Retention, is_json: bool) -> Result<Answer> {
    let mut layout = open_layout_locked(layout)?;
    let pruned = prune(&mut layout, retention)?;
    match is_json {
        true => say!("{}", json!({ "removed": pruned.tags, "blobs": pruned.blobs, "bytes": pruned.bytes })),
        false => {
            pruned.tags.iter().for_each(|tag| say!("removed  {tag}"));
            say!("{} tags, {} blobs, {} bytes removed", pruned.tags.len(), pruned.blobs, pruned.bytes);
        }
    }
    Ok(Answer::Yes)
}

fn migrate(state: &Path, layout: &Path, key: Option<&Path>) -> Result<Answer> {
    images::migrate::settle(state)?;
    let before = format::read(state)?;
    format::check(before, &state.display().to_string())?;
    // Nobody may write while the format changes.
    let lock = crate::file_store::FileStore::open_locked(&state.join("ledger"))
        .with_context(|| state.display().to_string())?;
    let obstacle = images::migrate::obstacle(state)?;
    if before == format::CURRENT && obstacle.is_none() {
        images::migrate::raise(state)?;
        say!("{}: format {before}, nothing to do", state.display());
        return Ok(Answer::Yes);
    }
    let mut layout = open_layout_locked(layout)?;
    let more: Vec<&Path> = key.into_iter().collect();
    let secrets = Secrets::of(state, &more)?;
    // An audit of an archived history reads the learner's state: where that cannot be read, every entry is chained all the same.
    let taken = images::snapshot(&mut layout, state, "before migration", &secrets, obstacle.is_none())?;
    say!("{}  saved before the migration", taken.tag);
    let migrated = images::migrate::migrate(state, key, obstacle)?;
    drop(lock);
    say!("{}: format {before} is now {}", state.display(), format::CURRENT);
    if let Migrated::Anew(anew) = migrated {
        say!("{}", anew.words(state));
        say!("  its head is {}", anew.head);
    }
    Ok(Answer::Yes)
}

fn sign_image(reference: &str, layout: &Path, key: Option<&Path>) -> Result<Answer> {
    let signer = keys::for_images(key)?;
    let mut layout = open_layout_locked(layout)?;
    let entry = layout.resolve(reference)?.clone();
    let found = verify_image(&mut layout, &entry)?;
    sign(&mut layout, &descriptor(MANIFEST_TYPE, &found.digest, entry.size), &signer)?;
    say!("{}  signed by {}", entry.digest, Digest::from_bytes(signer.public_key()));
    Ok(Answer::Yes)
}

fn check_registry(name: &str) -> Result<()> {
    match name.starts_with("docker://") {
        true => Ok(()),
        false => bail!("{name:?} is no registry: docker://HOST/NAME:TAG"),
    }
}

fn push(reference: &str, to: &str, layout: &Path, plain_http: bool) -> Result<Answer> {
    check_registry(to)?;
    let mut opened = open_layout(layout)?;
    let entry = opened.resolve(reference)?.clone();
    let found = verify_image(&mut opened, &entry)?;
    let tag =
        entry.tag().context("an image without a tag cannot be named to skopeo: give its tag")?.to_string();
    let folder = layout.display();
    registry::copy(&format!("oci:{folder}:{tag}"), to, plain_http, "dest")?;
    say!("{to}  {}", entry.digest);
    let name =
        to.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(to, |(name, _)| name).to_string();
    let signature = bem_image::statement::signature_tag(&found.digest);
    let newest = promotions(&mut opened)?
        .into_iter()
        .filter(|one| one.digest == entry.digest)
        .filter_map(|one| one.serial)
        .max();
    let mut more = vec![(signature.clone(), signature)];
    more.extend(newest.map(|serial| (format!("promotion-{serial}"), "promotion".to_string())));
    for (tag, there) in more {
        if opened.resolve(&tag).is_ok() {
            registry::copy(&format!("oci:{folder}:{tag}"), &format!("{name}:{there}"), plain_http, "dest")?;
            say!("{name}:{there}");
        }
    }
    Ok(Answer::Yes)
}

fn pull(from: &str, layout: &Path, plain_http: bool) -> Result<Answer> {
    let beside = layout
        .with_file_name(format!(".{}.pulling", layout.file_name().unwrap_or_default().to_string_lossy()));
    let _ = std::fs::remove_dir_all(&beside);
    std::fs::create_dir_all(&beside).with_context(|| beside.display().to_string())?;
    let pulled = pull_into(from, layout, plain_http, &beside);
    let _ = std::fs::remove_dir_all(&beside);
    let (tag, digest) = pulled?;
    say!("{tag}  {digest}");
    Ok(Answer::Yes)
}

fn pull_into(from: &str, layout: &Path, plain_http: bool, beside: &Path) -> Result<(String, String)> {
    let (folder, reference) = match Source::parse(from, layout)? {
        Source::Layout(folder, reference) => (folder, reference),
        Source::Archive(path) => registry::open_archive(&path, beside)?,
        Source::Registry(reference) => {
            let folder = beside.join("fetched");
            let tag = registry::fetch(&reference, plain_http, &folder)?;
            images::restore::fetch_statements(&reference, plain_http, &folder, &tag)?;
            (folder, tag)
        }
    };
    let mut source = open_layout(&folder)?;
    let entry = source.resolve(&reference)?.clone();
    let tag = entry.tag().map_or_else(|| format!("pulled:{}", &entry.digest[7..19]), str::to_string);
    if tag == stable_tag() {
        let digest = read_digest(&entry.digest).context("no digest of SHA-256")?;
        let seen = |key: &str| images::serials::seen(key).unwrap_or(u64::MAX);
        let promoted = bem_image::statement::check_promoted(&mut source, &tag, &digest, seen)?;
        images::serials::remember(&promoted.key, promoted.serial.unwrap_or(0))?;
    }
    let digest = registry::import(&folder, &reference, layout, &tag)?;
    registry::import_statements(&folder, layout, &digest)?;
    Ok((tag, bem_image::layout::spell(&digest)))
}
