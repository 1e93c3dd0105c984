//! The experts that a machine starts with: identity, flip, permute, counter, NOOP and one constant per action.
//!
//! They can express almost no policy; everything better has to be learned. Must not know any game: a shape is all
//! they are made from. Clauses: LOG-6, VM-1.

use crate::expert::{ExpertParts, OutputUse, Profile, ReadSpec, RoutingMetadata, WriteSpec};
use crate::layout::StateLayout;
use bem_circuit::netlist::{Builder, Netlist, NetlistError, Signal};

/// A boot expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootExpert {
    /// Leaves everything as it is: the action of the step before, or action 0 at the start of an episode.
    #[doc(alias = "NOOP")]
    Noop,
    /// The action is the number in the first observation bits.
    Identity,
    /// The action is the complement of the first observation bits.
    Flip,
    /// The action is the number in the first observation bits, the bits in reversed order.
    Permute,
    /// The action is the number of the step within the episode.
    Counter,
    /// Always this action.
    Constant(u16),
}

/// Builds the parts of a boot expert for a layout, within any bounds the configuration may have.
pub fn parts(layout: &StateLayout, expert: BootExpert) -> Result<ExpertParts, NetlistError> {
    let width = layout.action().len();
    let first_bits = width.min(layout.observation().len());
    let action_bits = || layout.action().map(|bit| OutputUse::State(bit as u16)).collect::<Vec<_>>();
    let observation_bits: Vec<u16> = layout.observation().take(first_bits).map(|bit| bit as u16).collect();
    let plain = |state_bits: Vec<u16>, outputs: Vec<OutputUse>, circuit: Netlist, sticky: bool| ExpertParts {
        read: ReadSpec { state_bits, shared: Vec::new() },
        write: WriteSpec { outputs, integers: Vec::new() },
        circuit,
        profile: Profile { sticky },
        routing: RoutingMetadata::default(),
    };
    // Action planes that no observation bit reaches are false.
    let padded = |mut signals: Vec<Signal>| {
        signals.resize(width, Signal::FALSE);
        signals
    };
    Ok(match expert {
        BootExpert::Noop => plain(Vec::new(), Vec::new(), Netlist::new(0, Vec::new(), Vec::new())?, false),
        BootExpert::Constant(action) => {
            let outputs = (0..width).map(|bit| Signal::constant(action >> bit & 1 == 1)).collect();
            plain(Vec::new(), action_bits(), Netlist::new(0, Vec::new(), outputs)?, false)
        }
        BootExpert::Identity => {
            let outputs = padded((0..first_bits).map(Signal::input).collect());
            plain(observation_bits, action_bits(), Netlist::new(first_bits, Vec::new(), outputs)?, false)
        }
        BootExpert::Flip => {
            let mut builder = Builder::new(first_bits);
            let flipped = (0..first_bits).map(|bit| builder.not(Signal::input(bit))).collect();
            plain(observation_bits, action_bits(), builder.finish(&padded(flipped))?, false)
        }
        BootExpert::Permute => {
            let outputs = padded((0..first_bits).rev().map(Signal::input).collect());
            plain(observation_bits, action_bits(), Netlist::new(first_bits, Vec::new(), outputs)?, false)
        }
        BootExpert::Counter => {
            let memory: Vec<u16> = layout.memory().take(width).map(|bit| bit as u16).collect();
            let mut builder = Builder::new(memory.len());
            let mut carry = Signal::TRUE;
            let mut next = Vec::new();
            for bit in 0..memory.len() {
                next.push(builder.xor(Signal::input(bit), carry));
                carry = builder.and(Signal::input(bit), carry);
            }
            let now = padded((0..memory.len()).map(Signal::input).collect());
            let outputs: Vec<Signal> = now.into_iter().chain(next).collect();
            let mut uses = action_bits();
            uses.extend(memory.iter().map(|bit| OutputUse::State(*bit)));
            plain(memory, uses, builder.finish(&outputs)?, true)
        }
    })
}

/// The boot experts of a family: NOOP, identity, flip, permute and counter, then constants while there is room.
pub fn experts(actions: u16, room: usize) -> Vec<BootExpert> {
    let general =
        [BootExpert::Noop, BootExpert::Identity, BootExpert::Flip, BootExpert::Permute, BootExpert::Counter];
    general.into_iter().chain((0..actions).map(BootExpert::Constant)).take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GenesisConfig;
    use crate::expert::Expert;
    use bem_base::environment::Shape;
    use bem_base::ids::ObjectId;
    use bem_base::lanes::LaneWord;
    use bem_circuit::interpret::Interpreted;
    use bem_circuit::placed::{Evaluate, Scratch};

    fn layout(observation_bits: u16, actions: u16) -> StateLayout {
        let shape = Shape {
            observation_bits,
            actions,
            horizon: 8,
            reward_min: 0,
            reward_max: 1,
            return_min: 0,
            return_max: 8,
            fields: Vec::new(),
        };
        StateLayout::new(&GenesisConfig::default(), &shape).unwrap()
    }

    /// The actions that an expert takes on these observations within one episode.
    fn actions(layout: &StateLayout, expert: BootExpert, observations: &[u64]) -> Vec<u64> {
        let config = GenesisConfig::default();
        let expert = Expert::new(&config, ObjectId::expert(0, 1), parts(layout, expert).unwrap()).unwrap();
        let evaluator = Interpreted::new(expert.placed().clone());
        let mut state = crate::memory::state::LaneState::new(layout.state_bits());
        let mut scratch = Scratch::new();
        let act = |observation: &u64| {
            for bit in layout.observation() {
                state.set(bit, 9, observation >> bit & 1 == 1);
            }
            evaluator.evaluate(state.planes_mut(), &LaneWord::ONES, &mut [], &mut scratch);
            state.field(layout.action().start, layout.action().len(), 9)
        };
        observations.iter().map(act).collect()
    }

    #[test]
    fn boot_experts_do_what_their_names_say() {
        let layout = layout(5, 8);
        let seen = [0b10_001, 0b00_110, 0b01_111];
        assert_eq!(actions(&layout, BootExpert::Noop, &seen), [0, 0, 0]);
        assert_eq!(actions(&layout, BootExpert::Identity, &seen), [0b001, 0b110, 0b111]);
        assert_eq!(actions(&layout, BootExpert::Flip, &seen), [0b110, 0b001, 0b000]);
        assert_eq!(actions(&layout, BootExpert::Permute, &seen), [0b100, 0b011, 0b111]);
        assert_eq!(actions(&layout, BootExpert::Counter, &seen), [0, 1, 2]);
        assert_eq!(actions(&layout, BootExpert::Constant(6), &seen), [6, 6, 6]);
    }

    #[test]
    fn a_world_without_observations_or_choices_still_has_boot_experts() {
        for (bits, count) in [(0, 4), (0, 1), (1, 16)] {
            let layout = layout(bits, count);
            for expert in experts(count, 16) {
                assert_eq!(actions(&layout, expert, &[1]).len(), 1);
            }
        }
        assert_eq!(experts(100, 16).len(), 16);
    }
}
