//! A transport over real sockets that looks at every message, lets a test look at the client's state after every
//! release, and cuts connections on demand.

use super::laws::Laws;
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tidegate_client::{
    Codec,
    transport::{Frame, FrameSink, FrameStream, Transport, TransportError, websocket::WebSocketTransport},
};
use tidegate_wire::protocol::ServerMessage;
use tokio::sync::Notify;

/// Called with what broke an invariant of the messages.
type OnBroken = Box<dyn Fn(String) + Send + Sync>;
/// Called after every release.
type OnRelease = Box<dyn Fn() + Send + Sync>;

/// See the module.
pub(crate) struct Tap {
    hooks: Arc<Hooks>,
}

struct Hooks {
    on_release: OnRelease,
    on_broken: OnBroken,
    cut: Notify,
    resumed: AtomicU64,
}

/// Cuts a tap's connections, and tells of them.
#[derive(Clone)]
pub(crate) struct Cutter(Arc<Hooks>);

impl Cutter {
    /// Ends the connection at hand, if there is one, as a lost network would.
    pub(crate) fn cut(&self) {
        self.0.cut.notify_waiters();
    }

    /// How many subscriptions went on with a difference.
    pub(crate) fn resumed(&self) -> u64 {
        self.0.resumed.load(Relaxed)
    }
}

impl Tap {
    /// `on_release` runs on the client's connection task, between a release and the next message, so that the client's
    /// state stands exactly there.
    pub(crate) fn new(
        on_release: impl Fn() + Send + Sync + 'static,
        on_broken: impl Fn(String) + Send + Sync + 'static,
    ) -> (Self, Cutter) {
        let hooks = Arc::new(Hooks {
            on_release: Box::new(on_release),
            on_broken: Box::new(on_broken),
            cut: Notify::new(),
            resumed: AtomicU64::new(0),
        });
        (Self { hooks: Arc::clone(&hooks) }, Cutter(hooks))
    }
}

/// One connection's incoming side.
struct Incoming {
    inner: FrameStream,
    hooks: Arc<Hooks>,
    codec: Codec,
    laws: Laws,
    waiting: VecDeque<(Frame, bool)>,
    /// The frame handed out last released something.
    released: bool,
}

impl Incoming {
    async fn next(&mut self) -> Option<Result<Frame, TransportError>> {
        if std::mem::take(&mut self.released) {
            (self.hooks.on_release)();
        }
        loop {
            if let Some((frame, releases)) = self.waiting.pop_front() {
                self.released = releases;
                return Some(Ok(frame));
            }
            let frame = tokio::select! {
                frame = self.inner.next() => frame?,
                () = self.hooks.cut.notified() => return None,
            };
            match frame {
                Ok(frame) => self.take(frame),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Looks into a frame. One with several releases is handed on message by message, so that none goes unseen.
    fn take(&mut self, frame: Frame) {
        let (Frame::Text(bytes) | Frame::Binary(bytes)) = &frame else {
            return self.waiting.push_back((frame, false));
        };
        let mut messages: Vec<ServerMessage> = Vec::new();
        if let Err(error) = self.codec.decode(bytes, |message| messages.push(message)) {
            (self.hooks.on_broken)(format!("messages_are_well_formed: {error}"));
        }
        for message in &messages {
            if let Err(broken) = self.laws.see(message) {
                (self.hooks.on_broken)(broken);
            }
            if let ServerMessage::Subscribed(subscribed) = message
                && subscribed.resumed
            {
                self.hooks.resumed.fetch_add(1, Relaxed);
            }
        }
        let is_release = |message: &ServerMessage| matches!(message, ServerMessage::Progress(_));
        if messages.iter().filter(|message| is_release(message)).count() < 2 {
            let releases = messages.iter().any(is_release);
            return self.waiting.push_back((frame, releases));
        }
        for message in &messages {
            let mut bytes = Vec::new();
            self.codec.encode(message, &mut bytes);
            self.waiting.push_back((Frame::of(self.codec, bytes), is_release(message)));
        }
    }
}

impl Transport for Tap {
    fn connect<'a>(
        &'a self,
        url: &'a str,
        codec: Codec,
    ) -> BoxFuture<'a, Result<(FrameSink, FrameStream), TransportError>> {
        Box::pin(async move {
            let (sink, inner) = WebSocketTransport.connect(url, codec).await?;
            let incoming = Incoming {
                inner,
                hooks: Arc::clone(&self.hooks),
                codec,
                laws: Laws::default(),
                waiting: VecDeque::new(),
                released: false,
            };
            let stream = stream::unfold(incoming, |mut incoming| async move {
                incoming.next().await.map(|frame| (frame, incoming))
            });
            Ok((sink, stream.boxed()))
        })
    }
}
