//! A connection's writer: the one task that writes to its socket. It takes everything that waits in the outbox and
//! sends it as few WebSocket messages and system calls as it can.

use crate::hub::{Frame, Hub, Outbox, Taken};
use axum::{
    body::Bytes,
    extract::ws::{CloseFrame, Message, Utf8Bytes},
};
use futures_util::{Sink, SinkExt as _};
use std::{pin::pin, sync::Arc, time::Duration};
use tidegate_wire::codec::Codec;

/// Small messages are gathered up to this many bytes. Beyond it a larger WebSocket message saves no system call, and
/// the library keeps a write buffer as large as the largest message.
const GATHER_BYTES_MAX: usize = 64 << 10;

/// How long writing may take.
#[derive(Clone, Copy, Debug)]
pub struct WriterLimits {
    /// Most bytes gathered in one WebSocket message.
    pub frame_bytes_target: usize,
    /// Longest one write may take.
    pub write_timeout: Duration,
    /// Longest the last words of an evicted or closing connection may take.
    pub close_timeout: Duration,
}

/// Writes until the outbox closes or the socket fails. Generic over the socket, so that it can be tested without one.
pub async fn run<S>(mut socket: S, outbox: Arc<Outbox>, limits: WriterLimits, hub: Arc<Hub>)
where
    S: Sink<Message> + Unpin,
{
    let target = limits.frame_bytes_target.min(GATHER_BYTES_MAX);
    loop {
        let (messages, frames, last) = match outbox.take(target) {
            Taken::Nothing => {
                outbox.filled().await;
                continue;
            }
            Taken::Frames { frames, ping } => {
                let mut messages = gather(outbox.codec(), &frames);
                messages.extend(ping.then(|| Message::Ping(Bytes::new())));
                (messages, frames, false)
            }
            Taken::Close(closing) => {
                let close = CloseFrame { code: closing.code, reason: closing.reason.into() };
                (vec![Message::Close(Some(close))], Vec::new(), true)
            }
        };
        let timeout = if last { limits.close_timeout } else { limits.write_timeout };
        let written = {
            let mut writing = pin!(write(&mut socket, messages));
            tokio::select! {
                biased;
                written = tokio::time::timeout(timeout, &mut writing) => written,
                // An evicted client gets a little time to read what is under way and the goaway, then no more.
                () = outbox.evicted() => tokio::time::timeout(limits.close_timeout, &mut writing).await,
            }
        };
        outbox.written();
        match written {
            Ok(Ok(())) => hub.count_written(&frames),
            Ok(Err(_)) => {
                outbox.close(None, 1006, "the socket failed");
                return;
            }
            Err(_elapsed) => {
                if !last && !outbox.is_closing() {
                    hub.count_eviction("write_timeout");
                }
                outbox.close(None, 1006, "writing took too long");
                return;
            }
        }
        if last {
            return;
        }
    }
}

async fn write<S: Sink<Message> + Unpin>(socket: &mut S, messages: Vec<Message>) -> Result<(), S::Error> {
    for message in messages {
        socket.feed(message).await?;
    }
    socket.flush().await
}

/// Frames as WebSocket messages: MessagePack ones back to back in one, JSON ones each in its own.
fn gather(codec: Codec, frames: &[Frame]) -> Vec<Message> {
    match (codec, frames) {
        (_, []) => Vec::new(),
        (Codec::MessagePack, [frame]) if frame.head.is_empty() => vec![Message::Binary(frame.body.clone())],
        (Codec::MessagePack, frames) => {
            let mut bytes = Vec::with_capacity(frames.iter().map(Frame::len).sum());
            for frame in frames {
                bytes.extend_from_slice(&frame.head);
                bytes.extend_from_slice(&frame.body);
            }
            vec![Message::Binary(bytes.into())]
        }
        (Codec::Json, frames) => frames.iter().map(|frame| Message::Text(text(frame))).collect(),
    }
}

fn text(frame: &Frame) -> Utf8Bytes {
    let bytes = if frame.head.is_empty() {
        frame.body.clone()
    } else {
        Bytes::from([&frame.head[..], &frame.body[..]].concat())
    };
    Utf8Bytes::try_from(bytes).expect("the JSON codec writes UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hub::{OutboxLimits, Share},
        metrics::HubMetrics,
    };
    use std::{convert::Infallible, task::Poll, time::Instant};
    use tidegate_wire::{
        model::Cv,
        protocol::{ServerMessage, server::Progress},
    };

    const OUTBOX: OutboxLimits =
        OutboxLimits { bytes_max: 1_000, snapshot_bytes_max: 1_000, retry_after: Duration::ZERO };
    const LIMITS: WriterLimits = WriterLimits {
        frame_bytes_target: 1 << 20,
        write_timeout: Duration::from_secs(20),
        close_timeout: Duration::from_secs(2),
    };

    fn hub() -> Arc<Hub> {
        Hub::new(10, OUTBOX, HubMetrics::new())
    }

    fn progress(codec: Codec, cv: u64) -> Frame {
        Frame::message(codec, &ServerMessage::Progress(Progress { cv_min: Cv(cv) }), Instant::now())
    }

    async fn written(codec: Codec) -> Vec<Message> {
        let hub = hub();
        let outbox = Arc::new(Outbox::new(codec, OUTBOX));
        for cv in 1..=3 {
            outbox.push(progress(codec, cv), Share::Live);
        }
        outbox.close(None, 1001, "bye");
        let mut messages = Vec::new();
        let socket =
            futures_util::sink::unfold(&mut messages, |messages: &mut Vec<Message>, message| async {
                messages.push(message);
                Ok::<_, Infallible>(messages)
            });
        run(Box::pin(socket), outbox, LIMITS, hub).await;
        messages
    }

    #[tokio::test]
    async fn messagepack_messages_are_gathered_into_one() {
        let messages = written(Codec::MessagePack).await;
        let [Message::Binary(bytes), Message::Close(Some(close))] = &messages[..] else {
            panic!("{messages:?}")
        };
        let mut cvs = Vec::new();
        let decoded = Codec::MessagePack.decode(bytes, |message| match message {
            ServerMessage::Progress(progress) => cvs.push(progress.cv_min.0),
            other => panic!("{other:?}"),
        });
        decoded.expect("decodes");
        assert_eq!((cvs, close.code), (vec![1, 2, 3], 1001));
    }

    #[tokio::test]
    async fn json_messages_go_each_in_its_own() {
        let messages = written(Codec::Json).await;
        let [Message::Text(_), Message::Text(two), Message::Text(_), Message::Close(_)] = &messages[..]
        else {
            panic!("{messages:?}")
        };
        assert_eq!(two.as_str(), r#"{"progress":{"cv_min":2}}"#);
    }

    /// A socket whose peer never reads.
    struct Stuck;

    impl Sink<Message> for Stuck {
        type Error = Infallible;

        fn poll_ready(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn start_send(self: std::pin::Pin<&mut Self>, _: Message) -> Result<(), Self::Error> {
            Ok(())
        }

        fn poll_flush(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> Poll<Result<(), Self::Error>> {
            Poll::Pending
        }

        fn poll_close(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> Poll<Result<(), Self::Error>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_never_ends_is_given_up_after_the_write_timeout() {
        let outbox = Arc::new(Outbox::new(Codec::Json, OUTBOX));
        outbox.push(progress(Codec::Json, 1), Share::Live);
        let started = tokio::time::Instant::now();
        run(Stuck, Arc::clone(&outbox), LIMITS, hub()).await;
        assert_eq!(started.elapsed(), LIMITS.write_timeout);
        assert!(outbox.is_closing());
    }

    #[tokio::test(start_paused = true)]
    async fn an_evicted_client_gets_only_the_close_timeout() {
        let outbox = Arc::new(Outbox::new(Codec::Json, OUTBOX));
        outbox.push(progress(Codec::Json, 1), Share::Live);
        let started = tokio::time::Instant::now();
        let writer = tokio::spawn(run(Stuck, Arc::clone(&outbox), LIMITS, hub()));
        while !outbox.is_closing() {
            outbox.push(progress(Codec::Json, 1), Share::Live);
        }
        writer.await.expect("ends");
        assert_eq!(started.elapsed(), LIMITS.close_timeout);
    }
}
