//! Mutated payloads: every decoder refuses them, or takes bytes that it would write itself.
//!
//! Clause: TOOL-13.
#![cfg(not(feature = "loom"))]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a battery says how many, and is told how many came of it"
)]

use bem_base::prng::Prng;
use bem_tools::cbor::{Item, Key};
use bem_tools::operation::OPERATIONS;
use bem_tools::payload::{Fields, read_range};

/// Mutants of one run; `cargo xtask battery bus` asks for more.
const EXECUTIONS: u64 = 300_000;

fn good() -> Vec<Vec<u8>> {
    let text = |text: &str| Item::Text(text.to_string());
    let items = [
        Item::fields([(0, Item::Int(5)), (1, Item::Int(1 << 40))]),
        Item::fields([
            (0, text("SELECT ?1")),
            (3, Item::List(vec![Item::Null, Item::Bytes(vec![0; 30]), Item::Int(-9)])),
        ]),
        Item::fields([
            (0, Item::List(vec![Item::List(vec![text("user"), text("hello")])])),
            (1, Item::Int(64)),
        ]),
        Item::Map([(Key::Text("a".into()), Item::Bool(true)), (Key::Number(7), text("é"))].into()),
        Item::List(vec![Item::List(vec![Item::List(vec![Item::Int(i64::MIN)])])]),
    ];
    items.iter().map(Item::to_bytes).collect()
}

#[test]
fn mutated_payloads_are_refused_or_are_the_one_spelling() {
    let asked = std::env::var("BEM_BUS_PAYLOADS").ok().and_then(|text| text.parse().ok());
    let executions: u64 = asked.unwrap_or(EXECUTIONS);
    let (mut prng, mut pool, mut accepted) = (Prng::stream(1, "tools/payloads"), good(), 0u64);
    for _ in 0..executions {
        let mut bytes = pool[prng.below(pool.len() as u64) as usize].clone();
        for _ in 0..=prng.below(3) {
            let place = prng.below(bytes.len() as u64 + 1) as usize;
            match prng.below(4) {
                0 if place < bytes.len() => bytes[place] ^= 1 << prng.below(8),
                1 => bytes.insert(place, prng.next_u64() as u8),
                2 if place < bytes.len() => drop(bytes.remove(place)),
                _ => bytes.truncate(place.max(1)),
            }
        }
        for operation in OPERATIONS {
            if let Ok(fields) = Fields::read(operation, &bytes) {
                let _ =
                    (read_range(&fields), fields.text(0), fields.list(3), fields.bytes(1), fields.flag(0));
            }
        }
        if let Ok(item) = Item::from_bytes(&bytes) {
            assert_eq!(item.to_bytes(), bytes);
            accepted += 1;
            if pool.len() < 256 {
                pool.push(bytes);
            }
        }
    }
    println!("{executions} payloads for each of {} operations: {accepted} are CBOR", OPERATIONS.len());
    assert!(executions / 300 < accepted && accepted < executions, "{accepted}");
}
