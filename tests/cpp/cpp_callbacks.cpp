/*
 * cpp_callbacks.cpp: callbacks that do not return. A constructor may be left by an exception or by
 * the end of its thread, and nothing is lost. If another callback does not return, or longjmp is
 * used, this is reported and ends the process.
 */
#include <slabyard/slabyard.hpp>

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <pthread.h>
#include <set>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "cpp_test.hpp"

namespace {

/* ---- constructors ---- */

constexpr long mark = 0x600d;
long built, unbuilt, until; /* objects constructed, destructed; constructions until one is left */
void (*leave)();

int construct(void *object, void *) {
    if (--until == 0) leave();
    *static_cast<long *>(object) = mark;
    built++;
    return 0;
}

void destruct(void *object, void *) {
    EXPECT(*static_cast<long *>(object) == mark);
    unbuilt++;
}

void throw_42() { throw 42; }

sy_cache *make_cache(unsigned flags, size_t limit = 0) {
    sy_cache_config config{};
    config.name = "callbacks";
    config.size = 100;
    config.construct = construct;
    config.destruct = destruct;
    config.flags = flags;
    config.limit = limit;
    sy_cache *cache = sy_cache_create(&config);
    EXPECT(cache != nullptr);
    return cache;
}

/* The program's caches. If sy_malloc is the program's malloc, more size classes are opened at any
 * time. */
size_t caches() {
    size_t count = 0;
    auto visit = [](void *counted, const sy_cache_account *account) {
        if (account->kind == SY_CACHE_OF_PROGRAM) ++*static_cast<size_t *>(counted);
        return 0;
    };
    EXPECT(sy_cache_each(visit, &count) == 0);
    return count;
}

/* All objects have come back, and the end of the cache is not put off. */
void end_cache(sy_cache *cache, size_t others) {
    until = 0;
    EXPECT(sy_cache_in_use(cache) == 0);
    EXPECT(sy_verify() == 0);
    EXPECT(sy_cache_destroy(cache) == 0);
    EXPECT(caches() == others);
    EXPECT(built == unbuilt);
}

bool alloc_or_thrown(sy_cache *cache, std::vector<void *> &objects) {
    try {
        void *object = sy_cache_alloc(cache);
        EXPECT(object != nullptr && *static_cast<long *>(object) == mark);
        objects.push_back(object);
    } catch (int) {
        return false;
    }
    return true;
}

void thrown_by_allocations(unsigned flags, size_t limit) {
    size_t others = caches();
    sy_cache *cache = make_cache(flags, limit);
    leave = throw_42;
    int thrown = 0;
    for (int round = 1; round <= 40; round++) {
        std::vector<void *> objects;
        until = round;
        for (int i = 0; i < 300; i++) {
            if (alloc_or_thrown(cache, objects)) continue;
            thrown++;
            EXPECT(sy_cache_in_use(cache) == objects.size());
        }
        for (void *object : objects) sy_cache_free(cache, object);
        EXPECT(sy_cache_in_use(cache) == 0);
        until = 0;
        sy_cache_trim(cache);
    }
    EXPECT(thrown == 40);
    end_cache(cache, others);
}

void thrown_by_batches(unsigned flags) {
    size_t others = caches();
    sy_cache *cache = make_cache(flags);
    leave = throw_42;
    void *objects[500];
    for (int round = 1; round <= 300; round += 23) {
        until = round;
        EXPECT(throws<int>([&] { sy_cache_alloc_batch(cache, objects, 500); }));
        EXPECT(sy_cache_in_use(cache) == 0);
        sy_cache_trim(cache);
    }
    end_cache(cache, others);
}

void thrown_by_a_reserve() {
    size_t others = caches();
    sy_cache *cache = make_cache(0);
    leave = throw_42;
    for (int round = 1; round <= 100; round += 9) {
        until = round;
        EXPECT(throws<int>([&] { sy_thread_reserve(cache, 150); }));
        EXPECT(sy_cache_in_use(cache) == 0);
        EXPECT(sy_thread_reserve(cache, 150) == 0);
        sy_cache_trim(cache);
    }
    end_cache(cache, others);
}

void thrown_by_handles() {
    size_t others = caches();
    sy_cache *cache = make_cache(SY_HANDLES);
    leave = throw_42;
    for (int round = 1; round <= 60; round++) {
        sy_handle handle;
        until = round;
        std::vector<sy_handle> handles;
        EXPECT(throws<int>([&] {
            while (sy_handle_alloc(cache, &handle) != nullptr) handles.push_back(handle);
        }));
        EXPECT(sy_cache_in_use(cache) == handles.size());
        for (sy_handle each : handles) EXPECT(sy_handle_free(cache, each));
        sy_cache_trim(cache);
    }
    end_cache(cache, others);
}

/* The end of a thread unwinds as an exception does. */
void exit_thread() { pthread_exit(nullptr); }

/* AddressSanitizer does not see that the frames of a thread that ends early are gone. */
#if defined(__SANITIZE_ADDRESS__)
constexpr bool threads_may_end = false;
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
constexpr bool threads_may_end = false;
#    else
constexpr bool threads_may_end = true;
#    endif
#else
constexpr bool threads_may_end = true;
#endif

void cancel_thread() {
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

void *alloc_until_left(void *cache) {
    for (;;) sy_cache_alloc(static_cast<sy_cache *>(cache));
}

void threads_that_end_in_a_constructor() {
    for (unsigned flags : {0u, unsigned(SY_CHECKED), unsigned(SY_POISON)})
        for (void (*way)() : {exit_thread, cancel_thread}) {
            size_t others = caches();
            sy_cache *cache = make_cache(flags);
            leave = way;
            until = 100;
            pthread_t thread;
            EXPECT(pthread_create(&thread, nullptr, alloc_until_left, cache) == 0);
            EXPECT(pthread_join(thread, nullptr) == 0);
            until = 0;
            size_t live = sy_cache_in_use(cache);
            EXPECT(live < 100);
            sy_cache_destroy_all(cache);
            EXPECT(caches() == others && built == unbuilt);
        }
}

/* ---- visitors ---- */

struct counted {
    ~counted() { destroyed++; }
    static inline int destroyed;
};

slabyard::handle_map<counted> *visited;

void *end_in_a_walk(void *) {
    visited->each([](auto, counted &) { leave(); });
    return nullptr;
}

void *end_in_each_cache(void *) {
    slabyard::each_cache([](const sy_cache_account &) { leave(); });
    return nullptr;
}

/* The end of the thread passes through the C functions. Then no object is held: an object that is
 * erased is destroyed at once. */
void threads_that_end_in_a_visitor() {
    slabyard::handle_map<counted> map("visited");
    visited = &map;
    auto key = map.emplace();
    for (void (*way)() : {exit_thread, cancel_thread})
        for (auto body : {end_in_a_walk, end_in_each_cache}) {
            pthread_t thread;
            void *result;
            leave = way;
            EXPECT(pthread_create(&thread, nullptr, body, nullptr) == 0);
            EXPECT(pthread_join(thread, &result) == 0);
            EXPECT(result == (way == cancel_thread ? PTHREAD_CANCELED : nullptr));
        }
    EXPECT(throws<int>([&] { map.each([](auto, counted &) { throw 42; }); }));
    EXPECT(map.erase(key) && counted::destroyed == 1);
    EXPECT(sy_verify() == 0);
}

/* ---- constructors that do more than construct ---- */

/* The items of a thread stay in its magazine while a constructor trims or exceeds a limit. */
void a_constructor_trims_in_a_reserve() {
    size_t others = caches();
    sy_cache *cache = make_cache(0);
    until = 0;
    void *first = sy_cache_alloc(cache);
    leave = [] { sy_trim(); };
    until = 5;
    EXPECT(sy_thread_reserve(cache, 200) == 0);
    std::set<void *> objects{first};
    for (int i = 0; i < 2000; i++) EXPECT(objects.insert(sy_cache_alloc(cache)).second);
    EXPECT(sy_cache_in_use(cache) == objects.size());
    for (void *object : objects) sy_cache_free(cache, object);
    end_cache(cache, others);
}

sy_cache *ended;

void end_and_throw() {
    sy_cache_destroy_all(ended);
    throw 42;
}

void end_and_exit() {
    sy_cache_destroy_all(ended);
    pthread_exit(nullptr);
}

/* Each slow path that constructs. */
void end_by_alloc() {
    for (;;) EXPECT(sy_cache_alloc(ended) != nullptr);
}

void end_by_batch() {
    static void *objects[1000];
    sy_cache_alloc_batch(ended, objects, 1000);
}

void end_by_reserve() { sy_thread_reserve(ended, 100); }

void end_by_handle() {
    sy_handle handle;
    for (;;) EXPECT(sy_handle_alloc(ended, &handle) != nullptr);
}

struct ending {
    void (*use)();
    unsigned flags;
    int until; /* the construction that ends the cache */
};

const ending all_endings[] = {
    {end_by_alloc, 0, 3},
    {end_by_alloc, SY_CHECKED, 3},
    {end_by_alloc, SY_POISON, 3},
    {end_by_batch, 0, 400},
    {end_by_batch, SY_CHECKED, 400},
    {end_by_batch, SY_POISON, 400},
    {end_by_reserve, 0, 3},
    {end_by_handle, SY_HANDLES, 3},
    {end_by_handle, SY_HANDLES | SY_CHECKED, 3},
    {end_by_handle, SY_HANDLES | SY_POISON, 3},
};

void *use_in_thread(void *of) {
    static_cast<const ending *>(of)->use();
    return nullptr;
}

/* The end of a cache is put off until its constructor has been left, by an exception too. */
void a_constructor_ends_its_cache_and_throws() {
    for (const ending &each : all_endings) {
        size_t others = caches();
        leave = end_and_throw;
        ended = make_cache(each.flags);
        until = each.until;
        EXPECT(throws<int>(each.use));
        EXPECT(caches() == others && built == unbuilt);
        if (!threads_may_end) continue;
        leave = end_and_exit;
        ended = make_cache(each.flags);
        until = each.until;
        pthread_t thread;
        EXPECT(pthread_create(&thread, nullptr, use_in_thread, const_cast<ending *>(&each)) == 0);
        EXPECT(pthread_join(thread, nullptr) == 0);
        EXPECT(caches() == others && built == unbuilt);
    }
    until = 0;
}

sy_epoch *closed;

/* An epoch that is closed while a constructor for it runs ends, though the constructor throws. */
void a_constructor_closes_its_epoch_and_throws() {
    size_t others = caches();
    sy_cache *cache = make_cache(SY_EPOCHS);
    closed = sy_epoch_create("closed");
    EXPECT(sy_epoch_begin(closed) == 0);
    leave = [] {
        sy_epoch_end(closed);
        sy_epoch_close(closed);
        throw 42;
    };
    until = 1;
    EXPECT(throws<int>([&] { sy_cache_alloc(cache); }));
    int epochs = 0;
    sy_epoch_each(
        [](void *count, const sy_epoch_stats *) { return ++*static_cast<int *>(count), 0; },
        &epochs);
    EXPECT(epochs == 0);
    end_cache(cache, others);
}

pid_t forked;
bool child_throws;

void fork_and_throw() {
    forked = fork();
    EXPECT(forked >= 0);
    if ((forked == 0) == child_throws) throw 42;
}

/* Whichever of the two throws, both go on with all their objects. */
void a_constructor_forks_and_one_of_both_throws(unsigned flags) {
    for (bool in_child : {true, false}) {
        size_t others = caches();
        child_throws = in_child;
        sy_cache *cache = make_cache(flags);
        leave = fork_and_throw;
        forked = -1;
        until = 20;
        std::vector<void *> objects;
        int thrown = 0;
        for (int i = 0; i < 300; i++) {
            if (!alloc_or_thrown(cache, objects)) thrown++;
            EXPECT(sy_cache_in_use(cache) == objects.size());
        }
        EXPECT(forked >= 0 && thrown == ((forked == 0) == in_child));
        for (void *object : objects) sy_cache_free(cache, object);
        end_cache(cache, others);
        if (forked == 0) _exit(0);
        int status;
        EXPECT(waitpid(forked, &status, 0) == forked && status == 0);
    }
}

sy_cache *of_handler;

/* A handler on another stack, above the frames that it interrupts, is not taken for a longjmp. */
void a_signal_in_a_destructor_has_its_own_stack() {
    char stack[65536];
    stack_t own{}, before{};
    own.ss_sp = stack;
    own.ss_size = sizeof stack;
    EXPECT(sigaltstack(&own, &before) == 0);
    struct sigaction action {
    }, old{};
    action.sa_handler = [](int) {
        for (int i = 0; i < 200; i++) sy_cache_alloc(of_handler);
    };
    action.sa_flags = SA_ONSTACK;
    EXPECT(sigaction(SIGUSR1, &action, &old) == 0);
    sy_cache_config config{};
    config.size = 4000;
    of_handler = sy_cache_create(&config);
    config.construct = [](void *, void *) { return 0; };
    config.destruct = [](void *, void *) { raise(SIGUSR1); };
    sy_cache *cache = sy_cache_create(&config);
    sy_cache_free(cache, sy_cache_alloc(cache));
    EXPECT(sy_cache_destroy(cache) == 0);
    sy_cache_destroy_all(of_handler);
    EXPECT(sigaction(SIGUSR1, &old, nullptr) == 0 && sigaltstack(&before, nullptr) == 0);
}

int told;

/* A thread whose constructors have thrown has its limit callbacks called as before. */
void limits_after_a_constructor_has_thrown() {
    thrown_by_allocations(0, 0);
    sy_heap_config config{};
    config.limit.hard = 8 << 20;
    config.limit.soft = 4 << 20;
    config.limit.callback = [](void *, size_t, size_t) { told++; };
    sy_heap *heap = sy_heap_create(&config);
    EXPECT(heap != nullptr);
    while (sy_heap_alloc(heap, 4000) != nullptr) {}
    EXPECT(told > 0);
    sy_heap_destroy_all(heap);
}

/* ---- what has to return ---- */

std::jmp_buf back;

void jump() { std::longjmp(back, 1); }

/* Each of these functions creates the cache that it uses. */
void destroy_one(unsigned flags) {
    sy_cache_config config{};
    config.name = "left";
    config.size = 64;
    config.flags = flags;
    config.construct = [](void *, void *) { return 0; };
    config.destruct = [](void *, void *) { leave(); };
    sy_cache *cache = sy_cache_create(&config);
    sy_cache_free(cache, sy_cache_alloc(cache));
    sy_cache_destroy(cache);
}

void destructor() { destroy_one(0); }
void destructor_of_checked() { destroy_one(SY_POISON); }

void constructor() {
    sy_cache_config config{};
    config.name = "left";
    config.size = 64;
    config.construct = [](void *, void *) {
        leave();
        return 0;
    };
    sy_cache_alloc(sy_cache_create(&config));
}

void dispose() {
    sy_cache_config config{};
    config.name = "left";
    config.size = 64;
    config.flags = SY_HANDLES;
    config.dispose = [](void *, void *) { leave(); };
    sy_cache *cache = sy_cache_create(&config);
    sy_handle handle;
    sy_handle_alloc(cache, &handle);
    sy_handle_free(cache, handle);
}

void limit() {
    sy_heap_config config{};
    config.limit.soft = 1 << 20;
    config.limit.callback = [](void *, size_t, size_t) { leave(); };
    sy_heap *heap = sy_heap_create(&config);
    for (int i = 0; i < 1000; i++) sy_heap_alloc(heap, 4000);
}

void fault() {
    sy_set_fault_handler([](const sy_fault *) { leave(); });
    void *object = sy_malloc(40);
    sy_free(object);
    sy_free(object);
}

void discard() {
    sy_memory_config config{};
    size_t bytes = 16 << 20;
    config.start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    config.bytes = bytes;
    config.discard = [](void *, void *, size_t) {
        leave();
        return 0;
    };
    sy_memory *memory = sy_memory_create(&config);
    sy_cache_config of{};
    of.size = 4096;
    of.memory = memory;
    sy_cache *cache = sy_cache_create(&of);
    std::vector<void *> objects;
    for (int i = 0; i < 500; i++) objects.push_back(sy_cache_alloc(cache));
    for (void *object : objects) sy_cache_free(cache, object);
    sy_trim();
}

sy_vmem *make_arena(sy_vmem_import import, sy_vmem_release release) {
    sy_vmem_config config{};
    config.name = "left";
    config.import = import;
    config.release = release;
    return sy_vmem_create(&config);
}

void import() {
    uintptr_t value;
    sy_vmem *arena = make_arena(
        [](sy_vmem *, void *, size_t, uintptr_t *, size_t *) {
            leave();
            return 1;
        },
        [](sy_vmem *, void *, uintptr_t, size_t) {});
    sy_vmem_alloc(arena, 100, SY_VMEM_INSTANT, &value);
}

void release() {
    uintptr_t value;
    sy_vmem *arena = make_arena(
        [](sy_vmem *, void *, size_t, uintptr_t *start, size_t *) {
            *start = 4096;
            return 0;
        },
        [](sy_vmem *, void *, uintptr_t, size_t) { leave(); });
    sy_vmem_alloc(arena, 100, SY_VMEM_INSTANT, &value);
    sy_vmem_free(arena, value, 100);
}

void each_handle() {
    sy_cache_config config{};
    config.size = 64;
    config.flags = SY_HANDLES;
    sy_cache *cache = sy_cache_create(&config);
    sy_handle handle;
    sy_handle_alloc(cache, &handle);
    sy_handle_each(
        cache, [](void *, sy_handle, void *) { return leave(), 0; }, nullptr);
}

void each_cache() {
    sy_cache_config config{};
    config.size = 64;
    sy_cache_create(&config);
    sy_cache_each([](void *, const sy_cache_account *) { return leave(), 0; }, nullptr);
}

void each_option() {
    sy_option_each([](void *, const sy_option *) { return leave(), 0; }, nullptr);
}

void each_tag() {
    sy_tag_each([](void *, const sy_tag_stats *) { return leave(), 0; }, nullptr);
}

void each_leak() {
    sy_cache_config config{};
    config.size = 64;
    config.flags = SY_AUDIT;
    sy_cache *cache = sy_cache_create(&config);
    sy_cache_alloc(cache);
    sy_leak_each(
        cache, 0, [](void *, const sy_leak *) { return leave(), 0; }, nullptr);
}

void each_epoch() {
    sy_epoch_create("left");
    sy_epoch_each([](void *, const sy_epoch_stats *) { return leave(), 0; }, nullptr);
}

void walk() {
    uintptr_t value;
    sy_vmem_config config{};
    sy_vmem *arena = sy_vmem_create(&config);
    sy_vmem_add(arena, 1, 100);
    sy_vmem_alloc(arena, 10, SY_VMEM_INSTANT, &value);
    sy_vmem_each(
        arena, SY_VMEM_ALLOCATED, [](void *, unsigned, uintptr_t, size_t) { return leave(), 0; },
        nullptr);
}

struct left {
    void (*use)();
    const char *name; /* in the report */
    bool may_unwind;
};

const left all_left[] = {
    {constructor, "the constructor of cache \"left\"", true},
    {destructor, "the destructor of cache \"left\"", false},
    {destructor_of_checked, "the destructor of cache \"left\"", false},
    {dispose, "the dispose function of cache \"left\"", false},
    {limit, "the callback of a limit", false},
    {fault, "the fault handler", false},
    {discard, "the discard function of a memory", false},
    {import, "the import function of arena \"left\"", false},
    {release, "the release function of arena \"left\"", false},
    {each_handle, "the visitor of sy_handle_each", true},
    {each_cache, "the visitor of sy_cache_each", true},
    {each_option, "the visitor of sy_option_each", false},
    {each_tag, "the visitor of sy_tag_each", false},
    {each_leak, "the visitor of sy_leak_each", false},
    {each_epoch, "the visitor of sy_epoch_each", false},
    {walk, "the visitor of sy_vmem_each", false},
};

/* Uses more stack, so that the frames of later calls lie higher. */
__attribute__((noinline)) void use_deeper(const left &one) {
    char room[4096];
    std::memset(room, 1, sizeof room);
    one.use();
    EXPECT(room[sizeof room - 1] == 1);
}

void *end_in(void *one) {
    use_deeper(*static_cast<const left *>(one));
    return nullptr;
}

[[noreturn]] void run(const left &one, void (*way)()) {
    leave = way;
    if (way == jump) {
        if (setjmp(back) == 0) use_deeper(one);
        sy_cache_config config{};
        config.size = 8;
        sy_cache_destroy(sy_cache_create(&config));
    } else if (way == exit_thread) {
        pthread_t thread;
        pthread_create(&thread, nullptr, end_in, const_cast<left *>(&one));
        pthread_join(thread, nullptr);
    } else {
        try {
            use_deeper(one);
        } catch (int) {}
    }
    _exit(0);
}

/* The output of a child on stderr, and its exit status. */
std::string say(const left &one, void (*way)(), int *status) {
    int ends[2];
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        run(one, way);
    }
    close(ends[1]);
    std::string said;
    char part[512];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
        said.append(part, static_cast<size_t>(got));
    close(ends[0]);
    EXPECT(waitpid(child, status, 0) == child);
    return said;
}

void expect_report(const left &one, void (*way)(), const char *how) {
    int status;
    std::string said = say(one, way, &status);
    std::string expected = std::string("slabyard: callback left: ") + one.name + how;
    bool reported = said.find(expected) != std::string::npos && WIFSIGNALED(status) &&
                    WTERMSIG(status) == SIGABRT;
    if (reported) return;
    std::fprintf(stderr, "expected: %s\nstatus %x, said: %s\n", expected.c_str(), status,
                 said.c_str());
    std::abort();
}

void what_is_left_is_reported() {
    for (const left &one : all_left) {
        expect_report(one, jump, " was left by longjmp, before this call");
        int status;
        if (one.may_unwind) {
            EXPECT(say(one, throw_42, &status).empty() && WIFEXITED(status));
            EXPECT(!threads_may_end ||
                   (say(one, exit_thread, &status).empty() && WIFEXITED(status)));
            continue;
        }
        const char *unwound = " was left by an exception, or by the end of its thread";
        expect_report(one, throw_42, unwound);
        if (threads_may_end) expect_report(one, exit_thread, unwound);
    }
}

} // namespace

int main() {
    for (unsigned flags : {0u, unsigned(SY_CHECKED), unsigned(SY_POISON), unsigned(SY_RANDOM),
                           unsigned(SY_EPOCHS), unsigned(SY_COLOUR)}) {
        thrown_by_allocations(flags, 0);
        thrown_by_batches(flags);
        a_constructor_forks_and_one_of_both_throws(flags);
    }
    thrown_by_allocations(0, 5000);
    thrown_by_allocations(SY_LIMIT_EXACT, 5000);
    thrown_by_a_reserve();
    thrown_by_handles();
    if (threads_may_end) threads_that_end_in_a_constructor();
    if (threads_may_end) threads_that_end_in_a_visitor();
    a_constructor_trims_in_a_reserve();
    a_constructor_ends_its_cache_and_throws();
    a_constructor_closes_its_epoch_and_throws();
    a_signal_in_a_destructor_has_its_own_stack();
    limits_after_a_constructor_has_thrown();
    what_is_left_is_reported();
}
