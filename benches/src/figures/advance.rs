//! What it costs to advance `issue` top 50 with comments when a comment is inserted.

use crate::{
    engine::{Folded, advance},
    issues,
    report::Report,
    sample::{Sample, show},
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use std::sync::Arc;
use tidegate_replica::{pipeline::Pipeline, worker::BindingId};

const ISSUES: i64 = 10_000;
const COMMENTS_EACH: i64 = 10;
const SHOWN: i64 = 50;
const WARM_UP: usize = 500;
const INSERTS: usize = 10_000;

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let mut engine = issues::tracker(ISSUES, COMMENTS_EACH);
    let query = json!({"table": "issue", "order_by": [["created", "desc"]], "limit": SHOWN, "related": [
        {"as": "comments", "on": [["id", "issue_id"]],
         "query": {"table": "comment", "order_by": [["created", "asc"]]}}]});
    let resolved = engine.prepare(&query)?;
    let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
    let mut folded = Folded::default();
    engine.bind(&mut pipeline, BindingId(1), &resolved, Some(&mut folded))?;

    let comments = engine.table("comment");
    let mut random = StdRng::seed_from_u64(1);
    let (mut shown, mut hidden, mut store) = (Sample::default(), Sample::default(), Sample::default());
    // Folded for the check at the end: that work must not cool the caches in between.
    let mut changes = Vec::with_capacity(WARM_UP + INSERTS);
    for n in 0..WARM_UP + INSERTS {
        // One in ten goes to an issue beyond the top 50, and changes nothing that is shown.
        let is_shown = n % 10 != 0;
        let issue = if is_shown {
            random.random_range(ISSUES - SHOWN..ISSUES)
        } else {
            random.random_range(0..ISSUES - SHOWN)
        };
        let row = issues::comment(ISSUES * COMMENTS_EACH + n as i64, issue);
        let mut unmeasured = Sample::default();
        let warm = n >= WARM_UP;
        let delta = if warm { &mut store } else { &mut unmeasured }.time(|| engine.put(comments, [row]));
        let mut out = Vec::with_capacity(8);
        let sample = match (warm, is_shown) {
            (false, _) => &mut unmeasured,
            (true, true) => &mut shown,
            (true, false) => &mut hidden,
        };
        sample.time(|| advance(&mut pipeline, &delta, &mut out))?;
        anyhow::ensure!(
            out.len() == usize::from(is_shown),
            "an insert is one change where it shows, else none"
        );
        changes.push(out);
    }
    for change in changes {
        folded.fold(&resolved.shape, &change)?;
    }
    engine.check(&resolved, &folded)?;

    let median = shown.median();
    Ok(Report::new(format!("{} (p99 {})", show(median), show(shown.quantile(0.99))), median <= 5e-6)
        .value("median_us", median * 1e6)
        .value("p99_us", shown.quantile(0.99) * 1e6)
        .note(format!("{} inserts under shown issues, one a commit; the rest is not in it:", shown.len()))
        .note(format!("a comment under an issue that is not shown: {}", show(hidden.median())))
        .note(format!("the store's part, one insert with its index: {}", show(store.median()))))
}
