//! The conformance kit over every family of the catalog: default, smallest, largest, noisy and scrambled.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::lanes::{LaneEnvironment, LaneWord, planes_for};
use bem_games::catalog;
use bem_games::conformance::{check, check_shape};
use bem_games::game::{Family, Game, Range, Setting, Settings, Steps};
use bem_games::sliced::planes::{PlaneDice, Planes};
use std::collections::BTreeMap;

type Texts = BTreeMap<String, String>;

fn texts(pairs: &[(&str, &str)]) -> Texts {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Plays the kit with these parameters; a combination that the family refuses counts as no game.
fn conforms(family: &dyn Family, texts: &Texts, seed: u64) -> bool {
    let settings = catalog::settings(family, texts).unwrap();
    match catalog::build(family, &settings, seed) {
        Ok(game) => {
            check(&*game)
                .unwrap_or_else(|breach| panic!("{} {texts:?} seed {seed}: {breach}", family.name()));
            true
        }
        Err(_) => false,
    }
}

#[test]
fn every_family_conforms_as_it_comes() {
    for family in catalog::families() {
        for seed in [1, 2] {
            assert!(conforms(*family, &Texts::new(), seed), "{} refuses its defaults", family.name());
        }
    }
}

#[test]
fn every_family_conforms_when_noisy_and_scrambled() {
    for family in catalog::families() {
        for (noise, scramble) in [("10", "actions"), ("0", "fields"), ("35", "bits")] {
            let own_noise = family.parameters().iter().any(|parameter| parameter.name == "noise");
            let mut chosen = texts(&[("scramble", scramble)]);
            if !own_noise {
                chosen.insert("noise".to_string(), noise.to_string());
            }
            // Only a game whose length depends on the actions may refuse noise: its values would not be exact.
            let plain = catalog::settings(*family, &Texts::new()).unwrap();
            let may_refuse =
                noise != "0" && catalog::build(*family, &plain, 3).unwrap().steps() == Steps::ByPolicy;
            assert!(conforms(*family, &chosen, 3) || may_refuse, "{} refuses {chosen:?}", family.name());
        }
    }
}

#[test]
fn every_family_conforms_at_the_ends_of_every_parameter() {
    for family in catalog::families() {
        for parameter in family.parameters() {
            let ends: Vec<String> = match parameter.range {
                Range::Number { min, max, .. } => vec![min.to_string(), max.to_string()],
                Range::Choice { words } => words.iter().map(|word| word.to_string()).collect(),
            };
            for end in ends {
                conforms(*family, &texts(&[(parameter.name, &end)]), 4);
            }
        }
    }
}

#[test]
fn every_shape_holds_for_random_parameters() {
    let mut prng = bem_base::prng::Prng::stream(1, "parameters");
    for family in catalog::families() {
        let mut built = 0;
        for seed in 0..40 {
            let mut settings = Settings::draw(&catalog::parameters(*family), &mut prng);
            // Every other game is without noise, which not every family takes.
            if seed % 2 == 0 {
                settings = settings.with("noise", Setting::Number(0));
            }
            if let Ok(game) = catalog::build(*family, &settings, seed) {
                built += 1;
                check_shape(game.shape())
                    .unwrap_or_else(|breach| panic!("{} {settings:?}: {breach}", family.name()));
                assert!(game.random().mean <= game.optimum().mean, "{} {settings:?}", family.name());
            }
        }
        assert!(0 < built, "{} refuses everything", family.name());
    }
}

/// Random play in all lanes over many episodes; their mean return, in milli-units.
fn mean_return_of_sliced_play(game: &dyn Game, world: &mut dyn LaneEnvironment) -> i64 {
    let shape = game.shape();
    assert_eq!(world.shape(), shape);
    let mut observation = vec![LaneWord::ZERO; usize::from(shape.observation_bits)];
    let mut dice = PlaneDice::new(5);
    world.reset(6, &mut observation);
    let (mut rewards, mut episodes) = (0i64, 0i64);
    for _ in 0..shape.horizon * (200_000 / shape.horizon).clamp(3, 400) {
        let action = dice.below(u32::from(shape.actions), LaneWord::ONES);
        let action = &action[..planes_for(usize::from(shape.actions))];
        let outcome = world.step(action, LaneWord::ONES, &mut observation);
        assert!(outcome.bad.is_zero());
        rewards += i64::from(outcome.reward.count_ones());
        episodes += i64::from(outcome.done.count_ones());
    }
    // The episodes under way at the end are few: less than one in hundreds, or none where all have one length.
    rewards * i64::from(shape.reward_max) / episodes
}

#[test]
fn sliced_games_reach_the_stated_random_value() {
    let mut sliced = Vec::new();
    for family in catalog::families() {
        let settings = catalog::settings(*family, &Texts::new()).unwrap();
        let game = catalog::build(*family, &settings, 3).unwrap();
        if let Some(mut world) = game.start_sliced() {
            let got = mean_return_of_sliced_play(&*game, &mut *world);
            let stated = game.random().mean.to_raw() >> 32;
            assert!(got.abs_diff(stated) * 50 < stated.unsigned_abs(), "{}: {got} {stated}", family.name());
            sliced.push(family.name());
        }
    }
    let want = "parity parity_stream majority dyck stack_machine key_value bandit contextual_bandit \
        nonstationary_bandit copy reverse permute";
    assert_eq!(sliced.join(" "), want);
}
