/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "core/encoding.h"
#include "payload/codec.h"
#include "payload/envelope.h"
#include "payload/words.h"

#define WORDS_FIELD "outbox_attempts.response"
#define BEGINS      "\"hk1."
#define HEADERS_KEY "\"response_headers\":"

enum {
    UUID = 36,
    OPENED_MAX = 1024 * 1024
};

/* A message that was requeued under a new id goes by its first one: that is what its dead letter has. */
static struct hk_str first_id(struct hk_str id)
{
    if (id.len > UUID + 1 && id.ptr[id.len - UUID - 1] == HK_SEALED_AGAIN)
        id.len -= UUID + 1;
    return id;
}

static struct hk_codec_of of_words(struct hk_keyring *keys, struct hk_str message_id)
{
    return (struct hk_codec_of){.keys = keys,
                                .encoding = hk_str_of("sealed"),
                                .message_id = first_id(message_id),
                                .field = WORDS_FIELD};
}

struct hk_str hk_words_seal(struct hk_keyring *keys, struct hk_str message_id, struct hk_str words,
                            struct hk_pool *mem)
{
    struct hk_err err = {.message = ""};
    struct hk_str sealed = {"", 0};
    const struct hk_codec_of of = of_words(keys, message_id);
    if (!words.len || hk_codec_seal(&of, words, mem, &sealed, &err) != HK_OK)
        return (struct hk_str){"", 0};
    return sealed;
}

static struct hk_str open_words(struct hk_keyring *keys, struct hk_str message_id, struct hk_str sealed,
                                struct hk_pool *mem)
{
    struct hk_err err = {.message = ""};
    struct hk_str plain;
    const struct hk_codec_of of = of_words(keys, message_id);
    if (!keys)
        return hk_str_of(HK_SEALED_TEXT);
    if (hk_codec_open(&of, sealed, mem, &plain, &err) == HK_OK)
        return plain;
    const char *why = hk_pool_copy_str(mem, hk_str_of(err.message));
    return hk_str_of(why ? why : HK_SEALED_TEXT);
}

/* The next sealed member behind `at`: its text, without quotes. */
static bool find_sealed(struct hk_str text, size_t at, struct hk_str *out)
{
    struct hk_envelope e;
    const size_t begins = sizeof BEGINS - 1;
    for (; at + begins < text.len; at++) {
        if (memcmp(text.ptr + at, BEGINS, begins) != 0)
            continue;
        const char *from = text.ptr + at + 1;
        const char *end = memchr(from, '"', text.len - at - 1);
        *out = (struct hk_str){from, end ? (size_t)(end - from) : 0};
        if (hk_envelope_read(*out, &e))
            return true;
    }
    return false;
}

/* Headers are an object of their own again; a body is a string. */
static void add_member(struct hk_buf *out, struct hk_str opened)
{
    const size_t key = sizeof HEADERS_KEY - 1;
    bool is_headers = out->len >= key && memcmp(out->data + out->len - key, HEADERS_KEY, key) == 0;
    if (is_headers && opened.len && opened.ptr[0] == '{') {
        (void)hk_buf_add(out, opened.ptr, opened.len);
        return;
    }
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_str(&json, opened);
}

static struct hk_str show_members(struct hk_keyring *keys, struct hk_str message_id, struct hk_str stored,
                                  struct hk_pool *mem)
{
    struct hk_buf out;
    struct hk_str sealed;
    size_t at = 0;
    hk_buf_init(&out, OPENED_MAX);
    while (find_sealed(stored, at, &sealed)) {
        size_t from = (size_t)(sealed.ptr - stored.ptr) - 1;
        (void)hk_buf_add(&out, stored.ptr + at, from - at);
        add_member(&out, open_words(keys, message_id, sealed, mem));
        at = from + sealed.len + 2;
    }
    (void)hk_buf_add(&out, stored.ptr + at, stored.len - at);
    const char *kept = hk_buf_status(&out) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&out)) : NULL;
    struct hk_str shown = kept ? (struct hk_str){kept, out.len} : hk_str_of(HK_SEALED_TEXT);
    hk_buf_fini(&out);
    return shown;
}

struct hk_str hk_words_show(struct hk_keyring *keys, struct hk_str message_id, struct hk_str stored,
                            struct hk_pool *mem)
{
    struct hk_envelope e;
    struct hk_str first;
    if (hk_envelope_read(stored, &e))
        return open_words(keys, message_id, stored, mem);
    if (stored.len && stored.ptr[0] == '{' && find_sealed(stored, 0, &first))
        return show_members(keys, message_id, stored, mem);
    return stored;
}

static enum hk_code rewrap_members(const struct hk_codec_of *of, struct hk_str stored, struct hk_pool *mem,
                                   struct hk_str *out, struct hk_err *err)
{
    struct hk_buf text;
    struct hk_str sealed, again;
    size_t at = 0;
    enum hk_code rc = HK_OK;
    hk_buf_init(&text, OPENED_MAX);
    while (rc == HK_OK && find_sealed(stored, at, &sealed)) {
        size_t from = (size_t)(sealed.ptr - stored.ptr);
        rc = hk_codec_rewrap(of, sealed, mem, &again, err);
        if (rc != HK_OK)
            break;
        (void)hk_buf_add(&text, stored.ptr + at, from - at);
        (void)hk_buf_add(&text, again.ptr, again.len);
        at = from + sealed.len;
    }
    (void)hk_buf_add(&text, stored.ptr + at, stored.len - at);
    const char *kept =
        rc == HK_OK && hk_buf_status(&text) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    if (kept)
        *out = (struct hk_str){kept, text.len};
    else if (rc == HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_fini(&text);
    return rc;
}

enum hk_code hk_words_rewrap(struct hk_keyring *keys, struct hk_str message_id, struct hk_str stored,
                             struct hk_pool *mem, struct hk_str *out, struct hk_err *err)
{
    const struct hk_codec_of of = of_words(keys, message_id);
    struct hk_envelope e;
    struct hk_str first;
    *out = stored;
    if (hk_envelope_read(stored, &e))
        return hk_codec_rewrap(&of, stored, mem, out, err);
    return find_sealed(stored, 0, &first) ? rewrap_members(&of, stored, mem, out, err) : HK_OK;
}
