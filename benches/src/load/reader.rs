//! One WebSocket connection that reads as cheaply as can be: it looks for marks and progress frames in the bytes as
//! they come, so that a thousand of them leave the machine to the server.
//!
//! The server never splits a protocol message over WebSocket frames, so no frame's head stands within a mark.

use super::mark;
use anyhow::{Context as _, ensure};
use memchr::memmem;
use std::{cell::RefCell, io::ErrorKind, rc::Rc};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Latencies are counted in classes of so many microseconds.
const CLASS_MICROS: u64 = 100;
/// Latencies beyond 30 s are all in the last class.
const CLASSES: usize = 300_000;
const PROGRESS: &[u8] = b"cv_min";

/// What all connections have seen, on one thread.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Releases by connection.
    pub(crate) by_connection: Vec<u32>,
    /// Which updates each connection saw released, as bits.
    bits: Vec<Vec<u64>>,
    /// Updates that a connection got twice.
    pub(crate) duplicates: u64,
    /// Connections that have had their first progress.
    pub(crate) ready: usize,
    /// Connections that ended.
    pub(crate) closed: usize,
    /// Bytes read.
    pub(crate) bytes: u64,
    latencies: Vec<u32>,
    buffer: Vec<u8>,
}

impl Seen {
    /// Nothing, by so many connections.
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            by_connection: vec![0; connections],
            bits: vec![Vec::new(); connections],
            duplicates: 0,
            ready: 0,
            closed: 0,
            bytes: 0,
            latencies: vec![0; CLASSES],
            buffer: vec![0; 256 << 10],
        }
    }

    fn release(&mut self, connection: usize, now: u64, (due, number): (u64, u32)) {
        let class = (now.saturating_sub(due) / CLASS_MICROS) as usize;
        self.latencies[class.min(CLASSES - 1)] += 1;
        self.by_connection[connection] += 1;
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        let bits = &mut self.bits[connection];
        if bits.len() <= word {
            bits.resize(word + 1, 0);
        }
        self.duplicates += u64::from(bits[word] & bit != 0);
        bits[word] |= bit;
    }

    /// The latency that a share of all releases did not exceed, in seconds.
    pub(crate) fn latency(&self, share: f64) -> f64 {
        let all: u64 = self.latencies.iter().map(|count| u64::from(*count)).sum();
        let mut left = (share * all as f64).ceil() as u64;
        for (class, count) in self.latencies.iter().enumerate() {
            left = left.saturating_sub(u64::from(*count));
            if left == 0 {
                return (class as u64 + 1) as f64 * CLASS_MICROS as f64 / 1e6;
            }
        }
        f64::INFINITY
    }
}

/// Connects, sends `messages`, and reads until the server closes.
pub(crate) async fn run(
    addr: &str,
    path: &str,
    messages: &[Vec<u8>],
    connection: usize,
    seen: Rc<RefCell<Seen>>,
) -> anyhow::Result<()> {
    let ended = converse(addr, path, messages, connection, &seen).await;
    seen.borrow_mut().closed += 1;
    ended
}

async fn converse(
    addr: &str,
    path: &str,
    messages: &[Vec<u8>],
    connection: usize,
    seen: &RefCell<Seen>,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(addr).await.context("connecting")?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {addr}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: tidegate.v1+msgpack\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.context("reading the answer to the upgrade")?);
    }
    ensure!(head.starts_with(b"HTTP/1.1 101"), "refused: {}", String::from_utf8_lossy(&head));
    for message in messages {
        stream.write_all(&frame(message)).await?;
    }
    let progress = memmem::Finder::new(PROGRESS);
    let last_progress = memmem::FinderRev::new(PROGRESS);
    let marks = memmem::Finder::new(mark::BEGIN);
    let mut is_ready = messages.is_empty();
    if is_ready {
        seen.borrow_mut().ready += 1;
    }
    let mut tail: Vec<u8> = Vec::new();
    let mut pending: Vec<(u64, u32)> = Vec::new();
    loop {
        stream.readable().await?;
        let mut guard = seen.borrow_mut();
        let mut buffer = std::mem::take(&mut guard.buffer);
        buffer[..tail.len()].copy_from_slice(&tail);
        let read = stream.try_read(&mut buffer[tail.len()..]);
        let length = match read {
            Ok(0) => {
                guard.buffer = buffer;
                return Ok(());
            }
            Ok(length) => length,
            Err(error) => {
                guard.buffer = buffer;
                if error.kind() == ErrorKind::WouldBlock {
                    continue;
                }
                return Err(error.into());
            }
        };
        guard.bytes += length as u64;
        let bytes = &buffer[..tail.len() + length];
        let now = mark::now();
        let released_to = last_progress.rfind(bytes);
        let mut done = released_to.map_or(0, |at| at + PROGRESS.len());
        // Marks in the snapshot are of updates from before.
        let mut live_from = 0;
        if !is_ready {
            live_from = progress.find(bytes).unwrap_or(bytes.len());
            if released_to.is_some() {
                is_ready = true;
                guard.ready += 1;
            }
        }
        if released_to.is_some() {
            for update in pending.drain(..) {
                guard.release(connection, now, update);
            }
        }
        for at in marks.find_iter(bytes) {
            let Some(update) = bytes.get(at..at + mark::LENGTH).and_then(mark::read) else { continue };
            done = done.max(at + mark::LENGTH);
            if at < live_from {
                continue;
            }
            if released_to.is_some_and(|to| at < to) {
                guard.release(connection, now, update);
            } else {
                pending.push(update);
            }
        }
        // What may be the beginning of something is looked at again with what follows it.
        let from = done.max(bytes.len().saturating_sub(mark::LENGTH - 1));
        tail.clear();
        tail.extend_from_slice(&bytes[from..]);
        guard.buffer = buffer;
    }
}

/// A message as a client's binary WebSocket frame, masked with zeroes.
fn frame(message: &[u8]) -> Vec<u8> {
    let mut out = vec![0x82];
    match message.len() {
        length @ 0..=125 => out.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend((length as u16).to_be_bytes());
        }
        length => {
            out.push(0x80 | 127);
            out.extend((length as u64).to_be_bytes());
        }
    }
    out.extend([0; 4]);
    out.extend(message);
    out
}
