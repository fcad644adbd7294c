//! The select list, its stars replaced by the columns they stand for.

use super::{
    place::{Place, Result, fits, start},
    scope::{Scope, ScopeColumn, folded, parts},
};
use crate::{query::QueryErrorKind, suggestion::suggestion};
use sqlparser::ast::{Expr, SelectItem, SelectItemQualifiedWildcardKind, Spanned, WildcardAdditionalOptions};

/// An item of the select list.
pub(super) enum Item<'q> {
    Expr(&'q Expr, Option<String>),
    Column(ScopeColumn, Place),
}

/// The items of a select list.
pub(super) fn items<'q>(projection: &'q [SelectItem], scope: &Scope) -> Result<Vec<Item<'q>>> {
    let mut items = Vec::new();
    for item in projection {
        match item {
            SelectItem::UnnamedExpr(expr) => items.push(Item::Expr(expr, None)),
            SelectItem::ExprWithAlias { expr, alias } => items.push(Item::Expr(expr, Some(folded(alias)))),
            SelectItem::ExprWithAliases { expr, aliases: _ } => {
                return start(expr).unsupported("several aliases of one expression");
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                return start(expr).unsupported("* of an expression");
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                let place = Place::from(name.span());
                plain_wildcard(options, place)?;
                let table = match parts(name).as_deref() {
                    Some([table]) => scope.table(&folded(table)),
                    _ => None,
                };
                let Some(table) = table else {
                    let instead = suggestion(&name.to_string(), scope.table_names());
                    let message = format_args!("no table {name} in the from clause{instead}");
                    return Err(place.error(QueryErrorKind::UnknownTable, message));
                };
                items.extend(table.columns.iter().cloned().map(|column| Item::Column(column, place)));
            }
            SelectItem::Wildcard(options) => {
                let place = Place::from(options.wildcard_token.0.span);
                plain_wildcard(options, place)?;
                if scope.tables.is_empty() {
                    return place.bad("* needs a from clause");
                }
                items.extend(scope.columns.iter().cloned().map(|column| Item::Column(column, place)));
            }
        }
        fits(items.len(), Place::UNKNOWN)?;
    }
    Ok(items)
}

fn plain_wildcard(options: &WildcardAdditionalOptions, place: Place) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    if opt_ilike.is_some()
        || opt_exclude.is_some()
        || opt_except.is_some()
        || opt_replace.is_some()
        || opt_rename.is_some()
        || opt_alias.is_some()
    {
        return place.unsupported("what stands after *");
    }
    Ok(())
}
