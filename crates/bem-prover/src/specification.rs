//! What a circuit is asked to compute: rows of inputs with wanted outputs; what is not said does not matter.
//!
//! Must not know how a circuit is found. Clauses: SCC-7.

use bem_checker::cnf::{FormatError, Place};
use bem_circuit::netlist::{Builder, Netlist, Signal};
use std::collections::BTreeMap;

/// The most inputs of a specification: a row's inputs are the bits of one word.
pub const SPECIFICATION_INPUTS_MAX: usize = 64;
/// The most outputs of a specification.
pub const SPECIFICATION_OUTPUTS_MAX: usize = 64;
/// The most rows of a specification.
pub const SPECIFICATION_ROWS_MAX: usize = 1 << 20;

/// The outputs wanted in a row; none where any value will do.
pub type Answers = Vec<Option<bool>>;

/// Rows of inputs (input `i` is bit `i`) with the outputs wanted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specification {
    inputs: usize,
    outputs: usize,
    rows: BTreeMap<u64, Answers>,
}

impl Specification {
    /// A specification that wants nothing yet.
    pub fn new(inputs: usize, outputs: usize) -> Specification {
        assert!(inputs <= SPECIFICATION_INPUTS_MAX, "{inputs} inputs");
        assert!(outputs <= SPECIFICATION_OUTPUTS_MAX, "{outputs} outputs");
        Specification { inputs, outputs, rows: BTreeMap::new() }
    }

    /// The whole table of one output: bit `r` of `table` is the value in row `r`. At most six inputs.
    pub fn from_table(inputs: usize, table: u64) -> Specification {
        assert!(inputs <= 6);
        Specification::from_function(inputs, 1, |row| vec![Some(table >> row & 1 == 1)])
    }

    /// Every row of a function. At most 20 inputs.
    pub fn from_function(inputs: usize, outputs: usize, answer: impl Fn(u64) -> Answers) -> Specification {
        assert!(inputs <= 20);
        let mut specification = Specification::new(inputs, outputs);
        for row in 0..1u64 << inputs {
            let answers = answer(row);
            assert!(answers.len() == outputs);
            specification.rows.insert(row, answers);
        }
        specification
    }

    /// Wants these outputs in a row; false if that contradicts what was wanted there before.
    #[must_use]
    pub fn want(&mut self, row: u64, answers: &[Option<bool>]) -> bool {
        assert!(answers.len() == self.outputs);
        let wanted = self.rows.entry(row).or_insert_with(|| vec![None; answers.len()]);
        for (old, new) in wanted.iter_mut().zip(answers) {
            match (*old, *new) {
                (Some(old), Some(new)) if old != new => return false,
                (None, Some(_)) => *old = *new,
                _ => {}
            }
        }
        true
    }

    /// How many inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// How many outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The rows in which something is wanted, in order.
    pub fn rows(&self) -> impl Iterator<Item = (u64, &[Option<bool>])> {
        self.rows.iter().map(|(row, answers)| (*row, answers.as_slice()))
    }

    /// What is wanted in a row.
    pub fn answers(&self, row: u64) -> Answers {
        self.rows.get(&row).cloned().unwrap_or_else(|| vec![None; self.outputs])
    }

    /// The part that concerns these outputs, in this order.
    #[must_use]
    pub fn project(&self, outputs: &[usize]) -> Specification {
        let part = |answers: &Answers| outputs.iter().map(|output| answers[*output]).collect();
        let rows = self.rows.iter().map(|(row, answers)| (*row, part(answers))).collect();
        Specification { inputs: self.inputs, outputs: outputs.len(), rows }
    }

    /// Some circuit that meets it, by choosing on one input after the other; rows that do not matter are used to
    /// make halves equal. Far from smallest: a beginning for the superoptimiser. None if it would break a bound.
    pub fn construct(&self) -> Option<Netlist> {
        let rows = 1u64.checked_shl(self.inputs() as u32).filter(|rows| *rows <= 1 << 16)?;
        let mut builder = Builder::new(self.inputs());
        let outputs: Vec<Signal> = (0..self.outputs())
            .map(|output| {
                let table: Vec<Option<bool>> = (0..rows).map(|row| self.answers(row)[output]).collect();
                choose(&mut builder, &table)
            })
            .collect();
        builder.finish(&outputs).ok()
    }

    /// The first row in which a circuit does not give what is wanted.
    pub fn first_violated(&self, circuit: &Netlist) -> Option<u64> {
        assert!(circuit.inputs() == self.inputs && circuit.outputs().len() == self.outputs);
        let rows: Vec<(u64, &[Option<bool>])> = self.rows().collect();
        let (mut values, mut outputs) = (Vec::new(), Vec::new());
        for block in rows.chunks(64) {
            let words: Vec<u64> = (0..self.inputs)
                .map(|input| pack(block.iter().map(|(row, _)| row >> input & 1 == 1)))
                .collect();
            circuit.evaluate_words(&words, &mut values, &mut outputs);
            let mut wrong = 0;
            for (output, got) in outputs.iter().enumerate() {
                let care = pack(block.iter().map(|(_, answers)| answers[output].is_some()));
                let want = pack(block.iter().map(|(_, answers)| answers[output] == Some(true)));
                wrong |= (got ^ want) & care;
            }
            if wrong != 0 {
                return Some(block[wrong.trailing_zeros() as usize].0);
            }
        }
        None
    }

    /// Whether swapping two inputs maps the specification to itself.
    pub fn is_symmetric(&self, one: usize, other: usize) -> bool {
        self.rows.iter().all(|(row, answers)| {
            let differ = (row >> one ^ row >> other) & 1;
            let swapped = row ^ (differ << one | differ << other);
            self.rows
                .get(&swapped)
                .map_or_else(|| answers.iter().all(Option::is_none), |there| there == answers)
        })
    }

    /// Whether the output must depend on the input: two rows that differ only there want different values.
    pub fn is_essential(&self, input: usize, output: usize) -> bool {
        self.rows.iter().any(|(row, answers)| match (answers[output], self.rows.get(&(row ^ 1 << input))) {
            (Some(here), Some(there)) => there[output] == Some(!here),
            _ => false,
        })
    }

    /// Reads the text form, which has two kinds of lines; `#` starts a comment.
    ///
    /// Examples: `0-1 1-` wants output 0 to be true and leaves output 1 open whenever input 0 is false and input 2
    /// is true (leftmost is input 0). Tables: a single word of 2^n characters is the whole table of one output,
    /// row 0 first, where input `i` is bit `i` of the row's number. A text has lines of one kind only.
    pub fn parse(text: &str) -> Result<Specification, FormatError> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            if !words.is_empty() {
                lines.push((index + 1, words));
            }
        }
        let fail = |line, reason: String| Err(FormatError { place: Place::Line(line), reason });
        let Some((first, words)) = lines.first() else { return fail(1, "no rows".into()) };
        let count = words.len();
        if 2 < count {
            return fail(*first, format!("{count} words; a line is `INPUTS OUTPUTS` or one whole table"));
        }
        for (line, words) in &lines {
            if words.len() != count {
                return fail(*line, format!("{} words where line {first} has {count}", words.len()));
            }
            if let Some(odd) = words.concat().chars().find(|letter| !"01-".contains(*letter)) {
                return fail(*line, format!("{odd:?} is none of 0, 1 and -"));
            }
        }
        let parsed = if count == 1 { parse_tables(&lines) } else { parse_examples(&lines) };
        parsed.or_else(|(line, reason)| fail(line, reason))
    }
}

/// Bits of a word, lowest first.
fn pack(bits: impl Iterator<Item = bool>) -> u64 {
    bits.enumerate().fold(0, |word, (lane, bit)| word | u64::from(bit) << lane)
}

/// The words of each line that says something, with the line's number.
type Lines<'a> = [(usize, Vec<&'a str>)];

fn letter_value(letter: u8) -> Option<bool> {
    match letter {
        b'0' => Some(false),
        b'1' => Some(true),
        _ => None,
    }
}

fn parse_tables(lines: &Lines<'_>) -> Result<Specification, (usize, String)> {
    let length = lines[0].1[0].len();
    if !length.is_power_of_two() || SPECIFICATION_ROWS_MAX < length {
        return Err((lines[0].0, format!("a table of {length} rows; it must be a power of two up to 2^20")));
    }
    if SPECIFICATION_OUTPUTS_MAX < lines.len() {
        return Err((
            lines[SPECIFICATION_OUTPUTS_MAX].0,
            format!("more than {SPECIFICATION_OUTPUTS_MAX} outputs"),
        ));
    }
    if let Some((line, words)) = lines.iter().find(|(_, words)| words[0].len() != length) {
        return Err((*line, format!("a table of {} rows where the first has {length}", words[0].len())));
    }
    let inputs = length.trailing_zeros() as usize;
    Ok(Specification::from_function(inputs, lines.len(), |row| {
        lines.iter().map(|(_, words)| letter_value(words[0].as_bytes()[row as usize])).collect()
    }))
}

fn parse_examples(lines: &Lines<'_>) -> Result<Specification, (usize, String)> {
    let (inputs, outputs) = (lines[0].1[0].len(), lines[0].1[1].len());
    if SPECIFICATION_INPUTS_MAX < inputs || SPECIFICATION_OUTPUTS_MAX < outputs {
        let reason = format!("{inputs} inputs and {outputs} outputs; at most 64 of each");
        return Err((lines[0].0, reason));
    }
    let mut specification = Specification::new(inputs, outputs);
    for (line, words) in lines {
        if words[0].len() != inputs || words[1].len() != outputs {
            let reason = format!(
                "{} inputs and {} outputs where the first line has {inputs} and {outputs}",
                words[0].len(),
                words[1].len()
            );
            return Err((*line, reason));
        }
        let answers: Answers = words[1].bytes().map(letter_value).collect();
        let open: Vec<usize> = (0..inputs).filter(|input| words[0].as_bytes()[*input] == b'-').collect();
        let fixed = pack(words[0].bytes().map(|letter| letter == b'1'));
        if 20 < open.len() || SPECIFICATION_ROWS_MAX < specification.rows.len() + (1 << open.len()) {
            return Err((*line, format!("more than {SPECIFICATION_ROWS_MAX} rows")));
        }
        for choice in 0..1u64 << open.len() {
            let row = open
                .iter()
                .enumerate()
                .fold(fixed, |row, (position, input)| row | (choice >> position & 1) << input);
            if !specification.want(row, &answers) {
                return Err((*line, "it contradicts an earlier line".into()));
            }
        }
    }
    Ok(specification)
}

/// The circuit of a table over the first inputs, whose number its length tells.
fn choose(builder: &mut Builder, table: &[Option<bool>]) -> Signal {
    let mut wanted = table.iter().flatten();
    let first = wanted.next().copied().unwrap_or(false);
    if wanted.all(|answer| *answer == first) {
        return Signal::constant(first);
    }
    let (low, high) = table.split_at(table.len() / 2);
    let agree = low.iter().zip(high).all(|(low, high)| low.is_none() || high.is_none() || low == high);
    if agree {
        let merged: Vec<Option<bool>> = low.iter().zip(high).map(|(low, high)| low.or(*high)).collect();
        return choose(builder, &merged);
    }
    let input = builder.input(table.len().ilog2() as usize - 1);
    let (low, high) = (choose(builder, low), choose(builder, high));
    builder.mux(input, high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constructed_circuit_meets_its_specification() {
        for table in [0x8000_0000_0000_0001u64, 0x1234_5678_9ABC_DEF0, 0, u64::MAX] {
            let specification = Specification::from_table(6, table);
            assert_eq!(specification.first_violated(&specification.construct().unwrap()), None);
        }
        let open = Specification::parse("0-1 1-\n1-0 01\n").unwrap();
        assert_eq!(open.first_violated(&open.construct().unwrap()), None);
    }

    fn reason(text: &str) -> String {
        Specification::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn tables_and_examples_say_the_same() {
        let table = Specification::parse("0110 # exclusive or\n0001").unwrap();
        let examples = Specification::parse("00 00\n10 10\n01 10\n11 01\n").unwrap();
        assert_eq!(table, examples);
        assert_eq!(Specification::from_table(2, 0b0110), Specification::parse("0110").unwrap());
    }

    #[test]
    fn dashes_stand_for_both_inputs_and_for_open_outputs() {
        let specification = Specification::parse("1- 1-\n01 -0").unwrap();
        let rows: Vec<(u64, Vec<Option<bool>>)> =
            specification.rows().map(|(row, answers)| (row, answers.to_vec())).collect();
        assert_eq!(
            rows,
            [(1, vec![Some(true), None]), (2, vec![None, Some(false)]), (3, vec![Some(true), None])]
        );
    }

    #[test]
    fn every_mistake_names_its_line() {
        assert_eq!(reason("# nothing\n"), "line 1: no rows");
        assert_eq!(reason("01 1\n0x 1"), "line 2: 'x' is none of 0, 1 and -");
        assert_eq!(reason("011"), "line 1: a table of 3 rows; it must be a power of two up to 2^20");
        assert_eq!(reason("01\n0110"), "line 2: a table of 4 rows where the first has 2");
        assert_eq!(reason("01 1\n1 1"), "line 2: 1 inputs and 1 outputs where the first line has 2 and 1");
        assert_eq!(reason("0- 1\n01 0"), "line 2: it contradicts an earlier line");
        assert_eq!(reason("0 1\n01"), "line 2: 1 words where line 1 has 2");
        assert_eq!(reason("0 1 1"), "line 1: 3 words; a line is `INPUTS OUTPUTS` or one whole table");
        assert_eq!(reason(&format!("{} 1", "-".repeat(40))), "line 1: more than 1048576 rows");
    }

    #[test]
    fn symmetry_and_dependence_are_seen() {
        let majority = Specification::from_table(3, 0b1110_1000);
        assert!(majority.is_symmetric(0, 2) && majority.is_essential(1, 0));
        let implication = Specification::from_table(2, 0b1101);
        assert!(!implication.is_symmetric(0, 1));
        let first = Specification::from_table(2, 0b1010);
        assert!(first.is_essential(0, 0) && !first.is_essential(1, 0));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[-01x# \n]{0,80}") {
            let _ = Specification::parse(&text);
        }
    }
}
