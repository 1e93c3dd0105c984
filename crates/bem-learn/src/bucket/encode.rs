//! A bucket as canonical bytes and as words of SHARED: everything that influences its next choice, cached indices
//! included.
//!
//! The indices are stored because they are refreshed in turn and so depend on the past; the best arm follows from
//! them. Clauses: LOG-4, MEM-2.

use super::{Bucket, lowest};
use crate::change::ChangeDetector;
use crate::index::{INDEX_MASKED, PRIOR_FRACTION_BITS, PRIOR_LIMIT};
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::limits::{ARMS_MAX, VISITS_HALVE_AT};

/// Words that a bucket takes in SHARED.
pub const BUCKET_WORDS: usize = 128;

const _: () = assert!(5 * ARMS_MAX + 6 <= BUCKET_WORDS);

impl Bucket {
    /// The bucket as words of SHARED, one value a word; signed ones are extended.
    ///
    /// Sixteen each of index, visits, loss sum, squared loss sum and prior; then choices, both sums of the change
    /// detector, live arms, the arm to refresh next and the best arm; zeros to the end.
    pub fn words(&self) -> [u64; BUCKET_WORDS] {
        let mut words = [0; BUCKET_WORDS];
        for arm in 0..ARMS_MAX {
            words[arm] = i64::from(self.index[arm]) as u64;
            words[ARMS_MAX + arm] = u64::from(self.visits[arm]);
            words[2 * ARMS_MAX + arm] = self.loss_sum[arm];
            words[3 * ARMS_MAX + arm] = self.loss_sq_sum[arm];
            words[4 * ARMS_MAX + arm] = i64::from(self.prior[arm]) as u64;
        }
        words[5 * ARMS_MAX] = self.selections_total;
        words[5 * ARMS_MAX + 1] = self.detector.worse as u64;
        words[5 * ARMS_MAX + 2] = self.detector.better as u64;
        words[5 * ARMS_MAX + 3] = u64::from(self.live);
        words[5 * ARMS_MAX + 4] = u64::from(self.cursor);
        words[5 * ARMS_MAX + 5] = u64::from(self.best);
        words
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        for arm in 0..ARMS_MAX {
            writer.i32(self.index[arm]);
            writer.u32(self.visits[arm]);
            writer.u64(self.loss_sum[arm]);
            writer.u64(self.loss_sq_sum[arm]);
            writer.i32(self.prior[arm]);
        }
        writer.u64(self.selections_total);
        writer.i64(self.detector.worse);
        writer.i64(self.detector.better);
        writer.u16(self.live);
        writer.u8(self.cursor);
    }

    /// Reads canonical bytes and checks the invariants.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Bucket, DecodeError> {
        let start = reader.clone();
        let mut bucket = Bucket {
            index: [0; ARMS_MAX],
            visits: [0; ARMS_MAX],
            loss_sum: [0; ARMS_MAX],
            loss_sq_sum: [0; ARMS_MAX],
            prior: [0; ARMS_MAX],
            selections_total: 0,
            detector: ChangeDetector::default(),
            live: 0,
            best: 0,
            cursor: 0,
        };
        for arm in 0..ARMS_MAX {
            bucket.index[arm] = reader.i32()?;
            bucket.visits[arm] = reader.u32()?;
            bucket.loss_sum[arm] = reader.u64()?;
            bucket.loss_sq_sum[arm] = reader.u64()?;
            bucket.prior[arm] = reader.i32()?;
        }
        bucket.selections_total = reader.u64()?;
        bucket.detector = ChangeDetector { worse: reader.i64()?, better: reader.i64()? };
        bucket.live = reader.u16()?;
        bucket.cursor = reader.u8()?;
        bucket.best = lowest(&bucket.index).arm();
        let prior_limit = PRIOR_LIMIT << PRIOR_FRACTION_BITS;
        let arms_hold = (0..ARMS_MAX).all(|arm| {
            let visits = bucket.visits[arm];
            (1..VISITS_HALVE_AT).contains(&visits)
                && bucket.loss_sum[arm] <= u64::from(visits) << 32
                && bucket.loss_sq_sum[arm] <= bucket.loss_sum[arm]
                && (bucket.index[arm] == INDEX_MASKED) == (bucket.live >> arm & 1 == 0)
                && (-prior_limit..=prior_limit).contains(&bucket.prior[arm])
        });
        // Far above every threshold, and far enough below the end that an update cannot overflow.
        let sums = 0..1i64 << 61;
        let detector_holds = sums.contains(&bucket.detector.worse) && sums.contains(&bucket.detector.better);
        let rest_holds = bucket.live != 0 && usize::from(bucket.cursor) < ARMS_MAX;
        if arms_hold && detector_holds && rest_holds && bucket.selections_total < 1 << 63 {
            Ok(bucket)
        } else {
            Err(start.error("a bucket that breaks its invariants"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Parameters;
    use crate::loss::Loss;
    use bem_base::prng::Prng;

    #[test]
    fn a_saved_bucket_continues_as_if_never_saved() {
        let mut prng = Prng::stream(1, "bucket/encode");
        let parameters = Parameters::DEFAULT;
        let mut bucket = Bucket::new(&parameters, 0b0111_0110_1110_1011);
        for round in 0..5_000 {
            let arm = bucket.choose();
            bucket.update(&parameters, arm, Loss::from_bit(prng.below(10) < 3 + arm as u64 % 4));
            if round % 500 == 0 {
                let mut writer = Writer::new();
                bucket.encode(&mut writer);
                let bytes = writer.into_bytes();
                assert_eq!(Bucket::decode(&mut Reader::new(&bytes)).as_ref(), Ok(&bucket));
                assert!(Bucket::decode(&mut Reader::new(&bytes[1..])).is_err());
            }
        }
    }
}
