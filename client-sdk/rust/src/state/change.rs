//! Changes of a result's root rows, and folding several releases' changes into one.

use super::node::Node;
use hashbrown::HashMap;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// What happened to one root row.
#[derive(Clone, Debug)]
pub struct Change {
    /// The row's encoded key; equal for equal keys of one result.
    pub key: Arc<[u8]>,
    /// The row as it stood before; `None` for an added row.
    pub old: Option<Arc<Node>>,
    /// The row as it stands now; `None` for a removed row.
    pub new: Option<Arc<Node>>,
}

/// The kinds of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The row entered the result.
    Add,
    /// The row, or something under it, or its position changed.
    Edit,
    /// The row left the result.
    Remove,
}

impl Change {
    /// Which kind of change this is.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        match (&self.old, &self.new) {
            (None, _) => ChangeKind::Add,
            (_, None) => ChangeKind::Remove,
            _ => ChangeKind::Edit,
        }
    }

    /// The row: as it is now, or for a removed one as it was.
    ///
    /// # Panics
    /// When both `old` and `new` were taken out by the caller.
    #[must_use]
    pub fn row(&self) -> &Arc<Node> {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has a row")
    }

    /// `{"op":"add"|"edit"|"remove","row":{…}}`.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let op = match self.kind() {
            ChangeKind::Add => "add",
            ChangeKind::Edit => "edit",
            ChangeKind::Remove => "remove",
        };
        json!({"op": op, "row": self.row().to_json()})
    }

    fn is_nothing(&self) -> bool {
        match (&self.old, &self.new) {
            (None, None) => true,
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            _ => false,
        }
    }
}

/// Changes folded by key.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    list: Vec<Change>,
    by_key: HashMap<Arc<[u8]>, usize>,
}

impl Changes {
    /// How many rows are concerned.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Folds later changes in: each row keeps its first `old` and gets its last `new`.
    pub(crate) fn fold(&mut self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            match self.by_key.get(&change.key) {
                Some(&index) => self.list[index].new = change.new,
                None => {
                    self.by_key.insert(Arc::clone(&change.key), self.list.len());
                    self.list.push(change);
                }
            }
        }
    }

    /// Folds another release's changes in.
    pub(crate) fn merge(&mut self, later: Self) {
        if self.list.is_empty() {
            *self = later;
        } else {
            self.fold(later.list);
        }
    }

    /// The folded changes: removed rows first, then the rest in the result's order.
    pub(crate) fn into_sorted(self) -> Vec<Change> {
        let mut list = self.list;
        list.retain(|change| !change.is_nothing());
        list.sort_by(|a, b| {
            (a.new.is_some(), &a.row().order_key).cmp(&(b.new.is_some(), &b.row().order_key))
        });
        list
    }
}
