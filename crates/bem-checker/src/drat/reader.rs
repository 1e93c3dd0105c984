//! The steps of a proof without hints, from text or from bytes. Clause: SCC-4.

use crate::cnf::{FormatError, Literal, Place};
use crate::lrat_reader::{Words, parse_number, read_varint};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DratStepKind {
    Add,
    Delete,
}

/// Goes through the steps of a proof without hints.
pub(super) struct DratReader<'a> {
    bytes: &'a [u8],
    position: usize,
    line: usize,
    binary: bool,
    /// The literals of the latest step, sorted.
    pub(super) clause: Vec<Literal>,
}

impl<'a> DratReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> DratReader<'a> {
        // A text starts with a digit, a sign, a comment or a deletion, and has nothing but such characters.
        let text = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace() || b"-d".contains(byte);
        let binary = match bytes.first() {
            Some(b'a') => true,
            Some(b'd') => !bytes.iter().take(64).all(text),
            _ => false,
        };
        DratReader { bytes, position: 0, line: 1, binary, clause: Vec::new() }
    }

    pub(super) fn place(&self) -> Place {
        if self.binary { Place::Byte(self.position) } else { Place::Line(self.line) }
    }

    fn error(&self, reason: impl Into<String>) -> FormatError {
        FormatError { place: self.place(), reason: reason.into() }
    }

    pub(super) fn next(&mut self) -> Result<Option<DratStepKind>, FormatError> {
        self.clause.clear();
        let kind = if self.binary { self.next_binary() } else { self.next_text() };
        self.clause.sort_unstable();
        self.clause.dedup();
        kind
    }

    fn next_binary(&mut self) -> Result<Option<DratStepKind>, FormatError> {
        let Some(tag) = self.bytes.get(self.position).copied() else { return Ok(None) };
        let kind = match tag {
            b'a' => DratStepKind::Add,
            b'd' => DratStepKind::Delete,
            _ => return Err(self.error(format!("a step starts with `a` or `d`, not with the byte {tag}"))),
        };
        self.position += 1;
        loop {
            let code = read_varint(self.bytes, &mut self.position).map_err(|reason| self.error(reason))?;
            let variable = (code >> 1) as i64;
            match if code & 1 == 1 { -variable } else { variable } {
                0 if code == 0 => return Ok(Some(kind)),
                value => self.push(value)?,
            }
        }
    }

    fn next_text(&mut self) -> Result<Option<DratStepKind>, FormatError> {
        while self.position < self.bytes.len() {
            let rest = &self.bytes[self.position..];
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let kind = self.parse_line(&rest[..length])?;
            self.position = (self.position + length + 1).min(self.bytes.len());
            self.line += 1;
            if kind.is_some() {
                return Ok(kind);
            }
        }
        Ok(None)
    }

    fn parse_line(&mut self, line: &[u8]) -> Result<Option<DratStepKind>, FormatError> {
        let mut words = Words { rest: line }.peekable();
        let kind = match words.peek() {
            None | Some(&b"c") => return Ok(None),
            Some(&b"d") => {
                words.next();
                DratStepKind::Delete
            }
            Some(_) => DratStepKind::Add,
        };
        let mut ended = false;
        for word in words {
            if ended {
                return Err(self.error("numbers after the end of the step"));
            }
            let value = parse_number(word)
                .ok_or_else(|| self.error(format!("{:?} is not a number", String::from_utf8_lossy(word))))?;
            if value == 0 {
                ended = true;
            } else {
                self.push(value)?;
            }
        }
        if ended { Ok(Some(kind)) } else { Err(self.error("the step does not end with 0")) }
    }

    fn push(&mut self, value: i64) -> Result<(), FormatError> {
        let literal = Literal::from_dimacs(value)
            .ok_or_else(|| self.error(format!("literal {value} is out of range")))?;
        self.clause.push(literal);
        Ok(())
    }
}
