//! Rows of bytes that are bits, as words. Must not know what the bits mean.

use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;

/// Eight bytes of zeros and ones as eight bits, the first the lowest.
#[inline]
fn gather(bytes: u64) -> u64 {
    // Every product term that reaches the top byte comes from one bit, so that nothing carries.
    bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Packs rows of zeros and ones into words, the lowest bit first; nothing where a byte is neither.
#[pyfunction]
pub(crate) fn pack_rows<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, u8>,
    words: usize,
) -> PyResult<Option<Bound<'py, PyArray2<u64>>>> {
    let [count, width] = [rows.shape()[0], rows.shape()[1]];
    let words = words.clamp(width.div_ceil(64), 64);
    let Ok(bytes) = rows.as_slice() else { return Ok(None) };
    let mut packed = vec![0u64; count * words];
    let mut wrong = 0u8;
    if 0 < width {
        for (row, packed) in bytes.chunks_exact(width).zip(packed.chunks_exact_mut(words)) {
            let (whole, rest) = row.as_chunks::<8>();
            for (place, chunk) in whole.iter().enumerate() {
                let value = u64::from_le_bytes(*chunk);
                wrong |= u8::from(value & 0xFEFE_FEFE_FEFE_FEFE != 0);
                packed[place / 8] |= gather(value & 0x0101_0101_0101_0101) << (place % 8 * 8);
            }
            for (place, byte) in rest.iter().enumerate() {
                wrong |= byte & 0xFE;
                let bit = whole.len() * 8 + place;
                packed[bit / 64] |= u64::from(byte & 1) << (bit % 64);
            }
        }
    }
    if wrong != 0 {
        return Ok(None);
    }
    Ok(Some(PyArray1::from_vec(py, packed).reshape([count, words])?))
}
