//! Several people who are asked the same: whose answer takes effect, what the others may know before, and who takes it back.

use super::people::{ALICE, BOB};
use super::*;
use bem_people::kinds::{QuestionKind, Skip};
use bem_people::payload::{Answer, StepAnswer};

const CAROL: u32 = 9;

/// A service in which so many people are asked about the same step; the questions.
fn asked(quorum: u8) -> (Driver, Vec<u64>) {
    let mut driver = Driver::new();
    driver.create(spec("ads", 1));
    (0..60).for_each(|_| driver.step());
    let world = driver.player.service.world(WorldIndex(0)).unwrap();
    let decision = (1..driver.player.service.last()).rev().find(|number| world.decision(*number).is_some());
    driver.ask(QuestionKind::LabelStep, 0, decision.unwrap(), quorum).unwrap();
    let asked = driver.player.service.people().table().open().map(|open| open.serial).collect();
    (driver, asked)
}

fn said(accept: bool) -> Answer {
    let score = if accept { Fixed::ONE } else { Fixed::ZERO };
    Answer::Step(StepAnswer { accept, best: None, score, comment: 0 })
}

#[test]
fn the_answer_that_wins_is_its_authors_whoever_was_last() {
    let (mut driver, asked) = asked(3);
    let before = driver.acting(0);
    let first = driver.answer(asked[0], ALICE, &said(true));
    let groups = |driver: &Driver| driver.player.service.people().groups().clone();
    assert!(groups(&driver).is_blind(first), "the others must not see it yet");
    let preview = driver.player.service.preview(asked[1], &said(true).to_bytes(), BOB).unwrap();
    assert!(preview.is_empty(), "a preview would tell what the others have said");
    driver.answer(asked[1], BOB, &said(true));
    assert!(driver.standing(0).labels().is_empty(), "two of three are not enough");
    let last = driver.answer(asked[2], CAROL, &said(false));
    assert!(!groups(&driver).is_blind(first));
    let labels = driver.standing(0).labels();
    assert_eq!(labels.iter().map(|label| label.answer).collect::<Vec<u64>>(), [first]);
    let given = driver.player.service.people().given();
    assert!(!given[&first].changes.is_empty() && given[&last].changes.is_empty());
    // Who was outvoted takes nothing back; who won does, bit for bit.
    assert_eq!(driver.player.service.undo(last, CAROL, false).unwrap_err().code, "cannot_be_undone");
    assert!(driver.player.service.undo(first, CAROL, false).is_err(), "it is not Carol's");
    assert_ne!(driver.acting(0), before);
    driver.undo(first);
    assert_eq!(driver.acting(0), before);
    driver.assert_history();
}

#[test]
fn a_group_that_a_skip_completes_counts_and_is_taken_back() {
    let (mut driver, asked) = asked(2);
    let before = driver.acting(0);
    let given = driver.answer(asked[0], ALICE, &said(false));
    let lease = driver.player.service.lease(asked[1], BOB, true).unwrap();
    driver.people(lease);
    let generation = driver.player.service.people().table().get(asked[1]).unwrap().generation;
    let skip = driver.player.service.skip(asked[1], generation, BOB, Skip::Declined).unwrap();
    driver.people(Some(skip));
    assert!(!driver.player.service.people().given()[&given].changes.is_empty());
    assert_ne!(driver.acting(0), before);
    driver.undo(given);
    assert_eq!(driver.acting(0), before);
    driver.assert_history();
}
