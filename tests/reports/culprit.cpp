/* Frees an object twice, through slabyard.hpp and through containers. */
#include <slabyard/slabyard.hpp>

#include <vector>

#define APART __attribute__((noinline))

struct order {
    int number;
    char text[60];
};

namespace book {

class shop {
    slabyard::cache<order> orders{"order"};

  public:
    APART order *open() {
        order *made = orders.make(); /* allocated book::shop::open() */
        __asm__ volatile("" ::: "memory");
        return made;
    }
    APART void close(order *gone) {
        orders.destroy(gone); /* seen freed book::shop::close(order*) */
        __asm__ volatile("" ::: "memory");
    }
};

} // namespace book

__attribute__((cold)) APART static void close_twice(book::shop &shop, order *gone) {
    shop.close(gone);
    shop.close(gone);
    __asm__ volatile("" ::: "memory");
}

namespace {

using numbers = std::vector<long, slabyard::allocator<long>>;

APART void lose() {
    static void *kept[sizeof(numbers) / sizeof(void *)];
    numbers *lost = ::new (static_cast<void *>(kept)) numbers;
    lost->push_back(1); /* leaked (anonymous namespace)::lose() */
    __asm__ volatile("" ::: "memory");
}

} // namespace

int main(int count, char **) {
    book::shop shop;
    order *one = shop.open();
    if (count == 2) lose();
    if (count == 1) close_twice(shop, one);
    shop.close(one);
    return 0;
}
