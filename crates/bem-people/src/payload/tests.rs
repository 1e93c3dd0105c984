//! Payloads come back, damaged ones are refused or are the one spelling of others, and a wrong field is named.

use super::context::{
    Candidate, ConfigContext, Context, EpisodeContext, PatchContext, Ranked, ShownStep, StepContext,
    TemplatesContext,
};
use super::*;
use crate::control::Control;
use bem_base::environment::Bits;
use bem_base::prng::Prng;

fn answers() -> Vec<Answer> {
    vec![
        Answer::Step(StepAnswer { accept: false, best: Some(3), score: Fixed::HALF, comment: 7 }),
        Answer::Step(StepAnswer { accept: true, best: None, score: Fixed::ONE, comment: 0 }),
        Answer::Episode(EpisodeAnswer { score: Fixed::from_ratio(3, 4), keep: 2, tags: 5 }),
        Answer::Patch(PatchAnswer { decision: Decision::Reject, risks: 1, weight: Fixed::ONE }),
        Answer::Templates(TemplatesAnswer { order: vec![2, 0, 1], scores: vec![Fixed::ONE; 3] }),
        Answer::Config(ConfigAnswer {
            enable_online: Some(true),
            safety_override_mode: Some(Mode::Whitelist),
            deltas: [Fixed::from_ratio(-1, 10), Fixed::ZERO, Fixed::HALF, Fixed::ZERO, Fixed::ZERO],
        }),
    ]
}

fn contexts() -> Vec<Context> {
    let candidate =
        |action| Candidate { action, visits: 9, mean_loss: Fixed::HALF, index: Fixed::from_ratio(-1, 3) };
    let step = ShownStep { observation: Bits([u64::MAX, 0, 1, 2]), action: 4, reward: -500, bad: true };
    vec![
        Context::Step(StepContext {
            task: 3,
            context_hash: u64::MAX,
            candidates: (0..5).map(candidate).collect(),
            chosen: 2,
            reward: Some(-3),
            step_index: 1,
            episode: 17,
            decision: 19,
            observation: Bits([5, 0, 0, 1 << 63]),
            bad: true,
            cause: 3,
        }),
        Context::Episode(EpisodeContext {
            episode: 17,
            task: 3,
            length: 900,
            return_env: -1_000,
            return_shaped: 2,
            regret: 3,
            flags: 1,
            steps: vec![step; 48],
        }),
        Context::Patch(PatchContext {
            patch: 1 << 63,
            kind: 8,
            pox_score: Fixed::HALF,
            deltas: [Fixed::ONE, Fixed::ZERO, Fixed::ZERO, Fixed::ONE],
            risks: 7,
            task: 0,
            words: "hold the best action of each of 4 contexts".to_string(),
            policies: [1, 2],
            proofs: 3,
            in_force: false,
            missing: Fixed::from_ratio(1, 50),
        }),
        Context::Templates(TemplatesContext {
            templates: vec![
                Ranked {
                    template: 1,
                    name: "ads".into(),
                    usage: 5,
                    pass_rate: Fixed::HALF,
                    difficulty: 10
                };
                16
            ],
        }),
        Context::Config(ConfigContext {
            control: Control::default(),
            safety: [1, 2, 3],
            patches: [4, 5, 6],
            words: "an admin asks".to_string(),
        }),
    ]
}

#[test]
fn payloads_come_back_and_damaged_ones_are_refused_or_the_one_spelling_of_others() {
    let mut prng = Prng::stream(1, "payloads");
    let mut refused = 0;
    let mut damage = |bytes: &[u8], read: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
        for _ in 0..500 {
            let mut damaged = bytes.to_vec();
            let place = prng.below(damaged.len() as u64) as usize;
            damaged[place] ^= 1 << prng.below(8);
            match read(&damaged) {
                None => refused += 1,
                Some(again) => assert_eq!(again, damaged),
            }
            assert_eq!(read(&bytes[..place]), None);
        }
    };
    for answer in answers() {
        let (kind, bytes) = (answer.kind(), answer.to_bytes());
        assert!(bytes.len() <= ANSWER_BYTES_MAX && answer.category() < 16);
        assert_eq!(Answer::from_bytes(kind, &bytes), Ok(answer));
        damage(&bytes, &|bytes| Answer::from_bytes(kind, bytes).ok().map(|answer| answer.to_bytes()));
    }
    for context in contexts() {
        let (kind, bytes) = (context.kind(), context.to_bytes());
        assert!(bytes.len() <= crate::CONTEXT_BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(Context::from_bytes(kind, &bytes), Ok(context));
        damage(&bytes, &|bytes| Context::from_bytes(kind, bytes).ok().map(|context| context.to_bytes()));
    }
    assert!(500 < refused, "{refused}");
}

#[test]
fn a_wrong_field_is_named() {
    let check = |kind: QuestionKind, fields: Vec<Item>, wrong: &str| {
        let error = Answer::from_bytes(kind, &map(fields)).unwrap_err();
        assert_eq!(error.field, wrong, "{error}");
    };
    let int = |value: i64| Item::Int(value);
    let one = Fixed::ONE.to_raw();
    check(QuestionKind::LabelStep, vec![int(2), Item::Null, int(0), int(0)], "accept");
    check(QuestionKind::LabelStep, vec![int(1), int(1_024), int(0), int(0)], "best");
    check(QuestionKind::LabelStep, vec![int(1), Item::Null, int(one + 1), int(0)], "score");
    check(QuestionKind::ScoreEpisode, vec![int(one), int(3), int(0)], "keep");
    check(QuestionKind::ApprovePatch, vec![int(0), int(0), int(one)], "decision");
    check(QuestionKind::RankTemplates, vec![ints([0, 0]), ints([])], "order");
    check(QuestionKind::RankTemplates, vec![ints([1, 0]), ints([1])], "scores");
    check(QuestionKind::AdjustConfig, vec![Item::Null, int(4)], "safety_override_mode");
    check(QuestionKind::AdjustConfig, vec![Item::Null, Item::Null, int(one)], "min_conf_auto_delta");
    check(QuestionKind::ApprovePatch, vec![int(1), int(0), int(one), int(9)], "payload");
    let other = encode(&Item::Map(vec![(0, int(2))]));
    assert_eq!(Answer::from_bytes(QuestionKind::LabelStep, &other).unwrap_err().field, "version");
}
