//! A worker's thread: takes deltas and the coordinator's messages, advances its families, and tells the drain.
//!
//! Deltas that wait are merged into one, so that catching up costs the net change. Before a message is acted on, the
//! deltas that were sent before it are worked through: an index that a new family reads is then there. A panic or a
//! passed deadline costs one family; an evaluation error only the bindings it concerns.

use super::{
    BindingId, Change, Fault, FaultCause, QueryId, WorkerEvent, WorkerId,
    family::{Advanced, Family},
    gauges::WorkerGauges,
    input::{Aside, WorkerInput},
};
use crate::{
    dataflow::Units,
    drain::DrainHandle,
    pipeline::{Budget, Pipeline},
    store::{Delta, Snapshot, TableId},
};
use crossbeam_channel::{Receiver, Sender, bounded, select_biased};
use hashbrown::HashMap;
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};
use tidegate_wire::model::{Cv, Value};

/// Most changes in one `Changed` event; a larger commit is told in slices of one commit version.
pub const SLICE_CHANGES_MAX: usize = 16_384;
/// Most deltas merged into one.
pub const MERGE_DELTAS_MAX: usize = 4_096;
/// Rows up to which a binding is hydrated between two deltas, some milliseconds of reading; one that turns out to take
/// more is hydrated aside.
pub const INLINE_ROWS_MAX: u64 = 10_000;
/// Messages that may wait at a worker; the coordinator waits when they are that many.
pub const INPUTS_MAX: usize = 4_096;
/// Hydrations that may wait for the side thread.
const ASIDES_MAX: usize = 4_096;
/// Deltas kept for one hydration under way before they are merged.
const CATCH_UP_DELTAS_MAX: usize = 256;

/// Reaches a worker from any thread.
#[derive(Clone)]
pub struct WorkerHandle {
    /// Its number.
    pub id: WorkerId,
    inputs: Sender<WorkerInput>,
    deltas: Receiver<Arc<Delta>>,
    gauges: Arc<WorkerGauges>,
}

impl WorkerHandle {
    /// Sends a message, waiting while the queue is full. A worker that is gone takes none.
    pub fn send(&self, input: WorkerInput) {
        // A worker ends only at `Stop`, or with the drain; its families are then told by the coordinator.
        let _ = self.inputs.send(input);
    }

    /// The commit version it has reached.
    #[must_use]
    pub fn cv(&self) -> Cv {
        Cv(self.gauges.cv.load(Relaxed))
    }

    /// Deltas and messages that wait.
    #[must_use]
    pub fn queue_length(&self) -> usize {
        self.inputs.len() + self.deltas.len()
    }

    /// Families it hosts.
    #[must_use]
    pub fn families(&self) -> usize {
        self.gauges.families.load(Relaxed)
    }
}

/// Starts a worker at a snapshot, with the receiver of the deltas that follow it.
///
/// # Errors
/// When the system gives no thread.
pub fn spawn(
    id: WorkerId,
    snapshot: Arc<Snapshot>,
    deltas: Receiver<Arc<Delta>>,
    drain: DrainHandle,
    deadline: Duration,
) -> io::Result<(WorkerHandle, JoinHandle<()>)> {
    let (inputs, input_receiver) = bounded(INPUTS_MAX);
    let (asides, aside_receiver) = bounded::<Request>(ASIDES_MAX);
    let gauges = Arc::new(WorkerGauges::default());
    gauges.cv.store(snapshot.cv().0, Relaxed);
    let handle =
        WorkerHandle { id, inputs: inputs.clone(), deltas: deltas.clone(), gauges: Arc::clone(&gauges) };
    // The side thread ends when the worker drops its sender.
    std::thread::Builder::new().name(format!("hydrate-{}", id.0)).stack_size(STACK_BYTES).spawn(
        move || {
            for request in aside_receiver {
                let Some(aside) = request.hydrate(deadline) else { continue };
                if inputs.send(WorkerInput::Aside(Box::new(aside))).is_err() {
                    return;
                }
            }
        },
    )?;
    let worker = Worker {
        id,
        snapshot,
        families: HashMap::new(),
        units: Arc::default(),
        by_table: HashMap::new(),
        pending: HashMap::new(),
        asides,
        drain,
        deadline,
        gauges,
    };
    let join = std::thread::Builder::new()
        .name(format!("worker-{}", id.0))
        .stack_size(STACK_BYTES)
        .spawn(move || worker.run(&deltas, &input_receiver))?;
    Ok((handle, join))
}

/// How many of the waiting deltas to merge: up to the one whose commit version is divisible by the greatest power of
/// two. Workers that lag side by side so stop at the same versions, at which alone their connections can be released
/// (a merged delta's earlier versions never existed on its worker).
fn merge_length(waiting: &[Arc<Delta>]) -> usize {
    let roundness = |delta: &Arc<Delta>| delta.to.cv().0.trailing_zeros();
    let most = waiting.iter().map(roundness).max().unwrap_or(0);
    waiting.iter().rposition(|delta| roundness(delta) == most).map_or(0, |last| last + 1)
}

/// Conditions nest as deep as the limits allow, and are evaluated by recursion.
pub(crate) const STACK_BYTES: usize = 16 << 20;

/// The fault of a query that reads a table or view which is there no longer, or has other columns.
fn schema_changed(what: &str) -> Fault {
    Fault { cause: FaultCause::SchemaChanged, message: format!("{what}; subscribe again") }
}

/// The drain is gone, and with it the worker's reason to go on.
struct DrainLost;

/// A hydration to be done aside.
struct Request {
    query: QueryId,
    binding: BindingId,
    values: Arc<[Value]>,
    shape: Arc<crate::query::Shape>,
    at: Arc<Snapshot>,
    /// Whether the worker still waits for it.
    wanted: Weak<()>,
}

/// What a worker keeps of a hydration that is done aside.
struct Waiting {
    /// The family.
    query: QueryId,
    /// What was committed meanwhile.
    deltas: Vec<Arc<Delta>>,
    /// Lives as long as the hydration is wanted.
    wanted: Arc<()>,
    /// To be set when it is taken over.
    hydrated: Arc<AtomicBool>,
}

impl Request {
    /// `None` when nobody waits for it any more: whoever asked may go before it begins, or in the midst.
    fn hydrate(self, deadline: Duration) -> Option<Aside> {
        let Self { query, binding, values, shape, at, wanted } = self;
        let is_wanted = || wanted.strong_count() > 0;
        if !is_wanted() {
            return None;
        }
        let budget = Budget::while_wanted(deadline, wanted.clone());
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut pipeline = Pipeline::new(shape);
            let mut changes = Vec::new();
            match pipeline.bind(binding, values, &at, &budget, &mut changes) {
                Ok(()) => Ok((pipeline, changes)),
                Err(fault) => Err(super::family::fault_of(&fault, deadline)),
            }
        }));
        let result = result.unwrap_or_else(|panic| Err(super::family::defect(&*panic)));
        is_wanted().then_some(Aside { query, binding, result })
    }
}

struct Worker {
    id: WorkerId,
    snapshot: Arc<Snapshot>,
    families: HashMap<QueryId, Family>,
    /// What the families have in common.
    units: Arc<Units>,
    by_table: HashMap<TableId, Vec<QueryId>>,
    /// Hydrations under way aside, with the deltas since they were asked for.
    pending: HashMap<BindingId, Waiting>,
    asides: Sender<Request>,
    drain: DrainHandle,
    deadline: Duration,
    gauges: Arc<WorkerGauges>,
}

impl Worker {
    fn run(mut self, deltas: &Receiver<Arc<Delta>>, inputs: &Receiver<WorkerInput>) {
        loop {
            select_biased! {
                recv(inputs) -> input => {
                    let Ok(input) = input else { return };
                    if self.catch_up(None, deltas).is_err() {
                        return;
                    }
                    match self.act(input) {
                        Ok(true) => {}
                        Ok(false) | Err(DrainLost) => return,
                    }
                }
                recv(deltas) -> delta => {
                    let Ok(delta) = delta else { return };
                    if self.catch_up(Some(delta), deltas).is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Works through all deltas that wait, merged.
    fn catch_up(
        &mut self,
        first: Option<Arc<Delta>>,
        deltas: &Receiver<Arc<Delta>>,
    ) -> Result<(), DrainLost> {
        let mut waiting: Vec<Arc<Delta>> = first.into_iter().collect();
        while waiting.len() < MERGE_DELTAS_MAX {
            match deltas.try_recv() {
                Ok(delta) => waiting.push(delta),
                Err(_) => break,
            }
        }
        while !waiting.is_empty() {
            let rest = waiting.split_off(merge_length(&waiting));
            self.advance(&Delta::merge(&waiting))?;
            waiting = rest;
        }
        Ok(())
    }

    fn advance(&mut self, delta: &Arc<Delta>) -> Result<(), DrainLost> {
        assert_eq!(delta.from.cv(), self.snapshot.cv(), "log_is_gapless");
        let cv = delta.to.cv();
        self.end_altered(delta)?;
        let mut touched: Vec<QueryId> = delta
            .tables
            .iter()
            .filter_map(|changes| self.by_table.get(&changes.table))
            .flatten()
            .copied()
            .collect();
        touched.sort_unstable();
        touched.dedup();
        for query in touched {
            let family = self.families.get_mut(&query).expect("families are listed by their tables");
            match family.advance(delta, self.deadline) {
                Ok(Advanced { changes, faults }) => {
                    self.tell_changes(query, cv, changes)?;
                    for (binding, fault) in faults {
                        self.tell(WorkerEvent::Faulted { query, binding: Some(binding), fault })?;
                    }
                }
                Err(fault) => self.fail(query, fault)?,
            }
        }
        for Waiting { deltas, .. } in self.pending.values_mut() {
            deltas.push(Arc::clone(delta));
            if deltas.len() >= CATCH_UP_DELTAS_MAX {
                *deltas = vec![Delta::merge(deltas)];
            }
        }
        let moved = cv != self.snapshot.cv();
        self.snapshot = Arc::clone(&delta.to);
        if moved {
            self.gauges.cv.store(cv.0, Relaxed);
            self.tell(WorkerEvent::Progressed { worker: self.id, cv })?;
        }
        Ok(())
    }

    /// Ends the families that read a table which is there no longer, or has other columns.
    fn end_altered(&mut self, delta: &Delta) -> Result<(), DrainLost> {
        for &table in &delta.altered {
            for query in self.by_table.remove(&table).unwrap_or_default() {
                let name = delta.from.table(table).map(|table| table.schema().name.as_str());
                let what = match name {
                    Some(name) if table.is_view() => {
                        format!("the rows of view {name} are not kept as they were")
                    }
                    name => format!("table {} was altered or dropped", name.unwrap_or("?")),
                };
                self.fail(query, schema_changed(&what))?;
            }
        }
        Ok(())
    }

    /// Acts on a message; `false` ends the worker.
    fn act(&mut self, input: WorkerInput) -> Result<bool, DrainLost> {
        match input {
            WorkerInput::Register { query, shape, gauges } => {
                for table in shape.tables() {
                    self.by_table.entry(table).or_default().push(query);
                }
                self.families.insert(query, Family::new(shape, gauges, &self.units));
                self.gauges.families.store(self.families.len(), Relaxed);
            }
            WorkerInput::Bind { query, binding, values, hydrated } => {
                self.bind(query, binding, values, hydrated)?;
            }
            WorkerInput::Unbind { query, binding } => {
                if self.pending.remove(&binding).is_none()
                    && let Some(family) = self.families.get_mut(&query)
                    && let Err(fault) = family.unbind(binding, &self.snapshot, self.deadline)
                {
                    self.fail(query, fault)?;
                }
            }
            WorkerInput::Remove { query } => self.forget(query),
            WorkerInput::Profile { query, answer } => {
                if let Some(family) = self.families.get(&query) {
                    // Whoever asked may be gone.
                    let _ = answer.send(family.profiles());
                }
            }
            WorkerInput::Aside(aside) => self.take_over(*aside)?,
            WorkerInput::Stop => return Ok(false),
        }
        Ok(true)
    }

    fn bind(
        &mut self,
        query: QueryId,
        binding: BindingId,
        values: Arc<[Value]>,
        hydrated: Arc<AtomicBool>,
    ) -> Result<(), DrainLost> {
        // The family may have faulted while the message was under way; its subscribers were told then.
        let Some(family) = self.families.get_mut(&query) else { return Ok(()) };
        // It may have been prepared before a table was altered, and have come here after that.
        if family.shape().tables().into_iter().any(|table| self.snapshot.table(table).is_none()) {
            return self.fail(query, schema_changed("a table that it reads was altered or dropped"));
        }
        match family.bind(binding, Arc::clone(&values), &self.snapshot, self.deadline, INLINE_ROWS_MAX) {
            Ok(Some(Ok(changes))) => {
                let cv = self.snapshot.cv();
                hydrated.store(true, Relaxed);
                self.tell(WorkerEvent::Hydrated { query, binding, cv, changes })
            }
            Ok(Some(Err(fault))) => self.tell(WorkerEvent::Faulted { query, binding: Some(binding), fault }),
            Ok(None) => {
                let shape = Arc::clone(family.shape());
                self.hydrate_aside(query, binding, values, shape, hydrated)
            }
            Err(fault) => self.fail(query, fault),
        }
    }

    fn hydrate_aside(
        &mut self,
        query: QueryId,
        binding: BindingId,
        values: Arc<[Value]>,
        shape: Arc<crate::query::Shape>,
        hydrated: Arc<AtomicBool>,
    ) -> Result<(), DrainLost> {
        let waiting = Waiting { query, deltas: Vec::new(), wanted: Arc::default(), hydrated };
        let (at, wanted) = (Arc::clone(&self.snapshot), Arc::downgrade(&waiting.wanted));
        let request = Request { query, binding, values, shape, at, wanted };
        self.pending.insert(binding, waiting);
        // The side thread may itself be waiting to hand something back: a full queue must not stop this thread.
        if self.asides.try_send(request).is_err() {
            self.pending.remove(&binding);
            let message =
                format!("more than {ASIDES_MAX} large queries wait to be hydrated; subscribe again later");
            let fault = Fault { cause: FaultCause::WorkerLost, message };
            self.tell(WorkerEvent::Faulted { query, binding: Some(binding), fault })?;
        }
        Ok(())
    }

    /// Brings a hydration that was done aside up to the present and makes it the family's.
    fn take_over(&mut self, aside: Aside) -> Result<(), DrainLost> {
        let Aside { query, binding, result } = aside;
        let Some(Waiting { deltas, hydrated, .. }) = self.pending.remove(&binding) else { return Ok(()) };
        let Some(family) = self.families.get_mut(&query) else { return Ok(()) };
        let taken = result.and_then(|(pipeline, changes)| {
            family.take_over(binding, pipeline, changes, &deltas, self.deadline)
        });
        match taken {
            Ok(changes) => {
                let cv = self.snapshot.cv();
                hydrated.store(true, Relaxed);
                self.tell(WorkerEvent::Hydrated { query, binding, cv, changes })
            }
            Err(fault) => self.tell(WorkerEvent::Faulted { query, binding: Some(binding), fault }),
        }
    }

    fn tell_changes(&self, query: QueryId, cv: Cv, mut changes: Vec<Change>) -> Result<(), DrainLost> {
        while changes.len() > SLICE_CHANGES_MAX {
            let rest = changes.split_off(SLICE_CHANGES_MAX);
            self.tell(WorkerEvent::Changed { query, cv, changes })?;
            changes = rest;
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.tell(WorkerEvent::Changed { query, cv, changes })
    }

    /// Discards a family that cannot go on.
    fn fail(&mut self, query: QueryId, fault: Fault) -> Result<(), DrainLost> {
        self.forget(query);
        self.tell(WorkerEvent::Faulted { query, binding: None, fault })
    }

    fn forget(&mut self, query: QueryId) {
        self.pending.retain(|_, waiting| waiting.query != query);
        if let Some(family) = self.families.remove(&query) {
            for table in family.shape().tables() {
                if let Some(queries) = self.by_table.get_mut(&table) {
                    queries.retain(|other| *other != query);
                }
            }
            tracing::debug!(query = query.0, "query removed");
        }
        self.gauges.families.store(self.families.len(), Relaxed);
    }

    fn tell(&self, event: WorkerEvent) -> Result<(), DrainLost> {
        self.drain.event(event).map_err(|_| DrainLost)
    }
}
