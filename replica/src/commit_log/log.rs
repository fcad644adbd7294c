//! The durable, append-only log: appending, group commit, and undoing what failed.
//!
//! One owner calls [`CommitLog`], on any one thread at a time; every call blocks that thread on the disk. Opening
//! and replaying is in `replay.rs`, the bytes in `frame.rs`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{Disk, SegmentFile, SystemDisk};
use super::frame::{RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, encode_segment_header};
use super::log_error::{AppendError, OpenError, SyncError, SyncStep};
use super::replay::{self, Replayed};

#[cfg(test)]
mod tests;

/// Default of [`LogOptions::segment_bytes_max`]: 256 MiB.
pub const SEGMENT_BYTES_MAX_DEFAULT: u64 = 256 << 20;
/// Default of [`LogOptions::record_bytes_max`]: 256 MiB.
pub const RECORD_BYTES_MAX_DEFAULT: u32 = 256 << 20;
/// Most bytes, frames included, that may wait for a sync: 1 GiB. A single record is taken whatever its size.
pub const BATCH_BYTES_MAX: u64 = 1 << 30;

/// What the batch buffer keeps allocated from one sync to the next.
const BUFFER_BYTES_KEPT_MAX: usize = 16 << 20;
const LOCK_FILE: &str = "lock";

// The index of a record in its batch takes 31 bits.
const _: () = assert!(BATCH_BYTES_MAX / (RECORD_HEADER_BYTES as u64) < 1 << 31);
const _: () = assert!(RECORD_BYTES_MAX_DEFAULT as u64 <= BATCH_BYTES_MAX);

/// When written records count as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// `sync` returns after the disk has confirmed the batch (`fdatasync`): it survives loss of power.
    #[default]
    Always,
    /// `sync` returns once the operating system has the batch: it survives the death of the process (`kill -9`), not
    /// of the machine. After loss of power the log may have lost its newest batches, or be refused as corrupt,
    /// since nothing then keeps the order in which batches reach the disk.
    Never,
}

/// Settings of a log. They may differ from one opening to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// A segment that would grow over this many bytes is followed by a new one. A batch is never split, so one
    /// larger than this makes a segment of its own size.
    pub segment_bytes_max: u64,
    /// When written records count as durable.
    pub sync: SyncPolicy,
    /// Longest payload that `append` takes, in bytes. Replay reads longer ones all the same.
    pub record_bytes_max: u32,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes_max: SEGMENT_BYTES_MAX_DEFAULT,
            sync: SyncPolicy::default(),
            record_bytes_max: RECORD_BYTES_MAX_DEFAULT,
        }
    }
}

/// One record on replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the log: 1, 2, 3, …
    pub sequence: u64,
    /// What was appended.
    pub payload: &'a [u8],
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    /// Bytes of the segment files read so far.
    pub bytes_read: u64,
    /// Bytes of all segment files.
    pub bytes_total: u64,
    /// Records handed to `on_record` so far.
    pub records: u64,
}

/// A durable, append-only, checksummed run of opaque records, numbered from 1 without gaps.
///
/// Records are appended to a buffer, which [`sync`](CommitLog::sync) writes as one batch that is all or nothing.
/// The log lives in a directory of its own, in segment files named by their first sequence; a lock on a file there
/// keeps other openers out until this value is dropped. Dropping it also drops records that were not synced.
///
/// # What survives
/// The records buffered between two calls of [`sync`](CommitLog::sync) are one *batch*. A batch is all or nothing: after a
/// crash it is replayed whole or not at all, whatever order the disk wrote its pages in. A batch whose sync returned
/// `Ok` is replayed ([`SyncPolicy`] says after which kinds of crash). A batch whose sync had not returned may be
/// replayed or not. A batch whose sync returned an error other than [`SyncError::FailedAndPoisoned`] is not.
///
/// # Torn or corrupt
/// A batch is written only after the batch before it is durable. So when a record is bad on replay, there are two
/// cases. If anything of a later batch stands after it, a durable batch has been damaged: acknowledged records are
/// lost, and the log refuses to open rather than go on without them. If nothing of a later batch stands after it, the
/// bad record is in the last batch that was ever begun, which a crash may have torn, and that batch is cut off as a
/// whole, also when some of its records are intact (pages reach the disk in any order, and half a batch is not what
/// anybody wrote).
///
/// What this cannot tell apart: damage to the very last batch *after* its sync returned looks like a torn one, as the
/// next batch would be the only proof that it had been durable. The warning on opening names what was cut.
pub struct CommitLog {
    directory: PathBuf,
    options: LogOptions,
    disk: Box<dyn Disk>,
    log_id: u64,
    /// The last segment, where batches go.
    segment: Segment,
    /// Bytes of the segments before the last.
    bytes_before: u64,
    /// Last sequence that is durable.
    durable_sequence: u64,
    /// Frames of the records after `durable_sequence`; empty once poisoned.
    batch: Vec<u8>,
    batch_records: u32,
    /// The header of the batch's last record, and where it stands in `batch`.
    batch_last: Option<(usize, RecordHeader)>,
    /// Set when a failure could not be undone; nothing is written any more.
    poisoned: bool,
    /// Holds the lock as long as it is open.
    _lock: File,
}

struct Segment {
    path: PathBuf,
    file: Box<dyn SegmentFile>,
    /// Durable length: the header and whole batches. A failed write is cut back to it.
    len: u64,
}

impl CommitLog {
    /// Opens the log in `directory`, or creates it there, and replays every record in order through `on_record`.
    ///
    /// A torn tail (what a crash within a sync leaves) is cut off with a warning; any other damage is refused, see
    /// [`CommitLog`]. A batch reaches `on_record` only when all of it is known to be whole. Memory used
    /// is that of the largest batch. `on_progress` is called about once per MiB and at the end.
    ///
    /// Under [`SyncPolicy::Always`] everything replayed is durable when this returns, also what a killed process
    /// had written and not yet synced.
    ///
    /// # Errors
    /// See [`OpenError`]. Records that `on_record` has seen by then count for nothing.
    pub fn open<E>(
        directory: &Path,
        options: LogOptions,
        on_record: impl FnMut(Record<'_>) -> Result<(), E>,
        on_progress: impl FnMut(ReplayProgress),
    ) -> Result<CommitLog, OpenError<E>> {
        CommitLog::open_on(Box::new(SystemDisk), directory, options, on_record, on_progress)
    }

    fn open_on<E>(
        disk: Box<dyn Disk>,
        directory: &Path,
        options: LogOptions,
        on_record: impl FnMut(Record<'_>) -> Result<(), E>,
        on_progress: impl FnMut(ReplayProgress),
    ) -> Result<CommitLog, OpenError<E>> {
        create_directory(&*disk, directory)
            .map_err(|source| OpenError::Directory { path: directory.into(), source })?;
        let lock = lock(directory)?;
        let replayed = replay::replay(directory, on_record, on_progress)?;
        let Replayed { log_id, segments, valid_bytes, next_sequence, unfinished } = replayed;
        let durable = options.sync == SyncPolicy::Always;

        if let Some(path) = unfinished {
            tracing::warn!(
                file = %path.display(),
                "removing a segment of the commit log whose creation was cut short; it holds no records"
            );
            let removed = disk.remove(&path).and_then(|()| disk.sync_directory(directory));
            removed.map_err(|source| OpenError::Repair { path, offset: 0, source })?;
        }
        let log_id = log_id.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()));
        let Some((last, before)) = segments.split_last() else {
            let segment = create_segment(&*disk, directory, next_sequence, log_id, durable)
                .map_err(|failed| OpenError::Create { path: failed.path, source: failed.source })?;
            return Ok(CommitLog::with_segment(disk, directory, options, log_id, segment, 0, 0, lock));
        };
        let mut file = disk
            .open(&last.path)
            .map_err(|source| OpenError::Writable { path: last.path.clone(), source })?;
        if valid_bytes < last.bytes {
            tracing::warn!(
                file = %last.path.display(),
                offset = valid_bytes,
                bytes_cut = last.bytes - valid_bytes,
                next_sequence,
                "cutting the last batch off the commit log: a crash cut its write short, or it was damaged since"
            );
            let cut = file.truncate(valid_bytes).and_then(|()| file.sync_all());
            cut.map_err(|source| OpenError::Repair { path: last.path.clone(), offset: valid_bytes, source })?;
        }
        if durable {
            // A process killed before its sync, or one under the other policy, leaves records that only the
            // operating system has. They have been replayed, so they must not go away again.
            for segment in before {
                disk.open(&segment.path)
                    .and_then(|mut file| file.sync_data())
                    .map_err(|source| OpenError::Writable { path: segment.path.clone(), source })?;
            }
            file.sync_all().map_err(|source| OpenError::Writable { path: last.path.clone(), source })?;
            disk.sync_directory(directory)
                .map_err(|source| OpenError::Directory { path: directory.into(), source })?;
        }
        let bytes_before = before.iter().map(|segment| segment.bytes).sum();
        let segment = Segment { path: last.path.clone(), file, len: valid_bytes };
        let durable_sequence = next_sequence - 1;
        Ok(CommitLog::with_segment(
            disk,
            directory,
            options,
            log_id,
            segment,
            bytes_before,
            durable_sequence,
            lock,
        ))
    }

    #[expect(clippy::too_many_arguments, reason = "private, called from the two ends of `open_on`")]
    fn with_segment(
        disk: Box<dyn Disk>,
        directory: &Path,
        options: LogOptions,
        log_id: u64,
        segment: Segment,
        bytes_before: u64,
        durable_sequence: u64,
        lock: File,
    ) -> CommitLog {
        CommitLog {
            directory: directory.into(),
            options,
            disk,
            log_id,
            segment,
            bytes_before,
            durable_sequence,
            batch: Vec::new(),
            batch_records: 0,
            batch_last: None,
            poisoned: false,
            _lock: lock,
        }
    }

    /// Adds a record to the batch that the next [`sync`](CommitLog::sync) writes, and gives its sequence. Nothing is
    /// durable, or even written, before that sync returns.
    ///
    /// # Errors
    /// See [`AppendError`]; the batch is then as it was.
    pub fn append(&mut self, payload: &[u8]) -> Result<u64, AppendError> {
        if self.poisoned {
            return Err(AppendError::Poisoned);
        }
        let bytes_max = self.options.record_bytes_max;
        let payload_bytes = match u32::try_from(payload.len()) {
            Ok(bytes) if bytes <= bytes_max => bytes,
            _ => return Err(AppendError::TooLarge { bytes: payload.len(), bytes_max }),
        };
        let bytes_waiting = self.batch.len() as u64;
        let frame_bytes = RECORD_HEADER_BYTES as u64 + u64::from(payload_bytes);
        if bytes_waiting > 0 && bytes_waiting + frame_bytes > BATCH_BYTES_MAX {
            return Err(AppendError::BatchFull { bytes: bytes_waiting, bytes_max: BATCH_BYTES_MAX });
        }
        let header = RecordHeader {
            payload_bytes,
            payload_crc: crc32fast::hash(payload),
            sequence: self.durable_sequence + u64::from(self.batch_records) + 1,
            batch_index: self.batch_records,
            batch_end: false,
        };
        self.batch_last = Some((self.batch.len(), header));
        self.batch.extend_from_slice(&header.encode(self.log_id));
        self.batch.extend_from_slice(payload);
        self.batch_records += 1;
        Ok(header.sequence)
    }

    /// Writes the records appended since the last sync as one batch, and makes it durable as the policy says. With
    /// none there is nothing to do.
    ///
    /// # Errors
    /// On any failure the batch is dropped, what reached the file of it is cut off, and the next append takes the
    /// sequence of its first record again. If the cutting fails too the log is poisoned: this and every later append
    /// and sync is refused until it is opened anew. See [`SyncError`].
    pub fn sync(&mut self) -> Result<(), SyncError> {
        if self.poisoned {
            return Err(SyncError::Poisoned);
        }
        let Some((at, last)) = self.batch_last.take() else {
            return Ok(());
        };
        let last = RecordHeader { batch_end: true, ..last };
        self.batch[at..at + RECORD_HEADER_BYTES].copy_from_slice(&last.encode(self.log_id));
        let written = self.write_batch();
        let records = u64::from(self.batch_records);
        self.batch.clear();
        self.batch.shrink_to(BUFFER_BYTES_KEPT_MAX);
        self.batch_records = 0;
        match written {
            Ok(()) => {
                self.durable_sequence = last.sequence;
                Ok(())
            }
            Err(Failure { step, path, offset, source, undone: Ok(()) }) => {
                Err(SyncError::Failed { step, path, offset, records_dropped: records, source })
            }
            Err(Failure { step, path, offset, source, undone: Err(undo) }) => {
                self.poisoned = true;
                Err(SyncError::FailedAndPoisoned {
                    step,
                    path,
                    offset,
                    records_dropped: records,
                    undo,
                    source,
                })
            }
        }
    }

    /// The last sequence that replay or a successful sync has made durable; 0 when there is none.
    pub fn durable_sequence(&self) -> u64 {
        self.durable_sequence
    }

    /// Size of the log on disk, in bytes, without what is buffered.
    pub fn bytes(&self) -> u64 {
        self.bytes_before + self.segment.len
    }

    fn write_batch(&mut self) -> Result<(), Failure> {
        let durable = self.options.sync == SyncPolicy::Always;
        let bytes = self.batch.len() as u64;
        let has_records = self.segment.len > SEGMENT_HEADER_BYTES as u64;
        if has_records && self.segment.len + bytes > self.options.segment_bytes_max {
            let first = self.durable_sequence + 1;
            let next = create_segment(&*self.disk, &self.directory, first, self.log_id, durable)?;
            self.bytes_before += self.segment.len;
            self.segment = next;
        }
        let segment = &mut self.segment;
        let mut step = SyncStep::Write;
        let written = segment.file.write_at(segment.len, &self.batch).and_then(|()| {
            step = SyncStep::Sync;
            if durable { segment.file.sync_data() } else { Ok(()) }
        });
        written.map_err(|source| {
            // Under `Always` the cut must be durable as well: otherwise a crash could bring back a batch that was
            // reported as dropped, in front of one that took its sequences.
            let cut = segment.file.truncate(segment.len);
            let undone = cut.and_then(|()| if durable { segment.file.sync_all() } else { Ok(()) });
            Failure { step, path: segment.path.clone(), offset: segment.len, source, undone }
        })?;
        segment.len += bytes;
        Ok(())
    }
}

impl std::fmt::Debug for CommitLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CommitLog")
            .field("directory", &self.directory)
            .field("durable_sequence", &self.durable_sequence)
            .field("batch_records", &self.batch_records)
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}

/// A step that failed, and whether it could be undone.
struct Failure {
    step: SyncStep,
    path: PathBuf,
    offset: u64,
    source: io::Error,
    undone: io::Result<()>,
}

/// Creates a segment, header included, or leaves nothing of it.
///
/// The header is durable before this returns, so that a segment with a record always has one.
fn create_segment(
    disk: &dyn Disk,
    directory: &Path,
    first_sequence: u64,
    log_id: u64,
    durable: bool,
) -> Result<Segment, Failure> {
    let path = directory.join(replay::segment_name(first_sequence));
    let failed = |path: &Path, source, undone| Failure {
        step: SyncStep::CreateSegment,
        path: path.into(),
        offset: 0,
        source,
        undone,
    };
    let mut file = disk.create(&path).map_err(|source| failed(&path, source, Ok(())))?;
    let header = encode_segment_header(first_sequence, log_id);
    let written = file.write_at(0, &header).and_then(|()| {
        if durable {
            file.sync_all()?;
            disk.sync_directory(directory)?;
        }
        Ok(())
    });
    if let Err(source) = written {
        drop(file);
        // A batch that still fits into the current segment may come next and take this sequence, so the file must
        // not come back after a crash.
        let removed = disk.remove(&path);
        let undone = removed.and_then(|()| if durable { disk.sync_directory(directory) } else { Ok(()) });
        return Err(failed(&path, source, undone));
    }
    Ok(Segment { path, file, len: SEGMENT_HEADER_BYTES as u64 })
}

/// Creates a directory and its missing parents, each durable in the one above.
fn create_directory(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if parent != directory {
        create_directory(disk, parent)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !directory.is_dir() => Err(error),
        _ => disk.sync_directory(parent),
    }
}

fn lock<E>(directory: &Path) -> Result<File, OpenError<E>> {
    let path = directory.join(LOCK_FILE);
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = match opened {
        Ok(file) => file,
        Err(source) => return Err(OpenError::Lock { path, source }),
    };
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path }),
        Err(TryLockError::Error(source)) => Err(OpenError::Lock { path, source }),
    }
}
