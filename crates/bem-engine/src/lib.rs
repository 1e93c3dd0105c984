//! The whole deterministic machine: fast, mid and slow path over one task or the ladder.
