//! How long after a commit a client shows it.

use crate::{
    report::Report,
    sample::{Sample, show},
    serving::{Fsync, Serving, agrees, commit, released},
};
use anyhow::ensure;
use serde_json::json;
use std::time::{Duration, Instant};
use tidegate_client::{Client, Query};
use tidegate_wire::model::ValueRef;

const ROWS: i64 = 50;
const WARM_UP: i64 = 200;
const COMMITS: i64 = 2_000;
/// Between a release and the next commit the machine is idle.
const PAUSE: Duration = Duration::from_millis(2);

fn run(fsync: Fsync) -> anyhow::Result<(Sample, Sample)> {
    let serving = Serving::start(
        fsync,
        &json!([{"name": "issue", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "title", "type": "text"}, {"name": "votes", "type": "int8"}]}]),
    )?;
    let inserts: Vec<_> = (0..ROWS)
        .map(|id| json!({"insert": "issue", "row": {"id": id, "title": "an issue", "votes": 0}}))
        .collect();
    serving.commit(vec![serving.draft(&json!(inserts))?])?;
    let query = json!({"table": "issue"});
    let (mut whole, mut acknowledged) = (Sample::default(), Sample::default());
    let replica = serving.replica().clone();
    // A task, as a client's would be: the thread that blocks on a runtime is no worker of it.
    let task = serving.runtime.block_on(async {
        let url = serving.url();
        let query = Query::json(query.clone());
        tokio::spawn(async move {
            let client = Client::connect(&url).await?;
            let mut view = client.subscribe(query).await?;
            ensure!(released(&mut view).await?.rows.len() == ROWS as usize, "the first result is whole");
            for n in 0..WARM_UP + COMMITS {
                tokio::time::sleep(PAUSE).await;
                let id = n % ROWS;
                let line = json!({"ops": [{"update": "issue", "key": {"id": id}, "set": {"votes": n + 1}}]});
                let draft = replica.draft(line.to_string().as_bytes())?;
                let start = Instant::now();
                // Both at once: the release need not wait for the acknowledgement.
                let (cv, update) = tokio::join!(
                    async {
                        let cv = commit(&replica, vec![draft]).await?;
                        anyhow::Ok((cv, start.elapsed()))
                    },
                    async {
                        let update = released(&mut view).await?;
                        anyhow::Ok((update, start.elapsed()))
                    }
                );
                let ((cv, acknowledged_after), (update, released_after)) = (cv?, update?);
                ensure!(update.cv == cv && update.releases == 1, "each commit is one release");
                let row = update
                    .rows
                    .iter()
                    .find(|row| matches!(row.get("id"), Some(ValueRef::Int8(it)) if it == id));
                let votes = row.and_then(|row| row.get("votes"));
                let is_shown = matches!(votes, Some(ValueRef::Int8(votes)) if votes == n + 1);
                ensure!(is_shown, "the release shows its commit");
                if n >= WARM_UP {
                    whole.add(released_after);
                    acknowledged.add(acknowledged_after);
                }
            }
            anyhow::Ok((whole, acknowledged, view, client))
        })
        .await
    });
    let (whole, acknowledged, view, client) = task??;
    let fresh = serving.fresh(&query)?;
    serving.runtime.block_on(agrees(&view, &fresh))?;
    serving.check(1)?;
    drop((view, client));
    serving.stop();
    Ok((whole, acknowledged))
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let (off, off_acknowledged) = run(Fsync::Off)?;
    let (on, on_acknowledged) = run(Fsync::On)?;
    let quantiles =
        |sample: &Sample| format!("p50 {}, p99 {}", show(sample.median()), show(sample.quantile(0.99)));
    Ok(Report::new(
        format!("fsync off {}; on {}", quantiles(&off), quantiles(&on)),
        off.median() <= 1e-3 && off.quantile(0.99) <= 5e-3,
    )
    .value("off_p50_ms", off.median() * 1e3)
    .value("off_p99_ms", off.quantile(0.99) * 1e3)
    .value("on_p50_ms", on.median() * 1e3)
    .value("on_p99_ms", on.quantile(0.99) * 1e3)
    .note(format!(
        "{} commits each, one at a time, {} ms apart; from handing the commit to the store to the Rust client's release, \
         over a loopback WebSocket, client and server in one process",
        off.len(),
        PAUSE.as_millis()
    ))
    .note(format!(
        "of it until the commit is acknowledged: off {}; on {}",
        quantiles(&off_acknowledged),
        quantiles(&on_acknowledged)
    )))
}
