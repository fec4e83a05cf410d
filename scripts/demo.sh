#!/usr/bin/env bash
# `make demo`: compares the time and memory that the SQLite shell needs with each allocator. Needs
# Rust, sqlite3 and a Debian system.
#   1. It compiles the tool, with the allocators that are compiled in seconds; PEERS=all: with all.
#   2. It collects data of this machine: file names, packages, the text of C headers.
#   3. An unmodified sqlite3 imports, indexes and queries these data. Its allocations are recorded.
#   4. sqlite3 itself runs on each allocator: what does the program gain?
#   5. The recording is replayed with each allocator: where does the difference come from?
# On two cores it ends within four minutes. All files that it writes are in out/.
# Usage: [PEERS=all] scripts/demo.sh [ARGUMENTS FOR slabyard compare...]
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/out/demo
page=$PWD/out/demo.html
tool=${CARGO_TARGET_DIR:-$PWD/rust/target}/release/slabyard
began=$SECONDS

say() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - began)); }

# jemalloc and TCMalloc take minutes to compile.
build() {
    local peers=mimalloc,snmalloc,rpmalloc
    if [ "${PEERS:-}" = all ]; then peers=peers; fi
    say "compiling the tool"
    cargo build --quiet --locked --manifest-path rust/Cargo.toml --release --package slabyard-cli \
        --bins --examples --features "$peers"
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

# The database is in memory, so that each run begins with an empty one.
compare() {
    say "recording sqlite3 at work, running it on each allocator, replaying its allocations"
    questions >"$out/questions.sql"
    "$tool" compare --force --within 100 -o "$out/sqlite3.syrec" --page "$page" --json "$out/figures.json" "$@" \
        -- sqlite3 -batch :memory: ".read $out/questions.sql"
    say "done; the page with pictures is out/demo.html"
}

cat <<END
Records a real program, runs it on each allocator, and replays its allocations. The program gains less than
its allocations alone, or loses: the first sentence of the answer says how much. On two cores this takes
two to four minutes, of which one is compiling.
END
build
collect
compare "$@"
