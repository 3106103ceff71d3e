/* SPDX-License-Identifier: Apache-2.0 */
/* The desk: where people and programs ask for things. Command line and HTTP are two doors to it.
 *
 *   hk_desk_init  ->  hk_desk_ask (op.h says what there is)  ->  hk_desk_fini
 *
 * - A request is a struct of its operation, a result too: in memory that the caller owns and frees at once (`mem`).
 * - The desk applies rights, reasons, masks and the audit. It prints nothing.
 * - The store is opened by the first operation that asks it.
 * - One thread at a time uses one desk. */
#ifndef HK_DESK_DESK_H
#define HK_DESK_DESK_H

#include "config/config.h"
#include "config/definition.h"
#include "desk/op.h"
#include "payload/mask.h"
#include "store/admin.h"
#include "store/alerts.h"
#include "store/api.h"
#include "store/jobs.h"
#include "store/letters.h"

struct hk_desk {
    const struct hk_config *config; /* the caller's, like the url */
    const char *url;
    const struct hk_policies *policies; /* those of the configuration, unless somebody puts others there */
    /* NULL until an operation asks the store */
    const struct hk_store_admin_ops *ops;
    const struct hk_store_letters_ops *letters;
    const struct hk_store_alerts_ops *alerts;
    const struct hk_store_api_ops *api;
    const struct hk_store_jobs_ops *jobs;
    struct hk_admin *admin;
    struct hk_turns *turns; /* store/turns.h: the door's to say, before anything is asked; NULL = none */
    const char *jq;         /* the helper program; NULL = there is none. The door's to say. */
    const struct hk_jq_starter
        *jq_starter;        /* who runs it (jq/starter.h); NULL = this process. The door's, too. */
    struct hk_masks *masks; /* see hk_desk_masks */
    bool has_masks;
    /* Another desk answers: every request goes there, and no store is opened here. NULL: this one does. */
    enum hk_code (*elsewhere)(void *arg, struct hk_desk *desk, const struct hk_op *op,
                              const struct hk_caller *caller, const void *request, struct hk_pool *mem,
                              void *result, struct hk_err *err);
    void *elsewhere_arg;
    const char *wrong_field; /* of the last request: what HK_INVALID is about; NULL = no field of it */
    const char
        *wrong_below; /* a JSON pointer into that field; NULL = all of it. It lies in the caller's memory. */
    const struct hk_definition_wrongs
        *wrongs; /* all that is wrong in that field, `wrong_below` first; NULL = one thing. Likewise. */
};

void hk_desk_init(struct hk_desk *desk, const struct hk_config *config, const char *url);
void hk_desk_fini(struct hk_desk *desk);

/* The door. `request` and `result` are those of the operation; what the result points to lies in `mem`. With caller->background
 * the result is a struct hk_job_shown (job.h), whatever the operation's is.
 * HK_DENIED: the caller's role does not allow it, or not to reveal. HK_INVALID: the request is wrong, and so is a missing reason.
 * Else the store's errors (admin.h). */
enum hk_code hk_desk_ask(struct hk_desk *desk, const struct hk_op *op, const struct hk_caller *caller,
                         const void *request, struct hk_pool *mem, void *result, struct hk_err *err);

/* What the caller may not see at all, whatever he asks for; NULL: nothing. They live as long as the desk. */
enum hk_code hk_desk_hidden(struct hk_desk *desk, const struct hk_caller *caller, struct hk_masks **out,
                            struct hk_err *err);

/* False: the error of the last call is that of opening the store. True of a desk elsewhere. */
bool hk_desk_is_open(const struct hk_desk *desk);

/* Which database it is, for people: without password and parameters. HK_UNSUPPORTED: of no kind that this build has. */
enum hk_code hk_desk_place(const struct hk_desk *desk, char out[HK_STORE_PLACE_MAX], struct hk_err *err);

/* ---- for operations ---- */

/* HK_OK, or why the store cannot be opened. */
enum hk_code hk_desk_open(struct hk_desk *desk, struct hk_err *err);
/* What the store's last call gave lies in `mem` from now on. */
void hk_desk_keep(struct hk_desk *desk, struct hk_pool *mem);
/* Those of the configuration, made once. `*out` NULL: nothing is masked, or the caller sees all. */
enum hk_code hk_desk_masks(struct hk_desk *desk, const struct hk_caller *caller, struct hk_masks **out,
                           struct hk_err *err);
/* HK_INVALID about one field: "takes 1 to 5, not '9'" or ": column 3: …", in front of which each door puts the name as it writes
 * it. */
enum hk_code hk_desk_wrong(struct hk_desk *desk, const char *field, struct hk_err *err, const char *fmt, ...)
    HK_PRINTF(4, 5);
/* The same about what lies below the field: `wrongs`, which lies in the caller's memory. */
enum hk_code hk_desk_wrong_below(struct hk_desk *desk, const char *field,
                                 const struct hk_definition_wrongs *wrongs, const char *message,
                                 struct hk_err *err);
void hk_caller_tell(const struct hk_caller *caller, const struct hk_progress *progress);
void hk_caller_progress(const struct hk_caller *caller, uint64_t done, uint64_t total);
bool hk_caller_stops(const struct hk_caller *caller);

/* Rows that a page of a list looks through where no index serves its filter: about 100 ms of CPU on either store. Then it stops, says so
 * (`looked`), and where to go on (`next`). */
#define HK_LIST_SCAN       30000
#define HK_LIST_SCAN_MATCH 10000 /* where payloads are read */
/* `asked`: by the request's argument `scan`; 0 = it is not. */
uint64_t hk_list_scan(uint64_t asked, bool reads_payloads);
/* That argument's row. */
#define HK_LIST_SCAN_ARG(type, noun)                                                                         \
    HK_ARG(type, scan, HK_ARG_NUMBER, "N",                                                                   \
           "look through this many " noun " where no index serves the filter (default: 30000, or 10000 "     \
           "where payloads are read)"),                                                                      \
        .lo = 1, .hi = 1000000000

/* Room for `more` items behind the `n` of an array that lies in the pool; NULL: no memory. It grows by doubling, since a list may
 * turn out to be long. */
void *hk_desk_grow(struct hk_pool *mem, void *items, size_t n, size_t *room, size_t more, size_t size);

#endif
