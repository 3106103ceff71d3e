/* SPDX-License-Identifier: Apache-2.0 */
/* Retry policies. A policy turns the facts of an attempt into a failure class, and the class into a decision.
 * Time, randomness and facts are arguments; a decision allocates nothing.
 * Once built, a policy is read-only and may be shared between threads. */
#ifndef HIKYAKU_POLICY_H
#define HIKYAKU_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/backoff.h>
#include <hikyaku/error.h>
#include <hikyaku/facts.h>
#include <hikyaku/rng.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hk_class {
    HK_CLASS_SUCCESS = 0,
    HK_CLASS_TRANSIENT,  /* may pass by itself */
    HK_CLASS_RATE_LIMIT, /* the destination asks to slow down */
    HK_CLASS_AUTH,       /* our credentials are refused */
    HK_CLASS_PERMANENT,  /* this message will never be accepted */
    HK_CLASS_UNKNOWN,    /* not clear: a few retries, then give up */
    HK_NCLASSES
};

#define HK_REASON_MAX   32 /* bytes of a reason code, with its terminator */
#define HK_PATTERN_MAX  128
#define HK_POLICY_RULES 32
#define HK_NAME_MAX     64

/* What a rule of `classify` compares. Everything that is set must match. */
enum hk_match_kind {
    HK_MATCH_ANY = 0, /* only header / body decide */
    HK_MATCH_STATUS,  /* status_lo .. status_hi */
    HK_MATCH_FAULT,   /* fault */
    HK_MATCH_REASON   /* the reason code that the default table would give */
};

struct hk_rule {
    enum hk_match_kind kind;
    int status_lo, status_hi;
    enum hk_fault fault;
    char match_reason[HK_REASON_MAX];
    char header[HK_PATTERN_MAX];          /* name of an answer's header; "" = not looked at */
    char header_contains[HK_PATTERN_MAX]; /* "" = the header need only be there */
    char body_contains[HK_PATTERN_MAX];   /* "" = not looked at */
    enum hk_class to_class;
    char to_reason[HK_REASON_MAX]; /* "" = as the default table says */
    bool pause;                    /* also pause the destination */
};

/* What to do with failures of one class. */
struct hk_class_rule {
    bool retry;            /* false: dead at the first failure */
    bool charge;           /* does a failure count against the policy's total? */
    uint32_t max_attempts; /* failures of this class until the message is dead; 0 = the total alone decides */
    uint32_t pause_after;  /* failures in a row at the destination that pause it; 0 = never */
    bool has_backoff;      /* false: the policy's own */
    bool has_jitter;
    struct hk_backoff backoff;
    struct hk_jitter jitter;
};

enum hk_limit_mode {
    HK_LIMIT_ANY = 0, /* attempts or elapsed time ends it */
    HK_LIMIT_ALL      /* only when every limit that is set has been reached (Cloud Tasks) */
};

enum hk_hint_mode {
    HK_HINTS_STANDARD = 0, /* class rate_limit, and status 503 */
    HK_HINTS_ALL,          /* every failure that is retried */
    HK_HINTS_NONE
};

struct hk_limits {
    uint32_t max_attempts;   /* the first attempt included; 0 = no limit */
    uint64_t max_elapsed_ms; /* from the first attempt, less paused time; 0 = no limit */
    uint64_t timeout_ms;     /* of one attempt; 0 = none */
    enum hk_limit_mode mode;
    enum hk_hint_mode hints;
    uint64_t hint_cap_ms; /* an accepted hint is cut to this */
};

struct hk_breaker_options;
struct hk_policy;

/* A policy of your own: should_retry says whether failure `count` (0 = the first) is retried, and after how long. The policy's
 * limits still apply. `create` makes an instance for one operation and returns NULL when out of memory; if `create` is NULL,
 * `instance` is `arg`. No callback is called after `destroy`. */
struct hk_policy_ops {
    void *(*create)(void *arg);
    void (*destroy)(void *instance);
    bool (*should_retry)(void *instance, uint32_t count, int status, const struct hk_facts *facts,
                         uint64_t *wait_ms);
};

/* The history of one message or operation. The caller keeps it, zeroed at first, and stores it if it must survive the
 * process. */
struct hk_history {
    uint32_t attempts;              /* settled attempts, successes included */
    uint32_t charged;               /* those that count against max_attempts */
    uint32_t failures[HK_NCLASSES]; /* by class */
    uint64_t prev_wait_ms;
    int64_t first_attempt_ms; /* when this life's first attempt began: set by the caller */
    uint64_t paused_ms;       /* time that does not count as elapsed */
};

/* For one message or operation; 0 = as the policy says. */
struct hk_overrides {
    uint32_t max_attempts;
    uint64_t max_elapsed_ms;
    uint64_t timeout_ms;
};

enum hk_verdict {
    HK_DELIVERED = 0,
    HK_RETRY,
    HK_DEAD
};

struct hk_decision {
    enum hk_verdict verdict;
    enum hk_class failure_class;
    uint64_t wait_ms;           /* HK_RETRY: from now */
    bool hinted;                /* wait_ms is what the destination asked for */
    bool charged;               /* this attempt counted against the total */
    uint64_t hold_ms;           /* pause the whole destination for this long, not only this message; 0 = no */
    bool pause_destination;     /* until a person resumes it */
    bool own_fault;             /* nothing reached the destination: do not report it to the breaker */
    bool unhealthy;             /* counts as a failure for the circuit breaker */
    char cause[HK_REASON_MAX];  /* reason code of this attempt; "" on success */
    char reason[HK_REASON_MAX]; /* HK_DEAD: the dead letter's reason code; otherwise "" */
};

/* A policy that starts as the named preset; HK_NOTFOUND lists the presets. */
HK_API enum hk_code hk_policy_new(const char *preset, struct hk_policy **out_policy,
                                  struct hk_err *err) HK_MUSTCHECK;
HK_API enum hk_code hk_policy_copy(const struct hk_policy *policy, struct hk_policy **out_policy,
                                   struct hk_err *err) HK_MUSTCHECK;
HK_API void hk_policy_free(struct hk_policy *policy);

/* Setters check their argument. When they refuse it, the policy stays unchanged. */
HK_API enum hk_code hk_policy_set_name(struct hk_policy *policy, const char *name,
                                       struct hk_err *err) HK_MUSTCHECK;
HK_API enum hk_code hk_policy_set_backoff(struct hk_policy *policy, const struct hk_backoff *backoff,
                                          const struct hk_jitter *jitter, struct hk_err *err) HK_MUSTCHECK;
HK_API enum hk_code hk_policy_set_limits(struct hk_policy *policy, const struct hk_limits *limits,
                                         struct hk_err *err) HK_MUSTCHECK;
HK_API enum hk_code hk_policy_set_class(struct hk_policy *policy, enum hk_class cls,
                                        const struct hk_class_rule *rule, struct hk_err *err) HK_MUSTCHECK;
/* Rules are tried in the order they were added, before the preset's and before the default table. */
HK_API enum hk_code hk_policy_add_rule(struct hk_policy *policy, const struct hk_rule *rule,
                                       struct hk_err *err) HK_MUSTCHECK;
/* NULL turns the breaker off. */
HK_API enum hk_code hk_policy_set_breaker(struct hk_policy *policy, const struct hk_breaker_options *options,
                                          struct hk_err *err) HK_MUSTCHECK;
/* `ops` and `arg` must outlive the policy. */
HK_API void hk_policy_set_ops(struct hk_policy *policy, const struct hk_policy_ops *ops, void *arg);
/* Checks that the policy as a whole is valid; above all, that it ends. Everything that starts to use a policy calls it. */
HK_API enum hk_code hk_policy_check(const struct hk_policy *policy, struct hk_err *err) HK_MUSTCHECK;

HK_API const char *hk_policy_name(const struct hk_policy *policy);
HK_API const char *hk_policy_preset(const struct hk_policy *policy);
HK_API const struct hk_backoff *hk_policy_backoff(const struct hk_policy *policy);
HK_API const struct hk_jitter *hk_policy_jitter(const struct hk_policy *policy);
HK_API const struct hk_limits *hk_policy_limits(const struct hk_policy *policy);
HK_API const struct hk_class_rule *hk_policy_class(const struct hk_policy *policy, enum hk_class cls);
/* The i-th rule that comes before the default table, or NULL. */
HK_API const struct hk_rule *hk_policy_rule(const struct hk_policy *policy, size_t i);
/* NULL: no breaker. */
HK_API const struct hk_breaker_options *hk_policy_breaker(const struct hk_policy *policy);
HK_API const struct hk_policy_ops *hk_policy_ops(const struct hk_policy *policy, void **out_arg);

/* `match` as written in the configuration: "404", "5xx", "500-599", a fault's name, a reason code, "*". */
HK_API enum hk_code hk_rule_parse_match(const char *match, struct hk_rule *rule,
                                        struct hk_err *err) HK_MUSTCHECK;
HK_API enum hk_class hk_policy_classify(const struct hk_policy *policy, const struct hk_facts *facts,
                                        char out_cause[HK_REASON_MAX], bool *out_pause);

/* Judges one settled attempt: counts it in `history` and decides what comes next. `wall_ms` is the Unix time
 * that HTTP dates are compared with; `now_ms` is any clock on which `history->first_attempt_ms` was taken.
 * `instance` is the operation's instance of the policy's own ops, NULL without ops. `overrides` may be NULL. */
HK_API void hk_policy_decide(const struct hk_policy *policy, void *instance,
                             const struct hk_overrides *overrides, struct hk_history *history,
                             const struct hk_facts *facts, int64_t now_ms, int64_t wall_ms,
                             struct hk_rng *rng, struct hk_decision *out_decision);

/* How long the attempt that would start at `now_ms` may take: the policy's timeout, cut to what is left of
 * the elapsed-time limit. 0: there is no room, do not start it. UINT64_MAX: no limit. */
HK_API uint64_t hk_policy_attempt_ms(const struct hk_policy *policy, const struct hk_overrides *overrides,
                                     const struct hk_history *history, int64_t now_ms);

/* The wait that a response's headers request: Retry-After, then retry-after-ms and x-ms-retry-after-ms, then
 * RateLimit. False: no such header, a malformed one, or no wait requested (0, a date in the past). */
HK_API bool hk_hint_ms(const struct hk_header *headers, size_t n_headers, int64_t wall_ms,
                       uint64_t *out_wait_ms);

HK_API const char *hk_class_name(enum hk_class cls);
HK_API enum hk_class hk_class_by_name(const char *name); /* HK_NCLASSES: no such class */
HK_API const char *hk_verdict_name(enum hk_verdict verdict);

/* The shipped presets, and what each is for; NULL past the last. */
HK_API const char *hk_preset_name(size_t i);
HK_API const char *hk_preset_summary(size_t i);
/* Every reason code with its rule; NULL past the last. HTTP codes stand as "HTTP_nnn". */
HK_API const char *hk_reason_name(size_t i);
HK_API const char *hk_reason_rule(size_t i);
/* Could it be a reason code? Capitals, digits and underscores, a capital first, below HK_REASON_MAX bytes. */
HK_API bool hk_reason_is_valid(const char *reason);

#ifdef __cplusplus
}
#endif
#endif
