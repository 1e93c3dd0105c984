//! What a run over a world of one's own is played from, as bytes beside its history.
//!
//! A game that came as a file is kept as that file, a composition with the source of its programs, and a program outside
//! as everything that it has answered ([`record`]). The digest of the bytes is part of the run's configuration and stands
//! in CFG, so that `bem verify` misses them and `bem replay` finds them. What they mean is the application's part
//! ([`crate::worlds::Worlds`]). Must not know files, nor how a game is read. Clauses: LOG-3, LOG-5, GLE-9.

pub mod continued;
pub mod distilled;
pub mod record;

use crate::start::Start;
use bem_base::encode::{DecodeError, Reader, Writer};
use distilled::Distilled;
use record::Record;
use std::collections::BTreeMap;

/// The first words of the file.
const FORMAT: &str = "bem world 1";

/// A game that came as a file, with who sits in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameFile {
    /// The file's name; its ending says the format.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// Which player learns, as it was given.
    pub player: Option<String>,
    /// Name and content of the file that says how the others play; without one they play uniformly.
    pub opponent: Option<(String, String)>,
}

/// What a world is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldFile {
    /// A game from a file.
    Game(GameFile),
    /// The sources of the programs in a composition, by name.
    Programs(BTreeMap<String, String>),
    /// What a program outside has answered.
    Record(Record),
    /// A user's parametrised world: the text that declares it, and the files that it names.
    Ladder {
        /// The declaration.
        text: String,
        /// Content of the files, by name.
        files: BTreeMap<String, String>,
    },
    /// The catalog's worlds, and for some tasks an instance and episodes that a specialist played in it.
    Distilled(Distilled),
    /// A world, or the catalog's where there is none, and what a learner in it begins with.
    Started {
        /// The world.
        world: Option<Box<WorldFile>>,
        /// What it begins with.
        start: Box<Start>,
    },
}

impl WorldFile {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.text(FORMAT);
        self.encode(&mut writer);
        writer.into_bytes()
    }

    /// The world with what a learner in it begins with, if that is anything; none for the catalog's without it.
    pub fn started(world: Option<WorldFile>, start: &Start) -> Option<WorldFile> {
        if start.is_empty() {
            return world;
        }
        Some(WorldFile::Started { world: world.map(Box::new), start: Box::new(start.clone()) })
    }

    /// What a learner begins with.
    pub fn start(&self) -> Start {
        match self {
            WorldFile::Started { start, .. } => start.as_ref().clone(),
            _ => Start::default(),
        }
    }

    /// The world without what a learner begins with; none for the catalog's.
    pub fn world(&self) -> Option<&WorldFile> {
        match self {
            WorldFile::Started { world, .. } => world.as_deref(),
            other => Some(other),
        }
    }

    fn encode(&self, writer: &mut Writer) {
        match self {
            WorldFile::Game(GameFile { name, text, player, opponent }) => {
                writer.u8(0);
                writer.text(name);
                writer.text(text);
                writer.bool(player.is_some());
                player.iter().for_each(|player| writer.text(player));
                writer.bool(opponent.is_some());
                if let Some((name, text)) = opponent {
                    writer.text(name);
                    writer.text(text);
                }
            }
            WorldFile::Programs(sources) => {
                writer.u8(1);
                writer.length(sources.len());
                for (name, text) in sources {
                    writer.text(name);
                    writer.text(text);
                }
            }
            WorldFile::Ladder { text, files } => {
                writer.u8(6);
                writer.text(text);
                writer.length(files.len());
                for (name, content) in files {
                    writer.text(name);
                    writer.text(content);
                }
            }
            WorldFile::Record(record) => {
                writer.u8(match (record.repeats(), record.is_extended()) {
                    (false, _) => 5,
                    (true, true) => 3,
                    (true, false) => 2,
                });
                record.encode(writer);
            }
            WorldFile::Distilled(distilled) => {
                writer.u8(8);
                distilled.encode(writer);
            }
            WorldFile::Started { world, start } => {
                writer.u8(4);
                writer.bool(world.is_some());
                world.iter().for_each(|world| world.encode(writer));
                start.encode(writer);
            }
        }
    }

    /// Reads canonical bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<WorldFile, DecodeError> {
        let mut reader = Reader::new(bytes);
        let foreign = reader.error("not a world's file, or one of another version");
        if reader.text()? != FORMAT {
            return Err(foreign);
        }
        let world = WorldFile::decode(&mut reader, true)?;
        reader.finish()?;
        Ok(world)
    }

    /// Reads one world; only the outermost may say what a learner begins with.
    fn decode(reader: &mut Reader<'_>, is_outer: bool) -> Result<WorldFile, DecodeError> {
        let foreign = reader.error("not a world's file, or one of another version");
        let text = |reader: &mut Reader<'_>| reader.text().map(str::to_string);
        Ok(match reader.u8()? {
            0 => WorldFile::Game(GameFile {
                name: text(reader)?,
                text: text(reader)?,
                player: if reader.bool()? { Some(text(reader)?) } else { None },
                opponent: if reader.bool()? { Some((text(reader)?, text(reader)?)) } else { None },
            }),
            1 => WorldFile::Programs(named_texts(reader)?),
            6 => WorldFile::Ladder { text: text(reader)?, files: named_texts(reader)? },
            2 => WorldFile::Record(Record::decode(reader)?),
            3 => WorldFile::Record(Record::decode_extended(reader)?),
            5 => WorldFile::Record(Record::decode_unrepeated(reader)?),
            kind @ (7 | 8) => WorldFile::Distilled(Distilled::decode(reader, kind == 7)?),
            4 if is_outer => WorldFile::Started {
                world: match reader.bool()? {
                    true => Some(Box::new(WorldFile::decode(reader, false)?)),
                    false => None,
                },
                start: Box::new(Start::decode(reader)?),
            },
            _ => return Err(foreign),
        })
    }
}

/// Texts by name, in rising order of their names.
fn named_texts(reader: &mut Reader<'_>) -> Result<BTreeMap<String, String>, DecodeError> {
    let foreign = reader.error("texts that are not in the order of their names");
    let mut texts = BTreeMap::new();
    for _ in 0..reader.length(8)? {
        let (name, text) = (reader.text()?.to_string(), reader.text()?.to_string());
        if texts.last_key_value().is_some_and(|(last, _)| name <= *last) {
            return Err(foreign);
        }
        texts.insert(name, text);
    }
    Ok(texts)
}

#[cfg(test)]
mod tests;
