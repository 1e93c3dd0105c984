//! Splits touch one bucket, and both forms of the signature agree.

use super::*;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::Bits;
use bem_base::lanes::LaneWord;
use bem_base::limits::LANES;
use bem_base::prng::Prng;

const fn state(bit: u16) -> RouteInput {
    RouteInput::State(bit)
}

fn bucket_of(directory: &Directory, bits: u64) -> u16 {
    directory.bucket(directory.signature(|input| match input {
        RouteInput::State(bit) => bits >> bit & 1 == 1,
        RouteInput::Shared { bit, .. } => bits >> bit & 1 == 1,
    }))
}

#[test]
fn a_family_starts_on_its_own_and_a_split_touches_one_bucket() {
    let mut directory = Directory::new(1_024);
    assert!((0..256).all(|bits| bucket_of(&directory, bits) == 0));
    assert_eq!(directory.split(0, &[state(3)]), Ok(1));
    assert_eq!(directory.split(1, &[state(5)]), Ok(2));
    for bits in 0..256u64 {
        let want = match (bits >> 3 & 1, bits >> 5 & 1) {
            (0, _) => 0,
            (_, 0) => 1,
            _ => 2,
        };
        assert_eq!(bucket_of(&directory, bits), want, "{bits:#b}");
    }
    // The other half can be split by the same bit without a new signature bit.
    assert_eq!(directory.split(0, &[state(5)]), Ok(3));
    assert_eq!(directory.depth(), 2);
    assert_eq!(bucket_of(&directory, 1 << 5), 3);
}

#[test]
fn a_split_may_look_at_the_parity_of_several_bits() {
    let mut directory = Directory::new(8);
    directory.split(0, &[state(1), state(4), state(1)]).unwrap();
    for bits in 0..32u64 {
        assert_eq!(u64::from(bucket_of(&directory, bits)), (bits >> 1 ^ bits >> 4) & 1);
    }
    assert_eq!(directory.split(1, &[state(4), state(1)]), Err(DirectoryError::AlreadySplit { bucket: 1 }));
}

#[test]
fn splits_out_of_bounds_are_refused_and_change_nothing() {
    let mut directory = Directory::new(2);
    assert_eq!(directory.split(5, &[state(0)]), Err(DirectoryError::UnknownBucket { bucket: 5, count: 1 }));
    assert_eq!(directory.split(0, &[]), Err(DirectoryError::Inputs { count: 0 }));
    assert_eq!(directory.split(0, &[state(1_024)]), Err(DirectoryError::StateBit { bit: 1_024 }));
    directory.split(0, &[state(0)]).unwrap();
    let before = directory.clone();
    assert_eq!(directory.split(0, &[state(1)]), Err(DirectoryError::Full { maximum: 2 }));
    assert_eq!(directory, before);
    let mut flat = Directory::new(1_024);
    for bit in 0..TABLE_DEPTH_MAX as u16 {
        flat.split(0, &[state(bit)]).unwrap();
    }
    assert_eq!(flat.split(0, &[state(10)]), Err(DirectoryError::TooDeep { maximum: TABLE_DEPTH_MAX }));
    let mut deep = Directory::deep(1_024);
    for bit in 0..DEPTH_MAX as u16 {
        deep.split(0, &[state(bit)]).unwrap();
    }
    assert_eq!(deep.split(0, &[state(64)]), Err(DirectoryError::TooDeep { maximum: DEPTH_MAX }));
}

#[test]
fn without_a_table_the_tree_is_walked_to_the_same_buckets() {
    let mut deep = Directory::deep(1_024);
    for bit in 0..20 {
        deep.split(deep.bucket_count() as u16 - 1, &[state(bit)]).unwrap();
    }
    assert!(deep.entries().is_empty() && deep.depth() == 20);
    for bits in (0..1u64 << 20).step_by(97) {
        assert_eq!(u32::from(bucket_of(&deep, bits)), bits.trailing_ones().min(20));
    }
}

#[test]
fn joining_undoes_splitting_and_only_siblings_are_joined() {
    let mut prng = Prng::stream(3, "directory");
    for _ in 0..200 {
        let before = random(&mut prng);
        let mut after = before.clone();
        let bucket = prng.below(before.bucket_count() as u64) as u16;
        let by = [state(prng.below(12) as u16), state(prng.below(12) as u16)];
        if let Ok(child) = after.split(bucket, &by) {
            assert!(after.siblings().contains(&(bucket, child)) || 2 < after.depth());
            after.join(child, bucket).unwrap();
            assert_eq!(after.bucket_count(), before.bucket_count());
            for bits in 0..1 << 12 {
                assert_eq!(bucket_of(&after, bits), bucket_of(&before, bits));
            }
        }
    }
    let mut three = Directory::new(8);
    three.split(0, &[state(0)]).unwrap();
    three.split(1, &[state(1)]).unwrap();
    assert_eq!(three.join(0, 1), Err(DirectoryError::NotSiblings { one: 0, other: 1 }));
    assert_eq!(three.join(0, 9), Err(DirectoryError::UnknownBucket { bucket: 9, count: 3 }));
    three.join(2, 1).unwrap();
    assert_eq!((three.bucket_count(), three.depth(), three.inputs().len()), (2, 1, 1));
}

#[test]
fn the_frozen_tree_gives_every_bucket_its_code() {
    let mut prng = Prng::stream(4, "directory");
    for _ in 0..50 {
        let mut directory = Directory::new(64);
        for _ in 0..prng.below(12) {
            let bucket = prng.below(directory.bucket_count() as u64) as u16;
            let by = [state(prng.below(8) as u16), state(prng.below(8) as u16)];
            let _ = directory.split(bucket, &by);
        }
        let codes: Vec<u16> = (0..directory.bucket_count()).map(|_| prng.below(8) as u16).collect();
        let circuit = directory.freeze(&codes, 3).unwrap().unwrap();
        for bits in 0..256u64 {
            let inputs: Vec<bool> = directory
                .inputs()
                .iter()
                .map(|input| matches!(input, RouteInput::State(bit) if bits >> bit & 1 == 1))
                .collect();
            let outputs = circuit.evaluate(&inputs);
            let code = outputs.iter().rev().fold(0, |code, bit| 2 * code + u16::from(*bit));
            assert_eq!(code, codes[usize::from(bucket_of(&directory, bits))]);
        }
    }
}

/// A directory after random splits by random parities.
fn random(prng: &mut Prng) -> Directory {
    let mut directory = Directory::new(1_024);
    for _ in 0..prng.below(40) {
        let by: Vec<RouteInput> = (0..1 + prng.below(3))
            .map(|_| match prng.below(8) {
                0 => RouteInput::Shared { address: 7, bit: prng.below(4) as u8 },
                _ => state(prng.below(12) as u16),
            })
            .collect();
        let bucket = prng.below(directory.bucket_count() as u64) as u16;
        let _ = directory.split(bucket, &by);
    }
    directory
}

#[test]
fn sliced_and_scalar_signatures_agree_in_every_lane() {
    let mut prng = Prng::stream(1, "directory");
    for round in 0..40 {
        let directory = if round % 4 == 0 {
            let inputs: Vec<RouteInput> = (0..12).map(state).collect();
            Directory::hashed(&inputs, 10, round).unwrap()
        } else {
            random(&mut prng)
        };

        let mut planes: Vec<LaneWord> =
            (0..12).map(|_| LaneWord(core::array::from_fn(|_| prng.next_u64()))).collect();
        let shared = prng.next_u64();
        let mut signature = [LaneWord::ZERO; TABLE_DEPTH_MAX];
        directory.compile().signatures(&mut planes, |_, bit| shared >> bit & 1 == 1, &mut signature);
        for lane in 0..LANES {
            let scalar = directory.signature(|input| match input {
                RouteInput::State(bit) => planes[usize::from(bit)].get(lane),
                RouteInput::Shared { bit, .. } => shared >> bit & 1 == 1,
            });
            let sliced = signature
                .iter()
                .enumerate()
                .fold(0, |sum, (bit, plane)| sum | u64::from(plane.get(lane)) << bit);
            assert_eq!(scalar, sliced);
            let mut seen = Bits::ZERO;
            (0..12).for_each(|bit| seen.set(bit, planes[bit].get(lane)));
            for width in [0, 7, 12] {
                let tabulated = directory.tabulate(width).signature(&seen, |input| match input {
                    RouteInput::State(bit) => seen.get(usize::from(bit)),
                    RouteInput::Shared { bit, .. } => shared >> bit & 1 == 1,
                });
                assert_eq!(scalar, tabulated);
            }
        }
    }
}

#[test]
fn canonical_bytes_come_back_and_damage_is_refused_or_consistent() {
    let mut prng = Prng::stream(2, "directory");
    for _ in 0..100 {
        let directory = random(&mut prng);
        let mut writer = Writer::new();
        directory.encode(&mut writer);
        let mut bytes = writer.into_bytes();
        assert_eq!(Directory::decode(&mut Reader::new(&bytes)), Ok(directory));
        let place = prng.below(bytes.len() as u64) as usize;
        bytes[place] ^= 1 << prng.below(8);
        if let Ok(damaged) = Directory::decode(&mut Reader::new(&bytes)) {
            assert!(usize::from(damaged.bucket(prng.next_u64())) < damaged.bucket_count());
        }
    }
}
