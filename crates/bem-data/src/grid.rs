//! Thresholds for numbers: at quantiles where data is there, at round places where only the bounds are known.
//!
//! Clauses: GLE-9.

use crate::Decimal;

/// Thresholds of one number.
pub const THRESHOLDS_MAX: usize = 255;

/// How often one is halved for a step between thresholds, at most.
const HALVINGS_MAX: u32 = 16;

/// Units in a range that is cut by octaves: whole numbers of fewer are told apart well enough by an even grid.
const WIDE_UNITS: i32 = 10_000;

/// Into how many parts an octave is cut, at most: steps of 3 to 6 parts in a hundred of what a number is.
const OCTAVE_PARTS_MAX: usize = 16;

/// The fewest thresholds that are told by their first, their last and their distance.
const EVEN_MIN: usize = 4;

/// How finely a number is cut in a world of which only the bounds are known: numbers of levels, the finest first.
///
/// In one step every value is learned for itself, and a fine grid costs only where rewards tell its levels apart. Over several
/// steps a planner counts where each level leads to; it looks at a number as finely as what was played can tell (D-293), and many
/// numbers leave room for few levels of each.
pub fn levels(numbers: usize, horizon: u32) -> &'static [usize] {
    match (horizon, numbers) {
        (1, ..=8) => &[256, 64, 32, 16],
        (1, ..=16) => &[64, 32, 16],
        (_, ..=2) => &[256, 64, 32, 16],
        _ => &[64, 16],
    }
}

/// At most `count` thresholds for a number in a world of `horizon` steps of which only the bounds are known.
pub fn places(min: Decimal, max: Decimal, count: usize, horizon: u32) -> Vec<Decimal> {
    match horizon {
        _ if Decimal::from_int(WIDE_UNITS) < max.minus(min) => octaves(min, max, count),
        1 => uniform(min, max, count),
        _ => halved(min, max, count),
    }
}

/// At most `count` thresholds at distances from zero, or from the bound that is nearest to it, that grow with the distance: each
/// octave is cut into equal parts, units next to zero. An even grid over a million has no place below thousands. Decision D-309.
pub fn octaves(min: Decimal, max: Decimal, count: usize) -> Vec<Decimal> {
    let count = count.clamp(1, THRESHOLDS_MAX);
    let zero = Decimal::ZERO.clamp(min, max);
    let mut unit = Decimal::ONE;
    while unit <= max.minus(min) {
        for parts in (2..=OCTAVE_PARTS_MAX).rev() {
            let reach = |far: Decimal| distances(far, unit, parts, count);
            let Some((below, above)) = reach(zero.minus(min)).zip(reach(max.minus(zero))) else { continue };
            let below = below.iter().rev().map(|distance| zero.minus(*distance));
            let above = above.iter().map(|distance| zero.plus(*distance));
            let mut places: Vec<Decimal> = below.chain([zero]).chain(above).collect();
            places.retain(|place| min < *place);
            if (1..=count).contains(&places.len()) {
                return places;
            }
        }
        unit = unit.plus(unit);
    }
    uniform(min, max, count)
}

/// Distances up to `reach`: twice `parts` steps of one unit, then `parts` steps in every octave; nothing where that is too many.
fn distances(reach: Decimal, unit: Decimal, parts: usize, count: usize) -> Option<Vec<Decimal>> {
    let (mut places, mut place, mut step) = (Vec::new(), Decimal::ZERO, unit);
    loop {
        place = place.plus(step);
        if reach < place {
            return Some(places);
        }
        if places.len() == count {
            return None;
        }
        places.push(place);
        if parts < places.len() && places.len().is_multiple_of(parts) {
            step = step.plus(step);
        }
    }
}

/// At most `count` thresholds at round places strictly above `min` and at most `max`, evenly spaced: multiples of the
/// smallest of 1, 2, 2.5 and 5 times a power of ten that gives so few.
pub fn uniform(min: Decimal, max: Decimal, count: usize) -> Vec<Decimal> {
    let count = count.clamp(1, THRESHOLDS_MAX);
    for power in -17..=15 {
        for head in ["1", "2", "2.5", "5"] {
            let Ok(step) = Decimal::parse(&format!("{head}e{power}")) else { continue };
            if let Some(places) = multiples(min, max, step, count) {
                return places;
            }
        }
    }
    vec![Decimal::between(min, max)]
}

/// At most `count` thresholds at ones, halves, quarters and so on, as finely as that goes; at round places where there are more
/// ones than that. Whole numbers differ in the higher bits of their levels only, however fine the grid is.
pub fn halved(min: Decimal, max: Decimal, count: usize) -> Vec<Decimal> {
    let count = count.clamp(1, THRESHOLDS_MAX);
    let parts = (0..=HALVINGS_MAX).rev().filter_map(|halvings| {
        let step = match halvings {
            0 => "1".to_string(),
            _ => format!("0.{:0>1$}", 5u64.pow(halvings), halvings as usize),
        };
        multiples(min, max, Decimal::parse(&step).ok()?, count)
    });
    parts.max_by_key(Vec::len).unwrap_or_else(|| uniform(min, max, count))
}

/// The multiples of a step above `min` and at most `max`, if there are 1 to `count`.
fn multiples(min: Decimal, max: Decimal, step: Decimal, count: usize) -> Option<Vec<Decimal>> {
    let first = min.multiple_above(step);
    let mut places = Vec::new();
    let mut place = first;
    while place <= max {
        if places.len() == count {
            return None;
        }
        places.push(place);
        place = place.plus(step);
    }
    (!places.is_empty()).then_some(places)
}

/// At most `count` thresholds that split the values into groups of about the same size. Values need no order.
pub fn quantiles(values: &[Decimal], count: usize) -> Vec<Decimal> {
    let count = count.clamp(1, THRESHOLDS_MAX);
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let mut different = sorted.clone();
    different.dedup();
    if different.len() < 2 {
        return Vec::new();
    }
    // Few values are told apart one by one.
    if different.len() <= count + 1 {
        return different.windows(2).map(|pair| Decimal::between(pair[0], pair[1])).collect();
    }
    let mut thresholds: Vec<Decimal> = Vec::new();
    for part in 1..=count {
        let value = sorted[part * sorted.len() / (count + 1)];
        let above = different.partition_point(|other| *other < value);
        // The threshold lies below the value at the quantile; the smallest value has nothing below it.
        if 0 < above {
            thresholds.push(Decimal::between(different[above - 1], different[above]));
        }
    }
    thresholds.dedup();
    if thresholds.is_empty() {
        thresholds.push(Decimal::between(different[0], different[1]));
    }
    thresholds
}

/// Thresholds in words, in order: those that are evenly spaced as `5 to 100 by 5`, any other one by itself.
pub fn words(thresholds: &[Decimal]) -> String {
    let mut words = Vec::new();
    let mut rest = thresholds;
    while let [first, ..] = rest {
        let step = rest.get(1).map_or(Decimal::ZERO, |second| second.minus(*first));
        let even = 1 + rest.windows(2).take_while(|pair| pair[1].minus(pair[0]) == step).count();
        let taken = if EVEN_MIN <= even { even } else { 1 };
        words.push(match taken {
            1 => first.to_string(),
            _ => format!("{first} to {} by {step}", rest[taken - 1]),
        });
        rest = &rest[taken..];
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(thresholds: &[Decimal]) -> Vec<String> {
        thresholds.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn uniform_grids_are_round_and_bounded() {
        let number = |text: &str| Decimal::parse(text).unwrap();
        assert_eq!(texts(&uniform(number("0"), number("23"), 7)), ["5", "10", "15", "20"]);
        assert_eq!(
            texts(&uniform(number("15"), number("25"), 15)),
            ["16", "17", "18", "19", "20", "21", "22", "23", "24", "25"]
        );
        assert_eq!(texts(&uniform(number("0"), number("1"), 4)), ["0.25", "0.5", "0.75", "1"]);
        assert_eq!(texts(&uniform(number("-1e15"), number("1e15"), 2)), ["0", "1000000000000000"]);
        assert_eq!(uniform(number("0"), number("1e-18"), 3).len(), 1);
    }

    #[test]
    fn whole_numbers_stay_apart_in_the_higher_bits_of_a_fine_grid() {
        let number = |text: &str| Decimal::parse(text).unwrap();
        let wear = halved(number("0"), number("7"), 255);
        assert_eq!(words(&wear), "0.03125 to 7 by 0.03125");
        let level = |value: i32| wear.iter().filter(|place| **place <= Decimal::from_int(value)).count();
        assert!((0..=7).all(|value| level(value) == 32 * value as usize));
        assert_eq!(words(&halved(number("-40"), number("60"), 255)), "-39.5 to 60 by 0.5");
        assert_eq!(halved(number("0"), number("4000"), 255), uniform(number("0"), number("4000"), 255));
        assert_eq!(halved(number("0"), number("1e-18"), 3).len(), 1);
    }

    #[test]
    fn a_wide_range_is_cut_by_octaves_of_the_distance_from_zero() {
        let number = |text: &str| Decimal::parse(text).unwrap();
        let cut = |min: &str, max: &str, count: usize| octaves(number(min), number(max), count);
        let wide = cut("0", "1000000", 255);
        assert!((200..=255).contains(&wide.len()), "{}", wide.len());
        assert_eq!(words(&wide[..32]), "1 to 30 by 1 32 34");
        // Far from zero two neighbours differ by 3 to 7 parts in a hundred: 137 lies between 136 and 144.
        let far = wide.iter().filter(|place| number("30") <= **place).copied().collect::<Vec<_>>();
        for pair in far.windows(2) {
            let share = pair[1].minus(pair[0]).to_int().unwrap() * 1_000 / pair[0].to_int().unwrap();
            assert!((33..=67).contains(&share), "{} {}", pair[0], pair[1]);
        }
        assert!(wide.contains(&number("136")) && wide.contains(&number("144")));
        // Around zero both signs are cut alike; zero itself tells them apart.
        let both = cut("-100000", "100000", 255);
        assert!(both.iter().all(|place| both.contains(&Decimal::ZERO.minus(*place))), "{both:?}");
        assert!(both.contains(&Decimal::ZERO) && both.windows(2).all(|pair| pair[0] < pair[1]));
        // From the bound that is nearest to zero elsewhere; few places are still spread over all octaves.
        assert_eq!(words(&cut("500", "20500", 15)[..4]), "628 to 1012 by 128");
        let below = cut("-20500", "-500", 15);
        assert!(number("-20500") < below[0] && *below.last().unwrap() == number("-500"), "{below:?}");
        for (min, max) in [("-1e15", "1e15"), ("0", "1e15"), ("-3", "1e15"), ("0", "10000.5")] {
            for count in [1, 3, 15, 63, 255] {
                let places = cut(min, max, count);
                assert!((1..=count).contains(&places.len()), "{min} {max} {count}: {}", places.len());
            }
        }
        // Narrower ranges are cut evenly, as they always were.
        let (zero, narrow) = (number("0"), number("10000"));
        assert_eq!(places(zero, narrow, 255, 1), uniform(zero, narrow, 255));
        assert_eq!(places(zero, narrow, 255, 9), halved(zero, narrow, 255));
        assert_eq!(places(zero, number("1000000"), 255, 9), wide);
    }

    #[test]
    fn an_even_grid_is_told_by_its_ends_and_its_step() {
        let number = |text: &str| Decimal::parse(text).unwrap();
        let grid = uniform(number("0"), number("100"), 255);
        assert_eq!((words(&grid).as_str(), grid.len()), ("0.5 to 100 by 0.5", 200));
        // A threshold of a rule between two of the grid stands alone.
        let mut broken = uniform(number("0"), number("10"), 10);
        broken.push(number("5.25"));
        broken.sort_unstable();
        assert_eq!(words(&broken), "1 to 5 by 1 5.25 6 to 10 by 1");
        assert_eq!(words(&[]), "");
        assert_eq!(words(&["1", "2", "3", "7"].map(number)), "1 2 3 7");
    }

    #[test]
    fn quantile_grids_tell_values_apart_and_split_evenly() {
        let values: Vec<Decimal> = (0..100).map(|value| Decimal::from_int(value * value)).collect();
        let thresholds = quantiles(&values, 3);
        let below = |threshold: &Decimal| values.iter().filter(|value| *value < threshold).count();
        assert_eq!(thresholds.iter().map(below).collect::<Vec<_>>(), [25, 50, 75]);
        let few: Vec<Decimal> = [3, 1, 1, 2, 3].map(Decimal::from_int).to_vec();
        assert_eq!(texts(&quantiles(&few, 9)), ["2", "3"]);
        assert!(quantiles(&few[..1], 3).is_empty());
        // Nearly all values are the smallest: there is still one threshold.
        let mut skewed = vec![Decimal::ZERO; 99];
        skewed.extend((1..20).map(Decimal::from_int));
        assert!(!quantiles(&skewed, 2).is_empty());
    }
}
