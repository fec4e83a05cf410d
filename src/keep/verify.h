/*
 * verify.h: caches' free objects are looked at once more when the process ends (pools' by
 * pool/checked.c). Nobody else verifies what waits in quarantine, or was never given out again.
 *
 * Above: cache/, when a cache with SY_POISON is made. Below: all layers up to cache/.
 */
#ifndef SY_KEEP_VERIFY_H
#define SY_KEEP_VERIFY_H

/* From now on each cache's free objects that were filled by poison are verified when the process
 * ends by exit() or from main(), unless the option `exit-check` says no; damage is a fault. 0, or
 * -1 with ENOMEM. Any thread, any number of times. */
int sy_verify_at_exit(void);

#endif
