//! Settings of a client, each with its unit and default.

use futures_util::future::BoxFuture;
use std::{fmt, sync::Arc, time::Duration};
use tidegate_wire::codec::Codec;

/// Asked for a token before every connection; `None` connects without one.
pub type TokenProvider = Arc<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// Settings of a client.
///
/// ```
/// use std::time::Duration;
/// use tidegate_client::{ClientOptions, Codec};
///
/// let options = ClientOptions::default()
///     .codec(Codec::Json)
///     .client_id("till-3")
///     .token(|| async { Some("eyJ…".to_owned()) })
///     .backoff_max(Duration::from_secs(10));
/// ```
#[derive(Clone)]
pub struct ClientOptions {
    pub(crate) codec: Codec,
    pub(crate) client_id: Option<String>,
    pub(crate) token: Option<TokenProvider>,
    pub(crate) connect_timeout: Duration,
    pub(crate) ping_interval: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) ack_interval: Duration,
    pub(crate) backoff_initial: Duration,
    pub(crate) backoff_max: Duration,
    pub(crate) mutations_max: usize,
    pub(crate) waiting_ops_max: usize,
    pub(crate) view_changes_max: usize,
    pub(crate) send_queue_max: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            codec: Codec::MessagePack,
            client_id: None,
            token: None,
            connect_timeout: Duration::from_secs(10),
            ping_interval: Duration::from_secs(35),
            idle_timeout: Duration::from_secs(60),
            ack_interval: Duration::from_secs(1),
            backoff_initial: Duration::from_millis(100),
            backoff_max: Duration::from_secs(30),
            mutations_max: 1_000,
            waiting_ops_max: 10_000_000,
            view_changes_max: 10_000,
            send_queue_max: 100_000,
        }
    }
}

impl ClientOptions {
    /// The encoding of messages. Default: MessagePack.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Names the client across connections and processes; needed for mutations. No two clients may use one name at
    /// the same time, since the ids of their mutations would clash. Default: none.
    #[must_use]
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// Where tokens come from, asked before every connection. Default: no token.
    #[must_use]
    pub fn token<F>(mut self, provider: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<String>> + Send + 'static,
    {
        self.token = Some(Arc::new(move || Box::pin(provider())));
        self
    }

    /// How long a connection may take to be made and welcomed. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// After how long a silence of the server it is asked for a sign of life. Default: 35 s, a little more than a server's own
    /// interval.
    #[must_use]
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval;
        self
    }

    /// After how long a silence the server counts as gone; more than the ping interval. Default: 60 s.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// How often at most the server is told how far the client has got. Default: 1 s.
    #[must_use]
    pub fn ack_interval(mut self, interval: Duration) -> Self {
        self.ack_interval = interval;
        self
    }

    /// The first wait before reconnecting; doubles with every failure, and each wait is drawn between its half and
    /// its whole. Default: 100 ms.
    #[must_use]
    pub fn backoff_initial(mut self, wait: Duration) -> Self {
        self.backoff_initial = wait;
        self
    }

    /// The longest wait before reconnecting, unless the server asks for a longer one. Default: 30 s.
    #[must_use]
    pub fn backoff_max(mut self, wait: Duration) -> Self {
        self.backoff_max = wait;
        self
    }

    /// Most mutations that may wait for their confirmation; further ones are refused. Default: 1,000.
    #[must_use]
    pub fn mutations_max(mut self, mutations: usize) -> Self {
        self.mutations_max = mutations;
        self
    }

    /// Most row operations that may wait for their release; a server that sends more is reconnected to. Default:
    /// 10,000,000.
    #[must_use]
    pub fn waiting_ops_max(mut self, ops: usize) -> Self {
        self.waiting_ops_max = ops;
        self
    }

    /// Most changed rows that an unread update names; beyond, it gives the rows alone (`Update::lagged`). Default:
    /// 10,000.
    #[must_use]
    pub fn view_changes_max(mut self, rows: usize) -> Self {
        self.view_changes_max = rows;
        self
    }

    /// Most messages that may wait to be sent; with more the connection counts as dead. Default: 100,000.
    #[must_use]
    pub fn send_queue_max(mut self, messages: usize) -> Self {
        self.send_queue_max = messages;
        self
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("codec", &self.codec)
            .field("client_id", &self.client_id)
            .field("token", &self.token.is_some())
            .field("connect_timeout", &self.connect_timeout)
            .field("ping_interval", &self.ping_interval)
            .field("idle_timeout", &self.idle_timeout)
            .field("backoff_initial", &self.backoff_initial)
            .field("backoff_max", &self.backoff_max)
            .finish_non_exhaustive()
    }
}
