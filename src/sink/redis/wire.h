/* SPDX-License-Identifier: Apache-2.0 */
/* RESP, as far as one who adds to streams needs it. */
#ifndef HK_SINK_REDIS_WIRE_H
#define HK_SINK_REDIS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#include "base/buf.h"
#include "sink/broker/bytes.h"

#define HK_RESP_MAX 65536u /* of a reply: those to us are short */

enum hk_resp_kind {
    HK_RESP_STATUS = 0, /* +OK */
    HK_RESP_ERROR,      /* -ERR … */
    HK_RESP_NUMBER,
    HK_RESP_TEXT,
    HK_RESP_NIL,
    HK_RESP_LIST /* read as a whole; its parts are of no interest */
};

struct hk_resp {
    enum hk_resp_kind kind;
    struct hk_str text; /* of a status, an error, a number, a text */
};

enum hk_resp_next {
    HK_RESP_WHOLE = HK_NEXT_WHOLE,
    HK_RESP_MORE = HK_NEXT_MORE,
    HK_RESP_WRONG = HK_NEXT_WRONG
};

enum hk_resp_next hk_resp_read(struct hk_str in, struct hk_resp *out, size_t *out_used, const char **out_why);

/* "MOVED 3999 127.0.0.1:6381", "ASK …": where to. False: it is none of these. */
bool hk_resp_moved(struct hk_str error, struct hk_str *out_server, bool *out_ask);
/* "1526919030474-0": its first part. False: it is no id of an entry. */
bool hk_resp_entry(struct hk_str text, int64_t *out_ms);

/* ---- what goes: errors are the buffer's ---- */

void hk_resp_begin(struct hk_buf *out, size_t n_words);
void hk_resp_word(struct hk_buf *out, struct hk_str word);
void hk_resp_text(struct hk_buf *out, const char *word);
void hk_resp_u64(struct hk_buf *out, uint64_t number);

#endif
