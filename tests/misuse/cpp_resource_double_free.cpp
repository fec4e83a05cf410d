/* slabyard: double free: ADDRESS in cache "order-64" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.hpp"

int main() {
    auto &orders = *new slabyard::memory_resource("order"); /* never destroyed */
    void *object = told(orders.allocate(64));
    orders.deallocate(object, 64);
    orders.deallocate(object, 64);
}
