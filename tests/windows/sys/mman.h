/* Windows has no such header: see posix.h. */
#include "../posix.h"
