//! A result as a table of text: one line a row, what is nested under a row in few words.

use crate::cli::table;
use serde_json::Value;
use std::{collections::HashMap, fmt::Write as _, sync::Arc};
use tidegate_client::{ChangeKind, Node, Update};
use tidegate_wire::model::Cv;

/// Widest cell, characters; what is longer is cut.
const CELL_CHARS_MAX: usize = 40;

/// Most rows under a row that are named.
const NAMED_MAX: usize = 3;

/// See the module's description.
#[derive(Debug)]
pub struct Grid {
    cv: Cv,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    marks: Vec<Mark>,
    removed: usize,
}

/// What became of a row in the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is as it was.
    Same,
    /// It has come in.
    Added,
    /// It has changed.
    Edited,
}

impl Grid {
    /// The result of an update; `marked` tells whether its changes are marked, which a first snapshot's are not.
    #[must_use]
    pub fn of(update: &Update, marked: bool) -> Self {
        let mut kinds: HashMap<*const Node, Mark> = HashMap::new();
        let mut removed = 0;
        for change in update.changes.iter().filter(|_| marked) {
            match (change.kind(), &change.new) {
                (ChangeKind::Add, Some(node)) => _ = kinds.insert(Arc::as_ptr(node), Mark::Added),
                (ChangeKind::Edit, Some(node)) => _ = kinds.insert(Arc::as_ptr(node), Mark::Edited),
                _ => removed += 1,
            }
        }
        let marks = update
            .rows
            .iter()
            .map(|node| kinds.get(&Arc::as_ptr(node)).copied().unwrap_or(Mark::Same))
            .collect();
        let mut grid = Self { cv: update.cv, headings: Vec::new(), rows: Vec::new(), marks, removed };
        for node in update.rows.iter() {
            grid.push(node);
        }
        grid
    }

    fn push(&mut self, node: &Node) {
        let mut cells: Vec<(String, String)> = Vec::new();
        let Value::Object(mut row) = node.to_json() else { return };
        for (name, _) in node.values() {
            cells.push((name.to_owned(), row.shift_remove(name).as_ref().map(cell).unwrap_or_default()));
        }
        // What is left is nested.
        cells.extend(row.iter().map(|(name, value)| (name.clone(), cell(value))));
        if self.headings.is_empty() {
            self.headings = cells.iter().map(|(name, _)| cut(name)).collect();
        }
        self.rows.push(cells.into_iter().map(|(_, text)| text).collect());
    }

    /// One line that says how much there is.
    #[must_use]
    pub fn summary(&self) -> String {
        let count = |mark| self.marks.iter().filter(|found| **found == mark).count();
        let rows = if self.rows.len() == 1 { "row" } else { "rows" };
        let mut line = format!("commit {} · {} {rows}", self.cv, self.rows.len());
        for (number, what) in
            [(count(Mark::Added), "added"), (count(Mark::Edited), "changed"), (self.removed, "removed")]
        {
            if number > 0 {
                let _ = write!(line, " · {number} {what}");
            }
        }
        line
    }

    /// The table's lines with each row's mark; the heading is the first.
    #[must_use]
    pub fn lines(&self) -> Vec<(Mark, String)> {
        if self.rows.is_empty() {
            return vec![(Mark::Same, "(no rows)".to_owned())];
        }
        let headings: Vec<&str> = self.headings.iter().map(String::as_str).collect();
        let text = table::render(&headings, &self.rows);
        let marks = std::iter::once(Mark::Same).chain(self.marks.iter().copied());
        marks.zip(text.lines().map(str::to_owned)).collect()
    }

    /// The whole for a file or pipe, with `+` and `~` before added and changed rows.
    #[must_use]
    pub fn plain(&self) -> String {
        let mut out = self.summary() + "\n";
        for (mark, line) in self.lines() {
            let sign = match mark {
                Mark::Same => ' ',
                Mark::Added => '+',
                Mark::Edited => '~',
            };
            let _ = writeln!(out, "{}", format!("{sign} {line}").trim_end());
        }
        out
    }
}

/// A value in few words.
fn cell(value: &Value) -> String {
    cut(&words(value))
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(row) if row.len() == 1 => row.values().next().map(words).unwrap_or_default(),
        Value::Object(row) => {
            let parts: Vec<String> = row.values().map(words).collect();
            format!("({})", parts.join(", "))
        }
        Value::Array(rows) if rows.is_empty() => "[]".to_owned(),
        Value::Array(rows) => {
            let named: Vec<String> = rows.iter().take(NAMED_MAX).map(words).collect();
            let more = if rows.len() > NAMED_MAX { ", …" } else { "" };
            format!("{}: {}{more}", rows.len(), named.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A text that a terminal can show on one line: control characters, which could steer it, are replaced.
fn cut(text: &str) -> String {
    let mut out: String =
        text.chars().take(CELL_CHARS_MAX).map(|c| if c.is_control() { '·' } else { c }).collect();
    if text.chars().nth(CELL_CHARS_MAX).is_some() {
        out.pop();
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_rows_are_told_in_few_words() {
        for (value, text) in [
            (json!(null), "null"),
            (json!(7), "7"),
            (json!("a"), "a"),
            (json!({"name": "Newark"}), "Newark"),
            (json!({"a": 1, "b": "x"}), "(1, x)"),
            (json!([]), "[]"),
            (json!([{"n": "a"}, {"n": "b"}]), "2: a, b"),
            (json!([{"n": "a"}, {"n": "b"}, {"n": "c"}, {"n": "d"}]), "4: a, b, c, …"),
            (json!("\u{1b}[2J\nx"), "·[2J·x"),
        ] {
            assert_eq!(cell(&value), text);
        }
        assert_eq!(cell(&json!("x".repeat(41))).chars().count(), CELL_CHARS_MAX);
    }
}
