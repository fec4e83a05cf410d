/*
 * cpp_interface.cpp: tests slabyard.hpp with objects that count themselves: each is destroyed once,
 * and a constructor that throws leaves nothing behind.
 */
#include <slabyard/slabyard.hpp>

#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cpp_test.hpp"

namespace {

struct alignas(256) wide {
    char bytes[300];
};

/* ---- pool, cache ---- */

template <class Of> void make_and_destroy(Of &of) {
    order *one = of.make("ACME", 100);
    EXPECT(living == 1 && one->amount == 100 && of.in_use() == 1);
    of.destroy(one);
    of.destroy(nullptr);
    EXPECT(living == 0 && of.in_use() == 0);
    EXPECT(throws<std::invalid_argument>([&] { of.make("ACME", -1); }));
    EXPECT(living == 0 && of.in_use() == 0);
    {
        auto owned = of.make_unique("a symbol that is long enough for memory of its own", 5);
        auto moved = std::move(owned);
        EXPECT(!owned && moved->amount == 5 && of.in_use() == 1);
        static_assert(sizeof owned == 2 * sizeof(void *), "an object and whose it is");
    }
    EXPECT(living == 0 && of.in_use() == 0);
}

void objects_are_made_and_destroyed() {
    slabyard::pool<order> pool;
    slabyard::cache<order> cache("order");
    make_and_destroy(pool);
    make_and_destroy(cache);
}

void full_is_bad_alloc() {
    slabyard::pool<int> pool(2);
    slabyard::cache<int> cache("two", 2, SY_LIMIT_EXACT);
    EXPECT(pool.capacity() == 2);
    int *objects[] = {pool.make(1), pool.make(2), cache.make(3), cache.make(4)};
    EXPECT(*objects[1] == 2 && *objects[2] == 3);
    EXPECT(throws<std::bad_alloc>([&] { pool.make(5); }));
    EXPECT(throws<std::bad_alloc>([&] { cache.make(6); }));
    cache.destroy(objects[2]);
    cache.destroy(objects[3]);
    EXPECT(throws<std::bad_alloc>([] { slabyard::cache<int> none("none", 0, ~0u); }));
    EXPECT(throws<std::bad_alloc>([] { slabyard::pool<int> none(0, "none", ~0u); }));
}

void every_alignment_holds() {
    slabyard::pool<wide> pool;
    slabyard::cache<wide> cache;
    std::list<wide, slabyard::allocator<wide>> list(10);
    std::vector<wide, slabyard::allocator<wide>> vector(10);
    wide *of_cache = cache.make();
    EXPECT(reinterpret_cast<std::uintptr_t>(pool.make()) % 256 == 0);
    EXPECT(reinterpret_cast<std::uintptr_t>(of_cache) % 256 == 0);
    for (wide &each : list) EXPECT(reinterpret_cast<std::uintptr_t>(&each) % 256 == 0);
    for (wide &each : vector) EXPECT(reinterpret_cast<std::uintptr_t>(&each) % 256 == 0);
    EXPECT(reinterpret_cast<std::uintptr_t>(slabyard::make_unique<wide>().get()) % 256 == 0);
    cache.destroy(of_cache);
}

/* No more than a type asks for: 40 bytes at 8 are 40 bytes. */
void objects_lie_close() {
    struct node {
        std::uint64_t words[5];
    };
    slabyard::cache<node> cache;
    EXPECT(sy_cache_slot_size(cache.get()) == 40);
    EXPECT(sy_cache_slot_size(slabyard::detail::type_cache<node>::get()) == 40);
    slabyard::pool<node> pool;
    node *first = pool.make();
    EXPECT(pool.make() == first + 1);
    struct odd {
        char text[13];
    };
    EXPECT(sy_cache_slot_size(slabyard::detail::type_cache<odd>::get()) == 16);
}

void objects_go_from_thread_to_thread() {
    slabyard::cache<order> cache("handed over");
    auto given = cache.make_unique("ACME", 1);
    std::thread([taken = std::move(given)]() mutable { taken.reset(); }).join();
    EXPECT(living == 0);
}

void live_objects_outlive_a_cache() {
    order *one;
    {
        slabyard::cache<order> cache("left");
        one = cache.make("ACME", 7);
    }
    EXPECT(one->amount == 7);
    one->~order();
}

/* ---- containers ---- */

template <class Container, class Fill> void use(Fill fill) {
    Container first;
    for (int i = 0; i < 10000; i++) fill(first, i);
    Container second(first), third(std::move(first));
    EXPECT(second == third && second.size() == 10000);
    swap(second, third);
    third.clear();
    EXPECT(second.size() == 10000);
}

void containers_take_the_allocator() {
    using text = std::basic_string<char, std::char_traits<char>, slabyard::allocator<char>>;
    using pair = std::pair<const int, int>;
    use<std::list<int, slabyard::allocator<int>>>([](auto &of, int i) { of.push_front(i); });
    use<std::vector<int, slabyard::allocator<int>>>([](auto &of, int i) { of.push_back(i); });
    use<std::set<int, std::less<>, slabyard::allocator<int>>>(
        [](auto &of, int i) { of.insert(i); });
    use<std::map<int, int, std::less<>, slabyard::allocator<pair>>>(
        [](auto &of, int i) { of[i] = i; });
    use<std::unordered_map<int, int, std::hash<int>, std::equal_to<>, slabyard::allocator<pair>>>(
        [](auto &of, int i) { of[i] = i; });
    text longer(1000, 'x');
    longer += longer;
    EXPECT(longer.size() == 2000);
    EXPECT(slabyard::allocator<int>() == slabyard::allocator<pair>());
    slabyard::allocator<wide> many;
    EXPECT(throws<std::bad_alloc>([&] { (void)many.allocate(SIZE_MAX / 100); }));
}

void pointers_of_a_type_need_no_owner() {
    auto one = slabyard::make_unique<order>("ACME", 3);
    static_assert(sizeof one == sizeof(void *), "the object alone");
    EXPECT(throws<std::invalid_argument>([] { slabyard::make_unique<order>("ACME", -1); }));
    auto shared = slabyard::make_shared<order>("ACME", 4);
    std::weak_ptr<order> weak = shared;
    std::thread([taken = std::move(shared)] { EXPECT(taken->amount == 4); }).join();
    EXPECT(weak.expired() && living == 1);
    one.reset();
    EXPECT(living == 0);
}

/* ---- std::pmr ---- */

void resources_count_and_go_as_a_whole() {
    slabyard::memory_resource tenant("tenant", 8 << 20);
    {
        std::pmr::vector<int> numbers(&tenant);
        std::pmr::map<int, std::pmr::string> names(&tenant);
        for (int i = 0; i < 10000; i++) {
            numbers.push_back(i);
            names.emplace(i, std::pmr::string(50, 'n'));
        }
        sy_heap_stats stats;
        EXPECT(sy_heap_get_stats(tenant.get(), &stats) == 0 && stats.objects > 20000);
        EXPECT(throws<std::bad_alloc>([&] { numbers.reserve(16 << 20); }));
        EXPECT(numbers.size() == 10000);
    }
    sy_heap_stats stats;
    EXPECT(sy_heap_get_stats(tenant.get(), &stats) == 0 && stats.objects == 0);
    for (std::size_t align = 1; align <= 4096; align *= 2) {
        for (std::size_t bytes : {0u, 1u, 8u, 9u, 100u}) {
            void *objects[20];
            for (void *&object : objects) {
                object = tenant.allocate(bytes, align);
                EXPECT(reinterpret_cast<std::uintptr_t>(object) % align == 0);
            }
            for (void *object : objects) tenant.deallocate(object, bytes, align);
        }
    }
    slabyard::memory_resource other;
    EXPECT(tenant == tenant && tenant != other);
    (void)tenant.allocate(1000, 8); /* goes with the resource */
}

void resources_have_every_size() {
    slabyard::memory_resource tenant;
    std::map<char *, std::size_t> live;
    for (int round = 0; round < 3; round++) {
        for (std::size_t bytes = 0; bytes <= 1100; bytes++) {
            char *object = static_cast<char *>(tenant.allocate(bytes, bytes <= 8 ? 8 : 16));
            auto next = live.lower_bound(object);
            EXPECT(next == live.end() || object + bytes <= next->first);
            EXPECT(next == live.begin() ||
                   std::prev(next)->first + std::prev(next)->second <= object);
            live.emplace(object, bytes);
            std::memset(object, 1, bytes);
        }
        for (auto &each : live)
            tenant.deallocate(each.first, each.second, each.second <= 8 ? 8 : 16);
        live.clear();
        sy_heap_stats stats;
        EXPECT(sy_heap_get_stats(tenant.get(), &stats) == 0 && stats.objects == 0);
    }
}

/* A checked heap notes the size of every allocation, and every free. */
void checked_resources_see_what_is_asked_for() {
    slabyard::memory_resource tenant("tenant", 0, SY_CHECKED);
    for (int round = 0; round < 2; round++) {
        void *object = tenant.allocate(33, 8);
        EXPECT(sy_heap_usable_size(tenant.get(), object) == 33);
        tenant.deallocate(object, 33, 8);
        EXPECT(sy_heap_usable_size(tenant.get(), object) == 0);
    }
}

void resources_are_for_all_threads() {
    slabyard::memory_resource shared;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&shared] {
            std::pmr::map<int, std::pmr::string> names(&shared);
            for (int i = 0; i < 20000; i++) {
                names.emplace(i, std::pmr::string(static_cast<std::size_t>(i % 1000), 'n'));
                if (i >= 500) names.erase(i - 500);
            }
            for (auto &each : names) EXPECT(each.second.size() == std::size_t(each.first % 1000));
        });
    for (std::thread &each : threads) each.join();
    sy_heap_stats stats;
    EXPECT(sy_heap_get_stats(shared.get(), &stats) == 0 && stats.objects == 0);
}

/* ---- phases ---- */

void epochs_are_scopes() {
    slabyard::cache<order> cache("phased", 0, SY_EPOCHS);
    slabyard::epoch request("request");
    order *kept;
    {
        slabyard::epoch::scope in(request);
        EXPECT(sy_epoch_current() != nullptr);
        kept = cache.make("ACME", 1);
        cache.destroy(cache.make("ACME", 2));
    }
    EXPECT(sy_epoch_current() == nullptr);
    EXPECT(request.close() == 1 && request.close() == 0);
    EXPECT(throws<std::bad_alloc>([&] { slabyard::epoch::scope in(request); }));
    cache.destroy(kept);
}

void scopes_are_entered_and_left() {
    slabyard::scope session("session"), request("request");
    std::vector<int, slabyard::allocator<int>> kept;
    {
        slabyard::scope::entered in(session);
        kept.resize(1000);
        {
            slabyard::scope::entered within(request);
            std::vector<int, slabyard::allocator<int>> numbers(500);
            EXPECT(request.live() >= 1);
        }
        EXPECT(request.live() == 0);
        EXPECT(throws<int>([&] {
            slabyard::scope::entered thrown_out_of(request);
            throw 1;
        }));
        EXPECT(sy_scope_current() != nullptr);
    }
    EXPECT(sy_scope_current() == nullptr);
    std::size_t bytes;
    EXPECT(session.live(&bytes) == 1 && bytes >= 4000);
    slabyard::scope moved(std::move(session));
    kept = {};
    kept.shrink_to_fit();
    EXPECT(moved.live() == 0 && moved.report() == 0);
}

/* ---- handles ---- */

using order_map = slabyard::handle_map<order>;

void keys_are_stale_once_they_are_erased() {
    order_map map("orders");
    order_map::key key = map.emplace("ACME", 100), other = map.emplace("EMCA", 200);
    EXPECT(map.size() == 2 && map.get(key)->amount == 100 && (*map.get(other)).amount == 200);
    EXPECT(!map.get(order_map::key()));
    EXPECT(!map.get(order_map::key::from_bits(key.to_bits() + 1000)));
    {
        order_map::ref held = map.get(key);
        EXPECT(map.erase(key) && !map.erase(key) && !map.get(key));
        EXPECT(living == 2 && held->symbol == "ACME");
        order_map::ref moved = std::move(held);
        EXPECT(!held && moved);
        moved = map.get(other);
        EXPECT(living == 1 && moved->amount == 200);
    }
    EXPECT(throws<std::invalid_argument>([&] { map.emplace("ACME", -1); }));
    EXPECT(living == 1 && map.size() == 1);
    int sum = 0;
    map.each([&](order_map::key name, order &each) {
        sum += each.amount;
        EXPECT(name == other && map.erase(name));
    });
    EXPECT(sum == 200 && living == 0 && map.size() == 0);
}

void what_a_visit_throws_ends_it() {
    order_map map;
    std::vector<order_map::key> keys;
    for (int i = 0; i < 100; i++) keys.push_back(map.emplace("ACME", i));
    int visited = 0;
    EXPECT(throws<std::logic_error>([&] {
        map.each([&](order_map::key, order &) {
            if (++visited == 10) throw std::logic_error("enough");
        });
    }));
    EXPECT(visited == 10 && living == 100);
    for (order_map::key key : keys) EXPECT(map.erase(key)); /* no object is held */
    EXPECT(living == 0);
}

void maps_destroy_what_is_in_them() {
    {
        order_map map;
        for (int i = 0; i < 1000; i++) map.emplace("ACME", i);
        EXPECT(living == 1000);
    }
    EXPECT(living == 0);
}

void maps_are_for_all_threads() {
    order_map map;
    std::vector<order_map::key> keys;
    std::vector<std::thread> threads;
    std::atomic<int> erased{0};
    for (int i = 0; i < 20000; i++) keys.push_back(map.emplace("ACME", i));
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&] {
            for (std::size_t i = 0; i < keys.size(); i++) {
                if (auto held = map.get(keys[i])) EXPECT(held->amount == static_cast<int>(i));
                if (map.erase(keys[i])) erased++;
            }
        });
    for (std::thread &each : threads) each.join();
    EXPECT(erased == 20000 && living == 0 && map.size() == 0);
}

} // namespace

int main() {
    objects_are_made_and_destroyed();
    full_is_bad_alloc();
    every_alignment_holds();
    objects_lie_close();
    objects_go_from_thread_to_thread();
    live_objects_outlive_a_cache();
    containers_take_the_allocator();
    pointers_of_a_type_need_no_owner();
    resources_count_and_go_as_a_whole();
    resources_have_every_size();
    checked_resources_see_what_is_asked_for();
    resources_are_for_all_threads();
    epochs_are_scopes();
    scopes_are_entered_and_left();
    keys_are_stale_once_they_are_erased();
    what_a_visit_throws_ends_it();
    maps_destroy_what_is_in_them();
    maps_are_for_all_threads();
}
