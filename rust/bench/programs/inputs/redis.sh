# Starts a server, sends it the commands of the file `commands`, and ends it. Only the server runs
# with the preloaded library. Without one it gets the C library's malloc, in front of the library
# that Debian links it with.
library=${LD_PRELOAD:-libc.so.6}
unset LD_PRELOAD
rm -f socket
LD_PRELOAD=$library ./redis-server --port 0 --unixsocket "$PWD/socket" --save '' --appendonly no \
    --daemonize no --logfile /dev/null &
until redis-cli -s socket ping >/dev/null 2>&1; do sleep 0.01; done
redis-cli -s socket --pipe <commands | tail -n 1
redis-cli -s socket dbsize
redis-cli -s socket shutdown nosave
wait
