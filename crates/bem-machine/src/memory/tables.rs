//! What SHARED shows of the machine's tables: BANDIT, ROUTE_META and EXPERT.
//!
//! The step works on tables of its own; at a barrier they are written into these segments, where programs of the
//! control core and everyone else who may read them find them. Nothing reads them back: a word that somebody else
//! changed is put right at the next barrier. Each segment begins with a contents list, and a family whose rows do not
//! fit any more is listed with none:
//!
//! ```text
//! word 0    families listed
//! word 1    step of the barrier
//! word 2    first row of family 0, as an offset in words; word 3 how many words its rows take
//! word 4    first row of family 1, ...
//! ```
//!
//! The contents take whole pages of 64 words. Rows of BANDIT are those of [`Bucket::words`], the episode's first; rows
//! of EXPERT and ROUTE_META are below. Must not know how a step uses the tables. Clauses: MEM-2, VM-1, VM-6, D-10.

use super::segment::{Caller, Segment};
use super::shared::{MemoryError, SharedMemory, SharedView};
use crate::family::Family;
use crate::route::directory::{Directory, RouteInput};
use bem_base::limits::ARMS_MAX;
use bem_learn::bucket::{BUCKET_WORDS, Bucket};

/// Words of one slot in EXPERT.
pub const EXPERT_WORDS: usize = 16;
/// Words before the declared bits of a family in ROUTE_META.
const ROUTE_HEADER: usize = 4;
/// Contents lists take whole pages.
const PAGE: usize = 64;

/// Words of one slot in EXPERT; all are zero where the slot is empty.
pub mod expert_word {
    /// The identifier.
    pub const ID: usize = 0;
    /// Bit 0: the slot is taken; bit 1: sticky; bit 2: live in every bucket or in the episode's.
    pub const FLAGS: usize = 1;
    /// Work units of one call.
    pub const COST: usize = 2;
    /// Experts that the slot has held.
    pub const GENERATION: usize = 3;
    /// The priority.
    pub const PRIORITY: usize = 4;
    /// The macro it stands for.
    pub const MACRO_TAG: usize = 5;
    /// Counts its replacements.
    pub const VERSION: usize = 6;
    /// Inputs, outputs and gates of its circuit.
    pub const INPUTS: usize = 7;
    /// Outputs of its circuit.
    pub const OUTPUTS: usize = 8;
    /// Gates of its circuit.
    pub const GATES: usize = 9;
    /// The first of four words of the circuit's digest, little-endian.
    pub const DIGEST: usize = 10;
}

/// Writes all tables; `step` is the barrier's.
///
/// Cost: proportional to the tables, so this is for barriers and never for a step.
pub(crate) fn publish(families: &[Family], shared: &mut SharedMemory, step: u64) {
    let mut view = shared.view_mut(Caller::Structure);
    for segment in [Segment::Bandit, Segment::RouteMeta, Segment::Expert] {
        let words = view.segment_mut(segment).expect("structure writes its own tables");
        let mut rows = Rows::begin(words, families.len(), step);
        for family in families {
            match segment {
                Segment::Bandit => rows.append(bandit_words(family)),
                Segment::RouteMeta => rows.append(route_words(family.directory())),
                _ => rows.append(expert_words(family)),
            }
        }
    }
}

/// A segment being written.
struct Rows<'a> {
    words: &'a mut [u64],
    /// Families that the contents have room for, and those written so far.
    listed: usize,
    next_family: usize,
    next_word: usize,
}

impl<'a> Rows<'a> {
    fn begin(words: &'a mut [u64], families: usize, step: u64) -> Rows<'a> {
        // What was written before ends with its last family's rows; behind them nobody has written.
        let rows = |family: usize| (words.get(2 + 2 * family), words.get(3 + 2 * family));
        let listed_before = (words[0] as usize).min((words.len() - 2) / 2);
        let ends = (0..listed_before).filter_map(|family| match rows(family) {
            (Some(first), Some(count)) => Some(first.saturating_add(*count) as usize),
            _ => None,
        });
        let header = 2 + 2 * listed_before;
        let used = ends.fold(header, usize::max).min(words.len());
        words[..used].fill(0);
        let listed = families.min((words.len() - 2) / 2);
        (words[0], words[1]) = (listed as u64, step);
        let next_word = (2 + 2 * listed).next_multiple_of(PAGE);
        Rows { words, listed, next_family: 0, next_word }
    }

    /// Takes a family's rows, all of them or none.
    fn append(&mut self, rows: Vec<u64>) {
        let (family, first) = (self.next_family, self.next_word);
        self.next_family += 1;
        if family < self.listed
            && let Some(place) = self.words.get_mut(first..first + rows.len())
        {
            place.copy_from_slice(&rows);
            self.words[2 + 2 * family] = first as u64;
            self.words[3 + 2 * family] = rows.len() as u64;
            self.next_word += rows.len();
        }
    }
}

fn bandit_words(family: &Family) -> Vec<u64> {
    core::iter::once(family.episode_bucket()).chain(family.buckets()).flat_map(Bucket::words).collect()
}

fn route_words(directory: &Directory) -> Vec<u64> {
    let (depth, inputs) = (directory.depth() as u64, directory.inputs().len() as u64);
    let mut words = vec![depth, inputs, directory.bucket_count() as u64, 0];
    assert!(words.len() == ROUTE_HEADER);
    for (input, column) in directory.inputs().iter().zip(directory.columns()) {
        words.push(match input {
            RouteInput::State(bit) => u64::from(*bit),
            RouteInput::Shared { address, bit } => 1 << 63 | u64::from(*address) << 8 | u64::from(*bit),
        });
        words.push(*column);
    }
    for entries in directory.entries().chunks(4) {
        let pack = |word, (place, entry): (usize, &u16)| word | u64::from(*entry) << (16 * place);
        words.push(entries.iter().enumerate().fold(0, pack));
    }
    words
}

fn expert_words(family: &Family) -> Vec<u64> {
    let mut words = vec![0; ARMS_MAX * EXPERT_WORDS];
    let live = family.buckets()[0].live() | family.episode_bucket().live() & !1;
    for (slot, expert) in family.occupied() {
        let row = &mut words[slot * EXPERT_WORDS..(slot + 1) * EXPERT_WORDS];
        let (profile, routing, circuit) = (expert.profile(), expert.routing(), expert.placed().circuit());
        let flags = [true, profile.sticky, live >> slot & 1 == 1];
        row[expert_word::ID] = u64::from(expert.id().to_word());
        row[expert_word::FLAGS] =
            flags.into_iter().enumerate().fold(0, |word, (bit, flag)| word | u64::from(flag) << bit);
        row[expert_word::COST] = u64::from(expert.cost());
        row[expert_word::GENERATION] = u64::from(family.generation(slot));
        row[expert_word::PRIORITY] = u64::from(routing.priority);
        row[expert_word::MACRO_TAG] = u64::from(routing.macro_tag);
        row[expert_word::VERSION] = u64::from(routing.version);
        row[expert_word::INPUTS] = circuit.inputs() as u64;
        row[expert_word::OUTPUTS] = circuit.outputs().len() as u64;
        row[expert_word::GATES] = circuit.gates().len() as u64;
        let digest = circuit.digest();
        for (word, bytes) in row[expert_word::DIGEST..].iter_mut().zip(digest.as_bytes().chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
    }
    words
}

/// The tables as they stood at the last barrier, for a caller who may read them.
#[derive(Clone, Copy)]
pub struct PublishedTables<'a> {
    bandit: &'a [u64],
    route: &'a [u64],
    expert: &'a [u64],
}

/// The rows of one family in a segment; nothing if it is not listed or did not fit.
fn rows_of(words: &[u64], family: usize) -> Option<&[u64]> {
    if words.first().is_none_or(|listed| *listed <= family as u64) {
        return None;
    }
    let (first, count) = (*words.get(2 + 2 * family)? as usize, *words.get(3 + 2 * family)? as usize);
    words.get(first..first.checked_add(count)?).filter(|rows| !rows.is_empty())
}

impl<'a> PublishedTables<'a> {
    /// Refused if the caller may not read one of the three segments.
    pub fn new(view: SharedView<'a>) -> Result<PublishedTables<'a>, MemoryError> {
        Ok(PublishedTables {
            bandit: view.segment(Segment::Bandit)?,
            route: view.segment(Segment::RouteMeta)?,
            expert: view.segment(Segment::Expert)?,
        })
    }

    /// The step of the barrier at which they were written.
    pub fn step(&self) -> u64 {
        self.bandit[1]
    }

    /// The words of a bucket; `None` is the bucket of whole episodes.
    pub fn bucket(&self, family: usize, bucket: Option<u16>) -> Option<&'a [u64]> {
        let place = bucket.map_or(0, |bucket| 1 + usize::from(bucket));
        rows_of(self.bandit, family)?.chunks_exact(BUCKET_WORDS).nth(place)
    }

    /// The words of a slot; see [`expert_word`].
    pub fn expert(&self, family: usize, slot: usize) -> Option<&'a [u64]> {
        rows_of(self.expert, family)?.chunks_exact(EXPERT_WORDS).nth(slot)
    }

    /// The bucket that a signature is routed to.
    pub fn bucket_of(&self, family: usize, signature: u64) -> Option<u16> {
        let rows = rows_of(self.route, family)?;
        let (depth, inputs) = (*rows.first()?, *rows.get(1)? as usize);
        let place = (signature & 1u64.checked_shl(depth as u32)?.wrapping_sub(1)) as usize;
        let word = rows.get(ROUTE_HEADER.checked_add(inputs.checked_mul(2)?)?.checked_add(place / 4)?)?;
        Some((word >> (16 * (place % 4))) as u16)
    }

    /// The declared bits of a family, each with its column.
    pub fn declared(&self, family: usize) -> Option<Vec<(RouteInput, u64)>> {
        let rows = rows_of(self.route, family)?;
        let inputs = *rows.get(1)? as usize;
        let pairs = rows.get(ROUTE_HEADER..ROUTE_HEADER.checked_add(inputs.checked_mul(2)?)?)?;
        let input = |word: u64| match word >> 63 {
            0 => RouteInput::State(word as u16),
            _ => RouteInput::Shared { address: (word >> 8) as u32, bit: word as u8 },
        };
        Some(pairs.chunks_exact(2).map(|pair| (input(pair[0]), pair[1])).collect())
    }
}
