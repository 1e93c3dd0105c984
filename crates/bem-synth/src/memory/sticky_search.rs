//! Structures with a sticky flag, for worlds that ask once, at the end of an episode, with two answers.
//!
//! Which pairs of observation and shown bits occur only in episodes of one class is counted on one half of the episodes
//! and judged on the other. Must not know games. Clauses: SCC-2.

use super::condition::{Condition, conditions};
use super::delay::Delay;
use super::flag::Latch;
use super::search::{BEST_MAX, CELLS_JUDGED, DEVICES_MAX, cells_for, judging_cost, pairs};
use super::stack::Stack;
use super::sticky::Sticky;
use super::{Device, compile};
use crate::experience::Episode;
use crate::samples::Work;
use crate::view::Planes;
use bem_base::environment::{Field, Shape};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bits of a key in a table of pairs.
pub const KEY_BITS_MAX: usize = 14;

/// Structures with a sticky flag for worlds that ask once, at the end of an episode, with two answers.
pub fn sticky_candidates(
    shape: &Shape,
    episodes: &[&Episode],
    top: i32,
    work: &mut Work,
) -> Vec<Arc<dyn Device>> {
    // A sticky flag is a table over all that is seen, which must be narrow.
    if shape.actions != 2 || KEY_BITS_MAX <= usize::from(shape.observation_bits) {
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
        if DEVICES_MAX <= list.len() {
            break;
        }
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
