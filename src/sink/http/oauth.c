/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for their token (access.h), in the list `unauthorized`; their own deadlines run.
 *
 * - 401: the token is given up, if it still is the one that was refused, and the same delivery goes out again with a new one, once. The
 *   receiver has not acted, so the bound on repeats holds, and it is one attempt.
 * - When there is no token, all who wait end with the reason. */
#include "sink/http/oauth.h"

static void authorize(struct hk_http_transfer *t, const char *token)
{
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_request_authorize(&t->request, &t->unsigned_at, token, &err);
    if (rc == HK_OK)
        t->self->wire->begin(t);
    else
        hk_http_fail(t, rc == HK_NOMEM ? HK_FAULT_LOCAL : HK_FAULT_INVALID_PAYLOAD, err.message);
}

void hk_oauth_next(struct hk_http_sink *owner)
{
    struct hk_http_list *waiting = &owner->unauthorized;
    const char *text = NULL;
    if (!owner->token || !waiting->first)
        return;
    hk_access_want(owner->token);
    while (waiting->first && (text = hk_access_text(owner->token, &waiting->first->token_serial)) != NULL)
        authorize(waiting->first, text);
    enum hk_fault fault = hk_access_failure(owner->token, &text);
    while (waiting->first && !hk_access_is_asking(owner->token))
        hk_http_fail(waiting->first, fault, text);
}

void hk_oauth_begin(struct hk_http_transfer *t)
{
    t->renewed = false;
    t->unsigned_at = hk_request_mark(&t->request);
    hk_http_move(t, &t->self->unauthorized);
    hk_oauth_next(t->self);
}

bool hk_oauth_again(struct hk_http_transfer *t)
{
    if (!t->self->token || t->status != 401 || t->renewed)
        return false;
    t->renewed = true;
    hk_access_refused(t->self->token, t->token_serial);
    hk_http_rewind(t);
    hk_http_move(t, &t->self->unauthorized);
    return true;
}

static void on_news(void *arg)
{
    struct hk_http_sink *owner = arg;
    hk_timer_start(owner->soon, 0); /* out of the endpoint's own callback */
}

enum hk_code hk_oauth_new(struct hk_http_sink *owner, const struct hk_http_options *options,
                          struct hk_err *err)
{
    return hk_access_new(owner->loop, options, on_news, owner, &owner->token, err);
}
