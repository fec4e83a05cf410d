/* Of what the kernel tells a process of Linux at its start, Windows tells the page size. */
#include "../posix.h"

#define AT_PAGESZ 6

static inline unsigned long getauxval(unsigned long what) {
    return what == AT_PAGESZ ? (unsigned long)getpagesize() : 0;
}
