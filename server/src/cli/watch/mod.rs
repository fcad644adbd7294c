//! `tidegate watch`: a live query in the terminal.

pub mod grid;
pub mod screen;

use super::{
    Failure,
    client::{ServerUrl, Target},
    print, query_text,
    serve::{self, StopSignals},
};
use clap::Args;
use grid::Grid;
use screen::Screen;
use serde_json::json;
use std::{
    io::{self, IsTerminal as _},
    os::fd::AsFd as _,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tidegate_client::{
    Client, ClientOptions, ConnectError, ErrorCode, Query, Status, SubscribeError, Update, View, ViewStatus,
    transport::websocket::WebSocketTransport,
};
use tokio::io::{Interest, unix::AsyncFd};

/// Most changed rows that are told one by one; when stdout is read so slowly that more gather, the next line holds the
/// whole result.
const CHANGES_MAX: usize = 1_000_000;

/// Longest pause between two attempts to connect: somebody is waiting.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Watch a query's result change in the terminal.
///
/// On a terminal the result is redrawn as it changes, with the changed rows marked; elsewhere each state is printed
/// below the last. A server that is still replaying its log is waited for. A lost connection is made again; meanwhile
/// the last result stands.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate watch '{\"table\":\"flights\",\"where\":{\"op\":\"=\",\"args\":[{\"col\":\"origin\"},\"JFK\"]},\"order_by\":[[\"dep_time\",\"desc\",\"nulls last\"]],\"limit\":10}'\n                                       the latest departures from JFK, of tidegate demo\n  tidegate watch --name open --args '{\"project\":7}'\n  tidegate watch --query open.json --args '{\"project\":7}'\n  tidegate watch --query - --json --once < open.json\n\nWith --json each line is {\"cv\":n,\"changes\":[{\"op\":\"add\"|\"edit\"|\"remove\",\"row\":{…}}]}, the first being the snapshot, or\nwith --full {\"cv\":n,\"rows\":[…]}. Releases that come faster than stdout is read are merged into one line."
)]
#[group(id = "what", required = true, multiple = false)]
pub struct Arguments {
    /// The server.
    #[command(flatten)]
    pub target: Target,
    /// A query in SQL, or as JSON when it starts with {
    #[arg(group = "what", value_name = "SQL")]
    pub sql: Option<String>,
    /// A file that holds a query as JSON; - is stdin
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

impl Arguments {
    fn query(&self) -> Result<Query, Failure> {
        let args = query_text::arguments(self.args.as_deref())?;
        let query = match (&self.sql, &self.query, &self.name) {
            (Some(text), _, _) => query_text::of_argument(text, "the query")?,
            (_, Some(path), _) => query_text::read(path)?,
            (_, _, Some(name)) => Query::named(name),
            (None, None, None) => unreachable!("one of the group is required"),
        };
        Ok(query.args(args))
    }

    fn title(&self) -> String {
        match (&self.name, &self.query, &self.sql) {
            (Some(name), _, _) => name.clone(),
            (_, Some(path), _) => path.display().to_string(),
            (_, _, text) => text.clone().unwrap_or_default(),
        }
    }
}

/// Watches until it is told to stop, the query ends, or stdout is closed.
///
/// # Errors
/// When the server cannot be reached, or refuses or ends the query.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let query = arguments.query()?;
    let output = if arguments.json {
        Output::Json { full: arguments.full }
    } else if io::stdout().is_terminal() && !arguments.once {
        Output::Screen(Box::new(Screen::open(arguments.title())))
    } else {
        Output::Tables
    };
    serve::runtime(0)?.block_on(async {
        let mut stop = StopSignals::listen()?;
        tokio::select! {
            result = watch(arguments, query, output) => result,
            () = stop.received() => Ok(()),
            // Whoever read the lines has seen enough.
            () = stdout_closed() => Ok(()),
        }
    })
}

async fn watch(arguments: &Arguments, query: Query, mut output: Output) -> Result<(), Failure> {
    let url = &arguments.target.url;
    let client = connect(url, &mut output).await?;
    let mut view = client.subscribe(query).await.map_err(|error| match error {
        SubscribeError::Refused(fault) => {
            Failure::Failed(format!("{url} refuses the query: {} ({})", fault.message, fault.code))
        }
        SubscribeError::Closed => Failure::Failed(format!("the connection to {url} was closed")),
    })?;
    let mut status = client.status_changes();
    let mut is_first = true;
    loop {
        let written = tokio::select! {
            update = view.next() => match update {
                // Several releases can come to nothing.
                Some(update) if !is_first && update.changes.is_empty() && !update.lagged => continue,
                Some(update) => output.show(update, is_first),
                None => return Err(ended(url, &view)),
            },
            Ok(()) = status.changed() => {
                let now = status.borrow_and_update().clone();
                output.tell(&now);
                continue;
            }
            () = output.redraw_due() => output.redraw(),
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Failure::Failed(format!("cannot write to stdout: {error}"))),
        }
        is_first = false;
        if arguments.once {
            return Ok(());
        }
    }
}

/// Connects; waits while the server says that it is not ready.
async fn connect(url: &ServerUrl, output: &mut Output) -> Result<Client, Failure> {
    let options = ClientOptions::default().view_changes_max(CHANGES_MAX).backoff_max(RETRY_PAUSE_MAX);
    let failed = |error: &ConnectError| match error {
        ConnectError::Refused { code, message } => {
            Failure::Failed(format!("{url} refuses the connection: {message} ({code})"))
        }
        ConnectError::Transport(error) => url.unreachable(error),
        error => url.unreachable(error),
    };
    let client =
        Client::start(&url.sync(), options, Arc::new(WebSocketTransport)).map_err(|error| failed(&error))?;
    let mut status = client.status_changes();
    let mut waiting = false;
    loop {
        let now = status.borrow_and_update().clone();
        match &now {
            Status::Connected => return Ok(client),
            Status::Connecting => {}
            Status::Waiting {
                error: ConnectError::Refused { code: ErrorCode::NotReady, message }, ..
            } => {
                if !std::mem::replace(&mut waiting, true) {
                    output.tell_not_ready(&now, &format!("{url} is not ready: {message}; waiting for it"));
                }
            }
            Status::Waiting { error, .. } => return Err(failed(error)),
            Status::Closed => return Err(failed(&ConnectError::Closed)),
        }
        tokio::select! {
            changed = status.changed() => {
                if changed.is_err() {
                    return Err(failed(&ConnectError::Closed));
                }
            }
            () = output.redraw_due() => {
                output.redraw().map_err(|error| Failure::Failed(format!("cannot write to stdout: {error}")))?;
            }
        }
    }
}

/// Waits until nobody can read stdout any more; for ever when it is not a pipe, socket or terminal.
async fn stdout_closed() {
    let Ok(stdout) = io::stdout().as_fd().try_clone_to_owned() else { return std::future::pending().await };
    // SAFETY: the descriptor is a duplicate of its own, owned by the registration and open for as long as it lasts.
    let registered = unsafe { AsyncFd::register_with_interest(stdout, Interest::WRITABLE) };
    let Ok(stdout) = registered else { return std::future::pending().await };
    // The other end's going away is reported whatever is asked for; that there is room to write is not of interest.
    while let Ok(mut guard) = stdout.ready(Interest::WRITABLE | Interest::ERROR).await {
        if guard.ready().is_write_closed() || guard.ready().is_error() {
            return;
        }
        guard.clear_ready();
    }
    std::future::pending().await
}

fn ended(url: &ServerUrl, view: &View) -> Failure {
    match view.status() {
        ViewStatus::Error(fault) => {
            Failure::Failed(format!("{url} has ended the query: {} ({})", fault.message, fault.code))
        }
        ViewStatus::Connecting | ViewStatus::Complete => {
            Failure::Failed(format!("the connection to {url} was closed"))
        }
    }
}

/// Where states go.
enum Output {
    Json { full: bool },
    Tables,
    Screen(Box<Screen>),
}

impl Output {
    fn show(&mut self, update: Update, is_first: bool) -> io::Result<()> {
        match self {
            Self::Json { full } => {
                let line = if *full {
                    json!({ "cv": update.cv, "rows": update.rows.to_json() })
                } else {
                    update.to_json()
                };
                print(&format!("{line}\n"))
            }
            Self::Tables => {
                let gap = if is_first { "" } else { "\n" };
                print(&format!("{gap}{}", Grid::of(&update, !is_first).plain()))
            }
            Self::Screen(screen) => screen.show(update, is_first),
        }
    }

    /// Says on stderr, or on the screen, how the connection is.
    fn tell(&mut self, status: &Status) {
        match (self, status) {
            (Self::Screen(screen), status) => screen.tell(status),
            (_, Status::Waiting { error, retry_in, .. }) => {
                eprintln!(
                    "tidegate: the connection is lost: {error}; trying again in {:.1} s",
                    retry_in.as_secs_f64()
                );
            }
            (_, Status::Connecting | Status::Connected | Status::Closed) => {}
        }
    }

    /// Says that the server is not ready yet.
    fn tell_not_ready(&mut self, status: &Status, text: &str) {
        match self {
            Self::Screen(screen) => screen.tell(status),
            Self::Json { .. } | Self::Tables => eprintln!("tidegate: {text}"),
        }
    }

    /// Waits until the screen has to be drawn again; for ever when there is nothing to draw.
    async fn redraw_due(&self) {
        match self {
            Self::Screen(screen) => screen.redraw_due().await,
            Self::Json { .. } | Self::Tables => std::future::pending().await,
        }
    }

    fn redraw(&mut self) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.draw(),
            Self::Json { .. } | Self::Tables => Ok(()),
        }
    }
}
