/* SPDX-License-Identifier: Apache-2.0 */
/* What relays saw lately of each destination, as they leave it in the store for `status`, `top` and alerts: one row for each
 * relay and destination, and what several of them say together. */
#ifndef HK_STORE_FIGURES_H
#define HK_STORE_FIGURES_H

#include "base/histogram.h"

#define HK_FIGURES_FRESH_MS  30000 /* what is older says nothing of now */
#define HK_FIGURES_MAX       20000 /* rows that are read */
#define HK_FIGURES_ERROR_MAX 240   /* bytes of a last error */
#define HK_FIGURES_HELD      "held"

/* What one relay saw of one destination in the `window_ms` before `at_ms`. Times are the store's. */
struct hk_figure {
    int64_t lane, at_ms;
    bool fresh; /* not older than HK_FIGURES_FRESH_MS; else only the last error still counts */
    struct hk_str destination;
    uint64_t window_ms;
    uint64_t seen;         /* fresh messages that came by */
    uint64_t sent, failed; /* attempts */
    uint64_t dead;         /* messages that became dead letters */
    uint64_t in_flight;
    int64_t ready_at_ms; /* limiter or breaker let nothing through before; 0 = they do */
    /* "closed", "open", "half_open"; HK_FIGURES_HELD: the relay cannot use the destination. Then `last_error` is why, and
     * `last_error_ms` since when; both count as long as the relay runs, fresh or not. */
    struct hk_str breaker;
    struct hk_histogram latency; /* of attempts, in ms */
    struct hk_str last_error;    /* masked; "" = none */
    int64_t last_error_ms;
};

struct hk_figures {
    int64_t now_ms;
    struct hk_figure *items; /* of relays that run; by destination */
    size_t n;
};

/* Relays that cannot use a destination: its messages wait there. */
struct hk_unusable {
    uint64_t relays;   /* how many; 0 = nobody says so */
    struct hk_str why; /* as the first of them says */
    int64_t since_ms;  /* the earliest */
};

/* What all relays say of one destination. */
struct hk_figures_sum {
    bool known; /* a relay has told of it within HK_FIGURES_FRESH_MS */
    double in_per_s, out_per_s;
    uint64_t sent, failed, dead, in_flight;
    struct hk_histogram latency;
    bool limited;        /* a limiter let nothing through when a relay looked last */
    int64_t ready_at_ms; /* then: until when; the latest */
    bool half_open;      /* a breaker lets probes through */
    struct hk_str last_error;
    int64_t last_error_ms; /* the latest */
    struct hk_unusable unusable;
};

void hk_figures_sum(const struct hk_figures *figures, struct hk_str destination, struct hk_figures_sum *out);
/* Does this relay say that it cannot use the destination? */
bool hk_figure_is_held(const struct hk_figure *figure);
/* Counts one that is. `into` is all 0 at first. */
void hk_unusable_add(struct hk_unusable *into, const struct hk_figure *held);
/* Only that part of the sum. */
void hk_figures_unusable(const struct hk_figures *figures, struct hk_str destination,
                         struct hk_unusable *out);

#endif
