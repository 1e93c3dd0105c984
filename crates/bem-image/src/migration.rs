//! A state folder that changes its format: what is new is written beside what is old, one rename decides, and the rest is moved into
//! place by whoever opens the folder next.
//!
//! A migration that is cut off before that rename has not happened: what it left is removed. One that is cut off behind it goes on
//! where it stopped, by the file that says what is to be done and how far it is. A ledger that takes the place of another leaves the
//! old one in `ledger-origin`. Must not know what the files mean. Clause: IMG-5; decision D-230.

use crate::ImageError;
use bem_ledger::StoreError;
use bem_ledger::store::Store;

/// The file that says what is to be done.
pub const MANIFEST: &str = "migration";
const MANIFEST_ASIDE: &str = "migration.tmp";
/// The folder of the ledger.
pub const LEDGER: &str = "ledger";
/// Where a ledger waits that takes its place.
pub const LEDGER_NEXT: &str = "ledger-next";
/// Where the old one is kept.
pub const LEDGER_ORIGIN: &str = "ledger-origin";
const WORDS: &str = "bem migration 1";
const MANIFEST_BYTES_MAX: u64 = 4_096;
/// Files that one migration replaces or removes.
const FILES_MAX: usize = 32;

/// Under which name a file waits until the migration is decided.
pub fn waiting(name: &str) -> String {
    format!("{name}.next")
}

/// How far a migration is that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// What an earlier migration kept goes.
    Clear = 0,
    /// The old ledger goes aside.
    Out = 1,
    /// The new ledger and the new files come in.
    In = 2,
}

/// What a migration does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The format before.
    pub from: u32,
    /// The format behind.
    pub to: u32,
    /// Files that are replaced by those that wait.
    pub files: Vec<String>,
    /// Files that go.
    pub gone: Vec<String>,
    /// Whether a new ledger waits.
    pub has_ledger: bool,
}

impl Migration {
    fn to_text(&self, phase: Phase) -> String {
        let mut text = format!("{WORDS}\nphase {}\nfrom {}\nto {}\n", phase as u8, self.from, self.to);
        if self.has_ledger {
            text.push_str("ledger\n");
        }
        self.files.iter().for_each(|name| text.push_str(&format!("file {name}\n")));
        self.gone.iter().for_each(|name| text.push_str(&format!("gone {name}\n")));
        text
    }

    fn parse(text: &str) -> Option<(Migration, Phase)> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next() != Some(WORDS) {
            return None;
        }
        let mut number = |word: &str| lines.next()?.strip_prefix(word)?.parse::<u32>().ok();
        let phase = match number("phase ")? {
            0 => Phase::Clear,
            1 => Phase::Out,
            2 => Phase::In,
            _ => return None,
        };
        let (from, to) = (number("from ")?, number("to ")?);
        let mut migration = Migration { from, to, files: Vec::new(), gone: Vec::new(), has_ledger: false };
        for line in lines {
            match line.split_once(' ') {
                Some(("file", name)) if is_name(name) => migration.files.push(name.to_string()),
                Some(("gone", name)) if is_name(name) => migration.gone.push(name.to_string()),
                None if line == "ledger" => migration.has_ledger = true,
                _ => return None,
            }
        }
        let is_whole = migration.files.len() + migration.gone.len() <= FILES_MAX;
        (is_whole && migration.to_text(phase) == text).then_some((migration, phase))
    }
}

/// Whether a file of this name may be replaced: plain letters, no folder.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.bytes().all(is_plain)
}

fn put<S: Store>(store: &mut S, aside: &str, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    store.create(aside)?;
    store.write(aside, 0, bytes)?;
    store.sync_file(aside)?;
    store.rename(aside, name)
}

/// Lets a file wait for the migration to be decided.
pub fn stage<S: Store>(store: &mut S, name: &str, bytes: &[u8]) -> Result<(), ImageError> {
    let waits = waiting(name);
    store.create(&waits)?;
    store.write(&waits, 0, bytes)?;
    Ok(store.sync_file(&waits)?)
}

/// Decides a migration whose files and ledger wait, all of them synced, and carries it out.
pub fn commit<S: Store>(store: &mut S, migration: &Migration) -> Result<(), ImageError> {
    // What waits has its name before anything says that it does.
    store.sync_directory()?;
    announce(store, migration, Phase::Clear)?;
    finish(store).map(drop)
}

fn announce<S: Store>(store: &mut S, migration: &Migration, phase: Phase) -> Result<(), ImageError> {
    put(store, MANIFEST_ASIDE, MANIFEST, migration.to_text(phase).as_bytes())?;
    Ok(store.sync_directory()?)
}

fn present<S: Store>(store: &mut S) -> Result<Option<(Migration, Phase)>, ImageError> {
    let bytes = match store.read_all(MANIFEST, MANIFEST_BYTES_MAX) {
        Err(StoreError::Missing { .. }) => return Ok(None),
        other => other?,
    };
    let read = core::str::from_utf8(&bytes).ok().and_then(Migration::parse);
    read.map(Some).ok_or_else(|| ImageError::damaged(MANIFEST, "it is no list of what a migration does"))
}

fn below<S: Store>(store: &mut S, folder: &str) -> Result<Vec<String>, ImageError> {
    let names = store.list()?;
    let is_below = |name: &&String| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    Ok(names.iter().filter(is_below).cloned().collect())
}

fn move_all<S: Store>(store: &mut S, from: &str, to: &str) -> Result<(), ImageError> {
    for name in below(store, from)? {
        store.rename(&name, &format!("{to}{}", &name[from.len()..]))?;
    }
    Ok(store.sync_directory()?)
}

/// Carries out to its end what was decided, and removes what was not; the migration that was under way, if one was decided.
pub fn finish<S: Store>(store: &mut S) -> Result<Option<Migration>, ImageError> {
    let Some((migration, mut phase)) = present(store)? else {
        clear(store)?;
        return Ok(None);
    };
    if migration.has_ledger {
        if phase == Phase::Clear {
            for name in below(store, LEDGER_ORIGIN)? {
                store.remove(&name)?;
            }
            store.sync_directory()?;
            phase = Phase::Out;
            announce(store, &migration, phase)?;
        }
        if phase == Phase::Out {
            move_all(store, LEDGER, LEDGER_ORIGIN)?;
            phase = Phase::In;
            announce(store, &migration, phase)?;
        }
        move_all(store, LEDGER_NEXT, LEDGER)?;
    }
    let names = store.list()?;
    for name in migration.files.iter().filter(|name| names.contains(&waiting(name))) {
        store.rename(&waiting(name), name)?;
    }
    for name in migration.gone.iter().filter(|name| names.contains(name)) {
        store.remove(name)?;
    }
    store.sync_directory()?;
    store.remove(MANIFEST)?;
    store.sync_directory()?;
    Ok(Some(migration))
}

/// Removes what a migration left that was not decided.
fn clear<S: Store>(store: &mut S) -> Result<(), ImageError> {
    let left: Vec<String> = store.list()?.into_iter().filter(|name| is_left(name)).collect();
    for name in &left {
        store.remove(name)?;
    }
    match left.is_empty() {
        true => Ok(()),
        false => Ok(store.sync_directory()?),
    }
}

fn is_left(name: &str) -> bool {
    let waits = !name.contains('/') && name.ends_with(".next");
    waits
        || name == MANIFEST_ASIDE
        || name.strip_prefix(LEDGER_NEXT).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_ledger::store::MemoryStore;

    fn folder() -> MemoryStore {
        let mut store = MemoryStore::new();
        for (name, text) in [
            ("format", "1"),
            ("tokens.json", "old"),
            ("inbox-0", "in"),
            ("ledger/a", "old a"),
            ("ledger/b", "old b"),
        ] {
            store.files.insert(name.to_string(), text.as_bytes().to_vec());
        }
        store
    }

    fn migration() -> Migration {
        let files = vec!["tokens.json".to_string(), "format".to_string()];
        Migration { from: 1, to: 3, files, gone: vec!["inbox-0".to_string()], has_ledger: true }
    }

    #[test]
    fn a_new_ledger_takes_the_place_of_the_old_one_which_is_kept() {
        let mut store = folder();
        store.files.insert("ledger-next/a".to_string(), b"new a".to_vec());
        store.files.insert("ledger-origin/c".to_string(), b"older".to_vec());
        stage(&mut store, "tokens.json", b"new").unwrap();
        stage(&mut store, "format", b"3").unwrap();
        commit(&mut store, &migration()).unwrap();
        let text: Vec<(&str, &str)> = store
            .files
            .iter()
            .map(|(name, bytes)| (name.as_str(), core::str::from_utf8(bytes).unwrap()))
            .collect();
        let wanted = [
            ("format", "3"),
            ("ledger-origin/a", "old a"),
            ("ledger-origin/b", "old b"),
            ("ledger/a", "new a"),
            ("tokens.json", "new"),
        ];
        assert_eq!(text, wanted);
        assert_eq!(finish(&mut store).unwrap(), None);
    }

    #[test]
    fn what_was_not_decided_is_removed_and_a_damaged_list_is_refused() {
        let mut store = folder();
        let before = store.clone();
        store.files.insert("ledger-next/a".to_string(), b"new a".to_vec());
        stage(&mut store, "tokens.json", b"new").unwrap();
        assert_eq!(finish(&mut store).unwrap(), None);
        assert_eq!(store, before);
        let text = migration().to_text(Phase::Out);
        assert_eq!(Migration::parse(&text), Some((migration(), Phase::Out)));
        for wrong in
            ["", "bem migration 2\n", &text.replace("file format", "file ../format"), &text[..text.len() - 1]]
        {
            store.files.insert(MANIFEST.to_string(), wrong.as_bytes().to_vec());
            assert!(finish(&mut store).is_err(), "{wrong}");
        }
    }
}
