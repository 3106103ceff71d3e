/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in one attempt, as plain facts. A sink (or any caller) fills `struct hk_facts`; only the policy decides what
 * the facts mean. */
#ifndef HIKYAKU_FACTS_H
#define HIKYAKU_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that belong to somebody else, without a terminator. */
struct hk_str {
    const char *ptr;
    size_t len;
};

struct hk_header {
    struct hk_str name; /* compared without regard to case */
    struct hk_str value;
};

/* Why there is no usable response. HK_FAULT_NONE: the destination answered (`status`) or confirmed. */
enum hk_fault {
    HK_FAULT_NONE = 0,
    HK_FAULT_DNS,                 /* name not resolved */
    HK_FAULT_CONNECT,             /* refused, unreachable */
    HK_FAULT_TIMEOUT,             /* a deadline passed */
    HK_FAULT_RESET,               /* connection lost midway */
    HK_FAULT_NETWORK,             /* any other network failure */
    HK_FAULT_TLS,                 /* handshake failed for another reason than the certificate */
    HK_FAULT_TLS_VERIFY,          /* certificate not trusted */
    HK_FAULT_PROTOCOL,            /* the response was not valid HTTP, AMQP … */
    HK_FAULT_BLOCKED,             /* our own address policy refused the target */
    HK_FAULT_LOCAL,               /* our side failed before anything was sent */
    HK_FAULT_INVALID_PAYLOAD,     /* not parsable, or failed validation */
    HK_FAULT_SCHEMA,              /* parsable, but not of the promised shape */
    HK_FAULT_TOO_LARGE,           /* over our own or the destination's size limit */
    HK_FAULT_UNKNOWN_DESTINATION, /* no such destination is configured */
    HK_FAULT_EXPIRED,             /* the message's own expiry passed */
    HK_FAULT_RELAY_CRASHED,       /* the relay died too often while sending this message */
    HK_FAULT_BROKER_TRANSIENT,    /* broker: leader moved, not enough replicas, connection lost … */
    HK_FAULT_BROKER_THROTTLED,    /* broker: slow down */
    HK_FAULT_BROKER_AUTH,         /* broker: not allowed */
    HK_FAULT_BROKER_REFUSED, /* broker: it will never accept this message (too large, no such topic …) */
    HK_FAULT_BROKER_UNKNOWN, /* broker: an error that no rule covers */
    HK_FAULT_PROXY,      /* the proxy on the way is out of reach, or failed: the destination said nothing */
    HK_FAULT_PROXY_AUTH, /* the proxy wants other credentials than ours */
    HK_FAULT_PROXY_REFUSED, /* the proxy does not let us to this target */
    HK_FAULT_TOKEN,         /* the endpoint that gives access tokens gave none: nothing was sent */
    HK_FAULT_TOKEN_REFUSED, /* it does not take our client credentials */
    HK_NFAULTS
};

struct hk_facts {
    enum hk_fault fault;
    int status;               /* HTTP-like status of the response, 0 = there was none */
    bool possibly_delivered;  /* the destination may have acted, although no success was seen */
    uint32_t failures_in_row; /* failures of this kind at this destination in a row, this one included,
                                 as the caller counts them; 0 and 1 mean "the first" */
    uint64_t duration_ms;
    const struct hk_header *headers; /* of the response: for hints and header rules */
    size_t n_headers;
    struct hk_str body;        /* the first bytes of the response, for body rules */
    struct hk_str error;       /* one line for a person */
    struct hk_str broker_code; /* the broker's own, "312"; "" = it is no broker, or it named none */
    bool placed;               /* a broker said where it put the message: the next two */
    int32_t partition;         /* -1 = it has none */
    int64_t sequence;          /* offset, sequence or delivery tag */
};

/* Stable lower-case name as used in `classify: match`, e.g. "timeout"; "none" for HK_FAULT_NONE. */
HK_API const char *hk_fault_name(enum hk_fault fault);
/* Returns HK_NFAULTS when no fault has that name. */
HK_API enum hk_fault hk_fault_by_name(const char *name);
/* libcurl's CURLcode as a fault (0 is HK_FAULT_NONE), so that programs on libcurl need no table of their own. */
HK_API enum hk_fault hk_fault_from_curl(int curl_code);

#ifdef __cplusplus
}
#endif
#endif
