/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of what was written, by number. Its front moves on over what is settled. */
#include <string.h>

#include "base/mem.h"
#include "sink/broker/broker.h"

enum {
    LEAST = 64,
    MOST = 65536 /* a broker that leaves so many behind without a word is no use */
};

void hk_flights_fini(struct hk_flights *f)
{
    hk_mem_free(f->at);
    *f = (struct hk_flights){.at = NULL};
}

void hk_flights_reset(struct hk_flights *f, uint64_t first)
{
    f->first = f->next = first;
}

static bool grow(struct hk_flights *f)
{
    size_t room = f->room ? 2 * f->room : LEAST;
    struct hk_flight **at = room <= MOST ? hk_mem_alloc(room * sizeof(struct hk_flight *)) : NULL;
    if (!at)
        return false;
    for (uint64_t i = f->first; i < f->next; i++)
        at[i & (room - 1)] = f->at[i & (f->room - 1)];
    hk_mem_free(f->at);
    f->at = at;
    f->room = room;
    return true;
}

bool hk_flights_skip(struct hk_flights *f)
{
    if (f->next - f->first == f->room && !grow(f))
        return false;
    f->at[f->next++ & (f->room - 1)] = NULL;
    hk_flights_drop(f, f->next - 1);
    return true;
}

bool hk_flights_add(struct hk_flights *f, struct hk_flight *flight)
{
    if (f->next - f->first == f->room && !grow(f))
        return false;
    flight->number = f->next;
    f->at[f->next++ & (f->room - 1)] = flight;
    return true;
}

struct hk_flight *hk_flights_get(const struct hk_flights *f, uint64_t number)
{
    return number >= f->first && number < f->next ? f->at[number & (f->room - 1)] : NULL;
}

void hk_flights_drop(struct hk_flights *f, uint64_t number)
{
    if (number < f->first || number >= f->next)
        return;
    f->at[number & (f->room - 1)] = NULL;
    while (f->first < f->next && !f->at[f->first & (f->room - 1)])
        f->first++;
}
