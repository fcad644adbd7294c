//! Queries prepared, and named queries registered.

use super::{
    Inner, NamedQuery, PreparedQuery, QueryRequest, QuerySource, QueryStatus,
    named::NamedState,
    not_ready,
    registry::{Family, Idle, Registry, values_key},
};
use crate::{
    drain::Control,
    query::{Parameters, QueryError, QueryErrorKind, resolve},
    worker::{Fault, FaultCause},
};
use serde_json::{Map, Value as Json};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};
use tidegate_wire::model::{ColumnType, query::Query};

/// Longest name of a named query, bytes.
const NAME_BYTES_MAX: usize = 128;

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
        let QuerySource::Name(name) = &request.source else {
            return self.prepare_source(&request.source, &request.args, claims, None);
        };
        let definition = match self.registry.lock().named.get(name) {
            Some(named) => named.definition.clone(),
            None => {
                let message = format!("there is no query named {name}; PUT /v1/queries/{name} makes one");
                return Err(QueryError::new(QueryErrorKind::UnknownName, message));
            }
        };
        if let Some(argument) = request.args.keys().find(|argument| !definition.args.contains_key(*argument))
        {
            let message = format!("query {name} has no parameter {argument}");
            return Err(QueryError::new(QueryErrorKind::BadArgs, message));
        }
        self.prepare_source(&definition.source, &request.args, claims, Some(&definition))
    }

    fn prepare_source(
        &self,
        source: &QuerySource,
        args: &Map<String, Json>,
        claims: &Map<String, Json>,
        named: Option<&NamedQuery>,
    ) -> Result<PreparedQuery, QueryError> {
        let json = match source {
            QuerySource::Query(json) => json,
            QuerySource::Sql(_) => {
                let message = "queries in SQL are not supported by this version; give the query as JSON";
                return Err(QueryError::new(QueryErrorKind::BadQuery, message));
            }
            QuerySource::Name(name) => {
                let message = format!("a named query cannot name another one ({name})");
                return Err(QueryError::new(QueryErrorKind::BadQuery, message));
            }
        };
        let query = Query::from_json(json)
            .map_err(|error| QueryError::new(QueryErrorKind::BadQuery, error.to_string()))?;
        let parameters = Parameters { args, claims, declared: named.map(|named| &named.args) };
        let resolved = resolve(&query, &self.store.snapshot(), &parameters)?;
        Ok(PreparedQuery {
            output: Arc::clone(&resolved.shape.output),
            resolved,
            name: named.map(|named| named.name.clone()),
            idle_ttl: named.and_then(|named| named.idle_ttl_ms).map(Duration::from_millis),
        })
    }

    /// Registers a named query; `persist` writes the definitions to disk.
    pub(super) async fn put_query(
        self: &Arc<Self>,
        query: NamedQuery,
        persist: bool,
    ) -> Result<(), QueryError> {
        let prepared = self.check_named(&query)?;
        let name = query.name.clone();
        let mut pinned = None;
        if query.pin {
            loop {
                let indexes = self.ensure_indexes(&prepared).await?;
                let mut registry = self.registry.lock();
                let Some((family, binding)) = self.bound(&mut registry, &prepared, indexes)? else {
                    continue;
                };
                let values = values_key(&prepared.resolved.values);
                if let Some(found) = registry.binding_mut(family, &values, binding) {
                    found.pins += 1;
                    found.idle = None;
                }
                pinned = Some((family, values, binding));
                break;
            }
        }
        let mut registry = self.registry.lock();
        self.remove_named(&mut registry, &name, "the query was replaced; subscribe again");
        registry.named.insert(name.clone(), NamedState { definition: query, pinned });
        if persist && let Err(error) = self.store_named(&registry) {
            self.remove_named(&mut registry, &name, "the query could not be stored");
            return Err(not_ready(format!("cannot store the query's definition: {error}")));
        }
        Ok(())
    }

    /// Takes up a definition from disk. What it pins is hydrated when the server asks for it first.
    pub(super) fn restore_query(self: &Arc<Self>, query: NamedQuery) -> Result<(), QueryError> {
        // No runtime is needed: the future waits only for the store's own thread.
        let inner = Arc::clone(self);
        let restored = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .map_err(not_ready)?
                .block_on(inner.put_query(query, false))
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
        let mut registry = self.registry.lock();
        let removed = self.remove_named(&mut registry, name, "the query was removed");
        if removed && let Err(error) = self.store_named(&registry) {
            tracing::error!(%error, "the named queries could not be stored; {name} comes back after a restart");
        }
        removed
    }

    fn store_named(&self, registry: &Registry) -> std::io::Result<()> {
        self.named_file.store(registry.named.values().map(|named| &named.definition))
    }

    /// Removes a named query, tells those who subscribed by its name, and lets go of what it pinned.
    fn remove_named(&self, registry: &mut Registry, name: &str, message: &str) -> bool {
        let Some(gone) = registry.named.remove(name) else { return false };
        let now = Instant::now();
        if let Some((query, values, binding)) = gone.pinned
            && let Some(found) = registry.binding_mut(query, &values, binding)
        {
            found.pins -= 1;
            if found.pins == 0 && found.subscribers == 0 {
                found.idle = Some(Idle { until: now });
            }
        }
        let mut ended = Vec::new();
        for (&conn, subscriptions) in &mut registry.connections {
            subscriptions.retain(|&sub, subscription| {
                let ends = subscription.name.as_deref() == Some(name);
                if ends {
                    let fault = Fault { cause: FaultCause::Removed, message: message.to_owned() };
                    let _ = self.drain.control(Control::FaultSubscriber { conn, sub, fault });
                    ended.push(subscription.clone());
                }
                !ends
            });
        }
        ended.iter().for_each(|subscription| registry.release(subscription, now));
        true
    }

    pub(super) fn query(&self, name: &str) -> Option<(NamedQuery, QueryStatus)> {
        let registry = self.registry.lock();
        let named = registry.named.get(name)?;
        Some((named.definition.clone(), named_status(&registry, named)))
    }

    pub(super) fn queries(&self) -> Vec<(NamedQuery, QueryStatus)> {
        let registry = self.registry.lock();
        registry
            .named
            .values()
            .map(|named| (named.definition.clone(), named_status(&registry, named)))
            .collect()
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
    QueryStatus { subscribers, ..family.map(family_status).unwrap_or_default() }
}

/// A family's state but for its subscribers.
fn family_status(family: &Family) -> QueryStatus {
    QueryStatus {
        query: family.query.0,
        bindings: family.bindings.len(),
        rows: u64::try_from(family.gauges.rows.load(Relaxed)).unwrap_or(0),
        subscribers: family.bindings.values().map(|binding| binding.subscribers).sum(),
        last_advance_us: family.gauges.last_advance_ns.load(Relaxed) / 1_000,
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
