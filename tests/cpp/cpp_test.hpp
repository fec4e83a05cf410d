/* cpp_test.hpp: what the tests of slabyard.hpp share: objects that count themselves. */
#ifndef SLABYARD_TESTS_CPP_TEST_HPP
#define SLABYARD_TESTS_CPP_TEST_HPP

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#define EXPECT(condition)                                                            \
    do {                                                                             \
        if (condition) break;                                                        \
        std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        std::abort();                                                                \
    } while (0)

inline std::atomic<int> living{0};

/* Knows how many there are, is moved but not copied, and can refuse to be made. */
struct order {
    std::string symbol;
    int amount;

    order(std::string of, int wanted) : symbol(std::move(of)), amount(wanted) {
        if (wanted < 0) throw std::invalid_argument("amount");
        living++;
    }
    order(order &&other) noexcept : symbol(std::move(other.symbol)), amount(other.amount) {
        living++;
    }
    order(const order &) = delete;
    ~order() { living--; }
};

template <class Thrown, class Call> bool throws(Call call) {
    try {
        call();
    } catch (const Thrown &) {
        return true;
    }
    return false;
}

#endif
