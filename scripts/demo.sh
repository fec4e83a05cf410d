#!/usr/bin/env bash
# `make demo`: compares the time and memory that the SQLite shell would need with each allocator.
# Needs Rust, sqlite3 and a Debian system.
#   1. It collects data of this machine: file names, packages, the text of C headers.
#   2. An unmodified sqlite3 imports, indexes and queries these data. Its allocations are recorded.
#   3. The recording is replayed with Slabyard and glibc. On two cores, this ends after 90 seconds.
#   4. More allocators are compiled, and the recording is replayed with all of them.
# All files that it writes are in out/.
# Usage: scripts/demo.sh [ARGUMENTS FOR slabyard compare...]
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/out/demo
page=$PWD/out/demo.html
tool=${CARGO_TARGET_DIR:-$PWD/rust/target}/release/slabyard
began=$SECONDS

say() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - began)); }

# build HEADING CARGO_OPTIONS...: compiles the tool
build() {
    say "$1"
    shift
    cargo build --quiet --locked --manifest-path rust/Cargo.toml --release --package slabyard-cli "$@"
}

# Each file has one record a line, with fields separated by tabs. Paths with tabs or quotes are left
# out.
collect() {
    say "collecting data of this machine"
    rm -rf "$out" && mkdir -p "$out"
    find /usr /etc /var/lib -xdev -printf '%p\t%y\t%s\t%m\t%u\t%T@\n' 2>/dev/null |
        awk -F'\t' 'NF == 6 && !/["\\]/ && ++lines <= 120000' >"$out/files"
    dpkg-query -W -f '${Package}\t${Version}\t${Section}\t${Installed-Size}\t${Depends}\n' |
        grep -v '"' >"$out/packages"
    for list in /var/lib/dpkg/info/*.list; do
        name=${list##*/}
        sed "s|^|${name%.list}\t|" "$list"
    done | awk '!/["\\]/ && ++lines <= 120000' >"$out/owners"
    find /usr/include -name '*.h' -size -200k 2>/dev/null |
        awk '++lines <= 1500' >"$out/headers"
    wc -l "$out"/* | sed '$d; s|'"$out"'/||; s/^ */  /'
}

questions() {
    cat <<END
pragma journal_mode = off;
pragma cache_size = -16000;
create table files(path text primary key, type text, size int, mode text, owner text, time real);
create table owners(package text, path text);
create table packages(name text, version text, section text, size int, depends text);
create table headers(path text);
.mode tabs
.import $out/files files
.import $out/owners owners
.import $out/packages packages
.import $out/headers headers
create index owners_path on owners(path);
create index owners_package on owners(package);

.print largest packages by what is on the disk
select o.package, count(*), sum(f.size) from owners o join files f using (path)
  group by o.package order by 3 desc limit 5;
.print kinds of files
select lower(replace(path, rtrim(path, replace(path, '.', '')), '')) as ending, count(*), avg(size)
  from files where type = 'f' group by ending order by 2 desc limit 5;
.print what most packages depend on
with recursive each(name, rest, one) as (
    select name, depends || ',', '' from packages where depends <> ''
    union all
    select name, substr(rest, instr(rest, ',') + 1), trim(substr(rest, 1, instr(rest, ',') - 1))
      from each where rest <> '')
select substr(one || ' ', 1, instr(one || ' ', ' ') - 1) as needed, count(*) from each
  where one <> '' group by needed order by 2 desc limit 5;
.print folders as documents
create table folders as
  select rtrim(path, replace(path, '/', '')) as folder,
         json_group_array(json_object('path', path, 'size', size, 'owner', owner)) as entries
  from files group by folder;
select count(*), sum(length(entries)) from folders;
select folder, json_extract(value, '\$.size') as size from folders, json_each(entries)
  where length(entries) < 100000 order by size desc limit 3;
.print the words of the headers
create virtual table words using fts5(path, text);
insert into words select path, cast(readfile(path) as text) from headers;
select path, snippet(words, 1, '[', ']', '...', 6) from words
  where words match 'alloc* NOT malloc' order by rank limit 3;
.print packages that share folders
select a.package, b.package, count(*) from owners a join owners b on a.path = b.path
  where a.package < b.package group by 1, 2 order by 3 desc limit 3;
END
}

record() {
    say "recording sqlite3 at work"
    questions >"$out/questions.sql"
    "$tool" record --force -o "$out/sqlite3.syrec" -- \
        sqlite3 -batch "$out/demo.db" ".read $out/questions.sql"
}

# Only three rounds, so that the first figures appear soon.
compare_two() {
    say "replaying with Slabyard and glibc"
    "$tool" compare "$out/sqlite3.syrec" --force -a slabyard -a glibc -r 3 --no-verify \
        --page "$page" --json "$out/figures.json"
}

compare_all() {
    say "replaying with every allocator"
    "$tool" compare "$out/sqlite3.syrec" --force --page "$page" --json "$out/figures.json" "$@"
    say "done; the page with pictures is out/demo.html"
}

cat <<END
Records a real program and replays its allocations alone. The program as a whole gains less: SQLite took
1.01 to 1.03 of glibc's CPU time and 1.22 of its peak memory when it was run with Slabyard. On two cores the first figures come after a minute
and a half, all of them after five minutes, most of which is compiling.
END
build "compiling the tool (a minute)" --no-default-features
collect
record
compare_two
build "compiling five more allocators (two minutes)"
compare_all "$@"
