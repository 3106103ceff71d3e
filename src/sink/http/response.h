/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an answer that are kept while it comes in, line by line, within bounds that the other side cannot change. */
#ifndef HK_SINK_HTTP_RESPONSE_H
#define HK_SINK_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#include "base/buf.h"
#include "sink/http/http.h"

struct hk_response {
    int status; /* of the block that is being read */
    int final;  /* the status, once a whole block with one of 200 and more came; 0 = not yet */
    bool any;   /* a byte came */
    uint64_t head_bytes, body_bytes;
    uint64_t read_max; /* of the body; then its status decides [HK_HTTP_READ_MAX] */
    unsigned lines;
    struct hk_buf text; /* "name\0value\0" of the kept headers */

    struct {
        uint16_t name, value, name_len, value_len; /* in text */
    } kept[HK_HTTP_HEADERS_MAX];

    size_t n_kept;
    struct hk_buf body; /* its start … */
    size_t keep_max;    /* … of so many bytes [HK_HTTP_KEEP_MAX] */
    bool body_kept;     /* that is all that came of it */
};

void hk_response_init(struct hk_response *response);
void hk_response_keep(struct hk_response *response, size_t keep_max); /* before anything came */
void hk_response_fini(struct hk_response *response);
void hk_response_reset(struct hk_response *response);

/* What follows from a line or a piece of body. */
enum hk_response_next {
    HK_RESPONSE_MORE,
    HK_RESPONSE_ENOUGH,  /* the status is known and no more is wanted */
    HK_RESPONSE_TOO_BIG, /* header lines over their bound before a final status */
    HK_RESPONSE_BAD,     /* 101: a protocol that nobody asked for */
};

/* For who reads lines himself: each is counted, a block begins with its status, and has fields (their names are tokens)
 * and an end. */
enum hk_response_next hk_response_count(struct hk_response *response, size_t line_bytes);
void hk_response_begin(struct hk_response *response, int status);
void hk_response_field(struct hk_response *response, struct hk_str name, struct hk_str value);
enum hk_response_next hk_response_end(struct hk_response *response);
/* For who does not: `line` with its line end; the empty line ends a block. */
enum hk_response_next hk_response_line(struct hk_response *response, struct hk_str line);
/* All that is known of a final block is its status, as text. */
void hk_response_final(struct hk_response *response, struct hk_str status);
enum hk_response_next hk_response_body(struct hk_response *response, struct hk_str piece);

/* An answer may repeat what it was sent: every occurrence of a secret becomes as many stars, also where it is cut off at the end. */
void hk_response_hide(struct hk_response *response, struct hk_str secret);

/* Fills `out` (HK_HTTP_HEADERS_MAX of them), returns how many. */
size_t hk_response_headers(const struct hk_response *response, struct hk_header *out);
/* Adds a JSON object; a field that came several times has its values joined by ", ". */
void hk_response_show(const struct hk_response *response, struct hk_buf *out);

#endif
