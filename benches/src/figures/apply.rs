//! How fast the year's recorded commits are applied while ten boards are live.

use crate::{
    board,
    load::{Expect, Readers, Spec, mark},
    machine::{cpu_by_thread, cpu_seconds, show_threads_since},
    report::Report,
    serving::{Fsync, Serving, agrees, commit},
};
use anyhow::{Context as _, bail, ensure};
use serde_json::{Value as Json, json};
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use tidegate_client::{Client, Query};
use tidegate_replica::{commit_log::StreamFile, handle::Replica};

/// Commits submitted together; each keeps its own commit version.
const COMMITS_A_SUBMISSION: usize = 512;
/// Submissions parsed ahead of the store.
const SUBMISSIONS_AHEAD: usize = 4;
/// Commits of the run before, in which whole clients are compared with fresh results.
const CHECKED_COMMITS: usize = 20_000;

/// The recorded stream.
struct Stream {
    tables: Json,
    lines: Vec<String>,
    ops: usize,
}

fn stream() -> anyhow::Result<Stream> {
    let path = std::env::var_os("TIDEGATE_YEAR").map(PathBuf::from);
    let path = path.unwrap_or_else(|| "../shared/data/flights/year.commits.ndjson.gz".into());
    let most = match std::env::var("TIDEGATE_YEAR_COMMITS") {
        Ok(number) => number.parse().context("TIDEGATE_YEAR_COMMITS is a number")?,
        Err(_) => usize::MAX,
    };
    let mut file = StreamFile::open(&path).context("TIDEGATE_YEAR names the recorded year")?;
    let Some((_, head)) = file.next_line()? else { bail!("{} is empty", path.display()) };
    let tables = serde_json::from_str::<Json>(head)?["tables"].take();
    let (mut lines, mut ops) = (Vec::new(), 0);
    while lines.len() < most
        && let Some((_, line)) = file.next_line()?
    {
        // Counted in the text: every operation begins so, and no recorded value holds it.
        ops += ["{\"insert\":", "{\"update\":", "{\"delete\":"]
            .map(|kind| line.matches(kind).count())
            .iter()
            .sum::<usize>();
        lines.push(line.to_owned());
    }
    Ok(Stream { tables, lines, ops })
}

/// Parses and applies lines, parsing on a thread of its own.
async fn feed(replica: Replica, lines: Vec<String>) -> anyhow::Result<()> {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(SUBMISSIONS_AHEAD);
    let parser = {
        let replica = replica.clone();
        tokio::task::spawn_blocking(move || {
            for lines in lines.chunks(COMMITS_A_SUBMISSION) {
                let drafts = lines.iter().map(|line| replica.draft(line.as_bytes()));
                let drafts = drafts.collect::<Result<Vec<_>, _>>()?;
                if sender.blocking_send(drafts).is_err() {
                    break;
                }
            }
            anyhow::Ok(())
        })
    };
    while let Some(drafts) = receiver.recv().await {
        commit(&replica, drafts).await?;
    }
    parser.await?
}

/// Whole clients on all boards while the first commits are applied; their results are compared with fresh ones.
fn checked_run(stream: &Stream) -> anyhow::Result<()> {
    let serving = Serving::start(Fsync::Off, &stream.tables)?;
    let url = serving.url();
    let views = serving.runtime.block_on(async {
        let mut views = Vec::new();
        for query in board::queries() {
            let client = Client::connect(&url).await?;
            views.push((client.subscribe(Query::json(query.clone())).await?, query));
        }
        anyhow::Ok(views)
    })?;
    let lines = stream.lines.iter().take(CHECKED_COMMITS).cloned().collect();
    serving.runtime.block_on(feed(serving.replica().clone(), lines))?;
    for (view, query) in &views {
        let fresh = serving.fresh(query)?;
        serving.runtime.block_on(agrees(view, &fresh))?;
    }
    drop(views);
    serving.stop();
    Ok(())
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let stream = stream()?;
    checked_run(&stream)?;
    let serving = Serving::start(Fsync::Off, &stream.tables)?;
    let queries = board::queries();
    let boards = queries.len();
    let mut readers = Readers::start(&Spec {
        addr: serving.addr(),
        path: "/v1/sync".to_owned(),
        connections: boards,
        queries: queries.clone(),
    })?;
    let (commits, ops) = (stream.lines.len(), stream.ops);
    let threads = cpu_by_thread();
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    serving.runtime.block_on(feed(serving.replica().clone(), stream.lines))?;
    let applied = begin.elapsed().as_secs_f64();
    let marks: Vec<String> = (0..boards as u32).map(|n| mark::mark(mark::now(), n)).collect();
    serving.commit(vec![serving.draft(&board::last_commit(&marks))?])?;
    let outcome = readers.wait(Expect::Each(1), Duration::from_secs(120))?;
    let (elapsed, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let threads = show_threads_since(&threads, 1.0);
    ensure!(outcome.complete, "the last commit did not reach every board: {outcome:?}");
    serving.check(boards)?;
    for query in &queries {
        ensure!(serving.fresh(query)?.as_array().is_some_and(|rows| !rows.is_empty()), "no board is empty");
    }
    readers.end()?;
    serving.stop();
    let per_second = ops as f64 / elapsed;
    Ok(Report::new(format!("{:.0}k operations/s", per_second / 1e3), per_second >= 100e3)
        .value("ops_per_second", per_second)
        .value("commits_per_second", commits as f64 / elapsed)
        .value("values", json!({"commits": commits, "ops": ops, "seconds": elapsed, "cpu_seconds": cpu}))
        .note(format!(
            "{commits} commits, {ops} operations in {elapsed:.2} s, until the last is released at all {boards} clients \
             (the last was applied after {applied:.2} s); {:.0}k commits/s",
            commits as f64 / elapsed / 1e3
        ))
        .note(format!(
            "each recorded commit is one commit, {COMMITS_A_SUBMISSION} a submission; parsing is in it, unpacking the file \
             is not; log written, no fsync; light readers over loopback WebSockets in a process of their own"
        ))
        .note(format!(
            "server CPU {cpu:.2} s of {elapsed:.2} s × 2 cores' time; readers' {:.2} s, {:.1} MB",
            outcome.cpu,
            outcome.bytes as f64 / 1e6
        ))
        .note(format!("by thread: {threads}")))
}
