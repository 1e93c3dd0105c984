//! `bem check`: whether a bundle is what it says. Nothing in the file is believed before it was held against something else.
//!
//! Signature over the body; the shape of the features; the checkpoint's own signature; the entries of the history under its
//! root; the circuit, task, hypothesis, figures, seed, warnings and features that they name; the claims against the circuit,
//! by proof or by every case. What cannot be
//! checked here is said: that the history itself is sound (`bem verify`), and that the world is as it was.
//! Clauses: SCC-4, LOG-2, LOG-3.

use super::claim::{forbidden_clauses, forbidden_holds, statement_clauses, statement_holds};
use super::{
    BYTES_MAX, Body, Bundle, Certificate, Circuit, FORMAT, FORMAT_WITH_PATTERNS, FORMATS, Forbidden, Logged,
    Provenance, features, from_hex,
};
use crate::cli::run::evaluations;
use anyhow::{Context as _, Result, bail, ensure};
use bem_base::digest::{Digest, hash};
use bem_base::encode::Writer;
use bem_checker::lrat_reader::to_text;
use bem_checker::{Cnf, lrat};
use bem_circuit::netlist::{Gate, Netlist, Op, Signal};
use bem_data::Encoder;
use bem_engine::climb::UnitBegin;
use bem_ledger::checkpoint::{SignedCheckpoint, verify_bundle};
use bem_ledger::entry::{Artefact, Entry, UnitEnd, event_code};
use bem_ledger::merkle::{leaf_hash, verify_inclusion};
use bem_synth::policy::Policy;
use serde_json::Value;

/// What was found to hold.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The bundle.
    pub bundle: Bundle,
    /// What the bits of an observation mean, where they have names.
    pub features: Option<Encoder>,
    /// How the statement was shown; none if nothing is stated.
    pub statement: Option<String>,
    /// Forbidden pairs that were shown never to be taken.
    pub forbidden: usize,
}

/// Checks the file's bytes; with a public key, that it is signed by that one.
pub fn check(bytes: &[u8], public_key: Option<&str>) -> Result<Checked> {
    ensure!(bytes.len() <= BYTES_MAX, "{} bytes; at most {BYTES_MAX} are allowed", bytes.len());
    let text = std::str::from_utf8(bytes).context("not UTF-8")?;
    let value: Value = serde_json::from_str(text).context("no JSON")?;
    let bundle: Bundle = serde_json::from_value(value).context("no bundle")?;
    ensure!(bundle.text() == text, "not in its one spelling");
    let body = &bundle.body;
    ensure!(FORMATS.contains(&body.format.as_str()), "format {:?}; {FORMATS:?} are known", body.format);
    check_signature(&bundle, public_key)?;
    let policy = check_circuit(&body.policy)?;
    let features = features::check(body).context("features")?;
    check_provenance(body, &policy).context("provenance")?;
    check_figures(body, &policy).context("figures")?;
    let statement = check_statement(body).context("statement")?;
    check_forbidden(body).context("forbidden pairs")?;
    let forbidden = body.forbidden.len();
    Ok(Checked { bundle, features, statement, forbidden })
}

fn check_signature(bundle: &Bundle, wanted: Option<&str>) -> Result<()> {
    let spelling = bundle.body.spelling();
    let public = &bundle.body.provenance.public_key;
    if let Some(wanted) = wanted.filter(|wanted| wanted != public) {
        bail!("signed by the key {public}, not by {wanted}");
    }
    ensure!(hash(spelling.as_bytes()).to_hex() == bundle.digest, "the digest is not that of the body");
    let key = from_hex(public).and_then(|key| key.try_into().ok()).context("the public key is no key")?;
    let signature = from_hex(&bundle.signature).context("the signature is not hexadecimal")?;
    verify_bundle(&key, spelling.as_bytes(), &signature).context("the bundle's signature")
}

/// The policy of the circuit, whose bytes its digest is taken of.
fn check_circuit(circuit: &Circuit) -> Result<Policy> {
    let signal = |number: &u32| Signal::from_index(*number as usize);
    let mut gates = Vec::with_capacity(circuit.gates.len());
    for (op, a, b) in &circuit.gates {
        let op = *Op::ALL.get(usize::from(*op)).with_context(|| format!("there is no operation {op}"))?;
        gates.push(Gate { op, a: signal(a), b: signal(b) });
    }
    let outputs = circuit.outputs.iter().map(signal).collect();
    let netlist = Netlist::new(circuit.inputs() as usize, gates, outputs).context("the circuit")?;
    let fits = circuit.reads.iter().all(|bit| *bit < circuit.observation_bits);
    ensure!(fits, "the circuit reads bits that the world does not show");
    let memory = circuit.memory_bits as usize;
    Policy::new(netlist, circuit.reads.clone(), memory, circuit.actions).context("the circuit is no policy")
}

/// The digest by which the history names a policy.
pub fn circuit_digest(policy: &Policy) -> Digest {
    let mut writer = Writer::new();
    policy.encode(&mut writer);
    hash(writer.as_bytes())
}

fn entry(logged: &Logged, checkpoint: &SignedCheckpoint) -> Result<Entry> {
    let bytes = from_hex(&logged.entry).context("an entry is not hexadecimal")?;
    let path: Option<Vec<Digest>> = logged.path.iter().map(|hash| Digest::from_hex(hash)).collect();
    let path = path.context("an audit path is not hexadecimal")?;
    let (size, root) = (checkpoint.checkpoint.size, checkpoint.checkpoint.root);
    let is_in = logged.index < size && verify_inclusion(&leaf_hash(&bytes), logged.index, size, &root, &path);
    ensure!(is_in, "entry {} is not under the checkpoint's root", logged.index);
    Entry::from_bytes(&bytes).with_context(|| format!("entry {}", logged.index))
}

/// The numbers and the payload of an event of this code.
fn event(logged: &Logged, checkpoint: &SignedCheckpoint, wanted: u16) -> Result<(Vec<i64>, Vec<u8>)> {
    match entry(logged, checkpoint)? {
        Entry::Event { code, values, payload, .. } if code == wanted => Ok((values, payload)),
        _ => bail!("entry {} is not the {}", logged.index, event_code::name(wanted).unwrap_or("event")),
    }
}

fn check_provenance(body: &Body, policy: &Policy) -> Result<()> {
    let Provenance { task, hypothesis, steps, public_key, checkpoint, genesis, unit_begin, unit_end, .. } =
        &body.provenance;
    let key = from_hex(public_key).and_then(|key| key.try_into().ok()).context("the public key is no key")?;
    let checkpoint = SignedCheckpoint::parse(checkpoint.as_bytes()).context("the checkpoint")?;
    checkpoint.verify(&key).context("the checkpoint")?;
    let Entry::Genesis(first) = entry(genesis, &checkpoint)? else { bail!("the first entry is not genesis") };
    ensure!(genesis.index == 0 && first.public_key == key, "genesis names another key");
    ensure!(first.instance == checkpoint.checkpoint.instance, "the checkpoint is of another history");
    let (begin, payload) = event(unit_begin, &checkpoint, event_code::UNIT_BEGIN)?;
    let UnitBegin { unit, shape } = UnitBegin::from_bytes(&payload).context("the unit")?;
    ensure!(
        (usize::from(shape.observation_bits), shape.actions)
            == (body.policy.observation_bits as usize, body.policy.actions),
        "the history names another width of what is seen, or another number of actions"
    );
    ensure!(unit.task == *task, "the history names the task {:?}", unit.task);
    let (end, payload) = event(unit_end, &checkpoint, event_code::UNIT_END)?;
    let said = UnitEnd::from_bytes(&payload).context("the unit's end")?;
    ensure!(
        unit_begin.index < unit_end.index && begin.len() == 5 && end.get(..5) == Some(&begin[..]),
        "the unit's beginning and end are of different units"
    );
    ensure!(said.circuit == circuit_digest(policy), "the history names another circuit");
    ensure!(said.words == *hypothesis, "the history names another hypothesis");
    ensure!(end.get(8) == Some(&(*steps as i64)), "the history names other steps");
    Ok(())
}

/// Figures, seed, warnings and features are those of the file that the history names. Formats before the fourth are of runs
/// whose file has figures alone.
fn check_figures(body: &Body, policy: &Policy) -> Result<()> {
    let is_named = body.format == FORMAT;
    let (text, logged) = match (&body.evaluation, &body.provenance.evaluation) {
        (None, None) if body.measured.is_none() && !is_named => return Ok(()),
        (Some(text), Some(logged)) if body.measured.is_some() || is_named => (text, logged),
        _ => bail!("figures, their file and its entry come together"),
    };
    let checkpoint =
        SignedCheckpoint::parse(body.provenance.checkpoint.as_bytes()).context("the checkpoint")?;
    let (_, payload) = event(logged, &checkpoint, event_code::ARTEFACT)?;
    let artefact = Artefact::from_bytes(&payload).context("the file's entry")?;
    ensure!(
        artefact.name == evaluations::NAME && artefact.digest == hash(text.as_bytes()),
        "the history names another file of figures"
    );
    let file: Value = serde_json::from_str(text).context("the file of figures")?;
    let wanted = if is_named { evaluations::FORMAT } else { evaluations::FORMAT_OF_FIGURES };
    ensure!(
        file["format"] == wanted,
        "the file of figures has the format {}; a bundle of the format {:?} comes with {wanted:?}",
        file["format"],
        body.format
    );
    let task = &body.provenance.task;
    let found = evaluations::entry(&file, &circuit_digest(policy), task)
        .context("the file of figures does not name this policy")?;
    let is_said = |key: &str, said: Value| -> Result<()> {
        ensure!(found[key] == said, "the file of figures, which the history names, says other {key}");
        Ok(())
    };
    is_said("measured", serde_json::to_value(body.measured)?)?;
    if is_named {
        is_said("seed", body.provenance.seed.into())?;
        is_said("warnings", body.provenance.warnings.clone().into())?;
        is_said("features", serde_json::to_value(&body.features)?)?;
    }
    Ok(())
}

/// Holds a proof against clauses that were written down here.
fn check_proof(certificate: &Certificate, clauses: impl FnOnce() -> Result<Cnf>) -> Result<String> {
    let proof = certificate.proof.as_bytes();
    let spelling = to_text(proof).context("the certificate")?;
    ensure!(spelling == certificate.proof, "the certificate is not in its one spelling");
    let accepted = lrat::check(&clauses()?, proof).context("the certificate")?;
    Ok(format!("LRAT proof of {} steps", accepted.steps))
}

fn check_statement(body: &Body) -> Result<Option<String>> {
    let (statement, certificate) = match (&body.statement, &body.certificates.statement) {
        (None, None) => return Ok(None),
        (Some(statement), Some(certificate)) => (statement, certificate),
        _ => bail!("a statement and its certificate come together"),
    };
    match certificate.kind.as_str() {
        "lrat" => check_proof(certificate, || statement_clauses(&body.policy, statement)).map(Some),
        "exhaustive" if certificate.proof.is_empty() => {
            ensure!(statement_holds(&body.policy, statement)?, "the circuit does not do what is stated");
            Ok(Some(format!("every case of {} inputs", body.policy.inputs())))
        }
        kind => bail!("a certificate of kind {kind:?}"),
    }
}

fn check_forbidden(body: &Body) -> Result<()> {
    ensure!(
        body.forbidden.len() == body.certificates.forbidden.len(),
        "{} pairs and {} certificates",
        body.forbidden.len(),
        body.certificates.forbidden.len()
    );
    let has_patterns = body.forbidden.iter().any(Forbidden::is_pattern);
    ensure!(
        body.format == FORMAT || has_patterns == (body.format == FORMAT_WITH_PATTERNS),
        "bits that are free belong to the format {FORMAT_WITH_PATTERNS:?}, which has some"
    );
    for (forbidden, certificate) in body.forbidden.iter().zip(&body.certificates.forbidden) {
        match certificate.kind.as_str() {
            "lrat" => drop(check_proof(certificate, || forbidden_clauses(&body.policy, forbidden))?),
            "exhaustive" if certificate.proof.is_empty() => ensure!(
                forbidden_holds(&body.policy, forbidden)?,
                "action {} can be taken for {}",
                forbidden.action,
                forbidden.observation
            ),
            kind => bail!("a certificate of kind {kind:?}"),
        }
    }
    Ok(())
}
