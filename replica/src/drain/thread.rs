//! The drain's thread. Workers and the coordinator share one bounded queue, so that a control sent before the
//! order to a worker also reaches the drain before what the worker makes of it.

use super::{
    Control, Drain, Sink, Statistics,
    limits::{BATCH_ROW_BYTES_MAX, INPUT_QUEUE_MAX},
};
use crate::worker::WorkerEvent;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use std::{
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// One entry of the drain's queue.
#[derive(Debug)]
pub enum DrainInput {
    /// From the coordinator.
    Control(Control),
    /// From a worker.
    Event(WorkerEvent),
}

/// How the thread runs.
#[derive(Clone, Copy, Debug)]
pub struct DrainOptions {
    /// Inputs that wait before senders do. Default [`INPUT_QUEUE_MAX`].
    pub input_queue_max: usize,
    /// How often idle connections are told `cv_min`. Default 10 s.
    pub keep_alive_interval: Duration,
    /// Row bytes per batch, at most [`BATCH_ROW_BYTES_MAX`], which is the default.
    pub batch_bytes_max: usize,
}

impl Default for DrainOptions {
    fn default() -> Self {
        Self {
            input_queue_max: INPUT_QUEUE_MAX,
            keep_alive_interval: Duration::from_secs(10),
            batch_bytes_max: BATCH_ROW_BYTES_MAX,
        }
    }
}

/// The drain's thread has ended: it was shut down, or it panicked and the process has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the drain has ended")]
pub struct DrainGone;

/// Sends to the drain and reads its counters. Workers and the coordinator hold clones.
#[derive(Clone, Debug)]
pub struct DrainHandle {
    sender: Sender<DrainInput>,
    /// Written by the thread after each wake-up; held only to copy.
    statistics: Arc<Mutex<Statistics>>,
}

impl DrainHandle {
    /// Puts a control into the queue, waiting while it is full.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn control(&self, control: Control) -> Result<(), DrainGone> {
        self.send(DrainInput::Control(control))
    }

    /// Puts a worker's event into the queue, waiting while it is full.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn event(&self, event: WorkerEvent) -> Result<(), DrainGone> {
        self.send(DrainInput::Event(event))
    }

    fn send(&self, input: DrainInput) -> Result<(), DrainGone> {
        self.sender.send(input).map_err(|_| DrainGone)
    }

    /// The queue's sending end, for callers that select over several channels.
    #[must_use]
    pub fn sender(&self) -> &Sender<DrainInput> {
        &self.sender
    }

    /// How many inputs wait.
    #[must_use]
    pub fn queue_length(&self) -> usize {
        self.sender.len()
    }

    /// The counters as of the thread's last wake-up.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        *self.statistics.lock()
    }
}

/// Inputs taken before the sink is flushed.
const TURN_INPUTS_MAX: usize = 64;

/// The thread.
#[derive(Debug)]
pub struct DrainThread<S> {
    drain: Drain<S>,
    receiver: Receiver<DrainInput>,
    statistics: Arc<Mutex<Statistics>>,
    keep_alive_interval: Duration,
}

impl<S: Sink + Send + 'static> DrainThread<S> {
    /// Starts the thread. It ends after [`Control::Shutdown`], or when the last handle is gone, and hands the sink
    /// back. A panic in it is a broken invariant of the drain itself, with every connection's state in doubt: it is
    /// reported by the join handle (and by [`DrainGone`] to every sender), and the owner shuts the process down.
    ///
    /// # Errors
    /// When the operating system starts no thread.
    pub fn spawn(sink: S, options: DrainOptions) -> io::Result<(DrainHandle, JoinHandle<S>)> {
        let (sender, receiver) = bounded(options.input_queue_max.max(1));
        let statistics = Arc::new(Mutex::new(Statistics::default()));
        let thread = Self {
            drain: Drain::new(sink).with_batch_bytes_max(options.batch_bytes_max),
            receiver,
            statistics: Arc::clone(&statistics),
            keep_alive_interval: options.keep_alive_interval,
        };
        let join = thread::Builder::new().name("tidegate-drain".to_owned()).spawn(move || thread.run())?;
        Ok((DrainHandle { sender, statistics }, join))
    }

    fn run(mut self) -> S {
        let mut keep_alive_at = Instant::now() + self.keep_alive_interval;
        loop {
            match self.receiver.recv_deadline(keep_alive_at) {
                Ok(first) => {
                    self.take(first);
                    // What waits now, not what comes meanwhile: the timer and the counters have their turn too.
                    for _ in 0..self.receiver.len().min(TURN_INPUTS_MAX - 1) {
                        let Ok(next) = self.receiver.try_recv() else { break };
                        self.take(next);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.drain.is_shut_down() {
                break;
            }
            self.drain.flush();
            let now = Instant::now();
            if now >= keep_alive_at {
                self.drain.keep_alive();
                self.drain.flush();
                keep_alive_at = now + self.keep_alive_interval;
            }
            *self.statistics.lock() = self.drain.statistics();
        }
        self.drain.flush();
        *self.statistics.lock() = self.drain.statistics();
        self.drain.into_sink()
    }

    fn take(&mut self, input: DrainInput) {
        match input {
            DrainInput::Control(control) => self.drain.control(control),
            DrainInput::Event(event) => self.drain.event(event),
        }
    }
}
