/* SPDX-License-Identifier: Apache-2.0 */
/* Facts -> class and reason code, as data: a policy's own rules first, then the tables below.
 *
 * An answer's status is looked at before the fault: a connection that breaks after "204" was read has
 * delivered. A fault without a final status (below 200) is judged by the fault. */
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "core/policy_impl.h"

enum {
    BODY_LOOKED_AT = 64 * 1024
}; /* of an answer: a search must not cost more than the attempt */

static const struct {
    const char *name;
    enum hk_class cls;
    const char *reason;
} faults[HK_NFAULTS] = {
    [HK_FAULT_NONE] = {"none", HK_CLASS_SUCCESS, ""},
    [HK_FAULT_DNS] = {"dns", HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
    [HK_FAULT_CONNECT] = {"connect", HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
    [HK_FAULT_TIMEOUT] = {"timeout", HK_CLASS_TRANSIENT, "TIMEOUT"},
    [HK_FAULT_RESET] = {"reset", HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
    [HK_FAULT_NETWORK] = {"network", HK_CLASS_TRANSIENT, "TRANSIENT_NETWORK"},
    [HK_FAULT_TLS] = {"tls", HK_CLASS_UNKNOWN, "TLS_FAILED"},
    [HK_FAULT_TLS_VERIFY] = {"tls_verify", HK_CLASS_UNKNOWN, "TLS_FAILED"},
    [HK_FAULT_PROTOCOL] = {"protocol", HK_CLASS_UNKNOWN, "PROTOCOL_ERROR"},
    [HK_FAULT_BLOCKED] = {"blocked", HK_CLASS_PERMANENT, "BLOCKED_BY_POLICY"},
    [HK_FAULT_LOCAL] = {"local", HK_CLASS_TRANSIENT, "LOCAL_ERROR"},
    [HK_FAULT_INVALID_PAYLOAD] = {"invalid_payload", HK_CLASS_PERMANENT, "VALIDATION_ERROR"},
    [HK_FAULT_SCHEMA] = {"schema", HK_CLASS_PERMANENT, "SCHEMA_MISMATCH"},
    [HK_FAULT_TOO_LARGE] = {"too_large", HK_CLASS_PERMANENT, "PAYLOAD_TOO_LARGE"},
    [HK_FAULT_UNKNOWN_DESTINATION] = {"unknown_destination", HK_CLASS_PERMANENT, "UNKNOWN_DESTINATION"},
    [HK_FAULT_EXPIRED] = {"expired", HK_CLASS_PERMANENT, "EXPIRED"},
    [HK_FAULT_RELAY_CRASHED] = {"relay_crashed", HK_CLASS_PERMANENT, "RELAY_CRASHED"},
    [HK_FAULT_BROKER_TRANSIENT] = {"broker_transient", HK_CLASS_TRANSIENT, "BROKER_UNAVAILABLE"},
    [HK_FAULT_BROKER_THROTTLED] = {"broker_throttled", HK_CLASS_RATE_LIMIT, "RATE_LIMITED"},
    [HK_FAULT_BROKER_AUTH] = {"broker_auth", HK_CLASS_AUTH, "AUTH_FAILED"},
    [HK_FAULT_BROKER_REFUSED] = {"broker_refused", HK_CLASS_PERMANENT, "BROKER_REFUSED"},
    [HK_FAULT_BROKER_UNKNOWN] = {"broker_unknown", HK_CLASS_UNKNOWN, "UNKNOWN"},
    [HK_FAULT_PROXY] = {"proxy", HK_CLASS_TRANSIENT, "PROXY_UNAVAILABLE"},
    /* transient: it is about our set-up, for all messages alike, and none of them is worse for waiting */
    [HK_FAULT_PROXY_AUTH] = {"proxy_auth", HK_CLASS_TRANSIENT, "PROXY_AUTH_FAILED"},
    [HK_FAULT_PROXY_REFUSED] = {"proxy_refused", HK_CLASS_UNKNOWN, "PROXY_REFUSED"},
    [HK_FAULT_TOKEN] = {"token", HK_CLASS_TRANSIENT, "TOKEN_UNAVAILABLE"},
    [HK_FAULT_TOKEN_REFUSED] = {"token_refused", HK_CLASS_AUTH, "AUTH_FAILED"},
};

/* The first row that holds the status wins. No reason: HTTP_ and the number. */
static const struct {
    int lo, hi;
    enum hk_class cls;
    const char *reason;
    bool pause;
} statuses[] = {
    {200, 299, HK_CLASS_SUCCESS, "", false},
    {300, 399, HK_CLASS_UNKNOWN, NULL, false}, /* redirects are not followed */
    {401, 401, HK_CLASS_AUTH, "AUTH_FAILED", false},
    {403, 403, HK_CLASS_AUTH, "AUTH_FAILED", false},
    {407, 407, HK_CLASS_AUTH, "AUTH_FAILED", false},
    {408, 409, HK_CLASS_TRANSIENT, NULL, false}, /* request timeout; conflict, often a lock */
    {410, 410, HK_CLASS_PERMANENT, NULL, true},  /* gone: nothing more is to be sent there */
    {423, 423, HK_CLASS_TRANSIENT, NULL, false}, /* locked */
    {425, 425, HK_CLASS_TRANSIENT, NULL, false}, /* too early */
    {429, 429, HK_CLASS_RATE_LIMIT, "RATE_LIMITED", false},
    {400, 499, HK_CLASS_PERMANENT, NULL, false}, /* caused by what we sent */
    {500, 599, HK_CLASS_TRANSIENT, NULL, false},
};

static const char *const class_names[HK_NCLASSES] = {
    [HK_CLASS_SUCCESS] = "success", [HK_CLASS_TRANSIENT] = "transient", [HK_CLASS_RATE_LIMIT] = "rate_limit",
    [HK_CLASS_AUTH] = "auth",       [HK_CLASS_PERMANENT] = "permanent", [HK_CLASS_UNKNOWN] = "unknown",
};

/* CURLcode values, which libcurl never renumbers; anything not listed is HK_FAULT_NETWORK. */
static const struct {
    int code;
    enum hk_fault fault;
} curl_codes[] = {
    {0, HK_FAULT_NONE},        /* OK */
    {1, HK_FAULT_LOCAL},       /* UNSUPPORTED_PROTOCOL */
    {2, HK_FAULT_LOCAL},       /* FAILED_INIT */
    {3, HK_FAULT_LOCAL},       /* URL_MALFORMAT */
    {4, HK_FAULT_LOCAL},       /* NOT_BUILT_IN */
    {5, HK_FAULT_DNS},         /* COULDNT_RESOLVE_PROXY */
    {6, HK_FAULT_DNS},         /* COULDNT_RESOLVE_HOST */
    {7, HK_FAULT_CONNECT},     /* COULDNT_CONNECT */
    {8, HK_FAULT_PROTOCOL},    /* WEIRD_SERVER_REPLY */
    {16, HK_FAULT_PROTOCOL},   /* HTTP2 */
    {18, HK_FAULT_RESET},      /* PARTIAL_FILE */
    {27, HK_FAULT_LOCAL},      /* OUT_OF_MEMORY */
    {28, HK_FAULT_TIMEOUT},    /* OPERATION_TIMEDOUT */
    {35, HK_FAULT_TLS},        /* SSL_CONNECT_ERROR */
    {42, HK_FAULT_LOCAL},      /* ABORTED_BY_CALLBACK */
    {43, HK_FAULT_LOCAL},      /* BAD_FUNCTION_ARGUMENT */
    {45, HK_FAULT_LOCAL},      /* INTERFACE_FAILED */
    {51, HK_FAULT_TLS_VERIFY}, /* PEER_FAILED_VERIFICATION before 7.62 */
    {52, HK_FAULT_RESET},      /* GOT_NOTHING */
    {53, HK_FAULT_LOCAL},      /* SSL_ENGINE_NOTFOUND */
    {55, HK_FAULT_RESET},      /* SEND_ERROR */
    {56, HK_FAULT_RESET},      /* RECV_ERROR */
    {58, HK_FAULT_LOCAL},      /* SSL_CERTPROBLEM: our own certificate */
    {59, HK_FAULT_TLS},        /* SSL_CIPHER */
    {60, HK_FAULT_TLS_VERIFY}, /* PEER_FAILED_VERIFICATION */
    {61, HK_FAULT_PROTOCOL},   /* BAD_CONTENT_ENCODING */
    {77, HK_FAULT_LOCAL},      /* SSL_CACERT_BADFILE */
    {80, HK_FAULT_TLS},        /* SSL_SHUTDOWN_FAILED */
    {83, HK_FAULT_TLS_VERIFY}, /* SSL_ISSUER_ERROR */
    {90, HK_FAULT_TLS_VERIFY}, /* SSL_PINNEDPUBKEYNOTMATCH */
    {91, HK_FAULT_TLS_VERIFY}, /* SSL_INVALIDCERTSTATUS */
    {92, HK_FAULT_RESET},      /* HTTP2_STREAM */
    {95, HK_FAULT_PROTOCOL},   /* HTTP3 */
    {97, HK_FAULT_CONNECT},    /* PROXY */
    {98, HK_FAULT_LOCAL},      /* SSL_CLIENTCERT: our own certificate */
};

const char *hk_fault_name(enum hk_fault fault)
{
    return (unsigned)fault < HK_NFAULTS ? faults[fault].name : "unknown";
}

enum hk_fault hk_fault_by_name(const char *name)
{
    unsigned i = 0;
    while (i < HK_NFAULTS && strcmp(faults[i].name, name) != 0)
        i++;
    return (enum hk_fault)i;
}

enum hk_fault hk_fault_from_curl(int curl_code)
{
    for (size_t i = 0; i < sizeof curl_codes / sizeof curl_codes[0]; i++)
        if (curl_codes[i].code == curl_code)
            return curl_codes[i].fault;
    return HK_FAULT_NETWORK;
}

const char *hk_class_name(enum hk_class cls)
{
    return (unsigned)cls < HK_NCLASSES ? class_names[cls] : "none";
}

enum hk_class hk_class_by_name(const char *name)
{
    unsigned i = 0;
    while (i < HK_NCLASSES && strcmp(class_names[i], name) != 0)
        i++;
    return (enum hk_class)i;
}

/* Every reason fits: ours are constants, and those of rules are checked when they are added. By hand, since this
 * runs for every attempt and snprintf took two thirds of a decision. */
static void set_cause(char out_cause[HK_REASON_MAX], const char *reason, int status)
{
    if (reason) {
        (void)hk_str_copy(out_cause, HK_REASON_MAX, hk_str_of(reason));
        return;
    }
    char code[] = {'H',
                   'T',
                   'T',
                   'P',
                   '_',
                   (char)('0' + status / 100),
                   (char)('0' + status / 10 % 10),
                   (char)('0' + status % 10),
                   '\0'};
    memcpy(out_cause, code, sizeof code);
}

static enum hk_class class_of_status(int status, char out_cause[HK_REASON_MAX], bool *out_pause)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (status < statuses[i].lo || status > statuses[i].hi)
            continue;
        set_cause(out_cause, statuses[i].reason, status);
        *out_pause = statuses[i].pause;
        return statuses[i].cls;
    }
    set_cause(out_cause, "UNKNOWN", 0);
    return HK_CLASS_UNKNOWN;
}

static bool status_decides(const struct hk_facts *facts)
{
    return facts->status >= 200 || (facts->status != 0 && facts->fault == HK_FAULT_NONE);
}

enum hk_class hk_default_class(const struct hk_facts *facts, char out_cause[HK_REASON_MAX], bool *out_pause)
{
    *out_pause = false;
    if (status_decides(facts))
        return class_of_status(facts->status, out_cause, out_pause);
    if ((unsigned)facts->fault >= HK_NFAULTS) {
        set_cause(out_cause, "UNKNOWN", 0);
        return HK_CLASS_UNKNOWN;
    }
    set_cause(out_cause, faults[facts->fault].reason, 0);
    return faults[facts->fault].cls;
}

bool hk_fault_is_ours(const struct hk_facts *facts)
{
    switch (facts->fault) {
    case HK_FAULT_BLOCKED:
    case HK_FAULT_LOCAL:
    case HK_FAULT_INVALID_PAYLOAD:
    case HK_FAULT_SCHEMA:
    case HK_FAULT_TOO_LARGE:
    case HK_FAULT_UNKNOWN_DESTINATION:
    case HK_FAULT_EXPIRED:
    case HK_FAULT_RELAY_CRASHED:
        return !status_decides(facts);
    case HK_FAULT_NONE:
    case HK_FAULT_DNS:
    case HK_FAULT_CONNECT:
    case HK_FAULT_TIMEOUT:
    case HK_FAULT_RESET:
    case HK_FAULT_NETWORK:
    case HK_FAULT_TLS:
    case HK_FAULT_TLS_VERIFY:
    case HK_FAULT_PROTOCOL:
    case HK_FAULT_BROKER_TRANSIENT:
    case HK_FAULT_BROKER_THROTTLED:
    case HK_FAULT_BROKER_AUTH:
    case HK_FAULT_BROKER_REFUSED:
    case HK_FAULT_BROKER_UNKNOWN:
    case HK_FAULT_PROXY:
    case HK_FAULT_PROXY_AUTH:
    case HK_FAULT_PROXY_REFUSED:
    case HK_FAULT_TOKEN:
    case HK_FAULT_TOKEN_REFUSED:
    case HK_NFAULTS:
        break;
    }
    return false;
}

static bool has_header(const struct hk_facts *facts, const char *name, const char *contains)
{
    for (size_t i = 0; i < facts->n_headers; i++)
        if (hk_str_eqi(facts->headers[i].name, hk_str_of(name)) &&
            hk_str_containsi(facts->headers[i].value, hk_str_of(contains)))
            return true;
    return false;
}

static bool fault_matches(enum hk_fault wanted, enum hk_fault fault)
{
    /* who writes `tls` means the certificate as well */
    return wanted == fault || (wanted == HK_FAULT_TLS && fault == HK_FAULT_TLS_VERIFY);
}

static bool kind_matches(const struct hk_rule *rule, const struct hk_facts *facts, const char *cause)
{
    switch (rule->kind) {
    case HK_MATCH_ANY:
        return true;
    case HK_MATCH_STATUS:
        return facts->status >= rule->status_lo && facts->status <= rule->status_hi;
    case HK_MATCH_FAULT:
        return !status_decides(facts) && fault_matches(rule->fault, facts->fault);
    case HK_MATCH_REASON:
        return strcmp(rule->match_reason, cause) == 0;
    }
    return false;
}

static bool rule_matches(const struct hk_rule *rule, const struct hk_facts *facts, const char *cause)
{
    if (!kind_matches(rule, facts, cause))
        return false;
    if (rule->header[0] && !has_header(facts, rule->header, rule->header_contains))
        return false;
    struct hk_str body = {facts->body.ptr,
                          facts->body.len < BODY_LOOKED_AT ? facts->body.len : BODY_LOOKED_AT};
    return !rule->body_contains[0] || hk_str_containsi(body, hk_str_of(rule->body_contains));
}

/* A rule that turns a success into a failure must leave a reason, and the other way round none. */
static void settle_cause(const struct hk_rule *rule, const struct hk_facts *facts,
                         char out_cause[HK_REASON_MAX])
{
    if (rule->to_class == HK_CLASS_SUCCESS)
        out_cause[0] = '\0';
    else if (rule->to_reason[0])
        set_cause(out_cause, rule->to_reason, 0);
    else if (!out_cause[0]) /* the default table said success: a status of 2xx, or none */
        set_cause(out_cause, facts->status ? NULL : "UNKNOWN", facts->status);
}

enum hk_class hk_policy_classify(const struct hk_policy *policy, const struct hk_facts *facts,
                                 char out_cause[HK_REASON_MAX], bool *out_pause)
{
    enum hk_class cls = hk_default_class(facts, out_cause, out_pause);
    for (size_t i = 0; i < policy->n_rules; i++) {
        const struct hk_rule *rule = &policy->rules[i];
        if (!rule_matches(rule, facts, out_cause))
            continue;
        settle_cause(rule, facts, out_cause);
        *out_pause = rule->pause;
        return rule->to_class;
    }
    return cls;
}

static bool is_reason(struct hk_str s)
{
    if (s.len == 0 || s.len >= HK_REASON_MAX || s.ptr[0] < 'A' || s.ptr[0] > 'Z')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!(c >= 'A' && c <= 'Z') && !hk_ascii_isdigit(c) && c != '_')
            return false;
    }
    return true;
}

bool hk_reason_is_valid(const char *reason)
{
    return is_reason(hk_str_of(reason));
}

static bool parse_status(struct hk_str s, int *out)
{
    uint64_t n;
    if (hk_parse_u64(s, &n, NULL) != HK_OK || n < 100 || n > 599)
        return false;
    *out = (int)n;
    return true;
}

/* "404", "5xx", "500-599" */
static bool parse_statuses(struct hk_str s, int *out_lo, int *out_hi)
{
    if (s.len == 3 && s.ptr[0] >= '1' && s.ptr[0] <= '5' &&
        hk_str_eqi((struct hk_str){s.ptr + 1, 2}, hk_str_of("xx"))) {
        *out_lo = (s.ptr[0] - '0') * 100;
        *out_hi = *out_lo + 99;
        return true;
    }
    struct hk_str rest = s;
    struct hk_str lo = hk_str_cut(&rest, '-');
    int first, last;
    if (!parse_status(lo, &first) || !parse_status(rest.ptr ? rest : lo, &last) || last < first)
        return false;
    *out_lo = first;
    *out_hi = last;
    return true;
}

enum hk_code hk_rule_parse_match(const char *match, struct hk_rule *rule, struct hk_err *err)
{
    struct hk_str s = hk_str_of(match);
    int lo, hi;
    enum hk_fault fault = hk_fault_by_name(match);

    if (hk_str_eq(s, hk_str_of("*"))) {
        rule->kind = HK_MATCH_ANY;
    } else if (parse_statuses(s, &lo, &hi)) {
        rule->kind = HK_MATCH_STATUS;
        rule->status_lo = lo;
        rule->status_hi = hi;
    } else if (fault != HK_FAULT_NONE && fault != HK_NFAULTS) {
        rule->kind = HK_MATCH_FAULT;
        rule->fault = fault;
    } else if (is_reason(s)) {
        rule->kind = HK_MATCH_REASON;
        set_cause(rule->match_reason, match, 0);
    } else {
        return hk_err_set(
            err, HK_INVALID,
            "\"%.40s\" matches nothing: write a status (404, 5xx, 500-599), a fault (timeout, dns, "
            "tls …), a reason code (HTTP_422) or *",
            match);
    }
    return HK_OK;
}
