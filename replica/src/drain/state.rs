//! The drain's state machine. [`super::thread`] drives it in production, tests drive it directly: no threads, no
//! clock, no I/O. What it sends depends on the order of its inputs alone.
//!
//! What it guarantees, per connection: `batches_precede_progress`, `progress_is_irrevocable`, `seq_is_gapless`,
//! `commit_is_atomic_for_a_client`, `slow_worker_holds_only_its_own`, `query_fault_stays_local`.

use super::{
    BatchOps, ConnId, Control, Emit, Footprint, Inspected, Recipient, Sink, Statistics,
    batches::{self, Kind},
    connection::{Connection, Outlook},
    early::EarlyEvents,
    ended::Ended,
    family::{Announced, Binding, Family, Hydrated, Stage},
    limits::{BATCH_ROW_BYTES_MAX, EARLY_BINDINGS_MAX, EARLY_CHANGES_MAX, EARLY_FAMILIES_MAX},
    position::Workers,
};
use crate::{
    query::Output,
    worker::{BindingId, Change, Fault, FaultCause, QueryId, WorkerEvent, WorkerId},
};
use hashbrown::{HashMap, hash_map::Entry};
use std::{collections::VecDeque, sync::Arc};
use tidegate_wire::model::{Cv, Seq, SubId};

/// The state machine. Inputs are [`Drain::control`] and [`Drain::event`] in the order of the drain's queue, and
/// [`Drain::keep_alive`] at a slow rate; output goes to the sink during the call.
#[derive(Debug)]
pub struct Drain<S> {
    pub(super) sink: S,
    /// Row bytes per batch.
    pub(super) batch_bytes_max: usize,
    pub(super) families: HashMap<QueryId, Family>,
    pub(super) connections: HashMap<ConnId, Connection>,
    pub(super) workers: Workers,
    pub(super) ended: Ended,
    early: EarlyEvents,
    /// Bindings hydrated and not announced, the one that has waited longest first.
    pub(super) early_bindings: VecDeque<(QueryId, BindingId)>,
    /// The newest commit version seen.
    pub(super) newest: Cv,
    pub(super) statistics: Statistics,
    /// The last snapshot built: subscribers that come to one binding in a row share it.
    pub(super) last_snapshot: Option<(QueryId, BindingId, Vec<BatchOps>)>,
    shut_down: bool,
    recipients: Vec<Recipient>,
}

impl<S: Sink> Drain<S> {
    /// A drain without queries and connections.
    #[must_use]
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            batch_bytes_max: BATCH_ROW_BYTES_MAX,
            families: HashMap::new(),
            connections: HashMap::new(),
            workers: Workers::default(),
            ended: Ended::default(),
            early: EarlyEvents::default(),
            early_bindings: VecDeque::new(),
            newest: Cv(0),
            statistics: Statistics::default(),
            last_snapshot: None,
            shut_down: false,
            recipients: Vec::new(),
        }
    }

    /// With at most that many row bytes in a batch.
    #[must_use]
    pub fn with_batch_bytes_max(mut self, bytes_max: usize) -> Self {
        self.batch_bytes_max = bytes_max.clamp(1, BATCH_ROW_BYTES_MAX);
        self
    }

    /// The counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics { connections: self.connections.len(), families: self.families.len(), ..self.statistics }
    }

    /// Where the output goes.
    #[must_use]
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Where the output goes, for tests that empty a recording.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Ends the drain and hands its sink back.
    #[must_use]
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Ends a turn: see [`Sink::flush`].
    pub fn flush(&mut self) {
        self.sink.flush();
    }

    /// Whether [`Control::Shutdown`] came; whatever comes after it is ignored.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shut_down
    }

    /// Takes what the coordinator says.
    pub fn control(&mut self, control: Control) {
        if self.shut_down {
            return;
        }
        match control {
            Control::Register { query, worker, output } => self.register(query, worker, output),
            Control::Bind { query, binding } => self.bind(query, binding),
            Control::Unbind { query, binding, fault } => self.end_binding(query, binding, fault),
            Control::Remove { query, fault } => self.end_family(query, fault),
            Control::Connect { conn } => {
                self.connections.entry(conn).or_default();
            }
            Control::Disconnect { conn } => self.disconnect(conn),
            Control::Attach { conn, sub, query, binding, epoch, resume } => {
                self.attach(conn, sub, query, binding, epoch, resume);
            }
            Control::FaultSubscriber { conn, sub, fault } => {
                if self.detach(conn, sub).is_some() {
                    self.sink.faulted(conn, sub, &fault);
                    self.statistics.faulted_subscriptions += 1;
                    self.look_at(conn);
                }
            }
            // A caller that gave up waiting needs no answer.
            Control::Inspect { reply } => drop(reply.send(self.inspect())),
            Control::Detach { conn, sub } => {
                if self.detach(conn, sub).is_some() {
                    self.look_at(conn);
                }
            }
            Control::Newest { cv } => self.newest = self.newest.max(cv),
            Control::Shutdown => self.shut_down = true,
        }
    }

    /// Takes what a worker says.
    pub fn event(&mut self, event: WorkerEvent) {
        if self.shut_down {
            return;
        }
        let query = match &event {
            WorkerEvent::Progressed { worker, cv } => return self.progressed(*worker, *cv),
            WorkerEvent::Hydrated { query, .. }
            | WorkerEvent::Changed { query, .. }
            | WorkerEvent::Faulted { query, .. } => *query,
        };
        if let Some(family) = self.families.get(&query) {
            match event {
                WorkerEvent::Changed { cv, .. } if cv <= self.workers.position(family.worker) => {
                    self.late(query, cv);
                }
                event => self.event_of_family(event),
            }
        } else if self.ended.family(query).is_some() {
            self.statistics.dropped += 1;
        } else {
            for query in self.early.push(query, event) {
                let message = format!(
                    "query {} was registered too late: limit of {EARLY_FAMILIES_MAX} unregistered queries or \
                     {EARLY_CHANGES_MAX} changes of them, register it again",
                    query.0
                );
                let fault = Fault { cause: FaultCause::Derive, message };
                self.ended.insert(query, None, Arc::new(fault));
            }
        }
    }

    /// Sends `cv_min` to the connections where it has moved past the last release though nothing was delivered, so
    /// that the resume point of an idle client does not age out. Looks at every connection: call it rarely.
    pub fn keep_alive(&mut self) {
        if self.shut_down {
            return;
        }
        let mut idle: Vec<_> = self.connections.keys().copied().collect();
        idle.sort_unstable();
        for conn in idle {
            let Some(connection) = self.connections.get_mut(&conn) else { continue };
            if let Outlook::Release(cv_min) = connection.idle_outlook(&self.workers, self.newest) {
                connection.release(cv_min, &self.workers);
                self.sink.idle_progress(conn, cv_min);
                self.statistics.progress += 1;
            }
        }
    }

    /// Every hydrated binding's result, at the commit version it reflects.
    fn inspect(&self) -> Vec<Inspected> {
        let mut results = Vec::new();
        for (&query, family) in &self.families {
            let position = self.workers.position(family.worker);
            for (&binding, found) in &family.bindings {
                if let Some(hydrated) = &found.hydrated {
                    let rows = hydrated.footprint.rows().collect();
                    results.push(Inspected { query, binding, cv: hydrated.cv.max(position), rows });
                }
            }
        }
        results
    }

    fn register(&mut self, query: QueryId, worker: WorkerId, output: Arc<Output>) {
        if let Some(fault) = self.ended.family(query) {
            self.statistics.faults += 1;
            self.sink.owner_faulted(query, None, fault);
            return;
        }
        match self.families.entry(query) {
            Entry::Occupied(_) => return,
            Entry::Vacant(entry) => entry.insert(Family::new(worker, output)),
        };
        for event in self.early.take(query) {
            if self.families.contains_key(&query) {
                self.event_of_family(event);
            }
        }
        // Nobody is attached yet, so that commits the worker is past touch footprints only.
        let position = self.workers.position(worker);
        self.fold(query, position, &mut Vec::new());
        self.note_remaining(worker);
    }

    fn bind(&mut self, query: QueryId, binding: BindingId) {
        if let Some(fault) = self.ended.binding(query, binding) {
            self.statistics.faults += 1;
            self.sink.owner_faulted(query, Some(binding), fault);
            return;
        }
        let Some(family) = self.families.get_mut(&query) else { return };
        match family.bindings.entry(binding) {
            Entry::Vacant(entry) => {
                entry.insert(Binding::new(Announced::Yes));
                self.statistics.bindings += 1;
            }
            Entry::Occupied(mut entry) => {
                if entry.get().announced == Announced::NotYet {
                    entry.get_mut().announced = Announced::Yes;
                    self.early_bindings.retain(|&early| early != (query, binding));
                }
            }
        }
    }

    /// Drops the events that wait for a family's registration.
    pub(super) fn forget_early(&mut self, query: QueryId) {
        self.statistics.dropped += self.early.take(query).len() as u64;
    }

    /// An event of a registered family.
    fn event_of_family(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::Progressed { worker, cv } => self.progressed(worker, cv),
            WorkerEvent::Hydrated { query, binding, cv, changes } => {
                self.hydrated(query, binding, cv, &changes);
            }
            WorkerEvent::Changed { query, cv, changes } => self.changed(query, cv, changes),
            WorkerEvent::Faulted { query, binding: None, fault } => {
                self.tell_owner(query, None, &fault);
                self.end_family(query, fault);
            }
            WorkerEvent::Faulted { query, binding: Some(binding), fault } => {
                let family = self.families.get(&query);
                let announced =
                    family.and_then(|family| family.bindings.get(&binding)).map(|found| found.announced);
                match announced {
                    Some(Announced::Yes) => {
                        self.tell_owner(query, Some(binding), &fault);
                        self.end_binding(query, binding, fault);
                    }
                    // Its bind, should it still come, finds the fault.
                    Some(Announced::NotYet) | None => self.end_binding(query, binding, fault),
                }
            }
        }
    }

    fn hydrated(&mut self, query: QueryId, binding: BindingId, cv: Cv, changes: &[Change]) {
        if self.ended.binding(query, binding).is_some() {
            self.statistics.dropped += 1;
            return;
        }
        let Some(family) = self.families.get_mut(&query) else { return };
        let mut early = false;
        let found = family.bindings.entry(binding).or_insert_with(|| {
            early = true;
            Binding::new(Announced::NotYet)
        });
        if found.hydrated.is_some() {
            debug_assert!(false, "binding {} of query {} is hydrated once", binding.0, query.0);
            self.statistics.dropped += 1;
            return;
        }
        self.newest = self.newest.max(cv);
        self.workers.entry(family.worker).seen_at(cv);
        let mut footprint = Footprint::new(Arc::clone(&family.output));
        let folded = footprint.fold(changes, Emit::Nothing);
        self.statistics.changes += changes.len() as u64;
        self.statistics.footprint_rows += footprint.len();
        found.hydrated = Some(Hydrated { cv, footprint });
        let waiting: Vec<_> = found.subscribers.iter().map(|waits| (waits.conn, waits.sub)).collect();
        if early {
            self.statistics.bindings += 1;
            self.early_bindings.push_back((query, binding));
        }
        if folded.unbalanced > 0 {
            return self.unbalanced(query, binding, cv);
        }
        if self.early_bindings.len() > EARLY_BINDINGS_MAX
            && let Some((query, binding)) = self.early_bindings.pop_front()
        {
            let message = format!(
                "binding {} of query {} was bound too late: limit of {EARLY_BINDINGS_MAX} unbound ones",
                binding.0, query.0
            );
            self.end_binding(query, binding, Fault { cause: FaultCause::Derive, message });
        }
        let mut touched = Vec::new();
        self.open(query, binding, &waiting, &mut touched);
        self.look_at_each(touched);
    }

    fn changed(&mut self, query: QueryId, cv: Cv, changes: Vec<Change>) {
        let Some(family) = self.families.get_mut(&query) else { return };
        debug_assert!(
            family.slices.last().is_none_or(|last| last.0 <= cv),
            "log_is_gapless: changes of {cv} come after those of a later commit"
        );
        if changes.is_empty() {
            return;
        }
        let position = self.workers.entry(family.worker);
        if family.slices.is_empty() {
            position.changed.push(query);
        }
        position.changed_from = Some(position.changed_from.map_or(cv, |from| from.min(cv)));
        family.slices.push((cv, changes));
    }

    /// Folds the changes that the worker's position now covers, sends their batches, and releases whoever waited.
    fn progressed(&mut self, worker: WorkerId, cv: Cv) {
        self.newest = self.newest.max(cv);
        let position = self.workers.entry(worker);
        if cv <= position.cv {
            return;
        }
        let mut touched = Vec::new();
        for query in std::mem::take(&mut position.changed) {
            self.fold(query, cv, &mut touched);
        }
        let position = self.workers.entry(worker);
        // Families that still have changes have put themselves down again.
        position.changed_from = None;
        position.moved_to(cv);
        let later = match cv.0.checked_add(1) {
            Some(next) => position.deferred.split_off(&(Cv(next), ConnId(0), SubId(0))),
            None => Default::default(),
        };
        let ready = std::mem::replace(&mut position.deferred, later);
        touched.extend(std::mem::take(&mut position.watchers));
        self.note_remaining(worker);
        for (_, conn, sub) in ready {
            let attached = self.connections.get(&conn).and_then(|it| it.subscriptions.get(&sub));
            debug_assert!(attached.is_some(), "a subscription that ends is no longer deferred");
            let Some(attached) = attached else { continue };
            let (query, binding) = (attached.query, attached.binding);
            self.open(query, binding, &[(conn, sub)], &mut touched);
        }
        self.look_at_each(touched);
    }

    /// Restores [`super::position::Position::changed_from`] from the families that still have changes.
    fn note_remaining(&mut self, worker: WorkerId) {
        let position = self.workers.entry(worker);
        let first = |query: &QueryId| self.families.get(query).and_then(|it| it.slices.first());
        position.changed_from = position.changed.iter().filter_map(first).map(|slice| slice.0).min();
    }

    /// Folds a family's changes up to `cv` into its bindings' footprints and sends the batches. Touches no binding
    /// that the changes do not. Connections that got a batch are added to `touched`.
    fn fold(&mut self, query: QueryId, cv: Cv, touched: &mut Vec<ConnId>) {
        let Some(family) = self.families.get_mut(&query) else { return };
        let commits = family.take_commits(cv);
        if !family.slices.is_empty() {
            let changed = &mut self.workers.entry(family.worker).changed;
            if !changed.contains(&query) {
                changed.push(query);
            }
        }
        debug_assert!(
            family.slices.iter().all(|slice| slice.0 > cv),
            "commit_is_atomic_for_a_client: part of a commit up to {cv} is left over"
        );
        let mut unbalanced = Vec::new();
        for (cv, mut changes) in commits {
            self.statistics.changes += changes.len() as u64;
            changes.sort_by_key(|change| change.binding);
            for group in changes.chunk_by(|a, b| a.binding == b.binding) {
                let id = group[0].binding;
                let Some(binding) = family.bindings.get_mut(&id) else {
                    self.statistics.dropped += 1;
                    continue;
                };
                // A hydration at or beyond the commit shows it already.
                let Some(hydrated) = binding.hydrated.as_mut().filter(|hydrated| hydrated.cv < cv) else {
                    self.statistics.dropped += 1;
                    continue;
                };
                if self.last_snapshot.as_ref().is_some_and(|last| (last.0, last.1) == (query, id)) {
                    self.last_snapshot = None;
                }
                let emit = if binding.open > 0 { Emit::Ops } else { Emit::Nothing };
                let rows = hydrated.footprint.len();
                let folded = hydrated.footprint.fold(group, emit);
                self.statistics.footprint_rows += hydrated.footprint.len();
                self.statistics.footprint_rows -= rows;
                if folded.unbalanced > 0 {
                    unbalanced.push((id, cv));
                    continue;
                }
                let bytes_max = self.batch_bytes_max;
                for batch in batches::split(&family.output, cv, folded.ops, Kind::Increment, bytes_max) {
                    self.recipients.clear();
                    for subscriber in &mut binding.subscribers {
                        let Stage::Open { next } = &mut subscriber.stage else { continue };
                        debug_assert!(*next > Seq(0), "seq_is_gapless: seq 0 is the snapshot's");
                        let (conn, sub, epoch, seq) =
                            (subscriber.conn, subscriber.sub, subscriber.epoch, *next);
                        *next = next.next();
                        self.recipients.push(Recipient { conn, sub, epoch, seq });
                        if let Some(connection) = self.connections.get_mut(&conn)
                            && connection.delivered(cv)
                        {
                            touched.push(conn);
                        }
                    }
                    self.statistics.count(std::slice::from_ref(&batch), self.recipients.len());
                    self.sink.batch(&batch, &self.recipients);
                }
            }
        }
        for (binding, cv) in unbalanced {
            self.unbalanced(query, binding, cv);
        }
    }

    /// Changes of a commit came after its progress: its batches could not be sent any more.
    fn late(&mut self, query: QueryId, cv: Cv) {
        let message = format!("changes of commit {cv} of query {} came after its progress", query.0);
        debug_assert!(false, "batches_precede_progress: {message}");
        let fault = Fault { cause: FaultCause::Derive, message };
        self.tell_owner(query, None, &fault);
        self.end_family(query, fault);
    }

    /// The changes of a binding do not continue its footprint.
    fn unbalanced(&mut self, query: QueryId, binding: BindingId, cv: Cv) {
        let message = format!(
            "the changes of commit {cv} do not fit the result of binding {} of query {}: a defect in its \
             pipeline, subscribe again",
            binding.0, query.0
        );
        debug_assert!(false, "advance_is_difference: {message}");
        let fault = Fault { cause: FaultCause::Derive, message };
        self.tell_owner(query, Some(binding), &fault);
        self.end_binding(query, binding, fault);
    }

    /// Looks at connections that were delivered something or whose obstacle may be gone, each once.
    pub(super) fn look_at_each(&mut self, mut touched: Vec<ConnId>) {
        touched.sort_unstable();
        touched.dedup();
        for conn in touched {
            self.look_at(conn);
        }
    }

    /// Releases what can be released, or lets the connection watch a worker that holds it back.
    pub(super) fn look_at(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if let Some(worker) = connection.watching.take() {
            self.workers.entry(worker).watchers.remove(&conn);
        }
        loop {
            match connection.outlook(&self.workers, self.newest) {
                Outlook::Release(cv_min) => {
                    connection.release(cv_min, &self.workers);
                    self.sink.progress(conn, cv_min);
                    self.statistics.progress += 1;
                }
                Outlook::Blocked(worker) => {
                    debug_assert!(connection.is_on(worker), "slow_worker_holds_only_its_own");
                    connection.watching = Some(worker);
                    self.workers.entry(worker).watchers.insert(conn);
                    return;
                }
                Outlook::Quiet => return,
            }
        }
    }
}
