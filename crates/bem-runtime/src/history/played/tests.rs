//! The log of a world against what its clients saw: late, lost and shuffled rewards, pages, archived and restored histories.

use super::super::tests::{Driver, spec};
use super::super::{LogSink, base_of, continued, parts, replay};
use super::*;
use crate::book::Line;
use crate::service::Effect;
use bem_base::environment::Outcome;
use bem_base::prng::Prng;
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::LogOptions;
use bem_ledger::store::MemoryStore;
use bem_ledger::testing;

/// Clients of a service, and what they know of it.
struct Clients {
    driver: Driver,
    chance: Prng,
    /// By decision: world, first decision of its episode, the step as it was answered.
    asked: BTreeMap<u64, (WorldIndex, u64, LoggedStep)>,
    /// Episodes that are over by what clients know: world, decisions, whether a reward is missing, the input of the last one.
    episodes: BTreeMap<u64, (WorldIndex, Vec<u64>, bool, u64)>,
    rewarded: BTreeMap<u64, u64>,
    open: Vec<(WorldIndex, u64, i32, bool)>,
}

impl Clients {
    fn new() -> Clients {
        let options = LogOptions { segment_bytes: 6_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
        let mut driver = Driver::with(options);
        driver.create(spec("ads", 1));
        driver.create(spec("visits", 3));
        Clients {
            driver,
            chance: Prng::stream(3, "clients"),
            asked: BTreeMap::new(),
            episodes: BTreeMap::new(),
            rewarded: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    fn step(&mut self) {
        let world = WorldIndex(self.chance.below(2) as u16);
        let horizon = if world.0 == 0 { 1 } else { 3 };
        let observation = Bits([self.chance.below(16), 0, 0, 0]);
        let name = if horizon == 1 { String::new() } else { format!("user-{}", self.chance.below(5)) };
        let service = &mut self.driver.player.service;
        let input = service.ask(world, observation, &name).unwrap();
        let number = service.last() + 1;
        let effect = service.apply(&input, None).unwrap();
        let Effect::Decided(begun, choice) = effect else { panic!("a decision") };
        let (line, _) = Line::of(input, Effect::Decided(begun, choice), service);
        let (_, first, _) = service.world(world).unwrap().decision(number).unwrap();
        self.driver.player.book.take(&mut LogSink(&mut self.driver.log), &line).unwrap();
        let reward = self.chance.below(1_000) as i32;
        let (action, propensity) = (choice.action, choice.propensity);
        self.asked.insert(number, (world, first, LoggedStep { observation, action, propensity, reward }));
        let episode = self.episodes.entry(first).or_insert((world, Vec::new(), false, 0));
        episode.1.push(number);
        episode.2 |= episode.1.len() == horizon;
        // One in twenty never comes; some episodes end early.
        let done = horizon == 1 || self.chance.below(6) == 0;
        if self.chance.below(20) != 0 {
            self.open.push((world, number, reward, done));
        }
        while 30 < self.open.len() {
            let place = self.chance.below(self.open.len() as u64) as usize;
            let (world, number, reward, done) = self.open.swap_remove(place);
            let service = &self.driver.player.service;
            let said = |done| service.reward(world, number, Outcome { reward, done, bad: false });
            // An episode ends with its last decision only, and what is too old is refused.
            let Some((input, done)) =
                [done, false].into_iter().find_map(|done| Some((said(done).ok()?, done)))
            else {
                continue;
            };
            self.driver.take(input.expect("nobody has said it before"));
            self.rewarded.insert(number, self.driver.player.service.last());
            let first = self.asked[&number].1;
            if let Some(episode) = self.episodes.get_mut(&first).filter(|_| done) {
                episode.2 = true;
            }
        }
        if self.chance.below(40) == 0 {
            self.driver.commit();
        }
    }

    /// What the log of a world must say.
    fn wanted(&self, world: WorldIndex) -> Vec<LoggedEpisode> {
        let complete = |(first, (_, numbers, is_over, _)): (&u64, &(WorldIndex, Vec<u64>, bool, u64))| {
            let inputs: Option<Vec<u64>> =
                numbers.iter().map(|number| self.rewarded.get(number).copied()).collect();
            let complete = inputs.filter(|_| *is_over)?.into_iter().max()?;
            let steps = numbers.iter().map(|number| self.asked[number].2).collect();
            Some(LoggedEpisode { first: *first, complete, steps })
        };
        let mut wanted: Vec<LoggedEpisode> =
            self.episodes.iter().filter(|(_, episode)| episode.0 == world).filter_map(complete).collect();
        wanted.sort_by_key(|episode| episode.complete);
        wanted
    }
}

fn told(store: &mut MemoryStore, world: u16, after: u64, most: usize) -> Vec<LoggedEpisode> {
    let specs = declared(store).unwrap();
    let mut told = Vec::new();
    played(store, (WorldIndex(world), &specs[&world]), after, &mut |episode| {
        told.push(episode);
        told.len() < most
    })
    .unwrap();
    told
}

#[test]
fn the_log_of_a_world_is_what_its_clients_were_answered_and_said() {
    let mut clients = Clients::new();
    (0..4_000).for_each(|_| clients.step());
    clients.driver.settle_rounds();
    clients.driver.commit();
    let store = clients.driver.log.store_mut();
    let specs = declared(store).unwrap();
    assert_eq!(specs, clients.driver.player.service.specs());
    for world in [0, 1] {
        let wanted = clients.wanted(WorldIndex(world));
        let found = told(clients.driver.log.store_mut(), world, 0, usize::MAX);
        assert!(300 < found.len() && found == wanted, "{} of {}", found.len(), wanted.len());
        let lengths: Vec<usize> =
            (1..=3).filter(|length| found.iter().any(|one| one.steps.len() == *length)).collect();
        assert_eq!(lengths, if world == 0 { vec![1] } else { vec![1, 2, 3] });
        // An action that was not wanted has at least the floor; what is forbidden has no chance and is not done.
        let least = found.iter().flat_map(|one| &one.steps).map(|step| step.propensity).min().unwrap();
        assert!(Fixed::from_ratio(1, 900) < least && least < Fixed::from_ratio(1, 4), "{least:?}");
        // Page by page it is the same, also for whoever comes back later.
        let (mut paged, mut after) = (Vec::new(), 0);
        loop {
            let page = told(clients.driver.log.store_mut(), world, after, 37);
            let Some(last) = page.last() else { break };
            after = last.complete;
            paged.extend(page);
        }
        assert_eq!(paged, wanted);
    }
    replay(clients.driver.log.store_mut(), None, &mut |_, _| {}).unwrap();
}

#[test]
fn behind_archived_entries_and_in_a_restored_history_nothing_is_told_that_was_not_played() {
    let mut clients = Clients::new();
    (0..1_500).for_each(|_| clients.step());
    for _ in 0..2 {
        clients.driver.settle_rounds();
        clients.driver.commit();
        let Driver { log, player, .. } = &mut clients.driver;
        log.write_snapshot(player.service.last(), parts(&player.service), 2).unwrap();
    }
    let Driver { log, player, .. } = &mut clients.driver;
    let state = base_of(&player.service, &player.book).to_bytes();
    let (step, limit) = (player.service.last(), log.size());
    assert!(log.archive(step, limit, &state, "sha256:image").unwrap().is_some());
    let mut restored = log.store_mut().clone();
    let restored =
        continued(&mut restored, MemoryStore::new(), testing::signer(), "test", LogOptions::default());
    (0..1_500).for_each(|_| clients.step());
    clients.driver.settle_rounds();
    clients.driver.commit();
    for world in [0, 1] {
        let wanted = clients.wanted(WorldIndex(world));
        let found = told(clients.driver.log.store_mut(), world, 0, usize::MAX);
        assert!(found.iter().all(|episode| wanted.contains(episode)), "world {world}");
        // Everything that began behind the state is there.
        let begun: Vec<&LoggedEpisode> = wanted.iter().filter(|one| step < one.first).collect();
        assert!(200 < begun.len() && begun.iter().all(|one| found.contains(one)), "world {world}");
        assert!(found.len() < wanted.len());
    }
    // A restored history knows its worlds by the state alone; what was played before is not in it.
    let mut restored = restored.unwrap().log.into_store();
    assert_eq!(declared(&mut restored).unwrap().len(), 2);
    assert_eq!(told(&mut restored, 1, 0, usize::MAX), []);
}
