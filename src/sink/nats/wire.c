/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "payload/scan.h"
#include "sink/nats/wire.h"

/* ---- operations ---- */

static bool find_line(struct hk_str in, struct hk_str *out)
{
    const char *end = in.len ? memchr(in.ptr, '\n', in.len) : NULL;
    if (!end)
        return false;
    size_t len = (size_t)(end - in.ptr);
    *out = (struct hk_str){in.ptr, len && in.ptr[len - 1] == '\r' ? len - 1 : len};
    return true;
}

/* The next word of a line, which blanks or tabs part. */
static struct hk_str next_word(struct hk_str *rest)
{
    while (rest->len && (rest->ptr[0] == ' ' || rest->ptr[0] == '\t'))
        *rest = (struct hk_str){rest->ptr + 1, rest->len - 1};
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] != ' ' && rest->ptr[n] != '\t')
        n++;
    struct hk_str word = {rest->ptr, n};
    *rest = (struct hk_str){rest->ptr + n, rest->len - n};
    return word;
}

static bool read_length(struct hk_str word, size_t *out)
{
    uint64_t n = 0;
    if (hk_parse_u64(word, &n, NULL) != HK_OK || n > HK_NATS_MESSAGE_MAX)
        return false;
    *out = (size_t)n;
    return true;
}

/* "NATS/1.0 503\r\n…" */
static unsigned status_of(struct hk_str headers)
{
    static const char version[] = "NATS/1.0 ";
    uint64_t status = 0;
    size_t n = sizeof version - 1;
    if (!hk_str_starts(headers, hk_str_of(version)) || headers.len < n + 3)
        return 0;
    return hk_parse_u64((struct hk_str){headers.ptr + n, 3}, &status, NULL) == HK_OK ? (unsigned)status : 0;
}

/* MSG subject sid [reply] length; HMSG subject sid [reply] header-length length */
static enum hk_nats_next read_message(struct hk_str in, struct hk_str line, bool headers,
                                      struct hk_nats_op *out, size_t *out_used, const char **why)
{
    struct hk_str words[6], rest = line;
    size_t n = 0, head = 0, len = 0;
    size_t at = (size_t)((const char *)memchr(in.ptr, '\n', in.len) - in.ptr) + 1;
    while (n < 6 && (words[n] = next_word(&rest)).len)
        n++;
    size_t least = headers ? 4u : 3u;
    *why = "the server sends a message that cannot be read";
    if (n < least || n > least + 1 || !read_length(words[n - 1], &len) ||
        (headers && !read_length(words[n - 2], &head)) || head > len)
        return HK_NATS_WRONG;
    if (in.len - at < len + 2)
        return HK_NATS_MORE;
    if (memcmp(in.ptr + at + len, "\r\n", 2) != 0)
        return HK_NATS_WRONG;
    *out = (struct hk_nats_op){.kind = HK_NATS_MSG,
                               .subject = words[0],
                               .payload = {in.ptr + at + head, len - head},
                               .status = headers ? status_of((struct hk_str){in.ptr + at, head}) : 0};
    *out_used = at + len + 2;
    return HK_NATS_WHOLE;
}

static struct hk_str without_quotes(struct hk_str s)
{
    s = hk_str_trim(s);
    if (s.len >= 2 && s.ptr[0] == '\'' && s.ptr[s.len - 1] == '\'')
        s = (struct hk_str){s.ptr + 1, s.len - 2};
    return s;
}

static bool kind_of(struct hk_str word, enum hk_nats_kind *out, bool *out_headers)
{
    static const struct {
        const char *name;
        enum hk_nats_kind kind;
    } kinds[] = {{"INFO", HK_NATS_INFO}, {"MSG", HK_NATS_MSG}, {"HMSG", HK_NATS_MSG}, {"PING", HK_NATS_PING},
                 {"PONG", HK_NATS_PONG}, {"+OK", HK_NATS_OK},  {"-ERR", HK_NATS_ERR}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!hk_str_eqi(word, hk_str_of(kinds[i].name)))
            continue;
        *out = kinds[i].kind;
        *out_headers = kinds[i].name[0] == 'H';
        return true;
    }
    return false;
}

enum hk_nats_next hk_nats_read(struct hk_str in, struct hk_nats_op *out, size_t *out_used,
                               const char **out_why)
{
    struct hk_str line, rest;
    bool headers = false;
    enum hk_nats_kind kind = HK_NATS_OK;
    *out_why = "the server says something other than NATS";
    if (in.len && !memchr("IMHP+-imhp", in.ptr[0], 10))
        return HK_NATS_WRONG;
    if (!find_line(in, &line)) {
        *out_why = "the server sends a line that is too long";
        return in.len > HK_NATS_LINE_MAX ? HK_NATS_WRONG : HK_NATS_MORE;
    }
    rest = line;
    if (!kind_of(next_word(&rest), &kind, &headers))
        return HK_NATS_WRONG;
    if (kind == HK_NATS_MSG)
        return read_message(in, rest, headers, out, out_used, out_why);
    *out = (struct hk_nats_op){.kind = kind,
                               .text = kind == HK_NATS_ERR ? without_quotes(rest) : hk_str_trim(rest)};
    *out_used = (size_t)((const char *)memchr(in.ptr, '\n', in.len) - in.ptr) + 1;
    return HK_NATS_WHOLE;
}

/* ---- JSON ---- */

static bool is_key(const struct hk_scan_token *key, const char *name)
{
    return hk_scan_text_eq(key->raw, hk_str_of(name));
}

static void copy_text(const struct hk_scan_token *value, char out[HK_NATS_WORD_MAX])
{
    struct hk_buf text;
    out[0] = '\0';
    if (value->kind != HK_SCAN_STRING)
        return;
    hk_buf_init(&text, HK_NATS_WORD_MAX - 1);
    if (hk_scan_text(value->raw, &text) == HK_OK)
        (void)hk_str_copy(out, HK_NATS_WORD_MAX, hk_buf_str(&text));
    hk_buf_fini(&text);
}

static uint64_t number_of(const struct hk_scan_token *value)
{
    uint64_t n = 0;
    return value->kind == HK_SCAN_NUMBER && value->integer && hk_parse_u64(value->raw, &n, NULL) == HK_OK ? n
                                                                                                          : 0;
}

/* The next member of the object that is open: its key, and the first token of its value. */
static bool next_member(struct hk_json_scan *scan, struct hk_scan_token *key, struct hk_scan_token *value)
{
    return hk_scan_next(scan, key) == HK_SCAN_KEY && hk_scan_is_value(hk_scan_next(scan, value));
}

static bool pass_over(struct hk_json_scan *scan, const struct hk_scan_token *value)
{
    return (value->kind != HK_SCAN_OBJECT && value->kind != HK_SCAN_ARRAY) || hk_scan_leave(scan);
}

static bool begin(struct hk_json_scan *scan, struct hk_str json)
{
    struct hk_scan_token token;
    hk_scan_init(scan, json);
    return hk_scan_next(scan, &token) == HK_SCAN_OBJECT;
}

static bool end(const struct hk_json_scan *scan, const struct hk_scan_token *last)
{
    return !scan->why && last->kind == HK_SCAN_OBJECT_END;
}

static bool read_urls(struct hk_json_scan *scan, hk_nats_url_fn *on_url, void *arg)
{
    struct hk_scan_token item;
    while (hk_scan_next(scan, &item) == HK_SCAN_STRING) {
        char text[HK_NATS_WORD_MAX];
        copy_text(&item, text);
        if (text[0])
            on_url(arg, hk_str_of(text));
    }
    return item.kind == HK_SCAN_ARRAY_END;
}

bool hk_nats_read_info(struct hk_str json, struct hk_nats_info *out, hk_nats_url_fn *on_url, void *arg)
{
    struct hk_json_scan scan;
    struct hk_scan_token key, value;
    struct hk_nats_info info = {.max_payload = 0};
    if (!begin(&scan, json))
        return false;
    while (next_member(&scan, &key, &value)) {
        bool yes = value.kind == HK_SCAN_TRUE;
        if (is_key(&key, "connect_urls") && value.kind == HK_SCAN_ARRAY) {
            if (!read_urls(&scan, on_url, arg))
                return false;
            continue;
        }
        if (is_key(&key, "max_payload"))
            info.max_payload = number_of(&value);
        else if (is_key(&key, "tls_required") || is_key(&key, "tls_available"))
            info.tls |= yes;
        else if (is_key(&key, "headers"))
            info.headers = yes;
        else if (is_key(&key, "ldm"))
            info.lame_duck = yes;
        else if (is_key(&key, "nonce"))
            copy_text(&value, info.nonce);
        if (!pass_over(&scan, &value))
            return false;
    }
    *out = info;
    return end(&scan, &key);
}

static bool read_error(struct hk_json_scan *scan, struct hk_nats_ack *ack)
{
    struct hk_scan_token key, value;
    while (next_member(scan, &key, &value)) {
        if (is_key(&key, "code"))
            ack->code = (int64_t)number_of(&value);
        else if (is_key(&key, "err_code"))
            ack->err_code = (int64_t)number_of(&value);
        else if (is_key(&key, "description"))
            copy_text(&value, ack->description);
        if (!pass_over(scan, &value))
            return false;
    }
    if (!ack->code)
        ack->code = 500;
    return end(scan, &key);
}

static bool read_streams(struct hk_json_scan *scan, struct hk_nats_ack *ack)
{
    struct hk_scan_token item;
    while (hk_scan_next(scan, &item) == HK_SCAN_STRING)
        ack->has_streams = true;
    return item.kind == HK_SCAN_ARRAY_END;
}

bool hk_nats_read_ack(struct hk_str json, struct hk_nats_ack *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token key, value;
    struct hk_nats_ack ack = {.code = 0};
    bool stream = false, sequence = false, good = true;
    if (!begin(&scan, json))
        return false;
    while (good && next_member(&scan, &key, &value)) {
        if (is_key(&key, "error") && value.kind == HK_SCAN_OBJECT) {
            good = read_error(&scan, &ack);
            continue;
        }
        if (is_key(&key, "streams") && value.kind == HK_SCAN_ARRAY) {
            good = read_streams(&scan, &ack);
            continue;
        }
        if (is_key(&key, "stream"))
            stream = value.kind == HK_SCAN_STRING;
        else if (is_key(&key, "seq")) {
            sequence = value.kind == HK_SCAN_NUMBER;
            ack.sequence = number_of(&value);
        } else if (is_key(&key, "duplicate"))
            ack.duplicate = value.kind == HK_SCAN_TRUE;
        good = pass_over(&scan, &value);
    }
    ack.stored = stream && sequence && ack.sequence && !ack.code;
    *out = ack;
    return good && end(&scan, &key);
}

bool hk_nats_subject_ok(struct hk_str s)
{
    bool word = false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c == 0x7f || c == '*' || c == '>' || (c == '.' && !word))
            return false;
        word = c != '.';
    }
    return word && s.len <= 1024;
}
