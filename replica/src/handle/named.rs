//! Named queries: their definitions on disk, and what is pinned of them.

use super::{NamedQuery, StartError, durable_file, request::DefinitionId};
use crate::worker::{BindingId, QueryId};
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tidegate_wire::model::Cv;

/// A named query and what it keeps alive.
pub(super) struct NamedState {
    pub(super) id: DefinitionId,
    pub(super) definition: NamedQuery,
    /// A commit version that no release of the name's earlier definition is past: what a client holds from then or
    /// before may be another query's.
    pub(super) defined_at: Cv,
    /// The binding it pins, with its encoded values.
    pub(super) pinned: Option<Pinned>,
    /// When one that is to be pinned, and is not, is pinned again.
    pub(super) repin: Repin,
}

/// Shortest and longest time between a fault of what a named query pins and the attempt to pin it again: each is a
/// hydration, and data that fault it may be there for long.
const REPIN_WAIT_MIN: Duration = Duration::from_secs(1);
const REPIN_WAIT_MAX: Duration = Duration::from_secs(60);

/// See [`NamedState::repin`].
pub(super) struct Repin {
    /// `None` while it is pinned, or not to be.
    pub(super) due: Option<Instant>,
    /// What it was stopped with the last time.
    pub(super) fault: String,
    /// How long the next attempt waits.
    wait: Duration,
    /// When it was pinned the last time.
    pinned_at: Instant,
}

impl Repin {
    pub(super) fn new(now: Instant) -> Self {
        Self { due: None, fault: String::new(), wait: REPIN_WAIT_MIN, pinned_at: now }
    }
}

impl NamedState {
    /// What it pinned is no more.
    pub(super) fn lost(&mut self, fault: String, now: Instant) {
        if now.duration_since(self.repin.pinned_at) > REPIN_WAIT_MAX {
            self.repin.wait = REPIN_WAIT_MIN;
        }
        self.pinned = None;
        self.repin.due = Some(now + self.repin.wait);
        self.repin.wait = (2 * self.repin.wait).min(REPIN_WAIT_MAX);
        self.repin.fault = fault;
    }

    /// It is pinned again.
    pub(super) fn pinned_again(&mut self, pinned: Pinned, now: Instant) {
        self.pinned = Some(pinned);
        self.repin.due = None;
        self.repin.pinned_at = now;
    }
}

/// A binding that is kept: its family, its encoded values, and itself.
pub(super) type Pinned = (QueryId, Vec<u8>, BindingId);

/// A definition on disk.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredQuery {
    pub(super) query: NamedQuery,
    pub(super) defined_at: Cv,
}

/// Where definitions are kept; without a data folder, nowhere.
pub(super) struct NamedFile(Option<PathBuf>);

impl NamedFile {
    pub(super) fn new(data_dir: Option<&Path>) -> Self {
        Self(data_dir.map(|dir| dir.join("queries.json")))
    }

    pub(super) fn load(&self) -> Result<Vec<StoredQuery>, StartError> {
        let Some(path) = &self.0 else { return Ok(Vec::new()) };
        let text = match durable_file::read(path) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Vec::new()),
            Err(error) => return Err(StartError(format!("cannot read {}: {error}", path.display()))),
        };
        serde_json::from_slice(&text).map_err(|error| {
            let path = path.display();
            StartError(format!("{path} is not a list of named queries: {error}; repair it or move it away"))
        })
    }

    /// Replaces the file in one step, durably.
    pub(super) fn store(&self, queries: &[StoredQuery]) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        let text = serde_json::to_vec_pretty(queries).map_err(io::Error::other)?;
        durable_file::replace(path, &text)
    }
}
