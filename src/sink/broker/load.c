/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/str.h"
#include "sink/broker/load.h"

enum {
    TOGETHER_MS = 1000,
    TOGETHER_PART = 8
};

void hk_load_init(struct hk_load *load, struct hk_flight **flights, size_t room, size_t most_bytes)
{
    *load = (struct hk_load){.flights = flights, .room = room, .most_bytes = most_bytes};
}

/* A flight's number is its deadline, from before it was written. */
static bool has_near_deadline(const struct hk_flight *first, const struct hk_flight *f)
{
    uint64_t a = first->number, b = f->deadline_ms, most = (a - first->start_ms) / TOGETHER_PART;
    return (a > b ? a - b : b - a) <= (most < TOGETHER_MS ? most : TOGETHER_MS);
}

bool hk_load_takes(const struct hk_load *load, const struct hk_flight *f, size_t bytes)
{
    if (!load->n)
        return true;
    const struct hk_flight *first = load->flights[0];
    size_t most = f->company && f->company < load->room ? f->company : load->room;
    return f->company == first->company && load->n < most && load->bytes + bytes <= load->most_bytes &&
           has_near_deadline(first, f);
}

void hk_load_add(struct hk_load *load, struct hk_flight *f, size_t bytes)
{
    f->number = f->deadline_ms;
    load->flights[load->n++] = f;
    load->bytes += bytes;
    hk_flight_written(f);
}

uint64_t hk_load_timeout_ms(const struct hk_load *load, uint64_t now_ms)
{
    uint64_t until_ms = UINT64_MAX;
    for (size_t i = 0; i < load->n; i++)
        until_ms = load->flights[i]->number < until_ms ? load->flights[i]->number : until_ms;
    return until_ms > now_ms ? until_ms - now_ms : 1;
}

void hk_load_fail(struct hk_load *load, enum hk_fault fault, bool possibly_delivered, const char *code,
                  const char *words, const char *error)
{
    for (size_t i = 0; i < load->n; i++)
        hk_flight_fail(load->flights[i], fault, possibly_delivered, code, words, error);
}

void hk_load_unanswered(struct hk_load *load, const struct hk_facts *facts)
{
    char text[HK_LINK_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%.*s", (int)facts->error.len, facts->error.ptr);
    hk_load_fail(load, facts->fault, facts->possibly_delivered, NULL, NULL, text);
}

void hk_load_note_address(struct hk_load *load, struct hk_str address)
{
    for (size_t i = 0; i < load->n; i++)
        (void)hk_str_copy(load->flights[i]->address, sizeof load->flights[i]->address, address);
}

void hk_load_split(struct hk_load *load, size_t company)
{
    for (size_t i = 0; i < load->n; i++) {
        struct hk_flight *f = load->flights[i];
        f->deadline_ms = f->number;
        f->company = company;
        hk_flight_requeue(f);
        hk_broker_look_at(f->sink, f->deadline_ms);
    }
}
