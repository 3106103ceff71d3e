/* SPDX-License-Identifier: Apache-2.0 */
/* Access tokens in the requests of one HTTP sink. */
#ifndef HK_SINK_HTTP_OAUTH_H
#define HK_SINK_HTTP_OAUTH_H

#include "sink/http/access.h"
#include "sink/http/impl.h"

/* Of the sink whose requests get the token; its options are copied. HK_INVALID, HK_NOMEM. */
enum hk_code hk_oauth_new(struct hk_http_sink *owner, const struct hk_http_options *options,
                          struct hk_err *err) HK_MUSTCHECK;

/* Its request is built, but for the token: now, or when there is one, it goes to the wire. */
void hk_oauth_begin(struct hk_http_transfer *t);
/* Those who wait for a token may have their turn. */
void hk_oauth_next(struct hk_http_sink *owner);
/* It has ended, and left its wire. True: the receiver did not take the token, so it waits for a new one, once. */
bool hk_oauth_again(struct hk_http_transfer *t);

#endif
