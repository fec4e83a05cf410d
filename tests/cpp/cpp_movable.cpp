/*
 * cpp_movable.cpp: maps of slabyard.hpp whose objects move (SY_MOVABLE): what moves an object, what
 * keeps one in its place, and which types are refused.
 */
#include <slabyard/slabyard.hpp>

#include <mutex>
#include <thread>
#include <vector>

#include "cpp_test.hpp"

namespace {

constexpr int objects = 20000, one_in = 20;

/* Large enough that few of the objects fill many slabs. It is copied by memcpy. */
struct plain {
    long number;
    char state[120];
    explicit plain(int of) : number(of), state{} { state[119] = static_cast<char>(of); }
    bool is(int of) const { return number == of && state[119] == static_cast<char>(of); }
};

/* It contains its own address, as strings of the C++ library do, and counts itself. */
struct knowing {
    const knowing *self = this;
    order held;
    explicit knowing(int of) : held(std::to_string(of), of) {}
    knowing(knowing &&other) noexcept : held(std::move(other.held)) {
        EXPECT(other.self == &other);
    }
    ~knowing() { EXPECT(self == this); }
    bool is(int of) const {
        return self == this && held.amount == of && held.symbol == std::to_string(of);
    }
};

template <class T> using keys = std::vector<typename slabyard::handle_map<T>::key>;

/* A map in which one object in twenty is left, and no slab is full. */
template <class T> keys<T> fill(slabyard::handle_map<T> &map) {
    keys<T> all;
    for (int i = 0; i < objects; i++) all.push_back(map.emplace(i));
    for (int i = 0; i < objects; i++)
        if (i % one_in != 0) EXPECT(map.erase(all[static_cast<std::size_t>(i)]));
    sy_thread_flush();
    return all;
}

template <class T> void all_are_there(slabyard::handle_map<T> &map, const keys<T> &all) {
    int count = 0;
    slabyard::read_guard guard;
    for (int i = 0; i < objects; i++) {
        T *object = map.get(guard, all[static_cast<std::size_t>(i)]);
        EXPECT((object != nullptr) == (i % one_in == 0));
        if (object == nullptr) continue;
        EXPECT(object->is(i));
        count++;
    }
    EXPECT(count == objects / one_in && map.size() == std::size_t(count));
}

template <class T> void memory_follows_what_is_live() {
    slabyard::handle_map<T> map("moving", 0, SY_MOVABLE);
    const keys<T> all = fill(map);
    const std::size_t before = map.stats().slabs;
    EXPECT(map.compact() > 0);
    EXPECT(map.stats().moves > 0 && map.stats().slabs < before / 4);
    all_are_there(map, all);
    map.clear();
    EXPECT(map.size() == 0);
}

void moved_objects_are_destroyed_once() {
    memory_follows_what_is_live<knowing>();
    EXPECT(living == 0);
}

/* ---- what keeps an object in its place ---- */

constexpr int apart = 100 * one_in; /* so that most slabs have no held object */

void held_objects_stay() {
    slabyard::handle_map<knowing> map("held", 0, SY_MOVABLE);
    const keys<knowing> all = fill(map);
    std::vector<std::pair<slabyard::handle_map<knowing>::ref, knowing *>> held;
    for (std::size_t i = 0; i < objects; i += apart) {
        auto ref = map.get(all[i]);
        knowing *object = ref.get();
        held.emplace_back(std::move(ref), object);
    }
    EXPECT(map.compact() > 0);
    for (const auto &each : held) EXPECT(each.first.get() == each.second);
    for (std::size_t i = 0; i < held.size(); i++)
        EXPECT(held[i].second->is(static_cast<int>(i) * apart));
    all_are_there(map, all);
}

void nothing_moves_in_a_guard() {
    slabyard::handle_map<plain> map("guarded", 0, SY_MOVABLE);
    const keys<plain> all = fill(map);
    {
        slabyard::read_guard outer;
        const std::uint64_t moves = map.stats().moves; /* of a pass that was due */
        plain *object = map.get(outer, all[one_in]);
        EXPECT(object != nullptr && map.compact() == 0);
        std::thread([&] { EXPECT(map.compact() == 0); }).join();
        { slabyard::read_guard inner; }
        std::thread([&] { EXPECT(map.compact() == 0); }).join();
        object->state[0] = 'x'; /* a guard permits to write */
        EXPECT(map.stats().moves == moves && object == map.get(outer, all[one_in]));
    }
    EXPECT(map.compact() > 0);
    EXPECT(map.get(all[one_in])->state[0] == 'x');
    all_are_there(map, all);
}

/* Without the flag too, a guard looks objects up. */
void guards_are_for_all_maps() {
    slabyard::handle_map<plain> map("still");
    const keys<plain> all = fill(map);
    all_are_there(map, all);
    EXPECT(map.compact() == 0 && map.stats().moves == 0);
}

/* ---- types that cannot be moved ---- */

struct throwing {
    throwing() = default;
    throwing(throwing &&) {}
};

template <class T> void is_refused() {
    EXPECT(throws<std::invalid_argument>([] { slabyard::handle_map<T> map("", 0, SY_MOVABLE); }));
    slabyard::handle_map<T> map("still");
    EXPECT(map.get(map.emplace()));
}

void types_that_cannot_move_are_refused() {
    is_refused<std::mutex>();
    is_refused<std::atomic<int>>();
    is_refused<throwing>();
}

/* ---- threads ---- */

using map_of_all = slabyard::handle_map<knowing>;

/* An object that one thread makes, changes and erases. */
struct owned {
    map_of_all::key key;
    int value;
};

void change(map_of_all &map, owned &mine) {
    {
        slabyard::read_guard guard;
        knowing *object = map.get(guard, mine.key);
        EXPECT(object != nullptr && object->is(mine.value));
        object->held.amount = ++mine.value;
        object->held.symbol = std::to_string(mine.value);
    }
    auto held = map.get(mine.key);
    EXPECT(held && held->is(mine.value));
}

/* Fills slabs and erases most objects at random, again and again, until objects have moved: on a
 * busy machine the mover may have to wait for its turn. */
void work(map_of_all &map, unsigned random) {
    std::vector<owned> own(3000);
    for (int round = 0; round < 20 || (round < 2000 && map.stats().moves == 0); round++) {
        for (owned &each : own)
            if (!each.key) each = {map.emplace(round), round};
        for (owned &each : own) {
            random = random * 1103515245u + 12345u;
            change(map, each);
            if ((random >> 16) % one_in != 0) EXPECT(map.erase(std::exchange(each.key, {})));
        }
        sy_thread_flush();
        for (owned &each : own)
            if (each.key) change(map, each);
    }
}

void maps_move_while_they_are_used() {
    map_of_all map("shared", 0, SY_MOVABLE);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; t++) threads.emplace_back([&map, t] { work(map, t); });
    std::thread mover([&] {
        while (!stop) map.compact();
    });
    for (std::thread &each : threads) each.join();
    stop = true;
    mover.join();
    EXPECT(map.stats().moves > 0);
    map.clear();
    EXPECT(map.size() == 0 && living == 0);
}

} // namespace

int main() {
    memory_follows_what_is_live<plain>();
    moved_objects_are_destroyed_once();
    held_objects_stay();
    nothing_moves_in_a_guard();
    guards_are_for_all_maps();
    types_that_cannot_move_are_refused();
    maps_move_while_they_are_used();
}
