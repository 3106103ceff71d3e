/* SPDX-License-Identifier: Apache-2.0 */
/* The same words in the dead letters of every store. */
#include "base/json.h"
#include "core/exchange.h"
#include "store/detail.h"

void hk_store_detail(struct hk_buf *out, const struct hk_attempt_record *a)
{
    if (!a->made)
        return;
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_json_key(&json, "cause");
    hk_json_str(&json, a->cause);
    hk_json_key(&json, "class");
    hk_json_cstr(&json, hk_class_name(a->failure_class));
    hk_json_key(&json, "status");
    hk_json_i64(&json, a->status);
    hk_json_key(&json, "address");
    hk_json_str(&json, a->address);
    hk_json_key(&json, "duration_ms");
    hk_json_u64(&json, a->duration_ms);
    hk_json_key(&json, "possibly_delivered");
    hk_json_bool(&json, a->possibly_delivered);
    hk_json_key(&json, "response_headers");
    if (a->response_headers.len && a->response_headers.ptr[0] == '{')
        hk_json_raw(&json, a->response_headers);
    else if (a->response_headers.len) /* sealed (payload/words.h) */
        hk_json_str(&json, a->response_headers);
    else
        hk_json_null(&json);
    hk_json_key(&json, "response_body");
    hk_json_str(&json, a->response_body);
    hk_json_end(&json);
}
