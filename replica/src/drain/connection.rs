//! A connection: its subscriptions, what it was delivered, and how far it is released.

use super::{limits::OWED_MAX, position::Workers};
use crate::worker::{BindingId, QueryId, WorkerId};
use hashbrown::HashMap;
use smallvec::SmallVec;
use tidegate_wire::model::{Cv, SubId};

/// A subscription as its connection sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attached {
    pub(super) query: QueryId,
    pub(super) binding: BindingId,
    pub(super) worker: WorkerId,
    /// Its index among the binding's subscribers.
    pub(super) slot: usize,
    /// The position that its worker has to reach before seq 0 can be sent, once that is what it waits for.
    pub(super) deferred: Option<Cv>,
    /// Whether an earlier epoch of the subscription shows until this one's seq 0 is released, and that is not sent.
    pub(super) holds: bool,
}

/// A connection's subscriptions on one worker.
#[derive(Debug)]
struct OnWorker {
    worker: WorkerId,
    subscriptions: usize,
    /// Subscriptions hydrated beyond the worker's position as last looked at.
    floors: SmallVec<[(SubId, Cv); 2]>,
}

impl OnWorker {
    /// The least commit version of these subscriptions.
    fn cv(&mut self, position: Cv) -> Cv {
        self.floors.retain(|(_, floor)| *floor > position);
        if self.floors.len() < self.subscriptions {
            return position;
        }
        self.floors.iter().map(|(_, floor)| *floor).min().unwrap_or(position)
    }
}

/// Whether a connection can be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// To this `cv_min`, now.
    Release(Cv),
    /// Not before this worker moves.
    Blocked(WorkerId),
    /// Nothing waits for a release, or a subscription that replaces another is not sent.
    Quiet,
}

/// One client connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) subscriptions: HashMap<SubId, Attached>,
    on_workers: SmallVec<[OnWorker; 2]>,
    /// Commit versions that were delivered and not released: ascending, each once, at most [`OWED_MAX`].
    owed: SmallVec<[Cv; 2]>,
    /// The last `cv_min` sent; never goes back.
    pub(super) released: Cv,
    /// Subscriptions that replace an earlier epoch, with the commit version of their seq 0 while it is not released:
    /// any `cv_min` below would show the earlier epoch beside newer data of others.
    gates: SmallVec<[(SubId, Cv); 1]>,
    /// How many subscriptions have [`Attached::holds`] set.
    holds: usize,
    /// The worker among whose watchers the connection is.
    pub(super) watching: Option<WorkerId>,
}

impl Connection {
    /// Adds a subscription; seq 0 is not sent.
    pub(super) fn add(&mut self, sub: SubId, attached: Attached) {
        self.holds += usize::from(attached.holds);
        match self.on_workers.iter_mut().find(|on| on.worker == attached.worker) {
            Some(on) => on.subscriptions += 1,
            None => self.on_workers.push(OnWorker {
                worker: attached.worker,
                subscriptions: 1,
                floors: SmallVec::new(),
            }),
        }
        let before = self.subscriptions.insert(sub, attached);
        debug_assert!(before.is_none(), "a subscription is removed before it is replaced");
    }

    /// Removes a subscription.
    pub(super) fn remove(&mut self, sub: SubId) -> Option<Attached> {
        let attached = self.subscriptions.remove(&sub)?;
        self.holds -= usize::from(attached.holds);
        self.gates.retain(|(other, _)| *other != sub);
        if let Some(index) = self.on_workers.iter().position(|on| on.worker == attached.worker) {
            let on = &mut self.on_workers[index];
            on.subscriptions -= 1;
            on.floors.retain(|(other, _)| *other != sub);
            if on.subscriptions == 0 {
                self.on_workers.swap_remove(index);
            }
        }
        Some(attached)
    }

    /// Seq 0 of a subscription was sent with `cv`, which is at or beyond its worker's position.
    pub(super) fn opened(&mut self, sub: SubId, cv: Cv) {
        debug_assert!(cv >= self.released, "progress_is_irrevocable: seq 0 at {cv} after {}", self.released);
        let Some(attached) = self.subscriptions.get_mut(&sub) else { return };
        attached.deferred = None;
        if std::mem::take(&mut attached.holds) {
            self.holds -= 1;
            self.gates.push((sub, cv));
        }
        let worker = attached.worker;
        if let Some(on) = self.on_workers.iter_mut().find(|on| on.worker == worker) {
            on.floors.push((sub, cv));
        }
        self.owe(cv);
    }

    /// An incremental batch was sent. Returns whether this is the first of its commit version.
    pub(super) fn delivered(&mut self, cv: Cv) -> bool {
        debug_assert!(cv > self.released, "progress_is_irrevocable: a batch of {cv} after {}", self.released);
        self.owe(cv)
    }

    fn owe(&mut self, cv: Cv) -> bool {
        let Err(index) = self.owed.binary_search(&cv) else { return false };
        if self.owed.len() < OWED_MAX {
            self.owed.insert(index, cv);
        } else if index == OWED_MAX {
            // Released together with what the entry stood for: later for the one, never too early.
            self.owed[OWED_MAX - 1] = cv;
        }
        true
    }

    /// Whether something delivered can be released.
    pub(super) fn outlook(&mut self, workers: &Workers, newest: Cv) -> Outlook {
        let Some(&first) = self.owed.first() else { return Outlook::Quiet };
        self.outlook_for(first, workers, newest)
    }

    /// Whether a `cv_min` greater than the last one can be sent though nothing was delivered.
    pub(super) fn idle_outlook(&mut self, workers: &Workers, newest: Cv) -> Outlook {
        self.outlook_for(self.released.next(), workers, newest)
    }

    fn outlook_for(&mut self, least: Cv, workers: &Workers, newest: Cv) -> Outlook {
        if self.holds > 0 {
            return Outlook::Quiet;
        }
        let gate = self.gates.iter().map(|(_, cv)| *cv).max().unwrap_or(least);
        let least = least.max(self.released).max(gate);
        // The least of the subscriptions, those that wait for seq 0 included; with none, the newest seen.
        let mut cv_min = newest;
        let mut slowest = None;
        for on in &mut self.on_workers {
            let cv = on.cv(workers.position(on.worker));
            if slowest.is_none() || cv < cv_min {
                (cv_min, slowest) = (cv, Some(on.worker));
            }
        }
        // A worker ahead of it may have merged commits across it: then what it delivered before is too old for
        // `cv_min` and what it delivered after is too new. Back to where each of them stood.
        loop {
            let stops = self.on_workers.iter().map(|on| workers.stop_before(on.worker, cv_min));
            match stops.min() {
                Some(stop) if stop < cv_min => cv_min = stop,
                _ => break,
            }
        }
        match slowest {
            _ if cv_min >= least => Outlook::Release(cv_min),
            Some(worker) => Outlook::Blocked(worker),
            None => Outlook::Quiet,
        }
    }

    /// `cv_min` was sent.
    pub(super) fn release(&mut self, cv_min: Cv, workers: &Workers) {
        debug_assert!(cv_min >= self.released, "progress_is_irrevocable: {cv_min} after {}", self.released);
        debug_assert!(
            self.on_workers.iter().all(|on| workers.stop_before(on.worker, cv_min) == cv_min),
            "commit_is_atomic_for_a_client: {cv_min} lies between merged commits"
        );
        debug_assert!(
            self.on_workers.iter().all(|on| workers.folded_through(on.worker, cv_min)),
            "batches_precede_progress: changes up to {cv_min} are not folded"
        );
        self.released = cv_min;
        self.gates.clear();
        let covered = self.owed.partition_point(|&cv| cv <= cv_min);
        self.owed.drain(..covered);
    }

    /// Whether one of its subscriptions is on the worker.
    pub(super) fn is_on(&self, worker: WorkerId) -> bool {
        self.on_workers.iter().any(|on| on.worker == worker)
    }
}
