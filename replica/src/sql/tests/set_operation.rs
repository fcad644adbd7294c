//! Set operations and values.

use super::means;

#[test]
fn recursion() {
    means(&[
        (
            "with recursive w(x) as (select id from t union select t.a from w join t on t.id = w.x) select x from w",
            "x -> project(recursive 0(project(table0, [$0:int8]), project(join(working0, table0, $1 = $0), [$2:int8])), [$0:int8])",
        ),
        (
            "with recursive w as (select id from t union all select id from u) select id from w",
            "id -> project(concat(project(table0, [$0:int8]), project(table1, [$0:int8])), [$0:int8])",
        ),
    ]);
}

#[test]
fn set_operation() {
    means(&[
        ("values (1, 2.5), (3, 4)", r#"column1, column2 -> values((1, "2.5"), (3, "4"))"#),
        (
            "select id, a from t where a = 1 union all select id, t_id from u where c = 'k' order by 1",
            "id, a -> concat(project(filter(table0, $1 = d0), [$0:int8, $1:int8]), project(filter(table1, $2 = d1), [$0:int8, $1:int8])) order 0 slots int8 1, text 'k'",
        ),
        (
            "select id from t union select n from t",
            "id -> distinct(concat(project(project(table0, [$0:int8]), [numeric($0):numeric]), project(table0, [$3:numeric])))",
        ),
        (
            "select 'a' as x union select null union select b from t",
            "x -> distinct(concat(project(project(values(()), ['a':text]), ['a':text]), project(project(values(()), [null:text]), [null:text]), project(table0, [$2:text])))",
        ),
        (
            "select id from t union select id from u union all select a from t",
            "id -> concat(distinct(concat(project(table0, [$0:int8]), project(table1, [$0:int8]))), project(table0, [$1:int8]))",
        ),
        (
            "select id from t except all select id from u",
            "id -> except all(project(table0, [$0:int8]), project(table1, [$0:int8]))",
        ),
        (
            "select id from t intersect select id from u order by id limit 3",
            "id -> top(intersect(project(table0, [$0:int8]), project(table1, [$0:int8])), [], [$0], 0, 3) order 0",
        ),
        (
            "select id from t union select id from u intersect select a from t",
            "id -> distinct(concat(project(table0, [$0:int8]), intersect(project(table1, [$0:int8]), project(table0, [$1:int8]))))",
        ),
        (
            "(select id from t order by a limit 1) union all (select id from u)",
            "id -> concat(project(top(project(table0, [$0:int8, $1:int8]), [], [$1], 0, 1), [$0:int8]), project(table1, [$0:int8]))",
        ),
        (
            "select x from (select id as x from t union all values (1), (2)) d",
            "x -> project(concat(project(table0, [$0:int8]), values((1), (2))), [$0:int8])",
        ),
    ]);
}
