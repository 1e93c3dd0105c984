//! Vectors for self-tests: what the policy's own circuit answers, one line a step.
//!
//! ```text
//! RESET OBSERVATION ACTION
//! ```
//!
//! RESET is 1 where an episode starts, OBSERVATION has one digit for every bit of the world, bit 0 first (a single 0 where
//! the world shows nothing), ACTION is the answer. Observations are drawn in four ways, so that functions which are rarely
//! true on even noise are met as well: even noise, few ones, few zeros, and the observation before with a few bits
//! changed.

use crate::Program;
use bem_base::environment::Bits;
use bem_base::prng::Prng;
use bem_synth::policy::Player;
use std::fmt::Write as _;

/// Vectors of a self-test when nothing else is said.
pub const VECTORS_DEFAULT: usize = 2_000;
/// The most vectors of a self-test.
pub const VECTORS_MAX: usize = 1_000_000;
/// An episode goes on for longer than this in one of so many steps.
pub(crate) const RESET_ONE_IN: u64 = 24;

/// The vectors; the same for the same policy and count.
pub fn vectors(program: &Program<'_>, count: usize) -> String {
    let mut prng = Prng::stream(0, "export/vectors");
    let mut player = Player::new(program.policy);
    let mut seen = Bits::ZERO;
    let mut text = String::new();
    for number in 0..count.min(VECTORS_MAX) {
        let is_start = number == 0 || prng.below(RESET_ONE_IN) == 0;
        if is_start {
            player.begin();
        }
        draw(&mut prng, program.policy.reads(), program.observation_bits, &mut seen);
        let shown = seen.to_text(program.observation_bits.max(1));
        let _ = writeln!(text, "{} {shown} {}", u8::from(is_start), player.act(&seen));
    }
    text
}

/// The next observation. Bits that the policy does not read are even noise in any case: they must not matter.
fn draw(prng: &mut Prng, reads: &[u16], bits: usize, seen: &mut Bits) {
    (0..bits).for_each(|bit| {
        if reads.binary_search(&(bit as u16)).is_err() {
            seen.set(bit, prng.bit());
        }
    });
    let count = reads.len() as u64;
    let manner = prng.below(4);
    match manner {
        _ if count == 0 => {}
        0 => reads.iter().for_each(|bit| seen.set(usize::from(*bit), prng.bit())),
        1 | 2 => {
            let rare = 1 + prng.below(count.min(4));
            for bit in reads {
                let is_rare = prng.below(count) < rare;
                seen.set(usize::from(*bit), is_rare == (manner == 1));
            }
        }
        _ => {
            for _ in 0..1 + prng.below(2) {
                let bit = usize::from(reads[prng.below(count) as usize]);
                seen.set(bit, !seen.get(bit));
            }
        }
    }
}
