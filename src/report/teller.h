/*
 * teller.h: the table of the reports that lower layers call.
 *
 * Above: parts.c. Below: the rest of report/.
 */
#ifndef SY_REPORT_TELLER_H
#define SY_REPORT_TELLER_H

#include "debug/tell.h"

extern SY_HIDDEN const sy_teller sy_reports;

#endif
