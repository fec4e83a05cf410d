/*
 * json.h: the account of memory as a line of JSON. Below: output.h, cache/. Used by account.c.
 */
#ifndef SY_REPORT_JSON_H
#define SY_REPORT_JSON_H

#include <slabyard/stats.h>

#include "report/output.h"

/* Writes, in this order: the beginning of the line, with the rows of sy_account; each cache; and
 * the end. `first`: no cache comes before it. */
void sy_json_begin(sy_output *to, const sy_account *account);
void sy_json_cache(sy_output *to, const sy_cache_account *cache, bool first);
void sy_json_end(sy_output *to);

#endif
