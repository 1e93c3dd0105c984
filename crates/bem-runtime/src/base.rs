//! A saved state that a history goes on from: what is served, and what the entries amounted to there.
//!
//! A history begins with one where it was restored without its key (an entry RESTORED names the old head), and goes on from one where
//! segments were archived (an entry ARCHIVED names them). The state is a blob that the entry names; an audit that has the entries
//! before compares, one that has not takes it up. Must not know files. Clauses: LOG-4, IMG-4; decision D-89.

use crate::book::Book;
use crate::input::{Input, WorldSpec};
use crate::people::entries::Earlier;
use crate::service::{Service, ServiceConfig};
use bem_base::digest::{Digest, hash};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_engine::state::RestoreError;
use bem_evolve::rebuild::Twin;
use bem_ledger::entry::{Entry, Table, TableEdit, event_code};
use bem_ledger::limits::TABLE_SLOTS_MAX;
use std::collections::BTreeMap;

/// The first words of a saved state.
const MAGIC: &str = "bem base 2";
/// Those of states that did not name their worlds.
const MAGIC_WITHOUT_WORLDS: &str = "bem base 1";
/// Changes of tables in one entry of a history that begins with a saved state.
const EDITS_A_TIME: usize = 8_192;

/// A saved state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseState {
    /// What is served.
    pub service: Vec<u8>,
    /// What the entries amounted to.
    pub book: Vec<u8>,
    /// The worlds that are served, by place, for a program whose learner cannot read the first part; nothing in older states.
    pub worlds: Option<BTreeMap<u16, WorldSpec>>,
}

impl BaseState {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(if self.worlds.is_some() { MAGIC } else { MAGIC_WITHOUT_WORLDS });
        writer.bytes(&self.service);
        writer.bytes(&self.book);
        if let Some(worlds) = &self.worlds {
            writer.length(worlds.len());
            for (place, spec) in worlds {
                writer.u16(*place);
                Input::World(Box::new(spec.clone())).encode(&mut writer);
            }
        }
        writer.into_bytes()
    }

    /// Reads canonical bytes back.
    pub fn from_bytes(bytes: &[u8]) -> Result<BaseState, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a saved state");
        let has_worlds = match reader.text()? {
            MAGIC => true,
            MAGIC_WITHOUT_WORLDS => false,
            _ => return Err(foreign),
        };
        let (service, book) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
        let worlds = has_worlds.then(|| decode_worlds(&mut reader)).transpose()?;
        reader.finish()?;
        Ok(BaseState { service, book, worlds })
    }

    /// What is served.
    pub fn service(&self) -> Result<Service, RestoreError> {
        Service::decode(&self.service)
    }

    /// What the entries amounted to, in a history of this configuration.
    pub fn book(&self, config: ServiceConfig) -> Result<Book, DecodeError> {
        Book::decode_state(config, &self.book)
    }
}

fn decode_worlds(reader: &mut Reader<'_>) -> Result<BTreeMap<u16, WorldSpec>, DecodeError> {
    let malformed = reader.error("worlds of a saved state out of order");
    let mut worlds: BTreeMap<u16, WorldSpec> = BTreeMap::new();
    for _ in 0..reader.length(3)? {
        let place = reader.u16()?;
        let Input::World(spec) = Input::decode(reader)? else { return Err(malformed) };
        if worlds.last_key_value().is_some_and(|(last, _)| place <= *last) {
            return Err(malformed);
        }
        worlds.insert(place, *spec);
    }
    Ok(worlds)
}

/// The text of an entry RESTORED of a service that begins anew from what an older history says.
pub fn anew_text(origin: &Digest) -> String {
    format!("begun anew from history {origin}")
}

/// Whether an entry RESTORED says that a service begins anew from what an older history says.
pub fn is_anew(entry: &Entry) -> bool {
    let Entry::Event { code: event_code::RESTORED, payload, .. } = entry else { return false };
    let text = core::str::from_utf8(payload).unwrap_or_default();
    text.strip_prefix("begun anew from history ").is_some_and(|origin| Digest::from_hex(origin).is_some())
}

/// The text of an entry RESTORED of a service.
pub fn restored_text(origin: &Digest, state: &Digest) -> String {
    format!("restored from history {origin}, state {state}")
}

/// The saved state that an entry RESTORED of a service names.
pub fn restored_state(entry: &Entry) -> Option<Digest> {
    let Entry::Event { code: event_code::RESTORED, payload, .. } = entry else { return None };
    let text = core::str::from_utf8(payload).ok()?;
    let (origin, state) = text.strip_prefix("restored from history ")?.split_once(", state ")?;
    Digest::from_hex(origin)?;
    Digest::from_hex(state)
}

fn encode_map(map: &BTreeMap<u32, Digest>, writer: &mut Writer) {
    writer.length(map.len());
    for (slot, leaf) in map {
        writer.u32(*slot);
        writer.raw(leaf.as_bytes());
    }
}

fn decode_map(reader: &mut Reader<'_>) -> Result<BTreeMap<u32, Digest>, DecodeError> {
    let malformed = reader.error("slots out of order, or beyond a table");
    let (mut map, mut next) = (BTreeMap::new(), 0);
    for _ in 0..reader.length(36)? {
        let (slot, leaf) = (reader.u32()?, Digest::decode(reader)?);
        if slot < next || TABLE_SLOTS_MAX <= slot {
            return Err(malformed);
        }
        next = slot + 1;
        map.insert(slot, leaf);
    }
    Ok(map)
}

impl Book {
    /// Writes what the entries so far amount to; the block at hand must be closed.
    pub fn encode_state(&self, writer: &mut Writer) {
        writer.u16(self.worlds);
        writer.u64(self.serial);
        writer.u64(self.last);
        for table in Table::ALL.iter().copied() {
            writer.u64(self.tables.tree(table).size());
        }
        encode_map(&self.experts, writer);
        encode_map(&self.thresholds, writer);
        writer.length(self.twins.len());
        for (world, twin) in &self.twins {
            writer.u16(*world);
            let mut bytes = Writer::new();
            twin.encode(&mut bytes);
            writer.bytes(bytes.as_bytes());
        }
        self.earlier.encode(writer);
    }

    /// Reads it back, for a history of this configuration.
    pub fn decode_state(config: ServiceConfig, bytes: &[u8]) -> Result<Book, DecodeError> {
        let reader = &mut Reader::new(bytes);
        let malformed = reader.error("a book that no service can have");
        let program = hash(&config.to_bytes());
        let mut book = Book::new(config);
        (book.worlds, book.serial, book.last) = (reader.u16()?, reader.u64()?, reader.u64()?);
        let mut sizes = [0; Table::ALL.len()];
        for size in &mut sizes {
            *size = reader.u64()?;
        }
        let (experts, thresholds) = (decode_map(reader)?, decode_map(reader)?);
        for _ in 0..reader.length(6)? {
            let world = reader.u16()?;
            let mut bytes = Reader::new(reader.bytes()?);
            let twin = Twin::decode(&mut bytes)?;
            bytes.finish()?;
            if book.worlds <= world || book.twins.insert(world, twin).is_some() {
                return Err(malformed);
            }
        }
        book.earlier = Earlier::decode(book.worlds, reader)?;
        let leaves = |table: Table, map: &BTreeMap<u32, Digest>| -> Vec<TableEdit> {
            map.iter().map(|(slot, leaf)| TableEdit { table, slot: *slot, leaf: *leaf }).collect()
        };
        let mut edits = leaves(Table::Expert, &experts);
        edits.extend(leaves(Table::Work, &thresholds));
        edits.push(TableEdit { table: Table::Program, slot: 0, leaf: program });
        book.set_all(&edits);
        // Slots at the end of a table may be empty and yet be there.
        for (table, size) in Table::ALL.iter().copied().zip(sizes) {
            let found = book.tables.tree(table).size();
            if size < found || u64::from(TABLE_SLOTS_MAX) < size {
                return Err(malformed);
            }
            if found < size {
                book.set_all(&[TableEdit { table, slot: (size - 1) as u32, leaf: Digest::default() }]);
            }
        }
        reader.clone().finish()?;
        Ok(book)
    }

    /// The content of every table, as changes that make it from empty ones.
    pub fn table_edits(&self) -> Vec<TableEdit> {
        let leaves = |table: Table, map: &BTreeMap<u32, Digest>| -> Vec<TableEdit> {
            map.iter().map(|(slot, leaf)| TableEdit { table, slot: *slot, leaf: *leaf }).collect()
        };
        let mut edits = leaves(Table::Expert, &self.experts);
        edits.extend(leaves(Table::Work, &self.thresholds));
        edits.push(TableEdit { table: Table::Program, slot: 0, leaf: hash(&self.config.to_bytes()) });
        for table in Table::ALL.iter().copied() {
            let size = self.tables.tree(table).size();
            let last =
                edits.iter().filter(|edit| edit.table == table).map(|edit| u64::from(edit.slot) + 1).max();
            if last.unwrap_or(0) < size {
                edits.push(TableEdit { table, slot: (size - 1) as u32, leaf: Digest::default() });
            }
        }
        // As every entry about tables has them.
        edits.sort_by_key(|edit| (edit.table, edit.slot));
        edits
    }

    /// The same in parts that an entry can hold.
    pub(crate) fn edits_in_parts(&self) -> Vec<Vec<TableEdit>> {
        self.table_edits().chunks(EDITS_A_TIME).map(<[TableEdit]>::to_vec).collect()
    }
}
