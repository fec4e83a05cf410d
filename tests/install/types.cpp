// A plug-in and, with HOST defined, the program that loads it. Each has its own copy of the
// library, so each has its own cache for the objects of a type.
#include <slabyard/slabyard.hpp>

extern "C" __attribute__((visibility("default"))) const void *plugin_cache();

static const void *cache_of_long() {
    for (int i = 0; i < 100; i++) {
        slabyard::unique_ptr<long> objects[50];
        for (auto &each : objects) each = slabyard::make_unique<long>(i);
        for (auto &each : objects)
            if (*each != i) return nullptr;
    }
    return slabyard::detail::type_cache<long>::get();
}

#ifndef HOST
const void *plugin_cache() { return cache_of_long(); }
#else
#    include <dlfcn.h>

int main(int, char **argv) {
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) return 1;
    auto ask = reinterpret_cast<const void *(*)()>(dlsym(plugin, "plugin_cache"));
    const void *own = cache_of_long(), *others = ask ? ask() : nullptr;
    if (own == nullptr || others == nullptr) return 2;
    return own == others ? 3 : own == cache_of_long() ? 0 : 4;
}
#endif
