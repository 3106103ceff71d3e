/* SPDX-License-Identifier: Apache-2.0 */
/* What a token endpoint says: RFC 6749, 5.1 and 5.2. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/http/access.h"
#include "sink/http/request.h"
#include "sink/http/sign.h"

#define LIFETIME_MAX_S 31536000 /* a year: what is longer is a mistake */

/* A token of RFC 6750 is visible ASCII; anything else must not get into a header. */
static bool is_token(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
            return false;
    return s.len > 0 && s.len < HK_HEADER_VALUE_MAX - 16;
}

static struct hk_str text_of(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_string(value) ? (struct hk_str){json_string_value(value), json_string_length(value)}
                                 : (struct hk_str){"", 0};
}

/* Some endpoints say it as a text. */
static uint64_t lifetime_of(const json_t *root)
{
    const json_t *value = json_object_get(root, "expires_in");
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;
    if (json_is_real(value) && json_real_value(value) < LIFETIME_MAX_S)
        n = (json_int_t)json_real_value(value);
    struct hk_str text = text_of(root, "expires_in");
    for (size_t i = 0; i < text.len && i < 9 && hk_ascii_isdigit(text.ptr[i]); i++)
        n = n * 10 + (text.ptr[i] - '0');
    return n <= 0 ? 0 : n > LIFETIME_MAX_S ? LIFETIME_MAX_S : (uint64_t)n;
}

static void take_error(const json_t *root, char out[160])
{
    struct hk_str error = text_of(root, "error"), more = text_of(root, "error_description");
    (void)snprintf(out, 160, "%.*s%s%.*s", (int)(error.len < 60 ? error.len : 60), error.ptr,
                   error.len && more.len ? ": " : "", (int)(more.len < 90 ? more.len : 90), more.ptr);
}

static enum hk_code take_token(const json_t *root, struct hk_oauth_answer *out, struct hk_err *err)
{
    struct hk_str token = text_of(root, "access_token"), type = text_of(root, "token_type");
    if (!token.len)
        return HK_OK;
    if (type.len && !hk_str_eqi(type, hk_str_of("bearer")))
        return hk_err_set(err, HK_INVALID, "its token is not of the type bearer");
    if (!is_token(token))
        return hk_err_set(err, HK_INVALID, "its token is too long, or cannot stand in a header field");
    out->token = hk_mem_strndup(token.ptr, token.len);
    return out->token ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

enum hk_code hk_oauth_answer_read(struct hk_str body, struct hk_oauth_answer *out, struct hk_err *err)
{
    json_error_t error;
    struct hk_oauth_answer answer = {.token = NULL};
    json_t *root = body.len ? json_loadb(body.ptr, body.len, 0, &error) : NULL;
    enum hk_code rc = HK_OK;
    if (!root && body.len && json_error_code(&error) == json_error_out_of_memory)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    else if (!json_is_object(root))
        rc = hk_err_set(err, HK_INVALID, "it did not answer with a JSON object");
    if (rc == HK_OK) {
        answer.lifetime_s = lifetime_of(root);
        take_error(root, answer.error);
        rc = take_token(root, &answer, err);
    }
    json_decref(root);
    if (rc == HK_OK)
        *out = answer;
    return rc;
}

void hk_oauth_answer_fini(struct hk_oauth_answer *answer)
{
    hk_secret_wipe(answer->token, answer->token ? strlen(answer->token) : 0);
    hk_mem_free(answer->token);
    answer->token = NULL;
}
