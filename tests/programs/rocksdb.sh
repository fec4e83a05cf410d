commands="db_bench ldb sst_dump"
packages="rocksdb-tools"
version="ldb --version"
checks="db_bench: writes, deletes, merges and reads by 4 threads, compaction, checksums of all blocks verified; contents dumped and compared"
seconds=400
processes="db_bench ldb sst_dump"

bench() { # bench BENCHMARKS OPTIONS...
    local list=$1
    shift
    db_bench --db="$PWD/db" --benchmarks="$list" --num=60000 --value_size=200 --seed=5 --verify_checksum=1 \
        --statistics=0 --bloom_bits=10 --cache_size=8000000 --write_buffer_size=2000000 --compression_type=none \
        "$@" >>bench.log 2>&1
}
work_on_database() {
    # Only one thread writes, so the contents are the same in each run.
    bench fillseq,overwrite,deleteseq,fillrandom,compact,verifychecksum,levelstats --threads=1
    bench readrandom,readseq,readreverse,seekrandom,multireadrandom,verifychecksum --threads=4 --use_existing_db=1
    grep -cE '^(readrandom|fillrandom|verifychecksum).*micros/op' bench.log
    ldb --db="$PWD/db" scan --hex --max_keys=100000 | cksum
    ldb --db="$PWD/db" checkconsistency
    sst_dump --file="$PWD/db" --command=verify 2>&1 | grep -c 'The file is ok'
    bench readwhilewriting,updaterandom,appendrandom,verifychecksum --threads=4 --use_existing_db=1
    ldb --db="$PWD/db" checkconsistency
    ! grep -iE 'corruption|error' bench.log
}
program() {
    both rocksdb work_on_database
    grep -x OK with.out
}
