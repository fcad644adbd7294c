//! Configuration: `tidegate.toml`, environment variables and flags, checked against one table of settings.
//!
//! Precedence: flags, then environment, then file, then defaults.

pub mod docs;
pub mod host;
pub mod load;
pub mod settings;

pub use host::{Host, HostPattern};
pub use load::{ConfigError, Override, load};
pub use settings::{Config, Kind, RawValue, Setting};
