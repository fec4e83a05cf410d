#!/usr/bin/env bash
# Tests check.sh, links, header-examples.sh and check-prose. They have to find each error in a page with
# one false statement of each kind, none in a page of true statements, and the wrong examples in
# headers: some do not compile, one was broken by a formatter.
# Usage: tests/docs/self-test.sh BUILD_DIR
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "docs self-test: $*" >&2
    exit 1
}

cat >"$work/false.md" <<'END'
A path `src/base/nowhere.c`, a header `<slabyard/nowhere.h>`, a folder `scripts/nowhere/`,
a pattern `src/*.nothing`, a blank `src/<what>.nothing`, one of two `src/{base,nowhere}`,
a document `NOWHERE.md`, a [link](nowhere.md), a target `make nowhere`,
an option `SLABYARD=chekc ./server`, a value `SLABYARD=check,redzone=7`,
a preset `cmake --preset nowhere`, a [heading](false.md#nowhere), [one here](#nowhere).

<picture>
  <img alt="A picture" src="nowhere.svg"></picture>

## A "heading" of `code`, here

```sh
make test && scripts/nowhere.sh
cargo run -p slabyard-nowhere
```

```c example
int main(void) { return 1; }
```

```c excerpt src/base/nowhere.c
int main(void) {
```

```c excerpt include/slabyard/heap.h
SY_API void *sy_calloc(size_t count, size_t size);
...
SY_API void *sy_malloc(size_t size);
```

```cpp example
int main() { return nowhere; }
```
END
cat >"$work/true.md" <<'END'
A path `scripts/check-layers`, a pattern `scripts/*.sh`, a blank `scripts/check-<what>`, two
`src/{base,os}`, words `and/or`, `1/2`, `/proc/self/maps`, `build/release/libslabyard.a`, a
[link](false.md), a [heading](false.md#a-heading-of-code-here), [another](https://example.org/x), `make test`, `make install PREFIX=dir`,
`cmake --preset asan`, `SLABYARD=check,decay=100ms ./server`, `SLABYARD=decay=Nms`, `SLABYARD='fail=*:3'`.

```sh
make bench   # takes a while
```

```c
this is no example
```

```c excerpt include/slabyard/heap.h
SY_API void *sy_malloc(size_t size);
...
 * Allocates `count` times `size` bytes, all zero.
 *
 * Returns the memory, or NULL with errno.
...
SY_API void *sy_calloc(size_t count, size_t size);
```

```c excerpt examples/order_book.c
gone->previous->next = gone->next;
gone->next->previous = gone->previous;
```

```c example
#include <slabyard/base.h>
int main(void) { return SY_ABI > 0 ? 0 : 1; }
```
END
statements=19 examples=2

if said=$(tests/docs/check.sh --build "$build" "$work/false.md" 2>&1); then
    fail "the false page passed"
fi
found=$(grep -c "^docs: $work/false.md:" <<<"$said" || true)
[ "$found" = $statements ] || fail "found $found of $statements false statements: $said"
found=$(grep -c "^docs: example .*: \(fails when run\|does not compile\)" <<<"$said" || true)
[ "$found" = $examples ] || fail "found $found of $examples wrong examples: $said"
tests/docs/check.sh --build "$build" "$work/true.md" >/dev/null || fail "the true page failed"
header() { # header NAME LINE...: a header whose comment has these lines
    local name=$1
    shift
    printf '/*\n * What it does.\n *\n' >"$work/$name"
    printf ' *%s\n' "$@" >>"$work/$name"
    printf ' */\n' >>"$work/$name"
}
take='     struct order *order = sy_malloc(sizeof(struct order));' free='     sy_free(order);     a remark'
header wrong.h "$take" '     sy_free(ordre);'
header broken.h '     struct order *order = sy_malloc(sizeof(struct' ' order));' "$free"
header outside.h '     static int visit(void *arg) {' '         return wanting;' '     }'
header wrong.hpp '     order *one = slabyard::make_unique<order>("A", 1);'
for name in wrong.h broken.h outside.h wrong.hpp; do
    ! tests/docs/header-examples.sh "$work/$name" >/dev/null 2>&1 || fail "$name passed"
done
header true.h "$take" '     ...' "$free" '' '     | a drawing | of two |'
header static.h '     static void visit(void *order) {' '         sy_free(order);' '     }' '' '     visit(NULL);'
header true.hpp '     auto one = slabyard::make_unique<order>("A", 1);'
said=$(tests/docs/header-examples.sh "$work/true.h" "$work/static.h" "$work/true.hpp") || fail "the true headers failed"
[[ $said == *" 3 examples "* ]] || fail "the examples of the true headers: $said"

# A site of two pages: three links are right, three lead nowhere.
mkdir -p "$work/site/part"
cat >"$work/site/index.html" <<'END'
<p id="top"><a href="part/page.html#there">right</a> <a href="#top">right</a>
<a href="https://example.org/nowhere">not followed</a> <a href="#nowhere">wrong</a>
<a href="part/page.html#nowhere">wrong</a> <img src="nowhere.svg"></p>
END
echo '<h1 id="there"><a href="../index.html">right</a></h1>' >"$work/site/part/page.html"
said=$(tests/docs/links "$work/site" 2>&1) && fail "a site with wrong links passed"
[ "$(grep -c '^links: index.html:' <<<"$said")" = 3 ] || fail "not the three wrong links: $said"
sed -i 's/#nowhere/#there/; s/<img.*>/<br>/' "$work/site/index.html"
sed -i 's/href="#there"/href="#top"/' "$work/site/index.html"
tests/docs/links "$work/site" >/dev/null || fail "a site with right links only failed"

printf 'The door of a cache.\n\n`a door` in code\n' >"$work/words.md"
said=$(scripts/check-prose "$work/words.md" 2>&1) && fail "a document with a forbidden word passed"
[ "$(grep -c "words.md:" <<<"$said")" = 1 ] || fail "one forbidden word: $said"
echo "docs self-test: every false statement was found, and none in the true page"
