//! Where commits come from and where they are kept.
//!
//! [`CommitLog`] is the durable log of the embedded store: an ordered, gapless run of opaque records in segment
//! files. The store decides what a record holds; the log decides what survives a crash and what counts as damage.
//! [`StreamFile`] reads the lines of a recorded commit stream, plain or compressed.
//!
//! Both are plain blocking I/O, without threads of their own: they run on the thread of their caller.

mod disk;
mod frame;
mod log;
mod log_error;
mod replay;
mod stream_file;

pub use log::{
    BATCH_BYTES_MAX, CommitLog, LogOptions, RECORD_BYTES_MAX_DEFAULT, Record, ReplayProgress,
    SEGMENT_BYTES_MAX_DEFAULT, SyncPolicy,
};
pub use log_error::{
    AppendError, Corruption, Evidence, HeaderProblem, OpenError, RecordProblem, SyncError, SyncStep,
};
pub use stream_file::{Encoding, LINE_BYTES_MAX, StreamFile, StreamFileError};
