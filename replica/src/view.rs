//! A materialized view's rows, kept by the dataflow of its select.

use crate::{
    pipeline::{Budget, Pipeline, StepFault},
    query::Resolved,
    store::{Delta, Snapshot, TableId, View, view::RowPair},
    worker::{BindingId, Change},
};
use std::{sync::Arc, time::Duration};
use tidegate_wire::model::{ColumnSchema, Row, TableSchema, table_rules::TableRules};

/// See the module's description.
pub struct MaterializedView {
    resolved: Resolved,
    tables: Vec<TableId>,
    pipeline: Pipeline,
    deadline: Duration,
}

/// A view has one binding: the constants of its text.
const BINDING: BindingId = BindingId(0);

impl MaterializedView {
    /// One that holds nothing yet. Each step takes at most `deadline`.
    #[must_use]
    pub fn new(resolved: Resolved, deadline: Duration) -> Self {
        let tables = resolved.shape.tables();
        let pipeline = Pipeline::new(Arc::clone(&resolved.shape));
        Self { resolved, tables, pipeline, deadline }
    }

    /// The columns and the key of a select's rows as a relation of a name. Columns that only tell rows apart are hidden.
    #[must_use]
    pub fn schema(name: &str, resolved: &Resolved) -> TableSchema {
        let layout = &resolved.shape.output.layout;
        let (table, place) = (&layout.tables[0], &layout.places[0]);
        let columns = table.columns.iter().map(|column| ColumnSchema::plain(&column.name, column.ty, true));
        let hidden = table.columns.len() - place.columns.len();
        TableSchema {
            rules: TableRules { hidden, ..TableRules::default() },
            ..TableSchema::plain(name, columns.collect(), table.key.clone())
        }
    }
}

impl View for MaterializedView {
    fn tables(&self) -> &[TableId] {
        &self.tables
    }

    fn hydrate(&mut self, at: &Arc<Snapshot>) -> Result<Vec<Row>, String> {
        self.pipeline = Pipeline::new(Arc::clone(&self.resolved.shape));
        let (budget, mut changes) = (Budget::once(self.deadline), Vec::new());
        let values = self.resolved.values.clone().into();
        self.pipeline.bind(BINDING, values, at, &budget, &mut changes).map_err(|fault| self.told(&fault))?;
        Ok(changes.into_iter().filter_map(|change| change.new).collect())
    }

    fn advance(&mut self, delta: &Delta) -> Result<Vec<RowPair>, String> {
        let (budget, mut changes) = (Budget::new(self.deadline), Vec::new());
        let faults =
            self.pipeline.advance(delta, &budget, &mut changes).map_err(|fault| self.told(&fault))?;
        if let Some(fault) = faults.get(&BINDING) {
            return Err(self.told(fault));
        }
        Ok(changes.into_iter().map(|Change { old, new, .. }| (old, new)).collect())
    }
}

impl MaterializedView {
    fn told(&self, fault: &StepFault) -> String {
        if fault.is_deadline() {
            return format!("it took longer than the deadline of {} ms", self.deadline.as_millis());
        }
        fault.to_string()
    }
}
