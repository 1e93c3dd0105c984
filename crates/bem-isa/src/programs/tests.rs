//! `update` against bem-learn's bucket: every word equal after every update.

use super::*;
use crate::interpreter::SegmentStarts;
use crate::memory::PAGE_WORDS;
use bem_base::encode::{Reader, Writer};
use bem_base::fixed::Fixed;
use bem_base::limits::{ARMS_MAX, VISITS_HALVE_AT};
use bem_base::prng::Prng;
use bem_learn::bucket::Bucket;
use bem_learn::change::Change;
use bem_learn::index::{ChangeParameters, Parameters};
use bem_learn::loss::Loss;
use bem_learn::numeric::table_words;

/// A bucket in memory and the program that updates it.
struct Bench {
    program: Program,
    shared: Vec<u64>,
    config_start: usize,
}

impl Bench {
    fn new(parameters: &Parameters, bucket: &Bucket) -> Bench {
        let layout = Layout::read(LAYOUT);
        let program = assemble(&[LAYOUT, "    jal x30, update\n    ret x31\n", BANDIT].concat()).unwrap();
        let config_start = 2 * PAGE_WORDS;
        let tables = table_words();
        let mut shared = vec![0; config_start + layout.word("LN_TABLE") + tables.len()];
        shared[..128].copy_from_slice(&bucket.words());
        let config = &mut shared[config_start..];
        config[layout.word("LN_TABLE")..].copy_from_slice(&tables);
        config[layout.word("CFG_START")] = 8 * config_start as u64;
        config[layout.word("EXPLORATION")] = (parameters.exploration.to_raw() as u64) << 16;
        config[layout.word("LOSS_REFERENCE")] = parameters.loss_reference.to_raw() as u64;
        config[layout.word("PRIOR_RATE")] = parameters.prior_rate.to_raw() as u64;
        config[layout.word("PRIOR_MIN")] = parameters.prior_min.to_raw() as u64;
        config[layout.word("PRIOR_MAX")] = parameters.prior_max.to_raw() as u64;
        if let Some(change) = parameters.change {
            config[layout.word("CHANGE")] = 1;
            config[layout.word("DRIFT")] = change.drift.to_raw() as u64;
            config[layout.word("THRESHOLD")] = change.threshold.to_raw() as u64;
        }
        Bench { program, shared, config_start }
    }

    fn update(&mut self, arm: usize, loss: Loss) -> Option<Change> {
        let starts = SegmentStarts::default().with(SegmentBase::Cfg, 8 * self.config_start as u64);
        let mut core = Core::new(&self.program, 0, starts);
        (core.x[2], core.x[3]) = (arm as u64, loss.to_raw());
        let mut memory = Memory::open(&mut self.shared, &mut []);
        core.run(&self.program, &mut memory, &mut NoCoprocessor, 100_000).unwrap();
        [None, Some(Change::Worse), Some(Change::Better)][core.x[4] as usize]
    }
}

/// Random arms and losses that change their level now and then, so that alarms happen.
fn compare(parameters: &Parameters, mut bucket: Bucket, updates: u64, seed: u64) -> u64 {
    let mut prng = Prng::stream(seed, "programs/update");
    let mut bench = Bench::new(parameters, &bucket);
    let mut alarms = 0;
    for update in 0..updates {
        let arm = if prng.below(4) == 0 { prng.below(ARMS_MAX as u64) as usize } else { bucket.choose() };
        let level = (update / 2_000) % 3;
        let loss = match prng.below(3) {
            0 => Loss::from_raw(prng.below((1 << 32) + 1)),
            _ => Loss::from_bit(prng.below(10) < 1 + 4 * level),
        };
        let expected = bucket.update(parameters, arm, loss);
        alarms += u64::from(expected.is_some());
        assert_eq!(bench.update(arm, loss), expected, "update {update}");
        assert_eq!(bench.shared[..128], bucket.words(), "update {update}");
    }
    alarms
}

#[test]
fn every_word_of_a_bucket_equals_the_native_one_after_each_of_120_000_updates() {
    let defaults = Parameters::DEFAULT;
    let alarms = compare(&defaults, Bucket::new(&defaults, 0b0111_1101_1111_1011), 60_000, 1);
    assert!(0 < alarms, "the losses change enough to raise an alarm");
    let moving = Parameters {
        exploration: Fixed::from_int(4),
        prior_rate: Fixed::ONE,
        change: Some(ChangeParameters { drift: Fixed::ZERO, threshold: Fixed::from_int(20) }),
        ..defaults
    };
    compare(&moving, Bucket::new(&moving, u16::MAX), 30_000, 2);
    let still = Parameters { prior_rate: Fixed::from_ratio(1, 64), change: None, ..defaults };
    compare(&still, Bucket::new(&still, 1 << 7 | 1), 30_000, 3);
}

#[test]
fn halving_of_full_counts_equals_the_native_one() {
    let parameters = Parameters::DEFAULT;
    let mut prng = Prng::stream(4, "programs/halve");
    for _ in 0..50 {
        let mut writer = Writer::new();
        for _ in 0..ARMS_MAX {
            let visits = if prng.bit() { VISITS_HALVE_AT - 1 } else { 1 + prng.below(1 << 30) as u32 - 1 };
            let visits = visits.max(1);
            let sum = prng.below(u64::from(visits) << 32);
            writer.i32(0);
            writer.u32(visits);
            writer.u64(sum);
            writer.u64(prng.below(sum + 1));
            writer.i32(prng.between(-1 << 24, 1 << 24) as i32);
        }
        writer.u64(1 << 33);
        writer.i64(0);
        writer.i64(0);
        writer.u16(u16::MAX);
        writer.u8(3);
        let bytes = writer.into_bytes();
        let bucket = Bucket::decode(&mut Reader::new(&bytes)).unwrap();
        compare(&parameters, bucket, 60, prng.next_u64());
    }
}
