//! Materialized views: begun, given their rows, and read by name.

use super::{Inner, NamedQuery, QuerySource, QueryStatus, not_ready, sql::refusal};
use crate::{
    query::{Parameters, QueryError, QueryErrorKind, resolve_select},
    sql::{
        bind,
        statement::{Statement, bare_name},
    },
    store::{
        IndexError, IndexId, Materialization, MaterializationOutcome, Snapshot, View as _, ViewDefinition,
    },
    suggestion::suggestion,
    view::MaterializedView,
};
use parking_lot::Mutex;
use serde_json::Map;
use sqlparser::ast;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate_wire::model::Cv;

/// How often the rows of a view are computed because others wrote tables meanwhile.
const TRIES_MAX: usize = 20;

/// Shortest and longest time between two attempts to give rows to views that have none.
const RETRY_WAIT_MIN: Duration = Duration::from_secs(1);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(60);

/// When views without rows are looked at again.
pub(super) struct Retry(Mutex<(Instant, Duration)>);

impl Default for Retry {
    fn default() -> Self {
        Self(Mutex::new((Instant::now(), RETRY_WAIT_MIN)))
    }
}

fn bad<T>(message: String) -> Result<T, QueryError> {
    Err(QueryError::new(QueryErrorKind::BadQuery, message))
}

impl Inner {
    /// Runs a statement that begins a view or gives it its rows; `None` for others. The commit version it led to.
    pub(super) fn view_statement(&self, statement: &Statement) -> Option<Result<Cv, QueryError>> {
        match statement {
            Statement::CreateView(create) => Some(self.create_view(create)),
            Statement::RefreshView(name) => Some(self.refresh_view(name)),
            _ => None,
        }
    }

    fn create_view(&self, create: &ast::CreateView) -> Result<Cv, QueryError> {
        let Some(name) = bare_name(&create.name) else {
            return bad(format!("{} is not the name of a view", create.name));
        };
        let ast::CreateView { name: _, query, columns, if_not_exists, .. } = create;
        let bare = ast::CreateView {
            or_alter: false,
            or_replace: false,
            secure: false,
            options: ast::CreateTableOptions::None,
            cluster_by: Vec::new(),
            comment: None,
            with_no_schema_binding: false,
            temporary: false,
            copy_grants: false,
            to: None,
            params: None,
            ..create.clone()
        };
        if bare != *create {
            return bad("create materialized view takes a name, columns and a select".to_owned());
        }
        if let Some(column) =
            columns.iter().find(|column| column.data_type.is_some() || column.options.is_some())
        {
            return bad(format!("column {} of a view has a name alone", column.name));
        }
        let sql = if columns.is_empty() {
            query.to_string()
        } else {
            let names: Vec<String> = columns.iter().map(|column| column.name.to_string()).collect();
            format!("SELECT * FROM ({query}) AS {}({})", ast::Ident::with_quote('"', &name), names.join(", "))
        };
        let definition = ViewDefinition { name, sql };
        until_taken(|| {
            let snapshot = self.store.snapshot();
            let name = &definition.name;
            let is_there = snapshot.view(name).is_some();
            if is_there && *if_not_exists {
                return Ok(Some(snapshot.cv()));
            }
            let is_named = self.registry().named.contains_key(name);
            if is_there || is_named || snapshot.table_id(name).is_some() {
                let what = if is_named {
                    "query"
                } else if is_there {
                    "view"
                } else {
                    "table"
                };
                let message = format!("there is a {what} {name} already");
                return Err(QueryError::new(QueryErrorKind::Conflict, message));
            }
            self.materialize(&definition, true)
        })
    }

    /// A view's rows are always fresh; one that has none gets them.
    fn refresh_view(&self, name: &ast::ObjectName) -> Result<Cv, QueryError> {
        until_taken(|| {
            let snapshot = self.store.snapshot();
            let view = bare_name(name).and_then(|name| snapshot.view(&name)).ok_or_else(|| {
                let views = snapshot.views().map(|view| view.definition.name.as_str());
                let instead = suggestion(&name.to_string(), views);
                let message = format!("unknown materialized view {name}{instead}");
                QueryError::new(QueryErrorKind::UnknownTable, message)
            })?;
            if view.rows.is_some() {
                Ok(Some(snapshot.cv()))
            } else {
                self.materialize(&view.definition, false)
            }
        })
    }

    /// Computes a view's rows and hands them to the store; `None` when something came between.
    fn materialize(&self, definition: &ViewDefinition, is_new: bool) -> Result<Option<Cv>, QueryError> {
        let (args, claims) = (Map::new(), Map::new());
        let parameters = Parameters { args: &args, claims: &claims, declared: None };
        let snapshot = self.store.snapshot();
        let resolved = resolve_select(&bind(&definition.sql, &snapshot, &parameters)?, &snapshot)?;
        let schema = MaterializedView::schema(&definition.name, &resolved);
        let mut indexes: Vec<IndexId> = Vec::new();
        let release =
            |indexes: Vec<IndexId>| indexes.into_iter().for_each(|index| self.store.release_index(index));
        for spec in resolved.shape.indexes() {
            match self.store.ensure_index_blocking((*spec).clone()) {
                Ok(Ok(index)) => indexes.push(index),
                failed => {
                    release(indexes);
                    return match failed {
                        Ok(Err(IndexError::UnknownTable(_))) => Ok(None),
                        Ok(Err(error)) => Err(not_ready(error)),
                        Err(closed) => Err(not_ready(closed)),
                        Ok(Ok(_)) => unreachable!("matched above"),
                    };
                }
            }
        }
        let mut view = MaterializedView::new(resolved, self.options.deadline);
        let at = self.store.snapshot();
        if view.tables().iter().any(|&table| at.table(table).is_none()) {
            release(indexes);
            return Ok(None);
        }
        let rows = match view.hydrate(&at) {
            Ok(rows) => rows,
            Err(problem) => {
                release(indexes);
                return Err(QueryError::new(QueryErrorKind::QueryFaulted, problem));
            }
        };
        let (definition, view) = (definition.clone(), Box::new(view));
        let materialization = Materialization { definition, is_new, schema, view, rows, at, indexes };
        match self.store.materialize_blocking(materialization).map_err(not_ready)? {
            MaterializationOutcome::Done(cv) => Ok(Some(cv)),
            MaterializationOutcome::Overtaken => Ok(None),
            MaterializationOutcome::Failed(problem) => {
                Err(QueryError::new(QueryErrorKind::QueryFaulted, problem))
            }
            MaterializationOutcome::Refused(error) => Err(refusal(&error)),
        }
    }

    /// Gives rows to the views that have none, if it is time. Blocking.
    pub(super) fn fill_views(&self, now: Instant) {
        let snapshot = self.store.snapshot();
        let lacking = |snapshot: &Snapshot| -> Vec<Arc<ViewDefinition>> {
            let lacking = snapshot.views().filter(|view| view.rows.is_none());
            lacking.map(|view| Arc::clone(&view.definition)).collect()
        };
        let views = lacking(&snapshot);
        if views.is_empty() || self.view_retry.0.lock().0 > now {
            return;
        }
        for definition in &views {
            if let Err(error) = self.materialize(definition, false) {
                tracing::warn!(view = definition.name, %error, "the view is read by its definition");
            }
        }
        let mut retry = self.view_retry.0.lock();
        let wait = if lacking(&self.store.snapshot()).is_empty() { RETRY_WAIT_MIN } else { retry.1 };
        *retry = (Instant::now() + wait, wait.saturating_mul(2).min(RETRY_WAIT_MAX));
    }

    /// A view as the named query that it is, with its state.
    pub(super) fn view_as_query(&self, name: &str) -> Option<(NamedQuery, QueryStatus)> {
        let snapshot = self.store.snapshot();
        let view = snapshot.view(name)?;
        let mut status = QueryStatus::default();
        match &view.rows {
            Some(rows) => {
                status.bindings = 1;
                status.rows = rows.relation.rows().len() as u64;
                let registry = self.registry();
                let readers =
                    registry.families.values().filter(|family| family.shape.tables().contains(&rows.id));
                let bindings = readers.flat_map(|family| family.bindings.values());
                status.subscribers = bindings.map(|binding| binding.subscribers).sum();
            }
            None => {
                status.fault =
                    Some("its rows are not kept at present; it is read by its definition".to_owned())
            }
        }
        let query = NamedQuery {
            name: name.to_owned(),
            source: QuerySource::Sql(view.definition.sql.clone()),
            args: std::collections::BTreeMap::new(),
            pin: true,
            idle_ttl_ms: None,
        };
        Some((query, status))
    }

    /// The query that a view's name stands for.
    pub(super) fn query_of_view(&self, name: &str) -> Option<QuerySource> {
        self.store.snapshot().view(name)?;
        Some(QuerySource::Sql(format!("select * from {}", ast::Ident::with_quote('"', name))))
    }
}

/// Tries until nothing comes between, some times.
fn until_taken(mut attempt: impl FnMut() -> Result<Option<Cv>, QueryError>) -> Result<Cv, QueryError> {
    for _ in 0..TRIES_MAX {
        if let Some(cv) = attempt()? {
            return Ok(cv);
        }
    }
    Err(not_ready(format!("{TRIES_MAX} tries were overtaken by others that change tables; try again")))
}
