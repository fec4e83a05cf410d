/* The host without any restriction: the program that other hosts run. */
#include "hosts/hosts.h"

int main(void) {
    hungry(1);
    hungry(64);
    hungry(1);
    return 0;
}
