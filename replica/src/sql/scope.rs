//! The names that expressions of one select block can use, and what each stands for in the input's row.

use super::rewrite::shifted;
use crate::{expr::typing::Typed, suggestion::suggestion};
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// A column that has a name.
#[derive(Clone, Debug)]
pub(super) struct ScopeColumn {
    pub(super) name: String,
    /// What it is of the input's row.
    pub(super) value: Typed,
}

/// A table of the from clause.
#[derive(Clone, Debug)]
pub(super) struct ScopeTable {
    /// Its alias or name; a subquery may have none.
    pub(super) name: Option<String>,
    pub(super) columns: Vec<ScopeColumn>,
    /// Which of the columns are the primary key of a stored table; empty for others.
    pub(super) key: Vec<usize>,
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) tables: Vec<ScopeTable>,
    /// What names without a table, and `*`, mean: the tables' columns, those joined by `using` once.
    pub(super) columns: Vec<ScopeColumn>,
}

/// A column's name as an expression writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'n> {
    pub(super) table: Option<&'n str>,
    pub(super) column: &'n str,
}

/// What a name means in a scope.
pub(super) enum Found<'s> {
    /// This column.
    Column(&'s Typed),
    /// Several columns.
    Ambiguous,
    /// The table is here, the column is not.
    NoColumn,
    /// Nothing; an outer scope may have it.
    Nothing,
}

impl Scope {
    /// A scope of one table.
    pub(super) fn of(table: ScopeTable) -> Self {
        Self { columns: table.columns.clone(), tables: vec![table] }
    }

    /// Looks a name up.
    pub(super) fn find(&self, name: Name<'_>) -> Found<'_> {
        let columns = match name.table {
            None => &self.columns,
            Some(table) => match self.table(table) {
                Some(table) => &table.columns,
                None => return Found::Nothing,
            },
        };
        let mut found = columns.iter().filter(|column| column.name == name.column);
        match (found.next(), found.next()) {
            (Some(column), None) => Found::Column(&column.value),
            (Some(_), Some(_)) => Found::Ambiguous,
            (None, _) if name.table.is_some() => Found::NoColumn,
            (None, _) => Found::Nothing,
        }
    }

    /// What to write instead of a column that is not there.
    pub(super) fn suggestion(&self, wanted: &str) -> String {
        suggestion(wanted, self.columns.iter().map(|column| column.name.as_str()))
    }

    /// A table by name.
    pub(super) fn table(&self, name: &str) -> Option<&ScopeTable> {
        self.tables.iter().find(|table| table.name.as_deref() == Some(name))
    }

    /// The tables' names.
    pub(super) fn table_names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().filter_map(|table| table.name.as_deref())
    }

    /// A table name that both scopes have.
    pub(super) fn common_table<'s>(&'s self, other: &Self) -> Option<&'s str> {
        self.table_names().find(|name| other.table(name).is_some())
    }

    /// The scope of rows that have `by` more columns before.
    pub(super) fn shifted(mut self, by: usize) -> Self {
        if by > 0 {
            let tables = self.tables.iter_mut().flat_map(|table| table.columns.iter_mut());
            for column in tables.chain(self.columns.iter_mut()) {
                column.value.scalar = shifted(&column.value.scalar, by);
            }
        }
        self
    }

    /// Both scopes' names.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.tables.extend(other.tables.iter().cloned());
        both.columns.extend(other.columns.iter().cloned());
        both
    }
}

/// An identifier as it is looked up: in lower case unless it is quoted.
pub(super) fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_ascii_lowercase() }
}

/// The identifiers of a name with dots; `None` when it has other parts.
pub(super) fn parts(name: &ObjectName) -> Option<Vec<&Ident>> {
    let ObjectName(parts) = name;
    parts
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => Some(ident),
            ObjectNamePart::Function(_) => None,
        })
        .collect()
}

/// The name of a function or another thing without a schema, in lower case.
pub(super) fn simple(name: &ObjectName) -> Option<String> {
    match parts(name)?.as_slice() {
        [ident] => Some(folded(ident)),
        _ => None,
    }
}
