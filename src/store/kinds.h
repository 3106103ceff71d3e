/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of store, by the scheme of a URL. A kind is one struct in its own folder (sqlite/kind.c, pg/kind.c) and one line of
 * the registry in kinds.c. A kind that this build leaves out is there all the same, and says what is missing. */
#ifndef HK_STORE_KINDS_H
#define HK_STORE_KINDS_H

#include "store/admin.h"
#include "store/alerts.h"
#include "store/api.h"
#include "store/jobs.h"
#include "store/letters.h"
#include "store/store.h"

struct hk_store_kind {
    const char *const *schemes; /* up to a NULL */
    const char *form;           /* how its URLs are written, for messages: "sqlite:PATH" */
    const char *missing; /* NULL; else it is not in this build: why, and what to do. All below is NULL then */
    const struct hk_store_ops *ops;             /* the relay's side */
    const struct hk_store_admin_ops *admin;     /* the operators' side */
    const struct hk_store_letters_ops *letters; /* dead letters, on the operators' handle */
    const struct hk_store_alerts_ops *alerts;   /* alerts, on the operators' handle */
    const struct hk_store_api_ops *api;         /* tokens and calls of the HTTP API, likewise */
    const struct hk_store_jobs_ops *jobs;       /* long operations, likewise */
    /* What a URL names, without password and parameters; false: it cannot be read, and nothing of it may be shown. */
    bool (*place)(const char *url, char out[HK_STORE_PLACE_MAX]);
};

extern const struct hk_store_kind hk_store_kind_sqlite;
extern const struct hk_store_kind hk_store_kind_postgres;

/* NULL and HK_UNSUPPORTED for a scheme that nobody knows, or that this build leaves out. */
const struct hk_store_kind *hk_store_kind_by_url(const char *url, struct hk_err *err);

#endif
