//! How long it takes to find the first 50 rows of a million that satisfy a selective equality, by an ordered column.

use crate::{
    engine::{Engine, budget},
    report::Report,
    sample::{Sample, show},
};
use anyhow::ensure;
use serde_json::json;
use std::{sync::Arc, time::Instant};
use tidegate_replica::{pipeline::Pipeline, worker::BindingId};
use tidegate_wire::model::{Row, Value, ValueRef};

const ROWS: i64 = 1_000_000;
/// Rows of one kind: one in a thousand.
const KINDS: i64 = 1_000;
const SHOWN: usize = 50;

/// When a row happened: ids in an order that has nothing to do with time.
fn happened(id: i64) -> i64 {
    (id * 514_229) % ROWS
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let tables = json!([{"name": "event", "primary_key": ["id"], "columns": [
        {"name": "id", "type": "int8"}, {"name": "kind", "type": "int8"},
        {"name": "happened", "type": "timestamptz"}, {"name": "text", "type": "text"}]}]);
    let mut engine = Engine::new(serde_json::from_value(tables)?);
    let table = engine.table("event");
    let row = |id: i64| {
        Row::from_values(&[
            Value::Int8(id),
            Value::Int8(id % KINDS),
            Value::Timestamptz(happened(id)),
            Value::Text(format!("event {id} has a text that fills its row to a hundred bytes or so").into()),
        ])
    };
    let _ = engine.put(table, (0..ROWS).map(row));
    let query = |kind: i64| {
        json!({"table": "event", "where": {"op": "=", "args": [{"col": "kind"}, kind]},
               "order_by": [["happened", "desc"]], "limit": SHOWN})
    };
    let start = Instant::now();
    engine.prepare(&query(0))?;
    let index = start.elapsed().as_secs_f64();

    let (mut sample, mut read_most) = (Sample::default(), 0);
    for kind in 0..KINDS {
        let resolved = engine.prepare(&query(kind))?;
        let budget = budget();
        let (result, _pipeline, out) = sample.time(|| {
            let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
            let mut out = Vec::new();
            let values = resolved.values.clone().into();
            let result = pipeline.bind(BindingId(1), values, &engine.snapshot, &budget, &mut out);
            (result, pipeline, out)
        });
        result.map_err(|fault| anyhow::anyhow!("hydrating faulted: {fault:?}"))?;
        read_most = read_most.max(budget.rows_read());
        let mut wanted: Vec<i64> = (0..ROWS / KINDS).map(|n| happened(n * KINDS + kind)).collect();
        wanted.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        wanted.truncate(SHOWN);
        let mut got = Vec::new();
        for change in &out {
            match change.new.as_ref().map(|row| row.cell(2)) {
                Some(ValueRef::Timestamptz(at)) => got.push(at),
                other => anyhow::bail!("a hydration brings rows, not {other:?}"),
            }
        }
        got.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
        ensure!(got == wanted, "the rows of kind {kind} are not the newest {SHOWN}");
    }
    let median = sample.median();
    let per_row = read_most as f64 / SHOWN as f64;
    Ok(Report::new(
        format!("{}, rows read {per_row:.2} × shown", show(median)),
        median <= 1e-3 && per_row <= 10.0,
    )
    .value("median_us", median * 1e6)
    .value("rows_read_per_shown", per_row)
    .note(format!(
        "median over {} different constants, all cold; p99 {}",
        sample.len(),
        show(sample.quantile(0.99))
    ))
    .note(format!("building the index, once and not in it: {}", show(index))))
}
