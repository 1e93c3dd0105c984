//! Identifiers and slot tables over whole ranges: every class number, and long sequences of changes. Clauses: ID-3, ID-4.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::ids::{IdError, ObjectClass, ObjectId};
use bem_base::prng::Prng;
use bem_base::slots::{SlotError, SlotTable};
use std::collections::{BTreeMap, BTreeSet};

/// The specification's own list, in the order of the numbers.
const CLASSES: &str = "expert task_family task_template patch env_instance base_problem cfg_fragment task_instance \
    cfg_node variable hypothesis macro fs_node db_conn tool_kind env_task hinl_task episode cnf proof";

/// `TaskFamily` as `task_family`.
fn specification_name(class: ObjectClass) -> String {
    let mut name = String::new();
    for letter in format!("{class:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[test]
fn the_classes_are_those_of_the_specification_and_every_other_number_is_refused() {
    let names: Vec<String> = ObjectClass::ALL.map(specification_name).into();
    assert_eq!(names.join(" "), CLASSES);
    for number in 0..64u32 {
        let words = (0..64).map(|check| number << 26 | check << 20 | 7);
        let read: Vec<_> = words.map(ObjectId::from_word).collect();
        let damaged = read.iter().filter(|id| matches!(id, Err(IdError::Damaged { .. }))).count();
        assert_eq!(damaged, 63, "class {number}: one of all check bits fits");
        let fits = read.into_iter().find(|id| !matches!(id, Err(IdError::Damaged { .. }))).unwrap();
        match fits {
            Ok(id) => assert_eq!(id.class(), ObjectClass::ALL[number as usize]),
            Err(error) => {
                assert!(20 <= number);
                let wanted = format!("has unknown class {number}: known are 0 to 19");
                assert!(error.to_string().ends_with(&wanted), "{error}");
            }
        }
    }
}

#[test]
fn whatever_is_made_moved_and_released_every_reference_keeps_its_meaning() {
    const PLACES: u32 = 12;
    let mut prng = Prng::stream(1, "slots");
    let mut table = SlotTable::new(ObjectClass::Hypothesis, PLACES);
    let (mut model, mut handed_out) = (BTreeMap::<ObjectId, u32>::new(), BTreeSet::new());
    for _ in 0..20_000 {
        let any = model.keys().copied().nth(prng.below(u64::from(PLACES)) as usize);
        match (prng.below(3), any) {
            (0, _) => match table.allocate() {
                Ok((id, slot)) => {
                    assert!(handed_out.insert(id), "{id:?} was handed out before");
                    assert!(!model.values().any(|taken| *taken == slot));
                    model.insert(id, slot);
                }
                Err(error) => {
                    assert_eq!(error, SlotError::Full { capacity: PLACES });
                    assert_eq!(model.len() as u32, PLACES);
                }
            },
            (1, Some(id)) => {
                table.release(id).unwrap();
                model.remove(&id);
                assert_eq!(table.slot(id), Err(SlotError::Unknown { id }));
            }
            (2, Some(id)) => {
                let target = prng.below(u64::from(PLACES) + 1) as u32;
                let is_free = target < PLACES && !model.values().any(|taken| *taken == target);
                assert_eq!(table.rebalance(id, target).is_ok(), is_free);
                if is_free {
                    model.insert(id, target);
                }
            }
            _ => {}
        }
        assert_eq!(table.count() as usize, model.len());
        for (id, slot) in &model {
            assert_eq!((table.slot(*id), table.id_at(*slot)), (Ok(*slot), Some(*id)));
        }
    }
    assert!(3_000 < handed_out.len());
}
