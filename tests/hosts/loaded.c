/* A library that loads.c loads: it allocates, and has thread-local variables. With IN_STATIC_BLOCK
 * defined, they need room in the C library's static block. With AUDITS, it audits the loader. */
#ifdef AUDITS
unsigned la_version(unsigned version);
unsigned la_version(unsigned version) { return version; }
#else
#    include <stdlib.h>
#    include <string.h>

#    ifdef IN_STATIC_BLOCK
__attribute__((tls_model("initial-exec")))
#    endif
static __thread char block[600];

void *take(size_t bytes);

void *take(size_t bytes) {
    memset(block, 1, sizeof block);
    return memset(malloc(bytes), block[0], bytes);
}
#endif
