/*
 * cpp_owners.cpp: owners of slabyard.hpp that are moved, asked without exceptions, reserved, reset
 * and counted; and memory that goes back when a constructor throws.
 */
#include <slabyard/slabyard.hpp>

#include <list>
#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "cpp_test.hpp"

namespace {

using order_map = slabyard::handle_map<order>;

/* ---- try_ ---- */

void full_is_nothing() {
    slabyard::pool<int> pool(1);
    slabyard::cache<int> cache("one", 1, SY_LIMIT_EXACT);
    slabyard::handle_map<int> map("one", 1, SY_LIMIT_EXACT);
    int *of_pool = pool.try_make(1), *of_cache = cache.try_make(2);
    auto key = map.try_emplace(3);
    EXPECT(*of_pool == 1 && *of_cache == 2 && *map.get(key) == 3);
    EXPECT(pool.try_make(4) == nullptr && !pool.try_make_unique(4));
    EXPECT(cache.try_make(5) == nullptr && !cache.try_make_unique(5));
    EXPECT(!map.try_emplace(6) && throws<std::bad_alloc>([&] { map.emplace(6); }));
    pool.destroy(of_pool);
    cache.destroy(of_cache);
    EXPECT(map.erase(key));
    EXPECT(*pool.try_make_unique(7) == 7 && *cache.try_make_unique(8) == 8);
    EXPECT(map.try_emplace(9));
}

/* Of each owner, as many as there is room for: no slot is lost to a constructor that throws. */
void a_constructor_that_throws_loses_nothing() {
    constexpr int most = 10;
    slabyard::pool<order> pool(most);
    slabyard::cache<order> cache("ten", most, SY_LIMIT_EXACT);
    order_map map("ten", most, SY_LIMIT_EXACT);
    slabyard::memory_resource resource("ten", 1 << 20);
    for (int i = 0; i < 3 * most; i++) {
        EXPECT(throws<std::invalid_argument>([&] { pool.try_make("ACME", -1); }));
        EXPECT(throws<std::invalid_argument>([&] { pool.make_unique("ACME", -1); }));
        EXPECT(throws<std::invalid_argument>([&] { cache.try_make("ACME", -1); }));
        EXPECT(throws<std::invalid_argument>([&] { cache.make_unique("ACME", -1); }));
        EXPECT(throws<std::invalid_argument>([&] { map.try_emplace("ACME", -1); }));
        EXPECT(throws<std::invalid_argument>([] { slabyard::make_unique<order>("ACME", -1); }));
        EXPECT(throws<std::invalid_argument>([] { slabyard::make_shared<order>("ACME", -1); }));
        EXPECT(throws<std::invalid_argument>([] {
            std::list<order, slabyard::allocator<order>> list;
            list.emplace_back("ACME", -1);
        }));
        EXPECT(throws<std::invalid_argument>([&] {
            std::pmr::list<order> list(&resource);
            list.emplace_back("ACME", -1);
        }));
    }
    EXPECT(living == 0 && pool.in_use() == 0 && cache.in_use() == 0 && map.size() == 0);
    EXPECT(sy_cache_in_use(slabyard::detail::type_cache<order>::get()) == 0);
    EXPECT(resource.stats().objects == 0);
    std::vector<slabyard::pool<order>::unique> of_pool;
    std::vector<slabyard::cache<order>::unique> of_cache;
    for (int i = 0; i < most; i++) {
        of_pool.push_back(pool.make_unique("ACME", i));
        of_cache.push_back(cache.make_unique("ACME", i));
        map.emplace("ACME", i);
    }
    EXPECT(!pool.try_make("ACME", most) && !cache.try_make("ACME", most));
    EXPECT(!map.try_emplace("ACME", most) && living == 3 * most);
}

/* ---- moves ---- */

template <class Owner>
constexpr bool moves_only =
    std::is_nothrow_move_constructible_v<Owner> &&std::is_nothrow_move_assignable_v<Owner> &&
    !std::is_copy_constructible_v<Owner> && !std::is_copy_assignable_v<Owner>;

static_assert(moves_only<slabyard::pool<order>> && moves_only<slabyard::cache<order>> &&
              moves_only<slabyard::epoch> && moves_only<order_map> && moves_only<order_map::ref>);
/* Containers keep its address. */
static_assert(!std::is_move_constructible_v<slabyard::memory_resource> &&
              !std::is_move_assignable_v<slabyard::memory_resource>);

/* What the source gave before is the target's. */
template <class Of> void move_and_destroy() {
    Of first;
    auto given = first.make_unique("ACME", 1);
    order *plain = first.make("ACME", 2);
    Of second(std::move(first));
    EXPECT(second && !first && second.in_use() == 2);
    given.reset();
    second.destroy(plain);
    EXPECT(living == 0 && second.in_use() == 0);
    first = Of(); /* a source can be assigned to, and is as good as new */
    EXPECT(first && first.in_use() == 0);
    first.destroy(first.make("ACME", 3));
    auto kept = second.make_unique("ACME", 4);
    first = std::move(second);
    EXPECT(first && !second && first.in_use() == 1 && kept->amount == 4);
    Of &same = first;
    first = std::move(same);
    EXPECT(first && first.in_use() == 1);
    kept.reset();
    std::vector<Of> several(3);
    several.emplace_back(std::move(first));
    EXPECT(several[3].make_unique("ACME", 5)->amount == 5);
    EXPECT(living == 0);
}

void owners_are_moved() {
    move_and_destroy<slabyard::pool<order>>();
    move_and_destroy<slabyard::cache<order>>();
}

void maps_are_moved() {
    order_map first("first");
    auto key = first.emplace("ACME", 1);
    auto held = first.get(key);
    order_map second(std::move(first));
    EXPECT(second && !first && held->amount == 1 && second.get(key)->amount == 1);
    held = order_map::ref(); /* lets go of it, in the map that has it now */
    first = order_map("new");
    auto other = first.emplace("ACME", 2);
    EXPECT(living == 2);
    first = std::move(second); /* what it had is destroyed */
    EXPECT(living == 1 && !second && !first.get(other) && first.get(key)->amount == 1);
    order_map &same = first;
    first = std::move(same);
    EXPECT(first.get(key)->amount == 1);
    EXPECT(first.erase(key) && living == 0);
}

void epochs_are_moved() {
    slabyard::cache<order> cache("phased", 0, SY_EPOCHS);
    slabyard::epoch first("request");
    order *kept;
    {
        slabyard::epoch::scope in(first);
        kept = cache.make("ACME", 1);
    }
    slabyard::epoch second(std::move(first));
    EXPECT(second && !first && first.close() == 0);
    EXPECT(throws<std::bad_alloc>([&] { slabyard::epoch::scope in(first); }));
    EXPECT(second.close() == 1 && !second);
    cache.destroy(kept);
}

/* ---- reset, reserve, trim, stats ---- */

void a_pool_is_reset() {
    slabyard::pool<int> pool(100);
    int *first = pool.make(1);
    for (int i = 1; i < 100; i++) (void)pool.make(i);
    EXPECT(pool.try_make(100) == nullptr);
    pool.reset();
    EXPECT(pool.in_use() == 0 && pool.make(1) == first);
    EXPECT(sy_pool_in_use(pool.get()) == 1);
    slabyard::pool<int> growing;
    growing.destroy(growing.make(1));
    EXPECT(growing.trim() > 0 && *growing.make(2) == 2);
}

void each_cache_is_visited() {
    slabyard::cache<order> cache("visited");
    std::size_t times = 0, all = 0;
    slabyard::each_cache([&](const sy_cache_account &account) {
        all++;
        times += account.cache && std::string(account.stats.name) == "visited";
    });
    EXPECT(times == 1 && all > 1);
    all = 0;
    try {
        slabyard::each_cache([&](const sy_cache_account &) { throw ++all; });
    } catch (std::size_t thrown) {
        EXPECT(thrown == 1);
    }
    EXPECT(all == 1);
    EXPECT(!slabyard::print_stats(-1) && errno == EBADF);
}

void memory_is_reserved() {
    slabyard::cache<order> cache("reserved");
    cache.reserve(5000);
    sy_cache_stats stats = cache.stats();
    EXPECT(std::string(stats.name) == "reserved" && stats.slots >= 5000 && stats.in_use == 0);
    order_map map("reserved");
    map.reserve(5000);
    EXPECT(map.stats().slots >= 5000 && map.stats().object_size == sizeof(order));
    EXPECT(throws<std::bad_alloc>([&] { cache.reserve(SIZE_MAX / sizeof(order)); }));
    EXPECT(throws<std::bad_alloc>([&] { map.reserve(SIZE_MAX / sizeof(order)); }));
    EXPECT(cache.trim() > 0 && map.trim() > 0);
    slabyard::memory_resource resource("counted");
    std::pmr::list<int> numbers(10, &resource);
    EXPECT(resource.stats().objects == 10);
}

/* ---- owners of const objects and of derived ones ---- */

void const_objects_are_owned() {
    auto made = slabyard::make_unique<const order>("ACME", 3);
    slabyard::unique_ptr<const order> given = slabyard::make_unique<order>("ACME", 4);
    slabyard::cache<const int> cache;
    EXPECT(made->amount == 3 && given->amount == 4 && *cache.make_unique(5) == 5);
    made.reset();
    given.reset();
    EXPECT(living == 0);
}

struct shape {
    virtual int sides() const = 0;

  protected:
    ~shape() = default; /* not virtual */
};

struct other_base {
    long filler = 1;
};

struct square final : other_base, shape {
    order name{"square", 4};
    int sides() const override { return 4; }
};

struct triangle final : virtual shape {
    order name{"triangle", 3};
    int sides() const override { return 3; }
};

struct plain_base {
    int number = 1;
};

struct plain_derived : other_base, plain_base {
    order name{"plain", 1};
};

void objects_are_owned_by_their_base() {
    std::vector<slabyard::unique_base<shape>> shapes;
    for (int i = 0; i < 100; i++) {
        shapes.push_back(slabyard::make_unique<square>());
        shapes.push_back(slabyard::make_unique<triangle>());
    }
    int sides = 0;
    for (auto &each : shapes) sides += each->sides();
    EXPECT(sides == 700 && living == 200);
    shapes.clear();
    EXPECT(living == 0);
    {
        slabyard::unique_base<plain_base> plain = slabyard::make_unique<plain_derived>();
        EXPECT(plain->number == 1 && living == 1);
    }
    EXPECT(living == 0);
}

struct holder {
    slabyard::unique_base<shape> current;
};

const slabyard::unique_base<shape> none_at_all;

void an_owner_of_a_base_may_be_empty() {
    holder one, two{nullptr};
    slabyard::unique_base<shape> none = nullptr;
    EXPECT(!one.current && !two.current && !none && !none_at_all);
    one.current = slabyard::make_unique<square>();
    std::swap(one, two);
    EXPECT(!one.current && two.current->sides() == 4 && living == 1);
    std::map<int, slabyard::unique_base<shape>> shapes;
    shapes[3] = slabyard::make_unique<triangle>();
    shapes[4] = std::move(two.current);
    EXPECT(!shapes[5] && shapes[3]->sides() == 3 && shapes[4]->sides() == 4 && living == 2);
    shapes[3] = nullptr;
    shapes[4].reset();
    EXPECT(living == 0);
}

/* ---- std::pmr ---- */

/* As std::pmr::new_delete_resource. */
void resources_align_as_asked() {
    slabyard::memory_resource resource("aligned");
    for (size_t align = 1; align <= size_t(1) << 26; align *= 2) {
        for (size_t bytes : {size_t(1), size_t(100), align, 3 * align / 2 + 1}) {
            void *object = resource.allocate(bytes, align);
            EXPECT(reinterpret_cast<uintptr_t>(object) % align == 0);
            static_cast<char *>(object)[0] = static_cast<char *>(object)[bytes - 1] = 1;
            resource.deallocate(object, bytes, align);
        }
    }
    EXPECT(
        throws<std::bad_alloc>([&] { (void)resource.allocate(SIZE_MAX - 100, size_t(1) << 26); }));
    EXPECT(resource.stats().objects == 0);
    std::pmr::synchronized_pool_resource pools(std::pmr::pool_options{0, 16 << 20}, &resource);
    for (size_t bytes = 1 << 20; bytes <= 16 << 20; bytes *= 2)
        pools.deallocate(pools.allocate(bytes), bytes);
}

} // namespace

int main() {
    full_is_nothing();
    a_constructor_that_throws_loses_nothing();
    owners_are_moved();
    maps_are_moved();
    epochs_are_moved();
    a_pool_is_reset();
    each_cache_is_visited();
    memory_is_reserved();
    const_objects_are_owned();
    objects_are_owned_by_their_base();
    an_owner_of_a_base_may_be_empty();
    resources_align_as_asked();
}
