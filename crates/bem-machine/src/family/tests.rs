//! What a family refuses, and what a wider range leaves of its statistics.

use super::*;
use crate::config::ChoiceRule;
use crate::expert::{OutputUse, Profile, ReadSpec, RoutingMetadata, WriteSpec};
use bem_base::prng::Prng;
use bem_circuit::testing::random_dense_netlist;

fn shape() -> Shape {
    Shape {
        observation_bits: 8,
        actions: 4,
        horizon: 10,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 10_000,
        fields: Vec::new(),
    }
}

fn parts(layout: &StateLayout) -> ExpertParts {
    ExpertParts {
        read: ReadSpec { state_bits: (0..8).collect(), shared: Vec::new() },
        write: WriteSpec {
            outputs: layout.action().map(|bit| OutputUse::State(bit as u16)).collect(),
            integers: Vec::new(),
        },
        circuit: random_dense_netlist(&mut Prng::quick(1), 8, 40, 2),
        profile: Profile::default(),
        routing: RoutingMetadata::default(),
    }
}

#[test]
fn an_expert_with_which_a_step_could_cost_too_much_is_neither_installed_nor_swapped_in_nor_read_back() {
    let rules = [ChoiceRule::UcbV, ChoiceRule::Softmax, ChoiceRule::TsallisInf];
    for (choice_rule, router) in
        rules.map(|rule| [RouterKind::Directory, RouterKind::Hamming].map(|router| (rule, router))).concat()
    {
        let roomy = GenesisConfig { choice_rule, router, ..GenesisConfig::default() };
        let mut family = Family::new(&roomy, shape()).unwrap();
        let parts = parts(family.layout());
        let id = ObjectId::expert(0, 1);
        let cost = Expert::new(&roomy, id, parts.clone()).unwrap().cost();
        let found = StepCost::new(&roomy, cost).total();
        let exact = GenesisConfig { expert_cost_max: cost, step_cost_max: found, ..roomy.clone() };
        let tight = GenesisConfig { step_cost_max: found - 1, ..exact.clone() };
        exact.check().unwrap();
        tight.check().unwrap();
        let refused = FamilyError::StepCost { found, overhead: found - cost, bound: found - 1 };
        assert_eq!(family.install(&tight, id, parts.clone()), Err(refused.clone()));
        assert_eq!(family.install(&exact, id, parts.clone()), Ok(1));
        assert_eq!(family.replace(&tight, 1, id, parts.clone()), Err(refused));
        let mut writer = bem_base::encode::Writer::new();
        family.encode(&mut writer);
        let read = |config| Family::decode(config, &mut bem_base::encode::Reader::new(writer.as_bytes()));
        assert!(read(&exact).is_ok());
        assert!(read(&tight).is_err());
    }
}

/// Shapes whose rewards begin lower, end higher, or both.
fn wider_shapes() -> [Shape; 3] {
    let wider = |reward_min: i32, reward_max: i32| Shape {
        reward_min,
        reward_max,
        return_min: 10 * i64::from(reward_min),
        return_max: 10 * i64::from(reward_max),
        ..shape()
    };
    [wider(-2_500, 1_000), wider(0, 7_000), wider(-300, 1_700)]
}

/// A family that stands for a world and has counted so many steps, the last action never.
fn after_steps(steps: u64, shape: Shape) -> Family {
    let mut family = Family::for_world(&GenesisConfig::default(), shape).unwrap();
    let mut prng = Prng::quick(7);
    let step = |_| {
        let action = prng.below(3) as u16;
        let reward = (300 * i32::from(action) + prng.below(401) as i32).min(1_000);
        Counted { action, reward, chance: None }
    };
    let counted: Vec<Counted> = (0..steps).map(step).collect();
    family.count_anew([counted.as_slice()].into_iter());
    family
}

#[test]
fn what_plain_actions_brought_on_a_wider_range_is_what_a_count_of_all_steps_would_say() {
    for wider in wider_shapes() {
        let mut family = after_steps(900, shape());
        let mut twin = family.clone();
        family.cover(&wider);
        twin.cover(&wider);
        assert_eq!(family.plain(), twin.plain());
        let counted = after_steps(900, wider.clone());
        assert_eq!(family.reward_range(), counted.reward_range());
        let (is, wanted) = (&family.plain()[0], &counted.plain()[0]);
        assert_eq!(is.selections_total(), wanted.selections_total());
        for (arm, want) in is.arms().iter().zip(wanted.arms()) {
            let visits = u64::from(arm.visits);
            assert_eq!(arm.visits, want.visits);
            assert!(arm.loss_sum.abs_diff(want.loss_sum) <= 2 * visits + 4, "{arm:?} {want:?}");
            assert!(arm.loss_sq_sum.abs_diff(want.loss_sq_sum) <= 6 * visits + 16, "{arm:?} {want:?}");
        }
        // What nobody has tried is imagined as it was at the start.
        assert_eq!(is.arms()[3], wanted.arms()[3]);
        // Everything counted, so that more may have been seen than was.
        assert!(wanted.range() <= is.range() && is.range() <= wanted.range().plus(wanted.range()));
    }
}

#[test]
fn what_other_tasks_brought_is_imagined_to_be_as_much_on_a_wider_range() {
    for wider in wider_shapes() {
        let mut family = after_steps(900, shape());
        family.begin_task();
        let paid = |family: &Family, arm: usize| {
            let (low, high, _) = family.reward_range().parts();
            high - ((family.plain()[0].arms()[arm].loss_sum * (high - low) as u64) >> 32) as i64
        };
        let before = [0, 1, 2].map(|arm| paid(&family, arm));
        assert!(before.is_sorted() && before[0] < before[2]);
        family.cover(&wider);
        for (arm, before) in before.into_iter().enumerate() {
            assert!((paid(&family, arm) - before).abs() <= 1);
        }
    }
}

#[test]
fn a_range_that_stays_moves_nothing() {
    let mut family = after_steps(50, shape());
    let before = (family.statistics.plain.clone(), family.statistics.buckets.clone());
    family.cover(&Shape { return_max: 20_000, ..shape() });
    assert_eq!((&family.statistics.plain, &family.statistics.buckets), (&before.0, &before.1));
}
