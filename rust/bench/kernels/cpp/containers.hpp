/*
 * Kinds of containers, as templates over the contender that makes their nodes (contenders.hpp), and
 * their loops.
 *
 * A kind has a constructor with the arguments of bench_container's begin, fill(), clear(), and
 * those of pair(), replace(), find() and build() that `operations` names. Each operation returns
 * the sum of the elements that it looked at.
 */
#ifndef BENCH_CONTAINERS_HPP
#define BENCH_CONTAINERS_HPP

#include "contenders.hpp"

#include <functional>
#include <list>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

/* ---- what is in them ---- */

inline uint64_t seen(const Value &value) {
    hide(const_cast<Value *>(&value));
    return value.words[0];
}

inline std::tuple<uint64_t> arguments_of(const Value *, uint64_t seed) { return {seed}; }

/* Text of 24 to 512 bytes, which is in the same resource as the node that has it. */
struct Text {
    using allocator_type = std::pmr::polymorphic_allocator<char>;
    std::pmr::string text;
    Text(size_t bytes, char with, const allocator_type &from) : text(bytes, with, from) {}
};

inline uint64_t seen(const Text &value) {
    hide(const_cast<Text *>(&value));
    return value.text.size() + static_cast<unsigned char>(value.text.back());
}

inline std::tuple<size_t, char> arguments_of(const Text *, uint64_t seed) {
    Random random{seed};
    return {23 + random.below(489), static_cast<char>('a' + seed % 26)};
}

/* Unique keys in no order: the whole states of the generator. */
struct Keys {
    Random random;
    uint64_t next() {
        random.below(1);
        return random.state;
    }
};

constexpr unsigned operation(bench_operation which) { return 1u << which; }

/* ---- kinds ---- */

/* A list: the oldest element is erased, and another one is inserted. */
template <class Contender, class Content = Value> struct List {
    static constexpr unsigned operations = operation(BENCH_REPLACE) | operation(BENCH_BUILD);

    std::list<Content, typename Contender::template Of<Content>> all;
    size_t live;
    Keys keys;

    List(typename Contender::State &state, void *, size_t count, uint64_t seed)
        : all(Contender::template of<Content>(state)), live(count), keys{{seed}} {}

    void push() {
        std::apply([&](auto... arguments) { all.emplace_back(arguments...); },
                   arguments_of(static_cast<Content *>(nullptr), keys.next()));
        hide(&all.back());
    }
    uint64_t pop() {
        uint64_t sum = seen(all.front());
        all.pop_front();
        return sum;
    }
    uint64_t fill() {
        for (size_t i = 0; i < live; i++) {
            push();
        }
        return all.size();
    }
    uint64_t clear() {
        uint64_t sum = 0;
        while (!all.empty()) {
            sum += pop();
        }
        return sum;
    }
    uint64_t replace() {
        push();
        return pop();
    }
    uint64_t build() {
        fill();
        uint64_t sum = 0;
        for (const Content &value : all) {
            sum += seen(value);
        }
        all.clear();
        return sum;
    }
};

/* Maps by key; a place has the key of an element. */
template <class Contender, template <class, class> class Container, class Content> struct Keyed {
    static constexpr unsigned operations = operation(BENCH_REPLACE) | operation(BENCH_FIND);

    using Entry = std::pair<const uint64_t, Content>;
    Container<Content, typename Contender::template Of<Entry>> all;
    uint64_t *places;
    size_t live;
    Random random;
    Keys keys;

    Keyed(typename Contender::State &state, void *room, size_t count, uint64_t seed)
        : all(Contender::template of<Entry>(state)), places(static_cast<uint64_t *>(room)),
          live(count), random{seed}, keys{{~seed}} {}

    void insert(uint64_t *place) {
        uint64_t key = keys.next();
        auto made = all.emplace(std::piecewise_construct, std::forward_as_tuple(key),
                                arguments_of(static_cast<Content *>(nullptr), key));
        hide(&made.first->second);
        *place = key;
    }
    uint64_t erase(const uint64_t *place) {
        auto found = all.find(*place);
        uint64_t sum = seen(found->second);
        all.erase(found);
        return sum;
    }
    uint64_t fill() {
        for (size_t i = 0; i < live; i++) {
            insert(&places[i]);
        }
        return all.size();
    }
    uint64_t clear() {
        uint64_t sum = 0;
        for (size_t i = 0; i < live; i++) {
            sum += erase(&places[i]);
        }
        return sum;
    }
    uint64_t replace() {
        uint64_t *place = &places[random.below(live)];
        uint64_t sum = erase(place);
        insert(place);
        return sum;
    }
    uint64_t find() { return seen(all.find(places[random.below(live)])->second); }
};

template <class Content, class Allocator>
using OrderedOf = std::map<uint64_t, Content, std::less<uint64_t>, Allocator>;
template <class Content, class Allocator>
using UnorderedOf =
    std::unordered_map<uint64_t, Content, std::hash<uint64_t>, std::equal_to<uint64_t>, Allocator>;

template <class Contender> using ListOfValues = List<Contender>;
template <class Contender> using ListOfTexts = List<Contender, Text>;
template <class Contender> using Map = Keyed<Contender, OrderedOf, Value>;
template <class Contender> using MapOfTexts = Keyed<Contender, OrderedOf, Text>;
template <class Contender> using UnorderedMap = Keyed<Contender, UnorderedOf, Value>;

/* Objects and their owners; a place has the owner of one. */
template <class Maker> struct Owned {
    static constexpr unsigned operations =
        operation(BENCH_PAIR) | operation(BENCH_REPLACE) | operation(BENCH_BUILD);

    using Owner = typename Maker::Owner;
    static_assert(sizeof(Owner) <= BENCH_PLACE, "an owner has its place");

    typename Maker::State &state;
    Owner *places;
    size_t live;
    Random random;
    Keys keys;
    std::vector<uint32_t> order; /* in which build() destroys, made when it is first needed */

    Owned(typename Maker::State &in, void *room, size_t count, uint64_t seed)
        : state(in), places(static_cast<Owner *>(room)), live(count), random{seed}, keys{{~seed}} {
        std::uninitialized_default_construct_n(places, live);
    }
    ~Owned() { std::destroy_n(places, live); }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;

    Owner made() {
        Owner owner = Maker::make(state, keys.next());
        hide(owner.get());
        return owner;
    }
    static uint64_t destroy(Owner *place) {
        uint64_t sum = seen(**place);
        place->reset();
        return sum;
    }
    uint64_t fill() {
        for (size_t i = 0; i < live; i++) {
            places[i] = made();
        }
        return live;
    }
    uint64_t clear() {
        uint64_t sum = 0;
        for (size_t i = 0; i < live; i++) {
            sum += destroy(&places[i]);
        }
        return sum;
    }
    uint64_t pair() {
        Owner owner = made();
        return seen(*owner);
    }
    uint64_t replace() {
        Owner *place = &places[random.below(live)];
        uint64_t sum = destroy(place);
        *place = made();
        return sum;
    }
    uint64_t build() {
        if (order.empty()) shuffle();
        fill();
        uint64_t sum = 0;
        for (uint32_t index : order) {
            sum += destroy(&places[index]);
        }
        return sum;
    }

  private:
    void shuffle() {
        for (size_t i = 0; i < live; i++) {
            order.push_back(static_cast<uint32_t>(i));
        }
        for (size_t last = live; last-- > 1;) {
            std::swap(order[last], order[random.below(last + 1)]);
        }
    }
};

/* Object and counts in one piece. */
template <class Contender> struct SharedBy {
    using State = typename Contender::State;
    using Owner = std::shared_ptr<Value>;
    static Owner make(State &state, uint64_t seed) {
        return std::allocate_shared<Value>(Contender::template of<Value>(state), seed);
    }
};
template <class Contender> using Shared = Owned<SharedBy<Contender>>;

/* ---- the loops ---- */

template <class Kind, uint64_t (Kind::*Operation)()>
BENCH_KERNEL uint64_t repeated(void *container, uint64_t count) {
    BENCH_ENTER();
    Kind &kind = *static_cast<Kind *>(container);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += (kind.*Operation)();
    }
    return sum;
}

using trim_function = void (*)(void *);

/* Pools of single objects have nothing to trim. */
template <class State>
auto trim_of(int) -> decltype(std::declval<State &>().trim(), trim_function()) {
    return [](void *state) { static_cast<State *>(state)->trim(); };
}
template <class State> trim_function trim_of(...) { return nullptr; }

/* On cache lines of its own: several threads have one each. */
template <class Kind> struct alignas(128) Apart : Kind { using Kind::Kind; };

template <class Kind, class Contender> bench_container functions_of() {
    using State = typename Contender::State;
    bench_container table{};
    table.open = []() -> void * { return new State; };
    table.close = [](void *state) { delete static_cast<State *>(state); };
    table.trim = trim_of<State>(0);
    table.begin = [](void *state, void *places, size_t live, uint64_t seed) -> void * {
        Kind *kind = new Apart<Kind>(*static_cast<State *>(state), places, live, seed);
        return kind;
    };
    table.end = [](void *container) {
        delete static_cast<Apart<Kind> *>(static_cast<Kind *>(container));
    };
    table.fill = [](void *container) { return static_cast<Kind *>(container)->fill(); };
    table.clear = [](void *container) { return static_cast<Kind *>(container)->clear(); };
    return table;
}

template <class Kind> void set_operations(bench_container &table) {
    if constexpr ((Kind::operations & operation(BENCH_PAIR)) != 0)
        table.run[BENCH_PAIR] = repeated<Kind, &Kind::pair>;
    if constexpr ((Kind::operations & operation(BENCH_REPLACE)) != 0)
        table.run[BENCH_REPLACE] = repeated<Kind, &Kind::replace>;
    if constexpr ((Kind::operations & operation(BENCH_FIND)) != 0)
        table.run[BENCH_FIND] = repeated<Kind, &Kind::find>;
    if constexpr ((Kind::operations & operation(BENCH_BUILD)) != 0)
        table.run[BENCH_BUILD] = repeated<Kind, &Kind::build>;
}

template <class Kind, class Contender> bench_container container_of(const char *kind) {
    bench_container table = functions_of<Kind, Contender>();
    table.kind = kind;
    table.who = Contender::name;
    table.traits = Contender::traits;
    set_operations<Kind>(table);
    return table;
}

} // namespace

#endif
