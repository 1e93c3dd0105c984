//! One disturbed run: the real ledger code over the simulated disk, checked against the reference model.
//!
//! The run is a chain of lives. In each the ledger is opened, what it holds is compared with the model, the workload
//! goes on, and something goes wrong: the power fails, the process is killed, an operation fails once or for ever.
//! Acknowledged entries must never be missing, nothing may appear that was not written, and the last life must end
//! with the head of the undisturbed run.

use crate::counters::Counters;
use crate::disk::Disk;
use crate::golden::{Golden, OPTIONS, read_entries};
use crate::store::{Failure, Lie, Mutant, Plan, SimStore};
use bem_base::prng::Prng;
use bem_ledger::audit::{AuditVerdict, audit};
use bem_ledger::log::Log;
use bem_ledger::testing::{self, Workload};
use bem_ledger::{LedgerError, StoreError};

/// A promise that was broken, with what is needed to see it again.
pub type Violation = String;

/// How lives end in a run.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    /// The first life crashes at this operation; later lives, recovery included, as chance has it.
    CrashAt(u64),
    /// Everything by chance.
    Random,
}

/// Something goes wrong before a life has asked the disk for so many operations; a whole run takes several lives.
const OPERATIONS_PER_LIFE: u64 = 150;
const LIVES_MAX: u64 = 12;

/// Runs one seed to the end. `mutant` leaves out a sync, and a violation is then what one hopes for.
pub fn run(
    golden: &Golden,
    seed: u64,
    script: Script,
    mutant: Option<Mutant>,
    counters: &mut Counters,
) -> Result<(), Violation> {
    let mut run =
        Run { golden, prng: Prng::stream(seed, "run"), disk: Disk::new(), acknowledged: 0, attempted: 0 };
    for life in 0..=LIVES_MAX {
        let plan = run.draw_plan(life, script, mutant);
        if run.live(plan, counters).map_err(|reason| format!("life {life}, {plan:?}: {reason}"))? {
            return run.check_end(counters);
        }
    }
    Err("the run did not end".to_owned())
}

/// One run: the disk, the undisturbed history, and what was promised so far.
struct Run<'a> {
    golden: &'a Golden,
    prng: Prng,
    disk: Disk,
    /// Entries that a returned commit has covered.
    acknowledged: u64,
    /// Entries that may be on disk.
    attempted: u64,
}

impl Run<'_> {
    fn draw_plan(&mut self, life: u64, script: Script, mutant: Option<Mutant>) -> Plan {
        let mut plan = Plan { mutant, ..Plan::default() };
        if life == LIVES_MAX {
            return plan;
        }
        if let (0, Script::CrashAt(index)) = (life, script) {
            plan.crash_at = Some(index);
            return plan;
        }
        // Early operations are recovery: they get their share.
        let reach = if self.prng.below(3) == 0 { 12 } else { OPERATIONS_PER_LIFE };
        match self.prng.below(8) {
            0..=4 => plan.crash_at = Some(self.prng.below(reach)),
            5 | 6 => {
                let failure = if self.prng.bit() { Failure::Full } else { Failure::Device };
                plan.fail_at = Some((self.prng.below(reach), failure, self.prng.bit()));
            }
            _ => {}
        }
        plan
    }

    /// One life; true when the workload is complete.
    fn live(&mut self, plan: Plan, counters: &mut Counters) -> Result<bool, Violation> {
        counters.lives += 1;
        let store = SimStore::new(self.disk.clone(), plan, self.prng.fork("store"));
        let done = self.work(store.clone(), counters);
        let happened = store.happened();
        self.disk = store.disk();
        counters.failures += happened.failures;
        counters.sync_failures += happened.sync_failures;
        let disturbed = happened.crashed || 0 < happened.failures;
        match done {
            Ok(()) => return Ok(true),
            Err(Stop::Violation(reason)) => return Err(reason),
            Err(Stop::Error(error)) if !disturbed => return Err(format!("undisturbed, and yet: {error}")),
            Err(Stop::Error(_)) => {}
        }
        if happened.crashed && plan.crash_at.is_some_and(|index| index < 4) && 0 < self.acknowledged {
            counters.crashes_in_recovery += 1;
        }
        // A crash takes the power or just the process; after a failure the process ends, and perhaps the power too.
        if happened.crashed && self.prng.below(4) != 0 || self.prng.bit() {
            counters.power_losses += 1;
            counters.add_loss(self.disk.lose_power(&mut self.prng));
        } else {
            counters.kills += 1;
        }
        Ok(false)
    }

    fn work(&mut self, store: SimStore, counters: &mut Counters) -> Result<(), Stop> {
        let mut log = self.open(store, counters)?;
        while log.size() <= self.golden.operations.len() as u64 {
            let position = log.size() - 1;
            self.carry_out(&mut log, position, counters)?;
            // A snapshot commits on its own.
            self.acknowledged = log.acknowledged();
            // Bytes that are on the disk and not synced are what a power loss plays with.
            if position % 2 == 0 {
                self.persist(Log::offload, &mut log)?;
            }
            if Golden::commits_after(position) {
                self.persist(|log| log.commit().map(|_| ()), &mut log)?;
                self.acknowledged = log.acknowledged();
                counters.commits += 1;
            }
        }
        self.persist(|log| log.commit().map(|_| ()), &mut log)?;
        self.acknowledged = log.acknowledged();
        Ok(())
    }

    /// Opens or creates, and compares what is there with the model.
    fn open(&mut self, store: SimStore, counters: &mut Counters) -> Result<Log<SimStore>, Stop> {
        let mut log = match Log::open(store.clone(), testing::signer(), OPTIONS) {
            Ok((log, report)) => {
                counters.recoveries += 1;
                counters.recoveries_with_tail += u64::from(0 < report.bytes_dropped);
                counters.recoveries_with_leftovers += u64::from(!report.files_removed.is_empty());
                log
            }
            Err(LedgerError::NotALedger(_)) if self.acknowledged == 0 => {
                counters.creations += 1;
                let genesis = testing::genesis(self.golden.seed);
                self.attempted = 1;
                Log::create(store, testing::signer(), &genesis, OPTIONS)?
            }
            Err(error) => return Err(error.into()),
        };
        let size = log.size();
        if size < self.acknowledged {
            let reason = format!("{} entries were acknowledged, {size} are there", self.acknowledged);
            return Err(Stop::Violation(reason));
        }
        if self.attempted < size {
            return Err(Stop::Violation(format!(
                "{size} entries are there, {} were written",
                self.attempted
            )));
        }
        let entries = read_entries(log.store_mut())?;
        if entries != self.golden.entries[..size as usize] || log.head() != self.golden.heads[size as usize] {
            return Err(Stop::Violation(format!("the {size} entries are not the ones written")));
        }
        self.attempted = self.attempted.max(size);
        self.acknowledged = size;
        Ok(log)
    }

    /// Carries out one operation, again and again while the disk is full, and never twice.
    fn carry_out(
        &mut self,
        log: &mut Log<SimStore>,
        position: u64,
        counters: &mut Counters,
    ) -> Result<(), Stop> {
        let operation = &self.golden.operations[position as usize];
        self.attempted = self.attempted.max(position + 2);
        for _ in 0..3 {
            let segments_before = log.store_mut().disk().names().len();
            match Workload::apply(operation, log) {
                Ok(_) => {
                    counters.operations += 1;
                    counters.new_files += u64::from(segments_before < log.store_mut().disk().names().len());
                    return Ok(());
                }
                Err(LedgerError::Store(StoreError::Full { .. })) => counters.back_pressure += 1,
                Err(error) => return Err(error.into()),
            }
            if position + 1 < log.size() {
                // The entry was taken before the error; only its commit is missing.
                return Ok(());
            }
        }
        Err(LedgerError::Stopped { reason: "the disk stays full".to_owned() }.into())
    }

    fn persist(
        &mut self,
        work: impl Fn(&mut Log<SimStore>) -> Result<(), LedgerError>,
        log: &mut Log<SimStore>,
    ) -> Result<(), Stop> {
        for _ in 0..2 {
            match work(log) {
                Err(LedgerError::Store(StoreError::Full { .. })) => {}
                other => return other.map_err(Stop::from),
            }
        }
        work(log).map_err(Stop::from)
    }

    /// The complete history: an audit accepts it, and its head is the undisturbed one.
    fn check_end(&mut self, counters: &mut Counters) -> Result<(), Violation> {
        // What was acknowledged must also survive one more power loss.
        counters.add_loss(self.disk.lose_power(&mut self.prng));
        let mut store = SimStore::new(self.disk.clone(), Plan::default(), self.prng.fork("end"));
        let report = audit(&mut store, None, &mut testing::AsCertified).map_err(|error| error.to_string())?;
        if report.verdict != AuditVerdict::Unanchored {
            return Err(format!("at the end the audit says {:?}", report.verdict));
        }
        let last = self.golden.heads.last().expect("a golden run has heads");
        if report.head != last.digest() {
            return Err("the head at the end is not that of the undisturbed run".to_owned());
        }
        counters.runs += 1;
        Ok(())
    }
}

/// Why a life of the ledger ended: an error of the store, or a broken promise.
enum Stop {
    Error(LedgerError),
    Violation(Violation),
}

impl From<LedgerError> for Stop {
    fn from(error: LedgerError) -> Stop {
        Stop::Error(error)
    }
}

/// A run on a disk that lies: nothing can save the data then, but it must not be served as if nothing had happened.
pub fn run_with_lie(golden: &Golden, seed: u64, counters: &mut Counters) -> Result<(), Violation> {
    let mut prng = Prng::stream(seed, "lie");
    let lie = [Lie::Lost, Lie::Misdirected, Lie::Rot][prng.below(3) as usize];
    let plan = Plan { lie_at: Some((prng.below(2 * OPERATIONS_PER_LIFE), lie)), ..Plan::default() };
    let mut run = Run { golden, prng: prng.fork("run"), disk: Disk::new(), acknowledged: 0, attempted: 0 };
    let store = SimStore::new(Disk::new(), plan, prng.fork("store"));
    let worked = run.work(store.clone(), counters);
    if store.happened().lies == 0 {
        // The plan named an operation that is no write.
        return Ok(());
    }
    counters.lies += 1;
    let mut disk = store.disk();
    disk.lose_power(&mut prng);
    let mut store = SimStore::new(disk.clone(), Plan::default(), prng.fork("check"));
    let report = audit(&mut store, None, &mut testing::AsCertified).map_err(|error| error.to_string())?;
    let found = matches!(report.verdict, AuditVerdict::Broken { .. }) || worked.is_err();
    counters.lies_found += u64::from(found);
    if found {
        return Ok(());
    }
    // The lie hit bytes that are not acknowledged or were written again: then everything must be there.
    let entries = read_entries(&mut store).map_err(|error| error.to_string())?;
    if entries.len() as u64 == run.acknowledged && entries == golden.entries[..entries.len()] {
        counters.lies_harmless += 1;
        return Ok(());
    }
    Err(format!("{plan:?}: a lie of the disk was served as the truth"))
}

/// The whole workload with nothing going wrong, to count what the disk is asked to do.
pub fn run_undisturbed(golden: &Golden, store: SimStore) {
    let mut run = Run {
        golden,
        prng: Prng::stream(0, "undisturbed"),
        disk: Disk::new(),
        acknowledged: 0,
        attempted: 0,
    };
    let worked = run.work(store, &mut Counters::default());
    assert!(worked.is_ok(), "nothing went wrong");
}
