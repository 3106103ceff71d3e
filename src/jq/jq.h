/* SPDX-License-Identifier: Apache-2.0 */
/* A jq program, applied to documents in a caged process of its own (helper.c). One at a time, blocking, within a time.
 * What goes wrong with one document (it is an error there, or takes too long, or kills the helper) is said of that document, and
 * the next one meets a fresh helper. */
#ifndef HK_JQ_JQ_H
#define HK_JQ_JQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct hk_jq;
struct hk_jq_starter;

#define HK_JQ_TIMEOUT_MS 5000

/* `helper`: the path of hikyaku-jq. `starter`: who runs it (starter.h), and must outlive it; NULL: this process does. `timeout_ms`
 * 0 = HK_JQ_TIMEOUT_MS, for each document. HK_INVALID: the program does not compile, in jq's words; HK_UNAVAILABLE: the helper
 * cannot be run, or the starter has ended; HK_BUSY: the starter runs as many helpers as it may. */
enum hk_code hk_jq_open(const char *helper, const struct hk_jq_starter *starter, const char *program,
                        uint64_t timeout_ms, struct hk_jq **out, struct hk_err *err) HK_MUSTCHECK;
void hk_jq_close(struct hk_jq *jq); /* accepts NULL */

/* Adds the one result, on one line. HK_INVALID: in jq's words; HK_TIMEOUT; HK_TOOBIG; HK_UNAVAILABLE, HK_BUSY: the
 * helper died and could not be started again. */
enum hk_code hk_jq_apply(struct hk_jq *jq, struct hk_str document, struct hk_buf *out,
                         struct hk_err *err) HK_MUSTCHECK;

#define HK_JQ_PATH_MAX 4096
/* Where the helper is: $HIKYAKU_JQ, beside the running program, or where it was installed to. False: nowhere. */
bool hk_jq_find(char out[HK_JQ_PATH_MAX]);

#endif
