//! Every field of HINL_CONTROL changes a run: the same inputs from outside with one field set otherwise end in another state,
//! beside the field itself.

use super::people::{ALICE, overseen};
use super::*;
use bem_people::control::Control;
use bem_people::kinds::{Mode, QuestionKind};
use bem_people::payload::{Answer, EpisodeAnswer};

/// Sets one field otherwise.
type Set = fn(&mut Control);

/// What a run came to, without the control: what acts, what was asked and answered, and what is learned first.
#[derive(PartialEq)]
struct Ran {
    acting: [Vec<u8>; 2],
    counters: [(&'static str, u64); 12],
    priors: [Fixed; 2],
    waits: bool,
}

fn ran(change: impl Fn(&mut Control)) -> Ran {
    let mut driver = overseen(Mode::Off);
    // One input in every run, so that all of them count alike: there is room for this many questions anyway.
    driver.control(|control| {
        control.max_pending_tasks = 65;
        change(control);
    });
    let mut waits = false;
    for step in 0..1_500 {
        driver.step();
        waits |= driver.standing(0).held().is_some();
        if step % 40 == 0 {
            driver.answer_all(ALICE);
        }
    }
    driver.settle_rounds();
    let firsts: Vec<u64> = driver.standing(1).recent.iter().map(|recent| recent.first).collect();
    for (place, first) in firsts.into_iter().rev().take(16).enumerate() {
        if driver.ask(QuestionKind::ScoreEpisode, 1, first, 1).is_ok() {
            let question = driver.open_question(QuestionKind::ScoreEpisode).unwrap();
            let score = if place % 2 == 0 { Fixed::ONE } else { Fixed::ZERO };
            let answer = Answer::Episode(EpisodeAnswer { score, keep: 1, tags: 0 });
            driver.answer(question.serial, ALICE, &answer);
        }
    }
    let _ = driver.ask(QuestionKind::RankTemplates, 0, 0, 1);
    driver.answer_all(ALICE);
    driver.settle_rounds();
    let people = driver.player.service.people();
    Ran {
        acting: [driver.acting(0), driver.acting(1)],
        counters: people.counters().named(),
        priors: [people.prior(0), people.prior(1)],
        waits,
    }
}

#[test]
fn every_field_of_the_control_changes_a_run() {
    let usual = ran(|_| {});
    let fields: [(&str, Set); 9] = [
        ("enable_online", |control| control.enable_online = false),
        ("max_online_step_rate", |control| control.max_online_step_rate = 50),
        ("max_online_episode_rate", |control| control.max_online_episode_rate = 0),
        ("max_pending_tasks", |control| control.max_pending_tasks = 1),
        ("safety_override_mode", |control| control.safety_override_mode = Mode::Whitelist),
        ("min_confidence_for_auto", |control| control.min_confidence_for_auto = Fixed::ZERO),
        ("human_weight_bandit", |control| control.human_weight_bandit = Fixed::from_int(3)),
        ("human_weight_grpo", |control| control.human_weight_grpo = Fixed::ZERO),
        ("human_weight_teacher", |control| control.human_weight_teacher = Fixed::HALF),
    ];
    for (name, change) in fields {
        assert!(ran(change) != usual, "{name} changes nothing");
    }
    // The tenth, human_weight_pox, decides what is let in: see approval.rs. Here nobody oversees changes.
    assert!(ran(|control| control.human_weight_pox = Fixed::ZERO) == usual);
}
