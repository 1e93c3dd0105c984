//! Yes or no by chance, where fields spell numbers: for every action the comparisons that its chance depends on, and the
//! action of the highest sum.
//!
//! Contexts divide a field bit by bit: a threshold that lies across the bits takes many of them, and each has to be learned
//! alone. Here a field is compared with all of its values (`field >= 7`), and comparisons are taken up as bits are in
//! [`super::linear`], those only that chance does not explain. The sums themselves would be a large circuit; what they choose
//! is said as a tree over the bits of the fields. Where nothing is a number, where the answer is not drawn, and where rewards
//! have more than two levels this is not asked. Must not know games. Clauses: SCC-2; decision D-221.

use super::linear::{Fit, fit_action};
use crate::hypothesis::{Stated, build};
use crate::policy::action_bits;
use crate::samples::{ROW_BITS_MAX, Row, Work};
use crate::statement::{Branch, Choice};
use crate::view::{Record, View};
use bem_base::environment::{Field, Shape};
use bem_circuit::netlist::{Builder, Signal};
use std::collections::BTreeMap;

/// Bits of a field that spells a number, at least, and those of its highest bits that comparisons look at, at most.
const NUMBER_BITS_MIN: u16 = 3;
const COMPARED_BITS_MAX: u16 = 6;
/// Repetitions of what was seen and done without which nobody knows whether rewards are drawn, and one in how many must have
/// brought the other reward.
const REPEATED_MIN: usize = 40;
const DIFFERING_ONE_IN: usize = 4;
/// The squared ratio of a weight to its error from which a comparison is taken up: dozens are looked at, and a wrong one
/// costs more than a small one brings.
const RATIO_SQUARED: i128 = 16;
/// Leaves of the tree at most, and boxes that are looked at on the way.
const LEAVES_MAX: usize = 512;
const BOXES_MAX: usize = 1 << 14;

/// A field that is compared with a value: whether it is at least that.
type Comparison = (Field, u64);

/// Fits comparisons to what every action earned; none unless some comparison matters.
pub fn fit(shape: &Shape, view: &View, work: &mut Work) -> Option<(Stated, u32, String)> {
    let is_number = |field: &&Field| NUMBER_BITS_MIN <= field.width && field.width <= 64;
    if shape.horizon != 1 || view.rewards().len() != 2 || !view.groups.iter().any(|field| is_number(&field)) {
        return None;
    }
    let comparisons = comparisons(&view.groups)?;
    if !work.spend((view.records.len() * (8 + comparisons.len())) as u64) || !is_drawn(view) {
        return None;
    }
    let shown = shown(view, &comparisons);
    let fits: Vec<Fit> = (0..shape.actions)
        .map(|action| fit_action(&shown, action, [RATIO_SQUARED; 2], work))
        .collect::<Option<_>>()?;
    let weighed: usize = fits.iter().map(|fit| fit.weights.len()).sum();
    if weighed == 0 {
        return None;
    }
    let (branches, leaves) = Boxes::new(&fits, &comparisons).tree()?;
    let code_bits = action_bits(shape.actions);
    let stated = build(shape, None, Choice::Tree(branches.clone()), |builder, row| {
        build_tree(builder, row, &branches, code_bits)
    })?;
    let words = format!("action of the highest sum of {weighed} comparisons, a tree of {leaves} leaves");
    Some((stated, 16 * weighed as u32, words))
}

/// All comparisons of all fields; none where they are more than a row has bits.
fn comparisons(fields: &[Field]) -> Option<Vec<Comparison>> {
    let of = |field: &Field| {
        let idle = field.width.saturating_sub(COMPARED_BITS_MAX);
        (1..1u64 << (field.width - idle)).map(|value| (*field, value << idle)).collect::<Vec<_>>()
    };
    let all: Vec<Comparison> = fields.iter().filter(|field| field.width <= 64).flat_map(of).collect();
    (all.len() + 2 <= ROW_BITS_MAX).then_some(all)
}

/// Whether the same action often brings the other reward where the same is seen.
fn is_drawn(view: &View) -> bool {
    let mut latest: BTreeMap<(Row, u16), i32> = BTreeMap::new();
    let (mut repeated, mut differing) = (0, 0);
    for record in view.told() {
        if let Some(before) = latest.insert((record.row, record.action), record.reward) {
            repeated += 1;
            differing += usize::from(before != record.reward);
        }
    }
    REPEATED_MIN <= repeated && repeated <= DIFFERING_ONE_IN * differing
}

/// The same records, with comparisons in place of bits.
fn shown(view: &View, comparisons: &[Comparison]) -> View {
    let compare = |record: &Record| {
        let mut row = Row::default();
        for (place, (field, value)) in comparisons.iter().enumerate() {
            row.set(place, *value <= record.row.word(field));
        }
        Record { row, ..*record }
    };
    View {
        width: comparisons.len(),
        groups: Vec::new(),
        actions: view.actions,
        records: view.records.iter().map(compare).collect(),
    }
}

/// A field of which the highest bits are known: the lowest number that it can be, and the bits that are open.
#[derive(Clone, Copy)]
struct Range {
    field: Field,
    low: u64,
    open: u16,
}

/// What the sums choose, over fields that are known bit by bit, the highest first.
struct Boxes<'f> {
    fits: &'f [Fit],
    comparisons: &'f [Comparison],
    /// For every field the values that some action's sum compares it with.
    borders: BTreeMap<u16, Vec<u64>>,
    looked: usize,
}

impl Boxes<'_> {
    fn new<'f>(fits: &'f [Fit], comparisons: &'f [Comparison]) -> Boxes<'f> {
        let mut borders: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        for (place, _) in fits.iter().flat_map(|fit| &fit.weights) {
            let (field, value) = comparisons[*place];
            borders.entry(field.low).or_default().push(value);
        }
        Boxes { fits, comparisons, borders, looked: 0 }
    }

    /// The tree in preorder and its leaves; none where it is too large.
    fn tree(mut self) -> Option<(Vec<Branch>, usize)> {
        let mut ranges: Vec<Range> = Vec::new();
        for (field, _) in self.comparisons {
            if self.borders.contains_key(&field.low)
                && ranges.last().is_none_or(|range| range.field.low != field.low)
            {
                ranges.push(Range { field: *field, low: 0, open: field.width });
            }
        }
        let branches = self.grow(&mut ranges)?;
        let leaves = branches.iter().filter(|branch| matches!(branch, Branch::Leaf(_))).count();
        (leaves <= LEAVES_MAX).then_some((branches, leaves))
    }

    /// The tree of one box; halves that choose the same are one.
    fn grow(&mut self, ranges: &mut [Range]) -> Option<Vec<Branch>> {
        self.looked += 1;
        if BOXES_MAX < self.looked {
            return None;
        }
        let is_cut = |range: &Range| {
            let within = |value: &u64| range.low < *value && (value - range.low) >> range.open == 0;
            self.borders[&range.field.low].iter().any(within)
        };
        let Some(place) = ranges.iter().position(is_cut) else {
            return Some(vec![Branch::Leaf(self.best(ranges))]);
        };
        let whole = ranges[place];
        let open = whole.open - 1;
        let mut halves = [Vec::new(), Vec::new()];
        for (half, side) in halves.iter_mut().zip(0..) {
            ranges[place] = Range { low: whole.low | side << open, open, ..whole };
            *half = self.grow(ranges)?;
        }
        ranges[place] = whole;
        let [low, high] = halves;
        if low == high {
            return Some(low);
        }
        Some([vec![Branch::Test(whole.field.low + open)], low, high].concat())
    }

    /// The action of the highest sum where fields are the lowest that they can be, the lowest of those that tie.
    fn best(&self, ranges: &[Range]) -> u16 {
        let holds = |place: usize| {
            let (field, value) = self.comparisons[place];
            ranges.iter().any(|range| range.field.low == field.low && value <= range.low)
        };
        let sum = |fit: &Fit| {
            let weights = fit.weights.iter().filter(|(place, _)| holds(*place));
            fit.constant + weights.map(|(_, weight)| weight).sum::<i128>()
        };
        let sums = self.fits.iter().map(sum).enumerate();
        sums.max_by_key(|(action, sum)| (*sum, core::cmp::Reverse(*action)))
            .map_or(0, |(action, _)| action as u16)
    }
}

/// The code of the action that a tree in preorder comes to, read from its end: a test finds both of its sides done.
fn build_tree(builder: &mut Builder, row: &[Signal], branches: &[Branch], code_bits: usize) -> Vec<Signal> {
    let mut done: Vec<Vec<Signal>> = Vec::new();
    for branch in branches.iter().rev() {
        let code = match branch {
            Branch::Leaf(action) => {
                (0..code_bits).map(|bit| Signal::constant(action >> bit & 1 == 1)).collect()
            }
            Branch::Test(bit) => {
                let (clear, set) = (done.pop().unwrap_or_default(), done.pop().unwrap_or_default());
                let sides = clear.iter().zip(&set);
                sides.map(|(clear, set)| builder.mux(row[usize::from(*bit)], *set, *clear)).collect()
            }
        };
        done.push(code);
    }
    done.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experience::{Episode, Step};
    use crate::policy::Player;
    use bem_base::environment::Bits;
    use bem_base::prng::Prng;

    const WIDTHS: [u16; 4] = [5, 5, 2, 1];

    fn shape() -> Shape {
        let mut low = 0;
        let mut field = |width: &u16| {
            let field = Field { low, width: *width };
            low += width;
            field
        };
        Shape {
            fields: WIDTHS.iter().map(&mut field).collect(),
            observation_bits: 13,
            actions: 3,
            horizon: 1,
            reward_min: 0,
            reward_max: 1_000,
            return_min: 0,
            return_max: 1_000,
        }
    }

    /// Thousandths with which an action pays: thresholds that lie across the bits of two numbers, and a word of four.
    fn chance(word: u64, action: u16) -> u64 {
        let (age, hour, device, known) = (word & 31, word >> 5 & 31, word >> 10 & 3, word >> 12 & 1);
        match action {
            0 => 200 + if age < 7 { 300 } else { 0 } + if device == 1 { 100 } else { 0 },
            1 => 200 + if 19 <= age { 250 } else { 0 } + 100 * known,
            _ => 250 + if (13..22).contains(&hour) { 250 } else { 0 },
        }
    }

    /// Learns from uniform play, and how much of what can be earned is earned; `pay` draws.
    fn share(steps: u64, pay: impl Fn(u64, u16, u64) -> bool) -> Option<i64> {
        let (shape, mut prng) = (shape(), Prng::stream(9, "levels"));
        let mut episode = |serial| {
            let (word, action, draw) = (prng.below(1 << 13), prng.below(3) as u16, prng.below(1_000));
            let (reward, observation) = (1_000 * i32::from(pay(word, action, draw)), Bits([word, 0, 0, 0]));
            let (uniform, propensity) = (true, 21_845);
            let step = Step { observation, action, reward, done: true, bad: false, uniform, propensity };
            Episode { serial, steps: vec![step] }
        };
        let episodes: Vec<Episode> = (0..steps).map(&mut episode).collect();
        let view = View::new(&shape, &episodes.iter().collect::<Vec<_>>(), None)?;
        let (Stated { policy, .. }, _, _) = fit(&shape, &view, &mut Work::new(1 << 30))?;
        let mut player = Player::new(&policy);
        let (mut earned, mut most) = (0, 0);
        for word in 0..1 << 13 {
            earned += chance(word, player.act(&Bits([word, 0, 0, 0]))) as i64;
            most += (0..3).map(|action| chance(word, action)).max().unwrap_or(0) as i64;
        }
        Some(1_000 * earned / most)
    }

    #[test]
    fn thresholds_across_the_bits_of_a_number_are_found_from_few_draws() {
        let drawn = |word, action, draw| draw < chance(word, action);
        // The best fixed action would earn 782 thousandths.
        assert!(share(8_000, drawn).is_some_and(|share| 960 <= share), "{:?}", share(8_000, drawn));
    }

    #[test]
    fn coins_and_answers_that_are_not_drawn_are_left_to_others() {
        assert_eq!(share(8_000, |_, _, draw| draw < 400), None);
        assert_eq!(share(8_000, |word, action, _| word & 31 < 7 && action == 0), None);
    }
}
