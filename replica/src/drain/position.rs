//! How far each worker is, and what waits for it to move.

use super::ConnId;
use crate::worker::{QueryId, WorkerId};
use hashbrown::HashMap;
use std::collections::BTreeSet;
use tidegate_wire::model::{Cv, SubId};

/// One worker.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// The last commit version it progressed to; 0 before the first.
    pub(super) cv: Cv,
    /// Families with changes that wait for the position to reach them, in the order of their first.
    pub(super) changed: Vec<QueryId>,
    /// The least commit version of such changes.
    pub(super) changed_from: Option<Cv>,
    /// Connections that cannot be released before this worker moves. A connection watches at most one worker, one
    /// that holds it back: any other may move without consequence.
    pub(super) watchers: BTreeSet<ConnId>,
    /// Subscriptions whose connections are released beyond this worker's position, with the position they wait for.
    pub(super) deferred: BTreeSet<(Cv, ConnId, SubId)>,
}

/// All workers that were heard of.
#[derive(Debug, Default)]
pub(super) struct Workers(HashMap<WorkerId, Position>);

impl Workers {
    /// The worker's position; 0 for one that was not heard of.
    pub(super) fn position(&self, worker: WorkerId) -> Cv {
        self.0.get(&worker).map_or(Cv(0), |position| position.cv)
    }

    pub(super) fn entry(&mut self, worker: WorkerId) -> &mut Position {
        self.0.entry(worker).or_default()
    }

    /// Whether no change up to `cv` waits to be folded.
    pub(super) fn folded_through(&self, worker: WorkerId, cv: Cv) -> bool {
        self.0.get(&worker).and_then(|position| position.changed_from).is_none_or(|from| from > cv)
    }
}
