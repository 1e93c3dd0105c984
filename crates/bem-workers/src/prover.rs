//! TOOL_PROVER: is a formula unsatisfiable? And what of an answer is believed.
//!
//! The worker solves within a budget of conflicts. Whoever asked believes an answer only if it carries its evidence: a proof
//! that the checker accepts for the formula that was asked, or a model that satisfies it ([`accept`]). Must not know who asks.
//! Clauses: TOOL-8, SCC-5; decision D-21.

use bem_checker::lrat;
use bem_prover::outside::Said;
use bem_prover::{Budget, Cnf, Literal, Outcome, solve};
use bem_tools::cbor::Item;
use bem_tools::error::ErrorCode;
use bem_tools::limits::PAYLOAD_MAX;
use bem_tools::operation::{Role, by_code};
use bem_tools::payload::Fields;
use bem_tools::worker::{Failure, Job, Tool};

/// Variables of a formula.
const VARIABLES_MAX: u32 = 1 << 16;
/// Conflicts at most.
pub(crate) const CONFLICTS_MAX: i64 = 1_000_000;

/// The tool.
pub struct Prover;

/// Reads a formula in DIMACS.
fn formula(text: &str) -> Result<Cnf, Failure> {
    let bad = |words: &str| Failure::new(ErrorCode::BAD_PAYLOAD, format!("dimacs: {words}"));
    let (mut cnf, mut clause, mut variables) = (None, Vec::new(), 0);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('c')) {
        if let Some(head) = line.strip_prefix("p cnf") {
            variables = head.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(u32::MAX);
            if cnf.is_some() || VARIABLES_MAX < variables {
                return Err(bad("one head, p cnf VARIABLES CLAUSES, with at most 65536 variables"));
            }
            cnf = Some(Cnf::new(variables));
            continue;
        }
        let cnf = cnf.as_mut().ok_or_else(|| bad("clauses before the head p cnf VARIABLES CLAUSES"))?;
        for word in line.split_whitespace() {
            let number: i64 = word.parse().map_err(|_| bad("a literal that is no number"))?;
            match Literal::from_dimacs(number) {
                None if number == 0 => {
                    cnf.add(&clause);
                    clause.clear();
                }
                Some(literal) if literal.variable() <= variables => clause.push(literal),
                _ => return Err(bad("a literal beyond the variables of the head")),
            }
        }
    }
    match cnf {
        Some(cnf) if clause.is_empty() => Ok(cnf),
        _ => Err(bad("a clause without its 0, or no head")),
    }
}

fn asked(payload: &[u8]) -> Result<(Cnf, i64), Failure> {
    let operation = by_code(Role::Prover, 0).ok_or(ErrorCode::UNKNOWN_OPERATION)?;
    let fields = Fields::read(operation, payload)?;
    let text = fields.text(0)?.ok_or_else(|| Failure::new(ErrorCode::BAD_PAYLOAD, "dimacs is missing"))?;
    Ok((formula(text)?, fields.int(1, 1..=CONFLICTS_MAX, 100_000)?))
}

impl Tool for Prover {
    fn run(&mut self, job: &Job) -> Result<Vec<u8>, Failure> {
        if job.operation != 0 {
            return Err(ErrorCode::UNKNOWN_OPERATION.into());
        }
        let (cnf, conflicts) = asked(&job.payload)?;
        let word = |word: &str| (0, Item::Text(word.to_string()));
        let answer = match solve(&cnf, &[], Budget::conflicts(conflicts as u32)) {
            Outcome::Satisfiable { model } => {
                let model = model.iter().map(|value| Item::Bool(*value)).collect();
                vec![word("satisfiable"), (2, Item::List(model))]
            }
            Outcome::Unsatisfiable { certificate, .. } => {
                vec![word("unsatisfiable"), (1, Item::Bytes(certificate.proof))]
            }
            Outcome::Undecided(_) => vec![word("undecided")],
        };
        Ok(Item::fields(answer).to_bytes())
    }
}

/// The payload of a question about a formula; nothing if it is too long for the bus.
pub fn question(cnf: &Cnf, budget: Budget) -> Option<Vec<u8>> {
    if VARIABLES_MAX < cnf.variables() {
        return None;
    }
    let conflicts = i64::from(budget.conflicts).clamp(1, CONFLICTS_MAX);
    let payload = Item::fields([(0, Item::Text(cnf.to_dimacs())), (1, Item::Int(conflicts))]).to_bytes();
    (payload.len() <= PAYLOAD_MAX).then_some(payload)
}

/// What an answer says; none of it is believed yet.
pub fn said(response: &[u8]) -> Option<Said> {
    let answer = Item::from_bytes(response).ok()?;
    match answer.field(0).and_then(Item::text)? {
        "unsatisfiable" => Some(Said::Unsatisfiable(answer.field(1).and_then(Item::bytes)?.to_vec())),
        "satisfiable" => {
            let model = answer.field(2).and_then(Item::list)?.iter().map(|item| *item == Item::Bool(true));
            Some(Said::Satisfiable(model.collect()))
        }
        _ => None,
    }
}

/// Whether an answer carries the evidence for what it says.
pub fn accept(payload: &[u8], response: &[u8]) -> Result<(), ErrorCode> {
    let Ok((cnf, _)) = asked(payload) else { return Err(ErrorCode::BAD_PAYLOAD) };
    match said(response) {
        Some(Said::Unsatisfiable(proof)) => {
            lrat::check(&cnf, &proof).map(drop).map_err(|_| ErrorCode::REFUSED_PROOF)
        }
        Some(Said::Satisfiable(model)) => {
            match model.len() == cnf.variables() as usize && cnf.first_violated(&model).is_none() {
                true => Ok(()),
                false => Err(ErrorCode::REFUSED_PROOF),
            }
        }
        None => {
            let answer = Item::from_bytes(response).map_err(|_| ErrorCode::BAD_RESPONSE)?;
            match answer.field(0).and_then(Item::text) {
                Some("undecided") => Ok(()),
                Some("unsatisfiable" | "satisfiable") => Err(ErrorCode::REFUSED_PROOF),
                _ => Err(ErrorCode::BAD_RESPONSE),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(text: &str) -> Vec<u8> {
        Item::fields([(0, Item::Text(text.to_string()))]).to_bytes()
    }

    #[test]
    fn only_answers_with_their_evidence_count() {
        let unsat = payload("p cnf 2 4\n1 2 0\n1 -2 0\n-1 2 0\n-1 -2 0\n");
        let sat = payload("p cnf 2 2\n1 2 0\n-1 2 0\n");
        let says = |word: &str, more: Vec<(u64, Item)>| {
            Item::fields(core::iter::once((0, Item::Text(word.to_string()))).chain(more)).to_bytes()
        };
        let (cnf, _) = asked(&unsat).unwrap();
        let Outcome::Unsatisfiable { certificate, .. } = solve(&cnf, &[], Budget::conflicts(100)) else {
            panic!("it is unsatisfiable")
        };
        let proof = vec![(1, Item::Bytes(certificate.proof))];
        assert_eq!(accept(&unsat, &says("unsatisfiable", proof.clone())), Ok(()));
        // A lying prover: a proof of something else, none, or a model that is none.
        assert_eq!(accept(&sat, &says("unsatisfiable", proof)), Err(ErrorCode::REFUSED_PROOF));
        assert_eq!(accept(&unsat, &says("unsatisfiable", vec![])), Err(ErrorCode::REFUSED_PROOF));
        let model = |values: [bool; 2]| vec![(2, Item::List(values.map(Item::Bool).to_vec()))];
        assert_eq!(accept(&sat, &says("satisfiable", model([false, true]))), Ok(()));
        assert_eq!(accept(&sat, &says("satisfiable", model([true, false]))), Err(ErrorCode::REFUSED_PROOF));
        assert_eq!(accept(&sat, &says("perhaps", vec![])), Err(ErrorCode::BAD_RESPONSE));
        assert_eq!(accept(&sat, b"x"), Err(ErrorCode::BAD_RESPONSE));
    }
}
