# Functions for scripts that need Debian's packages for another processor, or sources of Debian's
# packages: tests/install/emulated.sh and tests/install/musl.sh source this file. They use apt-get
# with lists and a cache in a folder of their own, and install nothing.
#
# The caller sets: folder   where the lists and the downloaded files go, in its folder apt
#                  arch     whose packages are wanted, as Debian names the processor

release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")

# apt_get ARGUMENTS...: apt-get with the system's sources, their source packages, and Debian's
# backports. It knows of no installed package, so it also finds the libraries that a package needs.
apt_get() {
    apt-get -q -o APT::Architecture="$arch" -o APT::Architectures="$arch,$(dpkg --print-architecture)" \
        -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" \
        -o Dir::Cache="$folder/apt" -o Dir::Etc::sourcelist="$folder/apt/sources.list" \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}

# prepare_apt [RELEASE]: makes the folder and fetches the lists; with a release, that one's in place of
# the system's. Fails where apt-get does not use Debian's packages.
prepare_apt() {
    local debian
    command -v apt-get >/dev/null || return 1
    # shellcheck disable=SC2016 # apt-get replaces these
    debian=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' |
        awk -v release="$release" '$1 == "Debian" && $2 == release { print $3; exit }')
    [ -n "$debian" ] || return 1
    mkdir -p "$folder"/apt/{lists,archives}/partial
    : >"$folder/apt/status"
    if [ "${1:-$release}" = "$release" ]; then
        { cat /etc/apt/sources.list 2>/dev/null || true; } >"$folder/apt/sources.list"
        printf '%s\n' "deb-src $debian $release main" "deb $debian $release-backports main" \
            >>"$folder/apt/sources.list"
    else
        echo "deb $debian $1 main" >"$folder/apt/sources.list"
    fi
    apt_get update || true # some of these may not be there; the other lists are
}
