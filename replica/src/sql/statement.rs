//! A text's statements: which there are, and what each means against the tables that there are when it runs.

use super::{
    Binder, STACK_BYTES,
    definition::{self, defines},
    parse::{self, Words},
    place::{Place, Result},
    scope::{folded, parts},
    write::Write,
};
use crate::{
    algebra::Select,
    query::{Parameters, QueryError, QueryErrorKind},
    store::{CommitError, Snapshot, SnapshotEditor, TableId, system_tables::CLIENT_MUTATIONS},
    suggestion,
};
use sqlparser::ast::{self, ObjectName, SetExpr, Spanned};

/// One statement of a script.
pub enum Statement {
    /// `select`, `values` or `table`.
    Select(Box<ast::Query>),
    /// `insert`, `update` or `delete`, with what `with` names before it.
    Write(Box<ast::Statement>, Option<ast::With>),
    /// A statement that changes tables.
    Define(Box<ast::Statement>),
    /// `begin`
    Begin,
    /// `commit`
    Commit,
    /// `rollback`
    Rollback,
    /// `create materialized view`
    CreateView(Box<ast::CreateView>),
    /// `refresh materialized view`
    RefreshView(ObjectName),
    /// `explain` of a query, with what its operators hold and did if `analyze` stands there.
    Explain(Box<ast::Query>, bool),
    /// `show tables`
    ShowTables,
    /// `show views`
    ShowViews,
    /// `show queries`
    ShowQueries,
    /// `show columns from` a table, `describe` it.
    ShowColumns(ObjectName),
}

/// What a statement means.
pub enum Bound {
    /// Rows to show.
    Select(Select),
    /// Rows to write.
    Write(Write),
}

/// A parsed text.
pub struct Script {
    /// Its statements, in order.
    pub statements: Vec<Statement>,
    words: Words,
}

/// Parses a text of statements and runs something with them. Trees of statements are as deep as the text makes them, so
/// it all runs on a stack that is deep enough.
///
/// # Errors
/// When the text is not SQL, or has a statement that is not supported; and what `run` fails with.
pub fn with_script<T, E: From<QueryError>>(
    text: &str,
    run: impl FnOnce(&Script) -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    stacker::grow(STACK_BYTES, || {
        let parsed = parse::parse(text)?;
        let words = &parsed.words;
        let statements = parsed.statements.into_iter().map(|statement| {
            let place = place_of(&statement, words);
            Statement::new(statement, place)
        });
        run(&Script { statements: statements.collect::<Result<_>>()?, words: parsed.words })
    })
}

impl Statement {
    fn new(statement: ast::Statement, place: Place) -> Result<Self> {
        Ok(match statement {
            ast::Statement::Query(query) => Self::query(*query),
            ast::Statement::Insert(_) | ast::Statement::Update(_) | ast::Statement::Delete(_) => {
                Self::Write(Box::new(statement), None)
            }
            ast::Statement::StartTransaction { modes, statements, exception: None, .. }
                if statements.is_empty() =>
            {
                // Every transaction is serializable, which is at least what any level asks for.
                let reads_only = ast::TransactionMode::AccessMode(ast::TransactionAccessMode::ReadOnly);
                if modes.contains(&reads_only) {
                    return place.unsupported("read only");
                }
                Self::Begin
            }
            ast::Statement::Commit { chain: false, .. } => Self::Commit,
            ast::Statement::Rollback { chain: false, savepoint: None } => Self::Rollback,
            ast::Statement::Rollback { .. }
            | ast::Statement::Savepoint { .. }
            | ast::Statement::ReleaseSavepoint { .. } => return place.unsupported("savepoint"),
            ast::Statement::CreateView(create) if create.materialized => Self::CreateView(Box::new(create)),
            ast::Statement::CreateView(_) => {
                return place.bad("create view is not supported; write create materialized view");
            }
            ast::Statement::RefreshMaterializedView(refresh) => Self::RefreshView(refresh.name),
            ast::Statement::Explain { statement, analyze, verbose: false, format: None, options, .. } => {
                let options = options.unwrap_or_default();
                let is_analyze = |option: &ast::UtilityOption| {
                    option.arg.is_none() && option.name.value.eq_ignore_ascii_case("analyze")
                };
                match (*statement, options.as_slice()) {
                    (ast::Statement::Query(query), []) => Self::Explain(query, analyze),
                    (ast::Statement::Query(query), [option]) if is_analyze(option) => {
                        Self::Explain(query, true)
                    }
                    (_, []) => return place.unsupported("explain of what is not a query"),
                    _ => return place.unsupported("an option of explain other than analyze"),
                }
            }
            ast::Statement::Explain { .. } => {
                return place.unsupported("explain with verbose or a format");
            }
            ast::Statement::ShowTables { .. } if text_of(&statement) == "show tables" => Self::ShowTables,
            ast::Statement::ShowViews { .. } if text_of(&statement) == "show views" => Self::ShowViews,
            ast::Statement::ShowVariable { variable } if matches!(variable.as_slice(), [word] if word.value.eq_ignore_ascii_case("queries")) => {
                Self::ShowQueries
            }
            ast::Statement::ShowColumns { show_options, .. } => {
                match show_options.show_in.and_then(|within| within.parent_name) {
                    Some(name) => Self::ShowColumns(name),
                    None => return place.bad("show columns needs a table: show columns from t"),
                }
            }
            ast::Statement::ExplainTable { table_name, .. } => Self::ShowColumns(table_name),
            statement if defines(&statement) => Self::Define(Box::new(statement)),
            statement => {
                let text = text_of(&statement);
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                return place.unsupported(format_args!("the statement {}", words.join(" ")));
            }
        })
    }

    /// A query may be a write that has a `with` before it.
    fn query(query: ast::Query) -> Self {
        if !matches!(*query.body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_)) {
            return Self::Select(Box::new(query));
        }
        match *query.body {
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                Self::Write(Box::new(statement), query.with)
            }
            _ => unreachable!("looked at above"),
        }
    }

    /// Whether it writes nothing.
    #[must_use]
    pub fn only_shows(&self) -> bool {
        matches!(self.command(), "select" | "explain" | "show")
    }

    /// What it does, as its answer says: `select`, `insert`, `create table`.
    #[must_use]
    pub fn command(&self) -> &'static str {
        match self {
            Self::Select(_) => "select",
            Self::Write(statement, _) => match **statement {
                ast::Statement::Insert(_) => "insert",
                ast::Statement::Update(_) => "update",
                _ => "delete",
            },
            Self::Define(statement) => definition::command(statement),
            Self::Begin => "begin",
            Self::Commit => "commit",
            Self::Rollback => "rollback",
            Self::CreateView(_) => "create materialized view",
            Self::RefreshView(_) => "refresh materialized view",
            Self::Explain(..) => "explain",
            Self::ShowTables | Self::ShowViews | Self::ShowQueries | Self::ShowColumns(_) => "show",
        }
    }
}

impl Script {
    /// What a query or write means against the tables of a snapshot; `None` for other statements.
    ///
    /// # Errors
    /// As [`super::bind`].
    pub fn bind(
        &self,
        statement: &Statement,
        snapshot: &Snapshot,
        parameters: &Parameters<'_>,
    ) -> std::result::Result<Option<Bound>, QueryError> {
        let mut binder = Binder::new(snapshot, parameters, &self.words);
        Ok(Some(match statement {
            Statement::Select(query) | Statement::Explain(query, _) => {
                Bound::Select(binder.whole_by_position(query)?.0)
            }
            Statement::Write(statement, with) => Bound::Write(binder.write(statement, with.as_ref())?),
            _ => return Ok(None),
        }))
    }

    /// Changes tables as a statement says; `affected` rows are counted where it is about rows.
    ///
    /// # Errors
    /// When it is not supported, or does not fit what is there. The editor is then of no use.
    pub fn define(
        &self,
        statement: &ast::Statement,
        editor: &mut SnapshotEditor,
        parameters: &Parameters<'_>,
    ) -> std::result::Result<(), DefineError> {
        definition::define(statement, editor, parameters, &self.words)
    }
}

/// A statement as the parser writes it, in lower case.
fn text_of(statement: &ast::Statement) -> String {
    statement.to_string().to_lowercase()
}

/// Why tables are not changed.
#[derive(Debug, thiserror::Error)]
pub enum DefineError {
    /// The text is at fault.
    #[error(transparent)]
    Text(#[from] QueryError),
    /// The rows or tables that are there are.
    #[error(transparent)]
    Conflict(#[from] CommitError),
}

/// Where a statement starts, as far as the parser says.
pub(super) fn place_of(statement: &ast::Statement, words: &Words) -> Place {
    let place = Place::from(statement.span());
    if place.line == 0 { parse::first(words) } else { place }
}

/// The table that a name means to a statement that writes it.
///
/// # Errors
/// When there is none, or only the server writes it.
pub fn written_table(name: &ObjectName, snapshot: &Snapshot) -> std::result::Result<TableId, QueryError> {
    // A view has no table where its rows are not there.
    let is_view = bare_name(name).is_some_and(|name| snapshot.view(&name).is_some());
    let found = if is_view { None } else { Some(table(name, snapshot)?) };
    let Some(table) = found.filter(|table| *table != CLIENT_MUTATIONS) else {
        let message = match found {
            None => format!(
                "{name} is a materialized view, which the server alone writes; drop materialized view ends it"
            ),
            Some(_) => format!("table {name} is written by the server alone"),
        };
        return Err(Place::from(name.span()).error(QueryErrorKind::Forbidden, message));
    };
    Ok(table)
}

/// The table that a name means.
///
/// # Errors
/// When there is none.
pub fn table(name: &ObjectName, snapshot: &Snapshot) -> std::result::Result<TableId, QueryError> {
    let place = Place::from(name.span());
    let found = bare_name(name).and_then(|name| snapshot.table_id(&name));
    found.ok_or_else(|| {
        let instead = suggestion::of_table(&name.to_string(), snapshot);
        place.error(QueryErrorKind::UnknownTable, format_args!("unknown table {name}{instead}"))
    })
}

/// A name without the schema `public` before it; `None` when another one stands there.
#[must_use]
pub fn bare_name(name: &ObjectName) -> Option<String> {
    match parts(name)?.as_slice() {
        [name] => Some(folded(name)),
        [schema, name] if folded(schema) == "public" => Some(folded(name)),
        _ => None,
    }
}
