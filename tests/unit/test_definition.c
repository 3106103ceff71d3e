/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations of the store: the same tables as the configuration, and less that they may do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "check.h"
#include "config/definition.h"
#include "failing.h"

struct rig {
    char folder[64];
    struct hk_config *config;
};

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct hk_config *parse(const char *text)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse(text, strlen(text), "x.yaml", NULL, &diags, &config), HK_OK);
    hk_diags_fini(&diags);
    return config;
}

static int set_up(void **state)
{
    static struct rig rig;
    char text[512], out[256];
    (void)snprintf(rig.folder, sizeof rig.folder, "/tmp/hk-definition-XXXXXX");
    assert_non_null(mkdtemp(rig.folder));
    (void)snprintf(out, sizeof out, "%s/secrets", rig.folder);
    assert_int_equal(mkdir(out, 0700), 0);
    write_file(out, "token", "s3cret\n");
    write_file(rig.folder, "outside", "not yours\n");
    (void)snprintf(text, sizeof text, "%s/secrets/link", rig.folder);
    assert_int_equal(symlink("../outside", text), 0);
    (void)snprintf(text, sizeof text, "%s/secrets/within", rig.folder);
    assert_int_equal(symlink("token", text), 0);
    (void)snprintf(text, sizeof text,
                   "policies: { own: { max_attempts: 3 } }\n"
                   "definitions: { allow: [10.20.0.0/16, \"fd00::/8\"], secrets: %s/secrets }\n"
                   "destinations: { filed: { http: { url: https://a.example/ } } }\n",
                   rig.folder);
    rig.config = parse(text);
    assert_int_equal(setenv("HIKYAKU_SECRET_A", "aaa", 1), 0);
    assert_int_equal(setenv("OTHER_SECRET", "bbb", 1), 0);
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const files[] = {"secrets/token", "secrets/link", "secrets/within", "outside"};
    struct rig *rig = *state;
    char path[128];
    hk_config_free(rig->config);
    for (size_t i = 0; i < COUNT(files); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", rig->folder, files[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/secrets", rig->folder);
    (void)rmdir(path);
    (void)rmdir(rig->folder);
    return 0;
}

static enum hk_code define(const struct hk_config *config, const char *text, bool secrets,
                           struct hk_pool *mem, struct hk_conf_destination *out,
                           struct hk_definition_wrongs *wrongs, struct hk_err *err)
{
    return hk_config_define(
        &(struct hk_definition_ask){
            .config = config, .name = "crm", .text = hk_str_of(text), .secrets = secrets},
        mem, out, wrongs, err);
}

static void it_is_what_would_stand_in_the_file(void **state)
{
    const struct rig *rig = *state;
    struct hk_pool mem = {NULL};
    struct hk_conf_destination d;
    struct hk_err err = {.message = ""};
    static const char *const texts[] = {
        "http: { url: https://crm.example/hook, method: PUT }\npolicy: own\nlimits: { rate: 5/s }\norder: key\n"
        "allow: [10.20.30.0/24, fd00:1::/32]\n",
        "{\"http\":{\"url\":\"https://crm.example/hook\",\"method\":\"PUT\"},\"policy\":\"own\",\"limits\":{\"rate\":\"5/s\"},"
        "\"order\":\"key\",\"allow\":[\"10.20.30.0/24\",\"fd00:1::/32\"]}"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_int_equal(define(rig->config, texts[i], true, &mem, &d, NULL, &err), HK_OK);
        assert_string_equal(d.name, "crm");
        assert_string_equal(d.http.url, "https://crm.example/hook");
        assert_string_equal(d.policy, "own");
        assert_int_equal(d.http.method, HK_METHOD_PUT);
        assert_int_equal(d.order, HK_ORDER_KEY);
        assert_int_equal(d.allow.n, 2);
        assert_true(d.has_breaker);
    }
    hk_pool_wipe(&mem);
}

static void secrets_come_by_reference(void **state)
{
    const struct rig *rig = *state;
    struct hk_pool mem = {NULL};
    struct hk_conf_destination d;
    struct hk_err err = {.message = ""};
    assert_int_equal(
        define(rig->config,
               "http: { url: https://a.example/, headers: { Authorization: \"Bearer ${file:token}\", "
               "X-Api-Key: \"${file:within}\", Idempotency-Key: \"{idempotency_key}\", X-Tenant: acme, "
               "X-Session: \"\" }, auth: { bearer: \"${HIKYAKU_SECRET_A}\" } }",
               true, &mem, &d, NULL, &err),
        HK_INVALID); /* both write Authorization */
    assert_int_equal(
        define(rig->config,
               "http: { url: https://a.example/, headers: { Authorization: \"Bearer ${file:token}\", "
               "X-Api-Key: \"${file:within}\", Idempotency-Key: \"{idempotency_key}\", X-Tenant: acme } }",
               true, &mem, &d, NULL, &err),
        HK_OK);
    assert_string_equal(hk_conf_header(&d.http, 0)->value, "Bearer s3cret");
    assert_string_equal(hk_conf_header(&d.http, 1)->value, "s3cret");
    assert_int_equal(define(rig->config,
                            "http: { url: https://a.example/, auth: { bearer: \"${HIKYAKU_SECRET_A}\" } }",
                            true, &mem, &d, NULL, &err),
                     HK_OK);
    assert_string_equal(d.http.auth.bearer, "aaa");
    hk_pool_wipe(&mem);
}

/* Each is refused, at this place, in these words. */
static void what_it_may_not_do_is_refused_where_it_stands(void **state)
{
    static const struct {
        const char *text, *pointer, *says;
    } cases[] = {
        {"http: { url: https://a.example/, auth: { bearer: literal } }", "/http/auth/bearer", "is a secret"},
        {"http: { url: https://a.example/, auth: { basic: { user: u, password: literal } } }",
         "/http/auth/basic/password", "is a secret"},
        {"http: { url: https://a.example/, sign: { secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw } }",
         "/http/sign/secret", "is a secret"},
        {"http: { url: https://a.example/, sign: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw] } }",
         "/http/sign/secrets/0", "is a secret"},
        {"http: { url: https://a.example/, headers: { Authorization: Bearer x } }",
         "/http/headers/Authorization", "is a secret by its name"},
        {"http: { url: \"https://u:p@a.example/\" }", "/http/url", ""},
        {"http: { url: \"https://a.example/${OTHER_SECRET}\" }", "/http/url", "HIKYAKU_SECRET_"},
        {"http: { url: \"https://a.example/${HIKYAKU_SECRET_A:-x}\" }", "/http/url", "no default"},
        {"http: { url: \"https://a.example/${file:../outside}\" }", "/http/url", "\"..\""},
        {"http: { url: \"https://a.example/${file:/etc/passwd}\" }", "/http/url", "below the folder"},
        {"http: { url: \"https://a.example/${file:link}\" }", "/http/url", "below the folder"},
        {"http: { url: https://a.example/, ca_file: /etc/ssl/cert.pem }", "/http/ca_file",
         "below the folder"},
        {"http: { url: https://a.example/, ca_file: ../outside }", "/http/ca_file", "below the folder"},
        {"http: { url: https://a.example/, ca_file: link }", "/http/ca_file", "below the folder"},
        {"kafka: { brokers: \"k:1\", topic: t, tls: true, sasl: { mechanism: PLAIN, user: u, password: literal } }",
         "/kafka/sasl/password", "is a secret"},
        {"kafka: { brokers: \"k:1\", topic: t, tls: true, sasl: { mechanism: OAUTHBEARER, token: literal } }",
         "/kafka/sasl/token", "is a secret"},
        {"kafka: { brokers: \"k:1\", topic: t, tls: true, sasl: { mechanism: OAUTHBEARER, token_file: /etc/passwd } }",
         "/kafka/sasl/token_file", "below the folder"},
        {"kafka: { brokers: \"k:1\", topic: t, tls: true, sasl: { mechanism: OAUTHBEARER, oauth2: { token_url: https://a.example/, client_id: c, client_secret: literal } } }",
         "/kafka/sasl/oauth2/client_secret", "is a secret"},
        {"pubsub: { project: shop, topic: orders }", "/pubsub/topic", "needs \"credentials\""},
        {"pubsub: { project: shop, topic: orders, metadata_server: http://a.example }", "/pubsub/topic",
         "needs \"credentials\""},
        {"pubsub: { project: shop, topic: orders, credentials: literal }", "/pubsub/credentials",
         "is a secret"},
        {"pubsub: { project: shop, topic: orders, credentials_file: /etc/passwd }",
         "/pubsub/credentials_file", "below the folder"},
        {"kafka: { brokers: \"k:1\", topic: t, tls: true, ca_file: ../outside }", "/kafka/ca_file",
         "below the folder"},
        {"kafka: { brokers: \"k:1,127.0.0.1:9092\", topic: t }", "/kafka/brokers", "blocked"},
        {"http: { url: https://a.example/ }\nallow: [10.0.0.0/8]", "/allow/0", "within"},
        {"http: { url: https://a.example/ }\nallow: [10.20.0.0/16, 127.0.0.0/8]", "/allow/1", "within"},
        {"http: { url: https://a.example/ }\nallow: [\"::/0\"]", "/allow/0", "within"},
        {"http: { url: http://127.0.0.1/ }", "/http/url", "blocked"},
        {"http: { url: http://169.254.169.254/latest }", "/http/url", "blocked"},
        {"http: { url: https://a.example/ }\npolicy: nope", "/policy", "there is no policy"},
        {"http: { url: https://a.example/ }\nlimits: { rate: many }", "/limits/rate", "rate"},
        {"http: { url: https://a.example/ }\nhtpp: 1", "/htpp", "unknown key"},
        {"http: {}", "/http", "needs \"url\""},
        {"{ limits: { rate: 1/s } }", "", "needs \"http\""},
        {"- a", NULL, "must be a mapping"},
        {"", NULL, "must be a mapping"},
        {"{", NULL, ""},
    };
    const struct rig *rig = *state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_pool mem = {NULL};
        struct hk_conf_destination d = {.name = "untouched"};
        struct hk_definition_wrongs wrongs;
        struct hk_err err = {.message = ""};
        enum hk_code rc = define(rig->config, cases[i].text, true, &mem, &d, &wrongs, &err);
        if (rc != HK_INVALID || !strstr(err.message, cases[i].says) ||
            (cases[i].pointer && (wrongs.n == 0 || strcmp(wrongs.items[0].pointer, cases[i].pointer) != 0)))
            fail_msg("%s: %d, \"%s\" at \"%s\"", cases[i].text, rc, err.message,
                     wrongs.n ? wrongs.items[0].pointer : "-");
        assert_string_equal(d.name, "untouched");
        assert_null(strstr(err.message, "literal"));
        hk_pool_wipe(&mem);
    }
}

static void without_a_section_nothing_is_let_through(void **state)
{
    struct hk_config *bare = parse("store: sqlite:x.db");
    struct hk_pool mem = {NULL};
    struct hk_conf_destination d;
    struct hk_err err = {.message = ""};
    (void)state;
    assert_int_equal(bare->definitions.max, 10000);
    assert_int_equal(define(bare, "http: { url: https://a.example/ }", true, &mem, &d, NULL, &err), HK_OK);
    assert_int_equal(
        define(bare, "http: { url: https://a.example/ }\nallow: [10.0.0.0/8]", true, &mem, &d, NULL, &err),
        HK_INVALID);
    assert_int_equal(
        define(bare, "http: { url: \"https://a.example/${file:token}\" }", true, &mem, &d, NULL, &err),
        HK_INVALID);
    assert_non_null(strstr(err.message, "definitions.secrets"));
    assert_int_equal(define(bare, "http: { url: https://a.example/, key_file: k, cert_file: c }", true, &mem,
                            &d, NULL, &err),
                     HK_INVALID);
    hk_pool_wipe(&mem);
    hk_config_free(bare);
}

/* Whoever writes a definition may sit at another machine. */
static void what_is_missing_here_may_be_there(void **state)
{
    static const char *const texts[] = {
        "http: { url: https://a.example/, auth: { bearer: \"${HIKYAKU_SECRET_NONE}\" } }",
        "http: { url: \"${HIKYAKU_SECRET_NONE}\" }", "http: { url: \"https://a.example/${file:none}\" }",
        "http: { url: https://a.example/, ca_file: none.pem }"};
    const struct rig *rig = *state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hk_pool mem = {NULL};
        struct hk_conf_destination d;
        struct hk_err err = {.message = ""};
        assert_int_equal(define(rig->config, texts[i], false, &mem, &d, NULL, &err), HK_OK);
        assert_int_equal(define(rig->config, texts[i], true, &mem, &d, NULL, &err), HK_INVALID);
        hk_pool_wipe(&mem);
    }
}

static void names_are_those_of_the_file(void **state)
{
    const struct rig *rig = *state;
    struct hk_pool mem = {NULL};
    struct hk_conf_destination d;
    struct hk_err err = {.message = ""};
    const struct hk_definition_ask ask = {
        .config = rig->config, .name = "no name", .text = hk_str_of("http: { url: https://a.example/ }")};
    assert_int_equal(hk_config_define(&ask, &mem, &d, NULL, &err), HK_INVALID);
    assert_non_null(strstr(err.message, "is no name for a destination"));
    hk_pool_wipe(&mem);
}

static void it_is_kept_as_json_in_one_line(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"http:\n  url: https://a.example/\n  headers: {X-N: \"8\", X-M: 8}\nallow: [10.0.0.0/8]\n",
         "{\"http\":{\"url\":\"https://a.example/\",\"headers\":{\"X-N\":\"8\",\"X-M\":8}},\"allow\":[\"10.0.0.0/8\"]}"},
        {"{\"null\":{\"latency\":\"5ms\"},\"auto_redrive\":true,\"breaker\":{\"ratio\":0.5}}",
         "{\"null\":{\"latency\":\"5ms\"},\"auto_redrive\":true,\"breaker\":{\"ratio\":0.5}}"},
        {"http: { url: \"${HIKYAKU_SECRET_A}\" }\nlimits:\n",
         "{\"http\":{\"url\":\"${HIKYAKU_SECRET_A}\"},\"limits\":null}"},
        {"a: 007\nb: .5\nc: 1.\nd: yes\ne: \"true\"\n",
         "{\"a\":\"007\",\"b\":\".5\",\"c\":\"1.\",\"d\":\"yes\",\"e\":\"true\"}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_buf out, again;
        struct hk_err err = {.message = ""};
        hk_buf_init(&out, 4096);
        hk_buf_init(&again, 4096);
        assert_int_equal(hk_config_definition_json(hk_str_of(cases[i].text), &out, &err), HK_OK);
        assert_string_equal(hk_buf_cstr(&out), cases[i].json);
        assert_int_equal(hk_config_definition_json(hk_buf_str(&out), &again, &err), HK_OK);
        assert_string_equal(hk_buf_cstr(&again), cases[i].json);
        hk_buf_fini(&out);
        hk_buf_fini(&again);
    }
}

static void many_stand_in_one_file(void **state)
{
    static const char *const texts[] = {
        "destinations: { a: { \"null\": {} }, b: { http: { url: https://b.example/ } } }",
        "a: { \"null\": {} }\nb: { http: { url: https://b.example/ } }\n"};
    static const char *const wrong[] = {"[]", "a: 1", "{", "a: {}\na: {}"};
    struct hk_definition_item *items = NULL;
    struct hk_err err = {.message = ""};
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hk_pool mem = {NULL};
        assert_int_equal(hk_config_definitions(hk_str_of(texts[i]), &mem, &items, &n, &err), HK_OK);
        assert_int_equal(n, 2);
        assert_string_equal(items[0].name, "a");
        assert_string_equal(items[0].text.ptr, "{\"null\":{}}");
        assert_string_equal(items[1].text.ptr, "{\"http\":{\"url\":\"https://b.example/\"}}");
        hk_pool_fini(&mem);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct hk_pool mem = {NULL};
        assert_int_equal(hk_config_definitions(hk_str_of(wrong[i]), &mem, &items, &n, &err), HK_INVALID);
        hk_pool_fini(&mem);
    }
}

/* ---- a policy by itself ---- */

static enum hk_code draft(const char *text, struct hk_policy **out, struct hk_definition_wrongs *wrongs,
                          struct hk_pool *mem, struct hk_err *err)
{
    *out = NULL;
    return hk_config_define_policy(hk_str_of(text), mem, out, wrongs, err);
}

static void a_policy_is_read_by_itself(void **state)
{
    (void)state;
    static const char *const texts[] = {"preset: standard\nmax_attempts: 4\njitter: none\n",
                                        "{\"preset\":\"standard\",\"max_attempts\":4,\"jitter\":\"none\"}"};
    struct hk_pool mem = {NULL};
    struct hk_definition_wrongs wrongs;
    struct hk_policy *policy = NULL;
    struct hk_err err = {.message = ""};
    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_int_equal(draft(texts[i], &policy, &wrongs, &mem, &err), HK_OK);
        assert_int_equal(hk_policy_limits(policy)->max_attempts, 4);
        assert_int_equal(hk_policy_jitter(policy)->kind, HK_JITTER_NONE);
        hk_policy_free(policy);
    }
    hk_pool_fini(&mem);
}

static void a_wrong_policy_says_where(void **state)
{
    (void)state;

    static const struct {
        const char *text, *pointer;
        size_t n;
    } rows[] = {
        {"max_attempts: lots\n", "/max_attempts", 1},
        {"max_attempts: lots\nbackoff: { kind: odd }\n", "/max_attempts", 2},
        {"preset: none-such\n", "/preset", 1},
        {"custom: mine\n", "/custom", 1},
        {"timeout: ${PATH}\n", "/timeout", 1},
        {"timeout: ${HIKYAKU_SECRET_A}\n", "/timeout", 1}, /* nothing comes from outside */
        {"timeout: ${file:/etc/passwd}\n", "/timeout", 1},
        {"[1, 2]\n", NULL, 0},
        {"", NULL, 0},
        {"a: [\n", "", 1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_pool mem = {NULL};
        struct hk_definition_wrongs wrongs;
        struct hk_policy *policy = NULL;
        struct hk_err err = {.message = ""};
        enum hk_code rc = draft(rows[i].text, &policy, &wrongs, &mem, &err);
        bool right = rc == HK_INVALID && wrongs.n == rows[i].n &&
                     (!rows[i].pointer || strcmp(wrongs.items[0].pointer, rows[i].pointer) == 0);
        NOTE_IF(!right, "%s: %s, %zu, %s: %s\n", rows[i].text, hk_code_name(rc), wrongs.n,
                wrongs.n ? wrongs.items[0].pointer : "-", err.message);
        assert_true(right);
        assert_null(policy);
        assert_null(strstr(err.message, "aaa"));
        hk_pool_fini(&mem);
    }
}

static enum hk_code draft_with_failures(void)
{
    struct hk_pool mem = {NULL};
    struct hk_definition_wrongs wrongs;
    struct hk_policy *policy = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = draft("{ preset: standard, max_attempts: 4, breaker: { failures: 3 } }", &policy,
                            &wrongs, &mem, &err);
    hk_policy_free(policy);
    hk_pool_fini(&mem);
    return rc;
}

static void a_policy_survives_a_lack_of_memory(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(draft_with_failures, HK_OK) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_would_stand_in_the_file),
        cmocka_unit_test(secrets_come_by_reference),
        cmocka_unit_test(what_it_may_not_do_is_refused_where_it_stands),
        cmocka_unit_test(without_a_section_nothing_is_let_through),
        cmocka_unit_test(what_is_missing_here_may_be_there),
        cmocka_unit_test(names_are_those_of_the_file),
        cmocka_unit_test(it_is_kept_as_json_in_one_line),
        cmocka_unit_test(many_stand_in_one_file),
        cmocka_unit_test(a_policy_is_read_by_itself),
        cmocka_unit_test(a_wrong_policy_says_where),
        cmocka_unit_test(a_policy_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
