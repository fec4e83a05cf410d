/*
 * account.h: the account of memory that the option `stats` asks for at the end of the process.
 * slabyard/stats.h has the doors. Above: keep/start.c. Below: cache/.
 */
#ifndef SY_CACHE_ACCOUNT_H
#define SY_CACHE_ACCOUNT_H

/* Has the account written at the end of the process, if the option asks for it. 0, or -1 with
 * ENOMEM. */
int sy_account_start(void);

#endif
