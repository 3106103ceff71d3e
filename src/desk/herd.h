/* SPDX-License-Identifier: Apache-2.0 */
/* The herd: the load that many clients of one policy make on a destination that was down. Pure, event by event.
 *
 * Each client sends one request at a random time within the first `spread_ms`. Until `outage_ms` every attempt
 * is refused; afterwards the destination serves `capacity_per_s`, measured out in slots of 100 ms, and answers
 * 503 to the rest. A client follows hk_policy_decide until it is served or gives up. Attempts take no time. */
#ifndef HK_DESK_HERD_H
#define HK_DESK_HERD_H

#include <hikyaku/policy.h>

#define HK_HERD_SLOT_MS     100
#define HK_HERD_CLIENTS_MAX 1000000
#define HK_HERD_OUTAGE_MAX  UINT64_C(86400000) /* a day */
#define HK_HERD_HORIZON_MS                                                                                   \
    UINT64_C(604800000) /* a week behind the outage: what waits longer is left waiting */
#define HK_HERD_ATTEMPTS_MAX UINT64_C(30000000) /* half a minute of work */

struct hk_herd_options {
    const struct hk_policy *policy;
    uint32_t clients;
    uint64_t outage_ms;
    uint64_t spread_ms;
    double capacity_per_s; /* > 0 */
    uint64_t seed;
};

struct hk_herd {
    uint32_t *slots; /* attempts per HK_HERD_SLOT_MS */
    size_t n_slots;  /* up to the last attempt */
    uint64_t attempts;
    uint32_t delivered, dead, waiting; /* clients; together all of them */
    uint32_t peak_down, peak_up;       /* most attempts within any second, during the outage and after it */
    double herding; /* peak_up over the mean per second, from recovery until 99 % were served; 0: none came */
    /* from recovery until that share of the clients was served; UINT64_MAX: it never was */
    uint64_t half_ms, most_ms, all_ms;
    uint64_t last_ms; /* of the last attempt, from the start */
};

/* HK_NOMEM; HK_RANGE for options outside the bounds; HK_TOOBIG when there are too many attempts. */
enum hk_code hk_herd_run(const struct hk_herd_options *options, struct hk_herd *out_load,
                         struct hk_err *err) HK_MUSTCHECK;
void hk_herd_fini(struct hk_herd *load);

/* Attempts from `from_ms` until before `to_ms`, both whole slots. */
uint64_t hk_herd_between(const struct hk_herd *load, uint64_t from_ms, uint64_t to_ms);

/* A copy of the policy without random waits, to show the herd. */
enum hk_code hk_herd_without_jitter(const struct hk_policy *policy, struct hk_policy **out_policy,
                                    struct hk_err *err) HK_MUSTCHECK;
/* A copy of the policy with full jitter on every wait, to compare with. */
enum hk_code hk_herd_with_full_jitter(const struct hk_policy *policy, struct hk_policy **out_policy,
                                      struct hk_err *err) HK_MUSTCHECK;
/* Does any wait of the policy depend on chance? */
bool hk_herd_has_jitter(const struct hk_policy *policy);

#endif
