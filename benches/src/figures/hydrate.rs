//! How long it takes to compute a result of 500 issues with creators and comments.

use crate::{
    engine::{Folded, budget},
    issues,
    report::Report,
    sample::{Sample, show},
};
use anyhow::ensure;
use serde_json::json;
use std::sync::Arc;
use tidegate_replica::{pipeline::Pipeline, worker::BindingId};

const ISSUES: i64 = 500;
const COMMENTS_EACH: i64 = 2;
const WARM_UP: usize = 20;
const RUNS: usize = 300;

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let mut engine = issues::tracker(ISSUES, COMMENTS_EACH);
    let query = json!({"table": "issue", "related": [
        {"as": "creator", "one": true, "on": [["creator_id", "id"]], "query": {"table": "user"}},
        {"as": "comments", "on": [["id", "issue_id"]], "query": {"table": "comment"}}]});
    let resolved = engine.prepare(&query)?;
    let mut sample = Sample::default();
    let mut last = Vec::new();
    for n in 0..WARM_UP + RUNS {
        let mut unmeasured = Sample::default();
        let sample = if n < WARM_UP { &mut unmeasured } else { &mut sample };
        // The pipeline is dropped outside the measurement.
        let (result, _pipeline, out) = sample.time(|| {
            let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
            let mut out = Vec::new();
            let values = resolved.values.clone().into();
            let result = pipeline.bind(BindingId(1), values, &engine.snapshot, &budget(), &mut out);
            (result, pipeline, out)
        });
        result.map_err(|fault| anyhow::anyhow!("hydrating faulted: {fault:?}"))?;
        last = out;
    }
    let mut places = [0; 3];
    last.iter().for_each(|change| places[usize::from(change.place)] += 1);
    // A creator enters once however many of the issues it created.
    ensure!(places == [500, issues::USERS as usize, 1_000], "rows by place are {places:?}");
    let mut folded = Folded::default();
    folded.fold(&resolved.shape, &last)?;
    let result = folded.result(&resolved.shape);
    let whole = |issue: &serde_json::Value| {
        issue["creator"]["id"] == issue["creator_id"] && issue["comments"].as_array().map(Vec::len) == Some(2)
    };
    ensure!(result.len() == 500 && result.iter().all(whole), "the result is not as it was put in");

    let median = sample.median();
    Ok(Report::new(format!("{} (p99 {})", show(median), show(sample.quantile(0.99))), median <= 0.8e-3)
        .value("median_ms", median * 1e3)
        .note(format!("median of {} runs, each with a new pipeline", sample.len())))
}
