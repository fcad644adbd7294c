//! The client's state machine: messages and calls in, effects out. No I/O, no clock, no threads; the connection
//! drives it, and tests do.
//!
//! It guarantees `commit_is_atomic_for_a_client`: batches wait until `progress` covers them, then all subscriptions
//! take their part in one step. A subscription that shows a result but has to catch up first, after a reconnect or
//! in a new epoch, holds the step back until it can take part, so that everything shown stays at one commit.

mod batch;
mod change;
mod effect;
mod message_limits;
mod mutations;
mod node;
mod pool;
mod result_tree;
mod sequence;
mod shape;
mod subscription;
mod violation;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod random_query;
#[cfg(test)]
mod script;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod tests;

pub use change::{Change, ChangeKind};
pub use node::{Children, Node, Rows, RowsIter};
pub use violation::Violation;

pub(crate) use change::Changes;
pub(crate) use effect::{Effect, Release, ReleasedResult};

use crate::{
    error::{Fault, MutationError},
    query::Query,
};
use message_limits::MessageLimits;
use mutations::Mutations;
use pool::Pool;
use std::collections::{BTreeMap, BTreeSet};
use subscription::Subscription;
use tidegate_wire::{
    codec::Codec,
    model::{Cv, SubId, ValueRef, commit::RowOp},
    protocol::{
        ClientMessage, ErrorCode, ServerMessage,
        client::{Auth, Hello, Unsubscribe},
        server::{Batch, ErrorMessage, Faulted, Progress, Subscribed},
    },
};

/// The subscription that the server announces by itself: the client's own row of the mutations table.
const OWN: SubId = SubId(0);
/// The column of that row which counts.
const LAST_MUTATION_ID: &str = "last_mutation_id";

/// What a state machine is made with.
#[derive(Clone, Debug)]
pub(crate) struct StateOptions {
    /// Names the client across connections and processes; needed for mutations.
    pub(crate) client_id: Option<String>,
    /// Most mutations that may wait for their confirmation.
    pub(crate) mutations_max: usize,
    /// Most operations that may wait for their release.
    pub(crate) waiting_ops_max: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct State {
    options: StateOptions,
    subscriptions: BTreeMap<SubId, Subscription>,
    next_sub: SubId,
    pool: Pool,
    /// The present connection's codec; `None` without one.
    connection: Option<Codec>,
    /// The present connection's last progress.
    cv_min: Option<Cv>,
    /// The commit version that everything shown stands at.
    released: Cv,
    /// Subscriptions with batches that wait.
    waiting: BTreeSet<SubId>,
    /// Operations that wait, over all subscriptions.
    waiting_ops: usize,
    /// Subscriptions that show a result and have to catch up before anything is released.
    catching_up: BTreeSet<SubId>,
    /// Whether a release that was due waits for `catching_up`.
    held_back: bool,
    mutations: Mutations,
    /// What the last server that was welcoming takes.
    limits: MessageLimits,
}

impl State {
    /// A client without a connection.
    pub(crate) fn new(options: StateOptions) -> Self {
        Self {
            mutations: Mutations::new(options.mutations_max),
            options,
            subscriptions: BTreeMap::new(),
            next_sub: SubId(1),
            pool: Pool::default(),
            connection: None,
            cv_min: None,
            released: Cv(0),
            waiting: BTreeSet::new(),
            waiting_ops: 0,
            catching_up: BTreeSet::new(),
            held_back: false,
            limits: MessageLimits::default(),
        }
    }

    /// The commit version that everything shown stands at.
    pub(crate) fn released(&self) -> Cv {
        self.released
    }

    /// Rows held, each counted once however many subscriptions hold it.
    pub(crate) fn rows_held(&self) -> usize {
        self.pool.len()
    }

    /// A connection is there: introduces the client and asks again for everything.
    pub(crate) fn connect(&mut self, codec: Codec, token: Option<String>, effects: &mut Vec<Effect>) {
        self.connection = Some(codec);
        let client_id = self.options.client_id.clone();
        effects.push(Effect::Send(ClientMessage::Hello(Hello { client_id, token })));
        for subscription in self.subscriptions.values() {
            if subscription.tree.is_some() {
                self.catching_up.insert(subscription.sub);
            }
        }
        let subs: Vec<SubId> = self.subscriptions.keys().copied().collect();
        subs.into_iter().for_each(|sub| self.ask(sub, effects));
    }

    /// Asks the server for a subscription, if that is due; one that no message holds ends.
    fn ask(&mut self, sub: SubId, effects: &mut Vec<Effect>) {
        let subscription = self.subscriptions.get_mut(&sub).expect("asked for what is there");
        let Some(subscribe) = subscription.subscribe() else { return };
        let message = ClientMessage::Subscribe(Box::new(subscribe));
        match self.limits.check(&message) {
            Ok(()) => effects.push(Effect::Send(message)),
            Err(Fault { code, message, retry }) => {
                self.faulted(Faulted { sub, code, message, retry }, effects)
            }
        }
    }

    /// The connection is gone. What is shown stays; what waited for its release is dropped, to come again.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
        self.cv_min = None;
        self.held_back = false;
        self.catching_up.clear();
        self.waiting.clear();
        self.waiting_ops = 0;
        self.mutations.disconnect();
        if let Some(own) = self.subscriptions.remove(&OWN) {
            self.dissolve(own);
        }
        for subscription in self.subscriptions.values_mut() {
            subscription.retire(self.released);
        }
    }

    /// Adds a subscription.
    pub(crate) fn subscribe(&mut self, query: Query, effects: &mut Vec<Effect>) -> SubId {
        let sub = self.next_sub;
        self.next_sub = sub.next();
        self.subscriptions.insert(sub, Subscription::new(sub, Some(query)));
        if self.connection.is_some() {
            self.ask(sub, effects);
        }
        sub
    }

    /// Ends a subscription; one that has ended already is passed over.
    pub(crate) fn unsubscribe(&mut self, sub: SubId, effects: &mut Vec<Effect>) {
        if !self.end(sub) {
            return;
        }
        if self.connection.is_some() {
            effects.push(Effect::Send(ClientMessage::Unsubscribe(Unsubscribe { sub })));
        }
        self.release_held_back(effects);
    }

    /// Queues a mutation; returns its ticket.
    pub(crate) fn push(&mut self, ops: Vec<RowOp>, effects: &mut Vec<Effect>) -> Result<u64, MutationError> {
        if self.options.client_id.is_none() {
            return Err(MutationError::NoClientId);
        }
        self.mutations.push(ops, effects)
    }

    /// The id of a mutation that is not settled yet, once it has one.
    pub(crate) fn mutation_id(&self, ticket: u64) -> Option<u64> {
        self.mutations.id(ticket)
    }

    /// Replaces the token on the present connection.
    pub(crate) fn authenticate(&mut self, token: String, effects: &mut Vec<Effect>) {
        if self.connection.is_some() {
            effects.push(Effect::Send(ClientMessage::Auth(Auth { token })));
        }
    }

    /// Takes a message of the present connection in.
    pub(crate) fn receive(&mut self, message: ServerMessage, effects: &mut Vec<Effect>) {
        let Some(codec) = self.connection else { return };
        let outcome = match message {
            ServerMessage::Welcome(welcome) => {
                self.limits = MessageLimits::announced(codec, &welcome.limits);
                self.mutations.limit(self.limits);
                effects.push(Effect::Welcomed);
                Ok(())
            }
            ServerMessage::Subscribed(subscribed) => self.subscribed(subscribed, effects),
            ServerMessage::Batch(batch) => self.batch(&batch, codec, effects),
            ServerMessage::Progress(progress) => self.progress(progress, effects),
            ServerMessage::Faulted(faulted) => {
                self.faulted(faulted, effects);
                Ok(())
            }
            ServerMessage::Error(error) => {
                self.error(error, effects);
                Ok(())
            }
            ServerMessage::PushResult(result) => {
                self.mutations.answered(result, effects);
                Ok(())
            }
            ServerMessage::Goaway(goaway) => {
                let (code, message, after_ms) = (goaway.code, goaway.message, goaway.retry_after_ms);
                effects.push(Effect::Reconnect { code, message, after_ms });
                Ok(())
            }
            ServerMessage::Pong(_) => Ok(()),
        };
        if let Err(violation) = outcome {
            effects.push(Effect::Violation(violation));
        }
    }

    fn subscribed(&mut self, subscribed: Subscribed, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let sub = subscribed.sub;
        if sub == OWN && self.options.client_id.is_some() {
            self.subscriptions.entry(OWN).or_insert_with(|| Subscription::new(OWN, None));
        }
        // Unsubscribed in the meantime: its frames are under way still.
        let Some(subscription) = self.subscriptions.get_mut(&sub) else { return Ok(()) };
        let first = subscription.live.is_none();
        self.waiting_ops -= subscription.retire(self.released);
        self.waiting.remove(&sub);
        subscription.begin(subscribed)?;
        if subscription.tree.is_some() {
            self.catching_up.insert(sub);
        }
        if first && sub != OWN {
            effects.push(Effect::Subscribed(sub));
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch, codec: Codec, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let Some(subscription) = self.subscriptions.get_mut(&batch.sub) else { return Ok(()) };
        let Some(ops) = subscription.batch(batch, self.cv_min, codec)? else { return Ok(()) };
        self.waiting_ops += ops;
        self.waiting.insert(batch.sub);
        let max = self.options.waiting_ops_max;
        if self.waiting_ops > max {
            return Err(Violation::QueuesAreBounded { max });
        }
        if batch.sub == OWN && subscription.complete() {
            // The count is looked at ahead of its release: what it covers need not be sent again.
            let column = subscription.live.as_ref().and_then(|live| {
                let table = live.shape.layout.tables.first()?;
                table.columns.iter().position(|column| column.name == LAST_MUTATION_ID)
            });
            let last = subscription.waiting_ops().rev().find_map(|op| match op.cell(column?) {
                Some(ValueRef::Int8(last)) => u64::try_from(last).ok(),
                _ => None,
            });
            self.mutations.counted(last.unwrap_or(0), effects);
        }
        Ok(())
    }

    fn progress(&mut self, progress: Progress, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let to = progress.cv_min;
        if let Some(from) = self.cv_min.filter(|&from| from > to) {
            return Err(Violation::ProgressIsIrrevocable { from, to });
        }
        self.cv_min = Some(to);
        self.release(to, effects)
    }

    /// Shows everything up to `cv_min`, all subscriptions in one step.
    fn release(&mut self, cv_min: Cv, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let subscriptions = &self.subscriptions;
        self.catching_up.retain(|sub| subscriptions.get(sub).is_some_and(|s| !s.ready(cv_min)));
        self.held_back = !self.catching_up.is_empty();
        if self.held_back {
            return Ok(());
        }
        // Everything is checked before anything is applied, so that a violation leaves the shown state whole.
        let mut prepared = Vec::with_capacity(self.waiting.len());
        for &sub in &self.waiting {
            let Some(subscription) = self.subscriptions.get_mut(&sub) else { continue };
            match subscription.prepare(cv_min) {
                Ok(Some(release)) => prepared.push((sub, release)),
                Ok(None) => {}
                Err(violation) => {
                    subscription.distrust();
                    return Err(violation);
                }
            }
        }
        self.released = cv_min;
        let mut results = Vec::with_capacity(prepared.len());
        let mut count = None;
        for (sub, release) in prepared {
            let subscription = self.subscriptions.get_mut(&sub).expect("prepared above");
            let first = subscription.tree.is_none();
            let (changes, waited) = subscription.apply(release, &mut self.pool);
            self.waiting_ops -= waited;
            if !subscription.waits() {
                self.waiting.remove(&sub);
            }
            let rows = subscription.tree.as_ref().expect("released").rows();
            if sub == OWN {
                let last =
                    rows.first().and_then(|row| row.get(LAST_MUTATION_ID)?.to_value().to_json().as_u64());
                count = Some(last.unwrap_or(0));
            } else if first || changes.len() > 0 {
                results.push(ReleasedResult { sub, rows, changes });
            }
        }
        effects.push(Effect::Released(Release { cv: cv_min, results }));
        if let Some(last) = count {
            self.mutations.released(last, cv_min, effects);
        }
        Ok(())
    }

    fn release_held_back(&mut self, effects: &mut Vec<Effect>) {
        if self.held_back
            && let Some(cv_min) = self.cv_min
            && let Err(violation) = self.release(cv_min, effects)
        {
            effects.push(Effect::Violation(violation));
        }
    }

    fn faulted(&mut self, faulted: Faulted, effects: &mut Vec<Effect>) {
        let Faulted { sub, code, message, retry } = faulted;
        let known = self.end(sub);
        if sub == OWN && retry {
            // Without this row nothing may be sent, and nothing is confirmed.
            effects.push(Effect::Reconnect { code, message, after_ms: 0 });
        } else if sub == OWN {
            self.mutations.cannot_write(effects);
        } else if known {
            effects.push(Effect::Ended { sub, fault: Fault { code, message, retry } });
        }
        self.release_held_back(effects);
    }

    fn error(&mut self, error: ErrorMessage, effects: &mut Vec<Effect>) {
        let ErrorMessage { code, message, sub } = error;
        let unanswered = |sub: &SubId| self.subscriptions.get(sub).is_some_and(|s| s.live.is_none());
        match sub.filter(unanswered) {
            Some(_)
                if matches!(code, ErrorCode::NotReady | ErrorCode::ShuttingDown | ErrorCode::SlowClient) =>
            {
                effects.push(Effect::Reconnect { code, message, after_ms: 0 });
            }
            Some(sub) => {
                self.end(sub);
                let retry = matches!(code, ErrorCode::TooManySubscriptions | ErrorCode::Internal);
                effects.push(Effect::Ended { sub, fault: Fault { code, message, retry } });
                self.release_held_back(effects);
            }
            None => effects.push(Effect::ServerError { code, message }),
        }
    }

    /// Takes a subscription out; whether it was there.
    fn end(&mut self, sub: SubId) -> bool {
        let Some(mut subscription) = self.subscriptions.remove(&sub) else { return false };
        self.waiting_ops -= subscription.retire(self.released);
        self.waiting.remove(&sub);
        self.catching_up.remove(&sub);
        self.dissolve(subscription);
        true
    }

    fn dissolve(&mut self, subscription: Subscription) {
        if let Some(tree) = subscription.tree {
            tree.dissolve(&mut self.pool);
        }
    }
}
