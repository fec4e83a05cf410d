#!/usr/bin/env bash
# Runs real, unmodified programs under the drop-in malloc and under the C library's. Their output
# has to be the same, to the byte. Programs that are not installed are skipped. tests/programs/run
# does this with more and larger programs.
# Usage: tests/malloc/programs.sh LIBRARY
set -euo pipefail

library=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/../programs/common.sh"

# The library is loaded: it answers SLABYARD=help.
[ "$(LD_PRELOAD=$library SLABYARD=help bash -c 'echo x' 2>&1 | grep -c 'options of SLABYARD')" = 1 ] ||
    { echo "the library does not answer SLABYARD=help" >&2 && exit 1; }

both python3 python3 -c '
import json, random, re, threading, zlib, multiprocessing, collections
random.seed(5)
words = ["".join(random.choice("abcdefghij") for _ in range(random.randint(1, 40))) for _ in range(40000)]
print(zlib.crc32(" ".join(sorted(words)).encode()), len(collections.Counter(words)))
tree = {w: {"n": i, "l": [w] * (i % 9)} for i, w in enumerate(words)}
text = json.dumps(tree, sort_keys=True)
print(zlib.crc32(text.encode()), json.loads(text) == tree, len(re.findall("a+b", text)))
sums = [0] * 8
def work(k):
    sums[k] = sum(len(str(i) * (i % 50)) for i in range(k, 40000, 8))
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sums)
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(sum(pool.map(len, words)))
'
both perl perl -e '
srand(5); my %h; for my $i (1..200000) { my $k = int(rand(50000)); $h{"key$k"} .= chr(97 + $i % 26) }
for my $k (sort keys %h) { delete $h{$k} if length($h{$k}) % 3 }
print scalar(keys %h), " ", join(",", map { "$_=$h{$_}" } (sort keys %h)[0..50]), "\n";
my @l = sort { $a <=> $b } map { int(rand(1e9)) } 1..100000; print "$l[0] $l[50000] $l[-1]\n";
'
both sqlite3 sqlite3 database "$(in_sqlite 60000)"
both git bash -c '
git init -q . && git config user.email a@b && git config user.name c
export GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z"
for i in $(seq 1 25); do
    for k in 1 2 3; do seq $((i * k)) $((i * k + 3000)) >file$k; done
    git add . && git commit -qm "number $i"
done
git gc -q --prune=now && git fsck --strict && git clone -q . ../folder/copy && git -C copy log --stat | cat'
both gcc bash -c '
{ echo "int printf(const char *, ...);"
  for i in $(seq 1 400); do echo "static int f$i(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * $i ^ (s >> 3); return s; }"; done
  echo "int main(void) { unsigned s = 0;"; for i in $(seq 1 400); do echo "s += f$i($i);"; done
  echo "printf(\"%u\\n\", s); return 0; }"; } >a.c
gcc -O2 -S a.c -o a.s && cksum a.s && gcc a.s -o a && ./a'
both g++ bash -c '
printf "#include <map>\n#include <iostream>\n#include <regex>\nint main() { std::map<std::string, int> m; for (int i = 0; i < 50000; i++) m[std::to_string(i * 7919 %% 10007)]++; std::cout << m.size() << std::regex_replace(std::string(\"aXbXc\"), std::regex(\"X\"), \"-\") << std::endl; }" >a.cpp
g++ -O1 -S a.cpp -o a.s && cksum a.s && g++ a.s -o a && ./a'
