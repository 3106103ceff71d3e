/* SPDX-License-Identifier: Apache-2.0 */
/* A request that was written for the road is the same when it is read, for every row of the desk's table; and what nobody should
 * send is refused with the field's name. */
#include <stdio.h>
#include <string.h>

#include <hikyaku/rng.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "desk/dead.h"
#include "desk/desk.h"
#include "desk/messages.h"
#include "desk/wire.h"

/* ---- there and back ---- */

static const char *const texts[] = {"a",       "order 42/7", "日本語", "a&b=c%20+d", "\"quoted\"\\",
                                    "x\ny\tz", "{id}",       "..",     "0"};

enum {
    N_TEXTS = sizeof texts / sizeof texts[0]
};

static const char *some_text(struct hk_rng *rng)
{
    return texts[hk_rng_next(rng) % N_TEXTS];
}

static const char *some_choice(struct hk_rng *rng, const char *choices, struct hk_pool *mem)
{
    struct hk_str rest = hk_str_of(choices), word = {NULL, 0};
    for (uint64_t n = hk_rng_next(rng) % 3 + 1; n > 0 && rest.len > 0; n--)
        word = hk_str_cut(&rest, ' ');
    return hk_pool_copy_str(mem, word);
}

static uint64_t some_number(struct hk_rng *rng, const struct hk_arg *a)
{
    double hi = a->hi > 0 && a->hi < 9e15 ? a->hi : a->kind == HK_ARG_DURATION ? 3e12 : 9e15;
    return (uint64_t)a->lo + hk_rng_next(rng) % ((uint64_t)hi - (uint64_t)a->lo + 1);
}

static void fill(struct hk_rng *rng, const struct hk_arg *a, bool always, void *at, struct hk_pool *mem)
{
    static const char bytes[] = "\xff\x00raw";
    uint64_t n = a->fallback > 0 ? (uint64_t)a->fallback : 0;
    double rate = a->fallback;
    const char *text = NULL;
    bool given = always || hk_rng_next(rng) % 2;
    switch (a->kind) {
    case HK_ARG_FLAG:
        *(bool *)at = given;
        return;
    case HK_ARG_NUMBER:
    case HK_ARG_DURATION:
        n = given ? some_number(rng, a) : n;
        memcpy(at, &n, sizeof n);
        return;
    case HK_ARG_RATE:
        rate = given ? a->lo + (double)(hk_rng_next(rng) % 1000) / 8 : rate;
        rate = a->hi > 0 && rate > a->hi ? a->hi : rate;
        memcpy(at, &rate, sizeof rate);
        return;
    case HK_ARG_TEXTS: {
        const char **items = hk_pool_alloc(mem, 3, sizeof *items);
        for (size_t i = 0; i < 3; i++)
            items[i] = some_text(rng);
        *(struct hk_texts *)at = (struct hk_texts){items, given ? hk_rng_next(rng) % 3 + 1 : 0};
        return;
    }
    case HK_ARG_BYTES:
        if (given)
            *(struct hk_str *)at =
                hk_rng_next(rng) % 2 ? hk_str_of(some_text(rng)) : (struct hk_str){bytes, 5};
        return;
    case HK_ARG_CHOICE:
        text = given ? some_choice(rng, a->choices, mem) : NULL;
        break;
    case HK_ARG_TEXT:
    case HK_ARG_POLICY:
        text = given ? some_text(rng) : NULL;
        break;
    case HK_ARG_FILE: /* never over HTTP */
        break;
    }
    memcpy(at, &text, sizeof text);
}

static void check_same(const struct hk_arg *a, const void *was, const void *is)
{
    const char *x = NULL, *y = NULL;
    const struct hk_texts *p = was, *q = is;
    switch (a->kind) {
    case HK_ARG_FLAG:
        assert_int_equal(*(const bool *)was, *(const bool *)is);
        break;
    case HK_ARG_NUMBER:
    case HK_ARG_DURATION:
    case HK_ARG_RATE:
        assert_memory_equal(was, is, sizeof(uint64_t));
        break;
    case HK_ARG_TEXTS:
        assert_int_equal(p->n, q->n);
        for (size_t i = 0; i < p->n; i++)
            assert_string_equal(p->items[i], q->items[i]);
        break;
    case HK_ARG_BYTES:
        assert_true(hk_str_eq(*(const struct hk_str *)was, *(const struct hk_str *)is));
        assert_true(!((const struct hk_str *)was)->ptr == !((const struct hk_str *)is)->ptr);
        break;
    case HK_ARG_TEXT:
    case HK_ARG_CHOICE:
    case HK_ARG_POLICY:
    case HK_ARG_FILE:
        memcpy(&x, was, sizeof x);
        memcpy(&y, is, sizeof y);
        assert_true(!x == !y);
        if (x)
            assert_string_equal(x, y);
        break;
    }
}

static void travel(const struct hk_op *op, const struct hk_wire_out *out, struct hk_pool *mem, void *request,
                   struct hk_wire_caller *said)
{
    struct hk_wire wire;
    struct hk_err err = {.message = ""};
    struct hk_str query = hk_buf_str(&out->path), path = hk_str_cut(&query, '?');
    assert_true(hk_route_fits(op->route, path));
    assert_int_equal(hk_wire_init(&wire, mem, &err), HK_OK);
    assert_int_equal(hk_route_take(op->route, path, &wire, &err), HK_OK);
    assert_int_equal(hk_wire_add_query(&wire, query, &err), HK_OK);
    if (out->body.len > 0)
        assert_int_equal(hk_wire_add_body(&wire, op, hk_buf_str(&out->body), &err), HK_OK);
    enum hk_code rc = hk_wire_read(&wire, op, request, said, &err);
    if (rc != HK_OK)
        print_message("%s %s: %s %s\n", op->noun, op->verb ? op->verb : "", wire.wrong ? wire.wrong : "",
                      err.message);
    assert_int_equal(rc, HK_OK);
}

static void check_row(struct hk_rng *rng, const struct hk_op *op)
{
    struct hk_pool mem = {NULL};
    struct hk_wire_out out;
    struct hk_err err = {.message = ""};
    char *was = hk_pool_alloc(&mem, 1, op->request_size + 1),
         *is = hk_pool_alloc(&mem, 1, op->request_size + 1);
    const struct hk_wire_caller says = {.reason = op->needs_reason || op->reveals ? some_text(rng) : NULL,
                                        .reveal = op->reveals && hk_rng_next(rng) % 2};
    struct hk_wire_caller said;
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        fill(rng, a, a->subject, was + a->offset, &mem);
    hk_wire_out_init(&out);
    assert_int_equal(hk_wire_write(op, was, &says, &out, &err), HK_OK);
    travel(op, &out, &mem, is, &said);
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        check_same(a, was + a->offset, is + a->offset);
    assert_int_equal(said.reveal, says.reveal);
    assert_true(!said.reason == !says.reason && (!said.reason || strcmp(said.reason, says.reason) == 0));
    hk_wire_out_fini(&out);
    hk_pool_fini(&mem);
}

static void every_request_arrives_as_it_was_sent(void **state)
{
    struct hk_rng rng;
    (void)state;
    hk_rng_seed(&rng, 20261117, 0);
    for (size_t i = 0; i < hk_n_ops; i++)
        for (int n = 0; hk_ops[i]->route && n < 50; n++)
            check_row(&rng, hk_ops[i]);
}

/* ---- what is refused ---- */

static enum hk_code read_body(const struct hk_op *op, const char *path, const char *query, const char *body,
                              const char **out_field, struct hk_err *err)
{
    static char field[80];
    struct hk_pool mem = {NULL};
    struct hk_wire wire;
    struct hk_wire_caller said;
    void *request = hk_pool_alloc(&mem, 1, op->request_size + 1);
    enum hk_code rc = hk_wire_init(&wire, &mem, err);
    if (rc == HK_OK)
        rc = hk_route_take(op->route, hk_str_of(path), &wire, err);
    if (rc == HK_OK)
        rc = hk_wire_add_query(&wire, hk_str_of(query), err);
    if (rc == HK_OK && body)
        rc = hk_wire_add_body(&wire, op, hk_str_of(body), err);
    if (rc == HK_OK)
        rc = hk_wire_read(&wire, op, request, &said, err);
    (void)snprintf(field, sizeof field, "%s", wire.wrong ? wire.wrong : "");
    *out_field = field;
    hk_pool_fini(&mem);
    return rc;
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const struct hk_op *op;
        const char *path, *query, *body, *field, *says;
    } cases[] = {
        {&hk_op_messages_list, "/messages", "limit=0", NULL, "limit", "takes a whole number from 1 to"},
        {&hk_op_messages_list, "/messages", "limit=1&limit=2", NULL, "limit", "given several"},
        {&hk_op_messages_list, "/messages", "limit=%31%30x", NULL, "limit", "takes a whole number"},
        {&hk_op_messages_list, "/messages", "limitt=1", NULL, "limitt", "did you mean limit"},
        {&hk_op_messages_list, "/messages", "status=lost", NULL, "status", "takes one of: pending"},
        {&hk_op_messages_list, "/messages", "destination=%ff", NULL, "", "not UTF-8"},
        {&hk_op_messages_list, "/messages", "destination=a%00b", NULL, "", "not UTF-8 text"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "[]", "", "must be a JSON object"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{", "", "not JSON"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"ids\":[\"1\"],\"ids\":[]}", "", "not JSON"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"ids\":[{}]}", "ids", "takes a text"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"dry_run\":\"yes\"}", "dry_run",
         "takes true or false"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"dry_run\":1}", "dry_run",
         "takes true or false"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"filter\":\"a\\u0000b\"}", "filter",
         "takes a text"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"filter\":{}}", "filter",
         "not an object or a list"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"filter\":[\"a:1\"]}", "filter", "not a list"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"ids\":[],\"destination\":\"a\"}", "ids",
         "empty list"},
        {&hk_op_dead_requeue, "/dead-letters/requeue", "", "{\"reason\":[\"x\"]}", "reason", "not a list"},
        {&hk_op_dead_fix, "/dead-letters/fix", "", "{\"timeout\":5}", "timeout", "takes a duration"},
        {&hk_op_dead_edit, "/dead-letters/7/payload", "", "{\"payload_base64\":\"*\"}", "payload_base64",
         "base64"},
        {&hk_op_dead_edit, "/dead-letters/7/payload", "", "{\"id\":\"8\"}", "id", "given several"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hk_err err = {.message = ""};
        const char *field = NULL;
        enum hk_code rc = read_body(cases[i].op, cases[i].path, cases[i].query, cases[i].body, &field, &err);
        if (rc == HK_OK || strcmp(field, cases[i].field) != 0 || !strstr(err.message, cases[i].says))
            print_message("case %zu: '%s' '%s'\n", i, field, err.message);
        assert_true(rc == HK_INVALID);
        assert_string_equal(field, cases[i].field);
        assert_non_null(strstr(err.message, cases[i].says));
    }
}

static void a_list_has_a_bound(void **state)
{
    struct hk_buf body;
    struct hk_err err = {.message = ""};
    const char *field = NULL;
    (void)state;
    hk_buf_init(&body, 1 << 20);
    (void)hk_buf_adds(&body, "{\"ids\":[\"1\"");
    for (int i = 0; i < HK_WIRE_ITEMS_MAX; i++)
        (void)hk_buf_adds(&body, ",\"1\"");
    (void)hk_buf_adds(&body, "]}");
    assert_int_equal(
        read_body(&hk_op_dead_requeue, "/dead-letters/requeue", "", hk_buf_cstr(&body), &field, &err),
        HK_TOOBIG);
    assert_string_equal(field, "ids");
    hk_buf_fini(&body);
}

static void a_payload_is_taken_byte_for_byte(void **state)
{
    struct hk_pool mem = {NULL};
    struct hk_wire wire;
    struct hk_wire_caller said;
    struct hk_err err = {.message = ""};
    struct hk_dead_edit_ask ask = {.id = NULL};
    (void)state;
    assert_int_equal(hk_wire_init(&wire, &mem, &err), HK_OK);
    assert_int_equal(
        hk_route_take(hk_op_dead_edit.route, hk_str_of("/dead-letters/a%2Fb/payload"), &wire, &err), HK_OK);
    assert_int_equal(hk_wire_add_body(&wire, &hk_op_dead_edit,
                                      hk_str_of("{ \"payload\" : [1.0, {\"a\":1e2}] , \"reason\":\"r\"}"),
                                      &err),
                     HK_OK);
    assert_int_equal(hk_wire_read(&wire, &hk_op_dead_edit, &ask, &said, &err), HK_OK);
    assert_string_equal(ask.id, "a/b");
    assert_string_equal(said.reason, "r");
    assert_true(hk_str_eq(ask.payload, hk_str_of("[1.0, {\"a\":1e2}]")));
    hk_pool_fini(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_arrives_as_it_was_sent),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_list_has_a_bound),
        cmocka_unit_test(a_payload_is_taken_byte_for_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
