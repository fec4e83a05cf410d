/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.hpp"

int main() {
    auto &orders = *new slabyard::cache<order>("order"); /* never destroyed */
    order *object = told(orders.make());
    orders.destroy(object);
    orders.destroy(object);
}
