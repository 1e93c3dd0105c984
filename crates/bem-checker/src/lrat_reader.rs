//! Reads and writes LRAT proofs, as text and in the binary form of CaDiCaL and lrat-trim.
//!
//! Text: `ID LITERALS 0 HINTS 0` adds a clause, `ID d IDS 0` deletes clauses. Binary: `a` or `d`, then numbers in
//! groups of seven bits, lowest first; a signed number `n` is stored as `2|n|`, plus one if negative; 0 ends a
//! list. Must not judge a proof: that is [`crate::lrat`]. Clauses: SCC-4.

use crate::cnf::{FormatError, Literal, Place};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Adds the clause just read under this identifier, with the numbers as hints.
    Add {
        /// Its identifier.
        id: u64,
    },
    /// Deletes the clauses with the numbers as identifiers.
    Delete,
}

/// Goes through the steps of a proof; the lists of the current step are kept in buffers that are used again.
#[derive(Clone, Debug)]
pub struct StepReader<'a> {
    bytes: &'a [u8],
    position: usize,
    line: usize,
    binary: bool,
    clause: Vec<Literal>,
    numbers: Vec<i64>,
}

impl<'a> StepReader<'a> {
    /// A reader at the start; a proof that begins with the byte `a` or `d` is binary.
    pub fn new(bytes: &'a [u8]) -> StepReader<'a> {
        let binary = matches!(bytes.first(), Some(b'a' | b'd'));
        StepReader { bytes, position: 0, line: 1, binary, clause: Vec::new(), numbers: Vec::new() }
    }

    /// Where the next step starts.
    pub fn place(&self) -> Place {
        if self.binary { Place::Byte(self.position) } else { Place::Line(self.line) }
    }

    /// The clause of the current step.
    pub fn clause(&self) -> &[Literal] {
        &self.clause
    }

    /// The hints of the current step, or the clauses it deletes.
    pub fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// Reads the next step; none at the end.
    #[expect(
        clippy::should_implement_trait,
        reason = "the step's lists are lent, which an iterator cannot do"
    )]
    pub fn next(&mut self) -> Result<Option<StepKind>, FormatError> {
        self.clause.clear();
        self.numbers.clear();
        if self.binary { self.next_binary() } else { self.next_text() }
    }

    fn error(&self, reason: impl Into<String>) -> FormatError {
        FormatError { place: self.place(), reason: reason.into() }
    }

    fn push_literal(&mut self, value: i64) -> Result<(), FormatError> {
        let literal = Literal::from_dimacs(value)
            .ok_or_else(|| self.error(format!("literal {value} is out of range")))?;
        self.clause.push(literal);
        Ok(())
    }

    fn next_text(&mut self) -> Result<Option<StepKind>, FormatError> {
        let bytes = self.bytes;
        loop {
            if self.position == bytes.len() {
                return Ok(None);
            }
            let rest = &bytes[self.position..];
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = &rest[..length];
            let kind = self.parse_line(line)?;
            self.position = (self.position + length + 1).min(bytes.len());
            self.line += 1;
            if kind.is_some() {
                return Ok(kind);
            }
        }
    }

    fn parse_line(&mut self, line: &[u8]) -> Result<Option<StepKind>, FormatError> {
        let mut words = Words { rest: line };
        let id = match words.next() {
            None | Some(b"c") => return Ok(None),
            Some(word) => self.number(word)?,
        };
        let id = u64::try_from(id).map_err(|_| self.error(format!("identifier {id} is negative")))?;
        let mut delete = false;
        let mut lists = 0;
        for word in words {
            if word == b"d" && lists == 0 && self.clause.is_empty() {
                // A deletion has no clause: its only list is that of the identifiers.
                (delete, lists) = (true, 1);
                continue;
            }
            if lists == 2 {
                return Err(self.error("numbers after the end of the step"));
            }
            match self.number(word)? {
                0 => lists += 1,
                value if lists == 0 => self.push_literal(value)?,
                value => self.numbers.push(value),
            }
        }
        if lists != 2 {
            return Err(self.error("the step does not end with 0"));
        }
        Ok(Some(if delete { StepKind::Delete } else { StepKind::Add { id } }))
    }

    fn number(&self, word: &[u8]) -> Result<i64, FormatError> {
        parse_number(word)
            .ok_or_else(|| self.error(format!("{:?} is not a number", String::from_utf8_lossy(word))))
    }

    fn next_binary(&mut self) -> Result<Option<StepKind>, FormatError> {
        let start = self.position;
        let Some(tag) = self.bytes.get(self.position).copied() else { return Ok(None) };
        self.position += 1;
        let kind = match tag {
            b'a' => {
                let id = self.signed()?;
                let id = u64::try_from(id).map_err(|_| self.error(format!("identifier {id} is negative")))?;
                loop {
                    match self.signed()? {
                        0 => break,
                        value => self.push_literal(value)?,
                    }
                }
                StepKind::Add { id }
            }
            b'd' => StepKind::Delete,
            _ => {
                self.position = start;
                return Err(self.error(format!("a step starts with `a` or `d`, not with the byte {tag}")));
            }
        };
        loop {
            match self.signed()? {
                0 => break,
                value => self.numbers.push(value),
            }
        }
        Ok(Some(kind))
    }

    fn signed(&mut self) -> Result<i64, FormatError> {
        let code = read_varint(self.bytes, &mut self.position).map_err(|reason| self.error(reason))?;
        let value = (code >> 1) as i64;
        Ok(if code & 1 == 1 { -value } else { value })
    }
}

/// Reads a number in groups of seven bits, lowest first.
#[inline]
pub(crate) fn read_varint(bytes: &[u8], position: &mut usize) -> Result<u64, &'static str> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.get(*position).ok_or("the proof ends in the middle of a step")?;
        *position += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number of more than 63 bits")
}

/// Words between blanks.
pub(crate) struct Words<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.rest[start..];
        let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.rest = &rest[length..];
        Some(&rest[..length])
    }
}

/// A decimal number with at most 18 digits.
pub(crate) fn parse_number(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || 18 < digits.len() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if negative { -value } else { value })
}

/// Writes a proof in the binary form.
#[derive(Clone, Debug, Default)]
pub struct StepWriter {
    bytes: Vec<u8>,
}

impl StepWriter {
    /// An empty proof.
    pub fn new() -> StepWriter {
        StepWriter::default()
    }

    /// Writes the addition of a clause with its hints.
    pub fn add(&mut self, id: u64, clause: &[Literal], hints: impl IntoIterator<Item = u64>) {
        self.bytes.push(b'a');
        self.varint(id << 1);
        for literal in clause {
            self.varint(literal.code() as u64);
        }
        self.bytes.push(0);
        for hint in hints {
            self.varint(hint << 1);
        }
        self.bytes.push(0);
    }

    /// Writes the deletion of clauses.
    pub fn delete(&mut self, ids: impl IntoIterator<Item = u64>) {
        self.bytes.push(b'd');
        for id in ids {
            self.varint(id << 1);
        }
        self.bytes.push(0);
    }

    fn varint(&mut self, mut value: u64) {
        while 0x7f < value {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// The finished proof.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The text form of a proof, for people and for other checkers.
pub fn to_text(proof: &[u8]) -> Result<String, FormatError> {
    let mut reader = StepReader::new(proof);
    let mut text = String::new();
    // The number in front of a deletion means nothing; readers only ask that it is positive.
    let mut last = 1;
    let push = |number: i64, text: &mut String| {
        text.push(' ');
        text.push_str(&number.to_string());
    };
    while let Some(kind) = reader.next()? {
        match kind {
            StepKind::Add { id } => {
                last = id;
                text.push_str(&id.to_string());
                for literal in reader.clause() {
                    push(i64::from(literal.to_dimacs()), &mut text);
                }
                push(0, &mut text);
            }
            StepKind::Delete => {
                text.push_str(&last.to_string());
                text.push_str(" d");
            }
        }
        for number in reader.numbers() {
            push(*number, &mut text);
        }
        text.push_str(" 0\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let mut writer = StepWriter::new();
        let clause = [Literal::positive(1), Literal::negative(200)];
        writer.add(70, &clause, [1, 64, 69]);
        writer.delete([1, 70]);
        let binary = writer.into_bytes();
        let text = to_text(&binary).unwrap();
        assert_eq!(text, "70 1 -200 0 1 64 69 0\n70 d 1 70 0\n");
        assert_eq!(to_text(text.as_bytes()).unwrap(), text);
    }

    #[test]
    fn binary_mistakes_name_their_byte() {
        let reason = |bytes: &[u8]| to_text(bytes).unwrap_err().to_string();
        assert_eq!(reason(b"a\x02"), "byte 2: the proof ends in the middle of a step");
        assert_eq!(reason(b"d\x00x"), "byte 2: a step starts with `a` or `d`, not with the byte 120");
        assert_eq!(reason(&[&b"d"[..], &[0xff; 12]].concat()), "byte 10: a number of more than 63 bits");
    }
}
