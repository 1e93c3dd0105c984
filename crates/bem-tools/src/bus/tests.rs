//! The bus with workers that are slow, dead, late, lying or hostile, step by step.

use super::*;
use crate::worker::{Failure, Job, Port, Tool, serve_one};
use bem_base::ids::ObjectClass;
use bem_base::prng::Prng;
use std::sync::Arc;

type Memory = Arc<Vec<word::AtomicU64>>;

const KIND: ObjectId = ObjectId::new(ObjectClass::ToolKind, 0);
const RESOURCE: ObjectId = ObjectId::new(ObjectClass::FsNode, 9);

fn channel() -> (Channel<Memory>, Memory) {
    let memory = Arc::new(layout::private());
    (Channel::new(KIND, Arc::clone(&memory)), memory)
}

fn asked(number: u64, payload: &[u8], is_idempotent: bool) -> Request<'_> {
    Request {
        operation: 1,
        flags: 0,
        resource: RESOURCE,
        payload,
        capacity: 64,
        number,
        key: key(number, payload),
        is_idempotent,
        lease: 10,
        patience: 1_000,
    }
}

struct Echo;

impl Tool for Echo {
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        match job.operation {
            1 => Ok(job.payload.clone()),
            _ => Err(ErrorCode::UNKNOWN_OPERATION.into()),
        }
    }
}

fn poll(channel: &mut Channel<Memory>, now: u64) -> Vec<Completed> {
    let mut completed = Vec::new();
    channel.poll(now, SLOTS, &mut completed);
    completed
}

#[test]
fn requests_come_back_in_slot_order_with_what_was_asked() {
    let (mut channel, memory) = channel();
    for number in 0..5 {
        channel.enqueue(&asked(number, &[number as u8; 9], true), 0).unwrap();
    }
    let mut port = Port::open(memory, 3).unwrap();
    while serve_one(&mut port, &mut Echo) {}
    let mut first = Vec::new();
    channel.poll(4, 2, &mut first);
    assert_eq!(first.iter().map(|done| done.slot).collect::<Vec<_>>(), [0, 1]);
    let rest = poll(&mut channel, 5);
    assert_eq!(rest.len(), 3);
    for done in first.iter().chain(&rest) {
        assert_eq!(done.response, [done.number as u8; 9]);
        assert_eq!((done.error, done.resource, done.attempts), (None, RESOURCE, 1));
    }
    assert_eq!((channel.in_flight(), channel.counts().done, channel.counts().waited_max), (0, 5, 5));
}

#[test]
fn a_full_bus_says_so_and_counts() {
    let (mut channel, memory) = channel();
    for number in 0..SLOTS as u64 {
        channel.enqueue(&asked(number, b"x", true), 0).unwrap();
    }
    assert_eq!(channel.enqueue(&asked(99, b"x", true), 0), Err(Refused::NoSlot));
    assert_eq!(channel.counts().back_pressure, 1);
    let mut port = Port::open(memory, 1).unwrap();
    serve_one(&mut port, &mut Echo);
    assert_eq!(poll(&mut channel, 1).len(), 1);
    channel.enqueue(&asked(99, b"x", true), 1).unwrap();
    let long = vec![0; PAYLOAD_MAX + 1];
    assert_eq!(channel.enqueue(&asked(100, &long, true), 1), Err(Refused::TooLong));
    let none = Request { capacity: 0, ..asked(101, b"", true) };
    assert_eq!(channel.enqueue(&none, 1), Err(Refused::BadCapacity));
}

#[test]
fn a_lost_worker_costs_an_idempotent_request_nothing_but_time() {
    let (mut channel, memory) = channel();
    channel.enqueue(&asked(7, b"seven", true), 0).unwrap();
    let mut dead = Port::open(Arc::clone(&memory), 1).unwrap();
    let job = dead.claim().unwrap();
    assert!(poll(&mut channel, 1).is_empty(), "the lease begins when the claim is seen");
    assert!(poll(&mut channel, 12).is_empty(), "it is shown again");
    assert_eq!(channel.counts().leases_lost, 1);
    let mut alive = Port::open(Arc::clone(&memory), 2).unwrap();
    assert!(serve_one(&mut alive, &mut Echo));
    assert!(!dead.finish(&job, &Ok(b"wrong".to_vec())), "the dead come too late");
    let done = poll(&mut channel, 13);
    assert_eq!((done[0].response.as_slice(), done[0].attempts), (&b"seven"[..], 2));
}

#[test]
fn a_worker_that_answers_twice_does_not_write_where_another_request_is_by_now() {
    let (mut channel, memory) = channel();
    // Two slots: the second answer is for one that stays free, while its windows go to the next request.
    channel.enqueue(&asked(1, b"request one", true), 0).unwrap();
    channel.enqueue(&asked(2, b"request two", true), 0).unwrap();
    let mut port = Port::open(Arc::clone(&memory), 1).unwrap();
    let (first, second) = (port.claim().unwrap(), port.claim().unwrap());
    for job in [&second, &first] {
        assert!(port.finish(job, &Ok(b"an answer".to_vec())));
    }
    assert_eq!(poll(&mut channel, 1).len(), 2);
    channel.enqueue(&asked(3, b"request three", true), 1).unwrap();
    for job in [&first, &second] {
        assert!(!port.finish(job, &Ok(b"again and again".to_vec())));
    }
    assert_eq!(port.claim().unwrap().payload, b"request three");
}

#[test]
fn a_request_that_must_not_be_repeated_ends_with_its_outcome_unknown() {
    let (mut channel, memory) = channel();
    channel.enqueue(&asked(7, b"seven", false), 0).unwrap();
    let mut dead = Port::open(Arc::clone(&memory), 1).unwrap();
    let job = dead.claim().unwrap();
    poll(&mut channel, 1);
    let ended = poll(&mut channel, 12);
    assert_eq!(ended[0].error, Some(ErrorCode::OUTCOME_UNKNOWN));
    assert!(!dead.finish(&job, &Ok(Vec::new())));
    assert!(Port::open(memory, 2).unwrap().claim().is_none(), "nobody gets it again");
}

#[test]
fn a_request_that_nobody_takes_ends_in_time_and_cannot_be_taken_afterwards() {
    let (mut channel, memory) = channel();
    channel.enqueue(&asked(7, b"seven", false), 0).unwrap();
    assert!(poll(&mut channel, 1_000).is_empty());
    let ended = poll(&mut channel, 1_001);
    assert_eq!(ended[0].error, Some(ErrorCode::TIMEOUT));
    assert!(Port::open(memory, 2).unwrap().claim().is_none());
}

#[test]
fn an_answer_that_does_not_fit_is_an_error() {
    let (mut channel, memory) = channel();
    for (number, spoil) in [
        // Published without a response.
        (1u64, u64::MAX),
        // Longer than the room.
        (2, 65),
        // A wrong checksum.
        (3, 3 | 1 << 32),
    ] {
        let slot = usize::from(channel.enqueue(&asked(number, b"abc", true), 0).unwrap());
        let mut port = Port::open(Arc::clone(&memory), 1).unwrap();
        let job = port.claim().unwrap();
        assert!(port.finish(&job, &Ok(b"abc".to_vec())));
        memory[side_word(slot, side::USED)].store(spoil, Ordering::Relaxed);
        assert_eq!(poll(&mut channel, 1)[0].error, Some(ErrorCode::BAD_RESPONSE), "{number}");
    }
    assert_eq!(channel.counts().bad_answers, 3);
}

#[test]
fn a_response_without_room_and_an_unknown_operation_are_errors_with_numbers() {
    let (mut channel, memory) = channel();
    let mut port = Port::open(memory, 1).unwrap();
    channel.enqueue(&asked(1, &[1; 65], true), 0).unwrap();
    serve_one(&mut port, &mut Echo);
    assert_eq!(poll(&mut channel, 1)[0].error, Some(ErrorCode::TOO_LONG));
    channel.enqueue(&Request { operation: 9, ..asked(2, b"", true) }, 0).unwrap();
    serve_one(&mut port, &mut Echo);
    assert_eq!(poll(&mut channel, 1)[0].error, Some(ErrorCode::UNKNOWN_OPERATION));
}

#[test]
fn a_mapping_of_another_version_is_refused() {
    let (_, memory) = channel();
    memory[header::VERSION].store(9, Ordering::Relaxed);
    assert_eq!(Port::open(Arc::clone(&memory), 1).err(), Some(crate::worker::PortError::Version));
    memory[header::MAGIC].store(9, Ordering::Relaxed);
    assert_eq!(Port::open(memory, 1).err(), Some(crate::worker::PortError::Foreign));
}

/// Every request ends exactly once whatever workers do, and an answer never lands in another request.
#[test]
fn with_slow_dead_late_and_lying_workers_every_request_ends_once() {
    let mut prng = Prng::stream(5, "bus/model");
    let (mut channel, memory) = channel();
    let mut ports: Vec<Port<Memory>> =
        (1..=4).map(|worker| Port::open(Arc::clone(&memory), worker).unwrap()).collect();
    let mut held: Vec<Vec<Job>> = vec![Vec::new(); 4];
    let (mut next, mut ended) = (0u64, std::collections::BTreeMap::new());
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for now in 0..60_000u64 {
        let worker = prng.below(4) as usize;
        match prng.below(10) {
            0..=2 => {
                let payload = next.to_le_bytes();
                let is_idempotent = next.is_multiple_of(2);
                if channel.enqueue(&asked(next, &payload, is_idempotent), now).is_ok() {
                    next += 1;
                }
            }
            3..=5 => held[worker].extend(ports[worker].claim()),
            // A worker finishes one of its requests, however old.
            6..=7 if !held[worker].is_empty() => {
                let place = prng.below(held[worker].len() as u64) as usize;
                let job = held[worker].swap_remove(place);
                ports[worker].finish(&job, &Ok(job.payload.clone()));
            }
            // It dies with all that it holds.
            8 if prng.below(4) == 0 => held[worker].clear(),
            // A lying one finishes, and says another length or checksum.
            9 if !held[worker].is_empty() && prng.below(8) == 0 => {
                let job = held[worker].swap_remove(0);
                ports[worker].finish(&job, &Ok(job.payload.clone()));
                for _ in 0..16 {
                    let slot = prng.below(SLOTS as u64) as usize;
                    memory[side_word(slot, side::USED)].store(prng.next_u64(), Ordering::Relaxed);
                }
            }
            _ => {}
        }
        for done in poll(&mut channel, now) {
            *kinds.entry(done.error.map_or("done", ErrorCode::name)).or_default() += 1;
            if done.error.is_none() {
                assert_eq!(done.response, done.number.to_le_bytes(), "an answer of another request");
            }
            assert!(ended.insert(done.number, done).is_none(), "ended twice");
        }
    }
    for now in (60_000..120_000).step_by(20) {
        for done in poll(&mut channel, now) {
            assert!(ended.insert(done.number, done).is_none(), "ended twice");
        }
    }
    assert_eq!(ended.len() as u64, next, "every request has ended");
    assert_eq!(channel.in_flight(), 0);
    for kind in ["done", "OUTCOME_UNKNOWN", "BAD_RESPONSE"] {
        assert!(kinds.get(kind).is_some_and(|count| 10 < *count), "{kinds:?}");
    }
    assert!(1_000 < kinds["done"] && 100 < channel.counts().leases_lost, "{kinds:?}");
}

#[test]
fn a_worker_that_scribbles_on_everything_breaks_nothing() {
    let mut prng = Prng::stream(6, "bus/hostile");
    let (mut channel, memory) = channel();
    let mut ended = 0;
    for round in 0..20_000u64 {
        let _ = channel.enqueue(&asked(round, &round.to_le_bytes(), false), round);
        for _ in 0..16 {
            // Mostly where states, claims, pointers and lengths are.
            let place = if prng.below(4) == 0 {
                prng.below(MAPPING_WORDS as u64)
            } else {
                prng.below(WINDOWS_AT as u64)
            };
            let value = match prng.below(4) {
                0 => prng.next_u64(),
                1 => prng.below(4) | prng.below(400) << 32,
                2 => u64::MAX,
                _ => prng.below(1 << 20) << 32 | prng.below(64),
            };
            memory[place as usize].store(value, Ordering::Relaxed);
        }
        ended += poll(&mut channel, round).len();
    }
    assert!(500 < ended, "{ended}");
    for now in (21_000..40_000).step_by(100) {
        ended += poll(&mut channel, now).len();
    }
    assert_eq!((channel.in_flight(), ended as u64), (0, channel.counts().enqueued));
}

#[test]
fn the_mirror_shows_the_machines_own_tables() {
    let (mut channel, memory) = channel();
    channel.enqueue(&asked(5, b"abc", true), 0).unwrap();
    memory[request_word(0, request::RESOURCE)].store(0, Ordering::Relaxed);
    let mut words = vec![7; 2 * layout::REQUEST_WORDS];
    channel.mirror(&mut words);
    assert_eq!(words[request::RESOURCE], u64::from(RESOURCE.to_word()) | 3 << 32);
    assert_eq!((words[request::STATE], words[request::NUMBER]), (1 << 32 | 1, 5));
    assert_eq!(words[layout::REQUEST_WORDS..], [0; layout::REQUEST_WORDS]);
}
