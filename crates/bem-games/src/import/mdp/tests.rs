//! Processes worked out by hand, and files that are refused.

use super::*;
use crate::conformance;

const GRIDWORLD: &str = include_str!("../../../../../examples/games/gridworld.json");

#[test]
fn the_example_passes_the_kit() {
    conformance::check(&*read(GRIDWORLD).unwrap()).unwrap();
}

#[test]
fn the_optimum_is_the_one_worked_out_by_hand() {
    // Wait for a coin that pays on heads, or take a sure half; two steps.
    let text = r#"{"states":1,"actions":2,"horizon":2,"start":[[0,1]],
        "transitions":[[0,0,0,1,1000,false],[0,0,0,3,0,false],[0,1,0,1,400,true]],"observe":"state"}"#;
    let game = read(text).unwrap();
    conformance::check(&*game).unwrap();
    // Last step: 400 beats 250. First step: 250 + 400 beats 400.
    assert_eq!(game.optimum().mean, Fixed::from_int(650));
    // Random: last 325; first (250 + 325 + 400) / 2.
    assert_eq!(game.random().mean, Fixed::from_ratio(975, 2));
}

#[test]
fn a_discount_is_in_the_optimum_and_in_what_is_played() {
    // A unit now and the end, or a third of one at every step: by hand 1000, and 333 (1 + d + d^2 + ...).
    let table = |discount: &str| {
        format!(
            r#"{{"states":1,"actions":2,"horizon":200,"start":[[0,1]],{discount}
            "transitions":[[0,0,0,1,1000,true],[0,1,0,1,333,false]],"observe":"state"}}"#
        )
    };
    let optimum = |discount: &str| {
        let game = read(&table(discount)).unwrap();
        conformance::check(&*game).unwrap();
        game.optimum().mean.to_raw() >> 32
    };
    // At three quarters waiting is worth 333 * 4; at a half 333 * 2 is less than a unit.
    assert!((1_331..=1_332).contains(&optimum("\"discount\":750,")), "{}", optimum("\"discount\":750,"));
    // Waiting once and taking the unit is worth 333 + 500, which is less too.
    assert_eq!(optimum("\"discount\":500,"), 1_000);
    assert_eq!(optimum("\"discount\":1000,"), 199 * 333 + 1_000);
    let refused = read(&table("\"discount\":1001,")).err().unwrap().to_string();
    assert!(refused.contains("\"discount\" is 1001; allowed is 1 to 1000"), "{refused}");
}

#[test]
fn hidden_states_are_solved_by_what_was_seen() {
    // A coin is shown once and asked for two steps later: memory is needed, and pays in full.
    let text = r#"{"states":6,"actions":2,"horizon":3,"start":[[0,1],[1,1]],
        "transitions":[
          [0,0,2,1,0,false],[0,1,2,1,0,false],[1,0,3,1,0,false],[1,1,3,1,0,false],
          [2,0,4,1,0,false],[2,1,4,1,0,false],[3,0,5,1,0,false],[3,1,5,1,0,false],
          [4,0,4,1,1000,true],[4,1,4,1,0,true],[5,0,5,1,0,true],[5,1,5,1,1000,true]],
        "observe":[[0,0],[0,1],[1,0],[1,0],[1,1],[1,1]]}"#;
    let game = read(text).unwrap();
    conformance::check(&*game).unwrap();
    assert_eq!(game.optimum().mean, Fixed::from_int(1000));
    assert_eq!(game.random().mean, Fixed::from_int(500));
}

#[test]
fn what_is_never_shown_cannot_be_used() {
    let text = r#"{"states":2,"actions":2,"horizon":1,"start":[[0,1],[1,3]],
        "transitions":[[0,0,0,1,1000,true],[0,1,0,1,0,true],[1,0,0,1,0,true],[1,1,0,1,1000,true]],
        "observe":[[0],[0]]}"#;
    let game = read(text).unwrap();
    conformance::check(&*game).unwrap();
    assert_eq!(game.optimum().mean, Fixed::from_int(750));
}

#[test]
fn what_was_earned_is_shown_where_it_tells_what_is_hidden() {
    // One of two arms pays in this episode, and nothing else ever says which.
    let text = |ends: bool| {
        format!(
            r#"{{"states":2,"actions":2,"horizon":3,"start":[[0,1],[1,1]],
            "transitions":[[0,0,0,1,1000,{ends}],[0,1,0,1,0,{ends}],[1,0,1,1,0,{ends}],[1,1,1,1,1000,{ends}]],
            "observe":[[0],[0]]}}"#
        )
    };
    let game = read(&text(false)).unwrap();
    conformance::check(&*game).unwrap();
    assert_eq!(game.shape().observation_bits, 3);
    let mut world = game.start();
    world.reset(5).unwrap();
    assert_eq!(world.observation().field(1, 2), 0);
    for _ in 0..2 {
        let outcome = world.step(0).unwrap();
        assert_eq!(world.observation().field(1, 2), if outcome.reward == 1_000 { 2 } else { 1 });
    }
    // One try, then two steps with what it told.
    assert_eq!(game.optimum().mean, Fixed::from_int(2_500));
    // Where the reward ends the episode there is no use for it.
    assert_eq!(read(&text(true)).unwrap().shape().observation_bits, 1);
}

#[test]
fn errors_name_the_line_or_the_entry_and_the_bound() {
    let error = |text: &str| read(text).err().unwrap().to_string();
    assert!(
        error("{\"states\":1,\n\"actions\":x}").starts_with("line 2: "),
        "{}",
        error("{\"states\":1,\n\"actions\":x}")
    );
    let process = |states: &str, start: &str, transitions: &str| {
        format!(
            r#"{{"states":{states},"actions":1,"horizon":4,"start":[{start}],"transitions":[{transitions}],"observe":"state"}}"#
        )
    };
    assert_eq!(error(&process("0", "", "")), "\"states\" is 0; allowed is 1 to 65536");
    assert_eq!(error(&process("2", "[2,1]", "")), "the state of \"start\" entry 0 is 2; allowed is 0 to 1");
    assert_eq!(
        error(&process("2", "[0,0]", "")),
        "the weights of \"start\" sum to 0; allowed is 1 to 4294967295"
    );
    assert_eq!(error(&process("2", "[0,1]", "")), "state 0 has no transition for action 0");
    assert_eq!(
        error(&process("2", "[0,1]", "[0,0,5,1,0,false]")),
        "the second state of transition 0 is 5; allowed is 0 to 1"
    );
    assert_eq!(
        error(&process("1", "[0,1]", "[0,0,0,1,-250000001,false]")),
        "the reward of transition 0 is -250000001; allowed is -250000000 to 250000000"
    );
    let long = process("1", "[0,1]", "[0,0,0,1,250000000,false]").replace("\"horizon\":4", "\"horizon\":9");
    assert_eq!(error(&long), "rewards times \"horizon\" reach 2250000000 milli-units; allowed is 2147483647");
    assert!(error(&process("1", "[0,1]", "[0,0,0,1,0]")).starts_with("line 1: "));
}
