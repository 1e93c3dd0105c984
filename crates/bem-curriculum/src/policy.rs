//! Two levels of choice: which option to pursue, and which move serves it. Both learn by integer statistics.
//!
//! Moves are chosen by the machine's own bandit core: an option is a task family, the way to its target and the
//! blocked neighbours are the bucket, the five moves are the arms. Options are valued by what they earned of
//! their own kind of reward. Everything comes from views and rewards. Clauses: CUR-2, CUR-9.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::prng::Prng;
use bem_games::rulegrid::view::View;
use bem_games::rulegrid::world::Event;
use bem_learn::bucket::Bucket;
use bem_learn::index::Parameters;
use bem_learn::loss::{Loss, PayoffRange};

/// What an agent can pursue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Choice {
    /// The pending waypoint, by compass.
    SeekWaypoint = 0,
    /// The nearest visible resource of the first kind.
    SeekFirst = 1,
    /// The nearest visible resource of the second kind.
    SeekSecond = 2,
    /// Anything.
    Wander = 3,
}

impl Choice {
    /// All options, in order of their numbers.
    pub const ALL: [Choice; 4] =
        [Choice::SeekWaypoint, Choice::SeekFirst, Choice::SeekSecond, Choice::Wander];

    /// The option with this number.
    pub fn from_code(code: u8) -> Option<Choice> {
        Choice::ALL.get(usize::from(code)).copied()
    }

    /// A short name for people.
    pub fn name(self) -> &'static str {
        ["waypoint", "resource A", "resource B", "wander"][self as usize]
    }

    /// The way to its target: signs right and down; `None` when there is no target.
    pub fn direction(self, view: &View) -> Option<(i32, i32)> {
        match self {
            Choice::SeekWaypoint => Some(view.direction),
            Choice::SeekFirst => nearest(view.planes[1]),
            Choice::SeekSecond => nearest(view.planes[2]),
            Choice::Wander => Some((0, 0)),
        }
    }

    /// Whether an event is of the kind this option earns by.
    fn owns(self, event: Event) -> bool {
        match self {
            Choice::SeekWaypoint => {
                let paid = [
                    Event::Waypoint,
                    Event::SequenceComplete,
                    Event::DelayPaidWaypoint,
                    Event::DelayPaidComplete,
                ];
                paid.contains(&event)
            }
            Choice::SeekFirst => event == Event::Consume0,
            Choice::SeekSecond => event == Event::Consume1,
            Choice::Wander => false,
        }
    }
}

/// The way to the nearest set cell of a plane; ties to the first.
fn nearest(plane: u32) -> Option<(i32, i32)> {
    (0..25i32)
        .filter(|cell| plane >> cell & 1 == 1)
        .map(|cell| (cell % 5 - 2, cell / 5 - 2))
        .min_by_key(|(x, y)| x.abs() + y.abs())
        .map(|(x, y)| (x.signum(), y.signum()))
}

/// Where the view shows the four neighbours: up, down, left, right, as the moves are numbered.
pub const NEIGHBOURS: [usize; 4] = [7, 17, 11, 13];
const MOVES: usize = 5;
const CONTEXTS: usize = 9 * 16;
/// Loss of a move, in thousandths before scaling: 500 - 400 * progress, and 400 more on a hazard.
const LOSS_RANGE: (i64, i64) = (100, 1_300);

/// Which statistics a choice of move belongs to.
fn context(direction: (i32, i32), view: &View) -> usize {
    let blocked = view.planes[0] | view.planes[3];
    let mask = NEIGHBOURS.iter().enumerate().fold(0, |mask, (bit, cell)| mask | (blocked >> cell & 1) << bit);
    let signs = (direction.0 + 1) * 3 + direction.1 + 1;
    signs as usize * 16 + mask as usize
}

/// How a move changed the distance to the target, judged from what was seen before it.
fn progress(direction: (i32, i32), view: &View, action: u16) -> i64 {
    let wall = |cell: usize| view.planes[0] >> cell & 1 == 1;
    let (axis, way) = match action {
        0 => (direction.1, -1),
        1 => (direction.1, 1),
        2 => (direction.0, -1),
        3 => (direction.0, 1),
        _ => return 0,
    };
    if wall(NEIGHBOURS[usize::from(action)]) {
        0
    } else if axis == way {
        1
    } else {
        -1
    }
}

/// The lower level: moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Navigation {
    parameters: Parameters,
    buckets: Vec<Bucket>,
    range: PayoffRange,
}

impl Default for Navigation {
    fn default() -> Navigation {
        let parameters = Parameters::DEFAULT;
        let bucket = Bucket::new(&parameters, (1 << MOVES) - 1);
        let range =
            PayoffRange::new(-LOSS_RANGE.1, -LOSS_RANGE.0).expect("a constant range that is not empty");
        Navigation { parameters, buckets: vec![bucket; 3 * CONTEXTS], range }
    }
}

impl Navigation {
    fn bucket(choice: Choice, direction: (i32, i32), view: &View) -> usize {
        choice as usize % 3 * CONTEXTS + context(direction, view)
    }

    /// The move for an option: by index while learning, by mean loss when frozen, at random without a target.
    pub fn choose(&self, choice: Choice, view: &View, frozen: bool, prng: &mut Prng) -> u16 {
        let Some(direction) = choice.direction(view).filter(|_| choice != Choice::Wander) else {
            return prng.below(MOVES as u64) as u16;
        };
        let bucket = &self.buckets[Self::bucket(choice, direction, view)];
        if frozen {
            let arms = 0..MOVES;
            return arms.min_by_key(|arm| bucket.mean_loss(*arm)).unwrap_or(4) as u16;
        }
        bucket.choose() as u16
    }

    /// Books what a move was worth to the option it served.
    pub fn learn(&mut self, choice: Choice, before: &View, action: u16, after: &View) {
        let Some(direction) = choice.direction(before).filter(|_| choice != Choice::Wander) else { return };
        let hazard = after.event == Event::Hazard;
        let loss = 500 - 400 * progress(direction, before, action) + if hazard { 400 } else { 0 };
        let loss: Loss = self.range.loss(-loss);
        let place = Self::bucket(choice, direction, before);
        self.buckets[place].update(&self.parameters, usize::from(action), loss);
    }

    /// Writes all statistics.
    pub fn encode(&self, writer: &mut Writer) {
        self.buckets.iter().for_each(|bucket| bucket.encode(writer));
    }

    /// Reads all statistics.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Navigation, DecodeError> {
        let mut navigation = Navigation::default();
        for bucket in &mut navigation.buckets {
            *bucket = Bucket::decode(reader)?;
        }
        Ok(navigation)
    }
}

/// Segments an option must have been credited with before its value is trusted.
pub const COVERAGE_SEGMENTS: u32 = 8;
/// The newest segment weighs at least one part in this many.
const SEGMENT_MEMORY: i64 = 16;

/// Worth of an option in a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Worth {
    /// Reward per tick, in millionths.
    value: i64,
    segments: u32,
}

/// The upper level: options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    worth: [[Worth; 2]; 4],
    ever_available: [bool; 4],
    /// Option and context at the start of the running segment, with what it earned.
    segment: Option<(Choice, bool, i64, u32)>,
}

/// What the upper level says at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The option to pursue.
    pub choice: Choice,
    /// Chosen only to gather evidence: not to be held.
    pub for_coverage: bool,
}

impl Options {
    /// The best option there is, or while uncommitted now and then any other.
    ///
    /// `penalty` is added to an option's score, in millionths.
    pub fn select(
        &mut self,
        view: &View,
        waiting: bool,
        committed: bool,
        learning: bool,
        penalty: impl Fn(Choice) -> i64,
        prng: &mut Prng,
    ) -> Selection {
        let available: Vec<Choice> =
            Choice::ALL.into_iter().filter(|choice| choice.direction(view).is_some()).collect();
        for choice in &available {
            self.ever_available[*choice as usize] = true;
        }
        if learning {
            let uncovered =
                |choice: &&Choice| **choice != Choice::Wander && self.segments(**choice) < COVERAGE_SEGMENTS;
            if let Some(choice) = available.iter().find(uncovered) {
                return Selection { choice: *choice, for_coverage: true };
            }
        }
        let score = |choice: &&Choice| penalty(**choice) - self.worth(**choice, waiting).value;
        let best = available.iter().min_by_key(score).copied().unwrap_or(Choice::Wander);
        let choice = if committed || prng.bit() {
            best
        } else {
            available[prng.below(available.len() as u64) as usize]
        };
        Selection { choice, for_coverage: false }
    }

    fn worth(&self, choice: Choice, waiting: bool) -> &Worth {
        &self.worth[choice as usize][usize::from(waiting && choice == Choice::SeekWaypoint)]
    }

    fn segments(&self, choice: Choice) -> u32 {
        self.worth[choice as usize].iter().map(|worth| worth.segments).sum()
    }

    /// Whether every option that ever had a target has been credited often enough.
    pub fn is_covered(&self) -> bool {
        Choice::ALL.into_iter().all(|choice| {
            choice == Choice::Wander
                || !self.ever_available[choice as usize]
                || COVERAGE_SEGMENTS <= self.segments(choice)
        })
    }

    /// Books a tick: only rewards of the running option's own kind count, and all harm.
    pub fn earn(&mut self, event: Event, reward: i32) {
        if let Some((choice, _, sum, ticks)) = &mut self.segment {
            *sum += if choice.owns(event) { i64::from(reward) } else { i64::from(reward.min(0)) };
            *ticks += 1;
        }
    }

    /// Ends the running segment, crediting the option that began it, and begins the next.
    pub fn turn(&mut self, next: Option<(Choice, bool)>, learning: bool) {
        let begun = next.map(|(choice, waiting)| (choice, waiting, 0, 0));
        let Some((choice, waiting, sum, ticks)) = std::mem::replace(&mut self.segment, begun) else { return };
        if !learning || ticks == 0 {
            return;
        }
        let place = usize::from(waiting && choice == Choice::SeekWaypoint);
        let worth = &mut self.worth[choice as usize][place];
        worth.segments = worth.segments.saturating_add(1);
        let earned = sum * 1_000 / i64::from(ticks);
        worth.value += (earned - worth.value) / i64::from(worth.segments).min(SEGMENT_MEMORY);
    }

    /// Writes the values and the running segment, which is credited when the next episode begins.
    pub fn encode(&self, writer: &mut Writer) {
        for worth in self.worth.iter().flatten() {
            writer.i64(worth.value);
            writer.u32(worth.segments);
        }
        self.ever_available.iter().for_each(|available| writer.bool(*available));
        writer.bool(self.segment.is_some());
        if let Some((choice, waiting, sum, ticks)) = self.segment {
            writer.u8(choice as u8);
            writer.bool(waiting);
            writer.i64(sum);
            writer.u32(ticks);
        }
    }

    /// Reads the values.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Options, DecodeError> {
        let mut options = Options::default();
        for worth in options.worth.iter_mut().flatten() {
            (worth.value, worth.segments) = (reader.i64()?, reader.u32()?);
        }
        for available in &mut options.ever_available {
            *available = reader.bool()?;
        }
        if reader.bool()? {
            let unknown = reader.error("an unknown option");
            let choice = Choice::from_code(reader.u8()?).ok_or(unknown)?;
            options.segment = Some((choice, reader.bool()?, reader.i64()?, reader.u32()?));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_resource_shows_the_way() {
        assert_eq!(nearest(0), None);
        assert_eq!(nearest(1 << 14), Some((1, 0)));
        assert_eq!(nearest(1 << 0 | 1 << 17), Some((0, 1)));
    }

    #[test]
    fn progress_is_judged_by_axis_and_walls() {
        let mut view = View { direction: (1, 0), ..View::default() };
        assert_eq!([0, 1, 2, 3, 4].map(|action| progress((1, 0), &view, action)), [-1, -1, -1, 1, 0]);
        view.planes[0] = 1 << 13;
        assert_eq!(progress((1, 0), &view, 3), 0);
    }

    #[test]
    fn moves_toward_the_target_are_learned_in_every_direction() {
        let mut navigation = Navigation::default();
        let mut prng = Prng::stream(1, "moves");
        let directions = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1)];
        for round in 0..2_000 {
            let view = View { direction: directions[round % 5], ..View::default() };
            let action = navigation.choose(Choice::SeekWaypoint, &view, false, &mut prng);
            navigation.learn(Choice::SeekWaypoint, &view, action, &View::default());
        }
        for direction in directions {
            let view = View { direction, ..View::default() };
            let action = navigation.choose(Choice::SeekWaypoint, &view, true, &mut prng);
            assert_eq!(progress(direction, &view, action), 1, "{direction:?} {action}");
        }
    }

    #[test]
    fn an_option_is_credited_with_its_own_rewards_only() {
        let mut options = Options::default();
        options.turn(Some((Choice::SeekFirst, false)), true);
        options.earn(Event::Waypoint, 200);
        options.earn(Event::Consume0, 50);
        options.earn(Event::Hazard, -20);
        options.turn(None, true);
        assert_eq!(options.worth(Choice::SeekFirst, false).value, 30_000 / 3);
        assert_eq!(options.segments(Choice::SeekFirst), 1);
    }
}
