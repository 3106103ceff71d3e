/* SPDX-License-Identifier: Apache-2.0 */
/* What stores answer, as text without ids, so that answers can be compared. */
#include <inttypes.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/str.h"
#include "differential.h"

int64_t diff_clock_ms;

const char *diff_code(enum hk_code rc)
{
    switch (rc) {
    case HK_OK:
        return "ok";
    case HK_BUSY:
        return "busy";
    case HK_CONFLICT:
        return "conflict";
    case HK_NOTFOUND:
        return "not found";
    default:
        return "another error";
    }
}

static void text(struct hk_buf *out, struct hk_str s)
{
    (void)hk_buf_addf(out, " '%.*s'", (int)s.len, s.ptr ? s.ptr : "");
}

bool diff_ordered(const char *key)
{
    return strcmp(key, "k1") == 0 || strcmp(key, "k2") == 0;
}

static void put_head(const struct hk_head *h, struct hk_buf *out)
{
    /* which of a key comes first among orphans of one take-over is each store's own, where there are several */
    bool ordered = hk_str_eq(h->key, hk_str_of("k1")) || hk_str_eq(h->key, hk_str_of("k2"));
    (void)hk_buf_addf(out, "head %c", h->source == HK_FROM_RETRY ? 'r' : 'o');
    text(out, h->event_type);
    text(out, h->destination);
    text(out, h->key);
    (void)hk_buf_addf(out, " bytes %" PRIu64 " not_before %" PRId64 " expires %" PRId64 " crashes %u%s%s\n",
                      h->payload_bytes, h->not_before_ms, h->expires_ms, h->crashes,
                      h->malformed ? " malformed" : "",
                      ordered && h->source == HK_FROM_RETRY && h->key_first ? " first" : "");
}

/* `changed`, `late`, `last_id` and `acts` may be vaguer in one store than in another. */
void diff_put_poll(const struct hk_poll *poll, struct hk_buf *out)
{
    size_t from = out->len;
    for (size_t i = 0; poll->changed && i < poll->n_dests; i++) {
        const struct hk_poll_dest *d = &poll->dests[i];
        if (d->retry_due_ms == INT64_MAX && !d->paused && !d->open_until_ms)
            continue;
        (void)hk_buf_adds(out, "dest");
        text(out, d->name);
        (void)hk_buf_addf(out, " due %" PRId64 " open %" PRId64 "%s\n", d->retry_due_ms, d->open_until_ms,
                          d->paused ? " paused" : "");
    }
    diff_sort_lines(out, from);
}

void diff_put_keys(const struct hk_held_key *keys, size_t n, struct hk_buf *out)
{
    size_t from = out->len;
    for (size_t i = 0; i < n; i++) {
        (void)hk_buf_addf(out, "key%s", keys[i].dead ? " dead" : "");
        text(out, keys[i].destination);
        text(out, keys[i].key);
        (void)hk_buf_adds(out, "\n");
    }
    diff_sort_lines(out, from);
}

static void put_history(const struct hk_history *h, struct hk_buf *out)
{
    (void)hk_buf_addf(out, " attempts %u charged %u failures", h->attempts, h->charged);
    for (int i = 0; i < HK_NCLASSES; i++)
        (void)hk_buf_addf(out, " %u", h->failures[i]);
    (void)hk_buf_addf(out, " wait %" PRIu64 " first %" PRId64 " paused %" PRIu64, h->prev_wait_ms,
                      h->first_attempt_ms, h->paused_ms);
}

static void put_message(const struct hk_message *m, struct hk_buf *out)
{
    (void)hk_buf_addf(out, "claimed %c", m->source == HK_FROM_RETRY ? 'r' : 'o');
    struct hk_str texts[] = {m->message_id, m->event_type, m->destination, m->key, m->policy, m->payload};
    for (size_t i = 0; i < COUNT(texts); i++)
        text(out, texts[i]);
    (void)hk_buf_addf(out, " expires %" PRId64 " max %u crashes %u life %u letter %d failed %" PRId64,
                      m->expires_ms, m->max_attempts, m->crashes, m->life, m->letter_id != 0,
                      m->first_failed_ms);
    put_history(&m->history, out);
    (void)hk_buf_adds(out, "\n");
}

void diff_put_exchanged(const struct hk_exchange *x, enum hk_code rc, const struct hk_exchanged *done,
                        struct hk_buf *out)
{
    (void)hk_buf_addf(out, "exchange %s\n", diff_code(rc));
    if (rc != HK_OK)
        return;
    (void)hk_buf_addf(out, "now %" PRId64 "%s\n", done->now_ms, done->claim ? " manifest" : "");
    for (size_t i = 0; i < x->n_settles; i++)
        (void)hk_buf_addf(out, "settle %zu%s\n", i, done->stale[i] ? " stale" : "");
    size_t from = out->len;
    for (size_t i = 0; i < done->n_messages; i++)
        put_message(&done->messages[i], out);
    diff_sort_lines(out, from);
}

static int by_line(const void *a, const void *b)
{
    const struct hk_str *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int order = n ? memcmp(x->ptr, y->ptr, n) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

void diff_sort_lines(struct hk_buf *buf, size_t from)
{
    size_t n = 0, len = buf->len - from;
    if (!len)
        return;
    char *copy = malloc(len);
    assert_non_null(copy);
    memcpy(copy, buf->data + from, len);
    struct hk_str rest = {copy, len}, *lines = calloc(len, sizeof *lines);
    assert_non_null(lines);
    while (rest.len)
        lines[n++] = hk_str_cut(&rest, '\n');
    qsort(lines, n, sizeof *lines, by_line);
    char *to = (char *)buf->data + from;
    for (size_t i = 0; i < n; i++) {
        memcpy(to, lines[i].ptr, lines[i].len);
        to += lines[i].len;
        *to++ = '\n';
    }
    free(lines);
    free(copy);
}

static struct diff_name name_of(enum hk_source source, struct hk_str message, struct hk_str destination,
                                struct hk_str key)
{
    struct diff_name name = {.source = source};
    assert_true(hk_str_copy(name.key, sizeof name.key, key));
    assert_true(hk_str_copy(name.message, sizeof name.message, message));
    assert_true(hk_str_copy(name.destination, sizeof name.destination, destination));
    return name;
}

struct diff_name diff_name_of_head(const struct hk_head *head)
{
    return name_of(head->source, head->event_type, head->destination, head->key);
}

static bool same_name(const struct diff_name *a, const struct diff_name *b)
{
    return a->source == b->source && strcmp(a->message, b->message) == 0 &&
           strcmp(a->destination, b->destination) == 0;
}

static bool in_hand(const struct diff_view *view, const struct diff_name *name)
{
    for (size_t i = 0; view->lane && i < view->n_hand[view->relay]; i++)
        if (same_name(&view->hand[view->relay][i].name, name))
            return true;
    return false;
}

void diff_put_heads(const struct hk_heads *heads, struct diff_view *view, bool leads, struct hk_buf *out)
{
    for (size_t i = 0; i < heads->n; i++) {
        const struct hk_head *head = &heads->items[i];
        struct diff_name name = diff_name_of_head(head);
        if (in_hand(view, &name))
            continue;
        put_head(head, out);
        if (leads && view->n_seen < DIFF_SEEN)
            view->seen[view->n_seen++] = name;
    }
}

void diff_take(struct diff_view *view, unsigned relay, const struct hk_message *msg)
{
    if (view->n_hand[relay] == DIFF_HAND)
        return;
    view->hand[relay][view->n_hand[relay]++] =
        (struct diff_held){.name = name_of(msg->source, msg->event_type, msg->destination, msg->key),
                           .history = msg->history,
                           .first_failed_ms = msg->first_failed_ms,
                           .life = msg->life};
}

/* ---- ids ---- */

void diff_book_put(struct diff_book *book, unsigned relay, const struct hk_message *msg, int64_t claim)
{
    book->entries[book->n++ % COUNT(book->entries)] = (struct diff_entry){
        relay, name_of(msg->source, msg->event_type, msg->destination, msg->key), msg->id, claim};
}

size_t diff_book_settles(const struct diff_book *book, const struct diff_exchange *x, struct hk_settle *out)
{
    for (size_t i = 0; i < x->n_settles; i++) {
        out[i] = x->settles[i].settle;
        size_t oldest = book->n > COUNT(book->entries) ? book->n - COUNT(book->entries) : 0;
        for (size_t k = oldest; k < book->n; k++) { /* the last one counts */
            const struct diff_entry *e = &book->entries[k % COUNT(book->entries)];
            if (e->relay != x->relay || !same_name(&e->name, &x->settles[i].name))
                continue;
            out[i].id = e->id;
            out[i].claim = e->claim;
        }
    }
    return x->n_settles;
}
