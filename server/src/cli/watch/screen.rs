//! A result on a terminal, redrawn in place: on the alternate screen, which goes away again at the end.

use super::grid::{Grid, Mark};
use console::{Style, Term, measure_text_width};
use std::{
    io::{self, Write as _},
    time::Duration,
};
use tidegate_client::{Status, Update};
use tokio::time::Instant;

/// Least time between two drawings; what is released in between is drawn together.
const DRAW_INTERVAL: Duration = Duration::from_millis(50);

/// For how long changed rows are marked.
const MARK_TIME: Duration = Duration::from_millis(1_500);

/// See the module's description.
pub struct Screen {
    title: String,
    note: String,
    grid: Option<Grid>,
    /// The last update, while it is not drawn.
    waiting: Option<(Update, bool)>,
    drawn_at: Instant,
    /// When the marks are taken away.
    marks_end: Option<Instant>,
    /// Whether something else than rows has changed.
    stale: bool,
}

impl Screen {
    /// Goes to the alternate screen. Dropping goes back.
    #[must_use]
    pub fn open(title: String) -> Self {
        let now = Instant::now();
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        // A terminal that takes no more shows in the first drawing.
        let _ = write(b"\x1b[?1049h\x1b[?25l");
        Self {
            title,
            note: String::new(),
            grid: None,
            waiting: None,
            drawn_at: now,
            marks_end: None,
            stale: true,
        }
    }

    /// Takes an update, and draws it unless the last drawing was just now.
    pub(super) fn show(&mut self, update: Update, is_first: bool) -> io::Result<()> {
        self.waiting = Some(match self.waiting.take() {
            // Only the later's changes will be marked.
            Some((_, was_first)) => (update, is_first || was_first),
            None => (update, is_first),
        });
        if is_first || self.drawn_at.elapsed() >= DRAW_INTERVAL { self.draw() } else { Ok(()) }
    }

    /// Takes how the connection is.
    pub(super) fn tell(&mut self, status: &Status) {
        self.note = match status {
            Status::Connected => String::new(),
            Status::Connecting => "connecting…".to_owned(),
            Status::Waiting { error, .. } => format!("reconnecting: {error}"),
            Status::Closed => "closed".to_owned(),
        };
        self.stale = true;
    }

    /// Waits until [`Screen::draw`] has something to do.
    pub(super) async fn redraw_due(&self) {
        let soon = (self.stale || self.waiting.is_some()).then_some(self.drawn_at + DRAW_INTERVAL);
        match soon.into_iter().chain(self.marks_end).min() {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Draws.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if let Some((update, is_first)) = self.waiting.take() {
            self.grid = Some(Grid::of(&update, !is_first));
            self.marks_end = Some(now + MARK_TIME);
        }
        let marked = self.marks_end.is_some_and(|end| now < end);
        if !marked {
            self.marks_end = None;
        }
        self.stale = false;
        self.drawn_at = now;
        let (height, width) = Term::stdout().size();
        let (height, width) = (usize::from(height).max(4), usize::from(width).max(20));
        let mut lines = vec![Style::new().bold().apply_to(fit(&self.title, width)).to_string()];
        let summary = self.grid.as_ref().map(Grid::summary).unwrap_or_default();
        let note = if self.note.is_empty() { summary } else { format!("{summary} · {}", self.note) };
        lines.push(Style::new().dim().apply_to(fit(&note, width)).to_string());
        let rows = self.grid.as_ref().map(Grid::lines).unwrap_or_default();
        let room = height - lines.len();
        let shown = if rows.len() > room { room - 1 } else { rows.len() };
        for (index, (mark, line)) in rows.iter().take(shown).enumerate() {
            let style = match mark {
                Mark::Added if marked => Style::new().black().on_green(),
                Mark::Edited if marked => Style::new().black().on_yellow(),
                _ if index == 0 => Style::new().underlined(),
                _ => Style::new(),
            };
            lines.push(style.apply_to(fit(line, width)).to_string());
        }
        if shown < rows.len() {
            lines.push(format!("… {} more rows", rows.len() - shown));
        }
        let mut out = "\x1b[H".to_owned();
        for (index, line) in lines.iter().enumerate() {
            out += if index > 0 { "\r\n" } else { "" };
            out += line;
            out += "\x1b[K";
        }
        write((out + "\x1b[J").as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The process is ending; there is nobody to tell.
        let _ = write(b"\x1b[?25h\x1b[?1049l");
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// As much of a line as the terminal is wide.
fn fit(line: &str, width: usize) -> String {
    if measure_text_width(line) <= width {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += measure_text_width(c.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn lines_fit_the_terminal() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("日本語", 5), "日本…");
    }
}
