/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a PostgreSQL store: a password in the middle of whatever is never shown, neither in an error nor in the place; names from the URL
 * stand in SQL only as whole quoted identifiers. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "store/pg/pg.h"

#define SECRET "hUnTeR2hUnTeR2"

/* "…" with doubled quotes inside, then a dot and another one, or only one. */
static const char *skip_identifier(const char *p)
{
    MUST(*p == '"');
    for (p++; *p != '"' || p[1] == '"'; p++) {
        MUST(*p != '\0');
        if (*p == '"')
            p++;
    }
    return p + 1;
}

static void check_names(const struct hk_pg_url *url)
{
    struct hk_buf out;
    hk_buf_init(&out, 4096);
    hk_pg_url_names(url, "@outbox;@@outbox", &out);
    MUST(hk_buf_status(&out) == HK_OK);
    const char *p = skip_identifier(hk_buf_cstr(&out));
    if (*p == '.')
        p = skip_identifier(p + 1);
    MUST(*p == ';');
    p = skip_identifier(p + 1);
    MUST(*p == '\0');
    hk_buf_fini(&out);
}

static void check(const char *text)
{
    struct hk_pg_url url = {.conninfo = NULL};
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_pg_url_parse(text, &url, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    if (rc != HK_OK) {
        MUST(url.conninfo == NULL && err.message[0] != '\0');
        return;
    }
    MUST(strlen(url.schema) <= HK_PG_NAME_MAX && strlen(url.prefix) + HK_PG_LONGEST_NAME <= HK_PG_NAME_MAX);
    check_names(&url);
    hk_pg_url_fini(&url);
}

/* `before` is what a user may have mistyped, `after` too. */
static void check_secret(struct hk_str before, struct hk_str after)
{
    char text[4096];
    struct hk_pg_url url = {.conninfo = NULL};
    struct hk_err err = {.message = ""};
    int n = snprintf(text, sizeof text, "postgres://%.*s:%s@%.*s", (int)before.len, before.ptr, SECRET,
                     (int)after.len, after.ptr);
    if (n < 0 || (size_t)n >= sizeof text || strstr(text, "hUnT") == NULL)
        return;
    /* behind a slash or a question mark it is no password, but the name of something */
    for (size_t i = 0; i < before.len; i++)
        if (strchr("/?#@=&'\\ ", before.ptr[i]) != NULL)
            return;
    enum hk_code rc = hk_pg_url_parse(text, &url, &err);
    MUST(strstr(rc == HK_OK ? url.place : err.message, "hUnT") == NULL);
    if (rc == HK_OK)
        hk_pg_url_fini(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2048];
    if (size >= sizeof text || memchr(data, '\0', size) != NULL)
        return 0;
    memcpy(text, size ? (const void *)data : "", size);
    text[size] = '\0';
    check(text);
    if (strstr(text, "hUnT") != NULL)
        return 0;
    struct hk_str rest = hk_str_of(text), before = hk_str_cut(&rest, '\n');
    check_secret(before, rest);
    return 0;
}
