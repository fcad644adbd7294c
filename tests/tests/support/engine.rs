//! The engine alone: snapshots, pipelines and folded results, driven by hand on one thread.

use serde_json::{Map, Value as Json};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tidegate_replica::{
    pipeline::{Budget, Pipeline},
    query::{Parameters, Resolved, Shape, nest::nest, resolve, shape::Body},
    store::{Delta, Snapshot, SnapshotEditor, key::row_key},
    worker::{BindingId, Change},
};
use tidegate_wire::model::{PlaceMask, Row, TableSchema, Value, commit::TablesLine, query::Query};

/// One binding's result as folded from the pipeline's changes.
#[derive(Default)]
pub(crate) struct Folded {
    rows: HashMap<(usize, Vec<u8>), (PlaceMask, Row)>,
}

impl Folded {
    /// Folds one change, checking that places are entered and left in turn once all of a commit's are in.
    fn fold(&mut self, shape: &Shape, changes: &[&Change]) {
        let layout = &shape.output.layout;
        let mut standing: HashMap<(usize, Vec<u8>), (i32, usize)> = HashMap::new();
        let mut counts: HashMap<(usize, Vec<u8>), HashMap<usize, i32>> = HashMap::new();
        let mut newest: HashMap<(usize, Vec<u8>), Row> = HashMap::new();
        for change in changes {
            let place = usize::from(change.place);
            let table = layout.places[place].table;
            let key_of = |row: &Row| (table, row_key(row, &shape.output.tables[table].key).to_vec());
            for (row, by) in [(&change.old, -1), (&change.new, 1)] {
                if let Some(row) = row {
                    let key = key_of(row);
                    *counts.entry(key.clone()).or_default().entry(place).or_default() += by;
                    standing.entry(key.clone()).or_default();
                    if by == 1 {
                        newest.insert(key, row.clone());
                    }
                }
            }
        }
        for (key, by_place) in counts {
            let (mut mask, old_row) = match self.rows.remove(&key) {
                Some((mask, row)) => (mask, Some(row)),
                None => (PlaceMask(0), None),
            };
            for (place, by) in by_place {
                let after = i32::from(mask.contains(place)) + by;
                assert!((0..=1).contains(&after), "a row enters and leaves a place in turn");
                mask.0 = if after == 1 { mask.0 | 1 << place } else { mask.0 & !(1 << place) };
            }
            if !mask.is_empty() {
                let row = newest.remove(&key).or(old_row).expect("a standing row has content");
                self.rows.insert(key, (mask, row));
            }
        }
    }

    /// The ordered, nested result.
    pub(crate) fn result(&self, shape: &Shape) -> Json {
        let rows = self.rows.iter().map(|((table, _), (mask, row))| (*table, *mask, row));
        Json::Array(nest(&shape.output, rows))
    }
}

/// A store in memory and the pipelines over it.
pub(crate) struct Engine {
    /// The newest snapshot.
    pub(crate) snapshot: Arc<Snapshot>,
    pipelines: HashMap<String, Pipeline>,
    folded: HashMap<BindingId, (String, Folded)>,
    /// Selects' bindings by shape and slot values, with how many ask for each: their pipelines have one for a tuple of
    /// values, as the replica's registry sees to it.
    shared: HashMap<(String, Vec<u8>), (BindingId, usize)>,
    next_binding: u64,
}

impl Engine {
    /// A store with the tables of a commit stream's first line.
    pub(crate) fn new(tables: &Json) -> Self {
        let line: TablesLine = serde_json::from_value(tables.clone()).expect("tables");
        let mut editor = SnapshotEditor::new(Arc::new(Snapshot::empty()));
        for table in line.tables {
            editor.create_table(table);
        }
        let snapshot = Arc::clone(&editor.finish(tidegate_wire::model::Cv(1)).to);
        Self {
            snapshot,
            pipelines: HashMap::new(),
            folded: HashMap::new(),
            shared: HashMap::new(),
            next_binding: 0,
        }
    }

    /// Applies a commit that is known to be valid; returns its delta without telling the pipelines.
    pub(crate) fn apply(&mut self, commit: &Json) -> Delta {
        let mut editor = SnapshotEditor::new(Arc::clone(&self.snapshot));
        for op in commit["ops"].as_array().expect("ops") {
            let (kind, table) = ["insert", "update", "delete"]
                .iter()
                .find_map(|kind| Some((*kind, op.get(*kind)?.as_str()?)))
                .expect("an operation");
            let id = editor.snapshot().table_id(table).expect("a table");
            let schema = Arc::clone(editor.snapshot().table(id).expect("a table").schema());
            if kind == "insert" {
                let row = row_of(&schema, op["row"].as_object().expect("a row"), None);
                editor.set(id, &row_key(&row, &schema.primary_key), Some(row));
                continue;
            }
            let key_row = row_of(&schema, op["key"].as_object().expect("a key"), None);
            let key = row_key(&key_row, &schema.primary_key);
            if kind == "delete" {
                editor.set(id, &key, None);
                continue;
            }
            let old =
                editor.snapshot().table(id).expect("a table").get(&key).expect("the row exists").clone();
            let row = row_of(&schema, op["set"].as_object().expect("values"), Some(&old));
            editor.set(id, &key, Some(row));
        }
        let delta = editor.finish(self.snapshot.cv().next());
        self.snapshot = Arc::clone(&delta.to);
        delta
    }

    /// Tells the pipelines of a delta.
    pub(crate) fn advance(&mut self, delta: &Delta) {
        for (key, pipeline) in &mut self.pipelines {
            let mut out = Vec::new();
            let faults = pipeline.advance(delta, &budget(), &mut out).expect("advances");
            assert!(faults.is_empty(), "no binding faults: {faults:?}");
            let mut by_binding: HashMap<BindingId, Vec<&Change>> = HashMap::new();
            for change in &out {
                by_binding.entry(change.binding).or_default().push(change);
            }
            for (binding, changes) in by_binding {
                let (owner, folded) = self.folded.get_mut(&binding).expect("changes are for live bindings");
                assert_eq!(owner, key);
                folded.fold(pipeline.shape(), &changes);
            }
        }
    }

    /// Resolves a query.
    pub(crate) fn resolve(
        &self,
        query: &Json,
        args: &Json,
    ) -> Result<Resolved, tidegate_replica::query::QueryError> {
        let empty = Map::new();
        let parameters =
            Parameters { args: args.as_object().unwrap_or(&empty), claims: &empty, declared: None };
        let query = Query::from_json(query).unwrap_or_else(|error| panic!("{error}: {query}"));
        resolve(&query, &self.snapshot, &parameters)
    }

    /// Adds a live query.
    pub(crate) fn bind(&mut self, resolved: &Resolved) -> BindingId {
        let values = Row::from_values(&resolved.values).as_bytes().to_vec();
        let shared = (resolved.shape.key.clone(), values);
        if let Some((binding, asked)) = self.shared.get_mut(&shared) {
            *asked += 1;
            return *binding;
        }
        let mut editor = SnapshotEditor::new(Arc::clone(&self.snapshot));
        for spec in resolved.shape.indexes() {
            let table = editor.snapshot().table(spec.table).expect("a table");
            if table.index_by(&spec).is_none() {
                let tree = table.build_index(&spec);
                let id = tidegate_replica::store::IndexId(
                    editor.snapshot().tables().map(|(_, t)| t.indexes().count() as u64).sum(),
                );
                editor.add_index(id, spec, tree);
            }
        }
        self.snapshot = Arc::clone(&editor.finish(self.snapshot.cv()).to);
        self.next_binding += 1;
        let binding = BindingId(self.next_binding);
        let key = resolved.shape.key.clone();
        let pipeline =
            self.pipelines.entry(key.clone()).or_insert_with(|| Pipeline::new(Arc::clone(&resolved.shape)));
        let mut out = Vec::new();
        pipeline
            .bind(binding, resolved.values.clone().into(), &self.snapshot, &budget(), &mut out)
            .expect("hydrates");
        let mut folded = Folded::default();
        folded.fold(pipeline.shape(), &out.iter().collect::<Vec<_>>());
        self.folded.insert(binding, (key, folded));
        if matches!(resolved.shape.body, Body::Flat(_)) {
            self.shared.insert(shared, (binding, 1));
        }
        binding
    }

    /// A query's result run from scratch at the newest snapshot.
    pub(crate) fn fresh(&self, resolved: &Resolved) -> Json {
        let mut pipeline = Pipeline::new(Arc::clone(&resolved.shape));
        let mut out = Vec::new();
        pipeline
            .bind(BindingId(0), resolved.values.clone().into(), &self.snapshot, &budget(), &mut out)
            .expect("hydrates");
        let mut folded = Folded::default();
        folded.fold(pipeline.shape(), &out.iter().collect::<Vec<_>>());
        folded.result(pipeline.shape())
    }

    /// Removes a live query; a pipeline without bindings must hold nothing.
    pub(crate) fn unbind(&mut self, binding: BindingId) {
        if let Some((_, asked)) = self.shared.values_mut().find(|(shared, _)| *shared == binding) {
            *asked -= 1;
            if *asked > 0 {
                return;
            }
            self.shared.retain(|_, (shared, _)| *shared != binding);
        }
        let (key, _) = self.folded.remove(&binding).expect("a live binding");
        let pipeline = self.pipelines.get_mut(&key).expect("its pipeline");
        pipeline.unbind(binding, &self.snapshot, &budget());
        if pipeline.bindings() == 0 {
            assert_eq!(pipeline.groups(), 0, "a pipeline without bindings holds nothing");
            self.pipelines.remove(&key);
        }
    }

    /// The rows that a live query's result consists of, as they are held.
    pub(crate) fn raw(&self, binding: BindingId) -> String {
        let mut rows: Vec<String> = self.folded[&binding]
            .1
            .rows
            .values()
            .map(|(places, row)| format!("{places:?} {row:?}"))
            .collect();
        rows.sort();
        rows.join("\n")
    }

    /// A live query's result.
    pub(crate) fn result(&self, binding: BindingId) -> Json {
        let (key, folded) = &self.folded[&binding];
        folded.result(self.pipelines[key].shape())
    }
}

/// Time for one step that no test needs.
pub(crate) fn budget() -> Budget {
    Budget::new(Duration::from_secs(60))
}

fn row_of(schema: &TableSchema, values: &Map<String, Json>, old: Option<&Row>) -> Row {
    let cells: Vec<Value> = schema
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| match (values.get(&column.name), old) {
            (Some(json), _) => Value::from_json(column.ty, json).expect("a valid value"),
            (None, Some(old)) => old.cell(index).to_value(),
            (None, None) => Value::Null,
        })
        .collect();
    Row::from_values(&cells)
}
