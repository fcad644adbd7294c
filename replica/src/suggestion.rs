//! What to write instead of a name that nothing has: the nearest one, or those that there are. Called wherever a name is
//! looked up, on the way to a refusal.

use crate::store::{Snapshot, system_tables::CLIENT_MUTATIONS_NAME};
use strsim::osa_distance;
use tidegate_wire::model::TableSchema;

/// Most names that are compared.
const NAMES_MAX: usize = 1_000;

/// Longest name that is compared, bytes.
const NAME_BYTES_MAX: usize = 64;

/// Most names that are listed.
const LISTED_MAX: usize = 10;

/// What a refusal of `wanted` ends with. Nothing when there are no names.
#[must_use]
pub fn suggestion<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if let Some(near) = nearest(wanted, &names) {
        return format!("; did you mean {}?", written(near));
    }
    let listed = names.iter().take(LISTED_MAX).map(|name| written(name)).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => String::new(),
        1..=LISTED_MAX => format!("; known here: {listed}"),
        all => format!("; known here: {listed} and {} more", all - LISTED_MAX),
    }
}

/// A name as it is to be written: in quotes where SQL needs them, which JSON has anyway.
fn written(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if name.bytes().all(is_plain) { name.to_owned() } else { format!("\"{name}\"") }
}

/// The name that takes the fewest letters to change, at most a third of the longer one's and never all, whatever their case.
fn nearest<'n>(wanted: &str, names: &[&'n str]) -> Option<&'n str> {
    if wanted.len() > NAME_BYTES_MAX {
        return None;
    }
    let length = wanted.chars().count();
    let far = |name: &str| (name.chars().count().max(length).max(3) / 3).min(length.saturating_sub(1));
    let wanted = wanted.to_lowercase();
    let comparable = names.iter().take(NAMES_MAX).filter(|name| name.len() <= NAME_BYTES_MAX);
    let distances = comparable.map(|name| (osa_distance(&wanted, &name.to_lowercase()), *name));
    distances
        .filter(|(distance, name)| *distance <= far(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// As [`suggestion`], for a table or materialized view.
#[must_use]
pub fn of_table(wanted: &str, snapshot: &Snapshot) -> String {
    of_relation(wanted, snapshot, [])
}

/// As [`of_table`], where further names are known.
pub(crate) fn of_relation<'n>(
    wanted: &str,
    snapshot: &'n Snapshot,
    more: impl IntoIterator<Item = &'n str>,
) -> String {
    let tables = snapshot.tables().map(|(_, relation)| relation.schema().name.as_str());
    let tables = tables.filter(|name| *name != CLIENT_MUTATIONS_NAME);
    let views = snapshot.views().map(|view| view.definition.name.as_str());
    match suggestion(wanted, more.into_iter().chain(tables).chain(views)) {
        text if text.is_empty() => "; there are no tables yet".to_owned(),
        text => text,
    }
}

/// As [`suggestion`], for a table's column.
#[must_use]
pub fn of_column(wanted: &str, schema: &TableSchema) -> String {
    suggestion(wanted, schema.shown().iter().map(|column| column.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested() {
        let names = ["issues", "comments", "Odd", "a"];
        for (wanted, near) in [
            ("isues", "issues"),
            ("isseus", "issues"),
            ("issue", "issues"),
            ("isue", "issues"),
            ("coments", "comments"),
            ("odd", "\"Odd\""),
            ("A", "a"),
        ] {
            assert_eq!(suggestion(wanted, names), format!("; did you mean {near}?"), "{wanted}");
        }
        for wanted in ["flights", "b", "", &"issues".repeat(20)] {
            assert_eq!(suggestion(wanted, names), "; known here: issues, comments, \"Odd\", a", "{wanted}");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = (10..40).map(|n| format!("table_{n}")).collect();
        let told = suggestion("x", names.iter().map(String::as_str));
        assert!(
            told.starts_with("; known here: table_10, ") && told.ends_with("table_19 and 20 more"),
            "{told}"
        );
        assert_eq!(suggestion("x", []), "");
    }

    /// The cost has a bound: what stands behind it is not looked at.
    #[test]
    fn only_so_many_names_are_compared() {
        let names: Vec<String> =
            (0..NAMES_MAX).map(|n| format!("table_{n}")).chain(["near".to_owned()]).collect();
        assert!(!suggestion("neer", names.iter().map(String::as_str)).contains("did you mean"));
    }
}
