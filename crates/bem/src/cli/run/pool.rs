//! Several units at once: threads that work, and one that hands out and takes in.
//!
//! Without a limit in steps results are taken as they come; with one, in the order of the climb, and what is worked on
//! ahead of its turn waits. Either way a family's chain is the same. Clauses: SCC-15.

use super::Limit;
use super::scoreboard::Live;
use anyhow::{Result, anyhow};
use bem_engine::climb::{Assignment, Climb, ClimbError, Turns, Unit, UnitResult};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// What a thread sends back: nothing when it was asked to stop.
type Finished = (Unit, Result<Option<UnitResult>, ClimbError>);

/// Works until the limit is reached or nothing is left; `taken` sees every result after the climb has taken it in.
pub fn work(
    climb: &mut Climb,
    threads: usize,
    limit: &Limit,
    board: &Live,
    taken: &mut dyn FnMut(&UnitResult, &Climb) -> Result<()>,
) -> Result<()> {
    let cut = AtomicBool::new(false);
    let (jobs, queue) = channel::<Assignment>();
    let (results, finished) = channel::<Finished>();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let results = results.clone();
            scope.spawn(|| serve(&queue, results, &|| !cut.load(Ordering::Relaxed) && !limit.is_over()));
        }
        let outcome = hand_out(climb, threads, limit, board, (&jobs, &finished), taken);
        // Whatever is under way now is not wanted any more.
        cut.store(true, Ordering::Relaxed);
        drop(jobs);
        outcome
    })
}

/// A thread: one assignment after the other until there are no more.
fn serve(queue: &Mutex<Receiver<Assignment>>, results: Sender<Finished>, go_on: &dyn Fn() -> bool) {
    loop {
        let assignment = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(assignment) = assignment else { return };
        let unit = assignment.unit.clone();
        let result = assignment.work(&mut || go_on());
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
    (jobs, finished): (&Sender<Assignment>, &Receiver<Finished>),
    taken: &mut dyn FnMut(&UnitResult, &Climb) -> Result<()>,
) -> Result<()> {
    let mut turns = Turns::default();
    let mut idle = threads;
    loop {
        while 0 < idle
            && !limit.is_reached(climb.steps())
            && let Some(unit) = climb.next(&turns.busy())
        {
            turns.begin(&unit);
            board.begin(&unit);
            jobs.send(climb.assign(&unit)).map_err(|_| anyhow!("all threads have ended"))?;
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
            Some(result) => turns.finish(result),
            None => turns.give_up(&unit),
        }
        while !(limit.is_ordered() && limit.is_reached(climb.steps())) {
            let next = if limit.is_ordered() { turns.next_in_order(climb) } else { turns.next_finished() };
            let Some(result) = next else { break };
            climb.take(&result);
            taken(&result, climb)?;
        }
    }
}
