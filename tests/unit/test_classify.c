/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of the default classification, written down here a second time; then the overrides. */
#include <curl/curl.h>
#include <hikyaku/policy.h>

#include "check.h"

static struct hk_policy *policy_of(const char *preset)
{
    struct hk_policy *p = NULL;
    assert_int_equal(hk_policy_new(preset, &p, NULL), HK_OK);
    return p;
}

static void expect(const struct hk_policy *p, struct hk_facts facts, enum hk_class cls, const char *cause,
                   bool pause)
{
    char got[HK_REASON_MAX];
    bool got_pause = !pause;
    enum hk_class got_cls = hk_policy_classify(p, &facts, got, &got_pause);
    NOTE_IF(got_cls != cls || strcmp(got, cause) != 0, "status %d fault %s: %s %s, want %s %s\n",
            facts.status, hk_fault_name(facts.fault), hk_class_name(got_cls), got, hk_class_name(cls), cause);
    assert_int_equal(got_cls, cls);
    assert_string_equal(got, cause);
    assert_int_equal(got_pause, pause);
}

static void test_every_status(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    for (int status = 1; status <= 1000; status++) {
        enum hk_class cls = HK_CLASS_UNKNOWN;
        char cause[HK_REASON_MAX] = "UNKNOWN";
        bool pause = false;
        if (status >= 300 && status <= 599)
            snprintf(cause, sizeof cause, "HTTP_%d", status);
        if (status >= 200 && status <= 299) {
            cls = HK_CLASS_SUCCESS;
            cause[0] = '\0';
        } else if (status == 401 || status == 403 || status == 407) {
            cls = HK_CLASS_AUTH;
            snprintf(cause, sizeof cause, "AUTH_FAILED");
        } else if (status == 429) {
            cls = HK_CLASS_RATE_LIMIT;
            snprintf(cause, sizeof cause, "RATE_LIMITED");
        } else if (status == 408 || status == 409 || status == 423 || status == 425 ||
                   (status >= 500 && status <= 599)) {
            cls = HK_CLASS_TRANSIENT;
        } else if (status >= 400 && status <= 499) {
            cls = HK_CLASS_PERMANENT;
            pause = status == 410;
        }
        expect(p, (struct hk_facts){.status = status}, cls, cause, pause);
    }
    expect(p, (struct hk_facts){.status = -1}, HK_CLASS_UNKNOWN, "UNKNOWN", false);
    hk_policy_free(p);
}

static void test_every_fault(void **state)
{
    (void)state;

    static const struct {
        enum hk_fault fault;
        enum hk_class cls;
        const char *cause;
    } rows[] = {
        {HK_FAULT_NONE, HK_CLASS_SUCCESS, ""},
        {HK_FAULT_DNS, HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
        {HK_FAULT_CONNECT, HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
        {HK_FAULT_TIMEOUT, HK_CLASS_TRANSIENT, "TIMEOUT"},
        {HK_FAULT_RESET, HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
        {HK_FAULT_NETWORK, HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
        {HK_FAULT_TLS, HK_CLASS_UNKNOWN, "TLS_FAILED"},
        {HK_FAULT_TLS_VERIFY, HK_CLASS_UNKNOWN, "TLS_FAILED"},
        {HK_FAULT_PROTOCOL, HK_CLASS_UNKNOWN, "PROTOCOL_ERROR"},
        {HK_FAULT_BLOCKED, HK_CLASS_PERMANENT, "BLOCKED_BY_POLICY"},
        {HK_FAULT_LOCAL, HK_CLASS_TRANSIENT, "LOCAL_ERROR"},
        {HK_FAULT_INVALID_PAYLOAD, HK_CLASS_PERMANENT, "VALIDATION_ERROR"},
        {HK_FAULT_SCHEMA, HK_CLASS_PERMANENT, "SCHEMA_MISMATCH"},
        {HK_FAULT_TOO_LARGE, HK_CLASS_PERMANENT, "PAYLOAD_TOO_LARGE"},
        {HK_FAULT_UNKNOWN_DESTINATION, HK_CLASS_PERMANENT, "UNKNOWN_DESTINATION"},
        {HK_FAULT_EXPIRED, HK_CLASS_PERMANENT, "EXPIRED"},
        {HK_FAULT_RELAY_CRASHED, HK_CLASS_PERMANENT, "RELAY_CRASHED"},
        {HK_FAULT_BROKER_TRANSIENT, HK_CLASS_TRANSIENT, "BROKER_UNAVAILABLE"},
        {HK_FAULT_BROKER_THROTTLED, HK_CLASS_RATE_LIMIT, "RATE_LIMITED"},
        {HK_FAULT_BROKER_AUTH, HK_CLASS_AUTH, "AUTH_FAILED"},
        {HK_FAULT_BROKER_REFUSED, HK_CLASS_PERMANENT, "BROKER_REFUSED"},
        {HK_FAULT_BROKER_UNKNOWN, HK_CLASS_UNKNOWN, "UNKNOWN"},
        {HK_FAULT_PROXY, HK_CLASS_TRANSIENT, "PROXY_UNAVAILABLE"},
        {HK_FAULT_PROXY_AUTH, HK_CLASS_TRANSIENT, "PROXY_AUTH_FAILED"},
        {HK_FAULT_PROXY_REFUSED, HK_CLASS_UNKNOWN, "PROXY_REFUSED"},
        {HK_FAULT_TOKEN, HK_CLASS_TRANSIENT, "TOKEN_UNAVAILABLE"},
        {HK_FAULT_TOKEN_REFUSED, HK_CLASS_AUTH, "AUTH_FAILED"},
        {HK_NFAULTS, HK_CLASS_UNKNOWN, "UNKNOWN"}, /* out of range */
    };
    struct hk_policy *p = policy_of("standard");
    assert_int_equal(COUNT(rows), HK_NFAULTS + 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(rows[i].fault, i);
        expect(p, (struct hk_facts){.fault = rows[i].fault}, rows[i].cls, rows[i].cause, false);
    }
    hk_policy_free(p);
}

/* A final status outranks what broke after it; an interim one does not. */
static void test_status_before_fault(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    expect(p, (struct hk_facts){.status = 204, .fault = HK_FAULT_RESET}, HK_CLASS_SUCCESS, "", false);
    expect(p, (struct hk_facts){.status = 400, .fault = HK_FAULT_TIMEOUT}, HK_CLASS_PERMANENT, "HTTP_400",
           false);
    expect(p, (struct hk_facts){.status = 100, .fault = HK_FAULT_TIMEOUT}, HK_CLASS_TRANSIENT, "TIMEOUT",
           false);
    expect(p, (struct hk_facts){.status = 100}, HK_CLASS_UNKNOWN, "UNKNOWN", false);
    hk_policy_free(p);
}

static void test_curl_codes_are_those_of_libcurl(void **state)
{
    (void)state;

    static const struct {
        CURLcode code;
        enum hk_fault fault;
    } rows[] = {
        {CURLE_OK, HK_FAULT_NONE},
        {CURLE_UNSUPPORTED_PROTOCOL, HK_FAULT_LOCAL},
        {CURLE_FAILED_INIT, HK_FAULT_LOCAL},
        {CURLE_URL_MALFORMAT, HK_FAULT_LOCAL},
        {CURLE_NOT_BUILT_IN, HK_FAULT_LOCAL},
        {CURLE_COULDNT_RESOLVE_PROXY, HK_FAULT_DNS},
        {CURLE_COULDNT_RESOLVE_HOST, HK_FAULT_DNS},
        {CURLE_COULDNT_CONNECT, HK_FAULT_CONNECT},
        {CURLE_WEIRD_SERVER_REPLY, HK_FAULT_PROTOCOL},
        {CURLE_HTTP2, HK_FAULT_PROTOCOL},
        {CURLE_PARTIAL_FILE, HK_FAULT_RESET},
        {CURLE_OUT_OF_MEMORY, HK_FAULT_LOCAL},
        {CURLE_OPERATION_TIMEDOUT, HK_FAULT_TIMEOUT},
        {CURLE_SSL_CONNECT_ERROR, HK_FAULT_TLS},
        {CURLE_ABORTED_BY_CALLBACK, HK_FAULT_LOCAL},
        {CURLE_BAD_FUNCTION_ARGUMENT, HK_FAULT_LOCAL},
        {CURLE_INTERFACE_FAILED, HK_FAULT_LOCAL},
        {CURLE_GOT_NOTHING, HK_FAULT_RESET},
        {CURLE_SSL_ENGINE_NOTFOUND, HK_FAULT_LOCAL},
        {CURLE_SEND_ERROR, HK_FAULT_RESET},
        {CURLE_RECV_ERROR, HK_FAULT_RESET},
        {CURLE_SSL_CERTPROBLEM, HK_FAULT_LOCAL},
        {CURLE_SSL_CIPHER, HK_FAULT_TLS},
        {CURLE_PEER_FAILED_VERIFICATION, HK_FAULT_TLS_VERIFY},
        {CURLE_BAD_CONTENT_ENCODING, HK_FAULT_PROTOCOL},
        {CURLE_SSL_CACERT_BADFILE, HK_FAULT_LOCAL},
        {CURLE_SSL_SHUTDOWN_FAILED, HK_FAULT_TLS},
        {CURLE_SSL_ISSUER_ERROR, HK_FAULT_TLS_VERIFY},
        {CURLE_SSL_PINNEDPUBKEYNOTMATCH, HK_FAULT_TLS_VERIFY},
        {CURLE_SSL_INVALIDCERTSTATUS, HK_FAULT_TLS_VERIFY},
        {CURLE_HTTP2_STREAM, HK_FAULT_RESET},
        {CURLE_HTTP3, HK_FAULT_PROTOCOL},
        {CURLE_PROXY, HK_FAULT_CONNECT},
        {CURLE_SSL_CLIENTCERT, HK_FAULT_LOCAL},
        {CURLE_FTP_WEIRD_PASS_REPLY, HK_FAULT_NETWORK}, /* not listed */
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(hk_fault_from_curl((int)rows[i].code), rows[i].fault);
    assert_int_equal(hk_fault_from_curl(-5), HK_FAULT_NETWORK);
    assert_int_equal(hk_fault_from_curl(51), HK_FAULT_TLS_VERIFY);
}

/* ---- overrides ---- */

static struct hk_rule rule_of(const char *match, enum hk_class cls)
{
    struct hk_rule rule = {.to_class = cls};
    assert_int_equal(hk_rule_parse_match(match, &rule, NULL), HK_OK);
    return rule;
}

static void add(struct hk_policy *p, struct hk_rule rule)
{
    assert_int_equal(hk_policy_add_rule(p, &rule, NULL), HK_OK);
}

static void test_patterns_override(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    add(p, rule_of("409", HK_CLASS_SUCCESS)); /* the receiver has it already */
    add(p, rule_of("503", HK_CLASS_RATE_LIMIT));
    add(p, rule_of("5xx", HK_CLASS_UNKNOWN));
    add(p, rule_of("430-439", HK_CLASS_TRANSIENT));
    add(p, rule_of("dns", HK_CLASS_PERMANENT));
    add(p, rule_of("tls", HK_CLASS_TRANSIENT));
    add(p, rule_of("TIMEOUT", HK_CLASS_UNKNOWN));
    add(p, rule_of("HTTP_422", HK_CLASS_TRANSIENT));
    struct hk_rule gone = rule_of("404", HK_CLASS_TRANSIENT);
    gone.pause = true;
    snprintf(gone.to_reason, sizeof gone.to_reason, "NOT_YET");
    add(p, gone);
    add(p, rule_of("410", HK_CLASS_PERMANENT)); /* without pause, unlike the default */

    expect(p, (struct hk_facts){.status = 409}, HK_CLASS_SUCCESS, "", false);
    expect(p, (struct hk_facts){.status = 503}, HK_CLASS_RATE_LIMIT, "HTTP_503", false);
    expect(p, (struct hk_facts){.status = 500}, HK_CLASS_UNKNOWN, "HTTP_500", false);
    expect(p, (struct hk_facts){.status = 599}, HK_CLASS_UNKNOWN, "HTTP_599", false);
    expect(p, (struct hk_facts){.status = 430}, HK_CLASS_TRANSIENT, "HTTP_430", false);
    expect(p, (struct hk_facts){.status = 439}, HK_CLASS_TRANSIENT, "HTTP_439", false);
    expect(p, (struct hk_facts){.status = 440}, HK_CLASS_PERMANENT, "HTTP_440", false);
    expect(p, (struct hk_facts){.fault = HK_FAULT_DNS}, HK_CLASS_PERMANENT, "TRANSIENT_NETWORK", false);
    expect(p, (struct hk_facts){.fault = HK_FAULT_CONNECT}, HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK", false);
    expect(p, (struct hk_facts){.fault = HK_FAULT_TLS}, HK_CLASS_TRANSIENT, "TLS_FAILED", false);
    expect(p, (struct hk_facts){.fault = HK_FAULT_TLS_VERIFY}, HK_CLASS_TRANSIENT, "TLS_FAILED", false);
    expect(p, (struct hk_facts){.fault = HK_FAULT_TIMEOUT}, HK_CLASS_UNKNOWN, "TIMEOUT", false);
    expect(p, (struct hk_facts){.status = 422}, HK_CLASS_TRANSIENT, "HTTP_422", false);
    expect(p, (struct hk_facts){.status = 404}, HK_CLASS_TRANSIENT, "NOT_YET", true);
    expect(p, (struct hk_facts){.status = 410}, HK_CLASS_PERMANENT, "HTTP_410", false);
    /* a fault's rule does not undo an answer that came before it */
    expect(p, (struct hk_facts){.status = 200, .fault = HK_FAULT_DNS}, HK_CLASS_SUCCESS, "", false);
    hk_policy_free(p);
}

static struct hk_header header(const char *name, const char *value)
{
    return (struct hk_header){{name, strlen(name)}, {value, strlen(value)}};
}

static void test_header_and_body_for_the_grey_cases(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_rule rule = rule_of("400", HK_CLASS_TRANSIENT);
    snprintf(rule.header, sizeof rule.header, "X-Error-Code");
    snprintf(rule.header_contains, sizeof rule.header_contains, "throttl");
    add(p, rule);
    rule = (struct hk_rule){.to_class = HK_CLASS_PERMANENT};
    snprintf(rule.body_contains, sizeof rule.body_contains, "\"status\":\"rejected\"");
    snprintf(rule.to_reason, sizeof rule.to_reason, "REJECTED");
    add(p, rule);
    rule = (struct hk_rule){.to_class = HK_CLASS_RATE_LIMIT};
    snprintf(rule.header, sizeof rule.header, "x-quota-exceeded");
    add(p, rule);
    rule = rule_of("200", HK_CLASS_UNKNOWN);
    snprintf(rule.body_contains, sizeof rule.body_contains, "maybe");
    add(p, rule);

    struct hk_header h[] = {header("Date", "x"), header("x-error-CODE", "Request Throttled")};
    expect(p, (struct hk_facts){.status = 400, .headers = h, .n_headers = 2}, HK_CLASS_TRANSIENT, "HTTP_400",
           false);
    expect(p, (struct hk_facts){.status = 400, .headers = h, .n_headers = 1}, HK_CLASS_PERMANENT, "HTTP_400",
           false);
    expect(p, (struct hk_facts){.status = 404, .headers = h, .n_headers = 2}, HK_CLASS_PERMANENT, "HTTP_404",
           false);
    struct hk_str rejected = {"{\"STATUS\":\"Rejected\"}", 21};
    expect(p, (struct hk_facts){.status = 200, .body = rejected}, HK_CLASS_PERMANENT, "REJECTED", false);
    struct hk_header quota = header("X-Quota-Exceeded", "");
    expect(p, (struct hk_facts){.status = 500, .headers = &quota, .n_headers = 1}, HK_CLASS_RATE_LIMIT,
           "HTTP_500", false);
    /* a success that a rule doubts still names a cause */
    expect(p, (struct hk_facts){.status = 200, .body = {"maybe", 5}}, HK_CLASS_UNKNOWN, "HTTP_200", false);
    expect(p, (struct hk_facts){.status = 200, .body = {"mayb", 4}}, HK_CLASS_SUCCESS, "", false);
    expect(p, (struct hk_facts){.body = {"\"status\":\"rejected\"", 19}}, HK_CLASS_PERMANENT, "REJECTED",
           false);
    hk_policy_free(p);
}

static void test_success_without_status_gets_a_cause_when_doubted(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    add(p, rule_of("*", HK_CLASS_TRANSIENT));
    expect(p, (struct hk_facts){.status = 0}, HK_CLASS_TRANSIENT, "UNKNOWN", false);
    hk_policy_free(p);
}

/* Added rules stand before the preset's, in the order in which they were added. */
static void test_order_of_rules(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("cloud-tasks");
    expect(p, (struct hk_facts){.status = 404}, HK_CLASS_UNKNOWN, "HTTP_404", false);
    expect(p, (struct hk_facts){.status = 429}, HK_CLASS_RATE_LIMIT, "RATE_LIMITED", false);
    expect(p, (struct hk_facts){.status = 302}, HK_CLASS_UNKNOWN, "HTTP_302", false);
    add(p, rule_of("404", HK_CLASS_PERMANENT));
    add(p, rule_of("4xx", HK_CLASS_AUTH));
    expect(p, (struct hk_facts){.status = 404}, HK_CLASS_PERMANENT, "HTTP_404", false);
    expect(p, (struct hk_facts){.status = 429}, HK_CLASS_AUTH, "RATE_LIMITED", false);
    expect(p, (struct hk_facts){.status = 302}, HK_CLASS_UNKNOWN, "HTTP_302", false);
    assert_int_equal(hk_policy_rule(p, 0)->status_lo, 404);
    assert_int_equal(hk_policy_rule(p, 1)->status_lo, 400);
    assert_int_equal(hk_policy_rule(p, 2)->status_lo, 429);
    assert_null(hk_policy_rule(p, 8));
    hk_policy_free(p);
}

static void test_match_forms(void **state)
{
    (void)state;

    static const struct {
        const char *match;
        bool ok;
        enum hk_match_kind kind;
        int lo, hi;
    } rows[] = {
        {"404", true, HK_MATCH_STATUS, 404, 404},
        {"5xx", true, HK_MATCH_STATUS, 500, 599},
        {"1XX", true, HK_MATCH_STATUS, 100, 199},
        {"500-599", true, HK_MATCH_STATUS, 500, 599},
        {"500-500", true, HK_MATCH_STATUS, 500, 500},
        {"timeout", true, HK_MATCH_FAULT, 0, 0},
        {"tls_verify", true, HK_MATCH_FAULT, 0, 0},
        {"broker_auth", true, HK_MATCH_FAULT, 0, 0},
        {"HTTP_422", true, HK_MATCH_REASON, 0, 0},
        {"MY_OWN", true, HK_MATCH_REASON, 0, 0},
        {"*", true, HK_MATCH_ANY, 0, 0},
        {"", false, HK_MATCH_ANY, 0, 0},
        {"none", false, HK_MATCH_ANY, 0, 0},
        {"99", false, HK_MATCH_ANY, 0, 0},
        {"600", false, HK_MATCH_ANY, 0, 0},
        {"6xx", false, HK_MATCH_ANY, 0, 0},
        {"0xx", false, HK_MATCH_ANY, 0, 0},
        {"5x", false, HK_MATCH_ANY, 0, 0},
        {"5xy", false, HK_MATCH_ANY, 0, 0},
        {"599-500", false, HK_MATCH_ANY, 0, 0},
        {"500-", false, HK_MATCH_ANY, 0, 0},
        {"-500", false, HK_MATCH_ANY, 0, 0},
        {"500-600", false, HK_MATCH_ANY, 0, 0},
        {"Timeout", false, HK_MATCH_ANY, 0, 0},
        {"HTTP-422", false, HK_MATCH_ANY, 0, 0},
        {"_A", false, HK_MATCH_ANY, 0, 0},
        {"A_REASON_THAT_IS_MUCH_TOO_LONG_TO_FIT", false, HK_MATCH_ANY, 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_rule rule = {.kind = HK_MATCH_ANY};
        struct hk_err err;
        enum hk_code rc = hk_rule_parse_match(rows[i].match, &rule, &err);
        NOTE_IF((rc == HK_OK) != rows[i].ok, "match \"%s\"\n", rows[i].match);
        assert_int_equal(rc == HK_OK, rows[i].ok);
        assert_int_equal(rule.kind, rows[i].kind);
        assert_int_equal(rule.status_lo, rows[i].lo);
        assert_int_equal(rule.status_hi, rows[i].hi);
    }
}

static void test_rules_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_err err;
    struct hk_rule rule = {.to_class = HK_NCLASSES};
    assert_int_equal(hk_policy_add_rule(p, &rule, &err), HK_INVALID);
    rule = (struct hk_rule){.to_class = HK_CLASS_AUTH, .to_reason = "lower"};
    assert_int_equal(hk_policy_add_rule(p, &rule, &err), HK_INVALID);
    assert_non_null(strstr(err.message, "lower"));
    rule = (struct hk_rule){.to_class = HK_CLASS_AUTH, .header_contains = "x"};
    assert_int_equal(hk_policy_add_rule(p, &rule, &err), HK_INVALID);
    rule = (struct hk_rule){.to_class = HK_CLASS_SUCCESS};
    assert_int_equal(hk_policy_add_rule(p, &rule, &err), HK_INVALID);
    assert_non_null(strstr(err.message, "lose messages"));
    rule = (struct hk_rule){.to_class = HK_CLASS_SUCCESS, .header = "x-ok"};
    add(p, rule);
    rule = (struct hk_rule){.to_class = HK_CLASS_SUCCESS, .body_contains = "ok"};
    add(p, rule);
    for (int i = 2; i < HK_POLICY_RULES; i++)
        add(p, rule_of("404", HK_CLASS_TRANSIENT));
    rule = rule_of("404", HK_CLASS_TRANSIENT);
    assert_int_equal(hk_policy_add_rule(p, &rule, &err), HK_TOOBIG);
    hk_policy_free(p);
    p = policy_of("standard");
    const struct hk_rule bad[] = {
        {.kind = (enum hk_match_kind)99, .to_class = HK_CLASS_AUTH},
        {.kind = HK_MATCH_STATUS, .status_lo = 500, .status_hi = 400, .to_class = HK_CLASS_AUTH},
        {.kind = HK_MATCH_STATUS, .status_lo = 99, .status_hi = 400, .to_class = HK_CLASS_AUTH},
        {.kind = HK_MATCH_STATUS, .status_lo = 400, .status_hi = 600, .to_class = HK_CLASS_AUTH},
        {.kind = HK_MATCH_FAULT, .fault = HK_FAULT_NONE, .to_class = HK_CLASS_AUTH},
        {.kind = HK_MATCH_FAULT, .fault = HK_NFAULTS, .to_class = HK_CLASS_AUTH},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_not_equal(hk_policy_add_rule(p, &bad[i], &err), HK_OK);
    rule = (struct hk_rule){.to_class = HK_CLASS_AUTH};
    memset(rule.body_contains, 'x', sizeof rule.body_contains); /* no terminator */
    assert_int_equal(hk_policy_add_rule(p, &rule, &err), HK_TOOBIG);
    assert_null(hk_policy_rule(p, 0));
    hk_policy_free(p);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < HK_NFAULTS; i++)
        assert_int_equal(hk_fault_by_name(hk_fault_name((enum hk_fault)i)), i);
    for (int i = 0; i < HK_NCLASSES; i++)
        assert_int_equal(hk_class_by_name(hk_class_name((enum hk_class)i)), i);
    assert_int_equal(hk_fault_by_name("nope"), HK_NFAULTS);
    assert_int_equal(hk_class_by_name("nope"), HK_NCLASSES);
    assert_string_equal(hk_fault_name(HK_NFAULTS), "unknown");
    assert_string_equal(hk_class_name(HK_NCLASSES), "none");
}

/* Requirement 106: at least ten codes, each with its rule; and every cause that the tables give is listed. */
static void test_reasons_are_documented(void **state)
{
    (void)state;
    size_t n = 0;
    while (hk_reason_name(n)) {
        assert_true(strlen(hk_reason_rule(n)) > 10);
        assert_true(strcmp(hk_reason_name(n), "HTTP_nnn") == 0 || hk_reason_is_valid(hk_reason_name(n)));
        n++;
    }
    assert_true(n >= 10);
    assert_null(hk_reason_rule(n));
    struct hk_policy *p = policy_of("standard");
    for (int fault = 1; fault < HK_NFAULTS; fault++) {
        char cause[HK_REASON_MAX];
        bool pause;
        struct hk_facts facts = {.fault = (enum hk_fault)fault};
        (void)hk_policy_classify(p, &facts, cause, &pause);
        size_t i = 0;
        while (i < n && strcmp(hk_reason_name(i), cause) != 0)
            i++;
        NOTE_IF(i == n, "%s is not listed\n", cause);
        assert_true(i < n);
    }
    hk_policy_free(p);
}

static void test_a_header_counts_only_with_its_text(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_rule rule = rule_of("400", HK_CLASS_TRANSIENT);
    snprintf(rule.header, sizeof rule.header, "X-Error-Code");
    snprintf(rule.header_contains, sizeof rule.header_contains, "throttl");
    add(p, rule);
    struct hk_header other = header("X-Error-Code", "quota");
    expect(p, (struct hk_facts){.status = 400, .headers = &other, .n_headers = 1}, HK_CLASS_PERMANENT,
           "HTTP_400", false);
    /* a header may stand there twice: either may hold it */
    struct hk_header twice[] = {other, header("X-Error-Code", "throttled")};
    expect(p, (struct hk_facts){.status = 400, .headers = twice, .n_headers = 2}, HK_CLASS_TRANSIENT,
           "HTTP_400", false);
    hk_policy_free(p);
}

/* A caller's struct may be filled to the brim. */
static void test_texts_of_a_rule_must_end(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    const struct hk_rule good = {.kind = HK_MATCH_STATUS, .status_lo = 400, .status_hi = 400};
    struct hk_rule rules[5] = {good, good, good, good, good};
    memset(rules[0].match_reason, 'A', sizeof rules[0].match_reason);
    memset(rules[1].header, 'A', sizeof rules[1].header);
    memset(rules[2].header_contains, 'A', sizeof rules[2].header_contains);
    memset(rules[3].body_contains, 'A', sizeof rules[3].body_contains);
    memset(rules[4].to_reason, 'A', sizeof rules[4].to_reason);
    for (size_t i = 0; i < COUNT(rules); i++) {
        assert_int_equal(hk_policy_add_rule(p, &rules[i], NULL), HK_TOOBIG);
        assert_null(hk_policy_rule(p, 0));
    }
    hk_policy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status),
        cmocka_unit_test(test_every_fault),
        cmocka_unit_test(test_status_before_fault),
        cmocka_unit_test(test_curl_codes_are_those_of_libcurl),
        cmocka_unit_test(test_patterns_override),
        cmocka_unit_test(test_header_and_body_for_the_grey_cases),
        cmocka_unit_test(test_success_without_status_gets_a_cause_when_doubted),
        cmocka_unit_test(test_order_of_rules),
        cmocka_unit_test(test_match_forms),
        cmocka_unit_test(test_rules_that_make_no_sense_are_refused),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_reasons_are_documented),
        cmocka_unit_test(test_a_header_counts_only_with_its_text),
        cmocka_unit_test(test_texts_of_a_rule_must_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
