//! "Sometimes" counters: a fault that never fired proves nothing, so every count is published with the result.

use crate::disk::LossReport;
use std::fmt;

macro_rules! counters {
    ($($(#[$meta:meta])* $name:ident),+ $(,)?) => {
        /// How often each thing happened.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$meta])* pub $name: u64),+ }

        impl Counters {
            /// Names and counts.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),+]
            }

            /// Adds another set of counts.
            pub fn add(&mut self, other: &Counters) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

counters! {
    /// Runs that ended with the undisturbed head.
    runs,
    /// Times the ledger was opened or created.
    lives,
    /// Operations of the workload carried out.
    operations,
    /// Commits that returned.
    commits,
    /// Operations that made a new file: a segment, a blob or a snapshot.
    new_files,
    /// Power losses.
    power_losses,
    /// Processes killed without a power loss.
    kills,
    /// Crashes in the first operations of a recovery.
    crashes_in_recovery,
    /// Ledgers created, also again after a creation that was cut off.
    creations,
    /// Recoveries that ended well.
    recoveries,
    /// Recoveries that cut off bytes.
    recoveries_with_tail,
    /// Recoveries that removed files.
    recoveries_with_leftovers,
    /// Operations of the disk that reported a failure.
    failures,
    /// Syncs among them.
    sync_failures,
    /// Times a full disk held an operation up.
    back_pressure,
    /// Unsynced changes lost with the power.
    changes_lost,
    /// Unsynced changes that survived.
    changes_kept,
    /// Writes torn.
    writes_torn,
    /// Files whose changes were kept out of order.
    files_reordered,
    /// Names that went back.
    names_lost,
    /// Lies of the disk.
    lies,
    /// Lies that were found.
    lies_found,
    /// Lies about bytes that did not matter.
    lies_harmless,
}

impl Counters {
    /// Books what a power loss did.
    pub fn add_loss(&mut self, report: LossReport) {
        self.changes_lost += report.lost;
        self.changes_kept += report.kept;
        self.writes_torn += report.torn;
        self.files_reordered += report.reordered;
        self.names_lost += report.names_lost;
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.all() {
            writeln!(formatter, "  {name:<26} {count}")?;
        }
        Ok(())
    }
}
