/* SPDX-License-Identifier: Apache-2.0 */
/* A relay's work on dead letters: finds running redrives, carries out their steps when they are due, starts the redrives of
 * `auto_redrive`, and gives relay/regroup.h its turn. It has its own connection, which is open only while there are jobs.
 *
 * The loop and the store's thread use it in turns: the loop while no work is under way, the thread for `work` and `close`. */
#ifndef HK_RELAY_REDRIVE_H
#define HK_RELAY_REDRIVE_H

#include "config/config.h"
#include "observe/log.h"
#include "relay/kept.h"
#include "store/letters.h"

struct hk_redriver;

struct hk_redriver_options {
    const char *url; /* of the store; outlives it, as all that is named here */
    const struct hk_store_admin_ops *admin;
    const struct hk_store_letters_ops *letters;
    struct hk_log *log;
};

/* Looks for jobs after the first poll. */
enum hk_code hk_redriver_new(const struct hk_redriver_options *options, struct hk_redriver **out_redriver,
                             struct hk_err *err) HK_MUSTCHECK;
void hk_redriver_free(struct hk_redriver *redriver); /* closed, or nobody uses the store's thread any more */
/* At the start and with each reload; `config` outlives it, until the next one. On HK_NOMEM the last one still counts. */
enum hk_code hk_redriver_configure(struct hk_redriver *redriver, const struct hk_config *config,
                                   struct hk_err *err) HK_MUSTCHECK;

/* What opens sealed payloads for filters that say so; NULL: nothing. Lives until the next call. */
void hk_redriver_set_keys(struct hk_redriver *redriver, struct hk_keyring *keys);

/* ---- the loop ---- */

/* Destinations of the store with auto_redrive, as they are by now. Without memory those known before stay. Not while work is under way. */
void hk_redriver_kept(struct hk_redriver *redriver, const struct hk_kept *kept);

/* The relay has heard that somebody acted (a job may have begun), or that breakers opened or closed. */
void hk_redriver_polled(struct hk_redriver *redriver, const struct hk_poll *poll, int64_t now_ms);
/* The store has taken the relay's report at `store_now_ms`. */
void hk_redriver_told(struct hk_redriver *redriver, const struct hk_circuit *circuits, size_t n,
                      int64_t store_now_ms, int64_t now_ms);
/* When there is work; on the loop's clock. INT64_MAX: none. */
int64_t hk_redriver_at_ms(const struct hk_redriver *redriver);
/* Why a redrive waits for a key that this relay lacks; NULL: none does. */
const char *hk_redriver_keyless(const struct hk_redriver *redriver);
/* After `work`: logs what happened, and decides when to continue. */
void hk_redriver_done(struct hk_redriver *redriver, int64_t store_now_ms, int64_t now_ms);

/* ---- the store's thread ---- */

/* One bounded piece of what is due at `now_ms`, as the loop's clock has it: a look, a start, or a step. */
void hk_redriver_work(struct hk_redriver *redriver, int64_t now_ms);
void hk_redriver_close(struct hk_redriver *redriver);

#endif
