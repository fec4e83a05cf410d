#!/usr/bin/env bash
# Uses the Rust crate as a user would, without the network, in a new project outside of the
# workspace. It compiles and runs the whole programs of the documents there: with the crate by
# `cargo add --path`, and with the packages that `cargo publish` would upload. A program loads
# plug-ins that use the crate, and closes them while threads use them. The script also checks that
# the cargo commands in the Makefile and in scripts/*.sh use the versions in rust/Cargo.lock
# (--locked), and that the crates compile with the oldest Rust that their manifests name, if rustup
# has that one.
# Usage: tests/install/rust.sh [--quick]
#   --quick   leaves out the packages and the oldest Rust
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly() { # quietly DESCRIPTION COMMAND...: if it fails, prints its output and ends the script
    local what=$1
    shift
    "$@" >"$work/log" 2>&1 || { echo "install: $what: $(cat "$work/log")" >&2 && exit 1; }
}

export CARGO_TARGET_DIR=$work/target CARGO_NET_OFFLINE=true

for document in README.md docs/rust.md; do
    awk -v OUT="$work" -f tests/docs/extract.awk "$document" >/dev/null
done

stranger() { # stranger NAME CRATE MORE: a new project with this crate, and MORE in its Cargo.toml
    quietly "cargo new" cargo new --vcs none --name "$1" "$work/$1"
    cd "$work/$1"
    echo "$3" >>Cargo.toml
    quietly "cargo add" cargo add --path "$2"
    cp "$root/rust/Cargo.lock" . # the versions on this machine, since there is no network
    local program programs=0
    for program in "$work"/*.rust; do
        cp "$program" src/main.rs
        quietly "$1: $(basename "$program")" cargo run --quiet
        programs=$((programs + 1))
    done
    [ $programs = 2 ] || quietly "$programs programs in the documents, not 2" false
    echo "ok rust-$1"
}

# Eight copies of a plug-in: more than have room in the static block of thread-local storage.
plugins() {
    quietly "cargo new" cargo new --lib --vcs none --name plugin "$work/plugin"
    cd "$work/plugin"
    printf '[lib]\ncrate-type = ["cdylib"]\n' >>Cargo.toml
    quietly "cargo add" cargo add --path "$root/rust/slabyard" --features dlopen
    cp "$root/rust/Cargo.lock" .
    cat >src/lib.rs <<'EOF'
static CACHE: std::sync::LazyLock<slabyard::Cache<[u64; 9]>> =
    std::sync::LazyLock::new(|| slabyard::Cache::new("plugin"));

#[unsafe(no_mangle)]
pub extern "C" fn plugin_work() -> i32 {
    let boxes: Vec<_> = (0..1000).map(|i| CACHE.insert([i; 9])).collect();
    (boxes.iter().map(|object| object[8]).sum::<u64>() != 499_500).into()
}
EOF
    quietly "a plug-in" cargo build --quiet
    local copies=() i
    for i in 1 2 3 4 5 6 7 8; do
        copies+=("$work/plugin$i.so")
        cp "$CARGO_TARGET_DIR/debug/libplugin.so" "${copies[-1]}"
    done
    quietly "the host" "${CC:-cc}" -O1 -I"$root/tests" "$root/tests/hosts/closes.c" -pthread -ldl \
        -o "$work/closes"
    quietly "closing plug-ins" "$work/closes" "${copies[@]}"
    echo "ok rust-plugins"
}

# The feature `nightly`. RUSTC_BOOTSTRAP lets stable Rust compile what is not stable yet.
standard_containers() {
    quietly "cargo new" cargo new --vcs none --name containers "$work/containers"
    cd "$work/containers"
    quietly "cargo add" cargo add --path "$root/rust/slabyard" --features nightly
    cp "$root/rust/Cargo.lock" .
    cp "$root/tests/install/allocator.rs" src/main.rs
    RUSTC_BOOTSTRAP=1 quietly "standard containers" cargo run --quiet
    echo "ok rust-standard-containers"
}

every_command_is_locked() {
    local loose
    loose=$(grep -nE 'cargo .*(-p|--package|--workspace) ?' Makefile scripts/*.sh |
        grep -v -e --locked || true)
    [ -z "$loose" ] || quietly "cargo without --locked: $loose" false
    echo "ok rust-locked"
}

# compiles_on_the_oldest_rust CRATE FEATURES: does nothing unless rustup has the Rust that the crate's
# manifest names.
compiles_on_the_oldest_rust() {
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/rust/$1/Cargo.toml")
    cargo "+$oldest" --version >/dev/null 2>&1 || return 0
    quietly "$1 with Rust $oldest" cargo "+$oldest" check --locked \
        --manifest-path "$root/rust/Cargo.toml" -p "$1" --features "$2"
    echo "ok $1 with Rust $oldest"
}

# What `cargo publish` would upload has a licence and a README, no links, and compiles by itself, each
# crate with the packages of the others. The peers are left out: they take minutes.
packages() {
    local crates=(-p slabyard-sys -p slabyard-certainty -p slabyard-peers -p slabyard -p slabyard-cli)
    local crate name
    cd "$root/rust"
    quietly "cargo package" cargo package --locked --allow-dirty --no-default-features "${crates[@]}"
    mkdir "$work/unpacked"
    for crate in "$work"/target/package/*.crate; do
        tar -xzf "$crate" -C "$work/unpacked"
        name=$(basename "$crate" .crate)
        for file in LICENSE Cargo.toml "$(sed -n 's/^readme = "\(.*\)"/\1/p' "$work/unpacked/$name/Cargo.toml")"; do
            [ -s "$work/unpacked/$name/$file" ] || quietly "$name has no $file" false
        done
    done
    [ "$(find "$work/unpacked" -mindepth 1 -maxdepth 1 | wc -l)" = 5 ] || quietly "not 5 packages" false
    [ -z "$(find "$work/unpacked" -type l)" ] || quietly "a package has links" false
    echo "ok rust-packages"
}

every_command_is_locked
stranger by-path "$root/rust/slabyard" ""
plugins
standard_containers
[ "${1:-}" != --quick ] || exit 0
compiles_on_the_oldest_rust slabyard full
compiles_on_the_oldest_rust slabyard-cli fuzz

packages
stranger as-published "$(echo "$work"/unpacked/slabyard-[0-9]*)" "
[patch.crates-io]
slabyard-sys = { path = \"$(echo "$work"/unpacked/slabyard-sys-[0-9]*)\" }"
