/* SPDX-License-Identifier: Apache-2.0 */
/* The table of held keys: open addressing, linear probing, removal by shifting back. */
#include <string.h>

#include "base/mem.h"
#include "core/order.h"

struct hk_order {
    struct hk_order_key *slots;
    size_t room; /* a power of two */
    size_t count;
    uint64_t *ready; /* hashes of keys that became free with something passed over: first in, first out */
    size_t ready_head, ready_len, ready_room; /* a ring; room is a power of two or 0 */
    uint64_t seed;
};

enum {
    FIRST_ROOM = 64
};

enum hk_code hk_order_new(uint64_t seed, struct hk_order **out_order, struct hk_err *err)
{
    struct hk_order *order = hk_mem_zalloc(1, sizeof *order);
    struct hk_order_key *slots = hk_mem_zalloc(FIRST_ROOM, sizeof *slots);
    if (!order || !slots) {
        hk_mem_free(order);
        hk_mem_free(slots);
        return hk_err_set(err, HK_NOMEM, "out of memory for the table of keys");
    }
    order->slots = slots;
    order->room = FIRST_ROOM;
    order->seed = seed;
    *out_order = order;
    return HK_OK;
}

void hk_order_clear(struct hk_order *order)
{
    for (size_t i = 0; i < order->room; i++)
        hk_mem_free(order->slots[i].text);
    memset(order->slots, 0, order->room * sizeof *order->slots);
    order->count = 0;
    order->ready_len = 0;
}

void hk_order_free(struct hk_order *order)
{
    if (!order)
        return;
    hk_order_clear(order);
    hk_mem_free(order->ready);
    hk_mem_free(order->slots);
    hk_mem_free(order);
}

size_t hk_order_count(const struct hk_order *order)
{
    return order->count;
}

size_t hk_order_queue(const struct hk_order *order)
{
    return order->ready_len;
}

/* FNV-1a over seed, destination and key, finished by a mixer. The seed keeps applications' keys from being aimed at
 * one place of the table. */
uint64_t hk_order_hash(const struct hk_order *order, size_t dest, struct hk_str key)
{
    uint64_t h = 0xcbf29ce484222325u ^ order->seed;
    h = (h ^ dest) * 0x100000001b3u;
    for (size_t i = 0; i < key.len; i++)
        h = (h ^ (unsigned char)key.ptr[i]) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    return h | UINT64_C(1) << 63; /* never 0, which is a free place */
}

static size_t place_of(const struct hk_order *order, uint64_t hash)
{
    size_t i = hash & (order->room - 1);
    while (order->slots[i].hash && order->slots[i].hash != hash)
        i = (i + 1) & (order->room - 1);
    return i;
}

struct hk_order_key *hk_order_find(struct hk_order *order, uint64_t hash)
{
    struct hk_order_key *key = &order->slots[place_of(order, hash)];
    return key->hash ? key : NULL;
}

static bool grow(struct hk_order *order)
{
    struct hk_order bigger = *order;
    bigger.room = order->room * 2;
    bigger.slots = hk_mem_zalloc(bigger.room, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < order->room; i++)
        if (order->slots[i].hash)
            bigger.slots[place_of(&bigger, order->slots[i].hash)] = order->slots[i];
    hk_mem_free(order->slots);
    *order = bigger;
    return true;
}

struct hk_order_key *hk_order_get(struct hk_order *order, uint64_t hash, size_t dest)
{
    struct hk_order_key *key = hk_order_find(order, hash);
    if (key)
        return key;
    if (order->count * 4 >= order->room * 3 && !grow(order))
        return NULL;
    key = &order->slots[place_of(order, hash)];
    *key = (struct hk_order_key){.hash = hash, .passed_id = HK_NONE_PASSED, .dest = dest};
    order->count++;
    return key;
}

static bool is_held(const struct hk_order_key *key)
{
    return key->waiting || key->unrouted || key->in_flight || key->dead || key->doubtful;
}

/* Closes the gap at `i`: entries that probing had pushed past it move back. */
static void remove_at(struct hk_order *order, size_t i)
{
    size_t mask = order->room - 1;
    hk_mem_free(order->slots[i].text);
    for (size_t j = (i + 1) & mask; order->slots[j].hash; j = (j + 1) & mask) {
        size_t home = order->slots[j].hash & mask;
        if (((j - home) & mask) < ((j - i) & mask))
            continue;
        order->slots[i] = order->slots[j];
        i = j;
    }
    order->slots[i] = (struct hk_order_key){.hash = 0};
    order->count--;
}

static bool grow_ready(struct hk_order *order)
{
    size_t room = order->ready_room ? order->ready_room * 2 : FIRST_ROOM;
    uint64_t *ready = hk_mem_zalloc(room, sizeof *ready);
    if (!ready)
        return false;
    for (size_t i = 0; i < order->ready_len; i++)
        ready[i] = order->ready[(order->ready_head + i) & (order->ready_room - 1)];
    hk_mem_free(order->ready);
    order->ready = ready;
    order->ready_room = room;
    order->ready_head = 0;
    return true;
}

/* Out of memory here leaves the key to the next message of it that is seen, or to the sweep. */
static void queue_ready(struct hk_order *order, struct hk_order_key *key)
{
    if (key->queued || (order->ready_len == order->ready_room && !grow_ready(order)))
        return;
    order->ready[(order->ready_head + order->ready_len++) & (order->ready_room - 1)] = key->hash;
    key->queued = true;
}

void hk_order_tidy(struct hk_order *order, uint64_t hash)
{
    size_t i = place_of(order, hash);
    struct hk_order_key *key = &order->slots[i];
    if (!key->hash || is_held(key))
        return;
    if (key->passed_id != HK_NONE_PASSED)
        queue_ready(order, key);
    else if (!key->queued)
        remove_at(order, i);
}

void hk_order_clear_held(struct hk_order *order)
{
    for (size_t i = 0; i < order->room; i++) {
        struct hk_order_key *key = &order->slots[i];
        key->waiting = key->unrouted = key->dead = 0;
        key->doubtful = false;
    }
}

void hk_order_settle(struct hk_order *order)
{
    /* backwards: removing moves later entries to the place at hand, where they were looked at already; those that wrap
     * round the end are left for the next time */
    for (size_t i = order->room; i-- > 0;)
        if (order->slots[i].hash)
            hk_order_tidy(order, order->slots[i].hash);
}

int64_t hk_order_forget(struct hk_order *order, size_t dest)
{
    int64_t lowest = HK_NONE_PASSED;
    for (size_t i = 0; i < order->room;) {
        const struct hk_order_key *key = &order->slots[i];
        if (!key->hash || key->dest != dest) {
            i++;
            continue;
        }
        lowest = key->passed_id < lowest ? key->passed_id : lowest;
        remove_at(
            order,
            i); /* removal may have moved another key here; look again (keys moved from the end were seen) */
    }
    return lowest;
}

bool hk_order_free_for_first(const struct hk_order_key *key)
{
    return !key || !is_held(key);
}

bool hk_order_pass(struct hk_order_key *key, int64_t id, struct hk_str text)
{
    if (!key->text) {
        key->text = hk_mem_strndup(text.ptr, text.len);
        if (!key->text)
            return false;
    }
    if (id < key->passed_id)
        key->passed_id = id;
    return true;
}

struct hk_order_key *hk_order_ready(struct hk_order *order)
{
    while (order->ready_len) {
        uint64_t hash = order->ready[order->ready_head];
        struct hk_order_key *key = hk_order_find(order, hash);
        if (key && key->queued && key->passed_id != HK_NONE_PASSED && !is_held(key))
            return key;
        order->ready_head = (order->ready_head + 1) & (order->ready_room - 1);
        order->ready_len--;
        if (key && key->queued) { /* else: parked */
            key->queued = false;
            hk_order_tidy(order, hash);
        }
    }
    return NULL;
}

void hk_order_rotate(struct hk_order *order)
{
    if (order->ready_len < 2)
        return;
    uint64_t hash = order->ready[order->ready_head];
    order->ready_head = (order->ready_head + 1) & (order->ready_room - 1);
    order->ready[(order->ready_head + order->ready_len - 1) & (order->ready_room - 1)] = hash;
}

void hk_order_park(struct hk_order_key *key)
{
    key->queued = false; /* its place in the queue is skipped when it comes up */
}
