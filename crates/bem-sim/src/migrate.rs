//! Migrations of a state folder on a disk that fails, cut off at every operation by power loss, kill or a full disk.
//!
//! After each the folder is as it was before, or as it is behind the migration, once whoever opens it has finished what was decided;
//! then the migration is asked for again and ends as the undisturbed one does. Clause: IMG-5.

use crate::disk::Disk;
use crate::images::Disturbance;
use crate::store::{Failure, Plan, SimStore};
use bem_base::prng::Prng;
use bem_image::ImageError;
use bem_image::migration::{LEDGER, LEDGER_NEXT, LEDGER_ORIGIN, Migration, commit, finish, stage};
use bem_ledger::store::Store;
use std::collections::BTreeMap;

/// Files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// What a migration changes: files alone, or the ledger as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Files beside the ledger.
    Files,
    /// A new ledger takes the place of the old one.
    Ledger,
}

fn content(name: &str, salt: u8) -> Vec<u8> {
    (0..900u32).map(|place| (place as u8).wrapping_mul(salt).wrapping_add(name.len() as u8)).collect()
}

/// A folder of an older format, all of it durable.
fn before() -> Result<Disk, String> {
    let mut store = SimStore::new(Disk::new(), Plan::default(), Prng::stream(1, "before"));
    let said = |error: bem_ledger::StoreError| error.to_string();
    let names = ["format", "tokens.json", "key-salt", "inbox-0", "token"].map(str::to_owned);
    let ledger = ["checkpoint", "segment-0", "segment-1", "blob-1"].map(|name| format!("{LEDGER}/{name}"));
    let earlier = [format!("{LEDGER_ORIGIN}/checkpoint"), format!("{LEDGER_ORIGIN}/segment-0")];
    for name in names.iter().chain(&ledger).chain(&earlier) {
        store.create(name).map_err(said)?;
        store.write(name, 0, &content(name, 1)).map_err(said)?;
        store.sync_file(name).map_err(said)?;
    }
    store.sync_directory().map_err(said)?;
    Ok(store.disk())
}

/// The migration, as the program does it: what is new waits, and then it is decided.
fn migrate<S: Store>(store: &mut S, extent: Extent) -> Result<(), ImageError> {
    finish(store)?;
    let format = store.read_all("format", 4_096)?;
    if format == content("format", 2) {
        return Ok(());
    }
    let mut migration = Migration {
        from: 1,
        to: 3,
        files: Vec::new(),
        gone: Vec::new(),
        has_ledger: extent == Extent::Ledger,
    };
    let mut names = vec!["tokens.json", "format"];
    if migration.has_ledger {
        names.push("key-salt");
        migration.gone.push("inbox-0".to_owned());
        for name in ["checkpoint", "segment-0"] {
            let name = format!("{LEDGER_NEXT}/{name}");
            store.create(&name)?;
            store.write(&name, 0, &content(&name, 2))?;
            store.sync_file(&name)?;
        }
    }
    for name in names {
        stage(store, name, &content(name, 2))?;
        migration.files.push(name.to_owned());
    }
    commit(store, &migration)
}

fn files<S: Store>(store: &mut S) -> Result<Files, String> {
    let said = |error: bem_ledger::StoreError| error.to_string();
    let names = store.list().map_err(said)?;
    names.into_iter().map(|name| Ok((name.clone(), store.read_all(&name, 1 << 20).map_err(said)?))).collect()
}

/// Cuts a migration off at every operation, in every way; how many operations there were.
pub fn migrations(extent: Extent, salts: u64) -> Result<u64, String> {
    let disk = before()?;
    let fresh = |disk: &Disk, plan: Plan| SimStore::new(disk.clone(), plan, Prng::stream(1, "faults"));
    let old = files(&mut fresh(&disk, Plan::default()))?;
    let mut whole = fresh(&disk, Plan::default());
    migrate(&mut whole, extent).map_err(|error| error.to_string())?;
    let operations = whole.happened().operations;
    let new = files(&mut whole)?;
    for at in 0..operations {
        for (how, salts) in [(Disturbance::PowerLoss, salts), (Disturbance::Kill, 1), (Disturbance::Full, 1)]
        {
            for salt in 0..salts {
                let plan = match how {
                    Disturbance::Full => Plan { fail_at: Some((at, Failure::Full, true)), ..Plan::default() },
                    _ => Plan { crash_at: Some(at), ..Plan::default() },
                };
                let mut store = fresh(&disk, plan);
                if migrate(&mut store, extent).is_ok() {
                    return Err(format!("operation {at} was not cut off"));
                }
                let mut after = store.disk();
                if how == Disturbance::PowerLoss {
                    after.lose_power(&mut Prng::stream(at * 64 + salt, "power"));
                }
                sound(&after, extent, &old, &new)
                    .map_err(|reason| format!("operation {at}, {how:?}, {salt}: {reason}"))?;
            }
        }
    }
    Ok(operations)
}

fn sound(disk: &Disk, extent: Extent, old: &Files, new: &Files) -> Result<(), String> {
    let mut store = SimStore::new(disk.clone(), Plan::default(), Prng::stream(1, "after"));
    finish(&mut store).map_err(|error| error.to_string())?;
    let found = files(&mut store)?;
    if found != *old && found != *new {
        let names: Vec<&String> = found.keys().collect();
        return Err(format!("the folder is neither as before nor as behind: {names:?}"));
    }
    migrate(&mut store, extent).map_err(|error| error.to_string())?;
    match files(&mut store)? == *new {
        true => Ok(()),
        false => Err("asked for again, the migration leads elsewhere".to_owned()),
    }
}
