//! Starting and stopping: the store first, then the drain, the workers and the owner; the other way round at the end.

use super::{Inner, ReplicaOptions, epochs::Epochs, named::NamedFile, owner, registry::Registry};
use crate::{
    commit_log::{LogOptions, SyncPolicy},
    drain::{Control, DrainOptions, DrainThread, Sink},
    store::{Store, StoreOptions},
    worker::{self, WorkerId, WorkerInput},
};
use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicU64};
use tracing::error;

/// Why a replica cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

pub(super) fn start(
    options: ReplicaOptions,
    sink: Box<dyn Sink + Send>,
    mut on_progress: impl FnMut(u64, u64),
) -> Result<Arc<Inner>, StartError> {
    let sync = if options.fsync { SyncPolicy::Always } else { SyncPolicy::Never };
    let store_options = StoreOptions {
        dir: options.data_dir.clone(),
        log: LogOptions { sync, ..LogOptions::default() },
        limits: crate::store::CommitLimits {
            ops_max: options.commit_ops_max,
            ..crate::store::CommitLimits::default()
        },
        snapshots_kept_max: options.snapshots_kept_max,
        ..StoreOptions::default()
    };
    let store = Store::open(store_options, |progress| on_progress(progress.bytes_read, progress.bytes_total))
        .map_err(|error| StartError(chain(&error)))?;
    let named_file = NamedFile::new(options.data_dir.as_deref());
    let named = named_file.load()?;
    let epochs = Epochs::open(options.data_dir.as_deref(), store.snapshot().cv())?;
    let threads_fail = |error: std::io::Error| StartError(format!("cannot start a thread: {error}"));

    let (sink, faults, wake_owner, woken) = owner::OwnerSink::new(sink);
    let drain_options = DrainOptions {
        input_queue_max: options.drain_queue_max,
        keep_alive_interval: options.keep_alive,
        batch_bytes_max: options.batch_bytes_max,
    };
    let (drain, drain_thread) = DrainThread::spawn(sink, drain_options).map_err(threads_fail)?;
    let mut threads = Vec::new();
    let mut workers = Vec::new();
    for number in 0..options.workers.max(1) {
        let id =
            WorkerId(u16::try_from(number).map_err(|_| StartError("at most 65,535 workers".to_owned()))?);
        let (snapshot, deltas) = store.listen(options.worker_queue_max.max(1));
        let (handle, thread) = worker::thread::spawn(id, snapshot, deltas, drain.clone(), options.deadline)
            .map_err(threads_fail)?;
        workers.push(handle);
        threads.push(thread);
    }
    let _ = drain.control(Control::Newest { cv: store.snapshot().cv() });
    let drain_thread = std::thread::Builder::new()
        .name("drain-join".to_owned())
        .spawn(move || {
            if drain_thread.join().is_err() {
                // With the drain gone no client can be told anything; carrying on would serve stale results.
                error!("the drain panicked; the process ends");
                std::process::abort();
            }
        })
        .map_err(threads_fail)?;
    threads.push(drain_thread);
    let inner = Arc::new(Inner {
        options,
        store,
        drain,
        workers,
        registry: Mutex::new(Registry::default()),
        faults,
        wake_owner,
        named_file,
        next_query: AtomicU64::new(1),
        next_binding: AtomicU64::new(1),
        epochs,
        view_retry: super::view::Retry::default(),
        sql_turn: Mutex::new(()),
        threads: Mutex::new(threads),
    });
    let owned = Arc::downgrade(&inner);
    std::thread::Builder::new()
        .name("owner".to_owned())
        .spawn(move || owner::run(&owned, &woken))
        .map_err(threads_fail)?;
    // Named queries may read views.
    inner.fill_views(std::time::Instant::now());
    for stored in named {
        let name = stored.query.name.clone();
        if let Err(error) = inner.restore_query(stored) {
            tracing::warn!(%name, %error, "a named query could not be restored");
        }
    }
    Ok(inner)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl Inner {
    pub(super) fn shutdown(&self) {
        self.store.close();
        for worker in &self.workers {
            worker.send(WorkerInput::Stop);
        }
        let mut threads = std::mem::take(&mut *self.threads.lock());
        let drain = threads.pop();
        for worker in threads {
            if worker.join().is_err() {
                error!("a worker panicked");
            }
        }
        let _ = self.drain.control(Control::Shutdown);
        if let Some(drain) = drain {
            let _ = drain.join();
        }
    }
}
