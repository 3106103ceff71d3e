/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures, credentials and answers of AWS, and a message as an entry of SQS. With "sign" as its argument it signs the requests of its
 * standard input, for a comparison with somebody else's signatures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "sink/aws/answer.h"
#include "sink/aws/credentials.h"
#include "sink/aws/entry.h"
#include "sink/aws/keys.h"
#include "sink/aws/question.h"
#include "sink/aws/sigv4.h"
#include "sink/eventbridge/eventbridge.h"
#include "sink/kinesis/kinesis.h"
#include "sink/sns/sns.h"
#include "sink/sqs/sqs.h"

/* ---- a line of fields, in hexadecimal: key id, secret, region, service, time, method, path, query, body, then names and values ---- */

#define LINE_FIELDS_MAX (9 + 2 * HK_SIGV4_HEADERS_MAX)

static size_t from_hex(char *text)
{
    size_t n = 0;
    for (; text[2 * n] && text[2 * n + 1]; n++) {
        const char pair[3] = {text[2 * n], text[2 * n + 1], '\0'};
        unsigned byte = 0;
        (void)sscanf(pair, "%2x", &byte);
        text[n] = (char)byte;
    }
    text[n] = '\0';
    return n;
}

static void sign_line(char *line)
{
    struct hk_str fields[LINE_FIELDS_MAX];
    struct hk_header headers[HK_SIGV4_HEADERS_MAX];
    size_t n = 0;
    struct hk_buf out;
    for (char *at = line, *next; at && n < LINE_FIELDS_MAX; at = next) {
        next = strchr(at, ' ');
        if (next)
            *next++ = '\0';
        fields[n++] = (struct hk_str){at, from_hex(at)};
    }
    struct hk_sigv4 r = {fields[0], fields[1], fields[2], fields[3], "",       fields[5],
                         fields[6], fields[7], headers,   0,         fields[8]};
    (void)hk_str_copy(r.time, sizeof r.time, fields[4]);
    for (size_t i = 9; i + 1 < n; i += 2)
        headers[r.n_headers++] = (struct hk_header){fields[i], fields[i + 1]};
    hk_buf_init(&out, 4096);
    if (hk_sigv4_sign(&r, &out) != HK_OK)
        exit(1);
    puts(hk_buf_cstr(&out));
    hk_buf_fini(&out);
}

static int sign_lines(void)
{
    static char line[1 << 20];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        sign_line(line);
    }
    return 0;
}

/* ---- signatures ---- */

#define SCOPE                                                                                                \
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders="

/* Of the test suite that AWS published with the algorithm. */
static void signatures_are_those_of_aws(void **state)
{
    (void)state;

    static const struct {
        const char *method, *path, *query, *expected;
    } rows[] = {
        {"GET", "/", "",
         SCOPE "host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
        {"POST", "/", "",
         SCOPE "host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
        {"GET", "/", "Param2=value2&Param1=value1",
         SCOPE "host;x-amz-date, Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct hk_header headers[] = {
            {hk_str_of("x-amz-date"), hk_str_of("20150830T123600Z")},
            {hk_str_of("host"), hk_str_of("example.amazonaws.com")},
        };
        struct hk_sigv4 r = {.key_id = hk_str_of("AKIDEXAMPLE"),
                             .secret = hk_str_of("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
                             .region = hk_str_of("us-east-1"),
                             .service = hk_str_of("service"),
                             .method = hk_str_of(rows[i].method),
                             .path = hk_str_of(rows[i].path),
                             .query = hk_str_of(rows[i].query),
                             .headers = headers,
                             .n_headers = COUNT(headers)};
        struct hk_buf out;
        hk_sigv4_time(1440938160000, r.time);
        assert_string_equal(r.time, "20150830T123600Z");
        hk_buf_init(&out, 4096);
        assert_int_equal(hk_sigv4_sign(&r, &out), HK_OK);
        assert_string_equal(hk_buf_cstr(&out), rows[i].expected);
        hk_buf_fini(&out);
    }
}

/* ---- credentials ---- */

static const char *variables[8][2];

static const char *variable(const char *name)
{
    for (size_t i = 0; i < COUNT(variables) && variables[i][0]; i++)
        if (strcmp(variables[i][0], name) == 0)
            return variables[i][1];
    return NULL;
}

static void a_credentials_file_is_read_by_its_sections(void **state)
{
    (void)state;
    struct hk_aws_credentials c;
    const char *text =
        "# of the relay\r\n[default]\r\naws_access_key_id = A1\r\naws_secret_access_key=S1=/+\r\n\r\n"
        "[ temporary ]\naws_access_key_id=A2\naws_secret_access_key=S2\naws_session_token=T2\n"
        "[half]\naws_access_key_id=A3\n[bad]\naws_access_key_id=A 4\naws_secret_access_key=S4\n";
    assert_true(hk_aws_credentials_read(hk_str_of(text), hk_str_of("default"), &c));
    assert_string_equal(c.key_id, "A1");
    assert_string_equal(c.secret, "S1=/+");
    assert_string_equal(c.token, "");
    assert_true(hk_aws_credentials_read(hk_str_of(text), hk_str_of("temporary"), &c));
    assert_string_equal(c.secret, "S2");
    assert_string_equal(c.token, "T2");
    assert_false(hk_aws_credentials_read(hk_str_of(text), hk_str_of("half"), &c));
    assert_false(hk_aws_credentials_read(hk_str_of(text), hk_str_of("bad"), &c));
    assert_false(hk_aws_credentials_read(hk_str_of(text), hk_str_of("none"), &c));
}

static void credentials_come_from_the_first_place_that_has_them(void **state)
{
    (void)state;
    struct hk_aws_credentials c;
    enum hk_aws_where where = HK_AWS_CONTAINER;
    struct hk_err err = {.code = HK_OK};
    char path[] = "/tmp/hikyaku-aws-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char text[] = "[default]\naws_access_key_id=AF\naws_secret_access_key=SF\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    (void)close(fd);
    struct hk_aws_source source = {.env = variable};
    memset(variables, 0, sizeof variables);
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_OK);
    assert_int_equal(where, HK_AWS_INSTANCE);
    variables[0][0] = "AWS_EC2_METADATA_DISABLED";
    variables[0][1] = "true";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_DENIED);
    assert_non_null(strstr(err.message, "AWS_ACCESS_KEY_ID"));
    variables[0][0] = "AWS_SHARED_CREDENTIALS_FILE";
    variables[0][1] = path;
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_OK);
    assert_string_equal(c.key_id, "AF");
    variables[1][0] = "AWS_ACCESS_KEY_ID";
    variables[1][1] = "AE";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_DENIED); /* without its secret */
    variables[2][0] = "AWS_SECRET_ACCESS_KEY";
    variables[2][1] = "SE";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_OK);
    assert_string_equal(c.key_id, "AE");
    source.file = path;
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_OK);
    assert_string_equal(c.key_id, "AF");
    source.profile = "nobody";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_DENIED);
    assert_non_null(strstr(err.message, "nobody"));
    source.file = "/nowhere/credentials";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_DENIED);
    assert_non_null(strstr(err.message, "/nowhere/credentials"));
    assert_int_equal(where, HK_AWS_HERE);
    source.key_id = "AC";
    source.secret = "SC";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &where, &err), HK_OK);
    assert_string_equal(c.key_id, "AC");
    (void)unlink(path);
}

/* ---- answers ---- */

static void errors_have_a_class(void **state)
{
    (void)state;

    static const struct {
        int status;
        const char *body, *code;
        enum hk_fault fault;
        bool maybe;
    } rows[] = {
        {400, "{\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\",\"message\":\"no\"}", "QueueDoesNotExist",
         HK_FAULT_BROKER_REFUSED, false},
        {400, "{\"__type\":\"com.amazonaws.sqs#RequestThrottled\"}", "RequestThrottled",
         HK_FAULT_BROKER_THROTTLED, false},
        {400, "{\"__type\":\"ThrottlingException\"}", "ThrottlingException", HK_FAULT_BROKER_THROTTLED,
         false},
        {400, "{\"__type\":\"com.amazonaws.sqs#KmsThrottled\"}", "KmsThrottled", HK_FAULT_BROKER_THROTTLED,
         false},
        {503, "{\"__type\":\"Throttling\"}", "Throttling", HK_FAULT_BROKER_THROTTLED, false},
        {429, "", "", HK_FAULT_BROKER_THROTTLED, false},
        {400, "{\"__type\":\"com.amazonaws.sqs#KmsAccessDenied\"}", "KmsAccessDenied", HK_FAULT_BROKER_AUTH,
         false},
        {400, "{\"__type\":\"com.amazonaws.sqs#KmsDisabled\"}", "KmsDisabled", HK_FAULT_BROKER_REFUSED,
         false},
        {400, "{\"__type\":\"UnrecognizedClientException\"}", "UnrecognizedClientException",
         HK_FAULT_BROKER_AUTH, false},
        {400, "{\"__type\":\"ExpiredTokenException\"}", "ExpiredTokenException", HK_FAULT_BROKER_AUTH, false},
        {403, "<html>", "", HK_FAULT_BROKER_AUTH, false},
        {403, "{\"__type\":\"com.amazon.coral.service#SignatureDoesNotMatch:x\"}", "SignatureDoesNotMatch",
         HK_FAULT_BROKER_AUTH, false},
        {403, "<R><Error><Code>AccessDenied</Code><Message>not you", "AccessDenied", HK_FAULT_BROKER_AUTH,
         false},
        {400, "<Code>", "", HK_FAULT_BROKER_REFUSED, false},
        {400, "{\"__type\":\"InternalFailure\"}", "InternalFailure", HK_FAULT_BROKER_TRANSIENT, true},
        {500, "", "", HK_FAULT_BROKER_TRANSIENT, true},
        {413, "[]", "", HK_FAULT_BROKER_REFUSED, false},
        {302, "{}", "", HK_FAULT_BROKER_UNKNOWN, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_aws_error error;
        bool maybe = false;
        hk_aws_error_read(hk_str_of(rows[i].body), &error);
        NOTE_IF(strcmp(error.code, rows[i].code) != 0, "%s\n", rows[i].body);
        assert_string_equal(error.code, rows[i].code);
        NOTE_IF(hk_aws_fault(rows[i].status, error.code, &maybe) != rows[i].fault, "%s\n", rows[i].body);
        assert_int_equal(hk_aws_fault(rows[i].status, error.code, &maybe), rows[i].fault);
        assert_int_equal(maybe, rows[i].maybe);
    }
}

static void each_entry_has_its_own_result(void **state)
{
    (void)state;
    struct hk_aws_result r[4];
    bool maybe = false;
    const char *text =
        "{\"Successful\":[{\"Id\":\"1\",\"MessageId\":\"mid\",\"SequenceNumber\":\"18849\"},{\"Id\":\"7\"},{\"Id\":3},17],"
        "\"Failed\":[{\"Id\":\"0\",\"SenderFault\":true,\"Code\":\"InvalidMessageContents\",\"Message\":\"bad\"},"
        "{\"Id\":\"2\",\"SenderFault\":false,\"Code\":\"InternalError\"}]}";
    assert_true(hk_aws_batch_read(hk_str_of(text), r, 4));
    assert_int_equal(r[0].outcome, HK_AWS_FAILED);
    assert_int_equal(hk_aws_entry_fault(&r[0], &maybe), HK_FAULT_BROKER_REFUSED);
    assert_false(maybe);
    assert_string_equal(r[0].error.code, "InvalidMessageContents");
    assert_string_equal(r[0].error.words, "bad");
    assert_int_equal(r[1].outcome, HK_AWS_TAKEN);
    assert_string_equal(r[1].place, "MessageId mid, SequenceNumber 18849");
    assert_int_equal(hk_aws_entry_fault(&r[2], &maybe), HK_FAULT_BROKER_TRANSIENT);
    assert_true(maybe);
    assert_int_equal(r[3].outcome, HK_AWS_SILENT);

    static const char *const bad[] = {
        "", "{}", "[]", "{\"Successful\":17}", "<ok/>", "{\"Successful\":[{\"Id\":\"0\"}"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(hk_aws_batch_read(hk_str_of(bad[i]), r, 4));
}

/* ---- entries ---- */

static struct hk_message message(const char *payload, const char *headers)
{
    return (struct hk_message){.message_id = hk_str_of("m-1"),
                               .event_type = hk_str_of("Order"),
                               .key = hk_str_of("k 1"),
                               .headers = hk_str_of(headers),
                               .payload = hk_str_of(payload)};
}

/* As the third one of a batch that begins with nothing. */
static void write_entry(const struct hk_aws_service *service, const struct hk_message *msg, bool fifo,
                        struct hk_buf *out)
{
    struct hk_fields fields;
    struct hk_json json;
    size_t bytes = 0;
    char source[] = "shop";
    const struct hk_aws_sink sink = {.service = service, .fifo = fifo, .source = source};
    hk_fields_init(&fields);
    assert_int_equal(hk_fields_make(&fields, &hk_aws_rule, NULL, msg, 1, NULL), HK_OK);
    const struct hk_aws_entry entry = {.msg = msg, .fields = &fields, .body = msg->payload};
    assert_int_equal(service->check(&sink, &entry, &bytes, NULL), HK_OK);
    assert_true(bytes > msg->payload.len);
    hk_json_init(&json, out, false);
    service->add(&sink, &entry, 3, &json, out);
    hk_fields_fini(&fields);
    assert_int_equal(hk_buf_status(out), HK_OK);
}

#define ATTRIBUTE(name, value) "\"" name "\":{\"DataType\":\"String\",\"StringValue\":\"" value "\"}"
#define COLUMNS                                                                                              \
    ATTRIBUTE("message-id", "m-1")                                                                           \
    "," ATTRIBUTE("event-type", "Order") "," ATTRIBUTE("message-key",                                        \
                                                       "k 1") "," ATTRIBUTE("hikyaku-attempt", "1")

static void an_entry_holds_the_message(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 65536);
    struct hk_message msg = message("{\"a\":1}", "{\"X-Tenant\":\"acme\"}");
    write_entry(&hk_sqs_service, &msg, false, &out);
    assert_string_equal(hk_buf_cstr(&out),
                        "{\"Id\":\"3\",\"MessageBody\":\"{\\\"a\\\":1}\",\"MessageAttributes\":{" COLUMNS
                        "," ATTRIBUTE("X-Tenant", "acme") "}}");
    hk_buf_reset(&out);
    msg =
        message("x", "{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\",\"e\":\"5\",\"f\":\"6\",\"g\":\"7\"}");
    write_entry(&hk_sqs_service, &msg, true,
                &out); /* more than ten with the columns; a blank is not for a group */
    assert_non_null(strstr(hk_buf_cstr(&out), COLUMNS
                           ",\"headers\":{\"DataType\":\"String\",\"StringValue\":\"{\\\"a\\\":\\\"1\\\","));
    assert_non_null(strstr(hk_buf_cstr(&out), "\"MessageGroupId\":\"ca786f1e"));
    assert_non_null(strstr(hk_buf_cstr(&out), "\"MessageDeduplicationId\":\"m-1\""));
    hk_buf_reset(&out);
    msg = message("x", "{\"a!\":\"1\"}"); /* a name that is none for SQS */
    write_entry(&hk_sqs_service, &msg, false, &out);
    assert_non_null(strstr(hk_buf_cstr(&out), "\"headers\":{"));
    hk_buf_fini(&out);
}

static void what_sqs_cannot_carry_is_refused(void **state)
{
    (void)state;
    static char large[HK_SQS_MESSAGE_BYTES + 1];
    memset(large, 'x', sizeof large - 1);
    struct hk_fields fields = {.n = 0};
    const struct hk_aws_sink sink = {.service = &hk_sqs_service};

    const struct {
        struct hk_str body;
        enum hk_code rc;
    } rows[] = {{{"", 0}, HK_INVALID},
                {{"a\0b", 3}, HK_INVALID},
                {{"\xff", 1}, HK_INVALID},
                {{"\x1b", 1}, HK_INVALID},
                {{"\xef\xbf\xbf", 3}, HK_INVALID},
                {{"\t\n\r", 3}, HK_OK},
                {{"\xf0\x9f\x98\x80", 4}, HK_OK},
                {{large, sizeof large - 1}, HK_OK},
                {{large, sizeof large}, HK_INVALID}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct hk_aws_entry entry = {.fields = &fields, .body = rows[i].body};
        size_t bytes = 0;
        NOTE_IF(hk_sqs_service.check(&sink, &entry, &bytes, NULL) != rows[i].rc, "row %zu\n", i);
        assert_int_equal(hk_sqs_service.check(&sink, &entry, &bytes, NULL), rows[i].rc);
    }
    large[sizeof large - 1] = 'x';
    const struct hk_aws_entry over = {.fields = &fields, .body = {large, sizeof large}};
    size_t bytes = 0;
    assert_int_equal(hk_sqs_service.check(&sink, &over, &bytes, NULL), HK_TOOBIG);
}

/* ---- the other services ---- */

static void sns_gets_a_form(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 65536);
    struct hk_message msg = message("a&b=\xc3\xa9", "");
    write_entry(&hk_sns_service, &msg, true, &out);
#define MEMBER "&PublishBatchRequestEntries.member.4."
#define ENTRY(n, name, value)                                                                                \
    MEMBER "MessageAttributes.entry." n ".Name=" name MEMBER "MessageAttributes.entry." n                    \
           ".Value.DataType=String" MEMBER "MessageAttributes.entry." n ".Value.StringValue=" value
    assert_string_equal(
        hk_buf_cstr(&out),
        MEMBER "Id=3" MEMBER "Message=a%26b%3D%C3%A9" MEMBER
               "MessageGroupId=ca786f1e02cd1fa6858ba7d98a5653bb1643ebe08c849ba27d08415c02aec72a" MEMBER
               "MessageDeduplicationId=m-1" ENTRY("1", "message-id", "m-1") ENTRY("2", "event-type", "Order")
                   ENTRY("3", "message-key", "k%201") ENTRY("4", "hikyaku-attempt", "1"));
    hk_buf_fini(&out);
}

static void an_event_is_a_text_within_json(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 65536);
    struct hk_message msg = message(" {\"a\":1}", "");
    msg.created_ms = 1794731400250;
    write_entry(&hk_eventbridge_service, &msg, false, &out);
    assert_string_equal(
        hk_buf_cstr(&out),
        "{\"EventBusName\":null,\"Source\":\"shop\",\"DetailType\":\"Order\",\"Time\":1794731400,"
        "\"Detail\":\" {\\\"a\\\":1}\"}");
    hk_buf_fini(&out);
    static const char *const bad[] = {"", "[1]", "17", "{\"a\":}", "{} {}"};
    char source[] = "shop";
    const struct hk_aws_sink sink = {.service = &hk_eventbridge_service, .source = source};
    struct hk_aws_entry entry = {.msg = &msg};
    size_t bytes = 0;
    for (size_t i = 0; i < COUNT(bad); i++) {
        entry.body = hk_str_of(bad[i]);
        assert_int_equal(hk_eventbridge_service.check(&sink, &entry, &bytes, NULL), HK_INVALID);
    }
    entry.body = msg.payload;
    msg.event_type.len = 0;
    assert_int_equal(hk_eventbridge_service.check(&sink, &entry, &bytes, NULL), HK_INVALID);
}

static void a_record_has_bytes_and_a_key(void **state)
{
    (void)state;
    static char large[HK_KINESIS_RECORD_BYTES], key[257];
    struct hk_buf out;
    hk_buf_init(&out, 65536);
    struct hk_message msg = message("\x01\xff", "");
    write_entry(&hk_kinesis_service, &msg, false, &out);
    assert_string_equal(hk_buf_cstr(&out), "{\"PartitionKey\":\"k 1\",\"Data\":\"Af8=\"}");
    hk_buf_reset(&out);
    memset(key, 'k', sizeof key);
    msg.key = (struct hk_str){key, 256};
    write_entry(&hk_kinesis_service, &msg, false, &out);
    assert_non_null(
        strstr(hk_buf_cstr(&out), "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"));
    hk_buf_reset(&out);
    msg.key.len = 257; /* its hash */
    write_entry(&hk_kinesis_service, &msg, false, &out);
    assert_int_equal(strlen(hk_buf_cstr(&out)), strlen("{\"PartitionKey\":\"\",\"Data\":\"Af8=\"}") + 64);
    hk_buf_fini(&out);
    const struct hk_aws_sink sink = {.service = &hk_kinesis_service};
    msg.key = hk_str_of("k");
    struct hk_aws_entry entry = {.msg = &msg, .body = {large, sizeof large - 1}};
    size_t bytes = 0;
    assert_int_equal(hk_kinesis_service.check(&sink, &entry, &bytes, NULL), HK_OK);
    entry.body.len++;
    assert_int_equal(hk_kinesis_service.check(&sink, &entry, &bytes, NULL), HK_TOOBIG);
}

static void an_envelope_holds_the_ids_and_the_payload(void **state)
{
    (void)state;
    struct hk_buf out;
    struct hk_fields fields;
    hk_buf_init(&out, 65536);
    hk_fields_init(&fields);
    struct hk_message msg = message("{\"a\":1}", "{\"X-Tenant\":\"acme\"}");
    assert_int_equal(hk_fields_make(&fields, &hk_aws_rule, NULL, &msg, 2, NULL), HK_OK);
    assert_int_equal(hk_aws_envelope(&msg, &fields, &out, NULL), HK_OK);
#define METADATA                                                                                             \
    "{\"metadata\":{\"message-id\":\"m-1\",\"event-type\":\"Order\",\"message-key\":\"k 1\","                \
    "\"hikyaku-attempt\":\"2\",\"X-Tenant\":\"acme\"},"
    assert_string_equal(hk_buf_cstr(&out), METADATA "\"data\":{\"a\":1}}");
    hk_buf_reset(&out);
    msg.payload = hk_str_of("no JSON");
    assert_int_equal(hk_aws_envelope(&msg, &fields, &out, NULL), HK_INVALID);
    hk_buf_reset(&out);
    msg.content_type = hk_str_of("text/plain");
    assert_int_equal(hk_aws_envelope(&msg, &fields, &out, NULL), HK_OK);
    assert_string_equal(hk_buf_cstr(&out), METADATA "\"data_base64\":\"bm8gSlNPTg==\"}");
    hk_fields_fini(&fields);
    hk_buf_fini(&out);
}

static void answers_by_place_have_a_result_for_each(void **state)
{
    (void)state;
    struct hk_aws_result r[3];
    bool maybe = false;
    assert_true(hk_aws_events_read(
        hk_str_of(
            "{\"FailedEntryCount\":1,\"Entries\":[{\"EventId\":\"e1\"},{\"ErrorCode\":\"MalformedDetail\","
            "\"ErrorMessage\":\"bad\"},{}]}"),
        r, 3));
    assert_string_equal(r[0].place, "EventId e1");
    assert_int_equal(hk_aws_entry_fault(&r[1], &maybe), HK_FAULT_BROKER_REFUSED);
    assert_string_equal(r[1].error.words, "bad");
    assert_int_equal(r[2].outcome, HK_AWS_SILENT);
    assert_true(hk_aws_records_read(
        hk_str_of("{\"Records\":[{\"SequenceNumber\":\"49\",\"ShardId\":\"shardId-0\"},"
                  "{\"ErrorCode\":\"ProvisionedThroughputExceededException\"},{\"ErrorCode\":\"Odd\"}]}"),
        r, 3));
    assert_string_equal(r[0].place, "ShardId shardId-0, SequenceNumber 49");
    assert_int_equal(hk_aws_entry_fault(&r[1], &maybe), HK_FAULT_BROKER_THROTTLED);
    assert_false(maybe);
    assert_int_equal(hk_aws_entry_fault(&r[2], &maybe), HK_FAULT_BROKER_TRANSIENT);
    assert_true(maybe);
    assert_false(hk_aws_records_read(hk_str_of("{\"Records\":[{}]}"), r, 3)); /* whose is it? */
    assert_false(hk_aws_events_read(hk_str_of("{\"Records\":[{},{},{}]}"), r, 3));
}

static void answers_of_sns_are_xml(void **state)
{
    (void)state;
    struct hk_aws_result r[4];
    bool maybe = false;
    assert_true(hk_aws_publish_read(
        hk_str_of(
            "<?xml version=\"1.0\"?><PublishBatchResponse xmlns=\"http://sns\"><PublishBatchResult>"
            "<Failed><member><Id>0</Id><Code>InvalidParameter</Code><Message>a &lt;b&gt; &amp;#9 &#39;</Message>"
            "<SenderFault>true</SenderFault></member><member><Id>2</Id><Code>InternalError</Code>"
            "<SenderFault>false</SenderFault></member></Failed><Successful><member><MessageId>mid</MessageId>"
            "<Id>1</Id><SequenceNumber>10000</SequenceNumber></member><member><Id>9</Id></member></Successful>"
            "</PublishBatchResult></PublishBatchResponse>"),
        r, 4));
    assert_int_equal(hk_aws_entry_fault(&r[0], &maybe), HK_FAULT_BROKER_REFUSED);
    assert_string_equal(r[0].error.words, "a <b> &#9 '");
    assert_string_equal(r[1].place, "MessageId mid, SequenceNumber 10000");
    assert_int_equal(hk_aws_entry_fault(&r[2], &maybe), HK_FAULT_BROKER_TRANSIENT);
    assert_true(maybe);
    assert_int_equal(r[3].outcome, HK_AWS_SILENT);
    assert_true(hk_aws_publish_read(hk_str_of("<PublishBatchResult><Failed/></PublishBatchResult>"), r, 4));
    assert_int_equal(r[0].outcome, HK_AWS_SILENT);
    assert_false(hk_aws_publish_read(hk_str_of("<PublishBatchResult><Failed>"), r, 4));
    assert_false(hk_aws_publish_read(hk_str_of("{}"), r, 4));
}

/* ---- temporary keys ---- */

#define JSON_KEYS "{\"Code\":\"Success\",\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\",\"Token\":\"T\","

static void keys_have_an_end(void **state)
{
    (void)state;
    struct hk_aws_keys keys;
    struct hk_aws_error error;
    assert_true(
        hk_aws_keys_json(hk_str_of(JSON_KEYS "\"Expiration\":\"2026-11-15T06:30:00Z\"}"), &keys, &error));
    assert_string_equal(keys.credentials.token, "T");
    assert_int_equal(keys.end_ms, 1794724200000);
    assert_true(hk_aws_keys_json(hk_str_of(JSON_KEYS "\"Expiration\":\"soon\"}"), &keys, &error));
    assert_int_equal(keys.end_ms, 0);
    assert_false(hk_aws_keys_json(hk_str_of("{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"no\"}"),
                                  &keys, &error));
    assert_string_equal(error.code, "AssumeRoleUnauthorizedAccess");
    assert_string_equal(error.words, "no");
    assert_string_equal(keys.credentials.key_id, "");
    assert_false(hk_aws_keys_json(hk_str_of("{\"AccessKeyId\":\"A\"}"), &keys, &error));
    assert_true(hk_aws_keys_xml(
        hk_str_of("<AssumeRoleWithWebIdentityResponse><Credentials><SessionToken>T+/=</SessionToken>"
                  "<SecretAccessKey>S</SecretAccessKey><Expiration>2026-11-15T06:30:00.000Z</Expiration>"
                  "<AccessKeyId>A</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResponse>"),
        &keys, &error));
    assert_string_equal(keys.credentials.token, "T+/=");
    assert_int_equal(keys.end_ms, 1794724200000);
    assert_false(
        hk_aws_keys_xml(hk_str_of("<Error><Code>ExpiredTokenException</Code></Error>"), &keys, &error));
    assert_string_equal(error.code, "ExpiredTokenException");
}

static enum hk_code first_question(struct hk_aws_question *q, enum hk_aws_where where, struct hk_err *err)
{
    const struct hk_aws_source source = {.env = variable};
    hk_aws_question_init(q);
    return hk_aws_question_first(q, where, &source, "cn-north-1", err);
}

static void each_place_is_asked_at_its_address(void **state)
{
    (void)state;
    static struct hk_aws_question q;
    struct hk_err err = {.code = HK_OK};
    const struct hk_aws_source source = {.env = variable};
    memset(variables, 0, sizeof variables);
    assert_int_equal(first_question(&q, HK_AWS_INSTANCE, &err), HK_OK);
    assert_string_equal(q.method, "PUT");
    assert_string_equal(q.url, "http://169.254.169.254/latest/api/token");
    assert_int_equal(hk_aws_question_next(&q, &source, hk_str_of("t==\n"), &err), HK_OK);
    assert_string_equal(q.value, "t==");
    assert_string_equal(q.url, "http://169.254.169.254/latest/meta-data/iam/security-credentials/");
    assert_int_equal(hk_aws_question_next(&q, &source, hk_str_of("relay_1@x\nother"), &err), HK_OK);
    assert_string_equal(q.url, "http://169.254.169.254/latest/meta-data/iam/security-credentials/relay_1@x");
    q.step = HK_AWS_STEP_ROLE;
    assert_int_equal(hk_aws_question_next(&q, &source, hk_str_of("../x"), &err), HK_DENIED);
    assert_int_equal(hk_aws_question_next(&q, &source, hk_str_of(""), &err), HK_DENIED);
    q.step = HK_AWS_STEP_TOKEN;
    assert_int_equal(hk_aws_question_next(&q, &source, hk_str_of("a b"), &err), HK_DENIED);
    hk_aws_question_fini(&q);
    variables[0][0] = "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE";
    variables[0][1] = "IPv6";
    assert_int_equal(first_question(&q, HK_AWS_INSTANCE, &err), HK_OK);
    assert_string_equal(q.url, "http://[fd00:ec2::254]/latest/api/token");
    hk_aws_question_fini(&q);
    variables[0][0] = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    variables[0][1] = "/v2/credentials/1?a=b";
    assert_int_equal(first_question(&q, HK_AWS_CONTAINER, &err), HK_OK);
    assert_string_equal(q.url, "http://169.254.170.2/v2/credentials/1?a=b");
    assert_null(q.header);
    hk_aws_question_fini(&q);
    variables[0][1] = "v2"; /* another host */
    assert_int_equal(first_question(&q, HK_AWS_CONTAINER, &err), HK_DENIED);
    hk_aws_question_fini(&q);
}

/* Without TLS the token goes to this host, or to a known address. */
static void a_token_is_not_sent_anywhere(void **state)
{
    (void)state;

    static const struct {
        const char *url;
        enum hk_code rc;
    } rows[] = {{"http://127.0.0.1:8080/x", HK_OK},
                {"http://[::1]/x", HK_OK},
                {"http://localhost:1/", HK_OK},
                {"http://169.254.170.23/v1/credentials", HK_OK},
                {"http://[fd00:ec2::23]/v1/credentials", HK_OK},
                {"https://keys.example/x", HK_OK},
                {"http://keys.example/x", HK_DENIED},
                {"http://169.254.169.254/x", HK_DENIED},
                {"http://localhost.example/", HK_DENIED},
                {"http://127.0.0.1@keys.example/", HK_DENIED},
                {"http://[::1", HK_OK}, /* the HTTP client refuses it */
                {"file:///etc/passwd", HK_DENIED},
                {"http://", HK_DENIED}};

    static struct hk_aws_question q;
    memset(variables, 0, sizeof variables);
    variables[0][0] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    variables[1][0] = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
    variables[1][1] = "Bearer t";
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_err err = {.code = HK_OK};
        variables[0][1] = rows[i].url;
        enum hk_code rc = first_question(&q, HK_AWS_CONTAINER, &err);
        NOTE_IF(rc != rows[i].rc, "%s\n", rows[i].url);
        assert_int_equal(rc, rows[i].rc);
        assert_true(rc != HK_OK || strcmp(q.value, "Bearer t") == 0);
        hk_aws_question_fini(&q);
    }
    struct hk_err err = {.code = HK_OK};
    variables[0][1] = "http://127.0.0.1/";
    variables[1][1] = "a\r\nHost: b";
    assert_int_equal(first_question(&q, HK_AWS_CONTAINER, &err), HK_DENIED);
    hk_aws_question_fini(&q);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "sign") == 0)
        return sign_lines();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_those_of_aws),
        cmocka_unit_test(a_credentials_file_is_read_by_its_sections),
        cmocka_unit_test(credentials_come_from_the_first_place_that_has_them),
        cmocka_unit_test(errors_have_a_class),
        cmocka_unit_test(each_entry_has_its_own_result),
        cmocka_unit_test(an_entry_holds_the_message),
        cmocka_unit_test(what_sqs_cannot_carry_is_refused),
        cmocka_unit_test(sns_gets_a_form),
        cmocka_unit_test(an_event_is_a_text_within_json),
        cmocka_unit_test(a_record_has_bytes_and_a_key),
        cmocka_unit_test(an_envelope_holds_the_ids_and_the_payload),
        cmocka_unit_test(answers_by_place_have_a_result_for_each),
        cmocka_unit_test(answers_of_sns_are_xml),
        cmocka_unit_test(keys_have_an_end),
        cmocka_unit_test(each_place_is_asked_at_its_address),
        cmocka_unit_test(a_token_is_not_sent_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
