/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotency-Key: a call that changes something is done once, however often it is sent within a day. The store remembers the answer
 * (store/api.h), so that any relay of the store gives it again.
 *
 * Only what was done is remembered. A call that was refused has changed nothing and may be corrected under the same key. */
#include <string.h>

#include "admin/api_impl.h"
#include "base/str.h"
#include "store/letters.h"

enum {
    KEY_MAX = 255,
    STATUS_DONE = 200
};

static void refuse(struct hk_api *api, unsigned status, const char *code, const char *detail)
{
    hk_api_refuse(api->out, &(struct hk_problem){.status = status, .code = code, .detail = detail});
}

/* Method, path, query, If-Match and body, so that the same key for anything else is noticed. */
static enum hk_code hash_request(const struct hk_api_request *r, char out[HK_AUDIT_HASH_MAX])
{
    struct hk_buf text;
    hk_buf_init(&text, HK_API_LOAD_MAX + ((size_t)1 << 20));
    (void)hk_buf_addf(&text, "%s\n%s\n%s\n%s\n", r->method, r->path, r->query ? r->query : "",
                      r->if_match ? r->if_match : "");
    (void)hk_buf_add(&text, r->body.ptr, r->body.len);
    enum hk_code rc = hk_buf_status(&text);
    if (rc == HK_OK)
        hk_digest_hex(hk_buf_str(&text), out);
    hk_buf_fini(&text);
    return rc;
}

static void answer_again(struct hk_api *api, const struct hk_api_begun *begun)
{
    struct hk_str kind = begun->content_type;
    if (!begun->has_body) {
        refuse(api, 409, "DONE_BEFORE", "this call was done before, and its answer was not kept");
        return;
    }
    api->out->status = begun->status;
    api->out->content_type = hk_str_eq(kind, hk_str_of("application/problem+json"))
                                 ? "application/problem+json"
                                 : "application/json";
    api->out->replayed = true;
    (void)hk_buf_add(&api->out->body, begun->body.ptr, begun->body.len);
}

static void end_call(struct hk_api *api, const struct hk_api_call *call, int64_t run)
{
    struct hk_err err = {.message = ""};
    const struct hk_desk *desk = api->desk;
    const struct hk_api_response response = {.status = api->out->status,
                                             .content_type = api->out->content_type,
                                             .body = hk_buf_str(&api->out->body),
                                             .secret = api->op->secret};
    /* Neither can be told to the caller: the call itself is done. It is free again when its lease is over. */
    if (api->out->status == STATUS_DONE || api->out->status == HK_API_ACCEPTED || api->partly)
        (void)!desk->api->finish_call(desk->admin, call, run, &response, &err);
    else
        (void)!desk->api->forget_call(desk->admin, call, run, &err);
}

static void answer_begun(struct hk_api *api, const struct hk_api_call *call, const struct hk_api_begun *begun,
                         void (*answer)(struct hk_api *api))
{
    int64_t run = begun->run;
    switch (begun->verdict) {
    case HK_API_YOURS:
        answer(api);
        end_call(api, call, run);
        break;
    case HK_API_DONE:
        answer_again(api, begun);
        break;
    case HK_API_RUNNING:
        refuse(api, 409, "CALL_RUNNING", "the same call is being answered: ask again for its outcome");
        api->out->retry_after_s = 1;
        break;
    case HK_API_OTHER:
        refuse(api, 422, "KEY_REUSED", "this Idempotency-Key was used for another request");
        break;
    }
}

void hk_api_answer_once(struct hk_api *api, void (*answer)(struct hk_api *api))
{
    const struct hk_api_request *r = api->request;
    char key_hash[HK_AUDIT_HASH_MAX], request_hash[HK_AUDIT_HASH_MAX];
    struct hk_err err = {.message = ""};
    const struct hk_api_begun *begun = NULL;
    if (!r->idempotency_key || !api->op->changes) {
        answer(api);
        return;
    }
    size_t len = strlen(r->idempotency_key);
    if (len == 0 || len > KEY_MAX) {
        refuse(api, 400, "INVALID", "an Idempotency-Key has 1 to 255 characters");
        return;
    }
    hk_digest_hex(hk_str_of(r->idempotency_key), key_hash);
    enum hk_code rc = hash_request(r, request_hash);
    if (rc != HK_OK)
        (void)hk_err_set(&err, rc, "out of memory");
    const struct hk_api_call call = {
        .caller = r->caller_key, .key_hash = key_hash, .request_hash = request_hash};
    if (rc == HK_OK)
        rc = hk_desk_open(api->desk, &err);
    if (rc == HK_OK)
        rc = api->desk->api->begin_call(api->desk->admin, &call, &begun, &err);
    if (rc == HK_OK)
        answer_begun(api, &call, begun, answer);
    else
        hk_api_fail(api, NULL, &err);
}
