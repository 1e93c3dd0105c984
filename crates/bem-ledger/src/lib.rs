//! What happened: entries, chain, tree, checkpoints, storage, snapshots and audit.
