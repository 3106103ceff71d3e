/* SPDX-License-Identifier: Apache-2.0 */
/* A message's headers are a JSON object; jansson reads it, and this is the only file of the sinks that knows so. */
#include <jansson.h>

#include "base/show.h"
#include "base/str.h"
#include "sink/http/header.h"

#define TEXT_MAX ((size_t)64 * 1024)

static enum hk_code each(json_t *object, hk_header_fn *fn, void *arg, struct hk_err *err)
{
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        struct hk_str name = hk_str_of(json_object_iter_key(i));
        json_t *value = json_object_iter_value(i);
        char shown[HK_SHOW_MAX];
        if (!json_is_string(value))
            return hk_err_set(err, HK_INVALID, "headers: the value of %s must be a string",
                              hk_show(name, shown));
        enum hk_code rc =
            fn(arg, name, (struct hk_str){json_string_value(value), json_string_length(value)}, err);
        if (rc != HK_OK)
            return rc;
    }
    return HK_OK;
}

enum hk_code hk_headers_read(struct hk_str json, hk_header_fn *fn, void *arg, struct hk_err *err)
{
    if (json.len > TEXT_MAX)
        return hk_err_set(err, HK_INVALID, "headers: more than %zu bytes", TEXT_MAX);
    json_error_t error;
    json_t *root = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (!root) /* where, and not what stands there: it may be a secret, and this is logged */
        return hk_err_set(err, HK_INVALID, "headers: %s, at byte %d",
                          json_error_code(&error) == json_error_duplicate_key ? "a name is given twice"
                                                                              : "not JSON",
                          error.position);
    enum hk_code rc = json_is_object(root)
                          ? each(root, fn, arg, err)
                          : hk_err_set(err, HK_INVALID, "headers: must be a JSON object of strings");
    json_decref(root);
    return rc;
}
