//! What is refused, with the message that says why and where.

use super::refused;
use crate::query::QueryErrorKind::{BadArgs, BadQuery, TypeMismatch, UnknownColumn, UnknownTable};

#[test]
fn refusals() {
    refused(&[
        (
            "select a from t where sum(a) > 1",
            BadQuery,
            "aggregates are not allowed in where (line 1, column 23)",
        ),
        (
            "select row_number() over () from t where rank() over () > 1",
            BadQuery,
            "window functions are not allowed in where (line 1, column 42)",
        ),
        ("select sum(sum(a)) from t", BadQuery, "sum stands inside another aggregate (line 1, column 12)"),
        (
            "select sum(row_number() over ()) from t",
            BadQuery,
            "row_number over a window stands inside another function's arguments (line 1, column 12)",
        ),
        (
            "select id from t t1, t t1",
            BadQuery,
            "table name t1 stands in from more than once; give it an alias (line 1, column 22)",
        ),
        ("select id from t, u", BadQuery, "column id is ambiguous; name its table (line 1, column 8)"),
        (
            "select * from t, u",
            BadQuery,
            "two columns of the result are named id; alias one (line 1, column 8)",
        ),
        (
            "select t.zz from t",
            UnknownColumn,
            "table t has no column zz; known here: id, a, b, n, f, ok, at (line 1, column 10)",
        ),
        (
            "select x from t",
            UnknownColumn,
            "unknown column x; known here: id, a, b, n, f, ok, at (line 1, column 8)",
        ),
        (
            "select y.id from t",
            UnknownTable,
            "no table y in the from clause, of which id would be a column; known here: t (line 1, column 10)",
        ),
        ("select id from z", UnknownTable, "unknown table z; known here: t, u, \"Odd\" (line 1, column 16)"),
        (
            "select id from other.t",
            UnknownTable,
            "unknown table other.t; known here: t, u, \"Odd\" (line 1, column 16)",
        ),
        (
            "select a.* from t",
            UnknownTable,
            "no table a in the from clause; known here: t (line 1, column 8)",
        ),
        (
            "select id, t_idd from t join u on u.t_idd = t.id",
            UnknownColumn,
            "table u has no column t_idd; did you mean t_id? (line 1, column 37)",
        ),
        (
            "select id from t where exists (select 1 from u where t_idd = t.id)",
            UnknownColumn,
            "unknown column t_idd; did you mean t_id? (line 1, column 54)",
        ),
        (
            "with newest as (select id from t) select id from newst",
            UnknownTable,
            "unknown table newst; did you mean newest? (line 1, column 50)",
        ),
        (
            "select doc as document from \"Odd\" union select doc from \"Odd\" order by documnt",
            UnknownColumn,
            "the result has no column documnt; did you mean document? (line 1, column 72)",
        ),
        (
            "select first.id from t as frist",
            UnknownTable,
            "no table first in the from clause, of which id would be a column; did you mean frist? (line 1, column 14)",
        ),
        ("select Key from Odd", UnknownTable, "unknown table odd; did you mean \"Odd\"? (line 1, column 17)"),
        (
            "select a, b from t union select a from t",
            BadQuery,
            "the sides of a set operation have 2 and 1 columns (line 1, column 26)",
        ),
        (
            "select a from t union select b from t",
            TypeMismatch,
            "types int8 and text cannot be matched (line 1, column 23)",
        ),
        (
            "select id from t order by 3",
            BadQuery,
            "order by position 3 is not in the select list (line 1, column 27)",
        ),
        (
            "select id from t group by 'x'",
            BadQuery,
            "a constant in group by is not a position (line 1, column 27)",
        ),
        (
            "select b from t group by a",
            BadQuery,
            "column b must be in group by or in an aggregate (line 1, column 8)",
        ),
        (
            "select a from t having a > 1",
            BadQuery,
            "column a must be in group by or in an aggregate (line 1, column 24)",
        ),
        (
            "select b, (select count(*) from u where u.t_id = t.a) as n from t group by b",
            BadQuery,
            "column a must be in group by or in an aggregate (line 1, column 12)",
        ),
        (
            "with recursive w as (select id from t union select count(*) from w) select * from w",
            BadQuery,
            "a recursive reference to w in an aggregate or group by is not supported (line 1, column 16)",
        ),
        (
            "with recursive w as (select id from t union select t.id from t left join w on w.id = a) select * from w",
            BadQuery,
            "a recursive reference to w in the optional side of an outer join is not supported (line 1, column 16)",
        ),
        (
            "with recursive w as (select id from t union select x.id from w x join w y on x.id = y.id) select * from w",
            BadQuery,
            "a recursive reference to w in both sides of a join is not supported (line 1, column 16)",
        ),
        (
            "with recursive w as (select id from t union select id from t where id in (select id from w)) select * from w",
            BadQuery,
            "a recursive reference to w in a subquery is not supported (line 1, column 90)",
        ),
        (
            "with recursive w as (select id from t union all (select id from w limit 1)) select * from w",
            BadQuery,
            "a recursive reference to w in limit or distinct on is not supported (line 1, column 16)",
        ),
        (
            "with recursive w as (select id from t union select id from w limit 3) select * from w",
            BadQuery,
            "order by or limit inside a recursive query is not supported (line 1, column 16)",
        ),
        (
            "with recursive w as (select id from t union select b from w join t using (id)) select * from w",
            TypeMismatch,
            "types int8 and text cannot be matched (line 1, column 16)",
        ),
        (
            "with recursive w as (select id from t union select id + 0.5 from w) select * from w",
            TypeMismatch,
            "column 1 of w is int8 at the start and numeric in the recursive part; cast one of them (line 1, column 16)",
        ),
        (
            "with recursive w as (select id from w) select * from w",
            UnknownTable,
            "unknown table w; known here: t, u, \"Odd\" (line 1, column 37)",
        ),
        (
            "with w as (select 1), w as (select 2) select * from w",
            BadQuery,
            "with names w more than once (line 1, column 23)",
        ),
        (
            "select id from t where a similar to 'x'",
            BadQuery,
            "similar to is not supported (line 1, column 24)",
        ),
        ("insert into t values (1)", BadQuery, "only select is a query (line 1, column 1)"),
        ("select 1; select 2", BadQuery, "the text has more than one statement (line 1, column 1)"),
        ("select", BadQuery, "the result has no columns"),
        ("selec 1", BadQuery, "expected an SQL statement, found selec (line 1, column 1)"),
        ("select 'abc", BadQuery, "unterminated string literal (line 1, column 8)"),
        ("select id from t where a = 'x' or", BadQuery, "expected an expression, found EOF"),
        (
            "select id from t where id = $1",
            BadQuery,
            "$1 is not supported; parameters are written :name (line 1, column 29)",
        ),
        (
            "select id from t tablesample bernoulli (10)",
            BadQuery,
            "tablesample is not supported (line 1, column 16)",
        ),
        (
            "select id from t, lateral (select * from u where u.id = t.id) x right join u on true",
            BadQuery,
            "lateral beside a right or full join is not supported (line 1, column 28)",
        ),
        ("select id from t limit -1", BadQuery, "limit must not be negative (line 1, column 25)"),
        ("select id from t limit a", UnknownColumn, "unknown column a (line 1, column 24)"),
        ("select id from t offset 1.5", TypeMismatch, "offset is a whole number (line 1, column 25)"),
        (
            "select array[1,2]",
            BadQuery,
            "an array outside any, some and all is not supported (line 1, column 14)",
        ),
        ("select (1,2)", BadQuery, "a row that is not compared is not supported (line 1, column 9)"),
        ("select id from t where a is json", BadQuery, "is json is not supported (line 1, column 24)"),
        (
            "select now()",
            BadQuery,
            "now is not supported: the answer of a live query may depend on the data alone; pass the value as a parameter (line 1, column 8)",
        ),
        ("select foo(1)", BadQuery, "function foo is not supported (line 1, column 8)"),
        ("select lower(1)", TypeMismatch, "function lower does not take (integer) (line 1, column 8)"),
        ("select id into z from t", BadQuery, "select into is not supported (line 1, column 1)"),
        (
            "select id from t order by id using <",
            BadQuery,
            "order by … using is not supported (line 1, column 27)",
        ),
        ("select count(*) from t group by all", BadQuery, "group by all is not supported"),
        (
            "select id from regexp_matches('a', 'b') id",
            BadQuery,
            "a function in from other than generate_series is not supported (line 1, column 16)",
        ),
        (
            "select * from generate_series(1, 5, 0)",
            BadQuery,
            "the step of generate_series is not 0 (line 1, column 15)",
        ),
        (
            "select * from generate_series(1, 1001)",
            BadQuery,
            "generate_series makes more than the limit of 1000 rows (line 1, column 15)",
        ),
        (
            "select * from generate_series(1, 2.5)",
            BadQuery,
            "a bound or step of generate_series that is numeric is not supported (line 1, column 34)",
        ),
        (
            "select ntile(0) over () from t",
            BadQuery,
            "the number of buckets of ntile is greater than 0 (line 1, column 14)",
        ),
        (
            "select nth_value(a, null) over () from t",
            BadQuery,
            "the number of nth_value that is NULL is not supported (line 1, column 21)",
        ),
        (
            "select sum(a) over (order by b range 1 preceding) from t",
            BadQuery,
            "a range frame with an offset over text is not supported (line 1, column 8)",
        ),
        (
            "select sum(a) over (order by a range -1 preceding) from t",
            BadQuery,
            "the offset of a frame is not negative or NULL (line 1, column 39)",
        ),
        (
            "select sum(a) over (order by a rows unbounded preceding exclude ties) from t",
            BadQuery,
            "exclude in a frame is not supported (line 1, column 57)",
        ),
        (
            "select sum(a) over (range between 1 preceding and current row) from t",
            BadQuery,
            "a range frame with an offset needs an order by of one expression (line 1, column 8)",
        ),
        (
            "select sum(a) over (rows between current row and 1 preceding) from t",
            BadQuery,
            "a frame ends before it starts (line 1, column 8)",
        ),
        (
            "select sum(distinct a) over () from t",
            BadQuery,
            "distinct in a window function is not supported (line 1, column 8)",
        ),
        ("select rank() from t", BadQuery, "rank needs over (…) (line 1, column 8)"),
        (
            "select lag(a, 9223372036854775807) over () from t",
            BadQuery,
            "the offset of lag is out of range (line 1, column 8)",
        ),
        ("select rank() over nope from t", BadQuery, "unknown window nope (line 1, column 20)"),
        (
            "select first_value(a) ignore nulls over () from t",
            BadQuery,
            "ignore or respect nulls is not supported (line 1, column 8)",
        ),
        (
            "select percentile_cont(0.5) within group (order by a) from t",
            BadQuery,
            "within group is not supported (line 1, column 8)",
        ),
        (
            "select id from t where exists (select sum(t.a) from u)",
            BadQuery,
            "sum of an outer query's columns is not supported (line 1, column 39)",
        ),
        (
            "select a from t group by a having exists (select 1 from u where u.t_id = max(t.id))",
            BadQuery,
            "max of an outer query's columns is not supported (line 1, column 74)",
        ),
        (
            "select t.id from t join u using (nope)",
            UnknownColumn,
            "the left side of the join has no column nope; known here: id, a, b, n, f, ok, at (line 1, column 34)",
        ),
        (
            "select t.id from t left join u on exists (select 1 from u v where v.t_id = t.id)",
            BadQuery,
            "a subquery in the condition of an outer join is not supported (line 1, column 43)",
        ),
        (
            "select id from t where (a, b) = (1, 2, 3)",
            BadQuery,
            "rows of 2 and 3 members are compared (line 1, column 25)",
        ),
        (
            "select id from t where (select id, a from t) = 1",
            BadQuery,
            "a subquery that is a value has one column, not 2 (line 1, column 25)",
        ),
        (
            "select id from t where a in (select id, a from t)",
            BadQuery,
            "the subquery has 2 columns, but is compared with 1 (line 1, column 30)",
        ),
        (
            "select grouping(b) from t group by a",
            BadQuery,
            "the arguments of grouping are expressions of group by (line 1, column 8)",
        ),
        ("select id from t for update", BadQuery, "for update is not supported (line 1, column 18)"),
        ("select id from t for share", BadQuery, "for share is not supported (line 1, column 18)"),
        ("select x'ff'", BadQuery, "this kind of literal is not supported (line 1, column 8)"),
        (
            "select interval '1 day'",
            BadQuery,
            "an interval cannot be a column of a result; use extract(epoch from …) or a cast to text (line 1, column 17)",
        ),
        ("select id from t where b", TypeMismatch, "expected bool, found text (line 1, column 24)"),
        (
            "select id from t where a = 'x'",
            TypeMismatch,
            r#"invalid input syntax for type bigint: "x" (line 1, column 24)"#,
        ),
        (
            "select id from t where a = :q",
            BadArgs,
            r#"parameter q: expected int8, found "x" (line 1, column 28)"#,
        ),
        (
            "select id from t where a = :missing",
            BadArgs,
            "parameter missing has no value in args (line 1, column 28)",
        ),
        (
            "select id from t where at > :q",
            BadArgs,
            r#"parameter q: expected timestamptz (RFC 3339, years 0000 to 9999), found "x" (line 1, column 29)"#,
        ),
        (
            "select id as a, a from t",
            BadQuery,
            "two columns of the result are named a; alias one (line 1, column 17)",
        ),
        ("select sum(b) from t", TypeMismatch, "sum does not take text (line 1, column 12)"),
        ("select max(ok) from t", TypeMismatch, "max does not take bool (line 1, column 12)"),
        (
            "select id from (select id, id from t) d",
            BadQuery,
            "column id is ambiguous; name its table (line 1, column 8)",
        ),
        (
            "select id from t where at at time zone 'utc' > '2024-01-01'",
            BadQuery,
            "at time zone is not supported (line 1, column 24)",
        ),
        (
            "select id from t fetch first 1 row with ties",
            BadQuery,
            "fetch with ties is not supported (line 1, column 30)",
        ),
        (
            "select distinct id from t order by a",
            BadQuery,
            "with select distinct, order by names expressions of the select list (line 1, column 36)",
        ),
        (
            "select distinct on (a) a, b from t order by b",
            BadQuery,
            "the expressions of distinct on come first in order by (line 1, column 45)",
        ),
        (
            "select id from t where a = any('{1,2}')",
            BadQuery,
            "any or all of what is no subquery, array[…] or parameter is not supported (line 1, column 32)",
        ),
        ("select id from t where a in ()", BadQuery, "expected an expression, found ) (line 1, column 30)"),
        (
            "select t from t",
            UnknownColumn,
            "unknown column t; known here: id, a, b, n, f, ok, at (line 1, column 8)",
        ),
        (
            "select * from t
  where id = 1
    and nope = 2",
            UnknownColumn,
            "unknown column nope; known here: id, a, b, n, f, ok, at (line 3, column 9)",
        ),
        (
            "select id from t where exists (with z as (select t.a as k) select 1 from z where exists (select 1 from z z2 where z2.k = t.id))",
            BadQuery,
            "z, which reads an outer row, inside a further subquery or lateral is not supported (line 1, column 104)",
        ),
    ]);
}
