//! The engine over the simulated disk: a small climb whose journal meets power losses, kills and failing operations.
//!
//! Climb, journal, ledger, recovery and audit are the shipped ones. A unit's result is a function of its place alone, so
//! results are worked out once and remembered; one run in a hundred works everything out again. What a life
//! acknowledged must be there in the next, and the last life must end with the head of the undisturbed run.
//! Clauses: LOG-1, LOG-4, LOG-5, SCC-9.

use crate::counters::Counters;
use crate::disk::Disk;
use crate::run::Violation;
use crate::store::{Failure, Plan, SimStore};
use bem_base::digest::Digest;
use bem_base::prng::Prng;
use bem_engine::climb::{Climb, ClimbConfig, Unit, UnitResult};
use bem_engine::journal::{Journal, JournalError, Opened, RunConditions};
use bem_ledger::LedgerError;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::limits::ENTRY_BYTES_MAX;
use bem_ledger::log::LogOptions;
use bem_ledger::store::{MemoryStore, Store};
use bem_ledger::testing::signer;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Small segments, so that rotation happens within a unit.
const OPTIONS: LogOptions = LogOptions { segment_bytes: 4_000, ring_bytes: ENTRY_BYTES_MAX + 4 };
const LIVES_MAX: u64 = 12;
/// A run takes about this many operations of the disk.
const OPERATIONS: u64 = 260;

/// The undisturbed climb.
pub struct EngineGolden {
    results: Vec<UnitResult>,
    /// Head of the ledger at the end.
    pub head: Digest,
    /// Its ledger, signed with the key of tests.
    pub store: MemoryStore,
}

fn start() -> Climb {
    let families = ["parity", "majority"].map(str::to_owned).to_vec();
    Climb::new(ClimbConfig { seed: 5, stages: 3, unit_steps: 3_000, families, parameters: Arc::default() })
        .expect("known families")
}

fn next_unit<S: Store>(journal: &mut Journal<S>, climb: &Climb) -> Result<Option<Unit>, JournalError> {
    let next = || climb.next(&BTreeSet::new()).filter(|_| climb.is_climbing());
    Ok(journal.recorded_unit(climb)?.or_else(next))
}

fn work(climb: &Climb, unit: &Unit) -> UnitResult {
    let worked = climb.work(unit, &mut || true).expect("families of the catalog can be played");
    worked.expect("nobody asks it to stop")
}

impl EngineGolden {
    /// Works the climb out with nothing going wrong.
    pub fn new() -> EngineGolden {
        let mut climb = start();
        let mut results = Vec::new();
        let fine = "a store in memory does not fail";
        let mut journal =
            Journal::create(MemoryStore::new(), signer(), "test", &climb, None, OPTIONS).expect(fine);
        while let Some(unit) = next_unit(&mut journal, &climb).expect(fine) {
            let result = work(&climb, &unit);
            climb.take(&result);
            journal.unit(&result, &climb).expect(fine);
            results.push(result);
        }
        journal.save(&climb, Vec::new()).expect(fine);
        let head = journal.head();
        EngineGolden { results, head, store: journal.into_store() }
    }

    fn result(&self, climb: &Climb, unit: &Unit, anew: bool) -> UnitResult {
        match self.results.iter().find(|result| result.unit == *unit).filter(|_| !anew) {
            Some(result) => result.clone(),
            None => work(climb, unit),
        }
    }
}

impl Default for EngineGolden {
    fn default() -> EngineGolden {
        EngineGolden::new()
    }
}

/// Runs one seed to its end.
pub fn run_engine(golden: &EngineGolden, seed: u64, counters: &mut Counters) -> Result<(), Violation> {
    let mut prng = Prng::stream(seed, "engine run");
    let (mut disk, mut promised) = (Disk::new(), 0);
    for life in 0..=LIVES_MAX {
        let plan = if life == LIVES_MAX { Plan::default() } else { draw_plan(&mut prng) };
        let store = SimStore::new(disk, plan, prng.fork("store"));
        counters.lives += 1;
        let lived = live(golden, store.clone(), &mut promised, seed.is_multiple_of(100));
        let happened = store.happened();
        disk = store.disk();
        counters.failures += happened.failures;
        counters.sync_failures += happened.sync_failures;
        match lived {
            Ok(head) if head == golden.head => {
                counters.runs += 1;
                return check_end(golden, &mut disk, &mut prng, counters);
            }
            Ok(head) => return Err(format!("life {life}: head {head} at the end")),
            Err(Stop::Violation(reason)) => return Err(format!("life {life}, {plan:?}: {reason}")),
            Err(Stop::Error(error)) if !happened.crashed && happened.failures == 0 => {
                return Err(format!("life {life}: undisturbed, and yet: {error}"));
            }
            Err(Stop::Error(_)) => {}
        }
        if happened.crashed && prng.below(4) != 0 || prng.bit() {
            counters.power_losses += 1;
            counters.add_loss(disk.lose_power(&mut prng));
        } else {
            counters.kills += 1;
        }
    }
    Err("the run did not end".to_owned())
}

fn draw_plan(prng: &mut Prng) -> Plan {
    // Early operations are recovery: they get their share.
    let reach = if prng.below(3) == 0 { 12 } else { OPERATIONS };
    let mut plan = Plan::default();
    match prng.below(6) {
        0..=3 => plan.crash_at = Some(prng.below(reach)),
        4 => {
            let failure = if prng.bit() { Failure::Full } else { Failure::Device };
            plan.fail_at = Some((prng.below(reach), failure, prng.bit()));
        }
        _ => {}
    }
    plan
}

/// Why a life of the climb ended: an error of the store, or a broken promise.
enum Stop {
    Error(JournalError),
    Violation(Violation),
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Stop {
        Stop::Error(error)
    }
}

/// One life: opens or creates, checks what was promised, works on; the head when the climb is complete.
fn live(golden: &EngineGolden, store: SimStore, promised: &mut u64, anew: bool) -> Result<Digest, Stop> {
    let (mut journal, mut climb) = match Journal::open(store.clone(), signer(), OPTIONS) {
        Ok(Opened { journal, climb, .. }) => (journal, climb),
        Err(JournalError::Ledger(LedgerError::NotALedger(_))) if *promised == 0 => {
            let climb = start();
            (Journal::create(store, signer(), "test", &climb, None, OPTIONS)?, climb)
        }
        Err(error) => return Err(error.into()),
    };
    if journal.acknowledged() < *promised {
        let reason = format!("{promised} entries were acknowledged, {} are there", journal.acknowledged());
        return Err(Stop::Violation(reason));
    }
    *promised = journal.acknowledged();
    while let Some(unit) = next_unit(&mut journal, &climb)? {
        let result = golden.result(&climb, &unit, anew);
        climb.take(&result);
        journal.unit(&result, &climb)?;
        *promised = journal.acknowledged();
    }
    journal.save(&climb, Vec::new())?;
    *promised = journal.acknowledged();
    Ok(journal.head())
}

/// What was acknowledged must also survive one more power loss, and an audit must accept it.
fn check_end(
    golden: &EngineGolden,
    disk: &mut Disk,
    prng: &mut Prng,
    counters: &mut Counters,
) -> Result<(), Violation> {
    counters.add_loss(disk.lose_power(prng));
    let mut store = SimStore::new(disk.clone(), Plan::default(), prng.fork("end"));
    let report = audit(&mut store, None, &mut RunConditions::new()).map_err(|error| error.to_string())?;
    if report.verdict == AuditVerdict::Unanchored && report.head == golden.head {
        return Ok(());
    }
    Err(format!("at the end the audit says {:?}", report.verdict))
}
