//! How hard a task looks before anyone has played it.
//!
//! The estimate is the logarithm of exact counts: the entries of a table that maps everything a policy may need to
//! know (observation bits and remembered bits) to an action, the steps of an episode, and how many plays it takes to
//! tell good from bad where rewards are drawn. Each part can be counted for any game, so that compositions and
//! imported games are estimated like families. Clauses: GLE-2, GLE-4, GLE-5.

use bem_base::environment::Shape;
use bem_base::fixed::{Fixed, log2_count_floor};
use bem_games::catalog;
use bem_games::compose::{NodeKind, TaskTree, operator};
use bem_games::game::{GameError, Settings};

/// What a policy needs besides the present observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bits to be remembered at one time.
    pub memory: Fixed,
    /// Logarithm of the plays that chance makes necessary.
    pub chance: Fixed,
}

/// The difficulty of a game with this shape and these needs.
#[doc(alias = "d_est")]
pub fn estimate(shape: &Shape, needs: Needs) -> Fixed {
    // A table entry names one action: log2(1 + log2(actions)) on the scale of logarithms.
    let action_bits = log2(u64::from(shape.actions));
    let entry = Fixed::ONE.plus(action_bits).to_raw() as u64;
    Fixed::from_int(i32::from(shape.observation_bits))
        .plus(needs.memory)
        .plus(log2_count_floor(entry).minus(Fixed::from_int(32)))
        .plus(log2(u64::from(shape.horizon)))
        .plus(needs.chance)
}

fn log2(count: u64) -> Fixed {
    log2_count_floor(count.max(1))
}

/// `log2(numerator / denominator)` for a fraction above one.
fn log2_ratio(numerator: i64, denominator: i64) -> Fixed {
    log2(numerator.max(1) as u64).minus(log2(denominator.max(1) as u64)).max(Fixed::ZERO)
}

/// What a composition needs, in terms of its parts.
pub fn needs(tree: &TaskTree) -> Result<Needs, GameError> {
    let parts: Result<Vec<Needs>, GameError> = tree.parts().iter().map(needs).collect();
    let parts = parts?;
    let memories = || parts.iter().map(|part| part.memory);
    let chance = parts.iter().map(|part| part.chance).fold(Fixed::ZERO, Fixed::max);
    let together = memories().fold(Fixed::ZERO, Fixed::plus);
    let one_at_a_time = memories().fold(Fixed::ZERO, Fixed::max);
    let settings = |name: &str| -> Result<i64, GameError> {
        let parameters = operator(tree.name()).map_or(&[][..], |operator| operator.parameters());
        Ok(Settings::parse(parameters, tree.settings())?.number(name))
    };
    Ok(match tree.kind() {
        NodeKind::LeafBase => family_needs(tree.name(), tree)?,
        NodeKind::LeafIsa => Needs::default(),
        // Both parts are under way at the same time, or every level waits for the next.
        NodeKind::Par | NodeKind::Interleave => Needs { memory: together, chance },
        NodeKind::Nest => Needs { memory: together.mul_int(settings("depth")?), chance },
        NodeKind::Mask => {
            Needs { memory: together, chance: chance.plus(log2_ratio(100, 100 - settings("percent")?)) }
        }
        NodeKind::Seq | NodeKind::Branch | NodeKind::Repeat | NodeKind::Loop => {
            Needs { memory: one_at_a_time, chance }
        }
    })
}

/// What a family needs, by its parameters.
fn family_needs(name: &str, tree: &TaskTree) -> Result<Needs, GameError> {
    let family = catalog::family(name)?;
    let settings = catalog::settings(family, tree.settings())?;
    let number = |name: &str| settings.number(name);
    let bits = |count: i64| log2(count.max(1) as u64);
    let none = Fixed::ZERO;
    let (memory, chance) = match name {
        "parity_stream" => (Fixed::ONE, none),
        "dyck" if number("types") == 1 => (bits(number("depth") + 1), none),
        "dyck" => (Fixed::from_int(number("depth") as i32 + 1), none),
        "stack_machine" => {
            (values(number("depth"), number("value_bits")).plus(bits(number("depth") + 1)), none)
        }
        "key_value" => (bits(number("values")).mul_int(number("keys")), none),
        "associative_recall" => (bits(number("tokens")).mul_int(2 * number("pairs")), none),
        "bandit" | "nonstationary_bandit" => {
            (none, bits(number("arms")).plus(log2_ratio(100, number("gap")).mul_int(2)))
        }
        "contextual_bandit" => (none, bits(number("arms"))),
        "matrix_game" => match settings.choice("opponent") {
            0 => (none, none),
            1 => (none, Fixed::from_int(2)),
            _ => (Fixed::ONE, none),
        },
        "signaling" => {
            let remembered = if settings.choice("role") == 2 { bits(number("states")) } else { none };
            (remembered, log2_ratio(100, 100 - number("noise")))
        }
        "auction" => (none, bits(1 + number("opponents"))),
        "safety_grid" => (none, bits(1 + number("bad")).div_count_floor(2)),
        "add" | "subtract" if settings.choice("form") == 0 => (Fixed::ONE, none),
        "next_token" => (
            bits(number("vocab")).mul_int(number("order") - 1),
            log2_ratio(50, number("peak") - 50).mul_int(2),
        ),
        "transducer" => (bits(number("states")), none),
        "copy" | "reverse" | "permute" => {
            (values(number("length"), number("value_bits")).plus(bits(number("length"))), none)
        }
        // Every band of the grid adds a rule that must be kept in mind.
        "rulegrid" => (Fixed::from_int(number("band") as i32), none),
        _ => (none, none),
    };
    let reward_noise =
        if name == "signaling" { none } else { log2_ratio(100, (100 - number("noise")).max(1)) };
    Ok(Needs { memory, chance: chance.plus(reward_noise.mul_int(2)) })
}

fn values(count: i64, bits: i64) -> Fixed {
    Fixed::from_int((count * bits) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_games::compose::NoPrograms;

    fn difficulty(text: &str) -> Fixed {
        let tree = TaskTree::parse(text).unwrap();
        estimate(tree.build(1, &NoPrograms).unwrap().shape(), needs(&tree).unwrap())
    }

    #[test]
    fn parity_grows_by_one_with_every_bit() {
        assert_eq!(difficulty("parity{n=9}").minus(difficulty("parity{n=8}")), Fixed::ONE);
        // Eight bits and one bit of answer.
        assert_eq!(difficulty("parity{n=8}"), Fixed::from_int(9));
    }

    #[test]
    fn every_operator_makes_a_task_harder() {
        let alone = difficulty("copy{length=4}");
        for text in [
            "seq(copy{length=4},compare)",
            "par(copy{length=4},compare)",
            "interleave(copy{length=4},compare)",
            "branch(copy{length=4},compare)",
            "nest{depth=2}(copy{length=4})",
            "repeat{times=2}(copy{length=4})",
            "loop{rounds=2}(copy{length=4})",
            "mask(copy{length=4})",
        ] {
            assert!(alone < difficulty(text), "{text}");
        }
    }
}
