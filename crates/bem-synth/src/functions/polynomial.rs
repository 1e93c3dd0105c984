//! Sums over GF(2) of products of two or three bits: algebraic normal forms of low degree, by elimination.

use super::FunctionClass;
use crate::function::{Function, choice_bits};
use crate::samples::{Samples, Work};
use crate::statement::Formula;
use bem_circuit::netlist::{Builder, Signal};

/// Unknown coefficients at most.
const MONOMIALS_MAX: usize = 640;
/// Equations beyond the rank that must hold.
const SURPLUS: usize = 16;

/// A polynomial of degree two, or three over few bits.
pub struct Polynomial;

impl FunctionClass for Polynomial {
    fn name(&self) -> &'static str {
        "polynomial"
    }

    fn fit(&self, samples: &Samples, work: &mut Work) -> Option<Function> {
        // It has no use for exceptions; without them it was asked before.
        if !samples.accepts(0) || 0 < samples.tolerance {
            return None;
        }
        (2..=3).find_map(|degree| fit_degree(samples, degree, work))
    }
}

fn monomials(width: usize, degree: usize) -> Option<Vec<Vec<usize>>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    let mut last: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..degree {
        let mut next = Vec::new();
        for monomial in &last {
            for index in monomial.last().map_or(0, |index| index + 1)..width {
                let mut longer = monomial.clone();
                longer.push(index);
                next.push(longer);
            }
        }
        if MONOMIALS_MAX < all.len() + next.len() {
            return None;
        }
        all.extend_from_slice(&next);
        last = next;
    }
    Some(all)
}

fn fit_degree(samples: &Samples, degree: usize, work: &mut Work) -> Option<Function> {
    let monomials = monomials(samples.width, degree)?;
    let words = (monomials.len() + 1).div_ceil(64);
    if samples.len() < SURPLUS || !work.spend((samples.len() * monomials.len() * words) as u64) {
        return None;
    }
    let label = monomials.len();
    let bit = |equation: &[u64], index: usize| equation[index / 64] >> (index % 64) & 1 == 1;
    let mut echelon: Vec<(usize, Vec<u64>)> = Vec::new();
    for (row, wanted) in samples.rows.iter().zip(&samples.labels) {
        let mut equation = vec![0u64; words];
        let mut set = |index: usize| equation[index / 64] |= 1 << (index % 64);
        for (index, monomial) in monomials.iter().enumerate() {
            if monomial.iter().all(|bit| row.get(*bit)) {
                set(index);
            }
        }
        if *wanted {
            set(label);
        }
        for (lead, held) in &echelon {
            if bit(&equation, *lead) {
                equation.iter_mut().zip(held).for_each(|(word, other)| *word ^= other);
            }
        }
        match (0..label).rev().find(|index| bit(&equation, *index)) {
            Some(lead) => {
                for (_, held) in echelon.iter_mut().filter(|(_, held)| bit(held, lead)) {
                    held.iter_mut().zip(&equation).for_each(|(word, other)| *word ^= other);
                }
                echelon.push((lead, equation));
            }
            None if bit(&equation, label) => return None,
            None => {}
        }
    }
    if samples.observations < echelon.len() + SURPLUS {
        return None;
    }
    let mut builder = Builder::new(samples.width);
    let (mut terms, mut said) = (Vec::new(), Vec::new());
    for (lead, _) in echelon.iter().filter(|(_, equation)| bit(equation, label)) {
        let bits: Vec<Signal> = monomials[*lead].iter().map(|index| Signal::input(*index)).collect();
        terms.push(builder.and_all(&bits));
        said.push(monomials[*lead].iter().map(|index| *index as u16).collect());
    }
    terms.sort_unstable();
    let output = builder.xor_all(&terms);
    // Either every coefficient is said or every term is named.
    let by_terms = (terms.len() * degree) as u32 * choice_bits(samples.width + 1);
    let length = 4 + by_terms.min(echelon.len() as u32);
    let words = format!("polynomial of degree {degree}, {} terms", terms.len());
    Function::close(builder, output, Formula::Polynomial(said), length, words)
}
