//! What the log asks of the file system when it writes, as two traits, so that tests can make any step fail.
//!
//! Called by `log.rs` only, on the thread of the log's owner.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// A directory's files.
pub(super) trait Disk: Send + Sync {
    /// Creates a file that must not exist yet.
    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>>;
    /// Opens an existing file for writing.
    fn open(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations and removals in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// One segment file, open for writing.
pub(super) trait SegmentFile: Send + Sync {
    /// Writes all bytes from `offset` on. After an error, any part of them may have been written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Sets the file's length.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
    /// Makes contents durable, and the length if it grew.
    fn sync_data(&mut self) -> io::Result<()>;
    /// Makes contents and all metadata durable, a shrunk length included.
    fn sync_all(&mut self) -> io::Result<()>;
}

/// The operating system's file system.
pub(super) struct SystemDisk;

impl Disk for SystemDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        Ok(Box::new(OpenOptions::new().write(true).open(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        // Only Unix lets a directory be opened and synced; elsewhere the file system orders such changes itself.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
}

impl SegmentFile for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&mut self) -> io::Result<()> {
        File::sync_all(self)
    }
}
