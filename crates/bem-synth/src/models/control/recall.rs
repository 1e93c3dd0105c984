//! What is carried from step to step: a small machine over what was seen and done.
//!
//! It begins every episode in state zero and moves by pairs of observation and own action, never by rewards, which a
//! circuit does not see. Where the world hides something, the observation together with the state of such a machine
//! may tell what the observation alone does not. How one is found: [`super::memory_search`].
//! Must not know games. Clauses: SCC-2.

use bem_base::encode::{DecodeError, Reader, Writer};
use bem_base::environment::{Bits, OBSERVATION_WORDS};
use std::collections::BTreeMap;

/// States at most.
pub const RECALL_STATES_MAX: usize = 32;
/// Observations that move it, at most.
pub const RECALL_SYMBOLS_MAX: usize = 64;

/// A machine over pairs of observation and own action.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recall {
    symbols: BTreeMap<Bits, u32>,
    actions: u16,
    states: u8,
    /// The next state at `(state * symbols + symbol) * actions + action`, symbols in ascending order.
    next: Vec<u8>,
}

impl Recall {
    /// A machine over these observations, ascending; `next` as in the field of that name.
    pub fn new(observations: &[Bits], actions: u16, states: u8, next: Vec<u8>) -> Recall {
        let symbols: BTreeMap<Bits, u32> = observations.iter().copied().zip(0..).collect();
        assert_eq!(next.len(), usize::from(states) * symbols.len() * usize::from(actions));
        assert!(next.iter().all(|state| *state < states));
        Recall { symbols, actions, states, next }
    }

    /// How many states there are.
    pub fn states(&self) -> usize {
        usize::from(self.states)
    }

    /// Actions are below this.
    pub fn actions(&self) -> u16 {
        self.actions
    }

    /// The state after a step; what was never seen when the machine was found changes nothing.
    pub fn after(&self, state: u32, observation: &Bits, action: u16) -> u32 {
        let Some(symbol) = self.symbols.get(observation) else { return state };
        let row = state as usize * self.symbols.len() + *symbol as usize;
        u32::from(self.next[row * usize::from(self.actions) + usize::from(action)])
    }

    /// Writes the canonical bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u16(self.actions);
        writer.u8(self.states);
        writer.length(self.symbols.len());
        self.symbols.keys().flat_map(|seen| seen.0).for_each(|word| writer.u64(word));
        writer.raw(&self.next);
    }

    /// Reads canonical bytes back.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Recall, DecodeError> {
        let (actions, states) = (reader.u16()?, reader.u8()?);
        let count = reader.length(8 * OBSERVATION_WORDS)?;
        let mut observations = vec![Bits::ZERO; count];
        for word in observations.iter_mut().flat_map(|seen| &mut seen.0) {
            *word = reader.u64()?;
        }
        let is_ascending = observations.windows(2).all(|pair| pair[0] < pair[1]);
        let fits = count <= RECALL_SYMBOLS_MAX && (1..=RECALL_STATES_MAX).contains(&usize::from(states));
        if !is_ascending || !fits {
            return Err(reader.error("a recalling machine out of bounds"));
        }
        let size = usize::from(states) * count * usize::from(actions);
        let next = (0..size).map(|_| reader.u8()).collect::<Result<Vec<u8>, _>>()?;
        if next.iter().any(|state| states <= *state) {
            return Err(reader.error("a state that the recalling machine does not have"));
        }
        Ok(Recall::new(&observations, actions, states, next))
    }
}
