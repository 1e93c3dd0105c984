//! Application with a patch of every form: each changes what it is about and nothing else, once, and can be read back.

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

#[test]
fn a_patch_of_every_form_changes_its_subject_and_no_other_and_only_once() {
    for form in Form::ALL {
        let mut laboratory = Laboratory::new();
        let patch = accepted(&laboratory, form, 3);
        let subject = patch.patch().change.subject();
        let digests = |laboratory: &Laboratory| {
            Subject::ALL
                .map(|subject| laboratory.tables().parent(subject, Some(laboratory.family())).unwrap())
        };
        let before = digests(&laboratory);
        let undo = laboratory.apply(patch.clone()).unwrap();
        let after = digests(&laboratory);
        for (place, other) in Subject::ALL.into_iter().enumerate() {
            assert_eq!(before[place] != after[place], other == subject, "{form:?} {other:?}");
        }
        assert_eq!(laboratory.tables().last_applied(subject), Some(patch.patch().serial));
        let again = laboratory.apply(patch).unwrap_err();
        assert!(matches!(again, TablesError::Replayed { .. }), "{again}");
        let brings = matches!(form, Form::Merge | Form::Play | Form::Synthesize);
        assert_eq!(undo.is_some(), brings, "{form:?}");
    }
}

#[test]
fn tables_come_back_from_their_bytes() {
    let mut laboratory = Laboratory::new();
    laboratory.apply(accepted(&laboratory, Form::TeachEdit, 1)).unwrap();
    let mut writer = Writer::new();
    laboratory.tables().encode(&mut writer);
    let read = Tables::decode(laboratory.config(), &mut Reader::new(writer.as_bytes())).unwrap();
    assert_eq!(read, *laboratory.tables());
    for cut in 0..writer.as_bytes().len() {
        assert!(Tables::decode(laboratory.config(), &mut Reader::new(&writer.as_bytes()[..cut])).is_err());
    }
}

#[test]
fn a_refusal_in_the_middle_leaves_everything_as_it_was() {
    // The members of a merge go before the one that takes their place comes; where it cannot, they are still there.
    let mut laboratory = Laboratory::new();
    let patch = accepted(&laboratory, Form::Merge, 1);
    let members = [1, 2].map(|slot| laboratory.family().expert(slot).unwrap().id());
    let body_is_refused = {
        let family = laboratory.family();
        let Some(Edit::Merge { slots, mut parts }) = edit_of(&patch.patch().change, family) else {
            panic!("a merge was asked for")
        };
        parts.write.outputs[0] = bem_machine::expert::OutputUse::State(0);
        bem_machine::machine::edited(laboratory.config(), family, Edit::Merge { slots, parts })
    };
    assert!(body_is_refused.is_err());
    let before = pool_digest(laboratory.family());
    assert_eq!([1, 2].map(|slot| laboratory.family().expert(slot).unwrap().id()), members);
    laboratory.apply(patch).unwrap();
    assert_ne!(pool_digest(laboratory.family()), before);
}
