//! Proofs without hints (DRUP, DRAT): finds the hints by its own unit propagation and writes an LRAT proof.
//!
//! Nothing here is trusted: [`check`] hands the LRAT proof to [`crate::lrat`], and that decides. A step must follow
//! by unit propagation; one that needs the RAT rule is rejected. Clauses are deleted by their literals; as in
//! drat-trim, deleting a clause that currently forces a literal, or one that does not exist, is passed over,
//! which only leaves more to propagate with. Clauses: SCC-4.

use crate::cnf::{Cnf, FormatError, Literal, Place};
use crate::lrat::{self, Accepted, CheckError, Rejection};
use crate::lrat_reader::{StepWriter, Words, parse_number, read_varint};
use std::collections::BTreeMap;

/// Checks that the formula has no model.
pub fn check(cnf: &Cnf, proof: &[u8]) -> Result<Accepted, CheckError> {
    lrat::check(cnf, &elaborate(cnf, proof)?)
}

/// The same proof with hints, in binary LRAT.
pub fn elaborate(cnf: &Cnf, proof: &[u8]) -> Result<Vec<u8>, CheckError> {
    let mut reader = DratReader::new(proof);
    let mut elaborator = Elaborator::new(cnf);
    loop {
        let place = reader.place();
        if elaborator.refuted {
            return Ok(elaborator.writer.into_bytes());
        }
        match reader.next()? {
            None => {
                let reason = Rejection::NoConclusion("the empty clause");
                return Err(CheckError::Step { place, reason });
            }
            Some(Kind::Add) => {
                let hints = elaborator.refute_negation(&reader.clause);
                let reason = Rejection::NoContradiction;
                let hints = hints.ok_or(CheckError::Step { place, reason })?;
                elaborator.learn(&reader.clause, &hints);
            }
            Some(Kind::Delete) => elaborator.delete(&reader.clause),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Add,
    Delete,
}

/// Goes through the steps of a proof without hints.
struct DratReader<'a> {
    bytes: &'a [u8],
    position: usize,
    line: usize,
    binary: bool,
    clause: Vec<Literal>,
}

impl<'a> DratReader<'a> {
    fn new(bytes: &'a [u8]) -> DratReader<'a> {
        // A text starts with a digit, a sign, a comment or a deletion, and has nothing but such characters.
        let text = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace() || b"-d".contains(byte);
        let binary = match bytes.first() {
            Some(b'a') => true,
            Some(b'd') => !bytes.iter().take(64).all(text),
            _ => false,
        };
        DratReader { bytes, position: 0, line: 1, binary, clause: Vec::new() }
    }

    fn place(&self) -> Place {
        if self.binary { Place::Byte(self.position) } else { Place::Line(self.line) }
    }

    fn error(&self, reason: impl Into<String>) -> FormatError {
        FormatError { place: self.place(), reason: reason.into() }
    }

    fn next(&mut self) -> Result<Option<Kind>, FormatError> {
        self.clause.clear();
        let kind = if self.binary { self.next_binary() } else { self.next_text() };
        self.clause.sort_unstable();
        self.clause.dedup();
        kind
    }

    fn next_binary(&mut self) -> Result<Option<Kind>, FormatError> {
        let Some(tag) = self.bytes.get(self.position).copied() else { return Ok(None) };
        let kind = match tag {
            b'a' => Kind::Add,
            b'd' => Kind::Delete,
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

    fn next_text(&mut self) -> Result<Option<Kind>, FormatError> {
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

    fn parse_line(&mut self, line: &[u8]) -> Result<Option<Kind>, FormatError> {
        let mut words = Words { rest: line }.peekable();
        let kind = match words.peek() {
            None | Some(&b"c") => return Ok(None),
            Some(&b"d") => {
                words.next();
                Kind::Delete
            }
            Some(_) => Kind::Add,
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

/// Unit propagation with two watched literals a clause; what follows from the clauses alone stays assigned.
struct Elaborator {
    /// By identifier: the literals; the first two are watched. Identifier 0 is not used.
    clauses: Vec<Vec<Literal>>,
    /// By sorted literals: identifiers of the clauses that have exactly these.
    by_literals: BTreeMap<Vec<Literal>, Vec<usize>>,
    /// By literal code: clauses to look at when the literal becomes false.
    watches: Vec<Vec<usize>>,
    /// By literal code: whether it is true.
    holds: Vec<bool>,
    /// By variable: the clause that forced it; 0 for a supposition.
    reasons: Vec<usize>,
    /// By variable: whether the current contradiction rests on it. All false between searches.
    marked: Vec<bool>,
    trail: Vec<Literal>,
    /// How far the trail has been propagated.
    propagated: usize,
    writer: StepWriter,
    refuted: bool,
}

impl Elaborator {
    fn new(cnf: &Cnf) -> Elaborator {
        let mut elaborator = Elaborator {
            clauses: vec![Vec::new()],
            by_literals: BTreeMap::new(),
            watches: Vec::new(),
            holds: Vec::new(),
            reasons: Vec::new(),
            marked: Vec::new(),
            trail: Vec::new(),
            propagated: 0,
            writer: StepWriter::new(),
            refuted: false,
        };
        elaborator.make_room(cnf.variables());
        // All clauses get their identifiers before anything is derived from them.
        let first = elaborator.clauses.len();
        for clause in cnf.clauses() {
            let mut clause = clause.to_vec();
            clause.sort_unstable();
            clause.dedup();
            elaborator.insert(clause);
        }
        for id in first..elaborator.clauses.len() {
            elaborator.attach(id);
        }
        elaborator.settle();
        elaborator
    }

    fn make_room(&mut self, highest: u32) {
        let variables = highest as usize + 1;
        if self.reasons.len() < variables {
            self.reasons.resize(variables, 0);
            self.marked.resize(variables, false);
            self.holds.resize(2 * variables, false);
            self.watches.resize(2 * variables, Vec::new());
        }
    }

    fn insert(&mut self, clause: Vec<Literal>) -> usize {
        let id = self.clauses.len();
        self.by_literals.entry(clause.clone()).or_default().push(id);
        self.clauses.push(clause);
        id
    }

    fn is_false(&self, literal: Literal) -> bool {
        self.holds[(!literal).code()]
    }

    fn assign(&mut self, literal: Literal, reason: usize) {
        self.holds[literal.code()] = true;
        self.reasons[literal.variable() as usize] = reason;
        self.trail.push(literal);
    }

    /// Watches two literals that are not false, or uses up a clause that has fewer.
    fn attach(&mut self, id: usize) {
        if self.refuted {
            return;
        }
        let mut clause = core::mem::take(&mut self.clauses[id]);
        clause.sort_by_key(|literal| self.is_false(*literal));
        let open = clause.iter().take(2).filter(|literal| !self.is_false(**literal)).count();
        for literal in clause.iter().take(2) {
            self.watches[literal.code()].push(id);
        }
        let unit = (open == 1 && !self.holds[clause[0].code()]).then(|| clause[0]);
        self.clauses[id] = clause;
        if open == 0 {
            self.conclude(id);
        } else if let Some(unit) = unit {
            self.assign(unit, id);
        }
    }

    /// Propagates what the clauses alone force.
    fn settle(&mut self) {
        if !self.refuted
            && let Some(conflict) = self.propagate()
        {
            self.conclude(conflict);
        }
    }

    /// The clause is false under what the others force: the empty clause follows.
    fn conclude(&mut self, conflict: usize) {
        let hints = self.explain(conflict);
        let id = self.clauses.len();
        // A formula that holds the empty clause needs no step.
        if !self.clauses[conflict].is_empty() {
            self.writer.add(id as u64, &[], hints);
        }
        self.refuted = true;
    }

    /// Propagates the trail; returns a clause whose literals are all false, if one appears.
    fn propagate(&mut self) -> Option<usize> {
        while self.propagated < self.trail.len() {
            let falsified = !self.trail[self.propagated];
            self.propagated += 1;
            let mut watching = core::mem::take(&mut self.watches[falsified.code()]);
            let mut kept = 0;
            let mut conflict = None;
            for position in 0..watching.len() {
                let id = watching[position];
                if conflict.is_none() && self.find_watch(id, falsified) {
                    continue;
                }
                watching[kept] = id;
                kept += 1;
                if conflict.is_none() {
                    // The other watched literal is all that is left of the clause.
                    match self.clauses[id].first().copied() {
                        Some(unit) if self.holds[unit.code()] => {}
                        Some(unit) if !self.is_false(unit) => self.assign(unit, id),
                        _ => conflict = Some(id),
                    }
                }
            }
            watching.truncate(kept);
            self.watches[falsified.code()] = watching;
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Moves a watch away from a literal that became false; true if it no longer belongs to that literal's list.
    fn find_watch(&mut self, id: usize, falsified: Literal) -> bool {
        let clause = &mut self.clauses[id];
        match clause.len() {
            // Deleted: the list forgets it.
            0 => return true,
            1 => return false,
            _ => {}
        }
        if clause[0] == falsified {
            clause.swap(0, 1);
        }
        if self.holds[clause[0].code()] {
            return false;
        }
        let Some(position) = (2..clause.len()).find(|place| !self.holds[(!clause[*place]).code()]) else {
            return false;
        };
        clause.swap(1, position);
        let watched = clause[1];
        self.watches[watched.code()].push(id);
        true
    }

    /// The clauses that the contradiction in `conflict` rests on, in the order of propagation.
    fn explain(&mut self, conflict: usize) -> Vec<u64> {
        let mut hints = vec![conflict as u64];
        for literal in &self.clauses[conflict] {
            self.marked[literal.variable() as usize] = true;
        }
        for position in (0..self.trail.len()).rev() {
            let variable = self.trail[position].variable() as usize;
            if !core::mem::take(&mut self.marked[variable]) || self.reasons[variable] == 0 {
                continue;
            }
            hints.push(self.reasons[variable] as u64);
            for literal in &self.clauses[self.reasons[variable]] {
                self.marked[literal.variable() as usize] |= literal.variable() as usize != variable;
            }
        }
        hints.reverse();
        hints
    }

    /// Supposes that all literals are false and propagates; returns the hints if that is contradictory.
    fn refute_negation(&mut self, clause: &[Literal]) -> Option<Vec<u64>> {
        self.make_room(clause.iter().map(|literal| literal.variable()).max().unwrap_or(0));
        let root = self.trail.len();
        let mut hints = None;
        for literal in clause {
            if self.holds[literal.code()] {
                // It is true already: the clause that forced it is the contradiction. A clause with both a
                // variable and its negation needs no hints at all.
                let reason = self.reasons[literal.variable() as usize];
                hints = Some(if reason == 0 { Vec::new() } else { self.explain_forced(*literal) });
                break;
            }
            if !self.is_false(*literal) {
                self.assign(!*literal, 0);
            }
        }
        if hints.is_none() {
            hints = self.propagate().map(|conflict| self.explain(conflict));
        }
        for literal in self.trail.drain(root..) {
            self.holds[literal.code()] = false;
        }
        self.propagated = root;
        hints
    }

    /// Why a literal holds, with the clause that forced it as the last hint.
    fn explain_forced(&mut self, literal: Literal) -> Vec<u64> {
        let reason = self.reasons[literal.variable() as usize];
        let hints = self.explain(reason);
        // The clause appears once as the reason and once as the contradiction; only the latter is meant.
        let last = hints.len() - 1;
        hints
            .into_iter()
            .enumerate()
            .filter(|(at, id)| *at == last || *id != reason as u64)
            .map(|(_, id)| id)
            .collect()
    }

    fn learn(&mut self, clause: &[Literal], hints: &[u64]) {
        let id = self.insert(clause.to_vec());
        self.writer.add(id as u64, clause, hints.iter().copied());
        if clause.is_empty() {
            self.refuted = true;
            return;
        }
        self.attach(id);
        self.settle();
    }

    fn delete(&mut self, clause: &[Literal]) {
        let Some(ids) = self.by_literals.get_mut(clause) else { return };
        let forces = |id: &usize| {
            self.clauses[*id]
                .iter()
                .any(|literal| self.holds[literal.code()] && self.reasons[literal.variable() as usize] == *id)
        };
        let Some(position) = ids.iter().position(|id| !forces(id)) else { return };
        let id = ids.remove(position);
        self.clauses[id].clear();
        self.writer.delete([id as u64]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square() -> Cnf {
        Cnf::from_dimacs(b"p cnf 2 4\n1 2 0\n1 -2 0\n-1 2 0\n-1 -2 0\n").unwrap()
    }

    fn verdict(proof: &str) -> String {
        match check(&square(), proof.as_bytes()) {
            Ok(_) => "accepted".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn hints_are_found_for_text_and_binary_proofs() {
        assert_eq!(verdict("1 0\n0\n"), "accepted");
        assert_eq!(verdict("c comment\n1 0\nd 1 2 0\nd 1 -2 0\n0\n"), "accepted");
        assert!(check(&square(), b"a\x02\0d\x02\x04\0a\0").is_ok());
    }

    #[test]
    fn a_step_that_does_not_follow_is_rejected_with_its_place() {
        assert_eq!(verdict(""), "line 1: the proof never reaches the empty clause");
        assert_eq!(verdict("0\n"), "line 1: the hints end without a contradiction");
        assert_eq!(verdict("d 1 2 0\n1 0\n"), "line 2: the hints end without a contradiction");
        assert_eq!(verdict("1 x 0\n"), "line 1: \"x\" is not a number");
        assert_eq!(verdict("1\n"), "line 1: the step does not end with 0");
        assert_eq!(verdict("1 0 2\n"), "line 1: numbers after the end of the step");
        assert_eq!(verdict("99999999 0\n"), "line 1: literal 99999999 is out of range");
    }

    #[test]
    fn formulas_that_propagation_refutes_need_no_steps() {
        let cnf = Cnf::from_dimacs(b"p cnf 3 4\n1 0\n-1 2 0\n-2 3 0\n-3 -1 0\n").unwrap();
        assert!(check(&cnf, b"").is_ok());
        let cnf = Cnf::from_dimacs(b"p cnf 1 2\n1 -1 0\n0\n").unwrap();
        assert!(check(&cnf, b"").is_ok());
    }

    #[test]
    fn clauses_that_hold_already_are_explained() {
        // 1 and 2 are forced; learning `2 3` and `1` is allowed although they hold.
        let cnf =
            Cnf::from_dimacs(b"p cnf 4 6\n1 0\n-1 2 0\n-2 3 4 0\n-2 3 -4 0\n-3 4 0\n-3 -4 0\n").unwrap();
        assert!(check(&cnf, b"2 3 0\n1 0\n4 -4 0\n3 0\n0\n").is_ok());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_elaborator_panic(bytes in proptest::collection::vec(0u8.., 0..60), first in 0usize..3) {
            let mut bytes = bytes;
            bytes.insert(0, [b'a', b'd', b'1'][first]);
            let _ = check(&square(), &bytes);
        }

        #[test]
        fn random_steps_on_a_satisfiable_formula_never_refute_it(text in "((d )?[-123 ]{0,8}0\n){0,12}") {
            let cnf = Cnf::from_dimacs(b"p cnf 3 5\n1 2 0\n1 -2 3 0\n-1 2 0\n-3 1 0\n-3 2 0\n").unwrap();
            proptest::prop_assert!(check(&cnf, text.as_bytes()).is_err());
        }
    }
}
