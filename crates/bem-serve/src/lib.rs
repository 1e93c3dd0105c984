//! The decision service over HTTP.
