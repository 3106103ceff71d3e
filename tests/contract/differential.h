/* SPDX-License-Identifier: Apache-2.0 */
/* The same operations on several stores: what they share. An operation is a few numbers; what they mean (which row, which
 * message) is resolved by what the first side has shown, in names that all sides understand: so any part of a trace is a
 * trace again. */
#ifndef HK_TESTS_DIFFERENTIAL_H
#define HK_TESTS_DIFFERENTIAL_H

#include "base/buf.h"
#include "store/store.h"

enum {
    DIFF_LEASE_MS = 30000,
    DIFF_SEEN = 64, /* rows that a scan has shown */
    DIFF_HAND = 16, /* messages in a relay's hand */
    DIFF_OPEN = 2,  /* transactions that applications hold open */
    DIFF_TEXT = 24
};

#define DIFF_EDITED "edited" /* every edited payload */

enum diff_kind {
    DIFF_INSERT,
    DIFF_ROLLBACK,
    DIFF_HOLD, /* an application inserts, and does not commit yet: others overtake its id */
    DIFF_LET,  /* … and now it does, or rolls back */
    DIFF_TICK,
    DIFF_SCAN,
    DIFF_SCAN_RETRY,
    DIFF_HELD_KEYS,
    DIFF_EXCHANGE,
    DIFF_STALE,   /* an exchange by who lost its lane */
    DIFF_ACQUIRE, /* when nobody has a lane */
    DIFF_KNOCK,   /* when somebody has */
    DIFF_RELEASE,
    DIFF_TAKE_OVER, /* the lease runs out, and another comes */
    DIFF_PAUSE,
    DIFF_CIRCUIT,
    DIFF_CANCEL,
    DIFF_DISCARD,
    DIFF_REQUEUE, /* where an edit forced a new id on it, all sides say so, and it gets its old one back: names stay comparable */
    DIFF_EDIT,
    DIFF_NKINDS
};

struct diff_op {
    enum diff_kind kind;
    uint32_t a, b, c, d;
};

/* A row, by names: ids are each store's own. */
struct diff_name {
    enum hk_source source;
    char message[DIFF_TEXT], destination[DIFF_TEXT];
    char key[DIFF_TEXT]; /* follows from the message */
};

struct diff_held {
    struct diff_name name;
    struct hk_history history;
    int64_t first_failed_ms;
    uint32_t life;
};

struct diff_message {
    char id[DIFF_TEXT];
    const char *destination, *key;
    int64_t not_before_ms, expires_ms;
};

/* What is done next is decided by this. */
struct diff_view {
    int64_t now_ms, lease_until_ms;
    bool lane;      /* somebody has one */
    unsigned relay; /* which of the two relays that is */
    struct diff_name seen[DIFF_SEEN];
    size_t n_seen;
    struct diff_held hand[2][DIFF_HAND]; /* of each relay */
    size_t n_hand[2];
    struct diff_name late[DIFF_SEEN]; /* by the last poll: became visible below what scans had passed */
    size_t n_late, all_late;
    bool open[DIFF_OPEN];   /* transactions */
    uint32_t messages;      /* written so far */
    struct diff_name acted; /* on what the last act of an operator was; message "" = there was nothing */
};

/* An exchange in names. */
struct diff_settle {
    struct hk_settle settle; /* without claim and id */
    struct diff_name name;
};

struct diff_exchange {
    unsigned relay;
    struct diff_settle settles[DIFF_HAND];
    size_t n_settles;
    struct diff_name wants[DIFF_HAND];
    size_t n_wants;
    const struct hk_circuit *circuit; /* NULL = none */
};

/* A store under comparison. Each call adds what came of it, in names, to `out`; what stores may differ in is left out. The
 * model leads: it keeps the view up to date. */
struct diff_side {
    const char *name;
    bool one_lane; /* at a time; else others may join */
    void *arg;
    void (*insert)(void *arg, const struct diff_message *msg, bool commit);
    /* The same in two steps. An id is given at the insert, as PostgreSQL does. */
    void (*hold)(void *arg, unsigned slot, const struct diff_message *msg);
    void (*let)(void *arg, unsigned slot, bool commit);
    void (*acquire)(void *arg, unsigned relay, struct hk_buf *out);
    void (*release)(void *arg, unsigned relay, struct hk_buf *out);
    /* A poll, and all pages of `limit` that the scan has, from behind a row (or NULL) on. */
    void (*scan)(void *arg, const struct hk_scan *scan, const struct diff_name *after, struct diff_view *view,
                 struct hk_buf *out);
    void (*held_keys)(void *arg, unsigned relay, struct hk_buf *out);
    void (*exchange)(void *arg, const struct diff_exchange *x, struct diff_view *view, struct hk_buf *out);
    void (*pause)(void *arg, const char *destination, bool paused);
    /* The side that leads chooses by `pick` and says what; the others do the same. */
    void (*act)(void *arg, enum diff_kind kind, uint32_t pick, struct diff_name *what, struct hk_buf *out);
    void (*dump)(void *arg, bool whole, struct hk_buf *out);
    void (*close)(void *arg);
};

extern int64_t diff_clock_ms; /* all stores' */

/* The model of sim/; `messages`: how many there will be. */
void diff_model_open(struct diff_side *side, size_t messages);

/* A real one, by its URL. `rows` runs a query and adds its first column, a line for each row. */
struct diff_sql {
    const char *url;
    void (*sql)(const char *sql);
    void (*rows)(const char *sql, struct hk_buf *out);
    void (*in_open)(unsigned slot, const char *sql); /* in a session of its own; NULL = there is one writer */
};

void diff_sql_open(struct diff_side *side, const struct diff_sql *sql);

/* Which id and manifest a side knows a row by that a relay took. */
struct diff_book {
    struct diff_entry {
        unsigned relay;
        struct diff_name name;
        int64_t id, claim;
    } entries[8 * DIFF_HAND];

    size_t n;
};

void diff_book_put(struct diff_book *book, unsigned relay, const struct hk_message *msg, int64_t claim);
/* The settles of the exchange with their ids and claims; how many. */
size_t diff_book_settles(const struct diff_book *book, const struct diff_exchange *x, struct hk_settle *out);

/* ---- in names (differential.c) ---- */

void diff_put_poll(const struct hk_poll *poll, struct hk_buf *out);
void diff_put_keys(const struct hk_held_key *keys, size_t n, struct hk_buf *out);
void diff_put_exchanged(const struct hk_exchange *x, enum hk_code rc, const struct hk_exchanged *done,
                        struct hk_buf *out);
/* Is it a key that engines keep the order of? They never have two of it in hand, and neither have we; of others we do. */
bool diff_ordered(const char *key);
/* A page of a scan: what nobody has in hand. Some stores leave out what somebody has, and so must we. */
void diff_put_heads(const struct hk_heads *heads, struct diff_view *view, bool leads, struct hk_buf *out);
void diff_take(struct diff_view *view, unsigned relay, const struct hk_message *msg);
void diff_sort_lines(struct hk_buf *text, size_t from);
struct diff_name diff_name_of_head(const struct hk_head *head);
const char *diff_code(enum hk_code rc);

#endif
