//! From trivial to hard: the rungs of every domain, the scale of its difficulty, and its bands.
//!
//! A domain is a family of the catalog. Its candidates are settings that cover its range; they are put in order of
//! their estimated difficulty, and the rungs of a ladder with any number of stages are the candidates nearest to
//! equal steps, so that difficulty over stages is close to a line. The ladder that is climbed unless somebody asks for another
//! number of stages has the rungs of [`crate::chosen`], whose measured steps lie on a line. Clauses: GLE-2, GLE-5.

use crate::candidates::{settings_of, tried_of};
use crate::chosen::chosen;
use crate::difficulty::{estimate, labels, needs};
use crate::fit::{Line, line};
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_games::catalog;
use bem_games::compose::{NoPrograms, TaskTree};

/// Bands of one domain, unless a configuration says otherwise.
pub const BANDS: usize = 8;
/// Bands of one domain at most.
pub const BANDS_MAX: usize = 64;
/// How much of the variance of difficulty a line over the stages explains, at least.
pub const STRAIGHT: Fixed = Fixed::from_ratio(98, 100);
/// Stages of the ladder whose rungs were chosen by measured steps.
pub const MEASURED_STAGES: usize = 5;
/// Rungs that a choice by measured steps is made among, where a family has no list of its own for it.
pub const TRIED_STAGES: usize = 14;
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
    /// Labels of right or wrong that it takes at least.
    pub labels: Fixed,
    /// Steps of an episode at most.
    pub horizon: u32,
}

/// The ladder of one domain. Invariant: at least one candidate; candidates and what was tried are in order of difficulty.
#[derive(Clone, Debug)]
pub struct Ladder {
    candidates: Vec<Rung>,
    /// Settings that a choice by measured steps is made among; none where the candidates serve for that as well.
    tried: Vec<Rung>,
    /// Where bands begin, as rising shares of the range of difficulty.
    thresholds: Vec<Fixed>,
}

impl Ladder {
    /// The ladder of this domain.
    pub fn new(domain: Domain) -> Ladder {
        let candidates = in_order(&settings_of(domain.name()));
        assert!(!candidates.is_empty(), "{} cannot be played as it comes", domain.name());
        let tried = in_order(&tried_of(domain.name()));
        Ladder { candidates, tried, thresholds: equal_bands(BANDS) }
    }

    /// The same ladder with other bands, which begin at these rising shares of its range. At most [`BANDS_MAX`] count.
    #[must_use]
    pub fn with_bands(mut self, thresholds: &[Fixed]) -> Ladder {
        self.thresholds = thresholds.iter().copied().take(BANDS_MAX).collect();
        self
    }

    /// How many bands it has, at least one.
    pub fn bands(&self) -> usize {
        self.thresholds.len().max(1)
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
        let above = i128::from(difficulty.minus(low).max(Fixed::ZERO).to_raw()) << FRACTION_BITS;
        let range = i128::from(high.minus(low).to_raw());
        let begun = |share: &&Fixed| i128::from(share.to_raw()) * range <= above;
        self.thresholds.iter().take_while(begun).count().saturating_sub(1) as u8
    }

    /// The width of one band, were all equally wide.
    pub fn band_width(&self) -> Fixed {
        let (low, high) = self.range();
        high.minus(low).div_count_floor(self.bands() as u64)
    }

    /// The rungs of a ladder with up to this many stages, from two to [`STAGES_MAX`]: those nearest to equal steps of
    /// difficulty, each once, from the easiest to the hardest. A family with few settings gets as many stages as
    /// can be had close to a line. With [`MEASURED_STAGES`] they are those that were chosen by measured steps, where there are.
    pub fn rungs(&self, stages: usize) -> Vec<&Rung> {
        assert!((2..=STAGES_MAX).contains(&stages));
        let measured = self.measured_rungs();
        if stages == MEASURED_STAGES && 2 <= measured.len() {
            return measured;
        }
        let ladders = (2..=stages).rev().map(|stages| self.nearest_rungs(stages));
        let mut straight = ladders.filter(|rungs| 2 <= rungs.len() && STRAIGHT <= fit_of(rungs).r_squared);
        straight.next().unwrap_or_else(|| self.candidates.iter().take(1).collect())
    }

    /// The settings that a choice by measured steps is made among, from the easiest to the hardest by the estimate: those that were
    /// tried for it alone, and where there are none the rungs of a ladder with up to this many stages.
    pub fn tried(&self, stages: usize) -> Vec<&Rung> {
        if self.tried.is_empty() { self.rungs(stages) } else { self.tried.iter().collect() }
    }

    /// The rungs that were chosen by measured steps, from the easiest to the hardest.
    fn measured_rungs(&self) -> Vec<&Rung> {
        let known = || self.tried.iter().chain(&self.candidates);
        let found = |text: &&str| known().find(|rung| rung.tree.to_string() == **text);
        chosen(self.candidates[0].tree.name()).iter().filter_map(found).collect()
    }

    fn nearest_rungs(&self, stages: usize) -> Vec<&Rung> {
        let (low, high) = self.range();
        let target =
            |stage: usize| low.plus(high.minus(low).mul_int(stage as i64).div_count_floor(stages as u64 - 1));
        let distance = |rung: &Rung, stage: usize| rung.difficulty.to_raw().abs_diff(target(stage).to_raw());
        let nearest = |stage: usize| self.candidates.iter().min_by_key(|rung| distance(rung, stage));
        let mut rungs: Vec<&Rung> = (0..stages).filter_map(nearest).collect();
        rungs.dedup_by_key(|rung| rung.difficulty);
        rungs
    }

    /// The line through the difficulties of a ladder with up to this many stages.
    pub fn fit(&self, stages: usize) -> Line {
        fit_of(&self.rungs(stages))
    }
}

/// Thresholds of this many bands of equal width.
pub fn equal_bands(count: usize) -> Vec<Fixed> {
    (0..count as i64).map(|band| Fixed::from_ratio(band, count as i64)).collect()
}

fn fit_of(rungs: &[&Rung]) -> Line {
    let difficulties: Vec<Fixed> = rungs.iter().map(|rung| rung.difficulty).collect();
    line(&difficulties)
}

/// The rungs with these settings in the order of their difficulty, one of each.
fn in_order(texts: &[String]) -> Vec<Rung> {
    let mut rungs: Vec<Rung> = texts.iter().filter_map(|text| rung(text)).collect();
    rungs.sort_by(|left, right| {
        left.difficulty.cmp(&right.difficulty).then_with(|| left.tree.cmp(&right.tree))
    });
    rungs.dedup_by_key(|rung| rung.difficulty);
    rungs
}

/// The rung with these settings; none if they do not go together.
fn rung(text: &str) -> Option<Rung> {
    let tree = TaskTree::parse(text).expect("candidates are well formed");
    let game = tree.build(1, &NoPrograms).ok()?;
    let needs = needs(&tree).expect("candidates have known parameters");
    let shape = game.shape();
    let (difficulty, labels) = (estimate(shape, needs), labels(shape, needs));
    Some(Rung { difficulty, labels, horizon: shape.horizon, tree })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_domain_has_a_ladder_that_is_close_to_a_line() {
        for domain in Domain::all() {
            let ladder = Ladder::new(domain);
            for (stages, at_least) in [(6, 5), (8, 5), (12, 5), (STAGES_MAX, 5)] {
                let (fit, rungs) = (ladder.fit(stages), ladder.rungs(stages));
                let named = || format!("{} with {stages} stages: {fit:?}, {}", domain.name(), rungs.len());
                assert!(STRAIGHT <= fit.r_squared && Fixed::ZERO < fit.slope, "{}", named());
                assert!(at_least <= rungs.len() && rungs.len() <= stages, "{}", named());
                assert!(rungs.is_sorted_by(|low, high| low.difficulty < high.difficulty), "{}", named());
                // Straight, and over the whole range.
                assert_eq!((rungs[0].difficulty, rungs[rungs.len() - 1].difficulty), ladder.range());
            }
        }
    }

    #[test]
    fn the_rungs_that_were_chosen_by_measured_steps_were_tried_and_are_estimated_in_the_same_order() {
        for domain in Domain::all() {
            let (ladder, chosen) = (Ladder::new(domain), chosen(domain.name()));
            let tried = tried_of(domain.name()).iter().filter_map(|text| rung(text)).count();
            assert_eq!(tried, ladder.tried.len(), "{}: refused, or as hard as another", domain.name());
            let rungs = ladder.rungs(MEASURED_STAGES);
            if !chosen.is_empty() {
                let names: Vec<String> = rungs.iter().map(|rung| rung.tree.to_string()).collect();
                assert_eq!(names, chosen, "{}", domain.name());
                assert!((4..=MEASURED_STAGES).contains(&rungs.len()), "{}", domain.name());
                assert!(
                    rungs.is_sorted_by(|low, high| low.difficulty < high.difficulty),
                    "{}",
                    domain.name()
                );
            }
        }
    }

    #[test]
    fn a_family_without_a_list_is_swept_one_parameter_at_a_time() {
        let texts = crate::candidates::one_at_a_time("parity");
        assert_eq!(texts.len(), 1 + 2 * 17);
        assert!(texts.contains(&"parity{n=64}".to_string()) && texts.contains(&"parity".to_string()));
        assert!(texts.iter().all(|text| rung(text).is_some()));
    }

    #[test]
    fn bands_may_be_of_any_width_and_number() {
        let ladder = Ladder::new(Domain(0));
        let (low, high) = ladder.range();
        let middle = low.plus(high.minus(low).div_count_floor(2));
        let bands = |ladder: &Ladder| {
            [low, middle.minus(Fixed::ONE), middle.plus(Fixed::ONE), high].map(|at| ladder.band(at))
        };
        assert_eq!(bands(&ladder.clone().with_bands(&[Fixed::ZERO, Fixed::HALF])), [0, 0, 1, 1]);
        assert_eq!(bands(&ladder.clone().with_bands(&[Fixed::ZERO])), [0; 4]);
        let late = ladder.with_bands(&[Fixed::HALF, Fixed::ONE]);
        assert_eq!((bands(&late), late.bands()), ([0, 0, 0, 1], 2));
    }

    #[test]
    fn bands_cover_the_range_and_never_fall() {
        for domain in Domain::all() {
            let ladder = Ladder::new(domain);
            let bands: Vec<u8> = ladder.rungs(32).iter().map(|rung| ladder.band(rung.difficulty)).collect();
            let ends = (bands[0], bands[bands.len() - 1]);
            assert!(bands.is_sorted() && ends == (0, BANDS as u8 - 1), "{}: {bands:?}", domain.name());
        }
    }
}
