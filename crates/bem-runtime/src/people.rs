//! The people's layer of a service: which questions are open, which answers are in force, and what both have changed.
//!
//! Every change is a function of the inputs so far. A request is checked first ([`Service`] methods in [`ask`]); what is
//! refused is no input. Answers are applied in [`apply`], questions are asked by the machine itself in [`trigger`], changes of
//! the policy wait in [`standing`] and are judged in [`oversight`], templates of the machine's own in [`templates`]. Must not know HTTP, clocks or the ledger: it leaves notes
//! ([`Note`]) of which the book makes entries. Clauses: HUM-1 to HUM-11; decisions D-29, D-76 to D-79.
//!
//! [`Service`]: crate::service::Service

pub mod apply;
pub mod ask;
pub mod change;
pub mod entries;
pub mod input;
pub mod oversight;
pub mod preview;
pub mod standing;
pub mod templates;
pub mod trigger;

use self::change::{Change, Given, Inverse};
use crate::book::Published;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;
use bem_people::control::{Control, Counters};
use bem_people::group::Groups;
use bem_people::kinds::{Decision, Skip};
use bem_people::payload::{Answer, TAG_SAFETY};
use bem_people::table::{Question, Table};
use bem_people::windows::Window;
use std::collections::{BTreeMap, BTreeSet};

/// Answers that can be looked at and taken back; older ones are in the ledger.
pub const GIVEN_MAX: usize = 4_096;
/// Policies that are remembered as approved, and as rejected.
const JUDGED_MAX: usize = 4_096;
/// Inputs in which safety may be loosened so often.
pub const DRIFT_WINDOW: u64 = 100_000;
/// See [`DRIFT_WINDOW`].
pub const DRIFT_MAX: usize = 2;
/// Inputs for which an answer can be taken back.
pub const UNDO_STEPS: u64 = 1 << 20;

/// What happened to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Asked.
    Created,
    /// Leased, given back, or waiting for a second person.
    Updated,
    /// Answered.
    Answered,
    /// The answer took effect.
    Applied,
    /// Nobody will answer.
    Skipped(Skip),
}

/// What the ledger is told.
#[derive(Clone, Debug)]
pub enum Note {
    /// A question moved on.
    Moved {
        /// The question as it was then.
        question: Box<Question>,
        /// What happened.
        phase: Phase,
        /// The answer, if there is one.
        answer: Vec<u8>,
        /// What it decides about a patch.
        decision: Decision,
        /// A second person has confirmed it.
        confirmed: bool,
        /// The input.
        step: u64,
    },
    /// An answer changed something, or was taken back.
    Changed {
        /// The input with which it was answered.
        answer: u64,
        /// The question.
        question: u64,
        /// Whether it was taken back.
        undone: bool,
        /// What changed.
        changes: Vec<Change>,
        /// The input.
        step: u64,
    },
    /// A round of learning took effect, was turned down or was taken back because of a person.
    Published(Box<Published>),
}

/// Everything that people have to do with a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    pub(crate) control: Control,
    pub(crate) counters: Counters,
    pub(crate) table: Table,
    pub(crate) groups: Groups,
    /// Of steps and of episodes.
    pub(crate) windows: [Window; 2],
    /// Answers by the input with which they were given.
    pub(crate) given: BTreeMap<u64, Given>,
    /// Policies by the digest of world and content.
    pub(crate) approved: BTreeSet<Digest>,
    pub(crate) rejected: BTreeSet<Digest>,
    /// Which world is learned first: the highest.
    pub(crate) priors: BTreeMap<u16, Fixed>,
    /// When safety was loosened.
    pub(crate) loosened: Vec<u64>,
}

impl People {
    /// What may be asked, and how much answers count.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// What was asked and answered so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The questions that are open.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// How people have answered.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The latest answers, by the input with which they were given.
    pub fn given(&self) -> &BTreeMap<u64, Given> {
        &self.given
    }

    /// What is left to ask about steps and episodes, in questions.
    pub fn budget(&self) -> [u64; 2] {
        self.windows.map(|window| window.left() / u64::from(bem_people::control::RATE_ONE))
    }

    /// How much a world is wanted to be learned first.
    pub fn prior(&self, world: u16) -> Fixed {
        self.priors.get(&world).copied().unwrap_or(Fixed::ZERO)
    }

    pub(crate) fn remember(&mut self, number: u64, given: Given) {
        self.given.insert(number, given);
        if GIVEN_MAX < self.given.len() {
            self.given.pop_first();
        }
    }

    /// Whether somebody has called an episode of a world unsafe, in an answer that stands.
    pub(crate) fn is_tagged(&self, world: u16) -> bool {
        let stands = |given: &&Given| {
            given.undone == 0 && matches!(given.inverse, Inverse::Episode { world: of, .. } if of == world)
        };
        self.given.values().filter(stands).any(|given| match Answer::from_bytes(given.kind, &given.answer) {
            Ok(Answer::Episode(said)) => said.tags & TAG_SAFETY != 0,
            _ => false,
        })
    }

    /// Whether a policy is known as approved or rejected.
    pub(crate) fn judgement(&self, policy: &Digest) -> Option<bool> {
        let is_approved = self.approved.contains(policy);
        (is_approved || self.rejected.contains(policy)).then_some(is_approved)
    }

    pub(crate) fn forget_judgement(&mut self, policy: &Digest) {
        self.approved.remove(policy);
        self.rejected.remove(policy);
    }

    pub(crate) fn judge(&mut self, policy: Digest, is_approved: bool) {
        let (to, from) = match is_approved {
            true => (&mut self.approved, &mut self.rejected),
            false => (&mut self.rejected, &mut self.approved),
        };
        from.remove(&policy);
        if to.len() < JUDGED_MAX {
            to.insert(policy);
        }
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.control.encode(writer);
        self.counters.encode(writer);
        self.table.encode(writer);
        self.groups.encode(writer);
        self.windows.iter().for_each(|window| window.encode(writer));
        writer.length(self.given.len());
        for (number, given) in &self.given {
            writer.u64(*number);
            given.encode(writer);
        }
        for policies in [&self.approved, &self.rejected] {
            writer.length(policies.len());
            policies.iter().for_each(|policy| writer.raw(policy.as_bytes()));
        }
        writer.length(self.priors.len());
        for (world, prior) in &self.priors {
            writer.u16(*world);
            writer.i64(prior.to_raw());
        }
        writer.length(self.loosened.len());
        self.loosened.iter().for_each(|step| writer.u64(*step));
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<People, DecodeError> {
        let malformed = reader.error("more answers than are kept");
        let (control, counters) = (Control::decode(reader)?, Counters::decode(reader)?);
        let (table, groups) = (Table::decode(reader)?, Groups::decode(reader)?);
        let windows = [Window::decode(reader)?, Window::decode(reader)?];
        let mut given = BTreeMap::new();
        for _ in 0..reader.length(40)? {
            given.insert(reader.u64()?, Given::decode(reader)?);
        }
        let mut policies = [BTreeSet::new(), BTreeSet::new()];
        for set in &mut policies {
            for _ in 0..reader.length(32)? {
                set.insert(Digest::decode(reader)?);
            }
        }
        let mut priors = BTreeMap::new();
        for _ in 0..reader.length(10)? {
            priors.insert(reader.u16()?, Fixed::from_raw(reader.i64()?));
        }
        let loosened = (0..reader.length(8)?).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
        if GIVEN_MAX < given.len() || DRIFT_MAX < loosened.len() {
            return Err(malformed);
        }
        let [approved, rejected] = policies;
        Ok(People { control, counters, table, groups, windows, given, approved, rejected, priors, loosened })
    }
}
