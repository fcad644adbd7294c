//! `tidegate demo`: a live departure board from recorded flights.

use super::Failure;
use clap::Args;

/// Show a live departure board: a week of recorded flights, replayed faster than real time.
///
/// Loads the flights into an embedded store, replays them and serves the board at /. Prints one line with the address
/// when it is ready.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate demo                 ten minutes of flights a second\n  tidegate demo --speed 60"
)]
pub struct Arguments {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:7300", value_name = "ADDR")]
    pub addr: String,
    /// How many times faster than real time
    #[arg(long, default_value_t = 600.0, value_name = "X")]
    pub speed: f64,
    /// Folder to keep the data in; without it, it is kept in memory
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
}

/// Runs the demo.
///
/// # Errors
/// Always: this build has no recorded flights.
pub fn run(_: &Arguments) -> Result<(), Failure> {
    Err(Failure::Failed("this build has no demo yet; run tidegate serve instead".to_owned()))
}
