#!/usr/bin/env bash
# The document test has to find what is wrong: a page with one false statement of each kind, and a
# page of true ones.
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
a preset `cmake --preset nowhere`.

```sh
make test && scripts/nowhere.sh
cargo run -p slabyard-nowhere
```

```c example
int main(void) { return 1; }
```

```cpp example
int main() { return nowhere; }
```
END
cat >"$work/true.md" <<'END'
A path `scripts/check-layers`, a pattern `scripts/*.sh`, a blank `scripts/check-<what>`, two
`src/{base,os}`, words `and/or`, `1/2`, `/proc/self/maps`, `build/release/libslabyard.a`, a
[link](false.md), [another](https://example.org/x), `make test`, `make install PREFIX=dir`,
`cmake --preset asan`.

```sh
make bench   # takes a while
```

```c
this is no example
```

```c example
#include <slabyard/base.h>
int main(void) { return SY_ABI > 0 ? 0 : 1; }
```
END
statements=12 examples=2

if said=$(tests/docs/check.sh --build "$build" "$work/false.md" 2>&1); then
    fail "the false page passed"
fi
found=$(grep -c "^docs: $work/false.md:" <<<"$said" || true)
[ "$found" = $statements ] || fail "found $found of $statements false statements: $said"
found=$(grep -c "^docs: example .*: \(fails when run\|does not compile\)" <<<"$said" || true)
[ "$found" = $examples ] || fail "found $found of $examples wrong examples: $said"
tests/docs/check.sh --build "$build" "$work/true.md" >/dev/null || fail "the true page failed"
echo "docs self-test: every false statement was found, and none in the true page"
