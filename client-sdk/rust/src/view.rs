//! A subscription as the application holds it.

use crate::{
    client::Handle,
    error::{Fault, SubscribeError},
    state::{Change, Rows},
};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tidegate_wire::model::{Cv, SubId};
use tokio::sync::Notify;

/// A live result. Dropping it ends the subscription.
pub struct View {
    handle: Arc<Handle>,
    sub: SubId,
    notify: Arc<Notify>,
}

/// Where a view stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewStatus {
    /// No result was released yet.
    Connecting,
    /// The result is complete and, while there is a connection, live. Without one it stands at the last release.
    Complete,
    /// The subscription has ended; the last result stays readable.
    Error(Fault),
}

/// What was released since the reader last looked.
#[derive(Clone, Debug)]
pub struct Update {
    /// The commit version that the result stands at.
    pub cv: Cv,
    /// The result.
    pub rows: Rows,
    /// What changed at the result's root since the update before: removed rows first, then the others in the
    /// result's order. Several releases are merged into what they come to, which may be nothing.
    pub changes: Vec<Change>,
    /// How many releases are in this update; more than 1 for a reader slower than the commits.
    pub releases: u64,
    /// Whether the reader was so slow that `changes` was given up and is empty: take `rows`.
    pub lagged: bool,
}

impl Update {
    /// `{"cv":n,"changes":[…]}`, as `tidegate watch --json` prints; `{"cv":n,"rows":[…]}` when the changes were
    /// given up.
    #[must_use]
    pub fn to_json(&self) -> Json {
        if self.lagged {
            return json!({"cv": self.cv, "rows": self.rows.to_json()});
        }
        json!({"cv": self.cv, "changes": self.changes.iter().map(Change::to_json).collect::<Vec<_>>()})
    }
}

impl View {
    pub(crate) fn new(handle: Arc<Handle>, sub: SubId, notify: Arc<Notify>) -> Self {
        Self { handle, sub, notify }
    }

    /// The number of the subscription in messages and logs.
    #[must_use]
    pub fn sub(&self) -> SubId {
        self.sub
    }

    /// The result at the last release; empty before the first. To read several views at one commit, use
    /// [`Client::snapshot`](crate::Client::snapshot).
    #[must_use]
    pub fn rows(&self) -> Rows {
        let core = self.handle.0.core.lock();
        core.slots.get(&self.sub).map(|slot| slot.rows.clone()).unwrap_or_default()
    }

    /// Where the view stands.
    #[must_use]
    pub fn status(&self) -> ViewStatus {
        let core = self.handle.0.core.lock();
        core.slots.get(&self.sub).map_or(ViewStatus::Connecting, |slot| slot.status.clone())
    }

    /// The next released change of the result, the first snapshot included (an empty one too); `None` after the
    /// subscription or the client has ended, see [`View::status`]. May be cancelled without losing an update.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            {
                let mut core = self.handle.0.core.lock();
                let slot = core.slots.get_mut(&self.sub)?;
                if let Some(update) = slot.take() {
                    return Some(update);
                }
                if slot.ended() {
                    return None;
                }
            }
            self.notify.notified().await;
        }
    }

    /// Waits until the server has taken or refused the subscription.
    ///
    /// # Errors
    /// When it is refused, or the client is closed.
    pub async fn accepted(&mut self) -> Result<(), SubscribeError> {
        loop {
            let answer = self.handle.0.core.lock().slots.get(&self.sub).and_then(|slot| slot.answer());
            if let Some(answer) = answer {
                // The wake-up may have been for an update as well, which `next` looks for before it waits.
                return answer;
            }
            self.notify.notified().await;
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.handle.0.call(|core, effects| {
            core.slots.remove(&self.sub);
            core.state.unsubscribe(self.sub, effects);
        });
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("sub", &self.sub).field("status", &self.status()).finish_non_exhaustive()
    }
}
