/* slabyard: double free: ADDRESS in cache "heap-192" (192 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.hpp"

int main() {
    slabyard::allocator<order> orders;
    order *objects = told(orders.allocate(3));
    orders.deallocate(objects, 3);
    orders.deallocate(objects, 3);
}
