//! Named queries: their definitions on disk, and what is pinned of them.

use super::{NamedQuery, StartError};
use crate::worker::{BindingId, QueryId};
use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// A named query and what it keeps alive.
pub(super) struct NamedState {
    pub(super) definition: NamedQuery,
    /// The binding it pins, with its encoded values.
    pub(super) pinned: Option<(QueryId, Vec<u8>, BindingId)>,
}

/// Where definitions are kept; without a data folder, nowhere.
pub(super) struct NamedFile(Option<PathBuf>);

impl NamedFile {
    pub(super) fn new(data_dir: Option<&Path>) -> Self {
        Self(data_dir.map(|dir| dir.join("queries.json")))
    }

    pub(super) fn load(&self) -> Result<Vec<NamedQuery>, StartError> {
        let Some(path) = &self.0 else { return Ok(Vec::new()) };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StartError(format!("cannot read {}: {error}", path.display()))),
        };
        serde_json::from_slice(&text).map_err(|error| {
            let path = path.display();
            StartError(format!("{path} is not a list of named queries: {error}; repair it or move it away"))
        })
    }

    /// Replaces the file in one step, durably.
    pub(super) fn store<'q>(&self, queries: impl Iterator<Item = &'q NamedQuery>) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let text = serde_json::to_vec_pretty(&queries.collect::<Vec<_>>()).map_err(io::Error::other)?;
        let beside = path.with_extension("json.new");
        let mut file = fs::File::create(&beside)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        match path.parent() {
            Some(folder) => fs::File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}
