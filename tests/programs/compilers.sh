commands="gcc g++ clang"
packages="gcc g++ clang libc6-dev"
checks="gcc, clang, g++ and clang++ compile this project: every object is the same"
version="echo gcc \$(gcc -dumpfullversion), clang \$(clang -dumpversion)"
seconds=600
processes="cc1 cc1plus x86_64-linux-gnu-as x86_64-linux-gnu-ld.bfd clang"
[ "$(uname -m)" = x86_64 ] || processes="cc1 cc1plus clang"

compile() { # compile COMPILER FLAGS... -- FILES...: an object of each, two at a time
    local -a compiler=()
    while [ "$1" != -- ]; do compiler+=("$1") && shift; done
    shift
    printf '%s\n' "$@" | xargs -P2 -I{} sh -c '
        source=$1
        shift
        "$@" -c "$source" -o "$(echo "$source" | tr / -).o"' sh {} "${compiler[@]}"
    sums ./*.o
}
flags="-I$root/include -I$root/src -I$root -D_GNU_SOURCE -w"
mapfile -t sources < <(find "$root/src" -name '*.c' | sort)
c() { compile "$@" -std=c11 $flags -- "${sources[@]}"; }
cpp() { compile "$@" -std=c++17 $flags -- "$root"/tests/cpp/*.cpp; }
link() {
    gcc -std=c11 $flags -O1 -flto -fPIC -shared "${sources[@]}" -o library.so -pthread
    sums library.so
}
program() {
    both gcc c gcc -O2 -g
    both clang c clang -O1 -g
    both g++ cpp g++ -O1 -g
    both clang++ cpp clang++ -O0
    both lto link
}
