/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals: messages that die unsent, whatever their destination would have answered. All of these decisions are here. They use the
 * head of a scan, the whole message of a claim, the findings of the sink (or of the rules for payloads), or the policy's decision about
 * a forbidden address. No refusal counts as an attempt. */
#include <string.h>

#include "core/engine_impl.h"
#include "core/policy_impl.h"

enum {
    CRASHES_DEAD = 4
};

static struct hk_refusal refuse(enum hk_fault fault, const char *text)
{
    return (struct hk_refusal){.fault = fault, .text = text};
}

static const struct hk_refusal accepted = {.text = NULL};

bool hk_head_is_early(const struct hk_head *head, int64_t clock_ms)
{
    return head->source == HK_FROM_OUTBOX && head->not_before_ms > clock_ms;
}

/* The size of what is put off is looked at when its time has come. */
struct hk_refusal hk_refusal_of_head(const struct hk_engine *e, const struct hk_head *head, bool has_target,
                                     int64_t clock_ms)
{
    if (head->malformed)
        return refuse(HK_FAULT_INVALID_PAYLOAD, hk_malformed_text(head->malformed));
    if (head->crashes >= CRASHES_DEAD)
        return refuse(HK_FAULT_RELAY_CRASHED,
                      "the relay died with this message in hand, the last time with it alone");
    if (head->expires_ms && head->expires_ms <= clock_ms)
        return refuse(HK_FAULT_EXPIRED, "expires_at passed before it could be sent");
    if (!has_target)
        return refuse(HK_FAULT_UNKNOWN_DESTINATION,
                      head->destination.len ? "no such destination is configured"
                                            : "no destination is named, and no route matches the event type");
    if (!hk_head_is_early(head, clock_ms) && head->payload_bytes > e->options.max_payload_bytes)
        return refuse(HK_FAULT_TOO_LARGE, "the payload is over relay.max_payload");
    return accepted;
}

struct hk_refusal hk_refusal_of_message(const struct hk_message *msg, const struct hk_policy *policy)
{
    if (msg->oversized)
        return refuse(HK_FAULT_TOO_LARGE, "the payload is over relay.max_payload");
    if (msg->undecodable)
        return refuse(HK_FAULT_INVALID_PAYLOAD, "encoding is base64, but the payload is not");
    if (msg->malformed)
        return refuse(HK_FAULT_INVALID_PAYLOAD, hk_malformed_text(msg->malformed));
    if (!policy)
        return refuse(HK_FAULT_INVALID_PAYLOAD, "the message names a policy that does not exist");
    return accepted;
}

/* The message dies at once, whatever a policy makes of the fault: retries that charge nothing would never end. */
struct hk_refusal hk_refusal_of_facts(const struct hk_facts *facts)
{
    bool of_message = facts->fault == HK_FAULT_INVALID_PAYLOAD || facts->fault == HK_FAULT_SCHEMA ||
                      facts->fault == HK_FAULT_TOO_LARGE;
    if (!of_message || facts->status || facts->possibly_delivered)
        return accepted;
    return refuse(facts->fault, "it cannot be made a request");
}

/* Where a policy retries it each try counts, or it would never end. */
struct hk_refusal hk_refusal_of_decision(const struct hk_facts *facts, const struct hk_decision *d)
{
    char cause[HK_REASON_MAX];
    bool pause;
    if (facts->fault != HK_FAULT_BLOCKED || d->verdict != HK_DEAD)
        return accepted;
    (void)hk_default_class(facts, cause, &pause);
    return strcmp(cause, d->reason) == 0 ? refuse(facts->fault, "the address is blocked by policy")
                                         : accepted;
}
