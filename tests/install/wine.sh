# To be sourced by tests that run programs for Windows, in the root of the repository: sets `wine`, the
# program, and starts its server, which stays until the test ends. Ends the test with 77 if there is no
# wine.

leave_out() {
    echo "$(basename "$0" .sh): $*"
    exit 77
}
[ "$(uname -m)" = x86_64 ] || leave_out "wine runs Windows programs for x86-64 on such a processor alone"

wine=$(command -v wine64 || { [ ! -x /usr/lib/wine/wine64 ] || echo /usr/lib/wine/wine64; })
[ -n "$wine" ] || leave_out "wine is missing (Debian: wine64)"
export WINEPREFIX=$PWD/build/windows/wine WINEDEBUG=-all WINEDLLOVERRIDES=winedbg.exe=d DISPLAY=
mkdir -p "$WINEPREFIX"
server=$(dirname "$wine")/wineserver64
[ -x "$server" ] || server=$(command -v wineserver) || leave_out "wineserver is missing"
"$server" -p60 || leave_out "wine does not start here" # stays, so programs start at once
trap '"$server" -k || true' EXIT
# The first program starts wine's services, which keep its output open.
timeout 120 "$wine" cmd /c exit >build/windows/wine.log 2>&1 </dev/null || leave_out "wine starts no programs here"
