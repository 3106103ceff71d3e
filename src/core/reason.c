/* SPDX-License-Identifier: Apache-2.0 */
/* Every reason code with its rule: the list that documentation, `policy show` and the tests share. */
#include <hikyaku/policy.h>

static const struct {
    const char *name, *rule;
} reasons[] = {
    {"VALIDATION_ERROR", "the payload cannot be parsed, or a required field is missing"},
    {"SCHEMA_MISMATCH", "the payload parses, but is not of the promised shape"},
    {"PAYLOAD_TOO_LARGE", "the payload is over our own or the destination's size limit"},
    {"HTTP_nnn", "the destination answered with this status, and no code below says it better"},
    {"TRANSIENT_NETWORK", "name resolution, connecting or the connection failed"},
    {"TIMEOUT", "a deadline of the attempt passed before the answer was complete"},
    {"TLS_FAILED", "the TLS handshake failed, or the certificate is not trusted"},
    {"PROTOCOL_ERROR", "the answer was not valid in its protocol"},
    {"RATE_LIMITED", "429, or a broker that throttles"},
    {"AUTH_FAILED", "401, 403, 407, or a broker or a token endpoint that refuses our credentials"},
    {"TOKEN_UNAVAILABLE",
     "the token endpoint gave no access token, and said nothing against our credentials"},
    {"BROKER_UNAVAILABLE", "the broker could not take the message now (leader moved, too few replicas …)"},
    {"BROKER_REFUSED", "the broker will never take this message (no such topic, unroutable …)"},
    {"PROXY_UNAVAILABLE", "the proxy on the way could not be reached, or failed"},
    {"PROXY_AUTH_FAILED", "the proxy on the way refused our user and password"},
    {"PROXY_REFUSED", "the proxy on the way does not let requests go to this target"},
    {"BLOCKED_BY_POLICY", "our own address policy does not let us connect to the target"},
    {"UNKNOWN_DESTINATION", "the message names a destination that is not configured"},
    {"LOCAL_ERROR", "our own side failed before anything was sent"},
    {"EXPIRED", "the message's expires_at passed before it could be sent"},
    {"RELAY_CRASHED", "the relay died with this message in hand, again and again"},
    {"RETRY_EXHAUSTED", "it was retried, and the allowed attempts are spent"},
    {"DEADLINE_EXCEEDED", "it was retried, and the next attempt would not fit into max_elapsed"},
    {"RETRY_BUDGET_SPENT", "the retry budget refused another attempt (hk_execute only)"},
    {"BREAKER_OPEN", "the circuit breaker stays open past the deadline (hk_execute only)"},
    {"LIMITED", "the limiter lets nothing pass before the deadline (hk_execute only)"},
    {"UNKNOWN", "anything that no rule knows"},
};

enum {
    N_REASONS = sizeof reasons / sizeof reasons[0]
};

const char *hk_reason_name(size_t i)
{
    return i < N_REASONS ? reasons[i].name : NULL;
}

const char *hk_reason_rule(size_t i)
{
    return i < N_REASONS ? reasons[i].rule : NULL;
}
