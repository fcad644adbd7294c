//! Posts lines to the server, one request at a time.

use super::stream::Line;
use crate::cli::Failure;
use serde_json::Value;
use std::{path::Path, path::PathBuf, time::Duration};
use tidegate_wire::model::Cv;
use ureq::Agent;

/// See the module's description.
pub struct Poster {
    agent: Agent,
    url: String,
    /// The file the lines come from, for messages.
    file: PathBuf,
    body: Vec<u8>,
}

impl Poster {
    /// Posts to a server.
    ///
    /// # Errors
    /// When the address is not one.
    pub fn new(url: &str, file: &Path) -> Result<Self, Failure> {
        if !url.starts_with("http://") {
            return Err(Failure::Usage(format!("--url must start with http://, not {url}")));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(5)))
            .build();
        Ok(Self {
            agent: Agent::new_with_config(config),
            url: url.trim_end_matches('/').to_owned(),
            file: file.to_owned(),
            body: Vec::new(),
        })
    }

    /// The server's newest commit version.
    ///
    /// # Errors
    /// When the server cannot be reached or is not ready.
    pub fn newest_cv(&self) -> Result<Cv, Failure> {
        let answer = self.agent.get(format!("{}/v1/status", self.url)).call();
        self.answer(answer, &[])
    }

    /// Posts lines and waits until they are durable; the commit version of the last.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses a line.
    pub fn post(&mut self, lines: &[Line]) -> Result<Cv, Failure> {
        self.body.clear();
        for line in lines {
            self.body.extend_from_slice(&line.text);
            self.body.push(b'\n');
        }
        let request = self
            .agent
            .post(format!("{}/v1/commits", self.url))
            .header("content-type", "application/x-ndjson");
        self.answer(request.send(&self.body[..]), lines)
    }

    fn answer(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        lines: &[Line],
    ) -> Result<Cv, Failure> {
        let url = &self.url;
        let unreachable = |error: ureq::Error| {
            Failure::Failed(format!("cannot reach {url}: {error}; is the server running? (tidegate serve)"))
        };
        let mut response = response.map_err(unreachable)?;
        let status = response.status();
        let body: Value = response.body_mut().read_json().map_err(|error| {
            Failure::Failed(format!("{url} answered {status} with what is not JSON: {error}"))
        })?;
        if let (true, Some(cv)) = (status.is_success(), body["cv"].as_u64()) {
            return Ok(Cv(cv));
        }
        let error = &body["error"];
        let code = error["code"].as_str().unwrap_or("?");
        let message = error["message"].as_str().unwrap_or("?");
        // The server counts lines in the request.
        let at = error["line"].as_u64().and_then(|line| {
            let index = usize::try_from(line).ok()?.checked_sub(1)?;
            Some((line, lines.get(index)?.number))
        });
        Err(Failure::Failed(match at {
            Some((line, number)) => {
                let message = message.strip_prefix(&format!("line {line}: ")).unwrap_or(message);
                let file = self.file.display();
                format!(
                    "{file} line {number} is refused: {message} ({code}); the lines before it are applied, those after it are not"
                )
            }
            None => format!("{url} answered {status}: {message} ({code})"),
        }))
    }
}
