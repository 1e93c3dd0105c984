//! Application and taking back, with a patch of every form.

use super::*;
use crate::battery::{Laboratory, good_improvement};
use crate::patch::Form;
use crate::score::PoxState;
use crate::verify::{accept, verify};
use bem_base::fixed::Fixed;
use bem_base::prng::Prng;

fn accepted(laboratory: &Laboratory, form: Form, seed: u64) -> AcceptedPatch {
    let patch = laboratory.good_patch(form, &mut Prng::stream(seed, "accepted"));
    let improvement = good_improvement(&patch.change);
    let verified = verify(patch, &laboratory.context()).unwrap();
    accept(verified, improvement, Fixed::ONE, &PoxState::new(laboratory.config())).unwrap()
}

/// All bytes that patches can touch.
fn bytes(tables: &Tables) -> Vec<u8> {
    let mut writer = Writer::new();
    tables.encode(&mut writer);
    writer.into_bytes()
}

#[test]
fn tables_and_receipts_come_back_from_their_bytes() {
    let laboratory = Laboratory::new();
    let config = laboratory.config();
    for form in Form::ALL {
        let mut tables = laboratory.tables().clone();
        let receipt = tables.apply(config, accepted(&laboratory, form, 1)).unwrap().into_receipt();
        let written = bytes(&tables);
        let mut reader = Reader::new(&written);
        let mut again = Tables::decode(config, &mut reader).unwrap();
        assert_eq!((reader.finish(), bytes(&again)), (Ok(()), written));
        let mut writer = Writer::new();
        receipt.encode(&mut writer);
        let copy = Receipt::decode(config, &mut Reader::new(writer.as_bytes())).unwrap();
        let reason = Contradiction { pairs: 9, mean_loss: Fixed::HALF };
        again.roll_back(copy, reason).unwrap();
        tables.roll_back(receipt, reason).unwrap();
        assert_eq!(bytes(&again), bytes(&tables));
    }
}

#[test]
fn every_kind_is_applied_and_can_be_taken_back() {
    let laboratory = Laboratory::new();
    let config = laboratory.config();
    for form in Form::ALL {
        let mut tables = laboratory.tables().clone();
        let patch = accepted(&laboratory, form, 1).patch().clone();
        let (serial, subject) = (patch.serial, patch.change.subject());
        let before = tables.parent(subject, 0).unwrap();
        let applied = tables.apply(config, accepted(&laboratory, form, 1)).unwrap();
        let (from, to) = applied.digests();
        assert_eq!((from, to), (before, tables.parent(subject, 0).unwrap()));
        // RESET changes statistics alone.
        assert_eq!(from == to, matches!(patch.change, Change::Reset { .. }), "{form:?}");
        assert_eq!(tables.last_applied(subject), Some(serial));
        let reason = Contradiction { pairs: 9, mean_loss: Fixed::HALF };
        let back = tables.roll_back(applied.into_receipt(), reason).unwrap();
        assert_eq!((back.serial, back.kind, back.reason), (serial, form.kind(), reason));
        assert_eq!(tables.parent(subject, 0).unwrap(), before);
        // The serial stays used: taking back is no way to apply something twice.
        let again = tables.apply(config, accepted(&laboratory, form, 1));
        assert!(matches!(again, Err(TablesError::Replayed { .. })));
    }
}

#[test]
fn what_was_accepted_against_other_tables_changes_nothing() {
    let laboratory = Laboratory::new();
    let mut tables = laboratory.tables().clone();
    tables.apply(laboratory.config(), accepted(&laboratory, Form::Retire, 1)).unwrap();
    let before = bytes(&tables);
    for form in [Form::Merge, Form::Macro, Form::Synthesize, Form::Split] {
        for seed in 0..8 {
            assert!(tables.apply(laboratory.config(), accepted(&laboratory, form, seed)).is_err());
            assert_eq!(bytes(&tables), before, "{form:?}");
        }
    }
}

#[test]
fn a_refusal_in_the_middle_leaves_everything_as_it_was() {
    let laboratory = Laboratory::new();
    // No number is left for the merged expert: its members are retired on the copy only.
    let mut config = laboratory.config().clone();
    config.experts_max = 9;
    for form in [Form::Merge, Form::Macro, Form::Synthesize, Form::Superoptimize] {
        let mut tables = laboratory.tables().clone();
        let before = bytes(&tables);
        let refused = tables.apply(&config, accepted(&laboratory, form, 1)).unwrap_err();
        assert_eq!(refused, TablesError::Experts { maximum: 9 });
        assert_eq!(bytes(&tables), before, "{form:?}");
    }
}

#[test]
fn a_later_change_stands_in_the_way_of_taking_back() {
    let laboratory = Laboratory::new();
    let mut tables = laboratory.tables().clone();
    let applied = tables.apply(laboratory.config(), accepted(&laboratory, Form::Macro, 1)).unwrap();
    tables.families[0].retire(1).unwrap();
    let reason = Contradiction { pairs: 9, mean_loss: Fixed::HALF };
    assert!(matches!(tables.roll_back(applied.into_receipt(), reason), Err(TablesError::Obsolete { .. })));
}
