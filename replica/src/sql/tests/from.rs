//! Tables, derived tables and joins.

use super::means;

#[test]
fn from() {
    means(&[
        (
            "select t.id, u.c from t join u on u.t_id = t.id where t.b = 'x'",
            "id, c -> project(filter(join(table0, table1, $8 = $0), $2 = d0), [$0:int8, $9:text]) slots text 'x'",
        ),
        (
            "select g, sum(g) from generate_series(1, 3) as g group by g",
            "g, sum -> project(aggregate(values((1), (2), (3)), [$0:int8], [Sum($0):int8]), [$0:int8, $1:int8])",
        ),
        (
            "select n from generate_series(9223372036854775806, 9223372036854775807) as s(n), generate_series(1, 2, -1)",
            "n -> project(join(values((9223372036854775806), (9223372036854775807)), values(), true), [$0:int8])",
        ),
        (
            "select * from t join u using (id)",
            "id, a, b, n, f, ok, at, t_id, c -> project(join(table0, table1, $0 = $7), [$0:int8, $1:int8, $2:text, $3:numeric, $4:float8, $5:bool, $6:timestamptz, $8:int8, $9:text])",
        ),
        (
            "select id, c from t full join u using (id)",
            "id, c -> project(full join(table0, table1, $0 = $7), [coalesce($0, $7):int8, $9:text])",
        ),
        (
            "select id, t.id as tid, u.id as uid from t right join u using (id)",
            "id, tid, uid -> project(left join(table1, table0, $3 = $0), [$0:int8, $3:int8, $0:int8])",
        ),
        (
            "select t.* from t natural join u",
            "id, a, b, n, f, ok, at -> project(join(table0, table1, $0 = $7), [$0:int8, $1:int8, $2:text, $3:numeric, $4:float8, $5:bool, $6:timestamptz])",
        ),
        (
            "select t.id, u.id as uid from t right join u on t.id = u.t_id",
            "id, uid -> project(left join(table1, table0, $3 = $1), [$3:int8, $0:int8])",
        ),
        (
            "select x.id, y.id as yid from t x, t y where x.id = y.a",
            "id, yid -> project(filter(join(table0, table0, true), $0 = $8), [$0:int8, $7:int8])",
        ),
        (
            "select x.id, c from t x cross join u",
            "id, c -> project(join(table0, table1, true), [$0:int8, $9:text])",
        ),
        (
            "select t.id, v.c from u left join t on t.id = u.t_id, u v",
            "id, c -> project(join(left join(table1, table0, $3 = $1), table1, true), [$3:int8, $12:text])",
        ),
        (
            "select j.tid from (t join u on true) as j (tid)",
            "tid -> project(join(table0, table1, true), [$0:int8])",
        ),
        (
            "select d.k from (select a + 1 as k, b from t where a = 5 order by b) d where d.k = 7",
            "k -> project(filter(project(filter(table0, $1 = 5), [($1 + 1):int8, $2:text]), $0 = d0), [$0:int8]) slots int8 7",
        ),
        ("select p, q from t as s (p, q)", "p, q -> project(table0, [$0:int8, $1:int8])"),
        (
            "select * from (values (1, 'a'), (2, null)) v(x, y)",
            "x, y -> project(values((1, 'a'), (2, null)), [$0:int8, $1:text])",
        ),
        (
            "select t.id, x.c from t, lateral (select c from u where u.t_id = t.id order by id limit 1) x",
            "id, c -> project(lateral join(table0, {$0:int8 | project(top(project(filter(table1, $1 = d0), [$2:text, $0:int8]), [], [$1], 0, 1), [$0:text])}, true), [$0:int8, $7:text])",
        ),
        (
            "select t.id, x.c from t left join lateral (select c from u where u.t_id = t.id) x on true",
            "id, c -> project(lateral left join(table0, {$0:int8 | project(filter(table1, $1 = d0), [$2:text])}, true), [$0:int8, $7:text])",
        ),
        (
            "select t.id, x.c from t, lateral (select c from u) x",
            "id, c -> project(join(table0, project(table1, [$2:text]), true), [$0:int8, $7:text])",
        ),
        (
            "select t.id from t join u on exists (select 1 from u v where v.t_id = t.id)",
            "id -> project(filter(mark(join(table0, table1, true), {$0:int8 | project(filter(table1, $1 = d0), [1:int8])}, exists), $10), [$0:int8])",
        ),
        (
            "select d.a from (select a, n from t order by n desc limit 3) d order by d.a",
            "a -> project(top(project(table0, [$1:int8, $3:numeric]), [], [$1 desc], 0, 3), [$0:int8]) order 0",
        ),
        (
            "with w as (select a, count(*) as n from t group by a) select x.a, y.n from w x join w y on x.a = y.n",
            "a, n -> project(join(project(aggregate(table0, [$1:int8], [Count():int8]), [$0:int8, $1:int8]), project(aggregate(table0, [$1:int8], [Count():int8]), [$0:int8, $1:int8]), $0 = $3), [$0:int8, $3:int8])",
        ),
        (
            "with w (k) as (select id from t), t as (select k from w) select k from t",
            "k -> project(project(project(table0, [$0:int8]), [$0:int8]), [$0:int8])",
        ),
        (
            "select u.id, w.k from u, lateral (with z as (select u.t_id as k) select z.k from z join t on t.id = z.k) w",
            "id, k -> project(lateral join(table1, {$1:int8 | project(join(project(values(()), [d0:int8]), table0, $1 = $0), [$0:int8])}, true), [$0:int8, $3:int8])",
        ),
    ]);
}
