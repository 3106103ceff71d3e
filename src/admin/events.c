/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of frames. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/events.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

enum {
    ID_MAX = 48,
    FRAME_MAX = 128 << 10
};

struct kept {
    uint64_t number; /* 0 = none */
    enum hk_event_type type;
    char *destination; /* in the same block as the frame */
    size_t destination_len;
    char *frame;
    size_t len;
};

struct hk_event_ring {
    uint64_t epoch;
    uint64_t next;   /* number; the first is 1 */
    uint64_t oldest; /* that is kept; `next`: none is */
    size_t bytes;
    struct kept kept[HK_EVENTS_RING]; /* by number, modulo */
    struct hk_event_frame event;
};

void hk_event_write(struct hk_buf *out, const char *id, enum hk_event_type type, struct hk_str json)
{
    if (id)
        (void)hk_buf_addf(out, "id: %s\n", id);
    (void)hk_buf_addf(out, "event: %s\ndata: ", hk_event_word(type));
    for (size_t i = 0; i < json.len; i++) {
        if (json.ptr[i] == '\n' || json.ptr[i] == '\r') /* either ends a line */
            (void)hk_buf_adds(out, "\ndata: ");
        else
            (void)hk_buf_addc(out, json.ptr[i]);
    }
    (void)hk_buf_adds(out, "\n\n");
}

struct hk_event_ring *hk_event_ring_new(uint64_t epoch)
{
    struct hk_event_ring *r = hk_mem_zalloc(1, sizeof *r);
    if (r) {
        r->epoch = epoch;
        r->next = r->oldest = 1;
    }
    return r;
}

static void drop_oldest(struct hk_event_ring *r)
{
    struct kept *k = &r->kept[r->oldest++ % HK_EVENTS_RING];
    r->bytes -= k->len + k->destination_len;
    hk_mem_free(k->frame);
    *k = (struct kept){.number = 0};
}

void hk_event_ring_free(struct hk_event_ring *r)
{
    if (!r)
        return;
    while (r->oldest < r->next)
        drop_oldest(r);
    hk_mem_free(r);
}

const struct hk_event_frame *hk_event_ring_add(struct hk_event_ring *r, enum hk_event_type type,
                                               struct hk_str destination, struct hk_str json)
{
    char id[ID_MAX];
    struct hk_buf frame;
    uint64_t number = r->next;
    (void)snprintf(id, sizeof id, "%016" PRIx64 "-%" PRIu64, r->epoch, number);
    hk_buf_init(&frame, FRAME_MAX);
    hk_event_write(&frame, id, type, json);
    size_t len = frame.len;
    (void)hk_buf_add(&frame, destination.ptr, destination.len);
    char *copy = hk_buf_status(&frame) == HK_OK ? hk_mem_alloc(frame.len + 1) : NULL;
    if (copy)
        memcpy(copy, hk_buf_cstr(&frame), frame.len + 1);
    hk_buf_fini(&frame);
    r->next++;
    if (!copy) { /* nobody can go on across it */
        while (r->oldest < number)
            drop_oldest(r);
        r->oldest = r->next;
        return NULL;
    }
    while (r->oldest < number &&
           (number - r->oldest >= HK_EVENTS_RING || r->bytes + len + destination.len > HK_EVENTS_RING_BYTES))
        drop_oldest(r);
    r->bytes += len + destination.len;
    r->kept[number % HK_EVENTS_RING] = (struct kept){.number = number,
                                                     .type = type,
                                                     .destination = copy + len,
                                                     .destination_len = destination.len,
                                                     .frame = copy,
                                                     .len = len};
    r->event = (struct hk_event_frame){type, {copy + len, destination.len}, {copy, len}};
    return &r->event;
}

/* The number of an id of this ring. */
static bool read_id(const struct hk_event_ring *r, const char *text, uint64_t *out)
{
    char epoch[24];
    struct hk_str number = hk_str_of(text);
    struct hk_str first = hk_str_cut(&number, '-');
    (void)snprintf(epoch, sizeof epoch, "%016" PRIx64, r->epoch);
    return number.ptr && hk_str_eq(first, hk_str_of(epoch)) && hk_parse_u64(number, out, NULL) == HK_OK;
}

bool hk_event_ring_replay(const struct hk_event_ring *r, const char *last_id, hk_event_replay_fn *each,
                          void *arg)
{
    uint64_t last = 0;
    if (!read_id(r, last_id, &last) || last >= r->next || last + 1 < r->oldest)
        return false;
    for (uint64_t n = last + 1; n < r->next; n++) {
        const struct kept *k = &r->kept[n % HK_EVENTS_RING];
        const struct hk_event_frame event = {
            k->type, {k->destination, k->destination_len}, {k->frame, k->len}};
        each(arg, &event);
    }
    return true;
}

bool hk_event_fits(const struct hk_event_frame *event, unsigned types, const char *destination)
{
    return (types >> event->type & 1u) != 0 && (!destination || event->destination.len == 0 ||
                                                hk_str_eq(event->destination, hk_str_of(destination)));
}
