/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters that a relay of an older version wrote, while this one runs: they get the receiver's words, which stand in their
 * history, and the group that goes with them. Some at a time; the store remembers which are done. It has a connection of its own, which is
 * open only while there are such letters.
 *
 * The loop and the store's thread use it in turns, as they do with relay/redrive.h. */
#ifndef HK_RELAY_REGROUP_H
#define HK_RELAY_REGROUP_H

#include "config/config.h"
#include "observe/log.h"
#include "store/letters.h"

struct hk_regrouper;

struct hk_regrouper_options {
    const char *url; /* of the store; outlives it, as all that is named here */
    const struct hk_store_admin_ops *admin;
    const struct hk_store_letters_ops *letters;
    struct hk_log *log;
};

enum hk_code hk_regrouper_new(const struct hk_regrouper_options *options, struct hk_regrouper **out,
                              struct hk_err *err) HK_MUSTCHECK;
void hk_regrouper_free(struct hk_regrouper *regrouper);
/* At the start and with each reload: the masks. On HK_NOMEM the last ones still count. */
enum hk_code hk_regrouper_configure(struct hk_regrouper *regrouper, const struct hk_config *config,
                                    struct hk_err *err) HK_MUSTCHECK;

/* ---- the loop ---- */

/* When to look next; on the loop's clock. */
int64_t hk_regrouper_at_ms(const struct hk_regrouper *regrouper);
/* After `work`: logs what happened, and decides when to continue. */
void hk_regrouper_done(struct hk_regrouper *regrouper, int64_t now_ms);

/* ---- the store's thread ---- */

/* One bounded step. */
void hk_regrouper_work(struct hk_regrouper *regrouper);
void hk_regrouper_close(struct hk_regrouper *regrouper);

#endif
