//! How far each worker is, and what waits for it to move.

use super::{ConnId, limits::MERGES_MAX};
use crate::worker::{QueryId, WorkerId};
use hashbrown::HashMap;
use std::collections::{BTreeSet, VecDeque};
use tidegate_wire::model::{Cv, SubId};

/// One worker.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// The last commit version it progressed to; 0 before the first.
    pub(super) cv: Cv,
    /// The last commit version known to be one where the worker stood still; none before it is heard of.
    stop: Option<Cv>,
    /// Pairs of stops between which it merged commits, ascending, at most [`MERGES_MAX`]. Between the two its
    /// queries' results are not known at any commit version, so that no connection can be released there.
    merges: VecDeque<(Cv, Cv)>,
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

impl Position {
    /// A result of the worker at `cv` was seen. Matters as the start of what it merges first.
    pub(super) fn seen_at(&mut self, cv: Cv) {
        self.stop.get_or_insert(cv);
    }

    /// The worker has come to `cv`, in one step.
    pub(super) fn moved_to(&mut self, cv: Cv) {
        self.cv = cv;
        let Some(from) = self.stop.replace(cv) else { return };
        if cv <= from.next() {
            return;
        }
        self.merges.push_back((from, cv));
        if self.merges.len() > MERGES_MAX
            && let (Some(first), Some(second)) = (self.merges.pop_front(), self.merges.pop_front())
        {
            self.merges.push_front((first.0, second.1));
        }
    }

    /// The greatest commit version up to `cv` at which the worker's results were complete.
    fn stop_before(&self, cv: Cv) -> Cv {
        let index = self.merges.partition_point(|merge| merge.1 <= cv);
        match self.merges.get(index) {
            Some(&(from, _)) if from < cv => from,
            _ => cv,
        }
    }
}

/// All workers that were heard of.
#[derive(Debug, Default)]
pub(super) struct Workers(HashMap<WorkerId, Position>);

impl Workers {
    /// The worker's position; 0 for one that was not heard of.
    pub(super) fn position(&self, worker: WorkerId) -> Cv {
        self.0.get(&worker).map_or(Cv(0), |position| position.cv)
    }

    /// The greatest commit version up to `cv` at which the worker's results were complete.
    pub(super) fn stop_before(&self, worker: WorkerId, cv: Cv) -> Cv {
        self.0.get(&worker).map_or(cv, |position| position.stop_before(cv))
    }

    pub(super) fn entry(&mut self, worker: WorkerId) -> &mut Position {
        self.0.entry(worker).or_default()
    }

    /// Whether no change up to `cv` waits to be folded.
    pub(super) fn folded_through(&self, worker: WorkerId, cv: Cv) -> bool {
        self.0.get(&worker).and_then(|position| position.changed_from).is_none_or(|from| from > cv)
    }
}
