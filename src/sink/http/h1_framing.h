/* SPDX-License-Identifier: Apache-2.0 */
/* What the header lines of an HTTP/1 answer say about where it ends, and whether its connection may be used again. Both
 * clients ask: our own to find the end, and libcurl's to tell which connection must not carry another request.
 *
 * Any doubt costs the connection, never more. Bytes that one side takes for the end of an answer and the other for the start
 * of the next would be read as the answer to a message that nobody has seen. */
#ifndef HK_SINK_HTTP_H1_FRAMING_H
#define HK_SINK_HTTP_H1_FRAMING_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/facts.h>

struct hk_h1_framing {
    /* of all blocks, informational ones included */
    bool odd; /* something that readers may take in different ways */

    /* of the block that is being read */
    bool v10, close, keep_alive; /* HTTP/1.0; what Connection says */
    bool chunked, other_coding;  /* what Transfer-Encoding says */
    bool has_length, doubtful;   /* doubtful: nobody can tell where the body ends */
    uint64_t length;
    uint32_t idle_s; /* how long the server keeps an idle connection, as it says; 0 = it does not say */
};

/* For the next answer. */
void hk_h1_framing_reset(struct hk_h1_framing *f);
/* A block begins. */
void hk_h1_framing_begin(struct hk_h1_framing *f, bool v10);
/* One field; most say nothing. False: this is no HTTP, as a length of "-5". */
bool hk_h1_framing_field(struct hk_h1_framing *f, struct hk_str name, struct hk_str value);
/* The block is whole. True: an answer with this status has no body, whatever its fields say. */
bool hk_h1_framing_end(struct hk_h1_framing *f, int status);
/* Whether another request may follow on the same connection, once the answer is read to its end. */
bool hk_h1_framing_keeps(const struct hk_h1_framing *f);

#endif
