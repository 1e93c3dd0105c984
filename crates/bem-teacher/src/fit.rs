//! A straight line through points, and agreement of two orders, in whole numbers. Clauses: GLE-5.

use bem_base::fixed::Fixed;

/// Least squares through points `(0, y0), (1, y1), ...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Rise per stage.
    pub slope: Fixed,
    /// Value at stage zero.
    pub intercept: Fixed,
    /// Share of the variance that the line explains; one when all values are equal.
    #[doc(alias = "R^2")]
    pub r_squared: Fixed,
}

/// Fits a line to values at stages 0, 1, 2, ...; at least two values, at most 4,096, each below 2^20.
pub fn line(values: &[Fixed]) -> Line {
    assert!((2..=4_096).contains(&values.len()));
    // Sixteen fractional bits keep every product within 128 bits.
    let y = |index: usize| i128::from(values[index].to_raw() >> 16);
    let count = values.len() as i128;
    let stages = 0..values.len();
    let sum_x: i128 = stages.clone().map(|x| x as i128).sum();
    let sum_xx: i128 = stages.clone().map(|x| (x * x) as i128).sum();
    let sum_y: i128 = stages.clone().map(y).sum();
    let sum_yy: i128 = stages.clone().map(|x| y(x) * y(x)).sum();
    let sum_xy: i128 = stages.map(|x| x as i128 * y(x)).sum();
    let (var_x, var_y) = (count * sum_xx - sum_x * sum_x, count * sum_yy - sum_y * sum_y);
    let covariance = count * sum_xy - sum_x * sum_y;
    let slope = ((covariance << 16) / var_x) as i64;
    let intercept = ((sum_y * var_x - covariance * sum_x) << 16) / (count * var_x);
    let r_squared = if var_y == 0 {
        Fixed::ONE
    } else {
        // covariance^2 / (var_x * var_y), one division at a time.
        let explained = (covariance << 24) / var_x * covariance / var_y;
        Fixed::from_raw((explained << 8) as i64)
    };
    Line { slope: Fixed::from_raw(slope), intercept: Fixed::from_raw(intercept as i64), r_squared }
}

/// Spearman's rank correlation; equal values share the mean of their ranks. Needs two or more pairs.
pub fn spearman(left: &[Fixed], right: &[Fixed]) -> Fixed {
    assert!(left.len() == right.len() && 2 <= left.len());
    let (left, right) = (doubled_ranks(left), doubled_ranks(right));
    let count = left.len() as i128;
    let sum = |values: &[i128]| values.iter().sum::<i128>();
    let dot = |a: &[i128], b: &[i128]| a.iter().zip(b).map(|(a, b)| a * b).sum::<i128>();
    let covariance = count * dot(&left, &right) - sum(&left) * sum(&right);
    let var_left = count * dot(&left, &left) - sum(&left) * sum(&left);
    let var_right = count * dot(&right, &right) - sum(&right) * sum(&right);
    if var_left == 0 || var_right == 0 {
        return if var_left == var_right { Fixed::ONE } else { Fixed::ZERO };
    }
    let root = (var_left * var_right).isqrt();
    Fixed::from_raw(((covariance << 32) / root) as i64)
}

/// Twice the rank of every value, so that shared ranks stay whole.
fn doubled_ranks(values: &[Fixed]) -> Vec<i128> {
    let rank = |value: &Fixed| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        (2 * below + equal + 1) as i128
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[i32]) -> Vec<Fixed> {
        values.iter().map(|value| Fixed::from_int(*value)).collect()
    }

    #[test]
    fn a_straight_line_is_explained_in_full() {
        let fit = line(&numbers(&[5, 8, 11, 14]));
        assert_eq!(
            (fit.slope, fit.intercept, fit.r_squared),
            (Fixed::from_int(3), Fixed::from_int(5), Fixed::ONE)
        );
    }

    #[test]
    fn a_bent_line_is_explained_in_part() {
        // 0, 1, 4, 9: r^2 = 0.9183673...
        let fit = line(&numbers(&[0, 1, 4, 9]));
        assert!(fit.r_squared.to_raw().abs_diff(Fixed::from_ratio(45, 49).to_raw()) < 1 << 12);
    }

    #[test]
    fn orders_agree_disagree_or_share_ranks() {
        assert_eq!(spearman(&numbers(&[1, 2, 3]), &numbers(&[10, 20, 90])), Fixed::ONE);
        assert_eq!(spearman(&numbers(&[1, 2, 3]), &numbers(&[9, 5, 1])), Fixed::ONE.negated());
        assert!(spearman(&numbers(&[1, 2, 3, 4]), &numbers(&[1, 1, 3, 4])) < Fixed::ONE);
    }
}
