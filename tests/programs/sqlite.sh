commands="sqlite3"
packages="sqlite3"
version="sqlite3 --version | cut -d' ' -f1"
checks="output and database file of a script with 200,000 rows, indexes, joins, full-text search and JSON; integrity_check"
seconds=120
processes="sqlite3"

script() {
    sqlite3 database <<'SQL'
pragma page_size=4096; pragma cache_size=-20000;
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into t select i, printf('%08d-%s', (i * 7919) % 100003, substr('abcdefghijklmnopqrstuvwxyz', 1, i % 26)), i * 0.5
from n;
create index b on t(b);
create table u as select a % 1000 as k, group_concat(b, ',') as l, max(c) as m from t group by a % 1000;
select count(*), sum(length(l)), sum(m) from u;
select t.a, u.m, length(u.l) from t join u on u.k = t.a % 1000 where t.b like '0001%' order by t.b, t.a limit 200;
create virtual table f using fts5(x);
insert into f select replace(l, '-', ' ') from u;
select count(*) from f where f match 'abc*'; insert into f(f) values('integrity-check');
create view j as select json_group_array(json_object('a', a, 'b', b)) as x from t where a % 50 = 0;
select length(x), json_extract(x, '$[17].b'), (select count(*) from json_each(j.x)) from j;
begin; update t set b = b || 'x' where a % 7 = 0; savepoint s; delete from t where a % 2; rollback to s; commit;
delete from t where a % 3 = 0; vacuum; analyze;
select a, b, sum(c) over (partition by a % 10 order by a rows 5 preceding) from t order by b limit 2000;
select hex(zeroblob(5000)) = replace(hex(zeroblob(5000)), '1', '2'), length(randomblob(1000000));
pragma integrity_check; pragma foreign_key_check;
.dump u
SQL
    sums database
}
program() {
    both sqlite3 script
    grep -x ok with.out # the output of integrity_check
}
