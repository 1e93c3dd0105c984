//! The human term of a patch's score: what is better by less than the threshold waits for an approval that adds what is
//! missing, and acts only then. Where nothing can be added, the same patch is refused as if nobody were there.

use super::people::{ALICE, BOB};
use super::*;
use bem_people::kinds::{Decision, Mode, QuestionKind};
use bem_people::payload::context::{Context, PatchContext};
use bem_people::payload::{Answer, ConfigAnswer, PatchAnswer};

/// A service whose gate asks for a score that hardly any change reaches, and that people watch over.
fn demanding(mode: Mode) -> Driver {
    let threshold = Fixed::from_ratio(9, 10);
    let parameters = GenesisConfig {
        improvement_threshold: threshold,
        improvement_threshold_min: threshold,
        improvement_threshold_max: threshold,
        ..GenesisConfig::default()
    };
    let config = ServiceConfig { parameters: Arc::new(parameters), ..config() };
    let mut driver = Driver::of(config, LogOptions::default());
    driver.control(|control| control.safety_override_mode = mode);
    driver.create(spec("ads", 1));
    driver
}

/// Two approvers let an approval count for more.
fn raise_weight(driver: &mut Driver, by: Fixed) {
    driver.ask(QuestionKind::AdjustConfig, 0, 0, 1).unwrap();
    let serial = driver.open_question(QuestionKind::AdjustConfig).unwrap().serial;
    let zero = Fixed::ZERO;
    let answer =
        Answer::Config(ConfigAnswer { deltas: [zero, zero, zero, zero, by], ..ConfigAnswer::default() });
    driver.answer(serial, ALICE, &answer);
    driver.answer(serial, BOB, &answer);
}

/// Steps until a change waits that needs an approval to reach the threshold; what is asked about it.
fn wait(driver: &mut Driver, steps: u64) -> Option<(u64, PatchContext)> {
    for _ in 0..steps {
        driver.step();
        let Some(held) = driver.standing(0).held() else { continue };
        let question = driver.player.service.people().table().get(held.question).unwrap().clone();
        let Ok(Context::Patch(shown)) = Context::from_bytes(question.kind, &question.context) else {
            unreachable!("a change that waits is asked about")
        };
        if Fixed::ZERO < shown.missing {
            return Some((question.serial, shown));
        }
        let approve = PatchAnswer { decision: Decision::Approve, risks: 0, weight: Fixed::ONE };
        driver.answer(question.serial, ALICE, &Answer::Patch(approve));
    }
    None
}

fn policy(driver: &Driver) -> Digest {
    driver.player.service.world(WorldIndex(0)).unwrap().acting().digest()
}

fn decide(decision: Decision, weight: Fixed) -> Answer {
    Answer::Patch(PatchAnswer { decision, risks: 0, weight })
}

#[test]
fn an_approval_adds_what_is_missing_and_without_it_the_same_change_never_acts() {
    // With no weight the gate decides alone, and so it does where nobody oversees it.
    let mut alone = demanding(Mode::Whitelist);
    alone.control(|control| control.human_weight_pox = Fixed::ZERO);
    assert_eq!(wait(&mut alone, 4_000), None, "nothing is short of the threshold and let in");
    let mut unseen = demanding(Mode::Off);
    assert_eq!(wait(&mut unseen, 4_000), None);
    let mut driver = demanding(Mode::RequireApproval);
    raise_weight(&mut driver, Fixed::HALF);
    raise_weight(&mut driver, Fixed::HALF);
    let (question, shown) = wait(&mut driver, 4_000).expect("something is better by less than the threshold");
    assert!(Fixed::ZERO <= shown.deltas[0], "it is measured to be no worse");
    let before = policy(&driver);
    (0..50).for_each(|_| driver.step());
    assert_eq!(policy(&driver), before, "nothing acts before it is approved");
    // An approval that counts for too little is refused, and the question stays open.
    let lease = driver.player.service.lease(question, ALICE, true).unwrap();
    driver.people(lease);
    let generation = driver.player.service.people().table().get(question).unwrap().generation;
    let faint = decide(Decision::Approve, Fixed::from_raw(1)).to_bytes();
    let refused = driver.player.service.answer(question, generation, ALICE, faint).unwrap_err();
    assert_eq!((refused.code, refused.field), ("below_threshold", "weight"));
    let answer = driver.answer(question, ALICE, &decide(Decision::Approve, Fixed::ONE));
    assert_ne!(policy(&driver), before, "approved, it acts");
    // The score with and without the approval is in the history, and the approval can be taken back.
    let given = &driver.player.service.people().given()[&answer];
    let score = given.changes.iter().find(|change| change.what.name() == "pox_score").unwrap();
    assert!(score.before < score.after);
    driver.undo(answer);
    assert_eq!(policy(&driver), before, "what was approved is taken back");
    driver.assert_history();
}

#[test]
fn what_is_short_of_the_threshold_is_gone_when_it_is_rejected_deferred_or_nobody_answers() {
    for decision in [Decision::Reject, Decision::Defer] {
        let mut driver = demanding(Mode::Warn);
        raise_weight(&mut driver, Fixed::HALF);
        raise_weight(&mut driver, Fixed::HALF);
        let (question, _) = wait(&mut driver, 4_000).expect("something is better by less than the threshold");
        let before = policy(&driver);
        driver.answer(question, ALICE, &decide(decision, Fixed::ONE));
        assert_eq!(policy(&driver), before);
        assert!(driver.standing(0).held().is_none());
        driver.assert_history();
    }
}
