//! Watching the latest patch: does the incumbent bring what its rollouts promised?
//!
//! The episodes that the incumbent plays for experience cost nothing extra, so they raise the alarm: a sequential test
//! that they bring less than promised by more than the tolerance. An alarm proves nothing about the patch, since the
//! world may have become harder for everybody; it opens pairs against what was held before, and only these take the
//! patch back. Clauses: SCC-9, SCC-14.

use crate::codec::{decode_option, encode_option};
use crate::learner::gate::{Contest, Gate};
use crate::learner::{Learner, Phase, Witness};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Shape;
use bem_base::fixed::{FRACTION_BITS, Fixed};
use bem_evolve::evolution::{Guard, Record};
use bem_evolve::improvement::{Account, AlphaLedger};
use bem_evolve::rollout::Rollout;
use bem_evolve::watch::Watch;
use std::sync::Arc;

/// Episodes of one test; then another begins, so that a late change is not outweighed by all that went well before.
const WINDOW: u32 = 256;

/// Episodes that make a promise where the gate made none.
const PROMISE_EPISODES: u32 = 64;

/// A running comparison of what comes with what was promised.
#[derive(Clone, Debug)]
pub(super) struct Alarm {
    /// The mean return that was promised, in milli-units; nothing while the first episodes still make the promise.
    promised: Option<i64>,
    /// How many episodes have made it so far, and their returns.
    episodes: u32,
    sum: i64,
    watch: Watch,
    /// Counts the tests, which share one error bound.
    ledger: AlphaLedger,
}

impl Alarm {
    /// Before the first episode.
    pub(super) fn new(promised: Option<i64>) -> Alarm {
        let mut ledger = AlphaLedger::default();
        let watch = Watch::new(&mut ledger);
        Alarm { promised, episodes: 0, sum: 0, watch, ledger }
    }

    /// Books a return; true if returns are below the promise by more than the tolerance.
    pub(super) fn observe(&mut self, total: i64, span: i64) -> bool {
        let Some(promised) = self.promised else {
            (self.episodes, self.sum) = (self.episodes + 1, self.sum + total);
            if PROMISE_EPISODES <= self.episodes {
                self.promised = Some(self.sum / i64::from(self.episodes));
            }
            return false;
        };
        let tolerance = (i128::from(Guard::TOLERANCE.to_raw()) * i128::from(span)) >> FRACTION_BITS;
        let surplus = (total - promised + tolerance as i64).clamp(-span, span);
        let is_alarmed = self.watch.observe(Fixed::from_ratio(surplus, span)).is_some();
        if WINDOW <= self.watch.pairs() {
            self.watch = Watch::new(&mut self.ledger);
        }
        is_alarmed
    }

    /// Writes the canonical bytes.
    pub(super) fn encode(&self, writer: &mut Writer) {
        encode_option(writer, self.promised.as_ref(), |promised, writer| writer.i64(*promised));
        writer.u32(self.episodes);
        writer.i64(self.sum);
        self.watch.encode(writer);
        writer.u32(self.ledger.entered()[Account::Watches as usize]);
    }

    /// Reads canonical bytes back; promises that no returns can have made are refused.
    pub(super) fn decode(shape: &Shape, reader: &mut Reader<'_>) -> Result<Alarm, DecodeError> {
        let malformed = reader.error("a watch that no patch has opened");
        let alarm = Alarm {
            promised: decode_option(reader, Reader::i64)?,
            episodes: reader.u32()?,
            sum: reader.i64()?,
            watch: Watch::decode(reader)?,
            ledger: AlphaLedger::resume([0, reader.u32()?, 0, 0]),
        };
        let (low, high, count) = (shape.return_min, shape.return_max, i128::from(alarm.episodes));
        let is_possible = alarm.promised.is_none_or(|promised| (low..=high).contains(&promised));
        let sums = i128::from(low) * count..=i128::from(high) * count;
        let fits = is_possible && alarm.episodes <= PROMISE_EPISODES && sums.contains(&i128::from(alarm.sum));
        if fits { Ok(alarm) } else { Err(malformed) }
    }
}

impl Learner {
    /// Compares the episodes of the incumbent with what its rollouts brought.
    ///
    /// Where a pair that cannot differ is not played, the rollouts are no fair sample, and where returns are larger than
    /// the guard's means can be, these are not what was earned: there the first episodes after the patch make the promise.
    pub(super) fn new_alarm(&self) -> Alarm {
        let largest = self.shape.return_max.unsigned_abs().max(self.shape.return_min.unsigned_abs());
        let is_sample = 1 < self.shape.horizon && largest <= Guard::RETURN_MAX as u64;
        let guard = self.watched_guard().filter(|_| is_sample);
        let promised = guard.map(|guard| guard.return_after.to_raw() >> FRACTION_BITS);
        Alarm::new(promised)
    }

    /// Compares the episodes of a plan that acts by counts with what was earned before it: at least that it has promised.
    pub(super) fn new_alarm_by_counts(&self) -> Alarm {
        Alarm::new(self.standing.realised().mean())
    }

    fn watched_guard(&self) -> Option<&Guard> {
        self.machinery.evolution().watched_guard()
    }

    /// Books an episode of the incumbent; whether it raises an alarm.
    pub(super) fn is_alarmed_by(&mut self, total: i64) -> bool {
        let declared = (self.shape.return_max - self.shape.return_min).max(1);
        // The patch was measured on this scale, and its promise is one on it.
        let span = self.watched_guard().map_or(declared, |guard| guard.span);
        self.standing.is_alarmed_by(total, span)
    }

    /// After an alarm: what is held is measured against the one before, where it can be taken back.
    pub(super) fn open_watch_contest(&mut self) {
        let may_fall_back =
            self.machinery.evolution().watched().is_some() && self.standing.replaced_by().is_some();
        if may_fall_back {
            let policy = Arc::clone(self.machinery.frozen());
            self.phase = Phase::Measure(Box::new(Gate::new(Contest::Watch, policy)));
        }
    }

    /// Books a pair of the watch: the patch is taken back, or stays, or the question is still open.
    pub(super) fn book_watch(&mut self, new: &Rollout, old: &Rollout, witness: &mut dyn Witness) {
        let (steps, acting) = (self.tally.steps, self.machinery.acting_digest());
        let record = self.machinery.book_watch(new, old, steps);
        self.end_watch(record, acting, witness);
    }

    /// Leaves the watch where a record says that the patch is taken back, or where it stays.
    pub(super) fn end_watch(&mut self, record: Option<Record>, acting: Digest, witness: &mut dyn Witness) {
        let is_over = self.machinery.evolution().watched().is_none() || self.is_spent();
        if let Some(record) = record {
            self.phase = Phase::Collect;
            self.conclude(record, 0, acting, witness);
        } else if is_over {
            self.phase = Phase::Collect;
        }
    }

    /// The incumbent before acts again. What was taken back may be proposed and measured again.
    pub(super) fn fall_back(&mut self, record: &Record, witness: &mut dyn Witness) {
        self.tally.rolled_back += 1;
        self.history.link("bem/chain/rolled-back", &record.serial.to_le_bytes());
        let by_counts = self.standing.incumbent().by_counts;
        if let Some(candidate) = self.standing.fall_back(self.tally.steps) {
            // Pairs have spoken against what only counts had spoken for.
            match by_counts {
                true => self.candidates.test(&candidate.policy, self.tally.steps),
                false => self.candidates.forgive(&candidate.policy),
            }
        }
        self.hand_over(witness);
    }
}
