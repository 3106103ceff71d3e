/* SPDX-License-Identifier: Apache-2.0 */
/* Retry policies: which there are, what one says, which waits it makes, and what it does to a destination that was down. */
#ifndef HK_DESK_POLICY_H
#define HK_DESK_POLICY_H

#include <hikyaku/policies.h>

#include "base/buf.h"
#include "desk/desk.h"
#include "desk/herd.h"
#include "desk/plan.h"

/* Policies in results are the desk's, and live as long as its set of them. */

/* ---- list ---- */

struct hk_policy_list {
    const struct hk_policies *policies;
    const struct hk_policy *fallback; /* the default */
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

struct hk_policy_shown {
    const struct hk_policy *policy;
    struct hk_str yaml; /* a configuration file that reads back as the same policy */
    struct hk_policy_answer *answers;
    size_t n_answers;
};

/* ---- plan ---- */

struct hk_policy_plan_ask {
    const char *name, *cls;
    uint64_t attempts; /* shown at most */
    uint64_t seed;
};

struct hk_policy_planned {
    const struct hk_policy *policy;
    enum hk_class cls;
    uint64_t seed;
    struct hk_plan plan; /* its rows lie in the result's memory */
    uint32_t shown;      /* rows */
};

/* ---- simulate ---- */

struct hk_policy_simulate_ask {
    const char *name;
    uint64_t clients, outage_ms, spread_ms, seed;
    double capacity_per_s; /* 0 = a tenth of the clients a second */
};

/* The same crowd twice: with the policy as it is, and without its jitter; or, when it has none, with full jitter. */
struct hk_policy_simulated {
    const struct hk_policy *policy;
    struct hk_herd_options options;
    bool has_jitter;
    struct hk_herd as_is, other;
    const char *other_name;   /* "without jitter" */
    struct hk_str conclusion; /* one sentence for somebody who reads nothing else */
};

extern const struct hk_op hk_op_policy_list, hk_op_policy_show, hk_op_policy_plan, hk_op_policy_simulate;

/* ---- words ---- */

/* The policy as a configuration file that reads back as the same policy. */
void hk_policy_yaml(const struct hk_policy *policy, struct hk_buf *out);
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
