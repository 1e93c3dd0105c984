//! Fractions with sixteen binary places, as the protocol's constants are written. Clause: CUR-1.

/// One.
pub const ONE: i64 = 1 << 16;
/// The registered threshold of the gate: 0.40.
pub const THRESHOLD: i64 = 26_214;
/// The one step it may be raised to: 0.45.
pub const THRESHOLD_STEP: i64 = 29_491;
/// Where the running variance starts: 0.50.
pub const VARIANCE_START: i64 = 32_768;
/// Weight of a new error: 0.05.
pub const VARIANCE_RATE: i64 = 3_277;
/// Rate of the rule state: 0.05.
pub const RULE_RATE: i64 = 3_277;
/// What the forced-low arm pins: 0.001.
pub const FORCED_LOW: i64 = 66;
/// What the forced-high arm pins: 0.90.
pub const FORCED_HIGH: i64 = 58_982;
/// A change of the rule state below this is stability: 0.001.
pub const STABLE_DELTA: i64 = 66;
/// A rule state below this norm is not set: 0.01.
pub const RULE_SET_NORM: i64 = 656;
/// The write gate below which nothing closes: 0.5.
pub const GATE_MIN: i64 = 32_768;

/// The moving average of `old` with a share `rate` of `new`, rounded to the nearest.
pub const fn moving_average(old: i64, new: i64, rate: i64) -> i64 {
    ((ONE - rate) * old + rate * new + ONE / 2) >> 16
}

/// `numerator / denominator` as a fraction, at most one; `denominator` must be positive.
pub const fn share(numerator: i64, denominator: i64) -> i64 {
    assert!(0 < denominator);
    let value = ONE * numerator / denominator;
    if ONE < value { ONE } else { value }
}

/// A fraction in thousandths, for reports.
pub const fn to_milli(value: i64) -> i64 {
    (value * 1_000 + ONE / 2) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_the_documented_decimals() {
        let pairs = [
            (THRESHOLD, 400),
            (THRESHOLD_STEP, 450),
            (VARIANCE_START, 500),
            (VARIANCE_RATE, 50),
            (FORCED_LOW, 1),
            (FORCED_HIGH, 900),
            (RULE_SET_NORM, 10),
        ];
        for (value, milli) in pairs {
            assert_eq!(to_milli(value), milli);
        }
    }
}
