//! What the end of a unit of a run says beside its numbers: the circuit that acts, by digest, and in words.
//!
//! The bytes are drawn in `docs/formats/ledger.md`. The ledger knows of them because an audit must find what they name.
//! Clauses: LOG-1, LOG-2.

use super::codec::put;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};

/// The payload of a UNIT_END event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitEnd {
    /// The blob of the circuit that acts at the end.
    pub circuit: Digest,
    /// The last head of the learner's own chain.
    pub chain: Digest,
    /// What acts, for people.
    pub words: String,
}

impl UnitEnd {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        put(&mut writer, &self.circuit);
        put(&mut writer, &self.chain);
        writer.text(&self.words);
        writer.into_bytes()
    }

    /// Reads them back.
    pub fn from_bytes(bytes: &[u8]) -> Result<UnitEnd, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (circuit, chain) = (Digest::decode(&mut reader)?, Digest::decode(&mut reader)?);
        let words = reader.text()?.to_owned();
        reader.finish()?;
        Ok(UnitEnd { circuit, chain, words })
    }
}

/// The payload of a PROVEN event: programs of the control core, and what was shown of the second of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The programs as blobs, in the order in which they run.
    pub programs: Vec<Digest>,
    /// Clauses and certificate of each condition, as blobs.
    pub certificates: Vec<(Digest, Digest)>,
}

impl Proven {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.length(self.programs.len());
        self.programs.iter().for_each(|program| put(&mut writer, program));
        writer.length(self.certificates.len());
        for (cnf, proof) in &self.certificates {
            put(&mut writer, cnf);
            put(&mut writer, proof);
        }
        writer.into_bytes()
    }

    /// Reads them back.
    pub fn from_bytes(bytes: &[u8]) -> Result<Proven, DecodeError> {
        let mut reader = Reader::new(bytes);
        let count = reader.length(32)?;
        let programs = (0..count).map(|_| Digest::decode(&mut reader)).collect::<Result<_, _>>()?;
        let count = reader.length(64)?;
        let mut certificates = Vec::with_capacity(count);
        for _ in 0..count {
            certificates.push((Digest::decode(&mut reader)?, Digest::decode(&mut reader)?));
        }
        reader.finish()?;
        Ok(Proven { programs, certificates })
    }
}

/// The payload of an ARTEFACT event: which file, and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artefact {
    /// The file's digest.
    pub digest: Digest,
    /// Its name, in the folder that holds the ledger's.
    pub name: String,
}

impl Artefact {
    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        put(&mut writer, &self.digest);
        writer.text(&self.name);
        writer.into_bytes()
    }

    /// Reads them back; a name that leads elsewhere is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Artefact, DecodeError> {
        let mut reader = Reader::new(bytes);
        let digest = Digest::decode(&mut reader)?;
        let error = reader.error("the name of an artefact is no plain file name");
        let name = reader.text()?.to_owned();
        reader.finish()?;
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        if name.is_empty() || 64 < name.len() || name.starts_with('.') || !name.chars().all(is_letter) {
            return Err(error);
        }
        Ok(Artefact { digest, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bem_base::digest::hash;

    #[test]
    fn what_a_unit_and_an_artefact_say_comes_back_from_their_bytes() {
        let end = UnitEnd { circuit: hash(b"circuit"), chain: hash(b"chain"), words: "parity".to_owned() };
        assert_eq!(UnitEnd::from_bytes(&end.to_bytes()), Ok(end.clone()));
        let certificates = vec![(hash(b"cnf"), hash(b"proof")); 2];
        let proven = Proven { programs: vec![hash(b"look"), hash(b"choose")], certificates };
        assert_eq!(Proven::from_bytes(&proven.to_bytes()), Ok(proven.clone()));
        for cut in 0..proven.to_bytes().len() {
            assert!(Proven::from_bytes(&proven.to_bytes()[..cut]).is_err());
        }
        let artefact = |name: &str| Artefact { digest: hash(b"file"), name: name.to_owned() };
        let report = artefact("report.html");
        assert_eq!(Artefact::from_bytes(&report.to_bytes()), Ok(report.clone()));
        for wrong in ["", ".hidden", "../report.html", "a/b", &"a".repeat(65)] {
            assert!(Artefact::from_bytes(&artefact(wrong).to_bytes()).is_err(), "{wrong:?}");
        }
        for cut in 0..report.to_bytes().len() {
            assert!(Artefact::from_bytes(&report.to_bytes()[..cut]).is_err());
        }
        for cut in 0..end.to_bytes().len() {
            assert!(UnitEnd::from_bytes(&end.to_bytes()[..cut]).is_err());
        }
    }
}
