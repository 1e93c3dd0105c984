//! The mode WARN, in which changes take effect and people are asked afterwards, and what the machine asks when something BAD
//! happens.

use super::people::{ALICE, overseen};
use super::*;
use crate::people::oversight::{RISK_BAD, RISK_TAGGED};
use bem_people::kinds::{Decision, Mode, Priority, QuestionKind};
use bem_people::payload::context::{Context, PatchContext};
use bem_people::payload::{Answer, PatchAnswer, TAG_SAFETY};
use bem_people::table::Question;

fn policy(driver: &Driver) -> Digest {
    driver.player.service.world(WorldIndex(0)).unwrap().acting().digest()
}

fn decide(decision: Decision) -> Answer {
    Answer::Patch(PatchAnswer { decision, risks: 0, weight: Fixed::ONE })
}

fn shown(question: &Question) -> PatchContext {
    match Context::from_bytes(question.kind, &question.context) {
        Ok(Context::Patch(shown)) => shown,
        other => unreachable!("{other:?}"),
    }
}

/// Steps until a change of the first world has taken effect that people are asked about, and no round is under way; the policy
/// before and the question.
fn warned(driver: &mut Driver) -> (Digest, Question) {
    let known = driver.player.service.last();
    for _ in 0..8_000 {
        let before = policy(driver);
        driver.step();
        let open = driver.player.service.people().table().open();
        let asked = open.filter(|open| open.kind == QuestionKind::ApprovePatch && known < open.created);
        let mut asked = asked.filter(|open| shown(open).task == 0);
        if let Some(question) = asked.next().cloned() {
            assert!(shown(&question).in_force);
            assert_ne!(policy(driver), before, "it acts before anybody has answered");
            return (before, question);
        }
    }
    unreachable!("nothing was learned")
}

/// A person takes up a question and is told that this answer is not possible.
fn refused(driver: &mut Driver, question: &Question, decision: Decision) -> &'static str {
    let lease = driver.player.service.lease(question.serial, ALICE, true).unwrap();
    driver.people(lease);
    let generation = driver.player.service.people().table().get(question.serial).unwrap().generation;
    let bytes = decide(decision).to_bytes();
    driver.player.service.answer(question.serial, generation, ALICE, bytes).unwrap_err().code
}

#[test]
fn a_change_in_force_that_is_rejected_is_taken_back_and_stays_out_until_that_is_undone() {
    let mut driver = overseen(Mode::Warn);
    let (before, question) = warned(&mut driver);
    let change = policy(&driver);
    let rejected = driver.answer(question.serial, ALICE, &decide(Decision::Reject));
    assert_eq!(policy(&driver), before, "it is taken back");
    let given = &driver.player.service.people().given()[&rejected];
    let told = given.changes.iter().find(|change| change.what.name() == "policy").unwrap();
    assert_ne!(told.before, told.after);
    let content = crate::people::oversight::content(WorldIndex(0), &change);
    assert_eq!(driver.player.service.people().judgement(&content), Some(false));
    for _ in 0..1_500 {
        driver.step();
        assert_ne!(policy(&driver), change, "what was rejected does not act again");
    }
    driver.undo(rejected);
    assert_eq!(driver.player.service.people().judgement(&content), None, "it may come in again");
    driver.assert_history();
}

#[test]
fn an_approval_of_what_is_in_force_can_be_taken_back_and_leaves_it_in_force() {
    let mut driver = overseen(Mode::Warn);
    let (_, question) = warned(&mut driver);
    let change = policy(&driver);
    let content = crate::people::oversight::content(WorldIndex(0), &change);
    let approved = driver.answer(question.serial, ALICE, &decide(Decision::Approve));
    assert_eq!(driver.player.service.people().judgement(&content), Some(true));
    driver.undo(approved);
    assert_eq!(driver.player.service.people().judgement(&content), None);
    assert_eq!(policy(&driver), change);
    driver.assert_history();
}

#[test]
fn nothing_is_said_to_be_rejected_that_cannot_be_taken_back() {
    let mut driver = overseen(Mode::Warn);
    let (_, first) = warned(&mut driver);
    // While a round is under way nothing can be taken back.
    while !driver.player.service.world(WorldIndex(0)).unwrap().is_searching() {
        driver.step();
        assert!(driver.player.service.last() < 20_000, "no round begins");
    }
    assert_eq!(refused(&mut driver, &first, Decision::Reject), "round_under_way");
    let generation = driver.player.service.people().table().get(first.serial).unwrap().generation;
    let released = driver.player.service.release(first.serial, generation, ALICE).unwrap();
    driver.people(Some(released));
    // A later change has taken its place.
    let (_, later) = warned(&mut driver);
    assert_ne!(later.serial, first.serial);
    assert_eq!(refused(&mut driver, &first, Decision::Reject), "gone");
    let generation = driver.player.service.people().table().get(first.serial).unwrap().generation;
    let bytes = decide(Decision::Approve).to_bytes();
    assert!(driver.player.service.answer(first.serial, generation, ALICE, bytes).is_err());
    let bytes = decide(Decision::Defer).to_bytes();
    let deferred = driver.player.service.answer(first.serial, generation, ALICE, bytes).unwrap();
    driver.people(deferred);
    driver.assert_history();
}

/// Worlds in which what earns nothing is BAD. Nothing is forbidden, so that BAD alone makes a change critical.
fn harmful(mode: Mode) -> Driver {
    let mut driver = Driver::new();
    driver.is_harmful = true;
    driver.control(|control| {
        control.enable_online = true;
        control.max_online_step_rate = 500;
        control.max_online_episode_rate = 2_000;
        control.min_confidence_for_auto = Fixed::ZERO;
        control.safety_override_mode = mode;
    });
    for (name, horizon) in [("ads", 1), ("visits", 3)] {
        driver.create(WorldSpec { forbidden: Vec::new(), ..spec(name, horizon) });
    }
    driver
}

#[test]
fn what_is_bad_is_asked_about_first_and_raises_an_alarm() {
    let mut driver = harmful(Mode::Off);
    let (mut steps, mut episodes, mut alarm) = (0, 0, None);
    for _ in 0..1_500 {
        driver.step();
        let open: Vec<Question> = driver.player.service.people().table().open().cloned().collect();
        for question in open {
            match Context::from_bytes(question.kind, &question.context).unwrap() {
                Context::Step(shown) if shown.bad => {
                    assert_eq!(question.priority, Priority::High);
                    steps += 1;
                }
                Context::Episode(shown) if shown.flags & 1 == 1 => {
                    assert_eq!(question.priority, Priority::High);
                    episodes += 1;
                }
                Context::Config(shown) => alarm = Some((question.priority, shown.words)),
                _ => {}
            }
        }
    }
    assert!(0 < steps && 0 < episodes, "{steps} steps and {episodes} episodes");
    assert!(0 < driver.player.service.people().counters().total_tasks_rate_limited);
    let (priority, words) = alarm.expect("the alarm asks whether changes should be overseen");
    assert_eq!(priority, Priority::Critical);
    assert!(words.contains("BAD"), "{words}");
    driver.assert_history();
}

#[test]
fn where_something_bad_has_happened_a_change_is_critical_and_waits() {
    let mut driver = harmful(Mode::RequireApproval);
    for _ in 0..8_000 {
        driver.step();
        if let Some(held) = driver.standing(0).held() {
            let question = driver.player.service.people().table().get(held.question).unwrap();
            assert_eq!(shown(question).risks & RISK_BAD, RISK_BAD);
            driver.assert_history();
            return;
        }
    }
    unreachable!("no change was asked about");
}

#[test]
fn an_episode_that_somebody_calls_unsafe_makes_changes_of_its_world_critical() {
    let mut driver = Driver::new();
    driver.control(|control| control.safety_override_mode = Mode::RequireApproval);
    driver.create(WorldSpec { forbidden: Vec::new(), ..spec("ads", 1) });
    (0..45).for_each(|_| driver.step());
    let first = driver.standing(0).recent.back().unwrap().first;
    driver.ask(QuestionKind::ScoreEpisode, 0, first, 1).unwrap();
    let serial = driver.open_question(QuestionKind::ScoreEpisode).unwrap().serial;
    let unsafe_one = bem_people::payload::EpisodeAnswer { score: Fixed::ZERO, keep: 1, tags: TAG_SAFETY };
    let tagged = driver.answer(serial, ALICE, &Answer::Episode(unsafe_one));
    assert!(driver.player.service.people().is_tagged(0));
    for _ in 0..8_000 {
        driver.step();
        let Some(held) = driver.standing(0).held() else { continue };
        let question = driver.player.service.people().table().get(held.question).unwrap();
        assert_eq!(shown(question).risks & (RISK_TAGGED | RISK_BAD), RISK_TAGGED);
        driver.undo(tagged);
        assert!(!driver.player.service.people().is_tagged(0));
        driver.assert_history();
        return;
    }
    unreachable!("no change was asked about");
}

#[test]
fn rounds_that_bring_nothing_make_the_machine_ask_what_to_learn_first() {
    let mut driver = overseen(Mode::Off);
    for _ in 0..12_000 {
        driver.step();
        if let Some(question) = driver.open_question(QuestionKind::RankTemplates) {
            assert_eq!(question.priority, Priority::Low);
            assert!(matches!(
                Context::from_bytes(question.kind, &question.context),
                Ok(Context::Templates(shown)) if shown.templates.len() == 2
            ));
            return;
        }
    }
    unreachable!("no round was without a change three times in a row");
}

#[test]
fn an_episode_that_serves_the_curriculum_only_still_counts_there() {
    let mut driver = overseen(Mode::Off);
    (0..400).for_each(|_| driver.step());
    let rate = |driver: &Driver| match driver.player.service.templates_context(&[]).unwrap() {
        Context::Templates(shown) => shown.templates[1].pass_rate,
        other => unreachable!("{other:?}"),
    };
    let of_one = |keep: u8| {
        let mut driver = overseen(Mode::Off);
        (0..400).for_each(|_| driver.step());
        let best = driver.standing(1).recent.iter().max_by_key(|recent| recent.total).unwrap().first;
        driver.ask(QuestionKind::ScoreEpisode, 1, best, 1).unwrap();
        let asked = driver.player.service.people().table().open().filter(|open| open.target == best);
        let serial = asked.last().unwrap().serial;
        let answer = bem_people::payload::EpisodeAnswer { score: Fixed::ONE, keep, tags: 0 };
        driver.answer(serial, ALICE, &Answer::Episode(answer));
        rate(&driver)
    };
    assert_eq!(of_one(2), rate(&driver), "it is not learned from and counts where worlds are ranked");
    assert!(of_one(0) < rate(&driver), "what was thrown away counts nowhere");
}
