//! Watching applied patches: does the realised return contradict what was promised, and what was measured around it.
//!
//! [`Watch`] is the gate's own sequential test turned round; a [`Contradiction`] is the only thing that takes a patch
//! back. Must not know what a patch does. Clauses: SCC-9, SCC-14.

use crate::improvement::{Account, AlphaLedger, ImprovementTest, Progress};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::fixed::Fixed;

/// Watches whether the realised return contradicts what was promised when the patch was accepted.
///
/// The same sequential test as the gate's, turned round: it wins when what was there before is better, and falsely
/// with no more than the chance that its ledger grants.
#[derive(Clone, Debug)]
pub struct Watch {
    test: ImprovementTest,
}

/// The evidence that a patch made things worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Pairs played.
    pub pairs: u32,
    /// Mean return of what was there before less that of what is there now, over the range of returns.
    pub mean_loss: Fixed,
}

impl Watch {
    /// A watch that shares the error of all watches in a family.
    pub fn new(ledger: &mut AlphaLedger) -> Watch {
        Watch { test: ledger.open(Account::Watches) }
    }

    /// Pairs booked.
    pub fn pairs(&self) -> u32 {
        self.test.pairs()
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        self.test.encode(writer);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Watch, DecodeError> {
        Ok(Watch { test: ImprovementTest::decode(reader)? })
    }

    /// Books a pair: return now less return before, over the range of returns.
    pub fn observe(&mut self, difference: Fixed) -> Option<Contradiction> {
        let progress = self.test.observe(difference.negated(), false, false);
        (progress == Progress::Better)
            .then(|| Contradiction { pairs: self.test.pairs(), mean_loss: self.test.evidence().mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;

    #[test]
    fn a_watch_notices_what_became_worse_and_seldom_what_did_not() {
        let mut prng = Prng::stream(1, "watch");
        let mut watch = |worse: u64, better: u64| {
            let mut watch = Watch::new(&mut AlphaLedger::default());
            (0..400).find_map(|_| {
                let draw = prng.below(100);
                let difference = match draw {
                    _ if draw < worse => Fixed::ONE.negated(),
                    _ if draw < worse + better => Fixed::ONE,
                    _ => Fixed::ZERO,
                };
                watch.observe(difference)
            })
        };
        let noticed = (0..40).filter(|_| watch(40, 5).is_some_and(|found| Fixed::ZERO < found.mean_loss));
        assert!(38 <= noticed.count());
        let mistaken = (0..100).filter(|_| watch(20, 20).is_some()).count();
        assert!(mistaken <= 5, "{mistaken}");
    }
}
