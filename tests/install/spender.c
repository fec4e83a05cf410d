/* A module that takes 64 bytes of the static thread-local storage when it is loaded. */
static __thread char taken[64] __attribute__((tls_model("initial-exec")));

char *spender_taken(void);
char *spender_taken(void) { return taken; }
