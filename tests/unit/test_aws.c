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
#include "sink/aws/sigv4.h"
#include "sink/sqs/impl.h"

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
    struct hk_err err = {.code = HK_OK};
    char path[] = "/tmp/hikyaku-aws-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char text[] = "[default]\naws_access_key_id=AF\naws_secret_access_key=SF\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    (void)close(fd);
    struct hk_aws_source source = {.env = variable};
    memset(variables, 0, sizeof variables);
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_DENIED);
    assert_non_null(strstr(err.message, "AWS_ACCESS_KEY_ID"));
    variables[0][0] = "AWS_SHARED_CREDENTIALS_FILE";
    variables[0][1] = path;
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_OK);
    assert_string_equal(c.key_id, "AF");
    variables[1][0] = "AWS_ACCESS_KEY_ID";
    variables[1][1] = "AE";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_DENIED); /* without its secret */
    variables[2][0] = "AWS_SECRET_ACCESS_KEY";
    variables[2][1] = "SE";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_OK);
    assert_string_equal(c.key_id, "AE");
    source.file = path;
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_OK);
    assert_string_equal(c.key_id, "AF");
    source.profile = "nobody";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_DENIED);
    assert_non_null(strstr(err.message, "nobody"));
    source.file = "/nowhere/credentials";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_DENIED);
    assert_non_null(strstr(err.message, "/nowhere/credentials"));
    source.key_id = "AC";
    source.secret = "SC";
    assert_int_equal(hk_aws_credentials_load(&source, &c, &err), HK_OK);
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

static void write_entry(const struct hk_message *msg, bool fifo, struct hk_buf *out)
{
    struct hk_fields fields;
    struct hk_json json;
    size_t bytes = 0;
    hk_fields_init(&fields);
    assert_int_equal(hk_fields_make(&fields, &hk_sqs_rule, NULL, msg, 1, NULL), HK_OK);
    const struct hk_sqs_entry entry = {.msg = msg, .fields = &fields, .body = msg->payload, .fifo = fifo};
    assert_int_equal(hk_sqs_entry_check(&entry, &bytes, NULL), HK_OK);
    assert_true(bytes > msg->payload.len);
    hk_json_init(&json, out, false);
    hk_sqs_entry_write(&json, &entry, 3);
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
    write_entry(&msg, false, &out);
    assert_string_equal(hk_buf_cstr(&out),
                        "{\"Id\":\"3\",\"MessageBody\":\"{\\\"a\\\":1}\",\"MessageAttributes\":{" COLUMNS
                        "," ATTRIBUTE("X-Tenant", "acme") "}}");
    hk_buf_reset(&out);
    msg =
        message("x", "{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\",\"e\":\"5\",\"f\":\"6\",\"g\":\"7\"}");
    write_entry(&msg, true, &out); /* more than ten with the columns; a blank is not for a group */
    assert_non_null(strstr(hk_buf_cstr(&out), COLUMNS
                           ",\"headers\":{\"DataType\":\"String\",\"StringValue\":\"{\\\"a\\\":\\\"1\\\","));
    assert_non_null(strstr(hk_buf_cstr(&out), "\"MessageGroupId\":\"ca786f1e"));
    assert_non_null(strstr(hk_buf_cstr(&out), "\"MessageDeduplicationId\":\"m-1\""));
    hk_buf_reset(&out);
    msg = message("x", "{\"a!\":\"1\"}"); /* a name that is none for SQS */
    write_entry(&msg, false, &out);
    assert_non_null(strstr(hk_buf_cstr(&out), "\"headers\":{"));
    hk_buf_fini(&out);
}

static void what_sqs_cannot_carry_is_refused(void **state)
{
    (void)state;
    static char large[HK_SQS_MESSAGE_BYTES + 1];
    memset(large, 'x', sizeof large - 1);
    struct hk_fields fields = {.n = 0};

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
        const struct hk_sqs_entry entry = {.fields = &fields, .body = rows[i].body};
        size_t bytes = 0;
        NOTE_IF(hk_sqs_entry_check(&entry, &bytes, NULL) != rows[i].rc, "row %zu\n", i);
        assert_int_equal(hk_sqs_entry_check(&entry, &bytes, NULL), rows[i].rc);
    }
    large[sizeof large - 1] = 'x';
    const struct hk_sqs_entry over = {.fields = &fields, .body = {large, sizeof large}};
    size_t bytes = 0;
    assert_int_equal(hk_sqs_entry_check(&over, &bytes, NULL), HK_TOOBIG);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
