/* SPDX-License-Identifier: Apache-2.0 */
/* Spans, and how they are written for an OpenTelemetry collector (OTLP 1.x, ExportTraceServiceRequest): protobuf or JSON. Pure. */
#ifndef HK_OBSERVE_OTLP_H
#define HK_OBSERVE_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "observe/trace.h"

enum hk_span_kind { /* the numbers are OTLP's */
    HK_SPAN_CLIENT = 3,
    HK_SPAN_PRODUCER = 4
};

/* Keys are constants. Texts need not be UTF-8: what is not becomes U+FFFD. */
struct hk_attr {
    const char *key;
    bool is_text;
    struct hk_str text;
    int64_t number;
};

#define HK_SPAN_ATTRS  16
#define HK_SPAN_EVENTS 2
#define HK_EVENT_ATTRS 4

struct hk_span_event {
    const char *name;
    int64_t time_ns;
    struct hk_attr attrs[HK_EVENT_ATTRS];
    size_t n_attrs;
};

struct hk_span {
    struct hk_trace trace; /* its own ids */
    bool has_parent, has_link;
    uint8_t parent_id[8];
    struct hk_trace link; /* the attempt before this one */
    enum hk_span_kind kind;
    int64_t start_ns, end_ns; /* Unix time */
    struct hk_str name;
    struct hk_attr attrs[HK_SPAN_ATTRS];
    size_t n_attrs;
    struct hk_span_event events[HK_SPAN_EVENTS];
    size_t n_events;
    bool failed;
    struct hk_str failure; /* for people; only of a span that failed */
    size_t room, used;     /* of `text`, where hk_span_keep puts texts */
    char text[];
};

/* A span with `room` bytes for texts; zeroed. NULL: no memory. Freed with hk_mem_free. */
struct hk_span *hk_span_new(size_t room);
/* A copy in the span's own room, cut to `most` bytes and to what is left. */
struct hk_str hk_span_keep(struct hk_span *span, struct hk_str text, size_t most);
/* Both do nothing when there is no place left; an empty text is no attribute. */
void hk_span_text(struct hk_span *span, const char *key, struct hk_str kept);
void hk_span_number(struct hk_span *span, const char *key, int64_t value);
struct hk_span_event *hk_span_event(struct hk_span *span, const char *name,
                                    int64_t time_ns); /* NULL: no place */
void hk_event_text(struct hk_span_event *event, const char *key, struct hk_str kept);
void hk_event_number(struct hk_span_event *event, const char *key, int64_t value);

/* Who sends: owned texts. */
struct hk_resource {
    struct {
        char *key, *value;
    } * attrs;

    size_t n;
    const char *version; /* of the scope "hikyaku" */
};

/* Errors are the buffer's. */
void hk_otlp_protobuf(const struct hk_resource *resource, struct hk_span *const *spans, size_t n,
                      struct hk_buf *out);
void hk_otlp_json(const struct hk_resource *resource, struct hk_span *const *spans, size_t n,
                  struct hk_buf *out);

#endif
