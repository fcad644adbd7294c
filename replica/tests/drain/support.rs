//! A recording sink and short ways to say rows, changes and inputs.

use std::sync::{Arc, Mutex};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Control, Drain, Recipient, Sink, StandingRow},
    query::{Output, OutputTable},
    worker::{BindingId, Change, Fault, FaultCause, QueryId, WorkerEvent, WorkerId},
};
use tidegate_wire::model::{
    ColumnType, Cv, Epoch, Fingerprint, Layout, OpKind, PlaceLayout, PlaceMask, Row, Seq, SubId, TableLayout,
    Value, ValueRef, layout::LayoutColumn,
};

/// An operation: kind, table, places, id, and the column that travels beside it.
pub(crate) type Op = (char, usize, u32, i64, i64);

/// A call of the sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Out {
    Subscribed { conn: u64, sub: u64, epoch: u64, resumed: bool },
    Batch { cv: u64, more: bool, ops: Vec<Op>, to: Vec<(u64, u64, u64, u64)> },
    Progress { conn: u64, cv: u64 },
    Faulted { conn: u64, sub: u64, cause: FaultCause },
    Owner { query: u64, binding: Option<u64>, cause: FaultCause },
}

/// Records its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(pub(crate) Arc<Mutex<Vec<Out>>>);

impl Recorder {
    /// What was recorded since the last call.
    pub(crate) fn take(&self) -> Vec<Out> {
        std::mem::take(&mut self.0.lock().expect("no test panics while it records"))
    }

    fn push(&self, out: Out) {
        self.0.lock().expect("no test panics while it records").push(out);
    }
}

impl Sink for Recorder {
    fn subscribed(&mut self, conn: ConnId, sub: SubId, epoch: Epoch, _: &Arc<Output>, resumed: bool) {
        self.push(Out::Subscribed { conn: conn.0, sub: sub.0, epoch: epoch.0, resumed });
    }

    fn batch(&mut self, batch: &BatchOps, recipients: &[Recipient]) {
        assert!(!recipients.is_empty(), "a batch is built for somebody");
        let ops = batch.ops.iter().map(|op| {
            let kind = match op.kind {
                OpKind::Add => '+',
                OpKind::Edit => '~',
                OpKind::Remove => '-',
            };
            (kind, op.table, op.places.0, int(&op.row, 0), int(&op.row, 1))
        });
        let to = recipients.iter().map(|to| (to.conn.0, to.sub.0, to.epoch.0, to.seq.0)).collect();
        self.push(Out::Batch { cv: batch.cv.0, more: batch.more, ops: ops.collect(), to });
    }

    fn progress(&mut self, conn: ConnId, cv_min: Cv) {
        self.push(Out::Progress { conn: conn.0, cv: cv_min.0 });
    }

    fn faulted(&mut self, conn: ConnId, sub: SubId, fault: &Fault) {
        self.push(Out::Faulted { conn: conn.0, sub: sub.0, cause: fault.cause });
    }

    fn owner_faulted(&mut self, query: QueryId, binding: Option<BindingId>, fault: &Fault) {
        self.push(Out::Owner { query: query.0, binding: binding.map(|it| it.0), cause: fault.cause });
    }
}

fn int(row: &Row, column: usize) -> i64 {
    match row.cell(column) {
        ValueRef::Int8(value) => value,
        other => panic!("the tests' columns are int8, not {other:?}"),
    }
}

/// Tables 0 and 1 with `id` and `shown`, and an `unseen` column that does not travel; places 0 and 2 use table 0,
/// place 1 table 1.
pub(crate) fn output() -> Arc<Output> {
    let column = |name: &str| LayoutColumn { name: name.to_owned(), ty: ColumnType::Int8 };
    let table = |name: &str| TableLayout {
        name: name.to_owned(),
        columns: vec![column("id"), column("shown")],
        key: vec![0],
    };
    let place = |table, parent| PlaceLayout {
        parent,
        name: None,
        table,
        columns: vec![0, 1],
        on: vec![],
        order: vec![],
        one: false,
        value: None,
    };
    let from = OutputTable { columns: vec![0, 1], key: vec![0] };
    Arc::new(Output {
        layout: Layout {
            tables: vec![table("t"), table("u")],
            places: vec![place(0, None), place(1, Some(0)), place(0, Some(0))],
        },
        tables: vec![from.clone(), from],
        fp: Fingerprint(1),
    })
}

pub(crate) fn row(id: i64, shown: i64, unseen: i64) -> Row {
    Row::from_values(&[Value::Int8(id), Value::Int8(shown), Value::Int8(unseen)])
}

/// The row enters place 0 of the binding.
pub(crate) fn add(binding: u64, id: i64, shown: i64) -> Change {
    change(binding, 0, None, Some(row(id, shown, 0)))
}

/// The row's `shown` goes from one value to another at place 0 of the binding.
pub(crate) fn edit(binding: u64, id: i64, from: i64, to: i64) -> Change {
    change(binding, 0, Some(row(id, from, 0)), Some(row(id, to, 0)))
}

/// The row leaves place 0 of the binding.
pub(crate) fn remove(binding: u64, id: i64, shown: i64) -> Change {
    change(binding, 0, Some(row(id, shown, 0)), None)
}

pub(crate) fn change(binding: u64, place: u8, old: Option<Row>, new: Option<Row>) -> Change {
    Change { binding: BindingId(binding), place, old, new }
}

pub(crate) fn fault(cause: FaultCause) -> Fault {
    Fault { cause, message: "for the test".to_owned() }
}

pub(crate) fn standing(id: i64, shown: i64) -> StandingRow {
    StandingRow { table: 0, places: PlaceMask(1), row: row(id, shown, 0) }
}

pub(crate) fn hydrated(query: u64, binding: u64, cv: u64, changes: Vec<Change>) -> WorkerEvent {
    WorkerEvent::Hydrated { query: QueryId(query), binding: BindingId(binding), cv: Cv(cv), changes }
}

pub(crate) fn changed(query: u64, cv: u64, changes: Vec<Change>) -> WorkerEvent {
    WorkerEvent::Changed { query: QueryId(query), cv: Cv(cv), changes }
}

pub(crate) fn progressed(worker: u16, cv: u64) -> WorkerEvent {
    WorkerEvent::Progressed { worker: WorkerId(worker), cv: Cv(cv) }
}

pub(crate) fn faulted(query: u64, binding: Option<u64>, cause: FaultCause) -> WorkerEvent {
    WorkerEvent::Faulted { query: QueryId(query), binding: binding.map(BindingId), fault: fault(cause) }
}

pub(crate) fn register(query: u64, worker: u16) -> Control {
    Control::Register { query: QueryId(query), worker: WorkerId(worker), output: output() }
}

pub(crate) fn bind(query: u64, binding: u64) -> Control {
    Control::Bind { query: QueryId(query), binding: BindingId(binding) }
}

pub(crate) fn unbind(query: u64, binding: u64) -> Control {
    Control::Unbind { query: QueryId(query), binding: BindingId(binding), fault: fault(FaultCause::Removed) }
}

pub(crate) fn connect(conn: u64) -> Control {
    Control::Connect { conn: ConnId(conn) }
}

pub(crate) fn attach(conn: u64, sub: u64, query: u64, binding: u64) -> Control {
    attach_from(conn, sub, query, binding, 100 * conn + sub, None)
}

pub(crate) fn attach_from(
    conn: u64,
    sub: u64,
    query: u64,
    binding: u64,
    epoch: u64,
    resume: Option<Vec<StandingRow>>,
) -> Control {
    let (conn, sub, epoch) = (ConnId(conn), SubId(sub), Epoch(epoch));
    Control::Attach { conn, sub, query: QueryId(query), binding: BindingId(binding), epoch, resume }
}

pub(crate) fn detach(conn: u64, sub: u64) -> Control {
    Control::Detach { conn: ConnId(conn), sub: SubId(sub) }
}

pub(crate) fn subscribed(conn: u64, sub: u64) -> Out {
    Out::Subscribed { conn, sub, epoch: 100 * conn + sub, resumed: false }
}

/// A batch for subscription (connection, number, seq).
pub(crate) fn batch(cv: u64, ops: &[Op], to: &[(u64, u64, u64)]) -> Out {
    let to = to.iter().map(|&(conn, sub, seq)| (conn, sub, 100 * conn + sub, Seq(seq).0)).collect();
    Out::Batch { cv, more: false, ops: ops.to_vec(), to }
}

pub(crate) fn progress(conn: u64, cv: u64) -> Out {
    Out::Progress { conn, cv }
}

/// A drain with its recorder.
pub(crate) struct Bench {
    pub(crate) drain: Drain<Recorder>,
}

impl Bench {
    /// Query `n` with binding `n` on worker `n` for each of `queries`, hydrated empty at `cv`; connection 1.
    pub(crate) fn new(queries: &[u64], cv: u64) -> Self {
        let mut bench = Self { drain: Drain::new(Recorder::default()) };
        bench.tell(connect(1));
        for &query in queries {
            bench.tell(register(query, query as u16));
            bench.tell(bind(query, query));
            bench.say(hydrated(query, query, cv, vec![]));
            bench.say(progressed(query as u16, cv));
        }
        bench
    }

    /// A control, and what comes of it.
    pub(crate) fn tell(&mut self, control: Control) -> Vec<Out> {
        self.drain.control(control);
        self.drain.sink().take()
    }

    /// An event, and what comes of it.
    pub(crate) fn say(&mut self, event: WorkerEvent) -> Vec<Out> {
        self.drain.event(event);
        self.drain.sink().take()
    }

    /// The worker's position moves commit by commit; what comes of it.
    pub(crate) fn walk(&mut self, worker: u16, cvs: std::ops::RangeInclusive<u64>) -> Vec<Out> {
        cvs.flat_map(|cv| self.say(progressed(worker, cv))).collect()
    }

    /// A keep-alive, and what comes of it.
    pub(crate) fn keep_alive(&mut self) -> Vec<Out> {
        self.drain.keep_alive();
        self.drain.sink().take()
    }
}
