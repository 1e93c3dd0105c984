//! Tests of the quota of exploring episodes.

use super::*;

fn shape(actions: u16) -> Shape {
    Shape {
        observation_bits: 4,
        actions,
        fields: Vec::new(),
        horizon: 1,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000,
    }
}

/// Episodes played to explore in each tenth of a run in which acting earns half of the range.
fn shares(steps: u64, hoped: Option<i64>) -> Vec<u64> {
    let (shape, config) = (shape(4), GenesisConfig::default());
    let mut exploration = Exploration::default();
    exploration.hope(&shape, hoped);
    let mut prng = Prng::stream(1, "exploration");
    let mut tenths = vec![0; 10];
    for step in 0..steps {
        let explores = exploration.is_next(&shape, &config, step, &mut prng);
        exploration.book(&shape, explores, 500);
        tenths[(10 * step / steps) as usize] += u64::from(explores);
    }
    tenths
}

#[test]
fn exploration_fades_to_a_root_and_lasts_where_something_may_be_left() {
    let tenths = shares(100_000, None);
    assert!(512 < tenths[0] && tenths[0] < 2_000, "{tenths:?}");
    // Less than a hundredth of the last half, and never nothing.
    let late: u64 = tenths[5..].iter().sum();
    assert!((50..=500).contains(&late), "{tenths:?}");
    assert_eq!(shares(100_000, Some(504)), tenths);
    let hopeful = shares(100_000, Some(900));
    assert!(7_000 < hopeful[0] && hopeful[5..].iter().sum::<u64>() < 6_000, "{hopeful:?}");
}

#[test]
fn at_the_declared_maximum_hardly_anything_is_explored_until_something_is_lost() {
    let (shape, config) = (shape(4), GenesisConfig::default());
    let (mut exploration, mut prng) = (Exploration::default(), Prng::stream(2, "exploration"));
    let mut explored = |exploration: &mut Exploration, total: i64, episodes: u64| {
        let mut count = 0;
        for _ in 0..episodes {
            let explores = exploration.is_next(&shape, &config, 1_000, &mut prng);
            exploration.book(&shape, explores, total);
            count += u64::from(explores);
        }
        count
    };
    // The quota of 512 is not reached: 16 episodes at the maximum are enough, which one in five is.
    let early = explored(&mut exploration, 1_000, 1_000);
    assert!((32..=128).contains(&early), "{early}");
    assert_eq!(explored(&mut exploration, 1_000, 1_000), 0);
    // One loss in a hundred is more than is forgiven.
    explored(&mut exploration, 0, 20);
    assert!(0 < explored(&mut exploration, 1_000, 100));
}

#[test]
fn where_nothing_is_left_to_gain_a_logarithm_explores_until_something_else_acts_or_the_world_changes() {
    let (shape, config) = (shape(4), GenesisConfig::default());
    let mut exploration = Exploration::default();
    exploration.settle(true);
    assert_eq!(exploration.allowed(&shape, &config, 10_000), 28);
    assert_eq!(exploration.allowed(&shape, &config, 1 << 40), 82);
    // A world that has changed will change again.
    exploration.reopen(&shape);
    exploration.settle(true);
    assert_eq!(exploration.allowed(&shape, &config, 10_000), 600);
    exploration.hand_over();
    assert!(700 <= exploration.allowed(&shape, &config, 10_000));
}

#[test]
fn luck_in_what_was_earned_is_no_hope_where_the_counts_foresee_what_acts_earns() {
    let (shape, config) = (shape(4), GenesisConfig::default());
    let mut exploration = Exploration::default();
    // What acts is worth 900 and has earned 850 by bad luck; the best play by the counts is worth 905.
    (0..100).for_each(|_| exploration.book(&shape, false, 850));
    exploration.hope(&shape, Some(905));
    let quota = exploration.quota(&shape, &config, 10_000);
    assert_eq!(exploration.allowed(&shape, &config, 10_000), HOPEFUL * quota);
    exploration.foresee(&shape, Some(900));
    assert_eq!(exploration.allowed(&shape, &config, 10_000), 200);
    // What may be much better is looked for all the same.
    exploration.hope(&shape, Some(950));
    assert_eq!(exploration.allowed(&shape, &config, 10_000), HOPEFUL * quota);
    // Whoever acts next has not been foreseen.
    exploration.hope(&shape, Some(905));
    exploration.hand_over();
    assert_eq!(exploration.allowed(&shape, &config, 10_000), HOPEFUL * quota);
}

#[test]
fn a_shown_gain_reopens_the_quota() {
    let (shape, config) = (shape(2), GenesisConfig::default());
    let mut exploration = Exploration::default();
    (0..10_000).for_each(|_| exploration.book(&shape, true, 0));
    let quota = exploration.quota(&shape, &config, 10_000);
    assert!(quota < 10_000);
    exploration.note_gain();
    assert_eq!(exploration.quota(&shape, &config, 10_000), quota + 20_000);
}

#[test]
fn bytes_come_back_and_wild_ones_are_refused() {
    let mut exploration = Exploration::default();
    (0..50).for_each(|turn| exploration.book(&shape(3), turn % 3 == 0, 10 * turn));
    exploration.note_gain();
    exploration.foresee(&shape(3), Some(700));
    let mut writer = Writer::new();
    exploration.encode(&mut writer);
    let bytes = writer.into_bytes();
    let decode = |bytes: &[u8]| Exploration::decode(&shape(3), &mut Reader::new(bytes));
    let mut again = Writer::new();
    decode(&bytes).unwrap().encode(&mut again);
    assert_eq!(again.into_bytes(), bytes);
    (0..bytes.len()).for_each(|cut| assert!(decode(&bytes[..cut]).is_err()));
    let mut wild = bytes;
    wild[8] = 1;
    assert!(decode(&wild).is_err());
}
