//! What a family refuses.

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
