//! How queries are maintained.

use super::Inner;
use crate::{
    explain::{counted, explain},
    pipeline::{Budget, Pipeline},
    query::{QueryError, QueryErrorKind, Resolved},
    store::Snapshot,
    worker::{BindingId, WorkerInput},
};
use std::{sync::Arc, time::Instant};
use tokio::sync::oneshot;

impl Inner {
    /// See [`super::Replica::explain`].
    pub(super) fn explain(
        &self,
        resolved: &Resolved,
        snapshot: &Arc<Snapshot>,
        analyze: bool,
    ) -> Result<Vec<String>, QueryError> {
        if !analyze {
            return Ok(explain(resolved, snapshot, None));
        }
        let live = self.registry().families.get(&resolved.shape.key).map(|family| {
            let (answer, receiver) = oneshot::channel();
            self.workers[family.worker].send(WorkerInput::Profile { query: family.query, answer });
            receiver
        });
        if let Some(profiles) = live.and_then(|receiver| receiver.blocking_recv().ok()) {
            return Ok(explain(resolved, snapshot, Some(&profiles)));
        }
        let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
        let mut rows = Vec::new();
        let (started, budget) = (Instant::now(), Budget::once(self.options.deadline));
        pipeline
            .bind(BindingId(0), resolved.values.clone().into(), snapshot, &budget, &mut rows)
            .map_err(|fault| QueryError::new(QueryErrorKind::QueryFaulted, fault.to_string()))?;
        let mut lines = explain(resolved, snapshot, Some(&pipeline.profiles()));
        lines.push(format!(
            "not live; computed once: {}, {} read, in {:.3} ms",
            counted(rows.len(), "row"),
            budget.rows_read(),
            started.elapsed().as_secs_f64() * 1e3
        ));
        Ok(lines)
    }
}
