//! Learning claims, with fixed seeds and horizons that fit a test run.
