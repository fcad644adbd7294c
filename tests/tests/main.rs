//! All whole-system tests, in one binary.

mod acknowledged_is_durable;
mod advance_is_difference;
mod bad_commits;
mod bad_input;
mod batches_precede_progress;
mod commit_is_atomic_for_a_client;
mod conformance_nested;
mod explain;
mod expressions_equal_postgres;
mod full_disk;
mod hydration_aside;
mod json_aggregates;
mod log_is_gapless;
mod materialized_views;
mod named_queries;
mod nexmark_equals_postgres;
mod progress_is_irrevocable;
mod query_fault_stays_local;
mod queues_are_bounded;
mod resume_knows_its_history;
mod seq_is_gapless;
mod slow_client_holds_nobody;
mod slow_worker_holds_only_its_own;
mod sql_changes_equal_postgres;
mod sql_equals_postgres;
mod sql_logic;
mod sql_statements;
mod support;
mod tpch_equals_postgres;
mod view_equals_fresh_query;
mod wire_is_separate;

/// A file that is not listed above would not run, and nobody would notice.
#[test]
fn every_file_here_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).expect("the tests' folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let module = name.trim_end_matches(".rs");
        if module != "main" {
            assert!(listed.lines().any(|line| line == format!("mod {module};")), "{name} is not listed");
        }
    }
}
