//! Queries prepared, and named queries registered.

use super::{
    Inner, NamedQuery, PreparedQuery, QueryRequest, QuerySource, QueryStatus,
    fresh::standing_rows,
    named::{NamedState, Pinned, Repin, StoredQuery},
    not_ready,
    registry::{Family, Idle, Registry, values_key},
    request::ByName,
};
use crate::{
    drain::Control,
    query::{Parameters, QueryError, QueryErrorKind, resolve, resolve_select},
    sql,
    suggestion::suggestion,
    worker::{Fault, FaultCause},
};
use serde_json::{Map, Value as Json};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};
use tidegate_wire::model::{ColumnType, Cv, Value, query::Query};

/// Longest name of a named query, bytes.
const NAME_BYTES_MAX: usize = 256;

impl Inner {
    pub(super) fn prepare(
        &self,
        request: &QueryRequest,
        claims: &Map<String, Json>,
    ) -> Result<PreparedQuery, QueryError> {
        if let Some(name) = request.args.keys().find(|name| name.starts_with("auth.")) {
            let message = format!("args cannot supply {name}: it is a claim of the connection's token");
            return Err(QueryError::new(QueryErrorKind::Forbidden, message));
        }
        match &request.source {
            QuerySource::Name(name) => self.prepare_named(name, &request.args, claims),
            source => self.prepare_source(source, &request.args, claims, None),
        }
    }

    /// Prepares what a name stands for now.
    pub(super) fn prepare_named(
        &self,
        name: &str,
        args: &Map<String, Json>,
        claims: &Map<String, Json>,
    ) -> Result<PreparedQuery, QueryError> {
        let found = self
            .registry()
            .named
            .get(name)
            .map(|named| (named.id, named.definition.clone(), named.defined_at));
        let (id, definition, defined_at) = match found {
            Some(found) => found,
            None => {
                if let Some(source) = self.query_of_view(name) {
                    return self.prepare_source(&source, args, claims, None);
                }
                return Err(self.unknown_query(name));
            }
        };
        if let Some(argument) = args.keys().find(|argument| !definition.args.contains_key(*argument)) {
            let message = format!("query {name} has no parameter {argument}");
            return Err(QueryError::new(QueryErrorKind::BadArgs, message));
        }
        for (parameter, ty) in &definition.args {
            check_argument(parameter, *ty, args.get(parameter))?;
        }
        let prepared = self.prepare_source(&definition.source, args, claims, Some(&definition))?;
        let (args, claims) = (args.clone(), claims.clone());
        let by_name = ByName { name: name.to_owned(), definition: id, defined_at, args, claims };
        Ok(PreparedQuery { by_name: Some(by_name), ..prepared })
    }

    /// The refusal of a name that no query and no view has.
    pub(super) fn unknown_query(&self, name: &str) -> QueryError {
        let mut names: Vec<String> = self.registry().named.keys().cloned().collect();
        names.extend(self.store.snapshot().views().map(|view| view.definition.name.clone()));
        names.sort_unstable();
        let instead = match suggestion(name, names.iter().map(String::as_str)) {
            text if text.is_empty() => format!("; PUT /v1/queries/{name} makes one"),
            text => text,
        };
        QueryError::new(QueryErrorKind::UnknownName, format!("there is no query named {name}{instead}"))
    }

    fn prepare_source(
        &self,
        source: &QuerySource,
        args: &Map<String, Json>,
        claims: &Map<String, Json>,
        named: Option<&NamedQuery>,
    ) -> Result<PreparedQuery, QueryError> {
        let parameters = Parameters { args, claims, declared: named.map(|named| &named.args) };
        let snapshot = self.store.snapshot();
        let resolved = match source {
            QuerySource::Query(json) => {
                let query = Query::from_json(json)
                    .map_err(|error| QueryError::new(QueryErrorKind::BadQuery, error.to_string()))?;
                if named.is_none() {
                    all_asked_for(args, |argument| query.has_parameter(argument))?;
                }
                resolve(&query, &snapshot, &parameters)?
            }
            QuerySource::Sql(text) => {
                let select = sql::bind(text, &snapshot, &parameters)?;
                if named.is_none() {
                    all_asked_for(args, |argument| sql::has_parameter(text, argument))?;
                }
                resolve_select(&select, &snapshot)?
            }
            QuerySource::Name(name) => {
                let message = format!("a named query cannot name another one ({name})");
                return Err(QueryError::new(QueryErrorKind::BadQuery, message));
            }
        };
        Ok(PreparedQuery {
            output: Arc::clone(&resolved.shape.output),
            resolved,
            by_name: None,
            idle_ttl: named.and_then(|named| named.idle_ttl_ms).map(Duration::from_millis),
        })
    }

    /// Registers a named query. `restored_at` is the version at which a definition from disk was made; a new one is
    /// written there before it replaces the old one. When it cannot be written, the old one stays, for those to
    /// subscribe to again who had subscribed to it.
    pub(super) async fn put_query(
        self: &Arc<Self>,
        query: NamedQuery,
        restored_at: Option<Cv>,
    ) -> Result<Option<QueryError>, QueryError> {
        let name = query.name.clone();
        if self.store.snapshot().view(&name).is_some() {
            let message = format!("{name} is a materialized view; drop it first, or take another name");
            return Err(QueryError::new(QueryErrorKind::Conflict, message));
        }
        let prepared = self.check_named(&query)?;
        let mut pinned = if query.pin { Some(self.pin(&prepared).await?) } else { None };
        let fault = match (&pinned, restored_at) {
            (Some(_), None) => self.fault_of(&prepared).await,
            _ => None,
        };
        let mut registry = self.registry();
        let message = "the query was replaced; subscribe again".to_owned();
        self.end_subscriptions(&mut registry, &name, &Fault { cause: FaultCause::Replaced, message });
        // Taken only now: whatever the drain releases to the old definition's subscribers came from a worker before
        // they were ended, and so from a commit that is published.
        let defined_at = restored_at.unwrap_or_else(|| self.store.snapshot().cv());
        let id = registry.next_definition();
        let now = Instant::now();
        // It may have faulted already; nobody would hear of that again.
        let is_live = |(query, values, binding): &Pinned| {
            registry.family(*query).and_then(|family| family.bindings.get(values)).map(|found| found.binding)
                == Some(*binding)
        };
        let is_lost = pinned.take_if(|pinned| !is_live(pinned)).is_some();
        let mut state = NamedState { id, definition: query, defined_at, pinned, repin: Repin::new(now) };
        if is_lost {
            let message =
                fault.as_ref().map_or("it failed as soon as it was registered", |fault| &fault.message);
            state.lost(message.to_owned(), now);
        }
        if restored_at.is_none() {
            let others = registry.named.iter().filter(|(other, _)| **other != name).map(|(_, named)| named);
            if let Err(error) = self.store_named(others.chain([&state])) {
                if let Some(pinned) = &state.pinned {
                    self.unpin(&mut registry, pinned);
                }
                return Err(not_ready(format!("cannot store the query's definition: {error}")));
            }
        }
        if let Some(pinned) = registry.named.insert(name, state).and_then(|replaced| replaced.pinned) {
            self.unpin(&mut registry, &pinned);
        }
        Ok(fault)
    }

    /// What evaluating a query fails with at present, if it does.
    async fn fault_of(&self, prepared: &PreparedQuery) -> Option<QueryError> {
        let (resolved, deadline) = (prepared.resolved.clone(), self.options.deadline);
        let snapshot = self.store.snapshot();
        let rows = tokio::task::spawn_blocking(move || standing_rows(&resolved, &snapshot, deadline)).await;
        rows.ok()?.err()
    }

    /// Keeps a query fresh without subscribers.
    pub(super) async fn pin(self: &Arc<Self>, prepared: &PreparedQuery) -> Result<Pinned, QueryError> {
        loop {
            let indexes = self.ensure_indexes(prepared).await?;
            let mut registry = self.registry();
            let Some((family, binding)) = self.bound(&mut registry, prepared, indexes)? else { continue };
            let values = values_key(&prepared.resolved.values);
            if let Some(found) = registry.binding_mut(family, &values, binding) {
                found.pins += 1;
                found.idle = None;
            }
            return Ok((family, values, binding));
        }
    }

    /// Lets go of what a named query pins.
    #[expect(clippy::unused_self, reason = "the counterpart of `pin`")]
    pub(super) fn unpin(&self, registry: &mut Registry, (query, values, binding): &Pinned) {
        if let Some(found) = registry.binding_mut(*query, values, *binding) {
            found.pins -= 1;
            if found.pins == 0 && found.subscribers == 0 {
                found.idle = Some(Idle { until: Instant::now() });
            }
        }
    }

    /// Takes up a definition from disk. What it pins is hydrated like any new query.
    pub(super) fn restore_query(self: &Arc<Self>, stored: StoredQuery) -> Result<(), QueryError> {
        // No runtime is needed: the future waits only for the store's own thread.
        let inner = Arc::clone(self);
        let restored = std::thread::spawn(move || -> Result<(), QueryError> {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .map_err(not_ready)?
                .block_on(inner.put_query(stored.query, Some(stored.defined_at)))
                .map(drop)
        });
        restored.join().unwrap_or_else(|_| Err(not_ready("restoring it panicked")))
    }

    fn check_named(&self, query: &NamedQuery) -> Result<PreparedQuery, QueryError> {
        let bad = |message: String| Err(QueryError::new(QueryErrorKind::BadQuery, message));
        if query.name.is_empty() || query.name.len() > NAME_BYTES_MAX {
            return bad(format!("a query's name has 1 to {NAME_BYTES_MAX} bytes"));
        }
        if query.pin && !query.args.is_empty() {
            return bad("a query with parameters cannot be pinned; leave \"pin\" or \"args\" out".to_owned());
        }
        // Any value of the declared type checks names and types; the values that count come with a subscription.
        let args = query.args.iter().map(|(name, ty)| (name.clone(), sample(*ty))).collect();
        self.prepare_source(&query.source, &args, &Map::new(), Some(query))
    }

    pub(super) fn delete_query(&self, name: &str) -> bool {
        let mut registry = self.registry();
        let Some(gone) = registry.named.remove(name) else { return false };
        if let Some(pinned) = &gone.pinned {
            self.unpin(&mut registry, pinned);
        }
        let message = "the query was removed".to_owned();
        self.end_subscriptions(&mut registry, name, &Fault { cause: FaultCause::Removed, message });
        if let Err(error) = self.store_named(registry.named.values()) {
            tracing::error!(%error, name, "the named queries could not be stored; this one comes back after a restart");
        }
        true
    }

    fn store_named<'n>(&self, named: impl Iterator<Item = &'n NamedState>) -> std::io::Result<()> {
        let stored: Vec<StoredQuery> = named
            .map(|named| StoredQuery { query: named.definition.clone(), defined_at: named.defined_at })
            .collect();
        self.named_file.store(&stored)
    }

    /// Ends the subscriptions made by a name.
    fn end_subscriptions(&self, registry: &mut Registry, name: &str, fault: &Fault) {
        let now = Instant::now();
        let mut ended = Vec::new();
        for (&conn, subscriptions) in &mut registry.connections {
            subscriptions.retain(|&sub, subscription| {
                let ends = subscription.name.as_deref() == Some(name);
                if ends {
                    let fault = fault.clone();
                    let _ = self.drain.control(Control::FaultSubscriber { conn, sub, fault });
                    ended.push(subscription.clone());
                }
                !ends
            });
        }
        ended.iter().for_each(|subscription| registry.release(subscription, now));
    }

    pub(super) fn query(&self, name: &str) -> Option<(NamedQuery, QueryStatus)> {
        let found = {
            let registry = self.registry();
            let named = registry.named.get(name);
            named.map(|named| (named.definition.clone(), named_status(&registry, named)))
        };
        match found {
            Some((query, status)) => Some(self.with_fit(query, status)),
            None => self.view_as_query(name),
        }
    }

    pub(super) fn queries(&self) -> Vec<(NamedQuery, QueryStatus)> {
        let named: Vec<_> = {
            let registry = self.registry();
            let named = registry.named.values();
            named.map(|named| (named.definition.clone(), named_status(&registry, named))).collect()
        };
        let mut all: Vec<_> = named.into_iter().map(|(query, status)| self.with_fit(query, status)).collect();
        let snapshot = self.store.snapshot();
        all.extend(snapshot.views().filter_map(|view| self.view_as_query(&view.definition.name)));
        all.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        all
    }

    /// Says of a query that nothing keeps alive whether it still fits the tables.
    fn with_fit(&self, query: NamedQuery, mut status: QueryStatus) -> (NamedQuery, QueryStatus) {
        if status.query == 0 && status.fault.is_none() {
            status.fault = self.check_named(&query).err().map(|error| error.message);
        }
        (query, status)
    }
}

/// A named query's own subscribers, and the state of the family it pins or that they share.
fn named_status(registry: &Registry, named: &NamedState) -> QueryStatus {
    let name = Some(named.definition.name.as_str());
    let mut query = named.pinned.as_ref().map(|(query, ..)| *query);
    let mut subscribers = 0;
    for subscription in registry.connections.values().flat_map(|subs| subs.values()) {
        if subscription.name.as_deref() == name {
            subscribers += 1;
            query = query.or(Some(subscription.query));
        }
    }
    let family = query.and_then(|query| registry.family(query));
    let fault = named.repin.due.map(|_| named.repin.fault.clone());
    QueryStatus { subscribers, fault, ..family.map(family_status).unwrap_or_default() }
}

/// A family's state.
pub(super) fn family_status(family: &Family) -> QueryStatus {
    QueryStatus {
        query: family.query.0,
        bindings: family.bindings.len(),
        rows: u64::try_from(family.gauges.rows.load(Relaxed)).unwrap_or(0),
        subscribers: family.bindings.values().map(|binding| binding.subscribers).sum(),
        last_advance_us: family.gauges.last_advance_ns.load(Relaxed) / 1_000,
        fault: None,
    }
}

/// Refuses an argument that a query has no parameter for.
pub(super) fn all_asked_for(args: &Map<String, Json>, has: impl Fn(&str) -> bool) -> Result<(), QueryError> {
    match args.keys().find(|argument| !has(argument)) {
        None => Ok(()),
        Some(argument) => {
            let message = format!("the query has no parameter {argument}");
            Err(QueryError::new(QueryErrorKind::BadArgs, message))
        }
    }
}

/// Whether a declared parameter has a value of its type, or a list of them, whatever the query makes of it.
fn check_argument(parameter: &str, ty: ColumnType, value: Option<&Json>) -> Result<(), QueryError> {
    let fail = |message| Err(QueryError::new(QueryErrorKind::BadArgs, message));
    let Some(value) = value else { return fail(format!("parameter {parameter} has no value in args")) };
    let check = |value: &Json| match Value::from_json(ty, value) {
        // A fraction compares with whole numbers, exactly.
        Err(_) if ty == ColumnType::Int8 && value.is_number() => Ok(()),
        checked => checked.map(drop),
    };
    let checked = match value {
        Json::Array(members) if ty != ColumnType::Json => members.iter().try_for_each(check),
        value => check(value),
    };
    match checked {
        Ok(()) => Ok(()),
        Err(error) => fail(format!("parameter {parameter}: {error}")),
    }
}

/// Some value of a type.
fn sample(ty: ColumnType) -> Json {
    match ty {
        ColumnType::Bool => Json::Bool(false),
        ColumnType::Int8 | ColumnType::Float8 => Json::from(0),
        ColumnType::Text | ColumnType::Bytea => Json::from(""),
        ColumnType::Timestamptz => Json::from("2000-01-01T00:00:00Z"),
        ColumnType::Date => Json::from("2000-01-01"),
        ColumnType::Uuid => Json::from("00000000-0000-0000-0000-000000000000"),
        ColumnType::Numeric => Json::from("0"),
        ColumnType::Json => Json::Object(Map::new()),
    }
}
