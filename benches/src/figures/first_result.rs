//! How long a connected client waits for the first result of a query.

use crate::{
    report::Report,
    sample::{Sample, show},
    serving::{Fsync, Serving, released},
};
use anyhow::ensure;
use serde_json::{Value as Json, json};
use std::time::Instant;
use tidegate_client::{Client, Query};

const ROWS: usize = 300;
/// Distinct results: project n has the issues `n * ROWS..`.
const PROJECTS: usize = 400;
const WARM_UP: usize = 50;

fn query(project: usize) -> Json {
    json!({"table": "issue", "where": {"op": "=", "args": [{"col": "project"}, project]},
           "order_by": [["created", "desc"]]})
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let serving = Serving::start(
        Fsync::Off,
        &json!([{"name": "issue", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "project", "type": "int8"},
            {"name": "created", "type": "timestamptz"}, {"name": "title", "type": "text"}]}]),
    )?;
    for project in 0..PROJECTS {
        let issue = |n: usize| {
            let created = format!("2024-01-01T{:02}:{:02}:00Z", n / 60, n % 60);
            json!({"insert": "issue", "row": {"id": project * ROWS + n, "project": project, "created": created,
                   "title": format!("issue {n} has a title of usual length for an issue")}})
        };
        let inserts: Vec<_> = (0..ROWS).map(issue).collect();
        serving.commit(vec![serving.draft(&json!(inserts))?])?;
    }
    let url = serving.url();
    let task = serving.runtime.spawn(async move {
        let client = Client::connect(&url).await?;
        let (mut cold, mut shared) = (Sample::default(), Sample::default());
        let mut checked = Vec::new();
        for project in 0..PROJECTS {
            let mut kept = Vec::new();
            // First as its only subscriber, then beside the first.
            for sample in [&mut cold, &mut shared] {
                let start = Instant::now();
                let mut view = client.subscribe(Query::json(query(project))).await?;
                let update = released(&mut view).await?;
                let elapsed = start.elapsed();
                ensure!(update.rows.len() == ROWS, "the first result has {} rows", update.rows.len());
                if project >= WARM_UP {
                    sample.add(elapsed);
                }
                kept.push(view);
            }
            if project % 50 == 0 {
                checked.push((project, kept[0].rows().to_json()));
            }
        }
        anyhow::Ok((cold, shared, checked))
    });
    let (cold, shared, checked) = serving.runtime.block_on(task)??;
    for (project, rows) in checked {
        ensure!(serving.fresh(&query(project))? == rows, "a first result differs from a fresh one");
    }
    serving.stop();
    let quantiles =
        |sample: &Sample| format!("p50 {}, p99 {}", show(sample.median()), show(sample.quantile(0.99)));
    Ok(Report::new(quantiles(&cold), cold.median() <= 2e-3)
        .value("p50_ms", cold.median() * 1e3)
        .value("p99_ms", cold.quantile(0.99) * 1e3)
        .note(format!(
            "{} subscriptions, each to other rows (hydrated for it), from `subscribe` to the Rust client's first release; \
             one connection that is open already",
            cold.len()
        ))
        .note(format!("the same result a second time, still maintained: {}", quantiles(&shared))))
}
