//! The bytes of a segment file: its header, and the frame around each record.
//!
//! ```text
//! segment   = header, batch*
//! header    = magic 8 · format version u32 · first sequence u64 · log id u64 · crc u32           (32 bytes)
//! batch     = record+, the records of one `sync`; the last one carries the batch-end bit
//! record    = payload length u32 · payload crc u32 · sequence u64 · place u32 · header crc u32 · payload
//! place     = index in the batch (31 bits), batch-end bit (the highest)
//! ```
//!
//! All integers are little-endian. A record's header has a checksum of its own, so that a length is trusted before
//! it is followed, and so that the search for later records in a damaged segment costs the same for each byte.
//!
//! The log id, drawn at random when the log is created, stands in each segment and enters each record's header
//! checksum. Bytes of another log (recycled disk blocks, a log stored as a value in a record) therefore never pass
//! for records of this one.

use super::log_error::HeaderProblem;

pub(super) const SEGMENT_HEADER_BYTES: usize = 32;
pub(super) const RECORD_HEADER_BYTES: usize = 24;
pub(super) const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"TIDELOG\n";
const BATCH_END: u32 = 1 << 31;
/// Magic, version and first sequence: the part of a segment header that its name determines.
const DETERMINED_BYTES: usize = 20;

/// The head of one record, as decoded from a frame whose header checksum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) payload_bytes: u32,
    pub(super) payload_crc: u32,
    pub(super) sequence: u64,
    /// Place in its batch, from 0.
    pub(super) batch_index: u32,
    /// Whether the batch ends with this record.
    pub(super) batch_end: bool,
}

impl RecordHeader {
    pub(super) fn encode(self, log_id: u64) -> [u8; RECORD_HEADER_BYTES] {
        assert!(self.batch_index < BATCH_END, "the index of a record in its batch takes 31 bits");
        let place = self.batch_index | if self.batch_end { BATCH_END } else { 0 };
        let mut bytes = [0; RECORD_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&place.to_le_bytes());
        let crc = salted_crc(log_id, &bytes[..20]);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` when the checksum does not hold, or when the place in the batch contradicts the sequence.
    pub(super) fn decode(bytes: &[u8; RECORD_HEADER_BYTES], log_id: u64) -> Option<RecordHeader> {
        if read_u32(bytes, 20) != salted_crc(log_id, &bytes[..20]) {
            return None;
        }
        let place = read_u32(bytes, 16);
        let header = RecordHeader {
            payload_bytes: read_u32(bytes, 0),
            payload_crc: read_u32(bytes, 4),
            sequence: read_u64(bytes, 8),
            batch_index: place & !BATCH_END,
            batch_end: place & BATCH_END != 0,
        };
        (header.sequence > u64::from(header.batch_index)).then_some(header)
    }

    /// The sequence of the first record of this record's batch: the batch's identity.
    pub(super) fn batch_first(&self) -> u64 {
        self.sequence - u64::from(self.batch_index)
    }

    /// Header and payload.
    pub(super) fn frame_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.payload_bytes)
    }
}

/// The sequence field of what may be a record header, for a cheap look before the checksum is computed.
pub(super) fn peek_sequence(bytes: &[u8; RECORD_HEADER_BYTES]) -> u64 {
    read_u64(bytes, 8)
}

pub(super) fn encode_segment_header(first_sequence: u64, log_id: u64) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    bytes[0..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..20].copy_from_slice(&first_sequence.to_le_bytes());
    bytes[20..28].copy_from_slice(&log_id.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Checks the head of a segment against the first sequence that its name states, and gives the log id.
pub(super) fn decode_segment_header(bytes: &[u8], first_sequence: u64) -> Result<u64, HeaderProblem> {
    if bytes.len() < SEGMENT_HEADER_BYTES {
        return Err(HeaderProblem::Short { bytes: bytes.len() });
    }
    if bytes[0..8] != MAGIC {
        return Err(HeaderProblem::Magic);
    }
    // The version stands before the checksum because another version may compute that differently.
    let version = read_u32(bytes, 8);
    if version != FORMAT_VERSION {
        return Err(HeaderProblem::Version { found: version, supported: FORMAT_VERSION });
    }
    if read_u32(bytes, 28) != crc32fast::hash(&bytes[..28]) {
        return Err(HeaderProblem::Checksum);
    }
    let found = read_u64(bytes, 12);
    if found != first_sequence {
        return Err(HeaderProblem::FirstSequence { found, named: first_sequence });
    }
    Ok(read_u64(bytes, 20))
}

/// Whether a segment file with these contents is what a crash leaves of one whose creation had not finished.
///
/// A record is written only after the header is durable, so such a file never holds more than the header's length.
pub(super) fn is_unfinished_segment_header(contents: &[u8], first_sequence: u64) -> bool {
    let all_zero = contents.iter().all(|byte| *byte == 0);
    let expected = encode_segment_header(first_sequence, 0);
    let determined = contents.len().min(DETERMINED_BYTES);
    match contents.len() {
        0..SEGMENT_HEADER_BYTES => all_zero || contents[..determined] == expected[..determined],
        SEGMENT_HEADER_BYTES => all_zero,
        _ => false,
    }
}

fn salted_crc(log_id: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&log_id.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let header = RecordHeader {
            payload_bytes: 7,
            payload_crc: 0xdead_beef,
            sequence: 42,
            batch_index: 3,
            batch_end: true,
        };
        let bytes = header.encode(99);
        assert_eq!(RecordHeader::decode(&bytes, 99), Some(header));
        assert_eq!(RecordHeader::decode(&bytes, 98), None, "a record of another log");
        let segment = encode_segment_header(42, 99);
        assert_eq!(decode_segment_header(&segment, 42), Ok(99));
        for bit in 0..RECORD_HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RecordHeader::decode(&flipped, 99), None, "bit {bit}");
        }
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut flipped = segment;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_segment_header(&flipped, 42).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn zeros_are_no_record() {
        assert_eq!(RecordHeader::decode(&[0; RECORD_HEADER_BYTES], 0), None);
    }
}
