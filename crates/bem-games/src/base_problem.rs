//! The record of a family: identifier, class of world, parameters, longest episode, complexity.
//!
//! This is what the teacher's tables hold about a primitive game. Must not know bands or templates. Clause: GLE-2.

use crate::catalog;
use crate::game::{Family, Parameter, Range, Setting, Settings};
use bem_base::environment::Shape;
use bem_base::fixed::{Fixed, log2_count_floor};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_base::lanes::planes_for;

/// One primitive game, with all its parameters free.
#[doc(alias = "B_j")]
pub struct BaseProblem {
    /// Its identifier, of class base_problem.
    pub id: ObjectId,
    /// Which simulator runs it: the family's place in the catalog.
    #[doc(alias = "env_class_id")]
    pub class: u16,
    /// The simulator itself.
    pub family: &'static dyn Family,
    /// Names and ranges; where nothing else is said, each is drawn evenly from its range ([`Settings::draw`]).
    #[doc(alias = "param_schema")]
    pub parameters: Vec<Parameter>,
    /// No episode is longer, whatever the parameters.
    pub horizon_bound: u32,
    /// Of the game with default parameters; see [`complexity`].
    #[doc(alias = "complexity_est")]
    pub complexity: Fixed,
}

/// The records of all families, in the order of the catalog.
pub fn base_problems() -> Vec<BaseProblem> {
    catalog::families().iter().enumerate().map(|(place, family)| record(place as u16, *family)).collect()
}

/// The record of the family with this name, if there is one.
pub fn base_problem(name: &str) -> Option<BaseProblem> {
    let place = catalog::families().iter().position(|family| family.name() == name)?;
    Some(record(place as u16, catalog::families()[place]))
}

/// The base-2 logarithm of the bits it takes to write down one episode: every observation and every action.
pub fn complexity(shape: &Shape) -> Fixed {
    let step_bits = u64::from(shape.observation_bits) + planes_for(usize::from(shape.actions)) as u64;
    log2_count_floor(1 + u64::from(shape.horizon) * step_bits)
}

fn record(class: u16, family: &'static dyn Family) -> BaseProblem {
    let build = |settings: &Settings| catalog::build(family, settings, 0).ok();
    let parameters = catalog::parameters(family);
    let default = build(&Settings::default_of(&parameters)).expect("every family builds with its defaults");
    let longest = corners(&parameters).iter().filter_map(build).map(|game| game.shape().horizon).max();
    BaseProblem {
        id: ObjectId::sharded(ObjectClass::BaseProblem, 0, class),
        class,
        family,
        horizon_bound: longest.unwrap_or(0).max(default.shape().horizon),
        complexity: complexity(default.shape()),
        parameters,
    }
}

/// Settings with every number at its largest, once with each word. Horizons grow with every number, so the longest
/// episode is at one of these, or at one that differs where a family refuses so much at once.
fn corners(parameters: &[Parameter]) -> Vec<Settings> {
    let largest = |parameter: &Parameter| match parameter.range {
        Range::Number { max, .. } => (parameter.name, Setting::Number(max)),
        Range::Choice { .. } => (parameter.name, Setting::Choice(0)),
    };
    let default = Settings::default_of(parameters);
    let all = parameters.iter().fold(default.clone(), |settings, parameter| {
        let (name, value) = largest(parameter);
        settings.with(name, value)
    });
    let mut corners = vec![all.clone()];
    for parameter in parameters {
        match parameter.range {
            Range::Number { .. } => {
                let (name, value) = largest(parameter);
                corners.push(default.clone().with(name, value));
            }
            Range::Choice { words } => {
                for word in 0..words.len() {
                    corners.push(all.clone().with(parameter.name, Setting::Choice(word)));
                    corners.push(default.clone().with(parameter.name, Setting::Choice(word)));
                }
            }
        }
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::limits::EPISODE_STEPS_MAX;
    use bem_base::prng::Prng;

    #[test]
    fn identifiers_are_checked_words_and_all_different() {
        let problems = base_problems();
        for (place, problem) in problems.iter().enumerate() {
            assert_eq!(ObjectId::from_word(problem.id.to_word()), Ok(problem.id));
            assert_eq!(problem.id.class(), ObjectClass::BaseProblem);
            assert_eq!(usize::from(problem.class), place);
        }
        assert_eq!(problems.len(), catalog::families().len());
    }

    #[test]
    fn no_drawn_game_is_longer_than_its_record_says() {
        let mut prng = Prng::stream(1, "drawn");
        for problem in base_problems() {
            assert!(problem.horizon_bound <= EPISODE_STEPS_MAX);
            for _ in 0..60 {
                let settings = Settings::draw(&problem.parameters, &mut prng);
                if let Ok(game) = catalog::build(problem.family, &settings, 1) {
                    let horizon = game.shape().horizon;
                    assert!(horizon <= problem.horizon_bound, "{} {settings:?}", problem.family.name());
                }
            }
        }
    }

    #[test]
    fn complexity_grows_with_the_game() {
        let of = |bits: &str| {
            let family = catalog::family("parity_stream").unwrap();
            let texts = [("n".to_string(), bits.to_string())].into();
            let settings = catalog::settings(family, &texts).unwrap();
            complexity(catalog::build(family, &settings, 1).unwrap().shape())
        };
        assert!(of("2") < of("8") && of("8") < of("64"));
        assert_eq!(base_problem("parity_stream").unwrap().complexity, of("8"));
        assert!(base_problem("chess").is_none());
    }
}
