//! Several units at once: threads that work, and one that hands out and takes in.
//!
//! Without a limit in steps results are taken as they come; with one, in the order of the climb, and what is worked on
//! ahead of its turn waits ([`Turns`]). Either way a family's chain is the same. What is under way when the run is cut is put away,
//! and goes on from there when the run does. Clauses: SCC-15, LOG-4.

use super::Limit;
use super::history::PutAway;
use super::scoreboard::Live;
use crate::kept_world::SharedWorlds;
use anyhow::{Result, anyhow};
use bem_engine::climb::{Assignment, Climb, ClimbError, Turns, Unit, UnitResult, Worked};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// What a thread is given: a unit, and where it was put away.
type Job = (Assignment, Option<Vec<u8>>);
/// What a thread sends back.
type Finished = (Unit, Result<Worked, ClimbError>);

/// Works until the limit is reached or nothing is left; `taken` sees every result after the climb has taken it in.
pub fn work(
    climb: &mut Climb,
    worlds: &SharedWorlds,
    threads: usize,
    limit: &Limit,
    board: &Live,
    put_away: &mut PutAway,
    taken: &mut dyn FnMut(&UnitResult, &Climb) -> Result<()>,
) -> Result<()> {
    let cut = AtomicBool::new(false);
    let (jobs, queue) = channel::<Job>();
    let (results, finished) = channel::<Finished>();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let results = results.clone();
            scope.spawn(|| {
                serve(&queue, worlds, results, &|| !cut.load(Ordering::Relaxed) && !limit.is_over());
            });
        }
        let outcome = hand_out(climb, threads, limit, board, (&jobs, &finished), put_away, taken);
        // Whatever is under way now is put away.
        cut.store(true, Ordering::Relaxed);
        drop((jobs, results));
        for (unit, result) in finished {
            if let Ok(Worked::PutAway(bytes)) = result {
                put_away.insert(unit.track, (unit.number, bytes));
            }
        }
        outcome
    })
}

/// A thread: one assignment after the other until there are no more.
fn serve(
    queue: &Mutex<Receiver<Job>>,
    worlds: &SharedWorlds,
    results: Sender<Finished>,
    go_on: &dyn Fn() -> bool,
) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((assignment, put_away)) = job else { return };
        let unit = assignment.unit.clone();
        let result = assignment.go_on_in(worlds.as_ref(), put_away.as_deref(), &mut || go_on());
        if results.send((unit, result)).is_err() {
            return;
        }
    }
}

fn hand_out(
    climb: &mut Climb,
    threads: usize,
    limit: &Limit,
    board: &Live,
    (jobs, finished): (&Sender<Job>, &Receiver<Finished>),
    put_away: &mut PutAway,
    taken: &mut dyn FnMut(&UnitResult, &Climb) -> Result<()>,
) -> Result<()> {
    let mut turns = match limit.steps {
        Some(steps) => Turns::in_order(climb, steps),
        None => Turns::as_they_come(),
    };
    let mut idle = threads;
    loop {
        while 0 < idle
            && !limit.is_reached(climb.steps())
            && let Some(assignment) = turns.begin(climb)
        {
            let unit = &assignment.unit;
            board.begin(unit);
            let saved = put_away.get(&unit.track).filter(|(number, _)| *number == unit.number);
            let saved = saved.map(|(_, bytes)| bytes.clone());
            let job = (assignment, saved);
            jobs.send(job).map_err(|_| anyhow!("all threads have ended"))?;
            idle -= 1;
        }
        // With a limit in steps nothing counts after it; otherwise what is finished counts.
        let enough = limit.is_ordered() && limit.is_reached(climb.steps());
        if idle == threads || enough {
            return Ok(());
        }
        let (unit, result) = finished.recv().map_err(|_| anyhow!("all threads have ended"))?;
        idle += 1;
        match result? {
            Worked::Done(result) => {
                if put_away.get(&unit.track).is_some_and(|(number, _)| *number <= unit.number) {
                    put_away.remove(&unit.track);
                }
                turns.finish(*result);
            }
            Worked::PutAway(bytes) => {
                put_away.insert(unit.track, (unit.number, bytes));
                turns.give_up(&unit);
            }
        }
        while !(limit.is_ordered() && limit.is_reached(climb.steps())) {
            let Some(result) = turns.next(climb) else { break };
            climb.take(&result);
            taken(&result, climb)?;
        }
    }
}
