/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL URLs: what is ours, what is libpq's, and that no password is ever shown. Needs no server. */
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "../unit/check.h"
#include "store/migration.h"
#include "store/pg/pg.h"

#define SECRET "gEhe1m"

struct good {
    const char *url, *conninfo, *schema, *prefix, *place;
};

static void our_parameters_are_taken_out_and_the_rest_is_left_alone(void **state)
{
    (void)state;
    static const struct good rows[] = {
        {"postgres://app@db/shop", "postgres://app@db/shop", "", "", "postgres://app@db/shop"},
        {"postgresql://db/shop?schema=box", "postgresql://db/shop", "box", "", "postgres://db/shop"},
        {"postgres://db/shop?prefix=hk_&schema=Box_1", "postgres://db/shop", "Box_1", "hk_",
         "postgres://db/shop"},
        {"postgres://db/shop?sslmode=require&schema=box&connect_timeout=3",
         "postgres://db/shop?sslmode=require&connect_timeout=3", "box", "", "postgres://db/shop"},
        {"postgres://db/shop?schema=box&sslmode=require", "postgres://db/shop?sslmode=require", "box", "",
         "postgres://db/shop"},
        {"postgres://u:" SECRET "@a:1,b:2/shop?target_session_attrs=any&prefix=_",
         "postgres://u:" SECRET "@a:1,b:2/shop?target_session_attrs=any", "", "_",
         "postgres://u@a,b:1,2/shop"},
        {"postgres:///shop?host=/run/pg&password=" SECRET "&user=me",
         "postgres:///shop?host=/run/pg&password=" SECRET "&user=me", "", "", "postgres://me@/run/pg/shop"},
        {"postgres://", "postgres://", "", "", "postgres:///"},
        {"postgres://?service=shop", "postgres://?service=shop", "", "", "postgres:///?service=shop"},
        {"postgres://[::1]:5433/shop?schema=s", "postgres://[::1]:5433/shop", "s", "",
         "postgres://::1:5433/shop"},
        /* what looks like a parameter and is a password, a user, a host or a database */
        {"postgres://u:" SECRET "?schema=no@h/d?schema=yes", "postgres://u:" SECRET "?schema=no@h/d", "yes",
         "", "postgres://u@h/d"},
        {"postgres://u:" SECRET "%3Fschema=no@h/d", "postgres://u:" SECRET "%3Fschema=no@h/d", "", "",
         "postgres://u@h/d"},
        {"postgres://h/d%3Fschema=no", "postgres://h/d%3Fschema=no", "", "", "postgres://h/d?schema=no"},
        {"postgres://[a?schema=no]/d?schema=yes", "postgres://[a?schema=no]/d", "yes", "",
         "postgres://a?schema=no/d"},
        {"postgres://h/d%0a%1b[2J", "postgres://h/d%0a%1b[2J", "", "", "postgres://h/d\\x0a\\x1b[2J"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_pg_url url;
        struct hk_err err = {0};
        enum hk_code rc = hk_pg_url_parse(rows[i].url, &url, &err);
        NOTE_IF(rc != HK_OK, "%s: %s\n", rows[i].url, err.message);
        assert_int_equal(rc, HK_OK);
        assert_string_equal(url.conninfo, rows[i].conninfo);
        assert_string_equal(url.schema, rows[i].schema);
        assert_string_equal(url.prefix, rows[i].prefix);
        assert_string_equal(url.place, rows[i].place);
        hk_pg_url_fini(&url);
        assert_null(url.conninfo);
    }
}

static void hostile_urls_are_refused_without_showing_the_password(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "",
        "postgres",
        "postgres:",
        "postgres:/",
        "sqlite:" SECRET,
        "POSTGRES://u:" SECRET "@h/d",
        "postgres://u:" SECRET "@h/d?schema=",
        "postgres://u:" SECRET "@h/d?schema",
        "postgres://u:" SECRET "@h/d?schema=a&schema=a",
        "postgres://u:" SECRET "@h/d?schema=1a",
        "postgres://u:" SECRET "@h/d?schema=a.b",
        "postgres://u:" SECRET "@h/d?schema=a\"b",
        "postgres://u:" SECRET "@h/d?schema=a%62",
        "postgres://u:" SECRET "@h/d?schema=\xc3\xa4",
        "postgres://u:" SECRET "@h/d?schema=a=b",
        "postgres://u:" SECRET "@h/d?schema=aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg",
        "postgres://u:" SECRET "@h/d?prefix=aaaaaaaaaabbbbbbbbbbccccccccccddd", /* 33 */
        "postgres://u:" SECRET "@h/d?prefix=a;b",
        "postgres://u:" SECRET "@h/d?Schema=a",
        "postgres://u:" SECRET "@h/d?sch%65ma=a",
        "postgres://u:" SECRET "@h/d?unknown=1",
        "postgres://u:" SECRET "@h/d?sslmode",
        "postgres://u:%zz" SECRET "@h/d",
        "postgres://u:" SECRET "%00@h/d",
        "postgres://u:" SECRET "/x@h/d?y",
        "postgres://u:a/" SECRET "@h/d",
        "postgres://u:1/" SECRET "@h/d",
        "postgres://u:1/x?" SECRET "=1@h/d",
        "postgres://u:" SECRET "/x",
        "postgres://u:a@" SECRET "@h/d",
        "postgres://u:a@h:1" SECRET "/d",
        "postgres://u@h/d?port=" SECRET,
        "postgres://u:" SECRET "@[h/d",
        "postgres://u:" SECRET "@[]/d",
        "postgres://u:" SECRET "@h/d?password=%" SECRET,
        "postgres://u:" SECRET "@h/d?&",
        "postgres://u:" SECRET "@h/d?=",
    };
    for (size_t i = 0; i < COUNT(urls); i++) {
        struct hk_pg_url url = {.place = "as it was"};
        struct hk_err err = {0};
        enum hk_code rc = hk_pg_url_parse(urls[i], &url, &err);
        NOTE_IF(rc == HK_OK, "taken: %s\n", urls[i]);
        assert_int_equal(rc, HK_INVALID);
        assert_int_equal(err.code, HK_INVALID);
        NOTE_IF(strstr(err.message, SECRET), "shown: %s\n", err.message);
        assert_null(strstr(err.message, SECRET));
        assert_true(strlen(err.message) > 10);
        assert_string_equal(url.place, "as it was");
    }
}

static void very_long_urls_are_refused_or_cut_in_messages(void **state)
{
    (void)state;
    static char text[20000];
    struct hk_pg_url url;
    struct hk_err err = {0};
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "postgres://h/", 13);
    assert_int_equal(hk_pg_url_parse(text, &url, &err), HK_INVALID);
    text[4000] = '\0';
    memcpy(text, "postgres://u@", 13);
    assert_int_equal(hk_pg_url_parse(text, &url, &err), HK_OK);
    assert_true(strlen(url.place) < sizeof url.place);
    hk_pg_url_fini(&url);
}

static void names(const char *schema, const char *prefix, const char *sql, const char *expected)
{
    struct hk_pg_url url = {0};
    struct hk_buf out;
    snprintf(url.schema, sizeof url.schema, "%s", schema);
    snprintf(url.prefix, sizeof url.prefix, "%s", prefix);
    hk_buf_init(&out, 1000);
    hk_pg_url_names(&url, sql, &out);
    assert_string_equal(hk_buf_cstr(&out), expected);
    hk_buf_fini(&out);
}

static void names_are_filled_in_quoted(void **state)
{
    (void)state;
    names("", "", "SELECT 1 FROM @outbox_meta m", "SELECT 1 FROM \"outbox_meta\" m");
    names("s", "", "@a,@b", "\"s\".\"a\",\"s\".\"b\"");
    names("", "P_", "CREATE INDEX @@a_1 ON @a(b)", "CREATE INDEX \"P_a_1\" ON \"P_a\"(b)");
    names("S", "p", "CREATE INDEX @@a ON @a", "CREATE INDEX \"pa\" ON \"S\".\"pa\"");
    names("s", "p", "'[1,2]' @> x <@ y @ 5 @", "'[1,2]' @> x <@ y @ 5 @");
    names("s", "p", "", "");
}

/* Two names that are cut to PostgreSQL's limit could become one. */
static void no_name_of_ours_is_too_long_for_the_longest_prefix(void **state)
{
    (void)state;
    size_t found = 0;
    for (const struct hk_migration *m = hk_migrations_postgres; m->version; m++)
        for (const char *at = m->sql; (at = strchr(at, '@')); found++) {
            at += strspn(at, "@");
            assert_in_range(strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789"), 1, HK_PG_LONGEST_NAME);
        }
    assert_true(found > 20);
}

/* ---- no memory ---- */

static unsigned allocations, fail_at;

static void *fail_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return ++allocations == fail_at ? NULL : realloc(ptr, bytes);
}

static void fail_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void no_memory_is_said_and_nothing_leaks(void **state)
{
    (void)state;
    const struct hk_allocator allocator = {fail_resize, fail_release, NULL};
    struct hk_pg_url url;
    struct hk_err err = {0};
    enum hk_code rc = HK_NOMEM;
    hk_allocator_set(&allocator);
    for (fail_at = 1; rc != HK_OK && fail_at < 50; fail_at++) {
        allocations = 0;
        rc = hk_pg_url_parse("postgres://u:" SECRET "@h/d?schema=s&sslmode=require&prefix=p", &url, &err);
        assert_true(rc == HK_OK || rc == HK_NOMEM);
    }
    assert_int_equal(rc, HK_OK);
    assert_true(fail_at > 3);
    hk_pg_url_fini(&url);
    hk_allocator_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_parameters_are_taken_out_and_the_rest_is_left_alone),
        cmocka_unit_test(hostile_urls_are_refused_without_showing_the_password),
        cmocka_unit_test(very_long_urls_are_refused_or_cut_in_messages),
        cmocka_unit_test(names_are_filled_in_quoted),
        cmocka_unit_test(no_name_of_ours_is_too_long_for_the_longest_prefix),
        cmocka_unit_test(no_memory_is_said_and_nothing_leaks),
    };
    return cmocka_run_group_tests_name("PostgreSQL URLs", tests, NULL, NULL);
}
