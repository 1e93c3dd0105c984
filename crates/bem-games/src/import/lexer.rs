//! Words, texts, braces and exact numbers of Gambit's files, each with its line. Clauses: GLE-9.

use super::{ImportError, REWARD_MAX};

/// An exact fraction. Invariant: the denominator is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rational {
    pub numerator: i128,
    pub denominator: i128,
}

/// Digits before or after the point, and of a denominator.
const DIGITS_MAX: usize = 15;

impl Rational {
    /// Reads `3`, `-1/3`, `0.25` or `1e-3`.
    pub fn parse(text: &str) -> Option<Rational> {
        if let Some((above, below)) = text.split_once('/') {
            let (above, below) = (Rational::decimal(above)?, Rational::decimal(below)?);
            let sign = below.numerator.signum();
            let numerator = above.numerator.checked_mul(below.denominator)? * sign;
            let denominator = above.denominator.checked_mul(below.numerator)? * sign;
            return (denominator != 0).then_some(Rational { numerator, denominator });
        }
        match text.split_once(['e', 'E']) {
            None => Rational::decimal(text),
            Some((digits, exponent)) => {
                let number = Rational::decimal(digits)?;
                let exponent: i32 = exponent.parse().ok().filter(|value: &i32| value.abs() <= 12)?;
                let scale = 10i128.pow(exponent.unsigned_abs());
                Some(if exponent < 0 {
                    Rational { denominator: number.denominator * scale, ..number }
                } else {
                    Rational { numerator: number.numerator * scale, ..number }
                })
            }
        }
    }

    fn decimal(text: &str) -> Option<Rational> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number =
            |part: &str| part.len() <= DIGITS_MAX && part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let denominator = 10i128.pow(fraction.len() as u32);
        let digits = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<i128>().ok() };
        let numerator = digits(whole)? * denominator + digits(fraction)?;
        Some(Rational { numerator: if negative { -numerator } else { numerator }, denominator })
    }

    /// In milli-units, to the nearest, if it is at most [`REWARD_MAX`] away from zero.
    pub fn to_milli(self) -> Option<i64> {
        let double = self.numerator.checked_mul(2_000)?.checked_add(self.denominator)?;
        let milli = double.div_euclid(self.denominator.checked_mul(2)?);
        (milli.unsigned_abs() <= REWARD_MAX as u128).then_some(milli as i64)
    }
}

/// A word, a text or a brace of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Text(String),
    Open,
    Close,
    End,
}

/// Reads tokens; commas and white space only separate.
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    position: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { bytes: text.as_bytes(), position: 0, line: 1 }
    }

    pub fn error(&mut self, reason: impl Into<String>) -> ImportError {
        self.skip();
        ImportError::line(self.line, reason)
    }

    fn skip(&mut self) {
        while let Some(byte) = self.bytes.get(self.position) {
            if !byte.is_ascii_whitespace() && *byte != b',' {
                return;
            }
            self.line += usize::from(*byte == b'\n');
            self.position += 1;
        }
    }

    /// The first byte of the next token.
    pub fn peek(&mut self) -> Option<u8> {
        self.skip();
        self.bytes.get(self.position).copied()
    }

    pub fn next(&mut self) -> Result<Token, ImportError> {
        match self.peek() {
            None => Ok(Token::End),
            Some(b'{') => {
                self.position += 1;
                Ok(Token::Open)
            }
            Some(b'}') => {
                self.position += 1;
                Ok(Token::Close)
            }
            Some(b'"') => self.quoted(),
            Some(_) => Ok(self.bare()),
        }
    }

    fn bare(&mut self) -> Token {
        let start = self.position;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"{},\"".contains(byte);
        while self.bytes.get(self.position).is_some_and(|byte| !ends(byte)) {
            self.position += 1;
        }
        Token::Word(String::from_utf8_lossy(&self.bytes[start..self.position]).into_owned())
    }

    /// A text in quotes, in which a backslash makes the next byte plain.
    fn quoted(&mut self) -> Result<Token, ImportError> {
        let first_line = self.line;
        let mut text = Vec::new();
        self.position += 1;
        while let Some(&byte) = self.bytes.get(self.position) {
            self.position += 1;
            self.line += usize::from(byte == b'\n');
            match byte {
                b'"' => return Ok(Token::Text(String::from_utf8_lossy(&text).into_owned())),
                b'\\' => {
                    text.extend(self.bytes.get(self.position));
                    self.position += 1;
                }
                other => text.push(other),
            }
        }
        Err(ImportError::line(first_line, "this quoted text has no end"))
    }

    pub fn expect(&mut self, wanted: &Token, what: &str) -> Result<(), ImportError> {
        self.skip();
        let line = self.line;
        let found = self.next()?;
        if found == *wanted {
            return Ok(());
        }
        Err(ImportError::line(line, format!("expected {what}, found {}", found.describe())))
    }

    pub fn text(&mut self, what: &str) -> Result<String, ImportError> {
        self.skip();
        let line = self.line;
        match self.next()? {
            Token::Text(text) => Ok(text),
            found => {
                Err(ImportError::line(line, format!("expected {what} in quotes, found {}", found.describe())))
            }
        }
    }

    pub fn number(&mut self, what: &str) -> Result<Rational, ImportError> {
        self.skip();
        let line = self.line;
        let found = self.next()?;
        let number = match &found {
            Token::Word(word) => Rational::parse(word),
            _ => None,
        };
        number.ok_or_else(|| {
            ImportError::line(line, format!("expected {what}, a number, found {}", found.describe()))
        })
    }

    /// A whole number from `min` to `max`.
    pub fn count(&mut self, what: &str, min: usize, max: usize) -> Result<usize, ImportError> {
        self.skip();
        let line = self.line;
        let found = self.next()?;
        let number = match &found {
            Token::Word(word) => word.parse::<usize>().ok().filter(|value| (min..=max).contains(value)),
            _ => None,
        };
        number.ok_or_else(|| {
            let reason =
                format!("expected {what}, a whole number from {min} to {max}, found {}", found.describe());
            ImportError::line(line, reason)
        })
    }

    /// The first line of a Gambit file: its kind, a version, `R` or `D`, a title and the players' names.
    pub fn header(&mut self, kind: &str, version: &str) -> Result<Vec<String>, ImportError> {
        let found = self.next()?;
        if found != Token::Word(kind.to_string()) {
            return Err(ImportError::line(
                1,
                format!("expected {kind} at the start, found {}", found.describe()),
            ));
        }
        self.expect(&Token::Word(version.to_string()), &format!("version {version}"))?;
        let found = self.next()?;
        if found != Token::Word("R".into()) && found != Token::Word("D".into()) {
            let reason = format!("expected R or D after the version, found {}", found.describe());
            return Err(self.error(reason));
        }
        self.text("the title")?;
        self.expect(&Token::Open, "'{' before the players' names")?;
        let mut players = Vec::new();
        while self.peek() != Some(b'}') {
            players.push(self.text("a player's name")?);
            if PLAYERS_MAX < players.len() {
                return Err(self.error(format!("more than {PLAYERS_MAX} players")));
            }
        }
        self.expect(&Token::Close, "'}' after the players' names")?;
        Ok(players)
    }
}

/// Players of one game.
const PLAYERS_MAX: usize = 16;

impl Token {
    pub fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("{:?}", shortened(word)),
            Token::Text(text) => format!("the text {:?}", shortened(text)),
            Token::Open => "'{'".to_string(),
            Token::Close => "'}'".to_string(),
            Token::End => "the end of the file".to_string(),
        }
    }
}

/// At most the first 40 letters, so that a message stays one line.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        for (text, numerator, denominator) in [
            ("3", 3, 1),
            ("-1/3", -1, 3),
            ("0.25", 25, 100),
            ("1e-3", 1, 1000),
            (".5", 5, 10),
            ("1/-2", -1, 2),
        ] {
            assert_eq!(Rational::parse(text), Some(Rational { numerator, denominator }), "{text}");
        }
        for text in ["", "-", "1/0", "a", "1.2.3", "1e99", "1/2/3", "99999999999999999", "--1"] {
            assert_eq!(Rational::parse(text), None, "{text}");
        }
    }

    #[test]
    fn milli_units_round_to_the_nearest() {
        let milli = |text: &str| Rational::parse(text).unwrap().to_milli();
        assert_eq!(milli("1/3"), Some(333));
        assert_eq!(milli("-2/3"), Some(-667));
        assert_eq!(milli("0.0005"), Some(1));
        assert_eq!(milli("2000000"), None);
    }
}
