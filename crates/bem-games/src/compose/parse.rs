//! The text form of a composition: `name{setting=value,...}(part,...)`.
//!
//! Depth is bounded while reading, so that no text can exhaust the stack. Errors name the column. Clauses: GLE-3.

use super::tree::{TREE_DEPTH_MAX, TaskTree};
use crate::game::GameError;
use std::collections::BTreeMap;

/// Reads one tree; nothing may follow it.
pub(super) fn parse(text: &str) -> Result<TaskTree, GameError> {
    let mut reader = Reader { bytes: text.as_bytes(), position: 0 };
    let tree = reader.tree(1)?;
    match reader.peek() {
        None => Ok(tree),
        Some(byte) => Err(reader.error(format!("{:?} after the end of the composition", char::from(byte)))),
    }
}

/// The text of a composition and how far it was read.
struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    fn error(&self, reason: String) -> GameError {
        GameError::Syntax { column: self.position + 1, reason }
    }

    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.position).is_some_and(u8::is_ascii_whitespace) {
            self.position += 1;
        }
        self.bytes.get(self.position).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, one: u8, other: u8) -> Result<u8, GameError> {
        match self.peek() {
            Some(byte) if byte == one || byte == other => {
                self.position += 1;
                Ok(byte)
            }
            found => {
                let found = found.map_or("the end".to_string(), |byte| format!("{:?}", char::from(byte)));
                let both = [one, other].map(|byte| format!("{:?}", char::from(byte)));
                let wanted = if one == other { both[0].clone() } else { both.join(" or ") };
                Err(self.error(format!("expected {wanted}, found {found}")))
            }
        }
    }

    fn word(&mut self, what: &str, allowed: impl Fn(u8) -> bool) -> Result<String, GameError> {
        self.peek();
        let start = self.position;
        while self.bytes.get(self.position).is_some_and(|byte| allowed(*byte)) {
            self.position += 1;
        }
        if start == self.position {
            return Err(self.error(format!("expected {what}")));
        }
        Ok(self.bytes[start..self.position].iter().map(|byte| char::from(*byte)).collect())
    }

    fn name(&mut self, what: &str) -> Result<String, GameError> {
        self.word(what, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    }

    fn tree(&mut self, depth: usize) -> Result<TaskTree, GameError> {
        if TREE_DEPTH_MAX < depth {
            return Err(self.error(format!("more than {TREE_DEPTH_MAX} levels")));
        }
        let name = self.name("the name of a family or an operator")?;
        let settings = self.settings()?;
        let mut parts = Vec::new();
        if self.take(b'(') {
            loop {
                parts.push(self.tree(depth + 1)?);
                if self.expect(b',', b')')? == b')' {
                    break;
                }
            }
        }
        TaskTree::node(&name, settings, parts).map_err(|error| self.error(error.to_string()))
    }

    fn settings(&mut self) -> Result<BTreeMap<String, String>, GameError> {
        let mut settings = BTreeMap::new();
        if !self.take(b'{') || self.take(b'}') {
            return Ok(settings);
        }
        loop {
            let name = self.name("the name of a parameter")?;
            self.expect(b'=', b'=')?;
            let value =
                self.word("a value", |byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))?;
            if settings.insert(name.clone(), value).is_some() {
                return Err(self.error(format!("{name} is given twice")));
            }
            if self.expect(b',', b'}')? == b'}' {
                return Ok(settings);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back() {
        for text in
            ["parity", "parity{n=4}", "seq(parity{n=4},repeat{times=3}(compare{bits=2}))", "add{bits=4..8}"]
        {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            parse(" seq ( parity { n = 4 } , compare ) ").unwrap().to_string(),
            "seq(parity{n=4},compare)"
        );
    }

    #[test]
    fn errors_name_the_column_and_what_is_wrong() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "column 1: expected the name of a family or an operator");
        assert_eq!(error("seq(parity,"), "column 12: expected the name of a family or an operator");
        assert_eq!(error("seq(parity)"), "column 12: seq takes 2 parts; 1 were given");
        assert_eq!(error("seq"), "column 4: seq takes 2 parts; 0 were given");
        assert_eq!(
            error("parity(compare)"),
            "column 16: parity is no operator and takes no parts; 1 were given"
        );
        assert_eq!(error("parity{n=4,n=5}"), "column 15: n is given twice");
        assert_eq!(error("parity{n:4}"), "column 9: expected '=', found ':'");
        assert_eq!(error("parity)"), "column 7: ')' after the end of the composition");
        assert_eq!(error(&"repeat(".repeat(1_000)), "column 57: more than 8 levels");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z{}(),=.0-9 ]{0,60}") {
            if let Ok(tree) = parse(&text) {
                proptest::prop_assert_eq!(parse(&tree.to_string()).unwrap(), tree);
            }
        }

        #[test]
        fn no_bytes_make_the_parser_panic(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }
    }
}
