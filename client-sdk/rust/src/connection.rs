//! The connection task: connects, feeds the state machine, sends what it wants sent, and connects again.
//!
//! One task for a client. Reading, writing and the clocks run side by side in it, so that a server that does not
//! read cannot keep the client from reading. It ends when the application closes the client or drops its last handle.

use crate::{
    backoff::Backoff,
    client::Status,
    error::ConnectError,
    shared::{Ending, Shared},
    transport::{Frame, FrameSink, FrameStream, Transport},
};
use futures_util::{SinkExt, StreamExt};
use std::{sync::Arc, time::Duration};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// How long a closing client waits for what it still has to send.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection that was welcome for so long counts as having worked, so that the next wait is a first one.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Runs the client until it is closed.
pub(crate) async fn run(shared: Arc<Shared>, transport: Arc<dyn Transport>, url: String) {
    let mut closing = shared.closing.subscribe();
    let mut backoff = Backoff::new(shared.options.backoff_initial, shared.options.backoff_max);
    while !*closing.borrow() {
        shared.status.send_replace(Status::Connecting);
        let ending = connection(&shared, &*transport, &url).await;
        if shared.end() >= STABLE_AFTER {
            backoff.reset();
        }
        if *closing.borrow() {
            break;
        }
        let retry_in = backoff.next(ending.after, &mut rand::rng());
        let (failures, error) = (backoff.failures(), ending.error);
        tracing::info!(%error, failures, ?retry_in, "no connection");
        shared.status.send_replace(Status::Waiting { retry_in, failures, error });
        tokio::select! {
            () = sleep(retry_in) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }
    shared.closed();
}

/// One connection from its start to its end.
async fn connection(shared: &Shared, transport: &dyn Transport, url: &str) -> Ending {
    let options = &shared.options;
    let mut closing = shared.closing.subscribe();
    let open = async {
        let token = match &options.token {
            Some(provider) => provider().await,
            None => None,
        };
        transport.connect(url, options.codec).await.map(|(sink, stream)| (token, sink, stream))
    };
    let opened = tokio::select! {
        opened = timeout(options.connect_timeout, open) => opened,
        _ = closing.wait_for(|closing| *closing) => return ConnectError::Closed.into(),
    };
    let (token, mut sink, mut stream) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => return ConnectError::from(error).into(),
        Err(_) => return ConnectError::Silent.into(),
    };
    shared.begin(token);
    let ending = tokio::select! {
        ending = read(shared, &mut stream) => ending,
        ending = write(shared, &mut sink) => ending,
        ending = watch(shared) => ending,
    };
    // The server may be gone; its side of the close is not waited for.
    let _ = timeout(CLOSE_TIMEOUT, sink.close()).await;
    ending
}

async fn read(shared: &Shared, stream: &mut FrameStream) -> Ending {
    while let Some(frame) = stream.next().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return ConnectError::from(error).into(),
        };
        if let Err(ending) = shared.receive(&frame) {
            return ending;
        }
    }
    ConnectError::ServerClosed.into()
}

async fn write(shared: &Shared, sink: &mut FrameSink) -> Ending {
    let codec = shared.options.codec;
    loop {
        // Read before the queue is taken, so that what was queued before the close is sent.
        let closing = *shared.closing.borrow();
        let messages = shared.outgoing();
        let sent = async {
            for message in messages {
                let mut bytes = Vec::new();
                codec.encode(&message, &mut bytes);
                sink.feed(Frame::of(codec, bytes)).await?;
            }
            sink.flush().await
        };
        if let Err(error) = sent.await {
            return ConnectError::from(error).into();
        }
        if closing {
            return ConnectError::Closed.into();
        }
        shared.wake.notified().await;
    }
}

/// Looks at the clocks from time to time; a closing client is given [`CLOSE_TIMEOUT`].
async fn watch(shared: &Shared) -> Ending {
    let options = &shared.options;
    let every =
        [options.ack_interval, options.ping_interval, options.idle_timeout / 2, options.connect_timeout];
    let every = every.into_iter().min().expect("four").max(Duration::from_millis(1));
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut closing = shared.closing.subscribe();
    let look = async {
        loop {
            ticks.tick().await;
            if let Err(ending) = shared.tick() {
                return ending;
            }
        }
    };
    tokio::select! {
        ending = look => ending,
        () = async {
            let _ = closing.wait_for(|closing| *closing).await;
            sleep(CLOSE_TIMEOUT).await;
        } => ConnectError::Closed.into(),
    }
}
