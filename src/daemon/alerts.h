/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts in the process, from inside:
 *
 *   alerts_plan.c   the configuration's rules and channels, copied: a reload may come while a channel hangs
 *   alerts_waiting.c  which messages could have gone
 *   alerts_fields.c the fields of a payload that a rule names
 *   alerts_facts.c  a notice as JSON, and back
 *   alerts_rounds.c the store's side, which blocks: evaluate, claim, settle; runs on one thread of its own
 *   part_alerts.c   the loop's side: when to do what, which channel is free, what is told without the store
 *
 * Each channel has a thread: one that hangs delays nobody but itself. */
#ifndef HK_DAEMON_ALERTS_H
#define HK_DAEMON_ALERTS_H

#include <stdatomic.h>

#include "alert/notice.h"
#include "config/config.h"
#include "payload/mask.h"
#include "store/alerts.h"
#include "store/letters.h"

/* What this relay did; may be read from any thread. */
struct hk_alerts_stats {
    atomic_uint_fast64_t evaluated; /* times that this relay looked and decided */
    atomic_uint_fast64_t errors;    /* times that it could not */
    atomic_uint_fast64_t firing;    /* alerts, as of this relay's last evaluation */
    atomic_uint_fast64_t sent;      /* notices that a channel took */
    atomic_uint_fast64_t failed;    /* attempts that failed */
    atomic_uint_fast64_t dropped;   /* notices that were given up */
};

/* ---- the plan ---- */

#define HK_ALERTS_CHANNELS_MAX 32
#define HK_ALERTS_RULES_MAX    100

struct hk_alerts_route {
    const char *event_type;
    const char *const *destinations;
    size_t n;
};

struct hk_alerts_plan {
    struct hk_pool arena;
    struct hk_alert_rule *rules;
    size_t n_rules;
    struct hk_channel *channels;
    size_t n_channels;
    struct hk_alert_settings settings; /* without mutes */
    uint64_t interval_ms, keep_ms;
    uint64_t lease_ms;           /* longer than any attempt */
    const char *relay, *link;    /* link: NULL = none */
    struct hk_masks *masks;      /* NULL = nothing is masked */
    bool figures;                /* some rule looks at counts or ages */
    struct hk_blocking *ordered; /* destinations of the configuration that keep the order of keys */
    size_t n_ordered;
    const char *
        *named; /* all of the configuration, by name: what the store has of the same name does not count */
    size_t n_named;
    struct hk_alerts_route *routes; /* in the order of the file */
    size_t n_routes;
    unsigned refs;
};

/* `*out_plan` NULL: nobody is to be told. */
enum hk_code hk_alerts_plan_new(const struct hk_config *config, const char *relay,
                                struct hk_alerts_plan **out_plan, struct hk_err *err) HK_MUSTCHECK;
struct hk_alerts_plan *hk_alerts_plan_ref(struct hk_alerts_plan *plan);
void hk_alerts_plan_unref(struct hk_alerts_plan *plan); /* accepts NULL */
/* Does the configuration have a destination of that name? */
bool hk_alerts_plan_names(const struct hk_alerts_plan *plan, const char *name);

/* ---- what could have gone ---- */

/* Fills in `facts` (from `oldest_dest` on) what waits and could go: neither to a destination that is paused or broken (`dests` of
 * the facts) nor, for `oldest_free_ms`, to one whose rate is used up (`figures`). Their texts become those of `waiting` and
 * of the plan. */
void hk_alerts_judge_waiting(const struct hk_alerts_plan *plan, const struct hk_waiting *waiting,
                             const struct hk_figures *figures, struct hk_alert_facts *facts);

/* ---- fields of a payload (alerts_fields.c) ---- */

/* What the rule names of the letter's payload, masked, as hk_alerts_fields_text writes it; nothing for a rule that names none. HK_NOMEM.
 * `mem` holds what is read meanwhile. */
enum hk_code hk_alerts_name_fields(const struct hk_masks *masks, const struct hk_alert_rule *rule,
                                   const struct hk_letter_shown *shown, struct hk_pool *mem,
                                   struct hk_buf *out) HK_MUSTCHECK;

/* ---- a notice as JSON ---- */

/* Without kind, fingerprint and rule, which stand beside it. */
void hk_alerts_facts_write(const struct hk_notice *notice, struct hk_buf *out);
/* The texts go into `arena`. What is missing or not ours stays as it is: no row makes this fail but for HK_NOMEM. */
enum hk_code hk_alerts_facts_read(struct hk_str facts, struct hk_pool *arena,
                                  struct hk_notice *out) HK_MUSTCHECK;
/* Tells of another alert, too, if there is room. */
void hk_alerts_notice_add_line(struct hk_notice *notice, const struct hk_alert *alert);
/* What an alert is by now. */
void hk_alerts_notice_of(const struct hk_alerts_plan *plan, const struct hk_alert *alert,
                         enum hk_notice_kind kind, int64_t now_ms, struct hk_notice *out);

/* ---- the store's side ---- */

struct hk_alerts_rounds {
    const char *url, *relay;
    struct hk_admin *admin; /* NULL: not open */
    const struct hk_store_admin_ops *ops;
    const struct hk_store_letters_ops *letters;
    const struct hk_store_alerts_ops *alerts;
    bool more;             /* the last look did not see all: the next one need not wait */
    int64_t figures_at_us; /* counts and ages cost time: not before */
};

enum hk_code hk_alerts_rounds_init(struct hk_alerts_rounds *rounds, const char *url, const char *relay,
                                   struct hk_err *err) HK_MUSTCHECK;
void hk_alerts_rounds_close(struct hk_alerts_rounds *rounds);

struct hk_alerts_evaluated {
    bool mine; /* this relay's turn; else another one evaluated */
    bool more; /* look again at once */
    size_t firing, told;
    int64_t muted_ms
        [HK_ALERTS_RULES_MAX]; /* by place: until when a rule of hk_alert_kind_is_own is muted; 0 = it is not */
};

enum hk_code hk_alerts_evaluate(struct hk_alerts_rounds *rounds, const struct hk_alerts_plan *plan,
                                struct hk_alerts_evaluated *out, struct hk_err *err) HK_MUSTCHECK;
/* For the channels whose bits are set. */
enum hk_code hk_alerts_claim(struct hk_alerts_rounds *rounds, const struct hk_alerts_plan *plan,
                             uint32_t free, const struct hk_alerts_claims **out,
                             struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_alerts_settle(struct hk_alerts_rounds *rounds, const struct hk_alerts_settle *settle,
                              struct hk_err *err) HK_MUSTCHECK;

#endif
