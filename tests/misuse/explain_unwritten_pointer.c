/* SLABYARD=poison,explain
 * slabyard: access by a pointer read from memory never written: 0xbaddcafebaddcafe in register
 * REGISTER
 *   seen by thread THREAD:
 *     STACK follow main
 *   next: find the pointer that this access follows, and the code that should have set it
 * ends with SIGSEGV */
#include "misuse.h"

int main(void) { follow(told(sy_malloc(100))); }
