//! What a figure came to, and how it is printed.

use crate::{figure::Figure, machine::Machine};
use serde_json::{Map, Value as Json, json};

/// What a figure came to.
#[derive(Debug)]
pub(crate) struct Report {
    /// The measured values that the target speaks of, for people.
    pub(crate) measured: String,
    /// Whether the target is reached.
    pub(crate) reached: bool,
    /// What else is worth knowing: how it was measured, values without a target.
    pub(crate) notes: Vec<String>,
    /// All values, for programs; units in the names.
    pub(crate) values: Map<String, Json>,
}

impl Report {
    /// A report without notes and values.
    pub(crate) fn new(measured: impl Into<String>, reached: bool) -> Self {
        Self { measured: measured.into(), reached, notes: Vec::new(), values: Map::new() }
    }

    /// Adds a note.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds a value.
    pub(crate) fn value(mut self, name: impl Into<String>, value: impl Into<Json>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }
}

fn verdict(report: &Report) -> &'static str {
    if report.reached { "reached" } else { "NOT reached" }
}

/// Prints one report with its notes.
pub(crate) fn print(figure: &Figure, report: &Report) {
    println!("{}: {} ({}; {})", figure.name, report.measured, figure.target, verdict(report));
    for note in &report.notes {
        println!("    {note}");
    }
}

/// Prints all reports as the table of the README.
pub(crate) fn print_table(reports: &[(&Figure, Report)]) {
    println!("\n| figure | what | measured | target | |\n| --- | --- | --- | --- | --- |");
    for (figure, report) in reports {
        let Figure { name, what, target, .. } = figure;
        println!("| {name} | {what} | {} | {target} | {} |", report.measured, verdict(report));
    }
}

/// All reports as one object.
pub(crate) fn json(machine: &Machine, reports: &[(&Figure, Report)]) -> Json {
    let figures = reports.iter().map(|(figure, report)| {
        json!({
            "name": figure.name, "what": figure.what, "target": figure.target, "measured": report.measured,
            "reached": report.reached, "notes": report.notes, "values": report.values,
        })
    });
    json!({"machine": machine.json(), "figures": figures.collect::<Vec<_>>()})
}
