//! Settings that cover the range of every family, from trivial to the hardest that is asked for.
//!
//! Each list climbs along what makes a task of this family harder to learn, not merely longer: hidden choices, bits to
//! be remembered, more answers, rarer or noisier rewards. Where the size alone changes nothing (the parity of all bits
//! is as easy for 64 as for eight), the list goes on with something that does. The order comes from
//! [`crate::difficulty`] alone. Clauses: GLE-2, GLE-5.

use bem_games::catalog;
use bem_games::game::Range;

/// Settings of this family in any order; combinations that it refuses are left out by the caller.
pub fn settings_of(family: &str) -> Vec<String> {
    let settings: Vec<String> = match family {
        "parity" => {
            let clean = each(1..=32, |half| format!("n={},relevant={half}", 2 * half));
            let noisy = each(1..=20, |noise| format!("n=64,relevant=32,noise={noise}"));
            [clean, noisy].concat()
        }
        // A third of the bits count, and an odd number of them.
        "majority" => each(3..=63, |n| format!("n={n},relevant={}", (n / 3 - 1) | 1)),
        "parity_stream" => each(1..=256, |n| format!("n={n}")),
        "popcount" => each(1..=31, |n| format!("n={n}")),
        "dyck" => each(1..=32, |depth| format!("types=2,depth={depth},length={}", 4 * depth)),
        "stack_machine" => each(1..=16, |depth| format!("depth={depth},horizon={},value_bits=2", 4 * depth)),
        "key_value" => each(1..=16, |size| format!("keys={size},values=4,writes={size},distractors={size}")),
        "associative_recall" => each(1..=8, |pairs| format!("tokens={},pairs={pairs}", 2 * pairs)),
        // More arms that are also harder to tell apart.
        "bandit" => {
            let easy = [(2, 60), (3, 54), (4, 50), (6, 44), (8, 40), (12, 34)];
            let hard = [(16, 30), (24, 24), (32, 20), (48, 14), (64, 10)];
            list(&[&easy[..], &hard[..]].concat(), |arms, gap| format!("arms={arms},gap={gap}"))
        }
        "contextual_bandit" => pairs(&[1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 6, 8], |context, noise| {
            format!("context_bits={context},noise_bits={noise},arms=4")
        }),
        // With a gap of 20 percent nobody who has to notice the changes reaches 0.99 (docs/results/bounds.md).
        "nonstationary_bandit" => {
            pairs(&[2, 3, 4, 6, 8], &[100, 80, 60, 50, 40, 30], |arms, gap| format!("arms={arms},gap={gap}"))
        }
        "matrix_game" => {
            each(1..=64, |rounds| format!("game=prisoners_dilemma,opponent=tit_for_tat,horizon={rounds}"))
        }
        "signaling" => each(2..=24, |states| format!("states={states},noise=10")),
        "auction" => list(&[(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1)], |bits, others| {
            format!("bits={bits},opponents={others}")
        }),
        "small_sat" => {
            let list_of = [(1, 1), (2, 4), (3, 6), (4, 8), (5, 10), (6, 12), (7, 14), (8, 16)];
            list(&list_of, |vars, clauses| format!("vars={vars},clauses={clauses}"))
        }
        "safety_grid" => each(2..=12, |size| format!("size={size},bad={}", size * size / 8)),
        "compare" => {
            let clean = each(1..=8, |bits| format!("bits={bits}"));
            let noisy = each(1..=8, |five| format!("bits=8,noise={}", 5 * five));
            [clean, noisy].concat()
        }
        // Words of several bits are right or wrong as a whole. The carry makes a sum a bit longer.
        "add" => each(1..=8, |bits| format!("bits={bits},form=word")),
        "subtract" => each(1..=8, |bits| format!("bits={bits},form=word")),
        "sorting" => list(&[(3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (5, 3), (6, 3)], |keys, bits| {
            format!("keys={keys},key_bits={bits}")
        }),
        "distance" => each(1..=24, |n| format!("n={n},cap={}", n.clamp(1, 7))),
        "next_token" => {
            let last_token = each(2..=10, |vocab| format!("vocab={vocab},order=1"));
            let last_two = each(5..=8, |vocab| format!("vocab={vocab},order=2"));
            [last_token, last_two].concat()
        }
        "transducer" => {
            each(1..=16, |states| format!("states={states},inputs=4,outputs=4,horizon={}", 3 * states))
        }
        "copy" | "reverse" | "permute" => each(1..=24, |length| format!("length={length}")),
        // Short episodes: first those in which only resources are within reach, then those with waypoints.
        "rulegrid" => {
            let resources = [(4, 1), (3, 1), (3, 2)];
            let waypoints = [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2), (3, 3), (4, 3)];
            list(&[&resources[..], &waypoints[..]].concat(), |band, steps| {
                format!("band={band},steps={steps}")
            })
        }
        other => return one_at_a_time(other),
    };
    settings.into_iter().map(|settings| format!("{family}{{{settings}}}")).collect()
}

/// Settings that a choice by measured steps is made among, for families whose candidates do not lie on a line when they are
/// measured: sizes that the learner takes in its stride, rewards that are now lucky and now are not, episodes longer than a
/// budget. Each list climbs along what was found to make the family longer to learn, a little at a time. Nothing for all others.
pub fn tried_of(family: &str) -> Vec<String> {
    let settings: Vec<String> = match family {
        // As for the candidates, and others that are as hard by one of both alone.
        "bandit" => {
            let easy = [(2, 60), (3, 54), (4, 50), (6, 44), (8, 40), (12, 34)];
            let hard = [(16, 30), (24, 24), (32, 20), (64, 20), (48, 14), (32, 10), (64, 10)];
            list(&[&easy[..], &hard[..]].concat(), |arms, gap| format!("arms={arms},gap={gap}"))
        }
        "contextual_bandit" => {
            let few = [(1, 0), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)];
            let many = [(4, 2), (4, 4), (5, 2), (5, 4)];
            list(&[&few[..], &many[..]].concat(), |context, noise| {
                format!("context_bits={context},noise_bits={noise},arms=4")
            })
        }
        "dyck" => {
            some(&[2, 3, 4, 6, 8, 11, 22], |depth| format!("types=2,depth={depth},length={}", 4 * depth))
        }
        // A store of sixteen keys is written and read over more often.
        "key_value" => {
            let sizes = [1, 2, 4, 6, 8, 12, 16].map(|size| (size, size));
            let longer = [(16, 24), (16, 32), (16, 48), (16, 64)];
            list(&[&sizes[..], &longer[..]].concat(), |keys, writes| {
                format!("keys={keys},values=4,writes={writes},distractors={writes}")
            })
        }
        // How long an episode is, which is what the agent that learns anew in every one of them has to see.
        "nonstationary_bandit" => {
            let easy = [(100, 500), (100, 1_000), (100, 2_000)];
            let hard = [(60, 4_000), (60, 8_000)];
            list(&[&easy[..], &hard[..]].concat(), |gap, segment| {
                format!("arms=2,gap={gap},segment={segment}")
            })
        }
        // One bit against more and more who rarely let it win, then more levels.
        "auction" => {
            let second = some(&[2, 4, 5, 6], |others| format!("bits=1,opponents={others},price=second"));
            let first = [(2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (2, 6), (3, 1), (3, 2)];
            [second, list(&first, |bits, others| format!("bits={bits},opponents={others}"))].concat()
        }
        // Which bit is where has to be found out first.
        "compare" => some(&[1, 2, 3, 4, 5, 6, 8, 12], |bits| format!("bits={bits},scramble=bits")),
        "sorting" => {
            let noisy =
                some(&[10, 20, 30, 40, 50, 60, 70, 80], |noise| format!("keys=3,key_bits=1,noise={noise}"));
            [vec!["keys=3,key_bits=1".to_string()], noisy].concat()
        }
        // With two tokens and one of them to be remembered, one in two instances is solved by one answer.
        "next_token" => {
            let contexts = [(2, 2), (2, 3), (3, 2), (1, 3), (1, 5), (1, 9), (1, 16)];
            list(&contexts, |order, vocab| format!("vocab={vocab},order={order}"))
        }
        // Edges of the machine, which are states times inputs, and what each may say.
        "transducer" => {
            let one = [(1, 4, 4), (1, 8, 4), (1, 16, 4)];
            let two = [(2, 4, 4), (2, 8, 4), (2, 8, 8), (2, 16, 4), (2, 12, 8), (2, 16, 8)];
            let more = [(3, 8, 8), (4, 8, 8), (4, 16, 8), (8, 8, 16)];
            let all = [&one[..], &two[..], &more[..]].concat();
            let settings = |(states, inputs, outputs): &(i64, i64, i64)| {
                let horizon = 3 * states.max(&2);
                format!("states={states},inputs={inputs},outputs={outputs},horizon={horizon}")
            };
            all.iter().map(settings).collect()
        }
        _ => Vec::new(),
    };
    settings.into_iter().map(|settings| format!("{family}{{{settings}}}")).collect()
}

fn some(sizes: &[i64], settings: impl Fn(i64) -> String) -> Vec<String> {
    sizes.iter().copied().map(settings).collect()
}

fn each(sizes: std::ops::RangeInclusive<i64>, settings: impl Fn(i64) -> String) -> Vec<String> {
    sizes.map(settings).collect()
}

fn list(pairs: &[(i64, i64)], settings: impl Fn(i64, i64) -> String) -> Vec<String> {
    pairs.iter().map(|(left, right)| settings(*left, *right)).collect()
}

fn pairs(lefts: &[i64], rights: &[i64], settings: impl Fn(i64, i64) -> String) -> Vec<String> {
    lefts.iter().flat_map(|left| rights.iter().map(|right| settings(*left, *right))).collect()
}

/// For a family that has no list of its own: every number swept over its range, the rest as it comes.
pub fn one_at_a_time(family: &str) -> Vec<String> {
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
