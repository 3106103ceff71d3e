/* SPDX-License-Identifier: Apache-2.0 */
/* A PostgreSQL URL is libpq's to read, in full: several hosts, TLS, services, password files. Only our own two parameters
 * are taken out before libpq sees it. Nothing that is printed from here holds the password. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "run/password.h"
#include "store/pg/pg.h"

#define URL_MAX (8 * 1024)

/* ---- our own parameters ---- */

static struct hk_str skip(struct hk_str s, size_t n)
{
    return (struct hk_str){s.ptr + n, s.len - n};
}

/* What stands behind "postgres://" or "postgresql://"; ptr NULL: neither. */
static struct hk_str behind_scheme(struct hk_str url)
{
    static const char *const schemes[] = {"postgres://", "postgresql://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (hk_str_starts(url, hk_str_of(schemes[i])))
            return skip(url, strlen(schemes[i]));
    return (struct hk_str){NULL, 0};
}

/* Where libpq sees the end of user and password; 0 when there are none. */
static size_t end_of_user(struct hk_str rest)
{
    size_t i = 0;
    while (i < rest.len && rest.ptr[i] != '@' && rest.ptr[i] != '/')
        i++;
    return i < rest.len && rest.ptr[i] == '@' ? i + 1 : 0;
}

/* Where the question mark stands that libpq takes for the beginning of the parameters: a password may hold one, too, and
 * an address in brackets. The length of `rest` when there is none. */
static size_t find_query(struct hk_str rest)
{
    bool bracket = false;
    for (size_t i = end_of_user(rest); i < rest.len; i++) {
        if (rest.ptr[i] == '[')
            bracket = true;
        else if (rest.ptr[i] == ']')
            bracket = false;
        else if (rest.ptr[i] == '?' && !bracket)
            return i;
    }
    return rest.len;
}

static bool is_name(struct hk_str s)
{
    if (!s.len || hk_ascii_isdigit(s.ptr[0]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]) && s.ptr[i] != '_')
            return false;
    return true;
}

static enum hk_code take_name(const char *key, struct hk_str value, size_t max, char *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (out[0])
        return hk_err_set(err, HK_INVALID, "the database URL gives %s twice", key);
    if (!is_name(value))
        return hk_err_set(err, HK_INVALID,
                          "the database URL's %s is %s: write letters, digits and _, no digit first", key,
                          hk_show(value, shown));
    if (value.len > max)
        return hk_err_set(err, HK_INVALID, "the database URL's %s is too long: at most %zu characters", key,
                          max);
    memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
    return HK_OK;
}

static enum hk_code take_keeper(struct hk_str value, int *out, struct hk_err *err)
{
    uint64_t fd = 0;
    if (hk_parse_u64(value, &fd, NULL) != HK_OK || fd == 0 || fd > INT_MAX || *out)
        return hk_err_set(err, HK_INVALID, "the database URL has a parameter that is not for people");
    *out = (int)fd;
    return HK_OK;
}

static bool libpq_knows(struct hk_str key)
{
    PQconninfoOption *all = PQconndefaults();
    bool known = !all || hk_str_eq(key, hk_str_of("ssl")); /* no memory: it will be seen later */
    for (const PQconninfoOption *o = all; !known && o->keyword; o++)
        known = hk_str_eq(key, hk_str_of(o->keyword));
    PQconninfoFree(all);
    return known;
}

/* Before libpq does it, in words that quote everything. Where an @ follows this may be the rest of a password. */
static enum hk_code refuse_unknown(struct hk_str key, struct hk_str behind, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (libpq_knows(key) || (behind.len && memchr(behind.ptr, '@', behind.len)))
        return HK_OK;
    return hk_err_set(err, HK_INVALID,
                      "the database URL has a parameter %s, which neither hikyaku nor libpq knows",
                      hk_show(key, shown));
}

/* Copies `query` to `kept` without our own parameters, which go to `out`. */
static enum hk_code take_ours(struct hk_str query, struct hk_buf *kept, struct hk_pg_url *out,
                              struct hk_err *err)
{
    char separator = '?';
    while (query.ptr) {
        struct hk_str behind = query, value = hk_str_cut(&query, '&'), whole = value;
        struct hk_str key = hk_str_cut(&value, '=');
        enum hk_code rc = HK_OK;
        if (hk_str_eq(key, hk_str_of("schema"))) {
            rc = take_name("schema", value, HK_PG_NAME_MAX, out->schema, err);
        } else if (hk_str_eq(key, hk_str_of("prefix"))) {
            rc = take_name("prefix", value, HK_PG_NAME_MAX - HK_PG_LONGEST_NAME, out->prefix, err);
        } else if (hk_str_eq(key, hk_str_of(HK_PASSWORD_PARAMETER))) {
            rc = take_keeper(value, &out->keeper, err);
        } else {
            rc = refuse_unknown(key, behind, err);
            hk_buf_addc(kept, separator);
            hk_buf_add(kept, whole.ptr, whole.len);
            separator = '&';
        }
        if (rc != HK_OK)
            return rc;
    }
    return HK_OK;
}

/* ---- what libpq makes of the rest ---- */

static const char *option(const PQconninfoOption *options, const char *name)
{
    for (; options->keyword; options++)
        if (strcmp(options->keyword, name) == 0)
            return options->val && options->val[0] ? options->val : NULL;
    return NULL;
}

/* A password with a bare @ or / in it ends too early, and its rest would be shown as host, port or database. */
static enum hk_code refuse_torn_password(struct hk_str rest, size_t query, struct hk_err *err)
{
    size_t from = end_of_user(rest);
    if (!memchr(rest.ptr + from, '@', query - from))
        return HK_OK;
    return hk_err_set(
        err, HK_INVALID,
        "the database URL has an @ where none belongs: in user, password and database write %%40 for @ "
        "and %%2F for /");
}

static enum hk_code check_port(const PQconninfoOption *options, struct hk_err *err)
{
    const char *port = option(options, "port");
    if (!port || !port[strspn(port, "0123456789,")])
        return HK_OK;
    return hk_err_set(err, HK_INVALID,
                      "the database URL's port is not a number; a / in the password is written %%2F");
}

/* Adds foreign text without what moves a terminal's cursor or makes a new line. */
static void add_plain(struct hk_buf *out, const char *text)
{
    char shown[HK_SHOW_MAX];
    hk_show(hk_str_of(text), shown);
    hk_buf_add(out, shown + 1, strlen(shown) - 2); /* without the quotes */
}

static enum hk_code show_place(const PQconninfoOption *options, struct hk_pg_url *url)
{
    struct hk_buf text;
    hk_buf_init(&text, sizeof url->place - 1);
    const char *user = option(options, "user"), *host = option(options, "host"),
               *port = option(options, "port"), *db = option(options, "dbname"),
               *service = option(options, "service");
    hk_buf_adds(&text, "postgres://");
    if (user) {
        add_plain(&text, user);
        hk_buf_addc(&text, '@');
    }
    if (!host)
        host = option(options, "hostaddr");
    if (host)
        add_plain(&text, host);
    if (port) {
        hk_buf_addc(&text, ':');
        add_plain(&text, port);
    }
    hk_buf_addc(&text, '/');
    if (db)
        add_plain(&text, db);
    if (service) {
        hk_buf_adds(&text, "?service=");
        add_plain(&text, service);
    }
    enum hk_code rc = hk_buf_status(&text) == HK_NOMEM ? HK_NOMEM : HK_OK;
    snprintf(url->place, sizeof url->place, "%s", hk_buf_cstr(&text)); /* what did not fit is left out */
    hk_buf_fini(&text);
    return rc;
}

static enum hk_code check(struct hk_pg_url *url, struct hk_err *err)
{
    char *words =
        NULL; /* not ours to show: they quote what they do not understand, which may be the password */
    PQconninfoOption *options = PQconninfoParse(url->conninfo, &words);
    if (!options && !words)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    PQfreemem(words);
    if (!options)
        return hk_err_set(
            err, HK_INVALID,
            "the database URL cannot be read: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, "
            "parameters as ?NAME=VALUE&NAME=VALUE, and special characters as %%NN");
    url->service = option(options, "service") || getenv("PGSERVICE");
    enum hk_code rc = check_port(options, err);
    if (rc == HK_OK && show_place(options, url) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    PQconninfoFree(options);
    return rc;
}

enum hk_code hk_pg_url_parse(const char *text, struct hk_pg_url *out, struct hk_err *err)
{
    struct hk_str url = hk_str_of(text), rest = behind_scheme(url);
    if (!rest.ptr)
        return hk_err_set(err, HK_INVALID, "expected postgres://USER@HOST/DATABASE");
    if (url.len > URL_MAX)
        return hk_err_set(err, HK_INVALID, "the database URL is longer than %d bytes", URL_MAX);

    struct hk_pg_url parsed = {0};
    struct hk_buf kept;
    hk_buf_init(&kept, URL_MAX);
    size_t at = find_query(rest);
    hk_buf_add(&kept, url.ptr, url.len - rest.len + at);
    enum hk_code rc = refuse_torn_password(rest, at, err);
    if (rc == HK_OK && at < rest.len)
        rc = take_ours(skip(rest, at + 1), &kept, &parsed, err);
    if (rc == HK_OK) {
        parsed.conninfo = hk_buf_detach(&kept);
        rc = parsed.conninfo ? check(&parsed, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    }
    hk_buf_fini(&kept);
    parsed.schema_said = parsed.schema[0] != '\0';
    if (rc == HK_OK)
        *out = parsed;
    else
        hk_pg_url_fini(&parsed);
    return rc;
}

void hk_pg_url_fini(struct hk_pg_url *url)
{
    if (url->conninfo)
        memset(url->conninfo, 0, strlen(url->conninfo)); /* it may hold the password */
    hk_mem_free(url->conninfo);
    *url = (struct hk_pg_url){0};
}

/* ---- names into SQL ---- */

static size_t name_length(const char *s)
{
    size_t n = 0;
    while (hk_ascii_isalpha(s[n]) || s[n] == '_' || (n && hk_ascii_isdigit(s[n])))
        n++;
    return n;
}

void hk_pg_url_names(const struct hk_pg_url *url, const char *sql, struct hk_buf *out)
{
    while (*sql) {
        size_t plain = strcspn(sql, "@");
        hk_buf_add(out, sql, plain);
        sql += plain;
        if (!*sql)
            break;
        bool alone = sql[1] == '@';
        size_t n = name_length(sql + 1 + alone);
        if (!n) { /* an operator */
            hk_buf_addc(out, *sql++);
            continue;
        }
        if (url->schema[0] && !alone)
            hk_buf_addf(out, "\"%s\".", url->schema);
        hk_buf_addf(out, "\"%s%.*s\"", url->prefix, (int)n, sql + 1 + alone);
        sql += 1 + alone + n;
    }
}
