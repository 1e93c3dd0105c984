//! Records what the solver claims to derive, and turns the part that matters into a compact proof.
//!
//! The solver numbers its clauses in its own way, deletes and restores them, and learns far more than a refutation
//! needs. Nothing is trusted here: a clause that the solver calls original must be the very clause of our formula
//! that was just added, or it stays unknown and no proof can use it. Clauses: SCC-4.

use bem_checker::Literal;
use bem_checker::lrat_reader::StepWriter;
use cadical_sys::ProofTracer;

/// What a number of the solver stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// Nothing that we know of.
    Unknown,
    /// The clause of the formula at this position.
    Original(u32),
    /// A derived clause; its record starts here.
    Derived(usize),
}

/// All clauses that the solver reported so far.
#[derive(Debug, Default)]
pub(crate) struct ProofLog {
    entries: Vec<Entry>,
    /// Records: the number of literals, the literals (DIMACS), the number of hints, the hints (solver numbers).
    words: Vec<u32>,
    /// The clause that is being added to the solver, and its position in the formula.
    expected: Vec<i32>,
    expected_position: u32,
    /// The solver's number of the clause that its last refutation ended with.
    conclusion: Option<i64>,
}

impl ProofLog {
    /// Announces the formula's clause that the solver is about to receive.
    pub(crate) fn expect(&mut self, position: usize, clause: &[Literal]) {
        self.expected.clear();
        self.expected.extend(clause.iter().map(|literal| literal.to_dimacs()));
        self.expected_position = position as u32;
    }

    /// Forgets the last conclusion, before the next question.
    pub(crate) fn begin(&mut self) {
        self.conclusion = None;
    }

    /// The proof of the last conclusion in binary LRAT over a formula with this many clauses, without the steps
    /// that it does not need. None if it rests on a clause that is not ours.
    pub(crate) fn proof(&self, clause_count: usize) -> Option<Vec<u8>> {
        let conclusion = usize::try_from(self.conclusion?).ok()?;
        let needed = self.needed(conclusion)?;
        let mut renumbered = vec![0u32; conclusion + 1];
        let mut next = clause_count as u32;
        let mut writer = StepWriter::new();
        let mut clause = Vec::new();
        for id in 1..=conclusion {
            if !needed[id] {
                continue;
            }
            match self.entries[id] {
                Entry::Unknown => return None,
                Entry::Original(position) => renumbered[id] = position + 1,
                Entry::Derived(place) => {
                    next += 1;
                    renumbered[id] = next;
                    let (literals, hints) = self.record(place);
                    clause.clear();
                    for literal in literals {
                        clause.push(Literal::from_dimacs(i64::from(*literal as i32))?);
                    }
                    writer.add(
                        u64::from(next),
                        &clause,
                        hints.iter().map(|hint| u64::from(renumbered[*hint as usize])),
                    );
                }
            }
        }
        Some(writer.into_bytes())
    }

    /// By number: whether the conclusion rests on this clause. Hints point to smaller numbers, so one pass from
    /// the end is enough.
    fn needed(&self, conclusion: usize) -> Option<Vec<bool>> {
        let mut needed = vec![false; conclusion + 1];
        needed[conclusion] = true;
        for id in (1..=conclusion).rev() {
            if let (true, Entry::Derived(place)) = (needed[id], *self.entries.get(id)?) {
                for hint in self.record(place).1 {
                    if id <= *hint as usize {
                        return None;
                    }
                    needed[*hint as usize] = true;
                }
            }
        }
        Some(needed)
    }

    fn record(&self, place: usize) -> (&[u32], &[u32]) {
        let literal_count = self.words[place] as usize;
        let (literals, rest) = self.words[place + 1..].split_at(literal_count);
        (literals, &rest[1..1 + rest[0] as usize])
    }

    fn set(&mut self, id: i64, entry: Entry) {
        let Ok(id) = u32::try_from(id) else { return };
        let id = id as usize;
        if self.entries.len() <= id {
            self.entries.resize(id + 1, Entry::Unknown);
        }
        self.entries[id] = entry;
    }

    fn derive(&mut self, id: i64, clause: &[i32], antecedents: &[i64]) {
        let place = self.words.len();
        self.words.push(clause.len() as u32);
        self.words.extend(clause.iter().map(|literal| *literal as u32));
        self.words.push(antecedents.len() as u32);
        // A number that does not fit becomes 0, which is no clause, and the proof will be refused.
        self.words.extend(antecedents.iter().map(|hint| u32::try_from(*hint).unwrap_or(0)));
        self.set(id, Entry::Derived(place));
    }
}

impl ProofTracer for ProofLog {
    fn add_original_clause(&mut self, id: i64, _redundant: bool, clause: &[i32], restored: bool) {
        // A restored clause comes back under its old number, whose record we still have.
        if !restored {
            let ours = clause == self.expected;
            self.set(id, if ours { Entry::Original(self.expected_position) } else { Entry::Unknown });
        }
    }

    fn add_derived_clause(&mut self, id: i64, _: bool, witness: i32, clause: &[i32], antecedents: &[i64]) {
        // A witness marks a RAT clause, which is no consequence: it stays unknown.
        if witness == 0 {
            self.derive(id, clause, antecedents);
        } else {
            self.set(id, Entry::Unknown);
        }
    }

    fn add_assumption_clause(&mut self, id: i64, clause: &[i32], antecedents: &[i64]) {
        self.derive(id, clause, antecedents);
    }

    fn conclude_unsat(&mut self, _conclusion_type: i32, clause_ids: &[i64]) {
        self.conclusion = clause_ids.first().copied();
    }

    // Deleted clauses keep their records: trimming the proof makes deletions superfluous.
    fn delete_clause(&mut self, _id: i64, _redundant: bool, _clause: &[i32]) {}
    fn weaken_minus(&mut self, _id: i64, _clause: &[i32]) {}
    fn strengthen(&mut self, _id: i64) {}
    fn finalize_clause(&mut self, _id: i64, _clause: &[i32]) {}
    fn add_assumption(&mut self, _literal: i32) {}
    fn add_constraint(&mut self, _clause: &[i32]) {}
    fn reset_assumptions(&mut self) {}
    fn conclude_sat(&mut self, _conclusion_type: i32, _model: &[i32]) {}
    fn conclude_unknown(&mut self, _trail: &[i32]) {}
}
