//! From trivial to hard: the rungs of every domain, the scale of its difficulty, and its bands.
//!
//! A domain is a family of the catalog. Its candidates are settings that cover its range; they are put in order of
//! their estimated difficulty, and the rungs of a ladder with any number of stages are the candidates nearest to
//! equal steps, so that difficulty over stages is close to a line. Clauses: GLE-2, GLE-5.

use crate::difficulty::{estimate, needs};
use crate::fit::{Line, line};
use bem_base::fixed::Fixed;
use bem_games::catalog;
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::Range;

/// Bands of one domain.
pub const BANDS: usize = 8;
/// Stages of a ladder at most.
pub const STAGES_MAX: usize = 256;

/// A domain: the index of a family in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Domain(pub u8);

impl Domain {
    /// All domains, in the order of the catalog.
    pub fn all() -> impl Iterator<Item = Domain> {
        (0..catalog::families().len() as u8).map(Domain)
    }

    /// The family's name.
    pub fn name(self) -> &'static str {
        catalog::families()[usize::from(self.0)].name()
    }

    /// The domain with this name.
    pub fn from_name(name: &str) -> Option<Domain> {
        Domain::all().find(|domain| domain.name() == name)
    }
}

/// One setting of a family with its estimated difficulty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The task: a leaf.
    pub tree: TaskTree,
    /// Its estimate.
    pub difficulty: Fixed,
    /// Bits that a table of the policy's choices takes, as a logarithm: the exact count behind the estimate.
    pub policy_bits: Fixed,
    /// Steps of an episode at most.
    pub horizon: u32,
}

/// The ladder of one domain. Invariant: at least one candidate; candidates are in order of difficulty.
#[derive(Clone, Debug)]
pub struct Ladder {
    candidates: Vec<Rung>,
}

impl Ladder {
    /// The ladder of this domain.
    pub fn new(domain: Domain) -> Ladder {
        let mut candidates: Vec<Rung> =
            settings_of(domain.name()).iter().filter_map(|text| rung(text)).collect();
        candidates.sort_by(|left, right| {
            left.difficulty.cmp(&right.difficulty).then_with(|| left.tree.cmp(&right.tree))
        });
        candidates.dedup_by_key(|rung| rung.difficulty);
        assert!(!candidates.is_empty(), "{} cannot be played as it comes", domain.name());
        Ladder { candidates }
    }

    /// The difficulty of the easiest and the hardest candidate.
    pub fn range(&self) -> (Fixed, Fixed) {
        (self.candidates[0].difficulty, self.candidates[self.candidates.len() - 1].difficulty)
    }

    /// The band of a task with this difficulty; what lies outside the range is in the first or the last.
    pub fn band(&self, difficulty: Fixed) -> u8 {
        let (low, high) = self.range();
        if low == high {
            return 0;
        }
        let above = difficulty.minus(low).max(Fixed::ZERO).mul_int(BANDS as i64).div_floor(high.minus(low));
        ((above.to_raw() >> 32) as usize).min(BANDS - 1) as u8
    }

    /// The width of one band.
    pub fn band_width(&self) -> Fixed {
        let (low, high) = self.range();
        high.minus(low).div_count_floor(BANDS as u64)
    }

    /// The rungs of a ladder with this many stages, from two to [`STAGES_MAX`]; difficulty never falls.
    pub fn rungs(&self, stages: usize) -> Vec<&Rung> {
        assert!((2..=STAGES_MAX).contains(&stages));
        let (low, high) = self.range();
        let target =
            |stage: usize| low.plus(high.minus(low).mul_int(stage as i64).div_count_floor(stages as u64 - 1));
        let distance = |rung: &Rung, stage: usize| rung.difficulty.to_raw().abs_diff(target(stage).to_raw());
        let nearest = |stage: usize| self.candidates.iter().min_by_key(|rung| distance(rung, stage));
        (0..stages).filter_map(nearest).collect()
    }

    /// The line through the difficulties of a ladder with this many stages.
    pub fn fit(&self, stages: usize) -> Line {
        let difficulties: Vec<Fixed> = self.rungs(stages).iter().map(|rung| rung.difficulty).collect();
        line(&difficulties)
    }
}

/// The rung with these settings; none if they do not go together.
fn rung(text: &str) -> Option<Rung> {
    let tree = TaskTree::parse(text).expect("candidates are well formed");
    let game = tree.build(1, &NoPrograms).ok()?;
    let needs = needs(&tree).expect("candidates have known parameters");
    let shape = game.shape();
    let difficulty = estimate(shape, needs);
    let policy_bits = Fixed::from_int(i32::from(shape.observation_bits)).plus(needs.memory);
    Some(Rung { difficulty, policy_bits, horizon: shape.horizon, tree })
}

/// Settings that cover a family's range, in any order; combinations that a family refuses are left out later.
fn settings_of(family: &str) -> Vec<String> {
    let one = |name: &str, values: &[i64]| -> Vec<String> {
        values.iter().map(|value| format!("{family}{{{name}={value}}}")).collect()
    };
    let two = |left: &str, lefts: &[i64], right: &str, rights: &[i64]| -> Vec<String> {
        let pair = |a: &i64| {
            let text = |b: &i64| format!("{family}{{{left}={a},{right}={b}}}");
            rights.iter().map(text).collect::<Vec<_>>()
        };
        lefts.iter().flat_map(pair).collect()
    };
    let scaled = |texts: &dyn Fn(i64) -> String, last: i64| -> Vec<String> {
        (1..=last).map(|size| format!("{family}{{{}}}", texts(size))).collect()
    };
    let all = |last: i64| (1..=last).collect::<Vec<_>>();
    const POWERS: [i64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    match family {
        "parity" | "popcount" => one("n", &all(64)),
        "majority" => one("n", &(0..32).map(|half| 2 * half + 1).collect::<Vec<_>>()),
        "parity_stream" => one("n", &all(256)),
        "dyck" => {
            let mut texts =
                scaled(&|size| format!("types=2,depth={size},length={}", (4 * size).min(256)), 32);
            texts.push(format!("{family}{{types=1,depth=1,length=4}}"));
            texts
        }
        "stack_machine" => scaled(&|size| format!("depth={size},horizon={}", 4 * size), 32),
        "key_value" => scaled(&|size| format!("keys={size},values=4,writes={size},distractors={size}"), 32),
        "associative_recall" => scaled(&|size| format!("tokens={},pairs={size}", 2 * size), 16),
        "bandit" => two("arms", &POWERS[1..], "gap", &[60, 40, 30, 20, 15, 10, 7, 5, 3]),
        "contextual_bandit" => {
            two("context_bits", &all(8), "noise_bits", &[0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56])
        }
        "nonstationary_bandit" => two("arms", &POWERS[1..7], "gap", &[60, 40, 30, 20, 15, 10, 7, 5]),
        "matrix_game" => {
            let horizons = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256];
            let each = |opponent: &str| {
                let game = "game=prisoners_dilemma";
                horizons
                    .map(|horizon| format!("{family}{{{game},opponent={opponent},horizon={horizon}}}"))
                    .to_vec()
            };
            ["mixed", "tit_for_tat"].iter().flat_map(|opponent| each(opponent)).collect()
        }
        "signaling" => two("states", &(2..=64).collect::<Vec<_>>(), "noise", &[0, 20, 40, 60]),
        "auction" => two("bits", &all(6), "opponents", &all(7)),
        "small_sat" => two("vars", &all(10), "clauses", &all(64)),
        "safety_grid" => {
            two("size", &(2..=16).collect::<Vec<_>>(), "bad", &[0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48])
        }
        "compare" | "add" | "subtract" => one("bits", &all(63)),
        "sorting" => two("keys", &(3..=7).collect::<Vec<_>>(), "key_bits", &all(5)),
        "distance" => scaled(&|size| format!("n={size},cap={}", size.clamp(1, 7)), 32),
        "next_token" => {
            let each = |order: i64| {
                (2..=16)
                    .map(move |vocab| format!("next_token{{vocab={vocab},order={order}}}"))
                    .collect::<Vec<_>>()
            };
            (1..=3).flat_map(each).collect()
        }
        "transducer" => two("states", &all(64), "inputs", &[2, 4, 8, 16]),
        "copy" | "reverse" | "permute" => two("length", &all(64), "value_bits", &all(2)),
        "rulegrid" => two("band", &[0, 1, 2, 3, 4], "steps", &[1, 2, 4, 8, 16, 32, 64, 128, 200]),
        other => one_at_a_time(other),
    }
}

/// For a family that has no list of its own: every number swept over its range, the rest as it comes.
fn one_at_a_time(family: &str) -> Vec<String> {
    const POINTS: i64 = 16;
    let parameters = catalog::family(family).map_or(&[][..], |family| family.parameters());
    let mut texts = vec![family.to_string()];
    for parameter in parameters {
        if let Range::Number { min, max, .. } = parameter.range {
            let value = |point: i64| min + (max - min) * point / POINTS;
            texts
                .extend((0..=POINTS).map(|point| format!("{family}{{{}={}}}", parameter.name, value(point))));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::spearman;
    use bem_base::fixed::log2_count_floor;

    #[test]
    fn every_domain_has_a_ladder_that_is_close_to_a_line() {
        for domain in Domain::all() {
            let ladder = Ladder::new(domain);
            for stages in [6, 8, 12] {
                let fit = ladder.fit(stages);
                assert!(
                    Fixed::from_ratio(98, 100) <= fit.r_squared && Fixed::ZERO < fit.slope,
                    "{} with {stages} stages: {}",
                    domain.name(),
                    fit.r_squared
                );
            }
        }
    }

    #[test]
    fn the_order_agrees_with_the_count_of_policies_and_the_horizon() {
        for domain in Domain::all() {
            let ladder = Ladder::new(domain);
            let rungs = ladder.rungs(8);
            let difficulties: Vec<Fixed> = rungs.iter().map(|rung| rung.difficulty).collect();
            let steps = |rung: &Rung| log2_count_floor(u64::from(rung.horizon));
            let exact: Vec<Fixed> = rungs.iter().map(|rung| rung.policy_bits.plus(steps(rung))).collect();
            // Bandits differ by chance alone: there the counts stay the same.
            let constant = exact.iter().all(|value| *value == exact[0]);
            let agreement = spearman(&difficulties, &exact);
            assert!(constant || Fixed::from_ratio(9, 10) <= agreement, "{}: {agreement}", domain.name());
        }
    }

    #[test]
    fn a_family_without_a_list_is_swept_one_parameter_at_a_time() {
        let texts = one_at_a_time("parity");
        assert_eq!(texts.len(), 1 + 2 * 17);
        assert!(texts.contains(&"parity{n=64}".to_string()) && texts.contains(&"parity".to_string()));
        assert!(texts.iter().all(|text| rung(text).is_some()));
    }

    #[test]
    fn bands_cover_the_range_and_never_fall() {
        for domain in Domain::all() {
            let ladder = Ladder::new(domain);
            let bands: Vec<u8> = ladder.rungs(32).iter().map(|rung| ladder.band(rung.difficulty)).collect();
            assert!(bands.is_sorted() && bands[0] == 0 && bands[31] == 7, "{}: {bands:?}", domain.name());
        }
    }
}
