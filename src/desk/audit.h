/* SPDX-License-Identifier: Apache-2.0 */
/* The audit: show who did what and why, and check that nobody changed the audit since. */
#ifndef HK_DESK_AUDIT_H
#define HK_DESK_AUDIT_H

#include "desk/letters.h"

/* ---- list ---- */

struct hk_audit_list_ask {
    uint64_t letter;      /* 0 = any */
    const char *by, *act; /* NULL = any */
    uint64_t limit, after;
    bool oldest; /* first */
};

extern const struct hk_op hk_op_audit_list; /* the result is a struct hk_audit_rows */

/* ---- show ---- */

struct hk_audit_show_ask {
    const char *id;
    uint64_t limit, after;
};

struct hk_audit_act {
    struct hk_audit_row row; /* that the act begins with */
    struct hk_audit_letters letters;
};

extern const struct hk_op hk_op_audit_show;

/* ---- verify ---- */

struct hk_audit_verified {
    uint64_t rows, unchained;
    int64_t bad_id; /* 0 = the chain is whole; -1 = it is not, but no row is to blame */
    const char *why;
    char head[HK_AUDIT_HASH_MAX]; /* hash of the last row; "" = nothing is chained */
    bool begun;
    int64_t
        purged_ms; /* retention deleted the rows before the first one then, and left a row about it; 0 = no such row */
    uint64_t purged; /* how many it ever deleted */
};

extern const struct hk_op hk_op_audit_verify;

#endif
