//! An expert: a circuit with what it reads, what it writes, what it costs and what it may do.
//!
//! Every bound of the configuration is checked when an expert is built; what exists is within bounds, so nothing is
//! checked when it runs. Must not know which family it will serve. Clauses: VM-1, VM-3, VM-4, VM-5, D-13, D-32.

use crate::config::GenesisConfig;
use crate::memory::segment::{Caller, Segment, SegmentMap};
use crate::memory::shared::work_word;
use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::Bits;
use bem_base::ids::ObjectId;
use bem_base::prng::mix;
use bem_circuit::anf::Anf;
use bem_circuit::netlist::{Netlist, NetlistError};
use bem_circuit::placed::{PlacedCircuit, Placement, PlacementError, Target};

/// Some bits of one word of SHARED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedField {
    /// The word's address.
    pub address: u32,
    /// Its first bit that is read.
    pub low: u8,
    /// How many bits; at least one.
    pub width: u8,
}

/// What the circuit's inputs are, in order: bits of STATE, then bits of SHARED words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[doc(alias = "R_spec")]
pub struct ReadSpec {
    /// Bits of STATE.
    pub state_bits: Vec<u16>,
    /// Bits of SHARED, the same for every lane.
    pub shared: Vec<SharedField>,
}

impl ReadSpec {
    /// How many inputs the circuit must have.
    pub fn inputs(&self) -> usize {
        self.state_bits.len() + self.shared.iter().map(|field| usize::from(field.width)).sum::<usize>()
    }
}

/// What one output of the circuit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputUse {
    /// Written to this bit of STATE, in the lanes of the mask.
    State(u16),
    /// Narrows the lane mask of this call.
    Mask,
    /// Counted over the lanes of the mask, for integer outputs.
    Count,
}

/// How an integer output changes its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IntegerMode {
    /// The word becomes the value.
    Assign = 0,
    /// The value is added to the word.
    #[doc(alias = "MAC")]
    Accumulate = 1,
}

/// A word of SHARED computed from counted outputs: `constant + sum of weight * lanes in which the output is true`.
///
/// A sum over lanes does not depend on their order. The constant counts once per call with at least one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerOutput {
    /// The word, within the part of WORK that experts may use.
    pub address: u32,
    /// Assign or accumulate.
    pub mode: IntegerMode,
    /// Added once.
    pub constant: i64,
    /// One weight per counted output, in their order.
    pub weights: Vec<i32>,
}

/// What the circuit's outputs do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[doc(alias = "W_spec")]
pub struct WriteSpec {
    /// The use of each output.
    pub outputs: Vec<OutputUse>,
    /// Words of SHARED computed from the counted outputs.
    pub integers: Vec<IntegerOutput>,
}

/// How an expert must be treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Chosen once per episode and credited with its return, because it remembers (decision D-32).
    pub sticky: bool,
}

/// What routing and bookkeeping know about an expert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "routing_meta")]
pub struct RoutingMetadata {
    /// Higher is tried first when a search returns ties.
    pub priority: u8,
    /// The macro it stands for, if any: a raw identifier, 0 for none.
    pub macro_tag: u32,
    /// Counts its replacements.
    pub version: u32,
    /// The features of the steps it is meant for; without one it gets a place of its own at random.
    pub descriptor: Option<Bits>,
}

/// Everything an expert is made of, before it is checked.
#[derive(Clone, Debug)]
pub struct ExpertParts {
    /// What it reads.
    pub read: ReadSpec,
    /// What it writes.
    pub write: WriteSpec,
    /// The circuit.
    pub circuit: Netlist,
    /// How it must be treated.
    pub profile: Profile,
    /// Routing metadata.
    pub routing: RoutingMetadata,
}

impl ExpertParts {
    /// The same parts with the circuit given in algebraic normal form, within the bound on monomials.
    pub fn with_anf(self, config: &GenesisConfig, circuit: &Anf) -> Result<ExpertParts, ExpertError> {
        let monomials = circuit.outputs().iter().map(Vec::len).max().unwrap_or(0);
        within("monomials of one output", monomials, config.expert_monomials_max, "M_mono_max")?;
        Ok(ExpertParts { circuit: circuit.to_netlist()?, ..self })
    }
}

/// Why an expert cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpertError {
    /// A count above its bound.
    #[error("{found} {what} exceed the bound of {bound} ({parameter})")]
    Bound {
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there may be.
        bound: usize,
        /// The parameter's name in the specification.
        parameter: &'static str,
    },
    /// A bit of STATE that does not exist.
    #[error("state bit {bit} is out of range: STATE has {state_bits}")]
    StateBit {
        /// The bit named.
        bit: u16,
        /// Bits there are.
        state_bits: usize,
    },
    /// Bits of a SHARED word that do not exist.
    #[error("bits {low} to {} of a word: a word has 64", u16::from(*low) + u16::from(*width))]
    SharedBits {
        /// First bit.
        low: u8,
        /// How many.
        width: u8,
    },
    /// A word that experts may not touch.
    #[error("experts may not {access} word {address} of SHARED")]
    SharedWord {
        /// Read or write.
        access: &'static str,
        /// The address named.
        address: u32,
    },
    /// Weights for another number of counted outputs.
    #[error("an integer output has {found} weights for {expected} counted outputs")]
    Weights {
        /// Weights given.
        found: usize,
        /// Counted outputs.
        expected: usize,
    },
    /// The circuit breaks a bound that no configuration can lift.
    #[error(transparent)]
    Netlist(#[from] NetlistError),
    /// The circuit does not fit its specs, or costs too much.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// A checked expert. Invariant: within every bound of the configuration it was built under.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "EXPERT")]
pub struct Expert {
    id: ObjectId,
    read: ReadSpec,
    write: WriteSpec,
    placed: PlacedCircuit,
    profile: Profile,
    routing: RoutingMetadata,
    cost: u32,
}

fn within(what: &'static str, found: usize, bound: u32, parameter: &'static str) -> Result<(), ExpertError> {
    let bound = bound as usize;
    if found <= bound { Ok(()) } else { Err(ExpertError::Bound { what, found, bound, parameter }) }
}

impl Expert {
    /// Checks every bound and builds the expert.
    pub fn new(config: &GenesisConfig, id: ObjectId, parts: ExpertParts) -> Result<Expert, ExpertError> {
        let ExpertParts { read, write, circuit, profile, routing } = parts;
        within("inputs", circuit.inputs(), config.expert_inputs_max, "N_in_max")?;
        within("outputs", circuit.outputs().len(), config.expert_outputs_max, "N_out_max")?;
        within("gates", circuit.gates().len(), config.expert_gates_max, "G_gate_max")?;
        within("state bits read", read.state_bits.len(), config.read_state_bits_max, "R_state_max")?;
        within("SHARED words read", read.shared.len(), config.read_shared_words_max, "R_shared_max")?;
        within("SHARED words written", write.integers.len(), config.write_shared_words_max, "W_shared_max")?;
        let written = write.outputs.iter().filter(|output| matches!(output, OutputUse::State(_))).count();
        within("state bits written", written, config.write_state_bits_max, "W_state_max")?;
        check_words(config, &read, &write)?;

        let placement = placement(config, &read, &write)?;
        let terms: usize = write.integers.iter().map(|integer| 2 + integer.weights.len()).sum();
        let own = terms + read.shared.len();
        within("work units for SHARED words", own, config.expert_cost_max, "C_expert_max")?;
        let placed = PlacedCircuit::new(circuit, placement, config.expert_cost_max - own as u32)?;
        let cost = placed.cost().work_units() + own as u32;
        Ok(Expert { id, read, write, placed, profile, routing, cost })
    }

    /// Its identifier.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// What it reads.
    pub fn read(&self) -> &ReadSpec {
        &self.read
    }

    /// What it writes.
    pub fn write(&self) -> &WriteSpec {
        &self.write
    }

    /// The circuit on its planes.
    pub fn placed(&self) -> &PlacedCircuit {
        &self.placed
    }

    /// How it must be treated.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Routing metadata.
    pub fn routing(&self) -> RoutingMetadata {
        self.routing
    }

    /// What the Hamming router compares with a step's features: as given, or spread by the identifier.
    pub fn descriptor(&self) -> Bits {
        let word = |word: u64| mix(u64::from(self.id.to_word()) << 2 | word);
        self.routing.descriptor.unwrap_or_else(|| Bits(core::array::from_fn(|index| word(index as u64))))
    }

    /// Work units of one call: gates, words read and written, terms of integer outputs.
    #[doc(alias = "cost_expert")]
    pub fn cost(&self) -> u32 {
        self.cost
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u32(self.id.to_word());
        writer.length(self.read.state_bits.len());
        self.read.state_bits.iter().for_each(|bit| writer.u16(*bit));
        writer.length(self.read.shared.len());
        for field in &self.read.shared {
            writer.u32(field.address);
            writer.u8(field.low);
            writer.u8(field.width);
        }
        writer.length(self.write.outputs.len());
        for output in &self.write.outputs {
            let (kind, bit) = match output {
                OutputUse::State(bit) => (0, *bit),
                OutputUse::Mask => (1, 0),
                OutputUse::Count => (2, 0),
            };
            writer.u8(kind);
            writer.u16(bit);
        }
        writer.length(self.write.integers.len());
        for integer in &self.write.integers {
            writer.u32(integer.address);
            writer.u8(integer.mode as u8);
            writer.i64(integer.constant);
            writer.length(integer.weights.len());
            integer.weights.iter().for_each(|weight| writer.i32(*weight));
        }
        self.placed.circuit().encode(writer);
        writer.bool(self.profile.sticky);
        writer.u8(self.routing.priority);
        writer.u32(self.routing.macro_tag);
        writer.u32(self.routing.version);
        writer.bool(self.routing.descriptor.is_some());
        if let Some(descriptor) = self.routing.descriptor {
            descriptor.0.iter().for_each(|word| writer.u64(*word));
        }
    }

    /// Reads canonical bytes and checks everything that [`Expert::new`] checks.
    pub fn decode(config: &GenesisConfig, reader: &mut Reader<'_>) -> Result<Expert, DecodeError> {
        let start = reader.clone();
        let id = ObjectId::from_word(reader.u32()?).map_err(|_| start.error("a damaged identifier"))?;
        let state_bits = (0..reader.length(2)?).map(|_| reader.u16()).collect::<Result<_, _>>()?;
        let mut shared = Vec::new();
        for _ in 0..reader.length(6)? {
            shared.push(SharedField { address: reader.u32()?, low: reader.u8()?, width: reader.u8()? });
        }
        let mut outputs = Vec::new();
        for _ in 0..reader.length(3)? {
            let unknown = reader.error("an unknown use of an output");
            outputs.push(match (reader.u8()?, reader.u16()?) {
                (0, bit) => OutputUse::State(bit),
                (1, 0) => OutputUse::Mask,
                (2, 0) => OutputUse::Count,
                _ => return Err(unknown),
            });
        }
        let mut integers = Vec::new();
        for _ in 0..reader.length(17)? {
            let address = reader.u32()?;
            let unknown = reader.error("an unknown mode of an integer output");
            let mode = match reader.u8()? {
                0 => IntegerMode::Assign,
                1 => IntegerMode::Accumulate,
                _ => return Err(unknown),
            };
            let constant = reader.i64()?;
            let weights = (0..reader.length(4)?).map(|_| reader.i32()).collect::<Result<_, _>>()?;
            integers.push(IntegerOutput { address, mode, constant, weights });
        }
        let circuit = Netlist::decode(reader)?;
        let profile = Profile { sticky: reader.bool()? };
        let (priority, macro_tag, version) = (reader.u8()?, reader.u32()?, reader.u32()?);
        let descriptor = match reader.bool()? {
            true => Some(Bits([reader.u64()?, reader.u64()?, reader.u64()?, reader.u64()?])),
            false => None,
        };
        let routing = RoutingMetadata { priority, macro_tag, version, descriptor };
        let parts = ExpertParts {
            read: ReadSpec { state_bits, shared },
            write: WriteSpec { outputs, integers },
            circuit,
            profile,
            routing,
        };
        Expert::new(config, id, parts).map_err(|_| start.error("an expert that breaks its bounds"))
    }
}

/// Every word must lie where experts may read or write it, every bit must exist.
fn check_words(config: &GenesisConfig, read: &ReadSpec, write: &WriteSpec) -> Result<(), ExpertError> {
    let map = SegmentMap::new(config);
    for field in &read.shared {
        if field.width == 0 || 64 < u16::from(field.low) + u16::from(field.width) {
            return Err(ExpertError::SharedBits { low: field.low, width: field.width });
        }
        let readable = map.segment_of(field.address).is_some_and(|segment| Caller::Expert.may_read(segment));
        if !readable {
            return Err(ExpertError::SharedWord { access: "read", address: field.address });
        }
    }
    let counted = write.outputs.iter().filter(|output| **output == OutputUse::Count).count();
    for integer in &write.integers {
        let own = map.segment_of(integer.address) == Some(Segment::Work)
            && map.base(Segment::Work) + work_word::EXPERT_FIRST <= integer.address;
        if !own {
            return Err(ExpertError::SharedWord { access: "write", address: integer.address });
        }
        if integer.weights.len() != counted {
            return Err(ExpertError::Weights { found: integer.weights.len(), expected: counted });
        }
    }
    Ok(())
}

/// Inputs from STATE planes and from the planes behind them that hold SHARED bits; outputs to their uses.
fn placement(config: &GenesisConfig, read: &ReadSpec, write: &WriteSpec) -> Result<Placement, ExpertError> {
    let state_bits = config.state_bits as usize;
    let written = write.outputs.iter().filter_map(|output| match output {
        OutputUse::State(bit) => Some(bit),
        _ => None,
    });
    if let Some(bit) = read.state_bits.iter().chain(written).find(|bit| state_bits <= usize::from(**bit)) {
        return Err(ExpertError::StateBit { bit: *bit, state_bits });
    }
    let shared_bits = read.inputs() - read.state_bits.len();
    let reads = read.state_bits.iter().copied().chain((0..shared_bits).map(|bit| (state_bits + bit) as u16));
    let mut counted = 0;
    let targets = write.outputs.iter().map(|output| match output {
        OutputUse::State(bit) => Target::Plane(*bit),
        OutputUse::Mask => Target::Guard,
        OutputUse::Count => {
            counted += 1;
            Target::Result(counted - 1)
        }
    });
    Ok(Placement { reads: reads.collect(), targets: targets.collect() })
}

#[cfg(test)]
mod tests;
