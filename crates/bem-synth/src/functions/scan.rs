//! Serial scans: a machine with two states walks over a field, or over two fields side by side, and its state
//! at one place gives the answer.
//!
//! Addition, subtraction and comparison are of this kind, in either direction. All machines with two states
//! are tried. The place where the answer is read is the end of some prefix, or is named by another field.

use super::FunctionClass;
use crate::function::{Function, choice_bits};
use crate::functions::multiplexer::select;
use crate::samples::{Samples, Work};
use crate::statement::{self, Formula};
use bem_base::environment::Field;
use bem_circuit::netlist::{Builder, Op, Signal};

/// Places of a walk at most.
const PLACES_MAX: usize = 64;
/// Walks tried at most.
const WALKS_MAX: usize = 96;

/// A two-state machine over bit groups.
pub struct Scan;

/// What is read at each place: one bit or two.
type Places = Vec<Vec<usize>>;

impl FunctionClass for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        let allowed = samples.errors_allowed()?;
        let walks = walks(samples);
        let walk_bits = choice_bits(walks.len());
        let words = samples.label_words().len();
        let mut best: Option<(u32, usize, Found)> = None;
        let (mut first_states, mut states, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (number, walk) in walks.iter().enumerate() {
            let machines = 1u32 << (2 << walk.places[0].len());
            let cost = u64::from(machines) * (walk.places.len() * words * 8) as u64;
            if !work.spend(cost / 16) {
                break;
            }
            let (masks, first) = (Masks::new(samples, walk, words), Masks::new(samples, walk, 1));
            let reads: Vec<Reading> =
                reads(samples, walk).into_iter().map(|read| Reading::new(samples, walk, read)).collect();
            for machine in 0..machines {
                // Most machines already fail on the first 64 rows.
                first.run(machine, &mut first_states);
                left.clear();
                let stands = |read: &Reading| first.judge(samples, &first_states, read, allowed).is_some();
                left.extend((0..reads.len()).filter(|read| stands(&reads[*read])));
                if left.is_empty() {
                    continue;
                }
                masks.run(machine, &mut states);
                for read in &left {
                    let reading = &reads[*read];
                    let Some((votes, errors)) = masks.judge(samples, &states, reading, allowed) else {
                        continue;
                    };
                    let read_bits = match reading.read {
                        Read::At(place) if place + 1 == walk.places.len() => 1,
                        Read::At(_) => 1 + choice_bits(walk.places.len()),
                        Read::Named { .. } => 4,
                    };
                    let answers = answers(&votes);
                    let length = walk_bits + (2 << walk.places[0].len()) + read_bits + answers.len() as u32;
                    let whole = length.saturating_add(samples.exception_bits(errors));
                    if best.as_ref().is_none_or(|held| whole < held.0) {
                        let found = Found { machine, read: reading.read.clone(), answers, length };
                        best = Some((whole, number, found));
                    }
                }
            }
        }
        let (_, number, found) = best?;
        close(samples, &walks[number], &found)
    }
}

/// The places that a scan visits, in order, and how it is called.
struct Walk {
    places: Places,
    words: String,
}

/// Where the answer of a walk is read.
#[derive(Clone, Debug)]
enum Read {
    At(usize),
    /// At the place that a field names, counted from the walk's first place or from its last.
    Named {
        field: Field,
        from_end: bool,
    },
}

/// The places of a walk in the order in which a field names them.
fn named_places(places: usize, from_end: bool) -> impl Iterator<Item = usize> {
    (0..places).map(move |named| if from_end { places - 1 - named } else { named })
}

/// A machine that explains the samples, with what it reads and what its length is.
struct Found {
    machine: u32,
    read: Read,
    answers: Vec<(usize, bool)>,
    /// Of the description, exceptions not counted.
    length: u32,
}

fn walks(samples: &Samples) -> Vec<Walk> {
    let mut walks = Vec::new();
    let mut add = |places: Places, words: String| {
        if (2..=PLACES_MAX).contains(&places.len()) && walks.len() < WALKS_MAX {
            let backward: Places = places.iter().rev().cloned().collect();
            walks.push(Walk { places, words: format!("{words} upward") });
            walks.push(Walk { places: backward, words: format!("{words} downward") });
        }
    };
    let wide: Vec<&Field> = samples.groups.iter().filter(|field| 2 <= field.width).collect();
    for (position, first) in wide.iter().enumerate() {
        for second in wide[position + 1..].iter().filter(|second| second.width == first.width) {
            let pair = |place: u16| vec![usize::from(first.low + place), usize::from(second.low + place)];
            add((0..first.width).map(pair).collect(), format!("fields at {} and {}", first.low, second.low));
        }
    }
    for field in &wide {
        let (low, width) = (usize::from(field.low), usize::from(field.width));
        add((low..low + width).map(|index| vec![index]).collect(), format!("field at {low}"));
        if width.is_multiple_of(2) && 4 <= width {
            let halves = (low..low + width / 2).map(|index| vec![index, index + width / 2]).collect();
            add(halves, format!("halves of the field at {low}"));
            let neighbours = (low..low + width).step_by(2).map(|index| vec![index, index + 1]).collect();
            add(neighbours, format!("neighbours in the field at {low}"));
        }
    }
    if 1 < samples.groups.len() {
        add((0..samples.width).map(|index| vec![index]).collect(), "the whole row".to_string());
    }
    walks
}

/// The prefix ends and the fields that could name a place of this walk.
fn reads(samples: &Samples, walk: &Walk) -> Vec<Read> {
    let mut list: Vec<Read> = (0..walk.places.len()).rev().map(Read::At).collect();
    let used = |field: &Field| {
        let range = usize::from(field.low)..usize::from(field.low + field.width);
        walk.places.iter().flatten().any(|index| range.contains(index))
    };
    for field in samples.groups.iter().filter(|field| field.width <= 6 && !used(field)) {
        let places = 1usize << field.width;
        if 1 < field.width && places / 2 < walk.places.len() && walk.places.len() <= places {
            list.extend([false, true].map(|from_end| Read::Named { field: *field, from_end }));
        }
    }
    list
}

/// Where an answer is read, with the rows that read it at each place that a field names, word after word.
struct Reading {
    read: Read,
    rows: Vec<u64>,
}

impl Reading {
    fn new(samples: &Samples, walk: &Walk, read: Read) -> Reading {
        let words = samples.label_words().len();
        let Read::Named { field, .. } = &read else {
            return Reading { read, rows: Vec::new() };
        };
        let bits: Vec<usize> = (usize::from(field.low)..usize::from(field.low + field.width)).collect();
        let named = |name: usize, word: usize| {
            bits.iter().enumerate().fold(u64::MAX, |mask, (bit, index)| {
                let column = samples.column(*index)[word];
                mask & if name >> bit & 1 == 1 { column } else { !column }
            })
        };
        let rows = (0..walk.places.len()).flat_map(|name| (0..words).map(move |word| (name, word)));
        let rows = rows.map(|(name, word)| named(name, word)).collect();
        Reading { read, rows }
    }
}

/// Rows with either label for every symbol and state at the place that is read: two bits and a state at most.
type Votes = [[usize; 2]; 8];

/// For every place and symbol, the rows that show it, as far as `words` words of 64 rows go.
struct Masks {
    places: usize,
    symbols: usize,
    words: usize,
    rows: Vec<u64>,
}

impl Masks {
    fn new(samples: &Samples, walk: &Walk, words: usize) -> Masks {
        let symbols = 1 << walk.places[0].len();
        let mut rows = Vec::with_capacity(walk.places.len() * symbols * words);
        for bits in &walk.places {
            for symbol in 0..symbols {
                rows.extend((0..words).map(|word| {
                    let agree = bits.iter().enumerate().map(|(place, index)| {
                        let column = samples.column(*index)[word];
                        if symbol >> place & 1 == 1 { column } else { !column }
                    });
                    agree.fold(samples.mask(word), |mask, bit| mask & bit)
                }));
            }
        }
        Masks { places: walk.places.len(), symbols, words, rows }
    }

    /// The rows of a word that show a symbol at a place.
    fn shown(&self, place: usize, symbol: usize, word: usize) -> u64 {
        self.rows[(place * self.symbols + symbol) * self.words + word]
    }

    /// The state before each place, word after word. Bit `2 * symbol + state` of the machine is the next state.
    fn run(&self, machine: u32, states: &mut Vec<u64>) {
        states.clear();
        states.resize(self.words, 0);
        for place in 0..self.places {
            for word in 0..self.words {
                let state = states[place * self.words + word];
                let next = (0..self.symbols).fold(0, |next, symbol| {
                    let moved = match machine >> (2 * symbol) & 3 {
                        0 => 0,
                        1 => !state,
                        2 => state,
                        _ => u64::MAX,
                    };
                    next | self.shown(place, symbol, word) & moved
                });
                states.push(next);
            }
        }
    }

    /// The votes at the place read and the rows that disagree with the majority of theirs, if these are few enough.
    fn judge(
        &self,
        samples: &Samples,
        states: &[u64],
        reading: &Reading,
        allowed: usize,
    ) -> Option<(Votes, usize)> {
        let labels = samples.label_words();
        let mut votes = Votes::default();
        let mut tally = |place: usize, word: usize, keep: u64| {
            let state = states[place * self.words + word];
            for symbol in 0..self.symbols {
                let shown = self.shown(place, symbol, word) & keep;
                for (vote, part) in votes[2 * symbol..].iter_mut().zip([shown & !state, shown & state]) {
                    let positive = (part & labels[word]).count_ones() as usize;
                    vote[1] += positive;
                    vote[0] += part.count_ones() as usize - positive;
                }
            }
        };
        match reading.read {
            Read::At(place) => (0..self.words).for_each(|word| tally(place, word, u64::MAX)),
            Read::Named { from_end, .. } => {
                for (name, place) in named_places(self.places, from_end).enumerate() {
                    let rows = &reading.rows[name * labels.len()..][..self.words];
                    rows.iter().enumerate().for_each(|(word, named)| tally(place, word, *named));
                }
            }
        }
        let errors: usize = votes.iter().map(|vote| vote[0].min(vote[1])).sum();
        let seen: usize = votes.iter().map(|vote| vote[0] + vote[1]).sum();
        // Rows whose named place does not exist are not explained.
        let errors = errors + (samples.len().min(64 * self.words) - seen);
        (errors <= allowed).then_some((votes, errors))
    }
}

/// What the majority of the rows of each key says, where there are any.
fn answers(votes: &Votes) -> Vec<(usize, bool)> {
    let seen = votes.iter().enumerate().filter(|(_, vote)| **vote != [0, 0]);
    seen.map(|(key, vote)| (key, vote[0] < vote[1])).collect()
}

fn close(samples: &Samples, walk: &Walk, found: &Found) -> Option<Function> {
    let mut builder = Builder::new(samples.width);
    let mut state = Signal::FALSE;
    let mut outputs = Vec::new();
    let last = match found.read {
        Read::At(place) => place,
        Read::Named { .. } => walk.places.len() - 1,
    };
    for bits in &walk.places[..=last] {
        let mut key = vec![state];
        key.extend(bits.iter().map(|index| Signal::input(*index)));
        let answers = found.answers.iter().map(|(key, value)| (*key as u64, *value)).collect();
        outputs.push(crate::function::build_table(&mut builder, &key, &answers));
        let next = (0..2u64 << bits.len()).map(|key| (key, found.machine >> key & 1 == 1)).collect();
        state = crate::function::build_table(&mut builder, &key, &next);
    }
    let output = match &found.read {
        Read::At(place) => outputs[*place],
        Read::Named { field, from_end } => {
            let mut named: Vec<Signal> =
                named_places(outputs.len(), *from_end).map(|place| outputs[place]).collect();
            named.resize(1 << field.width, Signal::FALSE);
            let bits: Vec<Signal> =
                (field.low..field.low + field.width).map(|index| Signal::input(usize::from(index))).collect();
            select(&mut builder, &bits, &named)
        }
    };
    let output = builder.gate(Op::Or, output, Signal::FALSE);
    let place = |bits: &Vec<usize>| bits.iter().map(|index| *index as u16).collect();
    let statement = Formula::Scan {
        places: walk.places.iter().map(place).collect(),
        machine: found.machine,
        answers: found.answers.iter().map(|(key, value)| (*key as u64, u64::from(*value))).collect(),
        read: match found.read {
            Read::At(place) => statement::Read::At(place as u16),
            Read::Named { field, from_end } => statement::Read::Named { field, from_end },
        },
    };
    Function::close(builder, output, statement, found.length, format!("scan over {}", walk.words))
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample;
    use super::*;
    use crate::samples::Row;
    use bem_base::prng::Prng;

    /// Machines that differ in one move differ in few rows: all of them are within the tolerance.
    #[test]
    fn among_machines_within_the_tolerance_the_one_with_fewest_exceptions_is_taken() {
        let wanted = |row: &Row| row.0[0] & 255 < row.0[0] >> 8 & 255;
        for seed in 0..8 {
            let clean = sample(&[8, 8], 1_000, seed, wanted);
            let mut prng = Prng::stream(seed, "flips");
            let noisy = clean.rows.iter().map(|row| (*row, wanted(row) ^ (prng.below(100) < 5)));
            let samples = Samples::new(clean.width, clean.groups.clone(), noisy, 12);
            let function = Scan.fit(&samples, &mut Work::new(1 << 32)).unwrap();
            let errors = function.errors(&sample(&[8, 8], 5_000, 99, wanted));
            assert!(errors <= 25, "seed {seed}: {errors} of 5000 wrong, {}", function.words);
        }
    }
}
