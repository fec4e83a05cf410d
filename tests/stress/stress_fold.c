/*
 * stress_fold.c: stress_move.c with threads that seldom allocate or free, so that the words of the
 * few objects are folded and unfolded all the time.
 */
#define CHANGE_SHARE 100
#define PAUSE_SHARE  300

#include "stress_move.c"
