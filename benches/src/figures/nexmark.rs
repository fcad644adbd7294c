//! How fast Nexmark's queries 3 and 4 follow a stream, against the dbsp crate.
//!
//! As in a server, the store applies commits on its thread while one worker's advances the view; it is given the events of
//! the tables that the view reads, as the peers are.

use crate::{
    engine::Engine,
    report::Report,
    sample::{Sample, show},
    view::View,
};
use anyhow::{Context as _, ensure};
use serde_json::Value as Json;
use std::{
    fmt::Write as _, io::Write as _, path::PathBuf, process::Command, sync::mpsc::sync_channel, thread,
    time::Instant,
};
use tidegate_replica::store::Delta;
use tidegate_tests::{
    nexmark::{AUCTION, AVERAGES, BID, LOCAL_SELLERS, Nexmark, PERSON},
    row_changes::RowChange,
};
use tidegate_wire::model::ValueRef;

const SEED: u64 = 1;
const COMMITS: usize = 1_000;
const COMMIT_EVENTS: usize = 1_000;
/// Commits that may wait for the worker.
const QUEUE_MAX: usize = 16;

/// Measures the figure.
pub(crate) fn measure() -> anyhow::Result<Report> {
    let peers = peers()?;
    let mut measured = Vec::new();
    let mut notes = vec![format!(
        "{COMMITS} commits of {COMMIT_EVENTS} events, of which each gets those that the query reads; the store's thread \
         and one worker's, as dbsp's worker has threads beside it that merge"
    )];
    let mut is_reached = peers.is_some();
    for (name, sql, tables) in [("q3", LOCAL_SELLERS, [PERSON, AUCTION]), ("q4", AVERAGES, [AUCTION, BID])] {
        let mut nexmark = Nexmark::new(SEED);
        let mut engine = Engine::new(nexmark.schemas().to_vec());
        let mut view = View::open(&mut engine, sql)?;
        let mut commits: Vec<Vec<RowChange>> = (0..COMMITS).map(|_| nexmark.events(COMMIT_EVENTS)).collect();
        commits.iter_mut().for_each(|events| events.retain(|event| tables.contains(&event.table)));
        let (mut store, mut advance) = (Sample::default(), Sample::default());
        let (deltas, waiting) = sync_channel::<Delta>(QUEUE_MAX);
        let start = Instant::now();
        thread::scope(|scope| {
            let worker = scope
                .spawn(|| waiting.into_iter().try_for_each(|delta| advance.time(|| view.advance(&delta))));
            for events in &commits {
                if deltas.send(store.time(|| engine.apply(events))).is_err() {
                    break;
                }
            }
            drop(deltas);
            worker.join().expect("the worker does not panic")
        })?;
        let own = (COMMITS * COMMIT_EVENTS) as f64 / start.elapsed().as_secs_f64();
        view.check(&engine)?;
        let rows = view.shown()?.rows.len();
        measured.push(format!("{name} {:.0}k events/s", own / 1e3));
        notes.push(format!(
            "{name}: advance {} a commit, store {}",
            show(advance.mean()),
            show(store.mean())
        ));
        for peer in
            peers.iter().flat_map(|it| it.as_array().into_iter().flatten()).filter(|it| it["query"] == name)
        {
            let theirs = peer["events_per_second"].as_f64().context("a rate")?;
            let counted = peer["rows"].as_u64().context("a count")?;
            ensure!(counted == rows as u64, "{peer}: the view has {rows} rows");
            if peer["peer"] == "dbsp" {
                is_reached &= own >= theirs;
                measured.push(format!("{:.2} × dbsp's {:.0}k", own / theirs, theirs / 1e3));
            } else {
                notes.push(format!(
                    "{name}: {} {:.0}k events/s",
                    peer["peer"].as_str().unwrap_or("?"),
                    theirs / 1e3
                ));
            }
        }
    }
    if peers.is_none() {
        notes.push(
            "the peers are not built: cargo build --release --manifest-path benches/peers/Cargo.toml"
                .to_owned(),
        );
    }
    let mut report = Report::new(measured.join(", "), is_reached);
    report.notes = notes;
    Ok(report)
}

/// What the peers measure of the same events, if they are built.
fn peers() -> anyhow::Result<Option<Json>> {
    let program = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/target/release/tidegate-peers"));
    if !program.exists() {
        return Ok(None);
    }
    let mut nexmark = Nexmark::new(SEED);
    let mut file = tempfile::NamedTempFile::new()?;
    for _ in 0..COMMITS {
        for event in nexmark.events(COMMIT_EVENTS) {
            writeln!(file, "{}", line(&event)?)?;
        }
        writeln!(file)?;
    }
    file.flush()?;
    let output = Command::new(program).arg(file.path()).output()?;
    ensure!(output.status.success(), "the peers fail: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Some(serde_json::from_slice(&output.stdout)?))
}

/// An event as the peers read it: the columns that the queries read.
fn line(event: &RowChange) -> anyhow::Result<String> {
    let (name, columns): (_, &[usize]) = match event.table {
        PERSON => ("person", &[0, 1, 3, 4]),
        AUCTION => ("auction", &[0, 6, 7, 4, 5]),
        _ => ("bid", &[1, 3, 5]),
    };
    let row = event.new.as_ref().context("a row comes")?;
    let mut line = name.to_owned();
    for &column in columns {
        match row.cell(column) {
            ValueRef::Int8(number) | ValueRef::Timestamptz(number) => write!(line, ",{number}")?,
            ValueRef::Text(text) => write!(line, ",{text}")?,
            other => anyhow::bail!("the peers do not read {other:?}"),
        }
    }
    Ok(line)
}
