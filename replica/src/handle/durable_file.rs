//! A small file beside the log that is replaced whole.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

/// The file's bytes; `None` when there is no such file.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file in one step, durably.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("json.new");
    let mut file = fs::File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
