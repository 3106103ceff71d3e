/* SPDX-License-Identifier: Apache-2.0 */
/* Counts become rows. */
#include "base/mem.h"
#include "base/str.h"
#include "daemon/tally.h"

void hk_tally_add(struct hk_tally *into, const struct hk_tally *from)
{
    into->seen += from->seen;
    into->sent += from->sent;
    into->failed += from->failed;
    into->retried += from->retried;
    into->dead += from->dead;
    hk_histogram_merge(&into->latency, &from->latency);
}

bool hk_tally_is_empty(const struct hk_tally *t)
{
    return t->seen == 0 && t->sent == 0 && t->failed == 0 && t->retried == 0 && t->dead == 0;
}

struct hk_tally_batch *hk_tally_batch_new(int64_t minute_ms, size_t room)
{
    struct hk_tally_batch *b = hk_mem_zalloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->minute_ms = minute_ms;
    b->room = room;
    b->rows = hk_pool_alloc(&b->mem, room + 1, sizeof *b->rows);
    if (b->rows)
        return b;
    hk_tally_batch_free(b);
    return NULL;
}

void hk_tally_batch_free(struct hk_tally_batch *b)
{
    if (!b)
        return;
    hk_pool_fini(&b->mem);
    hk_mem_free(b);
}

static bool write_latency(struct hk_pool *mem, const struct hk_histogram *h, struct hk_str *out)
{
    struct hk_buf text;
    hk_buf_init(&text, HK_SERIES_LATENCY_MAX);
    hk_histogram_write(h, &text);
    const char *copy = hk_pool_copy_str(mem, hk_buf_str(&text));
    *out = hk_str_of(copy);
    hk_buf_fini(&text);
    return copy != NULL;
}

static bool add_row(struct hk_tally_batch *b, int64_t step_ms, int64_t lane, struct hk_str name,
                    const struct hk_tally *t)
{
    struct hk_series_row *row = &b->rows[b->n];
    *row = (struct hk_series_row){.step_ms = step_ms,
                                  .at_ms = b->minute_ms - b->minute_ms % step_ms,
                                  .lane = lane,
                                  .destination = name,
                                  .seen = t->seen,
                                  .sent = t->sent,
                                  .failed = t->failed,
                                  .retried = t->retried,
                                  .dead = t->dead};
    if (!write_latency(&b->mem, &t->latency, &row->latency))
        return false;
    b->n++;
    return true;
}

bool hk_tally_batch_take(struct hk_tally_batch *b, int64_t lane, struct hk_str destination,
                         struct hk_tallies *of)
{
    struct hk_tally hour = of->hour;
    const char *name = hk_pool_copy_str(&b->mem, destination);
    size_t before = b->n;
    hk_tally_add(&hour, &of->minute);
    if (!name || b->n + 2 > b->room || !add_row(b, HK_SERIES_MINUTE_MS, lane, hk_str_of(name), &of->minute) ||
        !add_row(b, HK_SERIES_HOUR_MS, lane, hk_str_of(name), &hour)) {
        b->n = before;
        return false;
    }
    of->hour = hour;
    of->minute = (struct hk_tally){.seen = 0};
    return true;
}

bool hk_tally_batch_queue(struct hk_tally_batch **list, struct hk_tally_batch *batch)
{
    size_t n = 1;
    struct hk_tally_batch **end = list;
    for (; *end; end = &(*end)->next)
        n++;
    *end = batch;
    if (n <= HK_TALLY_BATCHES)
        return false;
    struct hk_tally_batch *first = *list;
    *list = first->next;
    hk_tally_batch_free(first);
    return true;
}
