//! The configuration of a run: every frozen parameter of the specification, read once and never changed.
//!
//! A file names only what differs from the defaults. Whatever is wrong with it, the error names line, field, value and
//! allowed range, and nothing starts. Must not know how a parameter is used. Clauses: MEM-3, VM-5, D-13.

mod check;
mod parameters;
mod reference;
mod table;
mod value;
mod words;

pub use parameters::GenesisConfig;
pub use reference::{Entry, Reference, Trial};
pub use value::Word;
pub use words::{ChoiceRule, RouterKind, SchedulerKind};

use bem_base::digest::{self, Digest};
use bem_base::encode::{DecodeError, Reader, Writer};
use std::collections::BTreeMap;

/// The first version of the canonical bytes: every parameter that no row of [`ADDED`] names.
const VERSION_FIRST: u32 = 2;
/// The parameters that came later, with the version of the canonical bytes that came with them: a new parameter is one more row,
/// with the next number, or a name in the last row while no build has written that version yet. What leaves the parameters of a
/// row and of those below it at their defaults is written in the version before: its bytes, and with them the identity of its
/// runs, are those of builds before.
const ADDED: &[(u32, &[&str])] = &[(3, &["exploration_plans", "exploration_hope", "alarms"])];

/// Whether canonical bytes of a version have this parameter, by such a table.
fn has_parameter(added: &[(u32, &[&str])], version: u32, name: &str) -> bool {
    added.iter().all(|(since, names)| *since <= version || !names.contains(&name))
}

/// The oldest version, by such a table, that says everything where these parameters are not at their defaults.
fn oldest_version(added: &[(u32, &[&str])], is_moved: impl Fn(&str) -> bool) -> u32 {
    let moved = added.iter().rev().find(|(_, names)| names.iter().any(|name| is_moved(name)));
    moved.map_or(VERSION_FIRST, |(since, _)| *since)
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not TOML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Counted from one.
        line: usize,
        /// What the reader says.
        message: String,
    },
    /// What is wrong stands in this line of the file.
    #[error("line {line}: {error}")]
    At {
        /// Counted from one.
        line: usize,
        /// What is wrong.
        error: Box<ConfigError>,
    },
    /// No parameter has this name.
    #[error("there is no parameter {field:?}; known are {}", GenesisConfig::NAMES.join(", "))]
    UnknownField {
        /// The name found.
        field: String,
    },
    /// A value outside its range, or of the wrong kind.
    #[error("{field} cannot be {value}: it must be {allowed}")]
    OutOfRange {
        /// Which parameter.
        field: &'static str,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: String,
    },
    /// Two values that are fine alone do not go together.
    #[error("{field} cannot be {value}: {relation}")]
    Relation {
        /// Which parameter.
        field: &'static str,
        /// What was given.
        value: String,
        /// What must hold.
        relation: &'static str,
    },
}

impl ConfigError {
    /// The parameter that it is about, if it is about one.
    fn field(&self) -> Option<&str> {
        match self {
            ConfigError::Syntax { .. } => None,
            ConfigError::At { error, .. } => error.field(),
            ConfigError::UnknownField { field } => Some(field),
            ConfigError::OutOfRange { field, .. } | ConfigError::Relation { field, .. } => Some(field),
        }
    }
}

impl GenesisConfig {
    /// Reads a file: what it does not name keeps its default, what nobody knows is refused.
    pub fn from_toml(text: &str) -> Result<GenesisConfig, ConfigError> {
        let line_at = |offset: usize| {
            1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
        };
        let table = toml::de::DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            line: line_at(error.span().map_or(0, |span| span.start)),
            message: error.message().lines().next().unwrap_or("not a table").to_string(),
        })?;
        let mut config = GenesisConfig::default();
        let mut lines = BTreeMap::new();
        for (field, value) in table.get_ref() {
            let line = line_at(field.span().start);
            lines.insert(field.get_ref().to_string(), line);
            let at = |error| ConfigError::At { line, error: Box::new(error) };
            config.assign(field.get_ref(), value.get_ref()).map_err(at)?;
        }
        config.check().map_err(|error| match error.field().and_then(|field| lines.get(field)) {
            Some(line) => ConfigError::At { line: *line, error: Box::new(error) },
            None => error,
        })?;
        Ok(config)
    }

    /// The first parameter in which another configuration differs: its name, the value here and the value there.
    pub fn first_difference(&self, other: &GenesisConfig) -> Option<(&'static str, String, String)> {
        let pairs = self.entries().into_iter().zip(other.entries());
        let mut different = pairs.filter(|(here, there)| here.value != there.value);
        different.next().map(|(here, there)| (here.name, here.value, there.value))
    }

    /// The whole configuration as a file, every parameter with its meaning and range.
    pub fn to_toml(&self) -> String {
        let (mut text, mut section) = (String::new(), "");
        for entry in self.entries() {
            if section != entry.section {
                section = entry.section;
                text.push_str(&format!("\n# {section}\n"));
            }
            let Entry { name, specification, meaning, allowed, default, value, .. } = entry;
            text.push_str(&format!("\n# {meaning}\n# {specification}; {allowed}; default {default}.\n"));
            text.push_str(&format!("{name} = {value}\n"));
        }
        text.trim_start().to_string()
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        let version = self.version();
        writer.u32(version);
        self.encode_fields(version, writer);
    }

    /// The oldest version of the bytes that says everything.
    fn version(&self) -> u32 {
        let default = GenesisConfig::default();
        oldest_version(ADDED, |name| !self.has_equal(&default, name))
    }

    /// Reads canonical bytes and checks them like a file.
    pub fn decode(reader: &mut Reader<'_>) -> Result<GenesisConfig, DecodeError> {
        let start = reader.clone();
        let version = reader.u32()?;
        if version != VERSION_FIRST && ADDED.iter().all(|(since, _)| *since != version) {
            return Err(start.error("an unknown version of the configuration"));
        }
        let config = GenesisConfig::decode_fields(version, reader)?;
        if config.version() != version {
            return Err(start.error("a configuration that an older version says too"));
        }
        config.check().map_err(|_| start.error("a configuration outside its ranges"))?;
        Ok(config)
    }

    /// The digest of the canonical bytes: part of a run's identity.
    pub fn digest(&self) -> Digest {
        let mut writer = Writer::new();
        self.encode(&mut writer);
        digest::hash_parts("bem/config", &[writer.as_bytes()])
    }
}

#[cfg(test)]
mod tests;
