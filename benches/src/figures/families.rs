//! Whether a commit that touches one watcher costs more when there are 10,000 of them.

use crate::{
    engine::{Engine, Folded, advance},
    issues,
    report::Report,
    sample::{Sample, median, show},
};
use anyhow::ensure;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value as Json, json};
use std::{sync::Arc, time::Instant};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Control, Drain, Recipient, Sink},
    pipeline::Pipeline,
    query::{Output, Resolved},
    worker::{BindingId, Change, Fault, QueryId, WorkerEvent, WorkerId},
};
use tidegate_wire::model::{Cv, Epoch, SubId};

const ISSUES: i64 = 10_000;
const COMMENTS_EACH: i64 = 5;
const FEW: i64 = 10;
const MANY: i64 = 10_000;
const ROUNDS: usize = 9;
const COMMITS_A_ROUND: usize = 1_000;
const QUERY: QueryId = QueryId(1);

/// Counts what the drain sends.
#[derive(Default)]
struct Count {
    ops: usize,
    progress: usize,
}

impl Sink for Count {
    fn subscribed(&mut self, _: ConnId, _: SubId, _: Epoch, _: &Arc<Output>, _: bool) {}
    fn batch(&mut self, batch: &BatchOps, to: &[Recipient]) {
        self.ops += batch.ops.len() * to.len();
    }
    fn progress(&mut self, _: ConnId, _: Cv) {
        self.progress += 1;
    }
    fn faulted(&mut self, _: ConnId, _: SubId, _: &Fault) {}
    fn owner_faulted(&mut self, _: QueryId, _: Option<BindingId>, _: &Fault) {}
}

fn query(issue: i64) -> Json {
    json!({"table": "issue", "where": {"op": "=", "args": [{"col": "id"}, issue]}, "related": [
        {"as": "comments", "on": [["id", "issue_id"]],
         "query": {"table": "comment", "order_by": [["created", "asc"]]}}]})
}

/// A tracker, watched: binding n shows issue n, and connection n is on it.
struct Watched {
    engine: Engine,
    pipeline: Pipeline,
    drain: Drain<Count>,
    queries: Vec<Resolved>,
    folded: Vec<Folded>,
    next_comment: i64,
    random: StdRng,
}

/// Medians of one round, in seconds.
struct Costs {
    store: f64,
    advance: f64,
    drain: f64,
    all: f64,
}

impl Watched {
    fn new(bindings: i64) -> anyhow::Result<Self> {
        let mut engine = issues::tracker(ISSUES, COMMENTS_EACH);
        let queries =
            (0..bindings).map(|issue| engine.prepare(&query(issue))).collect::<Result<Vec<_>, _>>()?;
        let shape = Arc::clone(&queries[0].shape);
        ensure!(queries.iter().all(|it| it.shape.key == shape.key), "all watchers are of one family");
        let mut pipeline = Pipeline::new(Arc::clone(&shape));
        let mut drain = Drain::new(Count::default());
        let output = Arc::clone(&shape.output);
        drain.control(Control::Register { query: QUERY, worker: WorkerId(0), output });
        let mut folded = Vec::new();
        let cv = engine.snapshot.cv();
        for (resolved, id) in queries.iter().zip(0..) {
            let (binding, conn) = (BindingId(id), ConnId(id));
            let mut changes = Vec::new();
            pipeline
                .bind(
                    binding,
                    resolved.values.clone().into(),
                    &engine.snapshot,
                    &crate::engine::budget(),
                    &mut changes,
                )
                .map_err(|fault| anyhow::anyhow!("hydrating faulted: {fault:?}"))?;
            let mut own = Folded::default();
            own.fold(&shape, &changes)?;
            folded.push(own);
            drain.control(Control::Bind { query: QUERY, binding });
            drain.event(WorkerEvent::Hydrated { query: QUERY, binding, cv, changes });
            drain.control(Control::Connect { conn });
            let (sub, epoch) = (SubId(1), Epoch(id));
            drain.control(Control::Attach { conn, sub, query: QUERY, binding, epoch, resume: None });
        }
        drain.event(WorkerEvent::Progressed { worker: WorkerId(0), cv });
        let next_comment = ISSUES * COMMENTS_EACH;
        Ok(Self { engine, pipeline, drain, queries, folded, next_comment, random: StdRng::seed_from_u64(7) })
    }

    /// Commits comments, each under the issue of one of the first `touched` watchers.
    fn round(&mut self, commits: usize, touched: i64) -> anyhow::Result<Costs> {
        let comments = self.engine.table("comment");
        let (mut store, mut advancing, mut draining, mut all) =
            (Sample::default(), Sample::default(), Sample::default(), Sample::default());
        // Folded for the check once the round is over: that work must not cool the caches in between.
        let mut touched_by = Vec::with_capacity(commits);
        for _ in 0..commits {
            let issue = self.random.random_range(0..touched);
            let row = issues::comment(self.next_comment, issue);
            self.next_comment += 1;
            let start = Instant::now();
            let delta = store.time(|| self.engine.put(comments, [row]));
            let mut out: Vec<Change> = Vec::new();
            advancing.time(|| advance(&mut self.pipeline, &delta, &mut out))?;
            let untimed = Instant::now();
            let [change] = out.as_slice() else { anyhow::bail!("one watcher is touched, not {}", out.len()) };
            ensure!(change.binding == BindingId(issue as u64), "the watcher of issue {issue} is touched");
            touched_by.push((issue as usize, out.clone()));
            let sent = (self.drain.sink().ops, self.drain.sink().progress);
            let untimed = untimed.elapsed();
            let cv = delta.to.cv();
            draining.time(|| {
                self.drain.event(WorkerEvent::Changed { query: QUERY, cv, changes: out });
                self.drain.event(WorkerEvent::Progressed { worker: WorkerId(0), cv });
            });
            all.add(start.elapsed() - untimed);
            let now = (self.drain.sink().ops, self.drain.sink().progress);
            ensure!(now == (sent.0 + 1, sent.1 + 1), "one operation and one progress are sent");
        }
        for (watcher, changes) in touched_by {
            self.folded[watcher].fold(self.pipeline.shape(), &changes)?;
        }
        Ok(Costs {
            store: store.median(),
            advance: advancing.median(),
            drain: draining.median(),
            all: all.median(),
        })
    }

    fn check(&self) -> anyhow::Result<()> {
        for at in (0..self.queries.len()).step_by(self.queries.len() / 10) {
            self.engine.check(&self.queries[at], &self.folded[at])?;
        }
        Ok(())
    }
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let (mut few, mut many) = (Watched::new(FEW)?, Watched::new(MANY)?);
    few.round(COMMITS_A_ROUND, FEW)?;
    many.round(COMMITS_A_ROUND, MANY)?;
    let mut rounds = Vec::new();
    // Turn about, so that whatever else the machine does meets all alike.
    for _ in 0..ROUNDS {
        rounds.push((
            few.round(COMMITS_A_ROUND, FEW)?,
            many.round(COMMITS_A_ROUND, MANY)?,
            many.round(COMMITS_A_ROUND, FEW)?,
        ));
    }
    few.check()?;
    many.check()?;

    let of = |pick: fn(&Costs) -> f64| {
        let column = |which: fn(&(Costs, Costs, Costs)) -> &Costs| {
            median(&mut rounds.iter().map(|round| pick(which(round))).collect::<Vec<_>>())
        };
        (column(|it| &it.0), column(|it| &it.1), column(|it| &it.2))
    };
    let parts = [
        ("store", of(|it| it.store)),
        ("advance", of(|it| it.advance)),
        ("drain", of(|it| it.drain)),
        ("advance + drain", of(|it| it.advance + it.drain)),
        ("whole commit", of(|it| it.all)),
    ];
    let (advance, both) = (parts[1].1, parts[3].1);
    let (advance_ratio, both_ratio) = (advance.1 / advance.0, both.1 / both.0);
    let mut report = Report::new(
        format!(
            "advance {advance_ratio:.2}×, with drain {both_ratio:.2}× (touching the same ten: {:.2}×, {:.2}×)",
            advance.2 / advance.0,
            both.2 / both.0
        ),
        advance_ratio <= 1.5 && both_ratio <= 1.5,
    )
    .note(format!(
        "medians of {ROUNDS} rounds of {COMMITS_A_ROUND} commits: 10 bound, any touched; 10,000 bound, any touched \
         (the figure: it includes meeting cold memory); 10,000 bound, the same ten touched"
    ));
    for (name, (few, many, many_hot)) in parts {
        report = report
            .note(format!("{name}: {}, {}, {}", show(few), show(many), show(many_hot)))
            .value(format!("{name}_us"), json!([few * 1e6, many * 1e6, many_hot * 1e6]));
    }
    Ok(report.value("advance_ratio", advance_ratio).value("advance_drain_ratio", both_ratio))
}
