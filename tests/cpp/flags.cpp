/* flags.cpp: uses each class of slabyard.hpp. scripts/check-headers compiles it with the options of
 * unusual programs: without exceptions, without run-time types, with warnings that others lack. */
#include <slabyard/slabyard.hpp>

#include <string>
#include <vector>

struct shape {
    virtual int sides() const = 0;

  protected:
    ~shape() = default;
};

struct square final : shape {
    std::string name = "square";
    int sides() const override { return 4; }
};

int use_all();

int use_all() {
    slabyard::pool<square> pool;
    slabyard::cache<square> cache;
    slabyard::handle_map<square> map;
    slabyard::memory_resource resource;
    slabyard::epoch epoch("epoch");
    slabyard::epoch::scope scope(epoch);
    std::pmr::vector<int> numbers(100, &resource);
    std::vector<int, slabyard::allocator<int>> others(100);
    slabyard::unique_base<shape> base, none = nullptr;
    if (!none) base = slabyard::make_unique<square>();
    auto shared = slabyard::make_shared<square>();
    auto constant = slabyard::make_unique<const square>();
    auto key = map.emplace();
    int sides = map.get(key)->sides() + base->sides() + shared->sides() + constant->sides();
    map.each([&](auto, square &each) { sides += each.sides(); });
    slabyard::handle_map<square> movable("movable", 0, SY_MOVABLE);
    slabyard::read_guard guard;
    sides += movable.get(guard, movable.emplace())->sides() + static_cast<int>(movable.compact());
    slabyard::each_cache([](const sy_cache_account &) {});
    sides += pool.make_unique()->sides() + cache.make_unique()->sides();
    return sides + numbers[0] + others[0];
}
