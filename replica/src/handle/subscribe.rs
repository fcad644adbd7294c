//! Subscriptions: from a prepared query to a family, a binding and an attachment.

use super::{
    Inner, PreparedQuery, ResumePoint,
    fresh::{schema_changed, standing_rows},
    registry::{Binding, Family, Registry, Subscription, values_key},
    request::ByName,
};
use crate::{
    drain::{ConnId, Control, StandingRow},
    query::{QueryError, QueryErrorKind},
    store::{IndexError, IndexId},
    worker::{BindingId, QueryGauges, QueryId, WorkerInput},
};
use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};
use tidegate_wire::model::{Epoch, SubId};

/// What became of an attempt to attach a subscription.
enum Attempt {
    /// It is attached.
    Attached,
    /// The indexes have to be asked for again.
    IndexesGone,
    /// The name it was asked for by stands for another query now, or for none.
    NameChanged(ByName),
}

impl Inner {
    /// See [`super::Replica::subscribe`].
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        conn: ConnId,
        sub: SubId,
        query: &PreparedQuery,
        resume: Option<ResumePoint>,
    ) -> Result<Epoch, QueryError> {
        let mut query = Cow::Borrowed(query);
        let mut base = self.resume_base(&query, resume).await;
        let epoch = self.epochs.next();
        loop {
            let indexes = self.ensure_indexes(&query).await?;
            match self.attach(conn, sub, &query, epoch, indexes, &mut base)? {
                Attempt::Attached => return Ok(epoch),
                Attempt::IndexesGone => {}
                Attempt::NameChanged(by_name) => {
                    query = Cow::Owned(self.prepare_named(&by_name.name, &by_name.args, &by_name.claims)?);
                    base = self.resume_base(&query, resume).await;
                }
            }
        }
    }

    /// Attaches a subscription as things are now. `indexes` are as in [`Inner::bound`]; `base` is what a resuming
    /// client holds.
    fn attach(
        &self,
        conn: ConnId,
        sub: SubId,
        query: &PreparedQuery,
        epoch: Epoch,
        indexes: Vec<IndexId>,
        base: &mut Option<Vec<StandingRow>>,
    ) -> Result<Attempt, QueryError> {
        let mut registry = self.registry();
        // Whoever gives the name another meaning ends the subscriptions there are by then, under this lock; one that
        // comes later has to be the new meaning's.
        if let Some(by_name) = query.by_name.as_ref().filter(|by_name| !registry.is_current(by_name)) {
            indexes.into_iter().for_each(|index| self.store.release_index(index));
            return Ok(Attempt::NameChanged(by_name.clone()));
        }
        // A pin that was lost need not wait any longer: someone is about to find out how the data are now.
        if let Some(named) = query.by_name.as_ref().and_then(|by_name| registry.named.get_mut(&by_name.name))
            && let Some(due) = &mut named.repin.due
        {
            *due = Instant::now();
            let _ = self.wake_owner.try_send(());
        }
        let Some((family, binding)) = self.bound(&mut registry, query, indexes)? else {
            return Ok(Attempt::IndexesGone);
        };
        let values = values_key(&query.resolved.values);
        if let Some(found) = registry.binding_mut(family, &values, binding) {
            found.subscribers += 1;
            found.idle = None;
        }
        let subscription = Subscription {
            query: family,
            values,
            binding,
            name: query.by_name.as_ref().map(|by_name| by_name.name.clone()),
            idle_ttl: query.idle_ttl.unwrap_or(self.options.idle_ttl),
        };
        let replaced = registry.connections.entry(conn).or_default().insert(sub, subscription);
        debug_assert!(replaced.is_none(), "a subscription's number is used once on a connection");
        let resume = base.take();
        let _ = self.drain.control(Control::Attach { conn, sub, query: family, binding, epoch, resume });
        Ok(Attempt::Attached)
    }

    /// The indexes of a shape that is not live yet; each is owed a release.
    pub(super) async fn ensure_indexes(&self, query: &PreparedQuery) -> Result<Vec<IndexId>, QueryError> {
        let shape = &query.resolved.shape;
        if self.registry().families.contains_key(&shape.key) {
            return Ok(Vec::new());
        }
        let mut indexes = Vec::new();
        for spec in shape.indexes() {
            match self.store.ensure_index((*spec).clone()).await {
                Ok(Ok(index)) => indexes.push(index),
                Ok(Err(IndexError::UnknownTable(_))) => {
                    indexes.into_iter().for_each(|index| self.store.release_index(index));
                    return Err(schema_changed());
                }
                Ok(Err(error)) => {
                    indexes.into_iter().for_each(|index| self.store.release_index(index));
                    return Err(QueryError::new(QueryErrorKind::NotReady, error.to_string()));
                }
                Err(closed) => return Err(QueryError::new(QueryErrorKind::NotReady, closed.to_string())),
            }
        }
        Ok(indexes)
    }

    /// What a resuming client holds: the query's result at its commit version, if it is this query's and still kept.
    async fn resume_base(
        &self,
        query: &PreparedQuery,
        resume: Option<ResumePoint>,
    ) -> Option<Vec<StandingRow>> {
        let point = resume?;
        // What was held when a named query was defined, or before, may be its predecessor's result.
        let is_past = query.by_name.as_ref().is_none_or(|by_name| point.cv > by_name.defined_at);
        let is_known = point.epoch.is_none_or(|epoch| self.epochs.is_known(epoch, point.cv));
        if !is_past || !is_known || point.fp != query.resolved.shape.output.fp {
            return None;
        }
        let snapshot = self.store.snapshot_at(point.cv)?;
        let (resolved, deadline) = (query.resolved.clone(), self.options.deadline);
        let rows = tokio::task::spawn_blocking(move || standing_rows(&resolved, &snapshot, deadline)).await;
        rows.ok()?.ok()
    }

    /// The family and binding of a query, made if they are not there; `None` when the indexes have to be asked for
    /// again. `indexes` are the caller's claims on what the shape reads; they become the family's or are released.
    pub(super) fn bound(
        &self,
        registry: &mut Registry,
        query: &PreparedQuery,
        indexes: Vec<IndexId>,
    ) -> Result<Option<(QueryId, BindingId)>, QueryError> {
        let shape = &query.resolved.shape;
        let families = registry.families.len();
        let units = if registry.families.contains_key(&shape.key) { Vec::new() } else { shape.units() };
        // Only operators of one thread can be shared.
        let worker = registry.worker_with(&units).unwrap_or_else(|| self.least_loaded());
        let family = match registry.families.entry(shape.key.clone()) {
            Entry::Occupied(entry) => {
                indexes.into_iter().for_each(|index| self.store.release_index(index));
                entry.into_mut()
            }
            Entry::Vacant(entry) => {
                // The family was live when the indexes were looked at, and has ended since.
                if indexes.len() != shape.indexes().len() {
                    indexes.into_iter().for_each(|index| self.store.release_index(index));
                    return Ok(None);
                }
                if families >= self.options.families_max {
                    indexes.into_iter().for_each(|index| self.store.release_index(index));
                    let message =
                        format!("the limit of {} different queries is reached", self.options.families_max);
                    return Err(QueryError::new(QueryErrorKind::NotReady, message));
                }
                let id = QueryId(self.next_query.fetch_add(1, Relaxed));
                let gauges = Arc::new(QueryGauges::default());
                let output = Arc::clone(&shape.output);
                let _ = self.drain.control(Control::Register {
                    query: id,
                    worker: self.workers[worker].id,
                    output,
                });
                self.workers[worker].send(WorkerInput::Register {
                    query: id,
                    shape: Arc::clone(shape),
                    gauges: Arc::clone(&gauges),
                });
                registry.by_query.insert(id, shape.key.clone());
                entry.insert(Family {
                    query: id,
                    worker,
                    shape: Arc::clone(shape),
                    gauges,
                    units,
                    indexes,
                    bindings: HashMap::new(),
                })
            }
        };
        let (id, worker) = (family.query, family.worker);
        let binding = match family.bindings.entry(values_key(&query.resolved.values)) {
            Entry::Occupied(entry) => entry.get().binding,
            Entry::Vacant(entry) => {
                let binding = BindingId(self.next_binding.fetch_add(1, Relaxed));
                let values: Arc<[_]> = query.resolved.values.clone().into();
                let hydrated = Arc::new(AtomicBool::new(false));
                let _ = self.drain.control(Control::Bind { query: id, binding });
                self.workers[worker].send(WorkerInput::Bind {
                    query: id,
                    binding,
                    values: Arc::clone(&values),
                    hydrated: Arc::clone(&hydrated),
                });
                entry.insert(Binding { binding, values, subscribers: 0, pins: 0, hydrated, idle: None });
                binding
            }
        };
        Ok(Some((id, binding)))
    }

    /// The worker with the fewest families.
    fn least_loaded(&self) -> usize {
        let loads = self.workers.iter().enumerate().map(|(index, worker)| (worker.families(), index));
        loads.min().map_or(0, |(_, index)| index)
    }

    /// See [`super::Replica::unsubscribe`].
    pub(super) fn unsubscribe(&self, conn: ConnId, sub: SubId) {
        let mut registry = self.registry();
        let Some(gone) = registry.connections.get_mut(&conn).and_then(|subs| subs.remove(&sub)) else {
            return;
        };
        let _ = self.drain.control(Control::Detach { conn, sub });
        registry.release(&gone, Instant::now());
    }

    /// See [`super::Replica::disconnect`].
    pub(super) fn disconnect(&self, conn: ConnId) {
        let mut registry = self.registry();
        let _ = self.drain.control(Control::Disconnect { conn });
        let now = Instant::now();
        for gone in registry.connections.remove(&conn).unwrap_or_default().into_values() {
            registry.release(&gone, now);
        }
    }
}
