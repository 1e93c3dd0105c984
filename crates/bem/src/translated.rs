//! A circuit over its own features, put before the bits of another world.
//!
//! A bit of the circuit's is worked out of the world's bits: a comparison with a threshold is taken over where the world compares
//! with the same number, or never shows one on the other side of it; words are found by their names. What cannot be said exactly
//! is an error that names the feature and both sides, or the nearest threshold where the caller allows it. Must not know runs,
//! files or worlds that are played. Clauses: LOG-5, GLE-9; decision D-227.

use crate::learned::Learned;
use bem_base::environment::Shape;
use bem_circuit::netlist::{Builder, Signal};
use bem_data::{Code, Column, Decimal, Encoder, FeatureKind};
use bem_synth::policy::{Policy, action_bits};
use std::collections::BTreeSet;

/// What becomes of a threshold that the world does not compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// The circuit is refused.
    Refused,
    /// The nearest one is taken in its place.
    Nearest,
}

/// A circuit over the bits of a world.
pub struct Translated {
    /// The circuit.
    pub policy: Policy,
    /// Features of which a threshold was rounded.
    pub rounded: BTreeSet<String>,
}

/// The policy over the world's own bits; an error says why that cannot be, with both sides of it.
pub fn translated(
    learned: &Learned,
    shape: &Shape,
    encoder: Option<&Encoder>,
    rounding: Rounding,
) -> Result<Translated, String> {
    let policy = &learned.policy;
    let (bits, memory) = (usize::from(shape.observation_bits), policy.memory_bits());
    let (own, wanted) = (policy.actions(), shape.actions);
    let both = learned.names.as_ref().zip(encoder).filter(|(own, world)| own != world);
    // A circuit alone knows only how many bits an action has.
    let is_fitted = both.is_none() && action_bits(own) == action_bits(wanted);
    if own != wanted && !is_fitted {
        return Err(format!("it has {own} actions and this world {wanted}"));
    }
    let mut builder = Builder::new(bits + memory);
    let mut rounded = BTreeSet::new();
    let mut inputs = Vec::new();
    match both {
        Some((names, world)) => {
            for bit in policy.reads() {
                let mut before = Before { builder: &mut builder, rounding, rounded: &mut rounded };
                inputs.push(before.bit(names, world, usize::from(*bit))?);
            }
        }
        None => {
            if let Some(last) = policy.reads().last().filter(|last| shape.observation_bits <= **last) {
                return Err(format!("it reads bit {last} and this world shows {bits} bits"));
            }
            if own == wanted {
                return Ok(Translated { policy: policy.clone(), rounded });
            }
            inputs.extend(policy.reads().iter().map(|bit| Signal::input(usize::from(*bit))));
        }
    }
    inputs.extend((0..memory).map(|bit| Signal::input(bits + bit)));
    let outputs = builder.embed(policy.circuit(), &inputs);
    let (action, next) = outputs.split_at(action_bits(wanted));
    let closed = Policy::close(builder, bits, wanted, action, next);
    let policy = closed.map_err(|error| format!("over the bits of this world it is too large: {error}"))?;
    Ok(Translated { policy, rounded })
}

/// Where two encoders differ, if they do: the first feature, with what it is compared with on both sides.
pub fn difference(own: &Encoder, world: &Encoder) -> Option<String> {
    if own == world {
        return None;
    }
    for column in own.columns() {
        let Some(there) = named(world, &column.feature.name) else {
            return Some(unseen(&column.feature.name));
        };
        if (&column.code, &column.feature) != (&there.code, &there.feature) {
            return Some(both_sides(column, thresholds(column), there));
        }
    }
    Some("this world shows features that it does not know".to_string())
}

/// What stands before a circuit's inputs.
struct Before<'b> {
    builder: &'b mut Builder,
    rounding: Rounding,
    rounded: &'b mut BTreeSet<String>,
}

fn named<'e>(encoder: &'e Encoder, name: &str) -> Option<&'e Column> {
    encoder.columns().iter().find(|column| column.feature.name == name)
}

fn unseen(name: &str) -> String {
    format!("it reads {name:?}, which this world does not show")
}

fn thresholds(column: &Column) -> &[Decimal] {
    match &column.code {
        Code::Steps(thresholds) | Code::Level(thresholds) => thresholds,
        _ => &[],
    }
}

/// What a feature is compared with, on both sides.
fn both_sides(column: &Column, compared: &[Decimal], there: &Column) -> String {
    let list = |thresholds: &[Decimal]| match thresholds {
        [] => "nothing".to_string(),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let name = &column.feature.name;
    match (&column.feature.kind, &there.feature.kind) {
        (FeatureKind::Number { .. }, FeatureKind::Number { .. }) => {
            format!(
                "it compares {name:?} with {}, and this world compares it with {}",
                list(compared),
                list(thresholds(there))
            )
        }
        (FeatureKind::Choice(words), FeatureKind::Choice(others)) => {
            format!("{name:?} is one of {} for it, and one of {} here", words.join(", "), others.join(", "))
        }
        _ => format!("{name:?} is of another kind here"),
    }
}

impl Before<'_> {
    /// A bit of the circuit's own encoding, out of the world's bits.
    fn bit(&mut self, own: &Encoder, world: &Encoder, bit: usize) -> Result<Signal, String> {
        let column = own.column_of(bit).ok_or_else(|| format!("it reads bit {bit}, which has no name"))?;
        let there = named(world, &column.feature.name).ok_or_else(|| unseen(&column.feature.name))?;
        let place = bit - usize::from(column.low);
        match (&column.feature.kind, &there.feature.kind) {
            (FeatureKind::Number { .. }, FeatureKind::Number { .. }) => {
                let needed: Vec<Decimal> = match &column.code {
                    Code::Steps(thresholds) => vec![thresholds[place]],
                    // A digit of a count changes wherever the count reaches a multiple of its weight.
                    _ => thresholds(column)
                        .iter()
                        .copied()
                        .skip((1 << place) - 1)
                        .step_by(1 << place)
                        .collect(),
                };
                let reached: Vec<Signal> = needed
                    .iter()
                    .map(|threshold| {
                        let misfit = || both_sides(column, &needed, there);
                        self.reaches(there, *threshold).ok_or_else(misfit)
                    })
                    .collect::<Result<_, _>>()?;
                Ok(self.builder.xor_all(&reached))
            }
            (FeatureKind::Choice(words), FeatureKind::Choice(others)) => {
                let misfit = || both_sides(column, &[], there);
                let meant: Vec<usize> = match &column.code {
                    Code::Words(places) => vec![usize::from(places[place])],
                    // A word that the circuit never knew has no place among its own.
                    _ if others.iter().any(|word| !words.contains(word)) => return Err(misfit()),
                    _ => (0..words.len()).filter(|value| value >> place & 1 == 1).collect(),
                };
                // What this world never says is never so.
                let meant =
                    meant.iter().filter_map(|word| others.iter().position(|other| *other == words[*word]));
                let is: Option<Vec<Signal>> = meant.map(|word| self.is_word(there, word)).collect();
                Ok(self.builder.or_all(&is.ok_or_else(misfit)?))
            }
            (FeatureKind::Bit, FeatureKind::Bit) if there.code == Code::Bit => {
                Ok(self.builder.input(usize::from(there.low)))
            }
            _ => Err(both_sides(column, &[], there)),
        }
    }

    /// Whether a number is at least a threshold; none where the world does not tell and nothing may be rounded.
    fn reaches(&mut self, there: &Column, threshold: Decimal) -> Option<Signal> {
        let FeatureKind::Number { min, max } = there.feature.kind else { return None };
        if threshold <= min || max < threshold {
            return Some(Signal::constant(threshold <= min));
        }
        let known = thresholds(there);
        let place = match (known.binary_search(&threshold), self.rounding) {
            (Ok(place), _) => place,
            (Err(_), Rounding::Refused) => return None,
            (Err(above), Rounding::Nearest) => {
                self.rounded.insert(there.feature.name.clone());
                match (above.checked_sub(1), known.get(above)) {
                    (Some(below), Some(next)) if Decimal::is_nearer(threshold, known[below], *next) => below,
                    (_, Some(_)) => above,
                    (below, None) => below?,
                }
            }
        };
        let low = usize::from(there.low);
        if let Code::Steps(_) = there.code {
            return Some(self.builder.input(low + place));
        }
        let level = place + 1;
        Some((0..usize::from(there.width)).fold(Signal::TRUE, |so_far, bit| {
            let signal = self.builder.input(low + bit);
            match level >> bit & 1 {
                1 => self.builder.and(signal, so_far),
                _ => self.builder.or(signal, so_far),
            }
        }))
    }

    /// Whether a choice is a word, by its place in the world; none where the world does not tell.
    fn is_word(&mut self, there: &Column, word: usize) -> Option<Signal> {
        let low = usize::from(there.low);
        match &there.code {
            Code::Index => {
                let equal = |bit: usize, builder: &mut Builder| {
                    let signal = builder.input(low + bit);
                    if word >> bit & 1 == 1 { signal } else { builder.not(signal) }
                };
                let all: Vec<Signal> =
                    (0..usize::from(there.width)).map(|bit| equal(bit, self.builder)).collect();
                Some(self.builder.and_all(&all))
            }
            Code::Words(places) => {
                let place = places.iter().position(|place| usize::from(*place) == word)?;
                Some(self.builder.input(low + place))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::prng::Prng;
    use bem_data::{Feature, NumberCode};
    use bem_synth::policy::Player;

    const WORDS: [&str; 4] = ["off", "eco", "on", "max"];

    fn encoder(temp: &str, words: &[&str], thermometer: bool) -> Encoder {
        let list = words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(",");
        let text = format!(
            r#"[{{"name":"door","kind":"bit"}},{{"name":"temp","kind":"number",{temp}}},{{"name":"mode","kind":"choice","of":[{list}]}}]"#
        );
        let numbers = if thermometer { NumberCode::Thermometer } else { NumberCode::Binary };
        Encoder::for_world(Feature::list(&text).unwrap(), numbers, 32, &[]).unwrap()
    }

    fn shape(encoder: &Encoder) -> Shape {
        Shape {
            observation_bits: encoder.bits() as u16,
            actions: 4,
            horizon: 5,
            reward_min: 0,
            reward_max: 1,
            return_min: 0,
            return_max: 5,
            fields: encoder.fields(),
        }
    }

    /// A policy that reads every bit of its own encoding and one of its memory.
    fn learned(own: &Encoder) -> Learned {
        let bits = own.bits();
        let mut builder = Builder::new(bits + 1);
        let mut prng = Prng::stream(7, "translated");
        let mut signals: Vec<Signal> = (0..=bits).map(Signal::input).collect();
        for _ in 0..60 {
            let [a, b] = [0; 2].map(|_| signals[prng.below(signals.len() as u64) as usize]);
            signals.push(if prng.below(2) == 0 { builder.and_not(a, b) } else { builder.xor(a, b) });
        }
        let odd = builder.xor_all(&signals[..=bits]);
        let last = signals[signals.len() - 1];
        let policy = Policy::close(builder, bits, 4, &[odd, last], &[odd]).unwrap();
        Learned {
            name: "own".to_string(),
            policy,
            observation_bits: bits,
            horizon: None,
            fields: own.fields(),
            names: Some(own.clone()),
            actions: Vec::new(),
            provenance: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_circuit_is_taken_over_exactly_where_the_world_tells_what_it_asks() {
        // A grid twice as fine, another order of words and a narrower range tell what the coarse one does.
        let coarse = r#""min":0,"max":16"#;
        let mut shuffled = WORDS;
        shuffled.swap(0, 3);
        for from in [false, true] {
            for to in [false, true] {
                let own = encoder(coarse, &WORDS, from);
                for (range, words) in [(r#""min":0,"max":8"#, &WORDS[1..]), (coarse, &shuffled[..])] {
                    let world = encoder(range, words, to);
                    let learned = learned(&own);
                    let there = translated(&learned, &shape(&world), Some(&world), Rounding::Refused);
                    let there = there.unwrap_or_else(|reason| panic!("{range}: {reason}"));
                    assert!(there.rounded.is_empty());
                    let (mut one, mut other) = (Player::new(&learned.policy), Player::new(&there.policy));
                    one.begin();
                    other.begin();
                    for number in 0..400u32 {
                        let word = words[number as usize * 7 % words.len()];
                        let row = format!(
                            "{{\"temp\":{}.{},\"mode\":{word:?},\"door\":{}}}",
                            number * 5 % 8,
                            number * 3 % 10,
                            number / 3 % 2
                        );
                        let act = |encoder: &Encoder, player: &mut Player<'_>| {
                            player.act(&encoder.encode_json(&row).unwrap())
                        };
                        assert_eq!(act(&own, &mut one), act(&world, &mut other), "{row}");
                    }
                }
            }
        }
    }

    #[test]
    fn thresholds_that_the_world_does_not_have_are_named_or_rounded_if_that_is_allowed() {
        let own = encoder(r#""min":0,"max":7"#, &WORDS, false);
        let world = encoder(r#""min":0,"max":16"#, &WORDS, false);
        let refused = |rounding| translated(&learned(&own), &shape(&world), Some(&world), rounding);
        let reason = refused(Rounding::Refused).err().unwrap();
        assert!(reason.starts_with("it compares \"temp\" with 0.25, 0.5, "), "{reason}");
        assert!(reason.contains("and this world compares it with 1, 2, 3, "), "{reason}");
        assert_eq!(difference(&own, &world).map(|reason| reason.contains("\"temp\"")), Some(true));
        assert_eq!(difference(&own, &own), None);
        let rounded = refused(Rounding::Nearest).unwrap().rounded;
        assert_eq!(rounded.iter().map(String::as_str).collect::<Vec<_>>(), ["temp"]);
        // A word that the circuit never knew.
        let other = encoder(r#""min":0,"max":7"#, &["off", "eco", "on", "dry"], false);
        let reason =
            translated(&learned(&own), &shape(&other), Some(&other), Rounding::Nearest).err().unwrap();
        assert_eq!(reason, "\"mode\" is one of off, eco, on, max for it, and one of off, eco, on, dry here");
    }
}
