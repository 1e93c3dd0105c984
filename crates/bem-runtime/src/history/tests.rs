//! Histories of a service that is driven without threads: audited, played again, gone on with.

mod approval;
mod control;
mod groups;
mod many;
mod people;
mod restored;
mod storm;
mod undo;
mod warned;

use super::*;
use crate::conditions::ServiceConditions;
use crate::input::{WorldIndex, WorldSpec};
use crate::service::{Effect, RefusalKind};
use bem_base::environment::{Bits, Forbidden, Outcome};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::store::MemoryStore;
use bem_ledger::testing;
use bem_machine::config::GenesisConfig;
use std::sync::Arc;

pub(super) fn config() -> ServiceConfig {
    ServiceConfig { seed: 5, parameters: Arc::new(GenesisConfig::default()) }
}

pub(super) fn spec(name: &str, horizon: u32) -> WorldSpec {
    WorldSpec {
        name: name.to_string(),
        shape: WorldSpec::shape_of(4, 4, horizon, (0, 1_000), Vec::new()),
        min_propensity: Fixed::from_ratio(1, 100),
        expire_after: 300,
        forbidden: vec![Forbidden::whole(Bits([9, 0, 0, 0]), 3)],
        note: String::new(),
        floor: None,
    }
}

/// How much of something is tried: a battery says so, or it is little.
#[expect(clippy::disallowed_methods, reason = "a battery tries more than a test")]
fn size(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A service that is driven as the application does it, without threads.
pub(super) struct Driver {
    pub(super) log: Log<MemoryStore>,
    pub(super) player: Player,
    world: Prng,
    /// Decisions whose outcome is still to be said: world, number, outcome.
    open: Vec<(WorldIndex, u64, Outcome)>,
    pub(super) lag: u64,
    /// Whether what earns nothing is BAD.
    pub(super) is_harmful: bool,
}

impl Driver {
    fn new() -> Driver {
        Driver::with(LogOptions::default())
    }

    pub(super) fn with(options: LogOptions) -> Driver {
        Driver::of(config(), options)
    }

    fn of(config: ServiceConfig, options: LogOptions) -> Driver {
        let store = MemoryStore::new();
        let opened = create(store, testing::signer(), "test", config, options).unwrap();
        let (log, player) = (opened.log, opened.player);
        Driver { log, player, world: Prng::stream(1, "driver"), open: Vec::new(), lag: 0, is_harmful: false }
    }

    pub(super) fn take(&mut self, input: Input) {
        self.player.take(&mut LogSink(&mut self.log), input).unwrap();
    }

    pub(super) fn create(&mut self, spec: WorldSpec) {
        let input = self.player.service.create(spec).unwrap().unwrap();
        self.take(input);
    }

    /// Asks for a decision in one of the worlds and says outcomes late, out of order, and not all of them.
    pub(super) fn step(&mut self) {
        let worlds: Vec<(WorldIndex, u32)> =
            self.player.service.worlds().map(|(index, world)| (index, world.spec().shape.horizon)).collect();
        let (world, horizon) = worlds[self.world.below(worlds.len() as u64) as usize];
        let observation = Bits([self.world.below(16), 0, 0, 0]);
        let episode = match horizon {
            1 => String::new(),
            _ => format!("user-{}", self.world.below(5)),
        };
        let input = self.player.service.ask(world, observation, &episode).unwrap();
        let number = self.player.service.last() + 1;
        let mut copy = Vec::new();
        let done = None;
        let effect = self.player.service.apply(&input, done).unwrap();
        if let Effect::Decided(_, choice) = &effect {
            copy.push(choice.action);
        }
        let (line, _) = Line::of(input, effect, &self.player.service);
        self.player.book.take(&mut LogSink(&mut self.log), &line).unwrap();
        let is_forbidden = |rule: &Forbidden| rule.seen.covers(&observation) && rule.action == copy[0];
        let spec = self.player.service.world(world).unwrap().spec();
        assert!(!spec.forbidden.iter().any(is_forbidden), "the forbidden action was taken");
        let reward = if u64::from(copy[0]) == observation.0[0] & 3 { 1_000 } else { 0 };
        // One in twenty is lost.
        if self.world.below(20) != 0 {
            self.open.push((
                world,
                number,
                Outcome { reward, done: horizon == 1, bad: self.is_harmful && reward == 0 },
            ));
        }
        while 40 < self.open.len() {
            let place = self.world.below(self.open.len() as u64) as usize;
            let (world, number, outcome) = self.open.swap_remove(place);
            match self.player.service.reward(world, number, outcome) {
                Ok(Some(input)) => self.take(input),
                Ok(None) => unreachable!("nobody has said it before"),
                Err(refusal) => assert_eq!(refusal.kind, RefusalKind::Missing),
            }
            if let Ok(again) = self.player.service.reward(world, number, outcome) {
                assert_eq!(again, None);
            }
        }
        self.learn();
    }

    /// Rounds begin when they are due, and take effect some inputs later.
    fn learn(&mut self) {
        let searching = self.player.service.worlds().find(|(_, world)| world.is_searching());
        if let Some(world) = searching.map(|(index, _)| index) {
            self.lag -= 1;
            if self.lag == 0 {
                self.take(Input::Publish { world });
            }
        } else if let Some(input) = self.player.service.due_round() {
            self.take(input);
            self.lag = 7;
        }
    }

    pub(super) fn settle_rounds(&mut self) {
        while self.player.service.is_searching() || self.player.service.due_round().is_some() {
            self.learn();
        }
    }

    /// Ends the rounds that are under way; the history is audited, and plays again to the same state.
    pub(super) fn assert_history(mut self) {
        self.settle_rounds();
        self.commit();
        let wanted = self.player.service.encode();
        let mut store = self.log.into_store();
        let report = audit(&mut store, None, &mut ServiceConditions::new()).unwrap();
        assert_eq!(report.verdict, AuditVerdict::Unanchored, "{report:?}");
        assert!(replay(&mut store, None, &mut |_, _| {}).unwrap().encode() == wanted, "replay differs");
    }

    pub(super) fn commit(&mut self) {
        self.player.book.close_block(&mut LogSink(&mut self.log)).unwrap();
        self.log.commit().unwrap();
    }
}

fn driven(steps: u64) -> Driver {
    let mut driver = Driver::new();
    driver.create(spec("ads", 1));
    driver.create(spec("visits", 3));
    (0..steps).for_each(|_| driver.step());
    driver.commit();
    driver
}

#[test]
fn a_history_is_audited_and_played_again_bit_for_bit() {
    let driver = driven(4_000);
    let service = driver.player.service;
    let (_, ads) = service.find("ads").unwrap();
    assert!(0 < ads.statistics().applied && 0 < ads.statistics().lost, "{:?}", ads.statistics());
    assert!(1 < ads.acting().in_force().contexts);
    let mut store = driver.log.into_store();
    let report = audit(&mut store, None, &mut ServiceConditions::new()).unwrap();
    assert_eq!(report.verdict, AuditVerdict::Unanchored);
    assert!(0 < report.conditions);
    let again = replay(&mut store, None, &mut |_, _| {}).unwrap();
    assert_eq!(again.last(), service.last());
    for (index, world) in service.worlds() {
        let other = again.world(index).unwrap();
        assert_eq!(world.statistics(), other.statistics());
        assert_eq!(world.acting().digest(), other.acting().digest());
    }
}

#[test]
fn a_service_goes_on_from_its_log_and_from_a_snapshot_alike() {
    let mut driver = driven(1_500);
    driver.settle_rounds();
    driver.commit();
    let bare = driver.log.store_mut().clone();
    driver.log.write_snapshot(driver.player.service.last(), parts(&driver.player.service), 2).unwrap();
    (0..400).for_each(|_| driver.step());
    driver.settle_rounds();
    driver.commit();
    let wanted = driver.player.service.encode();
    let store = driver.log.into_store();
    let opened = open(store.clone(), testing::signer(), LogOptions::default()).unwrap();
    assert!(opened.rejected.is_empty());
    assert_eq!(opened.player.service.encode(), wanted);
    // Without the snapshot the same comes of the inputs.
    let mut damaged = store.clone();
    damaged.files.retain(|name, _| !name.ends_with(".snap"));
    let opened = open(damaged, testing::signer(), LogOptions::default()).unwrap();
    assert_eq!(opened.player.service.encode(), wanted);
    // The book goes on where it was: both histories extend alike.
    let mut early = open(bare, testing::signer(), LogOptions::default()).unwrap();
    assert!(early.player.service.last() < opened.player.service.last());
    let input = Input::Decide { world: WorldIndex(0), observation: Bits::ZERO, episode: String::new() };
    early.player.take(&mut LogSink(&mut early.log), input).unwrap();
}

#[test]
fn a_changed_answer_is_found_by_the_replay() {
    let driver = driven(300);
    let mut store = driver.log.into_store();
    replay(&mut store, None, &mut |_, _| {}).unwrap();
    // The same inputs under another seed: the answers differ, and the first entry that does is named.
    let mut other = Driver::new();
    other.player.service = Service::new(ServiceConfig { seed: 6, ..config() });
    other.create(spec("ads", 1));
    (0..50).for_each(|_| other.step());
    other.commit();
    let error = replay(&mut other.log.into_store(), None, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().starts_with("replay differs at entry"), "{error}");
}

#[test]
fn late_repeated_and_contradicting_rewards_are_told_apart() {
    let mut driver = Driver::new();
    driver.create(spec("ads", 1));
    let world = WorldIndex(0);
    let ask = |driver: &mut Driver| {
        let input = driver.player.service.ask(world, Bits::ZERO, "").unwrap();
        driver.take(input);
        driver.player.service.last()
    };
    let decision = ask(&mut driver);
    let outcome = Outcome { reward: 1_000, done: true, bad: false };
    let reward = |driver: &Driver, outcome| driver.player.service.reward(world, decision, outcome);
    let first = reward(&driver, outcome).unwrap().unwrap();
    driver.take(first.clone());
    assert_eq!(reward(&driver, outcome), Ok(None));
    let other = reward(&driver, Outcome { reward: 0, ..outcome }).unwrap_err();
    assert_eq!((other.kind, other.field), (RefusalKind::Conflict, "reward"));
    let malformed = reward(&driver, Outcome { reward: 1_001, ..outcome }).unwrap_err();
    assert_eq!(malformed.message, "reward 1001 is out of range: this world takes 0 to 1000");
    // It is known for three hundred more decisions, and then it is not.
    for _ in 0..299 {
        ask(&mut driver);
        assert_eq!(reward(&driver, outcome), Ok(None));
    }
    ask(&mut driver);
    ask(&mut driver);
    assert_eq!(reward(&driver, outcome).unwrap_err().kind, RefusalKind::Missing);
    assert!(driver.player.take(&mut LogSink(&mut driver.log), first).is_err());
    let unknown = driver.player.service.reward(world, 10_000, outcome).unwrap_err();
    assert_eq!((unknown.kind, unknown.code), (RefusalKind::Missing, "unknown_decision"));
}

#[test]
fn episodes_end_by_their_last_reward_or_at_the_horizon_in_any_order() {
    let mut driver = Driver::new();
    driver.create(spec("visits", 3));
    let world = WorldIndex(0);
    let ask = |driver: &mut Driver, name: &str| {
        let input = driver.player.service.ask(world, Bits::ZERO, name).unwrap();
        driver.take(input);
        driver.player.service.last()
    };
    let say = |driver: &mut Driver, decision, done| {
        let outcome = Outcome { reward: 100, done, bad: false };
        let input = driver.player.service.reward(world, decision, outcome)?.unwrap();
        driver.take(input);
        Ok::<(), crate::service::Refusal>(())
    };
    let returns = |driver: &Driver| driver.player.service.world(world).unwrap().statistics().returns;
    assert_eq!(driver.player.service.ask(world, Bits::ZERO, "").unwrap_err().field, "episode");
    // Three steps are the horizon; outcomes come backwards.
    let steps: Vec<u64> = (0..3).map(|_| ask(&mut driver, "a")).collect();
    let other = ask(&mut driver, "a");
    steps.iter().rev().for_each(|decision| say(&mut driver, *decision, false).unwrap());
    assert_eq!((returns(&driver).count, returns(&driver).sum), (1, 300));
    // The fourth began another episode, which its own reward ends.
    let early = say(&mut driver, other, true);
    assert_eq!((early, returns(&driver).count), (Ok(()), 2));
    // An episode cannot end before its last decision.
    let first = ask(&mut driver, "b");
    ask(&mut driver, "b");
    assert_eq!(say(&mut driver, first, true).unwrap_err().code, "not_last");
    assert_eq!(driver.player.service.world(world).unwrap().open_episodes(), 1);
}

#[test]
fn a_reward_that_never_comes_is_taken_for_the_mean_of_its_step_where_the_episode_is_over() {
    let mut driver = Driver::new();
    driver.create(WorldSpec { expire_after: 8, ..spec("visits", 2) });
    let world = WorldIndex(0);
    let mut number = 0;
    let mut episode = |driver: &mut Driver, rewards: [Option<i32>; 2]| {
        number += 1;
        let mut decisions = Vec::new();
        for _ in 0..2 {
            let input = driver.player.service.ask(world, Bits::ZERO, &format!("e{number}")).unwrap();
            driver.take(input);
            decisions.push(driver.player.service.last());
        }
        for (decision, reward) in decisions.iter().zip(rewards) {
            let Some(reward) = reward else { continue };
            let outcome = Outcome { reward, done: false, bad: false };
            let input = driver.player.service.reward(world, *decision, outcome).unwrap().unwrap();
            driver.take(input);
        }
        decisions
    };
    let returns = |driver: &Driver| driver.player.service.world(world).unwrap().statistics().returns;
    episode(&mut driver, [Some(100), Some(500)]);
    episode(&mut driver, [Some(200), Some(700)]);
    let waits = episode(&mut driver, [Some(0), None]);
    assert_eq!((returns(&driver).count, returns(&driver).sum), (2, 1_500));
    // It is decided when its first decision expires: eight decisions later.
    (0..4).for_each(|_| drop(episode(&mut driver, [Some(0), Some(0)])));
    // The second step paid 500, 700 and three times nothing by then.
    assert_eq!((returns(&driver).count, returns(&driver).sum), (7, 1_500 + 240));
    let late = driver.player.service.reward(world, waits[1], Outcome { reward: 1, done: false, bad: false });
    assert_eq!(late.unwrap_err().code, "unknown_decision");
    assert_eq!(driver.player.service.world(world).unwrap().statistics().lost, 0);
}

#[test]
fn a_forgotten_world_is_gone_and_its_history_stays() {
    let mut driver = driven(200);
    driver.settle_rounds();
    driver.take(Input::Forget { world: WorldIndex(0) });
    assert_eq!(driver.player.service.find("ads").unwrap_err().kind, RefusalKind::Missing);
    driver.create(spec("ads", 1));
    assert_eq!(driver.player.service.find("ads").unwrap().0, WorldIndex(2));
    (0..200).for_each(|_| driver.step());
    driver.commit();
    let mut store = driver.log.into_store();
    let report = audit(&mut store, None, &mut ServiceConditions::new()).unwrap();
    assert_eq!(report.verdict, AuditVerdict::Unanchored);
    replay(&mut store, None, &mut |_, _| {}).unwrap();
}
