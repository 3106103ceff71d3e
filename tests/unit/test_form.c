/* SPDX-License-Identifier: Apache-2.0 */
/* Forms: every result says its schema, what was written is read and written again as it was, and no text breaks the reader. */
#include <math.h>
#include <string.h>

#include <hikyaku/alloc.h>
#include <jansson.h>

#include "base/str.h"
#include "check.h"
#include "desk/desk.h"
#include "desk/form.h"
#include "desk/forms.h"
#include "desk/status.h"
#include "failing.h"

/* ---- a form with every kind of member ---- */

enum color {
    RED = 0,
    GREEN,
    BLUE,
    NCOLORS
};

static const char *color_word(unsigned color)
{
    static const char *const words[NCOLORS] = {"red", NULL, "blue"};
    return words[color];
}

struct leaf {
    uint32_t n;
    int32_t sign;
};

struct all {
    struct hk_str str, text, bytes, raw;
    const char *cstr;
    char chars[8];
    int64_t id, time_ms, now_ms, since_ms, until_ms;
    bool yes, has_leaf, has_more;
    double number, ratio;
    uint64_t big, limit, maybe;
    enum color color;
    struct hk_err failure;
    struct leaf leaf, always;
    struct leaf *leaves;
    size_t n_leaves;
    struct leaf pair[2];
    uint64_t values[4];
    size_t n_values;
    uint32_t more;
};

static void form_leaf(struct hk_form *form, void *result)
{
    struct leaf *leaf = result;
    hk_form_uint(form, "n", &leaf->n);
    hk_form_int(form, "sign", &leaf->sign);
}

static void form_value(struct hk_form *form, void *result)
{
    hk_form_uint(form, NULL, (uint64_t *)result);
}

static void form_all(struct hk_form *form, void *result)
{
    struct all *o = result;
    hk_form_now(form, "now", &o->now_ms);
    hk_form_str(form, "str", &o->str);
    hk_form_text(form, "text", &o->text);
    hk_form_bytes(form, "bytes", &o->bytes);
    hk_form_raw(form, "raw", &o->raw);
    hk_form_cstr(form, "cstr", &o->cstr);
    hk_form_chars(form, "chars", o->chars, sizeof o->chars);
    hk_form_id(form, "id", &o->id);
    hk_form_time(form, "time", &o->time_ms);
    hk_form_age(form, "age", &o->since_ms);
    hk_form_left(form, "left", &o->until_ms);
    hk_form_bool(form, "yes", &o->yes);
    hk_form_double(form, "number", &o->number);
    hk_form_ratio(form, "ratio", &o->ratio);
    hk_form_uint(form, "big", &o->big);
    hk_form_limit(form, "limit", &o->limit);
    hk_form_maybe(form, "maybe", &o->maybe);
    hk_form_choice(form, "color", &o->color, color_word, NCOLORS);
    hk_form_failure(form, "failure", &o->failure);
    hk_form_object(form, "leaf", &o->has_leaf, form_leaf, &o->leaf);
    hk_form_object(form, "always", NULL, form_leaf, &o->always);
    hk_form_list(form, "leaves", &HK_FORM_ITEMS(o->leaves, o->n_leaves, form_leaf));
    hk_form_list(
        form, "pair",
        &(struct hk_form_list){
            .items = o->pair, .most = 2, .size = sizeof o->pair[0], .fn = form_leaf, .in_a_line = true});
    hk_form_list(form, "values",
                 &(struct hk_form_list){.items = o->values,
                                        .n = &o->n_values,
                                        .most = 4,
                                        .size = sizeof o->values[0],
                                        .fn = form_value,
                                        .are_values = true});
    if (hk_form_if(form, "more", &o->has_more)) {
        hk_form_uint(form, "more", &o->more);
        hk_form_end(form);
    }
    hk_form_null(form, "next");
}

static struct leaf leaves[] = {{1, -1}, {UINT32_MAX, INT32_MIN}, {0, INT32_MAX}};
static const struct all full = {.str = {"a\0b\"\xe3\x81\x82", 7},
                                .text = {"t", 1},
                                .bytes = {"\xff\x00z", 3},
                                .raw = {"{\"x\":[1.0,{}],\"y\":\"\\u0041\"}", 27},
                                .cstr = "c",
                                .chars = "1234567",
                                .id = INT64_MIN,
                                .time_ms = -1,
                                .now_ms = 1789000000000,
                                .since_ms = 1789000000000 - 5,
                                .until_ms = 1789000000000 - 7,
                                .yes = true,
                                .has_leaf = true,
                                .has_more = true,
                                .number = -1.25e-300,
                                .ratio = 0.1,
                                .big = UINT64_MAX,
                                .limit = 3,
                                .maybe = 0,
                                .color = BLUE,
                                .failure = {.code = HK_BUSY, .message = "no"},
                                .leaf = {7, 8},
                                .always = {9, 10},
                                .leaves = leaves,
                                .n_leaves = 3,
                                .pair = {{1, 2}, {3, 4}},
                                .values = {5, UINT64_MAX},
                                .n_values = 2,
                                .more = 1};
static const struct all bare = {.ratio = -1, .maybe = UINT64_MAX, .now_ms = 1};

static void write_form(struct hk_buf *out, hk_form_fn *fn, const void *result, bool pretty)
{
    struct hk_json json;
    hk_buf_reset(out);
    hk_json_init(&json, out, pretty);
    hk_form_write(&json, fn, result);
    assert_int_equal(json.depth, 0);
    assert_int_equal(hk_buf_status(out), HK_OK);
}

/* Written, read, written: the same. The text is left in `out`. */
static void check_round_trip(hk_form_fn *fn, const void *result, size_t size, struct hk_buf *out)
{
    struct hk_buf again;
    struct hk_pool mem = {NULL};
    struct hk_err err = {.message = ""};
    hk_buf_init(&again, HK_FORM_TEXT_MAX);
    write_form(out, fn, result, true);
    void *read = hk_pool_alloc(&mem, 1, size);
    enum hk_code rc = hk_form_read(hk_buf_str(out), fn, &mem, read, &err);
    NOTE_IF(rc != HK_OK, "%s\n%s\n", err.message, hk_buf_cstr(out));
    assert_int_equal(rc, HK_OK);
    write_form(&again, fn, read, true);
    assert_string_equal(hk_buf_cstr(&again), hk_buf_cstr(out));
    hk_pool_fini(&mem);
    hk_buf_fini(&again);
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 1 << 20);
    check_round_trip(form_all, &bare, sizeof bare, &out);
    check_round_trip(form_all, &full, sizeof full, &out);
    write_form(&out, form_all, &full, false);
    assert_string_equal(
        hk_buf_cstr(&out),
        "{\"now\":\"2026-09-10T00:26:40.000Z\",\"str\":\"a\\u0000b\\\"\xe3\x81\x82\",\"text\":\"t\","
        "\"bytes_base64\":\"/wB6\",\"raw\":{\"x\":[1.0,{}],\"y\":\"\\u0041\"},\"cstr\":\"c\",\"chars\":\"1234567\","
        "\"id\":\"-9223372036854775808\",\"time\":\"1969-12-31T23:59:59.999Z\",\"age\":5,\"left\":-7,\"yes\":true,"
        "\"number\":-1.25e-300,\"ratio\":0.1,\"big\":18446744073709551615,\"limit\":3,\"maybe\":0,\"color\":\"blue\","
        "\"failure\":\"no\",\"leaf\":{\"n\":7,\"sign\":8},\"always\":{\"n\":9,\"sign\":10},\"leaves\":[{\"n\":1,\"sign\":-1},"
        "{\"n\":4294967295,\"sign\":-2147483648},{\"n\":0,\"sign\":2147483647}],\"pair\":[{\"n\":1,\"sign\":2},"
        "{\"n\":3,\"sign\":4}],\"values\":[5,18446744073709551615],\"more\":1,\"next\":null}");
    hk_buf_fini(&out);
}

static void values_are_what_they_were(void **state)
{
    (void)state;
    struct hk_buf out;
    struct hk_pool mem = {NULL};
    struct all got = {.n_leaves = 0};
    hk_buf_init(&out, 1 << 20);
    write_form(&out, form_all, &full, false);
    assert_int_equal(hk_form_read(hk_buf_str(&out), form_all, &mem, &got, NULL), HK_OK);
    assert_true(hk_str_eq(got.str, full.str) && hk_str_eq(got.bytes, full.bytes) &&
                hk_str_eq(got.raw, full.raw));
    assert_string_equal(got.cstr, "c");
    assert_string_equal(got.chars, "1234567");
    assert_true(got.id == INT64_MIN && got.time_ms == -1 && got.since_ms == full.since_ms &&
                got.until_ms == full.until_ms);
    assert_true(got.number == full.number && got.ratio == 0.1 && got.big == UINT64_MAX && got.color == BLUE);
    assert_true(got.failure.code != HK_OK && got.leaf.n == 7 && got.n_leaves == 3 &&
                got.leaves[1].sign == INT32_MIN);
    assert_true(got.n_values == 2 && got.values[1] == UINT64_MAX && got.has_more && got.pair[1].sign == 4);
    hk_pool_fini(&mem);
    hk_buf_fini(&out);
}

/* ---- what is wrong ---- */

/* The full text with `what` replaced. */
static void replace(struct hk_buf *out, const char *what, const char *with)
{
    struct hk_buf text;
    hk_buf_init(&text, 1 << 20);
    write_form(&text, form_all, &full, false);
    const char *all = hk_buf_cstr(&text), *at = strstr(all, what);
    NOTE_IF(!at, "%s is not there\n", what);
    assert_non_null(at);
    hk_buf_reset(out);
    (void)hk_buf_add(out, all, (size_t)(at - all));
    (void)hk_buf_adds(out, with);
    (void)hk_buf_adds(out, at + strlen(what));
    hk_buf_fini(&text);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;

    static const struct {
        const char *what, *with, *says;
    } cases[] = {
        {"\"text\":\"t\"", "\"text\":null", "text must be a string"},
        {"\"text\":\"t\",", "", "text is missing"},
        {"\"str\":\"", "\"str\":5,\"x\":\"", "str must be a string or null"},
        {"\"bytes_base64\":\"/wB6\"", "\"bytes_base64\":\"/wB\\n\"", "bytes_base64 must be base64"},
        {"\"bytes_base64\":\"/wB6\",", "", "bytes is missing"},
        {"\"cstr\":\"c\"", "\"cstr\":\"c\\u0000\"", "cstr must not hold a NUL"},
        {"\"cstr\":\"c\"", "\"cstr\":[]", "cstr must be a string or null"},
        {"\"1234567\"", "\"12345678\"", "chars is too long"},
        {"\"-9223372036854775808\"", "\"-9223372036854775809\"", "id must be an id"},
        {"\"-9223372036854775808\"", "17", "id must be a string or null"},
        {"\"1969-12-31T23:59:59.999Z\"", "\"yesterday\"", "time must be a time"},
        {"\"age\":5", "\"age\":-5", "age must be a whole number from 0"},
        {"\"left\":-7", "\"left\":1.5", "left must be a whole number"},
        {"\"yes\":true", "\"yes\":1", "yes must be true or false"},
        {"-1.25e-300", "1e400", "number is a number that is too large"},
        {"-1.25e-300", "1e99999999999999999999", "number is a number that is too large"},
        {"-1.25e-300", "\"1\"", "number must be a number"},
        {"18446744073709551615,\"limit", "18446744073709551616,\"limit", "big must be a whole number"},
        {"\"blue\"", "\"green\"", "color is a word"},
        {"\"blue\"", "\"\"", "color is a word"},
        {"\"failure\":\"no\"", "\"failure\":{}", "failure must be a string or null"},
        {"\"leaf\":{\"n\":7,", "\"leaf\":{\"n\":4294967296,", "leaf.n must be a whole number"},
        {"\"leaf\":{", "\"leaf\":[],\"x\":{", "leaf must be an object or null"},
        {"\"always\":{", "\"always\":null,\"x\":{", "always must be an object"},
        {"{\"n\":0,\"sign\":2147483647}", "{\"n\":0,\"sign\":2147483648}", "leaves[2].sign must be"},
        {"{\"n\":0,\"sign\":2147483647}", "7", "leaves[2] must be an object"},
        {"{\"n\":0,\"sign\":2147483647}", "{}", "leaves[2].n is missing"},
        {"\"leaves\":[", "\"leaves\":{},\"x\":[", "leaves must be an array"},
        {"\"pair\":[", "\"pair\":[{\"n\":1,\"sign\":2},", "pair has too many items"},
        {"\"pair\":[{\"n\":1,\"sign\":2},", "\"pair\":[", "pair has too few items"},
        {"\"values\":[5,", "\"values\":[\"5\",", "values[0] must be a whole number"},
        {"\"values\":[5,", "\"values\":[1,2,3,5,", "values has too many items"},
        {"\"more\":1", "\"more\":null", "more must be a whole number"},
        {"\"next\":null}", "\"next\":null", "not JSON"},
        {",\"next\":null", "", "next is missing"},
    };

    struct hk_buf text;
    hk_buf_init(&text, 1 << 20);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_pool mem = {NULL};
        struct hk_err err = {.message = ""};
        struct all got = {.n_leaves = 0};
        replace(&text, cases[i].what, cases[i].with);
        enum hk_code rc = hk_form_read(hk_buf_str(&text), form_all, &mem, &got, &err);
        NOTE_IF(rc != HK_INVALID || !strstr(err.message, cases[i].says), "%s: %s\n", cases[i].says,
                err.message);
        assert_int_equal(rc, HK_INVALID);
        assert_non_null(strstr(err.message, cases[i].says));
        hk_pool_fini(&mem);
    }
    hk_buf_fini(&text);
}

static enum hk_code read_text(const char *text)
{
    struct hk_pool mem = {NULL};
    struct hk_err err = {.message = ""};
    struct all got = {.n_leaves = 0};
    enum hk_code rc = hk_form_read(hk_str_of(text), form_all, &mem, &got, &err);
    assert_true(rc == HK_OK || err.message[0]);
    hk_pool_fini(&mem);
    return rc;
}

static void order_and_strangers_do_not_matter(void **state)
{
    (void)state;
    static const char *const cases[] = {"", "null", "[]", "\"x\"", "5", "{", "{}", "{}{}", "{\"now\":null}"};
    struct hk_buf text;
    hk_buf_init(&text, 1 << 20);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(read_text(cases[i]), HK_INVALID);
    replace(&text, "\"text\":\"t\",", "\"stranger\":[[[[{\"text\":5}]]]],\"te\\u0078t\":\"t\",\"TEXT\":7,");
    assert_int_equal(read_text(hk_buf_cstr(&text)), HK_OK);
    replace(&text, "{\"now\"", "{\"next\":[1],\"leaf\":null,\"stranger\":{\"now\":[]},\"now\"");
    assert_int_equal(read_text(hk_buf_cstr(&text)), HK_OK);
    /* nesting costs no stack */
    hk_buf_reset(&text);
    (void)hk_buf_adds(&text, "{\"now\":");
    for (size_t i = 0; i < 100000; i++)
        (void)hk_buf_addc(&text, '[');
    assert_int_equal(read_text(hk_buf_cstr(&text)), HK_INVALID);
    hk_buf_fini(&text);
}

/* A list of items that lack everything gets no memory for all of them. */
static void empty_items_cost_little(void **state)
{
    (void)state;
    struct failing count = {.fail_at = SIZE_MAX};
    const struct hk_allocator allocator = {failing_resize, failing_release, &count};
    struct hk_buf text;
    hk_buf_init(&text, 1 << 22);
    (void)hk_buf_adds(&text, "{\"now\":null,\"items\":[{}");
    for (size_t i = 0; i < 500000; i++)
        (void)hk_buf_adds(&text, ",{}");
    (void)hk_buf_adds(&text, "],\"next\":null,\"shards\":1,\"shards_free\":0}");
    struct hk_pool mem = {NULL};
    struct hk_relays got = {.n = 0};
    hk_allocator_set(&allocator);
    enum hk_code rc = hk_form_read(hk_buf_str(&text), hk_form_relays, &mem, &got, NULL);
    hk_pool_fini(&mem);
    hk_allocator_set(NULL);
    assert_int_equal(rc, HK_INVALID);
    assert_true(count.count < 10);
    hk_buf_fini(&text);
}

static const char *to_read;

static enum hk_code read_it(void)
{
    return read_text(to_read);
}

static enum hk_code schema_of_all(void)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, 1 << 20);
    hk_json_init(&json, &out, false);
    hk_form_schema(&json, form_all);
    enum hk_code rc = hk_buf_status(&out);
    hk_buf_fini(&out);
    return rc;
}

static enum hk_code write_all(void)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, 1 << 20);
    hk_json_init(&json, &out, false);
    hk_form_write(&json, form_all, &full);
    enum hk_code rc = hk_buf_status(&out);
    hk_buf_fini(&out);
    return rc;
}

static void memory_runs_out_everywhere(void **state)
{
    (void)state;
    struct hk_buf text;
    hk_buf_init(&text, 1 << 20);
    write_form(&text, form_all, &full, true);
    to_read = hk_buf_cstr(&text);
    assert_true(fail_each_allocation(read_it, HK_OK) > 0);
    assert_true(fail_each_allocation(schema_of_all, HK_OK) > 1);
    assert_true(fail_each_allocation(write_all, HK_OK) > 1);
    hk_buf_fini(&text);
}

/* ---- schemas ---- */

static bool is_nullable(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    return json_is_array(type) && json_array_size(type) == 2;
}

static json_t *schema_of(hk_form_fn *fn)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, 1 << 22);
    hk_json_init(&json, &out, true);
    hk_form_schema(&json, fn);
    assert_int_equal(hk_buf_status(&out), HK_OK);
    json_t *schema = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
    NOTE_IF(!schema, "%s\n", hk_buf_cstr(&out));
    assert_non_null(schema);
    hk_buf_fini(&out);
    return schema;
}

static void a_schema_says_what_there_is(void **state)
{
    (void)state;
    json_t *schema = schema_of(form_all), *members = json_object_get(schema, "properties");
    json_t *required = json_object_get(schema, "required");
    assert_int_equal(json_object_size(members), 27);
    assert_int_equal(json_array_size(required), 24); /* neither bytes nor bytes_base64, nor more */
    for (size_t i = 0; i < json_array_size(required); i++)
        assert_non_null(json_object_get(members, json_string_value(json_array_get(required, i))));
    assert_true(is_nullable(json_object_get(members, "str")) &&
                !is_nullable(json_object_get(members, "text")));
    assert_string_equal(json_string_value(json_object_get(json_object_get(members, "time"), "format")),
                        "date-time");
    assert_int_equal(json_array_size(json_object_get(json_object_get(members, "color"), "enum")), 2);
    json_t *items = json_object_get(json_object_get(members, "leaves"), "items");
    assert_int_equal(json_array_size(json_object_get(items, "required")), 2);
    assert_true(is_nullable(json_object_get(members, "leaf")));
    json_t *value = json_object_get(json_object_get(members, "values"), "items");
    assert_string_equal(json_string_value(json_object_get(value, "type")), "integer");
    json_decref(schema);
}

/* Types, at any depth, are what JSON Schema knows, and whatever is required is described. */
static void check_schema(const json_t *schema)
{
    static const char *const types[] = {"object", "array", "string", "integer", "number", "boolean"};
    const json_t *type = json_object_get(schema, "type"), *members = json_object_get(schema, "properties");
    if (json_is_object(schema) && json_object_size(schema) == 0) /* anything */
        return;
    const char *name = json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
    bool known = false;
    for (size_t i = 0; name && i < COUNT(types); i++)
        known |= strcmp(name, types[i]) == 0;
    assert_true(known);
    assert_true((strcmp(name, "array") == 0) == (json_object_get(schema, "items") != NULL));
    if (json_object_get(schema, "items"))
        check_schema(json_object_get(schema, "items"));
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++)
        assert_non_null(json_object_get(members, json_string_value(json_array_get(required, i))));
    for (void *i = json_object_iter((json_t *)(uintptr_t)members); i;
         i = json_object_iter_next((json_t *)(uintptr_t)members, i))
        check_schema(json_object_iter_value(i));
}

static void every_operation_has_a_schema(void **state)
{
    (void)state;
    for (size_t i = 0; i < hk_n_ops; i++) {
        if (!hk_ops[i]->form)
            continue;
        assert_true(hk_ops[i]->result_size <= HK_FORM_SIZE_MAX);
        json_t *schema = schema_of(hk_ops[i]->form);
        check_schema(schema);
        json_decref(schema);
    }
}

/* ---- status, relays ---- */

static void status_comes_back(void **state)
{
    (void)state;
    struct hk_status_dest dests[] = {
        {.name = {"", 0}, .breaker = HK_BREAKER_SEEN_OPEN, .lately = {.ratio = -1}},
        {.name = {"a", 1},
         .backlog = {.pending = {3, true}, .processing = 4, .paused = true, .actor = {"x", 1}, .since_ms = 5},
         .known = true,
         .lately = {.in_per_s = 0.25, .ratio = 1, .sent = 9, .has_latency = true, .p50_ms = 1, .p99_ms = 2},
         .limited = true,
         .ready_at_ms = 77,
         .last_error = {"no", 2},
         .ordered = true,
         .blocked = {7, false}}};
    const struct hk_status status = {.store = {.now_ms = 1789000000000,
                                               .due = {1, true},
                                               .oldest_due_ms = 1788999999999,
                                               .attempts = {{0, false}, {5, true}},
                                               .relay = {.known = true, .lane = 3, .until_ms = 1788000000000},
                                               .relays_running = 2},
                                     .blocked_known = true,
                                     .no_figures = {.code = HK_DENIED, .message = "not allowed"},
                                     .dests = dests,
                                     .n_dests = 2};
    struct hk_relay_row rows[] = {{.lane = 1, .until_ms = INT64_MIN, .oldest_due_ms = 1},
                                  {.lane = 2, .until_ms = INT64_MAX, .name = {"r", 1}}};
    const struct hk_relays relays = {.now_ms = 1789000000000, .items = rows, .n = 2, .shards = 64};
    const struct hk_status none = {.n_dests = 0};
    struct hk_buf out;
    hk_buf_init(&out, 1 << 20);
    check_round_trip(hk_form_status, &none, sizeof none, &out);
    check_round_trip(hk_form_status, &status, sizeof status, &out);
    check_round_trip(hk_form_relays, &relays, sizeof relays, &out);
    hk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),  cmocka_unit_test(values_are_what_they_were),
        cmocka_unit_test(what_is_wrong_is_named),      cmocka_unit_test(order_and_strangers_do_not_matter),
        cmocka_unit_test(empty_items_cost_little),     cmocka_unit_test(memory_runs_out_everywhere),
        cmocka_unit_test(a_schema_says_what_there_is), cmocka_unit_test(every_operation_has_a_schema),
        cmocka_unit_test(status_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
