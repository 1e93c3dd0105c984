//! The state of a request: status, error and generation in one atomic word, and who holds the claim in another.
//!
//! ```text
//! state   status 8 | reserved 8 | error 16 | generation 32       claim   worker 32 | generation 32
//!
//!  empty(g) --enqueue--> pending(g+1) --publish--> done(g+1) or error(g+1) --free--> empty(g+1)
//!                           |   ^
//!                           +---+ renew: pending(g+2), after a lease ran out
//! ```
//!
//! A worker changes the word in one way only: from pending of the generation that it claimed to done or error, by one
//! compare-and-swap, so that an answer that comes too late finds another generation and changes nothing. Everything else is
//! the machine's. Must not know what is asked. Clauses: TOOL-2, TOOL-3; decision D-28.

#[cfg(not(feature = "loom"))]
pub use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "loom")]
pub use loom::sync::atomic::{AtomicU64, Ordering};

use crate::error::ErrorCode;

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The slot is free.
    Empty = 0,
    /// It waits or is worked on.
    Pending = 1,
    /// The response is there.
    Done = 2,
    /// It failed.
    Error = 3,
}

/// The state word, taken apart. What a hostile worker wrote may be anything: `status` is none then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Where it stands.
    pub status: Option<Status>,
    /// The error; meaningful when the status is an error.
    pub error: ErrorCode,
    /// How often the slot was used.
    pub generation: u32,
}

const fn pack(status: Status, error: u16, generation: u32) -> u64 {
    status as u64 | (error as u64) << 16 | (generation as u64) << 32
}

impl State {
    /// Takes a word apart.
    pub const fn of(word: u64) -> State {
        let status = match word & 0xFFFF {
            0 => Some(Status::Empty),
            1 => Some(Status::Pending),
            2 => Some(Status::Done),
            3 => Some(Status::Error),
            _ => None,
        };
        State { status, error: ErrorCode((word >> 16) as u16), generation: (word >> 32) as u32 }
    }
}

/// The state as it is now; what was written before it was published is visible after this.
pub fn load(state: &AtomicU64) -> State {
    State::of(state.load(Ordering::Acquire))
}

/// The machine: the request is complete and workers may see it. The claim is open for this generation.
pub fn enqueue(state: &AtomicU64, claim: &AtomicU64, generation: u32) {
    claim.store((generation as u64) << 32, Ordering::Relaxed);
    state.store(pack(Status::Pending, 0, generation), Ordering::Release);
}

/// A worker: takes the request of this generation if nobody has. Worker 0 is nobody.
pub fn claim(claim: &AtomicU64, generation: u32, worker: u32) -> bool {
    let open = (generation as u64) << 32;
    claim.compare_exchange(open, open | u64::from(worker), Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// The worker that holds the claim of this generation; 0 for none.
pub fn holder(claim: &AtomicU64, generation: u32) -> u32 {
    let word = claim.load(Ordering::Acquire);
    if (word >> 32) as u32 == generation { word as u32 } else { 0 }
}

/// The machine: nobody may claim this generation any more. False if somebody has just claimed it.
pub fn close(claimed: &AtomicU64, generation: u32) -> bool {
    if claim(claimed, generation, u32::MAX) {
        return true;
    }
    let is_claimed = holder(claimed, generation) != 0;
    if !is_claimed {
        // Neither open nor claimed: a worker has scribbled on it.
        claimed.store((generation as u64) << 32 | u64::from(u32::MAX), Ordering::Release);
    }
    !is_claimed
}

/// The worker that claimed it: publishes its answer. False if the lease is lost: then nothing has changed.
pub fn publish(state: &AtomicU64, generation: u32, error: Option<ErrorCode>) -> bool {
    let next = match error {
        None => pack(Status::Done, 0, generation),
        Some(error) => pack(Status::Error, error.0, generation),
    };
    let pending = pack(Status::Pending, 0, generation);
    state.compare_exchange(pending, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// The machine: ends the wait for this generation unless an answer is there already; true if it ended. The slot holds an
/// empty word afterwards, so that nobody claims or publishes it any more.
pub fn withdraw(state: &AtomicU64, generation: u32) -> bool {
    let pending = pack(Status::Pending, 0, generation);
    let empty = pack(Status::Empty, 0, generation);
    match state.compare_exchange(pending, empty, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        // What is no answer of this generation is a worker's scribble, and counts as no answer.
        Err(found) => {
            let found = State::of(found);
            let is_answer = matches!(found.status, Some(Status::Done | Status::Error));
            if is_answer && found.generation == generation {
                return false;
            }
            state.store(empty, Ordering::Release);
            true
        }
    }
}

/// The machine: the answer was taken or the wait is over, the slot is free. Whoever held the claim holds nothing any more, so
/// that a worker that answers again does not write to a window which is another request's by now.
pub fn free(state: &AtomicU64, claim: &AtomicU64, generation: u32) {
    claim.store((generation as u64) << 32 | u64::from(u32::MAX), Ordering::Release);
    state.store(pack(Status::Empty, 0, generation), Ordering::Release);
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_comes_too_late_changes_nothing() {
        let (state, claimed) = (AtomicU64::new(0), AtomicU64::new(0));
        enqueue(&state, &claimed, 1);
        assert!(claim(&claimed, 1, 7));
        assert!(!claim(&claimed, 1, 8), "one worker holds it");
        assert_eq!(holder(&claimed, 1), 7);
        assert!(withdraw(&state, 1), "the lease ran out");
        enqueue(&state, &claimed, 2);
        assert!(!publish(&state, 1, None), "the old generation is refused");
        assert!(claim(&claimed, 2, 8));
        assert!(publish(&state, 2, Some(ErrorCode::NOT_FOUND)));
        assert!(!publish(&state, 2, None), "an answer is given once");
        assert!(!withdraw(&state, 2), "an answer that is there is not withdrawn");
        let state = load(&state);
        assert_eq!((state.status, state.error, state.generation), (Some(Status::Error), ErrorCode(7), 2));
    }

    #[test]
    fn a_scribbled_word_is_no_answer() {
        let (state, claimed) = (AtomicU64::new(0), AtomicU64::new(0));
        enqueue(&state, &claimed, 5);
        for scribble in [u64::MAX, 0x0000_0004_0000_0002, 0x0000_0005_0000_0102, 0] {
            state.store(scribble, Ordering::Relaxed);
            let seen = load(&state);
            let is_answer = seen.generation == 5 && matches!(seen.status, Some(Status::Done | Status::Error));
            assert!(!is_answer, "{scribble:#x}");
            assert!(withdraw(&state, 5));
        }
    }
}
