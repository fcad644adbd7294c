//! The errors of [`CommitLog`](super::CommitLog), one enum per operation.
//!
//! A message names the file, the place in it and what to do; the cause, where there is one, is in `source()` and is
//! not repeated in the message.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a log could not be opened. `E` is the error of the caller's `on_record`.
///
/// An open that finds damage changes no file; only what a crash left unfinished at the end is ever taken away.
/// Whatever `on_record` built from the records it saw must be thrown away.
#[derive(Debug, Error)]
pub enum OpenError<E> {
    /// The directory could not be created, listed or synced.
    #[error("cannot use {} as the directory of the commit log; check that it is a directory and writable", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The lock file could not be created or locked for a reason other than being held.
    #[error("cannot lock {}; check permissions, and that the file system supports locks", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another opener, of this process or of another, has the log.
    #[error("the commit log is in use: {} is locked; stop the other process or choose another data directory", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A segment could not be read.
    #[error("cannot read {} at offset {offset}; check the disk and permissions", path.display())]
    Read {
        /// The segment.
        path: PathBuf,
        /// Where reading failed, in bytes from the start of the file.
        offset: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// A segment's header is not what the log wrote.
    #[error(
        "{} is not a usable segment: at offset 0, {problem}; restore the file from a backup, or, to give up its \
         records, move it and all later segments elsewhere",
        path.display()
    )]
    Header {
        /// The segment.
        path: PathBuf,
        /// What is wrong with it.
        problem: HeaderProblem,
    },
    /// The segments do not follow each other: one is missing, or two overlap.
    #[error(
        "the commit log has a segment out of order: {} begins at sequence {found}, but sequence {expected} must come \
         next; restore the missing segment from a backup, or, to give up the records from {expected} on, move this \
         segment and all later ones elsewhere",
        path.display()
    )]
    SegmentOrder {
        /// The segment that does not fit.
        path: PathBuf,
        /// The sequence that comes next.
        expected: u64,
        /// The sequence it begins with.
        found: u64,
    },
    /// Records are damaged in a way that no crash explains, so acknowledged ones are lost.
    #[error(transparent)]
    Corrupt(Box<Corruption>),
    /// The torn tail could not be cut off.
    #[error("cannot cut the torn tail off {} at offset {offset}; check permissions and the disk", path.display())]
    Repair {
        /// The last segment.
        path: PathBuf,
        /// The length it was to be cut to, in bytes.
        offset: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// The first segment could not be created.
    #[error("cannot create {}; check free space and permissions", path.display())]
    Create {
        /// The segment.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A segment could not be opened for writing, or what it holds could not be made durable.
    #[error("cannot open {} for writing and sync it; check the disk and permissions", path.display())]
    Writable {
        /// The segment.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// `on_record` refused a record.
    #[error("the record of sequence {sequence} in {} at offset {offset} was refused on replay", path.display())]
    Record {
        /// The segment.
        path: PathBuf,
        /// Where the record begins, in bytes from the start of the file.
        offset: u64,
        /// The record's sequence.
        sequence: u64,
        /// What `on_record` returned.
        source: E,
    },
}

/// What is wrong with the header of a segment.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HeaderProblem {
    /// The file ends within the header.
    #[error("the header is incomplete ({bytes} bytes)")]
    Short {
        /// How long the file is.
        bytes: usize,
    },
    /// The file does not begin as segments do.
    #[error("it does not begin with the magic of a commit log segment")]
    Magic,
    /// Another version of the format; run the version of Tidegate that wrote it.
    #[error("its format version is {found}, and this build reads version {supported}")]
    Version {
        /// The version in the file.
        found: u32,
        /// The version this build reads and writes.
        supported: u32,
    },
    /// The checksum does not hold.
    #[error("the header's checksum does not match")]
    Checksum,
    /// The file was renamed, or stands where another belongs.
    #[error("the header says it begins at sequence {found}, its name says {named}")]
    FirstSequence {
        /// The sequence in the header.
        found: u64,
        /// The sequence in the name.
        named: u64,
    },
    /// The segment belongs to another log than the first segment does.
    #[error("it belongs to another log than the first segment")]
    OtherLog,
}

/// Damage that a crash does not explain.
#[derive(Debug, Error)]
#[error(
    "{} is corrupt at offset {offset}: {problem}, and {evidence}; restore the file from a backup, or, to give up the \
     records from sequence {first_lost_sequence} on, truncate it to {keep_bytes} bytes and move all later segments \
     elsewhere",
    path.display()
)]
pub struct Corruption {
    /// The segment.
    pub path: PathBuf,
    /// Where the bad record begins, in bytes from the start of the file.
    pub offset: u64,
    /// What is wrong with the record.
    pub problem: RecordProblem,
    /// Why this is not the torn tail of a crash.
    pub evidence: Evidence,
    /// Up to here the file is whole, in bytes from its start: the end of the last whole batch.
    pub keep_bytes: u64,
    /// The first sequence that is not in those bytes.
    pub first_lost_sequence: u64,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RecordProblem {
    /// The file ends within the record.
    #[error("a record is incomplete")]
    Incomplete,
    /// The file ends after a record that is not the last of its batch.
    #[error("the last batch is incomplete")]
    UnfinishedBatch,
    /// The checksum of the record's header does not hold.
    #[error("the checksum of a record's header does not match")]
    HeaderChecksum,
    /// The checksum of the record's payload does not hold.
    #[error("the checksum of a record's payload does not match")]
    PayloadChecksum,
    /// The record is whole but does not belong here.
    #[error("a record of sequence {found} stands where {expected} belongs")]
    Sequence {
        /// The sequence that comes next.
        expected: u64,
        /// The sequence in the record.
        found: u64,
    },
    /// The record has the right sequence but does not continue its predecessor's batch.
    #[error("the record of sequence {sequence} belongs to another batch than its place says")]
    Batch {
        /// The record's sequence.
        sequence: u64,
    },
}

/// Why damage is not a torn tail: something that was written only once the damaged batch was durable.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Evidence {
    /// A record of a later batch follows in the same segment.
    #[error("a record of a later batch (sequence {sequence}) follows at offset {offset}")]
    LaterRecord {
        /// Where it begins, in bytes from the start of the file.
        offset: u64,
        /// Its sequence.
        sequence: u64,
    },
    /// Another segment follows.
    #[error("a later segment exists")]
    LaterSegment,
    /// The bad record itself is whole.
    #[error("its checksums hold, so it was written so")]
    WholeRecord,
}

/// Why a record was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AppendError {
    /// The payload is over the limit; nothing was appended.
    #[error(
        "a record of {bytes} bytes is over the limit of {bytes_max}; split the commit or raise the limit"
    )]
    TooLarge {
        /// Length of the payload.
        bytes: usize,
        /// The limit, [`LogOptions::record_bytes_max`](super::LogOptions::record_bytes_max).
        bytes_max: u32,
    },
    /// The buffer is full; nothing was appended.
    #[error("{bytes} bytes wait to be synced and the limit is {bytes_max}; call sync first")]
    BatchFull {
        /// Bytes that wait.
        bytes: u64,
        /// The limit, [`BATCH_BYTES_MAX`](super::BATCH_BYTES_MAX).
        bytes_max: u64,
    },
    /// An earlier failure could not be undone.
    #[error(
        "the commit log takes no more records since a failed write could not be undone; restart to recover it"
    )]
    Poisoned,
}

/// Why the buffered records did not become durable. They are dropped, and their sequences are used again.
#[derive(Debug, Error)]
pub enum SyncError {
    /// A step failed and was undone: the log is as it was after the last successful sync, and may be used on.
    #[error(
        "cannot {step} {} at offset {offset}; {records_dropped} records were dropped and the log is unharmed; check \
         free space and the disk, then write again",
        path.display()
    )]
    Failed {
        /// What failed.
        step: SyncStep,
        /// The segment.
        path: PathBuf,
        /// The length of the segment before, in bytes.
        offset: u64,
        /// How many buffered records were dropped.
        records_dropped: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// A step failed, and undoing it failed too: what the file holds from `offset` on is unknown until the log is
    /// opened again, so every further append and sync is refused.
    ///
    /// The dropped records may turn out to have survived, as they may after a crash within a sync.
    #[error(
        "cannot {step} {} at offset {offset}, and undoing that failed too ({undo}); {records_dropped} records were \
         dropped and the log takes no more until it is opened again; check the disk and restart",
        path.display()
    )]
    FailedAndPoisoned {
        /// What failed first.
        step: SyncStep,
        /// The segment.
        path: PathBuf,
        /// The length of the segment before, in bytes.
        offset: u64,
        /// How many buffered records were dropped.
        records_dropped: u64,
        /// Why undoing failed.
        undo: io::Error,
        /// Why the step failed.
        source: io::Error,
    },
    /// An earlier failure could not be undone.
    #[error("the commit log syncs no more since a failed write could not be undone; restart to recover it")]
    Poisoned,
}

/// The steps of a sync.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SyncStep {
    /// Creating the next segment, its header and its directory entry.
    #[error("create the segment")]
    CreateSegment,
    /// Writing the batch.
    #[error("write to")]
    Write,
    /// Making the batch durable.
    #[error("sync")]
    Sync,
}
