//! How far a mean of logged losses may be from the truth.
//!
//! Must not know what the losses are of. Clause: SCC-13.

use bem_base::fixed::Fixed;

/// How far a mean of this many losses may be from the truth, but for one case in `odds`.
///
/// Hoeffding's bound: losses lie between zero and one.
pub fn doubt(visits: u32, odds: u128) -> Fixed {
    let odds = u64::try_from(odds).unwrap_or(u64::MAX);
    let surprise = Fixed::ln_count_floor(odds.max(2)).plus(Fixed::from_raw(2));
    surprise.div_count_floor(2 * u64::from(visits.max(1))).sqrt_floor().plus(Fixed::from_raw(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_times_the_visits_halve_the_doubt_and_smaller_chances_raise_it() {
        let (few, many) = (doubt(100, 200), doubt(400, 200));
        let twice = many.plus(many);
        assert!(many < few && few.minus(twice).max(twice.minus(few)) < Fixed::from_ratio(1, 10_000));
        assert!(doubt(100, 200) < doubt(100, 20_000) && doubt(100, 20_000) < doubt(100, u128::MAX));
    }
}
