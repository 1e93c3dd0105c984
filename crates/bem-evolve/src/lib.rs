//! Changes to structure: patches, their conditions, measured improvement and application.

pub mod improvement;
