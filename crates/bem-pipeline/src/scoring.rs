//! What experts earn in a setting: as they are, and under other names where that is not as good as the best.
//!
//! Every expert is measured once, in the same episodes as all others there. Must not know which of them stay.
//! Clauses: PIPE-3; decisions D-278, D-333.

use crate::expert::Expert;
use crate::renaming::{Renaming, guesses, watch};
use bem_base::environment::EnvironmentError;
use bem_base::fixed::Fixed;
use bem_engine::agent::Agent;
use bem_engine::evaluate::Judge;
use bem_games::game::Game;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// An expert is as good as another in a setting where it earns at least this share of the other's score. What is asked of it on
/// seeds that nobody has seen is 0.99: half of what may be lost is left to the error of measuring.
pub(crate) const AS_GOOD: Fixed = Fixed::from_ratio(995, 1_000);

/// What an expert earns in a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpertScore {
    pub(crate) score: Fixed,
    /// The names under which it does; its own where these serve.
    pub(crate) renaming: Option<Renaming>,
}

/// The scores of all experts in one setting, none where one cannot be built for it.
pub(crate) type ExpertScores = BTreeMap<u32, Option<ExpertScore>>;

/// Where experts are measured.
pub(crate) struct ScoringPlace<'g> {
    pub(crate) game: &'g dyn Game,
    pub(crate) seed: u64,
    /// The highest score that is known there.
    pub(crate) best: Fixed,
}

impl ScoringPlace<'_> {
    /// Measures the experts that have not been measured here: as they are, and where that is not as good as the best, under the
    /// names that are guessed from what acts here.
    pub(crate) fn measure(
        &self,
        experts: &BTreeMap<u32, Expert>,
        scores: &mut ExpertScores,
        acting: Option<&Agent>,
    ) -> Result<(), EnvironmentError> {
        let new: Vec<u32> = experts.keys().filter(|number| !scores.contains_key(number)).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut judge = Judge::new(self.game);
        let mut score = |agent: &Agent| -> Result<Fixed, EnvironmentError> {
            let mean = judge.evaluate(agent, self.seed)?.mean;
            Ok(judge.yardstick().score(mean))
        };
        let shape = self.game.shape();
        for number in &new {
            let found = match experts[number].at(shape, None) {
                Some(agent) => Some(ExpertScore { score: score(&agent)?, renaming: None }),
                None => None,
            };
            scores.insert(*number, found);
        }
        let highest = scores.values().flatten().map(|found| found.score).max();
        let least = AS_GOOD.mul_floor(highest.unwrap_or(self.best).max(self.best));
        let poor = |number: &&u32| scores[*number].as_ref().is_none_or(|found| found.score < least);
        let poor: Vec<u32> = new.iter().filter(poor).copied().collect();
        let mut watched = None;
        for number in poor {
            let expert = &experts[&number];
            let Some(own) = expert.own_order(shape) else { continue };
            let Some(agent) = expert.at(&own, None) else { continue };
            if watched.is_none() {
                watched = Some(match acting {
                    Some(acting) => watch(self.game, acting, self.seed)?,
                    None => None,
                });
            }
            let watched = watched.as_ref().and_then(Option::as_deref);
            for renaming in guesses(&agent, &own.fields, shape, watched) {
                let Some(renamed) = renaming.apply(&agent, &own.fields, shape) else { continue };
                let found = ExpertScore { score: score(&renamed)?, renaming: Some(renaming) };
                let before = scores[&number].as_ref().map(|found| found.score);
                // Names that serve nobody are not kept, but where nothing is known to serve.
                let is_worth_it = least <= found.score || acting.is_none();
                if is_worth_it && before.is_none_or(|before| before < found.score) {
                    scores.insert(number, Some(found));
                }
            }
        }
        Ok(())
    }
}

/// The expert of these that earns most, under its own names and with the lowest number where several do.
pub(crate) fn best_of<'n>(
    scores: &ExpertScores,
    among: impl Iterator<Item = &'n u32>,
) -> Option<(u32, &ExpertScore)> {
    let found = among.filter_map(|number| Some((*number, scores.get(number)?.as_ref()?)));
    found.max_by_key(|(number, found)| (found.score, found.renaming.is_none(), Reverse(*number)))
}
