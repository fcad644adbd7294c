//! Where the drain's output goes. The server's hub implements it; tests record it.

use super::ConnId;
use crate::{
    query::Output,
    worker::{BindingId, Fault, QueryId},
};
use std::sync::Arc;
use tidegate_wire::model::{Cv, Epoch, OpKind, PlaceMask, Row, Seq, SubId};

/// One net operation of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct RowOp {
    /// Add, edit or remove.
    pub kind: OpKind,
    /// Index into the output's tables.
    pub table: usize,
    /// Where the row stands now; empty for a removal.
    pub places: PlaceMask,
    /// The new row; for a removal the old one, of which the key travels.
    pub row: Row,
}

/// The operations of one batch, the same for all its recipients.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchOps {
    /// What of the rows travels.
    pub output: Arc<Output>,
    /// The commit version they lead to.
    pub cv: Cv,
    /// Whether a further part of the same snapshot follows.
    pub more: bool,
    /// Each row once.
    pub ops: Vec<RowOp>,
}

/// One subscription that a batch goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The connection.
    pub conn: ConnId,
    /// The client's number for the subscription.
    pub sub: SubId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The batch's number in that epoch.
    pub seq: Seq,
}

/// Called on the drain's thread. Implementations hand frames on and return; they never wait for a client. Calls for
/// one connection reach its client in call order. A connection that is not known is ignored.
pub trait Sink {
    /// A subscription's epoch begins; its seq 0 follows.
    fn subscribed(&mut self, conn: ConnId, sub: SubId, epoch: Epoch, output: &Arc<Output>, resumed: bool);
    /// A batch for each of `recipients`.
    fn batch(&mut self, batch: &BatchOps, recipients: &[Recipient]);
    /// Everything delivered to the connection up to `cv_min` is released.
    fn progress(&mut self, conn: ConnId, cv_min: Cv);
    /// As [`Sink::progress`], but nothing was delivered that it could release: it may wait for whatever else goes to
    /// the client next.
    fn idle_progress(&mut self, conn: ConnId, cv_min: Cv) {
        self.progress(conn, cv_min);
    }
    /// A subscription ended.
    fn faulted(&mut self, conn: ConnId, sub: SubId, fault: &Fault);
    /// A family, or one binding of it, faulted: told before any subscriber is.
    fn owner_faulted(&mut self, query: QueryId, binding: Option<BindingId>, fault: &Fault);
    /// A turn of the drain ends: what was handed on in it may go out. Until then a sink may hold it back, so that
    /// what several commits have for one client leaves together when the drain is behind.
    fn flush(&mut self) {}
}

/// Nobody listens: for a replica that is asked and written to, and has no clients.
impl Sink for () {
    fn subscribed(&mut self, _: ConnId, _: SubId, _: Epoch, _: &Arc<Output>, _: bool) {}
    fn batch(&mut self, _: &BatchOps, _: &[Recipient]) {}
    fn progress(&mut self, _: ConnId, _: Cv) {}
    fn faulted(&mut self, _: ConnId, _: SubId, _: &Fault) {}
    fn owner_faulted(&mut self, _: QueryId, _: Option<BindingId>, _: &Fault) {}
}
