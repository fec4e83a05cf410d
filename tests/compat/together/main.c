#include "compat/together/together.h"

#include <stdio.h>

static int said(const char *what, int wrong) {
    if (wrong) fprintf(stderr, "%s: %d\n", what, wrong);
    return wrong != 0;
}

int main(void) {
    int wrong = said("xslab", with_xslab()) + said("magazine-slab", with_magazine_slab());
    wrong += said("magazine-slab 1.2", with_magazine_slab_1_2());
    wrong += said("magazine-slab 1.2, C++", with_magazine_slab_1_2_in_cpp());
    wrong += said("zns-slab", with_zns_slab());
    wrong += said("xslab, C++", with_xslab_in_cpp());
    wrong += said("magazine-slab, C++", with_magazine_slab_in_cpp());
    wrong += said("zns-slab, C++", with_zns_slab_in_cpp());
    wrong += said("userland-slab, C++", with_userland_slab_in_cpp());
    wrong += said("userland-slab", with_userland_slab());
    return wrong != 0;
}
