//! Canonical bytes: one encoding for everything that is hashed, stored or sent.
//!
//! Little-endian, fixed widths, length prefixes of 32 bits; no padding and no choice, so a value has one
//! encoding. The reader is bounded: a length is checked against what is left before anything is allocated,
//! and every error names the byte where it happened. Clauses: LOG-1, LOG-2.

/// Why bytes could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {position}")]
pub struct DecodeError {
    /// Offset from the start of the input.
    pub position: usize,
    /// What was wrong, in lower case.
    pub reason: &'static str,
}

/// Appends values to a growing byte string.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// One byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// Two bytes.
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Four bytes, two's complement.
    pub fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes, two's complement.
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A count that a reader will check: four bytes. More than 2^32 - 1 items is a bug.
    pub fn length(&mut self, value: usize) {
        self.u32(u32::try_from(value).expect("lengths fit 32 bits"));
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self, value: &[u8]) {
        self.length(value.len());
        self.bytes.extend_from_slice(value);
    }

    /// Text behind its length in bytes.
    pub fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// Bytes as they are, without a length: for fields of fixed size.
    pub fn raw(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    /// What was written so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Everything that was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads values back, never past the end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, position: 0 }
    }

    /// An error at the current position.
    pub fn error(&self, reason: &'static str) -> DecodeError {
        DecodeError { position: self.position, reason }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Offset of the next byte.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next `count` bytes as they are.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        if self.remaining() < count {
            return Err(self.error("the input ends too early"));
        }
        let start = self.position;
        self.position += count;
        Ok(&self.bytes[start..self.position])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        Ok(self.raw(N)?.try_into().expect("raw returns the count asked for"))
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// One byte that must be 0 or 1.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        let error = self.error("a truth value that is neither 0 nor 1");
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(error),
        }
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Four bytes, two's complement.
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_le_bytes)
    }

    /// Eight bytes, two's complement.
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_le_bytes)
    }

    /// A count of items that each take at least `item_size_min` bytes, so that a forged count cannot make
    /// the caller reserve more than the input could hold.
    pub fn length(&mut self, item_size_min: usize) -> Result<usize, DecodeError> {
        let error = self.error("a length greater than what is left");
        let count = self.u32()? as usize;
        if self.remaining() / item_size_min.max(1) < count {
            return Err(error);
        }
        Ok(count)
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let count = self.length(1)?;
        self.raw(count)
    }

    /// Text behind its length; it must be UTF-8.
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        let error = self.error("text that is not UTF-8");
        core::str::from_utf8(self.bytes()?).map_err(|_| error)
    }

    /// Ends the reading: anything left over is an error, so that a value has no second spelling.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.error("bytes after the end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_written() {
        let mut writer = Writer::new();
        writer.u8(1);
        writer.bool(true);
        writer.u16(2);
        writer.u32(3);
        writer.u64(4);
        writer.i32(-5);
        writer.i64(-6);
        writer.text("seven");
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.bool(), Ok(true));
        assert_eq!(reader.u16(), Ok(2));
        assert_eq!(reader.u32(), Ok(3));
        assert_eq!(reader.u64(), Ok(4));
        assert_eq!(reader.i32(), Ok(-5));
        assert_eq!(reader.i64(), Ok(-6));
        assert_eq!(reader.text(), Ok("seven"));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn a_forged_length_is_refused_before_anything_is_reserved() {
        let bytes = u32::MAX.to_le_bytes();
        let error = Reader::new(&bytes).length(1).unwrap_err();
        assert_eq!(error.to_string(), "a length greater than what is left at byte 0");
    }

    #[test]
    fn trailing_bytes_and_loose_truth_values_are_refused() {
        assert!(Reader::new(&[0]).finish().is_err());
        assert!(Reader::new(&[2]).bool().is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_input_makes_the_reader_panic(bytes in proptest::collection::vec(0u8.., 0..64)) {
            let mut reader = Reader::new(&bytes);
            let _ = reader.text();
            let _ = reader.length(8);
            let _ = reader.u64();
            let _ = reader.bool();
        }
    }
}
