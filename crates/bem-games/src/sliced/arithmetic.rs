//! Small numbers in planes, lowest bit first: count, compare, choose. Must not know any game.

use bem_base::lanes::LaneWord;

/// The number in one lane.
pub fn read(number: &[LaneWord], lane: usize) -> u64 {
    number.iter().enumerate().fold(0, |value, (bit, plane)| value | u64::from(plane.get(lane)) << bit)
}

/// Adds one in the lanes of `mask`; an overflow is lost.
#[inline]
pub fn increment(number: &mut [LaneWord], mask: LaneWord) {
    let mut carry = mask;
    for plane in number {
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

/// Subtracts one in the lanes of `mask`, where the number must not be zero.
#[inline]
pub fn decrement(number: &mut [LaneWord], mask: LaneWord) {
    let mut borrow = mask;
    for plane in number {
        (*plane, borrow) = (*plane ^ borrow, borrow & !*plane);
    }
}

/// Sets the number in the lanes of `mask`; planes that `new` does not have are zero.
#[inline]
pub fn assign(number: &mut [LaneWord], new: &[LaneWord], mask: LaneWord) {
    for (bit, plane) in number.iter_mut().enumerate() {
        let value = new.get(bit).copied().unwrap_or(LaneWord::ZERO);
        *plane = plane.replace(value, mask);
    }
}

/// Whether the number is zero.
#[inline]
pub fn is_zero(number: &[LaneWord]) -> LaneWord {
    !number.iter().fold(LaneWord::ZERO, |any, plane| any | *plane)
}

/// Whether the number is this constant.
#[inline]
pub fn is_equal(number: &[LaneWord], constant: u64) -> LaneWord {
    if 64 - constant.leading_zeros() as usize > number.len() {
        return LaneWord::ZERO;
    }
    number.iter().enumerate().fold(LaneWord::ONES, |equal, (bit, plane)| {
        equal & if constant >> bit & 1 == 1 { *plane } else { !*plane }
    })
}

/// Whether the number is below this constant.
#[inline]
pub fn is_below(number: &[LaneWord], constant: u64) -> LaneWord {
    if constant >> number.len() != 0 {
        return LaneWord::ONES;
    }
    let mut below = LaneWord::ZERO;
    for (bit, plane) in number.iter().enumerate() {
        below = if constant >> bit & 1 == 1 { below | !*plane } else { below & !*plane };
    }
    below
}

/// Whether two numbers are equal; the shorter one has zeros above.
#[inline]
pub fn are_equal(first: &[LaneWord], second: &[LaneWord]) -> LaneWord {
    pairs(first, second).fold(LaneWord::ONES, |equal, (one, other)| equal & !(one ^ other))
}

/// Whether the first number is below the second; the shorter one has zeros above.
#[inline]
pub fn is_less(first: &[LaneWord], second: &[LaneWord]) -> LaneWord {
    pairs(first, second).fold(LaneWord::ZERO, |less, (one, other)| (one ^ other).select(other, less))
}

/// The sum, in as many planes as `sum` has.
#[inline]
pub fn add(first: &[LaneWord], second: &[LaneWord], sum: &mut [LaneWord]) {
    let mut carry = LaneWord::ZERO;
    let zero = LaneWord::ZERO;
    for (bit, plane) in sum.iter_mut().enumerate() {
        let (one, other) = (*first.get(bit).unwrap_or(&zero), *second.get(bit).unwrap_or(&zero));
        let half = one ^ other;
        *plane = half ^ carry;
        carry = one & other | half & carry;
    }
}

#[inline]
fn pairs<'a>(
    first: &'a [LaneWord],
    second: &'a [LaneWord],
) -> impl Iterator<Item = (LaneWord, LaneWord)> + 'a {
    let at = |number: &'a [LaneWord], bit: usize| number.get(bit).copied().unwrap_or(LaneWord::ZERO);
    (0..first.len().max(second.len())).map(move |bit| (at(first, bit), at(second, bit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lane `l` holds `l * factor`, cut to the planes there are.
    fn ramp<const PLANES: usize>(factor: u64) -> [LaneWord; PLANES] {
        let mut number = [LaneWord::ZERO; PLANES];
        for lane in 0..256 {
            for (bit, plane) in number.iter_mut().enumerate() {
                plane.set(lane, (lane as u64).wrapping_mul(factor) >> bit & 1 == 1);
            }
        }
        number
    }

    #[test]
    fn every_operation_agrees_with_numbers_in_every_lane() {
        let (first, second) = (ramp::<8>(1), ramp::<6>(37));
        let mut sum = [LaneWord::ZERO; 9];
        add(&first, &second, &mut sum);
        let (mut up, mut down) = (first, first);
        let odd = first[0];
        increment(&mut up, odd);
        decrement(&mut down, odd);
        for lane in 0..256usize {
            let (one, other) = (read(&first, lane), read(&second, lane));
            assert_eq!(read(&sum, lane), one + other);
            assert_eq!(read(&up, lane), (one + one % 2) & 0xFF);
            assert_eq!(read(&down, lane), one - one % 2);
            assert_eq!(is_zero(&second).get(lane), other == 0);
            assert_eq!(are_equal(&first, &second).get(lane), one == other);
            assert_eq!(is_less(&first, &second).get(lane), one < other);
            assert_eq!(is_less(&second, &first).get(lane), other < one);
            for constant in [0, 1, 31, 63, 64, 200, 256, 300] {
                assert_eq!(is_below(&second, constant).get(lane), other < constant, "{other} {constant}");
                assert_eq!(is_equal(&second, constant).get(lane), other == constant, "{other} {constant}");
            }
        }
    }

    #[test]
    fn assignment_clears_planes_that_are_not_given() {
        let mut number = [LaneWord::ONES; 3];
        assign(&mut number, &[LaneWord::ZERO, LaneWord::ONES], LaneWord::single(5));
        assert_eq!((read(&number, 5), read(&number, 6)), (2, 7));
    }
}
