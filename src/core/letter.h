/* SPDX-License-Identifier: Apache-2.0 */
/* A dead letter: its states, the side whose fault it was, the group of letters that failed in the same way, and the query of a
 * filter. */
#ifndef HK_CORE_LETTER_H
#define HK_CORE_LETTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/policy.h>

enum hk_letter_status {
    HK_LETTER_FAILED = 0, /* open: a person has to look at it */
    HK_LETTER_RETRYING,   /* requeued or being sent by hand; the outcome is not known yet */
    HK_LETTER_RESOLVED,
    HK_LETTER_DISCARDED,
    HK_NLETTER_STATUSES
};

/* The side that has to repair something. */
enum hk_blame {
    HK_BLAME_DESTINATION = 0, /* it refused, or could not be reached */
    HK_BLAME_PIPELINE,        /* we never sent it, or could not: validation, expiry, configuration, crashes */
    HK_NBLAMES
};

const char *hk_letter_status_name(enum hk_letter_status status); /* as in dead_letters.status */
bool hk_letter_status_by_name(struct hk_str name, enum hk_letter_status *out);
const char *hk_blame_name(enum hk_blame blame); /* "destination", "pipeline" */
bool hk_blame_by_name(struct hk_str name, enum hk_blame *out);

/* Decides by the reason code; where that only says that the relay gave up (RETRY_EXHAUSTED …), by the last attempt's cause.
 * `status`: of the answer, 0 = there was none. */
enum hk_blame hk_blame_of(struct hk_str reason, struct hk_str cause, int status);

#define HK_FINGERPRINT_MAX 17
/* Letters that failed in the same way at the same destination have the same fingerprint: 16 hex digits over class, reason code,
 * destination, and the error's text with numbers, ids and quoted values folded. It is the same on every machine. The column
 * fingerprint_made has the version of the rule and the fingerprint that it made. If the two differ, a relay of another version
 * wrote the fingerprint. */
#define HK_FINGERPRINT_VERSION "2"
#define HK_FINGERPRINT_MADE    HK_FINGERPRINT_VERSION ":" /* and the fingerprint */
void hk_fingerprint(enum hk_class failure_class, struct hk_str reason, struct hk_str destination,
                    struct hk_str error, char out[HK_FINGERPRINT_MAX]);

/* Texts belong to the code that returned the letter. Times are Unix ms, 0 where they do not apply. */
struct hk_letter {
    int64_t id;
    int64_t outbox_id; /* the id that the application's INSERT got; 0 = not known */
    struct hk_str message_id, event_type, destination, key, correlation_id, traceparent;
    struct hk_str reason, error;
    struct hk_str failure_class;      /* "" = nothing was sent, or not known */
    struct hk_str blame, fingerprint; /* of enum hk_blame by its name; the column and JSON say `fault` */
    enum hk_letter_status status;
    uint32_t attempts; /* of this life */
    uint32_t crashes, life;
    uint32_t requeues;       /* how often it was requeued */
    uint32_t version;        /* of the payload: 1 = as the application wrote it */
    bool possibly_delivered; /* some attempt of some life may have arrived, though nobody confirmed it */
    int64_t message_created_ms, created_ms, first_failed_ms, last_failed_ms, last_attempt_ms;
    int64_t requeued_ms, resolved_ms, edited_ms;
    int64_t sending_ms;        /* a send by hand began then, and its outcome is not known yet; 0 = none */
    struct hk_str requeued_as; /* the message id of its newest life, when that is another one */
    struct hk_str resolution;
    int64_t redrive; /* the job that requeued it last; 0 = none */
    uint64_t payload_bytes;
    bool has_payload;
    /* only where it was asked for */
    struct hk_str headers, content_type, encoding, idempotency_key, policy, expires_at, error_detail;
    uint32_t max_attempts;
    struct hk_str payload; /* as stored; cut when shorter than payload_bytes */
};

/* A cheap test that runs before `match` of a query: a letter that fails it cannot match, and of a million letters hardly any
 * passes. A letter whose payload is base64 always passes. */
struct hk_letter_sieve {
    const char *value;         /* the payload has these bytes, … NULL = no test of the payload */
    const char *value_escapes; /* … or these: JSON may have written the value in another way */
    bool
        value_alone; /* the value is a number or a word of JSON: no neighbouring character may belong to it */
    const char *text; /* in lower case: error, message id, correlation id, event type, destination or payload
                                * has it, in whatever case of A to Z, … NULL = nothing is asked of them */
    const char *text_escapes; /* … or the payload has this */
};

/* Bytes that may surround a value that is alone, as in brackets of a pattern. The payload's beginning and end may, too. */
#define HK_SIEVE_BEFORE "\":,[ \t\r\n"
#define HK_SIEVE_BEHIND "]\",} \t\r\n"

/* Selects letters. All members that are set must match. */
struct hk_letter_query {
    const char *destination, *reason, *fingerprint, *message_id, *correlation_id, *key; /* NULL = any */
    const char *event_type; /* '*' stands for any text */
    const char *failure_class, *blame;
    unsigned statuses;           /* bits 1u << enum hk_letter_status; 0 = any */
    int64_t since_ms, before_ms; /* of the last failure: since_ms <= it < before_ms; 0 = any */
    int64_t redrive;             /* of this job; 0 = any */
    int64_t first_id, last_id;   /* both included; 0 = any */
    /* The conditions that SQL cannot express (text, payload.customer.id:42). The store calls it for each letter that matches the rest,
     * with its payload up to the store's bound (a longer payload is cut). NULL = no further condition. */
    bool (*match)(const void *arg, const struct hk_letter *letter);
    const void *match_arg;
    struct hk_letter_sieve sieve; /* of `match` */
    /* A code other than HK_OK: `match` could not look into a letter, and left it out. A job must not go on past that letter. NULL: `match`
     * can always look. */
    const struct hk_err *unsure;
    /* A call that looks through many letters reports its progress here now and then, on the caller's thread. NULL = nobody asks. */
    void (*seen)(void *arg, int64_t id);
    void *seen_arg;
};

#endif
