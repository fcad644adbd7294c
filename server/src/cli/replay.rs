//! `tidegate replay`: feeds a recorded commit stream to a server.

use super::{Failure, client::Target};
use clap::Args;
use std::path::PathBuf;

/// Replay a recorded commit stream against a server, and measure.
///
/// Ends with commits/s and operations/s and, with subscribers, the latency from commit to client.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate replay week.ndjson.gz --speed 600      600 times faster than recorded\n  tidegate replay week.ndjson.gz --rate 5000      5,000 commits a second"
)]
pub struct Arguments {
    /// The server.
    #[command(flatten)]
    pub target: Target,
    /// The commit stream, plain or ending in .gz or .zst
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Commits a second
    #[arg(long, value_name = "N", conflicts_with = "speed")]
    pub rate: Option<f64>,
    /// How many times faster than recorded
    #[arg(long, value_name = "X")]
    pub speed: Option<f64>,
    /// A query in SQL that subscribers watch meanwhile
    #[arg(long, value_name = "SQL", requires = "subscribers")]
    pub watch: Option<String>,
    /// How many subscribers
    #[arg(long, value_name = "N")]
    pub subscribers: Option<usize>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Replays.
///
/// # Errors
/// Always: this build has no client.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    Err(Failure::Failed(format!(
        "this build cannot replay yet; use curl --data-binary @{} URL/v1/commits instead",
        arguments.file.display()
    )))
}
