//! Takes decisions of a service beside people's questions and says nothing: for counting instructions.
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*counted_step*' people_count STEPS [off | on | full]
//! ```
//!
//! `off` asks nobody; `on` asks about steps, and somebody skips what is asked; `full` asks until every place of the table is
//! taken, and nobody looks. Only [`counted_step`] is counted, a decision from the input to what it brings; or [`counted_reward`],
//! after which it is looked at whether people are asked. Clauses: HUM-10.

use bem_base::environment::{Bits, Outcome};
use bem_base::fixed::Fixed;
use bem_people::OPEN_MAX;
use bem_people::control::Control;
use bem_people::kinds::Skip;
use bem_runtime::input::{Input, WorldIndex, WorldSpec};
use bem_runtime::service::{Service, ServiceConfig};
use std::hint::black_box;
use std::sync::Arc;

const PERSON: u32 = 7;
/// Questions that are left open where somebody looks.
const LEFT: usize = 8;

/// One decision, and nothing of people's.
#[inline(never)]
fn counted_step(service: &mut Service, input: &Input) {
    black_box(service.apply(input, None)).expect("a decision takes effect");
}

/// One reward, and the look at what came of the decision.
#[inline(never)]
fn counted_reward(service: &mut Service, input: Option<Input>) {
    take(service, black_box(input));
}

fn take(service: &mut Service, input: Option<Input>) {
    if let Some(input) = input {
        service.apply(&input, None).expect("what was checked takes effect");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let steps: u64 = words.first().map_or(1_000, |text| text.parse().expect("a whole number of steps"));
    let how = words.get(1).map_or("off", String::as_str);
    let mut service = Service::new(ServiceConfig { seed: 1, parameters: Arc::default() });
    let control = Control {
        enable_online: how != "off",
        max_online_step_rate: if how == "full" { 10_000 } else { 100 },
        max_pending_tasks: OPEN_MAX as u16,
        min_confidence_for_auto: Fixed::ONE,
        ..Control::default()
    };
    let input = service.set_control(control, PERSON).expect("a control");
    take(&mut service, input);
    let shape = WorldSpec::shape_of(4, 4, 1, (0, 1_000), Vec::new());
    let spec = WorldSpec {
        name: "counted".to_string(),
        shape,
        min_propensity: Fixed::ZERO,
        expire_after: 1_000,
        forbidden: Vec::new(),
        note: String::new(),
        floor: None,
    };
    let input = service.create(spec).expect("a world");
    take(&mut service, input);
    let world = WorldIndex(0);
    for step in 0..steps {
        let observation = Bits([step * 7 % 16, 0, 0, 0]);
        let input = service.ask(world, observation, "").expect("a decision");
        counted_step(&mut service, &input);
        let outcome = Outcome { reward: (step % 2 * 1_000) as i32, done: true, bad: false };
        let rewarded = service.reward(world, service.last(), outcome).expect("a reward");
        counted_reward(&mut service, rewarded);
        if how == "on" {
            let open: Vec<u64> = service.people().table().open().map(|one| one.serial).collect();
            for serial in open.into_iter().skip(LEFT) {
                let leased = service.lease(serial, PERSON, true).expect("nobody has it");
                take(&mut service, leased);
                let generation = service.people().table().get(serial).expect("it is open").generation;
                let skipped = service.skip(serial, generation, PERSON, Skip::Declined).expect("its lease");
                take(&mut service, Some(skipped));
            }
        }
        if how == "full" && service.people().table().open().count() < OPEN_MAX {
            let ask = bem_runtime::people::input::Ask {
                kind: bem_people::kinds::QuestionKind::LabelStep,
                world: 0,
                target: service.last() - 1,
                worlds: Vec::new(),
                priority: bem_people::kinds::Priority::Low,
                patience: 0,
                quorum: 1,
                person: PERSON,
                words: String::new(),
            };
            if let Ok(input) = service.ask_people(ask) {
                take(&mut service, Some(input));
            }
        }
    }
}
