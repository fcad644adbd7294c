//! Reading a log back when it is opened: the segments in order, batch by batch, and what a bad record means.
//!
//! Called by [`CommitLog::open`](super::CommitLog::open) only, which holds the lock. Nothing here writes.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::frame::{self, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES};
use super::log::{Record, ReplayProgress};
use super::log_error::{Corruption, Evidence, HeaderProblem, OpenError, RecordProblem};

/// How much is read at once, and how often progress is told.
const CHUNK_BYTES: u64 = 1 << 20;
/// How far ahead of the expected sequence a record is still taken for one of this log in the search for later ones.
/// It keeps chance from finding a record in what is only noise: 32 bits here and the 32 of the checksum.
const SEQUENCES_AHEAD_MAX: u64 = 1 << 32;

/// What a replay found.
pub(super) struct Replayed {
    /// `None` when there is no segment yet.
    pub(super) log_id: Option<u64>,
    /// The segments in order.
    pub(super) segments: Vec<SegmentInfo>,
    /// How much of the last segment is whole; less than its size when its tail is torn.
    pub(super) valid_bytes: u64,
    /// The sequence of the next record.
    pub(super) next_sequence: u64,
    /// A last segment whose creation was cut short, not among `segments`.
    pub(super) unfinished: Option<PathBuf>,
}

/// A segment file.
#[derive(Debug)]
pub(super) struct SegmentInfo {
    pub(super) path: PathBuf,
    /// As its name says.
    pub(super) first_sequence: u64,
    /// Size of the file.
    pub(super) bytes: u64,
}

/// The name of the segment that begins with a sequence.
pub(super) fn segment_name(first_sequence: u64) -> String {
    format!("{first_sequence:020}.log")
}

/// Replays all segments in `directory`.
pub(super) fn replay<E>(
    directory: &Path,
    on_record: impl FnMut(Record<'_>) -> Result<(), E>,
    on_progress: impl FnMut(ReplayProgress),
) -> Result<Replayed, OpenError<E>> {
    let mut segments =
        list_segments(directory).map_err(|source| OpenError::Directory { path: directory.into(), source })?;
    let unfinished = pop_unfinished(&mut segments)?;
    let bytes_total = segments.iter().map(|segment| segment.bytes).sum();
    let mut replay = Replay {
        on_record,
        on_progress,
        progress: ReplayProgress { bytes_read: 0, bytes_total, records: 0 },
        log_id: None,
        next_sequence: 1,
    };
    let mut valid_bytes = 0;
    for (index, info) in segments.iter().enumerate() {
        replay.expect_first(info)?;
        let is_last = index + 1 == segments.len() && unfinished.is_none();
        valid_bytes = replay.segment(info, is_last)?;
    }
    if let Some(info) = &unfinished {
        replay.expect_first(info)?;
    }
    (replay.on_progress)(replay.progress);
    let Replay { log_id, next_sequence, .. } = replay;
    let unfinished = unfinished.map(|info| info.path);
    Ok(Replayed { log_id, segments, valid_bytes, next_sequence, unfinished })
}

fn list_segments(directory: &Path) -> io::Result<Vec<SegmentInfo>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(".log"));
        let Some(first_sequence) = digits.and_then(|digits| digits.parse().ok()) else {
            continue;
        };
        if *name == *segment_name(first_sequence) {
            segments.push(SegmentInfo { path: entry.path(), first_sequence, bytes: entry.metadata()?.len() });
        }
    }
    segments.sort_by_key(|segment| segment.first_sequence);
    Ok(segments)
}

/// Takes the last segment off when a crash cut its creation short.
fn pop_unfinished<E>(segments: &mut Vec<SegmentInfo>) -> Result<Option<SegmentInfo>, OpenError<E>> {
    let Some(last) = segments.pop_if(|last| last.bytes <= SEGMENT_HEADER_BYTES as u64) else {
        return Ok(None);
    };
    let contents = fs::read(&last.path).map_err(|source| OpenError::Read {
        path: last.path.clone(),
        offset: 0,
        source,
    })?;
    if frame::is_unfinished_segment_header(&contents, last.first_sequence) {
        return Ok(Some(last));
    }
    segments.push(last);
    Ok(None)
}

struct Replay<R, P> {
    on_record: R,
    on_progress: P,
    progress: ReplayProgress,
    log_id: Option<u64>,
    next_sequence: u64,
}

/// A batch that has begun and not yet ended.
struct OpenBatch {
    /// Where it begins in the segment.
    offset: u64,
    first_sequence: u64,
    /// Its records so far: where each begins, and its header.
    records: Vec<(u64, RecordHeader)>,
}

impl<R, P, E> Replay<R, P>
where
    R: FnMut(Record<'_>) -> Result<(), E>,
    P: FnMut(ReplayProgress),
{
    fn expect_first(&self, info: &SegmentInfo) -> Result<(), OpenError<E>> {
        if info.first_sequence == self.next_sequence {
            return Ok(());
        }
        let (path, expected, found) = (info.path.clone(), self.next_sequence, info.first_sequence);
        Err(OpenError::SegmentOrder { path, expected, found })
    }

    /// Replays one segment, and gives how many bytes of it are whole.
    fn segment(&mut self, info: &SegmentInfo, is_last: bool) -> Result<u64, OpenError<E>> {
        let mut reader = SegmentReader::open(info)?;
        let log_id = self.header(info, &mut reader)?;
        let bytes_before = self.progress.bytes_read;
        let mut bytes_told = 0;
        let mut offset = SEGMENT_HEADER_BYTES as u64;
        let mut batch = OpenBatch { offset, first_sequence: self.next_sequence, records: Vec::new() };
        while offset < info.bytes {
            let header = match next_record(&mut reader, &batch, offset, log_id)? {
                Ok(header) => header,
                Err(problem) => {
                    self.judge(info, is_last, &mut reader, &batch, offset, problem, log_id)?;
                    return Ok(batch.offset);
                }
            };
            batch.records.push((offset, header));
            offset += header.frame_bytes();
            if header.batch_end {
                self.deliver(info, &mut reader, &batch)?;
                reader.release(offset);
                batch.offset = offset;
                batch.first_sequence = self.next_sequence;
                batch.records.clear();
            }
            if offset - bytes_told >= CHUNK_BYTES {
                bytes_told = offset;
                self.progress.bytes_read = bytes_before + offset;
                (self.on_progress)(self.progress);
            }
        }
        self.progress.bytes_read = bytes_before + info.bytes;
        if !batch.records.is_empty() {
            let problem = RecordProblem::UnfinishedBatch;
            self.judge(info, is_last, &mut reader, &batch, offset, problem, log_id)?;
        }
        Ok(batch.offset)
    }

    fn header(&mut self, info: &SegmentInfo, reader: &mut SegmentReader) -> Result<u64, OpenError<E>> {
        let bytes = reader.bytes(0, info.bytes.min(SEGMENT_HEADER_BYTES as u64))?;
        let refused = |problem| OpenError::Header { path: info.path.clone(), problem };
        let log_id = frame::decode_segment_header(bytes, info.first_sequence).map_err(refused)?;
        if *self.log_id.get_or_insert(log_id) != log_id {
            return Err(refused(HeaderProblem::OtherLog));
        }
        Ok(log_id)
    }

    fn deliver(
        &mut self,
        info: &SegmentInfo,
        reader: &mut SegmentReader,
        batch: &OpenBatch,
    ) -> Result<(), OpenError<E>> {
        for &(offset, header) in &batch.records {
            let at = offset + RECORD_HEADER_BYTES as u64;
            let payload = reader.bytes(at, u64::from(header.payload_bytes))?;
            let sequence = header.sequence;
            assert_eq!(sequence, self.next_sequence, "replay hands records on without gaps");
            (self.on_record)(Record { sequence, payload }).map_err(|source| OpenError::Record {
                path: info.path.clone(),
                offset,
                sequence,
                source,
            })?;
            self.next_sequence += 1;
            self.progress.records += 1;
        }
        Ok(())
    }

    /// Decides about a bad record: `Ok` when it belongs to a torn tail, else the error that refuses the log.
    #[expect(clippy::too_many_arguments, reason = "private, called from `segment` only")]
    fn judge(
        &self,
        info: &SegmentInfo,
        is_last: bool,
        reader: &mut SegmentReader,
        batch: &OpenBatch,
        offset: u64,
        problem: RecordProblem,
        log_id: u64,
    ) -> Result<(), OpenError<E>> {
        let evidence = match problem {
            RecordProblem::Sequence { .. } | RecordProblem::Batch { .. } => Some(Evidence::WholeRecord),
            _ if !is_last => Some(Evidence::LaterSegment),
            _ => find_later_batch(reader, offset, batch.first_sequence, log_id)?,
        };
        match evidence {
            None => Ok(()),
            Some(evidence) => Err(OpenError::Corrupt(Box::new(Corruption {
                path: info.path.clone(),
                offset,
                problem,
                evidence,
                keep_bytes: batch.offset,
                first_lost_sequence: batch.first_sequence,
            }))),
        }
    }
}

/// Reads and checks the record at `offset`, which is to continue `batch`.
fn next_record<E>(
    reader: &mut SegmentReader,
    batch: &OpenBatch,
    offset: u64,
    log_id: u64,
) -> Result<Result<RecordHeader, RecordProblem>, OpenError<E>> {
    let bytes_left = reader.len - offset;
    if bytes_left < RECORD_HEADER_BYTES as u64 {
        return Ok(Err(RecordProblem::Incomplete));
    }
    let Some(header) = RecordHeader::decode(reader.record_header(offset)?, log_id) else {
        return Ok(Err(RecordProblem::HeaderChecksum));
    };
    let expected = batch.first_sequence + batch.records.len() as u64;
    if header.sequence != expected {
        return Ok(Err(RecordProblem::Sequence { expected, found: header.sequence }));
    }
    if header.batch_first() != batch.first_sequence {
        return Ok(Err(RecordProblem::Batch { sequence: header.sequence }));
    }
    if bytes_left < header.frame_bytes() {
        return Ok(Err(RecordProblem::Incomplete));
    }
    let payload = reader.bytes(offset + RECORD_HEADER_BYTES as u64, u64::from(header.payload_bytes))?;
    if crc32fast::hash(payload) != header.payload_crc {
        return Ok(Err(RecordProblem::PayloadChecksum));
    }
    Ok(Ok(header))
}

/// Looks at every byte from `offset` on for the header of a record of a later batch than the one given.
///
/// The header alone is proof: its checksum holds, and it was written after the given batch was durable.
fn find_later_batch<E>(
    reader: &mut SegmentReader,
    offset: u64,
    batch_first: u64,
    log_id: u64,
) -> Result<Option<Evidence>, OpenError<E>> {
    let plausible = batch_first + 1..=batch_first.saturating_add(SEQUENCES_AHEAD_MAX);
    let mut at = offset;
    while at + RECORD_HEADER_BYTES as u64 <= reader.len {
        reader.release(at);
        let bytes_wanted = (reader.len - at).min(CHUNK_BYTES);
        let chunk = reader.bytes(at, bytes_wanted)?;
        for (index, window) in chunk.windows(RECORD_HEADER_BYTES).enumerate() {
            let window = window.try_into().expect("a window has the header's length");
            if !plausible.contains(&frame::peek_sequence(window)) {
                continue;
            }
            let header = RecordHeader::decode(window, log_id);
            if let Some(header) = header.filter(|header| header.batch_first() > batch_first) {
                let (offset, sequence) = (at + index as u64, header.sequence);
                return Ok(Some(Evidence::LaterRecord { offset, sequence }));
            }
        }
        at += bytes_wanted - RECORD_HEADER_BYTES as u64 + 1;
    }
    Ok(None)
}

/// Reads a segment through a window that covers the batch at hand.
struct SegmentReader {
    path: PathBuf,
    file: File,
    /// Length of the file.
    len: u64,
    /// The window: bytes of the file from `window_offset` on.
    window: Vec<u8>,
    window_offset: u64,
    /// No byte before this one is asked for again.
    released: u64,
}

impl SegmentReader {
    fn open<E>(info: &SegmentInfo) -> Result<SegmentReader, OpenError<E>> {
        let file = File::open(&info.path).map_err(|source| OpenError::Read {
            path: info.path.clone(),
            offset: 0,
            source,
        })?;
        Ok(SegmentReader {
            path: info.path.clone(),
            file,
            len: info.bytes,
            window: Vec::new(),
            window_offset: 0,
            released: 0,
        })
    }

    /// Allows the bytes before `offset` to be dropped from the window.
    fn release(&mut self, offset: u64) {
        debug_assert!(offset >= self.released, "bytes are released in order");
        self.released = offset;
    }

    fn record_header<E>(&mut self, offset: u64) -> Result<&[u8; RECORD_HEADER_BYTES], OpenError<E>> {
        let bytes = self.bytes(offset, RECORD_HEADER_BYTES as u64)?;
        Ok(bytes.try_into().expect("as many bytes as asked for"))
    }

    /// `len` bytes from `offset` on, which must lie within the file and not before what is released.
    fn bytes<E>(&mut self, offset: u64, len: u64) -> Result<&[u8], OpenError<E>> {
        assert!(offset >= self.released && offset + len <= self.len, "only what is held may be asked for");
        let window_end = self.window_offset + self.window.len() as u64;
        if offset + len > window_end {
            self.grow(offset + len, window_end).map_err(|source| OpenError::Read {
                path: self.path.clone(),
                offset: window_end,
                source,
            })?;
        }
        let start = (offset - self.window_offset) as usize;
        Ok(&self.window[start..start + len as usize])
    }

    fn grow(&mut self, end: u64, window_end: u64) -> io::Result<()> {
        let drop_bytes = (self.released - self.window_offset).min(self.window.len() as u64);
        self.window.drain(..drop_bytes as usize);
        self.window_offset += drop_bytes;
        let bytes_wanted = (end - window_end).max(CHUNK_BYTES).min(self.len - window_end);
        self.file.seek(SeekFrom::Start(window_end))?;
        let bytes_read = (&mut self.file).take(bytes_wanted).read_to_end(&mut self.window)?;
        if (bytes_read as u64) < bytes_wanted {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
        }
        Ok(())
    }
}
