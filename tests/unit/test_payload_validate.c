/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for payloads: what they ask, what they say, and that they never say a value. */
#include <stdlib.h>

#include "check.h"
#include "failing.h"
#include "payload/validate.h"
#include "payload_json.h"

static struct hk_str S(const char *s) {
    return hk_str_of(s);

}

static struct hk_validate *
rules_of(const struct hk_validate_rule *rules, size_t n)

{
    struct hk_validate *validate = NULL;
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_validate_new(rules, n, &validate, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return validate;
}

/* "REASON text", or "ok". */
static const char *asked(const struct hk_validate *validate, const char *type, const char *payload)
{
    static char out[400];
    struct hk_finding finding = {.reason = NULL};
    if (hk_validate_payload(validate, S(type), S(payload), &finding)) {
        assert_null(finding.reason); /* untouched */
        return "ok";
    }
    (void)snprintf(out, sizeof out, "%s %s", finding.reason, finding.text);
    return out;
}

#define MISSING(place)  "VALIDATION_ERROR " place ": required field is missing"
#define IS_NULL(place)  MISSING(place) " (it is null)"
#define MISMATCH(place) "SCHEMA_MISMATCH " place ": must be "

static void each_type_takes_its_own(void **state)
{
    (void)state;

    static const struct {
        const char *field, *payload, *answer;
    } rows[] = {
        {"a", "{\"a\":1}", "ok"},
        {"a", "{\"a\":\"\"}", "ok"},
        {"a", "{\"a\":false}", "ok"},
        {"a", "{\"a\":{}}", "ok"},
        {"a", "{\"a\":null}", IS_NULL("$.a")},
        {"a", "{}", MISSING("$.a")},
        {"a", "[]", MISSING("$.a")},
        {"a", "null", MISSING("$.a")},
        {"customer.id", "{\"customer\":{}}", MISSING("$.customer.id")},
        {"customer.id", "{\"customer\":null}", MISSING("$.customer.id")},
        {"customer.id", "{\"customer\":{\"id\":\"x\"}}", "ok"},
        {"a:string", "{\"a\":\"x\"}", "ok"},
        {"a:string", "{\"a\":1}", MISMATCH("$.a") "a string, is a number"},
        {"a:string", "{\"a\":null}", IS_NULL("$.a")},
        {"a:number", "{\"a\":1.5}", "ok"},
        {"a:number", "{\"a\":\"1.5\"}", MISMATCH("$.a") "a number, is a string"},
        {"orderId:integer", "{\"orderId\":\"x\"}", MISMATCH("$.orderId") "an integer, is a string"},
        {"a:integer", "{\"a\":123456789012345678901234567890}", "ok"},
        {"a:integer", "{\"a\":-1}", "ok"},
        {"a:integer", "{\"a\":1.0}", MISMATCH("$.a") "an integer, is a number"},
        {"a:integer", "{\"a\":1e2}", MISMATCH("$.a") "an integer, is a number"},
        {"a:boolean", "{\"a\":true}", "ok"},
        {"a:boolean", "{\"a\":false}", "ok"},
        {"a:boolean", "{\"a\":0}", MISMATCH("$.a") "a boolean, is a number"},
        {"a:object", "{\"a\":{\"b\":1}}", "ok"},
        {"a:object", "{\"a\":[]}", MISMATCH("$.a") "an object, is an array"},
        {"a:array", "{\"a\":[1]}", "ok"},
        {"a:array", "{\"a\":{}}", MISMATCH("$.a") "an array, is an object"},
        {"a:null", "{\"a\":null}", "ok"},
        {"a:null", "{\"a\":true}", MISMATCH("$.a") "null, is a boolean"},
        {"a:null", "{}", MISSING("$.a")},
        {"a:any", "{\"a\":null}", "ok"},
        {"a:any", "{\"a\":[]}", "ok"},
        {"a:any", "{}", MISSING("$.a")},
        {"a : string", NULL, "column 2"},
        {"a: string", "{\"a\":\"x\"}", "ok"},
        {"a:  integer ", "{\"a\":1}", "ok"},
        {"$:array", "[]", "ok"},
        {"$:object", "[]", MISMATCH("$") "an object, is an array"},
        {"$", "null", IS_NULL("$")},
        {"[0].id", "[{\"id\":1}]", "ok"},
        {"[0].id", "[]", MISSING("$[0].id")},
        {"items[*].sku:string", "{\"items\":[{\"sku\":\"a\"},{\"sku\":\"b\"}]}", "ok"},
        {"items[*].sku:string", "{\"items\":[]}", "ok"},
        {"items[*].sku:string", "{}", MISSING("$.items[*].sku")},
        {"items[*].sku:string", "{\"items\":[{\"sku\":\"a\"},{}]}", MISSING("$.items[1].sku")},
        {"items[*].sku:string", "{\"items\":[{\"sku\":\"a\"},{\"sku\":2}]}",
         MISMATCH("$.items[1].sku") "a string, is a number"},
        {"items[*]:integer", "{\"items\":[1,2,null]}", IS_NULL("$.items[2]")},
        {"\"a.b\"", "{\"a.b\":1}", "ok"},
        {"\"a.b\"", "{\"a\":{\"b\":1}}", MISSING("$.\"a.b\"")},
        {"\"x:y\":integer", "{\"x:y\":1}", "ok"},
        /* a name that is there twice: each must be right, since nobody knows which the receiver takes */
        {"a:integer", "{\"a\":1,\"a\":2}", "ok"},
        {"a:integer", "{\"a\":1,\"a\":\"2\"}", MISMATCH("$.a") "an integer, is a string"},
        {"a:integer", "{\"a\":\"1\",\"a\":2}", MISMATCH("$.a") "an integer, is a string"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct hk_validate_rule rule = {.event_type = "E", .required = &rows[i].field, .n_required = 1};
        struct hk_validate *validate = NULL;
        struct hk_err err;
        if (!rows[i].payload) {
            assert_int_equal(hk_validate_new(&rule, 1, &validate, &err), HK_INVALID);
            assert_non_null(strstr(err.message, rows[i].answer));
            continue;
        }
        validate = rules_of(&rule, 1);
        const char *answer = asked(validate, "E", rows[i].payload);
        NOTE_IF(strcmp(answer, rows[i].answer) != 0, "%s: %s\n", rows[i].field, rows[i].payload);
        assert_string_equal(answer, rows[i].answer);
        hk_validate_free(validate);
    }
}

static void rules_are_for_their_event_types(void **state)
{
    (void)state;
    static const char *const id[] = {"id"};
    const struct hk_validate_rule rules[] = {
        {.event_type = "Order*", .required = id, .n_required = 1},
        {.event_type = "Raw", .max_size_bytes = 4},
        {.json = true, .event_type = "*Json"},
        {.max_size_bytes = 20},
    };
    struct hk_validate *validate = rules_of(rules, COUNT(rules));
    assert_string_equal(asked(validate, "OrderCreated", "{}"), MISSING("$.id"));
    assert_string_equal(asked(validate, "Other", "{}"), "ok");
    assert_string_equal(asked(validate, "Raw", "four"), "ok");
    assert_string_equal(asked(validate, "Raw", "not JSON"),
                        "PAYLOAD_TOO_LARGE the payload has 8 bytes, more than max_size 4");
    assert_string_equal(asked(validate, "AnyJson", "{\"a\":1"),
                        "VALIDATION_ERROR the payload is not JSON: byte 6: the text ends too early");
    assert_string_equal(asked(validate, "", "0123456789012345678901"),
                        "PAYLOAD_TOO_LARGE the payload has 22 bytes, more than max_size 20");
    assert_string_equal(asked(NULL, "Order", "x"), "ok");
    hk_validate_free(validate);
    hk_validate_free(NULL);
}

static void the_first_field_of_the_rule_is_told_whatever_the_order_in_the_payload(void **state)
{
    (void)state;
    static const char *const fields[] = {"a:integer", "b", "c:string"};
    const struct hk_validate_rule rule = {.required = fields, .n_required = COUNT(fields)};
    struct hk_validate *validate = rules_of(&rule, 1);
    assert_string_equal(asked(validate, "E", "{\"c\":1,\"a\":\"x\"}"),
                        MISMATCH("$.a") "an integer, is a string");
    assert_string_equal(asked(validate, "E", "{\"a\":\"x\",\"c\":1}"),
                        MISMATCH("$.a") "an integer, is a string");
    assert_string_equal(asked(validate, "E", "{\"c\":1,\"a\":1}"), MISSING("$.b"));
    assert_string_equal(asked(validate, "E", "{\"c\":1,\"b\":1}"), MISSING("$.a"));
    /* what is not JSON has no fields, wherever it breaks off */
    assert_string_equal(asked(validate, "E", "{\"c\":1,"),
                        "VALIDATION_ERROR the payload is not JSON: byte 7: the text ends too early");
    hk_validate_free(validate);
}

static void all_sixty_four_fields_are_asked(void **state)
{
    (void)state;
    static char names[HK_RULE_FIELDS_MAX + 1][16];
    const char *fields[HK_RULE_FIELDS_MAX + 1];
    char json[2000] = "{";
    struct hk_validate *validate = NULL;
    struct hk_err err;
    for (size_t i = 0; i <= HK_RULE_FIELDS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "f%zu", i);
        fields[i] = names[i];
        size_t len = strlen(json);
        if (i < HK_RULE_FIELDS_MAX - 1)
            (void)snprintf(json + len, sizeof json - len, "%s\"f%zu\":1", i ? "," : "", i);
    }
    struct hk_validate_rule rule = {.required = fields, .n_required = HK_RULE_FIELDS_MAX};
    validate = rules_of(&rule, 1);
    size_t len = strlen(json);
    (void)snprintf(json + len, sizeof json - len, "}");
    assert_string_equal(asked(validate, "E", json), MISSING("$.f63"));
    (void)snprintf(json + len, sizeof json - len, ",\"f63\":0}");
    assert_string_equal(asked(validate, "E", json), "ok");
    hk_validate_free(validate);
    rule.n_required = HK_RULE_FIELDS_MAX + 1;
    assert_int_equal(hk_validate_new(&rule, 1, &validate, &err), HK_INVALID);
    assert_string_equal(err.message, "validate rule 1: more than 64 required fields");
}

static void bad_fields_are_refused_with_their_place(void **state)
{
    (void)state;

    static const struct {
        const char *field, *why;
    } rows[] = {
        {"", "column 1: the name of a field is expected here"},
        {"a..b", "column 3: the name of a field is expected here"},
        {"a:int", "column 3: a type is expected after the colon: string, number, integer, boolean, object, "
                  "array, null or any"},
        {"名:", "column 3: a type is expected after the colon: string, number, integer, boolean, object, "
                "array, null or any"},
        {"a:String",
         "column 3: a type is expected after the colon: string, number, integer, boolean, object, "
         "array, null or any"},
        {"a b:string", "column 2: a dot or [ is expected here; a name that holds blanks or any of . [ ] : "
                       "stands in quotes"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        static const char *const ok[] = {"ok"};
        const struct hk_validate_rule two[] = {{.required = ok, .n_required = 1},
                                               {.required = &rows[i].field, .n_required = 1}};
        struct hk_validate *validate = NULL;
        struct hk_err err;
        char whole[300];
        assert_int_equal(hk_validate_new(two, 2, &validate, &err), HK_INVALID);
        (void)snprintf(whole, sizeof whole, "validate rule 2: required field 1: %s", rows[i].why);
        assert_string_equal(err.message, whole);
        assert_null(validate);
    }
}

static void long_places_leave_room_for_the_words(void **state)
{
    (void)state;
    char field[256];
    memset(field, 'x', 255);
    field[255] = '\0';
    const char *fields[] = {field};
    struct hk_finding finding;
    const struct hk_validate_rule rule = {.required = fields, .n_required = 1};
    struct hk_validate *validate = rules_of(&rule, 1);
    assert_false(hk_validate_payload(validate, S("E"), S("{}"), &finding));
    assert_non_null(strstr(finding.text, "…: required field is missing"));
    hk_validate_free(validate);
}

static void no_finding_repeats_a_value(void **state)
{
    (void)state;
    static const char *const fields[] = {"a:string", "b:integer", "a[*].c:object", "c.b[0]:boolean"};
    const struct hk_validate_rule rule = {.required = fields, .n_required = COUNT(fields)};
    struct hk_validate *validate = rules_of(&rule, 1);
    struct hk_rng rng;
    struct hk_buf json;
    struct hk_finding finding;
    size_t bad = 0;
    hk_rng_seed(&rng, 6, 6);
    hk_buf_init(&json, (size_t)1 << 20);
    for (int i = 0; i < 5000; i++) {
        random_json(&rng, &json);
        if (i % 2)
            spoil(&rng, &json);
        if (hk_validate_payload(validate, S("E"), hk_buf_str(&json), &finding))
            continue;
        bad++;
        static const char *const values[] = {"taro", "4111", "東", "123456789012345678901234567890",
                                             "-1.5E-7"};
        for (size_t k = 0; k < COUNT(values); k++)
            assert_null(strstr(finding.text, values[k]));
        assert_true(strlen(finding.text) < sizeof finding.text - 1);
    }
    assert_true(bad > 1000);
    hk_buf_fini(&json);
    hk_validate_free(validate);
}

static enum hk_code build_and_ask(void)
{
    static const char *const fields[] = {"a:string", "items[*].b"};
    const struct hk_validate_rule rules[] = {{.required = fields, .n_required = 2}, {.json = true}};
    struct hk_validate *validate = NULL;
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_validate_new(rules, 2, &validate, &err);
    assert_int_equal(err.code, rc);
    hk_validate_free(validate);
    return rc;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(build_and_ask, HK_OK) > 4);
}

static void asking_allocates_nothing(void **state)
{
    (void)state;
    static const char *const fields[] = {"a:string", "items[*].b"};
    const struct hk_validate_rule rule = {.required = fields, .n_required = 2};
    struct hk_validate *validate = rules_of(&rule, 1);
    struct failing f = {.fail_at = 0, .for_ever = true};
    struct hk_allocator allocator = {failing_resize, failing_release, &f};
    struct hk_finding finding;
    hk_allocator_set(&allocator);
    bool good = hk_validate_payload(validate, S("E"), S("{\"a\":\"x\",\"items\":[{\"b\":1}]}"), &finding);
    bool bad = hk_validate_payload(validate, S("E"), S("{\"a\":\"x\",\"items\":[{}]}"), &finding);
    bool broken = hk_validate_payload(validate, S("E"), S("{"), &finding);
    hk_allocator_set(NULL);
    assert_true(good && !bad && !broken);
    assert_int_equal(f.count, 0);
    hk_validate_free(validate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_takes_its_own),
        cmocka_unit_test(rules_are_for_their_event_types),
        cmocka_unit_test(the_first_field_of_the_rule_is_told_whatever_the_order_in_the_payload),
        cmocka_unit_test(all_sixty_four_fields_are_asked),
        cmocka_unit_test(bad_fields_are_refused_with_their_place),
        cmocka_unit_test(long_places_leave_room_for_the_words),
        cmocka_unit_test(no_finding_repeats_a_value),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(asking_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
