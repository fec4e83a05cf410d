/* ends with 0 */
#include <sys/wait.h>
#include <unistd.h>

#include "misuse.h"

/* A forked child that ends by _exit is not verified. The objects of its parent are intact. */
int main(void) {
    sy_cache *cache = cache_of("order", 64, SY_POISON | SY_QUARANTINE);
    char *object = told(sy_cache_alloc(cache));
    sy_cache_free(cache, object);
    pid_t child = fork();
    if (child == 0) {
        scribble(object + 8, 8);
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 7;
}
