//! Nexmark's queries 3 and 4 in the dbsp and differential-dataflow crates, one worker each, over a file of events that the
//! figure writes: `tidegate-peers FILE`. Prints a JSON list of rates, and how many rows each view has in the end.

mod events;
mod with_dbsp;
mod with_differential;

use anyhow::Context as _;
use events::Event;
use std::time::Duration;

/// The time of all commits, from a commit's first event handed over to its changes read, and how many rows the view has.
pub struct Measured {
    pub time: Duration,
    pub rows: i64,
}

type Run = fn(&[Vec<Event>]) -> anyhow::Result<Measured>;

const RUNS: &[(&str, &str, Run)] = &[
    ("dbsp", "q3", with_dbsp::local_sellers),
    ("dbsp", "q4", with_dbsp::averages),
    ("differential-dataflow", "q3", with_differential::local_sellers),
    ("differential-dataflow", "q4", with_differential::averages),
];

fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).context("usage: tidegate-peers FILE")?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let commits = events::commits(&text)?;
    let count: usize = commits.iter().map(Vec::len).sum();
    let mut lines = Vec::new();
    for (peer, query, run) in RUNS {
        let Measured { time, rows } = run(&commits)?;
        let rate = count as f64 / time.as_secs_f64();
        lines.push(format!(r#"{{"peer":"{peer}","query":"{query}","events_per_second":{rate:.0},"rows":{rows}}}"#));
    }
    println!("[{}]", lines.join(","));
    Ok(())
}
