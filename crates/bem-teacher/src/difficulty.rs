//! How hard a task looks before anyone has played it: the logarithm of the steps that learning it should take.
//!
//! Everything is counted from structure and parameters. A policy is known once its bits are: those of the choices
//! that an instance hides, and for each bit of an answer one for everything seen or remembered that it may depend
//! on. A label of right or wrong tells at most the entropy of a guess among the actions, labels come as often as the
//! declared rewards allow, and what was found has to be shown on some more of them. Chance multiplies all of it. Each
//! part can be counted for any game, so that compositions and imported games are estimated like families. Must not
//! know what a learner does. Clauses: GLE-2, GLE-4, GLE-5.

use bem_base::environment::Shape;
use bem_base::fixed::{FRACTION_BITS, Fixed, log2_count_floor};
use bem_games::catalog;
use bem_games::compose::{NodeKind, TaskTree, operator};
use bem_games::game::{GameError, Settings};
use bem_games::wrappers::Scramble;

/// Labels that a policy has to be right on, at least, before anyone can say that it is good.
pub const LABELS_TO_SHOW: i32 = 16;

/// What a policy needs besides the present observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Bits to be remembered at one time.
    pub memory: Fixed,
    /// Bits to be found out: the logarithm of how many different policies an instance may ask for.
    pub hidden: Fixed,
    /// How many times more often something must be tried because chance blurs what it brings; one or more.
    pub chance: Fixed,
    /// What of the coding is hidden as well.
    pub scramble: Scramble,
}

impl Needs {
    /// Nothing is hidden or drawn, and the present observation says all.
    pub const NONE: Needs =
        Needs { memory: Fixed::ZERO, hidden: Fixed::ZERO, chance: Fixed::ONE, scramble: Scramble::None };
}

/// The difficulty of a game with this shape and these needs: the logarithm of the steps it should take.
#[doc(alias = "d_est")]
pub fn estimate(shape: &Shape, needs: Needs) -> Fixed {
    let labels = labels(shape, needs).plus(Fixed::from_int(LABELS_TO_SHOW)).to_raw() as u128;
    let horizon = u128::from(shape.horizon.max(1));
    // Rewards that can all be earned at once are labels of the same episode.
    let (one, all) = (i128::from(shape.reward_max), i128::from(shape.return_max));
    let apart = if 0 < one && one <= all {
        (labels * horizon * one as u128 / all as u128).clamp(labels, labels * horizon)
    } else {
        labels
    };
    // Whatever else, one whole episode is played.
    let steps = (apart + (horizon << FRACTION_BITS)) * (needs.chance.to_raw() as u128 >> 16);
    log2_wide(steps).minus(Fixed::from_int(FRACTION_BITS as i32 + 16))
}

/// Labels of right or wrong that tell one policy from all others, at least.
pub fn labels(shape: &Shape, needs: Needs) -> Fixed {
    let actions = u64::from(shape.actions.max(2));
    let inputs = Fixed::from_int(i32::from(shape.observation_bits)).plus(needs.memory);
    let answer_bits = log2(actions);
    // At least one bit, or a game with nothing to learn would have no place on the scale.
    let hidden = needs.hidden.plus(code_bits(shape, needs.scramble));
    let policy_bits = inputs.mul_floor(answer_bits).plus(hidden).max(Fixed::ONE);
    policy_bits.div_floor(label_bits(actions))
}

/// The logarithm of the codings that a scramble chooses from.
fn code_bits(shape: &Shape, scramble: Scramble) -> Fixed {
    let actions = || log2_orders(i64::from(shape.actions));
    let seen = i32::from(shape.observation_bits);
    match scramble {
        Scramble::None => Fixed::ZERO,
        Scramble::Actions => actions(),
        Scramble::Fields => actions().plus(log2_orders(shape.fields.len() as i64)),
        // Every bit has a place and may be flipped.
        Scramble::Bits => actions().plus(log2_orders(i64::from(seen))).plus(Fixed::from_int(seen)),
    }
}

/// The entropy of whether a guess among so many actions is right.
fn label_bits(actions: u64) -> Fixed {
    let wrong = log2(actions - 1).mul_int(actions as i64 - 1).div_count_floor(actions);
    log2(actions).minus(wrong)
}

fn log2(count: u64) -> Fixed {
    log2_count_floor(count.max(1))
}

/// The logarithm of a number that may not fit into 64 bits; the bits that are dropped are below the last place.
fn log2_wide(number: u128) -> Fixed {
    let excess = (u128::BITS - number.leading_zeros()).saturating_sub(u64::BITS);
    log2((number >> excess) as u64).plus(Fixed::from_int(excess as i32))
}

/// The logarithm of the orders of so many things.
fn log2_orders(count: i64) -> Fixed {
    (2..=count).map(|factor| log2(factor as u64)).fold(Fixed::ZERO, Fixed::plus)
}

/// The logarithm of the ways to choose some of so many things.
fn log2_subsets(count: i64, chosen: i64) -> Fixed {
    let chosen = chosen.clamp(0, count);
    let ways = log2_orders(count).minus(log2_orders(chosen)).minus(log2_orders(count - chosen));
    // Rounded logarithms of orders do not cancel to the last bit.
    ways.max(Fixed::ZERO)
}

/// The logarithm of the ways to give things to owners so that no one has two more than another.
fn log2_fair_shares(things: i64, owners: i64) -> Fixed {
    let (each, more) = (things / owners, things % owners);
    let within = log2_orders(each).mul_int(owners - more).plus(log2_orders(each + 1).mul_int(more));
    log2_orders(things).minus(within).plus(log2_subsets(owners, more))
}

/// The logarithm of the contents of a store that holds up to `count` values of `bits` bits each, in order.
fn log2_contents(count: i64, bits: i64) -> Fixed {
    // 1 + 2^b + ... + 2^(bc) is just below 2^(bc) * 2^b / (2^b - 1).
    Fixed::from_int(((count + 1) * bits) as i32).minus(log2((1 << bits) - 1))
}

/// `(whole / part)^2`: how many times the plays it takes to see an effect that is only `part` of `whole` as large.
fn blur(whole: i64, part: i64) -> Fixed {
    let (whole, part) = (whole.max(1), part.clamp(1, whole.max(1)));
    Fixed::from_ratio(whole * whole, part * part)
}

/// How often something must be tried in a grid of this band: its layout is drawn anew in every episode, and what a move is worth
/// shows in the rest of it. Where no waypoint comes within reach there are resources alone, of which band 4 has the most; how many
/// there are otherwise says nothing about the steps that were measured.
fn grid_chance(band: i64, steps: i64) -> i64 {
    // Ticks to the band of the nearest waypoint.
    let away = [0, 1, 1, 3, 3].get(band as usize).copied().unwrap_or(3);
    let rare = match (away <= steps, band) {
        (true, _) => 4 * (4 + band),
        (false, 4) => 1,
        (false, _) => 3,
    };
    rare * steps * steps
}

/// What an auction needs: a bid for every value, against chance that grows with those who bid. Where the winner pays what the next of
/// them bid, it is best to bid what the item is worth, whatever they do; they blur a third as much then.
fn auction_needs(bits: i64, opponents: i64, pays_next: bool) -> Needs {
    let shares = if pays_next { 3 } else { 1 };
    let chance = Fixed::from_ratio(1 + opponents, shares).max(Fixed::ONE);
    Needs { hidden: Fixed::from_int((bits << bits) as i32), chance, ..Needs::NONE }
}

/// What a composition needs, in terms of its parts: everything hidden is found out, whatever the operator.
pub fn needs(tree: &TaskTree) -> Result<Needs, GameError> {
    if tree.kind() == NodeKind::LeafBase {
        return family_needs(tree.name(), tree);
    }
    let parts = tree.parts().iter().map(needs).collect::<Result<Vec<Needs>, GameError>>()?;
    let memories = || parts.iter().map(|part| part.memory);
    let together = memories().fold(Fixed::ZERO, Fixed::plus);
    let one_at_a_time = memories().fold(Fixed::ZERO, Fixed::max);
    let hidden = parts.iter().map(|part| part.hidden).fold(Fixed::ZERO, Fixed::plus);
    let chance = parts.iter().map(|part| part.chance).fold(Fixed::ONE, Fixed::max);
    let setting = |name: &str| -> Result<i64, GameError> {
        let parameters = operator(tree.name()).map_or(&[][..], |operator| operator.parameters());
        Ok(Settings::parse(parameters, tree.settings())?.number(name))
    };
    let (memory, chance) = match tree.kind() {
        // Both parts are under way at the same time, or every level waits for the next.
        NodeKind::Par | NodeKind::Interleave => (together, chance),
        NodeKind::Nest => (together.mul_int(setting("depth")?), chance),
        NodeKind::Mask => (together, chance.mul_floor(blur(100, 100 - setting("percent")?))),
        _ => (one_at_a_time, chance),
    };
    let scramble = parts.iter().map(|part| part.scramble).max().unwrap_or(Scramble::None);
    Ok(Needs { memory, hidden, chance, scramble })
}

/// What a family needs, by its parameters.
fn family_needs(name: &str, tree: &TaskTree) -> Result<Needs, GameError> {
    let family = catalog::family(name)?;
    let settings = catalog::settings(family, tree.settings())?;
    let number = |name: &str| settings.number(name);
    let bits = |name: &str| log2(number(name).max(1) as u64);
    let memory = |memory: Fixed| Needs { memory, ..Needs::NONE };
    let hidden = |hidden: Fixed| Needs { hidden, ..Needs::NONE };
    let own = match name {
        "parity" | "majority" => hidden(log2_subsets(number("n"), number("relevant"))),
        "parity_stream" => memory(Fixed::ONE),
        "dyck" if number("types") == 1 => memory(log2(number("depth") as u64 + 1)),
        "dyck" => memory(log2_contents(number("depth"), 1)),
        "stack_machine" => memory(log2_contents(number("depth"), number("value_bits"))),
        "key_value" => memory(bits("values").mul_int(number("keys"))),
        "associative_recall" => {
            let (tokens, pairs) = (number("tokens"), number("pairs"));
            memory(log2_subsets(tokens, pairs).plus(bits("tokens").mul_int(pairs)))
        }
        "bandit" => Needs { hidden: bits("arms"), chance: blur(100, number("gap")), ..Needs::NONE },
        // After every change the arm is looked for anew, among all of them.
        "nonstationary_bandit" => {
            let chance = blur(100, number("gap")).mul_int(number("arms"));
            Needs { memory: bits("arms"), chance, ..Needs::NONE }
        }
        "contextual_bandit" => {
            let (context, noise) = (number("context_bits"), number("noise_bits"));
            let arms_of_contexts = log2_fair_shares(1 << context, number("arms"));
            hidden(arms_of_contexts.plus(log2_subsets(context + noise, context)))
        }
        // What an opponent that remembers does next depends on the last moves of both, round after round.
        "matrix_game" => match settings.choice("opponent") {
            0 => Needs::NONE,
            1 => Needs { chance: Fixed::from_int(4), ..Needs::NONE },
            _ => Needs {
                memory: Fixed::ONE,
                hidden: Fixed::from_int(4 * number("horizon") as i32),
                ..Needs::NONE
            },
        },
        "signaling" => {
            let chance = blur(100, 100 - number("noise"));
            Needs { hidden: log2_orders(number("states")), chance, ..Needs::NONE }
        }
        "auction" => auction_needs(number("bits"), number("opponents"), settings.choice("price") == 1),
        // A way out of every cell, around the bad ones.
        "safety_grid" => {
            let cells = number("size") * number("size");
            hidden(Fixed::from_int(2 * cells as i32).plus(log2_subsets(cells, number("bad"))))
        }
        "add" | "subtract" if settings.choice("form") == 0 => memory(Fixed::ONE),
        "next_token" => {
            let contexts = number("vocab").pow(number("order") as u32);
            let chance = blur(50, number("peak") - 50);
            Needs {
                memory: bits("vocab").mul_int(number("order") - 1),
                hidden: bits("vocab").mul_int(contexts),
                chance,
                ..Needs::NONE
            }
        }
        "transducer" => {
            let edges = number("states") * number("inputs");
            let hidden = bits("states").plus(bits("outputs")).mul_int(edges);
            Needs { memory: bits("states"), hidden, ..Needs::NONE }
        }
        "copy" | "reverse" => memory(log2_contents(number("length"), number("value_bits"))),
        "permute" => Needs {
            memory: Fixed::from_int((number("length") * number("value_bits")) as i32),
            hidden: log2_orders(number("length")),
            ..Needs::NONE
        },
        "rulegrid" => {
            let (band, steps) = (number("band"), number("steps"));
            Needs {
                memory: Fixed::from_int(band as i32),
                chance: Fixed::from_int(grid_chance(band, steps) as i32),
                ..Needs::NONE
            }
        }
        _ => Needs::NONE,
    };
    // The noise of a channel is counted above; that of rewards is the same for every family.
    let replaced = if name == "signaling" { 0 } else { number("noise") };
    let chance = own.chance.mul_floor(blur(100, 100 - replaced));
    Ok(Needs { chance, scramble: Scramble::from_index(settings.choice("scramble")), ..own })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_games::compose::NoPrograms;

    fn difficulty(text: &str) -> Fixed {
        let tree = TaskTree::parse(text).unwrap();
        estimate(tree.build(1, &NoPrograms).unwrap().shape(), needs(&tree).unwrap())
    }

    fn steps(text: &str) -> i64 {
        // The estimate is a logarithm that is rounded down.
        let tree = TaskTree::parse(text).unwrap();
        let game = tree.build(1, &NoPrograms).unwrap();
        let raw = estimate(game.shape(), needs(&tree).unwrap());
        (0..1 << 20).find(|steps| raw < log2(*steps as u64 + 1)).unwrap()
    }

    #[test]
    fn small_cases_can_be_counted_by_hand() {
        // Eight bits seen, nothing hidden: eight labels to find, 16 to show, one step for each and one more.
        assert_eq!(steps("parity{n=8}"), 25);
        // Three of the eight count: log2(56) = 5.8 bits more.
        assert_eq!(steps("parity{n=8,relevant=3}"), 30);
        // Half of the rewards are drawn: four times as many.
        assert_eq!(steps("parity{n=8,noise=50}"), 100);
        // Two bits seen and one remembered, an answer after nine steps.
        assert_eq!(steps("parity_stream{n=8}"), 9 * (3 + 16) + 9);
        // One of four arms is the best: two bits at 0.811 each, and 20 percent are one fifth of the way.
        assert_eq!(steps("bandit{arms=4,gap=20}"), 486);
    }

    #[test]
    fn every_scramble_hides_more() {
        let ladder: Vec<Fixed> = ["none", "actions", "fields", "bits"]
            .iter()
            .map(|level| difficulty(&format!("compare{{bits=4,scramble={level}}}")))
            .collect();
        assert!(ladder.is_sorted_by(|low, high| low < high), "{ladder:?}");
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
