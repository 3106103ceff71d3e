/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, answers and tokens of Pub/Sub. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "failing.h"
#include "sink/pubsub/impl.h"

/* ---- messages ---- */

static struct hk_message message(const char *payload, const char *headers)
{
    return (struct hk_message){.message_id = hk_str_of("m-1"),
                               .event_type = hk_str_of("Order"),
                               .key = hk_str_of("k 1"),
                               .headers = hk_str_of(headers),
                               .payload = hk_str_of(payload)};
}

static enum hk_code write_message(const struct hk_message *msg, bool ordering, bool events,
                                  struct hk_buf *out, struct hk_err *err)
{
    struct hk_fields fields;
    struct hk_json json;
    struct hk_buf base64;
    size_t bytes = 0;
    const struct hk_fields_rule *rule = ordering ? &hk_pubsub_ordered_rule : &hk_pubsub_rule;
    hk_fields_init(&fields);
    hk_buf_init(&base64, 65536);
    const struct hk_pubsub_message m = {
        .fields = &fields, .data = msg->payload, .ordering_key = ordering ? msg->key : hk_str_of("")};
    enum hk_code rc = hk_fields_make(&fields, rule, events ? "/shop" : NULL, msg, 1, err);
    if (rc == HK_OK)
        rc = hk_pubsub_message_check(&m, &bytes, err);
    if (rc == HK_OK) {
        assert_true(bytes > msg->payload.len);
        hk_json_init(&json, out, false);
        hk_pubsub_message_write(&json, &m, &base64);
        rc = hk_buf_status(out);
    }
    hk_buf_fini(&base64);
    hk_fields_fini(&fields);
    return rc;
}

static void a_message_is_data_attributes_and_a_key(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, 65536);
    struct hk_message msg = message("\x01\xff", "{\"X-Tenant\":\"acme\"}");
    assert_int_equal(write_message(&msg, false, false, &out, NULL), HK_OK);
    assert_string_equal(hk_buf_cstr(&out),
                        "{\"data\":\"Af8=\",\"attributes\":{\"message-id\":\"m-1\",\"event-type\":\"Order\","
                        "\"message-key\":\"k 1\",\"hikyaku-attempt\":\"1\",\"X-Tenant\":\"acme\"}}");
    hk_buf_reset(&out);
    assert_int_equal(write_message(&msg, true, false, &out, NULL), HK_OK);
    assert_non_null(strstr(hk_buf_cstr(&out), "\"X-Tenant\":\"acme\"},\"orderingKey\":\"k 1\"}"));
    assert_null(strstr(hk_buf_cstr(&out), "message-key"));
    hk_buf_reset(&out);
    msg = message("", "{}");
    assert_int_equal(write_message(&msg, true, true, &out, NULL), HK_OK);
    assert_non_null(strstr(hk_buf_cstr(&out), "\"data\":\"\",\"attributes\":{"));
    assert_non_null(strstr(hk_buf_cstr(&out), "\"ce-id\":\"m-1\""));
    assert_non_null(strstr(hk_buf_cstr(&out), "\"ce-type\":\"Order\""));
    hk_buf_fini(&out);
}

static void what_pubsub_cannot_carry_is_refused(void **state)
{
    (void)state;
    static char value[1200], name[300];
    struct hk_buf out;
    struct hk_err err;
    hk_buf_init(&out, 65536);
    memset(value, 'v', HK_PUBSUB_VALUE_MAX);
    memset(name, 'n', HK_PUBSUB_NAME_MAX);

    const struct {
        const char *what;
        struct hk_field field;
        struct hk_str key;
        enum hk_code rc;
    } cases[] = {
        {"the longest", {hk_str_of(name), hk_str_of(value), false}, {value, HK_PUBSUB_KEY_MAX}, HK_OK},
        {"a long name", {{name, sizeof name - 1}, {"", 0}, false}, {"", 0}, HK_INVALID},
        {"no name", {{"", 0}, {"", 0}, false}, {"", 0}, HK_INVALID},
        {"a long value", {{"a", 1}, {value, HK_PUBSUB_VALUE_MAX + 1}, false}, {"", 0}, HK_INVALID},
        {"no UTF-8", {{"a", 1}, {"\xff", 1}, false}, {"", 0}, HK_INVALID},
        {"a long key", {{"a", 1}, {"", 0}, false}, {value, HK_PUBSUB_KEY_MAX + 1}, HK_INVALID},
        {"a key that is no UTF-8", {{"a", 1}, {"", 0}, false}, {"\xc3", 1}, HK_INVALID},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_fields fields = {.at = {cases[i].field}, .n = 1};
        const struct hk_pubsub_message m = {.fields = &fields, .ordering_key = cases[i].key};
        size_t bytes = 0;
        enum hk_code rc = hk_pubsub_message_check(&m, &bytes, &err);
        NOTE_IF(rc != cases[i].rc, "%s: %s\n", cases[i].what, err.message);
        assert_int_equal(rc, cases[i].rc);
    }
    struct hk_message msg = message("x", "{\"GOOG-a\":\"1\"}");
    assert_int_equal(write_message(&msg, false, false, &out, &err), HK_INVALID);
    char *large = calloc(1, HK_PUBSUB_MESSAGE_BYTES);
    struct hk_fields none = {.n = 0};
    struct hk_pubsub_message m = {.fields = &none, .data = {large, HK_PUBSUB_MESSAGE_BYTES - 24}};
    size_t bytes = 0;
    assert_int_equal(hk_pubsub_message_check(&m, &bytes, &err), HK_OK);
    m.data.len++;
    assert_int_equal(hk_pubsub_message_check(&m, &bytes, &err), HK_TOOBIG);
    free(large);
    hk_buf_fini(&out);
}

/* ---- answers ---- */

static void an_error_has_a_code_and_words(void **state)
{
    (void)state;
    struct hk_pubsub_error e;
    char large[2048];

    static const struct {
        const char *body, *code, *words;
    } cases[] = {
        {"{\"error\":{\"code\":404,\"message\":\"no topic\",\"status\":\"NOT_FOUND\"}}", "NOT_FOUND",
         "no topic"},
        {"{\"error\":{\"code\":501,\"status\":\"UNIMPLEMENTED\"}}", "UNIMPLEMENTED", ""},
        {"{\"error\":\"invalid\"}", "HTTP 418", ""},
        {"{\"error\":{\"message\":7}}", "HTTP 418", ""},
        {"<html>", "HTTP 418", ""},
        {"", "HTTP 418", ""},
        {"[]", "HTTP 418", ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        hk_pubsub_error_read(hk_str_of(cases[i].body), 418, &e);
        assert_string_equal(e.code, cases[i].code);
        assert_string_equal(e.words, cases[i].words);
    }
    (void)snprintf(large, sizeof large, "{\"error\":{\"message\":\"%01000d\",\"status\":\"%0100d\"}}", 1, 2);
    hk_pubsub_error_read(hk_str_of(large), 400, &e);
    assert_int_equal(strlen(e.words), sizeof e.words - 1);
    assert_int_equal(strlen(e.code), sizeof e.code - 1);
}

/* The code counts before the status. */
static void an_error_has_a_class(void **state)
{
    (void)state;

    static const struct {
        const char *code;
        int status;
        enum hk_fault fault;
        bool maybe, some;
    } cases[] = {
        {"INVALID_ARGUMENT", 400, HK_FAULT_BROKER_REFUSED, false, true},
        {"HTTP 400", 400, HK_FAULT_BROKER_REFUSED, false, true},
        {"HTTP 413", 413, HK_FAULT_BROKER_REFUSED, false, true},
        {"HTTP 422", 422, HK_FAULT_BROKER_REFUSED, false, true},
        {"NOT_FOUND", 404, HK_FAULT_BROKER_REFUSED, false, false},
        {"FAILED_PRECONDITION", 400, HK_FAULT_BROKER_TRANSIENT, false, false},
        {"RESOURCE_EXHAUSTED", 429, HK_FAULT_BROKER_THROTTLED, false, false},
        {"RESOURCE_EXHAUSTED", 503, HK_FAULT_BROKER_THROTTLED, false, false},
        {"HTTP 429", 429, HK_FAULT_BROKER_THROTTLED, false, false},
        {"UNAUTHENTICATED", 401, HK_FAULT_BROKER_AUTH, false, false},
        {"PERMISSION_DENIED", 403, HK_FAULT_BROKER_AUTH, false, false},
        {"HTTP 403", 403, HK_FAULT_BROKER_AUTH, false, false},
        {"ABORTED", 409, HK_FAULT_BROKER_TRANSIENT, true, false},
        {"UNAVAILABLE", 503, HK_FAULT_BROKER_TRANSIENT, true, false},
        {"INTERNAL", 500, HK_FAULT_BROKER_TRANSIENT, true, false},
        {"UNKNOWN", 500, HK_FAULT_BROKER_TRANSIENT, true, false},
        {"DEADLINE_EXCEEDED", 504, HK_FAULT_BROKER_TRANSIENT, true, false},
        {"HTTP 502", 502, HK_FAULT_BROKER_TRANSIENT, true, false},
        {"HTTP 304", 304, HK_FAULT_BROKER_UNKNOWN, true, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_pubsub_error e = {.code = ""};
        bool maybe = false, some = false;
        (void)hk_str_copy(e.code, sizeof e.code, hk_str_of(cases[i].code));
        enum hk_fault fault = hk_pubsub_fault(&e, cases[i].status, &maybe, &some);
        NOTE_IF(fault != cases[i].fault || maybe != cases[i].maybe || some != cases[i].some,
                "%s %d: %s, maybe %d, some %d\n", cases[i].code, cases[i].status, hk_fault_name(fault), maybe,
                some);
        assert_int_equal(fault, cases[i].fault);
        assert_int_equal(maybe, cases[i].maybe);
        assert_int_equal(some, cases[i].some);
    }
}

static void ids_are_one_for_each_message(void **state)
{
    (void)state;
    struct hk_pubsub_id ids[2];
    assert_true(hk_pubsub_ids_read(hk_str_of("{\"messageIds\":[\"12\",\"13\"],\"new\":1}"), ids, 2));
    assert_string_equal(ids[0].text, "12");
    assert_string_equal(ids[1].text, "13");

    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"messageIds\":[\"1\"]}",
                                      "{\"messageIds\":[\"1\",\"2\",\"3\"]}",
                                      "{\"messageIds\":[\"1\",2]}",
                                      "{\"messageIds\":[\"1\",\"\"]}",
                                      "{\"messageIds\":{\"0\":\"1\",\"1\":\"2\"}}",
                                      "{\"messageIds\":[\"1\",\"2\"]"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(hk_pubsub_ids_read(hk_str_of(bad[i]), ids, 2));
}

static void a_permission_is_among_them_or_not(void **state)
{
    (void)state;

    static const struct {
        const char *body;
        int expected;
    } cases[] = {{"{\"permissions\":[\"a\",\"p\"]}", 1},
                 {"{\"permissions\":[\"a\",7]}", 0},
                 {"{}", 0},
                 {"{\"permissions\":\"p\"}", -1},
                 {"[\"p\"]", -1},
                 {"", -1}};

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(hk_pubsub_permission_read(hk_str_of(cases[i].body), "p"), cases[i].expected);
}

/* ---- tokens ---- */

static EVP_PKEY *key;
static char pem[4096]; /* as JSON has it */

static bool write_pem(EVP_PKEY *from, char out[4096])
{
    char *bytes = NULL;
    size_t n = 0;
    BIO *bio = BIO_new(BIO_s_mem());
    bool ok = bio && from && PEM_write_bio_PrivateKey(bio, from, NULL, NULL, 0, NULL, NULL) == 1;
    long len = ok ? BIO_get_mem_data(bio, &bytes) : 0;
    for (long i = 0; i < len && n + 3 < 4096; i++) {
        if (bytes[i] == '\n')
            out[n++] = '\\';
        out[n++] = bytes[i];
        if (bytes[i] == '\n')
            out[n - 1] = 'n';
    }
    out[n] = '\0';
    BIO_free(bio);
    return ok;
}

static int make_key(void **state)
{
    (void)state;
    key = EVP_RSA_gen(2048);
    return !write_pem(key, pem);
}

static int drop_key(void **state)
{
    (void)state;
    EVP_PKEY_free(key);
    return 0;
}

static size_t decode_part(struct hk_str part, unsigned char *out, size_t room)
{
    char text[4096];
    size_t len = 0;
    assert_true(part.len < sizeof text);
    for (size_t i = 0; i < part.len; i++) {
        assert_true(part.ptr[i] != '+' && part.ptr[i] != '/' && part.ptr[i] != '=');
        text[i] = (char)(part.ptr[i] == '-' ? '+' : part.ptr[i] == '_' ? '/' : part.ptr[i]);
    }
    assert_true(hk_base64_decode((struct hk_str){text, part.len}, HK_BASE64_BARE, out, room - 1, &len));
    out[len] = '\0';
    return len;
}

static void a_key_signs_a_token_for_itself(void **state)
{
    (void)state;
    char text[8192];
    unsigned char head[1024], claims[1024], signature[1024];
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, 8192);
    (void)snprintf(text, sizeof text,
                   "{\"type\":\"service_account\",\"private_key_id\":\"k1\",\"private_key\":\"%s\","
                   "\"client_email\":\"relay@shop.iam.gserviceaccount.com\"}",
                   pem);
    assert_int_equal(hk_pubsub_jwt_make(hk_str_of(text), 1763500000, &out, &err), HK_OK);
    struct hk_str whole = hk_buf_str(&out), rest = whole, part = hk_str_cut(&rest, '.');
    (void)decode_part(part, head, sizeof head);
    assert_string_equal((char *)head, "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"k1\"}");
    (void)decode_part(hk_str_cut(&rest, '.'), claims, sizeof claims);
    assert_string_equal((char *)claims, "{\"iss\":\"relay@shop.iam.gserviceaccount.com\","
                                        "\"sub\":\"relay@shop.iam.gserviceaccount.com\","
                                        "\"aud\":\"https://pubsub.googleapis.com/\",\"iat\":1763500000,"
                                        "\"exp\":1763503600}");
    size_t signed_len = (size_t)(rest.ptr - whole.ptr - 1),
           len = decode_part(rest, signature, sizeof signature);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestVerify(context, signature, len, (const unsigned char *)whole.ptr, signed_len),
                     1);
    EVP_MD_CTX_free(context);
    hk_buf_fini(&out);
}

static void what_is_no_key_is_refused_and_not_shown(void **state)
{
    (void)state;

    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"{\"private_key\":\"hush\"", "not a JSON object"},
        {"{\"private_key\":\"hush\"}", "its \"type\" is not there"},
        {"{\"type\":\"external_account\",\"private_key\":\"hush\"}", "its \"type\" is \"external_account\""},
        {"{\"type\":\"service_account\",\"private_key\":\"hush\"}", "lacks \"client_email\""},
        {"{\"type\":\"service_account\",\"client_email\":\"a@b\"}", "lacks \"client_email\""},
        {"{\"type\":\"service_account\",\"client_email\":\"a@b\",\"private_key\":\"hush\"}",
         "not an RSA key"},
        {"{\"type\":\"service_account\",\"client_email\":\"a@b\",\"private_key\":\"-----BEGIN ENCRYPTED PRIVATE "
         "KEY-----\\nhush\\n-----END ENCRYPTED PRIVATE KEY-----\\n\"}",
         "not an RSA key"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_buf out;
        struct hk_err err = {.message = ""};
        hk_buf_init(&out, 8192);
        assert_int_equal(hk_pubsub_jwt_make(hk_str_of(cases[i].text), 1, &out, &err), HK_DENIED);
        NOTE_IF(!strstr(err.message, cases[i].says), "%s: %s\n", cases[i].text, err.message);
        assert_non_null(strstr(err.message, cases[i].says));
        assert_null(strstr(err.message, "hush"));
        hk_buf_fini(&out);
    }
}

static enum hk_code sign_with(const char *of, struct hk_err *err)
{
    char text[8192];
    struct hk_buf out;
    hk_buf_init(&out, 8192);
    (void)snprintf(text, sizeof text,
                   "{\"type\":\"service_account\",\"private_key\":\"%s\",\"client_email\":\"a@b\"}", of);
    enum hk_code rc = hk_pubsub_jwt_make(hk_str_of(text), 1, &out, err);
    hk_buf_fini(&out);
    return rc;
}

static void a_key_that_is_none_of_rsa_is_refused(void **state)
{
    (void)state;
    char text[4096];
    struct hk_err err = {.message = ""};
    EVP_PKEY *ec = EVP_EC_gen("P-256");
    assert_true(write_pem(ec, text));
    EVP_PKEY_free(ec);
    assert_int_equal(sign_with(text, &err), HK_DENIED);
    assert_non_null(strstr(err.message, "not an RSA key"));
}

static enum hk_code sign_once(void)
{
    return sign_with(pem, NULL);
}

static void without_memory_there_is_no_token(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(sign_once, HK_OK) >= 3);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_data_attributes_and_a_key),
        cmocka_unit_test(what_pubsub_cannot_carry_is_refused),
        cmocka_unit_test(an_error_has_a_code_and_words),
        cmocka_unit_test(an_error_has_a_class),
        cmocka_unit_test(ids_are_one_for_each_message),
        cmocka_unit_test(a_permission_is_among_them_or_not),
        cmocka_unit_test(a_key_signs_a_token_for_itself),
        cmocka_unit_test(what_is_no_key_is_refused_and_not_shown),
        cmocka_unit_test(a_key_that_is_none_of_rsa_is_refused),
        cmocka_unit_test(without_memory_there_is_no_token),
    };
    return cmocka_run_group_tests(tests, make_key, drop_key);
}
