/* SPDX-License-Identifier: Apache-2.0 */
/* Which ids may have become visible late: by hand-made snapshots, and against a model of PostgreSQL's transactions. */
#include <stdlib.h>

#include <hikyaku/alloc.h>
#include <hikyaku/rng.h>

#include "base/buf.h"
#include "base/str.h"
#include "check.h"
#include "core/exchange.h"
#include "store/pg/window.h"

static bool see(struct hk_pg_window *w, const char *snapshot, int64_t position)
{
    bool changed = false;
    assert_int_equal(hk_pg_window_see(w, hk_str_of(snapshot), position, &changed), HK_OK);
    return changed;
}

/* A window that has seen everything up to `snapshot`, with its base at `position`. */
static struct hk_pg_window at(const char *snapshot, int64_t position, int64_t passed)
{
    struct hk_pg_window w = {0};
    see(&w, snapshot, position);
    hk_pg_window_wrote(&w);
    char text[64];
    unsigned long long xmin = 0, xmax = 0;
    assert_int_equal(sscanf(snapshot, "%llu:%llu", &xmin, &xmax), 2);
    const char *running = strrchr(snapshot, ':') + 1;
    snprintf(text, sizeof text, "%llu:%llu:%s", running[0] ? xmin : xmax + 1, xmax + 1, running);
    assert_false(see(&w, text, position));
    hk_pg_window_passed(&w, passed);
    return w;
}

static void expect_late(const struct hk_pg_window *w, int64_t floor, int64_t high)
{
    assert_non_null(w->a);
    assert_int_equal(w->floor, floor);
    assert_int_equal(w->high, high);
}

static void the_same_snapshot_is_no_change(void **state)
{
    (void)state;
    struct hk_pg_window w = {0};
    assert_true(see(&w, "100:105:100,103", 7)); /* the first */
    assert_false(see(&w, "100:105:100,103", 7));
    hk_pg_window_passed(&w, 7);
    assert_false(see(&w, "100:105:100,103", 9)); /* ids were drawn, nothing has ended */
    assert_null(w.a);
    hk_pg_window_fini(&w);
}

static void our_own_transactions_are_no_change(void **state)
{
    (void)state;
    struct hk_pg_window w = {0};
    see(&w, "100:105:100", 7);
    hk_pg_window_passed(&w, 7);
    hk_pg_window_wrote(&w);
    hk_pg_window_wrote(&w);
    assert_false(see(&w, "100:107:100", 7));
    assert_null(w.a);
    hk_pg_window_wrote(&w);
    hk_pg_window_passed(&w, 8);
    assert_true(see(&w, "100:109:100", 9)); /* one of the two was not ours */
    expect_late(&w, 7, 8);
    hk_pg_window_fini(&w);
}

static void what_ends_unseen_lies_above_the_base(void **state)
{
    (void)state;
    struct hk_pg_window w = at("100:100:", 50, 60);
    assert_true(see(&w, "103:103:", 70));
    expect_late(&w, 50, 60);
    assert_string_equal(w.a, "101:101:");
    assert_string_equal(w.b.text, "103:103:");
    hk_pg_window_shown(&w);
    assert_null(w.a);
    hk_pg_window_fini(&w);
}

static void nothing_is_late_when_nothing_above_the_base_was_passed(void **state)
{
    (void)state;
    struct hk_pg_window w = at("100:100:", 50, 50);
    assert_true(see(&w, "103:103:", 70));
    assert_null(w.a);
    hk_pg_window_fini(&w);
}

/* The base moves only when a transaction of ours lies between the reading of the sequence and the snapshot. */
static void a_position_is_a_base_only_behind_a_transaction_of_ours(void **state)
{
    (void)state;
    struct hk_pg_window w = at("100:100:", 50, 60);
    assert_true(see(&w, "101:103:101", 70)); /* 102 ended, and may have drawn 51 */
    expect_late(&w, 50, 60);
    hk_pg_window_shown(&w);
    assert_true(see(&w, "104:104:", 80)); /* 101 and 103 ended, and may have drawn 51, too */
    expect_late(&w, 50, 60);
    hk_pg_window_shown(&w);

    hk_pg_window_wrote(&w); /* 104: the sequence stood at 80 before it */
    assert_false(see(&w, "105:105:", 80));
    hk_pg_window_passed(&w, 90);
    assert_true(see(&w, "106:106:", 95));
    expect_late(&w, 80, 90);
    hk_pg_window_fini(&w);
}

static void a_running_transaction_counts_only_where_it_ends(void **state)
{
    (void)state;
    struct hk_pg_window w = at("100:100:", 50, 50);
    assert_true(see(&w, "102:104:102", 60)); /* 102 is new: its ids are above 50 */
    hk_pg_window_wrote(&w);                  /* 104 */
    assert_false(see(&w, "102:105:102", 200));
    hk_pg_window_wrote(&w);
    assert_false(see(&w, "102:106:102", 200));
    hk_pg_window_passed(&w, 300);
    assert_true(see(&w, "102:107:102", 400));
    expect_late(&w, 200, 300); /* 106 ended, 102 is open */
    hk_pg_window_shown(&w);
    hk_pg_window_wrote(&w);
    assert_false(see(&w, "102:108:102", 400));
    assert_true(see(&w, "108:108:", 400));
    expect_late(&w, 50, 300);
    hk_pg_window_fini(&w);
}

/* What runs when the reader starts may have drawn any id. */
static void what_was_running_at_the_start_has_no_floor(void **state)
{
    (void)state;
    struct hk_pg_window w = {0};
    see(&w, "90:100:90", 1000);
    hk_pg_window_wrote(&w);
    see(&w, "90:101:90", 1000);
    hk_pg_window_passed(&w, 1000);
    assert_true(see(&w, "101:101:", 1000));
    expect_late(&w, HK_FIRST_ID, 1000);
    hk_pg_window_fini(&w);
}

static void beginning_anew_makes_nothing_late(void **state)
{
    (void)state;
    struct hk_pg_window w = at("100:100:", 50, 60);
    assert_true(see(&w, "103:103:", 70));
    assert_non_null(w.a);
    hk_pg_window_restart(&w);
    assert_null(w.a);
    assert_true(see(&w, "104:104:", 70));
    assert_null(w.a);
    hk_pg_window_passed(&w, 60); /* and the base is still known */
    assert_true(see(&w, "105:105:", 70));
    expect_late(&w, 50, 60);
    hk_pg_window_fini(&w);
}

static void a_write_is_wanted_when_the_base_lags(void **state)
{
    (void)state;
    struct hk_pg_window w = {0};
    assert_false(hk_pg_window_wants_write(&w));
    see(&w, "100:100:", 0);
    assert_false(hk_pg_window_wants_write(&w)); /* no id was ever drawn */
    see(&w, "100:100:", 3);
    assert_true(hk_pg_window_wants_write(&w));
    hk_pg_window_wrote(&w);
    assert_false(hk_pg_window_wants_write(&w));
    see(&w, "101:101:", 5003);
    assert_false(hk_pg_window_wants_write(&w));
    see(&w, "101:101:", 5004);
    assert_true(hk_pg_window_wants_write(&w));
    hk_pg_window_fini(&w);
}

static void what_is_no_snapshot_changes_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",        "1",       "1:2",   "a:2:",   "1:b:",  "1:2:x", "1:5:2,",  "1:5:,2",
        "1:5:2,2", "1:5:3,2", "1:5:5", "1:5:2:", "-1:2:", " 1:2:", "1:5:0,2", "1:99999999999999999999:"};
    struct hk_pg_window w = at("100:100:", 50, 60);
    bool changed = false;
    for (size_t i = 0; i < COUNT(bad); i++) {
        enum hk_code rc = hk_pg_window_see(&w, hk_str_of(bad[i]), 1, &changed);
        NOTE_IF(rc != HK_INVALID, "%s\n", bad[i]);
        assert_int_equal(rc, HK_INVALID);
    }
    assert_false(changed);
    assert_false(see(&w, "101:101:", 50));
    hk_pg_window_fini(&w);
}

/* More transactions than there is room for share the lowest floor; none is forgotten. */
static void a_crowd_is_folded(void **state)
{
    (void)state;

    enum {
        CROWD = HK_PG_RUNNING_MAX + 100
    };
    struct hk_buf text;
    hk_buf_init(&text, (size_t)64 * 1024);
    struct hk_pg_window w = at("100:100:", 50, 50);
    hk_buf_addf(&text, "102:%d:102", 102 + CROWD + 1);
    for (int i = 1; i < CROWD; i++)
        hk_buf_addf(&text, ",%d", 102 + i);
    assert_true(see(&w, hk_buf_cstr(&text), 60));
    assert_true(w.b.shared);
    assert_int_equal(w.b.n_running, HK_PG_RUNNING_MAX);
    hk_pg_window_wrote(&w);
    hk_pg_window_passed(&w, 500);
    char after[64];
    snprintf(after, sizeof after, "%d:%d:%d", 102 + CROWD - 1, 102 + CROWD + 2, 102 + CROWD - 1);
    assert_true(see(&w, after, 500)); /* all but the last one ended */
    expect_late(&w, 50, 500);
    hk_pg_window_shown(&w);
    snprintf(after, sizeof after, "%d:%d:", 102 + CROWD + 2, 102 + CROWD + 2);
    assert_true(see(&w, after, 500)); /* it had shared a floor */
    expect_late(&w, 50, 500);
    hk_buf_fini(&text);
    hk_pg_window_fini(&w);
}

/* ---- out of memory ---- */

static void *resize_counted(void *arg, void *ptr, size_t bytes)
{
    int *left = arg;
    return (*left)-- > 0 ? realloc(ptr, bytes) : NULL;
}

static void release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    struct hk_pg_window w = at("100:100:", 50, 60);
    bool changed = false;
    enum hk_code rc = HK_NOMEM;
    for (int room = 0; rc != HK_OK; room++) {
        int left = room;
        struct hk_allocator counted = {resize_counted, release, &left};
        hk_allocator_set(&counted);
        rc = hk_pg_window_see(&w, hk_str_of("101:104:101,102"), 70, &changed);
        hk_allocator_set(NULL);
        if (rc == HK_OK)
            break;
        assert_int_equal(rc, HK_NOMEM);
        assert_null(w.a);
        assert_string_equal(w.b.text, "101:101:");
    }
    expect_late(&w, 50, 60);
    hk_pg_window_fini(&w);
}

/* ---- a model of PostgreSQL: numbers and ids are handed out in order, transactions end when they like ---- */

enum {
    TRANSACTIONS = 200,
    ROWS_MAX = 4
};

enum fate {
    RUNNING = 0,
    COMMITTED,
    ROLLED_BACK
};

struct transaction {
    uint64_t xid;
    enum fate fate;
    int64_t ids[ROWS_MAX];
    bool shown[ROWS_MAX];
    int n_ids;
};

struct model {
    struct hk_rng rng;
    struct transaction all[TRANSACTIONS]; /* by xid, which begins at FIRST_XID */
    size_t n;
    uint64_t completed; /* the highest number that has ended: what snapshots go by */
    int64_t sequence;
    /* the reader */
    struct hk_pg_window w;
    int64_t cursor;
    bool in_a[TRANSACTIONS], in_b[TRANSACTIONS]; /* who had ended: kept apart from what is tested */
};

enum {
    FIRST_XID = 1000
};

static size_t begin_transaction(struct model *m)
{
    assert_true(m->n < TRANSACTIONS);
    m->all[m->n].xid = FIRST_XID + m->n;
    return m->n++;
}

static void insert_row(struct model *m, struct transaction *t)
{
    if (t->n_ids < ROWS_MAX)
        t->ids[t->n_ids++] = ++m->sequence;
}

static void end_transaction(struct model *m, struct transaction *t, enum fate fate)
{
    t->fate = fate;
    if (t->xid > m->completed)
        m->completed = t->xid;
}

static void write_snapshot(const struct model *m, struct hk_buf *out)
{
    uint64_t xmax = m->completed + 1, xmin = xmax;
    for (size_t i = m->n; i-- > 0;)
        if (m->all[i].fate == RUNNING && m->all[i].xid < xmax)
            xmin = m->all[i].xid;
    hk_buf_addf(out, "%llu:%llu:", (unsigned long long)xmin, (unsigned long long)xmax);
    const char *sep = "";
    for (size_t i = 0; i < m->n; i++)
        if (m->all[i].fate == RUNNING && m->all[i].xid < xmax) {
            hk_buf_addf(out, "%s%llu", sep, (unsigned long long)m->all[i].xid);
            sep = ",";
        }
}

/* Late rows as the rule has it; each must lie where the window says. */
static void show_late(struct model *m)
{
    for (size_t i = 0; i < m->n; i++)
        for (int k = 0; m->in_b[i] && !m->in_a[i] && k < m->all[i].n_ids; k++) {
            struct transaction *t = &m->all[i];
            if (t->fate != COMMITTED || t->ids[k] > m->cursor || t->shown[k])
                continue;
            NOTE_IF(!m->w.a, "id %lld of %llu is late, and nobody looks\n", (long long)t->ids[k],
                    (unsigned long long)t->xid);
            assert_non_null(m->w.a);
            assert_true(t->ids[k] > m->w.floor && t->ids[k] <= m->w.high);
            t->shown[k] = true;
        }
    hk_pg_window_shown(&m->w);
    memcpy(m->in_a, m->in_b, sizeof m->in_a);
}

static void poll_model(struct model *m)
{
    struct hk_buf text;
    bool changed;
    hk_buf_init(&text, (size_t)64 * 1024);
    write_snapshot(m, &text);
    for (size_t i = 0; i < m->n; i++)
        m->in_b[i] = m->all[i].fate != RUNNING;
    bool first = !m->w.known;
    assert_int_equal(hk_pg_window_see(&m->w, hk_buf_str(&text), m->sequence, &changed), HK_OK);
    hk_buf_fini(&text);
    if (first)
        memcpy(m->in_a, m->in_b, sizeof m->in_a);
    show_late(m);
}

/* The next `limit` rows above the cursor that the horizon shows. */
static void scan_model(struct model *m, int limit)
{
    for (; m->w.known && limit > 0; limit--) {
        struct transaction *found = NULL;
        int at_row = 0;
        for (size_t i = 0; i < m->n; i++)
            for (int k = 0; m->in_b[i] && m->all[i].fate == COMMITTED && k < m->all[i].n_ids; k++)
                if (m->all[i].ids[k] > m->cursor && (!found || m->all[i].ids[k] < found->ids[at_row])) {
                    found = &m->all[i];
                    at_row = k;
                }
        if (!found)
            return;
        found->shown[at_row] = true;
        m->cursor = found->ids[at_row];
        hk_pg_window_passed(&m->w, m->cursor);
    }
}

static void our_transaction(struct model *m, bool told)
{
    end_transaction(m, &m->all[begin_transaction(m)], COMMITTED);
    if (told && m->w.known)
        hk_pg_window_wrote(&m->w);
}

static void step_model(struct model *m)
{
    uint64_t dice = hk_rng_upto(&m->rng, 99);
    struct transaction *t = m->n ? &m->all[hk_rng_upto(&m->rng, m->n - 1)] : NULL;
    bool old = hk_rng_upto(&m->rng, 9) == 0; /* most end young, a few grow old */
    if (t && !old && m->n > 8)
        t = &m->all[m->n - 1 - hk_rng_upto(&m->rng, 7)];
    if (dice < 25)
        begin_transaction(m);
    else if (dice < 50 && t && t->fate == RUNNING)
        insert_row(m, t);
    else if (dice < 70 && t && t->fate == RUNNING)
        end_transaction(m, t, hk_rng_upto(&m->rng, 9) ? COMMITTED : ROLLED_BACK);
    else if (dice < 80)
        scan_model(m, 3);
    else if (dice < 90)
        our_transaction(m, hk_rng_upto(&m->rng, 9) != 0);
    else
        poll_model(m);
}

static void nothing_is_left_behind_whatever_the_order_of_commits(void **state)
{
    (void)state;
    static struct model m;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        m = (struct model){.completed = FIRST_XID - 1, .cursor = HK_FIRST_ID};
        hk_rng_seed(&m.rng, seed, 0);
        if (seed % 2) /* somebody was there before the reader */
            insert_row(&m, &m.all[begin_transaction(&m)]);
        while (m.n < TRANSACTIONS - 8)
            step_model(&m);
        for (size_t i = 0; i < m.n; i++)
            if (m.all[i].fate == RUNNING)
                end_transaction(&m, &m.all[i], COMMITTED);
        poll_model(&m);
        scan_model(&m, TRANSACTIONS * ROWS_MAX);
        for (size_t i = 0; i < m.n; i++)
            for (int k = 0; k < m.all[i].n_ids; k++) {
                bool expected = m.all[i].fate == COMMITTED;
                NOTE_IF(m.all[i].shown[k] != expected, "seed %llu: id %lld\n", (unsigned long long)seed,
                        (long long)m.all[i].ids[k]);
                assert_int_equal(m.all[i].shown[k], expected);
            }
        hk_pg_window_fini(&m.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_snapshot_is_no_change),
        cmocka_unit_test(our_own_transactions_are_no_change),
        cmocka_unit_test(what_ends_unseen_lies_above_the_base),
        cmocka_unit_test(nothing_is_late_when_nothing_above_the_base_was_passed),
        cmocka_unit_test(a_position_is_a_base_only_behind_a_transaction_of_ours),
        cmocka_unit_test(a_running_transaction_counts_only_where_it_ends),
        cmocka_unit_test(what_was_running_at_the_start_has_no_floor),
        cmocka_unit_test(beginning_anew_makes_nothing_late),
        cmocka_unit_test(a_write_is_wanted_when_the_base_lags),
        cmocka_unit_test(what_is_no_snapshot_changes_nothing),
        cmocka_unit_test(a_crowd_is_folded),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(nothing_is_left_behind_whatever_the_order_of_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
