/* slabyard: double free: ADDRESS in cache "order" (64 bytes)
 *   seen by thread THREAD:
 *     STACK main
 *   next: run with SLABYARD=audit to see where it was freed before */
#include "misuse.hpp"

int main() {
    order *object = told(slabyard::make_unique<order>().release());
    slabyard::unique_ptr<order> first(object), second(object);
}
