//! Makes a bundle of a run's policy: takes the entries out of the ledger, states the claims, has them proven, and signs.
//!
//! What it makes is checked before it is handed out, by the same code that checks the bundles of others.
//! Clauses: SCC-3, SCC-4, LOG-3.

use super::check::{check, circuit_digest};
use super::claim::{forbidden_clauses, free_inputs, statement_clauses};
use super::{
    Body, Bundle, Certificate, Certificates, Circuit, Condition, EXHAUSTIVE_INPUTS_MAX, FORMAT,
    FORMAT_OF_FIGURES, FORMAT_WITH_FEATURES, FORMAT_WITH_PATTERNS, Forbidden, List, Logged, Provenance, Rule,
    Statement, features, to_hex,
};
use crate::cli::ledger_directory;
use crate::cli::run::evaluations::{self, Said};
use crate::kept_world::{encoder_of, kept_files};
use crate::keys;
use crate::learned::{self, Picked};
use anyhow::{Context as _, Result, bail};
use bem_base::digest::{Digest, hash};
use bem_checker::Cnf;
use bem_checker::lrat_reader::to_text;
use bem_engine::climb::{Climbed, Purpose, UnitBegin};
use bem_engine::payload::Payload;
use bem_evolve::patch::Change;
use bem_explain::{Explanation, Fact, RuleList, explain_bits};
use bem_ledger::checkpoint::Signer;
use bem_ledger::entry::{Artefact, Entry, PatchKind, PatchStatus, UnitEnd, event_code};
use bem_ledger::log::read_blob;
use bem_ledger::merkle::{Tree, leaf_hash};
use bem_ledger::reader::EntryReader;
use bem_ledger::recover::read_checkpoint;
use bem_machine::guard::Rule as GuardRule;
use bem_prover::Budget;
use bem_prover::solver::{Outcome, solve};
use bem_synth::policy::Policy;
use std::path::Path;

/// Conflicts that one certificate may take.
const CONFLICTS: u32 = 50_000;
/// Free inputs over which every case is tried before a proof is looked for.
const TRIED_INPUTS_MAX: usize = 12;
/// Gates of a circuit whose statement is proven clause by clause.
const PROVEN_GATES_MAX: usize = 4_096;
/// Bytes of one certificate.
const PROOF_BYTES_MAX: usize = 16 << 20;

/// The bundle of a run's policy, signed with the run's key.
pub fn bundle(directory: &Path, expert: Option<&str>, key: Option<&Path>) -> Result<Bundle> {
    let Picked { climb, climbed, place, shape, is_known } = learned::pick(directory, expert)?;
    let policy = &climbed.policy;
    let circuit = circuit(policy, shape.observation_bits);
    let found = History::read(directory, place, &climbed)?;
    let signer = keys::for_known_run(key, directory, &found.public_key)?;
    // A bundle is checked over all assignments of bits, so that its rules are made for them.
    let whole = explain_bits(policy, &shape.fields);
    let (statement, proof) = stated(&circuit, &whole)?.unzip();
    let forbidden: Vec<Forbidden> =
        found.guard.iter().map(|rule| forbidden(rule, shape.observation_bits)).collect();
    let certificates = forbidden.iter().map(|pair| never(&circuit, pair)).collect::<Result<Vec<_>>>()?;
    // What the history does not name cannot be shown to be the run's.
    let kept = evaluations::read(directory, &climbed).filter(|_| found.evaluation.is_some());
    let measured = kept.as_ref().and_then(|kept| kept.measured);
    let (evaluation, said) = kept.map_or((None, None), |kept| (Some(kept.text), kept.said));
    let is_named = said.is_some();
    let said = said.unwrap_or_else(|| {
        // Runs of before: what the bits mean comes from the world's file, which the run keeps.
        let encoder = kept_files(directory, climb.files()).ok().and_then(|files| encoder_of(&files));
        let encoder = encoder.filter(|encoder| encoder.bits() == usize::from(shape.observation_bits));
        Said {
            seed: climb.config().seed,
            warnings: learned::warnings(&climbed, shape.horizon, is_known),
            features: encoder.as_ref().map(features::of),
        }
    });
    let Said { seed, warnings, features } = said;
    let format = match features {
        _ if is_named => FORMAT,
        _ if forbidden.iter().any(Forbidden::is_pattern) => FORMAT_WITH_PATTERNS,
        Some(_) => FORMAT_WITH_FEATURES,
        None => FORMAT_OF_FIGURES,
    };
    // A file of figures alone says nothing of a policy that was not measured.
    let evaluation = evaluation.filter(|_| is_named || measured.is_some());
    let body = Body {
        format: format.to_string(),
        features,
        policy: circuit,
        statement,
        forbidden,
        certificates: Certificates { statement: proof, forbidden: certificates },
        provenance: Provenance {
            task: climbed.task.clone(),
            hypothesis: climbed.words.clone(),
            seed,
            steps: climbed.steps,
            warnings,
            public_key: to_hex(&found.public_key),
            checkpoint: found.checkpoint,
            genesis: found.genesis,
            unit_begin: found.unit.0,
            unit_end: found.unit.1,
            evaluation: found.evaluation.filter(|_| evaluation.is_some()),
        },
        measured,
        evaluation,
    };
    let bundle = signed(body, &signer);
    check(bundle.text().as_bytes(), None).context("the bundle that was made is not accepted")?;
    Ok(bundle)
}

/// Signs a body.
pub fn signed(body: Body, signer: &Signer) -> Bundle {
    let spelling = body.spelling();
    let digest = hash(spelling.as_bytes()).to_hex();
    let signature = to_hex(&signer.sign_bundle(spelling.as_bytes()));
    Bundle { body, digest, signature }
}

fn circuit(policy: &Policy, observation_bits: u16) -> Circuit {
    let circuit = policy.circuit();
    let gate =
        |gate: &bem_circuit::netlist::Gate| (gate.op as u8, gate.a.index() as u32, gate.b.index() as u32);
    Circuit {
        actions: policy.actions(),
        observation_bits,
        reads: policy.reads().to_vec(),
        memory_bits: policy.memory_bits() as u32,
        gates: circuit.gates().iter().map(gate).collect(),
        outputs: circuit.outputs().iter().map(|signal| signal.index() as u32).collect(),
    }
}

/// The rules as a statement with its certificate; nothing where they are a summary, or cannot be shown within the bounds.
fn stated(circuit: &Circuit, whole: &Explanation) -> Result<Option<(Statement, Certificate)>> {
    if !whole.is_exact() {
        return Ok(None);
    }
    let statement =
        Statement { action: list(&whole.action), memory: whole.memory.iter().map(list).collect() };
    let proof = match circuit.gates.len() <= PROVEN_GATES_MAX {
        true => proof(&statement_clauses(circuit, &statement)?),
        false => None,
    };
    let exhaustive = || (circuit.inputs() as usize <= EXHAUSTIVE_INPUTS_MAX).then(exhaustive);
    Ok(proof.or_else(exhaustive).map(|certificate| (statement, certificate)))
}

fn exhaustive() -> Certificate {
    Certificate { kind: "exhaustive".to_string(), proof: String::new() }
}

/// A proof that the clauses have no model, if one is found within the bounds.
fn proof(clauses: &Cnf) -> Option<Certificate> {
    let Outcome::Unsatisfiable { certificate, .. } = solve(clauses, &[], Budget::conflicts(CONFLICTS)) else {
        return None;
    };
    let proof = to_text(&certificate.proof).ok().filter(|proof| proof.len() <= PROOF_BYTES_MAX)?;
    Some(Certificate { kind: "lrat".to_string(), proof })
}

fn list(list: &RuleList) -> List {
    let bits = |bits: &[bool]| bits.iter().map(|bit| u8::from(*bit)).collect::<Vec<u8>>();
    let rule = |rule: &bem_explain::Rule| Rule {
        when: rule.when.iter().map(condition).collect(),
        then: bits(&rule.then),
    };
    List { rules: list.rules.iter().map(rule).collect(), otherwise: bits(&list.otherwise) }
}

fn condition(condition: &bem_explain::Condition) -> Condition {
    let places = |places: &[usize]| places.iter().map(|place| *place as u32).collect::<Vec<u32>>();
    let (fact, of, than, value) = match &condition.fact {
        Fact::Bit(place) => ("bit", places(&[*place]), Vec::new(), 0),
        Fact::AtLeast(number, value) => ("at_least", places(&number.places), Vec::new(), *value),
        Fact::Equals(number, value) => ("equals", places(&number.places), Vec::new(), *value),
        Fact::Less(left, right) => ("less", places(&left.places), places(&right.places), 0),
        Fact::Same(left, right) => ("same", places(&left.places), places(&right.places), 0),
        Fact::Odd(inputs) => ("odd", places(inputs), Vec::new(), 0),
        Fact::Count(inputs, least) => ("count", places(inputs), Vec::new(), *least as u64),
    };
    Condition { fact: fact.to_string(), of, than, value, holds: condition.holds }
}

fn forbidden(rule: &GuardRule, observation_bits: u16) -> Forbidden {
    Forbidden { observation: rule.seen.to_text(usize::from(observation_bits)), action: rule.forbidden }
}

/// Why a forbidden action is never taken: few cases are tried, many are proven where that goes.
fn never(circuit: &Circuit, pair: &Forbidden) -> Result<Certificate> {
    let free = free_inputs(circuit, pair)?;
    let found = match free <= TRIED_INPUTS_MAX {
        true => Some(exhaustive()),
        false => proof(&forbidden_clauses(circuit, pair)?),
    };
    let tried = || (free <= EXHAUSTIVE_INPUTS_MAX).then(exhaustive);
    found.or_else(tried).with_context(|| {
        format!("that action {} is never taken for {} was not shown", pair.action, pair.observation)
    })
}

/// What the ledger says of a policy.
struct History {
    public_key: [u8; 32],
    checkpoint: String,
    genesis: Logged,
    unit: (Logged, Logged),
    evaluation: Option<Logged>,
    guard: Vec<GuardRule>,
}

impl History {
    /// Goes through the ledger once.
    fn read(directory: &Path, track: usize, climbed: &Climbed) -> Result<History> {
        let mut store = ledger_directory::open(directory)?;
        let checkpoint = read_checkpoint(&mut store)?;
        let figures = std::fs::read(directory.join(evaluations::NAME)).map(|bytes| hash(&bytes)).ok();
        let wanted = circuit_digest(&climbed.policy);
        let (mut leaves, mut genesis, mut begun) = (Vec::new(), None, None);
        let (mut unit, mut evaluation) = (None, None);
        let (mut guards, mut guard, mut payloads): (Vec<Digest>, Vec<Digest>, Vec<u8>) = Default::default();
        let mut reader = EntryReader::open(&mut store)?;
        while reader.position() < checkpoint.checkpoint.size {
            let index = reader.position();
            let Some(bytes) = reader.next(&mut store)? else { break };
            let bytes = bytes.to_vec();
            leaves.push(leaf_hash(&bytes));
            match Entry::from_bytes(&bytes).with_context(|| format!("entry {index}"))? {
                Entry::Genesis(first) => genesis = Some((bytes, first.public_key)),
                Entry::Event { code: event_code::UNIT_BEGIN, payload, .. } => {
                    begun = Some((index, bytes, UnitBegin::from_bytes(&payload)?.unit));
                    guards.clear();
                }
                Entry::Event { code: event_code::UNIT_END, payload, .. } => {
                    let Some((first, begin, work)) = begun.take() else { continue };
                    let (stage, attempt) = (climbed.stage, climbed.attempt);
                    let is_it = work.track == track && work.purpose == Purpose::Rung { stage, attempt };
                    if is_it && UnitEnd::from_bytes(&payload)?.circuit == wanted {
                        unit = Some(((first, begin), (index, bytes)));
                        guard = guards.clone();
                    }
                }
                Entry::Event { code: event_code::ARTEFACT, payload, .. } => {
                    let artefact = Artefact::from_bytes(&payload)?;
                    if artefact.name == evaluations::NAME && Some(artefact.digest) == figures {
                        evaluation = Some((index, bytes));
                    }
                }
                Entry::Patch(patch) if patch.kind == PatchKind::Guard => match patch.status {
                    PatchStatus::Applied => guards.push(patch.payload),
                    PatchStatus::RolledBack => drop(guards.pop()),
                    _ => {}
                },
                _ => {}
            }
        }
        let rules = match guard.last() {
            None => Vec::new(),
            Some(digest) => {
                payloads.extend(read_blob(&mut store, digest)?);
                match Payload::from_bytes(&payloads)?.accepted.map(|(patch, _)| patch.change) {
                    Some(Change::Guard { rules }) => rules,
                    _ => bail!("the patch that masks actions holds no rules"),
                }
            }
        };
        let tree = Tree::from_leaves(leaves);
        if tree.root() != checkpoint.checkpoint.root {
            bail!("the entries do not hash to the checkpoint: run bem verify");
        }
        let logged = |(index, bytes): (u64, Vec<u8>)| Logged {
            index,
            entry: to_hex(&bytes),
            path: tree.prove_inclusion(index, tree.size()).iter().map(Digest::to_hex).collect(),
        };
        let (first, public_key) = genesis.context("the first entry of the ledger is not genesis")?;
        let (begin, end) = unit.context("the history does not name this policy: its unit is not finished")?;
        Ok(History {
            public_key,
            checkpoint: checkpoint.to_text(),
            genesis: logged((0, first)),
            unit: (logged(begin), logged(end)),
            evaluation: evaluation.map(logged),
            guard: rules,
        })
    }
}
