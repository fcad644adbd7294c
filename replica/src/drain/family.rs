//! A family with its bindings and their subscribers.

use super::{ConnId, Footprint, StandingRow};
use crate::{
    query::Output,
    worker::{BindingId, Change, WorkerId},
};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_wire::model::{Cv, Epoch, Seq, SubId};

/// One pipeline's results.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) worker: WorkerId,
    pub(super) output: Arc<Output>,
    pub(super) bindings: HashMap<BindingId, Binding>,
    /// Changes that wait for the worker's position to reach their commit version, oldest first: a commit is folded
    /// whole, so that no footprint shows part of one and a key's changes meet in whichever slices they come.
    pub(super) slices: Vec<(Cv, Vec<Change>)>,
}

impl Family {
    pub(super) fn new(worker: WorkerId, output: Arc<Output>) -> Self {
        Self { worker, output, bindings: HashMap::new(), slices: Vec::new() }
    }

    /// Removes the changes up to `cv`, joined per commit version, oldest first.
    pub(super) fn take_commits(&mut self, cv: Cv) -> Vec<(Cv, Vec<Change>)> {
        let ready = self.slices.partition_point(|slice| slice.0 <= cv);
        let mut commits: Vec<(Cv, Vec<Change>)> = Vec::with_capacity(1);
        for (cv, changes) in self.slices.drain(..ready) {
            match commits.last_mut() {
                Some(last) if last.0 == cv => last.1.extend(changes),
                _ => commits.push((cv, changes)),
            }
        }
        commits
    }
}

/// Whether the coordinator has announced a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announced {
    /// Bound.
    Yes,
    /// Its hydration won the race; it waits for its bind.
    NotYet,
}

/// One binding's result and who gets it.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) announced: Announced,
    pub(super) hydrated: Option<Hydrated>,
    pub(super) subscribers: SmallVec<[Subscriber; 1]>,
    /// How many of `subscribers` are open.
    pub(super) open: usize,
}

impl Binding {
    pub(super) fn new(announced: Announced) -> Self {
        Self { announced, hydrated: None, subscribers: SmallVec::new(), open: 0 }
    }
}

/// A binding's result once it is known.
#[derive(Debug)]
pub(super) struct Hydrated {
    /// The hydration's commit version. The footprint reflects this or the worker's position, whichever is greater.
    pub(super) cv: Cv,
    pub(super) footprint: Footprint,
}

/// A subscription as its binding sees it.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) conn: ConnId,
    pub(super) sub: SubId,
    pub(super) epoch: Epoch,
    pub(super) stage: Stage,
}

/// How far a subscription is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Seq 0 is not sent.
    Pending {
        /// What the client holds, when it resumes.
        resume: Option<Vec<StandingRow>>,
    },
    /// Seq 0 is sent.
    Open {
        /// The next batch's number.
        next: Seq,
    },
}
