//! The state word under every interleaving: `cargo test --release -p bem-tools --features loom --test loom`.
//!
//! Clauses: TOOL-2, TOOL-3.
#![cfg(feature = "loom")]

use bem_tools::error::ErrorCode;
use bem_tools::word::{self, AtomicU64, Ordering, Status};
use loom::sync::Arc;
use loom::thread;

struct Slot {
    state: AtomicU64,
    claim: AtomicU64,
    /// The response of a generation: one cell for each, as every generation has a window of its own.
    response: [AtomicU64; 3],
}

fn slot() -> Arc<Slot> {
    let zero = || AtomicU64::new(0);
    Arc::new(Slot { state: zero(), claim: zero(), response: [zero(), zero(), zero()] })
}

fn work(slot: &Slot, worker: u32) -> Option<u32> {
    let state = word::load(&slot.state);
    if state.status != Some(Status::Pending) || !word::claim(&slot.claim, state.generation, worker) {
        return None;
    }
    slot.response[state.generation as usize]
        .store(100 * u64::from(state.generation) + u64::from(worker), Ordering::Relaxed);
    word::publish(&slot.state, state.generation, None).then_some(state.generation)
}

#[test]
fn two_workers_and_a_lease_that_runs_out_give_one_answer_of_the_last_generation() {
    loom::model(|| {
        let shared = slot();
        word::enqueue(&shared.state, &shared.claim, 1);
        let workers: Vec<_> = [1, 2]
            .map(|worker| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || work(&shared, worker))
            })
            .into_iter()
            .collect();
        // The machine gives the first generation up, unless its answer is there already.
        let mut generation = 1;
        if word::withdraw(&shared.state, 1) {
            generation = 2;
            word::enqueue(&shared.state, &shared.claim, 2);
        }
        let published: Vec<u32> = workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect();
        let state = word::load(&shared.state);
        assert_eq!(state.generation, generation);
        assert_eq!(state.status == Some(Status::Done), published.contains(&generation));
        assert!(published.iter().filter(|published| **published == generation).count() <= 1);
        if generation == 2 {
            assert!(!published.contains(&1), "a withdrawn generation is never published");
        }
        if state.status == Some(Status::Done) {
            let response = shared.response[generation as usize].load(Ordering::Relaxed);
            assert_eq!(response / 100, u64::from(generation), "the response of this generation is visible");
        }
    });
}

#[test]
fn closing_a_claim_and_claiming_it_exclude_each_other() {
    loom::model(|| {
        let shared = slot();
        word::enqueue(&shared.state, &shared.claim, 1);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || word::claim(&shared.claim, 1, 7))
        };
        let is_closed = word::close(&shared.claim, 1);
        assert_ne!(is_closed, worker.join().unwrap());
    });
}

#[test]
fn an_error_carries_its_code_to_the_machine() {
    loom::model(|| {
        let shared = slot();
        word::enqueue(&shared.state, &shared.claim, 1);
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || word::publish(&shared.state, 1, Some(ErrorCode::NOT_FOUND)))
        };
        let seen = word::load(&shared.state);
        if seen.status == Some(Status::Error) {
            assert_eq!(seen.error, ErrorCode::NOT_FOUND);
        }
        assert!(worker.join().unwrap());
    });
}
