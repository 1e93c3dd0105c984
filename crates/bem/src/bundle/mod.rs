//! A policy that carries its proof: one JSON file with the circuit, what is claimed of it, the certificates, what was
//! measured and where it comes from, signed with the key of its run.
//!
//! `docs/formats/bundle.md` draws the file and says what a checker does; `tools/bundle_check.py` is a second one that shares
//! nothing with this. [`make`] writes a bundle, [`check`] believes none of it. The file has one spelling: keys in order,
//! whole numbers, no spaces, a newline at the end. Clauses: SCC-3, SCC-4, LOG-2, LOG-3, GLE-9.

pub mod check;
pub mod claim;
pub mod features;
pub mod make;

use crate::measured::Measured;
use features::NamedFeature;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A file has at most this many bytes.
pub const BYTES_MAX: usize = 64 << 20;
/// The format of the body: the history names the file that says figures, seed, warnings and features. It may have features or
/// not, and forbidden pairs may leave bits free or not.
pub const FORMAT: &str = "bem-bundle-4";
/// The format of a run whose file says figures alone; seed and warnings are signed and nothing else.
pub const FORMAT_OF_FIGURES: &str = "bem-bundle-1";
/// The same with features, which are signed and nothing else.
pub const FORMAT_WITH_FEATURES: &str = "bem-bundle-2";
/// The same with forbidden pairs that leave bits free; with features or without.
pub const FORMAT_WITH_PATTERNS: &str = "bem-bundle-3";
/// All formats that are known.
pub const FORMATS: [&str; 4] = [FORMAT_OF_FIGURES, FORMAT_WITH_FEATURES, FORMAT_WITH_PATTERNS, FORMAT];
/// Inputs over which a checker tries every case.
pub const EXHAUSTIVE_INPUTS_MAX: usize = 20;

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// Everything that is signed.
    pub body: Body,
    /// SHA-256 of the body's spelling, in hexadecimal.
    pub digest: String,
    /// The run's ed25519 signature of the body's spelling, in hexadecimal.
    pub signature: String,
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// The version of the form.
    pub format: String,
    /// What the bits of an observation mean; not there where they have no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<NamedFeature>>,
    /// The circuit.
    pub policy: Circuit,
    /// What it does, as ordered rules; none where no list of rules is proven to be the circuit.
    pub statement: Option<Statement>,
    /// Actions that it never takes for what is seen.
    pub forbidden: Vec<Forbidden>,
    /// Why the statement holds and the forbidden actions are never taken.
    pub certificates: Certificates,
    /// What was measured.
    pub measured: Option<Measured>,
    /// The run's file of figures, word for word.
    pub evaluation: Option<String>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// A policy's circuit. Signals: 0 is false, 1 is true, then the inputs (observation bits that are read, then memory), then
/// the gates in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circuit {
    /// Actions of the world.
    pub actions: u16,
    /// Bits that the world shows.
    pub observation_bits: u16,
    /// Which of them are read, ascending.
    pub reads: Vec<u16>,
    /// Bits of memory.
    pub memory_bits: u32,
    /// Operation, first and second signal of every gate.
    pub gates: Vec<(u8, u32, u32)>,
    /// The action's code, lowest bit first, then the next memory.
    pub outputs: Vec<u32>,
}

/// The policy as rules: the action's code, then every bit of the next memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The action.
    pub action: List,
    /// Every bit of the next memory.
    pub memory: Vec<List>,
}

/// Ordered rules: the first whose conditions all hold says the outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// In order.
    pub rules: Vec<Rule>,
    /// The outputs where no rule applies.
    pub otherwise: Vec<u8>,
}

/// One rule of the explanation in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// All of these.
    pub when: Vec<Condition>,
    /// The outputs then.
    pub then: Vec<u8>,
}

/// A fact about inputs that must hold, or must not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// `bit`, `at_least`, `equals`, `less`, `same`, `odd` or `count`.
    pub fact: String,
    /// The inputs that it is about, lowest bit first.
    pub of: Vec<u32>,
    /// The second number of `less` and `same`; empty elsewhere.
    pub than: Vec<u32>,
    /// The number of `at_least`, `equals` and `count`; 0 elsewhere.
    pub value: u64,
    /// Whether it must hold.
    pub holds: bool,
}

/// An action that is never taken for what is seen, whatever is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forbidden {
    /// Every bit that the world shows; a dash for one that may be any.
    pub observation: String,
    /// What is not done then.
    pub action: u16,
}

/// Certificates for the claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificates {
    /// For the statement, if there is one.
    pub statement: Option<Certificate>,
    /// For every forbidden pair.
    pub forbidden: Vec<Certificate>,
}

/// Why a claim holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// `lrat`: a proof that the claim's clauses have no model. `exhaustive`: every case is to be tried.
    pub kind: String,
    /// The LRAT proof as text; empty for `exhaustive`.
    pub proof: String,
}

/// Where a policy comes from: entries of the run's history, each with its path to the signed checkpoint's root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// What it was learned for.
    pub task: String,
    /// The learner's hypothesis in words.
    pub hypothesis: String,
    /// The run's seed.
    pub seed: u64,
    /// Steps of learning.
    pub steps: u64,
    /// What to look out for when it is used.
    pub warnings: Vec<String>,
    /// The run's public key.
    pub public_key: String,
    /// The signed checkpoint, a note.
    pub checkpoint: String,
    /// The first entry: the key.
    pub genesis: Logged,
    /// The unit's beginning: the task and the budget.
    pub unit_begin: Logged,
    /// The unit's end: the circuit.
    pub unit_end: Logged,
    /// The naming of the file of figures, if there is one.
    pub evaluation: Option<Logged>,
}

/// One entry of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logged {
    /// Its place.
    pub index: u64,
    /// Its bytes in hexadecimal.
    pub entry: String,
    /// The audit path of RFC 6962, in hexadecimal.
    pub path: Vec<String>,
}

impl Forbidden {
    /// Whether it leaves some bit free.
    pub fn is_pattern(&self) -> bool {
        self.observation.contains('-')
    }
}

impl Body {
    /// The one spelling, which is signed.
    pub fn spelling(&self) -> String {
        serde_json::to_value(self).unwrap_or(Value::Null).to_string()
    }
}

impl Bundle {
    /// The file's text.
    pub fn text(&self) -> String {
        serde_json::to_value(self).unwrap_or(Value::Null).to_string() + "\n"
    }
}

/// Bytes in lower-case hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of lower-case hexadecimal.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .map(|digit| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        })
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
