/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.hpp"

int main() {
    slabyard::allocator<order> orders;
    order *object = told(orders.allocate(1));
    orders.deallocate(object, 1);
    orders.deallocate(object, 1);
}
