//! Finds by unit propagation why a step follows, and writes that down as hints.
//!
//! Not trusted: a wrong hint is rejected by [`crate::lrat`]. Clause: SCC-4.

use crate::cnf::{Cnf, Literal};
use crate::lrat_reader::StepWriter;
use std::collections::BTreeMap;

/// Unit propagation with two watched literals a clause; what follows from the clauses alone stays assigned.
pub(super) struct Elaborator {
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
    pub(super) writer: StepWriter,
    /// The empty clause is derived.
    pub(super) refuted: bool,
}

impl Elaborator {
    pub(super) fn new(cnf: &Cnf) -> Elaborator {
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
    pub(super) fn refute_negation(&mut self, clause: &[Literal]) -> Option<Vec<u64>> {
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

    pub(super) fn learn(&mut self, clause: &[Literal], hints: &[u64]) {
        let id = self.insert(clause.to_vec());
        self.writer.add(id as u64, clause, hints.iter().copied());
        if clause.is_empty() {
            self.refuted = true;
            return;
        }
        self.attach(id);
        self.settle();
    }

    pub(super) fn delete(&mut self, clause: &[Literal]) {
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
