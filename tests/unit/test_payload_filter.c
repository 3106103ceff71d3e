/* SPDX-License-Identifier: Apache-2.0 */
/* The filter language: what it reads, what it refuses and where, and which letters fit. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "check.h"
#include "core/message.h"
#include "failing.h"
#include "payload/codec.h"
#include "payload/filter.h"
#include "payload_json.h"

#define NOW INT64_C(1794700800000) /* 2026-11-15T00:00:00Z */
#define DAY INT64_C(86400000)

static struct hk_str S(const char *s) {
    return hk_str_of(s);

}

static struct hk_filter *
filter_of(const char *text)

{
    struct hk_filter *filter = NULL;
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_filter_parse(text, NOW, &filter, &err);
    NOTE_IF(rc != HK_OK, "%s: %s\n", text, err.message);
    assert_int_equal(rc, HK_OK);
    return filter;
}

/* ---- reading ---- */

static void messages_take_the_terms_that_they_have(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"reason:X", "column 1: \"reason\": only dead letters have it: dead list"},
        {"key:k group:0123456789abcdef", "column 7: \"group\": only dead letters have it: dead list"},
        {"id:m", "column 1: \"id\": a message is named by its id: messages show ID"},
        {"status:failed",
         "column 1: \"status\": pending, processing, retrying, sent, dead, cancelled or any is expected"},
        {"status:pending,retrying",
         "column 1: \"status\": pending, processing, retrying, sent, dead, cancelled or any is expected"},
    };

    struct hk_filter *f = NULL;
    struct hk_err err = {.message = ""};
    struct hk_buf text;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(hk_filter_parse_messages(wrong[i].text, 1000, &f, &err), HK_INVALID);
        assert_string_equal(err.message, wrong[i].says);
    }
    assert_int_equal(hk_filter_parse_messages("status:retrying key:k older:1s type:A*", 2000, &f, &err),
                     HK_OK);
    assert_int_equal(hk_filter_query(f)->statuses, 1u << HK_RETRYING);
    assert_int_equal(hk_filter_query(f)->before_ms, 1000);
    hk_buf_init(&text, 1000);
    hk_filter_text(f, hk_filter_query(f), &text);
    assert_string_equal(hk_buf_cstr(&text), "type:A* status:retrying key:k before:1970-01-01T00:00:01.000Z");
    hk_buf_fini(&text);
    hk_filter_free(f);
    assert_int_equal(hk_filter_parse_messages("status:any", 2000, &f, &err), HK_OK);
    hk_buf_init(&text, 1000);
    hk_filter_text(f, hk_filter_query(f), &text);
    assert_string_equal(hk_buf_cstr(&text), "status:any");
    hk_buf_fini(&text);
    hk_filter_free(f);
}

static void every_term_has_its_place_in_the_query(void **state)
{
    (void)state;
    struct hk_filter *f = filter_of(
        "destination:billing reason:HTTP_422 type:Order* class:permanent status:failed,discarded "
        "fault:pipeline group:0123456789abcdef id:m-1 correlation:c:1 key:\"k \\\"1\\\\\" redrive:3");
    const struct hk_letter_query *q = hk_filter_query(f);
    assert_string_equal(q->destination, "billing");
    assert_string_equal(q->reason, "HTTP_422");
    assert_string_equal(q->event_type, "Order*");
    assert_string_equal(q->failure_class, "permanent");
    assert_int_equal(q->statuses, 1u << HK_LETTER_FAILED | 1u << HK_LETTER_DISCARDED);
    assert_string_equal(q->blame, "pipeline");
    assert_string_equal(q->fingerprint, "0123456789abcdef");
    assert_string_equal(q->message_id, "m-1");
    assert_string_equal(q->correlation_id, "c:1");
    assert_string_equal(q->key, "k \"1\\");
    assert_int_equal(q->redrive, 3);
    assert_int_equal(q->since_ms, 0);
    assert_int_equal(q->before_ms, 0);
    assert_int_equal(q->first_id, 0);
    assert_int_equal(q->last_id, 0);
    assert_null(q->match);
    hk_filter_free(f);
    hk_filter_free(NULL);
}

static void nothing_is_asked_where_nothing_is_written(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "  ", "\t\n\r "};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hk_filter *f = filter_of(texts[i]);
        const struct hk_letter_query *q = hk_filter_query(f), none = {.destination = NULL};
        assert_memory_equal(q, &none, sizeof none);
        hk_filter_free(f);
    }
    struct hk_filter *f = filter_of("status:any");
    assert_int_equal(hk_filter_query(f)->statuses, (1u << HK_NLETTER_STATUSES) - 1);
    hk_filter_free(f);
}

static void ages_and_times_narrow_each_other(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t since, before;
    } rows[] = {
        {"older:2h", 0, NOW - 7200000},
        {"newer:7d", NOW - 7 * DAY, 0},
        {"newer:7d older:1d", NOW - 7 * DAY, NOW - DAY},
        {"since:2026-11-14T00:00:00Z", NOW - DAY, 0},
        {"since:2026-11-14", NOW - DAY, 0},
        {"before:2026-11-14T09:00:00.5+09:00", 0, NOW - DAY + 500},
        {"since:2026-11-14 newer:2d", NOW - DAY, 0},
        {"since:2026-11-10 newer:2d", NOW - 2 * DAY, 0},
        {"before:2026-11-14 older:2d", 0, NOW - 2 * DAY},
        {"before:2026-11-10 older:2d", 0, NOW - 5 * DAY},
        {"older:5000w", 0, 1}, /* nothing is that old; 0 would be everything */
        {"newer:5000w", 1, 0},
        {"since:1969-01-01", 1, 0},
        {"before:1969-01-01", 0, 1},
        {"older:0", 0, NOW},
        {"age:>2h", 0, NOW - 7200000},
        {"age:<7d", NOW - 7 * DAY, 0},
        {"age:<7d age:>1d", NOW - 7 * DAY, NOW - DAY},
        {"age:>1d older:2d", 0, NOW - 2 * DAY},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_filter *f = filter_of(rows[i].text);
        NOTE_IF(hk_filter_query(f)->since_ms != rows[i].since ||
                    hk_filter_query(f)->before_ms != rows[i].before,
                "%s\n", rows[i].text);
        assert_int_equal(hk_filter_query(f)->since_ms, rows[i].since);
        assert_int_equal(hk_filter_query(f)->before_ms, rows[i].before);
        hk_filter_free(f);
    }
}

static void mistakes_are_named_with_their_column(void **state)
{
    (void)state;

    static const struct {
        const char *text, *why;
    } rows[] = {
        {"destination:", "column 1: \"destination\": a value is missing"},
        {"a destination:\"\"", "column 3: \"destination\": a value is missing"},
        {"destination:*",
         "column 1: \"destination\": * is for event types (type:Order*); name one destination"},
        {"destination:a destination:b", "column 15: \"destination\": is given twice"},
        {"older:1d older:2d", "column 10: \"older\": is given twice"},
        {"reason:http_422", "column 1: \"reason\": a reason code is expected, such as HTTP_422 or TIMEOUT"},
        {"class:nice", NULL},
        {"class:success", NULL},
        {"fault:mine", "column 1: \"fault\": destination or pipeline is expected"},
        {"group:xyz",
         "column 1: \"group\": a group's fingerprint is expected, 16 digits as `dead groups` shows it"},
        {"status:open", NULL},
        {"status:failed,", NULL},
        {"redrive:0", "column 1: \"redrive\": the number of a redrive job is expected"},
        {"redrive:-1", "column 1: \"redrive\": the number of a redrive job is expected"},
        {"redrive:x", "column 1: \"redrive\": the number of a redrive job is expected"},
        {"older:2", NULL},
        {"newer:100y", NULL},
        {"since:yesterday",
         "column 1: \"since\": a time is expected, such as 2026-11-15T08:30:00Z, or a date"},
        {"since:2026-13-01",
         "column 1: \"since\": a time is expected, such as 2026-11-15T08:30:00Z, or a date"},
        {"since:0123456789",
         "column 1: \"since\": a time is expected, such as 2026-11-15T08:30:00Z, or a date"},
        {"destination:a dest:b", "column 15: \"destination\": is given twice"},
        {"age:1h", "column 1: \"age\": > or < is expected before the duration, such as age:>1h or age:<2d"},
        {"age:>soon", NULL},
        {"age:>", NULL},
        {"日本 desti:x",
         "column 4: \"desti\": there is no such filter; did you mean destination:…; a text to look for stands in quotes"},
        {"destinaton:x",
         "column 1: \"destinaton\": there is no such filter; did you mean destination:…; a text to "
         "look for stands in quotes"},
        {"http://x", "column 1: \"http\": there is no such filter; a text to look for stands in quotes"},
        {"a \"b", "column 3: the quotes that begin here do not end"},
        {"\"a\"b", "column 4: a blank is expected after the closing quotes"},
        {"a\"b\"", "column 2: quotes stand around the whole value"},
        {"text:\"a\\n\"", "column 8: inside quotes, \\ stands before \" or \\ only"},
        {"\"\"", "column 1: \"text\": there is nothing between the quotes"},
        {"text:", "column 1: \"text\": a value is missing"},
        {"payload.a", "column 10: \"payload\": a colon and a value are expected after the path"},
        {"payload.a ", "column 10: \"payload\": a colon and a value are expected after the path"},
        {"payload.a:", "column 1: \"payload\": a value is missing; \"\" is the empty text"},
        {"x payload.a..b:1", "column 13: the name of a field is expected here"},
        {"payload.:1", "column 9: the name of a field is expected here"},
        {"payload[x]:1", "column 9: a number from 0 on, or *, is expected in brackets"},
        {"payload.a:1\"", "column 12: quotes stand around the whole value"},
        {"\xff", "the filter is not UTF-8 text"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_filter *f = NULL;
        struct hk_err err = {.code = HK_OK};
        enum hk_code rc = hk_filter_parse(rows[i].text, NOW, &f, &err);
        NOTE_IF(rc != HK_INVALID, "%s\n", rows[i].text);
        assert_int_equal(rc, HK_INVALID);
        assert_null(f);
        if (rows[i].why)
            assert_string_equal(err.message, rows[i].why);
        else
            assert_memory_equal(err.message, "column 1: \"", 11);
    }
    struct hk_filter *f = NULL;
    struct hk_err err;
    assert_int_equal(hk_filter_parse("class:nice", NOW, &f, &err), HK_INVALID);
    assert_string_equal(err.message,
                        "column 1: \"class\": a class of failures is expected: transient, rate_limit, auth, "
                        "permanent, unknown");
}

static void long_filters_are_refused(void **state)
{
    (void)state;
    char text[HK_FILTER_TEXT_MAX + 2];
    struct hk_filter *f = NULL;
    struct hk_err err;
    memset(text, 'a', sizeof text);
    text[HK_FILTER_TEXT_MAX + 1] = '\0';
    assert_int_equal(hk_filter_parse(text, NOW, &f, &err), HK_INVALID);
    text[HK_FILTER_TEXT_MAX] = '\0'; /* with "text:" before it, it could not be read again */
    assert_int_equal(hk_filter_parse(text, NOW, &f, &err), HK_INVALID);
    assert_string_equal(err.message, "the filter is longer than 4096 bytes");
    text[HK_FILTER_TEXT_MAX - 5] = '\0';
    assert_int_equal(hk_filter_parse(text, NOW, &f, &err), HK_OK);
    hk_filter_free(f);
    for (size_t i = 1; i < sizeof text; i += 2)
        text[i] = ' ';
    text[2 * HK_FILTER_TERMS_MAX] = '\0';
    assert_int_equal(hk_filter_parse(text, NOW, &f, &err), HK_OK);
    hk_filter_free(f);
    text[2 * HK_FILTER_TERMS_MAX] = 'a';
    text[2 * HK_FILTER_TERMS_MAX + 1] = '\0';
    assert_int_equal(hk_filter_parse(text, NOW, &f, &err), HK_INVALID);
    assert_string_equal(err.message, "column 129: a filter has at most 64 terms");
}

/* ---- asking ---- */

static const struct hk_letter letter = {
    .id = 7,
    .message_id = {"msg-0017", 8},
    .event_type = {"OrderCreated", 12},
    .destination = {"billing", 7},
    .correlation_id = {"Corr-5", 6},
    .error = {"HTTP 422: Connection Reset by peer", 34},
};

#define PAYLOAD                                                                                                     \
    "{\"customer\":{\"id\":42,\"name\":\"\\u6771\\u4eac Taro\"},\"items\":[{\"sku\":\"A 1\"},{\"sku\":\"B\\/2\"}]," \
    "\"big\":12345678901234567890,\"ok\":true,\"none\":null,\"tags\":[\"x\",5],\"empty\":\"\",\"a\":1,\"a\":2,"     \
    "\"a.b\":\"dotted\"}"

/* A store's sieve, written as plainly as can be. */
static bool holds(struct hk_str s, const char *needle, bool lower, bool alone)
{
    size_t len = strlen(needle);
    for (size_t i = 0; i + len <= s.len; i++) {
        size_t k = 0;
        while (k < len && (lower ? hk_ascii_lower(s.ptr[i + k]) : s.ptr[i + k]) == needle[k])
            k++;
        bool free = (i == 0 || strchr(HK_SIEVE_BEFORE, s.ptr[i - 1])) &&
                    (i + len == s.len || strchr(HK_SIEVE_BEHIND, s.ptr[i + len]));
        if (k == len && (!alone || free))
            return true;
    }
    return false;
}

static bool passes(const struct hk_letter_sieve *v, const struct hk_letter *l)
{
    const struct hk_str texts[] = {l->error,      l->message_id,  l->correlation_id,
                                   l->event_type, l->destination, l->payload};
    bool value = !v->value || holds(l->payload, v->value, false, v->value_alone) ||
                 holds(l->payload, v->value_escapes, false, false);
    bool text = !v->text || holds(l->payload, v->text_escapes, false, false);
    for (size_t i = 0; i < COUNT(texts) && !text; i++)
        text = holds(texts[i], v->text, true, false);
    return value && text;
}

static bool fits(const char *text, const char *payload)
{
    struct hk_filter *f = filter_of(text);
    const struct hk_letter_query *q = hk_filter_query(f);
    struct hk_letter l = letter;
    l.payload = S(payload);
    l.payload_bytes = l.payload.len;
    bool result = !q->match || q->match(q->match_arg, &l);
    assert_true(!result || passes(&q->sieve, &l)); /* whatever matches has passed */
    hk_filter_free(f);
    return result;
}

static bool sieved(const char *text, const char *payload)
{
    struct hk_filter *f = filter_of(text);
    struct hk_letter l = letter;
    l.payload = S(payload);
    bool result = passes(&hk_filter_query(f)->sieve, &l);
    hk_filter_free(f);
    return result;
}

static void most_of_what_cannot_match_is_known_by_its_bytes(void **state)
{
    (void)state;
    assert_true(sieved("payload.id:42", "{\"id\":42}"));
    assert_true(sieved("payload.id:42", "{\"id\" : 42 }"));
    assert_true(sieved("payload.id:42", "{\"id\":\"42\"}"));
    assert_true(sieved("payload.id:42", "[7,42]"));
    assert_true(sieved("payload.id:42", "{\"id\":\"\\u00342\"}"));
    assert_false(sieved("payload.id:42", "{\"id\":142,\"n\":\"n-42\",\"x\":420,\"y\":-42,\"z\":42.0}"));
    assert_false(sieved("payload.id:42", "{\"name\":\"\\u6771\\u4eac\"}")); /* no way to write 42 */
    assert_true(sieved("payload.id:\"\"", "{\"id\":\"\"}"));
    assert_false(sieved("payload.id:\"\"", "{\"id\":\"x\"}"));
    assert_true(sieved("payload.ok:true", "{\"ok\":true}"));
    assert_false(sieved("payload.ok:true", "{\"ok\":untrue}"));
    assert_true(sieved("payload.n:Taro", "{\"n\":\"Taro\"}"));
    assert_false(sieved("payload.n:Taro", "{\"n\":\"Taro Y\"}"));
    assert_false(sieved("payload.n:Taro", "{\"n\":\"taro\"}"));
    assert_true(sieved("payload.n:a/b", "{\"n\":\"a\\/b\"}"));
    assert_true(sieved("payload.n:東京", "{\"n\":\"\\u6771\\u4eac\"}"));
    assert_false(sieved("payload.n:東京", "{\"n\":\"Osaka\\n\"}"));
    assert_true(sieved("payload.n:\"a\\\"b\"", "{\"n\":\"a\\\"b\"}"));
    assert_true(sieved("text:TARO", "{\"n\":\"taro\"}"));
    assert_true(sieved("text:taro", "{\"n\":\"TaRO\"}"));
    assert_true(sieved("text:\"connection reset\"", "")); /* its error */
    assert_false(sieved("text:taro", "{\"n\":\"jiro\\n\"}"));
    /* of several the longest is asked */
    assert_false(sieved("payload.a:1 payload.b:12345678", "{\"a\":1,\"b\":2}"));
    assert_true(sieved("payload.a:1 payload.b:12345678", "{\"a\":2,\"b\":12345678}"));
}

static void payloads_are_asked_by_path_and_exact_value(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool fits;
    } rows[] = {
        {"payload.customer.id:42", true},
        {"payload.customer.id:\"42\"", true},
        {"payload.customer.id:42.0", false},
        {"payload.customer.id:4", false},
        {"payload.customer.id:042", false},
        {"payload.customer:42", false},
        {"payload.customer.name:\"東京 Taro\"", true},
        {"payload.customer.name:\"東京 taro\"", false},
        {"payload.customer.name:\"\\\\u6771\\\\u4eac Taro\"", false},
        {"payload.items[0].sku:\"A 1\"", true},
        {"payload.items[1].sku:\"A 1\"", false},
        {"payload.items[1].sku:B/2", true},
        {"payload.items[*].sku:B/2", true},
        {"payload.items[*].sku:C", false},
        {"payload.items.sku:B/2", false},
        {"payload.big:12345678901234567890", true},
        {"payload.big:12345678901234567891", false},
        {"payload.big:1.2345678901234567e19", false},
        {"payload.ok:true", true},
        {"payload.ok:false", false},
        {"payload.none:null", true},
        {"payload.tags[*]:5", true},
        {"payload.tags[*]:x", true},
        {"payload.tags:x", false},
        {"payload.empty:\"\"", true},
        {"payload.customer.id:\"\"", false},
        {"payload.a:1", true}, /* any of those that bear the name */
        {"payload.a:2", true},
        {"payload.a:3", false},
        {"payload.\"a.b\":dotted", true},
        {"payload.a.b:dotted", false},
        {"payload.$.ok:true", true},
        {"payload.a:1 payload.a:2 payload.ok:true", true},
        {"payload.a:1 payload.a:2 payload.ok:false", false},
        {"payload.missing:x", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        NOTE_IF(fits(rows[i].text, PAYLOAD) != rows[i].fits, "%s\n", rows[i].text);
        assert_int_equal(fits(rows[i].text, PAYLOAD), rows[i].fits);
    }
    assert_true(fits("payload[1]:8", "[7,8]"));
    assert_true(fits("payload[*]:7", "[7,8]"));
    assert_true(fits("payload.$:7", "7"));
    assert_true(fits("payload.a:1", "{\"a\":1,\"b\":")); /* cut: as far as it goes */
    assert_false(fits("payload.b:1", "{\"a\":1,\"b\":"));
    assert_false(fits("payload.a:1", ""));
    assert_false(fits("payload.a:1", "a=1"));
}

static void text_is_looked_for_everywhere(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool fits;
    } rows[] = {
        {"\"connection reset\"", true},
        {"text:\"CONNECTION reset\"", true},
        {"connection reset", true}, /* two words, both there */
        {"connection timeout", false},
        {"msg-0017", true},
        {"0017", true},
        {"corr-5", true},
        {"ordercreated", true},
        {"BILLING", true},
        {"12345678901234567890", true},
        {"東京", true}, /* as its strings are meant */
        {"\"東京 taro\"", true},
        {"\"\\\\u6771\"", true}, /* as it is written */
        {"B/2", true},
        {"B\\/2", true},
        {"大阪", false},
        {"10.0.0.1:80", false}, /* no key */
        {"text:10.0.0.1:80", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        NOTE_IF(fits(rows[i].text, PAYLOAD) != rows[i].fits, "%s\n", rows[i].text);
        assert_int_equal(fits(rows[i].text, PAYLOAD), rows[i].fits);
    }
    assert_true(fits("hello", "not JSON, but HELLO"));
    assert_false(fits("東", "\\u6771 not JSON"));
    assert_true(fits("é", "{\"é\":1}"));
    assert_false(fits("É", "{\"é\":1}")); /* ASCII only */
}

static void payloads_in_base64_are_decoded(void **state)
{
    (void)state;
    struct hk_filter *f = filter_of("payload.id:42 text:secret");
    const struct hk_letter_query *q = hk_filter_query(f);
    struct hk_letter l = letter;
    l.encoding = S("Base64");
    l.payload = S("eyJpZCI6NDIsIngiOiJzZWNyZXQifQ=="); /* {"id":42,"x":"secret"} */
    l.payload_bytes = l.payload.len;
    assert_true(q->match(q->match_arg, &l));
    l.payload = S("eyJpZCI6NDIs\nIngiOiJzZWNyZXQifQ==\n");
    assert_true(q->match(q->match_arg, &l));
    l.payload = S("eyJpZCI6NDIsIngiOiJzZWNyZXQif"); /* cut */
    assert_true(q->match(q->match_arg, &l));
    l.payload = S("{\"id\":42,\"x\":\"secret\"}"); /* it says base64 and is not */
    assert_true(q->match(q->match_arg, &l));
    l.payload = S("");
    assert_false(q->match(q->match_arg, &l));
    l.encoding = S("utf8");
    l.payload = S("eyJpZCI6NDIsIngiOiJzZWNyZXQifQ==");
    assert_false(q->match(q->match_arg, &l));
    hk_filter_free(f);
}

static void sixty_four_values_are_asked_at_once(void **state)
{
    (void)state;
    char text[2000] = "", json[2000] = "{\"x\":0";
    for (int i = 0; i < HK_FILTER_TERMS_MAX; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "payload.f%d:%d ", i, i);
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), ",\"f%d\":%d", i, i);
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "}");
    assert_true(fits(text, json));
    assert_false(fits(text, "{\"f63\":63}"));
}

/* ---- as text ---- */

static const char *text_of(const struct hk_filter *f, const struct hk_letter_query *q, struct hk_buf *buf)
{
    hk_buf_reset(buf);
    hk_filter_text(f, q, buf);
    assert_int_equal(hk_buf_status(buf), HK_OK);
    return hk_buf_cstr(buf);
}

static void filters_are_written_so_that_they_read_the_same_at_any_time(void **state)
{
    (void)state;

    static const struct {
        const char *text, *written;
    } rows[] = {
        {"", ""},
        {"age:>2h dest:b", "destination:b before:2026-11-14T22:00:00.000Z"},
        {"older:2h destination:b", "destination:b before:2026-11-14T22:00:00.000Z"},
        {"since:2026-11-14 reset", "since:2026-11-14T00:00:00.000Z text:reset"},
        {"status:discarded,failed", "status:failed,discarded"},
        {"status:any", "status:any"},
        {"redrive:3 fault:pipeline", "fault:pipeline redrive:3"},
        {"\"a b\" text:\"c\\\"\\\\d\" e\\f", "text:\"a b\" text:\"c\\\"\\\\d\" text:e\\f"},
        {"payload.$.a.\"b\"[0]:\"\" payload[*]:\"x y\" payload.$:1",
         "payload.a.b[0]:\"\" payload[*]:\"x y\" payload.$:1"},
        {"key:\"\t\" id:\"a:b\"", "id:a:b key:\"\t\""},
        {"class:auth type:* group:00000000000000ff reason:X_1",
         "reason:X_1 type:* class:auth group:00000000000000ff"},
    };
    struct hk_buf buf, again;
    hk_buf_init(&buf, HK_FILTER_TEXT_MAX);
    hk_buf_init(&again, HK_FILTER_TEXT_MAX);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_filter *f = filter_of(rows[i].text), *later = NULL;
        struct hk_err err;
        assert_string_equal(text_of(f, hk_filter_query(f), &buf), rows[i].written);
        assert_int_equal(hk_filter_parse(hk_buf_cstr(&buf), NOW + 1000 * DAY, &later, &err), HK_OK);
        assert_string_equal(text_of(later, hk_filter_query(later), &again), rows[i].written);
        hk_filter_free(f);
        hk_filter_free(later);
    }
    struct hk_filter *f = filter_of("reset destination:b");
    struct hk_letter_query q = *hk_filter_query(f);
    q.statuses = 1u << HK_LETTER_FAILED;
    q.last_id = 99;
    assert_string_equal(text_of(f, &q, &buf), "destination:b status:failed text:reset");
    hk_filter_free(f);
    hk_buf_fini(&buf);
    hk_buf_fini(&again);
}

/* ---- properties ---- */

static void random_filters_survive_writing_and_answer_the_same(void **state)
{
    (void)state;
    static const char *const terms[] = {"destination:billing",
                                        "type:Order*",
                                        "status:any",
                                        "older:3h",
                                        "newer:9d",
                                        "taro",
                                        "\"東京 tower\"",
                                        "payload.a:42",
                                        "payload.a.b:\"\"",
                                        "payload.c[*]:true",
                                        "payload[0].a:null",
                                        "text:\"\\\"\"",
                                        "payload.\"a.b\":a",
                                        "key:\"k 1\"",
                                        "payload.b:42.0"};
    struct hk_rng rng;
    struct hk_buf text, canonical, json;
    hk_rng_seed(&rng, 10, 10);
    hk_buf_init(&text, 4000);
    hk_buf_init(&canonical, 4000);
    hk_buf_init(&json, (size_t)1 << 20);
    size_t hits = 0;
    for (int i = 0; i < 3000; i++) {
        unsigned used = 0;
        hk_buf_reset(&text);
        for (uint64_t k = 0, n = 1 + hk_rng_upto(&rng, 2); k < n; k++) {
            unsigned at = (unsigned)hk_rng_upto(&rng, COUNT(terms) - 1);
            if (!(used >> at & 1u))
                hk_buf_addf(&text, "%s ", terms[at]);
            used |= 1u << at;
        }
        random_json(&rng, &json);
        struct hk_filter *f = filter_of(hk_buf_cstr(&text));
        (void)text_of(f, hk_filter_query(f), &canonical);
        hk_filter_free(f);
        bool a = fits(hk_buf_cstr(&text), hk_buf_cstr(&json));
        bool b = fits(hk_buf_cstr(&canonical), hk_buf_cstr(&json));
        assert_int_equal(a, b);
        hits += a;
    }
    assert_true(hits > 100 && hits < 2900);
    hk_buf_fini(&text);
    hk_buf_fini(&canonical);
    hk_buf_fini(&json);
}

static enum hk_code parse_and_write(void)
{
    struct hk_filter *f = NULL;
    struct hk_err err = {.code = HK_OK};
    struct hk_buf buf;
    hk_buf_init(&buf, 4000);
    enum hk_code rc = hk_filter_parse("type:a payload.a.b:1 payload.c:2 older:2h \"x y\"", NOW, &f, &err);
    assert_int_equal(rc, err.code);
    if (rc == HK_OK) {
        hk_filter_text(f, hk_filter_query(f), &buf);
        rc = hk_buf_status(&buf);
    }
    hk_filter_free(f);
    hk_buf_fini(&buf);
    return rc;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(parse_and_write, HK_OK) > 6);
}

static void without_memory_no_letter_in_base64_fits(void **state)
{
    (void)state;
    struct hk_filter *f = filter_of("payload.id:42");
    const struct hk_letter_query *q = hk_filter_query(f);
    struct failing failing = {.fail_at = 0, .for_ever = true};
    struct hk_allocator allocator = {failing_resize, failing_release, &failing};
    struct hk_letter l = letter;
    l.payload = S("{\"id\":42}");
    hk_allocator_set(&allocator);
    bool plain = q->match(q->match_arg, &l);
    size_t count = failing.count;
    l.encoding = S("base64");
    l.payload = S("eyJpZCI6NDJ9");
    bool encoded = q->match(q->match_arg, &l);
    hk_allocator_set(NULL);
    assert_true(plain && count == 0 && !encoded);
    assert_true(q->match(q->match_arg, &l));
    hk_filter_free(f);
}

/* ---- sealed payloads ---- */

struct vault {
    unsigned char fill; /* every byte of the key; 0: it cannot be had */
};

static enum hk_code fetch(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    const struct vault *v = arg;
    (void)i;
    if (!v->fill)
        return hk_err_set(err, HK_NOTFOUND, "No such file or directory");
    for (size_t k = 0; k < HK_KEY_BYTES; k++)
        out[k] = v->fill;
    return HK_OK;
}

static struct hk_keyring *ring_of(struct vault *v)
{
    static const char *const ids[] = {"k1"};
    struct hk_keyring *keys = NULL;
    const struct hk_keyring_options options = {.store = "shop", .ids = ids, .n = 1, .fetch = fetch, .arg = v};
    assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_OK);
    return keys;
}

static void who_opens_is_unsure_of_what_stays_closed(void **state)
{
    struct vault good = {7}, other = {8}, none = {0};
    struct hk_keyring *keys = ring_of(&good), *wrong = ring_of(&other), *missing = ring_of(&none);
    struct hk_pool mem = {.blocks = NULL};
    struct hk_letter l = letter;
    struct hk_err err;
    const struct hk_codec_of of = {.keys = keys, .encoding = S("sealed"), .message_id = letter.message_id};
    (void)state;
    l.encoding = S("sealed");
    assert_int_equal(hk_codec_seal(&of, S("{\"id\":42}"), &mem, &l.payload, &err), HK_OK);
    struct hk_filter *f = filter_of("payload.id:42 opens:sealed"), *plain = filter_of("payload.id:42");
    const struct hk_letter_query *q = hk_filter_query(f);
    assert_true(hk_filter_opens(f) && !hk_filter_opens(plain) && !hk_filter_query(plain)->unsure);
    hk_filter_open_sealed(f, keys);
    assert_true(q->match(q->match_arg, &l) && q->unsure->code == HK_OK);
    struct hk_keyring *const lacking[] = {wrong, missing, NULL};
    for (size_t i = 0; i < 3; i++) {
        hk_filter_open_sealed(f, lacking[i]);
        assert_int_equal(q->unsure->code, HK_OK);
        assert_true(!q->match(q->match_arg, &l));
        assert_int_equal(q->unsure->code, HK_UNAVAILABLE);
        assert_true(q->unsure->message[0] != '\0');
    }
    hk_filter_open_sealed(f, keys); /* what is damaged nobody can open: a job goes on behind it */
    l.message_id = S("another");
    assert_true(!q->match(q->match_arg, &l) && q->unsure->code == HK_OK);
    hk_filter_open_sealed(plain, missing);
    assert_true(!hk_filter_query(plain)->match(hk_filter_query(plain)->match_arg, &l));
    hk_filter_free(f);
    hk_filter_free(plain);
    f = filter_of("destination:shop"); /* looks into nothing: there is nothing to open */
    hk_filter_set_opens(f);
    assert_true(!hk_filter_opens(f) && !hk_filter_query(f)->unsure);
    hk_filter_free(f);
    hk_pool_fini(&mem);
    hk_keyring_free(keys);
    hk_keyring_free(wrong);
    hk_keyring_free(missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_take_the_terms_that_they_have),
        cmocka_unit_test(every_term_has_its_place_in_the_query),
        cmocka_unit_test(nothing_is_asked_where_nothing_is_written),
        cmocka_unit_test(ages_and_times_narrow_each_other),
        cmocka_unit_test(mistakes_are_named_with_their_column),
        cmocka_unit_test(long_filters_are_refused),
        cmocka_unit_test(payloads_are_asked_by_path_and_exact_value),
        cmocka_unit_test(most_of_what_cannot_match_is_known_by_its_bytes),
        cmocka_unit_test(text_is_looked_for_everywhere),
        cmocka_unit_test(payloads_in_base64_are_decoded),
        cmocka_unit_test(sixty_four_values_are_asked_at_once),
        cmocka_unit_test(filters_are_written_so_that_they_read_the_same_at_any_time),
        cmocka_unit_test(random_filters_survive_writing_and_answer_the_same),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(without_memory_no_letter_in_base64_fits),
        cmocka_unit_test(who_opens_is_unsure_of_what_stays_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
