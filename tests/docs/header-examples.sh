#!/usr/bin/env bash
# Checks that the examples in the comments of public headers compile, as C11 (.h) or C++17 (.hpp),
# with gcc and clang, as far as they are installed. tests/docs/header-examples.awk says what an
# example is.
# Usage: tests/docs/header-examples.sh [HEADER...]
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

headers=("$@")
[ $# != 0 ] || headers=(include/slabyard/*.h include/slabyard/*.hpp)
for header in "${headers[@]}"; do
    awk -v OUT="$work" -f tests/docs/header-examples.awk "$header"
done

# The program's own types and variables, which the examples use and do not declare.
cat >"$work/program.h" <<'END'
#include <assert.h>
#include <inttypes.h>
#include <slabyard/slabyard.h>
#include <slabyard/unstable.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
struct order { char symbol[8]; long amount; };
struct session { int socket; };
extern sy_cache *orders, *sessions;
extern sy_heap *tenant;
extern sy_scope *plugin;
extern sy_pool *pool;
extern sy_vmem *ports;
extern struct session *session;
extern void *pointer;
extern char *buffer;
extern size_t room;
extern uintptr_t port;
extern long request;
extern int listener;
END
cat >"$work/program.hpp" <<'END'
#include <functional>
#include <map>
#include <slabyard/slabyard.hpp>
#include <vector>
struct order {
    order(const char *, long) {}
};
struct session {
    explicit session(int) {}
    void poll() {}
};
inline int socket;
END

flags="-Wall -Wextra -Werror -Wno-unused-variable -Wno-unused-but-set-variable -Iinclude -I$work -fsyntax-only"
errors=0 count=0
for example in "$work"/*.c "$work"/*.cpp; do
    [ -e "$example" ] || continue
    count=$((count + 1))
    case $example in
    *.c) compilers=("gcc -std=c11" "clang -std=c11") ;;
    *) compilers=("g++ -std=c++17" "clang++ -std=c++17") ;;
    esac
    for compiler in "${compilers[@]}"; do
        command -v ${compiler%% *} >/dev/null || continue
        $compiler $flags "$example" || errors=$((errors + 1))
    done
done
[ "$errors" = 0 ] || { echo "headers: $errors examples in public headers do not compile" >&2 && exit 1; }
echo "headers: $count examples in public headers compile"
