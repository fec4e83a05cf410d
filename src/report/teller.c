/*
 * teller.c: the reports that lower layers call (debug/tell.h).
 */
#include "report/teller.h"

#include "debug/callback.h"
#include "report/account.h"
#include "report/leaks.h"
#include "report/report.h"

const sy_teller sy_reports = {
    .fault = sy_fault_write,
    .callback = sy_callback_write,
    .line = sy_report_line,
    .leaks = sy_leaks_at_destroy,
    .survivors = sy_survivors_write,
    .account = sy_account_write,
    .address = sy_report_address,
};
