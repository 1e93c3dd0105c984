//! All families by name, and the parameters that every family takes. Clauses: GLE-1, GLE-2.

use crate::families;
use crate::game::{Family, Game, GameError, Parameter, Range, Settings};
use crate::wrappers::{self, Scramble};
use bem_base::prng::mix;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every family, in the order of the specification.
pub fn families() -> &'static [&'static dyn Family] {
    &[
        &families::parity::Parity,
        &families::parity_stream::ParityStream,
        &families::majority::Majority,
        &families::popcount::Popcount,
        &families::dyck::Dyck,
        &families::stack_machine::StackMachine,
        &families::key_value::KeyValue,
        &families::associative_recall::AssociativeRecall,
        &families::bandit::Bandit,
        &families::contextual_bandit::ContextualBandit,
        &families::nonstationary_bandit::NonstationaryBandit,
        &families::matrix_game::MatrixGame,
        &families::signaling::Signaling,
        &families::auction::Auction,
        &families::small_sat::SmallSat,
        &families::safety_grid::SafetyGrid,
        &families::compare::Compare,
        &families::add::Add,
        &families::subtract::Subtract,
        &families::sorting::Sorting,
        &families::distance::Distance,
        &families::next_token::NextToken,
        &families::transducer::Transducer,
        &families::copy::Copy,
        &families::reverse::Reverse,
        &families::permute::Permute,
        &families::rulegrid::RuleGrid,
    ]
}

/// The family with this name.
pub fn family(name: &str) -> Result<&'static dyn Family, GameError> {
    families().iter().copied().find(|family| family.name() == name).ok_or_else(|| GameError::UnknownFamily {
        name: name.to_string(),
        known: families().iter().map(|family| family.name()).collect::<Vec<_>>().join(", "),
    })
}

/// What every family takes besides its own.
const COMMON: [Parameter; 2] = [
    Parameter {
        name: "noise",
        about: "Percent of the rewards that are replaced at random.",
        range: Range::Number { min: 0, max: 100, default: 0 },
    },
    Parameter {
        name: "scramble",
        about: "How much of the coding of actions and observations is hidden.",
        range: Range::Choice { words: Scramble::WORDS },
    },
];

/// The family's own parameters, then the common ones. Its own win where a name is the same.
pub fn parameters(family: &dyn Family) -> Vec<Parameter> {
    let own = family.parameters();
    let is_own = |name: &str| own.iter().any(|parameter| parameter.name == name);
    own.iter().chain(COMMON.iter().filter(|common| !is_own(common.name))).copied().collect()
}

/// Checks texts such as `n = 8` against all parameters of the family.
pub fn settings(family: &dyn Family, texts: &BTreeMap<String, String>) -> Result<Settings, GameError> {
    Settings::parse(&parameters(family), texts)
}

/// The game with these settings (of [`settings`]) whose hidden choices come from `instance_seed`.
pub fn build(
    family: &dyn Family,
    settings: &Settings,
    instance_seed: u64,
) -> Result<Arc<dyn Game>, GameError> {
    let game = family.build(settings, instance_seed)?;
    let own_noise = family.parameters().iter().any(|parameter| parameter.name == "noise");
    let noise = if own_noise { 0 } else { settings.number("noise") };
    let noisy = wrappers::with_noise(game, noise as u32)?;
    let level = Scramble::from_index(settings.choice("scramble"));
    Ok(wrappers::scrambled(noisy, level, mix(instance_seed)))
}
