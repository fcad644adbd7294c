//! The tables that are there before the first commit and that only the store writes.

use super::{Snapshot, SnapshotEditor, TableId, key::row_key};
use std::sync::Arc;
use tidegate_wire::model::{ColumnSchema, ColumnType, Cv, Row, TableSchema, Value};

/// `tidegate_client_mutations`: the first table of every store.
pub const CLIENT_MUTATIONS: TableId = TableId(0);

/// Its name.
pub const CLIENT_MUTATIONS_NAME: &str = "tidegate_client_mutations";

/// Its schema: `(client_id text primary key, last_mutation_id int8)`.
#[must_use]
pub fn client_mutations_schema() -> TableSchema {
    let columns = vec![
        ColumnSchema::plain("client_id", ColumnType::Text, false),
        ColumnSchema::plain("last_mutation_id", ColumnType::Int8, false),
    ];
    TableSchema::plain(CLIENT_MUTATIONS_NAME, columns, vec![0])
}

/// The store before its first commit. It takes no record and no cv, so that a new store and a reopened one agree.
#[must_use]
pub fn initial_snapshot() -> Arc<Snapshot> {
    let mut editor = SnapshotEditor::new(Arc::new(Snapshot::empty()));
    assert_eq!(editor.create_table(client_mutations_schema()), CLIENT_MUTATIONS);
    editor.finish(Cv(0)).to
}

/// The last mutation id of a client; 0 before its first.
#[must_use]
pub fn last_mutation_id(snapshot: &Snapshot, client_id: &str) -> u64 {
    let key = row_key(&client_row(client_id, 0), &[0]);
    let row = snapshot.table(CLIENT_MUTATIONS).and_then(|table| table.get(&key));
    match row.map(|row| row.cell(1).to_value()) {
        Some(Value::Int8(id)) => u64::try_from(id).unwrap_or(0),
        _ => 0,
    }
}

/// Records a client's last mutation id as part of a commit.
pub(super) fn set_last_mutation_id(editor: &mut SnapshotEditor, client_id: &str, id: i64) {
    let row = client_row(client_id, id);
    let key = row_key(&row, &[0]);
    editor.set(CLIENT_MUTATIONS, &key, Some(row));
}

fn client_row(client_id: &str, id: i64) -> Row {
    Row::from_values(&[Value::Text(client_id.into()), Value::Int8(id)])
}
