//! `tidegate watch`: a live query in the terminal.

pub mod grid;
pub mod screen;

use super::{
    Failure,
    client::Target,
    query_text,
    serve::{self, StopSignals},
};
use clap::Args;
use grid::Grid;
use screen::Screen;
use serde_json::json;
use std::{
    io::{self, IsTerminal as _, Write},
    path::PathBuf,
};
use tidegate_client::{Client, ClientOptions, Query, Status, SubscribeError, Update, View, ViewStatus};

/// Most changed rows that are told one by one; when stdout is read so slowly that more gather, the next line holds the
/// whole result.
const CHANGES_MAX: usize = 1_000_000;

/// Watch a query's result change in the terminal.
///
/// On a terminal the result is redrawn as it changes, with the changed rows marked; elsewhere each state is printed
/// below the last. A lost connection is made again; meanwhile the last result stands.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate watch --name board\n  tidegate watch '{\"table\":\"flights\",\"where\":{\"op\":\"=\",\"args\":[{\"col\":\"origin\"},\"JFK\"]},\"limit\":10}'\n  tidegate watch --query open.json --args '{\"project\":7}'\n  tidegate watch --query - --json --once < open.json\n\nWith --json each line is {\"cv\":n,\"changes\":[{\"op\":\"add\"|\"edit\"|\"remove\",\"row\":{…}}]}, the first being the snapshot, or\nwith --full {\"cv\":n,\"rows\":[…]}. Releases that come faster than stdout is read are merged into one line."
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
            (Some(text), _, _) => query_text::parse(text, "the query")?,
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
        }
    })
}

async fn watch(arguments: &Arguments, query: Query, mut output: Output) -> Result<(), Failure> {
    let url = &arguments.target.url;
    let options = ClientOptions::default().view_changes_max(CHANGES_MAX);
    let client = Client::connect_with(url, options).await.map_err(|error| {
        Failure::Failed(format!("cannot watch on {url}: {error}; is the server running? (tidegate serve)"))
    })?;
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
            // Whoever read the lines has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Failure::Failed(format!("cannot write to stdout: {error}"))),
        }
        is_first = false;
        if arguments.once {
            return Ok(());
        }
    }
}

fn ended(url: &str, view: &View) -> Failure {
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

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
