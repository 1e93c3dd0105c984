//! An expert under other names: fields of equal width trade places, and actions their codes.
//!
//! A world whose coding was changed asks for the same policy as before, said with other names. Which names is guessed from what
//! acts there now, whose episodes are watched: for each way in which the fields that an expert reads may stand for others, its
//! actions are matched with what was done. The best guesses are then measured like every expert; nothing is believed. An expert that
//! looks at nothing has no other name: a renaming would say all that was learned there. Clauses: PIPE-3; decision D-333.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, EnvironmentError, Field, Shape};
use bem_engine::agent::{Actor, Agent};
use bem_engine::seeds::{Domain, Seeds};
use bem_games::game::Game;
use bem_synth::experience::{Episode, Step};
use bem_synth::policy::Policy;
use bem_synth::transfer::renamed;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Ways in which the fields that an expert reads may stand for others, at most; where there are more, none is tried.
pub(crate) const ORDERS_MAX: usize = 720;
/// Renamings of an expert that are measured in a setting.
pub(crate) const MEASURED_MAX: usize = 4;
/// The same where nothing that acts there can be watched: all that there are, or none.
pub(crate) const BLIND_MAX: usize = 24;
/// Episodes and steps that are watched.
const WATCHED_EPISODES: usize = 64;
/// See [`WATCHED_EPISODES`].
const WATCHED_STEPS: usize = 2_048;

/// Other names for what an expert sees and does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renaming {
    /// For every field of the expert's the number of the world's field that stands for it.
    fields: Vec<u16>,
    /// For every action of the expert's the action that is meant.
    actions: Vec<u16>,
}

/// Whether these fields are those of a world in some order, width by width, each laid out one after the other.
pub(crate) fn is_reordered(own: &[Field], world: &Shape) -> bool {
    let is_laid_out = |fields: &[Field]| {
        let end = fields.iter().try_fold(0, |low, field| (field.low == low).then_some(low + field.width));
        end == Some(world.observation_bits)
    };
    let widths = |fields: &[Field]| {
        let mut widths: Vec<u16> = fields.iter().map(|field| field.width).collect();
        widths.sort_unstable();
        widths
    };
    is_laid_out(own) && is_laid_out(&world.fields) && widths(own) == widths(&world.fields)
}

impl Renaming {
    /// The agent under these names; none where they do not fit.
    pub(crate) fn apply(&self, agent: &Agent, own: &[Field], world: &Shape) -> Option<Agent> {
        let bits = self.bits(own, &world.fields)?;
        (!agent.adapts()).then_some(())?;
        Some(Agent::circuit(renamed(agent.policy(), &bits, &self.actions)?))
    }

    /// For every bit of the expert's the bit of the world that stands for it.
    fn bits(&self, own: &[Field], world: &[Field]) -> Option<Vec<u16>> {
        let mut bits = Vec::new();
        for (field, number) in own.iter().zip(&self.fields) {
            let there = world.get(usize::from(*number)).filter(|there| there.width == field.width)?;
            bits.extend(there.low..there.low + there.width);
        }
        (self.fields.len() == own.len()).then_some(bits)
    }

    fn is_none(&self) -> bool {
        let stays = |names: &[u16]| names.iter().enumerate().all(|(own, name)| own == usize::from(*name));
        stays(&self.fields) && stays(&self.actions)
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        for names in [&self.fields, &self.actions] {
            writer.length(names.len());
            names.iter().for_each(|name| writer.u16(*name));
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Renaming, DecodeError> {
        let twice = reader.error("a renaming in which a name is missing");
        let mut names = || -> Result<Vec<u16>, DecodeError> {
            let count = reader.length(2)?;
            (0..count).map(|_| reader.u16()).collect()
        };
        let renaming = Renaming { fields: names()?, actions: names()? };
        let is_whole = |names: &[u16]| {
            (0..names.len()).all(|name| names.iter().any(|other| usize::from(*other) == name))
        };
        if is_whole(&renaming.fields) && is_whole(&renaming.actions) { Ok(renaming) } else { Err(twice) }
    }
}

/// Episodes of what acts in a game; none of an agent that goes on learning, whose choices are not those of a policy.
pub(crate) fn watch(
    game: &dyn Game,
    agent: &Agent,
    seed: u64,
) -> Result<Option<Vec<Episode>>, EnvironmentError> {
    if agent.adapts() {
        return Ok(None);
    }
    let (mut world, mut actor) = (game.start(), Actor::new(agent));
    let mut seeds = Seeds::new(seed, Domain::Improvement);
    let (mut episodes, mut steps_left) = (Vec::new(), WATCHED_STEPS);
    while episodes.len() < WATCHED_EPISODES && 0 < steps_left {
        world.reset(seeds.next_seed())?;
        actor.begin();
        let mut steps = Vec::new();
        loop {
            let observation = *world.observation();
            let action = actor.act(&observation);
            let outcome = world.step(action)?;
            let (reward, done, bad) = (outcome.reward, outcome.done, outcome.bad);
            steps.push(Step { observation, action, reward, done, bad, uniform: false, propensity: 0 });
            steps_left = steps_left.saturating_sub(1);
            if done || steps_left == 0 {
                break;
            }
        }
        episodes.push(Episode { serial: episodes.len() as u64, steps });
    }
    Ok(Some(episodes))
}

/// Renamings under which an expert, built for its own order of the world's fields, may do what is done in a world, the likeliest first.
pub(crate) fn guesses(
    agent: &Agent,
    own: &[Field],
    world: &Shape,
    watched: Option<&[Episode]>,
) -> Vec<Renaming> {
    let policy = agent.policy();
    let looks = !policy.reads().is_empty() || 0 < policy.memory_bits();
    if agent.adapts() || !looks || policy.actions() != world.actions {
        return Vec::new();
    }
    let Some(orders) = orders(own, &world.fields, policy.reads()) else { return Vec::new() };
    let Some(watched) = watched else { return blind(orders, world.actions) };
    let mut guessed: Vec<(u64, Renaming)> = Vec::new();
    for fields in orders {
        let order = Renaming { fields, actions: Vec::new() };
        let Some(bits) = order.bits(own, &world.fields) else { continue };
        let (agreement, actions) = matched(policy, &bits, watched);
        guessed.push((agreement, Renaming { actions, ..order }));
    }
    guessed.sort_by_key(|(agreement, _)| Reverse(*agreement));
    let renamings = guessed.into_iter().map(|(_, renaming)| renaming).filter(|renaming| !renaming.is_none());
    renamings.take(MEASURED_MAX).collect()
}

/// All orders with all orders of the actions, where they are few.
fn blind(orders: Vec<Vec<u16>>, actions: u16) -> Vec<Renaming> {
    let all_actions = permutations(usize::from(actions), BLIND_MAX);
    if all_actions.is_empty() || BLIND_MAX < orders.len() * all_actions.len() {
        return Vec::new();
    }
    let with_actions = |fields: &Vec<u16>| {
        let fields = fields.clone();
        all_actions.iter().map(move |actions| Renaming { fields: fields.clone(), actions: actions.clone() })
    };
    orders.iter().flat_map(with_actions).filter(|renaming| !renaming.is_none()).collect()
}

/// All orders of so many numbers, the one that changes nothing first; none where there are more than this.
fn permutations(count: usize, most: usize) -> Vec<Vec<u16>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = |begun: &Vec<u16>| {
            let left = (0..count as u16).filter(|name| !begun.contains(name));
            left.map(|name| [begun.as_slice(), &[name]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
        if most < all.len() {
            return Vec::new();
        }
    }
    all
}

/// The ways in which the fields that are read may stand for fields of the same width, all others in their order; none where there
/// are too many.
fn orders(own: &[Field], world: &[Field], reads: &[u16]) -> Option<Vec<Vec<u16>>> {
    let is_read = |field: &Field| reads.iter().any(|bit| (field.low..field.low + field.width).contains(bit));
    let mut all: Vec<BTreeMap<usize, u16>> = vec![BTreeMap::new()];
    for (place, field) in own.iter().enumerate().filter(|(_, field)| is_read(field)) {
        let mut longer = Vec::new();
        for begun in &all {
            for (number, _) in world.iter().enumerate().filter(|(_, there)| there.width == field.width) {
                if !begun.values().any(|taken| usize::from(*taken) == number) {
                    let mut order = begun.clone();
                    order.insert(place, number as u16);
                    longer.push(order);
                }
            }
        }
        all = longer;
        if ORDERS_MAX < all.len() {
            return None;
        }
    }
    Some(all.into_iter().map(|order| filled(order, own, world)).collect())
}

/// An order with the fields that nobody reads at the places that are left.
fn filled(mut order: BTreeMap<usize, u16>, own: &[Field], world: &[Field]) -> Vec<u16> {
    for (place, field) in own.iter().enumerate() {
        if order.contains_key(&place) {
            continue;
        }
        let is_free = |number: &usize| {
            world[*number].width == field.width && !order.values().any(|taken| usize::from(*taken) == *number)
        };
        let free = (0..world.len()).find(is_free).expect("the widths are the same in some order");
        order.insert(place, free as u16);
    }
    order.into_values().collect()
}

/// What the actions of a policy stand for, if the bits that it reads stand for these: the pairs of its action and what was done
/// that came together most often, each action once. With the steps in which it then does what was done.
fn matched(policy: &Policy, bits: &[u16], watched: &[Episode]) -> (u64, Vec<u16>) {
    let seen = |step: &Step| {
        let mut own = Bits::ZERO;
        for bit in policy.reads() {
            own.set(usize::from(*bit), step.observation.get(usize::from(bits[usize::from(*bit)])));
        }
        Step { observation: own, ..*step }
    };
    let moved: Vec<Episode> = watched
        .iter()
        .map(|episode| Episode { serial: episode.serial, steps: episode.steps.iter().map(seen).collect() })
        .collect();
    let mut together: BTreeMap<(u16, u16), u64> = BTreeMap::new();
    for (episode, chosen) in moved.iter().zip(policy.replay(&moved)) {
        for (step, own) in episode.steps.iter().zip(chosen) {
            *together.entry((own, step.action)).or_default() += 1;
        }
    }
    let mut pairs: Vec<((u16, u16), u64)> = together.into_iter().collect();
    pairs.sort_by_key(|(pair, count)| (Reverse(*count), *pair));
    let mut agreement = 0;
    let mut names: BTreeMap<u16, u16> = BTreeMap::new();
    let mut taken = vec![false; usize::from(policy.actions())];
    for ((own, done), count) in pairs {
        if !names.contains_key(&own) && !taken[usize::from(done)] {
            names.insert(own, done);
            taken[usize::from(done)] = true;
            agreement += count;
        }
    }
    // What was never chosen keeps its name where it can.
    let nameless: Vec<u16> = (0..policy.actions()).filter(|own| !names.contains_key(own)).collect();
    for own in &nameless {
        if !taken[usize::from(*own)] {
            names.insert(*own, *own);
            taken[usize::from(*own)] = true;
        }
    }
    for own in nameless {
        let free = taken.iter().position(|is_taken| !is_taken);
        if let (false, Some(free)) = (names.contains_key(&own), free) {
            names.insert(own, free as u16);
            taken[free] = true;
        }
    }
    (agreement, names.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_engine::worlds::Catalog;

    fn fields(widths: &[u16]) -> Vec<Field> {
        let lows = widths.iter().scan(0, |low, width| {
            *low += width;
            Some(*low - width)
        });
        lows.zip(widths).map(|(low, width)| Field { low, width: *width }).collect()
    }

    #[test]
    fn only_fields_of_equal_width_stand_for_each_other_and_too_many_ways_are_not_tried() {
        let (own, world) = (fields(&[1, 2, 2]), fields(&[2, 1, 2]));
        // All are read: the single bit has one place, the others have two.
        assert_eq!(orders(&own, &world, &[0, 1, 3]).unwrap(), [vec![1, 0, 2], vec![1, 2, 0]]);
        // What is not read takes what is left.
        assert_eq!(orders(&own, &world, &[0]).unwrap(), [vec![1, 0, 2]]);
        let many = fields(&[1; 7]);
        assert_eq!(orders(&many, &many, &[0, 1, 2]).unwrap().len(), 7 * 6 * 5);
        assert_eq!(orders(&many, &many, &[0, 1, 2, 3, 4, 5, 6]), None);
        assert!(permutations(3, BLIND_MAX).len() == 6 && permutations(5, BLIND_MAX).is_empty());
    }

    #[test]
    fn worlds_with_other_fields_are_no_reordering() {
        let world = |widths: &[u16]| {
            let shape = Catalog.game("compare{bits=2}", 1).unwrap().shape().clone();
            Shape { observation_bits: widths.iter().sum(), fields: fields(widths), ..shape }
        };
        assert!(is_reordered(&fields(&[1, 2]), &world(&[2, 1])));
        assert!(!is_reordered(&fields(&[1, 2]), &world(&[3])));
        assert!(!is_reordered(&fields(&[1, 1]), &world(&[1, 1, 1])));
        // Fields that overlap or leave bits out are not moved.
        assert!(!is_reordered(&[Field { low: 0, width: 2 }, Field { low: 1, width: 1 }], &world(&[2, 1])));
    }

    #[test]
    fn what_looks_at_nothing_has_no_other_name() {
        let world = Catalog.game("compare{bits=2}", 1).unwrap().shape().clone();
        let same = Agent::circuit(Policy::constant(world.actions, 0));
        assert!(guesses(&same, &world.fields, &world, None).is_empty());
    }

    #[test]
    fn a_renaming_that_names_something_twice_is_refused() {
        let read = |fields: Vec<u16>| {
            let mut writer = Writer::new();
            Renaming { fields, actions: vec![1, 0] }.encode(&mut writer);
            let bytes = writer.into_bytes();
            Renaming::decode(&mut Reader::new(&bytes)).map(|renaming| renaming.fields)
        };
        assert_eq!(read(vec![2, 0, 1]).unwrap(), [2, 0, 1]);
        assert!(read(vec![0, 0, 1]).is_err() && read(vec![1, 2, 3]).is_err());
    }
}
