//! When an episode is played for knowledge, and when for what it earns: exploration that fades by itself.
//!
//! Exploring episodes are allowed while fewer were played than a quota: so many for every action, twice those before the last
//! gain that was shown, and the root of actions times episodes, so that the search for structure is never starved and the share
//! of exploration still vanishes. Where the counts leave open that much more can be earned than what acts does, the quota is
//! larger; where what acts earns the declared maximum, or the most there is by every decision that was shown to matter, only the
//! root is left. Four of five allowed episodes explore: what acts must be seen to be judged. Where actions change what follows, the
//! explorer's plan is played in seven of eight exploring episodes; where its counts leave hardly anything open, that is a posterior
//! draw, and it is played in fifteen of sixteen. Clauses: VM-16, SCC-8; decisions D-50, D-243, D-244.

use crate::codec::{decode_option, encode_option};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_learn::loss::Widening;
use bem_machine::config::GenesisConfig;
use bem_machine::turn::Turn;
use bem_synth::experience::Episode;
use bem_synth::models::control::{Explorer, Lens};

/// Actions that the quota counts at most.
const ACTIONS_MAX: u64 = 64;
/// Of so many episodes that may explore one acts.
pub(super) const ACTING_ONE_IN: u64 = 5;
/// Exploring episodes between two looks at what may be left, at least.
const HOPE_EPISODES: u64 = 64;
/// The quota is so many times as large where the counts leave open that much more can be earned.
const HOPEFUL: u64 = 16;
/// Episodes of what acts before it can be at the top, and the part of the range of returns that it may lose there.
const TOP_EPISODES: i128 = 16;
const TOP_SHARE: i128 = 200;
/// A change of the world counts for so many times the actions in the root.
const CHANGING: u64 = 8;
/// Returns are compared in this many parts of their range.
const PARTS: i128 = 1 << 20;
/// In bytes of versions before 10 they were so many.
const PARTS_BEFORE: i128 = 1 << 12;
/// Episodes that a mean is made of before all are halved.
const EPISODES_MAX: i128 = 1 << 20;
/// What the log says about contexts counts as a gain if it explains at least this part of what rewards differ by, and what pairs
/// or counts show if it is at least this part of the range of returns.
pub(super) const EXPLAINED_MIN: Fixed = Fixed::from_ratio(1, 100);

/// Of so many exploring episodes one is drawn where there is an explorer; fewer where the counts leave hardly anything open.
const DRAWN_ONE_IN: u64 = 8;
const DRAWN_ONE_IN_KNOWN: u64 = 16;

/// What is left is judged by this part of the span of returns at least, however well drawn play does.
const SPAN_PARTS: i64 = 32;

/// Versions of a learner's bytes from which on it is said whether a world is known by its counts, whether anything depends on
/// what is seen, and how far apart returns were seen.
const SAYS_KNOWN: u32 = 9;
const SAYS_EXPLAINED: u32 = 10;
const SAYS_SPAN: u32 = 10;

/// How episodes are divided between exploring and acting.
#[derive(Clone, Debug, Default)]
pub(super) struct Exploration {
    /// Where actions change what follows: what plays for knowledge.
    explorer: Option<Explorer>,
    /// Exploring episodes so far.
    explored: u64,
    /// How many there had been at the last gain that was shown, since the world last changed.
    at_gain: u64,
    /// How many there had been when the world last changed.
    at_change: u64,
    /// What was earned by what acts now.
    acting: Returns,
    /// What the best play may earn by the counts, in parts of the range of returns; none where nothing can be said.
    hoped: Option<i64>,
    /// Exploring episodes when that was worked out.
    hoped_at: u64,
    /// What acts earns the most there is by every decision that was shown to matter.
    settled: bool,
    /// How far apart returns were seen when that was worked out, in milli-units.
    span: Option<i64>,
    /// A hundredth of that in parts of the range of returns: what is less is nothing to look for.
    margin: i64,
    /// The counts leave open a hundredth of the range of returns at most.
    known: bool,
    /// Something was shown to depend on what is seen.
    explained: bool,
    /// How often the world has changed.
    changes: u64,
}

/// Count and sum of returns, in parts of their range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Returns {
    count: i128,
    sum: i128,
}

impl Returns {
    fn book(&mut self, part: i128) {
        *self = Returns { count: self.count + 1, sum: self.sum + part };
        if EPISODES_MAX <= self.count {
            *self = Returns { count: self.count / 2, sum: self.sum / 2 };
        }
    }

    /// Returns are measured in parts of a wider range from now on, rounded down.
    fn rescale(&mut self, widening: Widening) {
        // At most 2^20 episodes, each at most 2^20 parts.
        self.sum = widening.apply(self.sum as u64, (self.count * PARTS) as u64).into();
    }

    fn encode(&self, writer: &mut Writer) {
        [self.count, self.sum].iter().for_each(|number| writer.u64(*number as u64));
    }

    /// Reads returns in units of so many parts.
    fn decode(unit: i128, reader: &mut Reader<'_>) -> Result<Returns, DecodeError> {
        let malformed = reader.error("returns that nobody can have earned");
        let (count, sum) = (i128::from(reader.u64()?), i128::from(reader.u64()?) * unit);
        let fits = count < EPISODES_MAX && sum <= count * PARTS;
        if fits { Ok(Returns { count, sum }) } else { Err(malformed) }
    }
}

/// Actions as the quota counts them.
fn counted_actions(shape: &Shape) -> u64 {
    u64::from(shape.actions).min(ACTIONS_MAX)
}

/// A return in parts of its range.
fn part_of(shape: &Shape, total: i64) -> i128 {
    let (low, high) = (i128::from(shape.return_min), i128::from(shape.return_max));
    (i128::from(total).clamp(low, high) - low) * PARTS / (high - low).max(1)
}

/// How parts of a range of returns, which count from its low end, become parts of one that holds it.
pub(super) fn widening_of(before: &Shape, wider: &Shape) -> Widening {
    let span = |shape: &Shape| shape.return_max.abs_diff(shape.return_min).max(1);
    let offset = i128::from(before.return_min) - i128::from(wider.return_min);
    Widening::new(span(before), span(wider), offset)
}

/// A hundredth of a span of returns, in parts of the range of returns.
fn margin_of(shape: &Shape, span: i64) -> i64 {
    let range = i128::from((shape.return_max - shape.return_min).max(1));
    (i128::from(span) * PARTS / range).clamp(0, PARTS) as i64 / 100
}

impl Exploration {
    /// Whether the next episode explores.
    pub(super) fn is_next(
        &self,
        shape: &Shape,
        config: &GenesisConfig,
        episodes: u64,
        prng: &mut Prng,
    ) -> bool {
        self.allows(shape, config, episodes, self.explored) && prng.below(ACTING_ONE_IN) != 0
    }

    /// Whether an episode may explore after this many episodes, so many of which were played to explore.
    pub(super) fn allows(&self, shape: &Shape, config: &GenesisConfig, episodes: u64, explored: u64) -> bool {
        // With nothing to see and one step there is nothing to explain: the index explores by itself.
        let is_blind = shape.observation_bits == 0 && shape.horizon == 1;
        let quota = if self.is_at_top() {
            self.root(shape, config, episodes)
        } else if self.may_gain() {
            HOPEFUL.saturating_mul(self.quota(shape, config, episodes))
        } else {
            self.quota(shape, config, episodes)
        };
        !is_blind && explored < quota
    }

    /// Whether what acts earns the most that is declared to be possible, so that there is nothing to be found. The first losses
    /// open exploration again.
    fn is_at_top(&self) -> bool {
        let Returns { count, sum } = self.acting;
        TOP_EPISODES <= count && (PARTS * count - sum) * TOP_SHARE <= PARTS * count
    }

    /// Whether the counts leave open that much more can be earned than what acts does.
    pub(super) fn may_gain(&self) -> bool {
        let Some(hoped) = self.hoped.filter(|_| !self.known) else { return false };
        let count = self.acting.count.max(1);
        (self.acting.sum + i128::from(self.margin) * count) < i128::from(hoped) * count
    }

    /// Whether something is seen in a world of one step and nothing was shown to depend on it so far: what acts is then not known
    /// to be better than what could be chosen by what is seen.
    fn is_unexplained(&self, shape: &Shape) -> bool {
        shape.horizon == 1 && 0 < shape.observation_bits && !self.explained
    }

    /// Whether the counts leave open a hundredth of the range of returns at most.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// What plays for knowledge where actions change what follows.
    pub(super) fn explorer(&self) -> Option<&Explorer> {
        self.explorer.as_ref()
    }

    /// A search has found an explorer, or none. It sees the latest steps; whoever has counted through the same lens all along, as
    /// finely, knows more and stays.
    pub(super) fn adopt(&mut self, found: Option<Explorer>) {
        let knows_more = match (&self.explorer, &found) {
            (Some(held), Some(found)) => {
                !held.is_full() && (held.lens(), held.grain()) == (found.lens(), found.grain())
            }
            _ => false,
        };
        if !knows_more {
            self.explorer = found;
        }
    }

    /// Draws a plan for the next episode; false where the episode is not the explorer's.
    pub(super) fn prepare(&mut self, shape: &Shape, prng: &mut Prng) -> bool {
        let one_in = self.drawn_one_in();
        let Some(explorer) = &mut self.explorer else { return false };
        let is_planned = prng.below(one_in) != 0;
        if is_planned {
            explorer.prepare(self.span.unwrap_or(shape.return_max - shape.return_min), prng);
        }
        is_planned
    }

    /// Whose turn an episode of the explorer's plan is. Where nothing but the observation tells states apart, nothing is drawn in
    /// it: a drawn step ends a long walk. Elsewhere what was drawn says whether something is hidden.
    pub(super) fn plan_turn(&self) -> Turn {
        let is_open = self.explorer.as_ref().is_some_and(|explorer| *explorer.lens() == Lens::default());
        if is_open { Turn::STEADY } else { Turn::PLAN }
    }

    /// Of so many exploring episodes one is drawn where there is an explorer.
    pub(super) fn drawn_one_in(&self) -> u64 {
        if self.known { DRAWN_ONE_IN_KNOWN } else { DRAWN_ONE_IN }
    }

    /// Counts what an episode shows.
    pub(super) fn learn(&mut self, episode: &Episode) {
        self.explorer.iter_mut().for_each(|explorer| explorer.learn(episode));
    }

    /// An episode that was counted must not be learned from, or may be again.
    pub(super) fn keep(&mut self, episode: &Episode, is_kept: bool) {
        self.explorer.iter_mut().for_each(|explorer| explorer.keep(episode, is_kept));
    }

    /// Works out what the best play may earn by the counts as they are.
    /// Returns were seen within a span, which may be far less than what is declared: what is left is judged by that, and where
    /// single returns lie far below what drawn play earns on average, by twice what drawn play may fall short of the best.
    pub(super) fn look_ahead(&mut self, shape: &Shape, (span, drawn): (i64, Option<i64>), steps: u64) {
        let optimistic = self.explorer.as_ref().and_then(|explorer| explorer.optimistic_return(steps));
        let short = optimistic.zip(drawn).map(|(most, mean)| most.saturating_sub(mean).saturating_mul(2));
        let span = short.map_or(span, |short| span.min(short.max(span / SPAN_PARTS)).max(1));
        let is_close = |(explorer, optimistic): (&Explorer, i64)| explorer.is_close(span, optimistic);
        self.known = self.explorer.as_ref().zip(optimistic).is_some_and(is_close);
        self.hope(shape, span, optimistic);
    }

    /// The counts have grown: what the best play may earn by them, in milli-units, where returns were seen within this span.
    fn hope(&mut self, shape: &Shape, span: i64, optimistic: Option<i64>) {
        (self.span, self.margin) = (Some(span), margin_of(shape, span));
        self.hoped = optimistic.map(|total| part_of(shape, total) as i64);
        self.hoped_at = self.explored;
    }

    /// Whether so much was explored since that it should be worked out again.
    pub(super) fn is_hope_old(&self) -> bool {
        self.may_gain() && self.hoped_at + self.hoped_at / 4 + HOPE_EPISODES <= self.explored
    }

    /// Exploring episodes that are always allowed after this many. A world that has changed will change again, and what becomes
    /// better without being tried is seen by nobody else.
    fn root(&self, shape: &Shape, config: &GenesisConfig, episodes: u64) -> u64 {
        let changing = 1 + CHANGING * self.changes;
        let square = counted_actions(shape).saturating_mul(episodes).saturating_mul(changing);
        if config.exploration_root { square.isqrt() } else { 0 }
    }

    /// Exploring episodes that are allowed after this many episodes.
    fn quota(&self, shape: &Shape, config: &GenesisConfig, episodes: u64) -> u64 {
        let root = self.root(shape, config, episodes);
        if self.settled {
            return root;
        }
        // What explains nothing so far is given more time, and not a larger share of it for ever: it may mean nothing.
        let times = if self.is_unexplained(shape) { HOPEFUL } else { 1 };
        times * u64::from(config.exploration_episodes) * counted_actions(shape) + 2 * self.at_gain + root
    }

    /// Whether what acts earns the most there is by every decision that was shown to matter: then the root alone explores on.
    pub(super) fn settle(&mut self, settled: bool) {
        self.settled = settled;
    }

    /// Books an episode of this return that was played to explore, or by what acts.
    pub(super) fn book(&mut self, shape: &Shape, is_exploring: bool, total: i64) {
        let part = part_of(shape, total);
        match is_exploring {
            true => self.explored += 1,
            false => self.acting.book(part),
        }
    }

    /// Something else acts from now on.
    pub(super) fn hand_over(&mut self) {
        self.settled = false;
        self.acting = Returns::default();
    }

    /// The range of returns has become wider, from this one: what was measured in parts of it is brought onto the wider one. Where
    /// more may be earned than was thought, the explorer plans anew, and what is left to be found is worked out with the next look.
    pub(super) fn cover(&mut self, before: &Shape, shape: &Shape) {
        let widening = widening_of(before, shape);
        self.acting.rescale(widening);
        self.hoped = self.hoped.map(|hoped| widening.apply(hoped as u64, PARTS as u64) as i64);
        self.margin = margin_of(shape, self.span.unwrap_or(shape.return_max - shape.return_min));
        self.known &= before.return_max == shape.return_max;
        self.explorer.iter_mut().for_each(|explorer| explorer.cover(shape));
    }

    /// A gain was shown.
    pub(super) fn note_gain(&mut self) {
        self.at_gain = self.explored - self.at_change;
        self.explained = true;
    }

    /// What is seen was shown to matter, whether that gains enough or not.
    pub(super) fn note_explained(&mut self) {
        self.explained = true;
    }

    /// The world has changed: what was explored before says less, and what was counted may be wrong. In worlds of one step the
    /// index explores in the context concerned, which has forgotten what it knew, and the others stay as they are.
    pub(super) fn reopen(&mut self, shape: &Shape) {
        self.changes += 1;
        self.settled = false;
        self.acting = Returns::default();
        if 1 < shape.horizon {
            (self.explorer, self.known) = (None, false);
            self.at_gain = self.explored;
        } else {
            self.at_change = self.explored;
        }
    }

    /// The whole world may have changed: nothing that was counted is believed, and as much may be explored as at the start.
    pub(super) fn reopen_widely(&mut self) {
        self.changes += 1;
        (self.settled, self.acting) = (false, Returns::default());
        (self.explorer, self.known, self.hoped) = (None, false, None);
        self.at_gain = self.explored;
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        encode_option(writer, self.explorer.as_ref(), Explorer::encode);
        writer.u64(self.explored);
        writer.u64(self.at_gain);
        writer.u64(self.at_change);
        self.acting.encode(writer);
        encode_option(writer, self.hoped.as_ref(), |hoped, writer| writer.i64(*hoped));
        writer.u64(self.hoped_at);
        encode_option(writer, self.span.as_ref(), |span, writer| writer.i64(*span));
        writer.bool(self.settled);
        writer.bool(self.known);
        writer.bool(self.explained);
        writer.u64(self.changes);
    }

    /// Reads canonical bytes of this version back, for worlds of this shape; older ones do not say everything.
    pub(super) fn decode(
        shape: &Shape,
        version: u32,
        reader: &mut Reader<'_>,
    ) -> Result<Exploration, DecodeError> {
        let stranger = reader.error("an explorer of another world");
        let explorer = decode_option(reader, Explorer::decode)?;
        if explorer.as_ref().is_some_and(|explorer| !explorer.fits(shape)) {
            return Err(stranger);
        }
        let malformed = reader.error("exploring episodes that no run can have played");
        let (explored, at_gain, at_change) = (reader.u64()?, reader.u64()?, reader.u64()?);
        if 1 << 48 <= explored || explored < at_gain || explored < at_change {
            return Err(malformed);
        }
        let unit = if SAYS_SPAN <= version { 1 } else { PARTS / PARTS_BEFORE };
        let acting = Returns::decode(unit, reader)?;
        let hoped = decode_option(reader, Reader::i64)?.map(|hoped| hoped.saturating_mul(unit as i64));
        let hoped_at = reader.u64()?;
        let declared = shape.return_max - shape.return_min;
        let span = if SAYS_SPAN <= version { decode_option(reader, Reader::i64)? } else { None };
        let margin = margin_of(shape, span.unwrap_or(declared));
        let (settled, known) = (reader.bool()?, SAYS_KNOWN <= version && reader.bool()?);
        let explained = if SAYS_EXPLAINED <= version { reader.bool()? } else { 0 < at_gain };
        let changes = reader.u64()?;
        if hoped.is_some_and(|hoped| !(0..=PARTS as i64).contains(&hoped))
            || explored < hoped_at
            || 1 << 32 <= changes
            || span.is_some_and(|span| !(1..=declared.max(1)).contains(&span))
        {
            return Err(malformed);
        }
        Ok(Exploration {
            explorer,
            explored,
            at_gain,
            at_change,
            acting,
            hoped,
            hoped_at,
            span,
            margin,
            settled,
            known,
            explained,
            changes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(actions: u16) -> Shape {
        Shape {
            observation_bits: 4,
            actions,
            fields: Vec::new(),
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        }
    }

    /// Episodes played to explore in each tenth of a run in which acting earns half of the range and what is seen matters.
    fn shares(steps: u64, hoped: Option<i64>) -> Vec<u64> {
        let mut exploration = Exploration { explored: 1, ..Exploration::default() };
        exploration.hope(&shape(4), 1_000, hoped);
        exploration.note_explained();
        shares_of(exploration, steps)
    }

    fn shares_of(mut exploration: Exploration, steps: u64) -> Vec<u64> {
        let (shape, config) = (shape(4), GenesisConfig::default());
        let mut prng = Prng::stream(1, "exploration");
        let mut tenths = vec![0; 10];
        for step in 0..steps {
            let explores = exploration.is_next(&shape, &config, step, &mut prng);
            exploration.book(&shape, explores, 500);
            tenths[(10 * step / steps) as usize] += u64::from(explores);
        }
        tenths
    }

    #[test]
    fn exploration_fades_to_a_root_and_lasts_where_something_may_be_left() {
        let tenths = shares(100_000, None);
        assert!(512 < tenths[0] && tenths[0] < 2_000, "{tenths:?}");
        // Less than a hundredth of the last half, and never nothing.
        let late: u64 = tenths[5..].iter().sum();
        assert!((50..=500).contains(&late), "{tenths:?}");
        assert_eq!(shares(100_000, Some(504)), tenths);
        // Where returns lie within a tenth of what is declared, so does what is worth looking for.
        let mut narrow = Exploration { explored: 1, explained: true, ..Exploration::default() };
        narrow.hope(&shape(4), 100, Some(504));
        assert!(4 * tenths[0] < shares_of(narrow, 100_000)[0]);
        let hopeful = shares(100_000, Some(900));
        assert!(7_000 < hopeful[0] && hopeful[5..].iter().sum::<u64>() < 6_000, "{hopeful:?}");
    }

    #[test]
    fn in_one_step_what_is_seen_and_explains_nothing_yet_is_explored_for_longer() {
        let (explained, open) = (shares(10_000, None), shares_of(Exploration::default(), 10_000));
        let sum = |tenths: &[u64]| tenths.iter().sum::<u64>();
        assert!(4 * sum(&explained) < sum(&open) && sum(&open) < 8_200, "{explained:?}, {open:?}");
        // What earns the most there is needs no explanation.
        let top = Exploration { acting: Returns { count: 64, sum: 64 * PARTS }, ..Exploration::default() };
        let config = GenesisConfig::default();
        assert!(top.allows(&shape(4), &config, 10_000, 199) && !top.allows(&shape(4), &config, 10_000, 200));
    }

    #[test]
    fn at_the_declared_maximum_only_the_root_is_explored_until_something_is_lost() {
        let (shape, config) = (shape(4), GenesisConfig::default());
        let (mut exploration, mut prng) = (Exploration::default(), Prng::stream(2, "exploration"));
        let mut explored = |exploration: &mut Exploration, total: i64, episodes: u64| {
            let mut count = 0;
            for _ in 0..episodes {
                let explores = exploration.is_next(&shape, &config, 1_000, &mut prng);
                exploration.book(&shape, explores, total);
                count += u64::from(explores);
            }
            count
        };
        // The quota of 512 is not reached: 16 episodes at the maximum are enough, which one in five is.
        let early = explored(&mut exploration, 1_000, 1_000);
        assert!((32..=128).contains(&early), "{early}");
        assert_eq!(explored(&mut exploration, 1_000, 1_000), 0);
        // One loss in a hundred is more than is forgiven.
        explored(&mut exploration, 0, 20);
        assert!(0 < explored(&mut exploration, 1_000, 100));
    }

    #[test]
    fn where_nothing_is_left_to_gain_only_the_root_explores_until_something_else_acts() {
        let (shape, config) = (shape(4), GenesisConfig::default());
        let mut exploration = Exploration::default();
        exploration.settle(true);
        assert_eq!(exploration.quota(&shape, &config, 10_000), 200);
        exploration.hand_over();
        assert!(700 <= exploration.quota(&shape, &config, 10_000));
    }

    #[test]
    fn a_shown_gain_reopens_the_quota() {
        let (shape, config) = (shape(2), GenesisConfig::default());
        let mut exploration = Exploration { explained: true, ..Exploration::default() };
        (0..10_000).for_each(|_| exploration.book(&shape, true, 0));
        let quota = exploration.quota(&shape, &config, 10_000);
        assert!(quota < 10_000);
        exploration.note_gain();
        assert_eq!(exploration.quota(&shape, &config, 10_000), quota + 20_000);
    }

    #[test]
    fn a_wider_range_leaves_what_was_earned_hoped_for_and_played() {
        let before = shape(4);
        let ranges = [(-3_000, 1_000), (0, 4_000), (-500, 1_500)];
        for (return_min, return_max) in ranges {
            let wider = Shape { return_min, return_max, ..before.clone() };
            let (mut exploration, mut counted) = (Exploration::default(), Exploration::default());
            for episode in 0..500 {
                exploration.book(&before, episode % 3 == 0, 2 * episode);
                counted.book(&wider, episode % 3 == 0, 2 * episode);
            }
            exploration.hope(&before, 800, Some(900));
            counted.hope(&wider, 800, Some(900));
            (exploration.known, exploration.explained) = (true, true);
            exploration.note_gain();
            exploration.cover(&before, &wider);
            // Every return was rounded by a part.
            assert_eq!(exploration.acting.count, counted.acting.count);
            assert!(exploration.acting.sum.abs_diff(counted.acting.sum) <= 500);
            assert!(exploration.hoped.unwrap().abs_diff(counted.hoped.unwrap()) <= 2);
            assert_eq!((exploration.span, exploration.margin), (Some(800), counted.margin));
            assert_eq!((exploration.explored, exploration.at_gain), (167, 167));
            assert_eq!(exploration.known, return_max == 1_000);
        }
        // What was never booked stays nothing.
        let mut blank = Exploration::default();
        blank.cover(&before, &Shape { return_max: 9_000, ..before.clone() });
        assert_eq!((blank.acting, blank.hoped), (Returns::default(), None));
    }

    #[test]
    fn bytes_come_back_and_malformed_ones_are_refused() {
        let mut exploration = Exploration::default();
        (0..50).for_each(|turn| exploration.book(&shape(3), turn % 3 == 0, 10 * turn));
        exploration.note_gain();
        let mut writer = Writer::new();
        exploration.encode(&mut writer);
        let bytes = writer.into_bytes();
        let decode = |bytes: &[u8]| Exploration::decode(&shape(3), SAYS_EXPLAINED, &mut Reader::new(bytes));
        let mut again = Writer::new();
        decode(&bytes).unwrap().encode(&mut again);
        assert_eq!(again.into_bytes(), bytes);
        (0..bytes.len()).for_each(|cut| assert!(decode(&bytes[..cut]).is_err()));
        let mut malformed = bytes;
        malformed[8] = 1;
        assert!(decode(&malformed).is_err());
    }
}
