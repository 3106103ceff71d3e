/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "sink/aws/keys.h"
#include "sink/aws/xml.h"

static bool fail(struct hk_aws_keys *out)
{
    hk_mem_wipe(out, sizeof *out);
    return false;
}

static int64_t time_of(struct hk_str text)
{
    int64_t ms = 0;
    return hk_parse_rfc3339(text, &ms, NULL) == HK_OK && ms > 0 ? ms : 0;
}

/* ---- JSON ---- */

static struct hk_str text_of(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_string(value) ? (struct hk_str){json_string_value(value), json_string_length(value)}
                                 : (struct hk_str){"", 0};
}

static struct hk_str either(const json_t *root, const char *key, const char *other)
{
    struct hk_str text = text_of(root, key);
    return text.len ? text : text_of(root, other);
}

bool hk_aws_keys_json(struct hk_str body, struct hk_aws_keys *out, struct hk_aws_error *error)
{
    json_t *root = body.len ? json_loadb(body.ptr, body.len, 0, NULL) : NULL;
    struct hk_str code = either(root, "Code", "code"), words = either(root, "Message", "message");
    *error = (struct hk_aws_error){.code = ""};
    bool good = hk_aws_credentials_take(&out->credentials, text_of(root, "AccessKeyId"),
                                        text_of(root, "SecretAccessKey"), text_of(root, "Token"));
    if (good)
        out->end_ms = time_of(text_of(root, "Expiration"));
    else
        (void)(hk_str_copy(error->code, sizeof error->code, code) &&
               hk_str_copy(error->words, sizeof error->words, words));
    json_decref(root);
    return good || fail(out);
}

/* ---- XML ---- */

/* One that is cut short is no key. */
static bool element(struct hk_str in, const char *name, char *out, size_t room)
{
    return hk_aws_xml_text(in, name, out, room) && out[0] && strlen(out) + 1 < room;
}

bool hk_aws_keys_xml(struct hk_str body, struct hk_aws_keys *out, struct hk_aws_error *error)
{
    struct hk_aws_credentials *c = &out->credentials;
    struct hk_str inner = {"", 0};
    char end[HK_TIME_TEXT_MAX];
    *error = (struct hk_aws_error){.code = ""};
    if (hk_aws_xml_next(&body, "Credentials", &inner) &&
        element(inner, "AccessKeyId", c->key_id, sizeof c->key_id) &&
        element(inner, "SecretAccessKey", c->secret, sizeof c->secret) &&
        element(inner, "SessionToken", c->token, sizeof c->token) && hk_aws_credentials_are_visible(c)) {
        (void)hk_aws_xml_text(inner, "Expiration", end, sizeof end);
        out->end_ms = time_of(hk_str_of(end));
        return true;
    }
    hk_aws_error_read(body, error);
    return fail(out);
}
