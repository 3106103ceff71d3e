/* SPDX-License-Identifier: Apache-2.0 */
/* See pg_relay.h. */
#include <stdlib.h>

#include "base/str.h"
#include "pg_relay.h"

#define LEASE_MS 30000

const struct hk_poll *relay_poll(struct hk_store *store)
{
    const struct hk_poll *poll = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->poll(store, &poll, &err);
    NOTE_IF(rc != HK_OK, "poll: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return poll;
}

const char *relay_scan(struct hk_store *store, struct hk_scan scan)
{
    static char text[4000];
    const struct hk_heads *heads = NULL;
    struct hk_err err = {0};
    enum hk_code rc = store_kind->ops->scan(store, &scan, &heads, &err);
    NOTE_IF(rc != HK_OK, "scan: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < heads->n && len < sizeof text - 30; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld", i ? "," : "",
                                (long long)heads->items[i].id);
    if (heads->more)
        snprintf(text + len, sizeof text - len, "+");
    return text;
}

static void acquire(struct relay *relay)
{
    int64_t now_ms = 0;
    struct hk_err err = {0};
    enum hk_code rc =
        store_kind->ops->acquire(relay->store, "relay", "boot", LEASE_MS, &relay->lane, &now_ms, &err);
    NOTE_IF(rc != HK_OK, "acquire: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    relay->cursor = HK_FIRST_ID;
    relay->n_held = 0;
}

void relay_open(struct relay *relay, const struct hk_store_options *options)
{
    struct hk_err err = {0};
    *relay = (struct relay){0};
    enum hk_code rc = store_kind->ops->open(store_kind->url(), options, &relay->store, &err);
    NOTE_IF(rc != HK_OK, "open: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    acquire(relay);
}

void relay_close(struct relay *relay)
{
    store_kind->ops->close(relay->store);
    free(relay->log);
    *relay = (struct relay){0};
}

static void note(struct relay *relay, const struct hk_message *m)
{
    if (relay->n_log == relay->room) {
        relay->room = relay->room ? 2 * relay->room : 1024;
        relay->log = realloc(relay->log, relay->room * sizeof *relay->log);
        assert_non_null(relay->log);
    }
    static size_t places;
    struct delivery *d = &relay->log[relay->n_log++];
    d->id = m->id;
    d->place = places++;
    assert_true(hk_str_copy(d->key, sizeof d->key, m->key));
}

/* True: it was done. What it was to settle stays in hand otherwise. */
static bool exchange(struct relay *relay, const struct hk_heads *heads, enum hk_code *out_rc)
{
    struct hk_settle settles[RELAY_BATCH];
    struct hk_want wants[RELAY_BATCH];
    const struct hk_exchanged *done = NULL;
    struct hk_err err = {0};
    for (size_t i = 0; i < relay->n_held; i++)
        settles[i] = suite_settle(relay->claim, HK_FROM_OUTBOX, relay->held[i], HK_SETTLE_SENT);
    size_t n = heads ? heads->n : 0;
    for (size_t i = 0; i < n; i++)
        wants[i] = (struct hk_want){HK_FROM_OUTBOX, heads->items[i].id, true};
    const struct hk_exchange x = {.lane = relay->lane,
                                  .lease_ms = LEASE_MS,
                                  .settles = settles,
                                  .n_settles = relay->n_held,
                                  .wants = wants,
                                  .n_wants = n};
    *out_rc = store_kind->ops->exchange(relay->store, &x, &done, &err);
    NOTE_IF(*out_rc != HK_OK, "# exchange: %s\n", err.message);
    assert_true(*out_rc != HK_IO && *out_rc != HK_INVALID);
    if (*out_rc != HK_OK)
        return false;
    for (size_t i = 0; i < relay->n_held; i++)
        assert_false(done->stale[i]);
    relay->claim = done->claim;
    relay->n_held = done->n_messages;
    for (size_t i = 0; i < n; i++) /* in the order of the scan, which need not be that of the answer */
        for (size_t k = 0; k < done->n_messages; k++)
            if (done->messages[k].id == wants[i].id)
                note(relay, &done->messages[k]);
    for (size_t k = 0; k < done->n_messages; k++)
        relay->held[k] = done->messages[k].id;
    return true;
}

/* One page; how many heads, -1 after an error. */
static int take_page(struct relay *relay, struct hk_scan scan, bool *out_more, int64_t *out_last,
                     enum hk_code *out_rc)
{
    const struct hk_heads *heads = NULL;
    *out_rc = store_kind->ops->scan(relay->store, &scan, &heads, NULL);
    if (*out_rc != HK_OK)
        return -1;
    int n = (int)heads->n;
    bool more = heads->more;
    int64_t last = heads->last_id;
    if (n && !exchange(relay, heads, out_rc))
        return -1;
    *out_more = more;
    *out_last = last;
    return n;
}

static bool take_late(struct relay *relay, enum hk_code *out_rc)
{
    int64_t last = HK_FIRST_ID;
    bool more = true;
    while (more) {
        int n = take_page(relay, (struct hk_scan){.late = true, .after_id = last, .limit = RELAY_BATCH},
                          &more, &last, out_rc);
        if (n < 0)
            return false; /* it is begun again */
        relay->n_late += (size_t)n;
    }
    return true;
}

static bool turn(struct relay *relay, int pages, enum hk_code *out_rc)
{
    const struct hk_poll *poll = NULL;
    *out_rc = store_kind->ops->poll(relay->store, &poll, NULL);
    if (*out_rc != HK_OK)
        return false;
    if (poll->changed && poll->reset) {
        relay->cursor = HK_FIRST_ID;
        relay->n_resets++;
    } else if (poll->changed && poll->late && !take_late(relay, out_rc)) {
        return false;
    }
    bool more = true;
    for (int i = 0; i < pages && more; i++)
        if (take_page(relay, (struct hk_scan){.after_id = relay->cursor, .limit = RELAY_BATCH}, &more,
                      &relay->cursor, out_rc) < 0)
            return false;
    return true;
}

bool relay_turn(struct relay *relay, int pages)
{
    enum hk_code rc = HK_OK;
    relay->n_errors += !turn(relay, pages, &rc);
    return rc != HK_CONFLICT;
}

void relay_settle(struct relay *relay)
{
    enum hk_code rc = HK_OK;
    for (int i = 0; i < 50 && !exchange(relay, NULL, &rc); i++)
        assert_int_not_equal(rc, HK_CONFLICT);
    assert_int_equal(rc, HK_OK);
}

void relay_leave(struct relay *relay)
{
    relay_settle(relay);
    assert_int_equal(store_kind->ops->release(relay->store, relay->lane, NULL), HK_OK);
}

static int by_key_and_place(const void *a, const void *b)
{
    const struct delivery *x = *(const struct delivery *const *)a, *y = *(const struct delivery *const *)b;
    int keys = strcmp(x->key, y->key);
    return keys ? keys : (x->place > y->place) - (x->place < y->place);
}

static int by_id(const void *a, const void *b)
{
    const struct delivery *x = *(const struct delivery *const *)a, *y = *(const struct delivery *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static void check_pair(const struct delivery *a, const struct delivery *b)
{
    bool bad = a->key[0] && strcmp(a->key, b->key) == 0 && b->id < a->id;
    NOTE_IF(bad, "%s: %lld after %lld\n", a->key, (long long)b->id, (long long)a->id);
    assert_false(bad);
}

void relay_check(const struct relay *relays, size_t n)
{
    size_t count = 0, total = 0;
    for (size_t i = 0; i < n; i++)
        total += relays[i].n_log;
    const struct delivery **list = calloc(total + 1, sizeof(const struct delivery *));
    assert_non_null(list);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < relays[i].n_log; k++)
            list[count++] = &relays[i].log[k];
    qsort(list, count, sizeof(const struct delivery *), by_id);
    for (size_t i = 1; i < count; i++) {
        NOTE_IF(list[i]->id == list[i - 1]->id, "%lld was delivered twice\n", (long long)list[i]->id);
        assert_int_not_equal(list[i]->id, list[i - 1]->id);
    }
    qsort(list, count, sizeof(const struct delivery *), by_key_and_place);
    for (size_t i = 1; i < count; i++)
        check_pair(list[i - 1], list[i]);
    free(list);
}
