//! What the drain costs, without its sink: `cargo run --release -p tidegate-replica --example drain_cost`.

use std::{sync::Arc, time::Instant};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Control, Drain, Recipient, Sink},
    query::{Output, OutputTable},
    worker::{BindingId, Change, Fault, QueryId, WorkerEvent, WorkerId},
};
use tidegate_wire::model::{
    ColumnType, Cv, Epoch, Fingerprint, Layout, PlaceLayout, Row, SubId, TableLayout, Value,
    layout::LayoutColumn,
};

#[derive(Default)]
struct Count(usize);

impl Sink for Count {
    fn subscribed(&mut self, _: ConnId, _: SubId, _: Epoch, _: &Arc<Output>, _: bool) {}
    fn batch(&mut self, batch: &BatchOps, to: &[Recipient]) {
        self.0 += batch.ops.len() * to.len();
    }
    fn progress(&mut self, _: ConnId, _: Cv) {
        self.0 += 1;
    }
    fn faulted(&mut self, _: ConnId, _: SubId, _: &Fault) {}
    fn owner_faulted(&mut self, _: QueryId, _: Option<BindingId>, _: &Fault) {}
}

const QUERY: QueryId = QueryId(1);

fn row(id: u64, shown: u64) -> Row {
    Row::from_values(&[
        Value::Int8(id as i64),
        Value::Int8(shown as i64),
        Value::Text("a departure's status".into()),
    ])
}

fn add(binding: u64, id: u64) -> Change {
    Change { binding: BindingId(binding), place: 0, old: None, new: Some(row(id, 0)) }
}

fn edit(binding: u64, id: u64, cv: u64) -> Change {
    let (old, new) = (Some(row(id, cv - 1)), Some(row(id, cv)));
    Change { binding: BindingId(binding), place: 0, old, new }
}

/// One query on worker 0 with `bindings` of `rows` each, and `conns` connections, the n-th on binding n modulo
/// `bindings`.
fn drain(bindings: u64, rows: u64, conns: u64) -> Drain<Count> {
    let columns = ["id", "shown", "status"].map(|name| LayoutColumn {
        name: name.to_owned(),
        ty: if name == "status" { ColumnType::Text } else { ColumnType::Int8 },
    });
    let place = PlaceLayout {
        parent: None,
        name: None,
        table: 0,
        columns: vec![0, 1, 2],
        on: vec![],
        order: vec![],
        one: false,
        value: None,
    };
    let table = TableLayout { name: "t".to_owned(), columns: columns.into(), key: vec![0] };
    let output = Arc::new(Output {
        layout: Layout { tables: vec![table], places: vec![place] },
        tables: vec![OutputTable { columns: vec![0, 1, 2], key: vec![0] }],
        fp: Fingerprint(1),
    });
    let mut drain = Drain::new(Count::default());
    drain.control(Control::Register { query: QUERY, worker: WorkerId(0), output });
    for binding in 0..bindings {
        let id = BindingId(binding);
        drain.control(Control::Bind { query: QUERY, binding: id });
        let changes = (0..rows).map(|row| add(binding, row)).collect();
        drain.event(WorkerEvent::Hydrated { query: QUERY, binding: id, cv: Cv(1), changes });
    }
    for conn in 0..conns {
        drain.control(Control::Connect { conn: ConnId(conn) });
        drain.control(Control::Attach {
            conn: ConnId(conn),
            sub: SubId(1),
            query: QUERY,
            binding: BindingId(conn % bindings),
            epoch: Epoch(conn),
            resume: None,
        });
    }
    drain.event(WorkerEvent::Progressed { worker: WorkerId(0), cv: Cv(1) });
    drain
}

/// Median nanoseconds of a commit of `changes(cv)`, its progress included; the median, so that other work on the
/// machine and the first commit, which lets go of the shared snapshot, do not count.
fn measure(drain: &mut Drain<Count>, commits: u64, changes: impl Fn(u64) -> Vec<Change>) -> f64 {
    let mut times = Vec::new();
    for cv in 2..2 + commits {
        let changes = changes(cv);
        let start = Instant::now();
        if !changes.is_empty() {
            drain.event(WorkerEvent::Changed { query: QUERY, cv: Cv(cv), changes });
        }
        drain.event(WorkerEvent::Progressed { worker: WorkerId(0), cv: Cv(cv) });
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut d = drain(1, 100_000, 0);
    let ns = measure(&mut d, 1_000, |cv| vec![edit(0, 7, cv - 1)]);
    println!("1 change in a footprint of 100k, nobody subscribed: {ns:.0} ns a commit");
    let mut d = drain(1, 100_000, 1);
    let ns = measure(&mut d, 1_000, |cv| vec![edit(0, 7, cv - 1)]);
    println!("1 change in a footprint of 100k, 1 subscriber: {ns:.0} ns a commit");
    let mut d = drain(1, 100_000, 1);
    let ns = measure(&mut d, 20, |cv| (0..10_000).map(|id| edit(0, id * 10, cv - 1)).collect());
    println!("10,000 changes in a footprint of 100k, 1 subscriber: {:.0} ns a change", ns / 1e4);
    let mut d = drain(10_000, 1, 10_000);
    let ns = measure(&mut d, 1_000, |_| vec![]);
    println!("a commit that touches nothing, 10,000 connections on the worker: {ns:.0} ns");
    let mut d = drain(10_000, 10, 10_000);
    let ns = measure(&mut d, 20, |cv| (0..10_000).map(|binding| edit(binding, 3, cv - 1)).collect());
    println!("10,000 bindings touched, a connection on each: {:.2} ms a commit", ns / 1e6);
    let mut d = drain(1, 10, 10_000);
    let ns = measure(&mut d, 20, |cv| vec![edit(0, 3, cv - 1)]);
    println!("1 binding touched, 10,000 connections on it: {:.2} ms a commit", ns / 1e6);
    let start = Instant::now();
    let d = drain(1, 100_000, 10);
    println!("hydrate 100k rows, 10 attaches: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    assert!(d.sink().0 > 0);
}
