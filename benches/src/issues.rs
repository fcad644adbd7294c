//! The tracker that several figures read: issues, the users that created them, and comments.

use crate::engine::Engine;
use serde_json::json;
use tidegate_wire::model::{Row, TableSchema, Value};

/// How many users there are.
pub(crate) const USERS: i64 = 100;

/// The tables `issue`, `user` and `comment`.
pub(crate) fn tables() -> Vec<TableSchema> {
    let tables = json!([
        {"name": "user", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "name", "type": "text"}]},
        {"name": "issue", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "title", "type": "text"}, {"name": "open", "type": "bool"},
            {"name": "creator_id", "type": "int8"}, {"name": "created", "type": "timestamptz"}]},
        {"name": "comment", "primary_key": ["id"], "columns": [
            {"name": "id", "type": "int8"}, {"name": "issue_id", "type": "int8"},
            {"name": "author_id", "type": "int8"}, {"name": "created", "type": "timestamptz"},
            {"name": "body", "type": "text"}]},
    ]);
    serde_json::from_value(tables).expect("the tables are well formed")
}

/// A user.
pub(crate) fn user(id: i64) -> Row {
    Row::from_values(&[Value::Int8(id), Value::Text(format!("user number {id}").into())])
}

/// An issue; a greater id is a newer issue.
pub(crate) fn issue(id: i64) -> Row {
    Row::from_values(&[
        Value::Int8(id),
        Value::Text(format!("issue number {id} has a title of usual length").into()),
        Value::Bool(id % 3 != 0),
        Value::Int8(id % USERS),
        Value::Timestamptz(1_700_000_000_000_000 + id * 1_000_000),
    ])
}

/// A comment.
pub(crate) fn comment(id: i64, issue: i64) -> Row {
    Row::from_values(&[
        Value::Int8(id),
        Value::Int8(issue),
        Value::Int8(id % USERS),
        Value::Timestamptz(1_700_000_000_000_000 + id * 1_000),
        Value::Text(format!("comment {id} says what such comments say").into()),
    ])
}

/// A tracker with so many issues (ids from 0) and so many comments on each.
pub(crate) fn tracker(issues: i64, comments_each: i64) -> Engine {
    let mut engine = Engine::new(tables());
    let (users, issue_table, comment_table) =
        (engine.table("user"), engine.table("issue"), engine.table("comment"));
    let _ = engine.put(users, (0..USERS).map(user));
    let _ = engine.put(issue_table, (0..issues).map(issue));
    let _ = engine.put(comment_table, (0..issues * comments_each).map(|id| comment(id, id % issues)));
    engine
}
