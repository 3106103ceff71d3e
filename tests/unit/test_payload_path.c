/* SPDX-License-Identifier: Apache-2.0 */
/* Paths: how they are read and written, and what they find. */
#include <stdlib.h>

#include "base/str.h"
#include "check.h"
#include "failing.h"
#include "payload/path.h"
#include "payload_json.h"

static struct hk_str S(const char *s) {
    return hk_str_of(s);

}

static void
paths_are_read_and_written(void **state)

{
    (void)state;

    static const struct {
        const char *text, *written; /* NULL: as it was */
    } rows[] = {
        {"a", NULL},
        {"customer.id", NULL},
        {"a.b[0].c", NULL},
        {"items[*].card", NULL},
        {"[0]", NULL},
        {"[*][3].x", NULL},
        {"$", NULL},
        {"$.a", "a"},
        {"$[0]", "[0]"},
        {"$ref", NULL},
        {"a.$", "a.\"$\""},
        {"\"$\"", NULL},
        {"\"a.b\"", NULL},
        {"\"a.b\".c", NULL},
        {"a.\"b c\"[1]", NULL},
        {"\"plain\"", "plain"},
        {"\"a\\\"b\\\\c\"", NULL},
        {"\"\"", NULL},
        {"\"*\"", NULL},
        {"\"x:y\"", NULL},
        {"a[007]", "a[7]"},
        {"名前.住所", NULL},
        {"a-b_c/d@e", NULL},
        {"order_id", NULL},
    };
    struct hk_buf out;
    hk_buf_init(&out, 1000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_path *path = NULL, *again = NULL;
        struct hk_err err = {.code = HK_OK};
        enum hk_code rc = hk_path_parse(S(rows[i].text), &path, &err);
        NOTE_IF(rc != HK_OK, "%s: %s\n", rows[i].text, err.message);
        assert_int_equal(rc, HK_OK);
        assert_int_equal(hk_path_parse(S(rows[i].text), NULL, &err), HK_OK);
        hk_buf_reset(&out);
        hk_path_text(path, &out);
        assert_string_equal(hk_buf_cstr(&out), rows[i].written ? rows[i].written : rows[i].text);
        assert_int_equal(hk_path_parse(hk_buf_str(&out), &again, &err), HK_OK);
        hk_path_free(path);
        hk_path_free(again);
    }
    hk_buf_fini(&out);
}

#define NAME_DUE "the name of a field is expected here"
#define QUOTES   "a name that holds *, \\ or \" stands in quotes; [*] is every element"
#define NUMBER   "a number from 0 on, or *, is expected in brackets"
#define NEXT     "a dot or [ is expected here; a name that holds blanks or any of . [ ] : stands in quotes"

static void bad_paths_are_refused_with_the_column(void **state)
{
    (void)state;

    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "column 1: " NAME_DUE},
        {".", "column 1: " NAME_DUE},
        {".a", "column 1: " NAME_DUE},
        {"a.", "column 3: " NAME_DUE},
        {"a..b", "column 3: " NAME_DUE},
        {"$.", "column 3: " NAME_DUE},
        {"a.[0]", "column 3: " NAME_DUE},
        {" a", "column 1: " NAME_DUE},
        {"a b", "column 2: " NEXT},
        {"a ", "column 2: " NEXT},
        {"a]", "column 2: " NEXT},
        {"a[0]b", "column 5: " NEXT},
        {"a:b", "column 2: " NEXT},
        {"$a$[0]x", "column 7: " NEXT},
        {"a\n", "column 2: " NEXT},
        {"名前.*", "column 4: " QUOTES},
        {"a*", "column 2: " QUOTES},
        {"a\"b\"", "column 2: " QUOTES},
        {"a\\b", "column 2: " QUOTES},
        {"\"a", "column 1: the quoted name does not end"},
        {"x.\"a\\\"", "column 3: the quoted name does not end"},
        {"\"a\\n\"", "column 3: in a quoted name, \\ stands before \" or \\ only"},
        {"\"a\\", "column 3: in a quoted name, \\ stands before \" or \\ only"},
        {"\"a\"b", "column 4: " NEXT},
        {"a[", "column 2: the bracket does not end"},
        {"a[1", "column 2: the bracket does not end"},
        {"a[]", "column 3: " NUMBER},
        {"a[-1]", "column 3: " NUMBER},
        {"a[ 1]", "column 3: " NUMBER},
        {"a[b]", "column 3: " NUMBER},
        {"a[**]", "column 3: " NUMBER},
        {"a[\"b\"]", "column 3: " NUMBER},
        {"a[99999999999999999999]", "column 3: a number from 0 on, or *, is expected in brackets"},
        {"a.\x01", "column 3: " NAME_DUE},
        {"a.\xff", "column 1: the path is not UTF-8 text"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int somewhere = 0;
        struct hk_path *path = (struct hk_path *)(void *)&somewhere;
        struct hk_err err = {.code = HK_OK};
        enum hk_code rc = hk_path_parse(S(rows[i].text), &path, &err);
        NOTE_IF(rc != HK_INVALID, "accepted: %s\n", rows[i].text);
        assert_int_equal(rc, HK_INVALID);
        assert_string_equal(err.message, rows[i].why);
        assert_ptr_equal(path, &somewhere); /* untouched */
    }
}

static void long_paths_are_refused(void **state)
{
    (void)state;
    char text[300];
    struct hk_path *path = NULL;
    struct hk_err err;
    memset(text, 'a', sizeof text);
    assert_int_equal(hk_path_parse((struct hk_str){text, 255}, &path, &err), HK_OK);
    hk_path_free(path);
    assert_int_equal(hk_path_parse((struct hk_str){text, 256}, &path, &err), HK_INVALID);
    assert_string_equal(err.message, "column 1: the path is longer than 255 bytes");
    for (size_t i = 1; i < sizeof text; i += 2)
        text[i] = '.';
    assert_int_equal(hk_path_parse((struct hk_str){text, 63}, &path, &err), HK_OK); /* 32 steps */
    hk_path_free(path);
    assert_int_equal(hk_path_parse((struct hk_str){text, 65}, &path, &err), HK_INVALID);
    assert_string_equal(err.message, "column 65: the path has more than 32 steps");
}

static void a_path_ends_where_it_cannot_go_on(void **state)
{
    (void)state;
    struct hk_path *path = NULL;
    struct hk_err err;
    size_t end = 0;
    assert_int_equal(hk_path_parse_at(S("x a.\"b c\"[0]:v"), 2, &path, &end, &err), HK_OK);
    assert_int_equal(end, 12);
    hk_path_free(path);
    assert_int_equal(hk_path_parse_at(S("日 $:v"), 4, &path, &end, &err), HK_OK);
    assert_int_equal(end, 5);
    hk_path_free(path);
    assert_int_equal(hk_path_parse_at(S("日 a..b"), 4, &path, &end, &err), HK_INVALID);
    assert_string_equal(err.message, "column 5: " NAME_DUE);
}

/* ---- following ---- */

/* What `text` finds in `json`: "at:raw" of each hit and "!where" of each miss, in order. */
static const char *found(const char *text, const char *json)
{
    static char out[2000];
    struct hk_path *path = NULL;
    struct hk_err err;
    struct hk_path_state states[1];
    struct hk_path_walk walk;
    struct hk_scan_token token;
    size_t len = 0;
    assert_int_equal(hk_path_parse(S(text), &path, &err), HK_OK);
    const struct hk_path *paths[] = {path};
    hk_path_walk_init(&walk, S(json), paths, states, 1);
    out[0] = '\0';
    for (;;) {
        enum hk_scan_kind kind = hk_path_walk_next(&walk, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR) {
            if (kind == HK_SCAN_ERROR)
                (void)snprintf(out + len, sizeof out - len, "error");
            break;
        }
        char where[200];
        hk_path_walk_where(&walk, 0, where, sizeof where);
        assert_int_equal(hk_path_walk_hit(&walk), states[0].flags == HK_PATH_HIT);
        if (states[0].flags == HK_PATH_HIT)
            len += (size_t)snprintf(out + len, sizeof out - len, "%s=%.*s ", where, (int)token.raw.len,
                                    token.raw.ptr);
        else
            len += (size_t)snprintf(out + len, sizeof out - len, "!%s ", where);
    }
    hk_path_free(path);
    return out;
}

static void paths_find_what_they_lead_to(void **state)
{
    (void)state;

    static const struct {
        const char *path, *json, *found;
    } rows[] = {
        {"a", "{\"a\":1}", "$.a=1 "},
        {"a", "{\"b\":1}", "!$.a "},
        {"a", "{}", "!$.a "},
        {"a", "[]", "!$.a "},
        {"a", "5", "!$.a "},
        {"a", "\"a\"", "!$.a "},
        {"$", "5", "$=5 "},
        {"$", "{\"a\":{\"a\":1}}", "$={ "},
        {"a", "{\"a\":1,\"a\":2}", "$.a=1 $.a=2 "},
        {"a", "{\"\\u0061\":1}", "$.a=1 "},
        {"a", "{\"A\":1}", "!$.a "},
        {"a", "{\"b\":{\"a\":1},\"a\":2}", "$.a=2 "},
        {"a.b", "{\"a\":{\"b\":1}}", "$.a.b=1 "},
        {"a.b", "{\"a\":{}}", "!$.a.b "},
        {"a.b", "{\"a\":null}", "!$.a.b "},
        {"a.b", "{\"a\":[{\"b\":1}]}", "!$.a.b "},
        {"a.b", "{\"a.b\":1}", "!$.a.b "},
        {"\"a.b\"", "{\"a.b\":1}", "$.\"a.b\"=1 "},
        {"a.b", "{\"a\":{},\"a\":{\"b\":1}}", "!$.a.b $.a.b=1 "},
        {"a.b", "{\"a\":{\"b\":1},\"a\":{}}", "$.a.b=1 !$.a.b "},
        {"a.b", "{\"c\":{\"b\":1},\"a\":{\"c\":{\"b\":2},\"b\":3}}", "$.a.b=3 "},
        {"a.a", "{\"a\":{\"a\":{\"a\":1}}}", "$.a.a={ "},
        {"[0]", "[7,8]", "$[0]=7 "},
        {"[1]", "[7,8]", "$[1]=8 "},
        {"[2]", "[7,8]", "!$[2] "},
        {"[0]", "{\"0\":1}", "!$[0] "},
        {"[1][0]", "[[1],[2,3],[4]]", "$[1][0]=2 "},
        {"[*]", "[7,8]", "$[0]=7 $[1]=8 "},
        {"[*]", "[]", ""},
        {"[*]", "{}", "!$[*] "},
        {"[*]", "3", "!$[*] "},
        {"[*].a", "[{\"a\":1},{\"b\":2},{\"a\":3},4]", "$[0].a=1 !$[1].a $[2].a=3 !$[3].a "},
        {"a[*].b[*]", "{\"a\":[{\"b\":[1,2]},{\"b\":[]},{\"b\":[3]}]}",
         "$.a[0].b[0]=1 $.a[0].b[1]=2 $.a[2].b[0]=3 "},
        {"a[*].b[*].c", "{\"a\":[{\"b\":[{\"c\":1},{}]}]}", "$.a[0].b[0].c=1 !$.a[0].b[1].c "},
        {"a[*].b[*].c", "{\"a\":[[],{}]}", "!$.a[0].b[*].c !$.a[1].b[*].c "},
        {"a[*]", "{\"a\":[[9,[8]],{\"x\":[7]},6]}", "$.a[0]=[ $.a[1]={ $.a[2]=6 "},
        {"a", "{\"a\":1", "$.a=1 error"},
        {"a", "{\"a\":1,}", "$.a=1 error"},
        {"\"\"", "{\"\":1}", "$.\"\"=1 "},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *result = found(rows[i].path, rows[i].json);
        NOTE_IF(strcmp(result, rows[i].found) != 0, "%s in %s\n", rows[i].path, rows[i].json);
        assert_string_equal(result, rows[i].found);
    }
}

static void paths_below_the_longest_do_not_disturb(void **state)
{
    (void)state; /* deeper than any path goes */
    char json[2000] = "{\"a\":";
    size_t len = 5;
    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(json + len, sizeof json - len, "[{\"a\":");
    len += (size_t)snprintf(json + len, sizeof json - len, "0");
    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(json + len, sizeof json - len, "}]");
    (void)snprintf(json + len, sizeof json - len, ",\"b\":{\"c\":1}}");
    assert_string_equal(found("b.c", json), "$.b.c=1 ");
    assert_string_equal(found("a[0].a[0].a", json), "$.a[0].a[0].a=[ ");
}

static void what_is_left_is_not_looked_into(void **state)
{
    (void)state;
    struct hk_err err;
    struct hk_path *own[2] = {NULL, NULL};
    assert_int_equal(hk_path_parse(S("a"), &own[0], &err), HK_OK);
    assert_int_equal(hk_path_parse(S("a.b"), &own[1], &err), HK_OK);
    const struct hk_path *paths[] = {own[0], own[1]};
    struct hk_path_state states[2];
    struct hk_path_walk walk;
    struct hk_scan_token token;
    size_t end = 0;
    hk_path_walk_init(&walk, S("{\"a\":{\"b\":1} ,\"a\":{\"b\":2}}"), paths, states, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hk_path_walk_next(&walk, &token), HK_SCAN_OBJECT);
        assert_int_equal(states[0].flags, HK_PATH_HIT);
        assert_int_equal(states[1].flags, 0);
        assert_true(hk_path_walk_leave(&walk, &end));
        assert_int_equal(end, i ? 25 : 12);
    }
    assert_int_equal(hk_path_walk_next(&walk, &token), HK_SCAN_END);
    hk_path_walk_init(&walk, S("{\"a\":{\"b\":1"), paths, states, 2);
    assert_int_equal(hk_path_walk_next(&walk, &token), HK_SCAN_OBJECT);
    assert_false(hk_path_walk_leave(&walk, &end));
    hk_path_free(own[0]);
    hk_path_free(own[1]);
}

static void what_was_left_is_forgotten(void **state)
{
    (void)state; /* the second path led into it, and must not be on its way any more */
    struct hk_err err;
    struct hk_path *own[2] = {NULL, NULL};
    assert_int_equal(hk_path_parse(S("a"), &own[0], &err), HK_OK);
    assert_int_equal(hk_path_parse(S("a.b"), &own[1], &err), HK_OK);
    const struct hk_path *paths[] = {own[0], own[1]};
    struct hk_path_state states[2];
    struct hk_path_walk walk;
    struct hk_scan_token token;
    size_t end = 0;
    hk_path_walk_init(&walk, S("{\"a\":{\"b\":1},\"c\":{\"b\":2},\"a\":3}"), paths, states, 2);
    assert_int_equal(hk_path_walk_next(&walk, &token), HK_SCAN_OBJECT);
    assert_true(hk_path_walk_leave(&walk, &end));
    assert_int_equal(hk_path_walk_next(&walk, &token), HK_SCAN_NUMBER);
    assert_int_equal(states[0].flags, HK_PATH_HIT);
    assert_int_equal(states[1].flags, HK_PATH_MISS);
    assert_int_equal(token.at, 29);
    assert_int_equal(hk_path_walk_next(&walk, &token), HK_SCAN_END);
    hk_path_free(own[0]);
    hk_path_free(own[1]);
}

static void a_long_place_is_cut(void **state)
{
    (void)state;
    struct hk_path *path = NULL;
    struct hk_err err;
    struct hk_path_state states[1];
    struct hk_path_walk walk;
    struct hk_scan_token token;
    char where[24];
    assert_int_equal(hk_path_parse(S("abcdefgh.ijklmnop.qrstuvw.xyz"), &path, &err), HK_OK);
    const struct hk_path *paths[] = {path};
    hk_path_walk_init(&walk, S("1"), paths, states, 1);
    assert_int_equal(hk_path_walk_next(&walk, &token), HK_SCAN_NUMBER);
    for (size_t room = 8; room <= sizeof where; room++) {
        hk_path_walk_where(&walk, 0, where, room);
        assert_true(strlen(where) < room);
        assert_string_equal(where + strlen(where) - 3, "…");
    }
    hk_path_free(path);
}

/* ---- properties ---- */

/* By definition, and slowly: all values with their places, by recursion over the tokens. */
struct naive {
    struct hk_json_scan scan;
    struct hk_buf *out;
};

static void naive_value(struct naive *n, const char *const *steps, size_t n_steps, bool on,
                        const struct hk_scan_token *token)
{
    struct hk_scan_token next;
    if (on && n_steps == 0)
        hk_buf_addf(n->out, "%zu,", token->at);
    if (token->kind != HK_SCAN_OBJECT && token->kind != HK_SCAN_ARRAY)
        return;
    for (unsigned i = 0;; i++) {
        bool fits = false;
        enum hk_scan_kind kind = hk_scan_next(&n->scan, &next);
        if (kind == HK_SCAN_OBJECT_END || kind == HK_SCAN_ARRAY_END)
            return;
        char index[16];
        (void)snprintf(index, sizeof index, "[%u]", i);
        if (kind == HK_SCAN_KEY) {
            fits = n_steps && hk_scan_text_eq(next.raw, S(steps[0]));
            hk_scan_next(&n->scan, &next);
        } else {
            fits = n_steps && (strcmp(steps[0], "[*]") == 0 || strcmp(steps[0], index) == 0);
        }
        naive_value(n, steps + (n_steps > 0), n_steps - (n_steps > 0), on && fits, &next);
    }
}

static void walks_find_the_same_as_the_definition(void **state)
{
    (void)state;
    static const char *const words[] = {"a", "b", "c", "[*]", "[*]", "[0]", "[1]"};
    struct hk_rng rng;
    struct hk_buf json, naive, walked;
    size_t hits = 0;
    hk_rng_seed(&rng, 5, 5);
    hk_buf_init(&json, (size_t)1 << 20);
    hk_buf_init(&naive, (size_t)1 << 20);
    hk_buf_init(&walked, (size_t)1 << 20);
    for (int round = 0; round < 5000; round++) {
        const char *steps[3];
        char text[64] = "$";
        size_t n = (size_t)hk_rng_upto(&rng, 3);
        for (size_t i = 0; i < n; i++) {
            steps[i] = PICK(&rng, words);
            size_t len = strlen(text);
            (void)snprintf(text + len, sizeof text - len, "%s%s", steps[i][0] == '[' ? "" : ".", steps[i]);
        }
        random_json(&rng, &json);
        hk_buf_reset(&naive);
        hk_buf_reset(&walked);
        struct naive by_definition = {.out = &naive};
        struct hk_scan_token token;
        hk_scan_init(&by_definition.scan, hk_buf_str(&json));
        hk_scan_next(&by_definition.scan, &token);
        naive_value(&by_definition, steps, n, true, &token);

        struct hk_path *path = NULL;
        struct hk_err err;
        assert_int_equal(hk_path_parse(S(text), &path, &err), HK_OK);
        const struct hk_path *paths[] = {path};
        struct hk_path_state states[1];
        struct hk_path_walk walk;
        hk_path_walk_init(&walk, hk_buf_str(&json), paths, states, 1);
        enum hk_scan_kind kind = HK_SCAN_END;
        while ((kind = hk_path_walk_next(&walk, &token)) != HK_SCAN_END) {
            assert_int_not_equal(kind, HK_SCAN_ERROR);
            if (states[0].flags & HK_PATH_HIT) {
                hk_buf_addf(&walked, "%zu,", token.at);
                hits++;
            }
        }
        NOTE_IF(strcmp(hk_buf_cstr(&naive), hk_buf_cstr(&walked)) != 0, "%s in %s\n", text,
                hk_buf_cstr(&json));
        assert_string_equal(hk_buf_cstr(&naive), hk_buf_cstr(&walked));
        hk_path_free(path);
    }
    assert_true(hits > 1000);
    hk_buf_fini(&json);
    hk_buf_fini(&naive);
    hk_buf_fini(&walked);
}

static enum hk_code parse_one(void)
{
    struct hk_path *path = NULL;
    struct hk_err err;
    enum hk_code rc = hk_path_parse(S("a.\"b c\"[0][*]"), &path, &err);
    hk_path_free(path);
    return rc;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(parse_one, HK_OK), 1);
}

static void paths_cover_what_lies_within(void **state)
{
    static const struct {
        const char *outer, *inner;
        bool covers;
    } rows[] = {{"a", "a", true},          {"a", "a.b", true},         {"a.b", "a", false},
                {"a", "b", false},         {"a[*].c", "a[3].c", true}, {"a[3].c", "a[*].c", true},
                {"a[1]", "a[2]", false},   {"a[*]", "a.b", false},     {"$", "a.b[2]", true},
                {"\"a.b\"", "a.b", false}, {"a[0]", "a[0].x", true}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hk_path *outer = NULL, *inner = NULL;
        assert_int_equal(hk_path_parse(hk_str_of(rows[i].outer), &outer, NULL), HK_OK);
        assert_int_equal(hk_path_parse(hk_str_of(rows[i].inner), &inner, NULL), HK_OK);
        if (hk_path_covers(outer, inner) != rows[i].covers)
            fail_msg("%s and %s", rows[i].outer, rows[i].inner);
        hk_path_free(outer);
        hk_path_free(inner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_read_and_written),
        cmocka_unit_test(paths_cover_what_lies_within),
        cmocka_unit_test(bad_paths_are_refused_with_the_column),
        cmocka_unit_test(long_paths_are_refused),
        cmocka_unit_test(a_path_ends_where_it_cannot_go_on),
        cmocka_unit_test(paths_find_what_they_lead_to),
        cmocka_unit_test(paths_below_the_longest_do_not_disturb),
        cmocka_unit_test(what_is_left_is_not_looked_into),
        cmocka_unit_test(what_was_left_is_forgotten),
        cmocka_unit_test(a_long_place_is_cut),
        cmocka_unit_test(walks_find_the_same_as_the_definition),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
