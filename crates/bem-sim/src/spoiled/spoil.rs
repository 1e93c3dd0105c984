//! Ways to spoil a patch of an honest history. What comes out is wrong by construction, or by a reading that shares no code
//! with the conditions, the audit and the checker. Clauses: SCC-3, SCC-4.

use super::SpoiledPart;
use super::plain::{self, Step};
use super::specimens::Specimen;
use crate::removal::History;
use bem_base::digest::{Digest, hash};
use bem_base::encode::{Reader, Writer};
use bem_base::environment::{Bits, Pattern, Shape};
use bem_base::prng::Prng;
use bem_checker::certificate::Certificate as Proof;
use bem_checker::cnf::{Cnf, Literal};
use bem_checker::lrat_reader::{StepKind, StepReader, StepWriter};
use bem_engine::payload::Payload;
use bem_evolve::patch::{Change, Example, Patch};
use bem_ledger::entry::{Certificate, Entry, PatchEvent, Table, TableEdit, Verdict};
use bem_ledger::log::blob_name;
use bem_machine::guard::Rule;
use bem_prover::Budget;
use bem_prover::solver::{Outcome, solve};
use bem_synth::policy::{Policy, action_bits};
use bem_synth::statement::{Statement, World};

/// Rows on which a changed statement may show that it says something else.
const ROWS: usize = 256;
/// Formulas above this size are left alone: a forger solves the changed ones again.
const CLAUSES_MAX: usize = 4_000;
/// Conflicts that a forger spends on a formula.
const FORGERY: Budget = Budget::conflicts(300);

/// A forged history, and the patch in it where a verifier must turn it down as well.
pub(super) struct Spoiled {
    pub(super) history: History,
    pub(super) patch: Option<Patch>,
    /// The changed proof, with its formula.
    pub(super) proof: Option<(Cnf, Vec<Step>)>,
}

impl Specimen {
    /// The history with the patch spoiled; none if this one cannot be spoiled so, or would still be right.
    pub(super) fn spoil(&self, kind: SpoiledPart, prng: &mut Prng) -> Option<Spoiled> {
        match kind {
            SpoiledPart::Statement => self.spoil_statement(prng),
            SpoiledPart::Rows => self.spoil_rows(prng),
            SpoiledPart::Guard => self.spoil_guard(prng),
            SpoiledPart::Cnf => self.spoil_cnf(prng),
            SpoiledPart::Certificate => self.spoil_certificate(prng),
            SpoiledPart::Leaf => self.spoil_leaf(prng),
        }
    }

    /// The history with another last entry, and with these blobs.
    fn forge(&self, blobs: &[&[u8]], change: impl FnOnce(&mut PatchEvent)) -> Spoiled {
        let mut history = self.history.clone();
        history.blobs.files.extend(blobs.iter().map(|blob| (blob_name(&hash(blob)), blob.to_vec())));
        let mut event = self.event.clone();
        change(&mut event);
        *history.entries.last_mut().expect("it ends with the patch") = Entry::Patch(Box::new(event));
        Spoiled { history, patch: None, proof: None }
    }

    /// The history with another change in the patch.
    fn with_change(&self, change: Change, is_wrong_in_itself: bool) -> Spoiled {
        let (patch, shape) = self.patch();
        let patch = Patch { change, ..patch.clone() };
        let payload = Payload { accepted: Some((patch.clone(), shape.clone())), ..self.payload.clone() };
        let payload = payload.to_bytes();
        let spoiled = self.forge(&[&payload], |event| event.payload = hash(&payload));
        Spoiled { patch: is_wrong_in_itself.then_some(patch), ..spoiled }
    }

    fn spoil_statement(&self, prng: &mut Prng) -> Option<Spoiled> {
        let (patch, shape) = self.patch();
        let Change::Synthesize { policy, statement, examples, exceptions } = &patch.change else {
            return None;
        };
        let mut writer = Writer::new();
        statement.encode(&mut writer);
        let mut bytes = writer.into_bytes();
        for _ in 0..1 + prng.below(2) {
            let place = prng.below(bytes.len() as u64) as usize;
            bytes[place] = if prng.bit() { bytes[place] ^ 1 << prng.below(8) } else { prng.below(16) as u8 };
        }
        let mut reader = Reader::new(&bytes);
        let other = Statement::decode(&mut reader).ok()?;
        reader.finish().ok()?;
        (other != *statement && says_otherwise(&other, policy, shape, prng)).then_some(())?;
        let (policy, examples, exceptions) = (policy.clone(), examples.clone(), *exceptions);
        Some(self.with_change(Change::Synthesize { policy, statement: other, examples, exceptions }, true))
    }

    fn spoil_rows(&self, prng: &mut Prng) -> Option<Spoiled> {
        let (patch, shape) = self.patch();
        let mut change = patch.change.clone();
        let Change::Synthesize { policy, examples, exceptions, .. } = &mut change else { return None };
        let rows: Vec<(usize, usize)> = examples
            .iter()
            .enumerate()
            .flat_map(|(place, example)| (0..example.steps.len()).map(move |step| (place, step)))
            .collect();
        let mut pick = || rows.get(prng.below(rows.len().max(1) as u64) as usize).copied();
        match pick().map(|row| (row, prng.below(5))) {
            Some(((example, step), 0..=1)) => {
                let wanted = examples[example].steps[step].wanted.as_mut()?;
                *wanted = (*wanted + 1 + prng.below(u64::from(shape.actions) - 1) as u16) % shape.actions;
            }
            Some(((example, step), 2)) => {
                let bit = prng.below(u64::from(shape.observation_bits.max(1))) as usize;
                let observation = &mut examples[example].steps[step].observation;
                observation.set(bit, !observation.get(bit));
            }
            Some(((example, step), 3)) => {
                let beyond = shape.actions + prng.below(u64::from(u16::MAX - shape.actions)) as u16;
                examples[example].steps[step].wanted = Some(beyond);
            }
            _ => *exceptions = exceptions.wrapping_add(1 + prng.below(5_000) as u32),
        }
        let is_none = |action: u16| shape.actions <= action;
        let beyond =
            examples.iter().flat_map(|example| &example.steps).any(|step| step.wanted.is_some_and(is_none));
        (beyond || recount(policy, examples) != *exceptions).then(|| self.with_change(change, true))
    }

    fn spoil_guard(&self, prng: &mut Prng) -> Option<Spoiled> {
        let (patch, shape) = self.patch();
        let Change::Guard { rules } = &patch.change else { return None };
        let mut others = rules.clone();
        let place = prng.below(rules.len().max(1) as u64) as usize;
        let beyond = shape.actions + prng.below(1_000) as u16;
        let is_wrong_in_itself = match (others.get_mut(place)?, prng.below(8)) {
            (rule, 0) => {
                rule.instead = rule.forbidden;
                true
            }
            (rule, 1) => {
                rule.forbidden = beyond;
                true
            }
            (rule, 2) => {
                rule.instead = beyond;
                true
            }
            (rule, 3) if shape.observation_bits < 256 => {
                let unseen = 256 - u64::from(shape.observation_bits);
                let bit = usize::from(shape.observation_bits) + prng.below(unseen) as usize;
                rule.seen = rule.seen.with(bit, true);
                true
            }
            // Two rules that lead in a circle.
            (rule, 4) => {
                let back = Rule { forbidden: rule.instead, instead: rule.forbidden, ..*rule };
                others.retain(|rule| (rule.seen, rule.forbidden) != (back.seen, back.forbidden));
                others.push(back);
                others.sort_by_key(|rule| (rule.seen, rule.forbidden));
                true
            }
            // Rules that may be, but are not those of which the certificate and the tables speak.
            (_, 5) => {
                others.remove(place);
                false
            }
            // One about other observations: a bit is turned, asked for besides, or left free.
            (rule, draw) => {
                let width = usize::from(shape.observation_bits);
                let bit = prng.below(width.max(1) as u64) as usize;
                rule.seen = match rule.seen.bit(bit) {
                    Some(value) if draw == 6 => rule.seen.with(bit, !value),
                    None => rule.seen.with(bit, true).within(width),
                    Some(_) => {
                        let mut letters: Vec<char> = rule.seen.to_text(width).chars().collect();
                        *letters.get_mut(bit)? = '-';
                        Pattern::from_text(&letters.into_iter().collect::<String>())?
                    }
                };
                others.sort_unstable();
                false
            }
        };
        (others != *rules).then(|| self.with_change(Change::Guard { rules: others }, is_wrong_in_itself))
    }

    fn spoil_cnf(&self, prng: &mut Prng) -> Option<Spoiled> {
        let number = prng.below(self.proofs.len().max(1) as u64) as usize;
        let (cnf, proof) = self.proofs.get(number).filter(|(cnf, _)| cnf.clause_count() <= CLAUSES_MAX)?;
        let other = changed_formula(cnf, prng);
        (other.to_dimacs() != cnf.to_dimacs()).then_some(())?;
        let unproven = Proof { formula: other.digest(), ..proof.clone() };
        let proof = match solve(&other, &[], FORGERY) {
            Outcome::Unsatisfiable { certificate, .. } => certificate,
            _ => unproven,
        };
        let (formula, proof) = (other.to_dimacs().into_bytes(), proof_bytes(&proof));
        let forged = Certificate { verdict: Verdict::Holds, cnf: hash(&formula), proof: hash(&proof) };
        Some(self.forge(&[&formula, &proof], |event| event.certificates[number] = forged))
    }

    fn spoil_certificate(&self, prng: &mut Prng) -> Option<Spoiled> {
        let number = prng.below(self.proofs.len().max(1) as u64) as usize;
        let (cnf, honest) = self.proofs.get(number).filter(|(cnf, _)| cnf.clause_count() <= CLAUSES_MAX)?;
        let mut forged = honest.clone();
        match prng.below(12) {
            0 => forged.formula = hash(forged.formula.as_bytes()),
            1 => {
                let variable = 1 + prng.below(u64::from(cnf.variables().max(1))) as i64;
                forged.assumptions.push(Literal::from_dimacs(if prng.bit() { variable } else { -variable })?);
            }
            2 => {
                let place = prng.below(forged.proof.len().max(1) as u64) as usize;
                forged.proof.truncate(place);
            }
            _ => {
                let mut steps = steps_of(&honest.proof)?;
                (0..1 + prng.below(2)).try_for_each(|_| change_step(&mut steps, cnf, prng))?;
                forged.proof = bytes_of(&steps)?;
            }
        }
        (forged != *honest).then_some(())?;
        // A proof that is cut off may have been complete before; what a plain reading accepts is no forgery.
        let mut read = None;
        if forged.formula == honest.formula && forged.assumptions.is_empty() {
            read = steps_of(&forged.proof).map(|steps| (cnf.clone(), steps));
            (!read.as_ref().is_some_and(|(cnf, steps)| plain::accepts(cnf, steps, None))).then_some(())?;
        }
        let bytes = proof_bytes(&forged);
        let spoiled = self.forge(&[&bytes], |event| event.certificates[number].proof = hash(&bytes));
        Some(Spoiled { proof: read, ..spoiled })
    }

    fn spoil_leaf(&self, prng: &mut Prng) -> Option<Spoiled> {
        let mut edits = self.event.edits.clone();
        let place = prng.below(edits.len().max(1) as u64) as usize;
        let malformed = {
            let mut bytes = [0; 32];
            bytes.iter_mut().for_each(|byte| *byte = prng.below(256) as u8);
            Digest::from_bytes(bytes)
        };
        match prng.below(7) {
            0 => edits.get_mut(place)?.leaf = malformed,
            1 => {
                let edit = edits.get_mut(place)?;
                let mut bytes = *edit.leaf.as_bytes();
                bytes[prng.below(32) as usize] ^= 1 << prng.below(8);
                edit.leaf = Digest::from_bytes(bytes);
            }
            2 => edits.get_mut(place)?.slot ^= 1 << prng.below(10),
            3 => {
                let edit = edits.get_mut(place)?;
                edit.table = if prng.bit() { Table::Teach } else { Table::Work };
            }
            4 => drop((!edits.is_empty()).then(|| edits.remove(place))),
            5 => edits.push(TableEdit { table: Table::Expert, slot: prng.below(18) as u32, leaf: malformed }),
            _ => edits.get_mut(place)?.leaf = Digest::default(),
        }
        // Edits that are out of order cannot even be written.
        edits.sort_by_key(|edit| (edit.table, edit.slot));
        edits.dedup_by_key(|edit| (edit.table, edit.slot));
        (edits != self.event.edits).then(|| self.forge(&[], |event| event.edits = edits))
    }
}

/// Whether the plain reading of the statement differs from what the circuit does in some row.
fn says_otherwise(statement: &Statement, policy: &Policy, shape: &Shape, prng: &mut Prng) -> bool {
    let world = World { observation_bits: usize::from(shape.observation_bits), actions: shape.actions };
    if statement.memory_bits(&world) != policy.memory_bits() {
        return true;
    }
    (0..ROWS).any(|_| {
        let seen: Vec<bool> = (0..world.observation_bits).map(|_| prng.bit()).collect();
        let kept: Vec<bool> = (0..policy.memory_bits()).map(|_| prng.bit()).collect();
        let inputs: Vec<bool> =
            policy.reads().iter().map(|bit| seen[usize::from(*bit)]).chain(kept.iter().copied()).collect();
        let said = statement.step(&world, &seen, &kept).map(|(code, next)| [code, next].concat());
        said != Some(policy.circuit().evaluate(&inputs))
    })
}

/// In how many rows the circuit does something else than is wanted, by evaluating it gate by gate.
fn recount(policy: &Policy, examples: &[Example]) -> u32 {
    let code_bits = action_bits(policy.actions());
    let mut exceptions = 0;
    for example in examples {
        let mut memory = vec![false; policy.memory_bits()];
        for step in &example.steps {
            let seen = policy.reads().iter().map(|bit| Bits::get(&step.observation, usize::from(*bit)));
            let inputs: Vec<bool> = seen.chain(memory.iter().copied()).collect();
            let outputs = policy.circuit().evaluate(&inputs);
            let code = (0..code_bits).fold(0, |code, bit| code | u16::from(outputs[bit]) << bit);
            memory = outputs[code_bits..].to_vec();
            exceptions += u32::from(step.wanted.is_some_and(|wanted| wanted != code));
        }
    }
    exceptions
}

/// One clause or literal is another one, missing, or new.
fn changed_formula(cnf: &Cnf, prng: &mut Prng) -> Cnf {
    let mut clauses: Vec<Vec<Literal>> = cnf.clauses().map(<[Literal]>::to_vec).collect();
    let place = prng.below(clauses.len().max(1) as u64) as usize;
    let mut literal = || {
        let variable = 1 + prng.below(u64::from(cnf.variables().max(1))) as i64;
        Literal::from_dimacs(if prng.bit() { variable } else { -variable })
    };
    let (one, other) = (literal(), literal());
    match (prng.below(7), clauses.get_mut(place), one, other) {
        (0, Some(clause), ..) if !clause.is_empty() => {
            let literal = prng.below(clause.len() as u64) as usize;
            clause[literal] = !clause[literal];
        }
        (1, Some(clause), Some(literal), _) if !clause.is_empty() => {
            let at = prng.below(clause.len() as u64) as usize;
            clause[at] = literal;
        }
        (2, Some(clause), ..) if !clause.is_empty() => {
            clause.remove(prng.below(clause.len() as u64) as usize);
        }
        (3, Some(_), ..) => drop(clauses.remove(place)),
        (4, _, Some(one), Some(other)) => clauses.push(vec![one, other]),
        // A formula that surely has no model, so that its proof is easy.
        (5, _, Some(one), _) => clauses.extend([vec![one], vec![!one]]),
        (_, _, Some(one), _) => clauses.push(vec![one]),
        _ => {}
    }
    let mut changed = Cnf::new(cnf.variables());
    clauses.iter().for_each(|clause| changed.add(clause));
    changed
}

fn proof_bytes(proof: &Proof) -> Vec<u8> {
    let mut writer = Writer::new();
    proof.encode(&mut writer);
    writer.into_bytes()
}

fn steps_of(proof: &[u8]) -> Option<Vec<Step>> {
    let mut reader = StepReader::new(proof);
    let mut steps = Vec::new();
    while let Some(kind) = reader.next().ok()? {
        steps.push(match kind {
            StepKind::Add { id } => {
                Step::Add { id, clause: reader.clause().to_vec(), hints: reader.numbers().to_vec() }
            }
            StepKind::Delete => Step::Delete(reader.numbers().to_vec()),
        });
    }
    Some(steps)
}

/// The binary form; none where a number cannot be written.
fn bytes_of(steps: &[Step]) -> Option<Vec<u8>> {
    let positive = |numbers: &[i64]| {
        numbers
            .iter()
            .map(|number| u64::try_from(*number).ok().filter(|number| 0 < *number))
            .collect::<Option<Vec<u64>>>()
    };
    let mut writer = StepWriter::new();
    for step in steps {
        match step {
            Step::Add { id, clause, hints } => writer.add(*id, clause, positive(hints)?),
            Step::Delete(ids) => writer.delete(positive(ids)?),
        }
    }
    Some(writer.into_bytes())
}

/// One step is another one, missing, repeated or moved.
fn change_step(steps: &mut Vec<Step>, cnf: &Cnf, prng: &mut Prng) -> Option<()> {
    let count = steps.len() as u64;
    let place = prng.below(count.max(1)) as usize;
    let clauses = cnf.clause_count() as u64 + count;
    match (prng.below(14), steps.get_mut(place)?) {
        (0, Step::Add { clause, .. }) if !clause.is_empty() => {
            let at = prng.below(clause.len() as u64) as usize;
            clause[at] = !clause[at];
        }
        (1, Step::Add { clause, .. }) if !clause.is_empty() => {
            clause.remove(prng.below(clause.len() as u64) as usize);
        }
        (2, Step::Add { clause, .. }) => {
            let variable = 1 + prng.below(u64::from(cnf.variables().max(1))) as i64;
            clause.push(Literal::from_dimacs(if prng.bit() { variable } else { -variable })?);
        }
        (3 | 4, Step::Add { hints, .. } | Step::Delete(hints)) if !hints.is_empty() => {
            hints.remove(prng.below(hints.len() as u64) as usize);
        }
        (5, Step::Add { hints, .. } | Step::Delete(hints)) if !hints.is_empty() => {
            let at = prng.below(hints.len() as u64) as usize;
            hints[at] = 1 + prng.below(2 * clauses) as i64;
        }
        (6, Step::Add { hints, .. }) if 1 < hints.len() => hints.reverse(),
        (7, Step::Add { id, .. }) => *id = 1 + prng.below(2 * clauses),
        (8, _) => drop(steps.remove(place)),
        (9, _) => steps.truncate(place),
        // A hint more: of a clause that says nothing here, or of one that is not there.
        (10 | 11, Step::Add { hints, .. }) => {
            let hint = 1 + prng.below(2 * clauses) as i64;
            hints.insert(prng.below(hints.len() as u64 + 1) as usize, hint);
        }
        // A clause is forgotten before it is used.
        (12, Step::Add { hints, .. }) if !hints.is_empty() => {
            let hint = hints[prng.below(hints.len() as u64) as usize];
            steps.insert(place, Step::Delete(vec![hint]));
        }
        (_, _) => {
            let other = prng.below(count) as usize;
            steps.swap(place, other);
        }
    }
    Some(())
}
