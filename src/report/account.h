/*
 * account.h: the part of the library that writes the table of memory when the process ends, if the
 * option `stats` asks for it. slabyard/stats.h declares the public functions of account.c.
 * Above: parts.c. Below: cache/.
 */
#ifndef SY_REPORT_ACCOUNT_H
#define SY_REPORT_ACCOUNT_H

#include "os/start.h"

/* Writes the account to where the option `stats-file` says. errno is kept. */
void sy_account_write(void);

/* At the start: has the table written at the end of the process, if the option asks for it. */
extern SY_HIDDEN const sy_part sy_account_part;

#endif
