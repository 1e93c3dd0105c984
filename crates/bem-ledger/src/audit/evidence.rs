//! A certificate against the formula that it names: a proof for the checker, or a model to be evaluated.
//!
//! Must not know what a formula stands for; that is the business of [`super::Conditions`]. Clauses: SCC-4; decision D-20.

use crate::entry::Verdict;
use bem_base::encode::Reader;
use bem_checker::cnf::{Cnf, Literal};

/// Checks that the evidence shows what the verdict says of the formula.
pub(super) fn check(verdict: Verdict, cnf: &[u8], evidence: &[u8]) -> Result<(), String> {
    match verdict {
        Verdict::Holds => check_proof(cnf, evidence),
        Verdict::Refuted | Verdict::Consistent | Verdict::Undecided => check_model(cnf, evidence),
    }
}

fn check_proof(cnf: &[u8], proof: &[u8]) -> Result<(), String> {
    let cnf = Cnf::from_dimacs(cnf).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(proof);
    let certificate =
        bem_checker::certificate::Certificate::decode(&mut reader).map_err(|error| error.to_string())?;
    reader.finish().map_err(|error| error.to_string())?;
    if !certificate.assumptions.is_empty() {
        return Err("a proof under assumptions proves less than the condition".to_owned());
    }
    certificate.check(&cnf).map(|_| ()).map_err(|error| error.to_string())
}

fn check_model(cnf: &[u8], model: &[u8]) -> Result<(), String> {
    let cnf = Cnf::from_dimacs(cnf).map_err(|error| error.to_string())?;
    let text = core::str::from_utf8(model).map_err(|_| "the model is not text".to_owned())?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (last, words) = words.split_last().ok_or("an empty model")?;
    if *last != "0" {
        return Err("the model does not end with 0".to_owned());
    }
    let mut values = vec![false; cnf.variables() as usize];
    for word in words {
        let literal = word.parse().ok().and_then(Literal::from_dimacs);
        let literal = literal.filter(|literal| literal.variable() <= cnf.variables());
        let literal = literal.ok_or_else(|| format!("{word:?} is not a literal of the formula"))?;
        values[literal.variable() as usize - 1] = !literal.is_negative();
    }
    match cnf.first_violated(&values) {
        None => Ok(()),
        Some(clause) => Err(format!("the model leaves clause {} false", clause + 1)),
    }
}
