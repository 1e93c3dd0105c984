//! Segment files: a header that says where in the history the file starts, then entries behind their lengths.
//!
//! The header carries the frontier of the tree, so recovery reads one segment and not all of them; nothing in it is
//! believed before the root that follows from it equals a signed one. Clauses: LOG-1, LOG-2.

use crate::chain::ChainHead;
use crate::error::{LedgerError, StoreError};
use crate::limits::ENTRY_BYTES_MAX;
use crate::merkle::Frontier;
use crate::store::Store;
use bem_base::digest::Digest;
use bem_base::encode::{DecodeError, Reader, Writer};

const MAGIC: &[u8; 8] = b"BEMSEGM1";
const HEADER_BYTES_MAX: usize = 88 + 64 * 32;
const READ_BYTES: usize = 1 << 18;
/// Bytes of the length in front of an entry.
pub(crate) const LENGTH_BYTES: usize = 4;

/// The name of a segment's file.
pub fn segment_name(number: u32) -> String {
    format!("segment-{number:08}.log")
}

/// The number in a segment's name, if it is one.
pub fn segment_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("segment-")?.strip_suffix(".log")?;
    let number = digits.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}

/// Where in the history a segment starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Position among the segments.
    pub number: u32,
    /// Whose history.
    pub instance: Digest,
    /// Chain head before the first entry.
    pub head: ChainHead,
    /// Tree before the first entry; its size is the index of that entry.
    pub frontier: Frontier,
}

impl SegmentHeader {
    /// The bytes at the start of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.raw(MAGIC);
        writer.u32(self.number);
        writer.length(self.frontier.peaks().len());
        writer.u64(self.frontier.size());
        writer.raw(self.instance.as_bytes());
        writer.raw(self.head.digest().as_bytes());
        self.frontier.peaks().iter().for_each(|peak| writer.raw(peak.as_bytes()));
        writer.into_bytes()
    }

    /// Reads a header and returns it with its length.
    pub fn decode(bytes: &[u8]) -> Result<(SegmentHeader, usize), DecodeError> {
        let mut reader = Reader::new(bytes);
        let error = reader.error("not a segment file");
        if reader.raw(8)? != MAGIC {
            return Err(error);
        }
        let number = reader.u32()?;
        let error = reader.error("a number of peaks that does not go with the first entry");
        let count = reader.u32()?;
        let size = reader.u64()?;
        if count != size.count_ones() {
            return Err(error);
        }
        let instance = Digest::decode(&mut reader)?;
        let head = ChainHead::from_digest(Digest::decode(&mut reader)?);
        let peaks = (0..count).map(|_| Digest::decode(&mut reader)).collect::<Result<_, _>>()?;
        let frontier = Frontier::from_peaks(size, peaks).expect("the count was checked");
        Ok((SegmentHeader { number, instance, head, frontier }, reader.position()))
    }
}

/// Reads a segment from its start, holding one buffer of it in memory.
#[derive(Debug)]
pub struct SegmentReader {
    name: String,
    header: SegmentHeader,
    length: u64,
    /// Offset in the file of the next frame.
    position: u64,
    buffer: Vec<u8>,
    /// Offset in the file of the buffer's first byte.
    buffer_start: u64,
}

/// What stands at the reader's position.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole entry.
    Entry(&'a [u8]),
    /// Nothing: the file ends here.
    End,
    /// Bytes that are no whole entry.
    Torn(&'static str),
}

impl SegmentReader {
    /// Opens a segment and reads its header.
    pub fn open<S: Store>(store: &mut S, number: u32) -> Result<SegmentReader, LedgerError> {
        let name = segment_name(number);
        let length = store.length(&name)?;
        let mut buffer = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(HEADER_BYTES_MAX)];
        store.read(&name, 0, &mut buffer)?;
        let (header, position) = SegmentHeader::decode(&buffer)
            .map_err(|source| LedgerError::File { name: name.clone(), source })?;
        if header.number != number {
            let source = DecodeError { position: 8, reason: "a segment number that is not the file's" };
            return Err(LedgerError::File { name, source });
        }
        let position = position as u64;
        Ok(SegmentReader { name, header, length, position, buffer, buffer_start: 0 })
    }

    /// The header, as read.
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// Offset in the file of the next frame.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The next frame. After `Torn` the reader stays where it is.
    pub fn next<S: Store>(&mut self, store: &mut S) -> Result<Frame<'_>, StoreError> {
        let left = self.length - self.position;
        if left == 0 {
            return Ok(Frame::End);
        }
        if left < LENGTH_BYTES as u64 {
            return Ok(Frame::Torn("the file ends inside a length"));
        }
        let at = self.fill(store, LENGTH_BYTES)?;
        let length: [u8; LENGTH_BYTES] = self.buffer[at..at + LENGTH_BYTES].try_into().expect("four bytes");
        let length = u32::from_le_bytes(length) as usize;
        if ENTRY_BYTES_MAX < length {
            return Ok(Frame::Torn("a length greater than an entry may have"));
        }
        if left - (LENGTH_BYTES as u64) < length as u64 {
            return Ok(Frame::Torn("the file ends inside an entry"));
        }
        let at = self.fill(store, LENGTH_BYTES + length)? + LENGTH_BYTES;
        self.position += (LENGTH_BYTES + length) as u64;
        Ok(Frame::Entry(&self.buffer[at..at + length]))
    }

    /// Makes the next `count` bytes, which the file has, available and returns where they start in the buffer.
    fn fill<S: Store>(&mut self, store: &mut S, count: usize) -> Result<usize, StoreError> {
        let at = (self.position - self.buffer_start) as usize;
        if at + count <= self.buffer.len() {
            return Ok(at);
        }
        let left = usize::try_from(self.length - self.position).unwrap_or(usize::MAX);
        self.buffer.resize(left.min(READ_BYTES.max(count)), 0);
        self.buffer_start = self.position;
        store.read(&self.name, self.position, &mut self.buffer)?;
        Ok(0)
    }
}

/// The numbers of all segment files, ascending.
pub fn list_segments<S: Store>(store: &mut S) -> Result<Vec<u32>, StoreError> {
    let mut numbers: Vec<u32> = store.list()?.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
