//! The runtime whose threads serve sockets.

use std::{io, thread::available_parallelism};
use tokio::runtime::{Builder, Runtime};

/// Stack of each thread, bytes. The deepest query a message may hold is parsed by recursion.
const STACK_BYTES: usize = 8 << 20;

/// Starts a runtime with so many threads; 0 is one less than the machine's cores, at least 1. The store, the workers
/// and the drain have threads of their own: with one here for every core, a wake-up in one thread mostly wakes a second
/// that finds nothing to do.
///
/// # Errors
/// When the system has no threads to give.
pub fn start(io_threads: usize) -> io::Result<Runtime> {
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = if io_threads == 0 { cores.saturating_sub(1).max(1) } else { io_threads };
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("tidegate-io")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
}
