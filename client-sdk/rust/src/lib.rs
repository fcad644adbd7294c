//! The Rust client of Tidegate: live queries over a WebSocket, released one commit at a time.
//!
//! ```no_run
//! use serde_json::json;
//! use tidegate_client::{Client, Query};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("http://127.0.0.1:7300").await?;
//! let query = json!({"table": "issues", "order_by": [["created", "desc"]], "limit": 50, "related": [
//!     {"as": "comments", "on": [["id", "issue_id"]], "query": {"table": "comments"}}]});
//! let mut view = client.subscribe(Query::json(query)).await?;
//! while let Some(update) = view.next().await {
//!     for issue in &update.rows {
//!         println!("{:?}: {} comments", issue.get("title"), issue.many("comments").map_or(0, |c| c.len()));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! At every moment the results of all views stand at one commit, [`Client::cv`]. A lost connection is made again by
//! itself; meanwhile results stand, and then continue from where they were, without an empty moment between.
//!
//! Inside, the flow is `transport → connection → state → view`: `state` is a pure machine (messages in, effects
//! out), `connection` drives it, [`transport`] carries its frames.

mod address;
mod backoff;
mod client;
mod connection;
pub mod error;
mod mutation;
mod options;
mod query;
mod shared;
mod state;
pub mod transport;
mod view;

pub use client::{Client, Snapshot, Status};
pub use error::{ConnectError, ErrorCode, Fault, MutationError, SubscribeError};
pub use mutation::{MutationHandle, delete, insert, update};
pub use options::{ClientOptions, TokenProvider};
pub use query::Query;
pub use state::{Change, ChangeKind, Children, Node, Rows, RowsIter, Violation};
pub use tidegate_wire::{
    codec::Codec,
    model::{Cv, SubId, Value, ValueRef, commit::RowOp},
};
pub use view::{Update, View, ViewStatus};
