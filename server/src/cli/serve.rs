//! `tidegate serve`: the server.

use super::Failure;
use crate::{
    config::{self, Config, Override, docs},
    runtime,
    server::{PrepareError, RunningServer, Server, StartError},
    state::Page,
    telemetry,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    future,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
};
use tidegate_replica::handle::Replica;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Run a server.
///
/// Prints one JSON line on stdout when it is ready, `{"ready":true,"addr":"127.0.0.1:7300"}`, and logs to stderr.
/// SIGTERM or SIGINT stops it in order.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate serve --data-dir ./data\n  tidegate serve --addr 127.0.0.1:0          pick a free port\n  TIDEGATE_STORE_FSYNC=false tidegate serve  settings from the environment\n\nFlags go before the environment, the environment before the file, the file before the defaults.\nAll settings: tidegate serve --print-settings"
)]
pub struct Arguments {
    /// Configuration file; without it, ./tidegate.toml is read if it is there
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDR")]
    addr: Option<String>,
    /// Folder of the commit log; "" keeps everything in memory only [default: tidegate-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Where commits come from [default: embedded]
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Worker threads; 0 is one less than the machine's cores [default: 0]
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Whether a commit is on stable storage before it is acknowledged [default: true]
    #[arg(long, value_name = "BOOL")]
    fsync: Option<String>,
    /// How log lines are written: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Which log lines are written, as in RUST_LOG [default: info]
    #[arg(long, value_name = "FILTER")]
    log_filter: Option<String>,
    /// Print every setting with its default, unit and range, and exit
    #[arg(long)]
    print_settings: bool,
}

impl Arguments {
    fn overrides(&self) -> Vec<Override> {
        [
            ("server.addr", "--addr", &self.addr),
            ("store.data_dir", "--data-dir", &self.data_dir),
            ("source.url", "--source", &self.source),
            ("workers.count", "--workers", &self.workers),
            ("store.fsync", "--fsync", &self.fsync),
            ("telemetry.log_format", "--log-format", &self.log_format),
            ("telemetry.log_filter", "--log-filter", &self.log_filter),
        ]
        .into_iter()
        .filter_map(|(path, flag, value)| value.clone().map(|value| Override { path, flag, value }))
        .collect()
    }
}

/// Runs the server until it is told to stop.
///
/// # Errors
/// When the configuration is wrong or the server does not start.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.print_settings {
        print!("{}", docs::settings_markdown());
        return Ok(());
    }
    let config = config::load(arguments.config.as_deref(), environment(), &arguments.overrides())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    telemetry::install(&config.telemetry).map_err(|error| Failure::Usage(error.to_string()))?;
    runtime(config.server.io_threads)?.block_on(serve(config))
}

/// The process's environment, without what is not text.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// A runtime of so many threads, as [`runtime::start`] counts them.
///
/// # Errors
/// When the system has no threads to give.
pub fn runtime(io_threads: usize) -> Result<tokio::runtime::Runtime, Failure> {
    runtime::start(io_threads)
        .map_err(|error| Failure::Failed(format!("cannot start the runtime's threads: {error}")))
}

async fn serve(config: Config) -> Result<(), Failure> {
    let server = start(config, Page::Console, |_| future::ready(Ok(()))).await?;
    // Written out so that the members stand in the documented order, for readers that look at the text.
    let line = format!("{{\"ready\":true,\"addr\":\"{}\"}}", server.addr);
    let mut stdout = io::stdout().lock();
    // Whoever started the server may not listen any more; that is no reason to stop serving.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    drop(stdout);
    until_stopped(server).await
}

/// Starts a server, with a progress bar for the replay of the log when stderr is a terminal. `prepare` is done before
/// clients see anything.
///
/// # Errors
/// When it does not start, or `prepare` fails.
pub async fn start<F>(
    config: Config,
    page: Page,
    prepare: impl FnOnce(Replica) -> F,
) -> Result<RunningServer, Failure>
where
    F: Future<Output = Result<(), PrepareError>>,
{
    let bar = if io::stderr().is_terminal() { ProgressBar::no_length() } else { ProgressBar::hidden() };
    let style = "replaying the log {bar:40} {bytes} of {total_bytes}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let on_progress = {
        let bar = bar.clone();
        move |read, total| {
            bar.set_length(total);
            bar.set_position(read);
        }
    };
    let started = Server::start_with(config, page, on_progress, prepare).await;
    bar.finish_and_clear();
    started.map_err(|error| match error {
        StartError::UnsupportedSource(_) => Failure::Usage(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    })
}

/// Serves until SIGTERM or SIGINT, then stops in order.
///
/// # Errors
/// When the signals cannot be listened for.
pub async fn until_stopped(server: RunningServer) -> Result<(), Failure> {
    StopSignals::listen()?.received().await;
    server.shutdown().await;
    Ok(())
}

/// SIGTERM and SIGINT, which ask a command to end in order.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Takes the signals: from now on they no longer end the process by themselves. Needs a runtime.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> Result<Self, Failure> {
        let failed = |error| Failure::Failed(format!("cannot listen for signals: {error}"));
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
        })
    }

    /// Waits for one of them.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
