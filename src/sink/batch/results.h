/* SPDX-License-Identifier: Apache-2.0 */
/* What a receiver says of the items of a batch, each by its id:
 *
 *   {"results": [{"id": "ord-1", "status": 200}, {"id": "ord-2", "status": 422, "error": "no such customer"},
 *                {"id": "ord-3", "status": 503, "retry_after": 30}]}
 *
 * A bare array of the same is one, too. The reader believes only what it can read whole: a text that begins as a list and is none, an
 * entry without a status, a member that stands twice, all leave the items in doubt, and a message in doubt is sent again. */
#ifndef HK_SINK_BATCH_RESULTS_H
#define HK_SINK_BATCH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#define HK_RESULT_HINT_MAX 40

struct hk_result {
    struct hk_str id;   /* of the item; the caller's */
    int status;         /* 0: the list says nothing of it, or nothing that can be read */
    bool unclear;       /* … the latter */
    struct hk_str text; /* its entry, in the body that was read */
    struct hk_str hint; /* its retry_after, as the field Retry-After has it; in the body, or in `number` */
    char number[HK_RESULT_HINT_MAX];
};

enum hk_results {
    HK_RESULTS_NONE = 0, /* the body is no list: it is empty, or says something else */
    HK_RESULTS_LIST,     /* `out` holds what it says */
    HK_RESULTS_BROKEN,   /* it begins as a list might, and is not JSON, or not such a list */
    HK_RESULTS_NOMEM
};

/* Fills in what `body` says of the `n` items, whose ids are there. Ids may stand in any order; one that comes twice counts as its worse
 * status. */
enum hk_results hk_results_read(struct hk_str body, struct hk_result *items, size_t n);

#endif
