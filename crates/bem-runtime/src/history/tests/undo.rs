//! Answers of every kind are given at random and taken back in another order: at once nothing is left of them, and after many
//! steps what they added is taken out of what was counted meanwhile. `cargo xtask battery people` runs it at full size.

use super::people::{ALICE, overseen};
use super::*;
use bem_people::kinds::{Mode, QuestionKind};
use bem_people::payload::context::Context;
use bem_people::payload::{Answer, ConfigAnswer, EpisodeAnswer, StepAnswer, TemplatesAnswer};
use bem_people::table::Question;

/// Changes of the configuration at most: each can be taken back only when those after it are.
const CONFIGURED_MAX: usize = 8;

/// Some answer to a question.
fn drawn(question: &Question, prng: &mut Prng) -> Answer {
    match Context::from_bytes(question.kind, &question.context).unwrap() {
        Context::Step(shown) => {
            let best = shown.candidates[prng.below(shown.candidates.len() as u64) as usize].action;
            let score = Fixed::from_ratio(prng.below(5) as i64, 4);
            Answer::Step(StepAnswer { accept: prng.bit(), best: Some(best), score, comment: 0 })
        }
        Context::Episode(_) => {
            let score = Fixed::from_ratio(prng.below(9) as i64, 8);
            Answer::Episode(EpisodeAnswer { score, keep: prng.below(3) as u8, tags: 0 })
        }
        Context::Templates(shown) => {
            let mut order: Vec<u8> = (0..shown.templates.len() as u8).collect();
            prng.shuffle(&mut order);
            Answer::Templates(TemplatesAnswer { order, scores: Vec::new() })
        }
        Context::Config(_) => {
            let mut delta = || Fixed::from_ratio(prng.below(9) as i64 - 4, 16);
            // What makes approvals count for more needs a second person.
            let deltas = [delta(), delta(), delta(), delta(), Fixed::ZERO];
            Answer::Config(ConfigAnswer { deltas, ..ConfigAnswer::default() })
        }
        Context::Patch(_) => unreachable!("nobody oversees changes here"),
    }
}

/// Asks about something that can be asked about; whether it could.
fn ask_something(driver: &mut Driver, configured: &mut usize, prng: &mut Prng) -> bool {
    let last = driver.player.service.last();
    match prng.below(8) {
        0 => driver.ask(QuestionKind::RankTemplates, 0, 0, 1).is_ok(),
        1 if *configured < CONFIGURED_MAX => {
            *configured += 1;
            driver.ask(QuestionKind::AdjustConfig, 0, 0, 1).is_ok()
        }
        2..=3 => {
            let recent = &driver.standing(1).recent;
            let Some(first) =
                recent.get(prng.below(recent.len().max(1) as u64) as usize).map(|one| one.first)
            else {
                return false;
            };
            driver.ask(QuestionKind::ScoreEpisode, 1, first, 1).is_ok()
        }
        _ => {
            let decision = last.saturating_sub(prng.below(1_500));
            driver.ask(QuestionKind::LabelStep, prng.below(2) as u16, decision, 1).is_ok()
        }
    }
}

/// What answers can have changed: both halves that decide, what is learned first, the control, and what is said of episodes.
fn state(driver: &Driver) -> Vec<u8> {
    let people = driver.player.service.people();
    let mut bytes = driver.acting(0);
    bytes.extend(driver.acting(1));
    bytes.extend(people.prior(0).to_raw().to_le_bytes());
    bytes.extend(people.prior(1).to_raw().to_le_bytes());
    let mut writer = Writer::new();
    people.control().encode(&mut writer);
    for recent in &driver.standing(1).recent {
        writer.u8(recent.keep);
        writer.i64(recent.score.map_or(-1, Fixed::to_raw));
    }
    bytes.extend(writer.into_bytes());
    bytes
}

/// Gives so many answers; their numbers.
fn give(driver: &mut Driver, answers: usize, prng: &mut Prng) -> Vec<u64> {
    let (mut given, mut configured) = (Vec::new(), 0);
    while given.len() < answers {
        if !ask_something(driver, &mut configured, prng) {
            continue;
        }
        let question = driver.player.service.people().table().open().next().unwrap().clone();
        let answer = drawn(&question, prng);
        given.push(driver.answer(question.serial, ALICE, &answer));
    }
    given
}

/// Takes answers back in another order, those of the configuration from the last to the first.
fn take_back(driver: &mut Driver, mut given: Vec<u64>, prng: &mut Prng) {
    prng.shuffle(&mut given);
    while !given.is_empty() {
        let before = given.len();
        given.retain(|answer| match driver.player.service.undo(*answer, ALICE, true) {
            Ok(input) => {
                driver.people(Some(input.unwrap()));
                assert_eq!(driver.player.service.undo(*answer, ALICE, true).unwrap(), None);
                false
            }
            Err(refusal) => {
                assert_eq!(refusal.message, "the configuration has changed since");
                true
            }
        });
        assert!(given.len() < before, "nothing more can be taken back");
    }
}

#[test]
fn answers_of_every_kind_are_taken_back_bit_for_bit_in_any_order_at_once_and_later() {
    let (answers, steps) = (size("BEM_PEOPLE_ANSWERS", 60) as usize, size("BEM_PEOPLE_STEPS", 500));
    let mut driver = overseen(Mode::Off);
    (0..900).for_each(|_| driver.step());
    driver.control(|control| control.enable_online = false);
    driver
        .player
        .service
        .people()
        .table()
        .open()
        .map(|open| open.serial)
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|serial| {
            let lease = driver.player.service.lease(serial, ALICE, true).unwrap();
            driver.people(lease);
            let generation = driver.player.service.people().table().get(serial).unwrap().generation;
            let skip = bem_people::kinds::Skip::Obsolete;
            let skipped = driver.player.service.skip(serial, generation, ALICE, skip).unwrap();
            driver.people(Some(skipped));
        });
    let mut prng = Prng::stream(3, "undo");
    for is_between in [false, true] {
        driver.settle_rounds();
        let before = state(&driver);
        let given = give(&mut driver, answers, &mut prng);
        assert!(state(&driver) != before);
        if is_between {
            (0..steps).for_each(|_| driver.step());
            driver.settle_rounds();
        }
        take_back(&mut driver, given, &mut prng);
        if !is_between {
            assert!(state(&driver) == before, "nothing is left of what was taken back");
        }
        let service = &driver.player.service;
        for world in 0..2 {
            assert!(driver.standing(world).labels().is_empty());
            let served = service.world(WorldIndex(world)).unwrap();
            for seen in 0..16 {
                assert!(served.acting().context(&Bits([seen, 0, 0, 0])).1.advice().is_empty());
            }
            assert_eq!(service.people().prior(world), Fixed::ZERO);
        }
        assert!(driver.standing(1).recent.iter().all(|recent| recent.keep == 1 && recent.score.is_none()));
    }
    driver.commit();
    let wanted = driver.player.service.encode();
    assert!(replay(&mut driver.log.into_store(), None, &mut |_, _| {}).unwrap().encode() == wanted);
}
