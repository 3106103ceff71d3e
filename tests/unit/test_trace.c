/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent and sampling; what OTEL_* make of an exporter; and spans as OTLP, read by others: jansson for JSON, and for protobuf a
 * reader of its wire format that knows nothing of the writer. (tests/e2e/telemetry.py asks the generated classes.) */
#include <hikyaku/rng.h>
#include <jansson.h>

#include "base/mem.h"
#include "base/str.h"
#include "failing.h"
#include "observe/otlp.h"
#include "observe/otlp_export.h"
#include "observe/otlp_options.h"
#include "observe/trace.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* ---- traceparent ---- */

static void only_a_traceparent_is_taken_for_one(void **state)
{
    static const struct {
        const char *text;
        bool taken, sampled;
    } rows[] = {
        {PARENT, true, true},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true, false},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", true, true},
        {"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later", true, true},
        {"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true, true},
        {"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.later", false, false},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", false, false},
        {"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false},
        {"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false, false},
        {"00-00000000000000000000000000000000-b7ad6b7169203331-01", false, false},
        {"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false, false},
        {"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", false, false},
        {"0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false, false},
        {"", false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_trace trace = {.sampled = false};
        NOTE_IF(hk_trace_parse(hk_str_of(rows[i].text), &trace) != rows[i].taken, "%s\n", rows[i].text);
        assert_int_equal(hk_trace_parse(hk_str_of(rows[i].text), &trace), rows[i].taken);
        assert_int_equal(trace.sampled, rows[i].sampled);
    }
}

static void a_traceparent_comes_out_as_it_went_in(void **state)
{
    struct hk_trace trace;
    char text[HK_TRACEPARENT_SIZE], id[HK_TRACE_ID_TEXT], span[HK_SPAN_ID_TEXT];
    (void)state;
    assert_true(hk_trace_parse(hk_str_of(PARENT), &trace));
    hk_trace_format(&trace, text);
    assert_string_equal(text, PARENT);
    hk_trace_id_text(&trace, id);
    assert_string_equal(id, "0af7651916cd43dd8448eb211c80319c");
    hk_span_id_text(trace.span_id, span);
    assert_string_equal(span, "b7ad6b7169203331");
}

static void ids_follow_the_seed(void **state)
{
    struct hk_rng a, b;
    struct hk_trace x, y;
    (void)state;
    hk_rng_seed(&a, 5, 1);
    hk_rng_seed(&b, 5, 1);
    hk_trace_new_id(x.trace_id, &a);
    hk_trace_new_id(y.trace_id, &b);
    assert_memory_equal(x.trace_id, y.trace_id, 16);
    hk_trace_new_span(x.span_id, &a);
    hk_trace_new_span(y.span_id, &b);
    assert_memory_equal(x.span_id, y.span_id, 8);
    hk_trace_new_span(y.span_id, &b);
    assert_memory_not_equal(x.span_id, y.span_id, 8);
}

static void samplers_have_the_names_and_the_sense_of_opentelemetry(void **state)
{
    static const struct {
        const char *name;
        int no_parent, sampled_parent, other_parent;
    } rows[] = {{"always_on", 1, 1, 1},
                {"always_off", 0, 0, 0},
                {"parentbased_always_on", 1, 1, 0},
                {"parentbased_always_off", 0, 1, 0},
                {"traceidratio", 1, 1, 1},
                {"parentbased_traceidratio", 1, 1, 0}};
    struct hk_sampler sampler;
    struct hk_trace yes, no;
    (void)state;
    assert_true(hk_trace_parse(hk_str_of(PARENT), &yes));
    no = yes;
    no.sampled = false;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(hk_sampler_by_name(hk_str_of(rows[i].name), &sampler));
        assert_int_equal(hk_trace_sample(&sampler, NULL, yes.trace_id), rows[i].no_parent);
        assert_int_equal(hk_trace_sample(&sampler, &yes, yes.trace_id), rows[i].sampled_parent);
        assert_int_equal(hk_trace_sample(&sampler, &no, no.trace_id), rows[i].other_parent);
    }
    assert_false(hk_sampler_by_name(hk_str_of("jaeger_remote"), &sampler));
    assert_false(hk_sampler_by_name(hk_str_of("parentbased_"), &sampler));
}

static void a_ratio_keeps_its_share(void **state)
{
    struct hk_rng rng;
    uint8_t id[16];
    unsigned kept = 0;
    struct hk_sampler quarter = {.root = HK_SAMPLE_RATIO, .ratio = 0.25},
                      none = {.root = HK_SAMPLE_RATIO, .ratio = 0};
    (void)state;
    hk_rng_seed(&rng, 1, 1);
    for (int i = 0; i < 10000; i++) {
        hk_trace_new_id(id, &rng);
        kept += hk_trace_sample(&quarter, NULL, id);
        assert_false(hk_trace_sample(&none, NULL, id));
    }
    assert_in_range(kept, 2300, 2700);
}

/* ---- OTEL_* ---- */

static const char *const *variables; /* name, value, …, NULL */
static unsigned warnings;

static const char *get(void *arg, const char *name)
{
    (void)arg;
    for (const char *const *v = variables; v && *v; v += 2)
        if (strcmp(*v, name) == 0)
            return v[1];
    return NULL;
}

static void warn(void *arg, const char *variable, const char *why)
{
    (void)arg, (void)variable, (void)why;
    warnings++;
}

static const struct hk_otlp_env env = {.get = get, .warn = warn};
static const struct hk_otlp_given from_file = {.endpoint = "http://file:4318/",
                                               .headers = {{"X-A", "file"}},
                                               .n_headers = 1,
                                               .sample = 1,
                                               .instance_id = "i-1",
                                               .relay = "r",
                                               .version = "0.1.0"};

static enum hk_code make(const char *const *vars, struct hk_otlp_options *out, struct hk_err *err)
{
    variables = vars;
    warnings = 0;
    return hk_otlp_options_make(&from_file, &env, out, err);
}

static void endpoints_are_joined_as_the_specification_says(void **state)
{
#define ALL    "OTEL_EXPORTER_OTLP_ENDPOINT"
#define TRACES "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"

    static const struct {
        const char *vars[5];
        const char *url; /* NULL: off */
    } rows[] = {
        {{NULL}, "http://file:4318/v1/traces"},
        {{ALL, "https://c:1", NULL}, "https://c:1/v1/traces"},
        {{ALL, "https://c:1/a/", NULL}, "https://c:1/a/v1/traces"},
        {{ALL, "https://c:1/v1/traces", NULL}, "https://c:1/v1/traces"},
        {{ALL, "", NULL}, "http://file:4318/v1/traces"},
        {{ALL, "https://c:1", TRACES, "http://t/x", NULL}, "http://t/x"},
        {{"OTEL_SDK_DISABLED", "TRUE", NULL}, NULL},
        {{"OTEL_SDK_DISABLED", "false", NULL}, "http://file:4318/v1/traces"},
        {{"OTEL_TRACES_EXPORTER", "none", NULL}, NULL},
        {{"OTEL_TRACES_EXPORTER", "console", NULL}, NULL},
        {{"OTEL_TRACES_EXPORTER", "console, otlp", NULL}, "http://file:4318/v1/traces"},
    };
    struct hk_otlp_options o;
    struct hk_err err;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(make(rows[i].vars, &o, &err), HK_OK);
        if (rows[i].url)
            assert_string_equal(o.url, rows[i].url);
        else
            assert_null(o.url);
        hk_otlp_options_free(&o);
    }
}

static void what_cannot_be_passed_over_is_refused_by_name(void **state)
{
    static const struct {
        const char *vars[3];
        const char *word;
    } rows[] = {
        {{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", NULL}, "OTEL_EXPORTER_OTLP_PROTOCOL is grpc"},
        {{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc", NULL}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is grpc"},
        {{ALL, "collector:4317", NULL}, ALL " must be a URL"},
        {{TRACES, "http://", NULL}, TRACES " must be a URL"},
        {{ALL, "http://a b", NULL}, ALL " must be a URL"}};
    struct hk_otlp_options o;
    struct hk_err err;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(make(rows[i].vars, &o, &err), HK_INVALID);
        assert_non_null(strstr(err.message, rows[i].word));
        assert_null(o.url);
    }
}

static void the_rest_is_read_or_passed_over_with_a_warning(void **state)
{
    static const char *const good[] = {"OTEL_EXPORTER_OTLP_PROTOCOL",
                                       "http/json",
                                       "OTEL_EXPORTER_OTLP_HEADERS",
                                       "x-a=b%20c, X-B = d,,",
                                       "OTEL_EXPORTER_OTLP_TIMEOUT",
                                       "7",
                                       "OTEL_EXPORTER_OTLP_CERTIFICATE",
                                       "/ca.pem",
                                       "OTEL_EXPORTER_OTLP_COMPRESSION",
                                       "none",
                                       "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
                                       "gzip",
                                       "OTEL_BSP_MAX_QUEUE_SIZE",
                                       "9",
                                       "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
                                       "12",
                                       "OTEL_BSP_SCHEDULE_DELAY",
                                       "11",
                                       "OTEL_BSP_EXPORT_TIMEOUT",
                                       "13",
                                       "OTEL_TRACES_SAMPLER",
                                       "traceidratio",
                                       "OTEL_TRACES_SAMPLER_ARG",
                                       "0.25",
                                       "OTEL_RESOURCE_ATTRIBUTES",
                                       "a=1,service.name=x,b=%E9%A3%9B",
                                       "OTEL_SERVICE_NAME",
                                       "mine",
                                       NULL};
    static const char *const bad[] = {"OTEL_EXPORTER_OTLP_PROTOCOL",
                                      "carrier-pigeon",
                                      "OTEL_EXPORTER_OTLP_HEADERS",
                                      "x-a,=b,x=%zz,x-c=a%0db,x-d=%4",
                                      "OTEL_EXPORTER_OTLP_TIMEOUT",
                                      "-1",
                                      "OTEL_BSP_MAX_QUEUE_SIZE",
                                      "0",
                                      "OTEL_TRACES_SAMPLER",
                                      "sometimes",
                                      "OTEL_EXPORTER_OTLP_COMPRESSION",
                                      "brotli",
                                      NULL};
    struct hk_otlp_options o;
    struct hk_err err;
    (void)state;
    assert_int_equal(make(good, &o, &err), HK_OK);
    assert_int_equal(warnings, 0);
    assert_true(o.json && o.timeout_ms == 7 && o.queue == 9 && o.batch == 9 && o.schedule_ms == 11 &&
                o.export_ms == 13 && o.gzip);
    assert_int_equal(o.n_headers, 2);
    assert_string_equal(o.headers[0], "x-a: b c");
    assert_string_equal(o.headers[1], "X-B: d");
    assert_string_equal(o.ca_file, "/ca.pem");
    assert_true(o.sampler.root == HK_SAMPLE_RATIO && !o.sampler.parent_based && o.sampler.ratio == 0.25);
    assert_string_equal(o.resource.attrs[0].key, "service.name");
    assert_string_equal(o.resource.attrs[0].value, "mine");
    assert_int_equal(o.resource.n, 6);
    assert_string_equal(o.resource.attrs[5].value, "\xe9\xa3\x9b");
    hk_otlp_options_free(&o);

    assert_int_equal(make(bad, &o, &err), HK_OK);
    assert_int_equal(warnings, 6);
    assert_true(!o.json && o.timeout_ms == 10000 && o.queue >= 2048 && o.batch == 512 && o.n_headers == 1 &&
                !o.gzip);
    assert_true(o.sampler.root == HK_SAMPLE_ALWAYS && o.sampler.parent_based);
    hk_otlp_options_free(&o);
}

/* An empty one is written with a semicolon, and is the same field. */
static void of_two_headers_of_a_name_the_later_one_goes_out(void **state)
{
    static const char *const vars[] = {"OTEL_EXPORTER_OTLP_HEADERS", "x-a=,X-A=b,x-b=c,x-b=", NULL};
    struct hk_otlp_options o;
    struct hk_err err;
    (void)state;
    assert_int_equal(make(vars, &o, &err), HK_OK);
    assert_int_equal(o.n_headers, 2);
    assert_string_equal(o.headers[0], "X-A: b");
    assert_string_equal(o.headers[1], "x-b;");
    hk_otlp_options_free(&o);
}

/* A line has less room than a name and a value of any length together. */
static void a_header_whose_name_is_too_long_is_passed_over(void **state)
{
    static char list[9000];
    const char *const vars[] = {"OTEL_EXPORTER_OTLP_HEADERS", list, NULL};
    struct hk_otlp_options o;
    struct hk_err err;
    (void)state;
    memset(list, 'n', sizeof list - 3);
    memcpy(list + sizeof list - 3, "=v", 3);
    assert_int_equal(make(vars, &o, &err), HK_OK);
    assert_int_equal(o.n_headers, 1); /* the one that was given otherwise */
    hk_otlp_options_free(&o);
}

static enum hk_code make_and_free(void)
{
    static const char *const vars[] = {"OTEL_EXPORTER_OTLP_HEADERS",
                                       "a=b",
                                       "OTEL_EXPORTER_OTLP_CERTIFICATE",
                                       "/ca.pem",
                                       "OTEL_RESOURCE_ATTRIBUTES",
                                       "a=1",
                                       NULL};
    struct hk_otlp_options o;
    enum hk_code rc = make(vars, &o, NULL);
    if (o.url)
        hk_otlp_options_free(&o);
    return rc;
}

static void no_memory_for_options_is_an_error_and_no_leak(void **state)
{
    (void)state;
    (void)fail_each_allocation(make_and_free, HK_OK);
}

/* ---- encoding ---- */

static const struct hk_resource resource = {.version = "1.2.3"};

static struct hk_span *sample(void)
{
    struct hk_span *span = hk_span_new(256);
    assert_non_null(span);
    assert_true(hk_trace_parse(hk_str_of(PARENT), &span->trace));
    span->has_parent = span->has_link = span->failed = true;
    memset(span->parent_id, 0x11, 8);
    span->link = span->trace;
    memset(span->link.span_id, 0x22, 8);
    span->kind = HK_SPAN_CLIENT;
    span->start_ns = 1700000000000000001;
    span->end_ns = 1700000000000000002;
    span->name = hk_span_keep(span, hk_str_of("send shop"), 64);
    hk_span_text(span, "t", hk_span_keep(span, (struct hk_str){"a\xff\"\n", 4}, 64));
    hk_span_number(span, "n", -5);
    hk_span_text(span, "empty", hk_str_of(""));
    span->failure = hk_span_keep(span, hk_str_of("no"), 64);
    struct hk_span_event *event = hk_span_event(span, "exception", 1700000000000000002);
    hk_event_text(event, "e", hk_str_of("x"));
    hk_event_number(event, "k", 7);
    return span;
}

static void json_is_as_otlp_wants_it(void **state)
{
    struct hk_span *span = sample();
    struct hk_buf out;
    (void)state;
    hk_buf_init(&out, 1 << 20);
    hk_otlp_json(&resource, &span, 1, &out);
    assert_string_equal(
        hk_buf_cstr(&out),
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[]},\"scopeSpans\":[{\"scope\":{\"name\":\"hikyaku\",\"version\":"
        "\"1.2.3\"},\"spans\":[{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"b7ad6b7169203331\",\"flags\":1,"
        "\"parentSpanId\":\"1111111111111111\",\"name\":\"send shop\",\"kind\":3,\"startTimeUnixNano\":\"1700000000000000001\","
        "\"endTimeUnixNano\":\"1700000000000000002\",\"attributes\":[{\"key\":\"t\",\"value\":{\"stringValue\":"
        "\"a\xef\xbf\xbd\\\"\\n\"}},{\"key\":\"n\",\"value\":{\"intValue\":\"-5\"}}],\"events\":[{\"timeUnixNano\":"
        "\"1700000000000000002\",\"name\":\"exception\",\"attributes\":[{\"key\":\"e\",\"value\":{\"stringValue\":\"x\"}},{"
        "\"key\":\"k\",\"value\":{\"intValue\":\"7\"}}]}],\"links\":[{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\","
        "\"spanId\":\"2222222222222222\",\"flags\":1}],\"status\":{\"message\":\"no\",\"code\":2}}]}]}]}");
    hk_buf_fini(&out);
    hk_mem_free(span);
}

/* Walks the wire format: every length must end where its message ends. Returns how many fields there are, at all depths; what is not a
 * message when looked at is taken for a text. */
static bool walk(const unsigned char *p, size_t n, size_t *fields)
{
    size_t at = 0, found = 0;
    while (at < n) {
        uint64_t value[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            unsigned shift = 0;
            do {
                if (at == n || shift > 63)
                    return false;
                value[k] |= (uint64_t)(p[at] & 0x7f) << shift;
                shift += 7;
            } while (p[at++] & 0x80);
            if (k == 0 && (value[0] >> 3 == 0 || value[0] >> 3 > 20))
                return false;
            if (k == 0 && (value[0] & 7) == 1)
                at += 8;
            else if (k == 0 && (value[0] & 7) == 5)
                at += 4;
            else if (k == 0 && (value[0] & 7) != 0 && (value[0] & 7) != 2)
                return false;
            if (k == 0 && (value[0] & 7) % 4 == 1)
                break;
        }
        found++;
        if ((value[0] & 7) == 2) {
            size_t inner = 0;
            if (value[1] > n - at)
                return false;
            if (walk(p + at, value[1], &inner))
                found += inner;
            at += value[1];
        }
    }
    *fields = found;
    return at == n;
}

static void protobuf_lengths_are_right_at_every_size(void **state)
{
    static char big[70000];
    (void)state;
    memset(big, 'x', sizeof big);
    for (size_t size = 0; size < sizeof big; size += 1 + size / 7) {
        struct hk_buf out;
        size_t fields = 0;
        struct hk_span *spans[3] = {sample(), sample(), sample()};
        struct hk_span *large = hk_span_new(sizeof big);
        assert_non_null(large);
        large->name = hk_span_keep(large, (struct hk_str){big, size}, sizeof big);
        hk_mem_free(spans[1]);
        spans[1] = large;
        hk_buf_init(&out, 1 << 20);
        hk_otlp_protobuf(&resource, spans, 3, &out);
        assert_int_equal(hk_buf_status(&out), HK_OK);
        assert_true(walk((const unsigned char *)out.data, out.len, &fields));
        assert_true(fields > 60);
        hk_buf_fini(&out);
        for (size_t i = 0; i < 3; i++)
            hk_mem_free(spans[i]);
    }
}

static void a_span_is_bounded(void **state)
{
    struct hk_span *span = hk_span_new(10);
    (void)state;
    for (int i = 0; i < 40; i++) {
        hk_span_number(span, "k", i);
        (void)hk_span_event(span, "e", i);
        (void)hk_span_keep(span, hk_str_of("abcdef"), 4);
    }
    assert_true(span->n_attrs == HK_SPAN_ATTRS && span->n_events == HK_SPAN_EVENTS && span->used == 10);
    hk_mem_free(span);
}

/* ---- the queue ---- */

static void a_full_queue_drops_and_an_exporter_without_a_collector_ends(void **state)
{
    static char url[] = "http://127.0.0.1:9/v1/traces";
    struct hk_otlp_options o = {
        .url = url, .queue = 4, .batch = 4, .timeout_ms = 1000, .schedule_ms = 3600000, .export_ms = 1000};
    struct hk_exporter *exporter = NULL;
    struct hk_exporter_stats stats;
    (void)state;
    o.batch = 5; /* never reached: nothing is taken from the queue before the end */
    o.resource.version = "x";
    assert_int_equal(hk_exporter_start(&o, &exporter, NULL), HK_OK);
    for (int i = 0; i < 10; i++)
        hk_exporter_add(exporter, sample());
    hk_exporter_add(exporter, NULL);
    hk_exporter_stats(exporter, &stats);
    assert_true(stats.dropped == 7 && stats.sent == 0);
    hk_exporter_stop(exporter, 500, &stats);
    assert_true(stats.dropped == 7 && stats.failed == 4 && stats.sent == 0 && stats.failing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_traceparent_is_taken_for_one),
        cmocka_unit_test(a_traceparent_comes_out_as_it_went_in),
        cmocka_unit_test(ids_follow_the_seed),
        cmocka_unit_test(samplers_have_the_names_and_the_sense_of_opentelemetry),
        cmocka_unit_test(a_ratio_keeps_its_share),
        cmocka_unit_test(endpoints_are_joined_as_the_specification_says),
        cmocka_unit_test(what_cannot_be_passed_over_is_refused_by_name),
        cmocka_unit_test(the_rest_is_read_or_passed_over_with_a_warning),
        cmocka_unit_test(of_two_headers_of_a_name_the_later_one_goes_out),
        cmocka_unit_test(a_header_whose_name_is_too_long_is_passed_over),
        cmocka_unit_test(no_memory_for_options_is_an_error_and_no_leak),
        cmocka_unit_test(json_is_as_otlp_wants_it),
        cmocka_unit_test(protobuf_lengths_are_right_at_every_size),
        cmocka_unit_test(a_span_is_bounded),
        cmocka_unit_test(a_full_queue_drops_and_an_exporter_without_a_collector_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
