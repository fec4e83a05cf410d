/*
 * heap_profile.cpp: a server that hands out its heap profile by HTTP. `GET /heap` is a file for
 * pprof and other viewers. The memory to look at is the server's table of orders.
 *
 *     c++ -std=c++17 -g heap_profile.cpp $(pkg-config --cflags --libs slabyard-static) && ./a.out 0
 *     pprof -symbolize=local -sample_index=inuse_space a.out http://localhost:PORT/heap
 *
 * The profile has the memory that the program takes from Slabyard: here the table. That of new and
 * malloc is in the profile if the drop-in malloc is used. A profile shows addresses and paths, so
 * only programs on this machine can connect.
 */
#include <arpa/inet.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <slabyard/profile.h>
#include <slabyard/slabyard.hpp>

namespace {

constexpr std::size_t MEAN = 64 << 10; /* bytes from one sample to the next, on average */
constexpr std::size_t REQUEST_MAX = 8192;
constexpr int PATIENCE_S = 10; /* with a client that neither sends nor reads */
constexpr int ORDERS = 100000;

/* ---- what the server keeps ---- */

struct order {
    char customer[80];
    std::uint64_t price;
};

using order_table =
    std::map<int, order, std::less<>, slabyard::allocator<std::pair<const int, order>>>;

order_table take_orders(int count) {
    order_table orders;
    for (int i = 0; i < count; i++) orders[i].price = static_cast<std::uint64_t>(i);
    return orders;
}

/* ---- the profile by HTTP ---- */

/* The request up to the empty line that ends it; less if the client ends early. */
std::string receive(int client) {
    std::string request;
    char part[1024];
    while (request.size() < REQUEST_MAX && request.find("\r\n\r\n") == std::string::npos) {
        ssize_t count = recv(client, part, sizeof part, 0);
        if (count <= 0) break;
        request.append(part, static_cast<std::size_t>(count));
    }
    return request;
}

void send_text(int client, std::string_view text) {
    while (!text.empty()) {
        ssize_t count = send(client, text.data(), text.size(), 0);
        if (count < 0) return perror("no answer was sent");
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

void answer(int client) {
    if (receive(client).rfind("GET /heap ", 0) != 0)
        return send_text(client, "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
    send_text(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                      "Content-Type: application/octet-stream\r\n\r\n");
    if (sy_profile_write(client) != 0) perror("a profile was not sent whole");
}

[[noreturn]] void serve(int listener) {
    const timeval patience = {PATIENCE_S, 0};
    for (;;) {
        int client = accept(listener, nullptr, nullptr);
        if (client < 0) continue;
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        answer(client);
        close(client);
    }
}

/* Listens on this machine alone. Port 0: one that is free. Returns -1 if that fails. */
int listen_at(std::uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    socklen_t length = sizeof address;
    auto *generic = reinterpret_cast<sockaddr *>(&address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), again = 1;
    if (listener < 0) return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    if (bind(listener, generic, length) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, generic, &length) != 0)
        return -1;
    std::printf("listening at port %d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    return listener;
}

int fail(const char *what) {
    perror(what);
    return 1;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fputs("usage: heap_profile PORT\n", stderr);
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN); /* a client may go before it has the whole profile */
    if (sy_profile_start(MEAN) != 0) return fail("no profile is taken");
    order_table orders = take_orders(ORDERS);
    int listener = listen_at(static_cast<std::uint16_t>(std::atoi(argv[1])));
    if (listener < 0) return fail("no port to listen at");
    std::thread server(serve, listener);
    /* Here the program does its work. */
    server.join();
}
