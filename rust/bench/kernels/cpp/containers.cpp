/* One layout's table of containers: containers.h. */
#include "containers.h"
#include "containers.hpp"

namespace {

/* Adds a kind of container for each contender. */
template <template <class> class Kind, class... All>
void add(std::vector<bench_container> &table, const char *kind) {
    (table.push_back(container_of<Kind<All>, All>(kind)), ...);
}

#ifdef BENCH_BOOST
#    define BENCH_IF_BOOST(...) __VA_ARGS__
#else
#    define BENCH_IF_BOOST(...)
#endif

template <template <class> class Kind>
void add_nodes(std::vector<bench_container> &table, const char *kind) {
    add<Kind, Slabyard, SlabyardResource, UnsynchronizedPool,
        SynchronizedPool BENCH_IF_BOOST(, UnlockedPool, LockedPool), Standard, Mimalloc>(table,
                                                                                         kind);
}

/* Adds a kind of std::pmr container, whose elements have memory from the same resource. */
template <template <class> class Kind>
void add_resources(std::vector<bench_container> &table, const char *kind) {
    add<Kind, SlabyardResource, UnsynchronizedPool, SynchronizedPool, StandardResource,
        MimallocResource>(table, kind);
}

std::vector<bench_container> everything() {
    std::vector<bench_container> table;
    add_nodes<ListOfValues>(table, "list");
    add_nodes<Map>(table, "map");
    add_nodes<UnorderedMap>(table, "unordered");
    add_nodes<Shared>(table, "shared");
    add<Owned, SlabyardPool, SlabyardCache, SlabyardUnique,
        BENCH_IF_BOOST(ObjectPool, FastPoolObject<UnlockedPool>, FastPoolObject<LockedPool>, )
            StandardUnique,
        MimallocUnique>(table, "single");
    add_resources<ListOfTexts>(table, "pmr-list");
    add_resources<MapOfTexts>(table, "pmr-map");
    return table;
}

} // namespace

#define BENCH_PASTE(prefix, layout) prefix##layout
#define BENCH_NAMED(prefix, layout) BENCH_PASTE(prefix, layout)

extern "C" const bench_container *BENCH_NAMED(bench_containers_, BENCH_LAYOUT)(size_t *count) {
    static const std::vector<bench_container> table = everything();
    *count = table.size();
    return table.data();
}

#if BENCH_LAYOUT == 0
#    ifdef BENCH_BOOST
#        include <boost/version.hpp>
extern "C" const char *bench_boost_version(void) { return BOOST_LIB_VERSION; }
#    else
extern "C" const char *bench_boost_version(void) { return nullptr; }
#    endif
#endif
