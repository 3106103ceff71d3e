/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/str.h"
#include "sink/broker/batch.h"

bool hk_batch_goes_along(const struct hk_batch *batch, const struct hk_flight *f, size_t bytes, size_t most,
                         size_t most_bytes)
{
    if (!batch->n)
        return true;
    uint64_t a = batch->flights[0]->number, b = f->deadline_ms, tenth = (b - f->start_ms) / 10;
    return batch->n < most && batch->bytes + bytes <= most_bytes &&
           (a > b ? a - b : b - a) <= (tenth < HK_BATCH_TOGETHER_MS ? tenth : HK_BATCH_TOGETHER_MS);
}

void hk_batch_take(struct hk_batch *batch, struct hk_flight *f, size_t bytes)
{
    f->number = f->deadline_ms;
    batch->flights[batch->n++] = f;
    batch->bytes += bytes;
    hk_flight_written(f);
}

uint64_t hk_batch_timeout_ms(const struct hk_batch *batch, uint64_t now_ms)
{
    uint64_t until_ms = UINT64_MAX;
    for (size_t i = 0; i < batch->n; i++)
        until_ms = batch->flights[i]->number < until_ms ? batch->flights[i]->number : until_ms;
    return until_ms > now_ms ? until_ms - now_ms : 1;
}

void hk_batch_fail(const struct hk_batch *batch, enum hk_fault fault, bool possibly_delivered,
                   const char *code, const char *words, const char *error)
{
    for (size_t i = 0; i < batch->n; i++)
        hk_flight_fail(batch->flights[i], fault, possibly_delivered, code, words, error);
}

void hk_batch_unanswered(const struct hk_batch *batch, const struct hk_facts *facts)
{
    char text[HK_LINK_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%.*s", (int)facts->error.len, facts->error.ptr);
    hk_batch_fail(batch, facts->fault, facts->possibly_delivered, NULL, NULL, text);
}

void hk_batch_note_address(const struct hk_batch *batch, struct hk_str address)
{
    for (size_t i = 0; i < batch->n; i++)
        (void)hk_str_copy(batch->flights[i]->address, sizeof batch->flights[i]->address, address);
}

void hk_flight_refuse(struct hk_flight *f, enum hk_code rc, const char *why)
{
    enum hk_fault fault = rc == HK_INVALID  ? HK_FAULT_INVALID_PAYLOAD
                          : rc == HK_TOOBIG ? HK_FAULT_TOO_LARGE
                                            : HK_FAULT_LOCAL;
    hk_flight_fail(f, fault, false, NULL, NULL, why);
}
