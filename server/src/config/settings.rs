//! Every setting in one table: its key, type, default, unit, range and meaning. The typed structs, the parser, the
//! command line's help and `docs/operations.md` all come from it, so they cannot disagree.

use super::host::HostPattern;
use std::{fmt, time::Duration};
use tidegate_wire::protocol::limits;

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Milliseconds, from the first bound to the second.
    Millis(u64, u64),
    /// Bytes, from the first bound to the second.
    Bytes(u64, u64),
    /// A number of things, from the first bound to the second.
    Count(u64, u64),
    /// `true` or `false`.
    Flag,
    /// A host and a port, as in `127.0.0.1:7300`.
    Address,
    /// Names of hosts: a list in a file, separated by commas elsewhere.
    Hosts,
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl Kind {
    /// The unit, as the documentation names it.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Millis(..) => "ms",
            Self::Bytes(..) => "bytes",
            Self::Count(..) => "count",
            Self::Flag => "true/false",
            Self::Address => "HOST:PORT",
            Self::Hosts => "list of names",
            Self::Text | Self::Choice(_) => "text",
        }
    }

    /// The inclusive bounds of a number.
    #[must_use]
    pub fn bounds(self) -> Option<(u64, u64)> {
        match self {
            Self::Millis(min, max) | Self::Bytes(min, max) | Self::Count(min, max) => Some((min, max)),
            Self::Flag | Self::Address | Self::Hosts | Self::Text | Self::Choice(_) => None,
        }
    }

    /// The range, as the documentation and error messages write it.
    #[must_use]
    pub fn range(self) -> String {
        match self {
            Self::Flag => "true, false".to_owned(),
            Self::Address | Self::Text => "any".to_owned(),
            Self::Hosts => "names and addresses, without a port".to_owned(),
            Self::Choice(words) => words.join(", "),
            Self::Millis(min, max) | Self::Bytes(min, max) | Self::Count(min, max) => {
                format!("{min} to {max}")
            }
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The section of `tidegate.toml`.
    pub section: &'static str,
    /// The key in the section.
    pub key: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What it does.
    pub doc: &'static str,
}

impl Setting {
    /// `section.key`, as messages name it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn env(&self) -> String {
        format!("TIDEGATE_{}_{}", self.section, self.key).to_uppercase()
    }
}

/// A value before it meets its setting's type. Environment variables and flags are always text.
#[derive(Clone, Debug, PartialEq)]
pub enum RawValue {
    /// From a file: a whole number.
    Integer(i64),
    /// From a file: true or false.
    Flag(bool),
    /// Text.
    Text(String),
    /// From a file: a list of texts.
    List(Vec<String>),
    /// From a file: something no setting takes, by its TOML type's name.
    Other(&'static str),
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Flag(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "\"{value}\""),
            Self::List(values) => write!(f, "{values:?}"),
            Self::Other(name) => write!(f, "a value of type {name}"),
        }
    }
}

/// A Rust type that a setting's field may have.
pub(super) trait Field: Sized {
    /// The value, when `raw` is one of `kind`'s.
    fn read(raw: &RawValue, kind: Kind) -> Option<Self>;
    /// The value as a file would write it.
    fn show(&self) -> String;
}

impl Field for u64 {
    fn read(raw: &RawValue, kind: Kind) -> Option<Self> {
        let number = match raw {
            RawValue::Integer(number) => Self::try_from(*number).ok()?,
            RawValue::Text(text) => text.trim().parse().ok()?,
            RawValue::Flag(_) | RawValue::List(_) | RawValue::Other(_) => return None,
        };
        let (min, max) = kind.bounds()?;
        (min..=max).contains(&number).then_some(number)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Field for usize {
    fn read(raw: &RawValue, kind: Kind) -> Option<Self> {
        u64::read(raw, kind)?.try_into().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Field for Duration {
    fn read(raw: &RawValue, kind: Kind) -> Option<Self> {
        u64::read(raw, kind).map(Self::from_millis)
    }

    fn show(&self) -> String {
        self.as_millis().to_string()
    }
}

impl Field for bool {
    fn read(raw: &RawValue, _: Kind) -> Option<Self> {
        match raw {
            RawValue::Flag(flag) => Some(*flag),
            RawValue::Text(text) => text.trim().parse().ok(),
            RawValue::Integer(_) | RawValue::List(_) | RawValue::Other(_) => None,
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Field for String {
    fn read(raw: &RawValue, kind: Kind) -> Option<Self> {
        let RawValue::Text(text) = raw else { return None };
        match kind {
            Kind::Choice(words) if !words.contains(&text.as_str()) => None,
            Kind::Address if !is_address(text) => None,
            _ => Some(text.clone()),
        }
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Field for Vec<String> {
    fn read(raw: &RawValue, _: Kind) -> Option<Self> {
        let names: Self = match raw {
            RawValue::List(names) => names.clone(),
            RawValue::Text(text) if text.trim().is_empty() => Self::new(),
            RawValue::Text(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
            RawValue::Integer(_) | RawValue::Flag(_) | RawValue::Other(_) => return None,
        };
        names.iter().all(|name| HostPattern::parse(name).is_some()).then_some(names)
    }

    fn show(&self) -> String {
        format!("{self:?}")
    }
}

/// Whether a text has the form of a host and a port. Whether there is such a host shows when it is used.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', ' ']) && port.parse::<u16>().is_ok()
    })
}

macro_rules! settings {
    ($(
        $(#[$section_doc:meta])*
        $section:ident: $Section:ident {
            $( $key:ident: $ty:ty = $default:expr, $kind:expr, $doc:literal; )*
        }
    )*) => {
        $(
            $(#[$section_doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $Section {
                $( #[doc = $doc] pub $key: $ty, )*
            }

            impl Default for $Section {
                fn default() -> Self {
                    Self { $( $key: $default, )* }
                }
            }
        )*

        /// The server's whole configuration, every value within its range.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Config {
            $( $(#[$section_doc])* pub $section: $Section, )*
        }

        impl Config {
            /// The table of all settings.
            pub const SETTINGS: &'static [Setting] = &[$($(
                Setting {
                    section: stringify!($section),
                    key: stringify!($key),
                    kind: $kind,
                    doc: $doc,
                },
            )*)*];

            /// The names of the sections.
            pub const SECTIONS: &'static [&'static str] = &[$( stringify!($section), )*];

            /// Sets one value; false when it is not one of the setting's values.
            pub(super) fn assign(&mut self, setting: &Setting, raw: &RawValue) -> bool {
                match (setting.section, setting.key) {
                    $($(
                        (stringify!($section), stringify!($key)) => match Field::read(raw, setting.kind) {
                            Some(value) => {
                                self.$section.$key = value;
                                true
                            }
                            None => false,
                        },
                    )*)*
                    _ => unreachable!("settings come from the table"),
                }
            }

            /// A value as `tidegate.toml` would write it.
            #[must_use]
            pub fn show(&self, setting: &Setting) -> String {
                match (setting.section, setting.key) {
                    $($(
                        (stringify!($section), stringify!($key)) => Field::show(&self.$section.$key),
                    )*)*
                    _ => unreachable!("settings come from the table"),
                }
            }
        }
    };
}

const HOUR_MS: u64 = 3_600_000;
const GIB: u64 = 1 << 30;

settings! {
    /// `server`: the listening socket and its timeouts.
    server: ServerSettings {
        addr: String = "127.0.0.1:7300".to_owned(), Kind::Address,
            "Address and port to listen on; port 0 picks a free one.";
        allowed_hosts: Vec<String> = Vec::new(), Kind::Hosts,
            "Names under which requests may address the server; `.example.com` stands for `example.com` and all names below it, `*` for every name. `localhost` and loopback addresses are always allowed. Without any, a server that listens on a loopback address allows only those, any other server every name.";
        io_threads: usize = 0, Kind::Count(0, 1_024),
            "Threads that serve sockets; 0 is one less than the machine's cores, at least 1.";
        ping_interval_ms: Duration = Duration::from_millis(30_000), Kind::Millis(100, HOUR_MS),
            "How often a WebSocket from which nothing comes is pinged, and an idle event stream is sent a comment.";
        silence_max_ms: Duration = Duration::from_millis(75_000), Kind::Millis(200, HOUR_MS),
            "A WebSocket from which nothing, not even a pong, came for so long is closed.";
        hello_timeout_ms: Duration = Duration::from_millis(10_000), Kind::Millis(100, HOUR_MS),
            "How long a WebSocket may take to send `hello`.";
        write_timeout_ms: Duration = Duration::from_millis(20_000), Kind::Millis(100, HOUR_MS),
            "How long one write to a WebSocket may take before the client counts as gone.";
        close_timeout_ms: Duration = Duration::from_millis(2_000), Kind::Millis(10, 60_000),
            "How long a closing WebSocket may take to read its last messages and answer the close frame.";
        header_timeout_ms: Duration = Duration::from_millis(30_000), Kind::Millis(100, HOUR_MS),
            "How long an HTTP connection may take to send a request's head, idle time included.";
        request_timeout_ms: Duration = Duration::from_millis(60_000), Kind::Millis(100, HOUR_MS),
            "How long an HTTP request may take; `/v1/commits` and `/v1/queries/{name}/changes` are exempt, as they stream.";
        body_idle_timeout_ms: Duration = Duration::from_millis(60_000), Kind::Millis(100, HOUR_MS),
            "How long a request's body may pause before the request is given up.";
        shutdown_timeout_ms: Duration = Duration::from_millis(5_000), Kind::Millis(0, HOUR_MS),
            "How long a shutdown waits for clients to take what is queued for them.";
        retry_after_ms: Duration = Duration::from_millis(500), Kind::Millis(0, HOUR_MS),
            "What `goaway` tells clients to wait before they reconnect.";
    }
    /// `store`: where the tables live.
    store: StoreSettings {
        data_dir: String = "tidegate-data".to_owned(), Kind::Text,
            "Folder of the commit log; empty keeps everything in memory only.";
        fsync: bool = true, Kind::Flag,
            "Whether a commit is on stable storage before it is acknowledged; without it, it survives the process but not the machine.";
        snapshots_kept_max: usize = 1_024, Kind::Count(1, 1_000_000),
            "Snapshots kept for resuming clients.";
    }
    /// `source`: where commits come from.
    source: SourceSettings {
        url: String = "embedded".to_owned(), Kind::Text,
            "`embedded`: the server's own store, written through the API.";
    }
    /// `workers`: the threads that keep queries fresh.
    workers: WorkerSettings {
        count: usize = 0, Kind::Count(0, 1_024),
            "Worker threads; 0 is one less than the machine's cores, at least 1.";
        queue_max: usize = 1_024, Kind::Count(1, 1_000_000),
            "Commits that may wait at one worker; when it is full the log waits.";
        deadline_ms: Duration = Duration::from_millis(30_000), Kind::Millis(10, HOUR_MS),
            "Longest one advance or hydration of one query may take before the query is faulted.";
        idle_ttl_ms: Duration = Duration::from_millis(30_000), Kind::Millis(0, 24 * HOUR_MS),
            "How long a query without subscribers is kept; one whose first result is still being computed is given up within a second.";
    }
    /// `drain`: the thread that makes batches.
    drain: DrainSettings {
        queue_max: usize = 4_096, Kind::Count(16, 1_000_000),
            "Events and controls that may wait at the drain; when it is full the workers wait.";
        keep_alive_ms: Duration = Duration::from_millis(30_000), Kind::Millis(100, HOUR_MS),
            "How often `cv_min` is noted for idle connections; it travels with the next ping or message.";
    }
    /// `limits`: how much one client, message or commit may ask for.
    limits: LimitSettings {
        connections_max: usize = 100_000, Kind::Count(1, 10_000_000),
            "WebSockets and event streams at once; one more is answered 503.";
        subscriptions_max: usize = limits::SUBSCRIPTIONS_MAX, Kind::Count(1, 1_000_000),
            "Subscriptions of one connection at once.";
        message_bytes_max: usize = limits::MESSAGE_BYTES_MAX, Kind::Bytes(1_024, GIB),
            "Largest WebSocket message a client may send.";
        frame_bytes_target: usize = limits::FRAME_BYTES_TARGET, Kind::Bytes(1_024, GIB),
            "Size up to which messages to a client are gathered into one WebSocket message.";
        outbox_bytes_max: usize = limits::OUTBOX_BYTES_MAX, Kind::Bytes(4_096, 16 * GIB),
            "Most bytes waiting for one client, snapshots apart, before it counts as slow and is sent away.";
        snapshot_backlog_bytes_max: usize = 256 << 20, Kind::Bytes(4_096, 64 * GIB),
            "Most bytes of snapshots waiting for one client before it counts as slow and is sent away.";
        mutations_max: usize = limits::MUTATIONS_MAX, Kind::Count(1, 1_000_000),
            "Mutations in one `push`.";
        client_id_bytes_max: usize = limits::CLIENT_ID_BYTES_MAX, Kind::Bytes(1, 255),
            "Longest `client_id`.";
        sql_rows_max: usize = 100_000, Kind::Count(1, 100_000_000),
            "Rows that one `/v1/sql` request may be answered.";
        commit_ops_max: usize = limits::COMMIT_OPS_MAX, Kind::Count(1, 100_000_000),
            "Operations in one commit.";
        line_bytes_max: usize = 256 << 20, Kind::Bytes(1_024, 4 * GIB),
            "Longest line of a `/v1/commits` body.";
        body_bytes_max: usize = 256 << 20, Kind::Bytes(1_024, 4 * GIB),
            "Largest body of a `/v1/commits` request with an `Idempotency-Key`, which is held in memory; without one the body is streamed and has no limit.";
        request_bytes_max: usize = 4 << 20, Kind::Bytes(1_024, GIB),
            "Largest body of any other HTTP request.";
        families_max: usize = 10_000, Kind::Count(1, 1_000_000),
            "Query shapes maintained at once.";
    }
    /// `auth`: who may connect.
    auth: AuthSettings {
        mode: String = "none".to_owned(), Kind::Choice(&["none"]),
            "`none`: everyone may connect; a token is accepted but not looked at, so its claims are empty.";
    }
    /// `telemetry`: what the server tells of itself.
    telemetry: TelemetrySettings {
        log_format: String = "text".to_owned(), Kind::Choice(&["text", "json"]),
            "How log lines on stderr are written.";
        log_filter: String = "info".to_owned(), Kind::Text,
            "Which log lines are written, as `tracing-subscriber`'s filter directives.";
    }
}
