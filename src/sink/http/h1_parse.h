/* SPDX-License-Identifier: Apache-2.0 */
/* One answer of HTTP/1.x as its bytes come in: where its lines and its body end. What is kept of them, and how much of
 * them is read, is response.h's business.
 *
 * Strict where leniency would make two answers of one or one of two: any doubt about where an answer ends costs the
 * connection, never more. Lenient (a line may end with LF alone, a field that is no field is passed over) where nothing
 * hangs on it: what the destination decided stands in its status, and must not be lost to a blemish. */
#ifndef HK_SINK_HTTP_H1_PARSE_H
#define HK_SINK_HTTP_H1_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "sink/http/h1_framing.h"
#include "sink/http/response.h"

enum hk_h1_state {
    HK_H1_STATUS = 0, /* the first line of a block is expected */
    HK_H1_FIELDS,
    HK_H1_LENGTH,     /* body: `left` bytes */
    HK_H1_CHUNK_SIZE, /* body: a chunk's first line */
    HK_H1_CHUNK,      /* body: `left` bytes of a chunk */
    HK_H1_CHUNK_END,  /* body: the line end behind a chunk */
    HK_H1_TRAILERS,
    HK_H1_UNTIL_CLOSED /* body: all that comes */
};

struct hk_h1_answer {
    enum hk_h1_state state;
    struct hk_buf part; /* a line's beginning, when it came in pieces */
    uint64_t left;

    struct hk_h1_framing framing;
};

enum hk_h1_next {
    HK_H1_MORE = 0, /* more bytes are needed */
    HK_H1_DONE,     /* the answer is whole */
    HK_H1_STOP      /* no more is wanted, for the reason that `stop` gives */
};

/* Why it stopped. */
enum hk_h1_stop {
    HK_H1_ENOUGH = 0, /* the status is known, the rest is broken, too long or of no interest */
    HK_H1_TOO_BIG,    /* header lines over their bound before a final status */
    HK_H1_SWITCH,     /* 101: a protocol that nobody asked for */
    HK_H1_NOT_HTTP,
    HK_H1_NO_MEMORY
};

void hk_h1_answer_init(struct hk_h1_answer *a);
void hk_h1_answer_fini(struct hk_h1_answer *a);
/* For the next answer. */
void hk_h1_answer_reset(struct hk_h1_answer *a);

/* Takes in `bytes`. HK_H1_DONE: `*out_used` of them were the answer's. */
enum hk_h1_next hk_h1_feed(struct hk_h1_answer *a, struct hk_response *response, struct hk_str bytes,
                           size_t *out_used, enum hk_h1_stop *out_stop) HK_MUSTCHECK;
/* The other side closed. Some line of a block was there, but not its end. */
bool hk_h1_cut_off(const struct hk_h1_answer *a);

#endif
