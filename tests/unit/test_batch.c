/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a batch as they are written, and lists of results as they are read. tests/contract/test_sink_batch.c sends both. */
#include <stdio.h>

#include "base/str.h"
#include "check.h"
#include "config/config.h"
#include "failing.h"
#include "payload/scan.h"
#include "sink/batch/item.h"
#include "sink/batch/results.h"

#define TIME_MS  INT64_C(1794731400250)
#define TIME     "2026-11-15T08:30:00.250Z"
#define TRACE    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define ITEM_MAX 65536

static struct hk_message message_with(const char *type, const char *payload)
{
    return (struct hk_message){.message_id = hk_str_of("ord-1"),
                               .event_type = hk_str_of("order.created"),
                               .content_type = hk_str_of(type),
                               .payload = hk_str_of(payload),
                               .created_ms = TIME_MS};
}

/* ---- items ---- */

struct item_row {
    const char *what;
    enum hk_item_form form;
    const char *type, *payload, *headers;
    const char *item;  /* NULL: HK_INVALID … */
    const char *wrong; /* … with these words */
};

#define HEAD "{\"id\":\"ord-1\",\"type\":\"order.created\",\"time\":\"" TIME "\",\"attempt\":3,"
#define EVENT                                                                                                    \
    "{\"specversion\":\"1.0\",\"id\":\"ord-1\",\"source\":\"/shop\",\"type\":\"order.created\",\"time\":\"" TIME \
    "\","

static const struct item_row item_rows[] = {
    {"a payload stays as it is", HK_ITEM_JSON, "", "{\"total\": 12.50 ,\n \"n\":1e999}", "",
     HEAD "\"payload\":{\"total\": 12.50 ,\n \"n\":1e999}}", NULL},
    {"in a line it has no line breaks", HK_ITEM_LINE, "", "{\r\n\"a\":\"x\\ny\"\n}", "",
     HEAD "\"payload\":{  \"a\":\"x\\ny\" }}", NULL},
    {"another JSON type is named", HK_ITEM_JSON, "application/problem+json; charset=utf-8", "7", "",
     HEAD "\"content_type\":\"application/problem+json; charset=utf-8\",\"payload\":7}", NULL},
    {"other types are base64", HK_ITEM_JSON, "text/plain", "hello", "",
     HEAD "\"content_type\":\"text/plain\",\"payload_base64\":\"aGVsbG8=\"}", NULL},
    {"what is no JSON is base64, whatever it says it is", HK_ITEM_JSON, "application/json", "{\"a\":1}]", "",
     HEAD "\"payload_base64\":\"eyJhIjoxfV0=\"}", NULL},
    {"two values are no JSON", HK_ITEM_LINE, "", "1 2", "", HEAD "\"payload_base64\":\"MSAy\"}", NULL},
    {"bytes that are no UTF-8", HK_ITEM_JSON, "", "\"\xff\"", "", HEAD "\"payload_base64\":\"Iv8i\"}", NULL},
    {"an empty payload", HK_ITEM_JSON, "", "", "", HEAD "\"payload_base64\":\"\"}", NULL},
    {"its own headers", HK_ITEM_JSON, "", "1", "{\"X-Tenant\":\"acme\\\"\",\":timeout\":\"9s\"}",
     HEAD "\"headers\":{\"X-Tenant\":\"acme\\\"\"},\"payload\":1}", NULL},
    {"an event", HK_ITEM_EVENT, "", "{ }", "", EVENT "\"datacontenttype\":\"application/json\",\"data\":{ }}",
     NULL},
    {"its own URL", HK_ITEM_JSON, "", "1", "{\":url\":\"http://a.example/\"}", NULL,
     "this one sends batches"},
    {"a header that no message sets", HK_ITEM_JSON, "", "1", "{\"Authorization\":\"x\"}", NULL,
     "is not for a message"},
    {"a line break in a header", HK_ITEM_JSON, "", "1", "{\"X-A\":\"a\\nb\"}", NULL, "control character"},
    {"no name of a header", HK_ITEM_JSON, "", "1", "{\"X A\":\"a\"}", NULL, "is not a name"},
    {"headers that are no object", HK_ITEM_JSON, "", "1", "[1]", NULL, ""},
};

static void writes_items(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, ITEM_MAX);
    for (size_t i = 0; i < COUNT(item_rows); i++) {
        const struct item_row *row = &item_rows[i];
        struct hk_message msg = message_with(row->type, row->payload);
        struct hk_err err = {.message = ""};
        msg.headers = hk_str_of(row->headers);
        enum hk_code rc = hk_item_write(row->form, "/shop", &msg, 3, &out, &err);
        bool fine = row->item ? rc == HK_OK && strcmp(hk_buf_cstr(&out), row->item) == 0
                              : rc == HK_INVALID && strstr(err.message, row->wrong);
        NOTE_IF(!fine, "%s: %s %s\n%s\n", row->what, hk_code_name(rc), err.message, hk_buf_cstr(&out));
        assert_true(fine);
        assert_true(rc != HK_OK || hk_scan_check(hk_buf_str(&out), NULL) == HK_OK);
    }
    hk_buf_fini(&out);
}

static void an_item_says_all_that_is_known(void **state)
{
    (void)state;
    struct hk_buf out;
    struct hk_message msg = message_with("", "{}");
    hk_buf_init(&out, ITEM_MAX);
    msg.key = hk_str_of("42");
    msg.correlation_id = hk_str_of("req \"7\"");
    msg.idempotency_key = hk_str_of("k");
    msg.traceparent = hk_str_of(TRACE);
    assert_int_equal(hk_item_write(HK_ITEM_JSON, "", &msg, 1, &out, NULL), HK_OK);
    assert_string_equal(
        hk_buf_cstr(&out),
        "{\"id\":\"ord-1\",\"type\":\"order.created\",\"time\":\"" TIME
        "\",\"attempt\":1,\"key\":\"42\",\"correlation_id\":\"req \\\"7\\\"\",\"idempotency_key\":\"k\","
        "\"traceparent\":\"" TRACE "\",\"payload\":{}}");
    msg.traceparent = hk_str_of("from somewhere");
    for (int form = HK_ITEM_JSON; form <= HK_ITEM_EVENT; form++) {
        assert_int_equal(hk_item_write((enum hk_item_form)form, "/shop", &msg, 1, &out, NULL), HK_OK);
        assert_null(strstr(hk_buf_cstr(&out), "traceparent"));
    }
    msg.message_id = hk_str_of("\xff");
    assert_int_equal(hk_item_write(HK_ITEM_JSON, "", &msg, 1, &out, NULL), HK_INVALID);
    msg.message_id = hk_str_of("");
    assert_int_equal(hk_item_write(HK_ITEM_JSON, "", &msg, 1, &out, NULL), HK_INVALID);
    hk_buf_fini(&out);
}

/* ---- results ---- */

#define N 3

struct results_row {
    const char *body;
    enum hk_results results;
    int status[N];       /* of a, b and c */
    const char *hint[N]; /* NULL: none */
    bool unclear[N];
};

/* clang-format off */
static const struct results_row results_rows[] = {
    {"", HK_RESULTS_NONE, {0}, {0}, {0}},
    {" \r\n ", HK_RESULTS_NONE, {0}, {0}, {0}},
    {"ok", HK_RESULTS_NONE, {0}, {0}, {0}},
    {"<html>{\"results\":[]}</html>", HK_RESULTS_NONE, {0}, {0}, {0}},
    {"{\"ok\":true,\"n\":{\"results\":[{\"id\":\"a\",\"status\":500}]}}", HK_RESULTS_NONE, {0}, {0}, {0}},
    {"\"results\"", HK_RESULTS_NONE, {0}, {0}, {0}},

    {"{\"results\":[{\"id\":\"a\",\"status\":200},{\"id\":\"b\",\"status\":422,\"error\":\"x\"},{\"id\":\"c\",\"status\":503,\"retry_after\":30}]}",
     HK_RESULTS_LIST, {200, 422, 503}, {NULL, NULL, "30"}, {0}},
    {"[{\"id\":\"c\",\"status\":204},{\"status\":200,\"id\":\"a\"}]", HK_RESULTS_LIST, {200, 0, 204}, {0}, {0}},
    {"{\"results\":[]}", HK_RESULTS_LIST, {0}, {0}, {0}},
    {"[]", HK_RESULTS_LIST, {0}, {0}, {0}},
    {"\n{\"meta\":[[{}]],\"results\" : [ {\"id\":\"b\",\"status\":200,\"x\":[{\"id\":\"a\",\"status\":500}]} ] , \"more\":{}}",
     HK_RESULTS_LIST, {0, 200, 0}, {0}, {0}},
    /* ids in other spellings, ids of nobody, what is no entry */
    {"{\"results\":[{\"id\":\"\\u0061\",\"status\":200},{\"id\":\"z\",\"status\":500},7,[{\"id\":\"b\",\"status\":200}],null,{\"id\":7,\"status\":200},{\"status\":500}]}",
     HK_RESULTS_LIST, {200, 0, 0}, {0}, {0}},
    /* statuses that decide nothing */
    {"[{\"id\":\"a\"},{\"id\":\"b\",\"status\":\"200\"},{\"id\":\"c\",\"status\":100}]", HK_RESULTS_LIST, {0}, {0}, {true, true, true}},
    {"[{\"id\":\"a\",\"status\":200.0},{\"id\":\"b\",\"status\":2e2},{\"id\":\"c\",\"status\":-20}]", HK_RESULTS_LIST, {0}, {0}, {true, true, true}},
    {"[{\"id\":\"a\",\"status\":99},{\"id\":\"b\",\"status\":1200},{\"id\":\"c\",\"status\":null}]", HK_RESULTS_LIST, {0}, {0}, {true, true, true}},
    {"[{\"id\":\"a\",\"status\":200,\"status\":200},{\"id\":\"b\",\"status\":999}]", HK_RESULTS_LIST, {0, 999, 0}, {0}, {true}},
    {"[{\"id\":\"b\",\"status\":200,\"id\":\"b\"}]", HK_RESULTS_LIST, {0}, {0}, {false, true, false}},
    /* twice: the worse one */
    {"[{\"id\":\"a\",\"status\":200},{\"id\":\"a\",\"status\":503}]", HK_RESULTS_LIST, {503}, {0}, {0}},
    {"[{\"id\":\"a\",\"status\":503},{\"id\":\"a\",\"status\":200}]", HK_RESULTS_LIST, {503}, {0}, {0}},
    {"[{\"id\":\"a\",\"status\":200},{\"id\":\"a\"}]", HK_RESULTS_LIST, {0}, {0}, {true}},
    {"[{\"id\":\"a\"},{\"id\":\"a\",\"status\":200}]", HK_RESULTS_LIST, {0}, {0}, {true}},
    /* waits */
    {"[{\"id\":\"a\",\"status\":429,\"retry_after\":1.5},{\"id\":\"b\",\"status\":429,\"retry_after\":\"Wed, 21 Oct 2026 07:28:00 GMT\"},{\"id\":\"c\",\"status\":429,\"retry_after\":0}]",
     HK_RESULTS_LIST, {429, 429, 429}, {"2", "Wed, 21 Oct 2026 07:28:00 GMT", "0"}, {0}},
    {"[{\"id\":\"a\",\"status\":429,\"retry_after\":-1},{\"id\":\"b\",\"status\":429,\"retry_after\":1e3},{\"id\":\"c\",\"status\":429,\"retry_after\":99999999999999999999}]",
     HK_RESULTS_LIST, {429, 429, 429}, {0}, {0}},
    {"[{\"id\":\"a\",\"status\":429,\"retry_after\":[1]},{\"id\":\"b\",\"status\":429,\"retry_after\":\"\"},{\"id\":\"c\",\"status\":429,\"retry_after\":null}]",
     HK_RESULTS_LIST, {429, 429, 429}, {0}, {0}},

    /* lists that cannot be read */
    {"{\"results\":[{\"id\":\"a\",\"status\":200}", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{\"results\":[{\"id\":\"a\",\"status\":200}]", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{\"results\":[{\"id\":\"a\",\"status\":200}]}}", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{\"id\":\"a\",\"status\":200}\n{\"id\":\"b\",\"status\":200}\n", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"\xef\xbb\xbf{\"results\":[{\"id\":\"a\",\"status\":422}]}", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{\"results\":{\"a\":200}}", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{\"results\":null}", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{\"results\":[],\"results\":[]}", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"[", HK_RESULTS_BROKEN, {0}, {0}, {0}},
    {"{results: []}", HK_RESULTS_BROKEN, {0}, {0}, {0}},
};

/* clang-format on */

static bool same_hint(struct hk_str hint, const char *expected)
{
    return hk_str_eq(hint, hk_str_of(expected ? expected : ""));
}

static void reads_lists_of_results(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(results_rows); i++) {
        const struct results_row *row = &results_rows[i];
        struct hk_result items[N] = {{.id = hk_str_of("a"), .status = 7},
                                     {.id = hk_str_of("b"), .unclear = true},
                                     {.id = hk_str_of("c")}};
        enum hk_results results = hk_results_read(hk_str_of(row->body), items, N);
        NOTE_IF(results != row->results, "%s: %d\n", row->body, (int)results);
        assert_int_equal(results, row->results);
        for (size_t k = 0; k < N && results == HK_RESULTS_LIST; k++) {
            bool fine = items[k].status == row->status[k] && same_hint(items[k].hint, row->hint[k]) &&
                        items[k].unclear == row->unclear[k];
            NOTE_IF(!fine, "%s: item %zu has %d, %.*s\n", row->body, k, items[k].status,
                    (int)items[k].hint.len, items[k].hint.ptr);
            assert_true(fine);
        }
    }
}

static void an_entry_is_kept_as_it_stands_there(void **state)
{
    (void)state;
    struct hk_result items[1] = {{.id = hk_str_of("a")}};
    struct hk_str body =
        hk_str_of("{\"results\":[{\"id\":\"b\"}, {\"id\":\"a\",\"status\":422, \"error\":{\"x\":[1]}} ]}");
    assert_int_equal(hk_results_read(body, items, 1), HK_RESULTS_LIST);
    assert_true(hk_str_eq(items[0].text, hk_str_of("{\"id\":\"a\",\"status\":422, \"error\":{\"x\":[1]}}")));
}

enum {
    MANY = 1000
};

/* In any order, and with two items of the same id, each result finds its item. */
static void finds_items_in_any_order(void **state)
{
    (void)state;
    static struct hk_result items[MANY];
    static char ids[MANY][8];
    struct hk_buf body;
    hk_buf_init(&body, 1 << 20);
    (void)hk_buf_adds(&body, "[");
    for (unsigned i = 0; i < MANY; i++) {
        unsigned at = (i * 617u + 5) % MANY; /* all of them, scattered */
        (void)snprintf(ids[i], sizeof ids[i], "m%u", i);
        items[i] = (struct hk_result){.id = hk_str_of(ids[i])};
        (void)hk_buf_addf(&body, "%s{\"id\":\"m%u\",\"status\":%u}", i ? "," : "", at, 200 + at % 400);
    }
    (void)hk_buf_adds(&body, "]");
    assert_int_equal(hk_results_read(hk_buf_str(&body), items, MANY), HK_RESULTS_LIST);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(items[i].status, 200 + i % 400);
    hk_buf_fini(&body);
    struct hk_result twins[] = {{.id = hk_str_of("a")}, {.id = hk_str_of("a")}};
    struct hk_str both = hk_str_of("[{\"id\":\"a\",\"status\":200},{\"id\":\"a\",\"status\":422}]");
    assert_int_equal(hk_results_read(both, twins, 2), HK_RESULTS_LIST);
    assert_int_equal(twins[0].status, 200);
    assert_int_equal(twins[1].status, 422);
}

/* ---- settings ---- */

/* `batch: 30` is short for a section, and gives the destination places for four batches unless it says otherwise. */
static void the_configuration_has_a_short_form(void **state)
{
    (void)state;
    static const char text[] =
        "store: sqlite:x.db\n"
        "destinations:\n"
        "  a: { http: { url: 'https://a.example/', batch: 30 } }\n"
        "  b: { http: { url: 'https://a.example/', batch: { bytes: 2KiB, wait: 0s, format: ndjson } }, limits: { "
        "concurrency: 200 } }\n"
        "  c: { http: { url: 'https://a.example/' } }\n";
    struct hk_diags diags;
    struct hk_config *config = NULL;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse(text, sizeof text - 1, "f", NULL, &diags, &config), HK_OK);
    const struct hk_conf_destination *a = hk_config_destination(config, 0),
                                     *b = hk_config_destination(config, 1);
    const struct hk_conf_destination *c = hk_config_destination(config, 2);
    assert_true(a->http.batch.on && a->http.batch.messages == 30 && a->http.batch.bytes == 1 << 20);
    assert_true(a->http.batch.wait_ms == 5 && a->http.batch.format == HK_CONF_BATCH_JSON);
    assert_int_equal(a->limits.concurrency, 120);
    assert_true(b->http.batch.on && b->http.batch.messages == 100 && b->http.batch.bytes == 2048);
    assert_true(b->http.batch.wait_ms == 0 && b->http.batch.format == HK_CONF_BATCH_NDJSON);
    assert_int_equal(b->limits.concurrency, 200);
    assert_true(!c->http.batch.on && !c->limits.concurrency);
    hk_config_free(config);
    hk_diags_fini(&diags);
}

/* ---- out of memory ---- */

static enum hk_code read_results(void)
{
    struct hk_result items[2] = {{.id = hk_str_of("a")}, {.id = hk_str_of("b")}};
    struct hk_str body = hk_str_of("[{\"id\":\"b\",\"status\":200},{\"id\":\"\\u0061\",\"status\":422}]");
    enum hk_results results = hk_results_read(body, items, 2);
    if (results == HK_RESULTS_LIST)
        assert_true(items[0].status == 422 && items[1].status == 200);
    return results == HK_RESULTS_NOMEM ? HK_NOMEM : HK_OK;
}

static enum hk_code write_item(enum hk_item_form form)
{
    struct hk_buf out;
    struct hk_message msg = message_with("text/plain", "hello");
    msg.headers = hk_str_of("{\"X-A\":\"b\"}");
    hk_buf_init(&out, ITEM_MAX);
    enum hk_code rc = hk_item_write(form, "/shop", &msg, 1, &out, NULL);
    hk_buf_fini(&out);
    return rc;
}

static enum hk_code write_line(void)
{
    return write_item(HK_ITEM_LINE);
}

static enum hk_code write_event(void)
{
    return write_item(HK_ITEM_EVENT);
}

static void survives_without_memory(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(read_results, HK_OK) >= 2); /* the index, and an id with an escape */
    assert_true(fail_each_allocation(write_line, HK_OK) >= 1);
    assert_true(fail_each_allocation(write_event, HK_OK) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_items),
        cmocka_unit_test(an_item_says_all_that_is_known),
        cmocka_unit_test(reads_lists_of_results),
        cmocka_unit_test(an_entry_is_kept_as_it_stands_there),
        cmocka_unit_test(finds_items_in_any_order),
        cmocka_unit_test(the_configuration_has_a_short_form),
        cmocka_unit_test(survives_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
