//! One subscription's state: what is shown, which epoch the connection is in, and what waits for release.

use super::{
    Violation,
    batch::{Fold, TypedBatch, TypedOp},
    change::{Change, Changes},
    pool::Pool,
    result_tree::{NetChange, ResultTree},
    shape::Shape,
};
use crate::query::Query;
use std::{collections::VecDeque, sync::Arc};
use tidegate_wire::{
    codec::Codec,
    model::{Cv, Epoch, Fingerprint, Layout, Seq, SubId},
    protocol::{
        client::{Resume, Subscribe},
        server::{Batch, Subscribed},
    },
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) sub: SubId,
    /// What to ask for, on every connection again; `None` for subscription 0, which nobody asks for.
    pub(crate) query: Option<Query>,
    /// The result that is shown; `None` before the first release.
    pub(crate) tree: Option<ResultTree>,
    /// Under which epoch and up to which cv the tree was released, when that is not the present epoch.
    held_at: Option<Resume>,
    /// What the present connection was asked to continue from.
    offered: Option<Resume>,
    /// The epoch that the present connection announced.
    pub(crate) live: Option<Live>,
}

/// An epoch of the present connection.
#[derive(Debug)]
pub(crate) struct Live {
    epoch: Epoch,
    fp: Fingerprint,
    pub(crate) shape: Arc<Shape>,
    /// Whether seq 0 is a difference to the tree.
    resumed: bool,
    next_seq: Seq,
    /// The cv of the last batch.
    last_cv: Cv,
    /// The cv of seq 0, once all its parts are here.
    complete_at: Option<Cv>,
    /// Whether the tree is of this epoch.
    pub(crate) released: bool,
    waiting: VecDeque<TypedBatch>,
}

/// A release of one subscription that was checked and can be applied.
pub(crate) struct Prepared {
    net: Vec<NetChange>,
    batches: usize,
}

impl Subscription {
    pub(crate) fn new(sub: SubId, query: Option<Query>) -> Self {
        Self { sub, query, tree: None, held_at: None, offered: None, live: None }
    }

    /// The message that asks for the subscription on a new connection.
    pub(crate) fn subscribe(&mut self) -> Option<Subscribe> {
        let query = self.query.as_ref()?;
        self.offered = self.held_at.filter(|_| self.tree.is_some());
        Some(query.subscribe(self.sub, self.offered))
    }

    /// Ends the present epoch, at the end of a connection or for the next one; the tree stays, at cv `released`.
    pub(crate) fn retire(&mut self, released: Cv) -> usize {
        let Some(live) = self.live.take() else { return 0 };
        if live.released {
            self.held_at = Some(Resume { epoch: live.epoch, cv: released, fp: live.fp });
        }
        live.waiting.iter().map(|batch| batch.ops.len()).sum()
    }

    /// Makes the next connection ask for a snapshot, because what is held cannot be continued.
    pub(crate) fn distrust(&mut self) {
        self.held_at = None;
        if let Some(live) = &mut self.live {
            live.released = false;
        }
    }

    /// A new epoch; the present one is retired already.
    pub(crate) fn begin(&mut self, subscribed: Subscribed) -> Result<(), Violation> {
        let Subscribed { sub, epoch, fp, tables, places, resumed } = subscribed;
        let malformed =
            |what: String| Violation::MessagesAreWellFormed(format!("subscription {sub}: {what}"));
        let layout = Layout { tables, places };
        let held = self.tree.as_ref().map(ResultTree::shape).filter(|shape| shape.layout == layout);
        let shape = match held {
            Some(shape) => Arc::clone(shape),
            None => Arc::new(Shape::new(layout).map_err(malformed)?),
        };
        let offered = self.offered.take();
        if resumed {
            let Some(offered) = offered else {
                return Err(malformed("resumed without having been asked to".to_owned()));
            };
            if offered.fp != fp || self.tree.as_ref().is_none_or(|tree| !Arc::ptr_eq(tree.shape(), &shape)) {
                return Err(Violation::FpIsConstant { sub, epoch });
            }
        }
        self.live = Some(Live {
            epoch,
            fp,
            shape,
            resumed,
            next_seq: Seq(0),
            last_cv: Cv(0),
            complete_at: None,
            released: false,
            waiting: VecDeque::new(),
        });
        Ok(())
    }

    /// Takes a batch in; `cv_min` is the connection's. Returns how many operations now wait more; `None` for a batch
    /// of another epoch, which is passed over.
    pub(crate) fn batch(
        &mut self,
        batch: &Batch,
        cv_min: Option<Cv>,
        codec: Codec,
    ) -> Result<Option<usize>, Violation> {
        let sub = self.sub;
        let Some(live) = self.live.as_mut().filter(|live| live.epoch == batch.epoch) else { return Ok(None) };
        if batch.seq != live.next_seq {
            let (epoch, expected, found) = (live.epoch, live.next_seq, batch.seq);
            return Err(Violation::SeqIsGapless { sub, epoch, expected, found });
        }
        if batch.fp != live.fp {
            return Err(Violation::FpIsConstant { sub, epoch: live.epoch });
        }
        let behind = |after| Violation::BatchesPrecedeProgress { sub, cv: batch.cv, after };
        if batch.cv < live.last_cv {
            return Err(behind(live.last_cv));
        }
        if live.complete_at.is_some()
            && let Some(cv_min) = cv_min.filter(|&cv_min| batch.cv <= cv_min)
        {
            return Err(behind(cv_min));
        }
        let ops: Result<Vec<_>, String> =
            batch.ops.iter().map(|op| TypedOp::read(op, &live.shape, codec)).collect();
        let ops =
            ops.map_err(|what| Violation::MessagesAreWellFormed(format!("subscription {sub}: {what}")))?;
        live.next_seq = live.next_seq.next();
        live.last_cv = batch.cv;
        if live.complete_at.is_none() && !batch.more {
            live.complete_at = Some(batch.cv);
        }
        let count = ops.len();
        live.waiting.push_back(TypedBatch { cv: batch.cv, ops });
        Ok(Some(count))
    }

    /// Whether seq 0 of the present epoch can be shown at `cv_min`, or is shown already.
    pub(crate) fn ready(&self, cv_min: Cv) -> bool {
        self.live.as_ref().is_some_and(|live| live.complete_at.is_some_and(|cv| cv <= cv_min))
    }

    /// Whether all parts of seq 0 are here.
    pub(crate) fn complete(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.complete_at.is_some())
    }

    /// Whether batches wait for their release.
    pub(crate) fn waits(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.waiting.is_empty())
    }

    /// The operations that wait, for a look ahead of their release.
    pub(crate) fn waiting_ops(&self) -> impl DoubleEndedIterator<Item = &TypedOp> {
        self.live.iter().flat_map(|live| &live.waiting).flat_map(|batch| &batch.ops)
    }

    /// Checks what `cv_min` releases; `None` when that is nothing. Changes nothing.
    pub(crate) fn prepare(&self, cv_min: Cv) -> Result<Option<Prepared>, Violation> {
        let Some(live) = self.live.as_ref().filter(|_| self.ready(cv_min)) else { return Ok(None) };
        let batches = live.waiting.iter().take_while(|batch| batch.cv <= cv_min).count();
        if batches == 0 {
            return Ok(None);
        }
        let continues = live.released || live.resumed;
        let base = self.tree.as_ref().filter(|_| continues);
        let mut fold = Fold::default();
        for batch in live.waiting.iter().take(batches) {
            fold.batch(self.sub, batch, base)?;
        }
        let net = match &self.tree {
            // A snapshot of the layout that is shown becomes a difference to it, so that readers keep what stays.
            Some(tree) if !continues && Arc::ptr_eq(tree.shape(), &live.shape) => fold.replacing(tree),
            _ => fold.into_net(),
        };
        Ok(Some(Prepared { net, batches }))
    }

    /// Applies what was prepared. Returns the changes and how many operations wait less.
    pub(crate) fn apply(&mut self, prepared: Prepared, pool: &mut Pool) -> (Changes, usize) {
        let live = self.live.as_mut().expect("a prepared release is of a live epoch");
        let waited = live.waiting.drain(..prepared.batches).map(|batch| batch.ops.len()).sum();
        live.released = true;
        let mut changes = Changes::default();
        let replaced = self.tree.take_if(|tree| !Arc::ptr_eq(tree.shape(), &live.shape));
        if let Some(old) = replaced {
            changes.fold(old.removals());
            old.dissolve(pool);
        }
        let tree = self.tree.get_or_insert_with(|| ResultTree::new(Arc::clone(&live.shape), pool));
        let applied = tree.apply(prepared.net, pool);
        if changes.len() == 0 {
            changes = applied;
        } else {
            changes.fold(applied.into_sorted().into_iter().map(|change| Change { old: None, ..change }));
        }
        (changes, waited)
    }
}
