/* SPDX-License-Identifier: Apache-2.0 */
/* The desk's table holds together, and its door lets in who may come in. */
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "desk/desk.h"
#include "desk/explain.h"
#include "desk/setup.h"
#include "desk/token.h"

static size_t size_of(enum hk_arg_kind kind)
{
    switch (kind) {
    case HK_ARG_FLAG:
        return sizeof(bool);
    case HK_ARG_NUMBER:
    case HK_ARG_DURATION:
        return sizeof(uint64_t);
    case HK_ARG_RATE:
        return sizeof(double);
    case HK_ARG_TEXTS:
        return sizeof(struct hk_texts);
    case HK_ARG_BYTES:
        return sizeof(struct hk_str);
    case HK_ARG_TEXT:
    case HK_ARG_CHOICE:
    case HK_ARG_FILE:
    case HK_ARG_POLICY:
        break;
    }
    return sizeof(const char *);
}

static void check_args(const struct hk_op *op)
{
    for (const struct hk_arg *a = op->args; a && a->name; a++) {
        assert_true(a->offset + size_of(a->kind) <= op->request_size);
        assert_true(a->kind == HK_ARG_FLAG || a->value);
        assert_true(a->kind != HK_ARG_CHOICE || a->choices);
        assert_true(a->subject || (a->help && a->help[0]));
        assert_true(!a->required || a->subject);
        for (const struct hk_arg *b = op->args; b < a; b++) {
            assert_true(strcmp(a->name, b->name) != 0);
            assert_true(a->offset >= b->offset + size_of(b->kind) ||
                        b->offset >= a->offset + size_of(a->kind));
        }
    }
}

static void each_row_says_what_it_needs(void **state)
{
    (void)state;
    for (size_t i = 0; i < hk_n_ops; i++) {
        const struct hk_op *op = hk_ops[i];
        assert_true(op->noun && op->summary && op->run);
        assert_true(op->role != HK_ROLE_NONE);
        assert_true(op->role >= HK_ROLE_OPERATOR || !op->changes);
        assert_true(op->changes || !op->needs_reason);
        assert_true(op->summary[strlen(op->summary) - 1] != '.');
        check_args(op);
        for (size_t k = 0; k < i; k++)
            assert_true(strcmp(op->noun, hk_ops[k]->noun) != 0 || !op->verb || !hk_ops[k]->verb ||
                        strcmp(op->verb, hk_ops[k]->verb) != 0);
    }
}

static enum hk_code ask_as(const struct hk_op *op, struct hk_caller caller, struct hk_err *err)
{
    struct hk_desk desk;
    struct hk_pool mem = {NULL};
    hk_desk_init(&desk, NULL, "nothing:");
    enum hk_code rc = hk_desk_ask(&desk, op, &caller, NULL, &mem, NULL, err);
    hk_pool_fini(&mem);
    hk_desk_fini(&desk);
    return rc;
}

static enum hk_code ran(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                        struct hk_pool *mem, void *result, struct hk_err *err)
{
    (void)caller, (void)request, (void)mem, (void)result;
    return hk_desk_wrong(desk, "field", err, "takes %d", 5);
}

static void only_who_may_comes_in(void **state)
{
    (void)state;
    struct hk_op op = {.noun = "x", .verb = "y", .role = HK_ROLE_OPERATOR, .run = ran};
    struct hk_err err = {.message = ""};
    assert_int_equal(ask_as(&op, (struct hk_caller){.role = HK_ROLE_VIEWER}, &err), HK_DENIED);
    assert_string_equal(err.message, "your rights do not allow 'x y'");
    assert_int_equal(ask_as(&op, (struct hk_caller){.role = HK_ROLE_OPERATOR}, &err), HK_INVALID);
    assert_string_equal(err.message, "takes 5");
    op.needs_reason = true;
    assert_int_equal(ask_as(&op, (struct hk_caller){.role = HK_ROLE_ADMIN, .reason = " "}, &err), HK_INVALID);
    assert_true(strstr(err.message, "a reason is needed"));
    assert_int_equal(ask_as(&op, (struct hk_caller){.role = HK_ROLE_ADMIN, .reason = "why"}, &err),
                     HK_INVALID);
    assert_string_equal(err.message, "takes 5");
}

static void what_is_masked_needs_a_reason_to_be_seen(void **state)
{
    (void)state;
    struct hk_op op = {.noun = "x", .role = HK_ROLE_VIEWER, .run = ran};
    struct hk_err err = {.message = ""};
    assert_int_equal(
        ask_as(&op,
               (struct hk_caller){.role = HK_ROLE_ADMIN, .reveal = true, .may_reveal = true, .reason = "why"},
               &err),
        HK_INVALID);
    assert_true(strstr(err.message, "nothing is masked"));
    op.reveals = true;
    assert_int_equal(
        ask_as(&op, (struct hk_caller){.role = HK_ROLE_ADMIN, .reveal = true, .reason = "why"}, &err),
        HK_DENIED);
    assert_string_equal(err.message, "your rights do not allow to reveal what is masked");
    assert_int_equal(
        ask_as(&op, (struct hk_caller){.role = HK_ROLE_ADMIN, .reveal = true, .may_reveal = true}, &err),
        HK_INVALID);
    assert_true(strstr(err.message, "a reason is needed"));
    assert_int_equal(
        ask_as(&op,
               (struct hk_caller){.role = HK_ROLE_ADMIN, .reveal = true, .may_reveal = true, .reason = "why"},
               &err),
        HK_INVALID);
    assert_string_equal(err.message, "takes 5");
}

/* ---- tokens ---- */

static void a_token_has_a_form_that_can_be_told_from_other_text(void **state)
{
    (void)state;
    unsigned char bytes[32] = {0};
    char text[HK_TOKEN_LEN + 1], hash[HK_API_HASH_LEN + 1] = "", again[HK_API_HASH_LEN + 1] = "";
    /* SHA-256("hk_AAA…") begins with this, and SHA-256 of all of it is the hash: computed by other means */
    const char zeros[] = "hk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA2fe853";
    assert_true(hk_token_text(bytes, text));
    assert_string_equal(text, zeros);
    assert_true(hk_token_hash(hk_str_of(text), hash));
    assert_string_equal(hash, "f12f6c83aac681bae95567d75cfa59cfa6da006363d31e846f2b980ec52a74ac");
    memset(bytes, 0xff, sizeof bytes); /* base64's / is _ here */
    assert_true(hk_token_text(bytes, text));
    assert_non_null(strstr(text, "hk___________________________________________8"));
    assert_true(hk_token_hash(hk_str_of(text), again));
    assert_string_not_equal(hash, again);
}

static void any_other_text_is_no_token(void **state)
{
    (void)state;
    unsigned char bytes[32] = {1, 2, 3};
    char text[HK_TOKEN_LEN + 2] = "", hash[HK_API_HASH_LEN + 1] = "";
    assert_true(hk_token_text(bytes, text));
    for (size_t len = 0; len < HK_TOKEN_LEN; len++)
        assert_false(hk_token_hash((struct hk_str){text, len}, hash));
    text[HK_TOKEN_LEN] = 'x';
    assert_false(hk_token_hash((struct hk_str){text, HK_TOKEN_LEN + 1}, hash));
    for (size_t i = 0; i < HK_TOKEN_LEN; i++)
        for (int c = 0; c < 256; c++) {
            char was = text[i];
            text[i] = (char)c;
            assert_true(hk_token_hash((struct hk_str){text, HK_TOKEN_LEN}, hash) == (was == text[i]));
            text[i] = was;
        }
    assert_false(hk_token_hash((struct hk_str){NULL, 0}, hash));
}

static void roles_are_words(void **state)
{
    (void)state;
    assert_int_equal(hk_role_of(hk_str_of("metrics")), HK_ROLE_METRICS);
    assert_int_equal(hk_role_of(hk_str_of("viewer")), HK_ROLE_VIEWER);
    assert_int_equal(hk_role_of(hk_str_of("operator")), HK_ROLE_OPERATOR);
    assert_int_equal(hk_role_of(hk_str_of("admin")), HK_ROLE_ADMIN);
    const char *const others[] = {"", "Admin", "admin ", "root", "none", "viewer operator", "adm"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(hk_role_of(hk_str_of(others[i])), HK_ROLE_NONE);
}

static enum hk_code wrong_by_itself(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    (void)request;
    return hk_desk_wrong(desk, "rate", err, "is not one");
}

static void a_wrong_request_is_told_before_a_reason_is_asked_for(void **state)
{
    (void)state;
    const struct hk_op op = {.noun = "x",
                             .role = HK_ROLE_OPERATOR,
                             .needs_reason = true,
                             .store = true,
                             .check = wrong_by_itself,
                             .run = ran};
    struct hk_err err = {.message = ""};
    assert_int_equal(ask_as(&op, (struct hk_caller){.role = HK_ROLE_ADMIN}, &err), HK_INVALID);
    assert_string_equal(err.message, "is not one");
    assert_int_equal(ask_as(&op, (struct hk_caller){.role = HK_ROLE_VIEWER}, &err), HK_DENIED);
}

static void a_dry_run_needs_no_reason(void **state)
{
    (void)state;

    struct request {
        bool dry_run;
    } request = {.dry_run = true};
    const struct hk_arg args[] = {{.name = "dry_run", .offset = offsetof(struct request, dry_run)},
                                  {.name = NULL}};
    const struct hk_op op = {
        .noun = "x", .role = HK_ROLE_OPERATOR, .needs_reason = true, .args = args, .run = ran};
    const struct hk_caller caller = {.role = HK_ROLE_ADMIN};
    struct hk_err err = {.message = ""};
    struct hk_desk desk;
    hk_desk_init(&desk, NULL, "nothing:");
    assert_int_equal(hk_desk_ask(&desk, &op, &caller, &request, NULL, NULL, &err), HK_INVALID);
    assert_string_equal(err.message, "takes 5");
    request.dry_run = false;
    assert_int_equal(hk_desk_ask(&desk, &op, &caller, &request, NULL, NULL, &err), HK_INVALID);
    assert_true(strstr(err.message, "a reason is needed"));
    hk_desk_fini(&desk);
}

static void a_store_that_is_not_there_is_told(void **state)
{
    (void)state;
    const struct hk_op op = {.noun = "x", .role = HK_ROLE_VIEWER, .store = true, .run = ran};
    struct hk_err err = {.message = ""};
    assert_true(ask_as(&op, (struct hk_caller){.role = HK_ROLE_VIEWER}, &err) != HK_OK);
    assert_true(err.message[0]);
}

static void where_a_message_goes_is_found_as_a_relay_finds_it(void **state)
{
    (void)state;
    static const char text[] = "destinations:\n"
                               "  a: { http: { url: \"http://127.0.0.1:1/\" } }\n"
                               "  b: { http: { url: \"http://127.0.0.1:1/\" } }\n"
                               "routes:\n"
                               "  - { event_type: ShipOrder, destination: b }\n"
                               "  - { event_type: \"Ship*\", destination: [a, b] }\n";

    static const struct {
        const char *destination, *event_type;
        enum hk_where_kind kind;
        const char *name; /* NULL: not to one */
    } cases[] = {
        {"a", "ShipOrder", HK_WHERE_ONE, "a"},         {"c", "ShipOrder", HK_WHERE_UNKNOWN, NULL},
        {"", "ShipOrder", HK_WHERE_ONE, "b"},          {"", "ShipOther", HK_WHERE_SEVERAL, NULL},
        {"", "OrderShipped", HK_WHERE_NO_ROUTE, NULL},
    };

    struct hk_config *config = NULL;
    struct hk_pool mem = {NULL};
    struct hk_desk desk;
    struct hk_diags diags;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse(text, sizeof text - 1, "x.yaml", NULL, &diags, &config), HK_OK);
    hk_desk_init(&desk, config, NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_where where =
            hk_where(&desk, hk_str_of(cases[i].destination), hk_str_of(cases[i].event_type), &mem);
        assert_int_equal(where.kind, cases[i].kind);
        assert_true((where.conf == NULL) == (cases[i].name == NULL));
        assert_true(!where.conf || strcmp(where.conf->name, cases[i].name) == 0);
    }
    hk_config_free(config);
    hk_diags_fini(&diags);
    assert_int_equal(hk_config_defaults(&config), HK_OK);
    hk_desk_init(&desk, config, NULL);
    assert_int_equal(hk_where(&desk, hk_str_of("a"), hk_str_of("T"), &mem).kind, HK_WHERE_OPEN);
    hk_pool_fini(&mem);
    hk_config_free(config);
}

/* What the operation says as JSON. `request` and `result` as hk_desk_ask has them. */
static const char *json_of(const struct hk_op *op, const void *request, void *result, struct hk_pool *mem,
                           struct hk_buf *out)
{
    const struct hk_caller caller = {.role = HK_ROLE_ADMIN};
    struct hk_err err = {.message = ""};
    struct hk_desk desk;
    struct hk_json json;
    hk_desk_init(&desk, NULL, NULL);
    assert_int_equal(hk_desk_ask(&desk, op, &caller, request, mem, result, &err), HK_OK);
    hk_desk_fini(&desk);
    hk_buf_reset(out);
    hk_json_init(&json, out, false);
    hk_op_write(op, &json, result);
    return hk_buf_cstr(out);
}

static void a_configuration_is_checked_as_text(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        enum hk_code read;
        const char *says;
    } cases[] = {
        {"destinations: { a: { http: { url: \"http://127.0.0.1:1/\" } } }", HK_OK,
         "{\"ok\":true,\"file\":\"x\""},
        {"policies: { p: { preset: standard } }", HK_OK, "\"warnings\":[],\"policies\":1,"},
        {"queues: {}", HK_OK, "\"warnings\":[],\"policies\":0,"},
        {"relay: { name: r }", HK_OK, "no destinations: a relay with this file delivers nothing"},
        {"store: \"oracle:x\"", HK_OK, "there is no store of another kind"},
        {"destinations: 5", HK_OK, "{\"ok\":false,\"file\":\"x\",\"errors\":[{\"file\":\"x\",\"line\":1,"},
        {"", HK_TOOBIG, "larger than 4 MiB"},
        {"", HK_IO, "cannot be read"},
    };

    struct hk_buf out;
    hk_buf_init(&out, 1 << 20);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_pool mem = {NULL};
        struct hk_config_checked checked;
        const struct hk_config_check_ask ask = {
            .file = "x", .is_text = true, .text = hk_str_of(cases[i].text), .read = cases[i].read};
        const char *json = json_of(&hk_op_config_check, &ask, &checked, &mem, &out);
        assert_non_null(strstr(json, cases[i].says));
        assert_int_equal(checked.ok, checked.found.errors == 0);
        hk_pool_fini(&mem);
    }
    hk_buf_fini(&out);
}

static void version_and_settings_are_told(void **state)
{
    (void)state;
    struct hk_buf out;
    struct hk_pool mem = {NULL};
    struct hk_version_told told = {.version = NULL};
    struct hk_config_schema schema = {.text = {NULL, 0}};
    hk_buf_init(&out, 4 << 20);
    const char *json = json_of(&hk_op_version, NULL, &told, &mem, &out);
    assert_non_null(strstr(json, told.version));
    json = json_of(&hk_op_config_schema, NULL, &schema, &mem, &out);
    assert_non_null(strstr(json, "json-schema.org"));
    assert_int_equal(json[strlen(json) - 1], '}'); /* one value, and no line end */
    assert_non_null(strstr(schema.text.ptr, "destinations:"));
    hk_pool_fini(&mem);
    hk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_says_what_it_needs),
        cmocka_unit_test(only_who_may_comes_in),
        cmocka_unit_test(what_is_masked_needs_a_reason_to_be_seen),
        cmocka_unit_test(a_token_has_a_form_that_can_be_told_from_other_text),
        cmocka_unit_test(any_other_text_is_no_token),
        cmocka_unit_test(roles_are_words),
        cmocka_unit_test(a_wrong_request_is_told_before_a_reason_is_asked_for),
        cmocka_unit_test(a_dry_run_needs_no_reason),
        cmocka_unit_test(a_store_that_is_not_there_is_told),
        cmocka_unit_test(where_a_message_goes_is_found_as_a_relay_finds_it),
        cmocka_unit_test(a_configuration_is_checked_as_text),
        cmocka_unit_test(version_and_settings_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
