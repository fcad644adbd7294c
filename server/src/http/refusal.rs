//! Answers to requests whose head cannot be read, in the API's own form. The HTTP library answers them by itself, with a
//! status and no body, before any handler sees them; here that answer is replaced on its way to the socket.

use super::error::ApiError;
use axum::http::StatusCode;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tidegate_wire::protocol::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The heads that the library answers with. No handler gives such an answer without a body.
const AUTOMATIC: [(&str, StatusCode, ErrorCode, &str); 3] = [
    (
        "HTTP/1.1 400 ",
        StatusCode::BAD_REQUEST,
        ErrorCode::BadMessage,
        "the request's head is not HTTP/1.1; quotes, spaces, < and > in an address are percent-encoded, as by curl -G --data-urlencode 'args={…}'",
    ),
    (
        "HTTP/1.1 414 ",
        StatusCode::URI_TOO_LONG,
        ErrorCode::MessageTooLarge,
        "the request's address is too long",
    ),
    (
        "HTTP/1.1 431 ",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ErrorCode::MessageTooLarge,
        "the request's head is too large",
    ),
];

/// A socket on which the library's own refusals get a body.
pub struct Refusing<S> {
    socket: S,
    /// What is left to write of an answer that replaced the library's.
    replacement: Vec<u8>,
}

impl<S> Refusing<S> {
    /// Wraps a socket.
    pub fn new(socket: S) -> Self {
        Self { socket, replacement: Vec::new() }
    }
}

/// The answer to give instead, when these bytes are one of the library's own.
fn replacement(bytes: &[u8]) -> Option<Vec<u8>> {
    let (_, status, code, message) =
        AUTOMATIC.iter().find(|(start, ..)| bytes.starts_with(start.as_bytes()))?;
    let head = std::str::from_utf8(bytes).ok()?.strip_suffix("\r\n\r\n")?;
    if !head.lines().any(|line| line == "content-length: 0") {
        return None;
    }
    let body = ApiError::new(*code, *message).with_status(*status).body().to_string();
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\naccess-control-allow-origin: *\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    Some(text.into_bytes())
}

impl<S: AsyncWrite + Unpin> Refusing<S> {
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.replacement.is_empty() {
            let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.replacement))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.replacement.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Refusing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Refusing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(cx))?;
        match replacement(bytes) {
            Some(answer) => {
                self.replacement = answer;
                Poll::Ready(Ok(bytes.len()))
            }
            None => Pin::new(&mut self.socket).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(cx))?;
        match parts {
            [only] => self.poll_write(cx, only),
            _ => Pin::new(&mut self.socket).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn only_the_librarys_own_refusals_are_replaced() {
        for (answer, replaced) in [
            ("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n", true),
            ("HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}", false),
            ("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", false),
        ] {
            let mut socket = Refusing::new(Vec::new());
            socket.write_all(answer.as_bytes()).await.expect("a Vec takes every byte");
            socket.flush().await.expect("a Vec takes every byte");
            let written = String::from_utf8(socket.socket).expect("UTF-8");
            assert_eq!(written != answer, replaced, "{written}");
            if replaced {
                let (head, body) = written.split_once("\r\n\r\n").expect("a head and a body");
                assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{written}");
                assert_eq!(head.lines().next(), answer.lines().next());
                let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
                assert!(body["error"]["code"].is_string(), "{body}");
            }
        }
    }
}
