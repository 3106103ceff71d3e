/* SPDX-License-Identifier: Apache-2.0 */
/* What a PostgreSQL server may put into a row, right or wrong: every column of any length, or NULL, in the binary form that heads and messages
 * are read from; and the texts and lists that go the other way, read back by the rules of PostgreSQL's own input functions. A value is a
 * byte of length (255: NULL), then its bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "store/pg/store.h"

enum {
    COLUMNS = 44
};

static PGresult *make_row(struct hk_str input, int columns)
{
    static char names[COLUMNS][4];
    PGresAttDesc attributes[COLUMNS];
    PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    MUST(res != NULL);
    for (int i = 0; i < columns; i++)
        attributes[i] = (PGresAttDesc){.name = names[i], .format = 1};
    MUST(PQsetResultAttrs(res, columns, attributes) == 1);
    for (int i = 0; i < columns; i++) {
        size_t n = input.len ? (unsigned char)fuzz_take(&input, 1).ptr[0] : 255;
        struct hk_str value = fuzz_take(&input, n == 255 ? 0 : n);
        char copy[256] = "";
        memcpy(copy, value.ptr, value.len); /* PQsetvalue does not take const */
        MUST(PQsetvalue(res, 0, i, n == 255 ? NULL : copy, n == 255 ? -1 : (int)value.len) == 1);
    }
    return res;
}

static void check_message(const struct hk_message *m)
{
    MUST(m->malformed != NULL || m->message_id.len > 0);
    MUST(!m->undecodable || m->payload.len == 0);
    MUST(m->expires_ms >= 0);
}

static void check_row(struct hk_str input, int columns)
{
    static struct hk_store store;
    struct hk_head head;
    struct hk_message message;
    int64_t due, now;
    uint8_t shard;
    store.options.max_payload_bytes = 40;
    PGresult *res = make_row(input, columns);
    hk_pg_head(res, 0, HK_FROM_OUTBOX, &head);
    MUST(head.not_before_ms >= 0 && head.expires_ms >= 0);
    hk_pg_head(res, 0, HK_FROM_RETRY, &head);
    MUST(head.not_before_ms == 0);
    (void)hk_pg_head_due(res, 0, &due, &now);
    (void)hk_pg_message(&store, res, 0, &message, &shard);
    check_message(&message);
    MUST(shard < HK_PG_SHARDS);
    if (hk_pg_is_whole(res, 0)) {
        hk_pg_message_ahead(&store, res, 0, &message, &shard);
        check_message(&message);
    }
    hk_pool_reset(hk_pg_pool(&store.pg));
    PQclear(res);
}

/* As libpq gives them in text. */
static void check_texts(struct hk_str input)
{
    static struct hk_pg pg;
    PGresult *res = make_row(input, 3);
    struct hk_str bytes = hk_pg_bytes(&pg, res, 0, 0);
    MUST(bytes.len <= (size_t)PQgetlength(res, 0, 0) / 2);
    MUST(hk_pg_text(&pg, res, 0, 1).len == (size_t)PQgetlength(res, 0, 1));
    (void)hk_pg_i64(res, 0, 2);
    (void)hk_pg_bool(res, 0, 2);
    hk_pool_reset(hk_pg_pool(&pg));
    PQclear(res);
}

/* Well-formed UTF-8 without NUL; the same length or longer, and the same where it was so already. */
static void check_text_arg(const char *text, struct hk_str was)
{
    struct hk_str s = hk_str_of(text);
    bool changed = false;
    for (size_t at = 0; at < was.len;) {
        uint32_t c;
        at += hk_utf8_next((struct hk_str){was.ptr + at, was.len - at}, &c);
        changed |= c == HK_UTF8_BAD || c == 0;
    }
    MUST(changed || hk_str_eq(s, was));
    for (size_t at = 0; at < s.len;) {
        uint32_t c;
        at += hk_utf8_next((struct hk_str){s.ptr + at, s.len - at}, &c);
        MUST(c != HK_UTF8_BAD);
    }
}

/* array_in: quoted elements, \ before any character. Returns behind the element. */
static const char *read_element(const char *p, struct hk_buf *out)
{
    MUST(*p == '"');
    for (p++; *p != '"'; p++) {
        MUST(*p != '\0');
        if (*p == '\\')
            p++;
        MUST(hk_buf_addc(out, *p) == HK_OK);
    }
    return p + 1;
}

static void check_args(struct hk_str input)
{
    static struct hk_pg pg;
    struct hk_pg_args args = {.n = 0};
    struct hk_str texts[4];
    struct hk_buf out;
    for (size_t i = 0; i < 4; i++)
        texts[i] = fuzz_take(&input, input.len / 2);
    hk_pg_arg_texts(&pg, &args, texts, 4);
    for (size_t i = 0; i < 4; i++)
        hk_pg_arg_text(&pg, &args, texts[i]);
    const char *p = args.values[0];
    MUST(p != NULL && *p == '{');
    hk_buf_init(&out, (size_t)1 << 16);
    for (size_t i = 0; i < 4; i++) {
        MUST(*p == (i ? ',' : '{'));
        hk_buf_reset(&out);
        p = read_element(p + 1, &out);
        check_text_arg(args.values[1 + i], texts[i]);
        MUST(strcmp(hk_buf_cstr(&out), args.values[1 + i]) == 0);
    }
    MUST(strcmp(p, "}") == 0);
    hk_buf_fini(&out);
    hk_pool_reset(hk_pg_pool(&pg));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str input = {(const char *)data, size};
    if (size > 4096)
        return 0;
    check_row(input, COLUMNS);
    check_row(input, 26); /* what was read ahead has fewer */
    check_texts(input);
    check_args(input);
    return 0;
}
