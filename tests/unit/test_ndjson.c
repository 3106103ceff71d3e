/* SPDX-License-Identifier: Apache-2.0 */
/* One line of NDJSON: which columns it gives, that payloads keep their bytes, and that nothing breaks it. */
#include <stdlib.h>

#include <hikyaku/alloc.h>
#include <hikyaku/rng.h>

#include "base/str.h"
#include "check.h"
#include "desk/ndjson.h"

static void json_values_keep_their_bytes(void **state)
{
    (void)state;

    static const struct {
        const char *line, *payload; /* NULL: none */
    } cases[] = {
        {"{\"event_type\":\"T\",\"payload\":{\"a\":1.0 , \"b\":[1,2]}}", "{\"a\":1.0 , \"b\":[1,2]}"},
        {"{ \"payload\" :\t[ \"]}\\\"\" ] ,\"event_type\":\"T\"}", "[ \"]}\\\"\" ]"},
        {"{\"headers\":{\"payload\":\"x\"},\"payload\":-1.50e+3,\"event_type\":\"T\"}", "-1.50e+3"},
        {"{\"policy\":\"\\\"payload\\\":7\",\"payload\":null,\"event_type\":\"T\"}", NULL},
        {"{\"event_type\":\"T\",\"payload\":\"\\u3042\\n\"}", "\xe3\x81\x82\n"},
        {"{\"event_type\":\"T\",\"payload\":\"\"}", ""},
        {"{\"event_type\":\"T\",\"payload\":99999999999999999999}", "99999999999999999999"},
        {"{\"event_type\":\"T\"}", NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_ndjson m;
        struct hk_err err = {.message = ""};
        enum hk_code rc = hk_ndjson_read(hk_str_of(cases[i].line), &m, &err);
        NOTE_IF(rc != HK_OK, "%s: %s\n", cases[i].line, err.message);
        assert_int_equal(rc, HK_OK);
        struct hk_str got = {m.item.message.payload, m.item.message.payload_len};
        assert_true((got.ptr == NULL) == (cases[i].payload == NULL));
        assert_true(cases[i].payload == NULL || hk_str_eq(got, hk_str_of(cases[i].payload)));
        hk_ndjson_free(&m);
    }
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;

    static const struct {
        const char *line, *says;
    } cases[] = {
        {"", "not JSON"},
        {"5", "not JSON"},
        {"[1]", "not an object"},
        {"{}", "event_type"},
        {"{\"event_type\":\"\"}", "event_type"},
        {"{\"event_type\":\"T\",\"destinations\":\"x\"}", "did you mean destination"},
        {"{\"event_type\":\"T\",\"whatever\":1}", "no column"},
        {"{\"event_type\":\"T\",\"max_attempts\":1.5}", "max_attempts"},
        {"{\"event_type\":\"T\",\"max_attempts\":\"3\"}", "max_attempts"},
        {"{\"event_type\":\"T\",\"max_attempts\":1e300}", "max_attempts"},
        {"{\"event_type\":\"T\",\"expires_at\":\"2026-13-01T00:00:00Z\"}", "expires_at"},
        {"{\"event_type\":\"T\",\"headers\":\"{}\"}", "headers"},
        {"{\"event_type\":\"T\",\"policy\":{}}", "policy must be a string"},
        {"{\"event_type\":\"T\"} x", "not JSON"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_ndjson m;
        struct hk_err err = {.message = ""};
        enum hk_code rc = hk_ndjson_read(hk_str_of(cases[i].line), &m, &err);
        NOTE_IF(rc == HK_OK || !strstr(err.message, cases[i].says), "%s: %s\n", cases[i].line, err.message);
        assert_int_equal(rc, HK_INVALID);
        assert_non_null(strstr(err.message, cases[i].says));
    }
}

static const char full[] =
    "{\"destination\":\"a\",\"event_type\":\"T\",\"payload\":{\"x\":[1,{\"y\":\"z\\\"}\"}]},\"message_id\":\"m\","
    "\"message_key\":\"k\",\"headers\":{\"A\":\"b\"},\"content_type\":\"c\",\"correlation_id\":\"d\","
    "\"traceparent\":\"e\",\"idempotency_key\":\"f\",\"not_before\":\"2026-01-01T00:00:00Z\","
    "\"expires_at\":\"2027-01-01T00:00:00Z\",\"policy\":\"p\",\"max_attempts\":9,\"encoding\":\"base64\"}";

static void every_column_arrives(void **state)
{
    (void)state;
    struct hk_ndjson m;
    assert_int_equal(hk_ndjson_read(hk_str_of(full), &m, NULL), HK_OK);
    const struct hk_outbox_message *x = &m.item.message;
    char all[400];
    snprintf(all, sizeof all, "%s %s %s %s %s %s %s %s %s %s %s %s %u %s", x->destination, x->event_type,
             x->message_id, x->message_key, x->headers, x->content_type, x->correlation_id, x->traceparent,
             x->idempotency_key, x->not_before, x->expires_at, x->policy, (unsigned)x->max_attempts,
             m.item.encoding);
    assert_string_equal(all,
                        "a T m k {\"A\":\"b\"} c d e f 2026-01-01T00:00:00Z 2027-01-01T00:00:00Z p 9 base64");
    hk_ndjson_free(&m);
}

/* Lines that are cut, and lines with a few bytes changed: read or refused, and what is read lies within the line. */
static void broken_lines_break_nothing(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 1, 1);
    for (int i = 0; i < 20000; i++) {
        char line[sizeof full];
        struct hk_ndjson m;
        struct hk_err err;
        size_t len = i < (int)sizeof full ? (size_t)i : sizeof full - 1;
        memcpy(line, full, sizeof full);
        for (uint64_t n = hk_rng_upto(&rng, 3); n > 0 && i % 3 != 0; n--)
            line[hk_rng_upto(&rng, sizeof full - 2)] = "{}[]\",:\\ a\n\xff"[hk_rng_upto(&rng, 11)];
        if (hk_ndjson_read((struct hk_str){line, len}, &m, &err) != HK_OK)
            continue;
        assert_true(m.item.message.payload_len <= len);
        hk_ndjson_free(&m);
    }
}

static long allowed;
static bool for_ever;

static void *choosy_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    if (allowed == 0 || (allowed > 0 && --allowed == 0)) {
        allowed = for_ever ? 0 : -1;
        return NULL;
    }
    return realloc(ptr, bytes);
}

static void choosy_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    const struct hk_allocator choosy = {.resize = choosy_resize, .release = choosy_release};
    for (int mode = 0; mode < 2; mode++)
        for (long k = 1; k < 6; k++) {
            struct hk_ndjson m;
            struct hk_err err;
            allowed = k;
            for_ever = mode == 1;
            hk_allocator_set(&choosy);
            enum hk_code rc = hk_ndjson_read(hk_str_of(full), &m, &err);
            assert_int_equal(rc, k <= 2 ? HK_NOMEM : HK_OK); /* the line and the headers */
            if (rc == HK_OK)
                hk_ndjson_free(&m);
            hk_allocator_set(NULL);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_values_keep_their_bytes), cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(every_column_arrives),         cmocka_unit_test(broken_lines_break_nothing),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
