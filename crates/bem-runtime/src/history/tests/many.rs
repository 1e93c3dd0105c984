//! Thousands of episodes that are open at once, in two worlds. Clauses: VM-13, LOG-4.

use super::{Driver, parts, spec, testing};
use crate::history::open;
use crate::input::{WorldIndex, WorldSpec};
use bem_base::environment::{Bits, Outcome};
use bem_ledger::log::LogOptions;

const EPISODES: u64 = 5_000;

#[test]
fn thousands_of_open_episodes_survive_a_restart_and_take_their_rewards_in_any_order() {
    let mut driver = Driver::with(LogOptions::default());
    ["one", "two"]
        .iter()
        .for_each(|name| driver.create(WorldSpec { expire_after: 1 << 20, ..spec(name, 3) }));
    let mut asked = Vec::new();
    for number in 0..EPISODES {
        for world in [WorldIndex(0), WorldIndex(1)] {
            let seen = Bits([number & 7, 0, 0, 0]);
            let input = driver.player.service.ask(world, seen, &format!("episode-{number}")).unwrap();
            driver.take(input);
            asked.push((world, driver.player.service.last()));
        }
    }
    driver.commit();
    driver.log.write_snapshot(driver.player.service.last(), parts(&driver.player.service), 2).unwrap();
    let opened = open(driver.log.store_mut().clone(), testing::signer(), LogOptions::default()).unwrap();
    let mut again = opened.player.service;
    assert_eq!(again.encode(), driver.player.service.encode());
    // The last asked is told first; both services take all of it alike.
    for (world, decision) in asked.into_iter().rev() {
        let outcome = Outcome { reward: 1_000, done: true, bad: false };
        let input = again.reward(world, decision, outcome).unwrap().unwrap();
        again.apply(&input, None).unwrap();
        driver.take(input);
    }
    assert_eq!(again.encode(), driver.player.service.encode());
    for (_, world) in again.worlds() {
        assert_eq!((world.statistics().decisions, world.statistics().returns.count), (EPISODES, EPISODES));
    }
}
