//! Which memory structure: every structure of the grammar with every natural control, ranked by how far what
//! it shows alone tells the right answers.
//!
//! A structure is run over logged episodes 64 at a time. The few best go on to the function classes, which see
//! observation and structure together. Must not know games. Clauses: SCC-1.

use super::both::Both;
use super::condition::{Condition, conditions};
use super::counter::Counter;
use super::delay::Delay;
use super::echo::Echo;
use super::flag::{Latch, Toggle};
use super::queue::Queue;
use super::registers::Registers;
use super::stack::Stack;
use super::sticky::Sticky;
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
/// The search on one side may spend one part in as many of the work that is left.
const PAIR_SHARE: u64 = 6;
/// Labelled steps that a structure is judged on.
const LABELS_MAX: usize = 240;
/// Structures that go on to the function classes.
const BEST_MAX: usize = 6;
/// Steps that a shift register looks back at most, and bits that it may keep.
const ECHO_STEPS_MAX: usize = 16;
const ECHO_BITS_MAX: usize = 64;
/// Cells of a stack or queue at most.
pub const CELLS_MAX: usize = 32;
/// Cells while a structure is only being judged.
const CELLS_JUDGED: usize = 12;
/// Cells of a tape at most.
pub const TAPE_CELLS_MAX: usize = 64;
/// Bits of a key in a table of pairs.
pub const KEY_BITS_MAX: usize = 14;

/// One labelled step.
#[derive(Clone, Copy, Debug)]
struct Labelled {
    episode: usize,
    time: usize,
    action: u16,
}

/// The structures worth a closer look, the most telling first.
pub fn candidates(
    shape: &Shape,
    episodes: &[&Episode],
    view: &View,
    answers: &Answers,
    work: &mut Work,
) -> Vec<Arc<dyn Device>> {
    let labelled = labelled_steps(episodes, view, answers);
    if labelled.len() < 24 {
        return Vec::new();
    }
    // Only episodes with a label matter, and their positions close up.
    let mut used: Vec<usize> = labelled.iter().map(|label| label.episode).collect();
    used.dedup();
    let place: BTreeMap<usize, usize> = used.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let labelled: Vec<Labelled> =
        labelled.iter().map(|label| Labelled { episode: place[&label.episode], ..*label }).collect();
    let kept: Vec<&Episode> = used.iter().map(|position| episodes[*position]).collect();
    let planes = Planes::new(usize::from(shape.observation_bits), &kept);
    let conditions = conditions(shape, &kept);
    let mut judged: Vec<(usize, u32, usize, Arc<dyn Device>)> = Vec::new();
    let all = grammar(shape, &conditions, CELLS_JUDGED);
    let base = baseline(&labelled);
    for (number, device) in all.iter().enumerate() {
        if !work.spend(judging_cost(device.as_ref(), &planes)) {
            break;
        }
        let Some(errors) = judge(device.as_ref(), &planes, &labelled, shape) else { continue };
        if errors * 2 < base {
            judged.push((errors, device.description_length(), number, device.clone()));
        }
    }
    judged.sort_by_key(|(errors, length, number, _)| (*errors, *length, *number));
    judged.truncate(BEST_MAX);
    // The same structures at full size.
    let full = grammar(shape, &conditions, cells_for(shape));
    judged.iter().map(|(_, _, number, _)| full[*number].clone()).collect()
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
    let mut list: Vec<Arc<dyn Device>> = Vec::new();
    let single = |condition: &Condition| condition.literals.len() == 1 && condition.literals[0].1;
    for condition in conditions(shape, episodes).iter().filter(|condition| single(condition)).take(PAIRED_MAX)
    {
        let side = |wanted: bool| Answers {
            places: answers
                .places
                .iter()
                .copied()
                .filter(|(place, _)| {
                    condition.holds(&view.records[*place as usize].row.to_observation()) == wanted
                })
                .collect(),
            list: Vec::new(),
            complemented: answers.complemented,
        };
        let mut best = |wanted: bool| {
            let mut share = Work::new(work.left() / PAIR_SHARE);
            let found = candidates(shape, episodes, view, &side(wanted), &mut share);
            work.spend(work.left() / PAIR_SHARE - share.left());
            found.into_iter().next()
        };
        if let (Some(first), Some(second)) = (best(true), best(false)) {
            list.push(Arc::new(Both { first, second }));
        }
    }
    list
}

/// Cells that are enough for the episodes of a world, as far as the bounds go.
pub fn cells_for(shape: &Shape) -> usize {
    (shape.horizon as usize / 2 + 1).clamp(2, CELLS_MAX)
}

fn judging_cost(device: &dyn Device, planes: &Planes) -> u64 {
    (8 * device.memory_bits() as u64 + 64) * planes.words() as u64
}

/// Right answers of the fitting part, with where they happened.
fn labelled_steps(episodes: &[&Episode], view: &View, answers: &Answers) -> Vec<Labelled> {
    let mut list = Vec::new();
    let mut position = 0;
    let mut wanted = answers.places.iter().peekable();
    for (episode, steps) in episodes.iter().enumerate() {
        for time in 0..steps.steps.len() {
            if let Some((_, action)) = wanted.next_if(|(place, _)| *place as usize == position)
                && !view.records[position].screen
                && list.len() < LABELS_MAX
            {
                list.push(Labelled { episode, time, action: *action });
            }
            position += 1;
        }
    }
    list
}

/// Errors of always giving the most frequent answer.
fn baseline(labelled: &[Labelled]) -> usize {
    let mut votes: BTreeMap<u16, usize> = BTreeMap::new();
    for label in labelled {
        *votes.entry(label.action).or_default() += 1;
    }
    labelled.len() - votes.values().max().copied().unwrap_or(0)
}

/// Every structure with every natural control, shortest first within a kind.
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

fn pairs(conditions: &[Condition]) -> impl Iterator<Item = (&Condition, &Condition)> {
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
    let labelled = labelled_steps(episodes, view, answers);
    if labelled.len() < 24 {
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

/// Errors when the answer is a function of the shown bits alone; none when they are too many to tell.
fn judge(device: &dyn Device, planes: &Planes, labelled: &[Labelled], shape: &Shape) -> Option<usize> {
    let circuit = compile(device, usize::from(shape.observation_bits))?;
    let shown: usize = device.shows().iter().sum();
    if shown == 0 || 16 < shown {
        return None;
    }
    let mut keys = vec![0u64; labelled.len()];
    let mut at: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (position, label) in labelled.iter().enumerate() {
        at.entry((label.episode / 64, label.time)).or_default().push(position);
    }
    planes.run(&circuit, |block, time, words| {
        for position in at.get(&(block, time)).into_iter().flatten() {
            let lane = labelled[*position].episode % 64;
            keys[*position] = (0..shown).fold(0, |key, bit| key | (words[bit] >> lane & 1) << bit);
        }
    });
    let mut votes: BTreeMap<u64, BTreeMap<u16, usize>> = BTreeMap::new();
    for (key, label) in keys.iter().zip(labelled) {
        *votes.entry(*key).or_default().entry(label.action).or_default() += 1;
    }
    // Many keys explain anything; a key costs as much as an error.
    let errors: usize = votes
        .values()
        .map(|votes| votes.values().sum::<usize>() - votes.values().max().copied().unwrap_or(0))
        .sum();
    Some(errors + votes.len().saturating_sub(usize::from(shape.actions)) / 2)
}

/// Structures with a sticky flag for worlds that ask once, at the end of an episode, with two answers.
pub fn sticky_candidates(
    shape: &Shape,
    episodes: &[&Episode],
    top: i32,
    work: &mut Work,
) -> Vec<Arc<dyn Device>> {
    if shape.actions != 2 {
        return Vec::new();
    }
    let fitting: Vec<&Episode> =
        episodes.iter().copied().filter(|episode| !episode.is_screen()).rev().take(400).collect();
    let early = fitting.iter().any(|episode| {
        let (_, before) = episode.steps.split_last().expect("episodes have steps");
        before.iter().any(|step| step.reward == top)
    });
    if early || fitting.len() < 30 {
        return Vec::new();
    }
    // The class of an episode is its right last answer.
    let class: Vec<bool> = fitting
        .iter()
        .map(|episode| {
            let last = episode.steps.last().expect("episodes have steps");
            (last.action == 1) == (last.reward == top)
        })
        .collect();
    let planes = Planes::new(usize::from(shape.observation_bits), &fitting);
    let conditions = conditions(shape, &fitting);
    let mut judged: Vec<(usize, u32, usize, bool)> = Vec::new();
    let all = inner_grammar(shape, &conditions, CELLS_JUDGED);
    for (number, device) in all.iter().enumerate() {
        if !work.spend(judging_cost(device.as_ref(), &planes) + 40 * fitting.len() as u64) {
            break;
        }
        let Some(keys) = pair_keys(device.as_ref(), &planes, &fitting, shape) else { continue };
        for safe in [false, true] {
            let errors = sticky_errors(&keys, &class, safe, device.as_ref(), shape);
            if errors * 8 < class.len() {
                judged.push((errors, device.description_length(), number, safe));
            }
        }
    }
    judged.sort_unstable();
    judged.truncate(BEST_MAX);
    let full = inner_grammar(shape, &conditions, cells_for(shape));
    let mut list: Vec<Arc<dyn Device>> = Vec::new();
    for (_, _, number, safe) in judged {
        let inner = full[number].clone();
        let Some(keys) = pair_keys(inner.as_ref(), &planes, &fitting, shape) else { continue };
        let mut raises: BTreeMap<u64, bool> = BTreeMap::new();
        for (keys, class) in keys.iter().zip(&class) {
            for key in keys {
                let entry = raises.entry(*key).or_insert(true);
                *entry &= *class != safe;
            }
        }
        list.push(Arc::new(Sticky { inner, raises }));
    }
    list
}

/// What a sticky flag may stand over.
fn inner_grammar(shape: &Shape, conditions: &[Condition], cells: usize) -> Vec<Arc<dyn Device>> {
    let mut list: Vec<Arc<dyn Device>> = vec![Arc::new(Delay { fields: shape.fields.clone(), length: 1 })];
    let fields = shape.fields.iter().filter(|field| field.width <= 3).copied();
    let fields: Vec<Option<Field>> = core::iter::once(None).chain(fields.map(Some)).collect();
    for (one, other) in pairs(conditions) {
        list.push(Arc::new(Latch { set: one.clone(), clear: Some(other.clone()) }));
        for field in &fields {
            let (push, pop) = (one.clone(), other.clone());
            list.push(Arc::new(Stack { push, pop, field: *field, cells }));
        }
    }
    list
}

/// For every episode the pairs of observation and shown bits that occurred, as keys without repetition.
fn pair_keys(
    device: &dyn Device,
    planes: &Planes,
    episodes: &[&Episode],
    shape: &Shape,
) -> Option<Vec<Vec<u64>>> {
    let observation_bits = usize::from(shape.observation_bits);
    let shown: usize = device.shows().iter().sum();
    if KEY_BITS_MAX < observation_bits + shown {
        return None;
    }
    let circuit = compile(device, observation_bits)?;
    let mut keys: Vec<Vec<u64>> = vec![Vec::new(); episodes.len()];
    planes.run(&circuit, |block, time, words| {
        let lanes = episodes[block * 64..].iter().take(64).enumerate();
        for (lane, episode) in lanes.filter(|(_, episode)| time < episode.steps.len()) {
            let seen = episode.steps[time].observation.0[0];
            let view = (0..shown).fold(0, |key, bit| key | (words[bit] >> lane & 1) << bit);
            let key = seen | view << observation_bits;
            let list = &mut keys[block * 64 + lane];
            if !list.contains(&key) {
                list.push(key);
            }
        }
    });
    Some(keys)
}

/// Errors on one half of the episodes when the safe pairs come from the other.
fn sticky_errors(keys: &[Vec<u64>], class: &[bool], safe: bool, device: &dyn Device, shape: &Shape) -> usize {
    let bits = usize::from(shape.observation_bits) + device.shows().iter().sum::<usize>();
    let mut known = vec![false; 1 << bits];
    for (position, keys) in keys.iter().enumerate().filter(|(position, _)| position % 2 == 0) {
        if class[position] == safe {
            keys.iter().for_each(|key| known[*key as usize] = true);
        }
    }
    let wrong = |(position, keys): (usize, &Vec<u64>)| {
        let raised = keys.iter().any(|key| !known[*key as usize]);
        raised == (class[position] == safe)
    };
    let held = keys.iter().enumerate().filter(|(position, _)| position % 2 == 1);
    held.filter(|(position, keys)| wrong((*position, *keys))).count() * 2
}
