//! Which memory structure: every structure of the grammar with every natural control, ranked by how far what
//! it shows alone tells the right answers.
//!
//! A structure is run over logged episodes 64 at a time. The few best go on to the function classes, which see
//! observation and structure together. Must not know games. Clauses: SCC-2.

use super::after::After;
use super::both::Both;
use super::condition::{Condition, conditions};
use super::counter::Counter;
use super::delay::Delay;
use super::echo::Echo;
use super::flag::{Latch, Toggle};
use super::queue::Queue;
use super::registers::Registers;
use super::stack::Stack;
use super::tape::Tape;
use super::{Device, compile};
use crate::experience::Episode;
use crate::labels::Answers;
use crate::samples::Work;
use crate::view::{Planes, View};
use bem_base::environment::{Field, Shape};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Conditions that are tried as the border between two streams.
const PAIRED_MAX: usize = 4;
/// Steps that show a table, at least.
const TABLES_MIN: usize = 8;
/// Labelled steps that a structure is judged on.
const LABELS_MAX: usize = 240;
/// Labelled steps without which nothing can be told.
const LABELS_MIN: usize = 24;
/// Bits that a structure may show.
const SHOWN_MAX: usize = 16;
/// A structure tells most when it leaves less than one part in as many of the errors.
const TELLING: usize = 8;
/// Structures that go on to the function classes.
pub(super) const BEST_MAX: usize = 6;
/// Steps that a shift register looks back at most, and bits that it may keep.
const ECHO_STEPS_MAX: usize = 16;
const ECHO_BITS_MAX: usize = 64;
/// Cells of a stack or queue at most.
pub const CELLS_MAX: usize = 32;
/// Cells while a structure is only being judged.
pub(super) const CELLS_JUDGED: usize = 12;
/// Structures that are tried at most: with hundreds of bits that stand alone there would be millions.
pub(super) const DEVICES_MAX: usize = 1 << 14;
/// Cells of a tape at most.
pub const TAPE_CELLS_MAX: usize = 64;

/// One labelled step.
#[derive(Clone, Copy, Debug)]
struct Labelled {
    episode: usize,
    time: usize,
    action: u16,
}

/// The labelled steps that structures are judged on, and what was seen until then.
struct Ground<'e> {
    labelled: Vec<Labelled>,
    /// The episodes in which they are, side by side.
    planes: Planes,
    episodes: Vec<&'e Episode>,
    /// Labelled steps by block of episodes and time.
    at: BTreeMap<(usize, usize), Vec<usize>>,
}

impl<'e> Ground<'e> {
    /// At most this many labelled steps; none when there are too few to tell anything.
    fn new(
        shape: &Shape,
        episodes: &[&'e Episode],
        view: &View,
        answers: &Answers,
        most: usize,
    ) -> Option<Ground<'e>> {
        let labelled = labelled_steps(episodes, view, answers, most);
        if labelled.len() < LABELS_MIN {
            return None;
        }
        // Only episodes with a label matter, and their positions close up.
        let mut used: Vec<usize> = labelled.iter().map(|label| label.episode).collect();
        used.dedup();
        let place: BTreeMap<usize, usize> = used.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let labelled: Vec<Labelled> =
            labelled.iter().map(|label| Labelled { episode: place[&label.episode], ..*label }).collect();
        let mut at: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (position, label) in labelled.iter().enumerate() {
            at.entry((label.episode / 64, label.time)).or_default().push(position);
        }
        let episodes: Vec<&Episode> = used.iter().map(|position| episodes[*position]).collect();
        let planes = Planes::new(usize::from(shape.observation_bits), &episodes);
        Some(Ground { labelled, planes, episodes, at })
    }

    /// What a structure shows at every labelled step; none when that is too much to tell.
    fn keys(&self, device: &dyn Device, shape: &Shape) -> Option<Vec<u64>> {
        let shown: usize = device.shows().iter().sum();
        if shown == 0 || SHOWN_MAX < shown {
            return None;
        }
        let circuit = compile(device, usize::from(shape.observation_bits))?;
        let mut keys = vec![0u64; self.labelled.len()];
        self.planes.run(&circuit, |block, time, words| {
            for position in self.at.get(&(block, time)).into_iter().flatten() {
                let lane = self.labelled[*position].episode % 64;
                keys[*position] = (0..shown).fold(0, |key, bit| key | (words[bit] >> lane & 1) << bit);
            }
        });
        Some(keys)
    }

    /// Errors on some labelled steps when the answer is a function of what is shown alone.
    fn errors(&self, keys: &[u64], members: &[usize], actions: u16) -> usize {
        let mut shown: Vec<(u64, u16)> =
            members.iter().map(|position| (keys[*position], self.labelled[*position].action)).collect();
        shown.sort_unstable();
        let (mut errors, mut distinct) = (0, 0);
        for same in shown.chunk_by(|one, other| one.0 == other.0) {
            let most = same.chunk_by(|one, other| one.1 == other.1).map(<[_]>::len).max().unwrap_or(0);
            errors += same.len() - most;
            distinct += 1;
        }
        // Many keys explain anything; a key costs as much as an error.
        errors + usize::saturating_sub(distinct, usize::from(actions)) / 2
    }

    /// Errors of always giving the most frequent answer.
    fn baseline(&self, members: &[usize]) -> usize {
        let nothing = vec![0; self.labelled.len()];
        self.errors(&nothing, members, u16::MAX)
    }
}

/// The structures worth a closer look, the most telling first.
pub fn candidates(
    shape: &Shape,
    episodes: &[&Episode],
    view: &View,
    answers: &Answers,
    work: &mut Work,
) -> Vec<Arc<dyn Device>> {
    let Some(ground) = Ground::new(shape, episodes, view, answers, LABELS_MAX) else { return Vec::new() };
    let conditions = conditions(shape, &ground.episodes);
    let all: Vec<usize> = (0..ground.labelled.len()).collect();
    let base = ground.baseline(&all);
    let devices = grammar(shape, &conditions, CELLS_JUDGED);
    let mut judge_all = |after: bool| {
        let mut judged: Vec<(usize, u32, usize, bool)> = Vec::new();
        let sized = |device: &Arc<dyn Device>| device.resized(CELLS_JUDGED).is_some();
        for (number, device) in devices.iter().enumerate().filter(|(_, device)| !after || sized(device)) {
            let device = if after { look_after(device) } else { device.clone() };
            if !work.spend(judging_cost(device.as_ref(), &ground.planes)) {
                break;
            }
            let Some(keys) = ground.keys(device.as_ref(), shape) else { continue };
            let errors = ground.errors(&keys, &all, shape.actions);
            if errors * 2 < base {
                judged.push((errors, device.description_length(), number, after));
            }
        }
        judged
    };
    let mut judged = judge_all(false);
    // Looking at what is left after a step costs as much again, so that it must be needed.
    if !judged.iter().any(|(errors, ..)| errors * TELLING < base) {
        judged.extend(judge_all(true));
    }
    judged.sort_unstable();
    judged.truncate(BEST_MAX);
    // The same structures at full size.
    let full = grammar(shape, &conditions, cells_for(shape));
    let resized = |(_, _, number, after): &(usize, u32, usize, bool)| match after {
        true => look_after(&full[*number]),
        false => full[*number].clone(),
    };
    judged.iter().map(resized).collect()
}

fn look_after(device: &Arc<dyn Device>) -> Arc<dyn Device> {
    Arc::new(After { inner: device.clone() })
}

/// Pairs of structures for worlds in which a condition of the observation says which of two streams is asked: the
/// most telling structure on either side of it.
pub fn pair_candidates(
    shape: &Shape,
    episodes: &[&Episode],
    view: &View,
    answers: &Answers,
    work: &mut Work,
) -> Vec<Arc<dyn Device>> {
    let Some(ground) = Ground::new(shape, episodes, view, answers, 2 * LABELS_MAX) else { return Vec::new() };
    let conditions = conditions(shape, &ground.episodes);
    // The labelled steps on either side of every border.
    let mut sides: Vec<[Vec<usize>; 2]> = Vec::new();
    let single = |condition: &&Condition| condition.literals.len() == 1 && condition.literals[0].1;
    for border in conditions.iter().filter(single).take(PAIRED_MAX) {
        let holds = |position: &usize| {
            let label = &ground.labelled[*position];
            border.holds(&ground.episodes[label.episode].steps[label.time].observation)
        };
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..ground.labelled.len()).partition(holds);
        if LABELS_MIN <= inside.len().min(outside.len()) {
            sides.push([inside, outside]);
        }
    }
    let bases: Vec<[usize; 2]> =
        sides.iter().map(|[inside, outside]| [ground.baseline(inside), ground.baseline(outside)]).collect();
    // Every structure is run once and judged on all sides.
    let mut best: Vec<[Option<(usize, u32, usize)>; 2]> = vec![[None; 2]; sides.len()];
    for (number, device) in grammar(shape, &conditions, CELLS_JUDGED).iter().enumerate() {
        if sides.is_empty() || !work.spend(judging_cost(device.as_ref(), &ground.planes)) {
            break;
        }
        let Some(keys) = ground.keys(device.as_ref(), shape) else { continue };
        for (border, both) in sides.iter().enumerate() {
            for (side, members) in both.iter().enumerate() {
                let errors = ground.errors(&keys, members, shape.actions);
                let judged = (errors, device.description_length(), number);
                if errors * 2 < bases[border][side] && best[border][side].is_none_or(|held| judged < held) {
                    best[border][side] = Some(judged);
                }
            }
        }
    }
    let full = grammar(shape, &conditions, cells_for(shape));
    let pair = |both: &[Option<(usize, u32, usize)>; 2]| -> Option<Arc<dyn Device>> {
        let [first, second] = (*both).map(|judged| judged.map(|(_, _, number)| full[number].clone()));
        Some(Arc::new(Both { first: first?, second: second? }))
    };
    best.iter().filter_map(pair).collect()
}

/// Tables that are shown now and then and asked about by number: a bit that stays set for every bit of a field, where another
/// field is just wide enough to name one of them.
pub fn table_candidates(shape: &Shape, episodes: &[&Episode]) -> Vec<Arc<dyn Device>> {
    let steps = || episodes.iter().flat_map(|episode| &episode.steps);
    let is_shown_rarely = |field: &&Field| {
        let (low, width) = (usize::from(field.low), usize::from(field.width));
        let shown = steps().filter(|step| step.observation.field(low, width) != 0).count();
        TABLES_MIN <= shown && 2 * shown <= steps().count()
    };
    let is_asked = |field: &&Field| {
        let number_bits = field.width.next_power_of_two().ilog2() as u16;
        shape.fields.iter().any(|other| other != *field && other.width == number_bits)
    };
    let tables = shape.fields.iter().filter(|field| (4..=64).contains(&field.width));
    let tables = tables.filter(is_asked).filter(is_shown_rarely).take(PAIRED_MAX);
    let remembered = |bit: u16| -> Arc<dyn Device> {
        Arc::new(Latch { set: Condition::new(vec![(bit, true)], shape.observation_bits), clear: None })
    };
    tables.map(|field| side_by_side((field.low..field.low + field.width).map(remembered).collect())).collect()
}

/// All of these beside each other, two by two.
fn side_by_side(mut devices: Vec<Arc<dyn Device>>) -> Arc<dyn Device> {
    match devices.len() {
        1 => devices.remove(0),
        count => {
            let second = side_by_side(devices.split_off(count.next_power_of_two() / 2));
            Arc::new(Both { first: side_by_side(devices), second })
        }
    }
}

/// Cells that are enough for the episodes of a world, as far as the bounds go.
pub fn cells_for(shape: &Shape) -> usize {
    (shape.horizon as usize / 2 + 1).clamp(2, CELLS_MAX)
}

pub(super) fn judging_cost(device: &dyn Device, planes: &Planes) -> u64 {
    (8 * device.memory_bits() as u64 + planes.observation_bits().max(64) as u64) * planes.words() as u64
}

/// Right answers of the fitting part, with where they happened.
fn labelled_steps(episodes: &[&Episode], view: &View, answers: &Answers, most: usize) -> Vec<Labelled> {
    let mut list = Vec::new();
    let mut position = 0;
    let mut wanted = answers.places.iter().peekable();
    for (episode, steps) in episodes.iter().enumerate() {
        for time in 0..steps.steps.len() {
            if let Some((_, action)) = wanted.next_if(|(place, _)| *place as usize == position)
                && !view.records[position].screen
                && list.len() < most
            {
                list.push(Labelled { episode, time, action: *action });
            }
            position += 1;
        }
    }
    list
}

/// Every structure with every natural control, shortest first within a kind; the first of them where there are too many.
fn grammar(shape: &Shape, conditions: &[Condition], cells: usize) -> Vec<Arc<dyn Device>> {
    let mut list: Vec<Arc<dyn Device>> = Vec::new();
    for length in 1..=3 {
        list.push(Arc::new(Delay { fields: shape.fields.clone(), length }));
    }
    let fields: Vec<Field> = shape.fields.iter().filter(|field| field.width <= 5).copied().collect();
    for field in &fields {
        let steps =
            (ECHO_BITS_MAX / usize::from(field.width)).min(ECHO_STEPS_MAX).min(shape.horizon as usize);
        list.extend((1..=steps).map(|length| Arc::new(Echo { field: *field, length }) as Arc<dyn Device>));
    }
    let counter_bits = (shape.horizon + 1).next_power_of_two().ilog2().clamp(1, 6) as usize;
    for condition in conditions {
        list.push(Arc::new(Toggle { condition: condition.clone() }));
        list.push(Arc::new(Latch { set: condition.clone(), clear: None }));
        list.push(Arc::new(Counter { up: condition.clone(), down: None, bits: counter_bits, digits: true }));
    }
    for (one, other) in pairs(conditions) {
        if DEVICES_MAX <= list.len() {
            return list;
        }
        list.push(Arc::new(Latch { set: one.clone(), clear: Some(other.clone()) }));
        let (up, down) = (one.clone(), Some(other.clone()));
        list.push(Arc::new(Counter { up, down, bits: counter_bits, digits: false }));
        for field in &fields {
            let (push, pop) = (one.clone(), other.clone());
            list.push(Arc::new(Stack { push: push.clone(), pop: pop.clone(), field: Some(*field), cells }));
            list.push(Arc::new(Queue { push, pop, field: *field, cells }));
        }
    }
    let always = Condition::new(Vec::new(), shape.observation_bits);
    for write in conditions.iter().chain([&always]) {
        for address in shape.fields.iter().filter(|field| field.width <= 5) {
            if DEVICES_MAX <= list.len() {
                return list;
            }
            for data in &fields {
                for delayed in [false, true] {
                    let registers =
                        Registers { write: write.clone(), address: *address, data: *data, delayed };
                    if (delayed || address != data) && registers.memory_bits() <= 200 {
                        list.push(Arc::new(registers));
                    }
                }
            }
        }
    }
    list
}

/// All ordered pairs of different conditions.
pub(super) fn pairs(conditions: &[Condition]) -> impl Iterator<Item = (&Condition, &Condition)> {
    let pair = move |one| conditions.iter().filter(move |other| *other != one).map(move |other| (one, other));
    conditions.iter().flat_map(pair)
}

/// Tapes whose counter goes up exactly where answers are given; few enough to be fitted without judging. What is
/// learned over a tape holds for its length only, so it comes after everything that has no length.
pub fn tape_candidates(
    shape: &Shape,
    episodes: &[&Episode],
    view: &View,
    answers: &Answers,
) -> Vec<Arc<dyn Device>> {
    let labelled = labelled_steps(episodes, view, answers, LABELS_MAX);
    if labelled.len() < LABELS_MIN {
        return Vec::new();
    }
    let conditions = conditions(shape, episodes);
    let cells = (shape.horizon as usize / 2).next_power_of_two().clamp(2, TAPE_CELLS_MAX);
    let seen = || episodes.iter().flat_map(|episode| &episode.steps).map(|step| &step.observation);
    let mut asked: Vec<&Condition> = conditions
        .iter()
        .filter(|condition| {
            let holds =
                |label: &Labelled| condition.holds(&episodes[label.episode].steps[label.time].observation);
            labelled.iter().all(holds)
        })
        .collect();
    // The tightest conditions say best where answers are given.
    asked.sort_by_key(|condition| seen().filter(|observation| condition.holds(observation)).count());
    asked.truncate(2);
    // Nothing is written where answers are given, and what is written must not be known beforehand.
    let apart = |write: &Condition, read: &Condition| {
        !seen().any(|observation| write.holds(observation) && read.holds(observation))
    };
    let varies = |write: &Condition, field: &Field| {
        (field.low..field.low + field.width).map(usize::from).all(|bit| {
            let values = || seen().filter(|seen| write.holds(seen)).map(|seen| seen.get(bit));
            values().any(|value| value) && values().any(|value| !value)
        })
    };
    let mut list: Vec<Arc<dyn Device>> = Vec::new();
    for read in asked {
        for write in conditions.iter().filter(|write| apart(write, read)) {
            let fields = shape.fields.iter().filter(|field| field.width <= 4);
            for field in fields.filter(|field| varies(write, field)) {
                let (write, read) = (write.clone(), read.clone());
                list.push(Arc::new(Tape { write, read, field: *field, cells }));
            }
        }
    }
    list.truncate(12);
    list
}
