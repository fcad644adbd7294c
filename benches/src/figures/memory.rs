//! How much memory the store needs for a row.

use crate::{
    load::{self, Child},
    report::Report,
};
use anyhow::{Context as _, ensure};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tidegate_replica::store::{Commits, Draft, DraftOp, IndexSpec, Store, StoreOptions};
use tidegate_wire::model::{Order, Row, TableSchema, Value};

const ROWS: i64 = 1_000_000;
const ROWS_A_COMMIT: i64 = 1_000;

/// In which order the rows come.
const ORDERS: [&str; 2] = ["random", "ascending"];

/// The name of the part that runs in a process of its own.
pub(crate) const CHILD: &str = "memory";

/// Bytes of this process that are in memory.
fn bytes_resident() -> anyhow::Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).context("statm has a second number")?.parse()?;
    Ok(pages * 4096)
}

/// Fills a store in this process's fresh memory and tells what it takes.
pub(crate) fn child(order: &str) -> anyhow::Result<()> {
    let table: TableSchema =
        serde_json::from_value(json!({"name": "event", "primary_key": ["id"], "columns": [
        {"name": "id", "type": "int8"}, {"name": "kind", "type": "int8"},
        {"name": "happened", "type": "timestamptz"}, {"name": "text", "type": "text"}]}))?;
    let store = Store::open(StoreOptions { snapshots_kept_max: 1, ..StoreOptions::default() }, |_| ())?;
    store.create_tables_blocking(vec![table.clone()])??;
    let id = store.snapshot().table_id("event").context("the table was made")?;
    // The index is there from the beginning, as that of a live query: its tree is filled row by row.
    let spec = IndexSpec { table: id, columns: vec![(1, Order::ASC), (2, Order::ASC)] };
    store.ensure_index_blocking(spec)??;
    let text = "x".repeat(80);
    // A number without a common factor with ROWS: every id comes once.
    let stride = if order == "random" { 514_229 } else { 1 };
    let before = bytes_resident()?;
    for first in (0..ROWS).step_by(ROWS_A_COMMIT as usize) {
        let ops = (first..first + ROWS_A_COMMIT).map(|n| {
            let id_cell = (n * stride) % ROWS;
            let row = Row::from_values(&[
                Value::Int8(id_cell),
                Value::Int8(id_cell % 1_000),
                Value::Timestamptz(1_700_000_000_000_000 + (n * 7_919) % ROWS),
                Value::Text(text.as_str().into()),
            ]);
            DraftOp::insert(id, &table, row)
        });
        let drafts = vec![Draft { at: None, ops: ops.collect() }];
        let outcome = store.commit_blocking(Commits { drafts, ..Commits::default() })?;
        ensure!(outcome.refused.is_none(), "a commit was refused: {:?}", outcome.refused);
    }
    let resident = bytes_resident()? - before;
    let snapshot = Arc::clone(&store.snapshot());
    let relation = snapshot.table(id).context("the table is there")?;
    ensure!(relation.rows().len() == ROWS as usize, "all rows are there");
    let (_, spec) = relation.indexes().next().context("the index is there")?;
    let tree = relation.index_by(spec).context("the index is there")?;
    ensure!(tree.len() == ROWS as usize, "the index has all rows");
    load::tell(&json!({
        "encoded": snapshot.row_bytes(), "resident": resident, "nodes": relation.node_bytes(),
    }))
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let mut ratios = Vec::new();
    let mut report = Report::new("", false);
    for order in ORDERS {
        let mut process = Child::start(&[CHILD, order])?;
        let told = process.hear()?;
        process.end()?;
        let number = |name: &str| told[name].as_f64().with_context(|| format!("{name} is told"));
        let (encoded, resident) = (number("encoded")?, number("resident")?);
        let ratio = resident / encoded;
        report = report
            .note(format!(
                "{order} key order: {:.1} encoded bytes a row; resident {:.1}, {ratio:.2}×; of it tree nodes {:.1}",
                encoded / ROWS as f64,
                resident / ROWS as f64,
                number("nodes")? / ROWS as f64,
            ))
            .value(order, told.clone());
        ratios.push(ratio);
    }
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    report.measured = format!("random key order {:.2}×, ascending {:.2}×", ratios[0], ratios[1]);
    report.reached = worst <= 2.5;
    Ok(report
        .note("what the process has in memory, the allocator's overhead included; one snapshot kept")
        .value("ratios", Json::from(ratios)))
}
