//! The bounds of what is served. Clause: VM-13.

/// Worlds at once, forgotten ones included.
pub const WORLDS_MAX: usize = 256;
/// Letters of a world's name.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes of an episode's name.
pub const EPISODE_BYTES_MAX: usize = 64;
/// Bytes of what a world says about its features.
pub const NOTE_BYTES_MAX: usize = 1 << 16;
/// Steps of an episode: each decision goes through those before it.
pub const HORIZON_MAX: u32 = 4_096;
/// Decisions after which a reward is too late, at most and by default.
pub const EXPIRE_AFTER_MAX: u32 = 1 << 20;
/// See [`EXPIRE_AFTER_MAX`].
pub const EXPIRE_AFTER_DEFAULT: u32 = 1 << 16;
/// Pairs of observation and action that may be forbidden.
pub const FORBIDDEN_MAX: usize = 4_096;
/// Inputs of one block of the ledger.
pub const BLOCK_INPUTS_MAX: usize = 512;
/// Complete episodes that wait before they are handed in.
pub const WAITING_MAX: usize = 1_024;
/// Points of the curve of what was earned.
pub const CURVE_POINTS_MAX: usize = 128;
/// Patches that are shown of a world.
pub const PATCHES_SHOWN_MAX: usize = 32;
/// The largest reward, so that no sum of an episode overflows.
pub const REWARD_MAX: i32 = 1 << 30;
/// Bytes of what a world may begin with: an input is one entry of the ledger.
pub const START_BYTES_MAX: usize = 3 << 18;
