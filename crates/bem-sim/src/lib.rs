//! Faulty stores, a reference model and seeded crashes, for finding bugs before users do.
