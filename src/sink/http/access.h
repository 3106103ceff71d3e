/* SPDX-License-Identifier: Apache-2.0 */
/* One access token at a time, for all who need it: asked for by the client credentials of OAuth 2.0 (RFC 6749, 4.4) or of the metadata
 * server of Google's cloud, or made here. The HTTP sink puts it into its requests (oauth.h); Kafka's client logs in with it. */
#ifndef HK_SINK_HTTP_ACCESS_H
#define HK_SINK_HTTP_ACCESS_H

#include "loop/loop.h"
#include "sink/http/http.h"

struct hk_access;

/* There is a token, or the reason why there is none. From the loop, inside the endpoint's callback: hk_access_free may not follow there. */
typedef void hk_access_news_fn(void *arg);

/* Of `options` it takes oauth, name, files, allow and proxy; all is copied. HK_INVALID, HK_NOMEM. */
enum hk_code hk_access_new(struct hk_loop *loop, const struct hk_http_options *options,
                           hk_access_news_fn *news, void *arg, struct hk_access **out_token,
                           struct hk_err *err) HK_MUSTCHECK;
void hk_access_free(struct hk_access *token); /* accepts NULL; `news` never runs again */

/* Asks for one if there is none, or the one that is there is near its end; a question that is under way is enough. */
void hk_access_want(struct hk_access *token);
/* Asks for another one, though the one that is there may be good for long. */
void hk_access_renew(struct hk_access *token);
bool hk_access_is_asking(const struct hk_access *token);
/* NULL: there is none now. Valid until the next call. */
const char *hk_access_text(struct hk_access *token, uint64_t *out_serial);
uint64_t hk_access_left_ms(const struct hk_access *token); /* 0: there is none */
/* The receiver did not take the one with that serial. */
void hk_access_refused(struct hk_access *token, uint64_t serial);
/* Why the last question brought none; NONE: it brought one. */
enum hk_fault hk_access_failure(const struct hk_access *token, const char **out_text);

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
