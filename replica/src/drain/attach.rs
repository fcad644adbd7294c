//! Subscriptions begin and end.

use super::{
    BatchOps, ConnId, Drain, Recipient, Sink, StandingRow,
    batches::{self, Kind},
    connection::Attached,
    family::{Announced, Stage, Subscriber},
};
use crate::worker::{BindingId, QueryId, WorkerId};
use tidegate_wire::model::{Cv, Epoch, Seq, SubId};

impl<S: Sink> Drain<S> {
    pub(super) fn attach(
        &mut self,
        conn: ConnId,
        sub: SubId,
        query: QueryId,
        id: BindingId,
        epoch: Epoch,
        resume: Option<Vec<StandingRow>>,
    ) {
        if !self.connections.contains_key(&conn) {
            return;
        }
        // The client goes on showing the earlier epoch, at the commit version it is released to.
        let holds = self.detach(conn, sub).is_some();
        let family = self.families.get_mut(&query);
        let worker = family.as_ref().map(|family| family.worker);
        let binding = family
            .and_then(|family| family.bindings.get_mut(&id))
            .filter(|binding| binding.announced == Announced::Yes);
        let (Some(worker), Some(binding)) = (worker, binding) else {
            let fault = self.ended.explain(query, id);
            self.statistics.faulted_subscriptions += 1;
            self.sink.faulted(conn, sub, &fault);
            return self.look_at(conn);
        };
        let slot = binding.subscribers.len();
        binding.subscribers.push(Subscriber { conn, sub, epoch, stage: Stage::Pending { resume } });
        let attached = Attached { query, binding: id, worker, slot, deferred: None, holds };
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.add(sub, attached);
        }
        self.statistics.subscriptions += 1;
        let mut touched = vec![conn];
        self.open(query, id, &[(conn, sub)], &mut touched);
        self.look_at_each(touched);
    }

    /// Sends seq 0 to those of `waiting`, pending subscribers of the binding, that can have it; the others wait for
    /// its hydration, or for its worker to reach what their connection is released to.
    pub(super) fn open(
        &mut self,
        query: QueryId,
        id: BindingId,
        waiting: &[(ConnId, SubId)],
        touched: &mut Vec<ConnId>,
    ) {
        let Some(family) = self.families.get_mut(&query) else { return };
        let Some(binding) = family.bindings.get_mut(&id) else { return };
        let Some(hydrated) = &binding.hydrated else { return };
        let cv = hydrated.cv.max(self.workers.position(family.worker));
        let mut fresh = Vec::new();
        for &(conn, sub) in waiting {
            let Some(connection) = self.connections.get_mut(&conn) else { continue };
            let released = connection.released;
            let Some(attached) = connection.subscriptions.get_mut(&sub) else { continue };
            let slot = attached.slot;
            if released > cv {
                attached.deferred = Some(released);
                self.workers.entry(family.worker).deferred.insert((released, conn, sub));
                continue;
            }
            let Some(subscriber) = binding.subscribers.get_mut(slot) else { continue };
            let Stage::Pending { resume } = &mut subscriber.stage else { continue };
            let resume = resume.take();
            subscriber.stage = Stage::Open { next: Seq(0) };
            binding.open += 1;
            connection.opened(sub, cv);
            touched.push(conn);
            let Some(base) = resume else {
                fresh.push(slot);
                continue;
            };
            self.sink.subscribed(conn, sub, subscriber.epoch, &family.output, true);
            let ops = hydrated.footprint.difference_from(&base);
            let parts = batches::split(&family.output, cv, ops, Kind::Snapshot, self.batch_bytes_max);
            self.statistics.count(&parts, 1);
            deliver(&mut self.sink, &parts, &mut binding.subscribers, &[slot]);
        }
        if fresh.is_empty() {
            return;
        }
        let parts = match self.last_snapshot.take() {
            Some((last_query, last_binding, mut parts)) if (last_query, last_binding) == (query, id) => {
                parts.iter_mut().for_each(|part| part.cv = cv);
                parts
            }
            _ => batches::split(
                &family.output,
                cv,
                hydrated.footprint.snapshot(),
                Kind::Snapshot,
                self.batch_bytes_max,
            ),
        };
        for &slot in &fresh {
            let Subscriber { conn, sub, epoch, .. } = binding.subscribers[slot];
            self.sink.subscribed(conn, sub, epoch, &family.output, false);
        }
        self.statistics.count(&parts, fresh.len());
        deliver(&mut self.sink, &parts, &mut binding.subscribers, &fresh);
        self.last_snapshot = Some((query, id, parts));
    }

    /// Ends a subscription without a word.
    pub(super) fn detach(&mut self, conn: ConnId, sub: SubId) -> Option<Attached> {
        let attached = self.connections.get_mut(&conn)?.remove(sub)?;
        self.unlist(conn, sub, attached);
        Some(attached)
    }

    /// Forgets a subscription that its connection no longer has.
    fn unlist(&mut self, conn: ConnId, sub: SubId, attached: Attached) {
        self.statistics.subscriptions -= 1;
        self.undefer(conn, sub, attached.worker, attached.deferred);
        let family = self.families.get_mut(&attached.query);
        let Some(binding) = family.and_then(|family| family.bindings.get_mut(&attached.binding)) else {
            return;
        };
        let removed = binding.subscribers.swap_remove(attached.slot);
        binding.open -= usize::from(matches!(removed.stage, Stage::Open { .. }));
        debug_assert_eq!((removed.conn, removed.sub), (conn, sub), "a slot names its own subscription");
        if let Some(moved) = binding.subscribers.get(attached.slot)
            && let Some(connection) = self.connections.get_mut(&moved.conn)
            && let Some(moved) = connection.subscriptions.get_mut(&moved.sub)
        {
            moved.slot = attached.slot;
        }
    }

    pub(super) fn undefer(&mut self, conn: ConnId, sub: SubId, worker: WorkerId, deferred: Option<Cv>) {
        if let Some(cv) = deferred {
            self.workers.entry(worker).deferred.remove(&(cv, conn, sub));
        }
    }

    pub(super) fn disconnect(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let subs: Vec<_> = connection.subscriptions.keys().copied().collect();
        if let Some(worker) = connection.watching.take() {
            self.workers.entry(worker).watchers.remove(&conn);
        }
        // One by one while the connection is known: ending one may move another of its own to a new slot.
        for sub in subs {
            self.detach(conn, sub);
        }
        self.connections.remove(&conn);
    }
}

/// Sends the parts of a seq 0 to the subscribers in `slots`.
fn deliver(sink: &mut impl Sink, parts: &[BatchOps], subscribers: &mut [Subscriber], slots: &[usize]) {
    let mut recipients = Vec::with_capacity(slots.len());
    for part in parts {
        recipients.clear();
        for &slot in slots {
            let Subscriber { conn, sub, epoch, stage } = &mut subscribers[slot];
            let Stage::Open { next } = stage else { continue };
            recipients.push(Recipient { conn: *conn, sub: *sub, epoch: *epoch, seq: *next });
            *next = next.next();
        }
        sink.batch(part, &recipients);
    }
}
