commands="nginx curl ab"
packages="nginx curl apache2-utils"
version="nginx -v 2>&1"
checks="3 workers serve 40 files, plain, in parts and compressed, bytes compared; two reloads under the load of ab"
seconds=180
processes="nginx"

program() {
    local port i server load
    port=$(free_port)
    mkdir files
    for i in $(seq 40); do seq $((i * 7)) $((i * i * 50)) >"files/f$i.txt"; done
    chmod -R a+rX .
    cat >nginx.conf <<CONF
daemon off; worker_processes 3; pid $work/pid; error_log $work/error.log warn;
$([ "$(id -u)" != 0 ] || echo "user root;")
events { worker_connections 256; }
http {
    access_log off; gzip on; gzip_types text/plain; gzip_min_length 100; types { text/plain txt; }
    client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
    server { listen 127.0.0.1:$port; root $work/files; location /again/ { proxy_pass http://127.0.0.1:$port/; } }
}
CONF
    (use_library && exec nginx -p "$work" -c "$work/nginx.conf") &
    server=$!
    wait_for answers "$port"
    ab -q -n 20000 -c 20 "http://127.0.0.1:$port/f9.txt" >ab.out 2>&1 &
    load=$!
    fetch() {
        local from
        for i in $(seq 40); do
            for from in "f$i.txt" "again/f$i.txt"; do
                curl -sS --fail --compressed "http://127.0.0.1:$port/$from" | cmp - "files/f$i.txt"
                curl -sS --fail "http://127.0.0.1:$port/$from" | cmp - "files/f$i.txt"
            done
        done
        curl -sS --fail -r 100-9999 "http://127.0.0.1:$port/f40.txt" |
            cmp - <(tail -c +101 files/f40.txt | head -c 9900)
    }
    fetch
    nginx -p "$work" -c "$work/nginx.conf" -s reload
    fetch
    nginx -p "$work" -c "$work/nginx.conf" -s reload
    fetch
    wait "$load"
    cat ab.out
    grep -E '^Complete requests: +20000$' ab.out
    grep -E '^Failed requests: +0$' ab.out
    nginx -p "$work" -c "$work/nginx.conf" -s quit
    wait "$server"
    ! grep -E 'alert|crit|emerg|signal' error.log
}
