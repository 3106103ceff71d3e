/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that are kept in the store: created, changed and deleted while relays run. What they may do is config/definition.h; a relay
 * checks it again when it reads them.
 *
 * A name that the configuration file has is the file's: it can be neither created nor changed here. */
#ifndef HK_DESK_DEFINITIONS_H
#define HK_DESK_DEFINITIONS_H

#include "desk/desk.h"
#include "store/definition.h"
#include "store/figures.h"

/* ---- for operations: which destinations there are ---- */

/* The store's definition of that name; `*out_found` false: there is none. Its texts are in `mem`. */
enum hk_code hk_desk_definition(struct hk_desk *desk, const char *name, struct hk_pool *mem,
                                struct hk_definition *out, bool *out_found, struct hk_err *err);
/* The destination of that name: the file's, else the store's. `*out` NULL: there is none. A destination of the store is in `mem`, with
 * its secrets if the caller wants them (then use hk_pool_wipe). HK_INVALID: its definition cannot be used here. */
enum hk_code hk_desk_destination(struct hk_desk *desk, struct hk_str name, bool secrets, struct hk_pool *mem,
                                 const struct hk_conf_destination **out, struct hk_err *err);

/* Those of the store that keep the order of keys, among these names; NULL: among all. In `mem`. */
enum hk_code hk_desk_ordered(struct hk_desk *desk, const struct hk_str *names, size_t n, struct hk_pool *mem,
                             struct hk_blocking **out, size_t *out_n, struct hk_err *err);

/* Checks a definition and keeps it. `version`: as in struct hk_define. Used by `destinations create`, `update`, `apply`, and by whatever else
 * makes destinations. HK_INVALID: what is wrong with it, about the field `definition`. HK_CONFLICT: the file's, or not of that version. */
struct hk_desk_define {
    const char *name;
    struct hk_str text; /* YAML or JSON */
    int64_t version;
};

enum hk_code hk_desk_define(struct hk_desk *desk, const struct hk_caller *caller,
                            const struct hk_desk_define *ask, struct hk_pool *mem, struct hk_defined *out,
                            struct hk_err *err);
/* Deletes one. HK_CONFLICT: it is the file's, not of that version, or messages wait for it and `force` is false (how many is said). */
enum hk_code hk_desk_undefine(struct hk_desk *desk, const struct hk_caller *caller, const char *name,
                              int64_t version, bool force, struct hk_defined *out, struct hk_err *err);

/* ---- create, update, delete ---- */

struct hk_dest_define_ask {
    const char *destination;
    struct hk_str definition; /* YAML or JSON */
    uint64_t if_version;      /* that it must have; 0 = any */
};

struct hk_dest_undefine_ask {
    const char *destination;
    uint64_t if_version; /* 0 = any */
    bool force;
};

struct hk_dest_defined {
    const char *destination;
    uint64_t version;
    const char *did; /* "created", "updated", "deleted" */
    int64_t now_ms;
};

/* ---- show ---- */

struct hk_dest_show_ask {
    const char *destination;
};

struct hk_dest_shown {
    const char *destination;
    const char *from; /* "file", "store" */
    bool also_stored; /* the file's, and the store has one of that name, too, which is not used */
    const char *kind, *url, *policy, *order;
    double rate_per_s; /* a negative one: no limit */
    uint32_t concurrency;
    const char *problem; /* why it cannot be used, as far as it can be seen from here; NULL = it can */
    struct hk_unusable unusable; /* what relays say of that */
    /* of the store's */
    uint64_t version;
    struct hk_str definition; /* JSON; for admins */
    int64_t created_ms, changed_ms;
    struct hk_str created_by, changed_by, reason;
    int64_t now_ms;
};

/* ---- apply ---- */

struct hk_dest_apply_ask {
    struct hk_str definitions; /* many, by name: YAML or JSON */
    bool prune;                /* delete those of the store that are not among them, but no queues */
    bool dry_run;
};

struct hk_dest_applied_row {
    struct hk_str destination;
    const char *did; /* "created", "updated", "unchanged", "deleted" */
    uint64_t version;
};

struct hk_dest_applied {
    bool dry_run;
    struct hk_dest_applied_row *items;
    size_t n;
    uint64_t created, updated, deleted, unchanged;
    struct hk_err stopped; /* why the rest was not done; HK_OK: all was */
};

extern const struct hk_op hk_op_destinations_show, hk_op_destinations_create, hk_op_destinations_update,
    hk_op_destinations_delete, hk_op_destinations_apply;

#endif
