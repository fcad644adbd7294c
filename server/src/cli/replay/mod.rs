//! `tidegate replay`: feeds a recorded commit stream to a server, and measures.
//!
//! The flow is [`stream`] (the file, read ahead on a thread of its own) → [`pace`] (when a commit is due) → [`post`]
//! (one request at a time) and, beside it, [`sends`] (when each commit was sent) → [`subscribers`] → [`report`].

pub mod latency;
pub mod pace;
pub mod post;
pub mod report;
pub mod sends;
pub mod stream;
pub mod subscribers;

use super::{Failure, client::Target, finish_with, query_text, serve};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use latency::Latencies;
use pace::Pace;
use post::Poster;
use report::{Report, Watched};
use sends::Sends;
use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use stream::{Line, LineKind, Lines};
use subscribers::Subscribers;
use tidegate_client::Query;

/// Most commits in one request.
const REQUEST_COMMITS_MAX: usize = 1_024;
/// Bytes of lines after which a request is full.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Replay a recorded commit stream against a server, and measure.
///
/// Commits are posted in the order of the file, each as it was recorded: one request at a time, with all the commits
/// that are due, so that behind a refused commit none is tried. Without --rate or --speed all are due at once. Ends
/// with commits/s and operations/s, counted from the first commit's sending to the last one's answer, when it is
/// durable.
///
/// With subscribers it also tells the latency from commit to client: of every batch of changes that every subscriber
/// gets, the time from the sending of the request with the batch's commit to the moment when the subscriber has the
/// progress message that releases it. When the server is behind, it merges commits into one batch, which counts
/// once, from its newest commit. Two more figures show such overload: how far sending fell behind the schedule, and
/// how long after the last answer the last subscriber had everything. Use --rate to measure; at full speed latencies
/// include the time a request's other commits take.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate replay server/assets/demo/week.commits.ndjson.gz --speed 3600      an hour in a second\n  tidegate replay server/assets/demo/week.commits.ndjson.gz --rate 5000       5,000 commits a second\n  tidegate replay server/assets/demo/week.commits.ndjson.gz --rate 500 --subscribers 100 \\\n    --watch '{\"table\":\"weather\",\"order_by\":[[\"hour\",\"desc\"]],\"limit\":3}'\n\nThe file is the week of flights in the repository. A commit is refused when its rows are there already, so start each\nagainst a server without them: tidegate serve --data-dir \"\""
)]
pub struct Arguments {
    /// The server.
    #[command(flatten)]
    pub target: Target,
    /// The commit stream: plain, gzip or zstd
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Commits a second
    #[arg(long, value_name = "N", conflicts_with = "speed", value_parser = super::positive, allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// How many times faster than recorded
    #[arg(long, value_name = "X", value_parser = super::positive, allow_negative_numbers = true)]
    pub speed: Option<f64>,
    /// A query that subscribers watch meanwhile: SQL, or JSON when it starts with {
    #[arg(long, value_name = "SQL", requires = "subscribers", conflicts_with = "watch_query")]
    pub watch: Option<String>,
    /// A file that holds the query that subscribers watch; - is stdin
    #[arg(long, value_name = "FILE", requires = "subscribers")]
    pub watch_query: Option<PathBuf>,
    /// How many subscribers, each with a connection of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub subscribers: Option<u32>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl Arguments {
    fn watched(&self) -> Result<Option<(Query, usize)>, Failure> {
        let query = match (&self.watch, &self.watch_query, self.subscribers) {
            (Some(text), _, _) => query_text::of_argument(text, "--watch")?,
            (None, Some(path), _) => query_text::read(path)?,
            (None, None, None) => return Ok(None),
            (None, None, Some(_)) => {
                let text = "--subscribers needs a query: give --watch or --watch-query";
                return Err(Failure::Usage(text.to_owned()));
            }
        };
        Ok(Some((query, self.subscribers.unwrap_or(1) as usize)))
    }
}

/// Replays.
///
/// # Errors
/// When the file cannot be read, the server cannot be reached or refuses a commit or the query, or a subscriber loses
/// its connection.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let watched = arguments.watched()?;
    let mut poster = Poster::new(arguments.target.url.clone(), &arguments.file);
    let mut lines = Lines::open(&arguments.file)?;
    let base = match lines.next_if(|line| matches!(line.kind, LineKind::Tables))? {
        // Subscribers need the tables.
        Some(tables) => poster.post(&[tables])?,
        None => poster.newest_cv()?,
    };
    let sends = Arc::new(Sends::after(base));
    let runtime = serve::runtime(0)?;
    let subscribers = match watched {
        None => None,
        Some((query, count)) => {
            let connected = Subscribers::connect(&arguments.target.url, query, count, Arc::clone(&sends));
            Some(runtime.block_on(connected)?)
        }
    };
    let mut report = replay(arguments, &mut poster, lines, &sends)?;
    let lost = match subscribers {
        None => Vec::new(),
        Some(subscribers) => {
            let finished = runtime.block_on(subscribers.finish(report.cv, report.first_table.clone()))?;
            report.watched = Some(Watched {
                subscribers: finished.subscribers,
                lost: finished.lost.len(),
                latency: finished.latency,
                caught_up: finished.caught_up,
                foreign_commits: sends.foreign_commits(),
            });
            finished.lost
        }
    };
    finish_with(&if arguments.json { format!("{}\n", report.json()) } else { report.text() })?;
    match lost.first() {
        None => Ok(()),
        Some(why) => Err(Failure::Failed(format!(
            "{} of the subscribers lost their connection, the first because {why}; see the server's log",
            lost.len()
        ))),
    }
}

fn replay(
    arguments: &Arguments,
    poster: &mut Poster,
    mut lines: Lines,
    sends: &Sends,
) -> Result<Report, Failure> {
    let bar = progress_bar(lines.bytes_total());
    let mut pace = Pace::new(arguments.rate, arguments.speed);
    let behind = Latencies::new();
    let mut report = Report { cv: sends.newest(), ..Report::default() };
    let started = Instant::now();
    while let Some(first) = lines.next_if(|_| true).map_err(|fault| after(&report, fault))? {
        let mut fault = None;
        let due = pace.due(&first);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        let mut bytes = first.text.len();
        let mut dues = vec![due];
        let mut request = vec![first];
        while request.len() < REQUEST_COMMITS_MAX && bytes < REQUEST_BYTES_MAX {
            match lines.next_if(|line| pace.peek(line) <= now) {
                Ok(Some(line)) => {
                    dues.push(pace.due(&line));
                    bytes += line.text.len();
                    request.push(line);
                }
                Ok(None) => break,
                // What comes before the fault is applied first.
                Err(error) => {
                    fault = Some(error);
                    break;
                }
            }
        }
        let sent_at = sends.sending(request.len());
        for due in dues {
            behind.record(sent_at.saturating_duration_since(due));
        }
        let cv = poster.post(&request)?;
        sends.answered(cv);
        report.cv = cv;
        report.requests += 1;
        report.commits += request.len() as u64;
        for line in &request {
            if let LineKind::Commit { ops, first_table, .. } = &line.kind {
                report.ops += ops;
                if report.first_table.is_none() {
                    report.first_table.clone_from(first_table);
                }
            }
        }
        bar.set_position(request.last().map_or(0, |line: &Line| line.bytes_read));
        bar.set_message(report.commits.to_string());
        if let Some(fault) = fault {
            return Err(after(&report, fault));
        }
    }
    report.duration = started.elapsed();
    report.behind = (arguments.rate.is_some() || arguments.speed.is_some()).then(|| behind.summary());
    bar.finish_and_clear();
    Ok(report)
}

/// A fault of the file, with how far the replay came before it.
fn after(report: &Report, fault: Failure) -> Failure {
    let Failure::Failed(text) = fault else { return fault };
    Failure::Failed(match report.commits {
        0 => format!("{text}; no commit was applied"),
        1 => format!("{text}; the 1 commit before it is applied (commit version {})", report.cv),
        count => format!("{text}; the {count} commits before it are applied (commit version {})", report.cv),
    })
}

fn progress_bar(bytes_total: u64) -> ProgressBar {
    let bar = if io::stderr().is_terminal() { ProgressBar::new(bytes_total) } else { ProgressBar::hidden() };
    let style = "{bar:40} {percent}% of the file, {msg} commits, {elapsed} passed, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message("0");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
