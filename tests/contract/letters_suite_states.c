/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a message's states (core/message.h) is what a store does: every event is tried in every state, and the view
 * outbox_messages says afterwards what the table says, or, where the table forbids it, what it said before. */
#include "base/str.h"
#include "letters_suite_impl.h"

struct subject {
    struct hk_store *store;
    struct hk_admin *admin;
    int64_t lane;
    char message_id[32];
    enum hk_source source;
    int64_t id, claim; /* as a relay last knew them */
};

static int64_t number_of(const struct subject *s, const char *what, const char *table)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT coalesce(max(%s), 0) FROM %s WHERE message_id = '%s'", what, table,
             s->message_id);
    return suite_number(sql);
}

static const char *status_of(const struct subject *s)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT status FROM outbox_messages WHERE message_id = '%s'", s->message_id);
    return store_kind->value(sql);
}

/* ---- events; one that cannot be is refused, or changes nothing ---- */

static void claim(struct subject *s)
{
    const struct hk_want want = {s->source, s->id, true};
    const struct hk_exchanged *done = suite_exchange(s->store, s->lane, NULL, 0, &want, 1);
    if (done->n_messages)
        s->claim = done->claim;
}

static void settle(struct subject *s, enum hk_settle_kind kind)
{
    struct hk_settle one = suite_settle(s->claim, s->source, s->id, kind);
    one.due_ms = suite_clock_ms;
    (void)suite_exchange(s->store, s->lane, &one, 1, NULL, 0);
    if (kind == HK_SETTLE_RETRY && number_of(s, "id", "outbox_retry")) {
        s->source = HK_FROM_RETRY;
        s->id = number_of(s, "id", "outbox_retry");
    }
}

/* The relay dies, and another one comes. */
static void orphan(struct subject *s)
{
    suite_close(s->store);
    suite_clock_ms += 60000;
    s->store = suite_open(NULL);
    s->lane = suite_acquire(s->store);
}

static void cancel(struct subject *s)
{
    struct hk_acted done;
    struct hk_err err = {0};
    const struct hk_act act = {s->message_id, NULL, "ann", "because"};
    (void)!admin_ops->cancel(s->admin, &act, &done, &err);
}

static void requeue(struct subject *s)
{
    int64_t letter = number_of(s, "id", "dead_letters");
    if (letter)
        (void)letters_requeue(s->admin, letter, HK_REQUEUE_SAME);
}

static void happen(struct subject *s, enum hk_event event)
{
    switch (event) {
    case HK_EV_CLAIM:
        claim(s);
        break;
    case HK_EV_ACK:
        settle(s, HK_SETTLE_SENT);
        break;
    case HK_EV_RETRY:
        settle(s, HK_SETTLE_RETRY);
        break;
    case HK_EV_RELEASE:
        settle(s, HK_SETTLE_RELEASE);
        break;
    case HK_EV_ORPHAN:
        orphan(s);
        break;
    case HK_EV_GIVE_UP:
        settle(s, HK_SETTLE_DEAD);
        break;
    case HK_EV_CANCEL:
        cancel(s);
        break;
    case HK_EV_REQUEUE:
        requeue(s);
        break;
    case HK_NEVENTS:
        break;
    }
}

/* A new message, brought to the state. */
static void make(struct subject *s, enum hk_state state)
{
    static const enum hk_event ways[HK_NSTATES][3] = {
        [HK_PENDING] = {HK_NEVENTS},
        [HK_PROCESSING] = {HK_EV_CLAIM, HK_NEVENTS},
        [HK_RETRYING] = {HK_EV_CLAIM, HK_EV_RETRY, HK_NEVENTS},
        [HK_SENT] = {HK_EV_CLAIM, HK_EV_ACK, HK_NEVENTS},
        [HK_STATE_DEAD] = {HK_EV_CLAIM, HK_EV_GIVE_UP, HK_NEVENTS},
        [HK_STATE_CANCELLED] = {HK_EV_CANCEL, HK_NEVENTS},
    };

    static int n;
    char sql[200];
    suite_clock_ms += 1000;
    snprintf(s->message_id, sizeof s->message_id, "state-%d", ++n);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO outbox (message_id, destination, event_type, payload) VALUES ('%s', 'a', 'Made', 'p')",
        s->message_id);
    store_kind->sql(sql);
    s->source = HK_FROM_OUTBOX;
    s->id = number_of(s, "id", "outbox");
    s->claim = 0;
    for (size_t i = 0; ways[state][i] != HK_NEVENTS; i++)
        happen(s, ways[state][i]);
    suite_clock_ms += 1000;
    assert_string_equal(status_of(s), hk_state_name(state));
}

static void a_message_goes_from_state_to_state_as_the_table_says(void **state)
{
    (void)state;
    struct subject s = {.store = suite_open(NULL), .admin = admin_open()};
    s.lane = suite_acquire(s.store);
    for (int from = HK_PENDING; from < HK_NSTATES; from++)
        for (int event = 0; event < HK_NEVENTS; event++) {
            enum hk_state after = hk_state_after((enum hk_state)from, (enum hk_event)event);
            const char *want = hk_state_name(after == HK_STATE_NONE ? (enum hk_state)from : after);
            make(&s, (enum hk_state)from);
            happen(&s, (enum hk_event)event);
            NOTE_IF(strcmp(status_of(&s), want) != 0, "state %d, event %d\n", from, event);
            assert_string_equal(status_of(&s), want);
        }
    suite_close(s.store);
    admin_ops->close(s.admin);
}

const struct CMUnitTest letters_state_tests[] = {
    TEST(a_message_goes_from_state_to_state_as_the_table_says),
};
const size_t letters_state_count = sizeof letters_state_tests / sizeof letters_state_tests[0];
