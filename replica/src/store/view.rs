//! Materialized views: selects whose rows are a relation that others read like a table. The store holds their
//! definitions, which are in the log, and their rows, which are not: they follow from the tables. What computes the
//! rows is given to the store as a [`View`].
//!
//! A view without rows, as each is until someone has computed them, is read by its definition: that means the same.

use super::{Delta, Relation, Snapshot, TableId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tidegate_wire::model::Row;

/// What a view shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDefinition {
    /// Its name, which no table has.
    pub name: String,
    /// The text of its select.
    pub sql: String,
}

/// A row that goes, a row that comes, or both.
pub type RowPair = (Option<Row>, Option<Row>);

/// Keeps a view's rows, on the store's thread.
pub trait View: Send {
    /// What it reads.
    fn tables(&self) -> &[TableId];

    /// All rows at a snapshot; from there [`View::advance`] goes on.
    ///
    /// # Errors
    /// What computing them fails with.
    fn hydrate(&mut self, at: &Arc<Snapshot>) -> Result<Vec<Row>, String>;

    /// What a delta changes.
    ///
    /// # Errors
    /// What computing it fails with; it is of no further use then.
    fn advance(&mut self, delta: &Delta) -> Result<Vec<RowPair>, String>;
}

/// Ids of views' relations begin here; they are given anew in each process.
const FIRST: u32 = 1 << 31;

impl TableId {
    /// The id of the view's relation that is made as the process's `number`th.
    pub(super) fn of_view(number: u32) -> Self {
        Self(FIRST + number)
    }

    /// Whether it is a view's, which only the store writes and whose key may hold NULL.
    #[must_use]
    pub fn is_view(self) -> bool {
        self.0 >= FIRST
    }
}

/// A view in a snapshot.
#[derive(Clone)]
pub struct ViewEntry {
    /// What it shows.
    pub definition: Arc<ViewDefinition>,
    /// Its rows, if they are there.
    pub rows: Option<ViewRows>,
}

/// A view's rows in a snapshot.
#[derive(Clone)]
pub struct ViewRows {
    /// The relation's id.
    pub id: TableId,
    /// The relation.
    pub relation: Arc<Relation>,
}

/// The views of a snapshot, in the order of their creation: each reads only views before it.
#[derive(Clone, Default)]
pub(super) struct Views(Vec<ViewEntry>);

impl Views {
    pub(super) fn iter(&self) -> impl Iterator<Item = &ViewEntry> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn named(&self, name: &str) -> Option<&ViewEntry> {
        self.0.iter().find(|view| view.definition.name == name)
    }

    pub(super) fn relation(&self, id: TableId) -> Option<&Relation> {
        let rows = self.0.iter().filter_map(|view| view.rows.as_ref());
        rows.filter(|rows| rows.id == id).map(|rows| &*rows.relation).next()
    }

    pub(super) fn relation_mut(&mut self, id: TableId) -> Option<&mut Relation> {
        let rows = self.0.iter_mut().filter_map(|view| view.rows.as_mut());
        rows.filter(|rows| rows.id == id).map(|rows| Arc::make_mut(&mut rows.relation)).next()
    }

    /// Adds one without rows.
    pub(super) fn create(&mut self, definition: ViewDefinition) {
        self.0.push(ViewEntry { definition: Arc::new(definition), rows: None });
    }

    /// Ends one; its entry, if there was one.
    pub(super) fn take(&mut self, name: &str) -> Option<ViewEntry> {
        let at = self.0.iter().position(|view| view.definition.name == name)?;
        Some(self.0.remove(at))
    }

    /// Gives one its rows.
    pub(super) fn fill(&mut self, name: &str, rows: ViewRows) {
        if let Some(view) = self.0.iter_mut().find(|view| view.definition.name == name) {
            view.rows = Some(rows);
        }
    }

    /// Takes a relation away; its view is read by the definition again.
    pub(super) fn empty(&mut self, id: TableId) {
        for view in &mut self.0 {
            view.rows.take_if(|rows| rows.id == id);
        }
    }

    /// Takes all relations away.
    pub(super) fn empty_all(&mut self) {
        self.0.iter_mut().for_each(|view| view.rows = None);
    }
}
