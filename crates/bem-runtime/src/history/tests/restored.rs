//! A state is taken up at a hundred points of a busy history, with its key and without: in rounds of learning, while a patch is on
//! trial, with changes that wait for an approval, requests to tools and questions open, and while a snapshot is written. Clauses: LOG-4, IMG-4.

use super::people::overseen;
use super::*;
use crate::tools::{ToolAsk, ToolDone};
use bem_base::ids::{ObjectClass, ObjectId};
use bem_people::kinds::Mode;

const POINTS: u64 = 100;

impl Driver {
    /// The same driver over a history that was opened.
    fn over(&self, opened: Opened<MemoryStore>) -> Driver {
        let Opened { log, player, .. } = opened;
        Driver {
            log,
            player,
            world: self.world.clone(),
            open: self.open.clone(),
            lag: self.lag,
            is_harmful: self.is_harmful,
        }
    }

    fn ask_tool(&mut self) {
        let ask = ToolAsk {
            tool: ObjectId::new(ObjectClass::ToolKind, 1),
            operation: 0,
            flags: 0,
            resource: ObjectId::new(ObjectClass::DbConn, 0),
            capacity: 100,
            is_idempotent: true,
            is_sensitive: false,
            task: 0,
            payload: self.player.service.last().to_le_bytes().to_vec(),
        };
        self.take(Input::ToolAsk(Box::new(ask)));
    }

    fn end_tool(&mut self) {
        let Some(request) = self.player.service.tools().in_flight().keys().next().copied() else { return };
        let response = request.to_be_bytes().to_vec();
        let done = ToolDone { request, slot: 0, generation: 1, error: 0, attempts: 1, response };
        self.take(Input::ToolDone(Box::new(done)));
    }

    /// Some of everything that happens, and the block closed behind it.
    fn live(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
            match self.world.below(24) {
                0 => self.ask_tool(),
                1 => self.end_tool(),
                2 => self.answer_all(7),
                _ => {}
            }
        }
        self.commit();
    }

    fn held(&self) -> bool {
        self.player.service.worlds().any(|(_, world)| world.standing().held().is_some())
    }

    /// Whether a patch is on trial somewhere: a contest is open.
    fn on_trial(&self) -> bool {
        self.player.service.worlds().any(|(_, world)| world.is_on_trial())
    }

    fn save(&mut self) {
        self.log.write_snapshot(self.player.service.last(), parts(&self.player.service), 2).unwrap();
    }
}

/// How many points lay where something was under way.
#[derive(Debug, Default)]
struct Seen {
    searching: u32,
    trials: u32,
    held: u32,
    tools: u32,
    questions: u32,
    saving: u32,
}

/// The files at this point. Every fifth time they are those of a snapshot that was cut off: it lies there, and no entry names it.
fn files(driver: &mut Driver, point: u64, seen: &mut Seen) -> MemoryStore {
    let before = driver.log.store_mut().clone();
    if point % 5 != 4 || driver.player.service.is_searching() {
        return before;
    }
    driver.save();
    seen.saving += 1;
    let mut between = before;
    for (name, content) in &driver.log.store_mut().files {
        if name.starts_with("snapshot-") {
            between.files.insert(name.clone(), content.clone());
        }
    }
    between
}

#[test]
fn a_state_that_is_restored_at_a_hundred_points_goes_on_as_it_does_with_its_key() {
    let mut driver = overseen(Mode::Whitelist);
    let mut seen = Seen::default();
    for point in 0..POINTS {
        let steps = 5 + driver.world.below(40);
        driver.live(steps);
        // Of three points one lies where a round is under way and one where a patch is on trial, if that begins soon.
        for _ in 0..if point % 3 == 2 { 0 } else { 200 } {
            let is_there =
                if point % 3 == 0 { driver.player.service.is_searching() } else { driver.on_trial() };
            if is_there {
                break;
            }
            driver.step();
        }
        driver.commit();
        let service = &driver.player.service;
        seen.searching += u32::from(service.is_searching());
        seen.trials += u32::from(driver.on_trial());
        seen.held += u32::from(driver.held());
        seen.tools += u32::from(!service.tools().in_flight().is_empty());
        seen.questions += u32::from(service.people().table().open().next().is_some());
        let saved_before = seen.saving;
        let head = driver.log.head();
        let store = files(&mut driver, point, &mut seen);
        let mut same = driver.over(open(store.clone(), testing::signer(), LogOptions::default()).unwrap());
        let signer = Signer::from_seed(&[9; 32]);
        let mut old = store;
        let new = continued(&mut old, MemoryStore::new(), signer, "test", LogOptions::default()).unwrap();
        let mut new = driver.over(new);
        assert_eq!(same.log.head(), head, "point {point}: with its key the history has the same head");
        let origin = head.digest().to_hex();
        let named = |file: &Vec<u8>| file.windows(64).any(|window| window == origin.as_bytes());
        assert!(new.log.store_mut().files.values().any(named), "point {point}: the old head is named");
        for other in [&mut same, &mut new] {
            other.live(9);
        }
        // The history that went on undisturbed has one entry more where a snapshot was cut off.
        if saved_before == seen.saving {
            driver.live(9);
            assert_eq!(same.log.head(), driver.log.head(), "point {point}: and goes on to the same head");
        }
        for other in [&mut same, &mut new] {
            other.settle_rounds();
        }
        assert_eq!(new.player.service.encode(), same.player.service.encode(), "point {point}");
        assert_eq!(new.player.book.tables.roots(), same.player.book.tables.roots(), "point {point}");
    }
    let Seen { searching, trials, held, tools, questions, saving } = seen;
    assert!([searching, trials, held, tools, questions, saving].iter().all(|count| 3 <= *count), "{seen:?}");
}
