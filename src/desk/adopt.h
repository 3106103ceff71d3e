/* SPDX-License-Identifier: Apache-2.0 */
/* An outbox table that the application has already: its rows become messages, by a trigger. */
#ifndef HK_DESK_ADOPT_H
#define HK_DESK_ADOPT_H

#include "desk/desk.h"

struct hk_adopt_ask {
    const char *from;  /* "debezium", "polling" */
    const char *table; /* NULL: debezium's usual name */
    const char *destination, *done;
    struct hk_texts column, pending;
    bool existing, undo;
    bool apply; /* else the SQL is printed, and nothing is changed */
};

struct hk_adopt_done {
    char place[HK_STORE_PLACE_MAX];
    struct hk_str table, sql;
    bool applied;
    uint64_t copied; /* rows that were there already */
};

extern const struct hk_op hk_op_adopt;

#endif
