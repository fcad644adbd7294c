//! A replica driven directly, whose sink notes what the drain says; and statements run on it.

use super::server::until;
use parking_lot::Mutex;
use serde_json::{Map, Value as Json};
use std::{sync::Arc, thread};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Recipient, Sink},
    handle::{Answer, PreparedQuery, QueryRequest, QuerySource, Replica, ReplicaOptions},
    query::{Output, QueryError},
    worker::{BindingId, Fault, FaultCause, QueryId},
};
use tidegate_wire::model::{Cv, Epoch, SubId};

/// The connection that tests use.
pub(crate) const CONN: ConnId = ConnId(1);

/// What the drain said, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Subscribed(SubId),
    Batch(SubId, usize),
    Progress(Cv),
    Faulted(SubId, FaultCause),
}

/// Notes what the drain says.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<Told>>>);

impl Recorder {
    /// All of it so far.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.0.lock().clone()
    }

    /// Waits until something is said.
    pub(crate) async fn wait(&self, what: &str, wanted: impl Fn(&Told) -> bool) {
        until(what, async || self.told().iter().any(&wanted)).await;
    }
}

impl Sink for Recorder {
    fn subscribed(&mut self, _: ConnId, sub: SubId, _: Epoch, _: &Arc<Output>, _: bool) {
        self.0.lock().push(Told::Subscribed(sub));
    }
    fn batch(&mut self, batch: &BatchOps, recipients: &[Recipient]) {
        self.0.lock().extend(recipients.iter().map(|to| Told::Batch(to.sub, batch.ops.len())));
    }
    fn progress(&mut self, _: ConnId, cv_min: Cv) {
        self.0.lock().push(Told::Progress(cv_min));
    }
    fn faulted(&mut self, _: ConnId, sub: SubId, fault: &Fault) {
        self.0.lock().push(Told::Faulted(sub, fault.cause));
    }
    fn owner_faulted(&mut self, _: QueryId, _: Option<BindingId>, _: &Fault) {}
}

/// A replica in memory with one worker.
pub(crate) fn replica() -> (Replica, Recorder) {
    let recorder = Recorder::default();
    let options = ReplicaOptions { workers: 1, ..ReplicaOptions::default() };
    (Replica::start(options, Box::new(recorder.clone()), |_, _| ()).expect("it starts"), recorder)
}

/// Runs statements off the runtime, as the server does.
pub(crate) fn run(replica: &Replica, text: &str) -> Result<Answer, QueryError> {
    thread::scope(|scope| {
        let run = scope.spawn(|| replica.sql(text, &Map::new(), &Map::new(), 1_000));
        Ok(run.join().expect("it does not panic")?)
    })
}

/// The answer to statements that are taken.
pub(crate) fn taken(replica: &Replica, text: &str) -> Answer {
    run(replica, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The rows of the last statement.
pub(crate) fn rows(replica: &Replica, text: &str) -> Vec<Vec<Json>> {
    let answer = taken(replica, text);
    answer.results.last().and_then(|result| result.rows.clone()).expect("rows").rows
}

/// A query in SQL.
pub(crate) fn prepared(replica: &Replica, sql: &str) -> Result<PreparedQuery, QueryError> {
    let request = QueryRequest { source: QuerySource::Sql(sql.to_owned()), args: Map::new() };
    replica.prepare(&request, &Map::new())
}
