//! Every maximum of the machine, with the relations between them asserted beside the numbers.
//!
//! What is frozen per run lives in the configuration; these are the walls the configuration must stay within.
//! Clauses: MEM-3, VM-1, VM-5, VM-14.

/// Bits of an observation.
pub const OBSERVATION_BITS_MAX: usize = 256;
/// Actions of one world.
pub const ACTIONS_MAX: usize = 1_024;
/// Steps of one episode.
#[doc(alias = "H_episode_max")]
pub const EPISODE_STEPS_MAX: u32 = 65_536;
/// Lanes in one block: one AVX2 register per state bit.
#[doc(alias = "W")]
pub const LANES: usize = 256;
/// State bits of one lane.
#[doc(alias = "N_state_bits")]
pub const STATE_BITS_MAX: usize = 1_024;
/// Inputs of one expert's circuit.
#[doc(alias = "N_in_max")]
pub const CIRCUIT_INPUTS_MAX: usize = 512;
/// Outputs of one expert's circuit.
#[doc(alias = "N_out_max")]
pub const CIRCUIT_OUTPUTS_MAX: usize = 256;
/// Gates of one expert's circuit.
#[doc(alias = "G_gate_max")]
pub const CIRCUIT_GATES_MAX: usize = 8_192;
/// Monomials of one output in algebraic normal form.
#[doc(alias = "M_mono_max")]
pub const MONOMIALS_MAX: usize = 4_096;
/// Arms of one bucket: experts in a family's pool.
#[doc(alias = "K_exp")]
pub const ARMS_MAX: usize = 16;
/// Buckets of one family.
#[doc(alias = "B")]
pub const BUCKETS_MAX: usize = 1_024;
/// Visits at which all counts of a bucket are halved, which keeps every sum below 2^63.
pub const VISITS_HALVE_AT: u32 = 1 << 30;

const _: () = assert!(OBSERVATION_BITS_MAX.is_multiple_of(64));
const _: () = assert!(OBSERVATION_BITS_MAX <= CIRCUIT_INPUTS_MAX);
const _: () = assert!(CIRCUIT_INPUTS_MAX <= STATE_BITS_MAX);
const _: () = assert!(BUCKETS_MAX.is_power_of_two() && ARMS_MAX.is_power_of_two());
// The payload of an expert's identifier has ten bits for its bucket and ten for its place.
const _: () = assert!(BUCKETS_MAX <= 1 << 10 && ARMS_MAX <= 1 << 10);
// A sum of losses in [0, 1] over VISITS_HALVE_AT visits, with 32 fractional bits, and one more.
const _: () = assert!((VISITS_HALVE_AT as u128 + 1) << 32 < 1 << 63);
