//! How the other players of an imported game play: fixed, and known to the evaluator. Clauses: GLE-9.

use super::{ImportError, without_line};
use std::collections::BTreeMap;

/// Weights of actions by player and information set, both counted from one; what is not listed is uniform.
///
/// Invariant: every list of weights has a positive sum that fits 32 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opponent {
    weights: BTreeMap<usize, BTreeMap<usize, Vec<u32>>>,
}

impl Opponent {
    /// Reads `{"2":{"1":[1,2]}}`: player 2 plays, at information set 1, its second action twice as often as the
    /// first. In a normal-form game every player has the one information set 1.
    pub fn parse(text: &str) -> Result<Opponent, ImportError> {
        let weights: BTreeMap<usize, BTreeMap<usize, Vec<u32>>> =
            serde_json::from_str(text).map_err(|error| {
                ImportError::line(error.line(), format!("opponent policy: {}", without_line(&error)))
            })?;
        for (player, sets) in &weights {
            for (set, list) in sets {
                let sum: u64 = list.iter().map(|weight| u64::from(*weight)).sum();
                if sum == 0 || u64::from(u32::MAX) < sum {
                    return Err(ImportError::content(format!(
                        "opponent policy: the weights of player {player} at information set {set} sum to {sum}; \
                         allowed is 1 to {}",
                        u32::MAX
                    )));
                }
            }
        }
        Ok(Opponent { weights })
    }

    /// The weights of a player's `actions` at an information set.
    pub(super) fn weights(&self, player: usize, set: usize, actions: usize) -> Result<Vec<u32>, ImportError> {
        match self.weights.get(&player).and_then(|sets| sets.get(&set)) {
            None => Ok(vec![1; actions]),
            Some(list) if list.len() == actions => Ok(list.clone()),
            Some(list) => Err(ImportError::content(format!(
                "opponent policy: player {player} has {actions} actions at information set {set}; {} weights are given",
                list.len()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_uniform() {
        let opponent = Opponent::parse(r#"{"2":{"1":[1,2]}}"#).unwrap();
        assert_eq!(opponent.weights(2, 1, 2), Ok(vec![1, 2]));
        assert_eq!(opponent.weights(2, 7, 3), Ok(vec![1, 1, 1]));
        assert!(opponent.weights(2, 1, 3).is_err());
    }

    #[test]
    fn policies_without_weight_are_refused() {
        for text in [r#"{"2":{"1":[0,0]}}"#, r#"{"2":[1]}"#, r#"{"2":{"1":[-1]}}"#, "", "[]"] {
            assert!(Opponent::parse(text).is_err(), "{text}");
        }
    }
}
