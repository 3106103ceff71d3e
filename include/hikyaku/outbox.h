/* SPDX-License-Identifier: Apache-2.0 */
/* A message for the outbox, whatever the database. Only the first three members are needed. */
#ifndef HIKYAKU_OUTBOX_H
#define HIKYAKU_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL and 0: not given, the table's default. Times are RFC 3339 UTC texts, e.g. "2026-11-15T08:30:00.000Z". */
struct hk_outbox_message {
    const char *destination; /* NULL: by route */
    const char *event_type;
    const void *payload; /* sent byte for byte */
    size_t payload_len;
    const char *message_id;  /* NULL: generated; what the receiver sees, the same over all attempts */
    const char *message_key; /* order within a destination */
    const char *headers;     /* JSON object */
    const char *content_type;
    const char *correlation_id;
    const char *traceparent;
    const char *idempotency_key;
    const char *not_before;
    const char *expires_at;
    const char *policy;
    uint32_t max_attempts;
};

#ifdef __cplusplus
}
#endif
#endif
