/* SPDX-License-Identifier: Apache-2.0 */
/* The desk carries out the requests of people and programs. Command line and HTTP are two doors to it.
 *
 *   hk_desk_init  ->  hk_desk_ask (op.h lists the operations)  ->  hk_desk_fini
 *
 * - A request is a struct of its operation, a result too: in memory that the caller owns and frees at once (`mem`).
 * - The desk applies rights, reasons, masks and the audit. It prints nothing.
 * - The first operation that needs the store opens it.
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
    struct hk_turns *turns; /* store/turns.h: the door sets it before the first request; NULL = none */
    const char *jq;         /* the helper program; NULL = there is none. The door sets it. */
    const struct hk_jq_starter
        *jq_starter;        /* starts it (jq/starter.h); NULL = this process does. The door sets it. */
    struct hk_masks *masks; /* see hk_desk_masks */
    bool has_masks;
    /* Sends every request to another desk; this one then opens no store. NULL: this desk answers. */
    enum hk_code (*elsewhere)(void *arg, struct hk_desk *desk, const struct hk_op *op,
                              const struct hk_caller *caller, const void *request, struct hk_pool *mem,
                              void *result, struct hk_err *err);
    void *elsewhere_arg;
    const char *wrong_field; /* of the last request: the field that HK_INVALID is about; NULL = none */
    const char
        *wrong_below; /* a JSON pointer into that field, in the caller's memory; NULL = all of the field */
    const struct hk_definition_wrongs *
        wrongs; /* all errors in that field, `wrong_below` first; NULL = only one error. In the caller's memory, too. */
};

void hk_desk_init(struct hk_desk *desk, const struct hk_config *config, const char *url);
void hk_desk_fini(struct hk_desk *desk);

/* Runs an operation. `request` and `result` are the operation's structs; everything that the result points to is in `mem`. With
 * caller->background the result is a struct hk_job_shown (job.h) instead. HK_DENIED: the caller's role does not allow the operation, or
 * to reveal. HK_INVALID: the request is wrong, or has no reason. Else the store's errors (admin.h). */
enum hk_code hk_desk_ask(struct hk_desk *desk, const struct hk_op *op, const struct hk_caller *caller,
                         const void *request, struct hk_pool *mem, void *result, struct hk_err *err);

/* The masks that hold for the caller whatever the caller asks for; NULL: none. They live as long as the desk. */
enum hk_code hk_desk_hidden(struct hk_desk *desk, const struct hk_caller *caller, struct hk_masks **out,
                            struct hk_err *err);

/* False: the error of the last call is that of opening the store. True of a desk elsewhere. */
bool hk_desk_is_open(const struct hk_desk *desk);

/* The database's place, for people: without password and parameters. HK_UNSUPPORTED: this build has no such kind of store. */
enum hk_code hk_desk_place(const struct hk_desk *desk, char out[HK_STORE_PLACE_MAX], struct hk_err *err);

/* ---- for operations ---- */

/* HK_OK, or why the store cannot be opened. */
enum hk_code hk_desk_open(struct hk_desk *desk, struct hk_err *err);
/* Moves the results of the store's last call to `mem`. */
void hk_desk_keep(struct hk_desk *desk, struct hk_pool *mem);
/* The masks of the configuration, made once. `*out` NULL: nothing is masked, or the caller sees all. */
enum hk_code hk_desk_masks(struct hk_desk *desk, const struct hk_caller *caller, struct hk_masks **out,
                           struct hk_err *err);
/* HK_INVALID about one field: "takes 1 to 5, not '9'" or ": column 3: …", in front of which each door puts the name as it writes
 * it. */
enum hk_code hk_desk_wrong(struct hk_desk *desk, const char *field, struct hk_err *err, const char *fmt, ...)
    HK_PRINTF(4, 5);
/* The same for errors below the field: `wrongs`, in the caller's memory. */
enum hk_code hk_desk_wrong_below(struct hk_desk *desk, const char *field,
                                 const struct hk_definition_wrongs *wrongs, const char *message,
                                 struct hk_err *err);
void hk_caller_tell(const struct hk_caller *caller, const struct hk_progress *progress);
void hk_caller_progress(const struct hk_caller *caller, uint64_t done, uint64_t total);
bool hk_caller_stops(const struct hk_caller *caller);

/* Without an index for its filter, a page of a list looks through at most this many rows: about 100 ms of CPU on either store. Then it
 * stops, and reports that (`looked`) and where the next page begins (`next`). */
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

/* Makes room for `more` items behind the `n` of an array in the pool; NULL: no memory. It grows by doubling, since a list may turn
 * out to be long. */
void *hk_desk_grow(struct hk_pool *mem, void *items, size_t n, size_t *room, size_t more, size_t size);

#endif
