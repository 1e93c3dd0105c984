//! People in a history: all five kinds of questions are asked, answered and applied; answers are taken back exactly; what
//! waits for an approval does not act; and the history is audited, played again and gone on with.

use super::*;
use crate::people::input::Ask;
use crate::people::standing::Standing;
use bem_base::encode::Writer;
use bem_people::control::Control;
use bem_people::kinds::{Decision, Mode, Priority, QuestionKind, Skip};
use bem_people::payload::context::Context;
use bem_people::payload::{Answer, ConfigAnswer, EpisodeAnswer, PatchAnswer, StepAnswer, TemplatesAnswer};
use bem_people::table::Question;

pub(super) const ALICE: u32 = 7;
pub(super) const BOB: u32 = 8;

impl Driver {
    pub(super) fn people(&mut self, input: Option<Input>) {
        input.into_iter().for_each(|input| self.take(input));
    }

    pub(super) fn control(&mut self, change: impl Fn(&mut Control)) {
        let mut control = *self.player.service.people().control();
        change(&mut control);
        let input = self.player.service.set_control(control, ALICE).unwrap();
        self.people(input);
    }

    pub(super) fn open_question(&self, kind: QuestionKind) -> Option<Question> {
        self.player.service.people().table().open().find(|open| open.kind == kind).cloned()
    }

    /// Leases and answers; the number of the answer.
    pub(super) fn answer(&mut self, serial: u64, person: u32, answer: &Answer) -> u64 {
        let lease = self.player.service.lease(serial, person, true).unwrap();
        self.people(lease);
        let generation = self.player.service.people().table().get(serial).unwrap().generation;
        let bytes = answer.to_bytes();
        let input = self.player.service.answer(serial, generation, person, bytes.clone()).unwrap();
        let number = self.player.service.last() + 1;
        self.people(Some(input.unwrap()));
        // The same again is nothing new, another one is refused.
        if self.player.service.people().given().contains_key(&number) {
            assert_eq!(self.player.service.answer(serial, generation, person, bytes).unwrap(), None);
        }
        number
    }

    pub(super) fn undo(&mut self, answer: u64) {
        let input = self.player.service.undo(answer, ALICE, true).unwrap();
        self.people(input);
        assert_eq!(self.player.service.undo(answer, ALICE, true).unwrap(), None);
    }

    pub(super) fn ask(
        &mut self,
        kind: QuestionKind,
        world: u16,
        target: u64,
        quorum: u8,
    ) -> Result<(), crate::service::Refusal> {
        let ask = Ask {
            kind,
            world,
            target,
            worlds: Vec::new(),
            priority: Priority::Normal,
            patience: 0,
            quorum,
            person: ALICE,
            words: "a test".to_string(),
        };
        let input = self.player.service.ask_people(ask)?;
        self.people(Some(input));
        Ok(())
    }

    /// An answer that says what is right in these worlds.
    pub(super) fn truth(&self, question: &Question) -> Answer {
        match Context::from_bytes(question.kind, &question.context).unwrap() {
            Context::Step(shown) => {
                let best = (shown.observation.0[0] & 3) as u16;
                let accept = best == shown.chosen;
                let allowed = shown.candidates.iter().any(|one| one.action == best);
                let score = if accept { Fixed::ONE } else { Fixed::ZERO };
                Answer::Step(StepAnswer {
                    accept,
                    best: Some(best).filter(|_| !accept && allowed),
                    score,
                    comment: 0,
                })
            }
            Context::Episode(_) => Answer::Episode(EpisodeAnswer { score: Fixed::ONE, keep: 1, tags: 0 }),
            Context::Patch(_) => {
                Answer::Patch(PatchAnswer { decision: Decision::Approve, risks: 0, weight: Fixed::ONE })
            }
            Context::Templates(shown) => Answer::Templates(TemplatesAnswer {
                order: (0..shown.templates.len() as u8).rev().collect(),
                scores: Vec::new(),
            }),
            Context::Config(_) => Answer::Config(ConfigAnswer::default()),
        }
    }

    pub(super) fn answer_all(&mut self, person: u32) {
        let open: Vec<Question> = self.player.service.people().table().open().cloned().collect();
        for question in open {
            if self.player.service.people().table().get(question.serial).is_some()
                && self.player.service.lease(question.serial, person, true).is_ok()
            {
                let answer = self.truth(&question);
                self.answer(question.serial, person, &answer);
            }
        }
    }

    /// The half that decides, as bytes.
    pub(super) fn acting(&self, world: u16) -> Vec<u8> {
        let mut writer = Writer::new();
        self.player.service.world(WorldIndex(world)).unwrap().acting().encode(&mut writer);
        writer.into_bytes()
    }

    pub(super) fn standing(&self, world: u16) -> &Standing {
        self.player.service.world(WorldIndex(world)).unwrap().standing()
    }
}

pub(super) fn overseen(mode: Mode) -> Driver {
    let mut driver = Driver::new();
    driver.control(|control| {
        control.enable_online = true;
        control.max_online_step_rate = 500;
        control.max_online_episode_rate = 2_000;
        control.safety_override_mode = mode;
    });
    driver.create(spec("ads", 1));
    driver.create(spec("visits", 3));
    driver
}

#[test]
fn all_five_kinds_are_asked_answered_and_applied_and_the_history_holds() {
    let mut driver = overseen(Mode::Whitelist);
    for step in 0..4_000u64 {
        driver.step();
        if step % 40 == 0 {
            driver.answer_all(if step % 80 == 0 { ALICE } else { BOB });
        }
    }
    driver.ask(QuestionKind::RankTemplates, 0, 0, 1).unwrap();
    driver.ask(QuestionKind::AdjustConfig, 0, 0, 1).unwrap();
    driver.answer_all(ALICE);
    driver.settle_rounds();
    driver.answer_all(ALICE);
    driver.commit();
    let service = &driver.player.service;
    let counters = service.people().counters();
    for (name, count) in counters.named() {
        let may_be_zero = [
            "total_tasks_dropped",
            "total_answers_undone",
            "total_tasks_skipped",
            "total_tasks_rate_limited",
        ]
        .contains(&name);
        assert!(0 < count || may_be_zero, "{name}");
    }
    assert!(0 < service.world(WorldIndex(0)).unwrap().statistics().applied);
    // Of questions about steps there were no more than the rate allows.
    assert!(counters.total_step_feedback_used <= 4_200 * 500 / 10_000 + 60, "{counters:?}");
    let wanted = service.encode();
    driver.log.write_snapshot(driver.player.service.last(), parts(&driver.player.service), 2).unwrap();
    let mut store = driver.log.into_store();
    let report = audit(&mut store, None, &mut ServiceConditions::new()).unwrap();
    assert_eq!(report.verdict, AuditVerdict::Unanchored, "{report:?}");
    let again = replay(&mut store, None, &mut |_, _| {}).unwrap();
    assert_eq!(again.encode(), wanted);
    let opened = open(store, testing::signer(), LogOptions::default()).unwrap();
    assert!(opened.rejected.is_empty(), "{:?}", opened.rejected);
    assert_eq!(opened.player.service.encode(), wanted);
}

#[test]
fn what_waits_does_not_act_and_an_approval_can_be_taken_back() {
    let mut driver = overseen(Mode::Whitelist);
    let policy = |driver: &Driver| driver.player.service.world(WorldIndex(0)).unwrap().acting().digest();
    let first = policy(&driver);
    let wait = |driver: &mut Driver| {
        for _ in 0..6_000 {
            driver.step();
            if driver.standing(0).held().is_some() {
                break;
            }
        }
        driver.standing(0).held().expect("something was learned").question
    };
    let question = wait(&mut driver);
    (0..50).for_each(|_| driver.step());
    assert_eq!(policy(&driver), first, "nothing acts without its approval");
    let decide = |decision| Answer::Patch(PatchAnswer { decision, risks: 0, weight: Fixed::ONE });
    let approved = driver.answer(question, ALICE, &decide(Decision::Approve));
    assert_ne!(policy(&driver), first);
    driver.undo(approved);
    assert_eq!(policy(&driver), first, "what was approved is taken back");
    // A policy that was rejected is not put into force again.
    let question = wait(&mut driver);
    let now = policy(&driver);
    driver.answer(question, ALICE, &decide(Decision::Reject));
    assert_eq!(policy(&driver), now);
    driver.assert_history();
}

#[test]
fn a_group_is_blind_and_a_conflict_goes_to_an_approver() {
    let mut driver = Driver::new();
    driver.create(spec("ads", 1));
    (0..60).for_each(|_| driver.step());
    let decision = (1..driver.player.service.last())
        .rev()
        .find(|number| driver.player.service.world(WorldIndex(0)).unwrap().decision(*number).is_some())
        .unwrap();
    driver.ask(QuestionKind::LabelStep, 0, decision, 2).unwrap();
    let asked: Vec<u64> = driver.player.service.people().table().open().map(|open| open.serial).collect();
    assert_eq!(asked.len(), 2);
    let said = |accept| Answer::Step(StepAnswer { accept, best: None, score: Fixed::ONE, comment: 0 });
    driver.answer(asked[0], ALICE, &said(true));
    assert!(driver.standing(0).labels().is_empty(), "one of two is not enough");
    assert!(driver.player.service.lease(asked[1], ALICE, true).is_err(), "nobody answers twice");
    driver.answer(asked[1], BOB, &said(false));
    assert!(driver.standing(0).labels().is_empty(), "they disagree");
    let conflict = driver.open_question(QuestionKind::LabelStep).unwrap();
    assert!(driver.player.service.lease(conflict.serial, 9, false).is_err(), "only an approver settles it");
    driver.answer(conflict.serial, 9, &said(true));
    assert_eq!(driver.standing(0).labels().len(), 1);
}

#[test]
fn loosening_safety_needs_two_people_and_has_a_limit() {
    let mut driver = overseen(Mode::Whitelist);
    let set =
        |mode| Answer::Config(ConfigAnswer { safety_override_mode: Some(mode), ..ConfigAnswer::default() });
    let mode = |driver: &Driver| driver.player.service.people().control().safety_override_mode;
    let loosened = Control { safety_override_mode: Mode::Off, ..*driver.player.service.people().control() };
    assert!(driver.player.service.set_control(loosened, ALICE).is_err(), "not by the owner alone");
    for step in [Mode::RequireApproval, Mode::Warn] {
        driver.ask(QuestionKind::AdjustConfig, 0, 0, 1).unwrap();
        let serial = driver.open_question(QuestionKind::AdjustConfig).unwrap().serial;
        let before = mode(&driver);
        driver.answer(serial, ALICE, &set(step));
        assert_eq!(mode(&driver), before, "one person is not enough");
        assert!(
            driver.player.service.lease(serial, ALICE, true).is_err(),
            "the same person is not a second one"
        );
        driver.answer(serial, BOB, &set(step));
        assert_eq!(mode(&driver), step);
    }
    driver.ask(QuestionKind::AdjustConfig, 0, 0, 1).unwrap();
    let question = driver.open_question(QuestionKind::AdjustConfig).unwrap();
    let lease = driver.player.service.lease(question.serial, ALICE, true).unwrap();
    driver.people(lease);
    let refused =
        driver.player.service.answer(question.serial, 1, ALICE, set(Mode::Off).to_bytes()).unwrap_err();
    assert_eq!(refused.code, "drift_limit");
    // Tightening is always possible, and its undo would loosen.
    let tightened = driver.answer(question.serial, ALICE, &set(Mode::Whitelist));
    assert_eq!(mode(&driver), Mode::Whitelist);
    assert_eq!(driver.player.service.undo(tightened, ALICE, true).unwrap_err().code, "cannot_be_undone");
}

#[test]
fn late_leases_skips_and_deadlines_leave_nothing_behind() {
    let mut driver = overseen(Mode::Whitelist);
    (0..3_000).for_each(|_| driver.step());
    let open: Vec<u64> = driver.player.service.people().table().open().map(|open| open.serial).collect();
    let mut prng = Prng::stream(5, "leases");
    for serial in open {
        let Ok(lease) = driver.player.service.lease(serial, ALICE, true) else { continue };
        driver.people(lease);
        let question = driver.player.service.people().table().get(serial).unwrap().clone();
        match prng.below(3) {
            0 => {
                let expired = driver.player.service.expire_lease(serial, question.generation);
                driver.people(expired);
                assert_eq!(driver.player.service.expire_lease(serial, question.generation), None);
                let answer = driver.truth(&question).to_bytes();
                let late =
                    driver.player.service.answer(serial, question.generation, ALICE, answer).unwrap_err();
                assert_eq!(late.code, "lease_lost");
            }
            1 => {
                let skip =
                    driver.player.service.skip(serial, question.generation, ALICE, Skip::Declined).unwrap();
                driver.people(Some(skip));
                assert!(driver.player.service.people().table().get(serial).is_none());
            }
            _ => {
                let release = driver.player.service.release(serial, question.generation, ALICE).unwrap();
                driver.people(Some(release));
            }
        }
    }
    driver.take(Input::Forget { world: WorldIndex(0) });
    let people = driver.player.service.people();
    let about = |question: &Question| Context::from_bytes(question.kind, &question.context).unwrap().world();
    assert!(people.table().open().all(|question| about(question) != Some(0)), "its world is gone");
    driver.settle_rounds();
    driver.commit();
    let wanted = driver.player.service.encode();
    let mut store = driver.log.into_store();
    audit(&mut store, None, &mut ServiceConditions::new()).unwrap();
    assert_eq!(replay(&mut store, None, &mut |_, _| {}).unwrap().encode(), wanted);
}

/// What a scripted person says.
#[derive(Clone, Copy, PartialEq)]
enum Rater {
    Nobody,
    /// Right in so many of ten answers.
    Right(u64),
}

/// Mean reward, in milli-units, of a served bandit with 32 actions, of which one pays 0.6 and all others 0.4. One label at most for every 100 steps, about a step at least 1,000 inputs old.
fn earned(seed: u64, rater: Rater) -> u64 {
    let (actions, steps) = (32u64, 8_000u64);
    let mut driver = Driver::new();
    driver.player.service = Service::new(ServiceConfig { seed, ..config() });
    let best = (seed * 13 + 5) % actions;
    let shape = WorldSpec::shape_of(1, actions as u16, 1, (0, 1_000), Vec::new());
    let (min_propensity, forbidden) = (Fixed::ZERO, Vec::new());
    let (name, note) = ("bandit".to_string(), String::new());
    driver.create(WorldSpec {
        name,
        shape,
        min_propensity,
        expire_after: 60_000,
        forbidden,
        note,
        floor: None,
    });
    let (mut prng, mut total, mut past) = (Prng::stream(seed, "bandit"), 0, Vec::new());
    for step in 0..steps {
        let world = WorldIndex(0);
        let input = driver.player.service.ask(world, Bits::ZERO, "").unwrap();
        let number = driver.player.service.last() + 1;
        let effect = driver.player.service.apply(&input, None).unwrap();
        let Effect::Decided(_, choice) = effect else { unreachable!("a decision decides") };
        let pays = prng.below(10) < if u64::from(choice.action) == best { 6 } else { 4 };
        let outcome = Outcome { reward: if pays { 1_000 } else { 0 }, done: true, bad: false };
        total += u64::from(pays) * 1_000;
        let input = driver.player.service.reward(world, number, outcome).unwrap().unwrap();
        driver.player.service.apply(&input, None).unwrap();
        past.push(number);
        driver.rounds();
        if let Rater::Right(right) = rater
            && step % 100 == 99
            && 1_000 < step
        {
            driver.label(past[step as usize - 1_000], best, prng.below(10) < right);
        }
    }
    total / steps
}

impl Driver {
    /// Rounds without the ledger.
    fn rounds(&mut self) {
        if let Some(input) = self.player.service.due_round() {
            let Effect::Began(job) = self.player.service.apply(&input, None).unwrap() else {
                unreachable!("a round begins")
            };
            self.player.service.apply(&Input::Publish { world: WorldIndex(0) }, Some(job.work())).unwrap();
        }
    }

    fn label(&mut self, decision: u64, best: u64, is_right: bool) {
        let ask = Ask {
            kind: QuestionKind::LabelStep,
            world: 0,
            target: decision,
            worlds: Vec::new(),
            priority: Priority::Normal,
            patience: 0,
            quorum: 1,
            person: ALICE,
            words: String::new(),
        };
        let apply = |service: &mut Service, input: Input| drop(service.apply(&input, None).unwrap());
        let service = &mut self.player.service;
        let asked = service.ask_people(ask).unwrap();
        apply(service, asked);
        let question = service.people().table().open().next().unwrap().clone();
        let leased = service.lease(question.serial, ALICE, true).unwrap().unwrap();
        apply(service, leased);
        let Context::Step(shown) = Context::from_bytes(question.kind, &question.context).unwrap() else {
            unreachable!("a question about a step shows one")
        };
        // Only what is shown can be named.
        let is_shown = |action: u64| shown.candidates.iter().any(|one| u64::from(one.action) == action);
        let wrong = shown.candidates.iter().map(|one| u64::from(one.action)).find(|action| *action != best);
        let named = if is_right { Some(best).filter(|best| is_shown(*best)) } else { wrong };
        let accept = is_right == (u64::from(shown.chosen) == best);
        let answer = Answer::Step(StepAnswer {
            accept,
            best: named.map(|action| action as u16).filter(|action| *action != shown.chosen),
            score: if accept { Fixed::ONE } else { Fixed::ZERO },
            comment: 0,
        });
        let answered = service.answer(question.serial, 1, ALICE, answer.to_bytes()).unwrap().unwrap();
        apply(service, answered);
    }
}

#[test]
fn a_liar_costs_a_service_little() {
    // What exploration draws is not for people to say, and what is let in rests on rewards.
    let mean = |rater: Rater| (1..=3).map(|seed| earned(seed, rater)).sum::<u64>() / 3;
    let (nobody, liar) = (mean(Rater::Nobody), mean(Rater::Right(0)));
    assert!(nobody < liar + 30, "{nobody} without people, {liar} with a liar");
}
