//! `bem bench choice_rules`: what the whole learner earns with each choice rule, in worlds in which one or another is right.
//!
//! Everything is earned while it is learned. Rewards that come late are served: a decision is asked for now, and what it brought
//! is told so many decisions later.

mod worlds;

use super::statistics::{mean_with_half_width, over_seeds};
use super::{Benchmark, Measurement, measure};
use crate::cli::Answer;
use bem_base::environment::{Bits, Environment, Outcome};
use bem_base::fixed::Fixed;
use bem_engine::learner::Settings;
use bem_engine::serving::{Begun, Searching, Settled, settings_of};
use bem_engine::solve::solve_world;
use bem_machine::config::{ChoiceRule, GenesisConfig};
use serde_json::json;
use std::collections::VecDeque;
use worlds::{Arms, Opponent};

/// The benchmark of this file.
pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    name: "choice_rules",
    area: "rules",
    about: "what Tsallis-INF earns against who predicts it, beside UCB-V",
    run: measured,
}];

const STEPS: u64 = 20_000;
const SEEDS: u64 = 10;

/// A rule as a configuration names it.
#[derive(Clone, Copy)]
struct Ruled {
    name: &'static str,
    rule: ChoiceRule,
    kept: u32,
}

const RULES: [Ruled; 4] = [
    Ruled { name: "ucb_v", rule: ChoiceRule::UcbV, kept: 1 },
    Ruled { name: "softmax", rule: ChoiceRule::Softmax, kept: 1 },
    Ruled { name: "softmax, best of 4", rule: ChoiceRule::Softmax, kept: 4 },
    Ruled { name: "tsallis_inf", rule: ChoiceRule::TsallisInf, kept: 1 },
];

const UCB_V: usize = 0;
const SOFTMAX: usize = 1;
const TSALLIS_INF: usize = 3;

/// What is played.
#[derive(Clone, Copy)]
enum Played {
    /// Against a player who predicts, with so many actions.
    Against(u16),
    /// So many arms, whose rewards come so many decisions late.
    Arms(u16, usize),
}

/// A world: its name, what is played, and the rule that is recommended for it, by its place in [`RULES`].
type Row = (&'static str, Played, usize);

const WORLDS: [Row; 7] = [
    ("2 actions against who predicts them", Played::Against(2), TSALLIS_INF),
    ("4 actions against who predicts them", Played::Against(4), TSALLIS_INF),
    ("16 arms", Played::Arms(16, 0), UCB_V),
    ("16 arms, rewards 20 decisions late", Played::Arms(16, 20), SOFTMAX),
    ("16 arms, rewards 100 decisions late", Played::Arms(16, 100), TSALLIS_INF),
    ("16 arms, rewards 500 decisions late", Played::Arms(16, 500), TSALLIS_INF),
    ("256 arms, rewards 500 decisions late", Played::Arms(256, 500), TSALLIS_INF),
];

fn config(ruled: Ruled) -> GenesisConfig {
    GenesisConfig {
        choice_rule: ruled.rule,
        candidates_kept: ruled.kept,
        until_budget: true,
        ..GenesisConfig::default()
    }
}

/// The mean worth of a step, between zero and one.
fn earned(played: Played, ruled: Ruled, seed: u64, steps: u64) -> f64 {
    match played {
        Played::Against(actions) => {
            let mut world = Opponent::new(actions);
            alone(&mut world, ruled, seed, steps);
            world.paid.mean()
        }
        Played::Arms(arms, 0) => {
            let mut world = Arms::new(seed, arms);
            alone(&mut world, ruled, seed, steps);
            world.paid.mean()
        }
        Played::Arms(arms, delay) => {
            let mut world = Arms::new(seed, arms);
            serve(&mut world, ruled, (seed, delay), steps);
            world.paid.mean()
        }
    }
}

/// The learner as `bem solve` runs it.
fn alone(world: &mut dyn Environment, ruled: Ruled, seed: u64, steps: u64) {
    let settings = Settings { seed, budget: steps, config: config(ruled).into() };
    solve_world(world, settings, &mut |_| true).expect("these worlds do not fail");
}

/// Both halves of a served world; what waits is told after so many decisions.
fn serve(world: &mut dyn Environment, ruled: Ruled, (seed, delay): (u64, usize), steps: u64) {
    let settings = settings_of(&config(ruled), seed);
    let opened = Searching::open(world.shape(), settings, Fixed::ZERO, &[]);
    let (mut searching, round) = opened.expect("the world fits");
    let mut acting = round.acting;
    let mut waiting: VecDeque<(Begun, Settled)> = VecDeque::new();
    for number in 0..steps {
        let (begun, choice) = acting.begin(number, &Bits::ZERO);
        let outcome = world.step(choice.action).expect("these worlds do not fail");
        let observation = Bits::ZERO;
        let outcome = Outcome { done: true, ..outcome };
        let settled =
            Settled { observation, action: choice.action, odds: choice.odds, outcome, is_told: true };
        waiting.push_back((begun, settled));
        if delay < waiting.len()
            && let Some((begun, settled)) = waiting.pop_front()
        {
            acting.settle(begun, &[settled]);
            searching.take(begun, &[settled]);
        }
        if searching.has_work() {
            acting.replace(searching.work().acting);
        }
    }
}

fn means(played: Played) -> Vec<(f64, f64)> {
    let mean = |ruled: Ruled| {
        let earned = over_seeds(SEEDS, |seed| earned(played, ruled, 1 + seed, STEPS));
        mean_with_half_width(&earned)
    };
    RULES.into_iter().map(mean).collect()
}

fn measured() -> anyhow::Result<Measurement> {
    let means = means(WORLDS[0].1);
    let (ucb_v, tsallis) = (means[UCB_V].0, means[TSALLIS_INF].0);
    let name = "UCB-V, same opponent, steps and seeds";
    Ok(Measurement::new("choice_rules", tsallis, "of 1", ucb_v, name)
        .with("softmax", means[SOFTMAX].0)
        .with("seeds", SEEDS as f64))
}

/// Whether one mean is above another by more than the half widths of both.
fn is_ahead((one, half): (f64, f64), (other, other_half): (f64, f64)) -> bool {
    other + other_half < one - half
}

/// How the recommended rule stands beside the others, by their names.
struct RuleStanding {
    /// Those that are ahead of it.
    behind: Vec<&'static str>,
    /// Those whose intervals overlap with its own.
    level: Vec<&'static str>,
}

impl RuleStanding {
    fn of(means: &[(f64, f64)], recommended: usize) -> RuleStanding {
        let own = means[recommended];
        let named = |is_one: &dyn Fn((f64, f64)) -> bool| {
            let others = RULES.iter().zip(means).enumerate().filter(|(place, _)| *place != recommended);
            others.filter(|(_, (_, mean))| is_one(**mean)).map(|(_, (ruled, _))| ruled.name).collect()
        };
        RuleStanding {
            behind: named(&|other| is_ahead(other, own)),
            level: named(&|other| !is_ahead(other, own) && !is_ahead(own, other)),
        }
    }

    fn words(&self) -> String {
        match (&self.behind[..], &self.level[..]) {
            ([], []) => "ahead".to_string(),
            ([], level) => format!("level with {}", level.join("; ")),
            (behind, _) => format!("**behind {}**", behind.join("; ")),
        }
    }
}

/// The rules that are ahead of every other one in none of these worlds.
fn never_ahead<'m>(worlds: impl Iterator<Item = &'m [(f64, f64)]> + Clone) -> Vec<&'static str> {
    let is_first = |place: usize| {
        let leads = |means: &[(f64, f64)]| {
            let others = means.iter().enumerate().filter(|(other, _)| *other != place);
            others.into_iter().all(|(_, other)| is_ahead(means[place], *other))
        };
        worlds.clone().any(leads)
    };
    RULES.iter().enumerate().filter(|(place, _)| !is_first(*place)).map(|(_, ruled)| ruled.name).collect()
}

/// Prints every world with every rule; the answer is no where another rule than the recommended one is ahead.
pub fn report(json: bool) -> anyhow::Result<Answer> {
    let rows: Vec<_> = WORLDS.iter().map(|(name, played, right)| (*name, means(*played), *right)).collect();
    let holds = rows.iter().all(|(_, means, right)| RuleStanding::of(means, *right).behind.is_empty());
    let never = never_ahead(rows.iter().map(|(_, means, _)| &means[..]));
    if json {
        let row = |(name, means, right): &(&str, Vec<(f64, f64)>, usize)| {
            let of = RULES.iter().zip(means).map(
                |(ruled, (mean, half))| json!({ "rule": ruled.name, "mean": mean, "half_width_95": half }),
            );
            let RuleStanding { behind, level } = RuleStanding::of(means, *right);
            json!({ "world": name, "rules": of.collect::<Vec<_>>(), "recommended": RULES[*right].name,
                "behind": behind, "level_with": level })
        };
        let worlds: Vec<_> = rows.iter().map(row).collect();
        say!(
            "{}",
            json!({ "machine": measure::machine(), "steps": STEPS, "seeds": SEEDS, "worlds": worlds,
                "never_ahead": never })
        );
        return Ok(if holds { Answer::Yes } else { Answer::No });
    }
    say!(
        "Mean worth of a step out of 1, {STEPS} steps, {SEEDS} seeds, with half of the 95 % interval's width.\n"
    );
    let names: Vec<String> = RULES.iter().map(|ruled| ruled.name.to_string()).collect();
    say!("| world | {} | recommended | beside the others |", names.join(" | "));
    say!("|---{}|---|---|", "|---".repeat(RULES.len()));
    for (name, means, right) in &rows {
        let cells: Vec<String> = means.iter().map(|(mean, half)| format!("{mean:.3} ± {half:.3}")).collect();
        let verdict = RuleStanding::of(means, *right).words();
        say!("| {name} | {} | `{}` | {verdict} |", cells.join(" | "), RULES[*right].name);
    }
    say!(
        "\nThe recommended rule is ahead where its interval lies above all others, and level where intervals overlap."
    );
    if !never.is_empty() {
        say!("Ahead of every other rule in none of these worlds: {}.", never.join("; "));
    }
    Ok(if holds { Answer::Yes } else { Answer::No })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_overlap_are_level_and_only_a_rule_that_is_ahead_is_a_miss() {
        let late = [(0.980, 0.001), (0.981, 0.001), (0.970, 0.002), (0.900, 0.001)];
        let RuleStanding { behind, level } = RuleStanding::of(&late, SOFTMAX);
        assert_eq!((behind.len(), level), (0, vec!["ucb_v"]));
        assert_eq!(RuleStanding::of(&late, SOFTMAX).words(), "level with ucb_v");
        assert_eq!(
            RuleStanding::of(&late, TSALLIS_INF).words(),
            "**behind ucb_v; softmax; softmax, best of 4**"
        );
        let apart = [(0.5, 0.01), (0.6, 0.01), (0.55, 0.01), (0.9, 0.01)];
        assert_eq!(RuleStanding::of(&apart, TSALLIS_INF).words(), "ahead");
        assert_eq!(
            never_ahead([&late[..], &apart[..]].into_iter()),
            ["ucb_v", "softmax", "softmax, best of 4"]
        );
    }

    #[test]
    fn rewards_that_come_late_are_earned_sooner_by_a_rule_that_draws() {
        for seed in 1..=2 {
            let late = Played::Arms(16, 500);
            let [index, softmax, tsallis] = [RULES[UCB_V], RULES[SOFTMAX], RULES[TSALLIS_INF]]
                .map(|ruled| earned(late, ruled, seed, 10_000));
            assert!(index < softmax && index + 0.05 < tsallis, "seed {seed}: {index} {softmax} {tsallis}");
        }
    }

    #[test]
    fn who_predicts_beats_the_lowest_index_and_not_what_holds_against_adversaries() {
        for seed in 1..=2 {
            let [index, tsallis] = [RULES[UCB_V], RULES[TSALLIS_INF]]
                .map(|ruled| earned(Played::Against(2), ruled, seed, 6_000));
            assert!(0.45 < tsallis && index + 0.05 < tsallis, "seed {seed}: {tsallis} against {index}");
        }
    }
}
