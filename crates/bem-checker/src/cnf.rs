//! Formulas in conjunctive normal form, and the DIMACS text they are exchanged in.
//!
//! Must not know where a formula comes from. The reader is bounded and says the line of the first mistake.
//! Clauses: SCC-3, SCC-4.

use bem_base::digest::{self, Digest};
use core::fmt;

/// The largest number of variables of a formula or proof.
pub const VARIABLES_MAX: u32 = 1 << 24;
/// The largest number of clauses of a formula.
pub const CLAUSES_MAX: usize = 1 << 26;
/// The largest number of literals of a formula, over all clauses.
pub const LITERALS_MAX: usize = 1 << 28;

/// A variable or its negation. Variables are counted from 1, as in DIMACS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Literal(u32);

impl Literal {
    /// The plain variable. It must lie in `1..=VARIABLES_MAX`.
    pub const fn positive(variable: u32) -> Literal {
        assert!(0 < variable && variable <= VARIABLES_MAX);
        Literal(variable << 1)
    }

    /// The negated variable. It must lie in `1..=VARIABLES_MAX`.
    pub const fn negative(variable: u32) -> Literal {
        Literal(Literal::positive(variable).0 | 1)
    }

    /// Reads a DIMACS literal: the sign is the negation. None if the variable is out of range.
    pub const fn from_dimacs(value: i64) -> Option<Literal> {
        let variable = value.unsigned_abs();
        if variable == 0 || (VARIABLES_MAX as u64) < variable {
            return None;
        }
        Some(Literal((variable as u32) << 1 | (value < 0) as u32))
    }

    /// The DIMACS form.
    pub const fn to_dimacs(self) -> i32 {
        let variable = self.variable() as i32;
        if self.is_negative() { -variable } else { variable }
    }

    /// Its variable, from 1.
    pub const fn variable(self) -> u32 {
        self.0 >> 1
    }

    /// Whether it is a negated variable.
    pub const fn is_negative(self) -> bool {
        self.0 & 1 == 1
    }

    /// A dense number for tables: twice the variable, plus one if negated.
    pub const fn code(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn from_code(code: u32) -> Literal {
        Literal(code)
    }

    /// This literal, negated if `flip` is true.
    #[must_use]
    pub const fn xor(self, flip: bool) -> Literal {
        Literal(self.0 ^ flip as u32)
    }
}

impl core::ops::Not for Literal {
    type Output = Literal;
    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.to_dimacs())
    }
}

/// What is wrong with a text or proof, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct FormatError {
    /// The line (text) or byte (binary) of the mistake.
    pub place: Place,
    /// What is wrong there, in lower case.
    pub reason: String,
}

/// A place in a file, counted the way an editor would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Line of a text, from 1.
    Line(usize),
    /// Byte of a binary file, from 0.
    Byte(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(formatter, "line {line}"),
            Place::Byte(byte) => write!(formatter, "byte {byte}"),
        }
    }
}

/// A list of clauses, each a disjunction of literals; all of them must hold.
///
/// Invariant: every literal's variable is at most `variables`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cnf {
    variables: u32,
    literals: Vec<Literal>,
    ends: Vec<usize>,
}

impl Cnf {
    /// A formula without clauses over this many variables; it is true.
    pub fn new(variables: u32) -> Cnf {
        assert!(variables <= VARIABLES_MAX);
        Cnf { variables, literals: Vec::new(), ends: Vec::new() }
    }

    /// How many variables there are, used or not.
    pub fn variables(&self) -> u32 {
        self.variables
    }

    /// How many clauses there are.
    pub fn clause_count(&self) -> usize {
        self.ends.len()
    }

    /// How many literals the clauses have in sum.
    pub fn literal_count(&self) -> usize {
        self.literals.len()
    }

    /// The clause at this position.
    pub fn clause(&self, position: usize) -> &[Literal] {
        let start = if position == 0 { 0 } else { self.ends[position - 1] };
        &self.literals[start..self.ends[position]]
    }

    /// All clauses in order.
    pub fn clauses(&self) -> impl Iterator<Item = &[Literal]> {
        (0..self.clause_count()).map(|position| self.clause(position))
    }

    /// A variable that no clause uses yet, as its plain literal.
    pub fn fresh(&mut self) -> Literal {
        self.variables += 1;
        Literal::positive(self.variables)
    }

    /// Makes sure that there are at least this many variables.
    pub fn declare(&mut self, variables: u32) {
        assert!(variables <= VARIABLES_MAX);
        self.variables = self.variables.max(variables);
    }

    /// Adds a clause; a variable that is new to the formula becomes one of its variables.
    pub fn add(&mut self, clause: &[Literal]) {
        let highest = clause.iter().map(|literal| literal.variable()).max().unwrap_or(0);
        self.variables = self.variables.max(highest);
        self.literals.extend_from_slice(clause);
        self.ends.push(self.literals.len());
        assert!(self.ends.len() <= CLAUSES_MAX && self.literals.len() <= LITERALS_MAX);
    }

    /// Adds all clauses of another formula over the same variables.
    pub fn extend(&mut self, other: &Cnf) {
        self.variables = self.variables.max(other.variables);
        for clause in other.clauses() {
            self.add(clause);
        }
    }

    /// The first clause that this assignment leaves false, if any. `model[v - 1]` is the value of variable `v`;
    /// variables beyond the model are false.
    pub fn first_violated(&self, model: &[bool]) -> Option<usize> {
        let holds = |literal: &Literal| {
            let value = model.get(literal.variable() as usize - 1).copied().unwrap_or(false);
            value != literal.is_negative()
        };
        self.clauses().position(|clause| !clause.iter().any(holds))
    }

    /// The digest that binds a certificate to this formula: variables, clauses, and their order.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::with_capacity(16 + 4 * (self.literals.len() + self.ends.len()));
        bytes.extend_from_slice(&self.variables.to_le_bytes());
        for clause in self.clauses() {
            for literal in clause {
                bytes.extend_from_slice(&literal.0.to_le_bytes());
            }
            // No literal has the code 0, so a clause has one end.
            bytes.extend_from_slice(&0u32.to_le_bytes());
        }
        digest::hash_parts("bem/cnf", &[&bytes])
    }

    /// The DIMACS text.
    pub fn to_dimacs(&self) -> String {
        let mut text = format!("p cnf {} {}\n", self.variables, self.clause_count());
        for clause in self.clauses() {
            for literal in clause {
                text.push_str(&literal.to_dimacs().to_string());
                text.push(' ');
            }
            text.push_str("0\n");
        }
        text
    }

    /// Reads DIMACS: comment lines that start with `c`, one header `p cnf VARIABLES CLAUSES`, then literals with
    /// a 0 after each clause. A line that starts with `%` ends the formula, as in the SATLIB collection.
    pub fn from_dimacs(text: &[u8]) -> Result<Cnf, FormatError> {
        let mut header: Option<(Cnf, usize)> = None;
        let mut clause: Vec<Literal> = Vec::new();
        let mut line_last = 0;
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let error = |reason: String| FormatError { place: Place::Line(index + 1), reason };
            let line = core::str::from_utf8(line).map_err(|_| error("text that is not UTF-8".into()))?.trim();
            line_last = index + 1;
            match line.bytes().next() {
                None | Some(b'c') => continue,
                Some(b'%') => break,
                Some(b'p') => {
                    if header.is_some() {
                        return Err(error("a second header".into()));
                    }
                    header = Some(parse_header(line).map_err(error)?);
                }
                Some(_) => {
                    let missing = || error("a clause before the header `p cnf VARIABLES CLAUSES`".into());
                    let (cnf, declared) = header.as_mut().ok_or_else(missing)?;
                    for word in line.split_ascii_whitespace() {
                        add_word(cnf, *declared, &mut clause, word).map_err(error)?;
                    }
                }
            }
        }
        let error = |reason: String| FormatError { place: Place::Line(line_last), reason };
        let (cnf, declared) = header.ok_or_else(|| error("no header `p cnf VARIABLES CLAUSES`".into()))?;
        if !clause.is_empty() {
            return Err(error("the last clause does not end with 0".into()));
        }
        if cnf.clause_count() != declared {
            return Err(error(format!("{} clauses found, {declared} declared", cnf.clause_count())));
        }
        Ok(cnf)
    }
}

fn parse_header(line: &str) -> Result<(Cnf, usize), String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let ["p", "cnf", variables, clauses] = words[..] else {
        return Err("the header must read `p cnf VARIABLES CLAUSES`".into());
    };
    let variables: u32 = variables
        .parse()
        .ok()
        .filter(|count| *count <= VARIABLES_MAX)
        .ok_or_else(|| format!("variables {variables:?} must be a number from 0 to {VARIABLES_MAX}"))?;
    let clauses: usize = clauses
        .parse()
        .ok()
        .filter(|count| *count <= CLAUSES_MAX)
        .ok_or_else(|| format!("clauses {clauses:?} must be a number from 0 to {CLAUSES_MAX}"))?;
    Ok((Cnf::new(variables), clauses))
}

fn add_word(cnf: &mut Cnf, declared: usize, clause: &mut Vec<Literal>, word: &str) -> Result<(), String> {
    let value: i64 = word.parse().map_err(|_| format!("{word:?} is not a literal"))?;
    if value == 0 {
        if cnf.clause_count() == declared {
            return Err(format!("more than the {declared} clauses declared"));
        }
        cnf.add(clause);
        clause.clear();
        return Ok(());
    }
    let limit = cnf.variables();
    let literal = Literal::from_dimacs(value)
        .filter(|literal| literal.variable() <= limit)
        .ok_or_else(|| format!("literal {value} names a variable outside 1 to {limit}"))?;
    if LITERALS_MAX <= cnf.literal_count() + clause.len() {
        return Err(format!("more than {LITERALS_MAX} literals"));
    }
    clause.push(literal);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(values: &[i64]) -> Vec<Literal> {
        values.iter().map(|value| Literal::from_dimacs(*value).unwrap()).collect()
    }

    fn reason(text: &str) -> String {
        Cnf::from_dimacs(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_formula_survives_its_text() {
        let mut cnf = Cnf::new(5);
        for clause in [&[1, -2][..], &[], &[3]] {
            cnf.add(&literals(clause));
        }
        assert_eq!(cnf.to_dimacs(), "p cnf 5 3\n1 -2 0\n0\n3 0\n");
        assert_eq!(Cnf::from_dimacs(cnf.to_dimacs().as_bytes()), Ok(cnf));
    }

    #[test]
    fn clauses_may_share_and_span_lines_and_satlib_files_may_end_with_a_percent_sign() {
        let cnf = Cnf::from_dimacs(b"c hello\np cnf 3 2\n1 2\n 0 -3 0\n%\n0\n").unwrap();
        let clauses: Vec<&[Literal]> = cnf.clauses().collect();
        assert_eq!(clauses, [literals(&[1, 2]), literals(&[-3])]);
    }

    #[test]
    fn every_mistake_names_its_line_and_reason() {
        assert_eq!(reason(""), "line 1: no header `p cnf VARIABLES CLAUSES`");
        assert_eq!(reason("1 0\n"), "line 1: a clause before the header `p cnf VARIABLES CLAUSES`");
        assert_eq!(reason("p cnf 1\n"), "line 1: the header must read `p cnf VARIABLES CLAUSES`");
        assert_eq!(reason("p cnf -1 1\n"), "line 1: variables \"-1\" must be a number from 0 to 16777216");
        assert_eq!(reason("p cnf 1 1\n1 x 0\n"), "line 2: \"x\" is not a literal");
        assert_eq!(reason("p cnf 1 1\n\n2 0\n"), "line 3: literal 2 names a variable outside 1 to 1");
        assert_eq!(reason("p cnf 1 1\n1 0 1 0"), "line 2: more than the 1 clauses declared");
        assert_eq!(reason("p cnf 1 2\n1 0"), "line 2: 1 clauses found, 2 declared");
        assert_eq!(reason("p cnf 1 1\n1"), "line 2: the last clause does not end with 0");
        assert_eq!(reason("p cnf 1 1\np cnf 1 1\n"), "line 2: a second header");
    }

    #[test]
    fn order_and_clause_borders_are_part_of_the_digest() {
        let formula = |clauses: &[&[i64]]| {
            let mut cnf = Cnf::new(2);
            clauses.iter().for_each(|clause| cnf.add(&literals(clause)));
            cnf.digest()
        };
        assert_ne!(formula(&[&[1], &[2]]), formula(&[&[2], &[1]]));
        assert_ne!(formula(&[&[1, 2], &[]]), formula(&[&[1], &[2]]));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(0u8.., 0..200)) {
            let _ = Cnf::from_dimacs(&bytes);
        }

        #[test]
        fn almost_dimacs_never_makes_the_reader_panic(text in "p cnf [0-9]{1,9} [0-9]{1,9}\n([-0-9 c%p\n]{0,60})") {
            let _ = Cnf::from_dimacs(text.as_bytes());
        }
    }
}
