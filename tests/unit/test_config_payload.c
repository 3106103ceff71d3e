/* SPDX-License-Identifier: Apache-2.0 */
/* The sections about payloads, from the file to the rules that are asked. */
#include "base/str.h"
#include "check.h"
#include "config/payload.h"
#include "failing.h"

static const char file[] =
    "destinations:\n"
    "  a: { \"null\": {}, auto_redrive: true }\n"
    "  b: { \"null\": {} }\n"
    "validate:\n"
    "  - event_type: Order*\n"
    "    required: [orderId, orderId:integer, \"items[*].sku: string\"]\n"
    "    max_size: 1KiB\n"
    "  - { event_type: Raw, json: true }\n"
    "masks:\n"
    "  - { event_type: \"Order*\", paths: [customer.email, \"items[*].card\"], headers: [x-api-key] }\n"
    "  - paths: [ssn]\n";

static struct hk_config *load(const char *text)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(text, strlen(text), "f", NULL, &diags, &config);
    NOTE_IF(rc != HK_OK && diags.n, "%s\n", diags.items[0].message);
    hk_diags_fini(&diags);
    assert_int_equal(rc, HK_OK);
    return config;
}

static void what_the_file_says_is_in_the_configuration(void **state)
{
    (void)state;
    struct hk_config *c = load(file);
    assert_true(hk_config_destination(c, 0)->auto_redrive);
    assert_false(hk_config_destination(c, 1)->auto_redrive);
    const struct hk_conf_mask *mask = hk_config_mask(c, 0);
    assert_string_equal(mask->event_type, "Order*");
    assert_string_equal(hk_conf_text(&mask->paths, 1), "items[*].card");
    assert_null(hk_conf_text(&mask->paths, 2));
    assert_string_equal(hk_conf_text(&mask->headers, 0), "x-api-key");
    assert_null(hk_config_mask(c, 1)->event_type);
    assert_null(hk_config_mask(c, 2));
    assert_string_equal(hk_conf_text(&hk_config_validate(c, 0)->required, 1), "orderId:integer");
    hk_config_free(c);
}

static void rules_and_masks_do_what_the_file_says(void **state)
{
    (void)state;
    struct hk_config *c = load(file);
    struct hk_validate *validate = NULL;
    struct hk_masks *masks = NULL;
    struct hk_err err;
    struct hk_finding finding;
    struct hk_buf out;
    assert_int_equal(hk_config_make_validate(c, &validate, &err), HK_OK);
    assert_int_equal(hk_config_make_masks(c, &masks, &err), HK_OK);
    hk_config_free(c); /* they stand alone */
    struct hk_str type = hk_str_of("OrderCreated");
    assert_true(hk_validate_payload(validate, type, hk_str_of("{\"orderId\":1,\"items\":[{\"sku\":\"x\"}]}"),
                                    &finding));
    assert_false(
        hk_validate_payload(validate, type, hk_str_of("{\"orderId\":\"1\",\"items\":[]}"), &finding));
    assert_string_equal(finding.text, "$.orderId: must be an integer, is a string");
    assert_string_equal(finding.reason, "SCHEMA_MISMATCH");
    assert_false(hk_validate_payload(validate, hk_str_of("Raw"), hk_str_of("x"), &finding));
    assert_true(hk_validate_payload(validate, hk_str_of("Other"), hk_str_of("x"), &finding));
    hk_buf_init(&out, 1000);
    assert_int_equal(hk_mask_payload(masks, type,
                                     hk_str_of("{\"customer\":{\"email\":\"t@x\"},\"ssn\":1,\"id\":2}"),
                                     &out),
                     HK_OK);
    assert_string_equal(hk_buf_cstr(&out), "{\"customer\":{\"email\":\"***\"},\"ssn\":\"***\",\"id\":2}");
    assert_true(hk_mask_has_header(masks, type, hk_str_of("X-API-KEY")));
    hk_buf_fini(&out);
    hk_validate_free(validate);
    hk_masks_free(masks);
}

static void without_rules_there_is_nothing_to_ask(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    struct hk_validate *validate = (struct hk_validate *)&c;
    struct hk_masks *masks = (struct hk_masks *)&c;
    struct hk_err err;
    assert_int_equal(hk_config_defaults(&c), HK_OK);
    assert_int_equal(hk_config_make_validate(c, &validate, &err), HK_OK);
    assert_int_equal(hk_config_make_masks(c, &masks, &err), HK_OK);
    assert_null(validate);
    assert_null(masks);
    hk_config_free(c);
}

static enum hk_code load_and_make(void)
{
    struct hk_config *c = NULL;
    struct hk_validate *validate = NULL;
    struct hk_masks *masks = NULL;
    struct hk_diags diags;
    struct hk_err err;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(file, strlen(file), "f", NULL, &diags, &c);
    if (rc == HK_OK)
        rc = hk_config_make_validate(c, &validate, &err);
    if (rc == HK_OK)
        rc = hk_config_make_masks(c, &masks, &err);
    hk_validate_free(validate);
    hk_masks_free(masks);
    hk_config_free(c);
    hk_diags_fini(&diags);
    return rc;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(load_and_make, HK_OK) > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_says_is_in_the_configuration),
        cmocka_unit_test(rules_and_masks_do_what_the_file_says),
        cmocka_unit_test(without_rules_there_is_nothing_to_ask),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
