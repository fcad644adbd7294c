//! What plans look up by, and in which order.

use super::{Identity, LookupAccess, Operator, Plan};
use crate::{
    query::{Parameters, resolve_select, shape::Body},
    sql::bind,
    store::{Snapshot, SnapshotEditor, key::row_key},
};
use serde_json::{Map, json};
use std::sync::Arc;
use tidegate_wire::model::{Cv, Row, TableSchema, Value};

/// `many` has 900 rows, a hundred for each `few`; `few` has 9, and `kind` 3.
fn snapshot() -> Arc<Snapshot> {
    let table = |name: &str, columns: &[&str]| -> TableSchema {
        let columns: Vec<_> = columns.iter().map(|name| json!({"name": name, "type": "int8"})).collect();
        serde_json::from_value(json!({"name": name, "primary_key": ["id"], "columns": columns}))
            .expect("a table")
    };
    let mut editor = SnapshotEditor::new(Arc::new(Snapshot::empty()));
    let many = editor.create_table(table("many", &["id", "few_id", "other_id"]));
    let few = editor.create_table(table("few", &["id", "kind_id"]));
    let mut put = |table, values: &[i64]| {
        let row = Row::from_values(&values.iter().map(|value| Value::Int8(*value)).collect::<Vec<_>>());
        editor.set(table, &row_key(&row, &[0]), Some(row));
    };
    (0..900).for_each(|id| put(many, &[id, id % 9, id % 450]));
    (0..9).for_each(|id| put(few, &[id, id % 3]));
    editor.finish(Cv(1)).to
}

fn plan(text: &str) -> Arc<Plan> {
    let (snapshot, empty) = (snapshot(), Map::new());
    let parameters = Parameters { args: &empty, claims: &empty, declared: None };
    let select = bind(text, &snapshot, &parameters).unwrap_or_else(|error| panic!("{text}: {error}"));
    let resolved = resolve_select(&select, &snapshot).unwrap_or_else(|error| panic!("{text}: {error}"));
    let Body::Flat(plan) = &resolved.shape.body else { panic!("a select is flat") };
    Arc::clone(plan)
}

/// How many values each mark's right rows are looked up by.
fn mark_keys(plan: &Plan) -> Vec<usize> {
    let marks = plan.nodes.iter().filter_map(|node| match &node.operator {
        Operator::Mark(mark) => Some(mark.find_right.keys.len()),
        _ => None,
    });
    marks.collect()
}

/// Fails with marks that compare, when the position of their own column is taken for the right row's first.
#[test]
fn in_is_looked_up_by_key() {
    let keyed = [
        ("select id from many where few_id in (select kind_id from few)", 1),
        ("select few_id, count(*) as n from many where id in (select kind_id from few) group by few_id", 1),
        ("select id from many where few_id in (select id from few) or id = 3", 1),
        (
            "select id from many where id in (select kind_id from few) and few_id in (select kind_id from few)",
            2,
        ),
    ];
    for (text, marks) in keyed {
        assert_eq!(mark_keys(&plan(text)), vec![1; marks], "{text}");
    }
    // A mark that is shown has to tell false from NULL.
    assert_eq!(mark_keys(&plan("select id, few_id in (select kind_id from few) as found from many")), [0]);
}

/// Fails with marks, which hold the outer rows, and begin with all of them.
#[test]
fn what_finds_at_most_one_row_of_a_subquery_is_a_join() {
    let joined = [
        ("select id from many where few_id in (select id from few)", 1),
        ("select id from many m where exists (select from few f where f.id = m.few_id and kind_id < 2)", 1),
        (
            "select m.id from many m join few f on f.id = m.few_id where f.id in (select id from few where kind_id = 1)",
            1,
        ),
        (
            "select id from many where few_id in (select few_id from many group by few_id having count(*) > 5)",
            3,
        ),
    ];
    for (text, nodes) in joined {
        let plan = plan(text);
        assert_eq!((mark_keys(&plan), plan.nodes.len()), (vec![], nodes), "{text}: {:?}", plan.nodes);
    }
    let marked = [
        "select id from many where few_id not in (select id from few)",
        "select id from many m where exists (select from few f where f.kind_id = m.few_id)",
        "select id from many m where exists (select from few f where f.id <= m.few_id)",
        "select id, few_id in (select id from few) as found from many where few_id in (select kind_id from few)",
    ];
    for text in marked {
        assert!(!mark_keys(&plan(text)).is_empty(), "{text}");
    }
}

/// Fails when the partner's key is a part of the row's, so that a row with another partner is another row.
#[test]
fn a_row_that_finds_one_partner_keeps_its_own_key() {
    // The key among the columns that travel.
    let keys = [
        ("select m.id, kind_id from many m join few f on f.id = m.few_id", vec![0], 2),
        ("select m.id, kind_id from many m left join few f on f.id = m.few_id", vec![0], 2),
        ("select kind_id, m.id from few f join many m on m.few_id = f.id", vec![1], 2),
        ("select kind_id, m.id from few f left join many m on m.few_id = f.id", vec![2, 1], 3),
        ("select m.id, kind_id from many m full join few f on f.id = m.few_id", vec![0, 2], 3),
        ("select m.id, kind_id from many m join few f on f.id < m.few_id", vec![0, 2], 3),
        ("select m.id, kind_id from many m join few f on f.id = m.few_id::float8", vec![0, 2], 3),
        ("select m.id, kind_id from many m join few f on f.id = m.few_id or f.id = 1", vec![0, 2], 3),
        (
            "select m.id, a.kind_id from many m, few a, few b where a.id = few_id and b.id = a.kind_id",
            vec![0],
            2,
        ),
        ("select m.id, a.id as a from many m, many a where a.id = 7", vec![0], 2),
        (
            "select m.id, f.kind_id from many m left join few f on f.kind_id = m.few_id where f.id = 5",
            vec![0],
            2,
        ),
    ];
    for (text, key, columns) in keys {
        let plan = plan(text);
        let Identity::Key(own) = &plan.identity else { panic!("{text}: {:?}", plan.identity) };
        assert_eq!((own, plan.result.len()), (&key, columns), "{text}");
    }
}

/// Fails when an OR is left whole.
#[test]
fn what_alternatives_have_in_common_is_a_key() {
    let plan = plan(
        "select many.id from many, few where (many.few_id = few.id and kind_id = 1 and other_id < 5) \
         or (many.few_id = few.id and kind_id = 2 and other_id > 7)",
    );
    let Some(Operator::Join(join)) = plan.nodes.last().map(|node| &node.operator) else { panic!("a join") };
    assert!(join.paths.iter().all(|path| path.steps[0].by.keys.len() == 1), "{join:?}");
    // Each side's own part is tested before anything is looked up.
    let mut reads = Vec::new();
    join.inputs.iter().for_each(|input| input.filter.columns(&mut reads));
    assert_eq!(reads, [2, 2, 1, 1], "{join:?}");
}

/// Fails when equalities are counted instead of the rows that they find.
#[test]
fn what_finds_few_rows_is_looked_up_first() {
    // From `few`, both copies of `many` have one equality and one size; one finds 2 rows, the other 100.
    let plan = plan(
        "select few.id, a.id as a, b.id as b from few join many a on a.few_id = few.id join many b on b.other_id = few.id",
    );
    let Some(Operator::Join(join)) = plan.nodes.last().map(|node| &node.operator) else { panic!("a join") };
    let order: Vec<usize> = join.paths[0].steps.iter().map(|step| step.input).collect();
    assert_eq!(order, [2, 1], "{join:?}");
    assert!(join.paths[0].steps.iter().all(|step| matches!(step.by.access, LookupAccess::Table(_))));
}

/// Fails when only columns are keys, or when a table is read whole for each row that asks for what is computed of it.
#[test]
fn what_is_computed_is_a_key_both_ways() {
    for condition in [
        "b.id = a.id + 1",
        "coalesce(a.other_id, 0) = b.few_id",
        "a.id::numeric = b.few_id",
        "length(a.id::text) = b.few_id",
        "abs(a.id) = -b.id",
    ] {
        let text =
            format!("select a.id as a, b.id as b from many a join many b on {condition} where a.few_id = 1");
        let plan = plan(&text);
        let Some(Operator::Join(join)) = plan.nodes.last().map(|node| &node.operator) else {
            panic!("a join")
        };
        for path in &join.paths {
            assert_eq!(path.steps[0].by.keys.len(), 1, "{text}: {join:?}");
        }
    }
    // What another column finds needs no copy.
    let plan = plan("select a.id from many a join few b on a.few_id = b.id and a.id + 1 = b.kind_id");
    assert_eq!(plan.nodes.len(), 1, "{:?}", plan.nodes);
}
