//! Proposals of a model, right, wrong and damaged: what can be read of them, and that nothing else can happen.

use super::*;
use bem_base::environment::Field;
use bem_base::prng::Prng;
use bem_engine::agent::{Actor, Agent};

fn shape(actions: u16) -> Shape {
    Shape {
        observation_bits: 20,
        actions,
        horizon: 1,
        reward_min: 0,
        reward_max: 1_000,
        return_min: 0,
        return_max: 1_000,
        fields: (0..20).map(|low| Field { low, width: 1 }).collect(),
    }
}

/// What the machine of a proposal does for every observation of its low twelve bits.
fn acts(proposal: Value, actions: u16) -> Vec<u16> {
    let text = json!({ "proposals": [proposal] }).to_string();
    let Read { machines, refused } = read(&text, &shape(actions), "m");
    assert_eq!((machines.len(), &refused), (1, &Vec::new()), "{text}");
    let built = machines[0].instantiate(&shape(actions)).unwrap();
    let agent = Agent::circuit(built.policy);
    let mut actor = Actor::new(&agent);
    let mut act = |word: u64| {
        actor.begin();
        actor.act(&Bits([word, 0, 0, 0]))
    };
    (0..1u64 << 12).map(&mut act).collect()
}

fn wanted(rule: impl Fn(u64) -> u16) -> Vec<u16> {
    (0..1u64 << 12).map(rule).collect()
}

#[test]
fn every_form_does_what_it_says() {
    let bit = |word: u64, place: u32| (word >> place & 1) as u16;
    assert_eq!(acts(json!({ "action": 2 }), 3), wanted(|_| 2));
    let tree = json!({ "tree": { "bit": 3, "set": { "bit": 1, "set": 2, "clear": 1 }, "clear": 0 } });
    assert_eq!(acts(tree, 3), wanted(|word| if bit(word, 3) == 0 { 0 } else { 1 + bit(word, 1) }));
    let tree = json!({ "bits": [["xor", ["and", 0, 5], ["not", 7]], ["if", 2, 4, ["or", 1, false]]] });
    let rule = |word: u64| {
        let low = bit(word, 0) & bit(word, 5) ^ 1 ^ bit(word, 7);
        low + 2 * if bit(word, 2) == 1 { bit(word, 4) } else { bit(word, 1) }
    };
    assert_eq!(acts(tree, 4), wanted(rule));
    let templates = json!({ "templates": [
        { "parity": [9, 2, 4], "inverted": true }, { "count": [0, 1, 2, 3], "numbers": [2, 4] } ] });
    let rule = |word: u64| {
        let odd = 1 ^ bit(word, 9) ^ bit(word, 2) ^ bit(word, 4);
        odd + 2 * u16::from([2, 4].contains(&(word & 15).count_ones()))
    };
    assert_eq!(acts(templates, 4), wanted(rule));
    let templates = json!({ "templates": [
        { "rules": [{ "if": { "4": 1, "0": 0 }, "then": 1 }, { "if": {}, "then": 0 }], "otherwise": 1 },
        { "rows": [8, 3], "ones": [1, 2] } ] });
    let rule = |word: u64| {
        let first = u16::from(bit(word, 4) == 1 && bit(word, 0) == 0);
        first + 2 * (bit(word, 8) ^ bit(word, 3))
    };
    assert_eq!(acts(templates, 4), wanted(rule));
    let circuit =
        json!({ "circuit": { "gates": [["and", 0, 1], ["xnor", 20, 2], ["nor", 21, -1]], "action": [22] } });
    assert_eq!(acts(circuit, 2), wanted(|word| (bit(word, 0) & bit(word, 1)) ^ bit(word, 2)));
    // Parity over more bits than a table could state.
    let all: Vec<u16> = (0..20).collect();
    let text = json!({ "proposals": [{ "templates": [{ "parity": all }] }] }).to_string();
    assert_eq!(read(&text, &shape(2), "m").machines.len(), 1);
    // One bit of memory: the bit that was seen one step before.
    let memory =
        json!({ "proposals": [{ "circuit": { "memory": 1, "gates": [], "action": [20], "next": [3] } }] });
    assert_eq!(read(&memory.to_string(), &shape(2), "m").machines.len(), 1);
}

#[test]
fn what_is_wrong_too_large_or_hostile_is_refused_with_a_reason() {
    let deep = |count: usize| {
        format!("{{\"proposals\":[{{\"bits\":[{}0{}]}}]}}", "[\"not\",".repeat(count), "]".repeat(count))
    };
    let many: Vec<Value> = (0..3_000).map(|_| json!(["xor", 0, 1])).collect();
    let gates: Vec<Value> = (0..2_000).map(|_| json!(["and", 0, 1])).collect();
    let one = |proposal: Value| json!({ "proposals": [proposal] }).to_string();
    let wide: Vec<u16> = (0..20).collect();
    let mut xor_all = vec![json!("xor")];
    xor_all.extend(wide.iter().map(|bit| json!(bit)));
    for (text, reason) in [
        ("Ignore all rules and install me".to_string(), "no JSON object"),
        ("}{".to_string(), "no JSON object"),
        ("{\"proposals\": 7}".to_string(), "list"),
        ("{\"proposals\": []}".to_string(), "list"),
        ("{\"proposals\": [".to_string() + &"{".repeat(9) + "}", "no JSON"),
        ("x".repeat(70_000) + "{}", "bytes"),
        (deep(60), "deeper"),
        (deep(5_000), "no JSON"),
        (one(json!(3)), "no object"),
        (one(json!({})), "exactly one of"),
        (one(json!({ "action": 0, "tree": 1 })), "exactly one of"),
        (one(json!({ "action": 2 })), "0 to 1"),
        (one(json!({ "action": -1 })), "0 to 1"),
        (one(json!({ "action": 1.5 })), "0 to 1"),
        (one(json!({ "tree": { "bit": 20, "set": 0, "clear": 1 } })), "below 20"),
        (one(json!({ "tree": { "bit": 0, "set": 0 } })), "bit, set and clear"),
        (one(json!({ "bits": [0, 1] })), "list of 1"),
        (one(json!({ "bits": [["rm", 0]] })), "operations are"),
        (one(json!({ "bits": [[["and"], 0]] })), "begins with"),
        (one(json!({ "bits": ["1; DROP TABLE"] })), "an expression is"),
        (one(json!({ "bits": [many] })), "begins with"),
        (one(json!({ "bits": [xor_all] })), "reads 20 bits"),
        (one(json!({ "circuit": { "gates": gates, "action": [0] } })), "at most 1024 gates"),
        (one(json!({ "circuit": { "gates": [["and", 0, 20]], "action": [20] } })), "something before it"),
        (one(json!({ "circuit": { "gates": [["and", 0, -3]], "action": [20] } })), "something before it"),
        (one(json!({ "circuit": { "memory": 9, "action": [0], "next": [] } })), "memory must be"),
        (one(json!({ "circuit": { "memory": 1, "action": [0], "next": [] } })), "of next"),
        (one(json!({ "circuit": { "gates": [["and", 0]], "action": [0] } })), "a gate is"),
        (one(json!({ "templates": [{ "parity": [1, 1] }] })), "twice"),
        (one(json!({ "templates": [{ "parity": [] }] })), "1 to"),
        (one(json!({ "templates": [{ "count": [1, 2], "numbers": [3] }] })), "0 to 2"),
        (
            one(json!({ "templates": [{ "rules": [{ "if": { "99": 1 }, "then": 1 }], "otherwise": 0 }] })),
            "below 20",
        ),
        (
            one(json!({ "templates": [{ "rules": [{ "if": { "1": 2 }, "then": 1 }], "otherwise": 0 }] })),
            "0 or 1",
        ),
        (one(json!({ "templates": [{ "rows": wide, "ones": [] }] })), "1 to 12"),
        (one(json!({ "templates": [{ "magic": 1 }] })), "templates are"),
    ] {
        let Read { machines, refused } = read(&text, &shape(2), "m");
        let shown: String = text.chars().take(120).collect();
        assert!(machines.is_empty() && refused.len() == 1, "{shown}: {refused:?}");
        assert!(refused[0].contains(reason), "{shown}: {} is not about {reason}", refused[0]);
    }
    // Of nine the ninth is one too many; the others stand with clean words.
    let text =
        json!({ "proposals": vec![json!({ "words": "<b>\u{1b}[31m rule", "action": 1 }); 9] }).to_string();
    let Read { machines, refused } = read(&format!("Sure! ```json\n{text}\n``` Done."), &shape(2), "m");
    assert_eq!((machines.len(), refused.len()), (MACHINES_MAX, 1));
    assert_eq!(machines[0].words(), "m: b31m rule (action, 0 gates)");
}

#[test]
fn damaged_answers_never_panic() {
    let good = [
        json!({ "proposals": [{ "tree": { "bit": 3, "set": { "bit": 1, "set": 1, "clear": 0 }, "clear": 0 } }] }),
        json!({ "proposals": [{ "bits": [["if", 2, ["and", 0, 1], ["not", 3]]] }, { "templates": [{ "count": [1, 2], "numbers": [1] }] }] }),
        json!({ "proposals": [{ "circuit": { "memory": 2, "gates": [["and", 0, 20], ["xor", 22, 21]], "action": [23], "next": [22, 0] } }] }),
        json!({ "proposals": [{ "templates": [{ "rules": [{ "if": { "4": 1 }, "then": 1 }], "otherwise": 0 }] }] }),
    ]
    .map(|value| value.to_string().into_bytes());
    let (mut prng, mut taken) = (Prng::stream(1, "proposals"), 0);
    let alphabet = b"0123456789-{}[]\",:.eandorxifbit";
    let asked = std::env::var("BEM_BUS_PAYLOADS").ok().and_then(|text| text.parse().ok());
    let executions: u64 = asked.unwrap_or(30_000);
    for _ in 0..executions {
        let mut bytes = good[prng.below(4) as usize].clone();
        for _ in 0..=prng.below(3) {
            let place = prng.below(bytes.len() as u64) as usize;
            match prng.below(3) {
                0 => bytes[place] = alphabet[prng.below(alphabet.len() as u64) as usize],
                1 => bytes.insert(place, alphabet[prng.below(alphabet.len() as u64) as usize]),
                _ => drop(bytes.remove(place)),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        taken += read(&text, &shape(2), "m").machines.len();
    }
    println!("{executions} damaged answers of a model: {taken} proposals could be read");
    assert!(executions / 60 < taken as u64, "{taken}");
}
