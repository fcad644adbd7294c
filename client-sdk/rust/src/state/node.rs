//! Results as an application reads them: immutable rows with their children, shared between versions.

use super::{
    sequence::{self, Keyed, Sequence},
    shape::PlaceShape,
};
use serde_json::{Map, Value as Json};
use std::{fmt, sync::Arc};
use tidegate_wire::model::{Row, Value, ValueRef};

/// The ordered rows of a result, or of one place under one parent row. Immutable; cloning counts a reference.
///
/// Versions share every row that is the same in both, so that a reader can compare with [`Rows::ptr_eq`] and
/// [`Arc::ptr_eq`] instead of by content.
#[derive(Clone, Default)]
pub struct Rows(pub(crate) Sequence<Node>);

/// One row of a result with the rows that stand under it.
pub struct Node {
    pub(crate) row: Row,
    pub(crate) order_key: Arc<[u8]>,
    pub(crate) shape: Arc<PlaceShape>,
    /// One for each of the shape's children, in their order.
    pub(crate) children: Box<[Children]>,
}

/// What stands under a row at one child place.
#[derive(Clone, Debug)]
pub enum Children {
    /// An ordered list.
    Many(Rows),
    /// One row, or null.
    One(Option<Arc<Node>>),
    /// A value, computed of rows.
    Value(Value),
}

impl Rows {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<Node>> {
        self.0.at(index)
    }

    /// The first row.
    #[must_use]
    pub fn first(&self) -> Option<&Arc<Node>> {
        self.get(0)
    }

    /// The rows in order.
    pub fn iter(&self) -> RowsIter<'_> {
        RowsIter(self.0.iter())
    }

    /// Whether both are one and the same version. Unchanged lists stay the same version.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// The nested JSON of the protocol's page: an array of objects.
    #[must_use]
    pub fn to_json(&self) -> Json {
        self.iter().map(|node| node.to_json()).collect()
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a Arc<Node>;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        self.iter()
    }
}

/// See [`Rows::iter`].
pub struct RowsIter<'a>(sequence::Iter<'a, Node>);

impl<'a> Iterator for RowsIter<'a> {
    type Item = &'a Arc<Node>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for RowsIter<'_> {}

impl Node {
    /// The value of a shown column; `None` when no column of that name is shown.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<ValueRef<'_>> {
        let (_, index) = self.shape.columns.iter().find(|(name, _)| name == column)?;
        Some(self.row.cell(*index))
    }

    /// The shown columns with their values, in the select list's order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (&str, ValueRef<'_>)> {
        self.shape.columns.iter().map(|(name, index)| (name.as_str(), self.row.cell(*index)))
    }

    /// What stands under this row at a child place, by its name; `None` when there is no such place.
    #[must_use]
    pub fn children(&self, name: &str) -> Option<&Children> {
        let index = self.shape.children.iter().position(|child| child.name == name)?;
        self.children.get(index)
    }

    /// The list under this row at a child place; `None` when there is no such place, or it shows one row.
    #[must_use]
    pub fn many(&self, name: &str) -> Option<&Rows> {
        match self.children(name)? {
            Children::Many(rows) => Some(rows),
            Children::One(_) | Children::Value(_) => None,
        }
    }

    /// The one row under this row at a child place; `None` also when there is none.
    #[must_use]
    pub fn one(&self, name: &str) -> Option<&Arc<Node>> {
        match self.children(name)? {
            Children::One(node) => node.as_ref(),
            Children::Many(_) | Children::Value(_) => None,
        }
    }

    /// The value under this row at a child place that shows one; `None` when there is no such place.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<ValueRef<'_>> {
        match self.children(name)? {
            Children::Value(value) => Some(value.as_ref()),
            Children::Many(_) | Children::One(_) => None,
        }
    }

    /// The row as a JSON object: the shown columns, and under their names the children.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut object: Map<String, Json> =
            self.values().map(|(name, value)| (name.to_owned(), value.to_json())).collect();
        for (shape, children) in self.shape.children.iter().zip(&self.children) {
            let json = match children {
                Children::Many(rows) => rows.to_json(),
                Children::One(node) => node.as_ref().map_or(Json::Null, |node| node.to_json()),
                Children::Value(value) => value.to_json(),
            };
            object.insert(shape.name.clone(), json);
        }
        Json::Object(object)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

impl Keyed for Node {
    fn order_key(&self) -> &Arc<[u8]> {
        &self.order_key
    }
}
