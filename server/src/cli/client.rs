//! What commands share that talk to a running server.

use super::Failure;
use clap::Args;
use serde_json::Value;
use std::time::Duration;

/// Which server.
#[derive(Clone, Debug, Args)]
pub struct Target {
    /// The server
    #[arg(long, env = "TIDEGATE_URL", default_value = "http://127.0.0.1:7300", value_name = "URL")]
    pub url: String,
}

impl Target {
    /// The answer to a GET.
    ///
    /// # Errors
    /// When the server cannot be reached or answers with an error.
    pub fn get(&self, path: &str, limit: Duration) -> Result<Value, Failure> {
        if !self.url.starts_with("http://") {
            return Err(Failure::Usage(format!("--url must start with http://, not {}", self.url)));
        }
        let url = format!("{}{path}", self.url.trim_end_matches('/'));
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(limit))
            .timeout_connect(Some(Duration::from_secs(5)))
            .build();
        let mut response = ureq::Agent::new_with_config(config).get(&url).call().map_err(|error| {
            Failure::Failed(format!(
                "cannot reach {}: {error}; is the server running? (tidegate serve)",
                self.url
            ))
        })?;
        let status = response.status();
        let body: Value = response.body_mut().with_config().limit(1 << 30).read_json().map_err(|error| {
            Failure::Failed(format!("{url} answered {status} with what is not JSON: {error}"))
        })?;
        if status.is_success() {
            return Ok(body);
        }
        let part = |name: &str| body["error"][name].as_str().unwrap_or("?").to_owned();
        Err(Failure::Failed(format!("{url} answered {status}: {} ({})", part("message"), part("code"))))
    }
}
