//! What the estimate of difficulty counts, counted again by playing: how many policies an instance may ask for, and
//! how much a policy must remember. Nothing here looks at parameters or at the estimate's formulas. Clauses: GLE-5.

use bem_base::environment::Bits;
use bem_base::fixed::{Fixed, log2_count_floor};
use bem_games::compose::{NoPrograms, TaskTree};
use bem_games::game::Game;
use bem_teacher::difficulty::needs;
use std::collections::{BTreeMap, BTreeSet};

/// What was seen and what the oracle did, step by step.
type Played = Vec<(Bits, u16)>;

/// The oracle's play on each of these seeds. Steps whose answer is free show the oracle's choice all the same.
fn play(game: &dyn Game, seeds: u64) -> Vec<Played> {
    let (mut world, mut oracle) = (game.start(), game.oracle());
    let mut episode = |seed: u64| {
        world.reset(seed).expect("the world starts");
        oracle.begin(seed);
        let mut played = Vec::new();
        loop {
            let observation = *world.observation();
            let action = oracle.act(&observation);
            let outcome = world.step(action).expect("the oracle plays by the rules");
            oracle.see(action, &outcome);
            played.push((observation, action));
            if outcome.done {
                return played;
            }
        }
    };
    (0..seeds).map(&mut episode).collect()
}

/// How many different policies the instances of a task ask for.
fn policies(text: &str, instances: u64) -> u64 {
    let tree = TaskTree::parse(text).expect("well formed");
    let policy = |seed| {
        let game = tree.build(seed, &NoPrograms).expect("can be played");
        let mut answers: BTreeMap<Vec<Bits>, u16> = BTreeMap::new();
        for played in play(game.as_ref(), 300) {
            let seen: Vec<Bits> = played.iter().map(|(observation, _)| *observation).collect();
            for (step, (_, action)) in played.iter().enumerate() {
                answers.insert(seen[..=step].to_vec(), *action);
            }
        }
        answers
    };
    (0..instances).map(policy).collect::<BTreeSet<_>>().len() as u64
}

fn hidden(text: &str) -> Fixed {
    needs(&TaskTree::parse(text).expect("well formed")).expect("known parameters").hidden
}

fn is_close(left: Fixed, right: Fixed) -> bool {
    left.to_raw().abs_diff(right.to_raw()) < 1 << 12
}

#[test]
fn hidden_bits_are_the_logarithm_of_the_policies_there_are() {
    for (text, count) in [
        ("parity{n=4,relevant=2}", 6),
        ("parity{n=5,relevant=5}", 1),
        ("majority{n=5,relevant=3}", 10),
        ("bandit{arms=5}", 5),
        ("signaling{states=3}", 6),
        ("signaling{states=3,role=sender}", 6),
        ("contextual_bandit{context_bits=1,noise_bits=2,arms=2}", 6),
        ("contextual_bandit{context_bits=2,noise_bits=0,arms=2}", 6),
        ("contextual_bandit{context_bits=1,noise_bits=0,arms=3}", 6),
        ("next_token{vocab=2,order=1}", 4),
        ("next_token{vocab=2,order=2}", 16),
        ("permute{length=3,value_bits=2}", 6),
    ] {
        assert_eq!(policies(text, 250), count, "{text}");
        assert!(is_close(hidden(text), log2_count_floor(count)), "{text}: {}", hidden(text));
    }
}

#[test]
fn machines_that_behave_alike_count_once_and_the_bound_holds() {
    // Most machines of few states have a twin with other names for its states.
    let mut last = 0;
    for states in 1..=3 {
        let text = format!("transducer{{states={states},inputs=2,outputs=2,horizon=6}}");
        let found = policies(&text, 300);
        assert!(last < found && log2_count_floor(found) <= hidden(&text), "{text}: {found}");
        last = found;
    }
}

/// The answers that are right after every future of one history.
type Answers = BTreeMap<Vec<Bits>, Vec<u16>>;

/// Bits of memory by Myhill and Nerode: how many histories of the same length there are, any two of which some
/// common future tells apart by the answer that is right.
fn memory_bits(text: &str) -> Fixed {
    let game = TaskTree::parse(text).expect("well formed").build(1, &NoPrograms).expect("can be played");
    let episodes: BTreeSet<Played> = play(game.as_ref(), 3_000).into_iter().collect();
    let longest = episodes.iter().map(Vec::len).max().expect("at least one episode");
    let widest = (1..longest).map(|length| told_apart(&episodes, length)).max().unwrap_or(1);
    log2_count_floor(widest as u64)
}

fn told_apart(episodes: &BTreeSet<Played>, length: usize) -> usize {
    // For every history, the answers that are right after every future.
    let mut futures: BTreeMap<Vec<Bits>, Answers> = BTreeMap::new();
    for played in episodes.iter().filter(|played| length < played.len()) {
        let seen: Vec<Bits> = played.iter().map(|(observation, _)| *observation).collect();
        let answers = played[length..].iter().map(|(_, action)| *action).collect();
        futures.entry(seen[..length].to_vec()).or_default().insert(seen[length..].to_vec(), answers);
    }
    // A set in which any two differ is grown greedily, once as the histories come and once from those with most
    // futures on; the larger one counts.
    let mut histories: Vec<&Answers> = futures.values().collect();
    let first = any_two_differ(&histories);
    histories.sort_by_key(|answers| std::cmp::Reverse(answers.len()));
    first.max(any_two_differ(&histories))
}

fn any_two_differ(histories: &[&Answers]) -> usize {
    let mut chosen: Vec<&Answers> = Vec::new();
    for answers in histories {
        let differ = |other: &&Answers| {
            answers.iter().any(|(future, right)| other.get(future).is_some_and(|other| other != right))
        };
        if chosen.iter().all(differ) {
            chosen.push(answers);
        }
    }
    chosen.len()
}

// Dyck words are not among these: an error is dealt once in a word, so that hardly any two histories share a future.
#[test]
fn remembered_bits_are_those_that_histories_need() {
    let estimated =
        |text: &str| needs(&TaskTree::parse(text).expect("well formed")).expect("known parameters").memory;
    for ladder in [
        vec!["parity{n=4}", "parity_stream{n=5}"],
        vec![
            "stack_machine{depth=1,horizon=4}",
            "stack_machine{depth=2,horizon=6}",
            "stack_machine{depth=3,horizon=8}",
        ],
        vec![
            "key_value{keys=1,values=2,writes=1,distractors=0}",
            "key_value{keys=2,values=2,writes=2,distractors=0}",
        ],
        vec!["associative_recall{tokens=2,pairs=1}", "associative_recall{tokens=3,pairs=2}"],
        vec!["compare{bits=3}", "add{bits=3,form=serial}"],
        vec![
            "transducer{states=1,horizon=6}",
            "transducer{states=3,horizon=6}",
            "transducer{states=4,horizon=8}",
        ],
        vec!["copy{length=1}", "copy{length=2}", "copy{length=4}"],
        vec!["reverse{length=1}", "reverse{length=2}", "reverse{length=4}"],
        vec!["permute{length=1}", "permute{length=2}", "permute{length=4}"],
    ] {
        let mut last = None;
        for text in ladder {
            let (found, stated) = (memory_bits(text), estimated(text));
            let apart = found.to_raw().abs_diff(stated.to_raw());
            // A store that may be partly filled has up to a bit and three quarters more contents than one full of values.
            assert!(apart <= 7 << 30, "{text}: {found} bits found, {stated} stated");
            assert!(
                last.is_none_or(|last| last < found),
                "{text} needs no more than the one before: {found}"
            );
            last = Some(found);
        }
    }
}
