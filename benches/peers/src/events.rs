//! The file of events: one a line, fields separated by commas, an empty line after each commit.

use anyhow::{Context as _, bail};

/// Columns of an event that the queries read.
#[derive(Clone, Debug)]
pub enum Event {
    Person { id: i64, name: String, city: String, state: String },
    Auction { id: i64, seller: i64, category: i64, starts: i64, expires: i64 },
    Bid { auction: i64, price: i64, at: i64 },
}

/// Reads commits.
///
/// # Errors
/// When a line is not an event.
pub fn commits(text: &str) -> anyhow::Result<Vec<Vec<Event>>> {
    let mut commits = vec![Vec::new()];
    for line in text.lines() {
        if line.is_empty() {
            commits.push(Vec::new());
        } else {
            let event = event(line).with_context(|| format!("not an event: {line}"))?;
            commits.last_mut().expect("there is one").push(event);
        }
    }
    commits.pop();
    Ok(commits)
}

fn event(line: &str) -> anyhow::Result<Event> {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |at: usize| fields.get(at).context("a field is missing")?.parse::<i64>().context("not a number");
    let text = |at: usize| fields.get(at).map(|it| (*it).to_owned()).context("a field is missing");
    Ok(match fields[0] {
        "person" => Event::Person { id: number(1)?, name: text(2)?, city: text(3)?, state: text(4)? },
        "auction" => Event::Auction {
            id: number(1)?,
            seller: number(2)?,
            category: number(3)?,
            starts: number(4)?,
            expires: number(5)?,
        },
        "bid" => Event::Bid { auction: number(1)?, price: number(2)?, at: number(3)? },
        other => bail!("{other} is no kind of event"),
    })
}

/// Whether query 3 asks for a state.
pub fn is_local(state: &str) -> bool {
    matches!(state, "or" | "id" | "ca")
}
