//! Many people at once: leases that run out, tabs that close, answers that come twice or too late, answers that are taken back,
//! and a process that ends in between. Every answer counts once or is refused, and the history plays again to the same state.
//! `cargo xtask battery people` runs it at full size.

use super::people::overseen;
use super::*;
use bem_people::kinds::{Mode, QuestionKind, Skip};
use std::collections::BTreeSet;

/// People who work at the same time.
const PEOPLE: u64 = 8;
/// Answers that may be taken back.
const KEPT: usize = 256;

/// What the people believe to have said, as far as the service has acknowledged it.
#[derive(Default)]
struct Believed {
    /// Questions that were answered, each once.
    answered: BTreeSet<u64>,
    skipped: u64,
    /// Answers that may be taken back, the latest last.
    given: Vec<u64>,
    undone: u64,
    refused: u64,
}

/// One annotator does something with a question that is open.
fn act(driver: &mut Driver, believed: &mut Believed, prng: &mut Prng) {
    let person = 1 + prng.below(PEOPLE) as u32;
    let open: Vec<u64> = driver.player.service.people().table().open().map(|open| open.serial).collect();
    if open.is_empty() {
        return;
    }
    let serial = open[prng.below(open.len() as u64) as usize];
    let Ok(lease) = driver.player.service.lease(serial, person, true) else {
        // Somebody else has it.
        believed.refused += 1;
        return;
    };
    driver.people(lease);
    let question = driver.player.service.people().table().get(serial).unwrap().clone();
    let (generation, bytes) = (question.generation, driver.truth(&question).to_bytes());
    match prng.below(8) {
        // The tab is closed; the lease runs out some time later.
        0 => {}
        // The clock has jumped: the lease runs out, and the answer is too late.
        1 => {
            let expired = driver.player.service.expire_lease(serial, generation);
            driver.people(expired);
            assert_eq!(driver.player.service.expire_lease(serial, generation), None);
            let late = driver.player.service.answer(serial, generation, person, bytes).unwrap_err();
            assert_eq!(late.code, "lease_lost");
            believed.refused += 1;
        }
        2 => {
            let skip = driver.player.service.skip(serial, generation, person, Skip::Declined).unwrap();
            driver.people(Some(skip));
            believed.skipped += 1;
        }
        _ => {
            // Somebody with the number of an older lease, or without any, changes nothing.
            let stranger = person % PEOPLE as u32 + 1;
            assert!(driver.player.service.answer(serial, generation, stranger, bytes.clone()).is_err());
            assert!(driver.player.service.answer(serial, generation + 1, person, bytes.clone()).is_err());
            let input = driver.player.service.answer(serial, generation, person, bytes.clone()).unwrap();
            let number = driver.player.service.last() + 1;
            driver.people(Some(input.unwrap()));
            assert!(believed.answered.insert(serial), "question {serial} was answered twice");
            believed.given.push(number);
            // The same again is nothing new.
            assert_eq!(driver.player.service.answer(serial, generation, person, bytes).unwrap(), None);
        }
    }
}

/// An answer is taken back, if it can be.
fn take_back(driver: &mut Driver, believed: &mut Believed, prng: &mut Prng) {
    let first = believed.given.len().saturating_sub(KEPT);
    if believed.given.is_empty() {
        return;
    }
    let place = first + prng.below((believed.given.len() - first) as u64) as usize;
    let answer = believed.given.remove(place);
    match driver.player.service.undo(answer, 1, true) {
        Ok(Some(input)) => {
            driver.people(Some(input));
            believed.undone += 1;
        }
        Ok(None) => unreachable!("nobody has taken it back before"),
        Err(_) => believed.refused += 1,
    }
}

/// The process ends, and another one goes on from what was written.
fn kill(mut driver: Driver) -> Driver {
    driver.settle_rounds();
    driver.commit();
    let wanted = driver.player.service.encode();
    let Driver { log, world, open: waiting, .. } = driver;
    let opened = open(log.into_store(), testing::signer(), LogOptions::default()).unwrap();
    assert!(opened.rejected.is_empty(), "{:?}", opened.rejected);
    assert!(opened.player.service.encode() == wanted, "another state than before");
    Driver { log: opened.log, player: opened.player, world, open: waiting, lag: 0, is_harmful: false }
}

/// So many questions, and as many ends of the process.
fn storm(questions: u64, kills: u64, seed: u64) {
    let mut driver = overseen(Mode::Off);
    let (mut prng, mut believed) = (Prng::stream(seed, "storm"), Believed::default());
    (0..100).for_each(|_| driver.step());
    let created = |driver: &Driver| driver.player.service.people().counters().total_tasks_created;
    let mut killed = 0;
    while created(&driver) < questions {
        if prng.below(4) == 0 {
            driver.step();
        }
        let decision = driver.player.service.last().saturating_sub(prng.below(200));
        // Now and then several people are asked the same.
        let quorum = 1 + prng.below(6).saturating_sub(3) as u8;
        let _ = driver.ask(QuestionKind::LabelStep, prng.below(2) as u16, decision, quorum);
        (0..prng.below(4)).for_each(|_| act(&mut driver, &mut believed, &mut prng));
        if prng.below(16) == 0 {
            take_back(&mut driver, &mut believed, &mut prng);
        }
        if prng.below(64) == 0 {
            let open: Vec<_> = driver.player.service.people().table().open().cloned().collect();
            for question in open {
                let expired = driver.player.service.expire_lease(question.serial, question.generation);
                driver.people(expired);
            }
        }
        if killed * questions < kills * created(&driver) {
            killed += 1;
            driver = kill(driver);
        }
    }
    driver.settle_rounds();
    driver.commit();
    let people = driver.player.service.people();
    let (counters, open) = (people.counters(), people.table().open().count() as u64);
    assert_eq!(counters.total_tasks_completed, believed.answered.len() as u64);
    assert_eq!(counters.total_answers_undone, believed.undone);
    assert_eq!(
        counters.total_tasks_created,
        counters.total_tasks_completed + counters.total_tasks_skipped + open,
        "every question is answered, skipped or open"
    );
    assert!(believed.skipped <= counters.total_tasks_skipped && 0 < believed.refused);
    driver.assert_history();
}

#[test]
fn every_answer_counts_once_or_is_refused_and_the_history_plays_again() {
    storm(size("BEM_PEOPLE_QUESTIONS", 400), size("BEM_PEOPLE_KILLS", 4), 1);
}
