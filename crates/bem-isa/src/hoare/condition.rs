//! The language of invariants: comparisons of 64-bit terms, joined by `&&`, `||` and `!`.
//!
//! ```text
//! x2 <=u 64 && (p1 || [8] == x1 + 3)
//! ```
//! Terms: numbers, `x0`..`x31`, words of memory `[address]`, and `+ - & | ^` from left to right, with
//! parentheses. Comparisons: `== != < <= > >=` signed, `<u <=u >u >=u` unsigned. A predicate `p3` is a condition.
//! Clause: SCC-6.

use super::symbolic::SymbolicState;
use super::word::{FALSE, Word, add, below, bitwise, equal, gate, less, subtract};
use bem_circuit::netlist::Op;
use bem_prover::Cnf;
use bem_prover::encode::Wire;

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at letter {position} of {text:?}: {reason}")]
pub struct ConditionError {
    /// The whole condition.
    pub text: String,
    /// Counted from one.
    pub position: usize,
    /// What would be right there.
    pub reason: String,
}

/// A term of 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Number(u64),
    Register(usize),
    Memory(Box<Term>),
    Binary(char, Box<Term>, Box<Term>),
}

/// How two words are compared; the others are made of these by exchange and negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Less,
    Below,
}

/// A condition on registers and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition(Node);

/// A condition as a tree; predicates are registers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Constant(bool),
    Predicate(usize),
    Compare(Comparison, Term, Term),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
}

/// Parentheses and `!` inside each other.
const DEPTH_MAX: usize = 64;

impl Condition {
    /// Reads a condition; the empty text is "true".
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        if text.trim().is_empty() {
            return Ok(Condition(Node::Constant(true)));
        }
        let mut parser = Parser { text, position: 0, depth: 0 };
        let node = parser.disjunction()?;
        parser.skip_space();
        if parser.position < text.len() {
            return Err(parser.error("the condition should end here, or go on with && or ||"));
        }
        Ok(Condition(node))
    }

    /// The condition on a symbolic state, as one wire. A memory word outside the model makes it false.
    pub fn encode(&self, cnf: &mut Cnf, state: &mut SymbolicState) -> Wire {
        encode(&self.0, cnf, state)
    }
}

fn encode(node: &Node, cnf: &mut Cnf, state: &mut SymbolicState) -> Wire {
    match node {
        Node::Constant(value) => Wire::Constant(*value),
        Node::Predicate(number) => state.p[*number],
        Node::Not(inner) => encode(inner, cnf, state).complement(),
        Node::And(left, right) | Node::Or(left, right) => {
            let op = if matches!(node, Node::And(..)) { Op::And } else { Op::Or };
            let (left, right) = (encode(left, cnf, state), encode(right, cnf, state));
            gate(cnf, op, left, right)
        }
        Node::Compare(comparison, left, right) => {
            let (left, left_valid) = term(left, cnf, state);
            let (right, right_valid) = term(right, cnf, state);
            let holds = match comparison {
                Comparison::Equal => equal(cnf, &left, &right),
                Comparison::Less => less(cnf, &left, &right),
                Comparison::Below => below(cnf, &left, &right),
            };
            let valid = gate(cnf, Op::And, left_valid, right_valid);
            gate(cnf, Op::And, holds, valid)
        }
    }
}

/// The term's value, and whether all memory words it reads exist.
fn term(value: &Term, cnf: &mut Cnf, state: &mut SymbolicState) -> (Word, Wire) {
    match value {
        Term::Number(number) => (Word::constant(*number), Wire::Constant(true)),
        Term::Register(number) => (state.x[*number].clone(), Wire::Constant(true)),
        Term::Memory(address) => {
            let (address, valid) = term(address, cnf, state);
            let (word, fault) = state.load(cnf, &address, 1);
            (word[0].clone(), gate(cnf, Op::And, valid, fault.complement()))
        }
        Term::Binary(sign, left, right) => {
            let (left, left_valid) = term(left, cnf, state);
            let (right, right_valid) = term(right, cnf, state);
            let result = match sign {
                '+' => add(cnf, &left, &right, FALSE).0,
                '-' => subtract(cnf, &left, &right),
                '&' => bitwise(cnf, Op::And, &left, &right),
                '|' => bitwise(cnf, Op::Or, &left, &right),
                _ => bitwise(cnf, Op::Xor, &left, &right),
            };
            (result, gate(cnf, Op::And, left_valid, right_valid))
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, reason: &str) -> ConditionError {
        ConditionError {
            text: self.text.to_string(),
            position: self.position + 1,
            reason: reason.to_string(),
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
    }

    fn rest(&mut self) -> &'a str {
        self.skip_space();
        &self.text[self.position..]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, ConditionError>,
    ) -> Result<T, ConditionError> {
        self.depth += 1;
        if DEPTH_MAX < self.depth {
            return Err(self.error("parentheses are nested too deep"));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn disjunction(&mut self) -> Result<Node, ConditionError> {
        let mut node = self.conjunction()?;
        while self.take("||") {
            node = Node::Or(Box::new(node), Box::new(self.conjunction()?));
        }
        Ok(node)
    }

    fn conjunction(&mut self) -> Result<Node, ConditionError> {
        let mut node = self.unary()?;
        while self.take("&&") {
            node = Node::And(Box::new(node), Box::new(self.unary()?));
        }
        Ok(node)
    }

    fn unary(&mut self) -> Result<Node, ConditionError> {
        let rest = self.rest();
        if rest.starts_with('!') && !rest.starts_with("!=") {
            self.position += 1;
            return self.nested(|parser| Ok(Node::Not(Box::new(parser.unary()?))));
        }
        if rest.starts_with('p') {
            self.position += 1;
            return Ok(Node::Predicate(self.register_number(16)?));
        }
        // A parenthesis may open a term or a condition: the term is tried first.
        let start = (self.position, self.depth);
        match self.comparison() {
            Err(_) if rest.starts_with('(') => {
                (self.position, self.depth) = start;
                self.position += 1;
                let node = self.nested(Self::disjunction)?;
                if self.take(")") { Ok(node) } else { Err(self.error("a closing parenthesis is missing")) }
            }
            other => other,
        }
    }

    fn comparison(&mut self) -> Result<Node, ConditionError> {
        let left = self.term()?;
        // Longer signs first; each is (swap the sides, complement, base comparison).
        const SIGNS: [(&str, bool, bool, Comparison); 10] = [
            ("==", false, false, Comparison::Equal),
            ("!=", false, true, Comparison::Equal),
            ("<=u", true, true, Comparison::Below),
            (">=u", false, true, Comparison::Below),
            ("<=", true, true, Comparison::Less),
            (">=", false, true, Comparison::Less),
            ("<u", false, false, Comparison::Below),
            (">u", true, false, Comparison::Below),
            ("<", false, false, Comparison::Less),
            (">", true, false, Comparison::Less),
        ];
        for (sign, swap, complement, comparison) in SIGNS {
            if self.take(sign) {
                let right = self.term()?;
                let (left, right) = if swap { (right, left) } else { (left, right) };
                let node = Node::Compare(comparison, left, right);
                return Ok(if complement { Node::Not(Box::new(node)) } else { node });
            }
        }
        Err(self.error("a comparison is missing: == != < <= > >= <u <=u >u >=u"))
    }

    fn term(&mut self) -> Result<Term, ConditionError> {
        let mut term = self.atom()?;
        loop {
            let rest = self.rest();
            let sign = rest.chars().next().filter(|sign| "+-&|^".contains(*sign));
            let Some(sign) = sign.filter(|_| !rest.starts_with("&&") && !rest.starts_with("||")) else {
                return Ok(term);
            };
            self.position += 1;
            term = Term::Binary(sign, Box::new(term), Box::new(self.atom()?));
        }
    }

    fn atom(&mut self) -> Result<Term, ConditionError> {
        let rest = self.rest();
        if self.take("[") {
            let inner = self.nested(Self::term)?;
            return if self.take("]") {
                Ok(Term::Memory(Box::new(inner)))
            } else {
                Err(self.error("a closing bracket is missing"))
            };
        }
        if self.take("(") {
            let inner = self.nested(Self::term)?;
            return if self.take(")") {
                Ok(inner)
            } else {
                Err(self.error("a closing parenthesis is missing"))
            };
        }
        if rest.starts_with('x') {
            self.position += 1;
            return Ok(Term::Register(self.register_number(32)?));
        }
        let negative = self.take("-");
        let digits = self.rest();
        let (radix, skip) = if digits.starts_with("0x") { (16, 2) } else { (10, 0) };
        let length = digits[skip..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        match u64::from_str_radix(&digits[skip..skip + length], radix) {
            Ok(value) => {
                self.position += skip + length;
                Ok(Term::Number(if negative { value.wrapping_neg() } else { value }))
            }
            Err(_) => Err(self.error("a number, register or [address] is missing")),
        }
    }

    fn register_number(&mut self, count: usize) -> Result<usize, ConditionError> {
        let digits = &self.text[self.position..];
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        match digits[..length].parse::<usize>() {
            Ok(number) if number < count => {
                self.position += length;
                Ok(number)
            }
            _ => Err(self.error("there is no such register")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::{Core, SegmentStarts};
    use crate::program::Program;

    fn holds(text: &str) -> bool {
        let mut core = Core::new(&Program::default(), 1, SegmentStarts::default());
        (core.x[1], core.x[2], core.p[3]) = (7, u64::MAX, true);
        let mut state = SymbolicState::known(&core, &[5, 6]);
        let wire = Condition::parse(text).unwrap().encode(&mut Cnf::new(0), &mut state);
        wire == Wire::Constant(true)
    }

    #[test]
    fn conditions_mean_what_they_say() {
        for text in [
            "",
            "x1 == 7",
            "x2 < 0",
            "x2 >u 100",
            "p3 && !p2",
            "[0] + 1 == [8]",
            "(x1 - 2) == 5",
            "(x1 == 7 || x1 == 8) && x2 == -1",
            "x1 >= 7",
            "x1 <=u 7",
            "!(x1 != 7)",
            "x1 & 6 == 6",
            "x2 == 0xffffffffffffffff",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in ["x1 == 8", "x2 > 0", "x2 <u 100", "p2", "[16] == 0", "[4] == 5", "x1 > 7"] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = |text: &str| Condition::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("x1 = 2"),
            "at letter 4 of \"x1 = 2\": a comparison is missing: == != < <= > >= <u <=u >u >=u"
        );
        assert_eq!(error("x40 == 1"), "at letter 2 of \"x40 == 1\": there is no such register");
        assert!(error(&"(".repeat(1_000)).contains("nested too deep"));
        assert!(error("x1 == 1 x2").contains("should end here"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[ xp0-9()\\[\\]!&|=<>u+^-]{0,60}") {
            let _ = Condition::parse(&text);
        }
    }
}
