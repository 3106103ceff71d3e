/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that the database does not let us take away: a foreign key or a trigger of the application's refuses the DELETE, or
 * row-level security, a trigger or RAISE(IGNORE) makes it remove nothing. Such a row must not be sent again, however often it is
 * read. outbox_stuck has them, for every relay to come; this is what one relay knows of it, so that scans can leave them out
 * without asking. Now and then the store tries again to write down what became of them. */
#ifndef HK_STORE_STUCK_H
#define HK_STORE_STUCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/exchange.h"
#include "core/message.h"

enum {
    HK_STUCK_RETRY_MS = 30000, /* when a settle that was refused is tried again */
    HK_STUCK_TRIES = 32,       /* rows at a time */
    HK_STUCK_WHY_MAX = 400
};

struct hk_stuck_row {
    enum hk_source source;
    int64_t id;
};

/* A zeroed struct holds nothing. */
struct hk_stuck {
    struct hk_stuck_row *items; /* sorted by source and id, each once */
    size_t n, room;
    size_t turn;         /* which one is tried next */
    int64_t retry_at_ms; /* store time */
};

/* False: out of memory. */
bool hk_stuck_add(struct hk_stuck *stuck, enum hk_source source, int64_t id);
bool hk_stuck_has(const struct hk_stuck *stuck, enum hk_source source, int64_t id);
void hk_stuck_drop(struct hk_stuck *stuck, enum hk_source source, int64_t id);
/* How to settle it when it is tried again: as it was to be. */
enum hk_settle_kind hk_stuck_kind(enum hk_source source, bool delivered, struct hk_str reason);
/* The next one to be tried; false: there is none. Goes round. */
bool hk_stuck_next(struct hk_stuck *stuck, struct hk_stuck_row *out);
void hk_stuck_clear(struct hk_stuck *stuck); /* frees all */

#endif
