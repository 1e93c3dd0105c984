//! Held-out functions as public collections have them, and compositions of two kinds of functions: a word made of
//! fields is seen, and one action is right. Nothing but the table of results knows them.

use crate::drawn::FunctionRules;
use crate::table::Row;
use bem_base::prng::Prng;
use bem_games::rules::RuleGame;
use bem_games::wrappers::with_noise;
use std::sync::Arc;

/// The right action for a word.
type Right = Box<dyn Fn(u64) -> u16 + Send + Sync>;

/// A function with the widths of its fields and the number of its actions.
struct DrawnFunction {
    name: &'static str,
    widths: &'static [usize],
    actions: usize,
    /// Rewards turned over by chance, in percent.
    noise: u32,
    draw: fn(&mut Prng) -> Right,
}

/// All rows; what a kind leaves open is drawn anew for every seed.
pub fn rows() -> Vec<Row> {
    let kinds = [tables(), composed(), collected()].into_iter().flatten();
    kinds
        .map(|kind| Row {
            name: kind.name.to_string(),
            floor: None,
            build: Box::new(move |seed| {
                let right = (kind.draw)(&mut Prng::stream(seed, "table/collected"));
                let rules = FunctionRules { widths: kind.widths.to_vec(), actions: kind.actions, right };
                let game = Arc::new(RuleGame::new(rules));
                Ok(if kind.noise == 0 { game } else { with_noise(game, kind.noise)? })
            }),
        })
        .collect()
}

/// A field of the word.
fn field(word: u64, low: u32, width: u32) -> u64 {
    word >> low & ((1 << width) - 1)
}

fn exact(
    name: &'static str,
    widths: &'static [usize],
    actions: usize,
    draw: fn(&mut Prng) -> Right,
) -> DrawnFunction {
    DrawnFunction { name, widths, actions, noise: 0, draw }
}

/// Tables without any structure: with noise, among bits that do not matter, with several actions.
fn tables() -> Vec<DrawnFunction> {
    let noisy = |kind: DrawnFunction| DrawnFunction { noise: 5, ..kind };
    vec![
        noisy(exact("noisy table of 4 bits", &[4], 2, |prng| table(prng, 4, 4, 2))),
        noisy(exact("noisy table of 6 bits", &[6], 2, |prng| table(prng, 6, 6, 2))),
        noisy(exact("noisy table of 8 bits", &[8], 2, |prng| table(prng, 8, 8, 2))),
        noisy(exact("noisy table of 5 bits, 4 actions", &[5], 4, |prng| table(prng, 5, 5, 4))),
        noisy(exact("noisy table of 4 of 12 bits", &[12], 2, |prng| table(prng, 12, 4, 2))),
        noisy(exact("noisy table of 3 of 10 bits, 4 actions", &[10], 4, |prng| table(prng, 10, 3, 4))),
        exact("table of 6 of 14 bits", &[14], 2, |prng| table(prng, 14, 6, 2)),
        exact("table of 8 of 12 bits", &[12], 2, |prng| table(prng, 12, 8, 2)),
        exact("table of 5 of 12 bits, 4 actions", &[12], 4, |prng| table(prng, 12, 5, 4)),
        exact("table of 4 of 10 bits, 8 actions", &[10], 8, |prng| table(prng, 10, 4, 8)),
        exact("table of 8 bits, 3 actions", &[8], 3, |prng| table(prng, 8, 8, 3)),
        exact("table of 7 bits, 8 actions", &[7], 8, |prng| table(prng, 7, 7, 8)),
        exact("table of 8 bits, 8 actions", &[8], 8, |prng| table(prng, 8, 8, 8)),
    ]
}

/// A drawn action for all values of some bits that lie anywhere.
fn table(prng: &mut Prng, bits: usize, relevant: usize, actions: u64) -> Right {
    let mut places: Vec<usize> = (0..bits).collect();
    prng.shuffle(&mut places);
    places.truncate(relevant);
    let table: Vec<u16> = (0..1 << relevant).map(|_| prng.below(actions) as u16).collect();
    Box::new(move |word| {
        let shown = places.iter().rev().fold(0, |shown, place| shown << 1 | word >> place & 1);
        table[shown as usize]
    })
}

/// One kind of function of what another kind says.
fn composed() -> Vec<DrawnFunction> {
    vec![
        exact("parity of three comparisons", &[4; 6], 2, |_| {
            right(|word| {
                (0..3).filter(|i| field(word, 8 * i, 4) < field(word, 8 * i + 4, 4)).count() % 2 == 1
            })
        }),
        exact("majority of three comparisons", &[4; 6], 2, |_| {
            right(|word| 2 <= (0..3).filter(|i| field(word, 8 * i, 4) < field(word, 8 * i + 4, 4)).count())
        }),
        exact("comparison of two counts", &[8, 8], 2, |_| {
            right(|word| field(word, 0, 8).count_ones() < field(word, 8, 8).count_ones())
        }),
        exact("sum compared", &[4; 3], 2, |_| {
            right(|word| field(word, 8, 4) < field(word, 0, 4) + field(word, 4, 4))
        }),
        exact("parity of a sum", &[4; 2], 2, |_| {
            right(|word| (field(word, 0, 4) + field(word, 4, 4)).count_ones() % 2 == 1)
        }),
        exact("parity of the middle of three", &[3; 3], 2, |_| {
            right(|word| {
                let mut keys = [0, 3, 6].map(|low| field(word, low, 3));
                keys.sort_unstable();
                keys[1].count_ones() % 2 == 1
            })
        }),
        exact("parity of the largest of three", &[4; 3], 2, |_| {
            right(|word| {
                let largest = [0, 4, 8].map(|low| field(word, low, 4)).into_iter().max();
                largest.unwrap_or(0).count_ones() % 2 == 1
            })
        }),
        exact("parity or majority by a bit", &[1, 8, 7], 2, |_| {
            right(|word| match word & 1 {
                0 => field(word, 1, 8).count_ones() % 2 == 1,
                _ => 4 <= field(word, 9, 7).count_ones(),
            })
        }),
        exact("comparison or count by a bit", &[1, 5, 5, 6], 2, |_| {
            right(|word| match word & 1 {
                0 => field(word, 1, 5) < field(word, 6, 5),
                _ => field(word, 11, 6).count_ones().is_multiple_of(3),
            })
        }),
        exact("xor of a majority and a comparison", &[7, 4, 4], 2, |_| {
            right(|word| (4 <= field(word, 0, 7).count_ones()) != (field(word, 7, 4) < field(word, 11, 4)))
        }),
        exact("majority and a comparison", &[7, 4, 4], 2, |_| {
            right(|word| 4 <= field(word, 0, 7).count_ones() && field(word, 7, 4) < field(word, 11, 4))
        }),
        exact("majority of three parities", &[5; 3], 2, |_| {
            right(|word| 2 <= (0..3).filter(|i| field(word, 5 * i, 5).count_ones() % 2 == 1).count())
        }),
        exact("majority of three majorities", &[3; 3], 2, |_| {
            right(|word| 2 <= (0..3).filter(|i| 2 <= field(word, 3 * i, 3).count_ones()).count())
        }),
        exact("majority of five majorities", &[15], 2, |_| {
            right(|word| 3 <= (0..5).filter(|i| 2 <= field(word, 3 * i, 3).count_ones()).count())
        }),
        exact("equal words of three", &[4; 3], 2, |_| {
            right(|word| field(word, 0, 4) == field(word, 4, 4) || field(word, 4, 4) == field(word, 8, 4))
        }),
        exact("place of the largest of four", &[3; 4], 4, |_| {
            Box::new(|word| {
                let keys = [0, 3, 6, 9].map(|low| field(word, low, 3));
                let largest = keys.iter().max();
                keys.iter().position(|key| Some(key) == largest).unwrap_or(0) as u16
            })
        }),
        exact("largest of three", &[3; 3], 8, |_| {
            Box::new(|word| (0..3).map(|i| field(word, 3 * i, 3)).max().unwrap_or(0) as u16)
        }),
    ]
}

fn right(truth: fn(u64) -> bool) -> Right {
    Box::new(move |word| u16::from(truth(word)))
}

/// What textbooks and collections of benchmarks have.
fn collected() -> Vec<DrawnFunction> {
    vec![
        exact("place of the highest one of 8", &[8], 9, |_| {
            Box::new(|word| (64 - word.leading_zeros()) as u16)
        }),
        exact("gray code of 4 bits", &[4], 16, |_| Box::new(|word| (word ^ word >> 1) as u16)),
        exact("gray code back, 4 bits", &[4], 16, |_| {
            Box::new(|word| (word ^ word >> 1 ^ word >> 2 ^ word >> 3) as u16)
        }),
        exact("last decimal digit of 6 bits", &[6], 10, |_| Box::new(|word| (word % 10) as u16)),
        exact("first decimal digit of 6 bits", &[6], 7, |_| Box::new(|word| (word / 10) as u16)),
        exact("multiplexer of 11", &[11], 2, |_| right(|word| word >> (3 + field(word, 0, 3)) & 1 == 1)),
        exact("multiplexer of 20", &[20], 2, |_| right(|word| word >> (4 + field(word, 0, 4)) & 1 == 1)),
        exact("hidden weighted bit of 8", &[8], 2, |_| {
            right(|word| word != 0 && word >> (word.count_ones() - 1) & 1 == 1)
        }),
        exact("hidden weighted bit of 12", &[12], 2, |_| {
            right(|word| word != 0 && word >> (word.count_ones() - 1) & 1 == 1)
        }),
        exact("number of 8 bits modulo 3", &[8], 3, |_| Box::new(|word| (word % 3) as u16)),
        exact("number of 10 bits divisible by 5", &[10], 2, |_| right(|word| word % 5 == 0)),
        exact("sum modulo 5", &[3, 3], 5, |_| {
            Box::new(|word| ((field(word, 0, 3) + field(word, 3, 3)) % 5) as u16)
        }),
        exact("product of 3 and 3 bits modulo 8", &[3, 3], 8, |_| {
            Box::new(|word| (field(word, 0, 3) * field(word, 3, 3) % 8) as u16)
        }),
        exact("count between 4 and 8 of 12", &[12], 2, |_| {
            right(|word| (4..=8).contains(&word.count_ones()))
        }),
        exact("permuted words in order", &[12], 2, |prng| {
            let mut places: Vec<u32> = (0..12).collect();
            prng.shuffle(&mut places);
            Box::new(move |word| {
                let number = |half: &[u32]| half.iter().fold(0, |sum, place| sum << 1 | word >> place & 1);
                u16::from(number(&places[..6]) < number(&places[6..]))
            })
        }),
        exact("checksum of 3 bits over 12", &[12], 8, |prng| {
            let masks = [0; 3].map(|_: u64| prng.below(1 << 12));
            Box::new(move |word| {
                let bit = |(place, mask): (usize, &u64)| ((word & mask).count_ones() as u16 & 1) << place;
                masks.iter().enumerate().map(bit).sum()
            })
        }),
        exact("substitution box of 6 to 4 bits", &[6], 16, |_| {
            Box::new(|word| {
                let row = (word >> 4 & 2 | word & 1) as usize;
                u16::from(SUBSTITUTION[row * 16 + (word >> 1 & 15) as usize])
            })
        }),
        exact("palindrome of 12", &[12], 2, |_| {
            right(|word| (0..6).filter(|i| word >> i & 1 != word >> (11 - i) & 1).count() <= 1)
        }),
        exact("three ones in a row of 10", &[10], 2, |_| right(|word| word & word >> 1 & word >> 2 != 0)),
        exact("number of runs of 12 even", &[12], 2, |_| {
            right(|word| ((word ^ word >> 1) & 0x7FF).count_ones() % 2 == 1)
        }),
        exact("prime of 8 bits", &[8], 2, |_| {
            right(|word| 1 < word && (2..word).take_while(|d| d * d <= word).all(|d| word % d != 0))
        }),
        exact("scales in balance", &[2; 4], 3, |_| {
            Box::new(|word| {
                let [weight, arm, other, far] = [0, 2, 4, 6].map(|low| 1 + field(word, low, 2));
                match (weight * arm).cmp(&(other * far)) {
                    core::cmp::Ordering::Less => 0,
                    core::cmp::Ordering::Equal => 1,
                    core::cmp::Ordering::Greater => 2,
                }
            })
        }),
        exact("two of six attributes are first", &[2, 2, 1, 2, 2, 1], 2, |_| {
            right(|word| {
                [(0, 2), (2, 2), (4, 1), (5, 2), (7, 2), (9, 1)]
                    .iter()
                    .filter(|(low, width)| field(word, *low, *width) == 0)
                    .count()
                    == 2
            })
        }),
        exact("a line of three on a board of nine", &[9], 2, |_| {
            right(|word| {
                [0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124].iter().any(|line| word & line == *line)
            })
        }),
        exact("digit of seven segments", &[7], 10, |_| {
            Box::new(|word| {
                let distance = |digit: &u16| (SEGMENTS[usize::from(*digit)] ^ word).count_ones();
                (0..10).min_by_key(distance).unwrap_or(0)
            })
        }),
        exact("product compared with a product", &[3; 4], 2, |_| {
            right(|word| field(word, 0, 3) * field(word, 3, 3) < field(word, 6, 3) * field(word, 9, 3))
        }),
    ]
}

/// The first box of the old data encryption standard.
const SUBSTITUTION: [u8; 64] = [
    14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3,
    8, 4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0,
    6, 13,
];

/// The segments of the ten digits.
const SEGMENTS: [u64; 10] = [0x3F, 0x06, 0x5B, 0x4F, 0x66, 0x6D, 0x7D, 0x07, 0x7F, 0x6F];
