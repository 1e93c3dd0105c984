//! Our proofs before checkers that share no code with ours, and damaged proofs before ours.
//!
//! Clauses: SCC-3, SCC-4.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use bem_base::prng::Prng;
use bem_checker::lrat_reader::{StepKind, StepReader, StepWriter, to_text};
use bem_checker::tidy::tidy;
use bem_checker::{Certificate, lrat};
use bem_prover::encode::miter;
use bem_prover::{Budget, Cnf, Literal, Outcome, solve};
use common::*;
use std::io::Write;
use std::process::{Command, Stdio};

fn refute(cnf: &Cnf, assumptions: &[Literal]) -> Certificate {
    let outcome = solve(cnf, assumptions, Budget::DEFAULT);
    let Outcome::Unsatisfiable { certificate, .. } = outcome else { panic!("{outcome:?}") };
    certificate
}

fn clauses(cnf: &Cnf) -> Vec<Vec<i32>> {
    cnf.clauses().map(|clause| clause.iter().map(|literal| literal.to_dimacs()).collect()).collect()
}

/// Formulas without models: pigeonholes, adders, multipliers, random clauses.
fn unsatisfiable_formulas() -> Vec<Cnf> {
    let mut formulas: Vec<Cnf> = (2..=7).map(pigeonhole).collect();
    formulas.push(miter(&ripple_adder(16), &prefix_adder(16)));
    formulas.push(miter(&multiplier(5, false), &multiplier(5, true)));
    let mut prng = Prng::stream(1, "formulas");
    while formulas.len() < 40 {
        let cnf = random_3_sat(&mut prng, 60, 320);
        if solve(&cnf, &[], Budget::DEFAULT).is_unsatisfiable() {
            formulas.push(cnf);
        }
    }
    formulas
}

#[test]
fn every_proof_is_accepted_by_ordeal_lrat() {
    for cnf in unsatisfiable_formulas() {
        let text = to_text(&refute(&cnf, &[]).proof).unwrap();
        assert_eq!(ordeal_lrat::check(&clauses(&cnf), &text), Ok(()));
        // Without its last step the proof shows nothing, and both checkers say so.
        let shorter = &text[..text.trim_end().rfind('\n').map_or(0, |end| end + 1)];
        assert!(ordeal_lrat::check(&clauses(&cnf), shorter).is_err());
        assert!(lrat::check(&cnf, shorter.as_bytes()).is_err());
    }
}

/// Answers of the Python checker, one job a line.
fn python_verdicts(jobs: &str) -> Vec<String> {
    let mut python = Command::new("python3")
        .arg(repository_file("tools/lrat_check.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there: run `cargo xtask test`, which installs it");
    python.stdin.take().unwrap().write_all(jobs.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

#[test]
fn every_proof_is_accepted_by_the_python_checker_in_both_forms() {
    let directory = tempfile::tempdir().unwrap();
    let mut jobs = String::new();
    let mut job = |name: String, cnf: &Cnf, proof: &[u8], assumptions: &[Literal]| {
        let (formula, file) = (directory.path().join(format!("{name}.cnf")), directory.path().join(name));
        std::fs::write(&formula, cnf.to_dimacs()).unwrap();
        std::fs::write(&file, proof).unwrap();
        jobs.push_str(&format!("{} {}", formula.display(), file.display()));
        for literal in assumptions {
            jobs.push_str(&format!(" {}", literal.to_dimacs()));
        }
        jobs.push('\n');
    };
    let formulas = unsatisfiable_formulas();
    for (index, cnf) in formulas.iter().enumerate() {
        let proof = refute(cnf, &[]).proof;
        job(format!("{index}.binary"), cnf, &proof, &[]);
        job(format!("{index}.text"), cnf, to_text(&proof).unwrap().as_bytes(), &[]);
        // The same proof with its last step's hints cut short must be refused.
        job(format!("{index}.short"), cnf, &[&proof[..proof.len() - 2], &[0]].concat(), &[]);
    }
    let base = Cnf::from_dimacs(b"p cnf 4 3\n-1 2 0\n-2 3 0\n-3 -4 0\n").unwrap();
    let assumptions = [literal(1), literal(4)];
    job("core".into(), &base, &refute(&base, &assumptions).proof, &assumptions);
    let verdicts = python_verdicts(&jobs);
    assert_eq!(verdicts.len(), 3 * formulas.len() + 1);
    for (index, verdict) in verdicts.iter().enumerate() {
        let short = index % 3 == 2 && index < 3 * formulas.len();
        assert_eq!(verdict == "s VERIFIED", !short, "job {index}: {verdict}");
    }
}

type Step = (Option<u64>, Vec<Literal>, Vec<i64>);

fn steps(proof: &[u8]) -> Vec<Step> {
    let mut reader = StepReader::new(proof);
    let mut steps = Vec::new();
    while let Some(kind) = reader.next().unwrap() {
        let id = if let StepKind::Add { id } = kind { Some(id) } else { None };
        steps.push((id, reader.clause().to_vec(), reader.numbers().to_vec()));
    }
    steps
}

fn write(steps: &[Step]) -> Vec<u8> {
    let mut writer = StepWriter::new();
    for (id, clause, numbers) in steps {
        let numbers = numbers.iter().map(|number| *number as u64);
        match id {
            Some(id) => writer.add(*id, clause, numbers),
            None => writer.delete(numbers),
        }
    }
    writer.into_bytes()
}

/// One random change to one step.
fn mutate(prng: &mut Prng, steps: &mut Vec<Step>, clause_count: usize) {
    let at = prng.below(steps.len() as u64) as usize;
    let highest = (clause_count + steps.len()) as u64;
    let (id, clause, hints) = &mut steps[at];
    let pick = |prng: &mut Prng, length: usize| prng.below(length as u64) as usize;
    match prng.below(9) {
        0 if !clause.is_empty() => {
            let place = pick(prng, clause.len());
            clause[place] = !clause[place];
        }
        1 if !clause.is_empty() => {
            let place = pick(prng, clause.len());
            clause.remove(place);
        }
        2 => clause.push(Literal::positive(1 + prng.below(8) as u32).xor(prng.bit())),
        3 if !hints.is_empty() => {
            let place = pick(prng, hints.len());
            hints.remove(place);
        }
        4 if !hints.is_empty() => {
            let place = pick(prng, hints.len());
            hints[place] = 1 + prng.below(highest) as i64;
        }
        5 if 1 < hints.len() => {
            let place = 1 + pick(prng, hints.len() - 1);
            hints.swap(place - 1, place);
        }
        6 => {
            steps.remove(at);
        }
        7 => *id = id.map(|id| id ^ 1 << prng.below(5)),
        _ => steps.insert(at, (None, vec![], vec![1 + prng.below(highest) as i64])),
    }
}

/// Whether every clause that a proof adds follows from the formula, by trying all assignments.
fn is_sound(cnf: &Cnf, steps: &[Step]) -> bool {
    steps.iter().filter(|(id, _, _)| id.is_some()).all(|(_, clause, _)| {
        let mut negated = cnf.clone();
        clause.iter().for_each(|literal| negated.add(&[!*literal]));
        !has_model(&negated)
    })
}

/// The steps with the numbering that ordeal-lrat asks for: no gaps.
fn renumbered(steps: &[Step], clause_count: usize) -> Vec<Step> {
    let mut names = std::collections::BTreeMap::new();
    let mut next = clause_count as i64;
    let mut result = steps.to_vec();
    for (id, _, numbers) in &mut result {
        for number in numbers.iter_mut() {
            *number = names.get(number).copied().unwrap_or(*number);
        }
        if let Some(id) = id {
            next += 1;
            names.insert(*id as i64, next);
            *id = next as u64;
        }
    }
    result
}

/// A mutant that is still a proof is recognised as such: every clause it adds follows (truth table) and ordeal-lrat
/// accepts it. Whatever is left must be rejected, and nothing that ordeal-lrat accepts may be.
#[test]
fn ten_thousand_mutated_proofs_are_rejected_and_what_is_accepted_is_still_a_proof() {
    let mut prng = Prng::stream(7, "mutants");
    let mut originals = vec![pigeonhole(2), pigeonhole(3)];
    while originals.len() < 12 {
        let cnf = random_3_sat(&mut prng, 8, 44);
        if !has_model(&cnf) {
            originals.push(cnf);
        }
    }
    let originals: Vec<(Cnf, Vec<Step>)> = originals
        .into_iter()
        .map(|cnf| {
            let proof = steps(&refute(&cnf, &[]).proof);
            (cnf, proof)
        })
        .collect();
    let (mut rejected, mut accepted) = (0, 0);
    while rejected < 10_000 {
        let (cnf, proof) = &originals[prng.below(originals.len() as u64) as usize];
        let mut mutant = proof.clone();
        for _ in 0..=prng.below(2) {
            if !mutant.is_empty() {
                mutate(&mut prng, &mut mutant, cnf.clause_count());
            }
        }
        let bytes = write(&mutant);
        let ours = lrat::check(cnf, &bytes);
        if ours.is_ok() {
            accepted += 1;
            assert!(is_sound(cnf, &mutant), "{}", to_text(&bytes).unwrap());
            let strict = renumbered(&steps(&tidy(cnf, &bytes).unwrap()), cnf.clause_count());
            let text = to_text(&write(&strict)).unwrap();
            assert_eq!(ordeal_lrat::check(&clauses(cnf), &text), Ok(()), "{text}");
        } else {
            rejected += 1;
            let theirs = ordeal_lrat::check(&clauses(cnf), &to_text(&bytes).unwrap());
            // ordeal-lrat stops at the empty clause and does not look at what comes after it; we do.
            let ends_early = mutant.iter().position(|(id, clause, _)| id.is_some() && clause.is_empty());
            let cut = ends_early.map_or(mutant.len(), |end| end + 1);
            if theirs.is_ok() {
                assert!(cut < mutant.len() && lrat::check(cnf, &write(&mutant[..cut])).is_ok(), "{ours:?}");
            }
        }
    }
    assert!(100 < accepted, "some changes are harmless: {accepted}");
}

#[test]
fn damaged_bytes_never_prove_a_formula_that_has_a_model() {
    let mut prng = Prng::stream(8, "bytes");
    for holes in 2..=4 {
        let cnf = pigeonhole(holes);
        let proof = refute(&cnf, &[]).proof;
        // Without its first clause the formula has a model.
        let mut satisfiable = Cnf::new(cnf.variables());
        cnf.clauses().skip(1).for_each(|clause| satisfiable.add(clause));
        for _ in 0..3_000 {
            let mut bytes = proof.clone();
            for _ in 0..=prng.below(3) {
                let at = prng.below(bytes.len() as u64) as usize;
                match prng.below(3) {
                    0 => bytes[at] = prng.next_u64() as u8,
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, prng.next_u64() as u8),
                }
            }
            assert!(lrat::check(&satisfiable, &bytes).is_err());
            assert!(bem_checker::drat::check(&satisfiable, &bytes).is_err());
        }
    }
}
