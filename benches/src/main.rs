//! Measures the figures that the project promises and prints them beside their targets:
//! `cargo run --release -p tidegate-benches -- [NAME…] [--json]`. `benches/README.md` says how to read them.
//!
//! Every figure checks in the same run that what it measured was right (a maintained result equals a fresh one, no
//! frame is missing) and ends the program with an error when it was not.

mod board;
mod broadcaster;
mod database;
mod engine;
mod figure;
mod figures;
mod issues;
mod load;
mod machine;
mod report;
mod sample;
mod serving;
mod view;

use anyhow::{Context as _, bail};
use clap::Parser;
use figure::{FIGURES, Figure};
use mimalloc::MiMalloc;
use std::{ffi::OsString, process::ExitCode};

/// The server's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measure Tidegate's figures.
#[derive(Debug, Parser)]
#[command(
    after_help = "Names: latency advance families hydrate top fanout watchers first-result apply memory groups hydrate-join tpch nexmark"
)]
struct Arguments {
    /// The figures to measure; all of them when none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    // The program runs itself as the other process of a figure: its clients, or a measurement that needs fresh memory.
    let done = if arguments.get(1).is_some_and(|argument| argument == load::CHILD) {
        let rest = arguments.split_off(2);
        load::child(&rest)
    } else {
        measure(&Arguments::parse())
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(unknown) = arguments.names.iter().find(|name| !FIGURES.iter().any(|it| it.name == **name)) {
        bail!("there is no figure {unknown}; see --help for their names");
    }
    let named = |figure: &&Figure| {
        arguments.names.is_empty() || arguments.names.iter().any(|name| name == figure.name)
    };
    let machine = machine::Machine::now();
    if !arguments.json {
        println!("{machine}");
    }
    let mut reports = Vec::new();
    for figure in FIGURES.iter().filter(named) {
        eprintln!("measuring {} …", figure.name);
        let report = (figure.measure)().with_context(|| format!("figure {} is void", figure.name))?;
        if !arguments.json {
            report::print(figure, &report);
        }
        reports.push((figure, report));
    }
    if arguments.json {
        println!("{}", report::json(&machine, &reports));
    } else {
        report::print_table(&reports);
    }
    Ok(())
}
