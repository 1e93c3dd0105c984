//! Thresholds for numbers: at quantiles where data is there, at round places where only the bounds are known.
//!
//! Clauses: GLE-9.

use crate::Decimal;

/// Thresholds of one number.
pub const THRESHOLDS_MAX: usize = 255;

/// How often one is halved for a step between thresholds, at most.
const HALVINGS_MAX: u32 = 16;

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
