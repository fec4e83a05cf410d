commands="stress-ng"
packages="stress-ng"
version="stress-ng --version | cut -d' ' -f1-3"
checks="malloc with touched pages, threads and sizes, and trees, lists, sorting, fork, threads, strings: stressors with --verify"
seconds=300
processes="stress-ng"

program() {
    use_library
    local run="stress-ng --verify --temp-path $work --no-rand-seed --timeout 120s --log-brief"
    $run --malloc 4 --malloc-ops 400000
    $run --malloc 2 --malloc-ops 20000 --malloc-touch --malloc-bytes 256K
    $run --malloc 2 --malloc-ops 200000 --malloc-pthreads 4 --malloc-max 2000 --malloc-thresh 64K
    $run --tree 2 --tree-ops 3 --list 2 --list-ops 20 --hsearch 2 --hsearch-ops 50 --qsort 2 --qsort-ops 4
    $run --fork 2 --fork-ops 500 --pthread 2 --pthread-ops 2000 --vfork 1 --vfork-ops 200
    $run --judy 1 --judy-ops 20 --skiplist 1 --skiplist-ops 10 --str 1 --str-ops 500 --zlib 1 --zlib-ops 20
}
