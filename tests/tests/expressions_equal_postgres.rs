//! Expressions have PostgreSQL's values and errors.

use tidegate_tests::postgres::Cluster;

#[test]
fn a_cluster_starts_and_answers() {
    let cluster = Cluster::start();
    let row = cluster.connect().query_one("select current_setting('timezone')", &[]).expect("an answer");
    assert_eq!(row.get::<_, String>(0), "UTC");
}
