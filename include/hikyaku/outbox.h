/* SPDX-License-Identifier: Apache-2.0 */
/* A message for the outbox, for any database. Only event_type is required; docs/outbox.md explains every column. */
#ifndef HIKYAKU_OUTBOX_H
#define HIKYAKU_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A member that is NULL or 0 gets the table's default. Times are texts in RFC 3339, such as "2026-11-15T08:30:00.000Z". */
struct hk_outbox_message {
    const char *destination; /* NULL: the relay's routes choose */
    const char *event_type;
    const void *payload; /* the receiver gets these bytes unchanged */
    size_t payload_len;
    const char *message_id;  /* NULL: generated. The receiver sees it, the same in every attempt */
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
