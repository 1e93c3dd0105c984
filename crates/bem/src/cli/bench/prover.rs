//! The prover: how fast proofs are checked, and what certified answers cost over bare ones.

use super::{Benchmark, Measurement, minimum_nanoseconds};
use anyhow::bail;
use bem_checker::lrat;
use bem_checker::lrat_reader::StepReader;
use bem_prover::equivalence::simplified_miter;
use bem_prover::solver::{guess, solve_with};
use bem_prover::testing::{multiplier, prefix_adder, ripple_adder};
use bem_prover::{Budget, Certificate, Cnf, Outcome, Profile, solve};
use std::hint::black_box;
use std::time::Instant;

/// Benchmarks of this area.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "proof_check",
        area: "prover",
        about: "LRAT hints a second, factors of six bits swapped",
        run: proof_check,
    },
    Benchmark {
        name: "adder16_equiv",
        area: "prover",
        about: "two different adders of 16 bits proven equal, with certificate",
        run: adder16_equiv,
    },
    Benchmark {
        name: "multiplier8_equiv",
        area: "prover",
        about: "factors of eight bits swapped: certified answer against the bare solver",
        run: multiplier8_equiv,
    },
];

fn certificate(outcome: Outcome) -> anyhow::Result<Certificate> {
    match outcome {
        Outcome::Unsatisfiable { certificate, .. } => Ok(certificate),
        other => bail!("the solver should refute this formula: {other:?}"),
    }
}

fn proof_check() -> anyhow::Result<Measurement> {
    let formula = simplified_miter(&multiplier(6, false), &multiplier(6, true));
    let proof = certificate(solve(&formula, &[], Budget::DEFAULT))?.proof;
    let hints = lrat::check(&formula, &proof)?.hints as f64;
    let check = minimum_nanoseconds(9, 1, || {
        black_box(lrat::check(&formula, black_box(&proof)).is_ok());
    });
    // No checker is faster than reading the proof.
    let read = minimum_nanoseconds(9, 1, || {
        let mut reader = StepReader::new(black_box(&proof));
        while let Ok(Some(_)) = reader.next() {
            black_box(reader.numbers().len());
        }
    });
    let rate = |nanoseconds: f64| hints * 1e9 / nanoseconds;
    Ok(Measurement::new(
        "proof_check",
        rate(check),
        "hints/s",
        rate(read),
        "the same proof read and not checked",
    )
    .with("proof_bytes", proof.len() as f64))
}

fn adder16_equiv() -> anyhow::Result<Measurement> {
    let (left, right) = (ripple_adder(16), prefix_adder(16));
    let certified = minimum_nanoseconds(9, 1, || {
        let formula = simplified_miter(black_box(&left), black_box(&right));
        assert!(solve(&formula, &[], Budget::DEFAULT).is_unsatisfiable());
    });
    let formula = simplified_miter(&left, &right);
    let bare = minimum_nanoseconds(9, 1, || {
        black_box(guess(Profile::Thorough, black_box(&formula), Budget::DEFAULT));
    });
    Ok(Measurement::new(
        "adder16_equiv",
        certified / 1e6,
        "ms",
        bare / 1e6,
        "the bare solver on the same formula, without proof",
    ))
}

fn multiplier8_equiv() -> anyhow::Result<Measurement> {
    let formula: Cnf = simplified_miter(&multiplier(8, false), &multiplier(8, true));
    let start = Instant::now();
    if guess(Profile::Thorough, &formula, Budget::DEFAULT) != Some(false) {
        bail!("the bare solver should refute this formula");
    }
    let bare = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let certificate = certificate(solve_with(Profile::Thorough, &formula, &[], Budget::DEFAULT))?;
    let certified = start.elapsed().as_secs_f64();
    let start = Instant::now();
    certificate.check(&formula)?;
    let check = start.elapsed().as_secs_f64();
    Ok(Measurement::new(
        "multiplier8_equiv",
        certified * 1e3,
        "ms",
        bare * 1e3,
        "the bare solver on the same formula, without proof",
    )
    .with("check_share_of_solving", check / bare)
    .with("proof_bytes", certificate.proof.len() as f64))
}
