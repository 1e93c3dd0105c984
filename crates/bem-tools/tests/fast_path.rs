//! What an enqueue costs the fast path: no allocation, and the same work on an empty, a busy and a full bus.
//!
//! Clause: TOOL-12.
#![cfg(not(feature = "loom"))]
#![expect(unsafe_code, reason = "a counting allocator is one")]

use bem_base::ids::{ObjectClass, ObjectId};
use bem_tools::bus::{Channel, Request, key};
use bem_tools::error::Refused;
use bem_tools::layout;
use bem_tools::limits::SLOTS;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a cell of this thread only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn an_enqueue_allocates_nothing_and_takes_the_same_on_every_bus() {
    let kind = ObjectId::new(ObjectClass::ToolKind, 0);
    let mut channel = Channel::new(kind, layout::private());
    let payload = [7; 64];
    let request = Request {
        operation: 1,
        flags: 0,
        resource: ObjectId::new(ObjectClass::FsNode, 1),
        payload: &payload,
        capacity: 256,
        number: 1,
        key: key(1, &payload),
        is_idempotent: true,
        lease: 1,
        patience: 0,
    };
    let before = COUNT.with(Cell::get);
    for round in 0..4 * SLOTS as u64 {
        // From the 65th on nobody has answered, and nobody waits.
        let expected = if round < SLOTS as u64 { Ok(round as u16) } else { Err(Refused::NoSlot) };
        assert_eq!(channel.enqueue(&request, round), expected);
    }
    assert_eq!(COUNT.with(Cell::get), before, "nothing was allocated");
    assert_eq!(channel.counts().back_pressure, 3 * SLOTS as u64);
}
