//! Families and bindings end.

use super::{
    ConnId, Drain, Sink,
    family::{Binding, Subscriber},
};
use crate::worker::{BindingId, Fault, QueryId};
use std::sync::Arc;

impl<S: Sink> Drain<S> {
    /// `query_fault_stays_local`: the owner is told before any subscriber is.
    pub(super) fn tell_owner(&mut self, query: QueryId, binding: Option<BindingId>, fault: &Fault) {
        self.statistics.faults += 1;
        self.sink.owner_faulted(query, binding, fault);
    }

    /// Ends a family; its subscribers are told, and whoever was held back by it is looked at again.
    pub(super) fn end_family(&mut self, query: QueryId, fault: Fault) {
        let fault = Arc::new(fault);
        // Events that come late, or that waited for a registration, have nowhere to go.
        self.ended.insert(query, None, Arc::clone(&fault));
        self.forget_early(query);
        let Some(family) = self.families.remove(&query) else { return };
        self.early_bindings.retain(|early| early.0 != query);
        if self.last_snapshot.as_ref().is_some_and(|last| last.0 == query) {
            self.last_snapshot = None;
        }
        let mut bindings: Vec<_> = family.bindings.into_iter().collect();
        bindings.sort_unstable_by_key(|(id, _)| *id);
        let mut touched = Vec::new();
        for (_, binding) in bindings {
            self.end(binding, &fault, &mut touched);
        }
        self.look_at_each(touched);
    }

    /// Ends one binding; its subscribers are told, and whoever was held back by it is looked at again.
    pub(super) fn end_binding(&mut self, query: QueryId, id: BindingId, fault: Fault) {
        let fault = Arc::new(fault);
        self.ended.insert(query, Some(id), Arc::clone(&fault));
        let family = self.families.get_mut(&query);
        let Some(binding) = family.and_then(|family| family.bindings.remove(&id)) else { return };
        self.early_bindings.retain(|&early| early != (query, id));
        if self.last_snapshot.as_ref().is_some_and(|last| (last.0, last.1) == (query, id)) {
            self.last_snapshot = None;
        }
        let mut touched = Vec::new();
        self.end(binding, &fault, &mut touched);
        self.look_at_each(touched);
    }

    fn end(&mut self, binding: Binding, fault: &Fault, touched: &mut Vec<ConnId>) {
        self.statistics.bindings -= 1;
        if let Some(hydrated) = &binding.hydrated {
            self.statistics.footprint_rows -= hydrated.footprint.len();
        }
        self.tell(binding.subscribers, fault, touched);
    }

    /// Tells subscribers that no binding has any more, and detaches them.
    fn tell(
        &mut self,
        subscribers: impl IntoIterator<Item = Subscriber>,
        fault: &Fault,
        touched: &mut Vec<ConnId>,
    ) {
        for subscriber in subscribers {
            let (conn, sub) = (subscriber.conn, subscriber.sub);
            let removed = self.connections.get_mut(&conn).and_then(|connection| connection.remove(sub));
            debug_assert!(removed.is_some(), "a binding's subscriber is its connection's too");
            if let Some(attached) = removed {
                self.undefer(conn, sub, attached.worker, attached.deferred);
                self.statistics.subscriptions -= 1;
            }
            self.statistics.faulted_subscriptions += 1;
            self.sink.faulted(conn, sub, fault);
            touched.push(conn);
        }
    }
}
