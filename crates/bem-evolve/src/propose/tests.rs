//! Proposers on a small log.

use super::*;
use crate::battery::Laboratory;
use crate::localize::TracedStep;
use crate::verify::verify;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Outcome};
use bem_base::prng::Prng;
use bem_games::compose::TaskTree;
use bem_machine::route::directory::RouteInput;
use bem_teacher::ladder::Domain;
use bem_teacher::mutate::Transformation;
use bem_teacher::template::{TemplateId, measure};

/// Steps in which slot 1 is right where bit 2 is false and slot 2 where it is true.
fn log() -> Vec<TracedEpisode> {
    let mut prng = Prng::stream(1, "log");
    let mut episode = Vec::new();
    for time in 0..1_200 {
        let mut observation = Bits::ZERO;
        observation.set_field(0, 6, prng.below(64));
        let slot = 1 + (time % 2) as u8;
        let right = observation.get(2) == (slot == 2);
        let loss = if right { Fixed::ZERO } else { Fixed::ONE };
        episode.push(TracedStep { bucket: 0, slot, loss, observation });
    }
    vec![episode]
}

fn outcome(reward: i32) -> Outcome {
    Outcome { reward, done: true, bad: false }
}

fn kinds(proposals: &[Proposal]) -> Vec<PatchKind> {
    let mut kinds: Vec<PatchKind> = proposals.iter().map(Proposal::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[test]
fn what_is_proposed_from_a_log_passes_its_condition() {
    let laboratory = Laboratory::new();
    let pox = PoxState::new(laboratory.config());
    let mut family = laboratory.family().clone();
    // Slot 4 is bad everywhere, and slot 2 was good long ago.
    for _ in 0..400 {
        family.credit(0, 4, &outcome(0));
        family.credit(0, 2, &outcome(1_000));
    }
    let text = "mask{percent=5,bits=1}(parity{n=4})";
    let edit = TeachEdit {
        parent: TemplateId(0),
        transformation: Transformation::Mask,
        tree: TaskTree::parse(text).unwrap(),
        domain: Domain(0),
        difficulty: measure(text).unwrap().difficulty,
    };
    let edits = [edit];
    let (log, mut notebook) = (log(), Notebook::default());
    let sources = Sources { family: &family, episodes: &log, edits: &edits };
    // The first call finds that the two experts that act cannot be made smaller; the second looks at the others.
    propose_all(&sources, &pox, &mut notebook);
    let proposals = propose_all(&sources, &pox, &mut notebook);
    let all_but_synthesis = &PatchKind::ALL[..7];
    assert_eq!(kinds(&proposals), all_but_synthesis);
    for (serial, proposal) in (100..).zip(proposals) {
        assert_eq!(proposal.improvement.is_none(), proposal.evidence_kind() == EvidenceKind::Rollouts);
        let kind = proposal.kind();
        if let Change::Split { by, .. } = &proposal.change {
            assert_eq!(*by, [RouteInput::State(2)]);
        }
        let patch = patch(laboratory.tables(), serial, 0, proposal.change, proposal.effects).unwrap();
        let verified = verify(patch, &laboratory.context());
        assert!(verified.is_ok(), "{kind:?}: {:?}", verified.err());
    }
}

#[test]
fn what_was_refused_is_not_proposed_again_and_notes_come_back_from_their_bytes() {
    let laboratory = Laboratory::new();
    let pox = PoxState::new(laboratory.config());
    let (log, mut notebook) = (log(), Notebook::default());
    let sources = Sources { family: laboratory.family(), episodes: &log, edits: &[] };
    let first = propose_all(&sources, &pox, &mut notebook);
    first.iter().for_each(|proposal| notebook.note_refused(&proposal.change));
    let again = propose_all(&sources, &pox, &mut notebook);
    let twice: Vec<Proposal> = again.into_iter().filter(|proposal| first.contains(proposal)).collect();
    assert!(kinds(&first).contains(&PatchKind::Macro) && kinds(&twice) == [PatchKind::Split], "{twice:?}");
    let mut writer = Writer::new();
    notebook.encode(&mut writer);
    let mut reader = Reader::new(writer.as_bytes());
    assert_eq!(Notebook::decode(&mut reader), Ok(notebook));
    assert_eq!(reader.finish(), Ok(()));
}

#[test]
fn a_proposer_that_was_wrong_waits_behind_one_that_was_right() {
    let laboratory = Laboratory::new();
    let mut pox = PoxState::new(laboratory.config());
    let mut family = laboratory.family().clone();
    (0..400).for_each(|_| {
        family.credit(0, 4, &outcome(0));
        family.credit(0, 2, &outcome(1_000));
    });
    let log = log();
    let sources = Sources { family: &family, episodes: &log, edits: &[] };
    let place = |pox: &PoxState, kind: PatchKind| {
        let proposals = propose_all(&sources, pox, &mut Notebook::default());
        proposals.iter().position(|proposal| proposal.kind() == kind).unwrap()
    };
    assert!(place(&pox, PatchKind::Split) < place(&pox, PatchKind::Retire));
    for _ in 0..20 {
        pox.book(PatchKind::Split, Fixed::HALF, true, 1);
        pox.book_rolled_back(PatchKind::Split);
    }
    assert!(place(&pox, PatchKind::Retire) < place(&pox, PatchKind::Split));
}

#[test]
fn only_an_expert_that_is_bad_everywhere_is_retired() {
    let laboratory = Laboratory::new();
    let mut family = laboratory.family().clone();
    assert_eq!(propose_retire(&family), None);
    for _ in 0..300 {
        family.credit(0, 1, &outcome(1_000));
        family.credit(0, 2, &outcome(0));
    }
    assert_eq!(propose_retire(&family).unwrap().change, Change::Retire { slot: 2 });
    // In a bucket where it was not tried it may be the best.
    family.split(0, &[RouteInput::State(3)]).unwrap();
    family.reset(1).unwrap();
    assert_eq!(propose_retire(&family), None);
}

#[test]
fn statistics_are_reset_when_late_steps_contradict_them_and_not_otherwise() {
    let laboratory = Laboratory::new();
    let mut family = laboratory.family().clone();
    let mut prng = Prng::stream(1, "late");
    let mut steps = |count: usize, lost_percent: u64| -> Vec<TracedStep> {
        let step = |_| {
            let loss = if prng.below(100) < lost_percent { Fixed::ONE } else { Fixed::ZERO };
            TracedStep { bucket: 0, slot: 1, loss, observation: Bits::ZERO }
        };
        (0..count).map(step).collect()
    };
    let (before, like_before, after) = (steps(1_200, 20), steps(400, 20), steps(400, 45));
    for step in &before {
        family.credit(0, 1, &outcome(if step.loss == Fixed::ZERO { 1_000 } else { 0 }));
    }
    assert_eq!(propose_reset(&family, &[before.clone(), like_before]), None);
    let found = propose_reset(&family, &[before, after]).unwrap();
    assert_eq!(found.change, Change::Reset { bucket: 0 });
}

#[test]
fn the_best_experts_of_several_buckets_become_one() {
    let laboratory = Laboratory::new();
    let mut family = laboratory.family().clone();
    family.split(0, &[RouteInput::State(2)]).unwrap();
    family.split(1, &[RouteInput::State(5)]).unwrap();
    // Bit 2 and bit 5 say which of two experts is right; slot 1 is right in two of three buckets.
    for (bucket, right, wrong) in [(0, 1, 2), (1, 2, 1), (2, 1, 2)] {
        for _ in 0..40 {
            family.credit(bucket, right, &outcome(1_000));
            family.credit(bucket, wrong, &outcome(0));
        }
    }
    let merge = propose_merge(&family, &[]).unwrap();
    let Change::Merge { members, .. } = &merge.change else { panic!("a merge was asked for") };
    let cubes: Vec<(u8, &[(u16, bool)])> =
        members.iter().map(|member| (member.slot, &member.domain[..])).collect();
    assert_eq!(
        cubes,
        [(1, &[(2, false)][..]), (2, &[(2, true), (5, false)][..]), (1, &[(2, true), (5, true)][..])]
    );
    let tables = Tables::new(vec![family]);
    let context = crate::condition::Context { tables: &tables, ..laboratory.context() };
    let patch = patch(&tables, 100, 0, merge.change, merge.effects).unwrap();
    verify(patch, &context).unwrap();
}
