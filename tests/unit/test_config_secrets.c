/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration in the hands of people who do not have its secrets. */
#include "check.h"
#include "config_env.h"

static const struct hk_config_env operators = {
    .get = fake_get, .read_file = fake_read, .without_secrets = true};

static char report_text[4096];

static enum hk_code load(const char *text, const struct hk_config_env *env, struct hk_config **out)
{
    struct hk_diags diags;
    struct hk_buf buf;
    hk_diags_init(&diags);
    hk_buf_init(&buf, sizeof report_text - 1);
    enum hk_code rc = hk_config_parse(text, strlen(text), "f", env, &diags, out);
    hk_diags_format(&diags, &buf);
    memcpy(report_text, hk_buf_cstr(&buf), buf.len + 1);
    hk_buf_fini(&buf);
    hk_diags_fini(&diags);
    return rc;
}

#define UNSET "environment variable \"NOPE\" is not set, and there is no ${…:-default}\n"
#define GONE  "cannot read file \"nowhere\": No such file or directory\n"

static const char lacking[] = "store: sqlite:shop.db\n"
                              "destinations:\n"
                              "  a:\n"
                              "    http:\n"
                              "      url: https://a.example\n"
                              "      headers: { X-A: \"${NOPE}\", X-B: b }\n"
                              "      sign: { secret: \"${NOPE}\" }\n"
                              "      auth: { basic: { user: u, password: \"${file:nowhere}\" } }\n"
                              "  b:\n"
                              "    http:\n"
                              "      url: https://b.example\n"
                              "      sign: { secrets: [\"${BILLING_SECRET}\", \"${NOPE}\"] }\n"
                              "      auth: { bearer: \"x${file:nowhere}y\" }\n";

static void test_secrets_that_cannot_be_had_are_left_out(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    assert_int_equal(load(lacking, &operators, &c), HK_OK);
    assert_string_equal(report_text, "");
    const struct hk_conf_http *a = &hk_config_destination(c, 0)->http;
    assert_string_equal(a->url, "https://a.example");
    assert_null(hk_conf_header(a, 0)->value);
    assert_true(hk_conf_header(a, 0)->secret);
    assert_string_equal(hk_conf_header(a, 1)->value, "b");
    assert_null(a->sign.secret);
    assert_string_equal(a->auth.basic.user, "u");
    assert_null(a->auth.basic.password);
    assert_non_null(hk_conf_text(&hk_config_destination(c, 1)->http.sign.secrets, 0));
    assert_null(hk_config_destination(c, 1)->http.auth.bearer);
    assert_string_equal(c->store.url, "sqlite:shop.db");
    hk_config_free(c);
}

static void test_they_are_errors_for_who_sends(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    assert_int_equal(load(lacking, &fake_env, &c), HK_INVALID);
    assert_string_equal(report_text,
                        "f:6:23: " UNSET "f:7:23: " UNSET "f:8:43: " GONE "f:12:46: " UNSET "f:13:23: " GONE);
}

/* Above all the database: acting on another than the relay's would be worse than not acting. */
static void test_everything_else_is_needed_all_the_same(void **state)
{
    (void)state;
    struct hk_config *c = NULL;
    const char *text = "store: \"${NOPE}\"\n"
                       "relay: { batch: \"${NOPE}\" }\n"
                       "admin: \"${NOPE}\"\n"
                       "routes: \"${NOPE}\"\n"
                       "policies: \"${file:nowhere}\"\n"
                       "destinations: { a: { http: { url: \"${NOPE}\", sign: \"${NOPE}\" } } }\n"
                       "default_policy: ${BAD\n";
    assert_int_equal(load(text, &operators, &c), HK_INVALID);
    assert_string_equal(report_text, "f:1:8: " UNSET "f:2:17: " UNSET "f:3:8: " UNSET "f:4:9: " UNSET
                                     "f:5:11: " GONE "f:6:35: " UNSET "f:6:52: " UNSET
                                     "f:7:17: ${ without its }: write $${ for a literal ${\n");
    assert_null(c);
}

static enum hk_code load_lacking(void)
{
    struct hk_config *c = NULL;
    enum hk_code rc = load(lacking, &operators, &c);
    hk_config_free(c);
    return rc;
}

static void test_out_of_memory_is_no_missing_secret(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(load_lacking, HK_OK) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets_that_cannot_be_had_are_left_out),
        cmocka_unit_test(test_they_are_errors_for_who_sends),
        cmocka_unit_test(test_everything_else_is_needed_all_the_same),
        cmocka_unit_test(test_out_of_memory_is_no_missing_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
