//! Posts lines to the server, one request at a time.

use super::stream::Line;
use crate::cli::{
    Failure,
    client::{self, ServerUrl},
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tidegate_wire::{model::Cv, protocol::ErrorCode};
use ureq::Agent;

/// A stream is a whole database's history: it is refused where part of it is there already.
const CONFLICT_HINT: &str =
    ". A stream wants a server without its rows: start one with another --data-dir (\"\" is in memory only)";

/// See the module's description.
pub struct Poster {
    agent: Agent,
    url: ServerUrl,
    /// The file the lines come from, for messages.
    file: PathBuf,
    body: Vec<u8>,
}

impl Poster {
    /// Posts to a server.
    #[must_use]
    pub fn new(url: ServerUrl, file: &Path) -> Self {
        Self { agent: client::agent(None), url, file: file.to_owned(), body: Vec::new() }
    }

    /// The server's newest commit version.
    ///
    /// # Errors
    /// When the server cannot be reached or is not ready.
    pub fn newest_cv(&self) -> Result<Cv, Failure> {
        let answer = self.agent.get(self.url.http("/v1/status")).call();
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
        let url = self.url.http("/v1/commits");
        let request = self.agent.post(url).header("content-type", "application/x-ndjson");
        self.answer(request.send(&self.body[..]), lines)
    }

    fn answer(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        lines: &[Line],
    ) -> Result<Cv, Failure> {
        let url = &self.url;
        let mut response = response.map_err(|error| url.unreachable(&error))?;
        let status = response.status();
        let body: Value = response.body_mut().read_json().map_err(|_| url.not_json(status))?;
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
                let hint = if code == ErrorCode::Conflict.name() { CONFLICT_HINT } else { "" };
                format!(
                    "{file} line {number} is refused: {message} ({code}); the lines before it are applied, those after it are not{hint}"
                )
            }
            None => format!("{url} answered {status}: {message} ({code})"),
        }))
    }
}
