#!/usr/bin/env bash
# Tests where the drop-in malloc writes its messages: to the file that is stderr at the start, also
# if the program closes it before it exits, and never into a file of the program that has got the
# number 2. Also tests that the options `help` and `stats` act in a program that never allocates,
# and that `help` and sy_option_each give the defaults of this library.
# Needs a C compiler.
# Usage: tests/malloc/messages.sh LIBRARY
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
library=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset SLABYARD

fail() {
    echo "messages: $*" >&2
    exit 1
}
under() { env LD_PRELOAD="$library" "$@"; }

# The program leaks a block. Each letter of its first argument is a step.
cat >"$work/program.c" <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile block;

static void close_stderr(void) { fclose(stderr); }

static int is_second(const char *file, int more) {
    return open(file, O_WRONLY | O_CREAT | more, 0600) == 2 && write(2, "data\n", 5) == 5;
}

int main(int count, char **arguments) {
    for (const char *step = arguments[1]; *step; step++) switch (*step) {
        case 'l': block = malloc(100); block = NULL; break;
        case 'x': atexit(close_stderr); break;
        case 'c': close(2); break;
        case 'a': for (int i = 2; i < 1024; i++) close(i); break; /* all */
        case 'r': if (open(arguments[2], O_RDWR) != 2) return 1; lseek(2, 0, SEEK_END); break;
        case 'w': if (open(arguments[2], O_WRONLY) != 2) return 1; break;
        case 'o': if (!is_second(arguments[2], 0)) return 1; break;
        case '+': if (!is_second(arguments[2], O_APPEND)) return 1; break;
        case 'd': block = malloc(100); free(block); free(block); break;
        }
    return 0;
}
END
cc -O0 -fno-builtin -w "$work/program.c" -o "$work/program"

# run OPTIONS STEPS: sets `said` to what the program writes to stderr, and `file` to what is in its file
run() {
    : >"$work/file"
    SLABYARD=$1 under "$work/program" "$2" "$work/file" 2>"$work/said" || true
    said=$(<"$work/said")
    file=$(<"$work/file")
}
says() { grep -q "$1" <<<"$said" || fail "after $2, stderr has no '$1': $said"; }
unharmed() { [ "$file" = data ] || fail "after $1, the program's file contains: $file"; }

# Under `true`, which never allocates.
said=$(SLABYARD=help under true 2>&1)
says '^  redzone=BYTES' true
says '^  sample=.*(default: 1/50000;' true
says '^  maintenance=.*(default: auto;' true
said=$(SLABYARD=stats under true 2>&1)
says 'memory of process' true
echo "ok options without an allocation"

# sy_option_each knows the defaults of this library, too: no option is set here.
cat >"$work/defaults.c" <<'END'
#include <slabyard/options.h>
#include <string.h>

static int differs(void *arg, const sy_option *option) {
    char value[300];
    (void)arg;
    if (sy_get_option(option->name, value, sizeof value) < 0) return 1;
    return strcmp(value, option->initial) != 0;
}

int main(void) { return sy_option_each(differs, NULL); }
END
cc -I"$root/include" "$work/defaults.c" "$library" -Wl,-rpath,"$(dirname "$library")" -o "$work/defaults"
"$work/defaults" || fail "sy_option_each gives other defaults than the library has"
echo "ok defaults"

# At exit. The tools of coreutils close stderr in a function that runs at exit.
said=$(SLABYARD=stats under ls / 2>&1 >/dev/null)
says 'heap-' ls
for steps in lx lc lco lc+; do
    run stats $steps
    says 'memory of process' "$steps"
    run leaks=exit $steps
    says 'leak' "$steps"
    case $steps in *o | *+) unharmed "$steps" ;; esac
done
(ulimit -n 20 && SLABYARD=stats under "$work/program" lc) 2>"$work/said"
said=$(<"$work/said")
says 'memory of process' "few descriptors"
run stats lao
unharmed "the program has closed all descriptors"
[ -z "$said" ] || fail "after all descriptors are closed: $said"
echo "ok at exit"

# Reports of misuse: to stderr, or to a log that the program has put in its place. (A pipe in its
# place: malloc.callbacks.)
run "" d
says 'double free' d
run "" lcod
[[ $file == data*'double free'* ]] || fail "a file that is only written has no report: $file"
for way in r w; do # a file that is also read, and one that is not written up to its end
    printf 'data\n' >"$work/kept"
    (SLABYARD='' under "$work/program" lc${way}d "$work/kept" || true) 2>"$work/said"
    file=$(<"$work/kept")
    unharmed "misuse with a file that has data ($way) in place of stderr"
done
run stats lcod
unharmed "misuse with a file in place of stderr, and stats"
says 'double free' "the second descriptor"
run "" "lc+d"
grep -q 'double free' <<<"$file" || fail "a log in place of stderr has no report: $file"
echo "ok misuse"

# With stderr closed at the start.
for steps in lo o l+ + lod od "+d"; do
    for options in "" stats leaks=exit; do
        : >"$work/file"
        SLABYARD=$options under "$work/program" "$steps" "$work/file" 2>&- || true
        file=$(<"$work/file")
        unharmed "$steps with stderr closed and $options"
    done
done
echo "ok closed stderr"
