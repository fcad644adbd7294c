//! Log lines on stderr.

use crate::config::settings::TelemetrySettings;
use std::io;
use tracing_subscriber::EnvFilter;

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
#[error(
    "telemetry.log_filter is {filter:?}, which is not a filter such as info or tidegate_server=debug: {cause}"
)]
pub struct FilterError {
    filter: String,
    cause: tracing_subscriber::filter::ParseError,
}

/// Installs the process's log subscriber. A subscriber that is there already stays.
///
/// # Errors
/// When the filter cannot be read.
pub fn install(settings: &TelemetrySettings) -> Result<(), FilterError> {
    let filter = EnvFilter::try_new(&settings.log_filter)
        .map_err(|cause| FilterError { filter: settings.log_filter.clone(), cause })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // An error means that the process, a test perhaps, has a subscriber of its own.
    let _ = match settings.log_format.as_str() {
        "json" => builder.json().try_init(),
        _ => builder.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).try_init(),
    };
    Ok(())
}
