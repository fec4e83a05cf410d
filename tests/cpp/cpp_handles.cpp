/*
 * cpp_handles.cpp: keys of slabyard.hpp's maps, whose type depends on the map, and maps that are
 * cleared while destructors of their objects insert others.
 */
#include <slabyard/slabyard.hpp>

#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "cpp_test.hpp"

namespace {

/* ---- keys ---- */

struct session {
    slabyard::handle_key<session> next; /* the type need not be complete */
};
struct bought;
struct sold;

using sessions = slabyard::handle_map<session>;
using orders = slabyard::handle_map<order>;
using orders_bought = slabyard::handle_map<order, bought>;
using orders_sold = slabyard::handle_map<order, sold>;

template <class Map, class Key, class = void> struct takes : std::false_type {};
template <class Map, class Key>
struct takes<Map, Key, std::void_t<decltype(std::declval<Map &>().get(std::declval<Key>()))>>
    : std::true_type {};
template <class Map, class Key, class = void> struct erases : std::false_type {};
template <class Map, class Key>
struct erases<Map, Key, std::void_t<decltype(std::declval<Map &>().erase(std::declval<Key>()))>>
    : std::true_type {};

static_assert(takes<orders, orders::key>() && erases<orders, orders::key>());
static_assert(!takes<orders, sessions::key>() && !erases<orders, sessions::key>());
static_assert(!takes<orders_sold, orders_bought::key>() && !takes<orders, orders_sold::key>());
static_assert(!takes<orders, sy_handle>() && !std::is_convertible_v<orders::key, sy_handle>);
static_assert(!std::is_convertible_v<orders::key, sessions::key>);
static_assert(sizeof(orders::key) == 8 && std::is_trivially_copyable_v<orders::key>);

void keys_go_out_and_come_back() {
    orders_bought map("bought");
    auto key = map.emplace("ACME", 1), other = map.emplace("ACME", 2);
    const std::uint64_t bits = key.to_bits();
    EXPECT(orders_bought::key::from_bits(bits) == key && map.get(key)->amount == 1);
    EXPECT(key && !orders_bought::key() && key != other && (key < other) != (other < key));
    std::unordered_map<orders_bought::key, int> of;
    of[key] = 1;
    of[other] = 2;
    EXPECT(of.size() == 2 && of.at(key) == 1);
    sessions named;
    auto first = named.emplace(), second = named.emplace(session{first});
    EXPECT(named.get(second)->next == first);
}

/* ---- destructors that emplace ---- */

struct successor;
using successors = slabyard::handle_map<successor>;

/* Its destructor inserts another one, `left` times. Counts the objects made and destroyed. */
struct successor {
    static inline int made = 0, destroyed = 0;
    successors *map;
    int left;
    successor(successors *of, int more) : map(of), left(more) { made++; }
    ~successor() {
        destroyed++;
        if (left != 0) map->emplace(map, left - 1);
    }
};

void each_is_destroyed_once(int generations, int objects) {
    successor::made = successor::destroyed = 0;
    {
        successors map;
        for (int i = 0; i < objects; i++) map.emplace(&map, generations);
    }
    EXPECT(successor::made == objects * (generations + 1));
    EXPECT(successor::destroyed == successor::made);
    successor::made = successor::destroyed = 0;
    successors map;
    for (int i = 0; i < objects; i++) map.emplace(&map, generations);
    map.clear();
    EXPECT(map.size() == 0 && successor::destroyed == objects * (generations + 1));
}

void what_a_destructor_emplaces_is_destroyed() {
    each_is_destroyed_once(0, 1000);
    each_is_destroyed_once(1, 1);
    each_is_destroyed_once(3, 1000);
    each_is_destroyed_once(500, 1);
}

/* The clear ends, and the remaining objects keep their addresses. */
void an_endless_destructor_is_left() {
    successor::made = successor::destroyed = 0;
    {
        successors map("endless");
        map.emplace(&map, -1);
        map.clear();
        EXPECT(map.size() == 1);
    }
    EXPECT(successor::made == successor::destroyed + 1 && successor::made > 1000);
}

/* An object that is held while its map is destroyed outlives the map. */
void a_held_object_outlives_its_map() {
    orders::ref held;
    {
        orders map("held");
        held = map.get(map.emplace("ACME", 1));
        map.emplace("ACME", 2);
    }
    EXPECT(living == 1 && held->amount == 1);
    held = orders::ref();
    EXPECT(living == 0);
}

void clear_is_for_all_threads() {
    orders map;
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; i++) map.emplace("ACME", i);
            stop = true;
        });
    threads.emplace_back([&] {
        while (!stop) map.clear();
    });
    for (std::thread &each : threads) each.join();
    map.clear();
    EXPECT(map.size() == 0 && living == 0);
}

} // namespace

int main() {
    keys_go_out_and_come_back();
    what_a_destructor_emplaces_is_destroyed();
    an_endless_destructor_is_left();
    a_held_object_outlives_its_map();
    clear_is_for_all_threads();
}
