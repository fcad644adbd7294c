//! A child process and the lines it exchanges with its parent.

use anyhow::{Context as _, ensure};
use serde_json::Value as Json;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

/// A running child; killed when it is dropped before its end.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program as a child with such arguments.
    pub(crate) fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut process = Command::new(program)
            .arg(super::CHILD)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the child process")?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().context("the child's stdout is piped")?);
        Ok(Self { process, input, output })
    }

    /// Sends the child a line.
    pub(crate) fn say(&mut self, line: &Json) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("the child's stdin is open until its end")?;
        writeln!(input, "{line}").context("the child process ended early; its error stands above")
    }

    /// Waits for the child's next line.
    pub(crate) fn hear(&mut self) -> anyhow::Result<Json> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the child process ended early; its error stands above");
        Ok(serde_json::from_str(&line)?)
    }

    /// Closes the child's stdin and waits for its end.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.input = None;
        let status = self.process.wait()?;
        ensure!(status.success(), "the child process failed: {status}");
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail once it has ended, which is as well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In a child: sends the parent a line.
pub(crate) fn tell(line: &Json) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
