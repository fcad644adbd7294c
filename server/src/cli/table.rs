//! Plain tables for people.

/// Rows under headings, columns as wide as their widest cell. Numbers stand to the right.
#[must_use]
pub fn render(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let numeric = |column: usize| {
        !rows.is_empty()
            && rows.iter().all(|row| row[column].parse::<f64>().is_ok() || row[column].is_empty())
    };
    let rights: Vec<bool> = (0..headings.len()).map(numeric).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(&widths).zip(&rights).map(|((cell, &width), &right)| {
            if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut out = line(headings);
    for row in rows {
        out += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "7".to_owned()], vec!["ünïcode".to_owned(), "1234".to_owned()]];
        assert_eq!(render(&["name", "n"], &rows), "name        n\na           7\nünïcode  1234\n");
    }
}
