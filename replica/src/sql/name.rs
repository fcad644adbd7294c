//! The names that PostgreSQL gives to columns of a result that have no alias.

use super::scope::{folded, parts};
use sqlparser::ast::{Expr, Function, ObjectName, Query, SelectItem, SetExpr, TrimWhereField, TypedString};

/// The name of an expression's column.
pub(super) fn output_name(expr: &Expr) -> String {
    match named(expr) {
        Some((name, _)) => name,
        None => "?column?".to_owned(),
    }
}

/// How much a name says: a cast's is used when there is no better one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    Weak,
    Strong,
}

fn named(expr: &Expr) -> Option<(String, Strength)> {
    let strong = |name: &str| Some((name.to_owned(), Strength::Strong));
    let weak = |name: String| Some((name, Strength::Weak));
    match expr {
        Expr::Identifier(ident) => Some((folded(ident), Strength::Strong)),
        Expr::CompoundIdentifier(idents) => Some((folded(idents.last()?), Strength::Strong)),
        Expr::Nested(inner) => named(inner),
        Expr::Collate { expr: inner, collation: _ } => named(inner),
        Expr::Function(Function { name, .. }) => function(name).map(|name| (name, Strength::Strong)),
        Expr::Cast { expr: inner, data_type, .. } => match named(inner) {
            Some((name, Strength::Strong)) => Some((name, Strength::Strong)),
            _ => weak(type_name(&data_type.to_string())),
        },
        Expr::TypedString(TypedString { data_type, .. }) => weak(type_name(&data_type.to_string())),
        Expr::Interval(_) => weak("interval".to_owned()),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(named) {
            Some((name, Strength::Strong)) => Some((name, Strength::Strong)),
            _ => weak("case".to_owned()),
        },
        Expr::Extract { .. } => strong("extract"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { .. } => strong("substring"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            None | Some(TrimWhereField::Both) => "btrim",
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
        }),
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Subquery(query) => first_column(query).map(|name| (name, Strength::Strong)),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        _ => None,
    }
}

fn function(name: &ObjectName) -> Option<String> {
    parts(name)?.last().map(|ident| folded(ident))
}

/// The name of the one column of a subquery.
fn first_column(query: &Query) -> Option<String> {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Select(select) => {
                return match select.projection.first()? {
                    SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
                    SelectItem::UnnamedExpr(expr) => named(expr).map(|(name, _)| name),
                    _ => None,
                };
            }
            SetExpr::Query(query) => query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Values(_) => return Some("column1".to_owned()),
            _ => return None,
        };
    }
}

/// The catalog's name of a type.
fn type_name(written: &str) -> String {
    let name = written.to_ascii_lowercase();
    let base = name.split('(').next().unwrap_or_default().trim_end();
    match base {
        "int" | "integer" => "int4",
        "smallint" => "int2",
        "bigint" => "int8",
        "boolean" => "bool",
        "double precision" | "float" => "float8",
        "real" => "float4",
        "decimal" | "dec" => "numeric",
        "timestamp with time zone" => "timestamptz",
        "character varying" => "varchar",
        other => other,
    }
    .to_owned()
}
