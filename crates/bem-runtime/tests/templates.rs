//! Templates that the machine takes up by itself, under the whitelist: nothing is learned in them until somebody approves. Clause:
//! HUM-8; decision D-211.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its world has failed")]

use bem_base::environment::{Bits, Outcome};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_people::control::Control;
use bem_people::kinds::{Decision, Mode, QuestionKind};
use bem_people::payload::context::Context;
use bem_people::payload::{Answer, PatchAnswer};
use bem_runtime::input::{Input, OWN_NOTE, WorldIndex, WorldSpec};
use bem_runtime::people::templates::is_template;
use bem_runtime::service::{Effect, Service, ServiceConfig};
use std::sync::Arc;

const ALICE: u32 = 7;
const RUNG: WorldIndex = WorldIndex(0);

/// A service with one world, and every input that it got.
struct Desk {
    service: Service,
    inputs: Vec<Input>,
    prng: Prng,
}

fn service() -> Service {
    Service::new(ServiceConfig { seed: 1, parameters: Arc::default() })
}

/// Lets an input take effect; a round is worked on at once.
fn take(service: &mut Service, input: &Input) {
    if let Effect::Began(job) = service.apply(input, None).unwrap() {
        let world = job.world;
        service.apply(&Input::Publish { world }, Some(job.work())).unwrap();
    }
}

impl Desk {
    fn new(mode: Mode, note: &str) -> Desk {
        let mut desk = Desk { service: service(), inputs: Vec::new(), prng: Prng::stream(1, "templates") };
        let control = Control { safety_override_mode: mode, ..Control::default() };
        let input = desk.service.set_control(control, ALICE).unwrap();
        desk.take(input);
        let spec = WorldSpec {
            name: "rung".to_string(),
            shape: WorldSpec::shape_of(4, 4, 1, (0, 1_000), Vec::new()),
            min_propensity: Fixed::ZERO,
            expire_after: 300,
            forbidden: Vec::new(),
            note: note.to_string(),
            floor: None,
        };
        let input = desk.service.create(spec).unwrap();
        desk.take(input);
        desk
    }

    fn take(&mut self, input: Option<Input>) {
        if let Some(input) = input {
            take(&mut self.service, &input);
            self.inputs.push(input);
        }
    }

    fn step(&mut self) {
        let seen = self.prng.below(16);
        let input = self.service.ask(RUNG, Bits([seen, 0, 0, 0]), "").unwrap();
        let number = self.service.last() + 1;
        self.inputs.push(input.clone());
        let Effect::Decided(_, choice) = self.service.apply(&input, None).unwrap() else {
            unreachable!("a decision decides")
        };
        let reward = if u64::from(choice.action) == seen & 3 { 1_000 } else { 0 };
        let outcome = Outcome { reward, done: true, bad: false };
        let input = self.service.reward(RUNG, number, outcome).unwrap();
        self.take(input);
        let due = self.service.due_round();
        self.take(due);
    }

    fn steps(&mut self, count: u32) {
        (0..count).for_each(|_| self.step());
    }

    /// Whether a round was worked on: it took effect, or what it changes waits for an approval of its own.
    fn is_learned(&self) -> bool {
        let world = self.service.world(RUNG).unwrap();
        0 < world.statistics().rounds || world.standing().held().is_some()
    }

    /// The open question about the template.
    fn asked(&self) -> Option<u64> {
        let mut open = self.service.people().table().open();
        let is_asked = |kind: QuestionKind, context: &[u8]| match Context::from_bytes(kind, context).unwrap()
        {
            Context::Patch(shown) => is_template(&shown),
            _ => false,
        };
        open.find(|open| is_asked(open.kind, &open.context)).map(|open| open.serial)
    }

    /// Leases the question and decides; the number of the answer.
    fn decide(&mut self, question: u64, decision: Decision) -> u64 {
        let lease = self.service.lease(question, ALICE, true).unwrap();
        self.take(lease);
        let generation = self.service.people().table().get(question).unwrap().generation;
        let answer = Answer::Patch(PatchAnswer { decision, risks: 0, weight: Fixed::ONE }).to_bytes();
        let input = self.service.answer(question, generation, ALICE, answer).unwrap();
        let number = self.service.last() + 1;
        self.take(input);
        number
    }

    fn undo(&mut self, answer: u64) {
        let input = self.service.undo(answer, ALICE, true).unwrap();
        self.take(input);
    }
}

#[test]
fn a_template_of_the_machines_own_is_learned_only_when_somebody_approves_it() {
    // Without the whitelist it is learned at once.
    let own = format!("{OWN_NOTE}a test");
    let mut free = Desk::new(Mode::RequireApproval, &own);
    free.steps(300);
    assert!(free.is_learned() && free.asked().is_none());
    let mut desk = Desk::new(Mode::Whitelist, &own);
    desk.steps(300);
    let first = desk.asked().expect("the machine asks");
    assert!(!desk.is_learned(), "nothing is learned without an approval");
    desk.decide(first, Decision::Defer);
    assert_eq!(desk.asked(), None);
    desk.steps(300);
    let second = desk.asked().expect("what was deferred is asked about when more was played");
    assert!(first < second && !desk.is_learned());
    let approved = desk.decide(second, Decision::Approve);
    desk.steps(300);
    assert!(desk.is_learned(), "what was approved is learned");
    desk.undo(approved);
    assert!(!desk.service.may_learn(RUNG), "an approval that is taken back ends it");
    // The same inputs bring the same.
    let mut again = service();
    desk.inputs.iter().for_each(|input| take(&mut again, input));
    assert_eq!(again.encode(), desk.service.encode());
}

#[test]
fn a_template_that_somebody_rejected_is_not_learned_and_not_asked_about_again() {
    let mut desk = Desk::new(Mode::Whitelist, &format!("{OWN_NOTE}a test"));
    desk.steps(300);
    let question = desk.asked().expect("the machine asks");
    let rejected = desk.decide(question, Decision::Reject);
    desk.steps(600);
    assert!(desk.asked().is_none() && !desk.is_learned());
    assert!(desk.service.is_turned_away(RUNG));
    desk.undo(rejected);
    desk.steps(10);
    assert!(desk.asked().is_some(), "a rejection that is taken back leaves the question");
}

#[test]
fn a_world_that_somebody_makes_is_approved_by_being_made() {
    let mut desk = Desk::new(Mode::Whitelist, "");
    desk.steps(300);
    assert!(desk.is_learned() && desk.asked().is_none());
}
