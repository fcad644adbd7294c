//! A connection's bounded queue of frames.
//!
//! The drain's thread and the connection's own session push; the connection's writer takes. Pushing never waits: a
//! push that would exceed the bound evicts the connection instead, which drops what waits, leaves one `goaway` and
//! closes. The lock is held for moving a few words, never across an await.

use super::frame::{Frame, FrameKind, goaway};
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};
use tidegate_wire::{
    codec::Codec,
    model::{Cv, SubId},
    protocol::ErrorCode,
};
use tokio::sync::Notify;

/// Batches wait for the progress that releases them, so that both go out in one write; with this many bytes waiting the
/// writer starts without it.
const UNRELEASED_BYTES_MAX: usize = 16 << 10;

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub struct OutboxLimits {
    /// Bytes waiting or being written, snapshots apart.
    pub bytes_max: usize,
    /// Bytes of snapshots waiting or being written. Snapshots have a bound of their own, since a client that reads
    /// as fast as it can may still ask for more at once than a slow one is let fall behind.
    pub snapshot_bytes_max: usize,
    /// What an evicted client is told to wait before it reconnects.
    pub retry_after: Duration,
}

/// Which bound a frame counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Part of a snapshot.
    Snapshot,
    /// Anything else.
    Live,
}

/// How the writer ends once the queue is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// WebSocket close code.
    pub code: u16,
    /// Close reason, at most 123 bytes.
    pub reason: String,
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It waits.
    Queued,
    /// It waits, and the writer is to be woken.
    Due,
    /// The outbox is closing; dropped.
    Dropped,
    /// It did not fit: the connection was just evicted.
    Evicted,
}

/// What the writer finds.
#[derive(Debug)]
pub enum Taken {
    /// Something to write. [`Outbox::written`] must follow.
    Frames {
        /// What waited, in order; empty only when a ping is due.
        frames: Vec<Frame>,
        /// Whether a ping is to follow them.
        ping: bool,
    },
    /// Nothing waits and nothing will: close.
    Close(Closing),
    /// Nothing waits.
    Nothing,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxPosition {
    /// The last commit version whose release was written to the socket.
    pub released: Cv,
    /// The first release of a change that waits or is being written.
    pub due: Option<Cv>,
    /// Bytes waiting or being written.
    pub bytes: usize,
}

/// See the module's description.
#[derive(Debug)]
pub struct Outbox {
    codec: Codec,
    limits: OutboxLimits,
    queue: Mutex<Queue>,
    /// Wakes the writer: there is something to write that is not better written later, or the outbox is closing.
    filled: Notify,
    /// Wakes the reader: the outbox is closing.
    closing: Notify,
    /// Wakes a writer that is stuck in a write: the connection was evicted.
    evicted: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<(Frame, Share)>,
    live_bytes: usize,
    snapshot_bytes: usize,
    /// Bytes taken but not yet written, in the two shares.
    writing: (usize, usize),
    /// The commit versions of batches, snapshots apart, that no queued progress releases: the first and the last.
    unreleased: Option<(Cv, Cv)>,
    /// The first release of a change that is taken but not yet written.
    releasing: Option<Cv>,
    /// The last `cv_min` taken, and the last written.
    taken: Cv,
    released: Cv,
    /// Subscriptions in the midst of a snapshot of several parts.
    snapshotting: Vec<SubId>,
    /// Subscriptions ended by the drain that the session has not yet been told of.
    ended: Vec<SubId>,
    ping: bool,
    /// Whether frames have woken the writer, or have someone who will, since it last found nothing.
    woken: bool,
    closing: Option<Closing>,
    evicted: bool,
}

impl Outbox {
    /// An empty outbox.
    #[must_use]
    pub fn new(codec: Codec, limits: OutboxLimits) -> Self {
        Self {
            codec,
            limits,
            queue: Mutex::default(),
            filled: Notify::new(),
            closing: Notify::new(),
            evicted: Notify::new(),
        }
    }

    /// The connection's codec.
    #[must_use]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Queues a frame, or evicts the connection when it does not fit. A frame larger than the bound still goes into
    /// an otherwise empty outbox: one large row must be able to travel.
    pub fn push(&self, frame: Frame, share: Share) -> Pushed {
        let pushed = self.hold(frame, share);
        if pushed == Pushed::Due {
            self.wake();
        }
        pushed
    }

    /// As [`Outbox::push`], but the caller wakes the writer, soon, when the frame is [`Pushed::Due`].
    pub fn hold(&self, frame: Frame, share: Share) -> Pushed {
        self.push_locked(&mut self.queue.lock(), frame, share)
    }

    /// Leaves a progress frame that releases nothing for the writer to take along when something else wakes it. It
    /// replaces one that waits there, and is dropped when it does not fit.
    pub fn leave(&self, frame: Frame) {
        debug_assert!(matches!(frame.kind, FrameKind::Progress(_)), "only progress may be replaced");
        let mut queue = self.queue.lock();
        if queue.closing.is_some() || queue.live_bytes + frame.len() > self.limits.bytes_max {
            return;
        }
        if let Some((last, _)) =
            queue.frames.pop_back_if(|(last, _)| matches!(last.kind, FrameKind::Progress(_)))
        {
            queue.live_bytes -= last.len();
        }
        queue.live_bytes += frame.len();
        queue.frames.push_back((frame, Share::Live));
    }

    /// Wakes the writer.
    pub fn wake(&self) {
        self.filled.notify_one();
    }

    /// Holds a batch's frame. `seq` 0 and the parts that follow it up to the one without `more` are a snapshot.
    pub fn push_batch(&self, frame: Frame, sub: SubId, seq_is_first: bool, more: bool) -> Pushed {
        let mut queue = self.queue.lock();
        let position = queue.snapshotting.iter().position(|other| *other == sub);
        let share = if seq_is_first || position.is_some() { Share::Snapshot } else { Share::Live };
        match position {
            None if seq_is_first && more => queue.snapshotting.push(sub),
            Some(position) if !more => {
                queue.snapshotting.swap_remove(position);
            }
            _ => {}
        }
        self.push_locked(&mut queue, frame, share)
    }

    fn push_locked(&self, queue: &mut Queue, mut frame: Frame, share: Share) -> Pushed {
        if queue.closing.is_some() {
            return Pushed::Dropped;
        }
        let (bytes, bound) = match share {
            Share::Live => (&mut queue.live_bytes, self.limits.bytes_max),
            Share::Snapshot => (&mut queue.snapshot_bytes, self.limits.snapshot_bytes_max),
        };
        if *bytes > 0 && *bytes + frame.len() > bound {
            let setting = match share {
                Share::Live => "limits.outbox_bytes_max",
                Share::Snapshot => "limits.snapshot_backlog_bytes_max",
            };
            self.evict_locked(queue, setting, frame.at);
            return Pushed::Evicted;
        }
        *bytes += frame.len();
        // A client can do nothing with a batch before it is released.
        let is_much = *bytes >= UNRELEASED_BYTES_MAX;
        let is_due = is_much || !matches!(frame.kind, FrameKind::Batch(_));
        match (frame.kind, queue.unreleased) {
            (FrameKind::Batch(cv), unreleased) if share == Share::Live => {
                let (first, last) = unreleased.unwrap_or((cv, cv));
                queue.unreleased = Some((first.min(cv), last.max(cv)));
            }
            (FrameKind::Progress(cv), Some((first, last))) if first <= cv => {
                frame.releases_change = true;
                queue.unreleased = (last > cv).then_some((last, last));
            }
            _ => {}
        }
        queue.frames.push_back((frame, share));
        if is_much {
            self.filled.notify_one();
        }
        if is_due && !queue.woken {
            queue.woken = true;
            return Pushed::Due;
        }
        Pushed::Queued
    }

    fn evict_locked(&self, queue: &mut Queue, setting: &str, at: Instant) {
        let text = format!("more waits for this client than {setting} allows; reconnect and resume");
        let message = goaway(ErrorCode::SlowClient, &text, self.limits.retry_after);
        queue.frames.clear();
        (queue.live_bytes, queue.snapshot_bytes) = queue.writing;
        let frame = Frame::message(self.codec, &message, at);
        queue.live_bytes += frame.len();
        queue.frames.push_back((frame, Share::Live));
        queue.closing = Some(Closing { code: 1013, reason: "slow_client".to_owned() });
        queue.evicted = true;
        self.filled.notify_one();
        self.closing.notify_one();
        self.evicted.notify_one();
    }

    /// Closes after what waits is written; later frames are dropped. Only the first close counts.
    pub fn close(&self, last: Option<Frame>, code: u16, reason: impl Into<String>) {
        let mut queue = self.queue.lock();
        if queue.closing.is_some() {
            return;
        }
        if let Some(frame) = last {
            queue.live_bytes += frame.len();
            queue.frames.push_back((frame, Share::Live));
        }
        let mut reason = reason.into();
        while reason.len() > 123 {
            reason.pop();
        }
        queue.closing = Some(Closing { code, reason });
        self.filled.notify_one();
        self.closing.notify_one();
    }

    /// Takes waiting frames up to `bytes_max` (at least one), or tells how to close.
    #[must_use]
    pub fn take(&self, bytes_max: usize) -> Taken {
        let mut queue = self.queue.lock();
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some((frame, share)) = queue.frames.front() {
            let (length, share) = (frame.len(), *share);
            if !taken.is_empty() && bytes + length > bytes_max {
                break;
            }
            bytes += length;
            match share {
                Share::Live => queue.writing.0 += length,
                Share::Snapshot => queue.writing.1 += length,
            }
            let Some((frame, _)) = queue.frames.pop_front() else { break };
            if let FrameKind::Progress(cv) = frame.kind {
                queue.taken = cv;
                queue.releasing = queue.releasing.or(frame.releases_change.then_some(cv));
            }
            taken.push(frame);
        }
        let ping = queue.frames.is_empty() && std::mem::take(&mut queue.ping);
        if ping || !taken.is_empty() {
            return Taken::Frames { frames: taken, ping };
        }
        if let Some(closing) = &queue.closing {
            return Taken::Close(closing.clone());
        }
        queue.woken = false;
        Taken::Nothing
    }

    /// Has the writer ping the client along with what waits.
    pub fn ping(&self) {
        self.queue.lock().ping = true;
        self.filled.notify_one();
    }

    /// What was taken is written: its bytes no longer count.
    pub fn written(&self) {
        let mut queue = self.queue.lock();
        let (live, snapshot) = std::mem::take(&mut queue.writing);
        queue.live_bytes -= live;
        queue.snapshot_bytes -= snapshot;
        queue.releasing = None;
        queue.released = queue.taken;
        // A burst must not leave its queue's memory with an idle connection.
        if queue.frames.is_empty() && queue.frames.capacity() > 64 {
            queue.frames = VecDeque::new();
        }
    }

    /// Bytes waiting or being written.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let queue = self.queue.lock();
        queue.live_bytes + queue.snapshot_bytes
    }

    /// How far the client is, as far as the socket tells.
    #[must_use]
    pub fn position(&self) -> OutboxPosition {
        let queue = self.queue.lock();
        let due = queue.releasing.or_else(|| {
            queue.frames.iter().find_map(|(frame, _)| match frame.kind {
                FrameKind::Progress(cv) if frame.releases_change => Some(cv),
                _ => None,
            })
        });
        OutboxPosition { released: queue.released, due, bytes: queue.live_bytes + queue.snapshot_bytes }
    }

    /// Whether the outbox is closing.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.queue.lock().closing.is_some()
    }

    /// Remembers a subscription that the drain ended, for the session.
    pub fn end_subscription(&self, sub: SubId) {
        let mut queue = self.queue.lock();
        if queue.closing.is_none() {
            queue.ended.push(sub);
        }
        queue.snapshotting.retain(|other| *other != sub);
    }

    /// A subscription ended or restarts; what is left of a half-sent snapshot no longer matters.
    pub fn forget_snapshot(&self, sub: SubId) {
        self.queue.lock().snapshotting.retain(|other| *other != sub);
    }

    /// The subscriptions the drain ended since the last call.
    #[must_use]
    pub fn take_ended(&self) -> Vec<SubId> {
        std::mem::take(&mut self.queue.lock().ended)
    }

    /// Resolves when [`Outbox::take`] has something. For the writer only.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Resolves when the outbox is closing. For the reader only.
    pub async fn closing(&self) {
        if self.is_closing() {
            return;
        }
        self.closing.notified().await;
    }

    /// Resolves when the connection is evicted. For the writer only.
    pub async fn evicted(&self) {
        if self.queue.lock().evicted {
            return;
        }
        self.evicted.notified().await;
    }
}

/// The newest commit version whose changes some frames release, with the moment the drain handed it over.
#[must_use]
pub fn newest_release(frames: &[Frame]) -> Option<(Cv, Instant)> {
    frames.iter().rev().find_map(|frame| match frame.kind {
        FrameKind::Progress(cv) if frame.releases_change => Some((cv, frame.at)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use smallvec::SmallVec;

    const LIMITS: OutboxLimits =
        OutboxLimits { bytes_max: 100, snapshot_bytes_max: 50, retry_after: Duration::from_millis(500) };

    fn frame(length: usize) -> Frame {
        Frame {
            head: SmallVec::new(),
            body: Bytes::from(vec![0; length]),
            kind: FrameKind::Batch(Cv(1)),
            at: Instant::now(),
            releases_change: false,
        }
    }

    fn lengths(taken: Taken) -> Vec<usize> {
        match taken {
            Taken::Frames { frames, ping: false } => frames.iter().map(Frame::len).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_evicts_at_the_byte_beyond_the_bound_and_not_before() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        assert_eq!(outbox.push(frame(60), Share::Live), Pushed::Queued);
        assert_eq!(outbox.push(frame(40), Share::Live), Pushed::Queued);
        assert_eq!(outbox.bytes(), 100);
        assert_eq!(outbox.push(frame(1), Share::Live), Pushed::Evicted);
        assert_eq!(outbox.push(frame(1), Share::Live), Pushed::Dropped);
        let Taken::Frames { frames, ping: false } = outbox.take(1_000) else { panic!("a goaway waits") };
        assert_eq!(frames.len(), 1, "what waited is dropped");
        assert_eq!(frames[0].kind, FrameKind::Other { name: "goaway", last: true });
        outbox.written();
        assert!(matches!(outbox.take(1_000), Taken::Close(Closing { code: 1013, .. })));
    }

    #[test]
    fn a_release_of_a_change_is_due_until_it_is_written() {
        let of = |kind| Frame { kind, ..frame(10) };
        let batch = |cv| of(FrameKind::Batch(Cv(cv)));
        let progress = |cv| of(FrameKind::Progress(Cv(cv)));
        let outbox = Outbox::new(Codec::Json, LIMITS);
        let position = || {
            let OutboxPosition { released, due, bytes } = outbox.position();
            (released.0, due.map(|cv| cv.0), bytes)
        };
        let write = || {
            let Taken::Frames { frames, .. } = outbox.take(20) else { panic!("something waits") };
            frames
        };
        outbox.push_batch(batch(2), SubId(1), true, false);
        outbox.push(progress(2), Share::Live);
        assert_eq!(position(), (0, None, 20), "a snapshot is no change, however old its commit is");
        assert_eq!(newest_release(&write()), None);
        outbox.written();
        outbox.leave(progress(3));
        assert_eq!(position(), (2, None, 10), "nothing is released");
        outbox.push_batch(batch(4), SubId(1), false, false);
        assert_eq!(position(), (2, None, 20), "a batch alone is not to be seen yet");
        outbox.push(progress(4), Share::Live);
        outbox.push_batch(batch(5), SubId(1), false, false);
        outbox.push_batch(batch(7), SubId(1), false, false);
        outbox.push(progress(6), Share::Live);
        outbox.push(progress(7), Share::Live);
        assert_eq!(position(), (2, Some(4), 70));
        assert_eq!(newest_release(&write()), None);
        outbox.written();
        assert_eq!(newest_release(&write()).map(|(cv, _)| cv), Some(Cv(4)));
        assert_eq!(position(), (3, Some(4), 50), "taken, not written");
        outbox.written();
        assert_eq!(
            position(),
            (4, Some(6), 30),
            "what the newer worker has is not released by the older one"
        );
        assert_eq!(newest_release(&write()).map(|(cv, _)| cv), Some(Cv(6)));
        outbox.written();
        assert_eq!(position(), (6, Some(7), 10));
        let _ = write();
        outbox.written();
        assert_eq!(position(), (7, None, 0));
    }

    #[test]
    fn bytes_being_written_count_until_they_are_written() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        outbox.push(frame(100), Share::Live);
        assert_eq!(lengths(outbox.take(1_000)), [100]);
        assert_eq!(outbox.bytes(), 100);
        outbox.written();
        assert_eq!(outbox.bytes(), 0);
        assert_eq!(outbox.push(frame(100), Share::Live), Pushed::Queued);
        let _ = outbox.take(1_000);
        assert_eq!(outbox.push(frame(1), Share::Live), Pushed::Evicted);
        let goaway_bytes = outbox.bytes() - 100;
        outbox.written();
        assert_eq!(outbox.bytes(), goaway_bytes, "the eviction leaves the accounts straight");
    }

    #[test]
    fn frames_are_taken_in_order_up_to_the_target() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        for length in [10, 20, 30, 5] {
            outbox.push(frame(length), Share::Live);
        }
        assert_eq!(lengths(outbox.take(30)), [10, 20]);
        assert_eq!(lengths(outbox.take(1)), [30], "one always goes");
        assert_eq!(lengths(outbox.take(30)), [5]);
        assert!(matches!(outbox.take(30), Taken::Nothing));
    }

    #[test]
    fn a_batch_wakes_the_writer_with_its_progress_or_when_much_waits() {
        let outbox = Outbox::new(Codec::Json, OutboxLimits { bytes_max: 1 << 20, ..LIMITS });
        let is_woken = || outbox.filled().now_or_never().is_some();
        let progress = || Frame { kind: FrameKind::Progress(Cv(1)), ..frame(1) };
        outbox.push(frame(10), Share::Live);
        assert!(!is_woken(), "a batch is of no use yet");
        outbox.push(progress(), Share::Live);
        assert!(is_woken(), "its progress is");
        outbox.push(progress(), Share::Live);
        assert!(!is_woken(), "the writer is at work already");
        assert_eq!(lengths(outbox.take(100)), [10, 1, 1]);
        outbox.written();
        assert!(matches!(outbox.take(100), Taken::Nothing));
        outbox.push(frame(UNRELEASED_BYTES_MAX - 1), Share::Live);
        assert!(!is_woken());
        outbox.push(frame(1), Share::Live);
        assert!(is_woken(), "much waits");
    }

    #[test]
    fn progress_that_releases_nothing_goes_with_what_comes_next() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        let is_woken = || outbox.filled().now_or_never().is_some();
        let progress = |length, cv| Frame { kind: FrameKind::Progress(Cv(cv)), ..frame(length) };
        outbox.leave(progress(8, 1));
        outbox.leave(progress(9, 2));
        assert!(!is_woken());
        assert_eq!(outbox.bytes(), 9, "the later replaces the earlier");
        outbox.ping();
        assert!(is_woken());
        let Taken::Frames { frames, ping: true } = outbox.take(1_000) else { panic!("both go") };
        assert_eq!(frames.len(), 1);
        outbox.written();
        outbox.push(frame(60), Share::Live);
        outbox.leave(progress(30, 3));
        assert_eq!(outbox.push(progress(10, 4), Share::Live), Pushed::Due, "a real one still wakes");
        outbox.leave(progress(11, 5));
        assert_eq!(lengths(outbox.take(1_000)), [60, 30, 10], "one that does not fit is dropped");
    }

    #[test]
    fn one_frame_larger_than_the_bound_goes_into_an_empty_outbox() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        assert_eq!(outbox.push(frame(1_000), Share::Live), Pushed::Queued);
        assert_eq!(outbox.push(frame(1), Share::Live), Pushed::Evicted);
    }

    #[test]
    fn snapshots_count_against_their_own_bound() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        let (one, two) = (SubId(1), SubId(2));
        assert_eq!(outbox.push(frame(90), Share::Live), Pushed::Queued);
        assert_eq!(outbox.push_batch(frame(20), one, true, true), Pushed::Queued);
        assert_eq!(outbox.push_batch(frame(20), one, false, true), Pushed::Queued);
        assert_eq!(outbox.push_batch(frame(10), one, false, false), Pushed::Queued);
        assert_eq!(outbox.push_batch(frame(10), two, false, false), Pushed::Queued);
        assert_eq!(
            outbox.push_batch(frame(1), one, false, false),
            Pushed::Evicted,
            "live again after its last part"
        );
    }

    #[test]
    fn a_snapshot_beyond_its_bound_evicts() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        assert_eq!(outbox.push_batch(frame(50), SubId(1), true, true), Pushed::Queued);
        assert_eq!(outbox.push_batch(frame(1), SubId(1), false, true), Pushed::Evicted);
    }

    #[test]
    fn a_close_lets_what_waits_go_first() {
        let outbox = Outbox::new(Codec::Json, LIMITS);
        outbox.push(frame(1), Share::Live);
        outbox.close(Some(frame(2)), 1008, "x".repeat(200));
        outbox.close(None, 1001, "later");
        assert_eq!(outbox.push(frame(3), Share::Live), Pushed::Dropped);
        assert_eq!(lengths(outbox.take(1_000)), [1, 2]);
        let Taken::Close(closing) = outbox.take(1_000) else { panic!("closes") };
        assert_eq!((closing.code, closing.reason.len()), (1008, 123));
    }
}
