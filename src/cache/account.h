/*
 * account.h: the account of memory that the option `stats` asks for at the end of the process.
 * slabyard/stats.h has the doors. Above: keep/parts.c. Below: cache/.
 */
#ifndef SY_CACHE_ACCOUNT_H
#define SY_CACHE_ACCOUNT_H

#include "os/start.h"

/* Has the account written at the end of the process, if the option asks for it. */
extern SY_HIDDEN const sy_part sy_account_part;

#endif
