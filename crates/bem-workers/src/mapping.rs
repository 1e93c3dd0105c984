//! Memory shared with workers: a sealed memory file, mapped as atomic words, with bells to sleep on.
//!
//! The seals forbid to shrink or grow it, so that no worker can cut it off under the machine. All access is by atomic words;
//! this file is the only one that turns a mapping into a slice. Clause: TOOL-3; decision D-28.

use anyhow::{Context, Result, bail};
use bem_tools::layout::{MAPPING_WORDS, Mapping};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::thread::futex;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A mapping with its file.
pub struct Shared {
    file: OwnedFd,
    map: MmapRaw,
    /// Waits that sleep at once, and how many come after the next time that giving way takes long.
    skips: AtomicU32,
    penalty: AtomicU32,
}

/// How often a waiter gives way before it sleeps.
const YIELDS: u32 = 8;
/// How long that may take. On a machine with more work than cores the others take their turn instead, for milliseconds.
const QUICK: Duration = Duration::from_micros(50);
/// Waits without giving way after it took long; as many again with each time that it does.
const SKIPS_MAX: u32 = 4_096;
const BYTES: usize = 8 * MAPPING_WORDS;

impl Shared {
    /// A new one, sealed.
    pub fn create() -> Result<Shared> {
        let file = memfd_create("bem-tool-bus", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .context("memory for the tool bus cannot be had")?;
        ftruncate(&file, BYTES as u64).context("memory for the tool bus cannot be had")?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .context("the memory of the tool bus cannot be sealed")?;
        Shared::map(file)
    }

    /// One that was passed; it must be sealed and as large as it should be.
    pub fn open(file: OwnedFd) -> Result<Shared> {
        let seals = fcntl_get_seals(&file).context("what was passed is no sealed memory")?;
        let size = rustix::fs::fstat(&file).context("what was passed has no size")?.st_size;
        if !seals.contains(SealFlags::SHRINK) || size != BYTES as i64 {
            bail!(
                "what was passed is no mapping of a tool bus: {size} bytes instead of {BYTES}, or not sealed"
            );
        }
        Shared::map(file)
    }

    fn map(file: OwnedFd) -> Result<Shared> {
        let map = MmapOptions::new().len(BYTES).map_raw(&file).context("memory cannot be mapped")?;
        Ok(Shared { file, map, skips: AtomicU32::new(0), penalty: AtomicU32::new(0) })
    }

    /// The file, to be passed on.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn bell(&self, word: usize) -> &AtomicU32 {
        let words: &[AtomicU64] = self.words();
        let place: *const AtomicU64 = &words[word];
        // SAFETY: the low half of a word on a little-endian machine; it lives as long as `self` and is touched by atomic
        // operations only. On other machines the build fails below.
        #[expect(unsafe_code, reason = "the kernel sleeps on 32 bits")]
        unsafe {
            &*place.cast::<AtomicU32>()
        }
    }

    /// Lets others work for a moment; whether the bell was rung meanwhile. Where it pays, no side sleeps in the kernel.
    fn give_way(&self, bell: usize, value: u32) -> bool {
        let is_rung = || self.words()[bell].load(Ordering::Relaxed) as u32 != value;
        let skips = self.skips.load(Ordering::Relaxed);
        if 0 < skips {
            self.skips.store(skips - 1, Ordering::Relaxed);
            return is_rung();
        }
        let began = Instant::now();
        for _ in 0..YIELDS {
            if is_rung() {
                break;
            }
            std::thread::yield_now();
        }
        let penalty = match began.elapsed() <= QUICK {
            true => 0,
            false => (2 * self.penalty.load(Ordering::Relaxed) + 64).min(SKIPS_MAX),
        };
        self.penalty.store(penalty, Ordering::Relaxed);
        self.skips.store(penalty, Ordering::Relaxed);
        is_rung()
    }

    /// Sleeps until the bell is rung, unless it no longer has this value.
    pub fn sleep(&self, bell: usize, asleep: usize, value: u32, patience: Duration) {
        if self.give_way(bell, value) {
            return;
        }
        self.words()[asleep].fetch_add(1, Ordering::SeqCst);
        let timeout = rustix::thread::Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        // Whether it was rung, has changed already or time is up: the caller looks again.
        let _ = futex::wait(self.bell(bell), futex::Flags::empty(), value, Some(&timeout));
        let _ = self.words()[asleep]
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "bells are the low halves of words");

impl Mapping for Shared {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has MAPPING_WORDS words (the file is sealed against shrinking), is aligned to a page, lives as
        // long as `self`, and is only ever touched as atomic words; whoever else maps it can change values, not validity.
        #[expect(unsafe_code, reason = "shared memory is a pointer")]
        unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().cast::<AtomicU64>(), MAPPING_WORDS)
        }
    }

    fn wake(&self, bell: usize) {
        let _ = futex::wake(self.bell(bell), futex::Flags::empty(), i32::MAX as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_cannot_be_cut_off_and_is_seen_by_both_sides() {
        let shared = Shared::create().unwrap();
        let passed = Shared::open(shared.file().try_clone_to_owned().unwrap()).unwrap();
        shared.words()[77].store(5, Ordering::Relaxed);
        assert_eq!(passed.words()[77].load(Ordering::Relaxed), 5);
        assert!(ftruncate(passed.file(), 0).is_err(), "it is sealed");
        let plain = memfd_create("plain", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(Shared::open(plain).is_err());
    }
}
