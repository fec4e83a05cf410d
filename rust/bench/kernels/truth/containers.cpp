/* Programs whose memory consists of nodes of containers: a map, a hash table, a graph. */
#include "programs.hpp"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace truth {

/* A map of 100,000 keys, in which keys are replaced by other keys. */
uint64_t map_replace(size_t size) {
    Random random(3);
    std::map<uint32_t, uint64_t> map;
    Checksum checksum;
    while (map.size() < 100000) map[random.next()] = map.size();
    for (size_t i = 0; i < size; i++) {
        auto old = map.lower_bound(random.next());
        if (old == map.end()) old = map.begin();
        checksum.add(old->second);
        map.erase(old);
        map[random.next()] = i;
    }
    return checksum.value();
}

/* The table of a server: values of many lengths are set, read and deleted by name. */
uint64_t hash_server(size_t size) {
    Random random(4);
    std::unordered_map<std::string, std::string> table;
    Checksum checksum;
    for (size_t i = 0; i < size; i++) {
        std::string key = "session:" + std::to_string(random.below(60000)) + ":state";
        uint32_t request = random.below(10);
        if (request < 5) {
            auto found = table.find(key);
            checksum.add(found == table.end() ? 0 : found->second.size());
        } else if (request < 9) {
            table[key] = std::string(16 + random.below(random.below(10) == 0 ? 4000 : 400), 'v');
        } else {
            table.erase(key);
        }
    }
    return checksum.value() + table.size();
}

namespace {

struct Node {
    uint64_t value = 0;
    bool seen = false;
    std::vector<Node *> next;
    std::string label;
};

} // namespace

/* Graphs of 100,000 nodes are built, walked from the first node, and destroyed. */
uint64_t graph(size_t size) {
    Random random(5);
    Checksum checksum;
    for (size_t i = 0; i < size; i++) {
        std::vector<std::unique_ptr<Node>> nodes;
        for (uint32_t n = 0; n < 100000; n++) {
            nodes.push_back(std::make_unique<Node>());
            nodes[n]->value = random.next();
            nodes[n]->label = "node number " + std::to_string(n);
            for (uint32_t edges = random.below(5); edges > 0; edges--) {
                nodes[random.below(n + 1)]->next.push_back(nodes[n].get());
            }
        }
        std::deque<Node *> open{nodes[0].get()};
        while (!open.empty()) {
            Node *node = open.front();
            open.pop_front();
            if (node->seen) continue;
            node->seen = true;
            checksum.add(node->value + node->label.size());
            for (Node *next : node->next) open.push_back(next);
        }
    }
    return checksum.value();
}

} // namespace truth
