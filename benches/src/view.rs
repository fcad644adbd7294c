//! A select kept live by the engine alone, on the measuring thread.

use crate::engine::{Engine, Folded, advance};
use std::sync::Arc;
use tidegate_replica::worker::Change;
use tidegate_replica::{pipeline::Pipeline, query::Resolved, store::Delta, worker::BindingId};
use tidegate_tests::sql::Shown;

/// See the module's description.
pub(crate) struct View {
    resolved: Resolved,
    pipeline: Pipeline,
    folded: Folded,
    /// What advances said, folded when the measurement is over: that work must not cool the caches in between.
    changes: Vec<Vec<Change>>,
}

impl View {
    /// Plans and hydrates a select.
    pub(crate) fn open(engine: &mut Engine, sql: &str) -> anyhow::Result<Self> {
        let resolved = engine.prepare_sql(sql)?;
        let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
        let mut folded = Folded::default();
        engine.bind(&mut pipeline, BindingId(1), &resolved, Some(&mut folded))?;
        Ok(Self { resolved, pipeline, folded, changes: Vec::new() })
    }

    /// Advances it by a commit.
    pub(crate) fn advance(&mut self, delta: &Delta) -> anyhow::Result<()> {
        let mut out = Vec::new();
        advance(&mut self.pipeline, delta, &mut out)?;
        self.changes.push(out);
        Ok(())
    }

    /// What it shows.
    pub(crate) fn shown(&mut self) -> anyhow::Result<Shown> {
        for changes in self.changes.drain(..) {
            self.folded.fold(&self.resolved.shape, &changes)?;
        }
        Ok(Shown::of(&self.resolved.shape.output, self.folded.rows()))
    }

    /// Compares what it shows with the query run from scratch.
    ///
    /// # Errors
    /// When they differ.
    pub(crate) fn check(&mut self, engine: &Engine) -> anyhow::Result<()> {
        self.shown()?;
        engine.check(&self.resolved, &self.folded)
    }
}
