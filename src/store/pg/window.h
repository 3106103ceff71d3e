/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows may have become visible at ids that were read past already. No I/O: snapshots and sequence positions go in.
 *
 * Ids come from a sequence when rows are written, rows become visible when their transactions end, so that a reader that
 * goes by id leaves behind what commits late. Here is what it needs to go back for. Two snapshots: everything visible in
 * `a` was shown, or lies above all ids that were passed and will be; `b` is the horizon of all scans. What is visible in b,
 * not in a, and lies at a passed id is late. When all of that has been shown, a becomes b.
 *
 * The floor says from which id on it is worth looking. It rests on this: a transaction has its number before it draws an
 * id (column order of outbox). So of a transaction that a snapshot does not know yet (number >= xmax) all ids are above any
 * position of the sequence that was read before a transaction of our own got its number, and that one had ended when the
 * snapshot was taken: the other's number is higher than ours, hence younger, hence younger still are its ids. That is the
 * snapshot's base. A transaction that is seen running keeps the base of the snapshot before the one in which it first
 * appears, and counts only in the window in which it ends: however long it is open, it costs one longer look at its end. */
#ifndef HK_STORE_PG_WINDOW_H
#define HK_STORE_PG_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

enum {
    HK_PG_RUNNING_MAX =
        4096 /* transactions with a floor of their own; the others share the lowest of theirs */
};

struct hk_pg_running {
    uint64_t xid;
    int64_t floor; /* its ids are above this */
};

struct hk_pg_snapshot {
    char *text;                    /* as PostgreSQL writes it */
    uint64_t xmax;                 /* it knows nothing of numbers from here on */
    int64_t base;                  /* ids of those are above this */
    struct hk_pg_running *running; /* by rising xid */
    size_t n_running;
    bool shared; /* there are more */
    int64_t shared_floor;
};

/* A zeroed struct is one that has seen nothing. */
struct hk_pg_window {
    bool known; /* there is a horizon */
    struct hk_pg_snapshot b;
    char *
        a; /* the older snapshot while late rows are to be shown; else NULL: all that b sees was or will be */
    int64_t floor, high; /* then: they lie at ids above the one, up to the other */
    int64_t passed;      /* highest id that a scan came by */
    int64_t position;    /* of the sequence, as it was last read */
    int64_t base;        /* of the next snapshot */
    uint64_t own;        /* transactions of ours that ended since b */
};

void hk_pg_window_fini(struct hk_pg_window *w); /* forgets everything, and may be used again */
/* A snapshot was taken, and then `position` was read. Not while late rows are to be shown: b stays until then.
 * `out_changed`: has anything but our own transactions ended since the last one? HK_INVALID: that is no snapshot;
 * HK_NOMEM. Nothing has changed then. */
enum hk_code hk_pg_window_see(struct hk_pg_window *w, struct hk_str snapshot, int64_t position,
                              bool *out_changed) HK_MUSTCHECK;
/* One of our own transactions, which had a number and wrote no row of outbox, was begun after the last snapshot, and ended. */
void hk_pg_window_wrote(struct hk_pg_window *w);
/* The sequence has run so far ahead of the base that a transaction of our own is worth its cost. */
bool hk_pg_window_wants_write(const struct hk_pg_window *w);
void hk_pg_window_passed(struct hk_pg_window *w, int64_t id);
void hk_pg_window_shown(struct hk_pg_window *w); /* all late rows were */
/* All scans begin anew, on the same server: nothing is passed, so nothing is late. */
void hk_pg_window_restart(struct hk_pg_window *w);

#endif
