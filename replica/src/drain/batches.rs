//! Splits operations into batches of bounded size.

use super::{BatchOps, RowOp};
use crate::query::Output;
use std::sync::Arc;
use tidegate_wire::model::Cv;

/// What the operations are to their subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Seq 0 and what belongs to it: at least one batch, all but the last with `more`.
    Snapshot,
    /// What a commit changed: no batch when it is nothing.
    Increment,
}

/// The operations as batches of at most `bytes_max` row bytes each (or one row), in order.
pub(super) fn split(
    output: &Arc<Output>,
    cv: Cv,
    ops: Vec<RowOp>,
    kind: Kind,
    bytes_max: usize,
) -> Vec<BatchOps> {
    let batch = |ops| BatchOps { output: Arc::clone(output), cv, more: false, ops };
    if ops.is_empty() && kind == Kind::Increment {
        return Vec::new();
    }
    let bytes: usize = ops.iter().map(size).sum();
    if bytes <= bytes_max {
        return vec![batch(ops)];
    }
    let mut batches = Vec::with_capacity(bytes / bytes_max.max(1) + 1);
    let (mut part, mut part_bytes) = (Vec::new(), 0);
    for op in ops {
        let bytes = size(&op);
        if !part.is_empty() && part_bytes + bytes > bytes_max {
            batches.push(batch(std::mem::take(&mut part)));
            part_bytes = 0;
        }
        part_bytes += bytes;
        part.push(op);
    }
    batches.push(batch(part));
    if kind == Kind::Snapshot
        && let Some((_, all_but_last)) = batches.split_last_mut()
    {
        all_but_last.iter_mut().for_each(|batch| batch.more = true);
    }
    batches
}

fn size(op: &RowOp) -> usize {
    op.row.as_bytes().len()
}
