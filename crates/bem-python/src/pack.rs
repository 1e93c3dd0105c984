//! Rows of numbers that are bits, as words. Must not know what the bits mean.

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;

/// Eight bytes of zeros and ones as eight bits, the first the lowest.
#[inline]
fn gather(bytes: u64) -> u64 {
    // Every product term that reaches the top byte comes from one bit, so that nothing carries.
    bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// One row of bytes into words that are zero; what is no bit of any byte.
fn pack_bytes(row: &[u8], packed: &mut [u64]) -> u64 {
    let (mut wrong, (whole, rest)) = (0, row.as_chunks::<8>());
    for (place, chunk) in whole.iter().enumerate() {
        let value = u64::from_le_bytes(*chunk);
        wrong |= value & 0xFEFE_FEFE_FEFE_FEFE;
        packed[place / 8] |= gather(value & 0x0101_0101_0101_0101) << (place % 8 * 8);
    }
    for (place, byte) in rest.iter().enumerate() {
        wrong |= u64::from(byte & 0xFE);
        let bit = whole.len() * 8 + place;
        packed[bit / 64] |= u64::from(byte & 1) << (bit % 64);
    }
    wrong
}

/// The same for wider numbers. A negative one is a large one without its sign.
fn pack_wide<T: Copy + Into<u64>>(row: &[T], packed: &mut [u64]) -> u64 {
    let (mut wrong, (whole, rest)) = (0, row.as_chunks::<64>());
    let place_all = |numbers: &[T], wrong: &mut u64| {
        let mut word = 0;
        for (place, number) in numbers.iter().enumerate() {
            let value: u64 = (*number).into();
            *wrong |= value;
            word |= (value & 1) << place;
        }
        word
    };
    for (chunk, word) in whole.iter().zip(packed.iter_mut()) {
        // A chunk of known length becomes wide instructions.
        *word = place_all(chunk.as_slice(), &mut wrong);
    }
    if !rest.is_empty() {
        packed[whole.len()] = place_all(rest, &mut wrong);
    }
    wrong & !1
}

/// All rows; nothing where a number is neither zero nor one, or where they do not lie one after the other.
fn pack_all<T: Element>(
    rows: &PyReadonlyArray2<'_, T>,
    words: usize,
    pack: impl Fn(&[T], &mut [u64]) -> u64,
) -> Option<(Vec<u64>, [usize; 2])> {
    let [count, width] = [rows.shape()[0], rows.shape()[1]];
    let words = words.clamp(width.div_ceil(64), 64);
    let numbers = rows.as_slice().ok()?;
    let mut packed = vec![0u64; count * words];
    let mut wrong = 0;
    if 0 < width {
        for (row, packed) in numbers.chunks_exact(width).zip(packed.chunks_exact_mut(words)) {
            wrong |= pack(row, packed);
        }
    }
    (wrong == 0).then_some((packed, [count, words]))
}

/// Packs rows of zeros and ones, unsigned numbers of any width, into words, the lowest bit first; nothing where a number is
/// neither.
#[pyfunction]
pub(crate) fn pack_rows<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    words: usize,
) -> PyResult<Option<Bound<'py, PyArray2<u64>>>> {
    let packed = if let Ok(rows) = rows.extract::<PyReadonlyArray2<'_, u8>>() {
        pack_all(&rows, words, pack_bytes)
    } else if let Ok(rows) = rows.extract::<PyReadonlyArray2<'_, u64>>() {
        pack_all(&rows, words, pack_wide)
    } else if let Ok(rows) = rows.extract::<PyReadonlyArray2<'_, u32>>() {
        pack_all(&rows, words, pack_wide)
    } else {
        let rows: PyReadonlyArray2<'_, u16> = rows.extract()?;
        pack_all(&rows, words, pack_wide)
    };
    packed.map(|(packed, shape)| PyArray1::from_vec(py, packed).reshape(shape)).transpose()
}
