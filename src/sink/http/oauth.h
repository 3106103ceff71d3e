/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens by the client credentials of OAuth 2.0 (RFC 6749, 4.4), for one sink. */
#ifndef HK_SINK_HTTP_OAUTH_H
#define HK_SINK_HTTP_OAUTH_H

#include "sink/http/impl.h"

/* Of the sink whose requests get the token; its options are copied. HK_INVALID, HK_NOMEM. */
enum hk_code hk_oauth_new(struct hk_http_sink *owner, const struct hk_http_options *options,
                          struct hk_oauth **out_oauth, struct hk_err *err) HK_MUSTCHECK;
void hk_oauth_free(struct hk_oauth *oauth); /* accepts NULL */

/* Its request is built, but for the token: now, or when there is one, it goes to the wire. */
void hk_oauth_begin(struct hk_http_transfer *t);
/* Those who wait for a token may have their turn. */
void hk_oauth_next(struct hk_http_sink *owner);
/* It has ended, and left its wire. True: the receiver did not take the token, so it waits for a new one, once. */
bool hk_oauth_again(struct hk_http_transfer *t);

/* ---- oauth_json.c ---- */

struct hk_oauth_answer {
    char *token;         /* NULL: there is none; wiped and freed by hk_oauth_answer_fini */
    uint64_t lifetime_s; /* 0: it does not say */
    char error[160];     /* its own words; "": none */
};

/* Reads what the endpoint said. HK_INVALID: it is no JSON object, or its token cannot be used. HK_NOMEM. */
enum hk_code hk_oauth_answer_read(struct hk_str body, struct hk_oauth_answer *out,
                                  struct hk_err *err) HK_MUSTCHECK;
void hk_oauth_answer_fini(struct hk_oauth_answer *answer);

#endif
