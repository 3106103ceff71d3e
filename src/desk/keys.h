/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that seal: what they are needed for, sealing anew what an older one sealed, and letting one go. The keys themselves stand in the
 * configuration, never in the store. */
#ifndef HK_DESK_KEYS_H
#define HK_DESK_KEYS_H

#include "desk/desk.h"

/* ---- list ---- */

struct hk_key_row {
    struct hk_str id;  /* "" = payloads that are not sealed */
    bool configured;   /* in seal.keys here */
    bool seals;        /* it is the first */
    struct hk_str why; /* it cannot be read; "" = it can */
    /* Texts that it sealed: messages of outbox, and all else that relays keep. */
    uint64_t outbox, kept;
};

struct hk_keys_listed {
    struct hk_key_row *rows;
    size_t n;
};

/* ---- rotate ---- */

struct hk_keys_rotate_ask {
    double rate; /* rows a second, at the most */
};

struct hk_keys_rotated {
    uint64_t looked, changed, failed;
    struct hk_str key;   /* that seals all of it now */
    struct hk_str error; /* of the first that failed; "" = none did */
};

/* ---- retire ---- */

struct hk_keys_retire_ask {
    const char *key_id;
};

struct hk_keys_retired {
    struct hk_str key;
    bool configured; /* seal.keys of this configuration still has it */
};

extern const struct hk_op hk_op_keys_list, hk_op_keys_rotate, hk_op_keys_retire;

#endif
