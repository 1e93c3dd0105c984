//! Every maximum of images. What is read is held against these before anything is reserved.

/// Bytes of an index, a manifest or a configuration.
pub const JSON_BYTES_MAX: u64 = 4 << 20;
/// Bytes of one blob as it is stored.
pub const BLOB_BYTES_MAX: u64 = 1 << 34;
/// Bytes of one layer when it is unpacked.
pub const LAYER_BYTES_MAX: u64 = 1 << 36;
/// Layers of one image.
pub const LAYERS_MAX: usize = 127;
/// Manifests in one index.
pub const MANIFESTS_MAX: usize = 16_384;
/// Files in one layer.
pub const LAYER_FILES_MAX: usize = 1 << 20;
/// Letters of a file's name in a layer.
pub const PATH_BYTES_MAX: usize = 255;
/// Letters of a tag.
pub const TAG_BYTES_MAX: usize = 128;
/// Snapshots that one minute may have.
pub const TAGS_A_MINUTE_MAX: u32 = 1_000;
/// Bytes of a metrics file.
pub const METRICS_BYTES_MAX: usize = 1 << 16;

// Everything that an index may list must fit the bytes that an index may have, with some 256 bytes for each manifest.
const _: () = assert!((MANIFESTS_MAX as u64) * 256 <= JSON_BYTES_MAX);
