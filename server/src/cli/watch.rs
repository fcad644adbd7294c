//! `tidegate watch`: a live query in the terminal.

use super::{Failure, client::Target};
use clap::Args;
use std::path::PathBuf;

/// Watch a query's result change in the terminal.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate watch --name board\n  tidegate watch --query open.json --args '{\"project\":7}'\n  tidegate watch --name board --json --once"
)]
#[group(id = "what", required = true, multiple = false)]
pub struct Arguments {
    /// The server.
    #[command(flatten)]
    pub target: Target,
    /// A query in SQL
    #[arg(group = "what", value_name = "SQL")]
    pub sql: Option<String>,
    /// A file that holds a query as JSON
    #[arg(long, group = "what", value_name = "FILE")]
    pub query: Option<PathBuf>,
    /// The name of a named query
    #[arg(long, group = "what", value_name = "NAME")]
    pub name: Option<String>,
    /// Values of the query's parameters, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Print one JSON line per released change; the first is the snapshot
    #[arg(long)]
    pub json: bool,
    /// With --json: print the whole ordered result in each line
    #[arg(long, requires = "json")]
    pub full: bool,
    /// End after the snapshot
    #[arg(long)]
    pub once: bool,
}

/// Watches.
///
/// # Errors
/// Always: this build has no client.
pub fn run(_: &Arguments) -> Result<(), Failure> {
    Err(Failure::Failed(
        "this build cannot watch yet; use curl -N URL/v1/queries/NAME/changes instead".to_owned(),
    ))
}
