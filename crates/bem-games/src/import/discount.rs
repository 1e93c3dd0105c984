//! Discounting: a world in which what comes a step later is worth less by a part is one that ends with that chance at every step.
//!
//! The expected sum of rewards of the one is the expected discounted sum of the other, for every policy, so that learning,
//! planning and evaluation need to know nothing of it; and because nobody can see how much time is left, counting steps brings
//! nothing. Clauses: GLE-9; decision D-63.

use bem_base::prng::Prng;

/// Nothing is discounted.
pub const DISCOUNT_WHOLE: u32 = 1_000;

/// Of so many equal chances, those with which an episode goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discount {
    /// Chances to go on.
    pub kept: u32,
    /// All chances.
    pub whole: u32,
}

/// The discount of so many thousandths a step, in lowest terms.
pub fn check_discount(thousandths: u32) -> Result<Discount, String> {
    if !(1..=DISCOUNT_WHOLE).contains(&thousandths) {
        return Err(format!(
            "\"discount\" is {thousandths}; allowed is 1 to {DISCOUNT_WHOLE}, in thousandths a step"
        ));
    }
    let (mut low, mut high) = (thousandths, DISCOUNT_WHOLE);
    while low != 0 {
        (low, high) = (high % low, low);
    }
    Ok(Discount { kept: thousandths / high, whole: DISCOUNT_WHOLE / high })
}

impl Discount {
    /// Whether nothing is discounted.
    pub fn is_whole(self) -> bool {
        self.kept == self.whole
    }

    /// Draws whether the episode ends after a step.
    pub fn ends(self, prng: &mut Prng) -> bool {
        !self.is_whole() && u64::from(self.kept) <= prng.below(u64::from(self.whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discount_is_in_lowest_terms_and_ends_as_often_as_it_says() {
        let discount = check_discount(990).unwrap();
        assert_eq!(discount, Discount { kept: 99, whole: 100 });
        let mut prng = Prng::stream(1, "discount");
        let ends = (0..100_000).filter(|_| discount.ends(&mut prng)).count();
        assert!((900..1_100).contains(&ends), "{ends}");
        assert!(!check_discount(1_000).unwrap().ends(&mut prng));
        for wrong in [0, 1_001] {
            assert!(check_discount(wrong).unwrap_err().contains("allowed is 1 to 1000"));
        }
    }
}
