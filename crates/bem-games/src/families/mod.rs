//! One file a family. To add one: copy `parity.rs`, list it here and in `catalog.rs`, add its playthrough.
