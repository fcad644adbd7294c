//! `tidegate demo`: a live departure board from recorded flights.
//!
//! [`recording`] holds the week, [`playback`] commits it at the pace of a clock that runs faster than ours, [`notes`] is
//! what visitors write beside it.

pub mod notes;
pub mod playback;
pub mod recording;

use super::{Failure, serve};
use crate::{
    config::{self, Override},
    state::Page,
    telemetry,
};
use clap::Args;
use playback::Playback;
use recording::Recording;
use std::{
    io::{self, Write as _},
    sync::Arc,
};
use tokio_util::sync::CancellationToken;

/// Show a live departure board: a week of recorded flights, replayed faster than real time.
///
/// Serves the board at / and the console at /console, and prints one line with the address when both are ready. It
/// starts on Monday at noon, when all three airports are busy; what was recorded before is loaded at once. On Sunday
/// at nine in the evening it goes back to Monday noon, in one commit, and so on without end. With --data-dir, a restart
/// continues where the last run stopped. Visitors can write notes on flights, which go with them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate demo                 ten minutes of flights a second\n  tidegate demo --speed 60      a minute a second\n  tidegate demo --addr 127.0.0.1:0 --data-dir ./demo-data"
)]
pub struct Arguments {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:7300", value_name = "ADDR")]
    pub addr: String,
    /// How many times faster than real time
    #[arg(long, default_value_t = 600.0, value_name = "X", value_parser = super::positive, allow_negative_numbers = true)]
    pub speed: f64,
    /// Folder to keep the data in; without it, it is kept in memory
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
}

/// Runs the demo until it is told to stop.
///
/// # Errors
/// When the server does not start, or the data folder holds something else than this demo's data.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut overrides = vec![
        Override { path: "server.addr", flag: "--addr", value: arguments.addr.clone() },
        Override {
            path: "store.data_dir",
            flag: "--data-dir",
            value: arguments.data_dir.clone().unwrap_or_default(),
        },
        Override { path: "source.url", flag: "demo", value: "embedded".to_owned() },
    ];
    // A visitor's terminal shows the address and little else.
    let log_filter_is_set = serve::environment().any(|(name, _)| name == "TIDEGATE_TELEMETRY_LOG_FILTER");
    if !log_filter_is_set {
        let value = "warn,tidegate_server::cli::demo=info".to_owned();
        overrides.push(Override { path: "telemetry.log_filter", flag: "demo", value });
    }
    let config = config::load(None, serve::environment(), &overrides)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    telemetry::install(&config.telemetry).map_err(|error| Failure::Usage(error.to_string()))?;
    let recording = Arc::new(Recording::built_in());
    serve::runtime(config.server.io_threads)?.block_on(async {
        let mut stop_signals = serve::StopSignals::listen()?;
        let mut playback = None;
        let prepare = async |replica| {
            playback = Some(Playback::open(replica, recording, arguments.speed).await?);
            Ok(())
        };
        let server = tokio::select! {
            server = serve::start(config, Page::Board, prepare) => server?,
            () = stop_signals.received() => return Ok(()),
        };
        let playback = playback.expect("a server that has started is prepared");
        // Whoever started the demo may not listen any more; that is no reason to stop it.
        let mut stdout = io::stdout().lock();
        let _ = writeln!(stdout, "http://{}", server.addr).and_then(|()| stdout.flush());
        drop(stdout);
        let stop = CancellationToken::new();
        let playing = tokio::spawn(playback.run(Arc::clone(&server.shared.hub), stop.clone()));
        let tending = tokio::spawn(notes::tend(server.replica().clone(), stop.clone()));
        stop_signals.received().await;
        stop.cancel();
        let (played, _) = tokio::join!(playing, tending);
        server.shutdown().await;
        played.map_err(|_| Failure::Failed("the replay has failed; see the log above".to_owned()))
    })
}
