//! From a bound select to a shape and its slot values.

use super::{Output, OutputTable, QueryError, QueryErrorKind, Resolved, Shape, shape::Body};
use crate::{
    algebra::{Rel, Select},
    plan::{Identity, Operator, Plan, plan},
    store::Snapshot,
};
use std::{collections::HashMap, sync::Arc};
use tidegate_wire::model::{
    ColumnType, Layout, Order, OrderColumn, PlaceLayout, TableLayout, layout::LayoutColumn, row::COLUMNS_MAX,
};

/// Most operators that a select may come to, a common table expression counted as often as it is read.
const OPERATORS_MAX: u64 = 10_000;

/// The name of a select's result table.
const RESULT: &str = "result";

type Result<T> = std::result::Result<T, QueryError>;

/// Plans a select against the tables of a snapshot.
///
/// # Errors
/// When it is too large.
pub fn resolve_select(select: &Select, snapshot: &Snapshot) -> Result<Resolved> {
    let size = size(&select.rel, &mut HashMap::new());
    if size > OPERATORS_MAX {
        return refuse(format!("the query comes to {size} operators; {OPERATORS_MAX} are allowed"));
    }
    let (plan, types) = plan(select, snapshot);
    check_widths(&plan)?;
    let layout = layout(select, &plan, &types);
    let slots: Vec<ColumnType> = select.slots.iter().map(|(ty, _)| *ty).collect();
    let names: Vec<&str> = plan
        .tables()
        .into_iter()
        .map(|table| snapshot.table(table).map_or("", |table| table.schema().name.as_str()))
        .collect();
    // What it means, not how it is computed: that may change with the tables' sizes.
    let key = format!("{names:?} {:?} {slots:?} {layout:?}", select.rel);
    let fp = layout.fingerprint(key.as_bytes());
    let table = OutputTable { columns: (0..types.len()).collect(), key: layout.tables[0].key.clone() };
    let output = Arc::new(Output { layout, tables: vec![table], fp });
    Ok(Resolved {
        shape: Arc::new(Shape { key, slots, output, body: Body::Flat(Arc::new(plan)) }),
        values: select.slots.iter().map(|(_, value)| value.clone()).collect(),
    })
}

fn refuse<T>(message: String) -> Result<T> {
    Err(QueryError::new(QueryErrorKind::BadQuery, message))
}

fn layout(select: &Select, plan: &Plan, types: &[ColumnType]) -> Layout {
    let shown = select.names.len();
    let columns = types.iter().enumerate().map(|(at, &ty)| {
        // Columns that only order or tell rows apart have names that no client can confuse with a shown one's.
        let name = select.names.get(at).cloned().unwrap_or_else(|| format!("?{}", at - shown + 1));
        LayoutColumn { name, ty }
    });
    let key: Vec<usize> = match &plan.identity {
        Identity::Key(key) => key.clone(),
        Identity::Single => vec![types.len() - 1],
        Identity::Numbered => (0..types.len()).collect(),
    };
    let mut order: Vec<OrderColumn> =
        select.order.iter().map(|&(column, order)| OrderColumn { column, order }).collect();
    for &column in &key {
        if order.iter().all(|known| known.column != column) {
            order.push(OrderColumn { column, order: Order::ASC });
        }
    }
    Layout {
        tables: vec![TableLayout { name: RESULT.to_owned(), columns: columns.collect(), key }],
        places: vec![PlaceLayout {
            parent: None,
            name: None,
            table: 0,
            columns: (0..shown).collect(),
            on: Vec::new(),
            order,
            one: false,
            value: None,
        }],
    }
}

/// Rows inside a plan are no wider than rows of a table.
fn check_widths(plan: &Plan) -> Result<()> {
    for node in plan.nodes.iter() {
        let width = match &node.operator {
            Operator::Join(join) => join.inputs.iter().map(|input| input.width).sum(),
            Operator::Mark(mark) => mark.left.width + mark.right.width,
            _ => 0,
        };
        if width >= COLUMNS_MAX {
            return refuse(format!(
                "a join reads {width} columns together; fewer than {COLUMNS_MAX} are allowed"
            ));
        }
    }
    Ok(())
}

/// How many operators a query is, what is shared counted as often as it is read.
fn size(rel: &Arc<Rel>, known: &mut HashMap<*const Rel, u64>) -> u64 {
    if let Some(size) = known.get(&Arc::as_ptr(rel)) {
        return *size;
    }
    let own = rel.inputs().into_iter().fold(1_u64, |sum, input| sum.saturating_add(size(input, known)));
    known.insert(Arc::as_ptr(rel), own);
    own
}
