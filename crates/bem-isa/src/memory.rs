//! What a program can address: the same words as the machine's STATE and SHARED, page by page under a permission.
//!
//! Addresses count bytes. STATE starts at [`STATE_START`], SHARED at zero. A page of 64 words belongs to one
//! segment; a program declares the segments it reads and writes, and anything else traps.
//! Clauses: ISA-2, MEM-2; decision D-10.

use crate::trap::Cause;
use bem_base::lanes::LaneWord;

/// Where STATE begins; SHARED lies below.
pub const STATE_START: u64 = 1 << 40;
/// Words in a page: the grain of permissions.
pub const PAGE_WORDS: usize = 64;

/// What a program may do with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    None,
    /// Loads only.
    Read,
    /// Loads and stores.
    Write,
}

/// A window on STATE and SHARED with permissions.
#[derive(Debug)]
pub struct Memory<'a> {
    shared: &'a mut [u64],
    state: &'a mut [u64],
    pages: Vec<Access>,
    state_access: Access,
}

impl<'a> Memory<'a> {
    /// A window that allows nothing yet.
    pub fn new(shared: &'a mut [u64], state: &'a mut [u64]) -> Memory<'a> {
        let pages = vec![Access::None; shared.len().div_ceil(PAGE_WORDS)];
        Memory { shared, state, pages, state_access: Access::None }
    }

    /// A window that allows everything: for programs that bring their own memory.
    pub fn open(shared: &'a mut [u64], state: &'a mut [u64]) -> Memory<'a> {
        let mut memory = Memory::new(shared, state);
        memory.pages.fill(Access::Write);
        memory.state_access = Access::Write;
        memory
    }

    /// Allows access to `words` words of SHARED from the word at `start` on; both must fall on page borders.
    pub fn allow(&mut self, start: usize, words: usize, access: Access) {
        assert!(start.is_multiple_of(PAGE_WORDS), "segment start {start} on a page border");
        let pages = start / PAGE_WORDS..(start + words).div_ceil(PAGE_WORDS);
        self.pages[pages].fill(access);
    }

    /// Allows access to STATE.
    pub fn allow_state(&mut self, access: Access) {
        self.state_access = access;
    }

    /// The words of SHARED.
    pub fn shared(&self) -> &[u64] {
        self.shared
    }

    /// Finds the place of `count` words at a byte address, or says why not.
    #[inline]
    fn locate(&self, address: u64, count: usize, wanted: Access) -> Result<Place, Cause> {
        if !address.is_multiple_of(8 * count as u64) {
            return Err(Cause::Misaligned);
        }
        // A run of 1 or 4 aligned words never crosses a page, so one permission decides.
        let (index, words, access) = if address < STATE_START {
            let index = (address / 8) as usize;
            (index, self.shared.len(), self.pages.get(index / PAGE_WORDS).copied().unwrap_or(Access::None))
        } else {
            (((address - STATE_START) / 8) as usize, self.state.len(), self.state_access)
        };
        if words < index.saturating_add(count) || access == Access::None {
            return Err(Cause::OutOfSegment);
        }
        if access < wanted {
            return Err(Cause::ReadOnly);
        }
        Ok(if address < STATE_START { Place::Shared(index) } else { Place::State(index) })
    }

    /// Loads a word.
    #[inline]
    pub fn load(&self, address: u64) -> Result<u64, Cause> {
        Ok(match self.locate(address, 1, Access::Read)? {
            Place::Shared(index) => self.shared[index],
            Place::State(index) => self.state[index],
        })
    }

    /// Stores a word.
    #[inline]
    pub fn store(&mut self, address: u64, value: u64) -> Result<(), Cause> {
        match self.locate(address, 1, Access::Write)? {
            Place::Shared(index) => self.shared[index] = value,
            Place::State(index) => self.state[index] = value,
        }
        Ok(())
    }

    /// Loads 256 lanes.
    #[inline]
    pub fn load_vector(&self, address: u64) -> Result<LaneWord, Cause> {
        let words = match self.locate(address, 4, Access::Read)? {
            Place::Shared(index) => &self.shared[index..index + 4],
            Place::State(index) => &self.state[index..index + 4],
        };
        Ok(LaneWord([words[0], words[1], words[2], words[3]]))
    }

    /// Stores 256 lanes.
    #[inline]
    pub fn store_vector(&mut self, address: u64, value: LaneWord) -> Result<(), Cause> {
        let words = match self.locate(address, 4, Access::Write)? {
            Place::Shared(index) => &mut self.shared[index..index + 4],
            Place::State(index) => &mut self.state[index..index + 4],
        };
        words.copy_from_slice(&value.0);
        Ok(())
    }
}

/// Where an address leads: a word of SHARED or of STATE.
enum Place {
    Shared(usize),
    State(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_outside_the_declared_segments_is_refused() {
        let (mut shared, mut state) = ([0; 256], [0; 8]);
        let mut memory = Memory::new(&mut shared, &mut state);
        memory.allow(64, 64, Access::Read);
        memory.allow(128, 64, Access::Write);
        assert_eq!(memory.load(0), Err(Cause::OutOfSegment));
        assert_eq!(memory.load(64 * 8), Ok(0));
        assert_eq!(memory.store(64 * 8, 1), Err(Cause::ReadOnly));
        assert_eq!(memory.store(128 * 8, 1), Ok(()));
        assert_eq!(memory.load(192 * 8), Err(Cause::OutOfSegment));
        assert_eq!(memory.load(STATE_START), Err(Cause::OutOfSegment));
        memory.allow_state(Access::Write);
        assert_eq!(memory.store_vector(STATE_START + 32, LaneWord::ONES), Ok(()));
        assert_eq!(memory.load_vector(STATE_START + 32), Ok(LaneWord::ONES));
        assert_eq!(memory.load_vector(STATE_START + 64), Err(Cause::OutOfSegment));
        assert_eq!(memory.load(u64::MAX - 7), Err(Cause::OutOfSegment));
    }

    #[test]
    fn crooked_addresses_are_refused() {
        let (mut shared, mut state) = ([0; 64], [0; 8]);
        let mut memory = Memory::open(&mut shared, &mut state);
        assert_eq!(memory.load(4), Err(Cause::Misaligned));
        assert_eq!(memory.load_vector(8), Err(Cause::Misaligned));
        assert_eq!(memory.store(1, 0), Err(Cause::Misaligned));
    }
}
