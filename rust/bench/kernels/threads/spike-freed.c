/* spike-freed: eight threads with 160 MiB each; everything is freed. See spike.h. */
#include "spike.h"

int main(int count, char **arguments) { return run_spike(count, arguments, 0); }
