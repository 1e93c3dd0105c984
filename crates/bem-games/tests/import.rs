//! Files from outside, whole and damaged: the examples pass the kit, and no damage makes a reader panic or hang.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use bem_base::prng::Prng;
use bem_games::conformance::check;
use bem_games::import::{Format, Seat, read};
use std::path::PathBuf;

fn examples() -> Vec<(Format, String, String)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/games");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let load = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        (Format::from_file_name(&name).unwrap(), name, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(load).collect()
}

#[test]
fn every_example_passes_the_kit() {
    let examples = examples();
    assert!(4 <= examples.len());
    for (format, name, text) in examples {
        let game = read(format, &text, &Seat::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&*game).unwrap_or_else(|breach| panic!("{name}: {breach}"));
    }
}

#[test]
fn damaged_files_are_read_or_refused_with_a_reason() {
    let mut prng = Prng::stream(1, "damage");
    let (mut read_well, mut refused) = (0, 0);
    for (format, name, text) in examples() {
        for _ in 0..3_000 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=prng.below(3) {
                if bytes.is_empty() {
                    break;
                }
                let place = prng.below(bytes.len() as u64) as usize;
                let pieces: [&[u8]; 12] =
                    [b"{", b"}", b"\"", b"-", b"0", b"99999999999", b" ", b"\n", b"/", b"p", b"[", b"1e9"];
                let piece = pieces[prng.below(12) as usize];
                match prng.below(4) {
                    0 => drop(bytes.splice(place..place + 1, [])),
                    1 => drop(bytes.splice(place..place, piece.iter().copied())),
                    2 => drop(bytes.splice(place..place + 1, piece.iter().copied())),
                    _ => bytes.truncate(place.max(1)),
                }
            }
            let damaged = String::from_utf8_lossy(&bytes).into_owned();
            match read(format, &damaged, &Seat::default()) {
                Ok(game) => {
                    read_well += 1;
                    assert!(game.random().mean <= game.optimum().mean, "{name}: {damaged}");
                }
                Err(error) => {
                    refused += 1;
                    assert!(
                        !error.to_string().is_empty() && !error.to_string().contains('\n'),
                        "{name}: {error}"
                    );
                }
            }
        }
    }
    assert!(100 < read_well && 1_000 < refused, "{read_well} {refused}");
}

#[test]
fn random_texts_are_refused() {
    let words = [
        "NFG",
        "EFG",
        "1",
        "2",
        "R",
        "\"x\"",
        "{",
        "}",
        "c",
        "p",
        "t",
        "0",
        "1/2",
        "-3",
        ",",
        "{\"states\":2}",
        "1e-9",
        "99999999999999999999",
        "\u{e9}",
        "\\",
        "[",
        "]",
    ];
    let mut prng = Prng::stream(2, "words");
    for _ in 0..20_000 {
        let count = prng.below(30);
        let mut text = String::new();
        if prng.bit() {
            text.push_str(
                ["NFG 1 R \"x\" { \"A\" \"B\" } ", "EFG 2 R \"x\" { \"A\" \"B\" } "][prng.below(2) as usize],
            );
        }
        for _ in 0..count {
            text.push_str(words[prng.below(words.len() as u64) as usize]);
            text.push(' ');
        }
        for format in [Format::Normal, Format::Extensive, Format::Table] {
            let _ = read(format, &text, &Seat::default());
        }
    }
}

#[test]
fn tables_name_their_features_and_keep_to_what_is_forbidden() {
    let (format, _, text) = examples().into_iter().find(|(_, name, _)| name == "repair.json").unwrap();
    let game = read(format, &text, &Seat::default()).unwrap();
    let world = game.start();
    // Working is forbidden at wear 9, with none, one or two orders.
    assert_eq!(world.forbidden().len(), 3);
    let encoder = bem_games::import::encoder(format, &text).unwrap();
    let seen = encoder.encode_json(r#"{"wear":9,"orders":1}"#).unwrap();
    assert!(world.forbidden().iter().any(|pair| pair.seen.covers(&seen) && pair.action == 0));
    // Without the rule the optimum is at least as high.
    let free = text.replace(r#""forbid":[{"if":{"wear":">= 9"},"action":0}]"#, r#""forbid":[]"#);
    assert_ne!(free, text);
    assert!(game.optimum().mean <= read(format, &free, &Seat::default()).unwrap().optimum().mean);
    let says = |text: &str| read(format, text, &Seat::default()).err().unwrap().to_string();
    assert_eq!(
        says(&text.replace("\"wear\":4,", "\"wear\":40,")),
        "\"observe\" entry 12: \"wear\" is \"40\"; it must be a number from 0 to 9"
    );
    assert_eq!(
        says(&text.replace(r#","action":0}]"#, "}]")),
        "\"forbid\" rule 0: \"action\" is missing; it must be 0 to 2 or a list of them"
    );
    let all = text.replace(r#","action":0}]"#, r#","action":[0,1,2]}]"#);
    assert!(says(&all).contains("every action is forbidden"));
    assert!(says(&text.replace("\"features\"", "\"feature\"")).contains("unknown field"));
}
