/* spike-kept: eight threads with 160 MiB each; one of sixteen blocks is kept. See spike.h. */
#include "spike.h"

int main(int count, char **arguments) { return run_spike(count, arguments, 16); }
