/* SPDX-License-Identifier: Apache-2.0 */
/* What NATS servers say, and the keys that answer them. */
#include "base/str.h"
#include "check.h"
#include "sink/nats/impl.h"

static void operations_are_read_as_a_whole(void **state)
{
    (void)state;
    static const char bytes[] =
        "MSG _INBOX.a.7 1 5\r\nhello\r\nHMSG _INBOX.a.8 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
        "PING\r\n-ERR 'Authorization Violation'\r\n+OK\r\n";
    struct hk_str in = {bytes, sizeof bytes - 1};
    struct hk_nats_op op;
    const char *why = "";
    size_t used = 0;
    for (size_t n = 0; n < 27; n++)
        assert_int_equal(hk_nats_read((struct hk_str){bytes, n}, &op, &used, &why), HK_NATS_MORE);
    assert_int_equal(hk_nats_read(in, &op, &used, &why), HK_NATS_WHOLE);
    assert_true(used == 27 && op.kind == HK_NATS_MSG && !op.status);
    assert_true(hk_str_eq(op.subject, hk_str_of("_INBOX.a.7")) && hk_str_eq(op.payload, hk_str_of("hello")));
    in = (struct hk_str){in.ptr + used, in.len - used};
    assert_int_equal(hk_nats_read(in, &op, &used, &why), HK_NATS_WHOLE);
    assert_true(op.kind == HK_NATS_MSG && op.status == 503 && !op.payload.len);
    in = (struct hk_str){in.ptr + used, in.len - used};
    assert_int_equal(hk_nats_read(in, &op, &used, &why), HK_NATS_WHOLE);
    assert_int_equal(op.kind, HK_NATS_PING);
    in = (struct hk_str){in.ptr + used, in.len - used};
    assert_int_equal(hk_nats_read(in, &op, &used, &why), HK_NATS_WHOLE);
    assert_true(op.kind == HK_NATS_ERR && hk_str_eq(op.text, hk_str_of("Authorization Violation")));
}

static void what_is_no_nats_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"HTTP/1.1 400 Bad Request\r\n",
                                      "SSH-2.0\r\n",
                                      "\r\n",
                                      "MSG\r\n",
                                      "MSG a 1\r\n",
                                      "MSG a 1 b 1 c\r\n",
                                      "MSG a 1 -1\r\n",
                                      "MSG a 1 99999999\r\n",
                                      "MSG a 1 2\r\nabcd",
                                      "HMSG a 1 5 4\r\n",
                                      "HMSG a 1 4\r\n"};
    struct hk_nats_op op;
    const char *why = "";
    size_t used = 0;
    for (size_t i = 0; i < COUNT(bad); i++) {
        NOTE_IF(hk_nats_read(hk_str_of(bad[i]), &op, &used, &why) != HK_NATS_WRONG, "%s\n", bad[i]);
        assert_int_equal(hk_nats_read(hk_str_of(bad[i]), &op, &used, &why), HK_NATS_WRONG);
    }
}

static void count_url(void *arg, struct hk_str url)
{
    *(unsigned *)arg += hk_str_eq(url, hk_str_of("10.0.0.1:4222")) || hk_str_eq(url, hk_str_of("[::1]:5"));
}

static void info_and_acks_are_read(void **state)
{
    (void)state;
    struct hk_nats_info info;
    struct hk_nats_ack ack;
    unsigned urls = 0;
    assert_true(hk_nats_read_info(
        hk_str_of(
            "{\"server_id\":\"x\",\"headers\":true,\"max_payload\":1048576,\"a\":{\"b\":[1]},\"nonce\":\"n\\u0031\","
            "\"connect_urls\":[\"10.0.0.1:4222\",\"[::1]:5\"],\"tls_required\":true,\"ldm\":true}"),
        &info, count_url, &urls));
    assert_true(info.headers && info.tls && info.lame_duck && info.max_payload == 1048576 && urls == 2);
    assert_string_equal(info.nonce, "n1");
    assert_false(hk_nats_read_info(hk_str_of("{\"headers\":true"), &info, count_url, &urls));
    assert_false(hk_nats_read_info(hk_str_of("[]"), &info, count_url, &urls));
    assert_true(hk_nats_read_ack(hk_str_of("{\"stream\":\"E\",\"seq\":17}"), &ack));
    assert_true(ack.stored && ack.sequence == 17 && !ack.duplicate);
    assert_true(hk_nats_read_ack(hk_str_of("{\"stream\":\"E\",\"seq\":17,\"duplicate\":true}"), &ack));
    assert_true(ack.stored && ack.duplicate);
    assert_true(hk_nats_read_ack(
        hk_str_of(
            "{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum messages exceeded\"},\"stream\":\"S\",\"seq\":0}"),
        &ack));
    assert_true(!ack.stored && ack.code == 503 && ack.err_code == 10077);
    assert_string_equal(ack.description, "maximum messages exceeded");
    assert_true(hk_nats_read_ack(hk_str_of("{\"streams\":[\"E\"]}"), &ack) && ack.has_streams);
    assert_true(hk_nats_read_ack(hk_str_of("{\"streams\":null,\"total\":0}"), &ack) && !ack.has_streams);
    assert_true(hk_nats_read_ack(hk_str_of("{\"stream\":\"E\",\"seq\":0}"), &ack) && !ack.stored);
    assert_true(hk_nats_read_ack(hk_str_of("{\"ok\":true}"), &ack) && !ack.stored);
    assert_false(hk_nats_read_ack(hk_str_of("pong"), &ack));
}

static void every_error_has_its_meaning(void **state)
{
    (void)state;

    static const struct {
        int64_t code, err_code;
        enum hk_fault fault;
    } rows[] = {{503, 10077, HK_FAULT_BROKER_THROTTLED}, {503, 10002, HK_FAULT_BROKER_THROTTLED},
                {503, 10023, HK_FAULT_BROKER_THROTTLED}, {500, 10028, HK_FAULT_BROKER_THROTTLED},
                {500, 10047, HK_FAULT_BROKER_THROTTLED}, {400, 10054, HK_FAULT_BROKER_REFUSED},
                {400, 10060, HK_FAULT_BROKER_REFUSED},   {400, 10109, HK_FAULT_BROKER_REFUSED},
                {503, 10039, HK_FAULT_BROKER_REFUSED},   {503, 10076, HK_FAULT_BROKER_REFUSED},
                {503, 10008, HK_FAULT_BROKER_TRANSIENT}, {503, 0, HK_FAULT_BROKER_TRANSIENT},
                {429, 0, HK_FAULT_BROKER_THROTTLED},     {400, 12345, HK_FAULT_BROKER_UNKNOWN}};

    static const struct {
        const char *words;
        enum hk_fault fault;
    } errs[] = {{"Authorization Violation", HK_FAULT_BROKER_AUTH},
                {"User Authentication Expired", HK_FAULT_BROKER_AUTH},
                {"Authentication Timeout", HK_FAULT_BROKER_AUTH},
                {"Permissions Violation for Subscription to \"_INBOX.a.*\"", HK_FAULT_BROKER_AUTH},
                {"Permissions Violation for Publish to \"a.b\"", HK_FAULT_NONE},
                {"maximum connections exceeded", HK_FAULT_BROKER_THROTTLED},
                {"Maximum Payload Violation", HK_FAULT_PROTOCOL},
                {"Unknown Protocol Operation", HK_FAULT_PROTOCOL},
                {"Stale Connection", HK_FAULT_BROKER_TRANSIENT},
                {"Server Shutdown", HK_FAULT_BROKER_TRANSIENT}};

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(hk_nats_fault(rows[i].code, rows[i].err_code), rows[i].fault);
    for (size_t i = 0; i < COUNT(errs); i++)
        assert_int_equal(hk_nats_err_fault(hk_str_of(errs[i].words)), errs[i].fault);
}

static void subjects_are_words_between_dots(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "a\tb", "a\r\nb"};
    assert_true(hk_nats_subject_ok(hk_str_of("a")) && hk_nats_subject_ok(hk_str_of("events.Order-1.k_2")));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(hk_nats_subject_ok(hk_str_of(bad[i])));
}

/* Seed, public key and signature were computed by another library, for the bytes 0 to 31. */
static void seeds_are_read_and_sign(void **state)
{
    (void)state;
    struct hk_nkey key;
    struct hk_str jwt;
    struct hk_buf signature;
    char creds[512];
    static const char *const bad[] = {"", "SU", "SUAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                      "not a seed",
                                      "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4HZRXB"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(hk_nkey_parse(hk_str_of(bad[i]), &key));
    static const char seed[] = "SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y";
    (void)snprintf(creds, sizeof creds,
                   "-----BEGIN NATS USER JWT-----\r\neyJ0.a.b\r\n------END NATS USER JWT------\r\n\r\n"
                   "-----BEGIN USER NKEY SEED-----\r\n%s\r\n------END USER NKEY SEED------\r\n",
                   seed);
    assert_true(hk_nkey_read_creds(hk_str_of(creds), &jwt, &key));
    assert_true(hk_str_eq(jwt, hk_str_of("eyJ0.a.b")));
    assert_string_equal(key.public_key, "UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK");
    assert_true(hk_nkey_read_creds(hk_str_of(seed), &jwt, &key) && !jwt.len);
    hk_buf_init(&signature, 128);
    assert_true(hk_nkey_sign(&key, hk_str_of("nonce"), &signature));
    assert_string_equal(
        hk_buf_cstr(&signature),
        "-HTq4d6DDHVNb8MsTRAZtSIa0vXA_yuZblwTA7JT5wYzmKBxJ2wpYfjHh7hcptZlidbVw_6ZLyubjm_yDk-OCQ");
    hk_buf_fini(&signature);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_read_as_a_whole),  cmocka_unit_test(what_is_no_nats_is_refused),
        cmocka_unit_test(info_and_acks_are_read),          cmocka_unit_test(every_error_has_its_meaning),
        cmocka_unit_test(subjects_are_words_between_dots), cmocka_unit_test(seeds_are_read_and_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
