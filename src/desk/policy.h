/* SPDX-License-Identifier: Apache-2.0 */
/* Retry policies: list them, show one, plan its waits, and simulate its load on a destination that was down. */
#ifndef HK_DESK_POLICY_H
#define HK_DESK_POLICY_H

#include <hikyaku/breaker.h>
#include <hikyaku/policies.h>

#include "base/buf.h"
#include "desk/desk.h"
#include "desk/herd.h"
#include "desk/plan.h"

/* Names in results are the desk's policies', and live as long as its set of them. `details` asks for what a picture or a table needs
 * beside the figures. */

/* ---- list ---- */

struct hk_policy_list_ask {
    bool details;
};

struct hk_policy_row {
    const char *name, *origin, *preset; /* origin: "preset" or "file" */
    const char *backoff, *jitter;       /* kinds */
    bool is_default, is_custom;
    uint32_t max_attempts;
    uint64_t max_elapsed_ms;
    const char *backoff_text, *jitter_text; /* "1s x2 to 1h"; NULL without details */
};

struct hk_policy_list {
    struct hk_policy_row *items;
    size_t n;
};

/* ---- show ---- */

struct hk_policy_name_ask {
    const char *name;
};

/* An answer that people ask about, and what the policy makes of it. */
struct hk_policy_answer {
    char name[HK_REASON_MAX], cause[HK_REASON_MAX]; /* "503", "timeout" */
    enum hk_class cls;
    bool retry, pause;
};

/* Jitter as it works: the Azure backoffs draw each wait themselves, whatever is written beside them. */
struct hk_policy_jitter {
    const char *kind;
    bool has_ratio, has_add;
    double ratio;
    uint64_t add_ms;
};

/* One class of failures: struct hk_class_rule, with the jitter as it works. */
struct hk_policy_class {
    bool retry, charge, has_backoff, has_jitter;
    uint32_t max_attempts, pause_after;
    struct hk_backoff backoff;
    struct hk_policy_jitter jitter;
};

/* A rule of `classify`; empty texts: it does not ask for that. */
struct hk_policy_rule {
    const char *match;
    struct hk_str header, contains, body, reason;
    enum hk_class cls;
    bool pause, of_preset;
};

struct hk_policy_shown {
    const char *name, *preset;
    bool is_custom, has_breaker;
    struct hk_backoff backoff;
    struct hk_policy_jitter jitter;
    struct hk_limits limits;
    struct hk_policy_class classes[HK_NCLASSES];
    struct hk_policy_rule *rules; /* in the order in which they are tried */
    size_t n_rules;
    struct hk_breaker_options breaker;
    struct hk_str yaml; /* a configuration file that reads back as the same policy */
    struct hk_policy_answer *answers;
    size_t n_answers;
};

/* ---- plan ---- */

struct hk_policy_plan_ask {
    const char *name, *cls;
    struct hk_str draft; /* a definition to look at in the place of the policy's own; ptr NULL: none */
    uint64_t attempts;   /* shown at most */
    uint64_t seed;
    bool details;
};

struct hk_policy_planned {
    const char *name;
    enum hk_class cls;
    uint64_t seed;
    struct hk_plan plan; /* its rows lie in the result's memory */
    size_t shown;        /* rows */
    bool details;        /* asked for: `limits`, and all attempts of the plan */
    struct hk_plan_limits limits;
};

/* ---- simulate ---- */

struct hk_policy_simulate_ask {
    const char *name;
    struct hk_str draft; /* as above */
    uint64_t clients, outage_ms, spread_ms, seed;
    double capacity_per_s; /* 0 = a tenth of the clients a second */
    bool details;
};

/* The same crowd twice: with the policy as it is, and without its jitter; or, when it has none, with full jitter. */
struct hk_policy_simulated {
    const char *name;
    struct hk_herd_options options; /* its policy only while it runs */
    bool has_jitter;
    struct hk_herd as_is, other; /* slots NULL without details */
    struct hk_str conclusion;    /* one sentence for somebody who reads nothing else */
};

extern const struct hk_op hk_op_policy_list, hk_op_policy_show, hk_op_policy_plan, hk_op_policy_simulate;

/* ---- words ---- */

/* The policy as a configuration file that reads back as the same policy. */
void hk_policy_yaml(const struct hk_policy *policy, struct hk_buf *out);
/* How the second run differs: "without jitter". */
const char *hk_policy_other_text(const struct hk_policy_simulated *simulated);
/* How many of its rules, the first ones, are not its preset's. */
size_t hk_policy_own_rules(const struct hk_policy *policy);
/* Words of the configuration. `match` as it is written there, without quotes. */
void hk_policy_match_text(const struct hk_rule *rule, struct hk_buf *out);
const char *hk_policy_limit_mode_text(enum hk_limit_mode mode);
const char *hk_policy_hints_text(enum hk_hint_mode mode);
/* The kind's name; "own" for the Azure forms, which draw each wait themselves, ±20 %. */
const char *hk_policy_jitter_kind(const struct hk_backoff *b, const struct hk_jitter *j);
/* Is this a shipped preset, unchanged? */
bool hk_policy_is_preset(const struct hk_policy *policy);

/* Short, for tables: "1s x2 up to 1h", "full", "±10 %". */
#define HK_POLICY_TEXT 96
const char *hk_policy_backoff_text(const struct hk_backoff *b, char out[HK_POLICY_TEXT]);
const char *hk_policy_jitter_text(const struct hk_jitter *j, char out[HK_POLICY_TEXT]);

#endif
