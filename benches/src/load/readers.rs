//! Many connections in a process of their own, and how the measuring process speaks with them.

use super::{
    Child,
    process::tell,
    reader::{self, Seen},
};
use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::{cell::RefCell, io::BufRead as _, rc::Rc, time::Duration};
use tidegate_wire::{
    codec::Codec,
    model::SubId,
    protocol::{
        ClientMessage,
        client::{Hello, Subscribe},
    },
};

/// The name of this part.
pub(crate) const CHILD: &str = "readers";

/// Connections made at once.
const CONNECTING_MAX: usize = 64;

/// Which connections to make.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// Host and port.
    pub(crate) addr: String,
    /// The WebSocket's path.
    pub(crate) path: String,
    /// How many.
    pub(crate) connections: usize,
    /// What they subscribe to: connection n to the n-th, from the beginning again when they are fewer. With none the
    /// server is not asked for anything.
    pub(crate) queries: Vec<Json>,
}

/// What the readers are to wait for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expect {
    /// So many updates released at each connection.
    Each(u32),
    /// So many in all.
    Sum(u64),
}

#[derive(Debug, Serialize, Deserialize)]
struct Ask {
    expect: Expect,
    within_ms: u64,
}

/// What the readers have seen since they began.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Whether all that was expected came, nothing twice, and no connection ended.
    pub(crate) complete: bool,
    /// Updates released, over all connections.
    pub(crate) released: u64,
    /// Updates that came twice at a connection.
    pub(crate) duplicates: u64,
    /// Connections that ended.
    pub(crate) closed: usize,
    /// Bytes read.
    pub(crate) bytes: u64,
    /// Latency that half of the updates did not exceed, seconds from when they were due.
    pub(crate) p50: f64,
    /// The same for 99 of a hundred.
    pub(crate) p99: f64,
    /// CPU seconds of the readers.
    pub(crate) cpu: f64,
}

/// The readers, as the measuring process sees them.
#[derive(Debug)]
pub(crate) struct Readers(Child);

impl Readers {
    /// Starts them and waits until every connection has its first result.
    pub(crate) fn start(spec: &Spec) -> anyhow::Result<Self> {
        let mut child = Child::start(&[CHILD])?;
        child.say(&serde_json::to_value(spec)?)?;
        child.hear()?;
        Ok(Self(child))
    }

    /// Waits until they have seen what is expected, at most so long.
    pub(crate) fn wait(&mut self, expect: Expect, within: Duration) -> anyhow::Result<Outcome> {
        self.0.say(&serde_json::to_value(Ask { expect, within_ms: within.as_millis() as u64 })?)?;
        Ok(serde_json::from_value(self.0.hear()?)?)
    }

    /// Ends them.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.0.end()
    }
}

/// The readers' process.
pub(crate) fn child() -> anyhow::Result<()> {
    let mut lines = std::io::stdin().lock().lines();
    let spec: Spec = serde_json::from_str(&lines.next().context("a specification comes first")??)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    let seen = Rc::new(RefCell::new(Seen::new(spec.connections)));
    runtime.block_on(tasks.run_until(connect(spec, Rc::clone(&seen))))?;
    tell(&Json::from("ready"))?;
    let (sender, mut asks) = tokio::sync::mpsc::channel::<String>(1);
    let listener = std::thread::spawn(move || {
        // Ends with the parent's side of the pipe.
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    drop(lines);
    runtime.block_on(tasks.run_until(async {
        while let Some(ask) = asks.recv().await {
            let ask: Ask = serde_json::from_str(&ask)?;
            tell(&serde_json::to_value(wait(&ask, &seen).await)?)?;
        }
        anyhow::Ok(())
    }))?;
    listener.join().map_err(|_| anyhow::anyhow!("the listening thread panicked"))
}

async fn connect(spec: Spec, seen: Rc<RefCell<Seen>>) -> anyhow::Result<()> {
    let spec = Rc::new(spec);
    for connection in 0..spec.connections {
        let mut messages = Vec::new();
        if !spec.queries.is_empty() {
            let query = spec.queries[connection % spec.queries.len()].clone();
            let subscribe = Subscribe { sub: SubId(1), query: Some(query), ..Subscribe::default() };
            for message in
                [ClientMessage::Hello(Hello::default()), ClientMessage::Subscribe(subscribe.into())]
            {
                let mut bytes = Vec::new();
                Codec::MessagePack.encode(&message, &mut bytes);
                messages.push(bytes);
            }
        }
        let (spec, seen_here) = (Rc::clone(&spec), Rc::clone(&seen));
        tokio::task::spawn_local(async move {
            if let Err(error) = reader::run(&spec.addr, &spec.path, &messages, connection, seen_here).await {
                eprintln!("connection {connection}: {error:#}");
            }
        });
        while connection + 1 - seen.borrow().ready >= CONNECTING_MAX {
            ensure!(seen.borrow().closed == 0, "a connection ended before it was ready");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while seen.borrow().ready < spec.connections {
        ensure!(seen.borrow().closed == 0, "a connection ended before it was ready");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn wait(ask: &Ask, seen: &RefCell<Seen>) -> Outcome {
    let met = |seen: &Seen| match ask.expect {
        Expect::Each(updates) => seen.by_connection.iter().all(|count| *count == updates),
        Expect::Sum(updates) => sum(seen) == updates,
    };
    let deadline = tokio::time::Instant::now() + Duration::from_millis(ask.within_ms);
    while !met(&seen.borrow()) && seen.borrow().closed == 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seen = seen.borrow();
    Outcome {
        complete: met(&seen) && seen.duplicates == 0 && seen.closed == 0,
        released: sum(&seen),
        duplicates: seen.duplicates,
        closed: seen.closed,
        bytes: seen.bytes,
        p50: seen.latency(0.5),
        p99: seen.latency(0.99),
        cpu: crate::machine::cpu_seconds(),
    }
}

fn sum(seen: &Seen) -> u64 {
    seen.by_connection.iter().map(|count| u64::from(*count)).sum()
}
