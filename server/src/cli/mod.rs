//! The command line. Each subcommand exits 0 on success, 2 on bad usage, and 1 on failure with one line on stderr that
//! says what went wrong and what to do.

pub mod check;
pub mod client;
pub mod demo;
pub mod query_text;
pub mod replay;
pub mod serve;
pub mod sql;
pub mod status;
pub mod table;
pub mod watch;

use clap::{Parser, Subcommand};
use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// Keeps queries live and pushes row changes over WebSockets.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    arg_required_else_help = true,
    after_help = "Start here:\n  tidegate demo                        see a live board\n  tidegate serve --data-dir ./data     run a server\n  tidegate status                      see how it is doing\n\nClient commands use http://127.0.0.1:7300, --url or TIDEGATE_URL."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Demo(demo::Arguments),
    Watch(watch::Arguments),
    Replay(replay::Arguments),
    Sql(sql::Arguments),
    Check(check::Arguments),
    Status(status::Arguments),
}

/// Why a command ends with another exit code than 0.
#[derive(Debug)]
pub enum Failure {
    /// It was called wrongly: exit code 2.
    Usage(String),
    /// It failed: exit code 1.
    Failed(String),
    /// It has said everything itself: exit code 1.
    Silent,
}

/// Writes to stdout at once.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes a command's whole output to stdout. A reader that went away has seen enough.
fn finish_with(text: &str) -> Result<(), Failure> {
    match print(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// A positive number, as rates and speeds are.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("it must be a number above 0".to_owned()),
    }
}

/// Runs the command that the process's arguments name.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Sql(arguments) => sql::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
    };
    let (text, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => (text, 2),
        Err(Failure::Failed(text)) => (text, 1),
        Err(Failure::Silent) => return ExitCode::from(1),
    };
    eprintln!("tidegate: {}", text.replace('\n', " "));
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound_and_every_command_explains_itself() {
        let mut command = Arguments::command();
        command.clone().debug_assert();
        for name in ["serve", "demo", "watch", "replay", "sql", "check", "status"] {
            let subcommand = command.find_subcommand_mut(name).expect("there");
            let help = subcommand.render_long_help().to_string();
            assert!(help.contains("Example"), "{name} has no example:\n{help}");
        }
    }
}
