/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of src/store/store.h as a test, for any implementation. The suite speaks to the store through its
 * operations and to the database as an application does, in SQL, through the few functions of `struct store_kind`. */
#ifndef HK_TESTS_STORE_SUITE_H
#define HK_TESTS_STORE_SUITE_H

#include "../unit/check.h"
#include "store/store.h"

/* What an implementation brings. One database at a time. */
struct store_kind {
    const struct hk_store_ops *ops;
    bool (*make)(void); /* a fresh, empty database with the schema in place */
    void (*drop)(void); /* it, and everything open on it */
    const char *(*url)(void);
    /* As an application, on a connection of its own, committed at once. Fails the test on error. */
    void (*sql)(const char *sql);
    /* The single value that `sql` gives, as text; "" for NULL or no row. Valid until the next call. */
    const char *(*value)(const char *sql);
    bool one_lane; /* at a time; else any number of them, which share the outbox */
    bool
        host_clock; /* time is the host's, so that the store must see to it that it goes on; else its server's */
    /* Where dialects differ: what encloses a manifest's ids, and a column with a time, in RFC 3339 with milliseconds. */
    const char *brackets;
    void (*time_text)(const char *column, char *out, size_t room);
    /* A trigger of the application's: `act` (DELETE …) on rows of `table` whose payload is p2 does nothing, or (`loud`) fails with
     * "not p2". NULL table: it is dropped again. */
    void (*guard)(const char *table, const char *act, bool loud);
};

extern const struct store_kind *store_kind; /* set by the test program */
extern int64_t suite_clock_ms; /* what stores opened by suite_open go by; starts 2027-01-15T08:00:00Z */

/* Writes the suite's tests to `out`; how many. */
size_t suite_tests(struct CMUnitTest *out, size_t room);

/* What the suite is made of, for tests of one implementation alone. Each fails the test when the store fails. */
int suite_setup(void **state);
int suite_teardown(void **state);
struct hk_store *suite_open(const struct hk_store_options *options); /* NULL: keeps what is sent */
void suite_close(struct hk_store *store);
void suite_fill(int n, const char *destination, const char *key); /* n messages with payloads p1, p2 … */
int64_t suite_acquire(struct hk_store *store);                    /* for 30 s */
const struct hk_exchanged *suite_exchange(struct hk_store *store, int64_t lane,
                                          const struct hk_settle *settles, size_t n_settles,
                                          const struct hk_want *wants, size_t n_wants);
int64_t suite_claim(struct hk_store *store, int64_t lane, enum hk_source source,
                    int64_t id); /* the manifest */
struct hk_settle suite_settle(int64_t claim, enum hk_source source, int64_t id, enum hk_settle_kind kind);
void suite_settle_one(struct hk_store *store, int64_t lane, const struct hk_settle *settle);
/* Of destination "a"; store time, 0 = closed. */
void suite_circuit(struct hk_store *store, int64_t lane, int64_t open_until_ms);
int64_t suite_number(const char *sql);

#endif
