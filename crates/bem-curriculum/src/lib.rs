//! The phased commitment curriculum: grid, gate, latch, closure, phases and arms.
