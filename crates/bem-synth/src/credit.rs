//! Credit for what comes later: which rewards depend on which earlier decisions, by test.
//!
//! Decisions are classed by the steps since the start of an episode, by those before its end, and by rare literals of what is
//! seen; rewards are classed alike, later than the decision. On steps whose action was drawn with equal chance it is asked
//! whether the mean of a later reward is the same for all actions: overall, and on both sides of every bit that was seen at the
//! decision. What stands out in every other episode must be confirmed by the rest, where the chance of error is shared by all
//! that stood out. A decision's label is the sum of those later rewards that depend on it, and of its own if that does, so that
//! the rewards of all other steps add no noise. Labelled decisions are a log of one step each: what explains it is proposed like any other
//! candidate, and measured returns decide. Must not know games. Clauses: SCC-2, SCC-8, VM-16; decision D-65.

use crate::experience::{Episode, Step};
use crate::function::build_word_table;
use crate::hypothesis::{Stated, build};
use crate::policy::{Policy, action_bits};
use crate::samples::Work;
use crate::statement::Choice;
use crate::surprise::{needed, surprise};
use bem_base::environment::{Bits, Shape};
use bem_base::fixed::Fixed;
use bem_circuit::netlist::Signal;
use std::collections::{BTreeMap, BTreeSet};

/// Steps since the start, or before the end, that are classes of their own.
const PLACES_MAX: usize = 128;
/// Rare literals that are classes of their own, and how rare they are: one step in so many.
const LITERALS_MAX: usize = 64;
const RARE_ONE_IN: usize = 8;
/// The latest episodes that are looked at, and how many there must be.
const EPISODES_MAX: usize = 4_096;
const EPISODES_MIN: usize = 16;
/// Actions at most.
const ACTIONS_MAX: usize = 16;
/// Steps behind every mean.
const COUNT_MIN: i64 = 3;
/// What stands out is confirmed for so many pairs at most, one over so many is the chance that one of them is an error.
const CONFIRMED_MAX: usize = 48;
const ERROR_ONE_IN: u128 = 40;
/// What stands out has at least this surprise.
const STANDS_OUT: Fixed = Fixed::from_ratio(3, 1);
/// Bits that a table of best means reads at most, and the decisions behind each of its rows.
const BITS_MAX: usize = 4;
const ROW_MIN: usize = 12;
/// Decisions of a policy that must have earned the highest label.
const SETTLED_MIN: usize = 32;
/// Squared differences are kept in these parts of one.
const SCALE: i128 = 1 << 10;

/// A class of steps; every episode has at most one step of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The step with this many before it.
    Since(u32),
    /// The step with this many after it.
    Before(u32),
    /// The first step at which a bit has this value.
    Literal(u16, bool),
}

impl Class {
    /// Its step in an episode, not earlier than `from`.
    fn place(self, episode: &Episode, from: usize) -> Option<usize> {
        let steps = episode.steps.len();
        let place = match self {
            Class::Since(before) => Some(before as usize).filter(|place| *place < steps),
            Class::Before(after) => steps.checked_sub(1 + after as usize),
            Class::Literal(bit, value) => {
                let holds = |step: &Step| step.observation.get(usize::from(bit)) == value;
                episode.steps[from.min(steps)..].iter().position(holds).map(|place| from + place)
            }
        };
        place.filter(|place| from <= *place)
    }

    fn words(self) -> String {
        match self {
            Class::Since(before) => format!("step {before}"),
            Class::Before(0) => "the last step".to_string(),
            Class::Before(after) => format!("step {after} before the last"),
            Class::Literal(bit, value) => format!("the step with bit {bit} {}", u8::from(value)),
        }
    }
}

/// A later reward that depends on an earlier decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// The decision.
    pub decision: Class,
    /// The step whose reward depends on it.
    pub reward: Class,
}

/// What depends on what, and the labels that follow.
#[derive(Clone, Debug)]
pub struct Credit {
    links: Vec<Link>,
    /// One episode of one step for every labelled decision.
    decisions: Vec<Episode>,
}

/// Count and sum of one action on one side.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    count: i64,
    sum: i64,
}

/// A decision in one episode: the action, what was seen, and where.
struct Decided<'e> {
    class: Class,
    episode: &'e Episode,
    place: usize,
}

impl Decided<'_> {
    fn step(&self) -> &Step {
        &self.episode.steps[self.place]
    }
}

/// A pair that stands out, and the bit by whose sides it was seen.
struct Found {
    surprise: Fixed,
    link: Link,
    bit: Option<u16>,
}

impl Credit {
    /// Tests what depends on what; none where nothing later depends on any decision.
    pub fn of(shape: &Shape, episodes: &[&Episode], work: &mut Work) -> Option<Credit> {
        let actions = usize::from(shape.actions);
        if shape.horizon < 2 || !(2..=ACTIONS_MAX).contains(&actions) {
            return None;
        }
        let drawn: Vec<&Episode> = episodes.iter().copied().filter(|episode| episode.has_draws()).collect();
        let drawn = &drawn[drawn.len().saturating_sub(EPISODES_MAX)..];
        if drawn.len() < EPISODES_MIN {
            return None;
        }
        let half =
            |parity: usize| -> Vec<&Episode> { drawn.iter().copied().skip(parity).step_by(2).collect() };
        let (even, odd) = (half(0), half(1));
        let classes = classes(shape, drawn);
        let mut found = Vec::new();
        for decision in &classes {
            if !look(shape, *decision, &classes, &even, &mut found, work) {
                break;
            }
        }
        found.sort_by_key(|found| (core::cmp::Reverse(found.surprise), found.link));
        found.truncate(CONFIRMED_MAX);
        let looks = u128::from(drawn.len().ilog2());
        let odds = ERROR_ONE_IN * looks * (looks + 1);
        let enough = needed(odds, found.len());
        let confirmed = found.iter().filter(|found| enough < tested(shape, found.link, found.bit, &odd));
        let links: Vec<Link> = confirmed.map(|found| found.link).collect();
        // What a decision brings at once is part of its label where it depends on the action too.
        let decisions: BTreeSet<Class> = links.iter().map(|link| link.decision).collect();
        let enough = needed(odds, decisions.len());
        let pays_at_once = |decision: &Class| {
            let own = Link { decision: *decision, reward: *decision };
            let decided = decided(*decision, &even);
            let samples = || decided.iter().map(|decided| (decided.step(), i64::from(decided.step().reward)));
            let best = best_side(samples, actions, usize::from(shape.observation_bits));
            best.is_some_and(|(_, bit)| enough < tested(shape, own, bit, &odd))
        };
        let own: BTreeSet<Class> = decisions.into_iter().filter(pays_at_once).collect();
        (!links.is_empty()).then(|| Credit { decisions: labelled(&links, &own, episodes), links })
    }

    /// What depends on what.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The labelled decisions as episodes of one step.
    pub fn decisions(&self) -> &[Episode] {
        &self.decisions
    }

    /// The world of labelled decisions: one step that pays its label.
    pub fn shape(&self, shape: &Shape) -> Shape {
        let labels = || self.decisions.iter().map(|episode| episode.steps[0].reward);
        let (low, high) = (labels().min().unwrap_or(0), labels().max().unwrap_or(0));
        Shape {
            horizon: 1,
            reward_min: low,
            reward_max: high,
            return_min: i64::from(low),
            return_max: i64::from(high),
            ..shape.clone()
        }
    }

    /// Whether nothing is left to be gained by what is known: every decision in which the log did what this policy would do
    /// has the highest label there is. What remembers is not followed.
    pub fn is_settled(&self, policy: &Policy) -> bool {
        let labels = || self.decisions.iter().map(|episode| episode.steps[0].reward);
        let top = labels().max().unwrap_or(0);
        let wanted = policy.replay(&self.decisions);
        let agreed = || {
            let steps = self.decisions.iter().map(|episode| &episode.steps[0]);
            steps.zip(&wanted).filter(|(step, wanted)| step.action == wanted[0])
        };
        let is_varied = labels().any(|label| label < top);
        let is_top = agreed().all(|(step, _)| step.reward == top);
        policy.memory_bits() == 0 && is_varied && SETTLED_MIN <= agreed().count() && is_top
    }

    /// What was found, in words.
    pub fn words(&self) -> String {
        let Link { decision, reward } = self.links[0];
        let more = match self.links.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        format!("credit from {} to {}{more}", reward.words(), decision.words())
    }

    /// A table of best mean labels over the few bits that tell which action is the best.
    pub fn table(&self, shape: &Shape) -> Option<(Stated, u32, String)> {
        let steps: Vec<&Step> = self.decisions.iter().map(|episode| &episode.steps[0]).collect();
        let bits = telling_bits(shape, &steps);
        let mut sums: BTreeMap<u64, Vec<Cell>> = BTreeMap::new();
        for step in &steps {
            let cells = sums
                .entry(key(&bits, &step.observation))
                .or_insert_with(|| vec![Cell::default(); usize::from(shape.actions)]);
            let cell = &mut cells[usize::from(step.action)];
            *cell = Cell { count: cell.count + 1, sum: cell.sum + i64::from(step.reward) };
        }
        let mean = |cell: &Cell| i128::from(cell.sum) * 1_024 / i128::from(cell.count.max(1));
        let best = |cells: &Vec<Cell>| {
            let known = cells.iter().enumerate().filter(|(_, cell)| 0 < cell.count);
            let best = known.max_by_key(|(action, cell)| (mean(cell), core::cmp::Reverse(*action)));
            best.map_or(0, |(action, _)| action as u64)
        };
        let rows: BTreeMap<u64, u64> = sums.iter().map(|(key, cells)| (*key, best(cells))).collect();
        let code_bits = action_bits(shape.actions);
        let choice = Choice::Rows { bits: bits.clone(), rows: rows.clone() };
        let stated = build(shape, None, choice, |builder, row| {
            let bits: Vec<Signal> = bits.iter().map(|bit| row[usize::from(*bit)]).collect();
            build_word_table(builder, &bits, &rows, code_bits)
        })?;
        let length = (rows.len() * code_bits) as u32;
        Some((stated, length, format!("best mean in each of {} rows, {}", rows.len(), self.words())))
    }
}

fn key(bits: &[u16], seen: &Bits) -> u64 {
    bits.iter().zip(0..).fold(0, |key, (bit, place)| key | u64::from(seen.get(usize::from(*bit))) << place)
}

/// The classes that are tried: places from the start, places from the end where episodes differ in length, rare literals.
fn classes(shape: &Shape, episodes: &[&Episode]) -> Vec<Class> {
    let lengths = || episodes.iter().map(|episode| episode.steps.len());
    let (longest, shortest) = (lengths().max().unwrap_or(0), lengths().min().unwrap_or(0));
    let mut classes: Vec<Class> = (0..longest.min(PLACES_MAX) as u32).map(Class::Since).collect();
    if shortest < longest || PLACES_MAX < longest {
        classes.extend((0..longest.min(PLACES_MAX) as u32).map(Class::Before));
    }
    let mut ones = vec![0usize; usize::from(shape.observation_bits)];
    let mut steps = 0;
    for step in episodes.iter().flat_map(|episode| &episode.steps) {
        steps += 1;
        for (first, word) in (0..).step_by(64).zip(step.observation.0) {
            let mut word = word;
            while word != 0 {
                ones[first + word.trailing_zeros() as usize] += 1;
                word &= word - 1;
            }
        }
    }
    let rare = |count: usize| 0 < count && RARE_ONE_IN * count <= steps;
    let literals = ones.iter().zip(0..).filter_map(|(ones, bit)| match (rare(*ones), rare(steps - ones)) {
        (true, _) => Some(Class::Literal(bit, true)),
        (_, true) => Some(Class::Literal(bit, false)),
        _ => None,
    });
    classes.extend(literals.take(LITERALS_MAX));
    classes
}

/// The decisions of a class whose action was drawn with equal chance.
fn decided<'e>(class: Class, episodes: &[&'e Episode]) -> Vec<Decided<'e>> {
    let of = |episode: &&'e Episode| {
        let place = class.place(episode, 0).filter(|place| episode.steps[*place].uniform)?;
        Some(Decided { class, episode, place })
    };
    episodes.iter().filter_map(of).collect()
}

/// What this class of steps after the decision paid, or the decision itself; nothing where the episode did not last so long.
fn paid(class: Class, decided: &Decided<'_>) -> Option<i64> {
    let Decided { class: own, episode, place } = *decided;
    let told = |step: &Step| step.is_told().then(|| i64::from(step.reward));
    if class == own {
        return told(&episode.steps[place]);
    }
    match class.place(episode, place + 1) {
        Some(later) => told(&episode.steps[later]),
        // What was not reached was not earned; what lies before the decision is no reward of it.
        None => match class {
            Class::Since(before) => (place < before as usize).then_some(0),
            Class::Before(_) => None,
            Class::Literal(..) => Some(0),
        },
    }
}

/// Looks at everything later than one class of decisions; false when the means are used up.
fn look(
    shape: &Shape,
    decision: Class,
    classes: &[Class],
    episodes: &[&Episode],
    found: &mut Vec<Found>,
    work: &mut Work,
) -> bool {
    let (actions, bits) = (usize::from(shape.actions), usize::from(shape.observation_bits));
    let decided = decided(decision, episodes);
    if (decided.len() as i64) < 2 * COUNT_MIN * actions as i64 {
        return true;
    }
    for &reward in classes {
        let is_earlier = match (decision, reward) {
            (Class::Since(one), Class::Since(other)) => other <= one,
            (Class::Before(one), Class::Before(other)) => one <= other,
            _ => decision == reward,
        };
        if is_earlier {
            continue;
        }
        if !work.spend((decided.len() * (4 + bits)) as u64) {
            return false;
        }
        let labels: Vec<Option<i64>> = decided.iter().map(|decided| paid(reward, decided)).collect();
        let first = labels.iter().flatten().next();
        if labels.iter().flatten().all(|label| Some(label) == first) {
            continue;
        }
        let link = Link { decision, reward };
        let samples = || {
            let known = decided.iter().zip(&labels);
            known.filter_map(|(decided, label)| Some((decided.step(), (*label)?)))
        };
        let best = best_side(samples, actions, bits);
        if let Some((surprise, bit)) = best.filter(|(surprise, _)| STANDS_OUT < *surprise) {
            found.push(Found { surprise, link, bit });
        }
    }
    true
}

/// How surprising a link is in these episodes, overall or by the sides of a bit.
fn tested(shape: &Shape, link: Link, bit: Option<u16>, episodes: &[&Episode]) -> Fixed {
    let decided = decided(link.decision, episodes);
    let paid = |decided: &Decided<'_>| Some((*decided.step(), paid(link.reward, decided)?));
    let samples: Vec<(Step, i64)> = decided.iter().filter_map(paid).collect();
    let actions = usize::from(shape.actions);
    let (mut low, mut high) = (vec![Cell::default(); actions], vec![Cell::default(); actions]);
    let mut moments = Moments::default();
    for (step, label) in &samples {
        moments.add(*label);
        let is_high = bit.is_some_and(|bit| step.observation.get(usize::from(bit)));
        let cell = &mut if is_high { &mut high } else { &mut low }[usize::from(step.action)];
        *cell = Cell { count: cell.count + 1, sum: cell.sum + label };
    }
    moments.surprise_of(&[&low, &high])
}

/// Sums over all samples, for the variance.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: i128,
    sum: i128,
    squares: i128,
}

impl Moments {
    fn add(&mut self, label: i64) {
        let label = i128::from(label);
        *self = Moments {
            count: self.count + 1,
            sum: self.sum + label,
            squares: self.squares.saturating_add(label * label),
        };
    }

    /// How surprising it is that means of actions differ so much within these groups.
    fn surprise_of(&self, groups: &[&[Cell]]) -> Fixed {
        if self.count < 2 {
            return Fixed::ZERO;
        }
        // The variance of all labels, whatever the action: a few equal ones cannot look certain.
        let spread = self.squares.saturating_mul(self.count).saturating_sub(self.sum * self.sum);
        let variance = spread / (self.count * self.count) + 1;
        let (mut between, mut freedom) = (0i128, 0i128);
        for cells in groups {
            let known = || cells.iter().filter(|cell| COUNT_MIN <= cell.count);
            let (count, sum) = known().fold((0i128, 0i128), |(count, sum), cell| {
                (count + i128::from(cell.count), sum + i128::from(cell.sum))
            });
            let actions = known().count() as i128;
            if actions < 2 {
                continue;
            }
            // The squared deviation of every mean from the mean of all, by its count.
            for cell in known() {
                let [cell_count, cell_sum] = [cell.count, cell.sum].map(i128::from);
                let apart = cell_sum * count - sum * cell_count;
                // apart^2 / (n_a n^2)
                between += apart / count * apart / (cell_count * count) * SCALE / variance;
            }
            freedom += actions - 1;
        }
        if freedom == 0 { Fixed::ZERO } else { surprise(between, SCALE, freedom) }
    }
}

/// The most surprising way in which labels depend on actions: overall, or on the sides of some bit.
fn best_side<'s, I: Iterator<Item = (&'s Step, i64)>>(
    samples: impl Fn() -> I,
    actions: usize,
    bits: usize,
) -> Option<(Fixed, Option<u16>)> {
    let mut moments = Moments::default();
    let mut all = vec![Cell::default(); actions];
    let mut sides = vec![Cell::default(); bits * actions];
    for (step, label) in samples() {
        moments.add(label);
        let action = usize::from(step.action);
        let count = |cell: &mut Cell| *cell = Cell { count: cell.count + 1, sum: cell.sum + label };
        count(&mut all[action]);
        for (first, word) in (0..bits).step_by(64).zip(step.observation.0) {
            let mut word = word;
            while word != 0 {
                let bit = first + word.trailing_zeros() as usize;
                count(&mut sides[bit * actions + action]);
                word &= word - 1;
            }
        }
    }
    let overall = (moments.surprise_of(&[&all]), None);
    let of_bit = |bit: usize| {
        let high = &sides[bit * actions..(bit + 1) * actions];
        let rest =
            |(all, high): (&Cell, &Cell)| Cell { count: all.count - high.count, sum: all.sum - high.sum };
        let low: Vec<Cell> = all.iter().zip(high).map(rest).collect();
        (moments.surprise_of(&[&low, high]), Some(bit as u16))
    };
    (0..bits).map(of_bit).chain([overall]).max_by_key(|(surprise, bit)| (*surprise, core::cmp::Reverse(*bit)))
}

/// The decisions of all links as episodes of one step that pay their labels.
fn labelled(links: &[Link], own: &BTreeSet<Class>, episodes: &[&Episode]) -> Vec<Episode> {
    let mut by_decision: BTreeMap<Class, Vec<Class>> = BTreeMap::new();
    links.iter().for_each(|link| by_decision.entry(link.decision).or_default().push(link.reward));
    let mut list = Vec::new();
    for episode in episodes {
        // A step that two classes name is one decision with the rewards of both.
        let mut places: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (decision, rewards) in &by_decision {
            let Some(place) = decision.place(episode, 0) else { continue };
            let later = rewards.iter().filter_map(|reward| reward.place(episode, place + 1));
            let credited = later.chain(own.contains(decision).then_some(place));
            places.entry(place).or_default().extend(credited);
        }
        for (place, credited) in places {
            // A label with a part that never came says nothing.
            if credited.iter().any(|place| !episode.steps[*place].is_told()) {
                continue;
            }
            let step = episode.steps[place];
            let rewards = credited.iter().map(|place| episode.steps[*place].reward);
            let label = rewards.fold(0i32, i32::saturating_add);
            let step = Step { reward: label, done: true, ..step };
            list.push(Episode { serial: episode.serial, steps: vec![step] });
        }
    }
    list
}

/// The few bits that tell which action has the best mean, one after the other while each is beyond chance.
fn telling_bits(shape: &Shape, steps: &[&Step]) -> Vec<u16> {
    let (actions, bits) = (usize::from(shape.actions), usize::from(shape.observation_bits));
    let mut chosen: Vec<u16> = Vec::new();
    let mut moments = Moments::default();
    steps.iter().for_each(|step| moments.add(i64::from(step.reward)));
    while chosen.len() < BITS_MAX && ROW_MIN << chosen.len() <= steps.len() {
        let rows = 1usize << chosen.len();
        // How labels depend on actions within the rows so far, and within both halves of each.
        let mut cells = vec![Cell::default(); rows * actions];
        let mut halves = vec![Cell::default(); bits * rows * actions];
        for step in steps {
            let place = key(&chosen, &step.observation) as usize * actions + usize::from(step.action);
            let label = i64::from(step.reward);
            let count = |cell: &mut Cell| *cell = Cell { count: cell.count + 1, sum: cell.sum + label };
            count(&mut cells[place]);
            for bit in (0..bits).filter(|bit| step.observation.get(*bit)) {
                count(&mut halves[bit * rows * actions + place]);
            }
        }
        let before = between(&moments, &cells, actions);
        let gain = |bit: usize| {
            let high = &halves[bit * rows * actions..(bit + 1) * rows * actions];
            let rest =
                |(all, high): (&Cell, &Cell)| Cell { count: all.count - high.count, sum: all.sum - high.sum };
            let low: Vec<Cell> = cells.iter().zip(high).map(rest).collect();
            between(&moments, &low, actions) + between(&moments, high, actions) - before
        };
        let free = (0..bits).filter(|bit| !chosen.contains(&(*bit as u16)));
        let best = free.map(|bit| (gain(bit), core::cmp::Reverse(bit))).max();
        let Some((gain, core::cmp::Reverse(bit))) = best else { break };
        let freedom = (rows * (actions - 1)) as i128;
        if surprise(gain, SCALE, freedom) < needed(ERROR_ONE_IN, bits) {
            break;
        }
        chosen.push(bit as u16);
    }
    chosen
}

/// What actions explain within rows, in units of the variance.
fn between(moments: &Moments, cells: &[Cell], actions: usize) -> i128 {
    let spread = moments.squares.saturating_mul(moments.count).saturating_sub(moments.sum * moments.sum);
    let variance = spread / (moments.count * moments.count).max(1) + 1;
    let of_row = |row: &[Cell]| {
        let (count, sum) = row
            .iter()
            .fold((0i128, 0i128), |all, cell| (all.0 + i128::from(cell.count), all.1 + i128::from(cell.sum)));
        let known = row.iter().filter(|cell| 0 < cell.count);
        let squares = known.map(|cell| {
            let [cell_count, cell_sum] = [cell.count, cell.sum].map(i128::from);
            let apart = cell_sum * count - sum * cell_count;
            apart / count * apart / (cell_count * count) * SCALE / variance
        });
        squares.sum::<i128>()
    };
    cells.chunks(actions).map(of_row).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    fn shape(bits: u16, actions: u16, horizon: u32) -> Shape {
        Shape {
            observation_bits: bits,
            actions,
            horizon,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000 * i64::from(horizon),
            fields: Vec::new(),
        }
    }

    /// Even draws; every step pays 0 or 200 by chance, and the last one what `pays` makes of the first step.
    fn play(shape: &Shape, episodes: u64, pays: impl Fn(u16, &Bits) -> i32) -> Vec<Episode> {
        let mut prng = Prng::stream(4, "credit");
        let episode = |serial| {
            let mut steps: Vec<Step> = (0..shape.horizon)
                .map(|time| {
                    let mut observation = Bits::ZERO;
                    (0..usize::from(shape.observation_bits)).for_each(|bit| observation.set(bit, prng.bit()));
                    Step {
                        observation,
                        action: prng.below(u64::from(shape.actions)) as u16,
                        reward: 200 * prng.below(2) as i32,
                        done: time + 1 == shape.horizon,
                        bad: false,
                        uniform: true,
                        propensity: u16::MAX / shape.actions,
                    }
                })
                .collect();
            let paid = pays(steps[0].action, &steps[0].observation);
            steps.last_mut().unwrap().reward = paid;
            Episode { serial, steps }
        };
        (0..episodes).map(episode).collect()
    }

    fn credit(shape: &Shape, episodes: &[Episode]) -> Option<Credit> {
        let episodes: Vec<&Episode> = episodes.iter().collect();
        Credit::of(shape, &episodes, &mut Work::new(50_000_000))
    }

    #[test]
    fn a_first_action_is_credited_with_what_comes_a_hundred_steps_later() {
        let shape = shape(100, 2, 100);
        let episodes = play(&shape, 160, |action, _| if action == 1 { 1_000 } else { 0 });
        let credit = credit(&shape, &episodes).expect("the last reward depends on the first action");
        assert_eq!(credit.links()[0], Link { decision: Class::Since(0), reward: Class::Since(99) });
        let (stated, _, words) = credit.table(&shape).expect("a table fits");
        assert_eq!(stated.policy.replay([&episodes[0]])[0][0], 1, "{words}");
        assert!(credit.is_settled(&stated.policy), "the first reward is chance and no part of the label");
    }

    #[test]
    fn where_a_bit_says_which_first_action_is_right_the_bit_is_found_among_others() {
        let shape = shape(40, 3, 30);
        let right = |seen: &Bits| if seen.get(17) { 2 } else { 0 };
        let episodes = play(&shape, 300, |action, seen| if action == right(seen) { 1_000 } else { 0 });
        let credit = credit(&shape, &episodes).expect("the last reward depends on the first action");
        let (stated, _, words) = credit.table(&shape).expect("a table fits");
        for episode in &episodes[..40] {
            assert_eq!(
                stated.policy.replay([episode])[0][0],
                right(&episode.steps[0].observation),
                "{words}"
            );
        }
    }

    #[test]
    fn a_tenth_more_is_told_from_a_tenth_less() {
        let shape = shape(0, 4, 50);
        let episodes = play(&shape, 120, |action, _| if action == 3 { 1_000 } else { 900 });
        let credit = credit(&shape, &episodes).expect("the last reward depends on the first action");
        let (stated, _, _) = credit.table(&shape).expect("a table fits");
        assert_eq!(stated.policy.replay([&episodes[0]])[0][0], 3);
    }

    #[test]
    fn where_nothing_depends_on_anything_no_credit_is_given() {
        for bits in [0, 8, 60] {
            for horizon in [3, 12, 40] {
                let shape = shape(bits, 2, horizon);
                let episodes = play(&shape, 400, |_, seen| 500 * i32::from(seen.0[0] & 1 == 1));
                let found = credit(&shape, &episodes);
                assert!(found.is_none(), "{bits} {horizon} {:?}", found.map(|found| found.links));
            }
        }
    }

    #[test]
    fn work_that_runs_out_leaves_what_was_found_first() {
        let shape = shape(100, 2, 60);
        let episodes = play(&shape, 200, |action, _| if action == 1 { 1_000 } else { 0 });
        let episodes: Vec<&Episode> = episodes.iter().collect();
        let mut work = Work::new(1_500_000);
        let credit = Credit::of(&shape, &episodes, &mut work).expect("the first decision comes first");
        assert_eq!((work.left(), credit.links()[0].decision), (0, Class::Since(0)));
    }
}
