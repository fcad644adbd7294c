//! Subqueries in expressions.

use super::means;

#[test]
fn subquery() {
    means(&[
        (
            "select id from t where exists (select 1 from u where u.t_id = t.id)",
            "id -> project(filter(mark(table0, {$0:int8 | project(filter(table1, $1 = d0), [1:int8])}, exists), $7), [$0:int8])",
        ),
        (
            "select id from t where not exists (select from u where u.t_id = t.id and u.c = t.b) and a = 3",
            "id -> project(filter(mark(filter(table0, $1 = d0), {$0:int8, $2:text | project(filter(table1, and($1 = d0, $2 = d1)), [])}, exists), not($7)), [$0:int8]) slots int8 3",
        ),
        (
            "select id from t where a in (select t_id from u where c = t.b)",
            "id -> project(filter(mark(table0, {$2:text | project(filter(table1, $2 = d0), [$1:int8])}, any $1 = $7), $7), [$0:int8])",
        ),
        (
            "select id from t where a not in (select t_id from u)",
            "id -> project(filter(mark(table0, { | project(table1, [$1:int8])}, any $1 = $7), not($7)), [$0:int8])",
        ),
        (
            "select id from t where (a, b) in (select t_id, c from u)",
            "id -> project(filter(mark(table0, { | project(table1, [$1:int8, $2:text])}, any and($1 = $7, $2 = $8)), $7), [$0:int8])",
        ),
        (
            "select id from t where a < all (select t_id from u)",
            "id -> project(filter(mark(table0, { | project(table1, [$1:int8])}, any $1 >= $7), not($7)), [$0:int8])",
        ),
        (
            "select id from t where a <> all (select t_id from u)",
            "id -> project(filter(mark(table0, { | project(table1, [$1:int8])}, any $1 = $7), not($7)), [$0:int8])",
        ),
        (
            "select id from t where a = some (select t_id from u)",
            "id -> project(filter(mark(table0, { | project(table1, [$1:int8])}, any $1 = $7), $7), [$0:int8])",
        ),
        (
            "select id from t where 'x' = any (select c from u)",
            "id -> project(filter(mark(table0, { | project(table1, [$2:text])}, any 'x' = $7), $7), [$0:int8])",
        ),
        (
            "select id, (select max(c) from u where u.t_id = t.id) as top from t",
            "id, top -> project(lookup(table0, {$0:int8 | project(aggregate(filter(table1, $1 = d0), [], [Max($2):text]), [$0:text])}), [$0:int8, $7:text])",
        ),
        (
            "select id, a in (select t_id from u) as found from t",
            "id, found -> project(mark(table0, { | project(table1, [$1:int8])}, any $1 = $7), [$0:int8, $7:bool])",
        ),
        (
            "select id from t where (select c from u where u.id = t.id) in (select b from t)",
            "id -> project(filter(mark(lookup(table0, {$0:int8 | project(filter(table1, $0 = d0), [$2:text])}), { | project(table0, [$2:text])}, any $7 = $8), $8), [$0:int8])",
        ),
        (
            "select id from t where exists (select 1 from u where exists (select 1 from t as t2 where t2.a = t.a and t2.b = u.c))",
            "id -> project(filter(mark(table0, {$1:int8 | project(filter(mark(table1, {d0:int8, $2:text | project(filter(table0, and($1 = d0, $2 = d1)), [1:int8])}, exists), $3), [1:int8])}, exists), $7), [$0:int8])",
        ),
        (
            "select id from t where exists (select 1 from (select c from u where u.t_id = t.id) d where d.c = t.b)",
            "id -> project(filter(mark(table0, {$0:int8, $2:text | project(filter(project(filter(table1, $1 = d0), [$2:text]), $0 = d1), [1:int8])}, exists), $7), [$0:int8])",
        ),
        (
            "select id from t where exists (select 1 from u where u.t_id = 7 and u.c = :q)",
            "id -> project(filter(mark(table0, { | project(filter(table1, and($1 = 7, $2 = 'x')), [1:int8])}, exists), $7), [$0:int8])",
        ),
    ]);
}
