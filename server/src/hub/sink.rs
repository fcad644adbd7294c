//! The hub's side of the drain. Runs on the drain's thread and never waits.

use super::{Frame, FrameKind, Hub, Outbox, Pushed, Share};
use crate::metrics::cause_name;
use bytes::Bytes;
use smallvec::SmallVec;
use std::{sync::Arc, time::Instant};
use tidegate_replica::{
    drain::{BatchOps, ConnId, Recipient, Sink},
    query::Output,
    worker::{BindingId, Fault, FaultCause, QueryId},
};
use tidegate_wire::{
    codec::{BatchHead, Codec, OpsEncoder, encode_batch_head},
    model::{Cv, Epoch, OpKind, SubId},
    protocol::{
        ErrorCode, ServerMessage,
        server::{Faulted, Progress, Subscribed},
    },
};

/// Encodes and distributes what the drain says.
#[derive(Debug)]
pub struct HubSink {
    hub: Arc<Hub>,
    /// Reused for heads, which are copied out of it.
    head: Vec<u8>,
    /// The last progress in each codec: one commit releases many connections up to the same version.
    progress: [Option<(Cv, Frame)>; 2],
    /// Whose writers are to be woken when the drain's turn ends.
    to_wake: Vec<Arc<Outbox>>,
}

impl HubSink {
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        Self { hub, head: Vec::with_capacity(256), progress: [None, None], to_wake: Vec::new() }
    }

    fn send(&mut self, conn: ConnId, message: &ServerMessage) {
        if let Some(outbox) = self.hub.outbox(conn) {
            let frame = Frame::message(outbox.codec(), message, Instant::now());
            let pushed = outbox.hold(frame, Share::Live);
            self.account(pushed, outbox);
        }
    }

    fn progress_frame(&mut self, codec: Codec, cv_min: Cv) -> Frame {
        self.hub.metrics.progress();
        let at = Instant::now();
        let last = &mut self.progress[codec as usize];
        match last {
            Some((cv, frame)) if *cv == cv_min => Frame { at, ..frame.clone() },
            _ => {
                let frame = Frame::message(codec, &ServerMessage::Progress(Progress { cv_min }), at);
                *last = Some((cv_min, frame.clone()));
                frame
            }
        }
    }

    fn account(&mut self, pushed: Pushed, outbox: Arc<Outbox>) {
        match pushed {
            Pushed::Due => self.to_wake.push(outbox),
            Pushed::Evicted => self.hub.metrics.evicted("outbox_full"),
            Pushed::Queued | Pushed::Dropped => {}
        }
    }
}

impl Sink for HubSink {
    fn subscribed(&mut self, conn: ConnId, sub: SubId, epoch: Epoch, output: &Arc<Output>, resumed: bool) {
        let Some(outbox) = self.hub.outbox(conn) else { return };
        outbox.forget_snapshot(sub);
        self.hub.metrics.resumes(resumed);
        let message = ServerMessage::Subscribed(Subscribed {
            sub,
            epoch,
            fp: output.fp,
            tables: output.layout.tables.clone(),
            places: output.layout.places.clone(),
            resumed,
        });
        let pushed = outbox.hold(Frame::message(outbox.codec(), &message, Instant::now()), Share::Live);
        self.account(pushed, outbox);
    }

    fn batch(&mut self, batch: &BatchOps, recipients: &[Recipient]) {
        let now = Instant::now();
        let mut bodies: [Option<Bytes>; 2] = [None, None];
        let mut delivered = 0;
        for recipient in recipients {
            let Some(outbox) = self.hub.outbox(recipient.conn) else { continue };
            let codec = outbox.codec();
            let body = bodies[codec as usize].get_or_insert_with(|| encode_ops(codec, batch)).clone();
            let Recipient { sub, epoch, seq, .. } = *recipient;
            let head = BatchHead { sub, epoch, seq, cv: batch.cv, fp: batch.output.fp, more: batch.more };
            self.head.clear();
            encode_batch_head(codec, &head, &mut self.head);
            let kind = FrameKind::Batch(batch.cv);
            let head = SmallVec::from_slice(&self.head);
            let frame = Frame { head, body, kind, at: now, releases_change: false };
            let pushed = outbox.push_batch(frame, sub, seq.0 == 0, batch.more);
            self.account(pushed, outbox);
            delivered += 1;
        }
        self.hub.metrics.batches(delivered, delivered * batch.ops.len() as u64);
    }

    fn progress(&mut self, conn: ConnId, cv_min: Cv) {
        let Some(outbox) = self.hub.outbox(conn) else { return };
        let frame = self.progress_frame(outbox.codec(), cv_min);
        let pushed = outbox.hold(frame, Share::Live);
        self.account(pushed, outbox);
    }

    fn idle_progress(&mut self, conn: ConnId, cv_min: Cv) {
        let Some(outbox) = self.hub.outbox(conn) else { return };
        let frame = self.progress_frame(outbox.codec(), cv_min);
        outbox.leave(frame);
    }

    fn faulted(&mut self, conn: ConnId, sub: SubId, fault: &Fault) {
        if let Some(outbox) = self.hub.outbox(conn) {
            outbox.end_subscription(sub);
        }
        let (code, retry) = fault_code(fault.cause);
        // The client's own row: without `retry` its fault says that no mutations are taken, and they are.
        let retry = retry || sub == SubId(0);
        self.send(
            conn,
            &ServerMessage::Faulted(Faulted { sub, code, message: fault.message.clone(), retry }),
        );
    }

    fn owner_faulted(&mut self, query: QueryId, binding: Option<BindingId>, fault: &Fault) {
        self.hub.metrics.fault(fault.cause);
        tracing::warn!(
            query = query.0,
            binding = binding.map(|binding| binding.0),
            cause = cause_name(fault.cause),
            message = fault.message,
            "query faulted"
        );
    }

    fn flush(&mut self) {
        for outbox in self.to_wake.drain(..) {
            outbox.wake();
        }
    }
}

/// A fault's code on the wire, and whether subscribing again may succeed as things are.
fn fault_code(cause: FaultCause) -> (ErrorCode, bool) {
    match cause {
        FaultCause::Derive => (ErrorCode::QueryFaulted, false),
        FaultCause::Deadline | FaultCause::WorkerLost => (ErrorCode::QueryFaulted, true),
        FaultCause::Removed => (ErrorCode::QueryRemoved, false),
        // The name stands for another query now, which can be subscribed to.
        FaultCause::Replaced => (ErrorCode::QueryRemoved, true),
        FaultCause::SchemaChanged => (ErrorCode::SchemaChanged, true),
    }
}

fn encode_ops(codec: Codec, batch: &BatchOps) -> Bytes {
    let mut encoder = OpsEncoder::new(codec);
    for op in &batch.ops {
        let table = &batch.output.tables[op.table];
        let columns = if op.kind == OpKind::Remove { &table.key } else { &table.columns };
        let cells = columns.iter().map(|&column| op.row.cell(column));
        encoder.push(op.kind, op.table, op.places, cells);
    }
    encoder.finish().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hub::{OutboxLimits, Registration, Taken},
        metrics::HubMetrics,
    };
    use std::time::Duration;
    use tidegate_replica::{drain::RowOp, query::OutputTable};
    use tidegate_wire::{
        model::{
            ColumnType, Fingerprint, Layout, PlaceMask, Row, Seq, TableLayout, Value, layout::LayoutColumn,
        },
        protocol::server::Op,
    };

    #[test]
    fn a_removed_query_is_worth_another_try_when_its_name_stands_for_another() {
        assert_eq!(fault_code(FaultCause::Removed), (ErrorCode::QueryRemoved, false));
        assert_eq!(fault_code(FaultCause::Replaced), (ErrorCode::QueryRemoved, true));
    }

    const LIMITS: OutboxLimits =
        OutboxLimits { bytes_max: 10_000, snapshot_bytes_max: 10_000, retry_after: Duration::ZERO };

    fn hub(limits: OutboxLimits) -> Arc<Hub> {
        Hub::new(10, limits, HubMetrics::new())
    }

    /// A table `t` whose first store column does not travel.
    fn output() -> Arc<Output> {
        let column = |name: &str, ty| LayoutColumn { name: name.to_owned(), ty };
        Arc::new(Output {
            layout: Layout {
                tables: vec![TableLayout {
                    name: "t".to_owned(),
                    columns: vec![column("id", ColumnType::Int8), column("name", ColumnType::Text)],
                    key: vec![0],
                }],
                places: Vec::new(),
            },
            tables: vec![OutputTable { columns: vec![1, 2], key: vec![1] }],
            fp: Fingerprint(7),
        })
    }

    fn batch(kind: OpKind) -> BatchOps {
        let row = Row::from_values(&[Value::Bool(true), Value::Int8(5), Value::Text("five".into())]);
        let ops = vec![RowOp { kind, table: 0, places: PlaceMask(1), row }];
        BatchOps { output: output(), cv: Cv(9), more: false, ops }
    }

    fn recipient(registration: &Registration, seq: u64) -> Recipient {
        Recipient { conn: registration.conn, sub: SubId(1), epoch: Epoch(3), seq: Seq(seq) }
    }

    fn frames(registration: &Registration) -> Vec<Frame> {
        match registration.outbox.take(usize::MAX) {
            Taken::Frames { frames, .. } => frames,
            other => panic!("{other:?}"),
        }
    }

    fn decode(codec: Codec, frames: &[Frame]) -> Vec<ServerMessage> {
        let mut messages = Vec::new();
        for frame in frames {
            let bytes = [&frame.head[..], &frame.body[..]].concat();
            codec.decode(&bytes, |message| messages.push(message)).expect("decodes");
        }
        messages
    }

    #[test]
    fn one_encoding_per_codec_is_shared_by_all_recipients() {
        let hub = hub(LIMITS);
        let one = hub.register(Codec::MessagePack).expect("taken");
        let two = hub.register(Codec::MessagePack).expect("taken");
        let json = hub.register(Codec::Json).expect("taken");
        hub.sink().batch(&batch(OpKind::Add), &[recipient(&one, 1), recipient(&two, 4), recipient(&json, 2)]);
        let (one, two, json) = (frames(&one), frames(&two), frames(&json));
        assert_eq!(one[0].body.as_ptr(), two[0].body.as_ptr(), "the same bytes, not equal ones");
        assert!(!one[0].head.spilled() && !json[0].head.spilled(), "heads need no allocation");
        for (codec, frames, seq) in [(Codec::MessagePack, two, 4), (Codec::Json, json, 2)] {
            let messages = decode(codec, &frames);
            let [ServerMessage::Batch(batch)] = messages.as_slice() else { panic!("{messages:?}") };
            assert_eq!((batch.sub, batch.seq, batch.cv, batch.more), (SubId(1), Seq(seq), Cv(9), false));
            let Op::Add { table: 0, cells, .. } = &batch.ops[0] else { panic!("{:?}", batch.ops) };
            assert_eq!(cells.len(), 2, "only the columns that travel");
        }
    }

    #[test]
    fn a_removal_carries_only_the_key() {
        let hub = hub(LIMITS);
        let json = hub.register(Codec::Json).expect("taken");
        hub.sink().batch(&batch(OpKind::Remove), &[recipient(&json, 1)]);
        let frames = frames(&json);
        assert_eq!(&frames[0].body[..], br#"[["-",0,[5]]]}}"#);
    }

    #[test]
    fn calls_for_one_connection_keep_their_order() {
        let hub = hub(LIMITS);
        let conn = hub.register(Codec::Json).expect("taken");
        let mut sink = hub.sink();
        sink.subscribed(conn.conn, SubId(1), Epoch(3), &output(), true);
        sink.batch(&batch(OpKind::Add), &[recipient(&conn, 0)]);
        sink.progress(conn.conn, Cv(9));
        let fault = Fault { cause: FaultCause::Removed, message: "gone".to_owned() };
        sink.faulted(conn.conn, SubId(1), &fault);
        let frames = frames(&conn);
        let kinds: Vec<_> = frames.iter().map(|frame| frame.kind.name()).collect();
        assert_eq!(kinds, ["subscribed", "batch", "progress", "faulted"]);
        let messages = decode(Codec::Json, &frames);
        assert!(matches!(&messages[0], ServerMessage::Subscribed(s) if s.resumed && s.fp == Fingerprint(7)));
        assert!(
            matches!(&messages[3], ServerMessage::Faulted(f) if f.code == ErrorCode::QueryRemoved && !f.retry)
        );
        assert_eq!(conn.outbox.take_ended(), [SubId(1)], "the session learns of it");
        assert!(conn.outbox.take_ended().is_empty());
    }

    #[test]
    fn a_fault_of_a_clients_own_row_says_retry() {
        let hub = hub(LIMITS);
        let conn = hub.register(Codec::Json).expect("taken");
        let fault = Fault { cause: FaultCause::Derive, message: "a defect".to_owned() };
        for (sub, retry) in [(0, true), (1, false)] {
            hub.sink().faulted(conn.conn, SubId(sub), &fault);
            let messages = decode(Codec::Json, &frames(&conn));
            assert!(matches!(&messages[0], ServerMessage::Faulted(f) if f.retry == retry), "{messages:?}");
        }
    }

    #[test]
    fn a_connection_that_is_not_known_is_ignored() {
        let hub = hub(LIMITS);
        let gone = hub.register(Codec::Json).expect("taken");
        let to = recipient(&gone, 1);
        drop(gone);
        let mut sink = hub.sink();
        sink.batch(&batch(OpKind::Add), &[to]);
        sink.progress(to.conn, Cv(1));
        assert_eq!(hub.connections(), 0);
    }

    #[test]
    fn a_full_outbox_evicts_its_connection_and_no_other() {
        let hub = hub(OutboxLimits { bytes_max: 200, ..LIMITS });
        let slow = hub.register(Codec::Json).expect("taken");
        let quick = hub.register(Codec::Json).expect("taken");
        let mut sink = hub.sink();
        for seq in 1..20 {
            sink.batch(&batch(OpKind::Add), &[recipient(&slow, seq), recipient(&quick, seq)]);
            assert_eq!(frames(&quick).len(), 1);
            quick.outbox.written();
        }
        assert!(slow.outbox.is_closing() && !quick.outbox.is_closing());
        let messages = decode(Codec::Json, &frames(&slow));
        assert!(
            matches!(messages.as_slice(), [ServerMessage::Goaway(goaway)] if goaway.code == ErrorCode::SlowClient)
        );
    }

    #[test]
    fn connections_are_bounded_and_a_stopping_hub_takes_none() {
        let hub = Hub::new(1, LIMITS, HubMetrics::new());
        let first = hub.register(Codec::Json).expect("taken");
        assert_eq!(hub.register(Codec::Json).map(|_| ()), Err(crate::hub::Refused::TooMany));
        drop(first);
        let second = hub.register(Codec::Json).expect("room again");
        hub.stop();
        assert!(second.outbox.is_closing());
        drop(second);
        assert_eq!(hub.register(Codec::Json).map(|_| ()), Err(crate::hub::Refused::Stopping));
        assert_eq!(hub.connections(), 0);
    }
}
