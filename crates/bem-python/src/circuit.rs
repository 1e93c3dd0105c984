//! A learned circuit for numpy: bits in, bits or actions out, and programs in other languages.
//!
//! Clauses: GLE-9, VM-1.

use crate::blocks::Blocks;
use crate::refused;
use bem_base::encode::{Reader, Writer};
use bem_base::environment::OBSERVATION_WORDS;
use bem_base::limits::OBSERVATION_BITS_MAX;
use bem_circuit::formats::{self, Format, Model};
use bem_data::Encoder;
use bem_export::{Language, Program, comments};
use bem_synth::policy::{Policy, action_bits};
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Mutex;

const FORMAT: &str = "bem circuit 1";
/// The forms that a circuit is written in.
const FORMS: &str = "c, rust, python, javascript, verilog, aiger, aiger-ascii, blif, dot or net";

/// A sequential circuit from observation bits and memory to an action.
#[pyclass(module = "bem._bem")]
pub struct Circuit {
    pub(crate) policy: Policy,
    observation_bits: usize,
    horizon: Option<u32>,
    name: String,
    lines: Vec<String>,
    /// How named values become bits, as JSON; empty where they have no names.
    features: Option<String>,
    blocks: Mutex<Blocks>,
}

impl Circuit {
    pub(crate) fn of(
        policy: Policy,
        observation_bits: usize,
        horizon: Option<u32>,
        name: &str,
        lines: Vec<String>,
    ) -> Circuit {
        let blocks = Mutex::new(Blocks::new(&policy));
        Circuit { policy, observation_bits, horizon, name: name.to_string(), lines, features: None, blocks }
    }

    pub(crate) fn named(mut self, features: Option<String>) -> Circuit {
        self.features = features;
        self
    }

    fn program(&self, language: Language) -> PyResult<String> {
        let encoder = self.features.as_deref().map(Encoder::from_json).transpose().map_err(refused)?;
        Ok(bem_export::write(
            language,
            &Program {
                policy: &self.policy,
                observation_bits: self.observation_bits,
                horizon: self.horizon,
                name: &self.name,
                encoder: encoder.as_ref(),
                provenance: &self.lines,
            },
        ))
    }
}

#[pymethods]
impl Circuit {
    /// Reads a circuit in AIGER, BLIF or BEM's own form. Inputs called `observation_N` are that bit, any others are the
    /// bits in order; outputs are the bits of an action, the lowest first.
    #[staticmethod]
    fn parse(bytes: &[u8]) -> PyResult<Circuit> {
        let model = formats::read(bytes).map_err(refused)?;
        let names = &model.input_names()[..model.free_inputs()];
        let number = |name: &String| name.strip_prefix("observation_")?.parse::<u16>().ok();
        let reads: Option<Vec<u16>> = names.iter().map(number).collect();
        let reads = reads.unwrap_or_else(|| (0..names.len() as u16).collect());
        let bits = reads.iter().max().map_or(0, |last| usize::from(*last) + 1);
        if OBSERVATION_BITS_MAX < bits {
            return Err(refused(format!(
                "the circuit reads {bits} bits; at most {OBSERVATION_BITS_MAX} are allowed"
            )));
        }
        let actions = u16::try_from(1u64 << model.free_outputs().min(16)).unwrap_or(u16::MAX);
        let policy = Policy::new(model.circuit().clone(), reads, model.memory(), actions).ok_or_else(|| {
            refused("it is no policy: inputs in rising order and at most 15 outputs that are an action's bits are needed")
        })?;
        Ok(Circuit::of(policy, bits, None, model.name(), vec![format!("BEM circuit {}", model.name())]))
    }

    /// The canonical bytes; `from_bytes` reads them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut writer = Writer::new();
        writer.text(FORMAT);
        writer.u32(self.observation_bits as u32);
        writer.u32(self.horizon.unwrap_or(0));
        writer.text(&self.name);
        writer.text(self.features.as_deref().unwrap_or(""));
        writer.length(self.lines.len());
        self.lines.iter().for_each(|line| writer.text(line));
        self.policy.encode(&mut writer);
        PyBytes::new(py, &writer.into_bytes())
    }

    /// Reads canonical bytes.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Circuit> {
        let mut reader = Reader::new(bytes);
        let read = || {
            let foreign = reader.error("not a circuit, or one of another version");
            if reader.text()? != FORMAT {
                return Err(foreign);
            }
            let (bits, horizon) = (reader.u32()? as usize, reader.u32()?);
            let (name, features) = (reader.text()?.to_string(), reader.text()?.to_string());
            let lines = (0..reader.length(4)?)
                .map(|_| reader.text().map(str::to_string))
                .collect::<Result<Vec<String>, _>>()?;
            let malformed = reader.error("a circuit that reads bits which are not there");
            let policy = Policy::decode(&mut reader)?;
            let fits =
                policy.reads().iter().all(|bit| usize::from(*bit) < bits) && bits <= OBSERVATION_BITS_MAX;
            if !fits {
                return Err(malformed);
            }
            reader.finish()?;
            Ok((bits, horizon, name, features, lines, policy))
        };
        let (bits, horizon, name, features, lines, policy) = read().map_err(refused)?;
        let circuit = Circuit::of(policy, bits, (0 < horizon).then_some(horizon), &name, lines);
        Ok(circuit.named((!features.is_empty()).then_some(features)))
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its gates of two inputs.
    #[getter]
    fn gates(&self) -> usize {
        self.policy.gates()
    }

    /// Bits that it keeps from step to step.
    #[getter]
    fn memory_bits(&self) -> usize {
        self.policy.memory_bits()
    }

    /// Bits that the world shows.
    #[getter]
    fn observation_bits(&self) -> usize {
        self.observation_bits
    }

    /// Bits of the action.
    #[getter]
    fn action_bits(&self) -> usize {
        action_bits(self.policy.actions())
    }

    /// Actions are below this.
    #[getter]
    fn actions(&self) -> u16 {
        self.policy.actions()
    }

    /// The observation bits that it looks at.
    #[getter]
    fn reads(&self) -> Vec<u16> {
        self.policy.reads().to_vec()
    }

    /// The digest that names it in ledgers and bundles.
    #[getter]
    fn digest(&self) -> String {
        self.policy.digest().to_hex()
    }

    /// Whether memory bits move whatever is seen: a policy that counts steps is made for episodes that end.
    #[getter]
    fn counts_steps(&self) -> bool {
        0 < self.policy.counts_steps()
    }

    /// The text, or for binary AIGER the bytes, in one of the forms of `bem export`.
    fn export<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(language) = Language::from_name(format) {
            return Ok(self.program(language)?.into_pyobject(py)?.into_any());
        }
        let form = Format::from_name(format)
            .ok_or_else(|| refused(format!("format {format:?} is unknown: {FORMS}")))?;
        let policy = &self.policy;
        let memory = || 0..policy.memory_bits();
        let reads = policy.reads().iter().map(|bit| format!("observation_{bit}"));
        let inputs: Vec<String> = reads.chain(memory().map(|bit| format!("memory_{bit}"))).collect();
        let actions = (0..action_bits(policy.actions())).map(|bit| format!("action_{bit}"));
        let outputs: Vec<String> = actions.chain(memory().map(|bit| format!("next_memory_{bit}"))).collect();
        let model =
            Model::with_memory(&self.name.replace('/', "_"), policy.circuit().clone(), policy.memory_bits())
                .map_err(refused)?
                .named(&inputs, &outputs);
        let mut bytes = match form {
            Format::Aiger | Format::AigerAscii => Vec::new(),
            Format::Dot => comments(&self.lines, "// ").into_bytes(),
            _ => comments(&self.lines, "# ").into_bytes(),
        };
        bytes.extend(form.write(&model));
        match String::from_utf8(bytes) {
            Ok(text) if form != Format::Aiger => Ok(text.into_pyobject(py)?.into_any()),
            Ok(text) => Ok(PyBytes::new(py, text.as_bytes()).into_any()),
            Err(error) => Ok(PyBytes::new(py, error.as_bytes()).into_any()),
        }
    }

    /// The words of memory that one row keeps.
    #[getter]
    fn state_words(&self) -> usize {
        self.policy.memory_bits().div_ceil(64)
    }

    /// Actions for rows of packed observations (`uint64`, the lowest bit first); the memory of every row is read and its
    /// next content handed back.
    #[allow(clippy::type_complexity, reason = "two arrays")]
    fn act<'py>(
        &self,
        py: Python<'py>,
        seen: PyReadonlyArray2<'py, u64>,
        state: PyReadonlyArray2<'py, u64>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<u64>>)> {
        let [rows, words] = [seen.shape()[0], seen.shape()[1]];
        let needed = self.policy.reads().last().map_or(0, |last| usize::from(*last) / 64 + 1);
        if words < needed || OBSERVATION_WORDS < words {
            return Err(refused(format!(
                "an observation has {words} words of 64 bits; {needed} to {OBSERVATION_WORDS} are needed"
            )));
        }
        let state_words = self.policy.memory_bits().div_ceil(64);
        if state.shape() != [rows, state_words] {
            return Err(refused(format!(
                "state has the shape {:?}; ({rows}, {state_words}) is needed",
                state.shape()
            )));
        }
        let (seen, mut kept) =
            (seen.as_slice().map_err(refused)?, state.as_slice().map_err(refused)?.to_vec());
        let mut actions = vec![0i64; rows];
        let blocks = &self.blocks;
        py.detach(|| {
            let mut blocks = blocks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            blocks.act(seen, words, &mut kept, &mut actions);
        });
        let kept = PyArray1::from_vec(py, kept).reshape([rows, state_words])?;
        Ok((PyArray1::from_vec(py, actions), kept))
    }
}
