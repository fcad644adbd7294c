//! A replica driven directly, without sockets: a sink that folds batches into results, as a client does.

use super::server::PATIENCE;
use parking_lot::{Condvar, Mutex};
use serde_json::{Map, Value as Json, json};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Recipient, Sink},
    handle::{PreparedQuery, QueryRequest, QuerySource, Replica, ReplicaOptions},
    query::{Output, QueryError},
    store::{Commits, key::row_key},
    worker::{BindingId, Fault, QueryId},
};
use tidegate_tests::sql::Shown;
use tidegate_wire::model::{Cv, Epoch, OpKind, Row, SubId, Value, commit::TablesLine};
use tokio::runtime::Runtime;

/// The test's own table: every commit touches it, so that every commit is released at once.
const TICK: &str = "tick_of_the_test";
const CONN: ConnId = ConnId(1);
const TICK_SUB: SubId = SubId(1_000_000);

/// One subscription's result as its batches leave it.
#[derive(Default)]
struct Folded {
    output: Option<Arc<Output>>,
    rows: BTreeMap<Vec<u8>, Row>,
    complete: bool,
    fault: Option<String>,
    /// What a client would not understand.
    violation: Option<String>,
}

#[derive(Default)]
struct State {
    released: Cv,
    subs: HashMap<SubId, Folded>,
}

/// Folds what the drain sends.
#[derive(Clone, Default)]
struct Folding(Arc<(Mutex<State>, Condvar)>);

impl Folding {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock());
        self.0.1.notify_all();
    }

    /// Waits until something holds of the state.
    fn wait<T>(&self, what: &str, mut find: impl FnMut(&State) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut state = self.0.0.lock();
        loop {
            if let Some(found) = find(&state) {
                return found;
            }
            let late = self.0.1.wait_until(&mut state, until).timed_out();
            assert!(!late, "waited in vain: {what}");
        }
    }
}

impl Sink for Folding {
    fn subscribed(&mut self, _: ConnId, sub: SubId, _: Epoch, output: &Arc<Output>, _: bool) {
        let fresh = Folded { output: Some(Arc::clone(output)), ..Folded::default() };
        self.change(|state| drop(state.subs.insert(sub, fresh)));
    }

    fn batch(&mut self, batch: &BatchOps, recipients: &[Recipient]) {
        self.change(|state| {
            for to in recipients {
                if let Some(folded) = state.subs.get_mut(&to.sub) {
                    folded.fold(batch);
                }
            }
        });
    }

    fn progress(&mut self, _: ConnId, cv_min: Cv) {
        self.change(|state| state.released = cv_min);
    }

    fn faulted(&mut self, _: ConnId, sub: SubId, fault: &Fault) {
        self.change(|state| state.subs.entry(sub).or_default().fault = Some(fault.message.clone()));
    }

    fn owner_faulted(&mut self, _: QueryId, _: Option<BindingId>, _: &Fault) {}
}

impl Folded {
    fn fold(&mut self, batch: &BatchOps) {
        for op in &batch.ops {
            let key = row_key(&op.row, &batch.output.tables[op.table].key).to_vec();
            let before = match op.kind {
                OpKind::Add | OpKind::Edit => self.rows.insert(key, op.row.clone()),
                OpKind::Remove => self.rows.remove(&key),
            };
            if before.is_some() == (op.kind == OpKind::Add) {
                self.violation = Some(format!(
                    "{:?} of a row that was {}there",
                    op.kind,
                    if before.is_some() { "" } else { "not " }
                ));
            }
        }
        self.complete |= !batch.more;
    }

    fn shown(&self) -> Shown {
        let output = self.output.as_ref().expect("it is subscribed");
        Shown::of(output, self.rows.values())
    }
}

/// A replica in memory with one connection.
pub(crate) struct Live<'r> {
    runtime: &'r Runtime,
    replica: Replica,
    folding: Folding,
    cv: Cv,
}

impl<'r> Live<'r> {
    /// A replica with these tables.
    pub(crate) fn start(runtime: &'r Runtime, tables: &Json) -> Self {
        let folding = Folding::default();
        let options = ReplicaOptions {
            data_dir: None,
            workers: 1,
            deadline: Duration::from_secs(10),
            ..ReplicaOptions::default()
        };
        let replica = Replica::start(options, Box::new(folding.clone()), |_, _| ()).expect("it starts");
        let mut tables = tables.clone();
        let tick = json!({"name": TICK, "columns": [{"name": "id", "type": "int8"}, {"name": "tick", "type": "int8"}],
            "primary_key": ["id"]});
        tables["tables"].as_array_mut().expect("tables").push(tick);
        let tables: TablesLine = serde_json::from_value(tables).expect("tables");
        let cv = runtime.block_on(replica.create_tables(tables.tables)).expect("taken");
        let mut live = Self { runtime, replica, folding, cv };
        live.runtime.block_on(live.replica.connect(CONN));
        let first = json!({"insert": TICK, "row": {"id": 1, "tick": 0}});
        assert!(live.submit(vec![first]));
        let query = live.prepare(QuerySource::Query(json!({ "table": TICK })), &Map::new()).expect("sound");
        live.subscribe(TICK_SUB, &query).expect("taken");
        live
    }

    fn submit(&mut self, ops: Vec<Json>) -> bool {
        let Ok(draft) = self.replica.draft(json!({ "ops": ops }).to_string().as_bytes()) else {
            return false;
        };
        let outcome =
            self.runtime.block_on(self.replica.commit(Commits { drafts: vec![draft], ..Commits::default() }));
        self.cv = outcome.cv;
        outcome.refused.is_none()
    }

    /// Applies a commit and waits until it is released; false when it is refused.
    pub(crate) fn commit(&mut self, commit: &Json) -> bool {
        let mut ops = commit["ops"].as_array().cloned().unwrap_or_default();
        ops.push(json!({"update": TICK, "key": {"id": 1}, "set": {"tick": self.cv.0}}));
        let taken = self.submit(ops);
        let cv = self.cv;
        if taken {
            self.folding.wait("the release of a commit", |state| (state.released >= cv).then_some(()));
        }
        taken
    }

    /// Runs statements that write no rows.
    pub(crate) fn run(&mut self, text: &str) -> Result<(), QueryError> {
        let replica = &self.replica;
        // Off the runtime, as the server does.
        let answer = std::thread::scope(|scope| {
            let run = scope.spawn(|| replica.sql(text, &Map::new(), &Map::new(), 0));
            run.join().expect("it does not panic")
        })?;
        self.cv = answer.cv;
        Ok(())
    }

    /// Checks a query.
    pub(crate) fn prepare(
        &self,
        source: QuerySource,
        args: &Map<String, Json>,
    ) -> Result<PreparedQuery, QueryError> {
        self.replica.prepare(&QueryRequest { source, args: args.clone() }, &Map::new())
    }

    /// Subscribes and waits for the result, or the fault.
    pub(crate) fn subscribe(&mut self, sub: SubId, query: &PreparedQuery) -> Result<(), QueryError> {
        self.runtime.block_on(self.replica.subscribe(CONN, sub, query, None))?;
        let cv = self.cv;
        self.folding.wait("a result", |state| {
            let folded = state.subs.get(&sub)?;
            (folded.fault.is_some() || (folded.complete && state.released >= cv)).then_some(())
        });
        Ok(())
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&self, sub: SubId) {
        self.runtime.block_on(self.replica.unsubscribe(CONN, sub));
    }

    /// What a subscription shows, or why it ended.
    pub(crate) fn shown(&self, sub: SubId) -> Result<Shown, String> {
        let state = self.folding.0.0.lock();
        let folded = &state.subs[&sub];
        match (&folded.violation, &folded.fault) {
            (Some(violation), _) => Err(format!("violation: {violation}")),
            (None, Some(fault)) => Err(fault.clone()),
            (None, None) => Ok(folded.shown()),
        }
    }

    /// The query run from scratch now.
    pub(crate) fn fresh(&self, query: &PreparedQuery) -> Result<Shown, String> {
        let rows = self.replica.rows(query).map_err(|error| error.message)?;
        let layout = &query.output.layout;
        let columns: Vec<_> = layout.places[0]
            .columns
            .iter()
            .map(|column| &layout.tables[layout.places[0].table].columns[*column])
            .collect();
        let row = |row: &Json| -> Vec<Value> {
            columns
                .iter()
                .map(|it| Value::from_json(it.ty, &row[&it.name]).expect("a value of the type"))
                .collect()
        };
        Ok(Shown { types: Shown::types(&query.output), rows: rows.rows.iter().map(row).collect() })
    }

    /// What the standing check finds.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.replica.check().differences.first() {
            Some(found) => Err(format!("check: {}: {}", found.query, found.detail)),
            None => Ok(()),
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.replica.shutdown();
    }
}
