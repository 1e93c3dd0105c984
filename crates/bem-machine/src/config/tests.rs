//! What a configuration file may and may not say.

use super::*;
use bem_base::fixed::Fixed;
use bem_learn::index::Parameters;
use expect_test::{Expect, expect};

/// All parameters that came after the first version.
fn later_names() -> Vec<&'static str> {
    ADDED.iter().flat_map(|(_, names)| *names).copied().collect()
}

fn check_refused(text: &str, want: Expect) {
    want.assert_eq(&GenesisConfig::from_toml(text).unwrap_err().to_string());
}

#[test]
fn the_defaults_are_valid_and_survive_the_file_and_the_bytes() {
    let config = GenesisConfig::default();
    config.check().unwrap();
    assert_eq!(GenesisConfig::from_toml(&config.to_toml()), Ok(config.clone()));
    assert_eq!(GenesisConfig::from_toml(""), Ok(config.clone()));
    let mut writer = Writer::new();
    config.encode(&mut writer);
    let mut reader = Reader::new(writer.as_bytes());
    assert_eq!(GenesisConfig::decode(&mut reader), Ok(config));
    reader.finish().unwrap();
}

#[test]
fn decimals_are_exact_in_every_spelling() {
    for text in ["0.3", "\"0.3\"", "0.30"] {
        let config = GenesisConfig::from_toml(&format!("expert_exploration = {text}")).unwrap();
        assert_eq!(config.expert_exploration, Fixed::from_ratio(3, 10));
        assert!(config.to_toml().contains("expert_exploration = 0.3\n"));
    }
    let config = GenesisConfig::from_toml("prior_min = -0.000000001").unwrap();
    assert_eq!(GenesisConfig::from_toml(&config.to_toml()), Ok(config));
}

#[test]
fn a_wrong_file_is_refused_with_field_value_and_range() {
    check_refused(
        "lanes = 0",
        expect!["line 1: lanes cannot be 0: it must be a whole number from 256 to 256"],
    );
    check_refused("\nbuckets = 3", expect!["line 2: buckets cannot be 3: it must be a power of two"]);
    check_refused("guard = 1", expect!["line 1: guard cannot be 1: it must be true or false"]);
    check_refused(
        "lanes = \"many\"",
        expect![[r#"line 1: lanes cannot be "many": it must be a whole number from 256 to 256"#]],
    );
    check_refused(
        "expert_exploration = 0.1",
        expect![
            "line 1: expert_exploration cannot be 0.1: it must be a decimal from 0.25 to 2 with at most nine digits after the point"
        ],
    );
    check_refused(
        "expert_exploration = inf",
        expect![
            "line 1: expert_exploration cannot be inf: it must be a decimal from 0.25 to 2 with at most nine digits after the point"
        ],
    );
    check_refused(
        "choice_rule = \"best\"",
        expect![[
            r#"line 1: choice_rule cannot be "best": it must be one of "ucb_v", "softmax", "as_printed", "tsallis_inf""#
        ]],
    );
    check_refused(
        "band_thresholds = [0, 2, 2]",
        expect![
            "line 1: band_thresholds cannot be [0.0, 2.0, 2.0]: it must be a strictly rising list of 1 to 64 decimals from 0 to 1"
        ],
    );
    check_refused(
        "reward_min = 5\nreward_max = 5",
        expect!["line 1: reward_min cannot be 5: it must be below reward_max"],
    );
    check_refused(
        "router = \"hamming\"\nsearch_depth_max = 1\nsearch_degree_max = 8",
        expect![[
            r#"line 2: search_depth_max cannot be 1: with router = "hamming", search_depth_max times search_degree_max must reach expert_slots, or some experts could never be found"#
        ]],
    );
    check_refused(
        "expert_cost_max = 500\nstep_cost_max = 500",
        expect![
            "line 2: step_cost_max cannot be 500: a step costs more than this before any expert has acted, with this router and this rule"
        ],
    );
    check_refused("a = 1\nb = [", expect!["line 2: unclosed array, expected `]`"]);
}

#[test]
fn an_unknown_field_is_refused_with_the_known_ones() {
    let message = GenesisConfig::from_toml("lane = 256").unwrap_err().to_string();
    assert!(
        message.starts_with("line 1: there is no parameter \"lane\"; known are state_bits, lanes, "),
        "{message}"
    );
    assert!(GenesisConfig::NAMES.iter().all(|name| message.contains(name)));
}

#[test]
fn every_parameter_moves_the_digest() {
    let digest = GenesisConfig::default().digest();
    let changed = GenesisConfig { synth_patches: 65, ..GenesisConfig::default() };
    assert_ne!(digest, changed.digest());
    // One word per parameter and one more per threshold: nothing is left out of the encoding.
    let config = GenesisConfig::default();
    let said = GenesisConfig::NAMES.len() + config.band_thresholds.len();
    assert_eq!(config.words().len(), said - later_names().len());
    let other = GenesisConfig { alarms: false, ..config.clone() };
    assert_eq!(other.words().len(), said);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "([a-z_]{1,12} ?= ?[-0-9.\"\\[\\]a-z]{0,12}\n){0,4}") {
        let _ = GenesisConfig::from_toml(&text);
    }

    #[test]
    fn mutated_bytes_never_panic_and_never_pass_the_checks_unseen(position in 0usize..1_000, value in 0u8..) {
        let mut writer = Writer::new();
        GenesisConfig::default().encode(&mut writer);
        let mut bytes = writer.into_bytes();
        let position = position % bytes.len();
        bytes[position] = value;
        if let Ok(config) = GenesisConfig::decode(&mut Reader::new(&bytes)) {
            config.check().unwrap();
            let mut again = Writer::new();
            config.encode(&mut again);
            proptest::prop_assert_eq!(again.as_bytes(), &bytes[..]);
        }
    }
}

#[test]
fn the_defaults_of_choice_are_those_that_the_laboratory_measured() {
    assert_eq!(crate::family::learning_parameters(&GenesisConfig::default()), Parameters::DEFAULT);
}

#[test]
fn what_leaves_the_latest_parameters_alone_has_the_bytes_of_the_version_before() {
    let encoded = |config: &GenesisConfig| {
        let mut writer = Writer::new();
        config.encode(&mut writer);
        writer.into_bytes()
    };
    let usual = GenesisConfig::default();
    let other = GenesisConfig { exploration_hope: false, ..GenesisConfig::default() };
    let (before, after) = (encoded(&usual), encoded(&other));
    assert_eq!((before[0], after[0], before.len() + 8 * later_names().len()), (2, 3, after.len()));
    for config in [&usual, &other] {
        assert_eq!(GenesisConfig::decode(&mut Reader::new(&encoded(config))).unwrap(), *config);
    }
    // One configuration has one form.
    let mut writer = Writer::new();
    writer.u32(3);
    usual.encode_fields(3, &mut writer);
    assert!(GenesisConfig::decode(&mut Reader::new(writer.as_bytes())).is_err());
}

#[test]
fn the_rows_of_versions_rise_by_one_and_name_parameters_once_each() {
    let versions: Vec<u32> = ADDED.iter().map(|(version, _)| *version).collect();
    let rising: Vec<u32> = (1..=ADDED.len() as u32).map(|row| VERSION_FIRST + row).collect();
    assert_eq!(versions, rising);
    let (names, mut once) = (later_names(), later_names());
    assert!(names.iter().all(|name| GenesisConfig::NAMES.contains(name)), "{names:?}");
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len());
}

#[test]
fn a_further_version_is_one_row_and_leaves_the_bytes_of_all_before_it() {
    let added: &[(u32, &[&str])] = &[(3, &["alarms"]), (4, &["guard"]), (5, &["lanes"])];
    let version = |moved: &[&str]| oldest_version(added, |name| moved.contains(&name));
    assert_eq!((version(&[]), version(&["alarms"]), version(&["guard"])), (2, 3, 4));
    assert_eq!(
        (version(&["alarms", "guard"]), version(&["alarms", "lanes"]), version(&["buckets"])),
        (4, 5, 2)
    );
    let names = ["buckets", "alarms", "guard", "lanes"];
    let said = |version| names.into_iter().filter(|name| has_parameter(added, version, name)).count();
    assert_eq!([2, 3, 4, 5].map(said), [1, 2, 3, 4]);
}
