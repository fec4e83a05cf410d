commands="psql pg_config"
packages="postgresql postgresql-client"
bin=$(pg_config --bindir 2>/dev/null) && [ -x "$bin/initdb" ] ||
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
installed() { [ -x "$bin/initdb" ] && [ -x "$bin/pgbench" ]; }
version="$bin/postgres --version"
checks="initdb with checksums, queries, pgbench with 4 clients, vacuum, amcheck, crash and recovery; output and pg_dump compared"
seconds=400
processes="postgres initdb pgbench pg_dump psql"
PATH=$bin:$PATH

queries() {
    cat <<'SQL'
create table t as select i, md5(i::text) as m, i % 1000 as k, (i * 7919) % 100003 as j from generate_series(1, 150000) i;
create index on t(m); create index on t using gin (to_tsvector('simple', m)); create index on t using brin (i); create index on t using hash (j); analyze t;
set work_mem='64kB'; select sum(length(m)), count(distinct m), md5(string_agg(m, ',' order by m)) from t; set work_mem='32MB';
select count(*), sum(a.i) from t a join t b on a.j = b.i where b.k < 500;
select k, count(*), avg(j)::numeric(20,4), percentile_cont(0.5) within group (order by j) from t group by rollup (k) order by k nulls last limit 50;
select md5(jsonb_agg(jsonb_build_object('k', k, 'm', m) order by i)::text) from t where i < 20000;
select md5(string_agg(regexp_replace(m, '([a-f]+)(\d)', '\2-\1', 'g'), '' order by i)) from t;
with recursive f(n, a, b) as (select 1, 1::numeric, 1::numeric union all select n + 1, b, a + b from f where n < 2000) select n, a from f order by n desc limit 1;
create function g(n int) returns text language plpgsql as $$ declare r text := 'a'; i int; begin
  for i in 1..n loop begin r := r || chr(97 + i % 26); if i % 100 = 0 then raise division_by_zero; end if; exception when others then r := right(r, 50); end; end loop; return r; end $$;
select g(20000); select xmlelement(name a, xmlagg(xmlelement(name b, m) order by i))::text like '%<b>%' from t where i < 3000;
set max_parallel_workers_per_gather=2; set parallel_setup_cost=0; set parallel_tuple_cost=0; set min_parallel_table_scan_size=0; select count(*), sum(j) from t where m > '5';
select i, sum(j) over (partition by k order by i rows 10 preceding) from t order by m limit 100;
create extension pg_trgm; create extension hstore; create extension amcheck; create index on t using gist (m gist_trgm_ops); select count(*) from t where m ~ 'abc.*d';
update t set m = m || 'x' where i % 5 = 0; delete from t where i % 3 = 0; vacuum full t;
select count(bt_index_check(c.oid, true)) from pg_class c join pg_am a on a.oid = c.relam where a.amname = 'btree' and relpersistence = 'p';
SQL
}
session() { # as an ordinary user, in the folder db
    local port
    port=$(free_port)
    initdb -D data -k -U tester -A trust --no-sync >log 2>&1
    serve() { pg_ctl -D data -w -l server.log -o "-p $port -k $PWD -h '' -c fsync=off -c jit=on -c jit_above_cost=100000" "$@" >>log 2>&1; }
    ask() { psql -X -h "$PWD" -p "$port" -U tester -d postgres "$@"; }
    serve start
    trap 'serve -m immediate stop || true' EXIT
    queries | ask -v ON_ERROR_STOP=1
    pgbench -i -q -s 3 -h "$PWD" -p "$port" -U tester postgres >>log 2>&1
    pgbench -c 4 -j 2 -t 400 --random-seed=5 -h "$PWD" -p "$port" -U tester postgres >>log 2>&1
    pgbench -c 4 -j 2 -t 300 -S -M prepared --random-seed=5 -h "$PWD" -p "$port" -U tester postgres >>log 2>&1
    # The sums of pgbench do not depend on the order of its clients. pgbench_history has times.
    pg_dump -h "$PWD" -p "$port" -U tester --inserts -T pgbench_history postgres | grep -v '^--\|restrict' | sort | cksum
    serve -m immediate stop
    serve start
    ask -A -t -c 'select count(*) from pgbench_history' -c 'select sum(abalance) = (select sum(bbalance) from pgbench_branches) from pgbench_accounts'
    pg_dump -h "$PWD" -p "$port" -U tester -Fc postgres >dump
    ask -c 'create database again'
    pg_restore -h "$PWD" -p "$port" -U tester -d again dump
    psql -X -h "$PWD" -p "$port" -U tester -d again -A -t -c 'select count(*), sum(i) from t'
    serve -m fast stop
    trap - EXIT
    pg_checksums -D data --check | grep -i bad
    ! grep -E 'PANIC|terminated by signal' server.log
}
# PostgreSQL refuses to run as root.
as_user() {
    mkdir db
    if [ "$(id -u)" = 0 ]; then
        chown nobody db
        cd db && setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$PWD" \
            PATH="$PATH" bash -c "$(declare -f fail free_port wait_for answers queries session); set -e; session"
    else
        cd db && session
    fi
}
program() { both postgres as_user; }
