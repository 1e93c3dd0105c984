//! A certificate: the proof that a formula has no model (under assumptions), bound to that formula.
//!
//! It stands alone: whoever has the formula can check it with this crate, at any later time. Clauses: SCC-4.
//! Decision: D-20 (the ledger stores certificates; replay checks them again and does not solve again).

use crate::cnf::{Cnf, Literal};
use crate::lrat::{self, Accepted, CheckError};
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};

/// Why a certificate is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// It is about another formula.
    #[error("the certificate is for the formula {expected}, not for {found}")]
    OtherFormula {
        /// The digest in the certificate.
        expected: Digest,
        /// The digest of the formula given.
        found: Digest,
    },
    /// Its proof is not accepted.
    #[error("the proof is not accepted: {0}")]
    Proof(#[from] CheckError),
}

/// The claim that a formula has no model in which all assumptions hold, with its proof.
///
/// A value of this type is a claim; only [`Certificate::check`] makes it a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The digest of the formula.
    pub formula: Digest,
    /// What is assumed on top of the formula.
    pub assumptions: Vec<Literal>,
    /// A binary LRAT proof.
    pub proof: Vec<u8>,
}

impl Certificate {
    /// Checks the claim against the formula it must be about.
    #[doc(alias = "PROOF_CHECK")]
    pub fn check(&self, cnf: &Cnf) -> Result<Accepted, CertificateError> {
        let found = cnf.digest();
        if self.formula != found {
            return Err(CertificateError::OtherFormula { expected: self.formula, found });
        }
        Ok(lrat::check_under(cnf, &self.assumptions, &self.proof)?)
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.raw(self.formula.as_bytes());
        writer.length(self.assumptions.len());
        for literal in &self.assumptions {
            writer.i32(literal.to_dimacs());
        }
        writer.bytes(&self.proof);
    }

    /// Reads canonical bytes; the proof in them is not checked yet.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Certificate, DecodeError> {
        let formula = Digest::decode(reader)?;
        let count = reader.length(4)?;
        let mut assumptions = Vec::with_capacity(count);
        for _ in 0..count {
            let unknown = reader.error("an assumption that is no literal");
            assumptions.push(Literal::from_dimacs(i64::from(reader.i32()?)).ok_or(unknown)?);
        }
        let proof = reader.bytes()?.to_vec();
        Ok(Certificate { formula, assumptions, proof })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_bound_to_its_formula_and_survives_its_bytes() {
        let cnf = Cnf::from_dimacs(b"p cnf 1 2\n1 0\n-1 0\n").unwrap();
        let certificate =
            Certificate { formula: cnf.digest(), assumptions: vec![], proof: b"3 0 1 2 0\n".to_vec() };
        assert!(certificate.check(&cnf).is_ok());
        let swapped = Cnf::from_dimacs(b"p cnf 1 2\n-1 0\n1 0\n").unwrap();
        assert!(matches!(certificate.check(&swapped), Err(CertificateError::OtherFormula { .. })));
        let mut writer = Writer::new();
        certificate.encode(&mut writer);
        let bytes = writer.into_bytes();
        assert_eq!(Certificate::decode(&mut Reader::new(&bytes)), Ok(certificate));
        assert!(Certificate::decode(&mut Reader::new(&bytes[..40])).is_err());
    }
}
