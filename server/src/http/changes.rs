//! `GET /v1/queries/{name}/changes`: a named query's live stream as Server-Sent Events. It is a connection like any
//! other, with one subscription and the JSON codec; each event's name is its message's kind and its data the message
//! as a WebSocket would carry it. `progress` events carry their commit version and epoch as `id`, so that a browser that
//! reconnects resumes from the last release.

use super::{
    error::ApiError,
    named_query::{QueryString, Since},
    query_string::Members,
    request::Name,
    with_cv,
};
use crate::{
    connection::Connected,
    hub::{Frame, FrameKind, Hub, Outbox, Refused, Taken},
    state::Shared,
};
use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tidegate_replica::handle::ResumePoint;
use tidegate_wire::{
    codec::Codec,
    model::{Epoch, SubId},
    protocol::ErrorCode,
};

/// See the module's description.
pub async fn get(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
    Extension(members): Extension<Members>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let replica = shared.replica()?.clone();
    let asked = QueryString::parse(members)?;
    let query = asked.prepare(&replica, name)?;
    let since = last_event_id(&headers)?.or(asked.since);
    let resume = since.map(|Since { cv, epoch }| ResumePoint { epoch, cv, fp: query.output.fp });
    let registration = shared.hub.register(Codec::Json).map_err(|refused| {
        let code = match refused {
            Refused::TooMany => ErrorCode::NotReady,
            Refused::Stopping => ErrorCode::ShuttingDown,
        };
        ApiError::new(code, refused.to_string())
    })?;
    let outbox = Arc::clone(&registration.outbox);
    let cv = replica.cv();
    let mut connected = Connected::new(replica, registration);
    connected.announce().await;
    let epoch = connected.replica().subscribe(connected.conn(), SubId(1), &query, resume).await?;
    let events = Events {
        _connected: connected,
        outbox,
        epoch,
        hub: Arc::clone(&shared.hub),
        ping_interval: shared.config.server.ping_interval_ms,
        bytes_target: shared.config.limits.frame_bytes_target,
        written: Vec::new(),
        ended: false,
    };
    let body = Body::from_stream(stream::unfold(events, |mut events| async move {
        let bytes = events.next().await?;
        Some((Ok::<_, Infallible>(bytes), events))
    }));
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(with_cv(cv, response))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<Since>, ApiError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let cv = value.to_str().ok().map(str::trim).filter(|text| !text.is_empty()).map(str::parse);
    match cv {
        None => Ok(None),
        Some(Ok(cv)) => Ok(Some(cv)),
        Some(Err(_)) => {
            Err(ApiError::new(ErrorCode::BadMessage, "Last-Event-ID must be one that an event had"))
        }
    }
}

/// The stream's state. Dropping it, as happens when the client goes away, ends the connection.
struct Events {
    _connected: Connected,
    outbox: Arc<Outbox>,
    epoch: Epoch,
    hub: Arc<Hub>,
    ping_interval: Duration,
    bytes_target: usize,
    /// Frames handed to the HTTP layer, which asks for more only when it has room: by then they are written.
    written: Vec<Frame>,
    ended: bool,
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.written.is_empty() {
            self.outbox.written();
            self.hub.count_written(&std::mem::take(&mut self.written));
        }
        let mut silent = false;
        while !self.ended {
            match self.outbox.take(self.bytes_target) {
                Taken::Close(_) => return None,
                Taken::Frames { frames, .. } => {
                    let mut out = BytesMut::with_capacity(frames.iter().map(|frame| frame.len() + 32).sum());
                    for frame in &frames {
                        write_event(frame, self.epoch, &mut out);
                        // Nothing follows the end of the only subscription.
                        self.ended |= matches!(frame.kind, FrameKind::Other { last: true, .. });
                    }
                    self.written = frames;
                    return Some(out.freeze());
                }
                Taken::Nothing if silent => return Some(Bytes::from_static(b": still here\n\n")),
                Taken::Nothing => {
                    silent = tokio::time::timeout(self.ping_interval, self.outbox.filled()).await.is_err();
                }
            }
        }
        None
    }
}

fn write_event(frame: &Frame, epoch: Epoch, out: &mut BytesMut) {
    out.put_slice(b"event: ");
    out.put_slice(frame.kind.name().as_bytes());
    if let FrameKind::Progress(cv) = frame.kind {
        out.put_slice(format!("\nid: {}", Since { cv, epoch: Some(epoch) }).as_bytes());
    }
    // JSON as the codec writes it has no line ends, so one data line holds it.
    out.put_slice(b"\ndata: ");
    out.put_slice(&frame.head);
    out.put_slice(&frame.body);
    out.put_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tidegate_wire::{
        model::Cv,
        protocol::{
            ServerMessage,
            server::{Faulted, Progress},
        },
    };

    #[test]
    fn events_are_named_after_their_message_and_progress_has_an_id() {
        let mut out = BytesMut::new();
        let fault = Faulted {
            sub: SubId(1),
            code: ErrorCode::QueryFaulted,
            message: "a\nb".to_owned(),
            retry: false,
        };
        for message in [ServerMessage::Progress(Progress { cv_min: Cv(7) }), ServerMessage::Faulted(fault)] {
            write_event(&Frame::message(Codec::Json, &message, Instant::now()), Epoch(3), &mut out);
        }
        let text = std::str::from_utf8(&out).expect("UTF-8");
        assert_eq!(
            text,
            "event: progress\nid: 7-3\ndata: {\"progress\":{\"cv_min\":7}}\n\n\
             event: faulted\ndata: {\"faulted\":{\"sub\":1,\"code\":\"query_faulted\",\"message\":\"a\\nb\",\"retry\":false}}\n\n"
        );
    }

    #[test]
    fn last_event_id_is_a_commit_version_with_its_epoch() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_static(text));
            last_event_id(&headers).map_err(|error| error.code)
        };
        assert_eq!(last_event_id(&HeaderMap::new()), Ok(None));
        assert_eq!(of("12"), Ok(Some(Since { cv: Cv(12), epoch: None })));
        assert_eq!(of(" 12-7"), Ok(Some(Since { cv: Cv(12), epoch: Some(Epoch(7)) })));
        assert_eq!(of("12-"), Err(ErrorCode::BadMessage));
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("x"), Err(ErrorCode::BadMessage));
    }
}
