//! The compiler: machine code for a placed circuit on x86-64 with AVX2, one register for 256 lanes.
//!
//! Read and write specifications and the masked write-back are part of the code. Elsewhere (another machine, no AVX2,
//! a system that gives no executable memory, Miri) the interpreter takes over, and the results are the same bit for
//! bit. This is the only file with `unsafe` code. Must not know what a circuit is for. Clauses: VM-2, VM-4.

mod allocate;
mod emit;
mod lower;

use self::emit::{Code, Source};
use self::lower::Operation;
use crate::interpret::Interpreted;
use crate::lanes::{LaneMask, LaneWord};
use crate::placed::{Evaluate, PlacedCircuit, Scratch};
use memmap2::{Mmap, MmapMut};
use std::sync::Arc;

/// Functions start at multiples of this many bytes: one cache line.
const ALIGNMENT: usize = 64;
/// A page, as far as caches are concerned.
const PAGE_BYTES: usize = 4_096;
/// How far apart the places of [`Evaluator::at`] are within a page: about the code of a 64-gate circuit.
const PLACE_BYTES: usize = 11 * ALIGNMENT;

/// The fastest evaluator that this machine has for a circuit.
#[derive(Clone, Debug)]
pub enum Evaluator {
    /// Machine code.
    Compiled(Compiled),
    /// Gate by gate.
    Interpreted(Interpreted),
}

impl Evaluator {
    /// Prepares one circuit.
    pub fn new(circuit: &PlacedCircuit) -> Evaluator {
        Evaluator::at(circuit, 0)
    }

    /// Prepares one of several circuits that will be run in turn but are prepared one by one.
    ///
    /// Memory comes in pages, so code that always began a page would always fall into the same few sets of the
    /// instruction cache; circuits with different places do not crowd each other out.
    pub fn at(circuit: &PlacedCircuit, place: usize) -> Evaluator {
        let padding = place * PLACE_BYTES % PAGE_BYTES;
        match compile(core::slice::from_ref(circuit), padding).and_then(|mut all| all.pop()) {
            Some(compiled) => Evaluator::Compiled(compiled),
            None => Evaluator::Interpreted(Interpreted::new(circuit.clone())),
        }
    }

    /// Prepares circuits that will be run in turn; their code is packed together, which the caches like.
    pub fn for_all(circuits: &[PlacedCircuit]) -> Vec<Evaluator> {
        match compile_all(circuits) {
            Some(all) => all.into_iter().map(Evaluator::Compiled).collect(),
            None => circuits.iter().cloned().map(Interpreted::new).map(Evaluator::Interpreted).collect(),
        }
    }
}

impl Evaluate for Evaluator {
    #[inline]
    fn evaluate(
        &self,
        state: &mut [LaneWord],
        mask: &LaneMask,
        results: &mut [LaneWord],
        scratch: &mut Scratch,
    ) {
        match self {
            Evaluator::Compiled(compiled) => compiled.evaluate(state, mask, results, scratch),
            Evaluator::Interpreted(interpreted) => interpreted.evaluate(state, mask, results, scratch),
        }
    }
}

/// A placed circuit as machine code.
///
/// Invariant: at `offset` in `memory` begins a function made by [`assemble`] that reads and writes only the first
/// `planes` words of the state, the first `results` words of the results, the mask, and the first `scratch` words of
/// working memory; this machine has AVX2.
#[derive(Clone, Debug)]
pub struct Compiled {
    memory: Arc<Mmap>,
    offset: usize,
    planes: usize,
    results: usize,
    scratch: usize,
}

/// The calling convention of compiled circuits: state, mask, results, working memory.
#[cfg(target_arch = "x86_64")]
type Function = unsafe extern "sysv64" fn(*mut LaneWord, *const LaneMask, *mut LaneWord, *mut LaneWord);
/// Elsewhere nothing is ever compiled, so that any convention will do.
#[cfg(not(target_arch = "x86_64"))]
type Function = unsafe extern "C" fn(*mut LaneWord, *const LaneMask, *mut LaneWord, *mut LaneWord);

/// Whether this machine runs compiled circuits.
pub fn is_supported() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    return false;
}

/// Compiles circuits into one piece of executable memory, or nothing where that is not possible.
pub fn compile_all(circuits: &[PlacedCircuit]) -> Option<Vec<Compiled>> {
    compile(circuits, 0)
}

/// The same, with the first function this many bytes behind the start of a page.
fn compile(circuits: &[PlacedCircuit], padding: usize) -> Option<Vec<Compiled>> {
    if !is_supported() || circuits.is_empty() {
        return None;
    }
    let mut code = vec![0; padding];
    let mut starts = Vec::with_capacity(circuits.len());
    for circuit in circuits {
        code.resize(code.len().next_multiple_of(ALIGNMENT), 0);
        let (function, scratch) = assemble(circuit);
        starts.push((code.len(), scratch));
        code.extend(function);
    }
    let memory = executable(&code)?;
    let compiled = circuits.iter().zip(starts).map(|(circuit, (offset, scratch))| Compiled {
        memory: Arc::clone(&memory),
        offset,
        planes: circuit.planes(),
        results: circuit.results(),
        scratch,
    });
    Some(compiled.collect())
}

/// A copy of the code in memory that is writable first and executable afterwards, never both at once.
fn executable(code: &[u8]) -> Option<Arc<Mmap>> {
    let mut writable = MmapMut::map_anon(code.len()).ok()?;
    writable[..code.len()].copy_from_slice(code);
    Some(Arc::new(writable.make_exec().ok()?))
}

/// Code that does this many logic operations on registers and nothing else: the yardstick for compiled circuits.
pub fn logic_peak(operations: usize) -> Option<Compiled> {
    if !is_supported() {
        return None;
    }
    let mut code = Code::with_capacity(operations);
    for position in 0..operations {
        // Fourteen chains, each waiting only for itself: more than the machine can start at once.
        let register = (position % 14) as u8;
        code.combine(Operation::Xor, register, register, Source::Register(14));
    }
    Some(Compiled { memory: executable(&code.finish())?, offset: 0, planes: 0, results: 0, scratch: 0 })
}

/// The machine code of a circuit, and how many words of working memory it uses.
///
/// The code depends on the circuit alone, so it can be made and looked at on any machine.
pub fn assemble(circuit: &PlacedCircuit) -> (Vec<u8>, usize) {
    allocate::allocate(lower::lower(circuit))
}

impl Evaluate for Compiled {
    #[inline]
    fn evaluate(
        &self,
        state: &mut [LaneWord],
        mask: &LaneMask,
        results: &mut [LaneWord],
        scratch: &mut Scratch,
    ) {
        assert!(self.planes <= state.len(), "{} planes given, {} needed", state.len(), self.planes);
        assert!(self.results <= results.len(), "{} results given, {} needed", results.len(), self.results);
        let scratch = scratch.words(self.scratch);
        let entry = self.memory[self.offset..].as_ptr();
        #[allow(unsafe_code)]
        // SAFETY: `entry` points at a complete function of type `Function` (the type's invariant) in memory that is
        // executable, never writable, and kept alive by `self.memory` until after the call. The function ends with a
        // return, touches no stack and only registers that the convention lets it change.
        let function = unsafe { core::mem::transmute::<*const u8, Function>(entry) };
        #[allow(unsafe_code)]
        // SAFETY: the four pointers come from live references, those to what is written from unique ones, so nothing
        // aliases. The function stays within the first `planes`, `results` and `scratch` words, whose presence has
        // just been checked (`Scratch::words` returns exactly that many), within one word of mask, and every word is
        // 32-byte aligned by the type `LaneWord`. AVX2 was found present before `self` was made.
        unsafe {
            function(state.as_mut_ptr(), mask, results.as_mut_ptr(), scratch.as_mut_ptr());
        }
    }
}

#[cfg(test)]
mod tests;
