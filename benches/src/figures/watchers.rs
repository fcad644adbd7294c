//! What a commit costs a server that 5,000 clients watch, each a row of its own.

use crate::{
    load::{Expect, Readers, Spec, mark},
    machine::{cpu_by_thread, cpu_seconds, show_threads_since},
    report::Report,
    sample::show,
    serving::{Fsync, Serving, commit},
};
use anyhow::ensure;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};

const WATCHERS: usize = 5_000;
const COMMITS_A_SECOND: u32 = 100;
const WARM_UP: u32 = 200;
/// As long as the interval of pings, so that each connection is pinged once meanwhile.
const COMMITS: u32 = 3_000;

/// Commits to one watched row after the other at the set rate; the first update's number is `from`.
fn commit_all(serving: &Serving, random: &mut StdRng, from: u32, count: u32) -> anyhow::Result<()> {
    let (replica, begin) = (serving.replica().clone(), Instant::now());
    let rows: Vec<usize> = (0..count).map(|_| random.random_range(0..WATCHERS)).collect();
    // A task, as the server's own HTTP handler is: a thread that blocks on the runtime costs two more switches.
    let task = serving.runtime.spawn(async move {
        for (n, row) in (0..).zip(rows) {
            tokio::time::sleep_until((begin + Duration::from_secs(1) * n / COMMITS_A_SECOND).into()).await;
            let text = mark::mark(mark::now(), from + n);
            let line = json!({"ops": [{"update": "issue", "key": {"id": row}, "set": {"title": text}}]});
            commit(&replica, vec![replica.draft(line.to_string().as_bytes())?]).await?;
        }
        Ok(())
    });
    serving.runtime.block_on(task)?
}

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let serving = Serving::start(
        Fsync::Off,
        &json!([{"name": "issue", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "title", "type": "text"}]}]),
    )?;
    let inserts: Vec<_> =
        (0..WATCHERS).map(|id| json!({"insert": "issue", "row": {"id": id, "title": "an issue"}})).collect();
    serving.commit(vec![serving.draft(&json!(inserts))?])?;
    let query =
        |id: usize| -> Json { json!({"table": "issue", "where": {"op": "=", "args": [{"col": "id"}, id]}}) };
    let mut readers = Readers::start(&Spec {
        addr: serving.addr(),
        path: "/v1/sync".to_owned(),
        connections: WATCHERS,
        queries: (0..WATCHERS).map(query).collect(),
    })?;
    let mut random = StdRng::seed_from_u64(5);
    commit_all(&serving, &mut random, 0, WARM_UP)?;
    let warm = readers.wait(Expect::Sum(WARM_UP.into()), Duration::from_secs(10))?;
    ensure!(warm.complete, "the warm-up's updates did not come: {warm:?}");

    let (idle_cpu, idle_begin) = (cpu_seconds(), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let idle = (cpu_seconds() - idle_cpu) / idle_begin.elapsed().as_secs_f64();
    let threads = cpu_by_thread();
    let (cpu, begin) = (cpu_seconds(), Instant::now());
    commit_all(&serving, &mut random, WARM_UP, COMMITS)?;
    let (cpu, elapsed) = (cpu_seconds() - cpu, begin.elapsed().as_secs_f64());
    let threads = show_threads_since(&threads, f64::from(COMMITS));

    let all = u64::from(WARM_UP + COMMITS);
    let outcome = readers.wait(Expect::Sum(all), Duration::from_secs(10))?;
    ensure!(outcome.complete, "not every update came once to its one watcher: {outcome:?}");
    serving.check(WATCHERS)?;
    readers.end()?;
    serving.stop();
    let per_commit = cpu / f64::from(COMMITS);
    Ok(Report::new(format!("{:.3} ms", per_commit * 1e3), per_commit <= 0.3e-3)
        .value("cpu_ms_per_commit", per_commit * 1e3)
        .value("idle_cpu_share", idle)
        .note(format!(
            "{COMMITS} commits in {elapsed:.1} s, {WATCHERS} connections with one subscription each, in a process of their \
             own; user + system time of the server's process, that of the committing loop included"
        ))
        .note(format!(
            "latency p50 {}, p99 {}; the idle server uses {:.2} % of a core",
            show(outcome.p50),
            show(outcome.p99),
            idle * 100.0
        ))
        .note(format!("by thread, per commit: {threads}")))
}
